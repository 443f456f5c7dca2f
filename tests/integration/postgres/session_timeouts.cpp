// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Sessions that PostgreSQL ends because a function lets its transaction wait for too long.

#include "integration/postgres/ledger_fixture.hpp"

#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/postgres/ledger.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <stdexcept>
#include <string>

namespace session_timeouts_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

constexpr const char* words = "terminating connection due to idle-in-transaction timeout";

/// Calls of a function that waits for too long.
struct Timeouts : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};
    Inbox inbox{database, "payments"};
    int calls = 0;

    /// In its first `times` calls; then `act(tx)`.
    template <class Act>
    auto waits(int times, Act act) {
        return [this, times, act](pqxx::work& tx) {
            if (++calls <= times) {
                const auto session = tx.exec("SELECT pg_backend_pid()")[0][0].as<std::string>();
                tx.exec("SET LOCAL idle_in_transaction_session_timeout = 100");
                CHECK(eventually([&] {
                    return number("SELECT count(*) FROM pg_stat_activity WHERE pid = " + session) ==
                           0;
                }));
            }
            act(tx);
        };
    }
    /// The job has failed with the server's words, and its function was called twice at most.
    template <class Act>
    void check_failed_job(Act act) {
        const std::string id = ledger.submit("x");
        calls = 0;
        CHECK(ledger.run(id, waits(100, act)) == LedgerOutcome::failed);
        CHECK(calls <= 2);
        const std::string error = ledger.find(id).value().error;
        CAPTURE(error);
        CHECK(contains(error, words));
        CHECK(ledger.run(id, effect(id)) == LedgerOutcome::completed);
        CHECK(effects(id) == 1);
    }
    /// The same for an inbox, too.
    template <class Act>
    void check_failed(Act act) {
        check_failed_job(act);
        calls = 0;
        const std::string thrown =
            message_of<pqxx::failure>([&] { static_cast<void>(inbox.run("a", waits(100, act))); });
        CHECK(calls <= 2);
        CAPTURE(thrown);
        CHECK(contains(thrown, words));
        CHECK(inbox.run("a", nothing) == InboxOutcome::ran);
    }
};

TEST_CASE_FIXTURE(Timeouts, "a function that waits for too long has failed, with the server's "
                            "words") {
    SUBCASE("it returns") { check_failed(nothing); }
    SUBCASE("it goes on with a statement") {
        check_failed([](pqxx::work& tx) { tx.exec("SELECT"); });
    }
    SUBCASE("it goes on with a statement with parameters") {
        check_failed([](pqxx::work& tx) { detail::execute(tx, "SELECT $1::text", "x"); });
    }
    SUBCASE("it hides the end of its session") {
        check_failed_job([](pqxx::work& tx) { CHECK_THROWS(tx.exec("SELECT")); });
    }
}

// Its process may have been frozen.
TEST_CASE_FIXTURE(Timeouts, "a function that waits for too long once is called again") {
    const std::string id = ledger.submit("x");
    CHECK(ledger.run(id, waits(1, effect(id))) == LedgerOutcome::completed);
    CHECK(calls == 2);
    CHECK(effects(id) == 1);
    calls = 0;
    CHECK(inbox.run("a", waits(1, nothing)) == InboxOutcome::ran);
    CHECK(calls == 2);
}

TEST_CASE_FIXTURE(Timeouts, "an exception of a function that has waited for too long is the job's "
                            "error") {
    const std::string id = ledger.submit("x");
    CHECK(ledger.run(id, waits(100, fail)) == LedgerOutcome::failed);
    CHECK(calls == 1);
    CHECK(ledger.find(id).value().error == "no");
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::completed);
}

TEST_CASE_FIXTURE(Timeouts, "why the server has ended a session is said in its words") {
    Inbox hasty({database.conninfo(), {.patience = 0s}}, "payments");
    const std::string message = message_of<DatabaseError>([&] {
        static_cast<void>(hasty.run(
            "a", [](pqxx::work& tx) { tx.exec("SELECT pg_terminate_backend(pg_backend_pid())"); }));
    });
    CHECK(contains(message, "terminating connection due to administrator command"));
    CHECK(contains(message, "user=orizuru"));
}

} // namespace session_timeouts_test
