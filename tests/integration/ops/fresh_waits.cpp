// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The wait of a job begins anew when a person has it served: alerts on waits are about the queue,
// not about the time on the dead list.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fresh_waits_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using namespace orizuru::test;
using orizuru::Codec;
using orizuru::Consumer;
using orizuru::DeadList;
using orizuru::Inspector;
using orizuru::Job;
using orizuru::JobTime;
using orizuru::Place;
using orizuru::PlacedMessage;
using orizuru::Raw;
using orizuru::ScheduledList;

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
bool any(const PlacedMessage& /*message*/) { return true; }

struct Fixture : QueueFixture {
    Inspector inspector{uri};

    JobTime now() { return JobTime(std::chrono::milliseconds(server_ms())); }
    static std::string bytes_of(const Job<Raw>& job) {
        std::string bytes;
        Codec<Job<Raw>>::encode(job, bytes);
        return bytes;
    }
    /// A job with all that an envelope can have.
    Job<Raw> job_of(JobTime enqueued_at) {
        Job<Raw> job = orizuru::make_job(Raw{std::string("\0 a payload \xff", 13)}, 48h);
        job.attempt = 200;
        job.first_enqueued_at = job.enqueued_at = enqueued_at;
        job.first_failed_at = enqueued_at + 1s;
        job.last_error = std::string(300, 'e');
        job.unique_id = "u";
        job.unique_queue = "q";
        job.attributes = {{"tenant", "7"}};
        job.kind = "charge";
        job.max_attempts = 300;
        return job;
    }
    void die(const std::string& payload) {
        push({payload});
        Consumer<Raw> consumer(uri, "q");
        auto guard = consumer.next(5s);
        REQUIRE(guard);
        REQUIRE(guard->bury("bad"));
    }
    void put_off(const std::string& payload, JobTime due) {
        redis.command({"ZADD", "orizuru:{q}:scheduled",
                       std::to_string(due.time_since_epoch().count()), "12345678" + payload});
    }
    PlacedMessage first(Place place) { return inspector.peek("q", place, 0, 1).at(0); }
    /// The only element of a list, which it loses.
    std::string only(const std::string& list) {
        const Texts all = redis.lrange(list);
        REQUIRE(all.size() == 1);
        redis.del(list);
        return all.front();
    }
    /// All ways from a place to a queue, with that queue.
    std::vector<std::pair<std::string, std::function<bool()>>> ways_from(Place place) {
        std::vector<std::pair<std::string, std::function<bool()>>> ways{
            {"q", [=, this] { return inspector.run_now("q", first(place)); }},
            {"q", [=, this] { return inspector.run_if("q", place, any, no_limit) == 1; }},
            {"r", [=, this] { return inspector.move("q", first(place), "r"); }}};
        if (place == Place::dead) {
            ways.emplace_back("q", [this] {
                DeadList list(uri, "q");
                return list.redrive(list.list(0, 1).at(0));
            });
            ways.emplace_back("q",
                              [this] { return DeadList(uri, "q").redrive_all().redriven == 1; });
        }
        if (place == Place::scheduled) {
            ways.emplace_back("q", [this] {
                ScheduledList list(uri, "q");
                return list.run_now(list.list(0, 1).at(0));
            });
        }
        return ways;
    }
};

TEST_CASE_FIXTURE(Fixture, "a job that was dead waits from the time at which it is put back") {
    Job<Raw> job = job_of(now() - 1h);
    for (const auto& [to, step] : ways_from(Place::dead)) {
        die(bytes_of(job));
        const JobTime since = now();
        REQUIRE(step());
        const auto oldest = inspector.state(to).oldest;
        REQUIRE(oldest);
        CHECK(*oldest >= since);
        CHECK(*oldest <= now());
        Job<Raw> same = job;
        same.enqueued_at = *oldest;
        CHECK(only(to) == bytes_of(same)); // and nothing else of it is another one
    }
}

TEST_CASE_FIXTURE(Fixture, "a job that is served before its time waits from then, an overdue one "
                           "from its time") {
    for (const auto& [to, step] : ways_from(Place::scheduled)) {
        const Job<Raw> early = job_of(now() + 1h);
        put_off(bytes_of(early), early.enqueued_at);
        const JobTime since = now();
        REQUIRE(step());
        const auto oldest = inspector.state(to).oldest;
        REQUIRE(oldest);
        CHECK(*oldest >= since);
        CHECK(*oldest <= now());
        Job<Raw> same = early;
        same.enqueued_at = *oldest;
        CHECK(only(to) == bytes_of(same));

        const Job<Raw> late = job_of(now() - 1h);
        put_off(bytes_of(late), late.enqueued_at);
        REQUIRE(step());
        CHECK(only(to) == bytes_of(late));
    }
}

TEST_CASE_FIXTURE(Fixture, "what looks like a job, and is none, comes back byte for byte") {
    const std::string whole = bytes_of(job_of(now() - 1h));
    const std::string time = msgpack_u64(1'700'000'000'000);
    const std::string front = "\x01\xa2id\x01" + time; // version, id, attempt, first_enqueued_at
    const std::string middle = "\xc0\xc0\xa0\xa0\xa0"s;
    Texts payloads{"",
                   "text",
                   "\x9b",
                   "\xdc",
                   "\xdc\x00"s,
                   "\x9b" + front + "\x03" + middle + "\xc4\x01x", // a short time
                   "\x9a" + front + time + middle,                 // a field too few
                   "\x9b" + front + time + middle + "\xa1x",       // its payload is a text
                   "\x9b" + front + time + middle + "\xc4\x02x",   // and ends before its size
                   "\x9b" + front + time + "\xc0\xc0\xa0\xa0\xc0\xc4\x01x"s,
                   "\x9b" + front + "\xcb" + time.substr(1) + middle + "\xc4\x01x",
                   "\xdc\x00\x0a"s + front + time + middle + "\xc4\x01x"};
    // A user's own struct may have the types of an envelope.
    const auto like_a_job = [&](const std::string& beginning, std::uint64_t number) {
        return "\x9b" + beginning + msgpack_u64(number) + middle + "\xc4\x01x";
    };
    for (const std::uint64_t cents : {std::uint64_t{0}, std::uint64_t{12'345},
                                      std::uint64_t{978'000'000'000},   // in the year 2000
                                      std::uint64_t{7'300'000'000'000}, // in the year 2201
                                      std::numeric_limits<std::uint64_t>::max()}) {
        payloads.push_back(like_a_job(front, cents));
        payloads.push_back(like_a_job("\x01\xa2id\x01" + msgpack_u64(cents), 1'700'000'000'000));
    }
    for (const std::string& beginning :
         Texts{"\x01\xa2id\x01\x03", "\x01\xa2id\x01\xff", "\x02\xa2id\x01" + time,
               "\x00\xa2id\x01"s + time, "\x01\xa0\x01" + time, "\x01\xa2id\x00"s + time,
               "\x01\xa2id\xff" + time, "\x01\xa2id\xce\x80\x00\x00\x00"s + time,
               "\x01\xda\x02\x01" + std::string(513, 'i') + "\x01" + time}) {
        payloads.push_back(like_a_job(beginning, 1'700'000'000'000));
    }
    for (std::size_t size = 1; size < whole.size() - 30; ++size) {
        payloads.push_back(whole.substr(0, size));
    }
    DeadList list(uri, "q");
    for (const std::string& payload : payloads) {
        redis.lpush(dead, {"\x94\x02" + msgpack_bin32(payload) + msgpack_bin32("bad") + time});
    }
    CHECK(list.redrive_all() == orizuru::Redriven{payloads.size(), 0});
    CHECK(waiting() == payloads);
    // An array may have its size in two bytes.
    redis.del("q");
    const std::string wide = "\xdc\x00\x0b"s + front + time + middle + "\xc4\x01x";
    redis.lpush(dead, {"\x94\x02" + msgpack_bin32(wide) + msgpack_bin32("bad") + time});
    CHECK(list.redrive_all() == orizuru::Redriven{1, 0});
    CHECK(inspector.state("q").oldest.value() > now() - 1min);
}

TEST_CASE_FIXTURE(Fixture, "without the right to TIME a job comes back as it was") {
    redis.command(
        {"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "+@all", "-time"});
    uri = "unix://clerk:open-sesame@" + server().socket_path();
    inspector = Inspector(uri);
    for (const Place place : {Place::dead, Place::scheduled}) {
        const std::string job = bytes_of(job_of(now() + (place == Place::dead ? -1h : 1h)));
        for (const auto& [to, step] : ways_from(place)) {
            if (place == Place::dead) {
                redis.lpush(dead, "\x94\x02" + msgpack_bin32(job) + msgpack_bin32("bad") +
                                      msgpack_u64(1));
            } else {
                put_off(job, now() + 1h);
            }
            REQUIRE(step());
            CHECK(only(to) == job);
        }
    }
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Fixture, "a worker counts for a job that was redriven only the wait since then") {
    die(bytes_of(job_of(now() - 1h)));
    DeadList(uri, "q").redrive_all();
    orizuru::Worker worker(uri, {.signal_handling = orizuru::SignalHandling::none,
                                 .on_event = [](const orizuru::WorkerEvent&) {}});
    worker.handle<Raw>("q", "charge", [](const Raw&) {});
    {
        const std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });
        REQUIRE(eventually([&] { return worker.statistics().succeeded == 1; }));
    }
    CHECK(worker.queue_statistics().at(0).waits.sum < 5min);
}

} // namespace fresh_waits_test
