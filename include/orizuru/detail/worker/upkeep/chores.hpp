// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Work that a worker repeats beside its jobs, one piece after the other, each when it is due. What
// fails is repeated later, and the others go on. While Redis is out of reach, all wait together.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

struct Chore {
    std::string_view what;                ///< its task, for people
    std::string queue = {};               ///< empty: it is for all queues
    std::function<TimePoint()> step = {}; ///< returns when it is due again
    TimePoint due{};
    JitteredPauses pauses{}; ///< after errors that pass by themselves
};

/// For one thread at a time.
class Chores {
  public:
    /// Pause after an error that does not pass by itself.
    static constexpr std::chrono::milliseconds failure_pause{5000};

    /// Takes what failed, why, and when it is repeated.
    using Tell = FunctionRef<void(const Chore&, std::string_view, std::chrono::milliseconds)>;

    /// Returns its position.
    std::size_t add(Chore chore) {
        m_chores.push_back(std::move(chore));
        return m_chores.size() - 1;
    }
    /// Makes it due.
    void call(std::size_t position) noexcept {
        m_chores[position].due = std::min(m_chores[position].due, Clock::now());
    }
    /// Returns when the next one is due.
    [[nodiscard]] TimePoint next_due() const noexcept {
        return m_chores.empty() ? TimePoint::max() : std::max(first()->due, m_held_until);
    }
    /// Does the one that has been due for the longest, if one is due.
    void do_next(Tell tell) {
        if (Clock::now() < next_due()) {
            return;
        }
        Chore& chore = m_chores[static_cast<std::size_t>(first() - m_chores.begin())];
        if (attempt(chore, chore.step, tell) == Outcome::unreachable) {
            hold();
        }
    }
    enum class Outcome : std::uint8_t { done, failed, unreachable };
    /// Does this one, which may not be among them, with this step. Tells why it failed, unless that
    /// passes by itself; of an outage once in a `failure_pause`.
    Outcome attempt(Chore& chore, FunctionRef<TimePoint()> step, Tell tell);

  private:
    [[nodiscard]] std::vector<Chore>::const_iterator first() const noexcept {
        return std::ranges::min_element(m_chores, {}, &Chore::due);
    }
    void hold() noexcept;

    std::vector<Chore> m_chores;
    JitteredPauses m_outage;
    TimePoint m_held_until{};
    TimePoint m_quiet_until{}; ///< until then, outages are not told
};

inline Chores::Outcome Chores::attempt(Chore& chore, FunctionRef<TimePoint()> step, Tell tell) {
    const auto later = [&](std::chrono::milliseconds pause) { chore.due = deadline_in(pause); };
    const auto fail = [&](const std::exception& error) {
        later(failure_pause);
        tell(chore, error.what(), failure_pause);
    };
    try {
        chore.due = step();
        chore.pauses.reset();
        return Outcome::done;
    } catch (const ConnectionError& error) {
        const std::chrono::milliseconds pause = chore.pauses.next();
        later(pause);
        if (Clock::now() >= m_quiet_until) {
            m_quiet_until = deadline_in(failure_pause);
            tell(chore, error.what(), pause);
        }
        return Outcome::unreachable;
    } catch (const ReplyError& error) {
        is_for_now(error) ? later(chore.pauses.next()) : fail(error);
    } catch (const ProtocolError&) {
        later(chore.pauses.next());
    } catch (const std::exception& error) {
        fail(error);
    }
    return Outcome::failed;
}

// All are on one connection: each would only wait for its own time-out. Not every chore that
// succeeds has asked Redis, so only time ends an outage.
inline void Chores::hold() noexcept {
    constexpr std::chrono::seconds calm(10);
    if (Clock::now() - m_held_until > calm) {
        m_outage.reset();
    }
    m_held_until = deadline_in(m_outage.next());
}

} // namespace orizuru::detail
