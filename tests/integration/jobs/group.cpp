// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A group of jobs: what is where in Redis after each step, which ends count, and what a worker does
// with members.

#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/once.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace group_test {

using namespace std::chrono_literals;
using orizuru::GroupStage;
using orizuru::GroupThen;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::JobGroup;
using orizuru::JobGroupOptions;
using orizuru::OnDead;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Groups : WorkerFixture {
    JobGroup group = made({});

    JobGroup made(JobGroupOptions chosen) {
        chosen.then = GroupThen("q", Raw{"then"}, {.attributes = {{"of", "q"}}});
        return {uri, "q", chosen};
    }
    void push(const Texts& payloads) {
        for (const std::string& payload : payloads) {
            group.push("q", Raw{payload});
        }
    }
    std::string key() { return "orizuru:{q}:group:" + group.id(); }
    [[nodiscard]] static bool is(const orizuru::GroupState& state, GroupStage stage,
                                 std::uint64_t jobs, std::uint64_t pending,
                                 std::uint64_t failed = 0) {
        return state.stage == stage && state.jobs == jobs && state.pending == pending &&
               state.failed == failed;
    }
    /// Runs a worker until the group is done.
    void serve(orizuru::QueueOptions chosen = {}) {
        Worker worker(uri, options());
        worker.handle<Raw>("q", write_down(), std::move(chosen));
        const Running running(worker);
        CHECK(eventually([this] { return group.state().stage == GroupStage::done; }));
        CHECK(eventually([this] { return nothing_left(); }));
    }
};

TEST_CASE_FIXTURE(Groups, "when all members have ended behind the commit, one more job comes") {
    push({"a", "b"});
    CHECK(is(group.state(), GroupStage::open, 2, 2));
    CHECK(job_of(waiting().front()).group == "orz-group:" + group.id() + ":q");
    group.commit();
    CHECK(is(group.state(), GroupStage::waiting, 2, 2));
    CHECK(jobs() == Texts{"a", "b"});
    serve();
    CHECK(handled.all() == Texts{"a", "b", "then"});
    CHECK(is(group.state(), GroupStage::done, 2, 0));
    CHECK(redis.command({"TTL", key()}).integer > 3000);
}

TEST_CASE_FIXTURE(Groups, "members that have all ended before the commit do not bring it") {
    push({"a", "b"});
    {
        Worker worker(uri, options());
        worker.handle<Raw>("q", write_down());
        const Running running(worker);
        CHECK(eventually([this] { return is(group.state(), GroupStage::open, 2, 0); }));
        CHECK(eventually([this] { return nothing_left(); }));
    }
    CHECK(jobs().empty());
    group.commit();
    CHECK(jobs() == Texts{"then"});
    CHECK(is(group.state(), GroupStage::done, 2, 0));
}

TEST_CASE_FIXTURE(Groups, "the job that follows has the group's id, its numbers and its own time") {
    const auto before = orizuru::job_time() - 1s;
    group.commit();
    REQUIRE(redis.llen("q") == 1);
    const Job<Raw> then = job_of(waiting().front());
    CHECK(then.id == group.id());
    CHECK(then.payload.bytes == "then");
    CHECK(then.attributes ==
          orizuru::JobAttributes{{"group_failed", "0"}, {"group_jobs", "0"}, {"of", "q"}});
    CHECK(then.first_enqueued_at > before);
    CHECK(then.enqueued_at == then.first_enqueued_at);
    CHECK(then.group.empty());
}

TEST_CASE_FIXTURE(Groups, "many are pushed together, and each counts") {
    std::vector<Raw> payloads;
    for (int i = 0; i < 1201; ++i) {
        payloads.push_back({std::to_string(i)});
    }
    CHECK(group.push_all("q", payloads).size() == 1201);
    CHECK(is(group.state(), GroupStage::open, 1201, 1201));
    group.commit();
    serve();
    REQUIRE(handled.size() == 1202);
    CHECK(handled.all().back() == "then");
    CHECK(handled.all().front() == "0");
}

TEST_CASE_FIXTURE(Groups, "members may be in several queues of one hash tag, of several types") {
    JobGroup mixed(uri, "{t}a", {.then = GroupThen("{t}c", std::string("then"))});
    mixed.push("{t}a", Raw{"raw"});
    mixed.push("{t}b", std::string("text"), {.attributes = {{"x", "y"}}, .kind = "k"});
    mixed.commit();
    CHECK(job_of(redis.lrange("{t}b").front()).kind == "k");
    Worker worker(uri, options());
    worker.handle<Raw>("{t}a", write_down());
    worker.handle<std::string>("{t}b", "k", [this](const std::string& text) { handled.add(text); });
    worker.handle<std::string>("{t}c", [this](const std::string& text) { handled.add(text); });
    const Running running(worker);
    CHECK(eventually([&] { return mixed.state().stage == GroupStage::done; }));
    CHECK(eventually([&] { return handled.size() == 3; }));
    CHECK(handled.all().back() == "then");
}

TEST_CASE_FIXTURE(Groups, "a failed try does not count, and the group waits for the next one") {
    push({"a", "b"});
    group.commit();
    Worker worker(uri, with_scheduler());
    worker.handle<Raw>("q",
                       [this, tries = 0](const Raw& payload) mutable {
                           handled.add(payload.bytes);
                           if (payload.bytes == "a" && ++tries < 3) {
                               throw std::runtime_error("not now");
                           }
                       },
                       {.retry = {.backoff = orizuru::backoff::fixed(30ms)}});
    const Running running(worker);
    CHECK(has_handled({"a", "b", "a", "a", "then"}));
}

TEST_CASE_FIXTURE(Groups, "a discarded member has ended, and so has one that has expired") {
    push({"a"});
    group.push("q", Raw{"b"}, {.expires_after = -1s});
    group.commit();
    Worker worker(uri, options());
    worker.handle<Raw>("q", [this](const Raw& payload) {
        handled.add(payload.bytes);
        if (payload.bytes == "a") {
            throw orizuru::Discard("no");
        }
    });
    const Running running(worker);
    CHECK(has_handled({"a", "then"}));
    CHECK(is(group.state(), GroupStage::done, 2, 0));
}

/// A handler that buries `a` until it is allowed.
struct Dying : Groups {
    std::atomic<bool> allowed{false};

    [[nodiscard]] auto handler() {
        return [this](JobContext<Raw>& job) {
            handled.add(job->payload.bytes);
            if (job->payload.bytes == "a" && !allowed) {
                throw orizuru::DoNotRetry("never");
            }
        };
    }
};

TEST_CASE_FIXTURE(Dying, "a group waits for a dead member until it was redriven and is done") {
    push({"a", "b"});
    group.commit();
    Worker worker(uri, options());
    worker.handle<Raw>("q", handler());
    const Running running(worker);
    CHECK(has_handled({"a", "b"}));
    CHECK(eventually([this] { return is(group.state(), GroupStage::waiting, 2, 1); }));
    CHECK(redis.llen(dead) == 1);
    allowed = true;
    orizuru::DeadList list(uri, "q");
    CHECK(list.redrive(list.list(0, 1)[0]));
    CHECK(has_handled({"a", "b", "a", "then"}));
    CHECK(is(group.state(), GroupStage::done, 2, 0));
}

TEST_CASE_FIXTURE(
    Dying, "where the dead count, the next job hears how many, and a redrive counts no more") {
    group = made({.on_dead = OnDead::count});
    push({"a", "b"});
    Worker worker(uri, options());
    orizuru::JobAttributes heard;
    worker.handle<Raw>("q", [&heard, plain = handler()](JobContext<Raw>& job) mutable {
        heard = job.attributes();
        plain(job);
    });
    const Running running(worker);
    CHECK(has_handled({"a", "b"}));
    CHECK(eventually([this] { return is(group.state(), GroupStage::open, 2, 0, 1); }));
    allowed = true;
    orizuru::DeadList list(uri, "q");
    CHECK(list.redrive(list.list(0, 1)[0]));
    CHECK(has_handled({"a", "b", "a"}));
    CHECK(eventually([this] { return nothing_left(); }));
    CHECK(is(group.state(), GroupStage::open, 2, 0, 1));
    group.commit();
    CHECK(has_handled({"a", "b", "a", "then"}));
    CHECK(heard.at("group_jobs") == "2");
    CHECK(heard.at("group_failed") == "1");
    CHECK(eventually([this] { return nothing_left(); }));
    CHECK(handled.size() == 4);
}

TEST_CASE_FIXTURE(Groups, "a handler's guard may bury a member, but not end it otherwise") {
    group = made({.on_dead = OnDead::count});
    push({"a"});
    group.commit();
    Texts refusals;
    Worker worker(uri, options());
    orizuru::Once once(uri, "q");
    worker.handle<Raw>("q", [&](JobContext<Raw>& job) {
        handled.add(job->payload.bytes);
        if (job->payload.bytes != "a") {
            return;
        }
        const auto guard = job.guard();
        const Job<Raw> other = orizuru::make_job(Raw{"other"});
        const std::vector<std::function<void()>> ends{
            [&] { guard->ack(); },
            [&] { guard->push("other"); },
            [&] { guard->push("other", other); },
            [&] { guard->settle(orizuru::Script("return"), {}, {}); },
            [&] { push_after(*guard, 1ms, {.replacement = &other}); },
            [&] { once.run(*guard, "id", [](const auto&) { return std::string(); }); },
            [&] { orizuru::ack_unique(*guard); }};
        for (const auto& end : ends) {
            refusals.push_back(message_of<std::logic_error>(end));
        }
        guard->bury("by hand");
    });
    const Running running(worker);
    CHECK(has_handled({"a", "then"}));
    CHECK(refusals == Texts(7, "the job is a member of a group, which waits for its end: let its "
                               "handler return or throw, or put it off or release it, but do not "
                               "end it by its guard"));
    CHECK(is(group.state(), GroupStage::done, 1, 0, 1));
    CHECK(redis.llen(dead) == 1);
    CHECK(redis.llen("other") == 0);
}

TEST_CASE_FIXTURE(Groups, "a member that is put off, also to another queue, stays one") {
    push({"a"});
    group.commit();
    Worker worker(uri, with_scheduler());
    worker.handle<Raw>("q", [this](JobContext<Raw>& job) {
        handled.add(job->payload.bytes);
        if (handled.size() == 1) {
            const auto guard = job.guard();
            Job<Raw> again = **guard;
            again.payload.bytes = "a again";
            push_after(*guard, 1ms, {.replacement = &again});
        } else if (handled.size() == 2) {
            push_after(*job.guard(), 1ms, {.queue = "other"});
        }
    });
    worker.handle<Raw>("other", write_down());
    const Running running(worker);
    CHECK(has_handled({"a", "a again", "a again", "then"}));
}

TEST_CASE_FIXTURE(Groups, "members of a batch count, and so do those with deferred acks") {
    push({"a", "b", "c"});
    group.commit();
    Worker worker(uri, options());
    SUBCASE("a batch") {
        worker.handle_batch<Raw>("q",
                                 [this](const orizuru::JobBatch<Raw>& batch) {
                                     for (std::size_t i = 0; i < batch.size(); ++i) {
                                         handled.add(batch[i]->payload.bytes);
                                     }
                                 },
                                 {.size = 10, .time = 10ms});
    }
    SUBCASE("deferred acks") {
        worker.handle<Raw>("q", write_down(), {.prefetch = 10, .ack = orizuru::AckMode::deferred});
    }
    const Running running(worker);
    CHECK(has_handled({"a", "b", "c", "then"}));
    CHECK(is(group.state(), GroupStage::done, 3, 0));
}

TEST_CASE_FIXTURE(Groups, "what cannot be a member goes to the dead list with the reason") {
    push({"a"});
    Job<Raw> job = job_of(waiting().front());
    orizuru::QueueOptions chosen;
    std::string why = "a member of a group can neither be unique nor have a key";
    SUBCASE("it is handled at most once") {
        chosen.guarantee = orizuru::Guarantee::at_most_once;
        why = "a member of a group cannot be handled at_most_once: it would count as ended before "
              "it has run";
    }
    SUBCASE("it is unique") { job.unique_id = "u"; }
    SUBCASE("it has a key") {
        job.key = "k";
        job.ticket = "orz-key:0123456789abcdef:q";
    }
    redis.del("q");
    redis.lpush("q", bytes_of(job));
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down(), std::move(chosen));
    const Running running(worker);
    CHECK(eventually([this] { return redis.llen(dead) == 1; }));
    CHECK(orizuru::DeadList(uri, "q").list(0, 1)[0].reason == why);
    CHECK(handled.size() == 0);
    CHECK(is(group.state(), GroupStage::open, 1, 1));
}

TEST_CASE_FIXTURE(Groups, "a plain consumer counts a member's end by ack_unique and by retry") {
    push({"a", "b"});
    group.commit();
    orizuru::Consumer<Job<Raw>> consumer(uri, "q");
    auto first = consumer.next(patience);
    REQUIRE(first);
    CHECK(orizuru::ack_unique(*first));
    auto second = consumer.next(patience);
    REQUIRE(second);
    CHECK(
        orizuru::retry(*second, {.max_attempts = 1, .exhausted = orizuru::Exhausted::discard}, "no")
            .outcome == orizuru::RetryOutcome::discarded);
    CHECK(jobs() == Texts{"then"});
}

TEST_CASE_FIXTURE(Groups, "two copies of one job are one member, which ends once") {
    push({"a", "b"});
    redis.command({"RPUSH", "q", waiting().front()}); // as a failover leaves it
    group.commit();
    Worker worker(uri, options());
    worker.handle<Raw>("q", [this](const Raw& payload) {
        handled.add(payload.bytes + "/" + std::to_string(group.state().pending));
    });
    const Running running(worker);
    CHECK(eventually([this] { return handled.size() == 4; }));
    const Texts order = handled.all();
    CHECK(order.back() == "then/0");
    CHECK(is(group.state(), GroupStage::done, 2, 0));
    CHECK(eventually([this] { return nothing_left(); }));
    CHECK(handled.size() == 4);
}

TEST_CASE_FIXTURE(Groups, "a group without a next job only tells how far it is") {
    JobGroup plain(uri, "q");
    plain.push("q", Raw{"a"});
    plain.commit();
    CHECK(is(plain.state(), GroupStage::waiting, 1, 1));
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    const Running running(worker);
    CHECK(eventually([&] { return is(plain.state(), GroupStage::done, 1, 0); }));
    CHECK(eventually([this] { return nothing_left(); }));
    CHECK(handled.all() == Texts{"a"});
}

TEST_CASE_FIXTURE(Groups,
                  "a group is committed once, takes nothing after that, and knows its slot") {
    push({"a"});
    CHECK(message_of<std::invalid_argument>([&] { group.push("other", Raw{"x"}); }) ==
          "a job of the group goes to queue 'other', which has not the hash tag of 'q': the jobs "
          "of a group share one");
    for (const auto time : {std::chrono::milliseconds(999), std::chrono::milliseconds::max()}) {
        CHECK(message_of<std::invalid_argument>([&] {
                  JobGroup(uri, "q", {.expires_after = time});
              }) == "a group's expires_after must be 1 s to 3650 days");
    }
    CHECK(message_of<std::invalid_argument>([] {
              GroupThen("q", Raw{"x"}, {.expires_after = 1s});
          }) == "the job that follows a group cannot expire");
    group.commit();
    CHECK(message_of<std::logic_error>([&] { group.commit(); }) ==
          "the group is committed already");
    CHECK(message_of<std::logic_error>([&] { push({"b"}); }) ==
          "the group is committed: it takes no more jobs");
    CHECK(jobs() == Texts{"a"});
    CHECK(redis.keys("orizuru:{q}:group:*").size() == 1);
}

TEST_CASE_FIXTURE(Groups, "a commit after one that is in doubt changes nothing") {
    push({"a"});
    redis.command({"EVAL", std::string(orizuru::detail::commit_group_script()), "1", key()});
    group.commit();
    CHECK(is(group.state(), GroupStage::waiting, 1, 1));
    CHECK(jobs() == Texts{"a"});
    CHECK(redis.command({"TTL", key()}).integer == -1);
}

TEST_CASE_FIXTURE(Groups,
                  "a group whose maker does not come back ends, and its members do not mind") {
    push({"a"});
    const auto left = redis.command({"PTTL", key()}).integer;
    CHECK(left > 86'000'000);
    CHECK(left <= 86'400'000);
    redis.del(key()); // as it expires
    CHECK(group.state().stage == GroupStage::gone);
    CHECK(message_of<orizuru::ReplyError>([&] {
              push({"b"});
          }).ends_with("CLOSED " + key() + " is not open any more"));
    CHECK(message_of<orizuru::ReplyError>([&] { group.commit(); }) ==
          key() + " was not committed in time");
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    const Running running(worker);
    CHECK(has_handled({"a"}));
    CHECK(eventually([this] { return nothing_left(); }));
    CHECK(redis.keys("orizuru:{q}:group:*").empty());
}

TEST_CASE_FIXTURE(Groups, "each push gives the maker its time anew") {
    push({"a"});
    redis.command({"PEXPIRE", key(), "5000"});
    push({"b"});
    CHECK(redis.command({"PTTL", key()}).integer > 86'000'000);
}

TEST_CASE_FIXTURE(Groups, "the last member stays until the next job can be pushed") {
    JobGroup tagged(uri, "{q}x", {.then = GroupThen("{q}y", Raw{"then"})});
    tagged.push("{q}x", Raw{"a"});
    tagged.push("{q}x", Raw{"b"});
    tagged.commit();
    redis.set("{q}y", "no list");
    Worker worker(uri, options());
    worker.handle<Raw>("{q}x", write_down());
    const Running running(worker);
    CHECK(eventually([this] { return diary.count(WorkerEventKind::unsettled) > 0; }));
    CHECK(diary.of(WorkerEventKind::unsettled).front().detail.find("WRONGTYPE {q}y is a string") !=
          std::string::npos);
    CHECK(is(tagged.state(), GroupStage::waiting, 2, 1));
    redis.del("{q}y");
    CHECK(eventually([&] { return is(tagged.state(), GroupStage::done, 2, 0); }));
    CHECK(payloads_of(redis.lrange("{q}y")) == Texts{"then"});
    CHECK(handled.all() == Texts{"a", "b"});
}

TEST_CASE_FIXTURE(Groups, "a queue without groups pays nothing for them") {
    push_jobs(Texts(10, "x"));
    redis.command({"CONFIG", "RESETSTAT"});
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    const Running running(worker);
    CHECK(eventually([this] { return nothing_left() && handled.size() == 10; }));
    CHECK(runs_of("hdel") == 0); // the others of a group are in reports of workers, too
}

} // namespace group_test
