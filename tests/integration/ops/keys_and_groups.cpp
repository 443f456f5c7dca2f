// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// An Inspector sees the keys of a queue in order with the jobs behind them, and the groups of jobs
// that have not ended.

#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/ops/metrics.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace keys_and_groups_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::GroupStage;
using orizuru::Inspector;
using orizuru::JobGroup;
using orizuru::KeyedJobProducer;
using orizuru::KeyState;
using orizuru::Place;
using orizuru::QueueGroup;
using orizuru::QueueState;
using orizuru::Raw;
using orizuru::Worker;

struct Views : WorkerFixture {
    Inspector inspector{uri};
    KeyedJobProducer<Raw> producer{uri, "q"};

    void push(const std::string& key, int count) {
        producer.push_all(key, std::vector<Raw>(static_cast<std::size_t>(count), Raw{key}));
    }
    std::string listed_keys(std::int64_t first, std::int64_t count) {
        std::string all;
        for (const KeyState& key : inspector.keys("q", first, count)) {
            all += key.key + ":" + std::to_string(key.behind) + " ";
        }
        return all;
    }
    void commit_of(int members, JobGroup& group) {
        group.push_all("q", std::vector<Raw>(static_cast<std::size_t>(members), Raw{"m"}));
        group.commit();
    }
    QueueState state() { return inspector.state("q"); }
    std::string metrics() {
        const std::vector<QueueState> states{state()};
        return orizuru::prometheus(states);
    }
};

TEST_CASE_FIXTURE(Views, "keys are counted with the jobs behind theirs, and listed by them") {
    CHECK(state().keys == 0);
    CHECK(listed_keys(0, 9).empty());
    push("a", 1);
    push("b", 3);
    push("c", 1001); // two scripts
    push("b", 1);
    CHECK(state().keys == 3);
    CHECK(state().behind == 1003);
    CHECK(state().waiting == 3);
    CHECK(listed_keys(0, 9) == "c:1000 b:3 a:0 ");
    CHECK(listed_keys(1, 1) == "b:3 ");
    CHECK(listed_keys(2, 5) == "a:0 ");
    CHECK(listed_keys(3, 5).empty());
    CHECK(listed_keys(0, 0).empty());
    CHECK_THROWS_AS(listed_keys(-1, 5), std::invalid_argument);
    CHECK(contains(metrics(), "orizuru_queue_messages{queue=\"q\",state=\"behind\"} 1003\n"));
    CHECK(contains(metrics(), "orizuru_queue_keys{queue=\"q\"} 3\n"));
    Worker worker(uri, options(2));
    worker.handle_keyed<Raw>("q", [](const Raw&) {});
    const Running running(worker);
    CHECK(eventually([this] { return state().keys == 0; }));
    CHECK(state().behind == 0);
    CHECK(listed_keys(0, 9).empty());
    CHECK_FALSE(contains(metrics(), "behind"));
}

TEST_CASE_FIXTURE(Views, "a queue without keys and groups has none of their metrics, nor keys") {
    orizuru::JobProducer<Raw>(uri, "q").push(Raw{"x"});
    CHECK(redis.keys("*") == Texts{"q"});
    CHECK_FALSE(contains(metrics(), "behind"));
    CHECK_FALSE(contains(metrics(), "orizuru_queue_keys{"));
    CHECK_FALSE(contains(metrics(), "orizuru_queue_groups{"));
}

TEST_CASE_FIXTURE(Views, "a key has its job that is out with it, wherever that is") {
    CHECK_FALSE(inspector.key("q", "a"));
    producer.push("a", Raw{std::string(5000, 'x')}); // its ticket is behind that
    push("a", 2);
    push("b", 1);
    const auto place = [this] {
        const auto key = inspector.key("q", "a");
        REQUIRE(key);
        CHECK(key->key == "a");
        CHECK(key->behind == 2);
        REQUIRE(key->out.size() == 1);
        CHECK(key->out[0].job()->key == "a");
        CHECK(key->out[0].job()->payload.bytes == std::string(5000, 'x'));
        return key->out[0].place;
    };
    const std::string job = waiting().front();
    CHECK(place() == Place::waiting);
    redis.command({"LREM", "q", "1", job});
    SUBCASE("not found") {
        REQUIRE(inspector.key("q", "a"));
        CHECK(inspector.key("q", "a")->out.empty());
    }
    SUBCASE("beyond what it looks at") {
        redis.command({"RPUSH", "q", job});
        CHECK(inspector.key("q", "a", 1)->out.empty());
        CHECK(place() == Place::waiting);
    }
    SUBCASE("rejected") {
        redis.lpush(unack, job);
        CHECK(place() == Place::rejected);
    }
    SUBCASE("scheduled") {
        redis.command({"ZADD", "orizuru:{q}:scheduled", "9e12", std::string(8, '\0') + job});
        CHECK(place() == Place::scheduled);
    }
    SUBCASE("suspected") {
        redis.lpush("orizuru:{q}:suspects", job);
        CHECK(place() == Place::suspected);
    }
    SUBCASE("held") {
        redis.command({"RPUSH", "q", job});
        const Gate gate;
        Worker worker(uri, options(1));
        worker.handle_keyed<Raw>("q", [gate](const Raw&) { gate.pass(); });
        const Running running(worker);
        REQUIRE(gate.reached());
        CHECK(place() == Place::held);
        gate.open();
        CHECK(eventually([this] { return !inspector.key("q", "a"); }));
    }
}

TEST_CASE_FIXTURE(Views, "groups are counted and listed until they have ended") {
    CHECK(state().groups == 0);
    CHECK(state().members == std::optional<std::uint64_t>(0));
    JobGroup first(uri, "q", {.then = orizuru::GroupThen("q", Raw{"then"}), .expires_after = 1h});
    JobGroup second(uri, "q", {.expires_after = 2h});
    first.push("q", Raw{"m"});
    CHECK(state().groups == 2);
    CHECK(state().members == std::optional<std::uint64_t>(1));
    commit_of(2, second);
    CHECK(state().members == std::optional<std::uint64_t>(3));
    std::vector<QueueGroup> groups = inspector.groups("q", 0, 9);
    REQUIRE(groups.size() == 2);
    CHECK(groups[0].id == first.id());
    CHECK(groups[0].state.stage == GroupStage::open);
    CHECK(groups[0].state.jobs == 1);
    CHECK(groups[0].state.pending == 1);
    CHECK(groups[0].then_queue == "q");
    REQUIRE(groups[0].expires_in);
    CHECK(*groups[0].expires_in <= 1h);
    CHECK(*groups[0].expires_in > 59min);
    REQUIRE(groups[0].made);
    CHECK(*groups[0].made <= state().now);
    CHECK(*groups[0].made > *state().now - 1min);
    CHECK(groups[1].id == second.id());
    CHECK(groups[1].state.stage == GroupStage::waiting);
    CHECK_FALSE(groups[1].expires_in);
    CHECK(inspector.groups("q", 1, 9).at(0).id == second.id());
    CHECK(inspector.groups("q", 0, 0).empty());
    CHECK_THROWS_AS(static_cast<void>(inspector.groups("q", 0, -1)), std::invalid_argument);
    CHECK(contains(metrics(), "orizuru_queue_groups{queue=\"q\"} 2\n"));
    CHECK(contains(metrics(), "orizuru_queue_group_members{queue=\"q\"} 3\n"));
    first.commit();
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", [](const Raw&) {});
    const Running running(worker);
    CHECK(eventually([this] { return state().groups == 0; }));
    CHECK(redis.keys("orizuru:{q}:groups").empty());
    const auto done = inspector.group("q", first.id());
    REQUIRE(done);
    CHECK(done->state.stage == GroupStage::done);
    CHECK(done->expires_in > 59min);
    CHECK(done->then_queue.empty());
    CHECK_FALSE(inspector.group("q", "none"));
}

TEST_CASE_FIXTURE(Views, "a group that expires is not counted, and leaves the list with the next") {
    const auto list = [this] { return redis.command({"ZCARD", "orizuru:{q}:groups"}).integer; };
    const JobGroup left(uri, "q", {.expires_after = 1s});
    JobGroup long_pushed(uri, "q", {.expires_after = 1s});
    CHECK(list() == 2);
    redis.del("orizuru:{q}:group:" + left.id()); // as it expires
    long_pushed.push("q", Raw{"m"});
    CHECK(state().groups == 1);
    CHECK(inspector.groups("q", 0, 9).at(0).id == long_pushed.id());
    CHECK(list() == 2);
    // Time to look at both has come.
    redis.command({"ZADD", "orizuru:{q}:groups", "1", left.id(), "1", long_pushed.id()});
    const JobGroup next(uri, "q");
    CHECK(list() == 2);
    CHECK(state().groups == 2);
    CHECK(std::stod(redis.command({"ZSCORE", "orizuru:{q}:groups", long_pushed.id()}).text) > 1e12);
}

TEST_CASE_FIXTURE(Views, "the members of more than a thousand groups are not counted") {
    const JobGroup one(uri, "q");
    for (int i = 0; i < 1000; ++i) {
        redis.command({"ZADD", "orizuru:{q}:groups", "9e15", std::to_string(i)});
    }
    CHECK(state().groups == 1001);
    CHECK_FALSE(state().members);
    CHECK(contains(metrics(), "orizuru_queue_groups{queue=\"q\"} 1001\n"));
    CHECK_FALSE(contains(metrics(), "orizuru_queue_group_members{"));
    redis.command({"ZREM", "orizuru:{q}:groups", "0"});
    CHECK(state().groups == 1);
    CHECK(state().members == std::optional<std::uint64_t>(0));
}

TEST_CASE_FIXTURE(Views, "the numbers of many queues are read together, whatever they have") {
    push("a", 3);
    KeyedJobProducer<Raw>(uri, "r").push_all("b", std::vector<Raw>(5, Raw{"b"}));
    const JobGroup group(uri, "s");
    const std::vector<std::string> names{"q", "r", "s", "t"};
    const auto states = inspector.states(names);
    REQUIRE(states.size() == 4);
    CHECK(states[0].behind == 2);
    CHECK(states[1].behind == 4);
    CHECK(states[1].groups == 0);
    CHECK(states[2].groups == 1);
    CHECK(states[2].keys == 0);
    CHECK(states[3].keys + states[3].behind + states[3].groups == 0);
}

TEST_CASE_FIXTURE(Views, "what is counted has another type: that is told with the key's name") {
    for (const std::string key : {"orizuru:{q}:keyed", "orizuru:{q}:groups"}) {
        redis.set(key, "a string");
        CHECK(contains(message_of<orizuru::ReplyError>([&] { static_cast<void>(state()); }),
                       "WRONGTYPE " + key));
        redis.del(key);
    }
}

} // namespace keys_and_groups_test
