// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A process that is never killed: a producer, a consumer and a collector of a queue of their own,
// for as long as a soak lasts. It records how long each message took, and reports violations. When
// asked to end, it stops pushing and takes the remaining messages.

#pragma once

#include "crash/support/journal.hpp"
#include "crash/support/work.hpp"

#include <orizuru/codec.hpp>
#include <orizuru/consumer.hpp>
#include <orizuru/error.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/producer.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
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
    /// The message must come now, or have come.
    void pushed(std::uint64_t message) {
        change(message, [](Message& known) { known.sure |= !known.came; });
    }
    /// The message must be settled, or come again. Returns since when it is expected; empty when it
    /// must not come.
    std::optional<Clock::time_point> came(std::uint64_t message) {
        std::optional<Clock::time_point> since;
        change(message, [&](Message& known) {
            known.sure = known.came = true;
            since = known.since;
        });
        return since;
    }
    /// The message may have been settled.
    void in_doubt(std::uint64_t message) {
        change(message, [](Message& known) { known.sure = false; });
    }
    void remove(std::uint64_t message) {
        const std::lock_guard lock(m_mutex);
        m_messages.erase(message);
    }
    /// Whether a message must come.
    bool any() {
        const std::lock_guard lock(m_mutex);
        return std::ranges::any_of(m_messages, [](const auto& entry) { return entry.second.sure; });
    }
    /// Reports the messages that should have come, and have not for this long.
    void tell_lost(std::chrono::seconds patience) {
        const std::lock_guard lock(m_mutex);
        std::erase_if(m_messages, [=](const auto& entry) {
            const bool late = entry.second.sure && Clock::now() - entry.second.since >= patience;
            if (late) {
                std::cout << "LOST " << entry.first << std::endl;
            }
            return late;
        });
    }

  private:
    struct Message {
        Clock::time_point since = Clock::now();
        bool sure = false;
        bool came = false;
    };

    template <class Action>
    void change(std::uint64_t message, Action action) {
        const std::lock_guard lock(m_mutex);
        if (const auto known = m_messages.find(message); known != m_messages.end()) {
            action(known->second);
        }
    }

    std::mutex m_mutex;
    std::map<std::uint64_t, Message> m_messages;
};

class SteadyWork {
  public:
    /// How long a message may take, after any faults.
    static constexpr std::chrono::seconds patience{60};

    /// The journal is a file of latencies, in nanoseconds.
    explicit SteadyWork(const Work& work) : m_work(work), m_latencies(work.journal) {
        ::sigemptyset(&m_end);
        ::sigaddset(&m_end, SIGTERM);
        ::pthread_sigmask(SIG_BLOCK, &m_end, nullptr); // for later threads, too
    }

    /// Runs until SIGTERM comes.
    void run() {
        std::jthread pushing([this](const std::stop_token& stop) { push(stop); });
        const std::jthread collecting([this](const std::stop_token& stop) {
            connected<GarbageCollector>(m_work.endpoint(), m_work.queue, storm_collector())
                ->run(stop, storm_pass);
        });
        const auto consumer = connected<Consumer<Raw>>(
            m_work.endpoint(), m_work.queue,
            ConsumerOptions{.lease = storm_lease, .prefetch = 10, .on_event = [](const Event&) {
                            }}); // what it writes is a finding
        for (std::size_t calls = 1; !is_to_end(); ++calls) {
            take_one(*consumer);
            if (calls % m_work.rate == 0) {
                m_latencies.flush();
                m_expected.tell_lost(patience);
            }
        }
        pushing.request_stop();
        pushing.join();
        const auto end = Expected::Clock::now() + patience;
        while (m_expected.any() && Expected::Clock::now() < end) {
            take_one(*consumer);
        }
        m_expected.tell_lost({});
    }

  private:
    [[nodiscard]] bool is_to_end() const {
        constexpr timespec at_once{};
        return ::sigtimedwait(&m_end, nullptr, &at_once) == SIGTERM;
    }

    void take_one(Consumer<Raw>& consumer) {
        if (auto guard = consumer.next(std::chrono::milliseconds(100))) {
            handle(*guard);
        }
    }

    void handle(MessageGuard<Raw>& guard) {
        const std::uint64_t message = number_in(guard->bytes);
        const auto since = m_expected.came(message);
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

    void push(const std::stop_token& stop) {
        const auto producer = connected<Producer<Raw>>(m_work.endpoint(), m_work.queue);
        for (std::uint64_t message = 1; !stop.stop_requested(); ++message) {
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
    sigset_t m_end;
    std::ofstream m_latencies;
    Expected m_expected;
};

} // namespace orizuru::test
