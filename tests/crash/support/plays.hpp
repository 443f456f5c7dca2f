// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Every operation of the public API as a short play on a Stage. Each handles every error that the
// library may throw, goes on as a user would, and ends when its comment has come true, without a
// new producer, consumer or collector, however often a connection fails. Its clients are gone then.

#pragma once

#include "crash/support/stage.hpp"
#include "crash/support/user.hpp"
#include "support/eventually.hpp"

#include <orizuru/garbage_collector.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace orizuru::test::plays {

/// Three pushes are confirmed.
inline void push(Stage& stage) {
    RawProducer producer = producer_of(stage);
    for (int i = 0; i < 3; ++i) {
        push_confirmed(stage, 1, [&](const auto& batch) { producer.push(Raw{batch.front()}); });
    }
}

inline void push_all_of(Stage& stage, std::size_t count) {
    RawProducer producer = producer_of(stage);
    push_confirmed(stage, count, [&](const auto& batch) {
        std::vector<Raw> messages;
        for (const std::string& message : batch) {
            messages.push_back(Raw{message});
        }
        producer.push_all(messages);
    });
}
/// One push_all confirms five messages.
inline void push_all(Stage& stage) { push_all_of(stage, 5); }
/// More messages than one LPUSH takes: two are in flight.
inline void push_all_long(Stage& stage) { push_all_of(stage, 1001); }

/// Five messages are in Redis when flush() returns, perhaps twice.
inline void push_buffered(Stage& stage) {
    BufferedProducerOptions options;
    options.size = 2;
    options.time = std::chrono::hours(1); // no message depends on the time
    auto producer = buffered_producer_of(stage, options);
    std::vector<std::string> accepted;
    for (int i = 0; i < 5; ++i) {
        const std::string message = accepted.emplace_back(stage.new_message());
        stage.asks([=](Ledger& book) {
            book.pushing(message);
            book.may_repeat(message);
        });
        stage.insist([&] { producer.push(Raw{message}); });
    }
    stage.insist([&] { producer.flush(); });
    for (const std::string& message : accepted) {
        stage.hears([=](Ledger& book) { book.pushed(message); });
    }
}

/// Three pushes whose callers are told later, then three more by the same connection or the next.
inline void push_async(Stage& stage) {
    AsyncProducer<Raw> producer = async_producer_of(stage);
    push_each(stage, producer, 3);
    push_each(stage, producer, 3);
}

/// BLMOVE finds a message each time; both are acked.
inline void fetch(Stage& stage) {
    stage.prepare(2);
    RawConsumer consumer = consumer_of(stage, fetching(1));
    ack_each(stage, consumer, 2);
}

/// BLMOVE waits, and is ended; the message that comes then is acked.
inline void fetch_waiting(Stage& stage) {
    RawConsumer consumer = consumer_of(stage, fetching(1));
    const auto nothing = stage.insist([&] { return consumer.next(std::chrono::milliseconds(20)); });
    stage.prepare(1);
    ack_each(stage, consumer, nothing ? 0 : 1);
}

/// Two batches, the second fetched ahead; all are acked.
inline void fetch_batch(Stage& stage) {
    stage.prepare(4);
    RawConsumer consumer = consumer_of(stage, fetching(2));
    ack_each(stage, consumer, 4);
}

/// Three messages held at once are acked out of their order.
inline void ack_out_of_order(Stage& stage) {
    stage.prepare(3);
    RawConsumer consumer = consumer_of(stage, fetching(3));
    std::size_t again = 0;
    {
        RawGuard first = take(stage, consumer);
        RawGuard second = take(stage, consumer);
        RawGuard third = take(stage, consumer);
        for (RawGuard* guard : {&second, &third, &first}) {
            again += ack(stage, *guard) ? 0 : 1;
        }
    }
    ack_each(stage, consumer, again);
}

/// Four acks are accepted, and flush() says that they stand.
inline void ack_deferred(Stage& stage) {
    stage.prepare(4);
    ConsumerOptions options = fetching(2);
    options.ack = AckMode::deferred;
    RawConsumer consumer = consumer_of(stage, options);
    std::size_t late = 4;
    while (late > 0) {
        std::vector<std::string> acked;
        for (; late > 0; --late) {
            RawGuard guard = take(stage, consumer);
            const std::string message = acked.emplace_back(guard.payload());
            stage.asks([=](Ledger& book) { book.settling(message, Place::gone); });
            guard.ack();
        }
        late = stage.insist([&] { return consumer.flush(); });
        for (const std::string& message : acked) {
            if (late == 0) {
                stage.hears([=](Ledger& book) { book.settled(message, Place::gone); });
            }
        }
    }
}

/// Two messages are settled in this way.
template <class How>
void settle_two(Stage& stage, Place to, How how) {
    stage.prepare(2);
    RawConsumer consumer = consumer_of(stage, fetching(2));
    settle_each(stage, consumer, 2, to, how);
}
inline void reject(Stage& stage) {
    settle_two(stage, Place::waiting, [](RawGuard& guard) { return guard.reject(); });
}
inline void push_on(Stage& stage) {
    settle_two(stage, Place::other, [&](RawGuard& guard) { return guard.push(stage.other()); });
}
inline void push_on_replaced(Stage& stage) {
    settle_two(stage, Place::other, [&](RawGuard& guard) {
        return guard.push(stage.other(), Raw{guard->bytes + "|new"});
    });
}
inline void bury(Stage& stage) {
    settle_two(stage, Place::dead, [](RawGuard& guard) { return guard.bury("why"); });
}

/// Four messages come to callbacks, and are settled side by side, each in its own way.
inline void settle_awaited(Stage& stage) {
    stage.prepare(4);
    AsyncConsumer<Raw> consumer = async_consumer_of(stage, fetching(4));
    std::size_t left = 4;
    while (left > 0) {
        std::vector<RawGuard> guards;
        for (std::size_t i = 0; i < left; ++i) {
            guards.push_back(take(stage, consumer));
        }
        using Core = detail::GuardCore;
        std::deque<AwaitedSettling> all;
        const auto begin = [&](std::size_t i, Place to, auto compose) {
            if (i < guards.size()) {
                all.emplace_back(stage, guards[i], to, compose);
            }
        };
        begin(2, Place::gone, [](Core& guard) { return guard.acking(); });
        begin(3, Place::other, [&](Core& guard) { return guard.pushing(stage.other()); });
        begin(0, Place::dead, [](Core& guard) { return guard.burying("why"); });
        begin(1, Place::gone, [](Core& guard) { return guard.acking(); });
        guards.clear(); // their settlements go on
        for (AwaitedSettling& settling : all) {
            left -= settling.finish() ? 1 : 0;
        }
    }
}

/// A message is released, comes again, and is acked.
inline void release(Stage& stage) {
    stage.prepare(1);
    RawConsumer consumer = consumer_of(stage, fetching(2));
    RawGuard guard = take(stage, consumer);
    settle(stage, guard, Place::waiting, [](RawGuard& held) { return held.release(); });
    ack_each(stage, consumer, 1);
}

/// An undecodable message does not stop those after it.
inline void undecodable(Stage& stage) {
    const std::string poison = stage.new_message() + " is too long";
    stage.asks([=](Ledger& book) { book.pushing(poison); });
    stage.redis.lpush(stage.queue(), poison);
    stage.hears([=](Ledger& book) { book.pushed(poison); });
    stage.prepare(1);
    ConsumerOptions options = fetching(2);
    options.max_payload = 4;
    RawConsumer consumer = consumer_of(stage, options);
    stage.asks([=](Ledger& book) { book.settling(poison, Place::dead); });
    ack_each(stage, consumer, 1);
}

/// A message is held while two beats are confirmed, and acked.
inline void beat(Stage& stage) {
    stage.prepare(1);
    std::atomic<int> beats = 0;
    ConsumerOptions options = fetching(2);
    options.lease = 3 * stage.endpoint().command_timeout(); // a beat has as long as any request
    options.on_beat = [&] { ++beats; };
    RawConsumer consumer = consumer_of(stage, options);
    RawGuard guard = take(stage, consumer);
    const int before = beats;
    while (!eventually([&] { return beats >= before + 2; }, std::chrono::seconds(1))) {
        stage.still_patient("no beat is confirmed");
    }
    if (!ack(stage, guard)) {
        ack_each(stage, consumer, 1);
    }
}

/// A pass that returns has brought back a dead consumer's messages and the rejected ones.
inline void collect(Stage& stage) {
    stage.redis.command({"SADD", stage.key("consumers"), "gone"});
    stage.redis.command({"RPUSH", stage.key("processing:gone"), "orz:0123456789abcdef:7"});
    stage.prepare(2, stage.key("processing:gone"));
    stage.prepare(1, stage.key("unack"));
    GarbageCollectorOptions options;
    options.grace = {};
    GarbageCollector collector =
        stage.insist([&] { return GarbageCollector(stage.endpoint(), stage.queue(), options); });
    stage.insist([&] { return collector.collect(); });
    if (stage.redis.llen(stage.queue()) != 3) {
        throw std::runtime_error("collect() has returned, and not all is back");
    }
}

/// The reply to a fetch is lost: ADOPT finds the fetched message, which is acked.
inline void adopt(Stage& stage) {
    stage.prepare(3);
    RawConsumer consumer = consumer_of(stage, fetching(2));
    stage.lose_next_reply();
    ack_each(stage, consumer, 3);
}

/// All connections end while nothing is under way; both messages are acked.
inline void reconnect(Stage& stage) {
    stage.prepare(2);
    RawConsumer consumer = consumer_of(stage, fetching(2));
    RawGuard guard = take(stage, consumer);
    stage.lose_connections();
    const bool again = !ack(stage, guard);
    ack_each(stage, consumer, again ? 2 : 1);
}

/// A collector has declared the consumer dead: the consumer reports that, comes back by itself, and
/// acks.
inline void taken_for_dead(Stage& stage) {
    stage.prepare(1);
    RawConsumer consumer = consumer_of(stage, fetching(2));
    RawGuard guard = take(stage, consumer);
    for (const std::string& heartbeat : stage.redis.keys(stage.key("heartbeat:*"))) {
        stage.redis.del(heartbeat);
    }
    GarbageCollectorOptions options;
    options.grace = {};
    stage.insist(
        [&] { return GarbageCollector(stage.server_uri(), stage.queue(), options).collect(); });
    if (!ack(stage, guard)) {
        ack_each(stage, consumer, 1);
    }
}

/// Messages that were not handed out are requeued; those that were are acked after the consumer's
/// end.
inline void stop(Stage& stage) {
    stage.prepare(3);
    std::optional<RawGuard> guard;
    {
        RawConsumer consumer = consumer_of(stage, fetching(3));
        guard.emplace(take(stage, consumer));
        consumer.stop();
        static_cast<void>(stage.insist([&] { return consumer.next(); }));
    }
    ack(stage, *guard);
}

} // namespace orizuru::test::plays
