// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A lane's settlements whose callers are told of the end, instead of waiting in a thread. Only who
// includes awaited_settlements.hpp makes some.

#include <orizuru/detail/base/clock.hpp>

#include <memory>
#include <utility>

namespace orizuru::detail {

/// The end of such a settlement.
class AwaitedOutcome {
  public:
    AwaitedOutcome() = default;
    AwaitedOutcome(const AwaitedOutcome&) = delete;
    AwaitedOutcome& operator=(const AwaitedOutcome&) = delete;
    virtual ~AwaitedOutcome() = default;

    /// Tells of it: once, without the lock.
    virtual void tell() noexcept = 0;

  private:
    friend class AwaitedOutcomes;

    std::unique_ptr<AwaitedOutcome> m_next;
};

/// In the order in which they came.
class AwaitedOutcomes {
  public:
    AwaitedOutcomes() = default;
    AwaitedOutcomes(const AwaitedOutcomes&) = delete;
    AwaitedOutcomes& operator=(const AwaitedOutcomes&) = delete;
    AwaitedOutcomes(AwaitedOutcomes&&) noexcept = default;
    AwaitedOutcomes& operator=(AwaitedOutcomes&&) = delete;
    ~AwaitedOutcomes() {
        while (pop()) { // one by one: a chain would end itself recursively
        }
    }

    [[nodiscard]] bool empty() const noexcept { return m_first == nullptr; }
    void push(std::unique_ptr<AwaitedOutcome> outcome) noexcept {
        AwaitedOutcome* const last = outcome.get();
        (m_first ? m_last->m_next : m_first) = std::move(outcome);
        m_last = last;
    }
    /// Null when there are no more.
    std::unique_ptr<AwaitedOutcome> pop() noexcept {
        std::unique_ptr<AwaitedOutcome> first = std::move(m_first);
        if (first) {
            m_first = std::move(first->m_next);
        }
        return first;
    }

  private:
    std::unique_ptr<AwaitedOutcome> m_first;
    AwaitedOutcome* m_last = nullptr; ///< if there is a first
};

/// Callers hold the link's lock.
class Awaits {
  public:
    Awaits() = default;
    Awaits(const Awaits&) = delete;
    Awaits& operator=(const Awaits&) = delete;
    virtual ~Awaits() = default;

    [[nodiscard]] virtual bool empty() const noexcept = 0;
    /// Ends those that have no outcome in time. Returns when the next one is over.
    virtual TimePoint end_overdue() noexcept = 0;
    virtual void end_all() noexcept = 0;

    [[nodiscard]] bool has_outcomes() const noexcept { return !m_outcomes.empty(); }
    [[nodiscard]] AwaitedOutcomes take_outcomes() noexcept { return std::move(m_outcomes); }

  protected:
    void add(std::unique_ptr<AwaitedOutcome> outcome) noexcept {
        m_outcomes.push(std::move(outcome));
    }

  private:
    AwaitedOutcomes m_outcomes;
};

} // namespace orizuru::detail
