// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer, a consumer and a collector whose users do, as often as asked, what sends each of the
// commands that the library knows, and write down what they were told.

#pragma once

#include "refusing_server.hpp"
#include "support/eventually.hpp"
#include "support/ledger.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/orizuru.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

/// The queue `q` behind a server that may refuse. Each action can be repeated, also after it threw.
class CommandUsers {
  public:
    using RawConsumer = Consumer<Raw>;
    using RawGuard = MessageGuard<Raw>;

    CommandUsers(const RedisServer& real, const RefusingServer& front)
        : m_real(real.uri()), m_socket(front.socket_path()) {
        m_real.flushall();
        m_real.command({"ACL", "SETUSER", "clerk", "on", ">open-sesame", "~*", "&*", "+@all"});
    }

    /// Every connection greets by AUTH, SELECT and CLIENT SETNAME from now on, not by PING.
    void log_in() {
        m_logs_in = true;
        m_real.command({"SELECT", "1"});
    }
    /// An end of a connection leaves open whether a buffered LPUSH has run: it comes again.
    void expect_repeats() { m_repeats = true; }

    // The producer's.

    void make_producer() { Producer<Raw>(uri(), "q"); }
    void push_one() {
        pushing({new_message()}, [&](const auto& messages) { producer().push(messages.front()); });
    }
    void push_some() {
        pushing({new_message(), new_message(), new_message()},
                [&](const auto& messages) { producer().push_all(messages); });
    }
    void look_at_length() { static_cast<void>(producer().size()); }
    /// Finds the connection ended when the length cannot be had.
    void push_anew() {
        try {
            look_at_length();
        } catch (const ConnectionError&) { // NOLINT(bugprone-empty-catch)
            // The next call connects.
        }
        push_one();
    }
    void buffer_and_flush() {
        // A call before may have left its messages in the buffer: they are tried first.
        pushing({new_message(), new_message()}, [&](const auto& messages) {
            for (const Raw& message : messages) {
                buffered().push(message);
            }
        });
        buffered().flush();
    }
    void buffer_and_wait() {
        pushing({new_message(), new_message()}, [&](const auto& messages) {
            for (const Raw& message : messages) {
                buffered().push(message);
            }
        });
        require(eventually([&] { return buffered().unconfirmed() == 0; }, patience),
                "the buffer was never sent");
    }

    // The consumer's.

    void make_consumer() { RawConsumer(uri(), "q"); }
    void take_one() {
        settle(Place::gone, [](RawGuard& guard) { return guard.ack(); });
    }
    void take_of_batch() {
        m_options.prefetch = 2;
        take_one();
    }
    void reject_one() {
        settle(Place::waiting, [](RawGuard& guard) { return guard.reject(); });
    }
    void release_one() {
        settle(Place::waiting, [](RawGuard& guard) { return guard.release(); });
    }
    void push_on() {
        settle(Place::other, [](RawGuard& guard) { return guard.push("other"); });
    }
    void bury_one() {
        settle(Place::dead, [](RawGuard& guard) { return guard.bury("bad"); });
    }
    /// Nothing is there: the waiting in Redis is ended.
    void look_in_vain() {
        require(!consumer().next(std::chrono::milliseconds(10)), "a message out of nowhere");
        take_one();
    }
    void wait_for_beats() {
        m_options.lease = std::chrono::milliseconds(300);
        const int before = (take_one(), m_beats.load());
        require(eventually([&] { return m_beats >= before + 3; }, patience), "it beats no more");
    }
    void look_at_source() { static_cast<void>(consumer().size()); }
    /// Ends with messages that were fetched and not handed out.
    void stop_consuming() {
        for (int i = 0; i < 3; ++i) {
            publish();
        }
        m_options.prefetch = 4;
        take_one();
        m_consumer.reset();
    }
    void stop_under_a_guard() {
        publish();
        m_options.prefetch = 4;
        take();
        m_consumer.reset();
        settle(Place::gone, [](RawGuard& guard) { return guard.ack(); });
    }

    // The collector's.

    void make_collector() { GarbageCollector(uri(), "q"); }
    void collect_once() {
        leave_work();
        collector().collect();
        end_of_collecting(is_done());
    }
    /// What `run` throws is thrown.
    void collect_until_done() {
        leave_work();
        std::exception_ptr failure;
        std::atomic<bool> ended{false};
        std::jthread thread([&](const std::stop_token& stop) {
            try {
                collector().run(stop, std::chrono::milliseconds(5));
            } catch (...) {
                failure = std::current_exception();
            }
            ended = true;
        });
        const bool done = eventually([&] { return ended || is_done(); }, patience);
        thread.request_stop();
        thread.join();
        if (failure) {
            std::rethrow_exception(failure);
        }
        end_of_collecting(done);
    }

    // How it stands.

    bool registered() { return m_real.exists("orizuru:{q}:consumers"); }
    /// Ends everything, has a collector clear up, and says what is wrong then.
    std::vector<std::string> finish() {
        m_guard.reset();
        m_consumer.reset();
        m_producer.reset();
        m_buffered.reset();
        // Whoever could not even leave is dead now.
        for (const std::string& key : m_real.keys("orizuru:{q}:heartbeat:*")) {
            m_real.del(key);
        }
        collector().collect();
        return m_ledger.check(m_real);
    }

  private:
    /// Far beyond the longest pause between two attempts.
    static constexpr std::chrono::seconds patience{20};

    static void require(bool holds, const std::string& otherwise) {
        if (!holds) {
            throw std::runtime_error(otherwise);
        }
    }

    [[nodiscard]] std::string uri() const {
        const std::string server =
            m_logs_in ? "unix://clerk:open-sesame@" + m_socket + "?db=1&client_name=clerk&"
                      : "unix://" + m_socket + "?";
        return server + "command_timeout=6000";
    }

    Producer<Raw>& producer() { return m_producer ? *m_producer : m_producer.emplace(uri(), "q"); }
    Producer<Raw>& buffered() {
        using std::chrono::milliseconds;
        return m_buffered ? *m_buffered
                          : m_buffered.emplace(
                                uri(), "q",
                                ProducerOptions{.buffer = 100, .buffer_time = milliseconds(1)});
    }
    RawConsumer& consumer() {
        m_options.on_beat = [this] { ++m_beats; };
        return m_consumer ? *m_consumer : m_consumer.emplace(uri(), "q", m_options);
    }
    GarbageCollector& collector() {
        using std::chrono::milliseconds;
        return m_collector ? *m_collector
                           : m_collector.emplace(uri(), "q",
                                                 GarbageCollectorOptions{.grace = milliseconds(0)});
    }

    Raw new_message() { return {"message " + std::to_string(++m_messages)}; }
    /// A message by another producer.
    void publish(const std::string& list = "q") {
        const std::string message = new_message().bytes;
        m_ledger.pushing(message);
        m_real.lpush(list, {message});
        m_ledger.pushed(message);
    }
    /// Buffered messages are pushed when they are accepted.
    template <class Action>
    void pushing(const std::vector<Raw>& messages, Action action) {
        for (const Raw& message : messages) {
            m_ledger.pushing(message.bytes);
            if (m_repeats) {
                m_ledger.may_repeat(message.bytes);
            }
        }
        try {
            action(messages);
        } catch (const ConnectionError& error) {
            if (!error.in_doubt()) {
                take_back(messages);
            }
            throw;
        } catch (const ReplyError&) {
            take_back(messages);
            throw;
        }
        for (const Raw& message : messages) {
            m_ledger.pushed(message.bytes);
        }
    }
    void take_back(const std::vector<Raw>& messages) {
        for (const Raw& message : messages) {
            m_ledger.not_pushed(message.bytes);
        }
    }

    void take() {
        if (!m_guard) {
            publish();
            m_guard = consumer().next(patience);
            require(m_guard.has_value(), "no message came");
            m_ledger.handed_out((*m_guard)->bytes);
        }
    }
    template <class How>
    void settle(Place to, How how) {
        take();
        const std::string message = (*m_guard)->bytes;
        m_ledger.settling(message, to);
        bool done = false;
        try {
            done = how(*m_guard);
        } catch (const ReplyError&) {
            m_ledger.not_settled(message, to);
            require(!m_guard->settled(), "a refused guard counts as settled");
            throw;
        }
        done ? m_ledger.settled(message, to) : m_ledger.not_settled(message, to);
        m_guard.reset();
        require(done, "the settlement was answered by false");
    }

    /// A dead consumer that held a message, and a rejected one.
    void leave_work() {
        const std::string id = "dead:host:1:" + std::to_string(++m_messages);
        m_real.command({"SADD", "orizuru:{q}:consumers", id});
        m_real.command({"RPUSH", "orizuru:{q}:processing:" + id, "orz:0123456789abcdef:7"});
        publish("orizuru:{q}:processing:" + id);
        publish("orizuru:{q}:unack");
    }
    /// Only the first pass of a collector sends all commands.
    void end_of_collecting(bool done) {
        require(done, "the collector's work was not done");
        m_collector.reset();
    }
    bool is_done() { return !registered() && !m_real.exists("orizuru:{q}:unack"); }

    RedisClient m_real;
    std::string m_socket;
    bool m_logs_in = false;
    bool m_repeats = false;
    Ledger m_ledger{"q"};
    int m_messages = 0;
    std::atomic<int> m_beats{0};
    std::optional<Producer<Raw>> m_producer;
    std::optional<Producer<Raw>> m_buffered;
    ConsumerOptions m_options;
    std::optional<RawConsumer> m_consumer;
    std::optional<RawGuard> m_guard;
    std::optional<GarbageCollector> m_collector;
};

} // namespace orizuru::test
