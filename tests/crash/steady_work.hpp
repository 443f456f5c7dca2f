// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A process that is never killed: a producer, a consumer and a collector of a queue of their own,
// for as long as a soak lasts. It notes how long each message took, and says what is wrong.

#pragma once

#include "crash/journal.hpp"
#include "crash/work.hpp"

#include <orizuru/codec.hpp>
#include <orizuru/consumer.hpp>
#include <orizuru/error.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/producer.hpp>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace orizuru::test {

/// The messages that are still to come. Any thread.
class Expected {
  public:
    using Clock = std::chrono::steady_clock;

    void pushing(std::uint64_t message) {
        const std::lock_guard lock(m_mutex);
        m_messages[message] = {};
    }
    /// It must come now.
    void pushed(std::uint64_t message) { change(message, true); }
    /// It may have been settled, or never pushed.
    void in_doubt(std::uint64_t message) { change(message, false); }
    void remove(std::uint64_t message) {
        const std::lock_guard lock(m_mutex);
        m_messages.erase(message);
    }
    /// Since when; nothing when it must not come.
    std::optional<Clock::time_point> since(std::uint64_t message) {
        const std::lock_guard lock(m_mutex);
        const auto known = m_messages.find(message);
        return known == m_messages.end() ? std::nullopt : std::optional(known->second.since);
    }
    /// Tells of those that should have come long ago.
    void tell_overdue() {
        const std::lock_guard lock(m_mutex);
        std::erase_if(m_messages, [](const auto& entry) {
            const bool late = entry.second.sure && Clock::now() - entry.second.since > patience;
            if (late) {
                std::cout << "LOST " << entry.first << std::endl;
            }
            return late;
        });
    }

  private:
    static constexpr std::chrono::seconds patience{60};

    struct Message {
        Clock::time_point since = Clock::now();
        bool sure = false;
    };

    void change(std::uint64_t message, bool sure) {
        const std::lock_guard lock(m_mutex);
        if (const auto known = m_messages.find(message); known != m_messages.end()) {
            known->second.sure = sure;
        }
    }

    std::mutex m_mutex;
    std::map<std::uint64_t, Message> m_messages;
};

class SteadyWork {
  public:
    /// The journal is a file of latencies, in nanoseconds.
    explicit SteadyWork(const Work& work) : m_work(work), m_latencies(work.journal) {}

    [[noreturn]] void run() {
        const std::jthread pushing([this] { push(); });
        const std::jthread collecting([this] {
            connected<GarbageCollector>(m_work.endpoint(), m_work.queue, storm_collector())
                ->run(std::stop_token(), storm_pass);
        });
        const auto consumer = connected<Consumer<Raw>>(
            m_work.endpoint(), m_work.queue, ConsumerOptions{.lease = storm_lease, .prefetch = 10});
        while (true) {
            for (std::size_t i = 0; i < m_work.rate; ++i) {
                if (auto guard = consumer->next(std::chrono::milliseconds(100))) {
                    handle(*guard);
                }
            }
            m_latencies.flush();
            m_expected.tell_overdue();
        }
    }

  private:
    void handle(MessageGuard<Raw>& guard) {
        const std::uint64_t message = number_in(guard->bytes);
        const auto since = m_expected.since(message);
        if (!since) {
            std::cout << "delivered and not expected: " << message << std::endl;
        } else {
            const std::int64_t latency =
                std::chrono::nanoseconds(Expected::Clock::now() - *since).count();
            m_latencies.write(reinterpret_cast<const char*>(&latency), sizeof latency);
        }
        try {
            if (guard.ack()) {
                m_expected.remove(message);
            }
        } catch (const ConnectionError&) {
            m_expected.in_doubt(message);
        }
    }

    void push() {
        const auto producer = connected<Producer<Raw>>(m_work.endpoint(), m_work.queue);
        for (std::uint64_t message = 1;; ++message) {
            std::this_thread::sleep_for(std::chrono::microseconds(1'000'000 / m_work.rate));
            m_expected.pushing(message);
            try {
                producer->push(Raw{std::to_string(message)});
                m_expected.pushed(message);
            } catch (const ConnectionError& error) {
                if (!error.in_doubt()) {
                    m_expected.remove(message);
                }
            } catch (const ReplyError&) {
                m_expected.remove(message);
            }
        }
    }

    const Work& m_work;
    std::ofstream m_latencies;
    Expected m_expected;
};

} // namespace orizuru::test
