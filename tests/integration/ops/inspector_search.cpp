// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// An Inspector finds jobs by their ids, and queues by their keys.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/detail/ops/queue_of_key.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace inspector_search_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Consumer;
using orizuru::Inspector;
using orizuru::Job;
using orizuru::JobProducer;
using orizuru::Keys;
using orizuru::make_job;
using orizuru::Place;
using orizuru::PlacedMessage;
using orizuru::Raw;
using orizuru::detail::queue_of_key;

struct Fixture : QueueFixture {
    Inspector inspector{uri};
    JobProducer<Raw> jobs{uri, "q"};

    /// Pushes a job and returns its id.
    std::string push_job(const std::string& payload, std::chrono::milliseconds delay = 0ms) {
        Job<Raw> job = make_job(Raw{payload});
        orizuru::Producer<Job<Raw>> producer(uri, "q");
        if (delay > 0ms) {
            push_after(producer, delay, job);
        } else {
            producer.push(job);
        }
        return job.id;
    }
    std::vector<PlacedMessage> find(const std::string& id, std::int64_t most = 100'000) {
        return inspector.find("q", id, most);
    }
};

TEST_CASE_FIXTURE(Fixture, "a job is found by its id in each place, and nowhere else") {
    const std::string dead = push_job("dead");
    const std::string rejected = push_job("rejected");
    const std::string held = push_job("held");
    std::optional<Consumer<Raw>> consumer(std::in_place, uri, "q");
    consumer->next()->bury("bad");
    consumer->next()->reject();
    const auto guard = consumer->next();
    const std::string suspected = push_job("suspected");
    redis.command({"RENAME", "q", "orizuru:{q}:suspects"});
    const std::string scheduled = push_job("scheduled", 1h);
    const std::string waiting = push_job("waiting");
    push({"no job " + dead, dead}); // with the id, but no envelope
    push_job("about " + waiting);
    redis.lpush("orizuru:{q}:dead", "no entry " + waiting);

    const std::vector<std::pair<std::string, Place>> all{
        {dead, Place::dead}, {rejected, Place::rejected},   {suspected, Place::suspected},
        {held, Place::held}, {scheduled, Place::scheduled}, {waiting, Place::waiting}};
    for (const auto& one : all) {
        const std::string& id = one.first;
        const Place place = one.second;
        CAPTURE(id);
        const std::vector<PlacedMessage> found = find(id);
        REQUIRE(found.size() == 1);
        CHECK(found[0].place == place);
        REQUIRE(found[0].job());
        CHECK(found[0].job()->id == id);
        CHECK((place == Place::held) == (found[0].consumer == consumer->name()));
    }
    CHECK(find(dead)[0].reason == "bad");
    CHECK(find(dead)[0].time);
    CHECK(*find(scheduled)[0].time > orizuru::job_time() + 50min);
    CHECK(find(dead.substr(1)).empty());
    CHECK(inspector.remove("q", find(dead)[0]));
    CHECK(inspector.run_now("q", find(scheduled)[0]));
    CHECK(inspector.move("q", find(waiting)[0], "r"));
    CHECK(find(dead).empty());
    CHECK(find(scheduled)[0].place == Place::waiting);
    CHECK(find(waiting).empty());
    CHECK(inspector.find("r", waiting, 10).size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "so many are looked at, those that are served last first") {
    const std::string id = push_job("first");
    push(Texts(5000, "other"));
    CHECK(find(id, 5000).empty());
    CHECK(find(id, 5001).size() == 1);
    CHECK(find(id, INT64_MAX).size() == 1);
    CHECK(find(id, 0).empty());
    CHECK_THROWS_AS(static_cast<void>(find(id, -1)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(find("", 1)), std::invalid_argument);
    const std::string soon = push_job("soon", 1h);
    const std::string late = push_job("late", 2h);
    CHECK(find(late, 1).size() == 1);
    CHECK(find(soon, 1).empty());
    CHECK(find(soon, 2).size() == 1);
    Consumer<Raw> consumer(uri, "q", {.prefetch = 50});
    const auto guard = consumer.next();
    CHECK(find(id, 1).at(0).place == Place::held);
}

TEST_CASE_FIXTURE(Fixture, "each of many jobs is found") {
    Texts ids;
    for (int i = 0; i < 30; ++i) {
        ids.push_back(push_job("a"));
    }
    CHECK(std::ranges::all_of(ids, [&](const std::string& id) { return find(id).size() == 1; }));
    Consumer<Raw> consumer(uri, "q", {.prefetch = 30});
    const auto guard = consumer.next();
    CHECK(std::ranges::all_of(ids, [&](const std::string& id) { return find(id).size() == 1; }));
}

TEST_CASE_FIXTURE(Fixture, "a search ends when it has found 200 messages or 16 MiB") {
    const std::string id = push_job("a");
    push(Texts(249, waiting().at(0)));
    CHECK(find(id).size() == 200);
    redis.command({"RENAME", "q", unack});
    CHECK(find(id).size() == 200);
    redis.command({"RENAME", unack, processing("id")});
    redis.command({"SADD", consumers, "id"});
    redis.command({"RPUSH", processing("id"), "orz:0123456789abcdef:7"});
    CHECK(find(id).size() == 200);
    redis.flushall();
    const std::string large = push_job(std::string(1'000'000, 'x'));
    push(Texts(19, waiting().at(0)));
    CHECK(find(large).size() == 17);
}

TEST_CASE_FIXTURE(Fixture, "the search of what is held asks for each consumer's list once") {
    for (int i = 0; i < 300; ++i) {
        add_dead_consumer("id" + std::to_string(i), {"a", "b", "c"});
    }
    const std::string id = push_job("a");
    redis.command({"LMOVE", "q", processing("id7"), "RIGHT", "LEFT"});
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(find(id).size() == 1);
    CHECK(info("commandstats", "cmdstat_llen:calls") <= 350);
    CHECK(info("commandstats", "cmdstat_type:calls") <= 350);
    CHECK(info("commandstats", "cmdstat_lrange:calls") <= 350);
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(inspector.find("q", id, 901).size() + find("none").size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a job that is held all the time is found once while others change") {
    const std::string id = push_job("a");
    const std::string message = waiting().at(0);
    Texts large;
    for (int i = 0; i < 1500; ++i) {
        large.push_back(std::to_string(i) + std::string(2000, 'x'));
    }
    std::string mine = "zz";
    SUBCASE("other consumers fetch and settle") { add_dead_consumer(mine, {"x"}); }
    SUBCASE("its consumer fetches and settles, and holds more than one step reads") {
        mine = "busy0";
        add_dead_consumer(mine, large);
    }
    redis.command({"LMOVE", "q", processing(mine), "RIGHT", "LEFT"});
    for (int i = 0; i < 20; ++i) {
        const std::string other = "busy" + std::to_string(i);
        if (other != mine) {
            add_dead_consumer(other, Texts(50, "x"));
        }
    }
    std::atomic<int> changes = 0;
    const std::jthread changing([&](const std::stop_token& stop) {
        RedisClient own(uri);
        while (!stop.stop_requested()) {
            for (int i = 0; i < 20 && !stop.stop_requested(); ++i) {
                const std::string list = processing("busy" + std::to_string(i));
                const bool fetches = own.llen(list) < 200;
                own.lpush(list, Texts(40, "new" + std::to_string(++changes)));
                for (int k = 0; k < (fetches ? 1 : 100); ++k) {
                    // Its oldest ones, but not the job.
                    const std::string oldest = own.lrange(list, -2, -2).at(0);
                    if (oldest != message) {
                        own.command({"LREM", list, "-1", oldest});
                    }
                }
            }
        }
    });
    CHECK(eventually([&] { return changes > 40; }));
    std::size_t wrong = 0;
    for (int i = 0; i < 60 || changes <= 50; ++i) { // on a busy machine as well
        wrong += find(id).size() == 1 ? 0U : 1U;
    }
    CHECK(wrong == 0);
}

TEST_CASE_FIXTURE(Fixture, "a user who may only read finds jobs and queues") {
    const std::string id = push_job("a", 1h);
    redis.command({"ACL", "SETUSER", "guest", "reset", "on", ">x", "~*", "+@read", "+eval_ro"});
    Inspector guest("unix://guest:x@" + server().socket_path());
    CHECK(guest.find("q", id, 10).size() == 1);
    CHECK(guest.find_queues() == Texts{"q"});
    redis.command({"ACL", "DELUSER", "guest"});
}

TEST_CASE("each key of a queue tells the queue's name") {
    for (const std::string queue :
         {"q", "a:b", "consumers", "unique:", "{t}", "{t}q", "a:{t}:b", "{t}a:dead", "{a:b}c"}) {
        const Keys keys(queue);
        const std::string id = "worker:host:1:0123456789abcdef";
        for (const std::string& key : {keys.consumers(),      keys.heartbeat(id),
                                       keys.processing(id),   keys.unack(),
                                       keys.dead(),           keys.recoveries(),
                                       keys.collected(),      keys.swept(),
                                       keys.scheduled(),      keys.scheduled_sequence(),
                                       keys.scheduled_wake(), keys.schedulers(),
                                       keys.recurring(),      keys.unique("a:dead"),
                                       keys.paused(),         keys.progress("j"),
                                       keys.result("j"),      keys.once("o"),
                                       keys.fences(),         keys.shards(),
                                       keys.ledger(),         keys.worker(id),
                                       keys.counts(),         keys.counts("20261125"),
                                       keys.suspects(),       keys.suspects_asked(),
                                       keys.group("g")}) {
            CAPTURE(key);
            CHECK(queue_of_key(key) == queue);
        }
    }
    CHECK(queue_of_key(Keys("q").unique("{q}:dead")) == "q");
    // Keys of a later version tell it, too, where the name has no hash tag.
    CHECK(queue_of_key("orizuru:{q}:unheard:of") == "q");
    for (const std::string key : {"q", "orizuru:queues", "orizuru:{", "orizuru:{}:dead",
                                  "orizuru:{q}dead", "orizuru:q:dead", "orizuru:{orizuru:x}:dead",
                                  "orizuru:{t}:{u}{t}q:dead", "xorizuru:{q}:dead"}) {
        CAPTURE(key);
        CHECK_FALSE(queue_of_key(key));
    }
}

TEST_CASE_FIXTURE(Fixture, "queues that no worker has served are found by their keys") {
    CHECK(inspector.find_queues().empty());
    push({"a"});
    redis.lpush("plain", "a"); // nothing but a list
    {
        Consumer<Raw> consumer(uri, "q");
        consumer.next()->reject();
    }
    orizuru::Pause(uri, "{t}paused").pause();
    Texts many{"MSET"};
    for (int i = 0; i < 3000; ++i) {
        many.insert(many.end(), {"orizuru:{r}:result:" + std::to_string(i), "x"});
    }
    redis.command(many);
    // A name that nobody else uses has no key but this one.
    orizuru::JobProducer<Raw>(uri, "misspelt").push({"a"});
    redis.set("no list", "x");
    CHECK(inspector.find_queues() == Texts{"misspelt", "q", "r", "{t}paused"});
    redis.command({"ACL", "SETUSER", "scanner", "reset", "on", ">x", "~orizuru:*", "+scan"});
    CHECK(Inspector("unix://scanner:x@" + server().socket_path()).find_queues() ==
          Texts{"q", "r", "{t}paused"});
    redis.command({"ACL", "DELUSER", "scanner"});
    CHECK(inspector.queues().empty());
    std::stop_source stop;
    stop.request_stop();
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(inspector.find_queues(stop.get_token()).size() <= 4);
    CHECK(info("commandstats", "cmdstat_scan:calls") == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "lists of others are asked a page at a time for their first bytes only") {
    const std::string large(20'000, 'x');
    for (int i = 0; i < 1500; ++i) {
        redis.lpush("other" + std::to_string(i), large);
    }
    for (const std::string queue : {"misspelt", "mine", "secret"}) {
        JobProducer<Raw>(uri, queue).push({large});
    }
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(inspector.find_queues() == Texts{"mine", "misspelt", "secret"});
    CHECK(info("stats", "total_reads_processed") < 100);
    CHECK(info("stats", "total_net_output_bytes") < 2'000'000);
    // A list without right hides no other.
    redis.command({"ACL", "SETUSER", "some", "reset", "on", ">x", "~m*", "+@read", "+eval_ro"});
    redis.command({"ACL", "LOG", "RESET"});
    CHECK(Inspector("unix://some:x@" + server().socket_path()).find_queues() ==
          Texts{"mine", "misspelt"});
    CHECK(redis.command({"ACL", "LOG"}).elements.empty());
    redis.command({"ACL", "DELUSER", "some"});
}

} // namespace inspector_search_test
