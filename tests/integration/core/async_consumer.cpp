// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages whose takers are told later: who gets which, and what becomes of the rest.

#include "integration/core/queue_fixture.hpp"
#include "support/child.hpp"
#include "support/collect_dead.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <orizuru/async/async_consumer.hpp>
#include <orizuru/detail/async/awaited_message.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace async_consumer_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::AsyncConsumer;
using orizuru::ConsumerOptions;
using orizuru::DecodeError;
using orizuru::EventKind;
using orizuru::MessageGuard;
using orizuru::Raw;
using orizuru::test::as_expected;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::not_as_expected;
using orizuru::test::QueueFixture;
using orizuru::test::RedisServer;
using orizuru::test::status_of_child;
using orizuru::test::Texts;

using Guard = MessageGuard<Raw>;

/// The guards that were told, in their order, and the other ends.
class Told {
  public:
    [[nodiscard]] auto pen() {
        return [this](std::optional<Guard> guard, const std::exception_ptr& error) {
            const std::lock_guard lock(m_mutex);
            if (guard) {
                m_messages.push_back((*guard)->bytes);
                m_guards.push_back(std::move(*guard));
            } else if (error == nullptr) {
                ++m_ended;
            } else {
                try {
                    std::rethrow_exception(error);
                } catch (const DecodeError& undecodable) {
                    m_undecodable.emplace_back(undecodable.payload());
                }
            }
        };
    }
    [[nodiscard]] Texts messages() const {
        const std::lock_guard lock(m_mutex);
        return m_messages;
    }
    [[nodiscard]] Texts undecodable() const {
        const std::lock_guard lock(m_mutex);
        return m_undecodable;
    }
    [[nodiscard]] int ended() const {
        const std::lock_guard lock(m_mutex);
        return m_ended;
    }
    [[nodiscard]] std::vector<Guard> take() {
        const std::lock_guard lock(m_mutex);
        return std::move(m_guards);
    }

  private:
    mutable std::mutex m_mutex;
    Texts m_messages;
    Texts m_undecodable;
    std::vector<Guard> m_guards;
    int m_ended = 0;
};

struct Fixture : QueueFixture {
    Diary diary;
    Told told;

    [[nodiscard]] ConsumerOptions options(int prefetch = 1) const {
        ConsumerOptions chosen;
        chosen.prefetch = prefetch;
        chosen.on_event = diary.pen();
        return chosen;
    }
};

TEST_CASE_FIXTURE(Fixture, "those who asked first are told first, whether the messages were there "
                           "or come later") {
    AsyncConsumer<Raw> consumer(uri, "q", options(3));
    push({"a", "b"});
    for (int i = 0; i < 5; ++i) {
        consumer.next(told.pen());
    }
    CHECK(eventually([&] { return told.messages() == Texts{"a", "b"}; }));
    push({"c", "d", "e", "f"});
    CHECK(eventually([&] { return told.messages() == Texts{"a", "b", "c", "d", "e"}; }));
    for (Guard& guard : told.take()) {
        CHECK(guard.ack());
    }
    CHECK(told.ended() == 0);
}

TEST_CASE_FIXTURE(Fixture, "one who is told may ask for the next message") {
    push({"a", "b", "c"});
    std::promise<void> all;
    Texts messages;
    AsyncConsumer<Raw> consumer(uri, "q", options(2));
    std::function<void(std::optional<Guard>, std::exception_ptr)> take =
        [&](std::optional<Guard> guard, const std::exception_ptr&) {
            if (!guard) {
                return;
            }
            messages.push_back((*guard)->bytes);
            guard->ack();
            messages.size() < 3 ? consumer.next(take) : all.set_value();
        };
    consumer.next(take);
    REQUIRE(all.get_future().wait_for(20s) == std::future_status::ready);
    CHECK(messages == Texts{"a", "b", "c"});
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Fixture,
                  "a message that cannot be decoded ends one wait with that, and no other") {
    ConsumerOptions strict = options(4);
    strict.max_payload = 3;
    AsyncConsumer<Raw> consumer(uri, "q", strict);
    for (int i = 0; i < 3; ++i) {
        consumer.next(told.pen());
    }
    push({"a", "too long", "b"});
    CHECK(eventually([&] { return told.messages() == Texts{"a", "b"}; }));
    CHECK(told.undecodable() == Texts{"too long"});
    CHECK(redis.llen(dead) == 1);
    CHECK(diary.count(EventKind::decode_failed) == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "a stop and the end tell those who wait that there is no more, and requeue "
                  "what was fetched in the queue's order") {
    Texts all;
    for (int i = 0; i < 20; ++i) {
        all.push_back(std::to_string(i));
    }
    push(all);
    std::optional<AsyncConsumer<Raw>> consumer(std::in_place, uri, "q", options(10));
    consumer->next(told.pen());
    CHECK(eventually([&] { return told.messages().size() == 1; }));
    SUBCASE("a stop") {
        consumer->stop();
        CHECK(eventually([&] { return waiting().size() == 19; }));
        consumer->next(told.pen());
        CHECK(eventually([&] { return told.ended() == 1; }));
    }
    SUBCASE("the end") { consumer.reset(); }
    all.erase(all.begin());
    CHECK(waiting() == all);
    for (Guard& guard : told.take()) {
        CHECK(guard.held());
        CHECK(guard.ack());
    }
    consumer.reset();
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fixture, "the end tells all who wait for a message that does not come") {
    std::optional<AsyncConsumer<Raw>> consumer(std::in_place, uri, "q", options());
    for (int i = 0; i < 100; ++i) {
        consumer->next(told.pen());
    }
    REQUIRE(somebody_waits());
    consumer.reset();
    CHECK(told.ended() == 100);
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fixture,
                  "one who is told of the end may ask again, for a message or a flush, and "
                  "is told again") {
    std::optional<AsyncConsumer<Raw>> consumer(std::in_place, uri, "q", options());
    std::atomic<int> ended = 0;
    std::atomic<int> flushed = 0;
    std::function<void(std::optional<Guard>, std::exception_ptr)> ask =
        [&](const std::optional<Guard>&, const std::exception_ptr&) {
            if (++ended < 5) {
                consumer->next(ask);
                consumer->flush([&](std::size_t, const std::exception_ptr&) { ++flushed; });
            }
        };
    consumer->next(ask);
    REQUIRE(somebody_waits());
    SUBCASE("a stop before") { consumer->stop(); }
    SUBCASE("the end alone") {}
    consumer.reset();
    CHECK(ended == 5);
    CHECK(flushed == 4);
}

TEST_CASE_FIXTURE(Fixture,
                  "a message that came for nobody and was lost meanwhile is not handed out") {
    AsyncConsumer<Raw> consumer(uri, "q", options());
    struct Gone final : orizuru::detail::MessageWaiter {
        explicit Gone(std::atomic<bool>& flag) : asked(flag) {}
        [[nodiscard]] bool listens() const noexcept override { return true; } // when it is asked
        void take(orizuru::detail::MessageSlot&) noexcept override { asked = true; }
        void end(std::exception_ptr) noexcept override {}
        std::atomic<bool>& asked;
    };
    std::atomic<bool> came = false;
    orizuru::detail::AsyncConsumerAccess::core(consumer).next(std::make_unique<Gone>(came));
    push({"a"});
    REQUIRE(eventually([&] { return came.load(); }));
    orizuru::test::collect_dead(redis, uri, "q");
    CHECK(eventually([&] { return diary.count(EventKind::lease_lost) == 1; }));
    consumer.next(told.pen());
    CHECK(eventually([&] { return told.messages() == Texts{"a"}; }));
    for (Guard& guard : told.take()) {
        CHECK(guard.held());
        CHECK(guard.ack());
    }
}

TEST_CASE_FIXTURE(Fixture, "a flush is told once the acks stand, and the waits go on") {
    push({"a", "b"});
    ConsumerOptions deferred = options(2);
    deferred.ack = AckMode::deferred;
    AsyncConsumer<Raw> consumer(uri, "q", deferred);
    for (int i = 0; i < 3; ++i) {
        consumer.next(told.pen());
    }
    CHECK(eventually([&] { return told.messages().size() == 2; }));
    REQUIRE(somebody_waits());
    for (Guard& guard : told.take()) {
        CHECK(guard.ack());
    }
    std::promise<std::size_t> late;
    consumer.flush([&](std::size_t count, const std::exception_ptr& error) {
        late.set_value(error == nullptr ? count : 99);
    });
    std::future<std::size_t> flushed = late.get_future();
    REQUIRE(flushed.wait_for(20s) == std::future_status::ready);
    CHECK(flushed.get() == 0);
    CHECK(held().empty());
    push({"c"});
    CHECK(eventually([&] { return told.messages() == Texts{"a", "b", "c"}; }));
}

TEST_CASE_FIXTURE(Fixture, "a forked child is refused, and its end disturbs nobody") {
    push({"a"});
    auto consumer = std::make_unique<AsyncConsumer<Raw>>(uri, "q", options());
    CHECK(status_of_child([&] {
              try {
                  consumer->next([](std::optional<Guard>, const std::exception_ptr&) {});
                  return not_as_expected;
              } catch (const std::logic_error&) {
                  consumer.reset();
                  return as_expected;
              }
          }) == as_expected);
    consumer->next(told.pen());
    CHECK(eventually([&] { return told.messages() == Texts{"a"}; }));
    CHECK(told.take().at(0).ack());
}

TEST_CASE_FIXTURE(Fixture, "a consumer that was moved from says so") {
    AsyncConsumer<Raw> consumer(uri, "q", options());
    AsyncConsumer<Raw> other = std::move(consumer);
    CHECK_THROWS_AS(consumer.next(told.pen()), std::logic_error);
    push({"a"});
    other.next(told.pen());
    CHECK(eventually([&] { return told.messages() == Texts{"a"}; }));
}

} // namespace async_consumer_test
