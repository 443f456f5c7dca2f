// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a ledger's jobs leave behind.

#include "integration/postgres/ledger_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/error.hpp>
#include <orizuru/msgpack.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_entry.hpp>
#include <orizuru/postgres/ledger_function.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <new>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace ledger_results_test {

/// There is no memory to decode it.
struct Heavy {};

} // namespace ledger_results_test

template <>
struct orizuru::Codec<ledger_results_test::Heavy> {
    static ledger_results_test::Heavy decode(std::string_view /*payload*/) {
        throw std::bad_alloc();
    }
};

namespace ledger_results_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct Results : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};
};

struct NotEncodable {};

static_assert(LedgerFunction<void (*)(pqxx::work&), pqxx::work&>);
static_assert(LedgerFunction<std::string (*)(pqxx::work&, std::stop_token), pqxx::work&>);
static_assert(
    LedgerFunction<int (*)(pqxx::work&, const std::string&), pqxx::work&, const std::string&>);
static_assert(!LedgerFunction<NotEncodable (*)(pqxx::work&), pqxx::work&>);
static_assert(!LedgerFunction<int (*)(int), pqxx::work&>);

TEST_CASE_FIXTURE(Results, "what a function returns is there once the job is completed") {
    const std::string id = ledger.submit("x");
    CHECK_FALSE(ledger.result<int>(id));
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        effect(id)(tx);
        CHECK_FALSE(ledger.result<int>(id)); // another connection's look
        return 42;
    }) == LedgerOutcome::completed);
    CHECK(ledger.result<int>(id) == 42);
    CHECK(effects(id) == 1);
    // The first one stays.
    CHECK(ledger.run(id, [](pqxx::work&) { return 43; }) == LedgerOutcome::repeated);
    CHECK(ledger.result<int>(id) == 42);
}

TEST_CASE_FIXTURE(Results, "a result has any type that has a Codec, also an empty one") {
    const auto result_of = [&](auto result) {
        const std::string id = ledger.submit("x");
        CHECK(ledger.run(id, [&](pqxx::work&) { return result; }) == LedgerOutcome::completed);
        return ledger.result<decltype(result)>(id);
    };
    CHECK(result_of(std::vector<std::string>{"a", "\0b"}) == std::vector<std::string>{"a", "\0b"});
    CHECK(result_of(std::optional<int>()).has_value());
    const auto empty = result_of(Raw{""});
    REQUIRE(empty);
    CHECK(empty->bytes.empty());
}

TEST_CASE_FIXTURE(Results, "a job without a result has none, nor has one that is unknown") {
    const std::string id = ledger.submit("x");
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::completed);
    CHECK_FALSE(ledger.result<int>(id));
    CHECK_FALSE(ledger.result<int>("unknown"));
    CHECK_THROWS_AS(static_cast<void>(ledger.result<int>("")), std::invalid_argument);
}

TEST_CASE_FIXTURE(Results, "a message's function has a result, with its payload and its token") {
    const std::string one = ledger.submit("one");
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(reconciler.reconcile().sent == 1);
    Consumer<Job<std::string>> consumer(uri, "q");
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK(ledger.process(*guard,
                         [](pqxx::work&, const std::string& payload, const std::stop_token& token) {
                             CHECK_FALSE(token.stop_requested());
                             return payload + " is done";
                         }) == LedgerOutcome::completed);
    CHECK(guard->settled());
    CHECK(ledger.result<std::string>(one) == "one is done");
}

TEST_CASE_FIXTURE(Results, "a run that fails leaves no result, the one that follows does") {
    const std::string id = ledger.submit("x");
    bool fails = true;
    const auto act = [&](pqxx::work& tx) {
        effect(id)(tx);
        if (fails) {
            tx.exec("INSERT INTO nowhere VALUES (1)");
        }
        return std::string("done");
    };
    CHECK(ledger.run(id, act) == LedgerOutcome::failed);
    CHECK_FALSE(ledger.result<std::string>(id));
    fails = false;
    CHECK(ledger.run(id, act) == LedgerOutcome::completed);
    CHECK(ledger.result<std::string>(id) == "done");
    CHECK(effects(id) == 1);
}

TEST_CASE_FIXTURE(Results, "a result that is too large fails the job by name, and its effects go") {
    LedgerOptions small = options();
    small.max_payload = 200;
    small.retry.max_attempts = 1;
    Ledger<std::string> own(database, "q", small);
    const std::string id = own.submit("x");
    CHECK(own.run(id, [&](pqxx::work& tx) {
        effect(id)(tx);
        return Raw{std::string(201, 'x')};
    }) == LedgerOutcome::dead);
    CHECK(own.find(id)->error == "the payload of 201 bytes is over max_payload, 200");
    CHECK(effects(id) == 0);
}

TEST_CASE_FIXTURE(Results, "a result that is of another type is refused, and can be read again") {
    const std::string id = ledger.submit("x");
    CHECK(ledger.run(id, [](pqxx::work&) { return std::string("text"); }) ==
          LedgerOutcome::completed);
    CHECK_THROWS_AS(static_cast<void>(ledger.result<int>(id)), DecodeError);
    CHECK_THROWS_AS(static_cast<void>(ledger.result<Heavy>(id)), std::bad_alloc);
    CHECK(ledger.result<std::string>(id) == "text");
}

TEST_CASE_FIXTURE(Results, "a result is forgotten with its job, and not changed by a client") {
    const std::string id = ledger.submit("x");
    CHECK(ledger.run(id, [](pqxx::work&) { return 1; }) == LedgerOutcome::completed);
    CHECK_THROWS_AS(sql("UPDATE orizuru_ledger SET result = 'x'"), pqxx::check_violation);
    CHECK(ledger.result<int>(id) == 1);
    CHECK(ledger.purge(0s) == 1);
    CHECK_FALSE(ledger.result<int>(id));
}

} // namespace ledger_results_test
