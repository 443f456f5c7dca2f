// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker's clock that leaps changes nothing: times are those of the database and of Redis. The
// test sets the clock of this program for all its callers; the servers keep theirs.

#include "integration/postgres/ledger_fixture.hpp"
#include "integration/postgres/outbox_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/once.hpp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace clock_leaps_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

constexpr auto year = 24h * 365;

std::atomic<std::int64_t> seconds_ahead{0};

void leap(std::chrono::seconds ahead) { seconds_ahead.store(ahead.count()); }

timespec realtime(clockid_t clock) {
    timespec now{};
    ::syscall(SYS_clock_gettime, clock, &now);
    now.tv_sec += seconds_ahead.load();
    return now;
}

// These replace the C library's functions, also for the libraries.
extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) {
        return static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
    }
    *now = realtime(clock);
    return 0;
}

time_t time(time_t* out) noexcept {
    const time_t now = realtime(CLOCK_REALTIME).tv_sec;
    if (out != nullptr) {
        *out = now;
    }
    return now;
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
    const timespec at = realtime(CLOCK_REALTIME);
    *now = {.tv_sec = at.tv_sec, .tv_usec = at.tv_nsec / 1000};
    return 0;
}

} // extern "C"

struct Leaps : LedgerFixture {
    Leaps() = default;
    Leaps(const Leaps&) = delete;
    Leaps& operator=(const Leaps&) = delete;
    ~Leaps() { leap(0s); }

    /// Sets the clock anywhere within ten years.
    void leap_somewhere() {
        leap(std::chrono::seconds(std::uniform_int_distribution<std::int64_t>(
            -10 * year / 1s, 10 * year / 1s)(m_random)));
    }
    /// Makes the clock leap every millisecond.
    std::jthread leaping() {
        return std::jthread([this](const std::stop_token& token) {
            while (!token.stop_requested()) {
                leap_somewhere();
                std::this_thread::sleep_for(1ms);
            }
        });
    }
    std::jthread reconciler() {
        return std::jthread([this](const std::stop_token& token) {
            LedgerReconciler(database, uri, reconciling()).run(token);
        });
    }
    bool arrives(std::int64_t messages) {
        return eventually([&] { return redis.llen("q") == messages; });
    }

  private:
    std::mt19937_64 m_random{6};
};

TEST_CASE_FIXTURE(Leaps, "the clock of this program leaps, and that of the servers does not") {
    const auto before = std::chrono::system_clock::now();
    const int database_before = number("SELECT extract(year FROM clock_timestamp())::integer");
    leap(3 * year);
    CHECK(std::chrono::system_clock::now() - before > 2 * year);
    CHECK(number("SELECT extract(year FROM clock_timestamp())::integer") <= database_before + 1);
}

TEST_CASE_FIXTURE(Leaps, "a run keeps its lease, and its job, whatever the worker's clock says") {
    Ledger<std::string> ledger(database, "q", with_lease(6s)); // a commit may wait for a busy disk
    Ledger<std::string> other(database, "q", options());
    for (const auto ahead : {10 * year, -10 * year}) {
        const std::string id = ledger.submit("x");
        const LedgerOutcome outcome = ledger.run(id, [&](pqxx::work& tx) {
            leap(ahead);
            std::set<LedgerOutcome> others;
            std::set<std::string> ends; // of the lease
            CHECK(eventually([&] {
                others.insert(other.run(id, effect(id)));
                ends.insert(text("SELECT due FROM orizuru_ledger WHERE id = '" + id + "'"));
                return ends.size() == 3; // it was renewed twice
            }));
            CHECK(others == std::set{LedgerOutcome::elsewhere});
            effect(id)(tx);
        });
        CHECK(outcome == LedgerOutcome::completed);
        CHECK(other.run(id, effect(id)) == LedgerOutcome::repeated);
        CHECK(effects(id) == 1);
    }
}

TEST_CASE_FIXTURE(Leaps, "a lease ends neither sooner nor later for the reconciler's clock") {
    Ledger<std::string> ledger(database, "q", options());
    const auto thread = reconciler();
    std::int64_t sent = 0;
    for (const auto ahead : {10 * year, -10 * year}) {
        const std::string id = ledger.submit("x");
        REQUIRE(arrives(++sent));
        const auto begun = std::chrono::steady_clock::now();
        REQUIRE(text("SELECT verdict FROM orizuru_ledger_claim('" + id + "', 'w/1', 500)") ==
                "claimed");
        leap(ahead);
        CHECK(arrives(++sent));
        CHECK(std::chrono::steady_clock::now() - begun >= 500ms);
        REQUIRE(ledger.run(id, nothing) == LedgerOutcome::completed);
    }
}

TEST_CASE_FIXTURE(Leaps,
                  "an inbox recognises ids that it has seen, and does not forget them too early") {
    Inbox inbox(database, "payments");
    CHECK(inbox.run("id", effect("id")) == InboxOutcome::ran);
    for (const auto ahead : {10 * year, -10 * year}) {
        leap(ahead);
        CHECK(inbox.purge(1h) == 0);
        CHECK(inbox.run("id", effect("id")) == InboxOutcome::repeated);
    }
    CHECK(effects("id") == 1);
}

TEST_CASE_FIXTURE(Leaps, "an outbox is sent in the order of its commits, not of its clock") {
    Outbox<std::string> outbox("q");
    Texts expected;
    for (int i = 0; i < 20; ++i) {
        leap_somewhere();
        pqxx::work tx(postgres_connection);
        expected.push_back(outbox.push(tx, "x"));
        tx.commit();
    }
    leap_somewhere();
    CHECK(OutboxRelay(database, uri, {.on_event = {}}).relay() == 20);
    Texts sent;
    for (const std::string& bytes : oldest_first("q")) {
        sent.push_back(job_of(bytes).id);
    }
    CHECK(sent == expected);
}

TEST_CASE_FIXTURE(Leaps, "a claim of Once ends neither sooner nor later for its holder's clock") {
    for (const auto ahead : {10 * year, -10 * year}) {
        const std::string id = std::to_string(ahead.count());
        Once once(uri, "q", {.lease = 1500ms});
        Once other(uri, "q");
        REQUIRE(once.claim(id).state == Claim::State::claimed);
        leap(ahead);
        const Claim busy = other.claim(id);
        CHECK(busy.state == Claim::State::busy);
        CHECK(busy.busy_for <= 1500ms);
        CHECK(eventually([&] { return other.claim(id).state == Claim::State::claimed; }));
    }
}

TEST_CASE_FIXTURE(Leaps, "workers whose clock leaps all the time do each job once") {
    constexpr int jobs = 200;
    LedgerOptions persistent = with_lease(300ms);
    persistent.retry.max_attempts = 100;
    Ledger<std::string> ledger(database, "q", persistent);
    const auto leaps = leaping();
    const auto thread = reconciler();
    for (int i = 0; i < jobs; ++i) {
        ledger.submit(std::to_string(i));
    }
    std::atomic<int> calls{0};
    Worker worker(uri, {.concurrency = 4, .on_event = nullptr});
    worker.handle<std::string>("q", [&](const std::string&, JobContext<std::string>& job) {
        ledger.run(job.id(), [&](pqxx::work& tx) {
            effect(job.id())(tx);
            if (++calls % 7 == 0) {
                throw std::runtime_error("tried again");
            }
        });
    });
    const Running running(worker);
    CHECK(eventually([&] {
        return number("SELECT count(*) FROM orizuru_ledger WHERE state = 'completed'") == jobs;
    }));
    CHECK(number("SELECT count(*) FROM effects") == jobs);
    CHECK(number("SELECT count(DISTINCT job) FROM effects") == jobs);
}

} // namespace clock_leaps_test
