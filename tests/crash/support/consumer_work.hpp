// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A consumer that may be killed at any moment, and records its messages and answers in a journal.

#pragma once

#include "crash/support/journal.hpp"
#include "crash/support/late_times.hpp"
#include "crash/support/work.hpp"
#include "fuzz/simulation/chance.hpp"

#include <orizuru/codec.hpp>
#include <orizuru/consumer.hpp>
#include <orizuru/consumer_options.hpp>
#include <orizuru/error.hpp>
#include <orizuru/message_guard.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

/// Where handlers push to.
[[nodiscard]] inline std::string other_queue(const std::string& queue) { return queue + "-other"; }

/// Throws for an error that neither an outage of Redis nor repeated cuts explain: it ends the
/// process, which the storm reports.
inline void refuse_unexpected(const ReplyError& error) {
    const bool cut_off = std::string_view(error.what()).find("the connection broke each time") !=
                         std::string_view::npos;
    if (!is_for_now(error) && !cut_off) {
        throw std::runtime_error(std::string("unexpected: ") + error.what());
    }
}

/// Records the settlement of a message that was handed out.
template <class Settle>
bool settle_noting(Journal& journal, std::uint64_t message, Place to, Settle settle) {
    journal.write({message, Step::settling, to});
    try {
        const bool done = settle();
        if (!done) {
            journal.write({message, Step::not_settled, to});
        }
        return done;
    } catch (const ReplyError& error) {
        refuse_unexpected(error);
        journal.write({message, Step::refused, to});
    } catch (const ConnectionError&) { // NOLINT(bugprone-empty-catch)
        // In doubt.
    }
    return false;
}

/// Acks that are recorded as done when a flush has confirmed them.
class DeferredAcks {
  public:
    explicit DeferredAcks(Journal& journal) : m_journal(journal) {}

    void ack(MessageGuard<Raw>& guard) {
        const std::uint64_t message = number_in(guard->bytes);
        if (settle_noting(m_journal, message, Place::gone, [&] { return guard.ack(); })) {
            m_accepted.push_back(message);
        }
    }
    [[nodiscard]] std::size_t size() const noexcept { return m_accepted.size(); }

    void flush(Consumer<Raw>& consumer) {
        try {
            if (consumer.flush() == 0) {
                std::vector<Record> records;
                for (const std::uint64_t message : m_accepted) {
                    records.push_back({message, Step::settled, Place::gone});
                }
                m_journal.write(records);
            }
            m_accepted.clear();
        } catch (const Error&) { // NOLINT(bugprone-empty-catch)
            // The acks stay queued.
        }
    }

  private:
    Journal& m_journal;
    std::vector<std::uint64_t> m_accepted;
};

class ConsumerWork {
  public:
    explicit ConsumerWork(const Work& work)
        : m_journal(work.journal),
          m_chance(work.seed),
          m_other(other_queue(work.queue)),
          m_options(options(work)),
          m_most_held(work.index % 4 < 2 ? 0 : 3),
          m_consumer(connected<Consumer<Raw>>(work.endpoint(), work.queue, m_options)) {}

    [[noreturn]] void run() {
        while (true) {
            const std::int64_t not_before = begin_of_fetch();
            Guard guard = m_consumer->next().value();
            m_journal.write(
                {number_in(guard->bytes), Step::handed_out, Place::waiting, not_before});
            if (m_chance.happens(0.05)) {
                std::this_thread::sleep_for(std::chrono::milliseconds(m_chance.below(50)));
            }
            m_held.push_back(std::move(guard));
            while (m_held.size() > m_most_held) {
                std::swap(m_chance.pick(m_held), m_held.back());
                settle(m_held.back());
                m_held.pop_back();
            }
            if (m_acks.size() > 60 || m_chance.happens(0.02)) {
                m_acks.flush(*m_consumer);
            }
        }
    }

  private:
    using Guard = MessageGuard<Raw>;

    static ConsumerOptions options(const Work& work) {
        constexpr std::array prefetch{1, 10, 100};
        return {.name = work.name(),
                .lease = storm_lease,
                .prefetch = prefetch[work.index % 3],
                .ack = work.index / 3 % 2 == 0 ? AckMode::immediate : AckMode::deferred,
                .on_event = noting_events(work.late_times(), work.serial)};
    }

    /// A consumer holds at most two batches, so a message that `next` hands out was not fetched
    /// before the call that was this many calls ago. It may have been fetched before the present
    /// one.
    std::int64_t begin_of_fetch() {
        m_begins.push_back(monotonic_time());
        if (m_begins.size() > 2 * static_cast<std::size_t>(m_options.prefetch) + 2) {
            m_begins.pop_front();
        }
        return m_begins.front();
    }

    void settle(Guard& guard) {
        switch (m_chance.below(12)) {
        case 0:
            return settle(guard, Place::waiting, [&] { return guard.reject(); });
        case 1:
            return settle(guard, Place::waiting, [&] { return guard.release(); });
        case 2:
            return settle(guard, Place::other, [&] { return guard.push(m_other); });
        case 3:
            return settle(guard, Place::other,
                          [&] { return guard.push(m_other, Raw{guard->bytes + "|again"}); });
        case 4:
            return settle(guard, Place::dead, [&] { return guard.bury("it was its turn"); });
        default:
            return m_options.ack == AckMode::deferred
                       ? m_acks.ack(guard)
                       : settle(guard, Place::gone, [&] { return guard.ack(); });
        }
    }

    template <class Settlement>
    void settle(const Guard& guard, Place to, Settlement settlement) {
        const std::uint64_t message = number_in(guard->bytes);
        if (settle_noting(m_journal, message, to, settlement)) {
            m_journal.write({message, Step::settled, to});
        }
    }

    Journal m_journal;
    Chance m_chance;
    std::string m_other;
    ConsumerOptions m_options;
    std::size_t m_most_held;
    std::unique_ptr<Consumer<Raw>> m_consumer;
    std::deque<std::int64_t> m_begins;
    std::deque<Guard> m_held;
    DeferredAcks m_acks{m_journal};
};

} // namespace orizuru::test
