// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer, a consumer and a collector whose users do everything that the library can do, as
// often as asked. Each action can be repeated, also after it threw.

#pragma once

#include "crash/support/library_call.hpp"
#include "crash/support/producer_user.hpp"
#include "support/collect_dead.hpp"
#include "support/eventually.hpp"
#include "support/ledger.hpp"

#include <orizuru/jobs/retry.hpp>
#include <orizuru/orizuru.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace orizuru::test {

class ConsumerUser : public ProducerUser {
  public:
    using ProducerUser::ProducerUser;

    static const Script& own_script() {
        static const Script script("redis.call('LPUSH', KEYS[1], payload .. '|' .. ARGV[1])");
        return script;
    }

    void make_consumer() {
        in_library([&] { Consumer<Raw>(uri(), "q"); });
    }
    void take_one() { settle(Place::gone, &Guard::ack); }
    void take_of_batch() {
        m_options.prefetch = 2;
        take_one();
    }
    void reject_one() { settle(Place::waiting, &Guard::reject); }
    void release_one() { settle(Place::waiting, &Guard::release); }
    void push_on() {
        settle(Place::other, [](Guard& guard) { return guard.push("other"); });
    }
    void push_on_replaced() {
        settle(Place::other,
               [](Guard& guard) { return guard.push("other", {guard->bytes + "|replaced"}); });
    }
    void bury_one() {
        settle(Place::dead, [](Guard& guard) { return guard.bury("bad"); });
    }
    void put_off() {
        settle(Place::waiting,
               [](Guard& guard) { return push_after(guard, std::chrono::milliseconds(0)); });
    }
    void settle_by_script() {
        settle(Place::other, [](Guard& guard) {
            return guard.settle(own_script(), {"other"}, {"by a script of one's own"});
        });
    }
    /// The guard's destructor rejects.
    void let_go() {
        take();
        in_library([&] { m_guard.reset(); });
    }
    void ack_later() {
        m_options.ack = AckMode::deferred;
        take();
        accept_ack();
        require(in_library([&] { return consumer().flush(); }) == 0, "an ack came too late");
        for (const std::string& each : m_acked) {
            ledger().settled(each, Place::gone);
        }
        m_acked.clear();
    }
    /// No message is there: the wait in Redis is ended.
    void look_in_vain() {
        take(std::chrono::milliseconds(100)); // so that it waits in Redis on a busy machine, too
        take_one();
    }
    void wait_for_beats() {
        m_options.lease = std::chrono::milliseconds(300);
        take_one();
        const int before = m_beats;
        require(eventually([&] { return m_beats >= before + 3; }, patience), "it beats no more");
    }
    void look_at_source() {
        in_library([&] { static_cast<void>(consumer().size()); });
    }
    /// Ends with messages that were fetched and not handed out.
    void stop_consuming() {
        for (int i = 0; i < 3; ++i) {
            publish();
        }
        m_options.prefetch = 4;
        take_one();
        in_library([&] { m_consumer.reset(); });
    }
    void stop_under_a_guard() {
        publish();
        m_options.prefetch = 4;
        take();
        in_library([&] { m_consumer.reset(); });
        take_one();
    }

  protected:
    void end_consuming() {
        m_guard.reset();
        m_consumer.reset();
    }

  private:
    using Guard = MessageGuard<Raw>;

    Consumer<Raw>& consumer() {
        m_options.on_beat = [this] { ++m_beats; };
        return m_consumer ? *m_consumer : m_consumer.emplace(uri(), "q", m_options);
    }
    void take() {
        if (!holds()) {
            publish();
            take(patience);
            require(holds(), "no message came");
        }
    }
    void take(std::chrono::milliseconds timeout) {
        if (holds()) {
            return;
        }
        m_guard = in_library([&] { return consumer().next(timeout); });
        if (m_guard) {
            handed_out((*m_guard)->bytes);
        }
    }
    [[nodiscard]] bool holds() const { return m_guard && !m_guard->settled(); }
    void accept_ack() {
        const std::string message = (*m_guard)->bytes;
        ledger().settling(message, Place::gone);
        try {
            in_library([&] { return m_guard->ack(); });
            m_acked.push_back(message);
            m_guard.reset();
        } catch (const std::bad_alloc&) {
            if (!m_guard->settled()) {
                ledger().not_settled(message, Place::gone);
            }
            throw;
        }
    }
    template <class How>
    void settle(Place to, How how) {
        take();
        const bool done =
            settling(*m_guard, to, [&](Guard& guard) { return std::invoke(how, guard); });
        m_guard.reset();
        require(done, "the settlement was answered by false");
    }

    std::atomic<int> m_beats{0};
    ConsumerOptions m_options;
    std::optional<Consumer<Raw>> m_consumer;
    std::optional<Guard> m_guard;
    std::vector<std::string> m_acked; ///< deferred, and not flushed yet
};

/// All of them.
class CommandUsers : public ConsumerUser {
  public:
    using ConsumerUser::ConsumerUser;

    void make_collector() {
        in_library([&] { GarbageCollector(uri(), "q"); });
    }
    void collect_once() {
        leave_work();
        in_library([&] { collector().collect(); });
        end_of_collecting(is_done());
    }
    /// Throws the exception of `run`.
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

    /// Ends everything, lets a collector clear up, and returns the violations.
    std::vector<std::string> finish() {
        end_consuming();
        end_producing();
        collect_dead(redis(), uri(), "q"); // consumers that could not even leave
        return ledger().check(redis());
    }

  private:
    GarbageCollector& collector() {
        return m_collector
                   ? *m_collector
                   : m_collector.emplace(
                         uri(), "q", GarbageCollectorOptions{.max_recoveries = 1000, .grace = {}});
    }
    /// A dead consumer that held a message, and a rejected one.
    void leave_work() {
        // No collector has had a turn lately.
        redis().command({"DEL", "orizuru:{q}:collected", "orizuru:{q}:swept"});
        const std::string id = new_message().bytes;
        const std::string list = "orizuru:{q}:processing:" + id;
        redis().command({"SADD", "orizuru:{q}:consumers", id});
        redis().command({"RPUSH", list, "orz:0123456789abcdef:7"});
        publish(list);
        publish("orizuru:{q}:unack");
    }
    /// Only the first pass of a collector sends all commands.
    void end_of_collecting(bool done) {
        require(done, "the collector's work was not done");
        m_collector.reset();
    }
    bool is_done() { return !registered() && !redis().exists("orizuru:{q}:unack"); }

    std::optional<GarbageCollector> m_collector;
};

} // namespace orizuru::test
