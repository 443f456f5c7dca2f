// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// An Inspector sees what is in a queue, and moves single messages, each to exactly one place.

#include "integration/core/queue_fixture.hpp"
#include "support/replication.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/sharded.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace inspector_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Consumer;
using orizuru::ConsumerState;
using orizuru::Inspector;
using orizuru::JobProducer;
using orizuru::JobTime;
using orizuru::Place;
using orizuru::PlacedMessage;
using orizuru::QueueState;
using orizuru::Raw;

struct Fixture : QueueFixture {
    Inspector inspector{uri};
    JobProducer<Raw> jobs{uri, "q"};
    std::string suspects = "orizuru:{q}:suspects";

    Texts payloads(Place place, std::int64_t first = 0, std::int64_t count = 100) {
        Texts found;
        for (const PlacedMessage& message : inspector.peek("q", place, first, count)) {
            CHECK(message.place == place);
            found.push_back(message.payload);
        }
        return found;
    }
    PlacedMessage first(Place place) { return inspector.peek("q", place, 0, 1).at(0); }
    /// A message in each place but the held one: the job, unique if asked for.
    void bury_next() {
        Consumer<Raw> consumer(uri, "q");
        consumer.next()->bury("bad");
    }
    void reject_next() {
        Consumer<Raw> consumer(uri, "q");
        consumer.next()->reject();
    }
    std::string all_keys() {
        std::string all;
        for (const std::string& key : redis.keys()) {
            all += key + redis.command({"DUMP", key}).text;
        }
        return all;
    }
};

TEST_CASE_FIXTURE(Fixture, "the state of a queue has the numbers of all places") {
    const QueueState none = inspector.state("q");
    CHECK(none.waiting + none.held + none.scheduled + none.rejected + none.suspected + none.dead ==
          0);
    CHECK_FALSE(none.oldest);
    CHECK_FALSE(none.next_due);
    REQUIRE(none.now);
    CHECK(std::chrono::abs(*none.now - orizuru::job_time()) < 1min);

    push({"dead", "rejected", "rejected"});
    bury_next();
    reject_next();
    reject_next();
    redis.lpush(suspects, {"suspected", "suspected", "suspected"});
    push({"held", "held", "held"});
    Consumer<Raw> consumer(uri, "q", {.prefetch = 3});
    auto guard = consumer.next();
    const JobTime due = orizuru::job_time() + 1h;
    jobs.push({"scheduled"}, {.at = due + 1h});
    jobs.push({"scheduled"}, {.at = due});
    jobs.push({"oldest"});
    // By Redis' clock, as the producer knows it: this host's may be some ms behind.
    orizuru::Scratch scratch;
    const JobTime oldest =
        orizuru::Codec<orizuru::Job<Raw>>::decode(redis.lrange("q", 0, 0).at(0), scratch)
            .enqueued_at;
    jobs.push({"waiting"});
    orizuru::Pause(uri, "q").pause();

    const QueueState state = inspector.state("q");
    CHECK(state.waiting == 2);
    CHECK(state.held == 3);
    CHECK(state.scheduled == 2);
    CHECK(state.rejected == 2);
    CHECK(state.suspected == 3);
    CHECK(state.dead == 1);
    CHECK(state.consumers == 1);
    CHECK(state.paused);
    CHECK(state.oldest == oldest);
    CHECK(state.next_due == due);
    push({"no job"});
    redis.command({"RPUSH", "q", "no job"});
    CHECK_FALSE(inspector.state("q").oldest);
}

TEST_CASE_FIXTURE(Fixture, "consumers that are unheard for their lease are told from the others") {
    const Consumer<Raw> consumer(uri, "q");
    add_dead_consumer("gone", {"a"});
    const QueueState state = inspector.state("q");
    CHECK(state.consumers == 2);
    CHECK(state.unheard == 1);
    CHECK(state.held == 1);
}

TEST_CASE_FIXTURE(Fixture, "many queues are seen in few steps, but for those that Redis refuses") {
    Texts names;
    for (int i = 0; i < 250; ++i) {
        names.push_back("q" + std::to_string(i));
        redis.command({"RPUSH", names.back(), "a", "b"});
        redis.command({"HSET", "orizuru:{" + names.back() + "}:counts", "died", std::to_string(i)});
    }
    redis.command({"DEL", "q7", "orizuru:{q9}:counts"});
    redis.set("q7", "a text");
    redis.set("orizuru:{q9}:counts", "a text");
    names[150] = "{"; // no queue has such a name
    const auto look = [&](const auto& read) {
        Texts seen;
        Texts refused;
        const std::int64_t before = info("commandstats", "cmdstat_eval_ro:calls");
        for (const auto& one : read([&](const std::string&queue, const std::exception&reason) {
                 refused.push_back(queue);
                 CHECK(std::string(reason.what()) != "");
             })) {
            seen.push_back(one.queue);
        }
        return std::tuple(seen, refused, info("commandstats", "cmdstat_eval_ro:calls") - before);
    };
    const auto without = [&](const std::string& refused) {
        Texts left = names;
        std::erase_if(left,
                      [&](const std::string& name) { return name == refused || name == "{"; });
        return left;
    };
    const auto [seen, refused, steps] =
        look([&](const auto& told) { return inspector.states(names, told); });
    CHECK(seen == without("q7"));
    CHECK(refused == Texts{"q7", "{"});
    CHECK(steps <= 10);
    CHECK(inspector.states(Texts{"q8"}).at(0).waiting == 2);
    const auto [counted, uncounted, reads] =
        look([&](const auto& told) { return inspector.all_counts(names, told); });
    CHECK(counted == without("q9"));
    CHECK(uncounted == Texts{"q9", "{"});
    CHECK(reads <= 110); // of those that are read with a refused one each is read alone
    CHECK(inspector.all_counts(Texts{"q8"}).at(0).outcomes.died == 8);
    CHECK(contains(
        message_of<orizuru::ReplyError>([&] { static_cast<void>(inspector.states(names)); }),
        "q7"));
    CHECK(inspector.states({}).empty());

    redis.command({"ACL", "SETUSER", "guest", "reset", "on", ">x", "~*", "resetkeys", "~q1*",
                   "~orizuru:{q1*", "+@read", "+eval_ro"});
    Inspector guest("unix://guest:x@" + server().socket_path());
    std::size_t denied = 0;
    const auto allowed = guest.states(names, [&](const auto&...) { ++denied; });
    CHECK(denied + allowed.size() == names.size());
    CHECK(allowed.size() == 110); // q1, q10 to q19, q100 to q199, one of which cannot be
    redis.command({"ACL", "DELUSER", "guest"});
}

TEST_CASE_FIXTURE(Fixture, "a step that looks at many queues ends behind many consumers") {
    for (const std::string queue : {"a", "b", "c"}) {
        Texts words{"SADD", "orizuru:{" + queue + "}:consumers"};
        for (int i = 0; i < 1000; ++i) {
            words.push_back(std::to_string(i));
        }
        redis.command(words);
    }
    const std::int64_t before = info("commandstats", "cmdstat_eval_ro:calls");
    const auto states = inspector.states(Texts{"a", "b", "c"});
    REQUIRE(states.size() == 3);
    CHECK(states[2].unheard == 1000);
    CHECK(info("commandstats", "cmdstat_eval_ro:calls") - before == 3);
}

TEST_CASE_FIXTURE(Fixture, "the queues that workers serve are listed, until they are forgotten") {
    CHECK(inspector.queues().empty());
    {
        orizuru::Worker worker(uri, {.signal_handling = orizuru::SignalHandling::none,
                                     .on_event = [](const orizuru::WorkerEvent&) {}});
        worker.handle<Raw>("r", [](const Raw&) {}).handle<Raw>("q", [](const Raw&) {});
        const std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });
        CHECK(eventually([&] { return inspector.queues() == Texts{"q", "r"}; }));
    }
    CHECK(inspector.queues() == Texts{"q", "r"});
    CHECK(inspector.forget("r"));
    CHECK_FALSE(inspector.forget("r"));
    CHECK(inspector.queues() == Texts{"q"});
}

TEST_CASE_FIXTURE(Fixture, "consumers are seen with their lease and what they hold") {
    push({"a", "b", "c"});
    Consumer<Raw> consumer(uri, "q", {.lease = 60s});
    auto guard = consumer.next();
    const auto other = consumer.next();
    redis.command({"SADD", "orizuru:{q}:consumers", "gone"});
    const std::vector<ConsumerState> found = inspector.consumers("q");
    REQUIRE(found.size() == 2);
    CHECK(found[0].id == consumer.name()); // sorted
    CHECK(found[0].held == 2);
    REQUIRE(found[0].lease_left);
    CHECK(*found[0].lease_left <= 60s);
    CHECK(*found[0].lease_left > 50s);
    CHECK(found[1].id == "gone");
    CHECK_FALSE(found[1].lease_left);
    CHECK(found[1].held == 0);
    CHECK(guard->ack());
    const ConsumerState after = inspector.consumers("q").at(0);
    CHECK(after.steps > found[0].steps);
    CHECK(after.held == 1);
}

TEST_CASE_FIXTURE(Fixture, "messages are seen where they are, those that are served next first") {
    push({"a", "b", "c", "d"});
    CHECK(payloads(Place::waiting) == Texts{"a", "b", "c", "d"});
    CHECK(payloads(Place::waiting, 1, 2) == Texts{"b", "c"});
    CHECK(payloads(Place::waiting, 3, INT64_MAX) == Texts{"d"});
    CHECK(payloads(Place::waiting, 4, 1).empty());
    CHECK(payloads(Place::waiting, 0, 0).empty());
    reject_next();
    reject_next();
    CHECK(payloads(Place::rejected) == Texts{"a", "b"});
    redis.lpush(suspects, {"e", "f"});
    CHECK(payloads(Place::suspected) == Texts{"e", "f"});
    CHECK(payloads(Place::suspected, 1, 1) == Texts{"f"});
    bury_next();
    bury_next();
    CHECK(payloads(Place::dead) == Texts{"d", "c"});
    CHECK(first(Place::dead).reason == "bad");
    CHECK(first(Place::dead).time);
    redis.lpush("orizuru:{q}:dead", "no entry");
    CHECK(first(Place::dead).bytes == "no entry");
    CHECK_FALSE(first(Place::dead).time);
    const JobTime due = orizuru::job_time() + 1h;
    jobs.push({"later"}, {.at = due});
    CHECK(first(Place::scheduled).time == due);
    CHECK(first(Place::scheduled).job()->payload.bytes == "later");
    for (const Place place :
         {Place::waiting, Place::held, Place::scheduled, Place::rejected, Place::suspected}) {
        CHECK_THROWS_AS(static_cast<void>(inspector.peek("q", place, -1, 1)),
                        std::invalid_argument);
        CHECK_THROWS_AS(static_cast<void>(inspector.peek("q", place, 0, -1)),
                        std::invalid_argument);
    }
}

TEST_CASE_FIXTURE(Fixture, "held messages are seen with their consumers, page by page") {
    push({"a", "b", "c", "d", "e"});
    Consumer<Raw> two(uri, "q");
    Consumer<Raw> three(uri, "q");
    std::vector<std::optional<orizuru::MessageGuard<Raw>>> guards;
    for (int i = 0; i < 5; ++i) {
        guards.push_back((i < 2 ? two : three).next());
    }
    std::map<std::string, Texts> held;
    Texts by_page;
    for (const PlacedMessage& message : inspector.peek("q", Place::held, 0, 10)) {
        held[message.consumer].push_back(message.payload);
    }
    CHECK(held.size() == 2);
    CHECK(held[two.name()] == Texts{"a", "b"});
    CHECK(held[three.name()] == Texts{"c", "d", "e"});
    for (std::int64_t page = 0; page < 6; ++page) {
        for (const PlacedMessage& message : inspector.peek("q", Place::held, page, 1)) {
            by_page.push_back(message.payload);
        }
    }
    CHECK(by_page == payloads(Place::held));
    CHECK(payloads(Place::held, 1, 3).size() == 3);
    CHECK(payloads(Place::held, 0, INT64_MAX).size() == 5);
    CHECK(payloads(Place::held, INT64_MAX, INT64_MAX).empty());
    CHECK_THROWS_AS(inspector.remove("q", first(Place::held)), std::invalid_argument);
    CHECK_THROWS_AS(inspector.run_now("q", first(Place::held)), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "a message is removed from where it is, once, with its own lock") {
    const std::string lock = "orizuru:{q}:unique:u";
    Place place = Place::waiting;
    orizuru::JobOptions options{.unique = "u"};
    SUBCASE("waiting") {}
    SUBCASE("rejected") { place = Place::rejected; }
    SUBCASE("suspected") { place = Place::suspected; }
    SUBCASE("dead") { place = Place::dead; }
    SUBCASE("scheduled") {
        place = Place::scheduled;
        options.delay = 1h;
    }
    jobs.push({"a"}, options);
    if (place == Place::rejected) {
        reject_next();
    } else if (place == Place::suspected) {
        redis.command({"RENAME", "q", suspects});
    } else if (place == Place::dead) {
        bury_next();
    }
    jobs.push({"other"});
    REQUIRE(redis.exists(lock));
    const PlacedMessage message = first(place);
    CHECK(message.job()->payload.bytes == "a");
    CHECK(inspector.remove("q", message));
    CHECK_FALSE(redis.exists(lock));
    CHECK_FALSE(inspector.remove("q", message));
    CHECK(redis.llen("q") == 1);
}

TEST_CASE_FIXTURE(Fixture, "a message runs now before all that wait, if it waits itself") {
    push({"a", "b", "c"});
    const PlacedMessage c = inspector.peek("q", Place::waiting, 2, 1).at(0);
    CHECK(inspector.run_now("q", c));
    CHECK(payloads(Place::waiting) == Texts{"c", "a", "b"});
}

TEST_CASE_FIXTURE(Fixture, "a suspected message tells how often it was blamed, a job by its id") {
    const std::string recoveries = "orizuru:{q}:recoveries";
    const std::string id = *jobs.push({"a job"});
    redis.command({"RENAME", "q", suspects});
    redis.lpush(suspects, {"\x92\x07\xa3tea", "text", "unknown"}); // msgpack, and no job
    redis.command({"HSET", recoveries, "job " + id, "2", "job tea", "9",
                   "4ae27a14acc0f8e4dbd7eb6b49bd85c5ad6b4785", "4",   // its SHA-1
                   "372ea08cab33e71c02c651dbc83a474d32c676ea", "3"}); // that of "text"
    const auto blamed = [](const std::vector<PlacedMessage>& messages) {
        std::vector<std::uint64_t> found;
        for (const PlacedMessage& message : messages) {
            found.push_back(message.blamed);
        }
        return found;
    };
    using Counts = std::vector<std::uint64_t>;
    CHECK(blamed(inspector.peek("q", Place::suspected, 0, 10)) == Counts{2, 4, 3, 0});
    CHECK(blamed(inspector.peek("q", Place::suspected, 9, 10)).empty());
    CHECK(blamed(inspector.find("q", id, 10)) == Counts{2});
    Counts seen;
    inspector.remove_if(
        "q", Place::suspected,
        [&](const PlacedMessage& message) {
            seen.push_back(message.blamed);
            return false;
        },
        10);
    CHECK(seen == Counts{0, 3, 4, 2});
    push({"text"});
    CHECK(blamed(inspector.peek("q", Place::waiting, 0, 10)) == Counts{0});
    redis.del(recoveries);
    redis.set(recoveries, "x");
    CHECK_THROWS_WITH_AS(static_cast<void>(inspector.peek("q", Place::suspected, 0, 1)),
                         doctest::Contains(recoveries.c_str()), orizuru::ReplyError);
}

TEST_CASE_FIXTURE(Fixture, "what a collector puts apart is seen with the deaths that it counts") {
    const Consumer<Raw> taker(uri, "q"); // asks for nothing
    orizuru::GarbageCollector collector(
        uri, "q", {.grace = 0ms, .on_event = [](const orizuru::Event&) {}, .blamed = 10});
    orizuru::Job<Raw> job = orizuru::make_job(Raw{"a job"});
    std::string first_try;
    orizuru::Codec<orizuru::Job<Raw>>::encode(job, first_try);
    add_dead_consumer("one", {first_try, "text", "once"});
    CHECK(collector.collect().suspects == 3);
    redis.del(suspects);
    ++job.attempt;
    std::string second_try;
    orizuru::Codec<orizuru::Job<Raw>>::encode(job, second_try);
    add_dead_consumer("two", {second_try, "text", "later"});
    CHECK(collector.collect().suspects == 3);
    CHECK(inspector.state("q").suspected == 3);
    std::vector<std::uint64_t> blamed;
    for (const PlacedMessage& message : inspector.peek("q", Place::suspected, 0, 10)) {
        blamed.push_back(message.blamed);
    }
    CHECK(payloads(Place::suspected) == Texts{second_try, "text", "later"});
    CHECK(blamed == std::vector<std::uint64_t>{2, 2, 1});
}

TEST_CASE_FIXTURE(Fixture, "a suspected message runs now before all that wait, and no more apart") {
    push({"a", "b"});
    redis.lpush(suspects, {"c", "d"});
    const PlacedMessage d = inspector.peek("q", Place::suspected, 1, 1).at(0);
    CHECK(inspector.run_now("q", d));
    CHECK(payloads(Place::waiting) == Texts{"d", "a", "b"});
    CHECK(payloads(Place::suspected) == Texts{"c"});
    CHECK_FALSE(inspector.run_now("q", d));
    CHECK(payloads(Place::waiting) == Texts{"d", "a", "b"});
}

TEST_CASE_FIXTURE(Fixture, "a message runs now behind all that wait, if it was elsewhere") {
    push({"a", "b", "c"});
    Place place = Place::waiting;
    SUBCASE("rejected") {
        place = Place::rejected;
        reject_next();
    }
    SUBCASE("dead") {
        place = Place::dead;
        bury_next();
    }
    SUBCASE("scheduled") {
        place = Place::scheduled;
        orizuru::Producer<Raw> producer(uri, "q");
        push_after(producer, 1h, Raw{"a"});
        redis.command({"RPOP", "q"});
    }
    const PlacedMessage message = first(place);
    CHECK(inspector.run_now("q", message));
    CHECK(payloads(Place::waiting) == Texts{"b", "c", "a"});
    CHECK_FALSE(inspector.run_now("q", message));
    CHECK(payloads(Place::waiting) == Texts{"b", "c", "a"});
}

TEST_CASE_FIXTURE(Fixture, "a user who may only read sees all and changes nothing") {
    push({"a", "b"});
    bury_next();
    redis.lpush(suspects, "c");
    jobs.push({"later"}, {.delay = 1h});
    redis.command({"ACL", "SETUSER", "guest", "reset", "on", ">x", "~*", "+@read", "+eval_ro"});
    Inspector guest("unix://guest:x@" + server().socket_path());
    const QueueState state = guest.state("q");
    CHECK(state.waiting == 1);
    CHECK(state.suspected == 1);
    CHECK_FALSE(state.now);
    CHECK(guest.consumers("q").empty());
    const std::string before = all_keys();
    for (const Place place : {Place::waiting, Place::scheduled, Place::suspected, Place::dead}) {
        const PlacedMessage message = guest.peek("q", place, 0, 1).at(0);
        CHECK_THROWS_AS(guest.remove("q", message), orizuru::ReplyError);
        CHECK_THROWS_AS(guest.run_now("q", message), orizuru::ReplyError);
    }
    CHECK(guest.peek("q", Place::held, 0, 1).empty());
    CHECK(all_keys() == before);
    redis.command({"ACL", "DELUSER", "guest"});
}

TEST_CASE_FIXTURE(Fixture, "a retired shard has nothing, and is no error") {
    orizuru::create_shards(uri, "orders", 12);
    orizuru::add_shards(uri, "orders", 4);
    orizuru::use_shards(uri, "orders", 4);
    const Texts retired = orizuru::retire_shards(uri, "orders");
    REQUIRE_FALSE(retired.empty());
    CHECK(inspector.state(retired.front()).waiting == 0);
    redis.set("q", "a text of the user's");
    CHECK_THROWS_AS(static_cast<void>(inspector.state("q")), orizuru::ReplyError);
}

TEST_CASE_FIXTURE(Fixture, "a message is removed, whatever it says of its lock") {
    redis.lpush("orizuru:{q}:unique:u", "a list of somebody's");
    orizuru::Job<Raw> job = orizuru::make_job(Raw{"a"});
    job.unique_id = "u";
    std::string bytes;
    orizuru::Codec<orizuru::Job<Raw>>::encode(job, bytes);
    redis.lpush("q", bytes);
    CHECK(inspector.remove("q", first(Place::waiting)));
    CHECK(redis.llen("q") == 0);
    CHECK(redis.llen("orizuru:{q}:unique:u") == 1);
}

TEST_CASE_FIXTURE(Fixture, "a key of the wrong type and a queue name that cannot be are named") {
    for (const std::string& key : {unack, suspects}) {
        redis.set(key, "x");
        CHECK_THROWS_WITH_AS(static_cast<void>(inspector.state("q")),
                             doctest::Contains(key.c_str()), orizuru::ReplyError);
        redis.del(key);
    }
    CHECK_THROWS_AS(static_cast<void>(inspector.state("{")), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "beside consumers, each message goes one way only") {
    constexpr int count = 4'000;
    std::atomic<int> acked = 0;
    std::atomic<int> removed = 0;
    std::multiset<std::string> seen;
    std::mutex mutex;
    Texts all;
    for (int i = 0; i < count; ++i) {
        all.push_back(std::to_string(i));
    }
    push(all);
    std::stop_source done;
    {
        std::vector<std::jthread> consuming;
        for (int own = 0; own < 2; ++own) {
            consuming.emplace_back([&, own] {
                Consumer<Raw> consumer(uri, "q", {.prefetch = 1 + own * 9});
                while (auto guard = consumer.next(done.get_token())) {
                    const std::string message((*guard)->bytes);
                    if (message.ends_with('7')) {
                        guard->bury("seven");
                        continue;
                    }
                    if (message.ends_with('3')) {
                        guard->reject();
                        continue;
                    }
                    CHECK(guard->ack());
                    ++acked;
                    const std::lock_guard lock(mutex);
                    seen.insert(message);
                }
            });
        }
        const std::jthread inspecting([&] {
            Inspector own(uri);
            std::map<std::string, int> runs;
            while (acked + removed < count) {
                for (const Place place : {Place::waiting, Place::dead, Place::rejected}) {
                    for (const PlacedMessage& message : own.peek("q", place, 0, 20)) {
                        // It is rejected again, perhaps each time before it is seen in the queue.
                        const bool again = place != Place::waiting &&
                                           std::stoi(message.payload) % 20 == 3 &&
                                           ++runs[message.payload] <= 3;
                        if (again) {
                            own.run_now("q", message);
                        } else if (place == Place::waiting && std::stoi(message.payload) % 5 == 0) {
                            own.run_now("q", message);
                        } else if (own.remove("q", message)) {
                            ++removed;
                            const std::lock_guard lock(mutex);
                            seen.insert(message.payload);
                        }
                    }
                }
            }
            done.request_stop();
        });
    }
    CHECK(seen == std::multiset<std::string>(all.begin(), all.end()));
    CHECK(acked > 100);
    CHECK(removed > 100);
    MESSAGE(acked.load() << " acked, " << removed.load() << " removed");
    const QueueState state = inspector.state("q");
    CHECK(state.waiting + state.held + state.rejected + state.dead == 0);
}

} // namespace inspector_test
