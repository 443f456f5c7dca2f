// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The transitions in the ledger's table, whatever program writes: every pair of a state and an
// operation, by plain SQL. The table of allowed transitions is written out here.

#include "integration/postgres/ledger_fixture.hpp"

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ledger_transitions_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

// A job in each state; states that change with time are here twice, before and after they are due.
const std::vector<std::pair<std::string, std::string>> states{
    {"pending", "'pending', 1, 4, NULL, NULL"},
    {"running", "'running', 1, 4, clock_timestamp() + interval '1 h', NULL"},
    {"ended", "'running', 1, 4, clock_timestamp(), NULL"},
    {"failed", "'failed', 1, 4, clock_timestamp() + interval '1 h', NULL"},
    {"due", "'failed', 1, 4, clock_timestamp(), NULL"},
    {"completed", "'completed', 1, 4, NULL, clock_timestamp()"},
    {"dead", "'dead', 1, 4, NULL, clock_timestamp()"}};

const std::vector<std::pair<std::string, std::string>> operations{
    {"claim", "SET state = 'running', token = token + 1, attempt = attempt + 1, worker = 'w', "
              "due = clock_timestamp() + interval '1 h'"},
    {"claim without a token", "SET state = 'running', attempt = attempt + 1, "
                              "due = clock_timestamp() + interval '1 h'"},
    {"claim with a token that was skipped",
     "SET state = 'running', token = token + 2, attempt = attempt + 1, "
     "due = clock_timestamp() + interval '1 h'"},
    {"claim with an old token", "SET state = 'running', token = token - 1, attempt = attempt + 1, "
                                "due = clock_timestamp() + interval '1 h'"},
    {"claim without an attempt", "SET state = 'running', token = token + 1, "
                                 "due = clock_timestamp() + interval '1 h'"},
    {"a token without a claim", "SET token = token + 1"},
    {"complete", "SET state = 'completed'"},
    {"complete with another token", "SET state = 'completed', token = token + 1"},
    {"fail", "SET state = 'failed', due = clock_timestamp()"},
    {"kill", "SET state = 'dead'"},
    {"put back", "SET state = 'pending'"},
    {"renew", "SET due = clock_timestamp() + interval '1 h'"},
    {"mark as sent", "SET sent_epoch = 3"},
    {"count an attempt", "SET attempt = attempt + 1"},
    {"take an attempt back", "SET attempt = attempt - 1"},
    {"another error", "SET error = 'other'"},
    {"another payload", "SET payload = 'other'"},
    {"another queue", "SET queue = 'other'"},
    {"another id", "SET id = 'other'"},
    {"more attempts", "SET max_attempts = 100"},
    {"revive", "SET state = 'pending', max_attempts = attempt + 5"},
    {"revive with a token", "SET state = 'pending', token = token + 1"},
    {"revive with an attempt back", "SET state = 'pending', attempt = attempt - 1"},
    {"revive without an attempt left", "SET state = 'pending', max_attempts = attempt"},
    {"another age", "SET created_at = created_at - interval '1 h'"},
    {"another end", "SET finished_at = clock_timestamp()"},
    {"an unknown state", "SET state = 'lost'"},
    {"delete", ""}};

const std::map<std::string, std::set<std::string>> allowed{
    {"pending", {"claim", "kill", "put back", "mark as sent", "another error"}},
    {"running", {"complete", "fail", "kill", "put back", "renew", "mark as sent", "another error"}},
    {"ended",
     {"claim", "complete", "fail", "kill", "put back", "renew", "mark as sent", "another error"}},
    {"failed", {"kill", "put back"}},
    {"due", {"claim", "kill", "put back"}},
    {"completed", {"delete"}},
    {"dead", {"delete", "put back", "revive"}}};

TEST_CASE_FIXTURE(LedgerFixture,
                  "the database allows the transitions of each state, and no others") {
    for (const auto& [state, values] : states) {
        for (const auto& [operation, change] : operations) {
            const std::string what = state + ": " + operation;
            CAPTURE(what);
            pqxx::work transaction(postgres_connection);
            transaction.exec("INSERT INTO orizuru_ledger (id, queue, payload, state, attempt, "
                             "max_attempts, due, finished_at) VALUES ('j', 'q', '', " +
                             values + ")");
            const std::string before =
                transaction.exec("SELECT j::text FROM orizuru_ledger AS j")[0][0].c_str();
            bool done = true;
            {
                pqxx::subtransaction attempted(transaction, "attempted");
                try {
                    attempted.exec(change.empty() ? "DELETE FROM orizuru_ledger"
                                                  : "UPDATE orizuru_ledger " + change);
                    attempted.commit();
                } catch (const pqxx::sql_error& error) {
                    const std::string why = error.what();
                    CHECK((contains(why, "job j") || contains(why, "check constraint")));
                    CHECK(error.sqlstate() == "23514"); // check_violation
                    done = false;
                }
            }
            CHECK(done == allowed.at(state).contains(operation));
            const auto after = transaction.exec("SELECT j::text FROM orizuru_ledger AS j");
            if (!done) {
                CHECK(after[0][0].c_str() == before);
            }
        }
    }
}

TEST_CASE_FIXTURE(LedgerFixture,
                  "a change of a job by SQL is recorded, with its author and the old state") {
    Ledger<std::string> ledger(database, "q", options());
    const std::string id = ledger.submit("x");
    sql("CREATE ROLE operator_of_" + std::to_string(postgres().pid()) + " LOGIN SUPERUSER");
    {
        pqxx::connection other(database.conninfo() + " user=operator_of_" +
                               std::to_string(postgres().pid()));
        pqxx::work transaction(other);
        transaction.exec("UPDATE orizuru_ledger SET state = 'dead', error = 'by hand'");
        transaction.commit();
    }
    const std::vector<LedgerChange> history = ledger.history(id);
    REQUIRE(history.size() == 2);
    CHECK(history[0].who.starts_with("worker:"));
    CHECK_FALSE(history[0].from);
    CHECK(history[1].who == "operator_of_" + std::to_string(postgres().pid()));
    CHECK(history[1].from == LedgerState::pending);
    CHECK(history[1].to == LedgerState::dead);
    CHECK(history[1].note == "by hand");
    CHECK(history[1].at >= history[0].at);
    const auto entry = ledger.find(id);
    REQUIRE(entry);
    CHECK(entry->state == LedgerState::dead);
    CHECK(entry->changed_by == history[1].who);
    CHECK(entry->finished_at == history[1].at);
    sql("DROP ROLE operator_of_" + std::to_string(postgres().pid()));
}

TEST_CASE_FIXTURE(LedgerFixture, "a job cannot wait for an attempt that it does not have") {
    CHECK_THROWS_AS(sql("INSERT INTO orizuru_ledger (id, queue, payload, attempt, max_attempts) "
                        "VALUES ('j', 'q', '', 3, 3)"),
                    pqxx::check_violation);
    sql("INSERT INTO orizuru_ledger (id, queue, payload, state, attempt, max_attempts, due) "
        "VALUES ('j', 'q', '', 'running', 3, 3, clock_timestamp())");
    CHECK_THROWS_AS(sql("UPDATE orizuru_ledger SET state = 'failed'"), pqxx::check_violation);
    CHECK_THROWS_AS(sql("UPDATE orizuru_ledger SET state = 'pending'"), pqxx::check_violation);
    sql("UPDATE orizuru_ledger SET state = 'dead'");
}

} // namespace ledger_transitions_test
