// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Hosts whose clocks are wrong: the times of jobs are Redis'.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_log.hpp>

#include <doctest/doctest.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace worker_clocks_test {

using namespace std::chrono_literals;
using orizuru::Job;
using orizuru::JobOptions;
using orizuru::JobProducer;
using orizuru::JobTime;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::Running;
using orizuru::test::server;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

/// How far the host's clock is ahead, for all threads that have no time of their own.
std::atomic<std::int64_t> seconds_ahead{0};
thread_local bool has_own = false;
thread_local std::int64_t own_seconds_ahead = 0;

/// Sets the clock of this thread, as long as it exists.
class OwnClock {
  public:
    explicit OwnClock(std::chrono::seconds ahead) {
        has_own = true;
        own_seconds_ahead = ahead.count();
    }
    OwnClock(const OwnClock&) = delete;
    OwnClock& operator=(const OwnClock&) = delete;
    ~OwnClock() { has_own = false; }

    static void set(std::chrono::seconds ahead) { own_seconds_ahead = ahead.count(); }
};

/// By how much the time since boot is moved on, for all threads.
std::atomic<std::int64_t> boot_seconds_ahead{0};

/// Sets the clock of all threads, as long as it exists.
class HostClock {
  public:
    explicit HostClock(std::chrono::seconds ahead) { seconds_ahead = ahead.count(); }
    HostClock(const HostClock&) = delete;
    HostClock& operator=(const HostClock&) = delete;
    ~HostClock() { seconds_ahead = 0; }
};

} // namespace worker_clocks_test

// std::chrono::system_clock asks it.
extern "C" int clock_gettime(clockid_t id, timespec* time) noexcept {
    using namespace worker_clocks_test;
    const int result = static_cast<int>(::syscall(SYS_clock_gettime, id, time));
    if (id == CLOCK_REALTIME) {
        time->tv_sec += has_own ? own_seconds_ahead : seconds_ahead.load();
    }
    if (id == orizuru::detail::system::lease_clock) {
        time->tv_sec += boot_seconds_ahead.load();
    }
    return result;
}

namespace worker_clocks_test {

struct Fixture : WorkerFixture {
    /// True if the time is Redis' by a few minutes, which a test never takes.
    bool is_now(JobTime time) {
        const auto apart = time.time_since_epoch().count() - server_ms();
        return apart > -300'000 && apart < 300'000;
    }
    Job<Raw> first_of(const std::string& queue = "q") { return job_of(waiting(queue).at(0)); }
    Texts waiting(const std::string& queue) { return oldest_first(queue); }
    std::int64_t times_asked() { return info("commandstats", "cmdstat_time:calls"); }
};

TEST_CASE_FIXTURE(Fixture,
                  "a job does not expire early because its producer's clock is behind, nor "
                  "live on because it is ahead") {
    JobOptions of_push;
    QueueOptions of_queue;
    auto expires = 10min;
    std::chrono::seconds ahead = -1h;
    std::size_t expired = 0;
    SUBCASE("as its push says") { of_push.expires_after = expires; }
    SUBCASE("as its queue says") { of_queue.expires_after = expires; }
    SUBCASE("although the clock is ahead, as its push says") {
        ahead = 1h;
        of_push.expires_after = 1ms;
        expired = 1;
    }
    SUBCASE("although the clock is ahead, as its queue says") {
        ahead = 1h;
        of_queue.expires_after = 1ms;
        expired = 1;
    }
    {
        const OwnClock wrong(ahead);
        JobProducer<Raw>(uri, "q").push({"a"}, of_push);
    }
    CHECK(is_now(first_of().enqueued_at));
    CHECK(is_now(first_of().first_enqueued_at));
    // What a busy Redis said of the time may have been ahead, too.
    const std::int64_t pushed = first_of().enqueued_at.time_since_epoch().count();
    REQUIRE(eventually([&] { return server_ms() > pushed + 5; }));
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down(), of_queue);
    const Running running(worker);
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(eventually(
        [&] { return worker.statistics().expired + worker.statistics().succeeded == 1; }));
    CHECK(worker.statistics().expired == expired);
}

TEST_CASE_FIXTURE(Fixture, "a job does not expire early because its worker's clock is ahead") {
    const OwnClock right(0s);
    const HostClock wrong(1h);
    JobProducer<Raw>(uri, "q").push({"a"}, {.expires_after = 10min});
    Worker worker(uri, options());
    SUBCASE("alone") { worker.handle<Raw>("q", write_down()); }
    SUBCASE("in a batch") {
        worker.handle_batch<Raw>("q", [](const orizuru::JobBatch<Raw>&) {}, {.size = 1});
    }
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(worker.statistics().expired == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "what a worker counts, logs and puts off has Redis' times, however wrong "
                  "its clock is") {
    const OwnClock right(0s);
    const HostClock wrong(1h);
    JobProducer<Raw>(uri, "q").push({"a"});
    orizuru::test::Record<std::string> lines;
    WorkerOptions chosen = options();
    chosen.observers = {
        orizuru::log_jobs([lines](std::string_view line) { lines.add(std::string(line)); })};
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", [](const Raw&) { throw std::runtime_error("busy"); },
                       {.retry = {.backoff = orizuru::backoff::fixed(1h)}});
    const Running running(worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(is_now(put_off().front().enqueued_at - 1h));
    CHECK(is_now(put_off().front().first_failed_at.value()));
    CHECK(worker.queue_statistics().at(0).waits.sum < 5min);
    const std::string line = lines.all().at(0);
    const std::size_t at = line.find("waited=") + 7;
    CHECK(std::stoll(line.substr(at)) < 300'000);
}

TEST_CASE_FIXTURE(Fixture, "a producer whose host's clock is set goes on with Redis' time") {
    const OwnClock wrong(-1h);
    JobProducer<Raw> producer(uri, "q");
    OwnClock::set(0s); // as NTP does
    producer.push({"a"});
    CHECK(is_now(first_of().first_enqueued_at));
    OwnClock::set(24h);
    producer.push({"b"});
    CHECK(is_now(job_of(waiting("q").at(1)).first_enqueued_at));
    producer.push({"c"}, {.delay = 1h});
    CHECK(is_now(put_off().front().first_enqueued_at));
    CHECK(is_now(put_off().front().enqueued_at - 1h));
}

TEST_CASE_FIXTURE(Fixture,
                  "a producer asks for the time once in each of its connections, and a push "
                  "is one command") {
    JobProducer<Raw> producer(uri, "q");
    CHECK(times_asked() > 0);
    redis.command({"CONFIG", "RESETSTAT"});
    producer.push({"a"});
    producer.push_all({Raw{"b"}, Raw{"c"}});
    CHECK(times_asked() == 0);
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    const auto push = [&] {
        try {
            producer.push({"d"});
        } catch (const orizuru::ConnectionError&) {
            return false; // the end of the connection was seen in the middle
        }
        return true;
    };
    CHECK(eventually(push));
    CHECK(eventually(push));
    CHECK(eventually(push));
    CHECK(times_asked() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a producer asks for the time again after a minute") {
    JobProducer<Raw> producer(uri, "q");
    redis.command({"CONFIG", "RESETSTAT"});
    boot_seconds_ahead = 61;
    producer.push({"a"});
    producer.push({"b"});
    CHECK(times_asked() == 1);
    CHECK(is_now(first_of().first_enqueued_at));
    boot_seconds_ahead = 0;
}

TEST_CASE_FIXTURE(Fixture, "a producer that may not ask for the time has its host's") {
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "+lpush"});
    {
        const OwnClock wrong(-1h);
        JobProducer<Raw> producer("unix://clerk:open-sesame@" + server().socket_path(), "q");
        producer.push({"a"});
        producer.push({"b"});
    }
    CHECK(is_now(first_of().first_enqueued_at + 1h));
    CHECK(redis.llen("q") == 2);
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Fixture, "a worker follows the time of a Redis to which it connects anew") {
    std::atomic<int> asked{0}; // other than by scripts
    const orizuru::test::FakeServer counting(
        [&](const Texts& argv) -> std::optional<std::string> {
            asked += argv.at(0) == "TIME" ? 1 : 0;
            return orizuru::test::FakeServer::pass;
        },
        server().socket_path());
    Worker worker(counting.uri(), options());
    worker.handle<Raw>("q", write_down());
    const Running running(worker);
    REQUIRE(so_many_wait(1));
    CHECK(asked == 1);
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    CHECK(eventually([&] { return asked == 2; }));
}

} // namespace worker_clocks_test
