// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages that cannot be decoded for a moment for lack of memory: they stay held and come again in
// their order, and only the third failure in a row buries one. Their Codec throws std::bad_alloc.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace memory_for_decoding_test {

/// How often the decoding of each payload will still fail.
class Shortages {
  public:
    void set(const std::string& payload, int times) {
        const std::lock_guard lock(m_mutex);
        m_left[payload] = times;
    }
    void clear() {
        const std::lock_guard lock(m_mutex);
        m_left.clear();
    }
    void meet(std::string_view payload) {
        const std::lock_guard lock(m_mutex);
        const auto found = m_left.find(std::string(payload));
        if (found != m_left.end() && found->second > 0) {
            --found->second;
            throw std::bad_alloc();
        }
    }
    [[nodiscard]] int left(const std::string& payload) {
        const std::lock_guard lock(m_mutex);
        return m_left[payload];
    }

  private:
    std::mutex m_mutex;
    std::map<std::string, int> m_left;
};

inline Shortages shortages;

struct Large {
    std::string bytes;
};
/// A message whose envelope is large, too.
struct Enveloped {
    std::string bytes;
};

} // namespace memory_for_decoding_test

template <>
struct orizuru::Codec<memory_for_decoding_test::Large> {
    static memory_for_decoding_test::Large decode(std::string_view bytes) {
        if (bytes == "too long") {
            throw std::length_error("longer than anything can be");
        }
        memory_for_decoding_test::shortages.meet(bytes);
        return {std::string(bytes)};
    }
};

template <>
struct orizuru::Codec<orizuru::Job<memory_for_decoding_test::Enveloped>> {
    using Enveloped = memory_for_decoding_test::Enveloped;

    static Job<Enveloped> decode(std::string_view bytes, Scratch& scratch) {
        Job<Raw> job = Codec<Job<Raw>>::decode(bytes, scratch);
        memory_for_decoding_test::shortages.meet(job.payload.bytes);
        return {.id = std::move(job.id),
                .attempt = job.attempt,
                .first_enqueued_at = job.first_enqueued_at,
                .enqueued_at = job.enqueued_at,
                .payload = {std::move(job.payload.bytes)}};
    }
};

namespace memory_for_decoding_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::Consumer;
using orizuru::ConsumerOptions;
using orizuru::DecodeError;
using orizuru::EventKind;
using orizuru::GarbageCollector;
using orizuru::Guarantee;
using orizuru::Job;
using orizuru::JobBatch;
using orizuru::next_batch;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::detail::ConsumerAccess;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::is_dead_entry_of;
using orizuru::test::patience;
using orizuru::test::Record;
using orizuru::test::Running;
using orizuru::test::Stopwatch;
using orizuru::test::Texts;
using orizuru::test::time_of;
using orizuru::test::WorkerFixture;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

using LargeConsumer = Consumer<Large>;

// 20 ms are promised, and stopping.cpp measures them; the pause that must not be waited for is 1 s,
// and a loaded machine may take long.
constexpr milliseconds soon = 500ms;

struct MemoryForDecoding : WorkerFixture {
    MemoryForDecoding() { shortages.clear(); }

    void push(const Texts& payloads) { redis.lpush("q", payloads); }
    /// The next call fails for want of memory; returns when.
    static steady_clock::time_point fail_once(LargeConsumer& consumer) {
        CHECK_THROWS_AS(static_cast<void>(consumer.next(patience)), std::bad_alloc);
        return steady_clock::now();
    }
    static orizuru::MessageGuard<Large> take(LargeConsumer& consumer) {
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        return std::move(*guard);
    }
    static std::string take_and_ack(LargeConsumer& consumer) {
        auto guard = take(consumer);
        CHECK(guard.ack());
        return guard->bytes;
    }
    [[nodiscard]] bool nothing_dead() { return redis.llen(dead) == 0; }
};

TEST_CASE_FIXTURE(MemoryForDecoding, "a message that there is no memory for once is delivered by "
                                     "the next call") {
    push({"large", "small"});
    shortages.set("large", 1);
    LargeConsumer consumer(uri, "q");
    const auto failed = fail_once(consumer);
    CHECK(nothing_dead());
    CHECK(held() == Texts{"large"});
    CHECK(ConsumerAccess::core(consumer).in_hand() == 1);
    CHECK(take_and_ack(consumer) == "large");
    CHECK(steady_clock::now() - failed >= 100ms);
    CHECK(take_and_ack(consumer) == "small");
    CHECK(nothing_dead());
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(MemoryForDecoding, "messages keep their order when there is no memory for some "
                                     "of them") {
    ConsumerOptions options{.prefetch = 10};
    SUBCASE("acked one by one") {}
    SUBCASE("acked later") { options.ack = AckMode::deferred; }
    SUBCASE("fetched singly") { options.prefetch = 1; }
    Texts pushed;
    for (int i = 0; i < 25; ++i) {
        pushed.push_back(std::to_string(i));
    }
    push(pushed);
    for (const char* payload : {"0", "3", "9", "10", "24"}) {
        shortages.set(payload, 1);
    }
    LargeConsumer consumer(uri, "q", options);
    Texts came;
    int failures = 0;
    while (came.size() < pushed.size() && failures < 10) {
        try {
            came.push_back(take_and_ack(consumer));
        } catch (const std::bad_alloc&) {
            ++failures;
        }
    }
    CHECK(came == pushed);
    CHECK(failures == 5);
    CHECK(consumer.flush() == 0);
    CHECK(nothing_dead());
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a message that there is no memory for twice comes the second "
                                     "time after 100 ms and the third after a second") {
    push({"large"});
    shortages.set("large", 2);
    LargeConsumer consumer(uri, "q");
    const auto first = fail_once(consumer);
    const auto second = fail_once(consumer);
    CHECK(second - first >= 100ms);
    CHECK(second - first < 900ms);
    CHECK(take_and_ack(consumer) == "large");
    CHECK(steady_clock::now() - second >= 1s);
    CHECK(nothing_dead());
}

TEST_CASE_FIXTURE(MemoryForDecoding, "the third failure in a row buries the message with the "
                                     "reason") {
    push({"large", "small"});
    shortages.set("large", 1000);
    const Diary diary;
    LargeConsumer consumer(uri, "q", {.prefetch = 2, .on_event = diary.pen()});
    fail_once(consumer);
    const auto second = fail_once(consumer);
    CHECK(nothing_dead());
    CHECK(diary.count(EventKind::decode_failed) == 0);
    std::string reason;
    try {
        static_cast<void>(consumer.next(patience));
        FAIL_CHECK("no exception");
    } catch (const DecodeError& error) {
        CHECK(error.payload() == "large");
        reason = error.what();
    }
    CHECK(steady_clock::now() - second >= 1s);
    CHECK(contains(reason, "no memory to decode it, three times in a row: std::bad_alloc"));
    REQUIRE(redis.llen(dead) == 1);
    const std::string entry = redis.lrange(dead).front();
    CHECK(is_dead_entry_of(entry, "large"));
    CHECK(contains(entry, "undecodable: no memory to decode it, three times in a row"));
    CHECK(diary.count(EventKind::decode_failed) == 1);
    CHECK(take_and_ack(consumer) == "small");
    CHECK(shortages.left("large") == 997);
    // The count of a later message begins anew.
    push({"other"});
    shortages.set("other", 1);
    fail_once(consumer);
    CHECK(take_and_ack(consumer) == "other");
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a message that was decoded is counted anew when it comes "
                                     "again") {
    push({"large"});
    LargeConsumer consumer(uri, "q");
    for (int i = 0; i < 2; ++i) {
        shortages.set("large", 2);
        fail_once(consumer);
        fail_once(consumer);
        CHECK(take(consumer).release());
    }
    CHECK(nothing_dead());
    CHECK(take_and_ack(consumer) == "large");
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a stop ends the wait for memory soon, and what was in hand "
                                     "goes back in its order") {
    push({"large", "small"});
    shortages.set("large", 2);
    LargeConsumer consumer(uri, "q", {.prefetch = 2});
    fail_once(consumer);
    fail_once(consumer);
    auto next = std::async(std::launch::async, [&] { return consumer.next().has_value(); });
    CHECK(next.wait_for(50ms) == std::future_status::timeout);
    const Stopwatch since_stop;
    consumer.stop();
    CHECK_FALSE(next.get());
    CHECK(since_stop.elapsed() < soon);
    CHECK(eventually([&] { return waiting() == Texts{"large", "small"}; }));
    CHECK(nothing_dead());
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a stop_token ends the wait for memory soon, and the next "
                                     "call delivers the message") {
    push({"large", "small"});
    shortages.set("large", 2);
    LargeConsumer consumer(uri, "q", {.prefetch = 2});
    fail_once(consumer);
    const auto second = fail_once(consumer);
    std::stop_source source;
    auto next = std::async(std::launch::async,
                           [&] { return consumer.next(source.get_token()).has_value(); });
    CHECK(next.wait_for(50ms) == std::future_status::timeout);
    const Stopwatch since_stop;
    source.request_stop();
    CHECK_FALSE(next.get());
    CHECK(since_stop.elapsed() < soon);
    CHECK_FALSE(consumer.next(source.get_token()));
    CHECK(ConsumerAccess::core(consumer).in_hand() == 2);
    CHECK(take_and_ack(consumer) == "large");
    CHECK(steady_clock::now() - second >= 1s);
    CHECK(take_and_ack(consumer) == "small");
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a timeout shorter than the wait for memory ends in nothing, "
                                     "and the message comes later") {
    push({"large", "small"});
    shortages.set("large", 2);
    LargeConsumer consumer(uri, "q", {.prefetch = 2});
    fail_once(consumer);
    const auto second = fail_once(consumer);
    CHECK(time_of([&] { CHECK_FALSE(consumer.next(0ms)); }) < soon);
    const auto waited = time_of([&] { CHECK_FALSE(consumer.next(100ms)); });
    CHECK(waited >= 99ms);
    CHECK(waited < 500ms);
    CHECK(ConsumerAccess::core(consumer).in_hand() == 2);
    CHECK(take_and_ack(consumer) == "large");
    CHECK(steady_clock::now() - second >= 1s);
    CHECK(take_and_ack(consumer) == "small");
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a loop over a consumer is left by std::bad_alloc, and begun "
                                     "again it goes on with the same message") {
    push({"first", "large", "small"});
    shortages.set("large", 1);
    LargeConsumer consumer(uri, "q");
    Texts came;
    const auto loop = [&] {
        for (auto& guard : consumer) {
            came.push_back(guard->bytes);
            CHECK(guard.ack());
            if (came.back() == "small") {
                consumer.stop();
            }
        }
    };
    CHECK_THROWS_AS(loop(), std::bad_alloc);
    CHECK(came == Texts{"first"});
    loop();
    CHECK(came == Texts{"first", "large", "small"});
    CHECK(nothing_dead());
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a batch ends before a message that there is no memory for, "
                                     "and the next one begins with it") {
    push({"first", "large", "small"});
    shortages.set("large", 1);
    LargeConsumer consumer(uri, "q", {.prefetch = 3});
    auto batch = next_batch(consumer, {.size = 3});
    REQUIRE(batch.size() == 1);
    CHECK(batch[0]->bytes == "first");
    CHECK(batch[0].ack());
    batch = next_batch(consumer, {.size = 2});
    REQUIRE(batch.size() == 2);
    CHECK(batch[0]->bytes == "large");
    CHECK(batch[1]->bytes == "small");
    CHECK(batch[0].ack());
    CHECK(batch[1].ack());
    shortages.set("alone", 1);
    push({"alone"});
    CHECK_THROWS_AS(static_cast<void>(next_batch(consumer, {.size = 3})), std::bad_alloc);
    batch = next_batch(consumer, {.size = 1});
    REQUIRE(batch.size() == 1);
    CHECK(batch[0]->bytes == "alone");
    CHECK(batch[0].ack());
    CHECK(nothing_dead());
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a consumer that ends gives back a message that there was no "
                                     "memory for") {
    push({"large", "small"});
    shortages.set("large", 1);
    {
        LargeConsumer consumer(uri, "q", {.prefetch = 2});
        fail_once(consumer);
    }
    CHECK(waiting() == Texts{"large", "small"});
    CHECK(redis.llen(consumers) == 0);
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a message whose lease is lost in the wait for memory is not "
                                     "handed out by it") {
    push({"large", "small"});
    shortages.set("large", 2);
    LargeConsumer consumer(uri, "q", {.lease = 300ms, .prefetch = 2});
    fail_once(consumer);
    fail_once(consumer);
    // A beat may come in between.
    const std::string id = only_id();
    REQUIRE(eventually([&] {
        redis.del(heartbeat(id));
        return GarbageCollector(uri, "q", {.grace = 0ms}).collect().reclaimed == 2;
    }));
    REQUIRE(waiting() == Texts{"large", "small"});
    LargeConsumer other(uri, "q");
    CHECK(take_and_ack(other) == "large");
    CHECK(take_and_ack(consumer) == "small");
    CHECK_FALSE(consumer.next(0ms));
    CHECK(waiting().empty());
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a message whose burial Redis refuses after the third failure "
                                     "is not lost") {
    push({"large"});
    shortages.set("large", 1000);
    redis.set(dead, "no list");
    LargeConsumer consumer(uri, "q");
    fail_once(consumer);
    fail_once(consumer);
    CHECK_THROWS_AS(static_cast<void>(consumer.next(patience)), ReplyError);
    CHECK(held() == Texts{"large"});
    redis.del(dead);
    SUBCASE("it is buried when that is mended") {
        CHECK_THROWS_AS(static_cast<void>(consumer.next(patience)), DecodeError);
        CHECK(redis.llen(dead) == 1);
    }
    SUBCASE("it is delivered when there is memory") {
        shortages.set("large", 0);
        CHECK(take_and_ack(consumer) == "large");
        CHECK(nothing_dead());
    }
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a length that cannot be is no want of memory: the message is "
                                     "buried at once") {
    SUBCASE("std::length_error of a Codec") {
        push({"too long"});
        LargeConsumer consumer(uri, "q");
        CHECK_THROWS_AS(static_cast<void>(consumer.next(patience)), DecodeError);
    }
    SUBCASE("a size that msgpack announces") {
        push({std::string("\xdd\xff\xff\xff\xff", 5)});
        Consumer<std::vector<int>> consumer(uri, "q");
        CHECK_THROWS_AS(static_cast<void>(consumer.next(patience)), DecodeError);
    }
    CHECK(redis.llen(dead) == 1);
}

// Workers.

TEST_CASE_FIXTURE(MemoryForDecoding, "a worker that has no memory for an envelope takes the job "
                                     "again: it is no attempt") {
    push_jobs({"large", "small"});
    shortages.set("large", 2);
    Worker worker(uri, options());
    Record<int> attempts;
    QueueOptions chosen = much_later();
    SUBCASE("fetching singly") {}
    SUBCASE("fetching ahead") { chosen.prefetch = 2; }
    worker.handle<Enveloped>(
        "q",
        [=, this](const Job<Enveloped>& job) {
            attempts.add(job.attempt);
            handled.add(job.payload.bytes);
        },
        chosen);
    Running running(worker);
    CHECK(has_handled({"large", "small"}));
    running.stop();
    CHECK(attempts.all() == std::vector{1, 1});
    CHECK(diary.count(WorkerEventKind::fetch_failed) == 2);
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(MemoryForDecoding, "an envelope that there is never memory for is buried, and "
                                     "the worker goes on") {
    push_jobs({"large", "small"});
    shortages.set("large", 1000);
    Worker worker(uri, options());
    SUBCASE("one by one") {
        worker.handle<Enveloped>(
            "q", [=, this](const Enveloped& payload) { handled.add(payload.bytes); });
    }
    SUBCASE("in batches") {
        worker.handle_batch<Enveloped>("q",
                                       [=, this](const JobBatch<Enveloped>& jobs) {
                                           for (const auto& job : jobs) {
                                               handled.add(job->payload.bytes);
                                           }
                                       },
                                       {.size = 2, .time = 10ms});
    }
    Running running(worker);
    CHECK(has_handled({"small"}));
    running.stop();
    CHECK(shortages.left("large") == 997);
    CHECK(redis.llen(dead) == 1);
    REQUIRE(diary.count(WorkerEventKind::died) == 1);
    CHECK(contains(diary.of(WorkerEventKind::died).front().detail, "no memory to decode it"));
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a payload that there is no memory for is a failed attempt of "
                                     "its job") {
    QueueOptions chosen = much_later();
    SUBCASE("acked behind the handler") {}
    SUBCASE("acked before it: no handler has begun") { chosen.guarantee = Guarantee::at_most_once; }
    SUBCASE("fetched ahead") { chosen.prefetch = 10; }
    const std::string id = push_jobs({"large"});
    push_jobs({"small"});
    shortages.set("large", 1);
    Worker worker(uri, options());
    worker.handle<Large>(
        "q", [=, this](const Large& payload) { handled.add(payload.bytes); }, chosen);
    Running running(worker);
    CHECK(has_handled({"small"}));
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    const Job<Raw> job = put_off().front();
    CHECK(job.id == id);
    CHECK(job.attempt == 2);
    CHECK(job.payload.bytes == "large");
    CHECK(contains(job.last_error, "no memory to decode the payload: std::bad_alloc"));
    running.stop();
    REQUIRE(diary.count(WorkerEventKind::failed) == 1);
    CHECK(diary.of(WorkerEventKind::failed).front().job_id == id);
    CHECK(diary.of(WorkerEventKind::failed).front().retry_in == 1h);
    CHECK(worker.statistics().failed == 1);
    CHECK(worker.statistics().succeeded == 1);
    CHECK(diary.count(WorkerEventKind::fetch_failed) == 0);
    CHECK(nothing_dead());
    CHECK(held_jobs().empty());
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a payload that there is no memory for does not hold up the "
                                     "batch that the others make") {
    push_jobs({"first", "large", "second"});
    shortages.set("large", 1);
    Worker worker(uri, options());
    worker.handle_batch<Large>(
        "q",
        [=, this](const JobBatch<Large>& jobs) {
            for (const auto& job : jobs) {
                handled.add(job->payload.bytes);
            }
        },
        {.size = 2, .time = 10s}, much_later());
    Running running(worker);
    CHECK(has_handled({"first", "second"}));
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    running.stop();
    CHECK(put_off().front().attempt == 2);
    CHECK(nothing_dead());
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a payload that there is never memory for is tried as often "
                                     "as the policy says, then buried") {
    const std::string id = push_jobs({"large"});
    shortages.set("large", 1000);
    Worker worker(uri, options());
    worker.handle<Large>("q", [](const Large&) {}, {.retry = {.max_attempts = 1}});
    Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::died) == 1; }));
    running.stop();
    CHECK(diary.of(WorkerEventKind::died).front().job_id == id);
    CHECK(redis.llen(dead) == 1);
    CHECK(shortages.left("large") == 999);
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a payload that there is no memory for is tried again, and "
                                     "expires, as its kind says") {
    const auto push_as = [this](const std::string& kind) {
        Job<Raw> job = orizuru::make_job(Raw{"large"});
        job.first_enqueued_at -= 2min;
        job.kind = kind;
        redis.lpush("q", bytes_of(job));
    };
    for (const char* kind : {"days", "hours", "once", "short"}) {
        push_as(kind);
    }
    shortages.set("large", 4);
    const auto none = [](const Large&) {};
    const auto days = orizuru::backoff::fixed(48h);
    Worker worker(uri, options());
    worker.serve("q", {.retry = {.backoff = orizuru::backoff::fixed(1h)}, .expires_after = 24h})
        .handle<Large>("q", "days", none, {.retry = orizuru::RetryPolicy{.backoff = days}})
        .handle<Large>("q", "hours", none)
        .handle<Large>("q", "once", none, {.retry = orizuru::RetryPolicy{.max_attempts = 1}})
        .handle<Large>("q", "short", none, {.expires_after = 1min});
    Running running(worker);
    CHECK(eventually([&] { return diary.count(WorkerEventKind::expired) == 1; }));
    running.stop();
    CHECK(diary.count(WorkerEventKind::died) == 1);
    REQUIRE(put_off().size() == 2);
    CHECK(put_off().front().kind == "hours");
    CHECK(put_off().back().kind == "days");
}

/// A backoff that throws std::bad_alloc this often.
orizuru::Backoff short_of_memory(int times) {
    return [left = std::make_shared<std::atomic<int>>(times)](int, std::uint64_t) {
        if (--*left >= 0) {
            throw std::bad_alloc();
        }
        return std::chrono::milliseconds(3'600'000);
    };
}

TEST_CASE_FIXTURE(MemoryForDecoding,
                  "a retry that there is no memory for is composed later, beside "
                  "the handlers") {
    const std::string id = push_jobs({"large"});
    Worker worker(uri, options());
    Record<std::string> tried;
    bool unread = false;
    SUBCASE("of a job whose handler failed") {}
    SUBCASE("of a job that could not be decoded") { unread = true; }
    shortages.set("large", unread ? 1 : 0);
    worker.handle<Large>("q",
                         [=](const Large& payload) {
                             tried.add(payload.bytes);
                             throw std::runtime_error("no such user");
                         },
                         {.retry = {.backoff = short_of_memory(3)}});
    Running running(worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    running.stop();
    const Job<Raw> job = put_off().front();
    CHECK(job.id == id);
    CHECK(job.attempt == 2);
    CHECK(contains(job.last_error, unread ? "no memory" : "no such user"));
    CHECK(tried.size() == (unread ? 0 : 1));
    REQUIRE(diary.count(WorkerEventKind::unsettled) == 3);
    CHECK(diary.of(WorkerEventKind::unsettled).front().job_id == id);
    CHECK(diary.of(WorkerEventKind::unsettled).front().retry_in);
    CHECK(redis.llen(unack) == 0);
    CHECK(nothing_dead());
    CHECK(worker.statistics().failed == 1);
}

TEST_CASE_FIXTURE(MemoryForDecoding, "a parked retry that there is no memory for goes back when "
                                     "the worker stops") {
    push_jobs({"large"});
    Worker worker(uri, options());
    worker.handle<Large>("q", [](const Large&) { throw std::runtime_error("no such user"); },
                         {.retry = {.backoff = short_of_memory(1'000'000)}});
    Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::unsettled) >= 2; }));
    CHECK(held_jobs() == Texts{"large"});
    running.stop();
    CHECK(jobs() == Texts{"large"});
    CHECK(nothing_dead());
}

} // namespace memory_for_decoding_test
