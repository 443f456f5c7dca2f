// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The users of a queue in a Redis whose memory is full: producers, which may be refused, and
// consumers, which must not be. Their handlers do everything that a handler can.

#pragma once

#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/ledger.hpp"
#include "support/redis_server.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/orizuru.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace orizuru::test::full_memory {

// Long enough for a busy machine.
inline constexpr std::chrono::milliseconds lease{3000};

using RawGuard = MessageGuard<Raw>;

/// The name of a message, which its padding follows.
inline std::string name_of(const std::string& payload) {
    return payload.substr(0, payload.find('|'));
}

/// Shared by all users of a round: two queues and the knowledge about them.
struct Round {
    Round(const RedisServer& server, FaultReport& report, std::uint64_t seed)
        : uri(server.uri()), report(report), random(seed) {}

    const std::string uri;
    FaultReport& report;
    std::mt19937_64 random; ///< under the mutex
    std::mutex mutex;
    Ledger ledger{"q"};
    Ledger next_ledger{"next", "nothing"};
    std::set<std::string> seen_before; ///< under the mutex
    std::atomic<int> messages{0};
    std::atomic<int> handled{0};
    std::atomic<bool> held{true}; ///< handlers do not go on

    Raw new_message() {
        const std::lock_guard lock(mutex);
        const std::size_t length = std::uniform_int_distribution<std::size_t>(100, 2000)(random);
        return {std::to_string(++messages) + '|' + std::string(length, 'x')};
    }
    bool is_first_sight(const std::string& name) {
        const std::lock_guard lock(mutex);
        return seen_before.insert(name).second;
    }
    void expect(bool holds, const std::string& otherwise) {
        if (!holds) {
            report.violation(otherwise);
        }
    }
    /// An exception of a thread is a violation.
    template <class Action>
    void attempt(const std::string& who, Action action) {
        try {
            action();
        } catch (const std::exception& error) {
            report.violation(who + ": " + error.what());
        }
    }
    /// Whether the message was accepted; it may only be refused for lack of memory.
    template <class Action>
    bool push_or_oom(Ledger& book, const std::string& name, const char* kind, Action action) {
        book.pushing(name);
        try {
            action();
            book.pushed(name);
            return true;
        } catch (const ReplyError& error) {
            book.not_pushed(name);
            expect(error.code() == "OOM", error.what());
            report.came(kind);
            return false;
        }
    }
};

/// Pushes until it is stopped.
inline void produce(Round& round, const std::stop_token& stop) {
    Producer<Raw> producer{round.uri, "q"};
    while (!stop.stop_requested()) {
        const Raw message = round.new_message();
        if (!round.push_or_oom(round.ledger, name_of(message.bytes), "pushes refused",
                               [&] { producer.push(message); })) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
}

/// A buffer keeps its accepted messages until there is room.
inline void produce_buffered(Round& round, const std::stop_token& stop) {
    BufferedProducer<Raw> producer{
        round.uri, "q", {.size = 5, .time = std::chrono::milliseconds(1)}};
    while (!stop.stop_requested()) {
        const Raw message = round.new_message();
        if (!round.push_or_oom(round.ledger, name_of(message.bytes), "buffers refused",
                               [&] { producer.push(message); })) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    const auto flushed = [&] {
        try {
            producer.flush();
            return true;
        } catch (const ReplyError& error) {
            round.expect(error.code() == "OOM", error.what());
            return false;
        }
    };
    round.expect(eventually(flushed), "a buffer was never sent");
}

/// A consumer with its handler.
class Worker {
  public:
    Worker(Round& round, int prefetch, AckMode ack)
        : m_round(round),
          m_deferred(ack == AckMode::deferred),
          m_consumer(round.uri, "q",
                     {.lease = lease,
                      .prefetch = prefetch,
                      .ack = ack,
                      .on_event =
                          [&round](const Event& event) {
                              round.report.violation("an event: " + std::string(event.detail));
                          },
                      .on_beat = [this] { ++m_beats; }}),
          m_name(m_consumer.name()),
          m_next(round.uri, "next"),
          m_thread([this](const std::stop_token& stop) {
              m_round.attempt("a consumer", [&] { work(stop); });
          }) {}
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker() {
        m_thread.request_stop();
        m_thread.join();
        m_round.expect(m_consumer.name() == m_name, "a consumer was taken for dead");
    }

    [[nodiscard]] int beats() const { return m_beats; }
    [[nodiscard]] bool fetched() const { return m_fetched; }

  private:
    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            if (auto guard = m_consumer.next(stop)) {
                m_round.ledger.handed_out(name_of((*guard)->bytes));
                m_fetched = true;
                while (m_round.held && !stop.stop_requested()) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(5));
                }
                handle(*guard);
                ++m_round.handled;
            }
        }
        m_round.expect(m_consumer.flush() == 0, "an ack came too late");
        for (const std::string& name : m_acked) {
            m_round.ledger.settled(name, Place::gone);
        }
    }

    void handle(RawGuard& guard) {
        const std::string name = name_of(guard->bytes);
        const bool first = m_round.is_first_sight(name);
        switch (std::stoi(name) % 40) {
        case 0:
            return settle(guard, Place::other, [&] { return guard.push("other"); });
        case 1:
            return settle(guard, Place::dead, [&] { return guard.bury("why"); });
        case 2:
            return first ? settle(guard, Place::waiting, [&] { return guard.reject(); })
                         : ack(guard);
        case 3:
            return first ? settle(guard, Place::waiting, [&] { return guard.release(); })
                         : ack(guard);
        case 4:
            return produce_next(guard);
        default:
            return ack(guard);
        }
    }
    /// A handler that produces is refused, and still holds its message: it tries again later.
    void produce_next(RawGuard& guard) {
        const std::string name = name_of(guard->bytes);
        const std::string result = name + '.' + std::to_string(++m_attempts) + m_name;
        if (m_round.push_or_oom(m_round.next_ledger, result, "handlers refused",
                                [&] { m_next.push({result}); })) {
            ack(guard);
        } else {
            m_round.expect(!guard.settled(), "a guard was settled by another queue's refusal");
            settle(guard, Place::waiting, [&] { return guard.reject(); });
        }
    }
    void ack(RawGuard& guard) {
        if (!m_deferred) {
            settle(guard, Place::gone, [&] { return guard.ack(); });
            return;
        }
        const std::string name = m_acked.emplace_back(name_of(guard->bytes));
        m_round.ledger.settling(name, Place::gone);
        m_round.expect(guard.ack(), "a deferred ack was not accepted");
    }
    template <class How>
    void settle(const RawGuard& guard, Place to, How how) {
        const std::string name = name_of(guard->bytes);
        m_round.ledger.settling(name, to);
        m_round.expect(how(), "a lease was lost");
        m_round.ledger.settled(name, to);
    }

    Round& m_round;
    bool m_deferred;
    std::atomic<int> m_beats{0};
    std::atomic<bool> m_fetched{false};
    Consumer<Raw> m_consumer;
    std::string m_name;
    Producer<Raw> m_next;
    int m_attempts = 0;
    std::vector<std::string> m_acked; ///< deferred: certain when flush() has said so
    std::jthread m_thread;
};

} // namespace orizuru::test::full_memory
