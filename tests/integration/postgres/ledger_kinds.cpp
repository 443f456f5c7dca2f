// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Ledgers that submit jobs of several types to one queue, each with a kind of its own.

#include "integration/postgres/ledger_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/msgpack.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_entry.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

namespace ledger_kinds_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct Kinds : LedgerFixture {
    static LedgerOptions of_kind(const std::string& kind) {
        LedgerOptions chosen = options();
        chosen.kind = kind;
        return chosen;
    }
    Ledger<std::string> letters{database, "q", of_kind("letter")};
    Ledger<int> numbers{database, "q", of_kind("number")};
    LedgerReconciler reconciler{database, uri, reconciling()};
};

TEST_CASE_FIXTURE(Kinds,
                  "a worker's handler of each kind gets its jobs, also when they come again") {
    const std::string letter = letters.submit("a");
    const std::string number = numbers.submit(7);
    Worker worker(uri, {.concurrency = 2, .signal_handling = SignalHandling::none});
    worker.handle<std::string>("q", "letter",
                               [&](const std::string& payload, JobContext<std::string>& job) {
                                   letters.run(job.id(), [&](pqxx::work& tx) {
                                       effect(letter)(tx);
                                       if (letters.find(job.id())->attempt == 1) {
                                           throw std::runtime_error("the first try fails");
                                       }
                                       return payload;
                                   });
                               });
    worker.handle<int>("q", "number", [&](const int& payload, JobContext<int>& job) {
        numbers.run(job.id(), [&](pqxx::work&) { return payload; });
    });
    {
        std::jthread working([&](const std::stop_token& token) { worker.run(token); });
        CHECK(eventually([&] {
            reconciler.reconcile();
            return state(letter) == "completed" && state(number) == "completed";
        }));
    }
    CHECK(letters.result<std::string>(letter) == "a");
    CHECK(numbers.result<int>(number) == 7);
    CHECK(letters.find(letter)->attempt == 2);
    CHECK(effects(letter) == 1);
    CHECK(redis.llen("orizuru:{q}:dead") == 0);
}

TEST_CASE_FIXTURE(Kinds, "a message has its kind and how often the job was claimed before") {
    const std::string id = letters.submit("a");
    const auto message = [this] {
        Consumer<Job<std::string>> consumer(uri, "q");
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        const Job<std::string> job = **guard;
        guard->ack();
        return job;
    };
    reconciler.reconcile();
    CHECK(message().kind == "letter");
    for (std::uint64_t attempt = 1; attempt <= 2; ++attempt) {
        CHECK(letters.run(id, fail) == LedgerOutcome::failed);
        reconciler.reconcile();
        const Job<std::string> job = message();
        CHECK(job.kind == "letter");
        CHECK(job.ledger_attempt == attempt);
        CHECK(job.payload == "a");
        CHECK(job.id == id);
    }
}

TEST_CASE_FIXTURE(Kinds, "a payload that a user has written by SQL is sent as it is") {
    const std::string columns = "INSERT INTO orizuru_ledger (id, queue, max_attempts, payload) ";
    sql(columns + "VALUES ('none', 'q', 3, 'no envelope')");
    reconciler.reconcile();
    CHECK(letters.run("none", fail) == LedgerOutcome::failed);
    reconciler.reconcile();
    CHECK(redis.lrange("q") == std::vector<std::string>{"no envelope", "no envelope"});
}

TEST_CASE_FIXTURE(Kinds, "a kind that cannot be is refused") {
    CHECK_THROWS_AS(Ledger<int>(database, "q", of_kind(std::string(101, 'k'))),
                    std::invalid_argument);
    CHECK_THROWS_AS(Ledger<int>(database, "q", of_kind("a\nb")), std::invalid_argument);
}

} // namespace ledger_kinds_test
