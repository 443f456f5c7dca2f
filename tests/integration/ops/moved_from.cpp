// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Objects that were moved from: each use throws std::logic_error, and what they were moved to
// works.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/connection.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/sharded.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace moved_from_test {

using namespace std::chrono_literals;
using namespace orizuru;
using orizuru::test::QueueFixture;

/// Moves from `object`, then calls each of `uses` with it and with what it was moved to.
template <class Object>
void check(Object object, const std::string& name,
           const std::vector<std::function<void(std::type_identity_t<Object>&)>>& uses) {
    CAPTURE(name);
    Object other(std::move(object));
    for (const auto& use : uses) {
        CHECK_THROWS_WITH_AS(use(object), ("the " + name + " was moved from").c_str(), // NOLINT
                             std::logic_error);
        CHECK_NOTHROW(use(other));
    }
    object = std::move(other);
    CHECK_NOTHROW(uses.front()(object));
}

TEST_CASE_FIXTURE(QueueFixture, "what was moved from says so") {
    check(Producer<Raw>(uri, "q"), "producer",
          {[](auto& it) { it.push({"a"}); },
           [](auto& it) {
               it.push_all({{"a"}, {"b"}});
           },
           [](auto& it) { static_cast<void>(it.size()); }, [](auto& it) { it.command("PING"); },
           [](auto& it) { static_cast<void>(it.keys()); },
           [](auto& it) { static_cast<void>(it.options()); }});
    check(BufferedProducer<Raw>(uri, "q"), "buffered producer",
          {[](auto& it) { it.push({"a"}); }, [](auto& it) { it.flush(); },
           [](auto& it) { static_cast<void>(it.unconfirmed()); },
           [](auto& it) { static_cast<void>(it.size()); },
           [](auto& it) { static_cast<void>(it.keys()); },
           [](auto& it) { static_cast<void>(it.options()); }});
    check(JobProducer<int>(uri, "q"), "producer", {[](auto& it) { it.push(1); }});
    check(Connection(uri), "connection", {[](auto& it) { it.command("", "PING"); }});
    check(GarbageCollector(uri, "q"), "garbage collector",
          {[](auto& it) { it.collect(); },
           [](auto& it) {
               std::stop_source stopped;
               stopped.request_stop();
               it.run(stopped.get_token(), 1s);
           }});
    check(DeadList(uri, "q"), "dead list",
          {[](auto& it) { static_cast<void>(it.size()); },
           [](auto& it) { static_cast<void>(it.list(0, 1)); }});
    check(ScheduledList(uri, "q"), "scheduled list",
          {[](auto& it) { static_cast<void>(it.size()); },
           [](auto& it) { static_cast<void>(it.list(0, 1)); }});
    check(Scheduler(uri, "q"), "scheduler", {[](auto& it) { it.move_due(); }});
    check(Pause(uri, "q"), "connection", {[](auto& it) { static_cast<void>(it.paused()); }});
    check(Progress(uri, "q"), "progress",
          {[](auto& it) { it.set("id", 0.5); }, [](auto& it) { static_cast<void>(it.get("id")); }});
    check(Inspector(uri), "inspector", {[](auto& it) { static_cast<void>(it.queues()); }});
    create_shards(uri, "sharded", 2);
    check(ShardedProducer<Raw>(uri, "sharded"), "sharded producer",
          {[](auto& it) { it.push({"a"}); }, [](auto& it) { it.push("key", {"a"}); },
           [](auto& it) { static_cast<void>(it.shard_of("key")); }, [](auto& it) { it.reload(); }});
}

} // namespace moved_from_test
