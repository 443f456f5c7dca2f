// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The defects of designs in which one key says both that an effect has begun and that it is done,
// and in which nothing checks the owner. Once has none of them.

#include "integration/once/once_fixture.hpp"
#include "support/child.hpp"
#include "support/collect_dead.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/once.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>

namespace once_defects_test {

using namespace std::chrono_literals;
using orizuru::Claim;
using orizuru::Consumer;
using orizuru::Once;
using orizuru::OnceOutcome;
using orizuru::OnceToken;
using orizuru::Raw;
using orizuru::Scheduler;
using orizuru::test::collect_dead;
using orizuru::test::eventually;
using orizuru::test::OnceFixture;
using orizuru::test::patience;
using orizuru::test::status_of_child;
using State = Claim::State;

[[noreturn]] void fail() { throw std::runtime_error("no luck"); }

TEST_CASE_FIXTURE(OnceFixture,
                  "who dies behind its claim loses nothing: the effect runs when the lease "
                  "is over") {
    push({"a"});
    // Forked while there is no other thread.
    CHECK(status_of_child([this] {
              Once own(uri, "q", {.lease = 100ms});
              Consumer<Raw> dying(uri, "q");
              auto guard = dying.next(patience);
              own.run(*guard, "id", [] { ::raise(SIGKILL); });
              return 0;
          }) == -1);
    CHECK(state() == "claimed");
    collect_dead(redis, uri, "q");
    Consumer<Raw> second(uri, "q");
    auto guard = take(second);
    auto run = once.run(guard, "id", effect());
    if (run.outcome == OnceOutcome::busy) {
        Scheduler scheduler(uri, "q");
        REQUIRE(eventually([&] { return scheduler.move_due() == 1; }));
        auto again = take(second);
        run = once.run(again, "id", effect());
    }
    CHECK(run.outcome == OnceOutcome::ran);
    CHECK(effects == 1);
}

TEST_CASE_FIXTURE(OnceFixture,
                  "who finds a claim whose lease is over does not take it for done, and "
                  "the first one's failure takes nothing from the second") {
    const OnceToken first = claimed(once);
    end_lease();
    const Claim second = other.claim("id");
    CHECK(second.state == State::claimed);
    CHECK(other.complete(second.token, "second"));
    CHECK_FALSE(once.release(first)); // its failure comes too late
    CHECK(once.claim("id").result == "second");
}

TEST_CASE_FIXTURE(OnceFixture,
                  "a late holder neither completes nor releases the claim of another") {
    const OnceToken first = claimed(once);
    end_lease();
    const OnceToken second = claimed(other);
    CHECK_FALSE(once.complete(first, "first"));
    CHECK_FALSE(once.release(first));
    once.renew();
    CHECK(fields()["fence"] == std::to_string(second.fence));
    CHECK(other.complete(second, "second"));
}

TEST_CASE_FIXTURE(OnceFixture, "a failed attempt that cannot be forgotten is tried again after its "
                               "lease") {
    Once brief(uri, "q", {.lease = 100ms});
    CHECK_THROWS(static_cast<void>(brief.run("id", [this] {
        redis.command({"ACL", "SETUSER", "default", "-del"});
        fail();
    })));
    redis.command({"ACL", "SETUSER", "default", "+del"});
    CHECK(state() == "claimed");
    CHECK(eventually([this] { return other.run("id", effect()).outcome == OnceOutcome::ran; }));
    CHECK(effects == 1);
}

TEST_CASE_FIXTURE(OnceFixture,
                  "claimed and done are two states: only who is behind an effect reports "
                  "it as done") {
    claimed(once);
    CHECK(other.claim("id").state == State::busy);
    end_lease();
    const OnceToken second = claimed(other);
    CHECK(once.claim("id").state == State::busy);
    CHECK(other.complete(second));
    CHECK(once.claim("id").state == State::done);
}

} // namespace once_defects_test
