// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A queue with keys: what is where in Redis after each step, and what a worker does with it.

#include "integration/keyed/keyed_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/once.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace keyed_test {

using namespace std::chrono_literals;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Keyed;
using orizuru::test::message_of;
using orizuru::test::Running;
using orizuru::test::Texts;

TEST_CASE_FIXTURE(Keyed, "one job of a key is in the queue, and the others wait behind it, whole") {
    push("a", {"a1", "a2", "a3"});
    push("b", {"b1"});
    CHECK(jobs() == Texts{"a1", "b1"});
    CHECK(behind("a") == Texts{"a2", "a3"});
    CHECK(behind("b").empty());
    CHECK(counted() == Texts{"", "-2", "b", "0", "a", "2"});
    const Job<Raw> out = job_of(waiting().front());
    CHECK(out.key == "a");
    CHECK(out.ticket == "orz-key:" + redis.lrange(order("a")).front() + ":q");
    serve();
    CHECK(handled.all() == Texts{"a1", "b1", "a2", "a3"});
}

TEST_CASE_FIXTURE(Keyed, "many of one key are pushed in their order") {
    Texts payloads;
    std::vector<Raw> raws;
    for (int i = 0; i < 1201; ++i) {
        payloads.push_back(std::to_string(i));
        raws.push_back({payloads.back()});
    }
    CHECK(producer.push_all("a", raws).size() == raws.size());
    CHECK(counted() == Texts{"", "-1200", "a", "1200"});
    serve();
    CHECK(handled.all() == payloads);
}

TEST_CASE_FIXTURE(Keyed,
                  "keys take turns: a key with thousands of jobs does not hold up the others") {
    push("a", Texts(50, "a"));
    for (char key = 'b'; key <= 'k'; ++key) {
        push(std::string(1, key), {std::string(1, key)});
    }
    serve();
    const Texts order = handled.all();
    REQUIRE(order.size() == 60);
    CHECK(Texts(order.begin(), order.begin() + 11) ==
          Texts{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"});
}

TEST_CASE_FIXTURE(Keyed, "of a key one job runs at a time, and jobs of other keys beside it") {
    push("a", Texts(30, "a"));
    push("b", Texts(30, "b"));
    std::atomic<int> of_a{0};
    std::atomic<int> of_b{0};
    std::atomic<int> together{0};
    std::atomic<bool> twice{false};
    Worker worker(uri, options(4));
    worker.handle_keyed<Raw>("q", [&](const Raw& payload) {
        std::atomic<int>& own = payload.bytes == "a" ? of_a : of_b;
        twice = twice || ++own > 1;
        if (of_a + of_b == 2) {
            ++together;
        }
        std::this_thread::sleep_for(1ms); // it takes its time, so that others may run
        --own;
    });
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 60; }));
    CHECK_FALSE(twice);
    CHECK(together > 0);
    CHECK(eventually([this] { return no_order_left(); }));
}

TEST_CASE_FIXTURE(Keyed, "a failure holds up its key alone, until the job is done") {
    push("a", {"a1", "a2"});
    push("b", {"b1", "b2"});
    Worker worker(uri, with_scheduler());
    worker.handle_keyed<Raw>("q",
                             [&, failures = 0](const Raw& payload) mutable {
                                 handled.add(payload.bytes);
                                 if (payload.bytes == "a1" && ++failures <= 3) {
                                     throw std::runtime_error("not yet");
                                 }
                             },
                             {.retry = {.backoff = orizuru::backoff::fixed(50ms)}});
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 4; }));
    const Texts order = handled.all();
    CHECK(std::count(order.begin(), order.end(), "a1") == 4);
    CHECK(order.back() == "a2");
    CHECK(eventually([this] { return nothing_left() && no_order_left(); }));
}

TEST_CASE_FIXTURE(Keyed, "a job that is buried or discarded leaves its turn to the next one") {
    push("a", {"bury", "a2", "discard", "a4"});
    Worker worker(uri, options());
    worker.handle_keyed<Raw>("q", [&](const Raw& payload) {
        handled.add(payload.bytes);
        if (payload.bytes == "bury") {
            throw orizuru::DoNotRetry("no");
        }
        if (payload.bytes == "discard") {
            throw orizuru::Discard("no");
        }
    });
    const Running running(worker);
    CHECK(has_handled({"bury", "a2", "discard", "a4"}));
    CHECK(eventually([this] { return no_order_left(); }));
    orizuru::DeadList list(uri, "q");
    const auto entries = list.list(0, 10);
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].reason == "no");
    CHECK(job_of(entries[0].payload).key == "a");
    CHECK(job_of(entries[0].payload).ticket.empty());
}

TEST_CASE_FIXTURE(Keyed,
                  "a job without a ticket gets one when it is fetched: behind those of its key, or "
                  "the next one where there are none") {
    push("a", {"a1", "a2"});
    Job<Raw> other = orizuru::make_job(Raw{"a0"});
    other.key = "a";
    Job<Raw> alone = orizuru::make_job(Raw{"c"});
    alone.key = "c";
    alone.ticket = "orz-key:0123456789abcdef:another"; // pushed on by another queue
    redis.command({"RPUSH", "q", bytes_of(alone), bytes_of(other)});
    serve();
    CHECK(handled.all() == Texts{"c", "a1", "a2", "a0"});
}

TEST_CASE_FIXTURE(Keyed, "a job without a key goes to the dead list with the reason") {
    push_jobs({"x"});
    push("a", {"a1"});
    auto chosen = options();
    Worker worker(uri, chosen);
    worker.handle_keyed<Raw>("q", write_down(),
                             {.retry = {.exhausted = orizuru::Exhausted::discard}});
    const Running running(worker);
    CHECK(has_handled({"a1"}));
    REQUIRE(eventually([this] { return redis.llen(dead) == 1; }));
    CHECK(orizuru::DeadList(uri, "q").list(0, 1)[0].reason ==
          "the queue's jobs need a key: push them by orizuru::KeyedJobProducer");
    CHECK(eventually([this] { return no_order_left(); }));
}

TEST_CASE_FIXTURE(Keyed,
                  "a job with a key that is unique, too, goes to the dead list with the reason") {
    Job<Raw> job = orizuru::make_job(Raw{"x"});
    job.key = "a";
    job.unique_id = "u";
    redis.lpush("q", bytes_of(job));
    push("a", {"a1"});
    Worker worker(uri, options());
    worker.handle_keyed<Raw>("q", write_down());
    const Running running(worker);
    CHECK(has_handled({"a1"}));
    REQUIRE(eventually([this] { return redis.llen(dead) == 1; }));
    CHECK(orizuru::DeadList(uri, "q").list(0, 1)[0].reason == "a job with a key cannot be unique");
}

TEST_CASE_FIXTURE(Keyed,
                  "Once runs no effect by the guard of a job with a key, and does by its id") {
    push("a", {"a1"});
    orizuru::Once once(uri, "q");
    std::atomic<int> effects{0};
    std::string refusal;
    Worker worker(uri, options());
    worker.handle_keyed<Raw>("q", [&](JobContext<Raw>& context) {
        const auto effect = [&] { ++effects; };
        refusal = message_of<std::logic_error>([&] { once.run(*context.guard(), "id", effect); });
        static_cast<void>(once.run(context.id(), effect));
    });
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(effects == 1);
    CHECK(refusal.starts_with("the job has its turn"));
}

TEST_CASE_FIXTURE(Keyed, "a guard that was moved away says so when it is put off elsewhere") {
    push_jobs({"x"});
    std::string refusal;
    Worker worker(uri, options());
    worker.handle<Raw>("q", [&](JobContext<Raw>& context) {
        const auto guard = context.guard();
        auto mine = std::move(*guard);
        refusal =
            message_of<std::logic_error>([&] { push_after(*guard, 1ms, {.queue = "other"}); });
        mine.ack();
    });
    const Running running(worker);
    CHECK(eventually([&] { return nothing_left() && worker.running().empty(); }));
    CHECK(refusal == "the message guard was moved from");
}

TEST_CASE_FIXTURE(Keyed,
                  "a handler's guard may put a job off and release it, but not end it: the next "
                  "one would not come") {
    push("a", {"a1", "a2"});
    std::vector<std::string> refusals;
    Worker worker(uri, with_scheduler());
    worker.handle_keyed<Raw>("q", [&, first = true](JobContext<Raw>& context) mutable {
        handled.add(context->payload.bytes);
        if (!std::exchange(first, false)) {
            return;
        }
        const auto guard = context.guard();
        for (const auto& end : std::vector<std::function<void()>>{
                 [&] { guard->ack(); }, [&] { guard->bury("no"); }, [&] { guard->push("other"); },
                 [&] { guard->push("other", *context); },
                 [&] { guard->settle(orizuru::Script("return"), {}, {}); },
                 [&] { push_after(*guard, 1ms, {.queue = "other"}); }}) {
            refusals.push_back(message_of<std::logic_error>(end));
        }
        push_after(*guard, 1ms);
    });
    const Running running(worker);
    CHECK(has_handled({"a1", "a1", "a2"}));
    CHECK(refusals == Texts(6, "the job has its turn in the order of its key: let its handler "
                               "return or throw, or put it off or release it, but do not end it by "
                               "its guard"));
    CHECK(eventually([this] { return nothing_left() && no_order_left(); }));
    CHECK(redis.llen("other") == 0);
}

TEST_CASE_FIXTURE(Keyed, "an ack whose turn has been given away only removes its job") {
    push("a", {"a1", "a2", "a3"});
    const Gate gate;
    Worker worker(uri, options());
    worker.handle_keyed<Raw>("q", [&](const Raw& payload) {
        handled.add(payload.bytes);
        gate.pass();
    });
    const Running running(worker);
    REQUIRE(gate.reached());
    redis.command({"LSET", order("a"), "0", "0123456789abcdef"}); // another one's turn
    gate.open();
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(behind("a") == Texts{"a2", "a3"});
    CHECK(jobs().empty());
    CHECK(handled.all() == Texts{"a1"});
}

TEST_CASE_FIXTURE(Keyed, "a worker that handles the queue without keys keeps their order as well") {
    push("a", {"a1", "a2"});
    push_jobs({"x"});
    Job<Raw> without_ticket = orizuru::make_job(Raw{"a0"});
    without_ticket.key = "a";
    redis.command({"RPUSH", "q", bytes_of(without_ticket)});
    Worker worker(uri, options(2));
    SUBCASE("one by one") { worker.handle<Raw>("q", write_down()); }
    SUBCASE("when each is done later") {
        worker.handle<Raw>(
            "q", [this](const Raw& payload,
                        orizuru::JobDone done) { // NOLINT(performance-unnecessary-value-param)
                handled.add(payload.bytes);
                done();
            });
    }
    SUBCASE("in batches") {
        worker.handle_batch<Raw>("q",
                                 [this](const orizuru::JobBatch<Raw>& batch) {
                                     for (std::size_t i = 0; i < batch.size(); ++i) {
                                         handled.add(batch[i]->payload.bytes);
                                     }
                                 },
                                 {.size = 10, .time = 10ms});
    }
    const Running running(worker);
    CHECK(eventually([this] { return handled.size() == 4; }));
    const Texts order = handled.all();
    CHECK(std::find(order.begin(), order.end(), "a1") <
          std::find(order.begin(), order.end(), "a2"));
    CHECK(eventually([this] { return nothing_left() && no_order_left(); }));
    CHECK(counted() == Texts{"", "0"}); // no sweep has mended that
}

TEST_CASE_FIXTURE(Keyed,
                  "a failed job may go to another queue, and leaves its turn to the next one") {
    push("a", {"a1", "a2"});
    Worker worker(uri, options());
    worker.handle<Raw>(
        "q",
        [this](const Raw& payload) {
            handled.add(payload.bytes);
            if (payload.bytes == "a1") {
                throw std::runtime_error("no");
            }
        },
        {.retry = {.backoff = orizuru::backoff::fixed(0ms), .retry_queue = "{q}later"}});
    const Running running(worker);
    CHECK(has_handled({"a1", "a2"}));
    CHECK(eventually([this] { return no_order_left(); }));
    const Texts later = redis.lrange("{q}later");
    REQUIRE(later.size() == 1);
    CHECK(job_of(later[0]).key == "a");
    CHECK(job_of(later[0]).ticket.empty());
    CHECK(job_of(later[0]).attempt == 2);
}

TEST_CASE_FIXTURE(Keyed, "an expired job leaves its turn to the next one") {
    producer.push("a", Raw{"a1"}, {.expires_after = 1ms});
    push("a", {"a2"});
    const std::int64_t now = server_ms();
    REQUIRE(eventually([&] { return server_ms() > now + 5; }));
    serve();
    CHECK(handled.all() == Texts{"a2"});
    CHECK(diary.count(WorkerEventKind::expired) == 1);
}

TEST_CASE_FIXTURE(Keyed, "bad keys and options are refused, and nothing is pushed or registered") {
    const auto why = [&](const std::string& key) {
        return message_of<std::invalid_argument>([&] { producer.push(key, Raw{"x"}); });
    };
    CHECK(why("") == "the job has no key");
    CHECK(why(std::string(513, 'k')) == "a job's key must have at most 512 bytes");
    CHECK(message_of<std::invalid_argument>(
              [&] { producer.push_all("", std::vector<Raw>{{"x"}}); }) == "the job has no key");
    producer.push(std::string(512, 'k'), Raw{"x"});
    Worker worker(uri, options());
    const auto refused = [&](orizuru::QueueOptions chosen, orizuru::KeyedOptions keyed = {}) {
        return message_of<std::invalid_argument>(
            [&] { worker.handle_keyed<Raw>("q", write_down(), std::move(chosen), keyed); });
    };
    CHECK(refused({.guarantee = orizuru::Guarantee::at_most_once}) ==
          "queue 'q': with keys, it cannot be at_most_once: the next job of a key would not wait "
          "for the one that runs");
    CHECK(refused({.retry = {.retry_queue = "other"}}) ==
          "queue 'q': with keys, it cannot have a retry_queue: the next job of a key would not "
          "wait for the one that failed");
    CHECK(refused({}, {.sweep_interval = 999ms}) == "sweep_interval must be 1000 ms to 24 h");
    worker.handle_keyed<Raw>("q", write_down());
    CHECK(refused({}) == "queue 'q' is handled already, or has its options");
    CHECK(message_of<std::invalid_argument>([&] { worker.handle<Raw>("q", write_down()); }) ==
          "queue 'q' is handled already, or has its options");
    Worker plain(uri, options());
    plain.handle<Raw>("q", write_down());
    CHECK(message_of<std::invalid_argument>([&] { plain.handle_keyed<Raw>("q", write_down()); }) ==
          "queue 'q' is handled already, or has its options");
}

TEST_CASE_FIXTURE(Keyed, "a push is refused whole where a key of Redis is of another type") {
    SUBCASE("the queue") { redis.set("q", "a string"); }
    SUBCASE("the key's list") { redis.set(order("a"), "a string"); }
    SUBCASE("the number of those behind") {
        redis.command({"HSET", "orizuru:{q}:keyed", "a", "hash"});
    }
    const Texts before = redis.keys("*");
    CHECK(message_of<orizuru::ReplyError>([&] { push("a", {"a1"}); }).find("WRONGTYPE") !=
          std::string::npos);
    CHECK(redis.keys("*") == before);
}

TEST_CASE_FIXTURE(Keyed, "a bounded push does not drop a job for which others wait") {
    push("a", {"a1", "a2"});
    orizuru::Producer<Raw> plain(uri, "q");
    CHECK(message_of<orizuru::ReplyError>([&] {
              static_cast<void>(orizuru::push_bounded(
                  plain, Raw{"x"}, {.max_length = 1, .overflow = orizuru::Overflow::drop_oldest}));
          }).find("KEYED the oldest jobs of q have keys") != std::string::npos);
    CHECK(jobs() == Texts{"a1"});
    CHECK(behind("a") == Texts{"a2"});
}

} // namespace keyed_test
