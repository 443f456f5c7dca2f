// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What else takes a member of a group away, path by path: its end counts in that step, once.

#include "integration/worker/placed_jobs.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/jobs/group/member_removal.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace group_ends_test {

using namespace std::chrono_literals;
using orizuru::Consumer;
using orizuru::DeadList;
using orizuru::GarbageCollector;
using orizuru::GroupStage;
using orizuru::GroupThen;
using orizuru::Inspector;
using orizuru::Job;
using orizuru::JobGroup;
using orizuru::OnDead;
using orizuru::Place;
using orizuru::Raw;
using orizuru::ScheduledList;
using orizuru::Worker;
using orizuru::test::eventually;
using orizuru::test::patience;
using orizuru::test::PlacedJobs;
using orizuru::test::places;
using orizuru::test::Running;
using orizuru::test::Texts;

/// A committed group with the members `a` and `b`: `a` is in the queue, or where a test puts it,
/// and `b` is kept by the test.
struct Ends : PlacedJobs {
    Ends() { begin(); }

    void begin(OnDead on_dead = OnDead::wait) {
        redis.flushall();
        group.emplace(
            uri, "q",
            orizuru::JobGroupOptions{.then = GroupThen("q", Raw{"then"}), .on_dead = on_dead});
        // Attributes of all lengths, which the scripts pass over.
        group->push("q", Raw{std::string(300, 'a')},
                    {.attributes = {{"short", "1"}, {"long", std::string(300, 'x')}}, .kind = "k"});
        group->push("q", Raw{"b"});
        group->commit();
        member = waiting().front();
        other = waiting().back();
        redis.del("q");
        redis.lpush("q", member);
    }

    std::optional<JobGroup> group;
    std::string member;
    std::string other;

    std::uint64_t pending() { return group->state().pending; }
    std::uint64_t failed() { return group->state().failed; }
    /// One member has ended, and with the other the next job comes.
    void check_one_has_ended(std::uint64_t count_failed = 0) {
        CHECK(pending() == 1);
        CHECK(failed() == count_failed);
        redis.del("q");
        redis.lpush("q", other);
        Consumer<Job<Raw>> consumer(uri, "q");
        auto last = consumer.next(patience);
        REQUIRE(last);
        CHECK(orizuru::ack_unique(*last));
        CHECK(jobs() == Texts{"then"});
    }
    void place(Place where) { PlacedJobs::place(member, where); }
};

TEST_CASE_FIXTURE(Ends, "wherever a person removes a member, it has ended") {
    for (const Place where : places) {
        CAPTURE(static_cast<int>(where));
        begin();
        place(where);
        remove_only(where);
        check_one_has_ended();
    }
}

TEST_CASE_FIXTURE(Ends,
                  "one that is removed from the dead list, one by one or with all, has ended") {
    place(Place::dead);
    DeadList list(uri, "q");
    SUBCASE("one by one") { CHECK(list.remove(list.list(0, 1)[0])); }
    SUBCASE("with all") { CHECK(list.purge() == 1); }
    SUBCASE("by its age") { CHECK(list.purge(1ms) == 1); }
    SUBCASE("by its number") {
        redis.lpush(dead, "no entry");
        CHECK(list.trim({.most = 1}) == 1);
    }
    check_one_has_ended();
}

TEST_CASE_FIXTURE(Ends, "of many that are purged in one step, each counts, and the last one brings "
                        "the next job") {
    redis.del("q");
    for (const std::string& one : {member, member, other, other}) { // copies are one member
        redis.lpush(dead, dead_entry(one));
    }
    DeadList list(uri, "q");
    SUBCASE("all together") { CHECK(list.purge() == 4); }
    SUBCASE("the copies of one first") {
        CHECK(list.trim({.most = 2, .oldest = 0ms}) == 2);
        CHECK(pending() == 1);
        CHECK(jobs().empty());
        CHECK(list.purge() == 2);
    }
    CHECK(jobs() == Texts{"then"});
    CHECK(group->state().stage == GroupStage::done);
}

TEST_CASE_FIXTURE(Ends, "one that is cancelled before its time has ended") {
    place(Place::scheduled);
    ScheduledList list(uri, "q");
    CHECK(list.cancel(list.list(0, 1)[0]));
    check_one_has_ended();
}

TEST_CASE_FIXTURE(Ends, "one that a bounded push drops has ended") {
    orizuru::Producer<Job<Raw>> producer(uri, "q");
    const auto pushed =
        orizuru::push_bounded(producer, orizuru::make_job(Raw{"x"}),
                              {.max_length = 1, .overflow = orizuru::Overflow::drop_oldest});
    CHECK(pushed.dropped == 1);
    check_one_has_ended();
}

TEST_CASE_FIXTURE(Ends, "one that is moved, run now or redriven stays a member") {
    for (const Place where : places) {
        CAPTURE(static_cast<int>(where));
        begin();
        place(where);
        std::string to = "q";
        SUBCASE("moved") {
            to = "elsewhere";
            CHECK(inspector.move("q", only(where), to));
        }
        SUBCASE("run now") { CHECK(inspector.run_now("q", only(where))); }
        CHECK(pending() == 2);
        Consumer<Job<Raw>> consumer(uri, to);
        auto moved = consumer.next(patience);
        REQUIRE(moved);
        CHECK(orizuru::ack_unique(*moved));
        check_one_has_ended();
    }
}

/// Takes the one message and dies with it; a collector buries it.
void hold_and_die(Ends& ends) {
    orizuru::test::Child child([&] {
        Consumer<Job<Raw>> consumer(ends.uri, "q", {.lease = 500ms});
        const auto held = consumer.next(patience);
        ::kill(::getpid(), SIGKILL);
        return held ? 0 : 1;
    });
    CHECK(child.status() == -1);
    for (const std::string& heartbeat : ends.redis.keys("orizuru:{q}:heartbeat:*")) {
        ends.redis.del(heartbeat);
    }
    GarbageCollector collector(ends.uri, "q", {.max_recoveries = 0, .grace = 0ms});
    CHECK(eventually([&] { return collector.collect().buried == 1; }));
}

TEST_CASE_FIXTURE(Ends, "one that is cancelled is dead, and counts where the dead count") {
    for (const OnDead on_dead : {OnDead::wait, OnDead::count}) {
        begin(on_dead);
        CHECK(inspector.cancel("q", job_of(member).id, "astray", 100) ==
              orizuru::CancelResult::buried);
        CHECK(pending() == (on_dead == OnDead::count ? 1 : 2));
        CHECK(failed() == (on_dead == OnDead::count ? 1 : 0));
        CHECK(DeadList(uri, "q").purge() == 1);
        check_one_has_ended(on_dead == OnDead::count ? 1 : 0);
    }
}

TEST_CASE_FIXTURE(Ends, "what kills its consumers is buried, and counts where the dead count") {
    OnDead on_dead = OnDead::wait;
    SUBCASE("the group waits") {}
    SUBCASE("the dead count") { on_dead = OnDead::count; }
    begin(on_dead);
    hold_and_die(*this);
    CHECK(pending() == (on_dead == OnDead::count ? 1 : 2));
    CHECK(failed() == (on_dead == OnDead::count ? 1 : 0));
    DeadList list(uri, "q");
    CHECK(list.purge() == 1);
    check_one_has_ended(on_dead == OnDead::count ? 1 : 0);
}

TEST_CASE_FIXTURE(Ends, "numbers of a group that are none are told, and hold up no collector") {
    begin(OnDead::count);
    const std::string key = redis.keys("orizuru:{q}:group:*").at(0);
    std::string field = "left";
    SUBCASE("of those left") {}
    SUBCASE("of the failed") { field = "failed"; }
    redis.command({"HSET", key, field, "many"});
    const std::string why = orizuru::test::message_of<orizuru::ReplyError>(
        [&] { inspector.remove("q", only(Place::waiting)); });
    CHECK(why.find(key + " has no number") != std::string::npos);
    CHECK(redis.llen("q") == 1);
    hold_and_die(*this);
    CHECK(redis.llen(dead) == 1);
    CHECK(held_jobs().empty());
}

TEST_CASE_FIXTURE(Ends, "what no worker can read is buried, and counts where the dead count") {
    begin(OnDead::count);
    Worker worker(uri, options());
    worker.handle<int>("q", [](int) {}); // its payload is no msgpack integer
    worker.handle<int>("q", "k", [](int) {});
    const Running running(worker);
    CHECK(eventually([this] { return redis.llen(dead) == 1; }));
    CHECK(pending() == 1);
    CHECK(failed() == 1);
}

TEST_CASE_FIXTURE(Ends, "a job that only contains a member's bytes is none") {
    redis.del("q");
    Job<Raw> job = orizuru::make_job(Raw{member});
    redis.lpush("q", bytes_of(job));
    job.id = job_of(member).id; // not even with its id
    redis.lpush("q", bytes_of(job));
    redis.lpush("q", "orz-group:" + group->id() + ":q");
    redis.lpush("q", member.substr(0, member.size() - 1)); // broken
    CHECK(inspector.clear("q", Place::waiting) == 4);
    CHECK(pending() == 2);
}

TEST_CASE_FIXTURE(Ends, "what was cut or changed at any byte is no member, and is removed") {
    redis.del("q");
    for (std::size_t size = 0; size < member.size(); size += 1 + size / 50) {
        redis.lpush("q", member.substr(0, size) + "orz-group:");
    }
    const auto count = static_cast<std::uint64_t>(redis.llen("q"));
    CHECK(inspector.clear("q", Place::waiting) == count);
    CHECK(pending() == 2);
}

TEST_CASE_FIXTURE(Ends, "a group that the user may not write to keeps its member where it is") {
    place(Place::dead);
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">x", "+@all", "~*"});
    redis.command({"ACL", "SETUSER", "clerk", "resetkeys", "~q", "~orizuru:{q}:dead"});
    orizuru::Endpoint endpoint(uri);
    orizuru::Connection connection(endpoint);
    static_cast<void>(connection.command("", "AUTH", "clerk", "x"));
    DeadList list(uri, "q");
    const auto entry = list.list(0, 1)[0];
    const std::string why = orizuru::test::message_of<orizuru::ReplyError>([&] {
        orizuru::detail::remove_member(connection, dead, entry.bytes, entry.payload,
                                       orizuru::Keys("q"));
    });
    CHECK(why.find("NOPERM this user may not run HMGET on orizuru:{q}:group:" + group->id()) !=
          std::string::npos);
    CHECK(redis.llen(dead) == 1);
    CHECK(pending() == 2);
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE("in a Cluster members end in their group's slot, and a foreign one holds up nobody") {
    orizuru::test::Cluster cluster(2);
    auto redis = cluster.client_of("a");
    const auto made = [&](const std::string& queue) {
        JobGroup group(cluster.uri(), queue, {.then = GroupThen("{a}then", Raw{"then"})});
        group.push("{a}x", Raw{"x"});
        group.push("{a}y", Raw{"y"});
        group.push("a", Raw{"z"});
        group.commit();
        return group;
    };
    JobGroup group = made("{a}x");
    Consumer<Job<Raw>> consumer(cluster.uri(), "{a}x");
    auto first = consumer.next(patience);
    REQUIRE(first);
    CHECK(orizuru::ack_unique(*first));
    CHECK(Inspector(cluster.uri()).clear("{a}y", Place::waiting) == 1);
    CHECK(group.state().pending == 1);
    redis.lpush("orizuru:{a}:dead", Ends::dead_entry(redis.lrange("a").front()));
    CHECK(DeadList(cluster.uri(), "a").purge() == 1);
    CHECK(group.state().stage == GroupStage::done);
    CHECK(redis.llen("{a}then") == 1);
    redis.del("a");

    REQUIRE(cluster.owner("a") != cluster.owner("b"));
    JobGroup stays = made("a");
    const std::string foreign = redis.lrange("a").front();
    cluster.client_of("b").lpush("b", {foreign, foreign});
    cluster.client_of("b").lpush("orizuru:{b}:dead", Ends::dead_entry(foreign));
    CHECK(Inspector(cluster.uri()).clear("b", Place::waiting) == 2);
    CHECK(DeadList(cluster.uri(), "b").purge() == 1);
    CHECK(stays.state().pending == 3);
}

} // namespace group_ends_test
