// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The ledger's tables: the rights that they need, how they are purged, and that finished jobs cost
// nothing.

#include "integration/postgres/ledger_fixture.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/schema.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ledger_tables_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct Tables : LedgerFixture {
    /// A role with only the rights of one use; it is dropped with the fixture.
    struct Role {
        Role(Tables& tables, TableUse use) : fixture(tables) {
            fixture.sql("CREATE ROLE " + name + " LOGIN");
            const std::string all = Schema(fixture.database).grants(name, use);
            fixture.sql(all);
            grants = table_grants(all);
        }
        Role(const Role&) = delete;
        Role& operator=(const Role&) = delete;
        ~Role() { fixture.sql("DROP OWNED BY " + name + "; DROP ROLE " + name); }

        [[nodiscard]] Database database() const {
            return {fixture.database.conninfo() + " user=" + name, {.patience = 0ms}};
        }
        void take_back(std::string grant) const {
            grant.replace(0, 5, "REVOKE");
            grant.replace(grant.find(" TO "), 4, " FROM ");
            fixture.sql(grant);
        }
        void take_back_all() const {
            for (const std::string& grant : grants) {
                take_back(grant);
            }
        }

        Tables& fixture;
        std::string name = "role_of_" + fixture.text("SELECT current_database()");
        std::vector<std::string> grants;
    };

    int sequential_scans() {
        return number("SELECT coalesce(sum(seq_scan), 0) FROM pg_stat_user_tables "
                      "WHERE relname IN ('orizuru_ledger', 'orizuru_ledger_history')");
    }
    /// Whether all other sessions have ended: then their counts are visible.
    bool others_ended() {
        return eventually([this] {
            return number("SELECT count(*) FROM pg_stat_activity WHERE datname = "
                          "current_database() AND pid <> pg_backend_pid() "
                          "AND backend_type = 'client backend'") == 0;
        });
    }

    /// Checks that the constructor demands each of the role's rights, and that an operation fails
    /// without it, unless only the constructor needs it, or `run`, which never fails.
    template <class Made>
    void check_rights(TableUse use, const std::function<Made(const Database&)>& make,
                      const std::function<bool(Made&)>& operations) {
        Role role(*this, use);
        REQUIRE(role.grants.size() > 1);
        Made all = make(role.database());
        CHECK(operations(all));
        for (const std::string& grant : role.grants) {
            CAPTURE(grant);
            role.take_back(grant);
            CHECK(contains(message_of<SchemaError>([&] { make(role.database()); }),
                           "has no right to "));
            if (!contains(grant, "_schema ") &&
                !contains(grant, "INSERT ON TABLE orizuru_ledger_queue") &&
                !contains(grant, "UPDATE ON TABLE orizuru_ledger_sleep")) {
                CHECK_THROWS(static_cast<void>(operations(all)));
            }
            sql(grant);
        }
        CHECK(operations(all));
    }

    void fill(int count, const std::string& age) {
        sql("ALTER TABLE orizuru_ledger DISABLE TRIGGER USER");
        sql("INSERT INTO orizuru_ledger (id, queue, payload, state, attempt, max_attempts, token, "
            "worker, finished_at) SELECT 'old' || n, 'q', 'x', 'completed', 1, 3, 1, 'w', "
            "clock_timestamp() - interval '" +
            age + "' FROM generate_series(1, " + std::to_string(count) + ") AS n");
        sql("ALTER TABLE orizuru_ledger ENABLE TRIGGER USER");
        sql("INSERT INTO orizuru_ledger_history (job, at, who, to_state, attempt) "
            "SELECT id, finished_at, 'w', 'completed', 1 FROM orizuru_ledger, "
            "generate_series(1, 2)");
    }
};

TEST_CASE_FIXTURE(Tables, "the rights of a ledger are enough, and none can be left out") {
    LedgerOptions slow = options();
    slow.retry.backoff = backoff::fixed(1h);
    using Made = std::unique_ptr<Ledger<std::string>>;
    check_rights<Made>(
        TableUse::ledger,
        [&](const Database& own) { return std::make_unique<Ledger<std::string>>(own, "q", slow); },
        [](Made& ledger) {
            const std::string id = ledger->submit("x");
            const auto ran = ledger->run(id, [](pqxx::work&) {});
            const std::string other = ledger->submit("x");
            return ran == LedgerOutcome::completed && ledger->history(id).size() == 3 &&
                   ledger->find(id)->state == LedgerState::completed &&
                   ledger->run(other, fail) == LedgerOutcome::failed &&
                   ledger->give_up(other, "x") && ledger->list(LedgerState::dead).size() == 1 &&
                   ledger->revive(other) && ledger->count().dead == 0;
        });
}

TEST_CASE_FIXTURE(Tables, "the rights of a reconciler are enough, and none can be left out") {
    Ledger<std::string> ledger(database, "q", options());
    using Made = std::unique_ptr<LedgerReconciler>;
    LedgerReconcilerOptions often = reconciling();
    often.sweep = 100ms;
    check_rights<Made>(
        TableUse::reconcile,
        [&](const Database& own) { return std::make_unique<LedgerReconciler>(own, uri, often); },
        [&](Made& reconciler) {
            const std::string id = ledger.submit("x");
            sql("SELECT orizuru_ledger_claim('" + id + "', 'w', 0)");
            redis.flushall();
            const bool ended = reconciler->reconcile().lease_ended > 0;
            CHECK_THROWS_AS(static_cast<void>(Consumer<Job<int>>(uri, "q").next(0ms)), DecodeError);
            return ended && eventually([&] { return reconciler->reconcile().buried > 0; });
        });
}

TEST_CASE_FIXTURE(Tables, "the rights of purge and ledger are enough to purge") {
    Role role(*this, TableUse::ledger);
    const std::string purges = Schema(database).grants(role.name, TableUse::purge);
    Ledger<std::string> ledger(role.database(), "q", options());
    fill(10, "2 h");
    CHECK_THROWS(ledger.purge(1h));
    sql(purges);
    CHECK(ledger.purge(1h) == 10);
    for (const std::string privilege :
         {"SELECT, DELETE ON orizuru_ledger_history", "DELETE ON orizuru_ledger"}) {
        sql("REVOKE " + privilege + " FROM " + role.name);
        CHECK_THROWS(ledger.purge(1h));
        sql("GRANT " + privilege + " TO " + role.name);
    }
}

// Rights can be taken back while an object lives.
TEST_CASE_FIXTURE(Tables, "a refusal of PostgreSQL is a DatabaseError with its words") {
    Role role(*this, TableUse::ledger);
    Ledger<std::string> ledger(role.database(), "q", options());
    const std::string id = ledger.submit("x");
    const auto refusal = [&](auto call) {
        const std::string message = message_of<DatabaseError>(call);
        CHECK(contains(message, "permission denied for table orizuru_ledger"));
        CHECK(contains(message, role.database().address() + ": "));
    };
    refusal([&] { ledger.purge(1h); });
    refusal([&] { ledger.run(id, [&](pqxx::work&) { role.take_back_all(); }); });
    refusal([&] { ledger.run(id, nothing); });
    refusal([&] { ledger.give_up(id, "x"); });
    refusal([&] { ledger.submit("x"); });
    refusal([&] { static_cast<void>(ledger.find(id)); });
    refusal([&] { static_cast<void>(ledger.history(id)); });
    pqxx::connection connection(role.database().conninfo());
    pqxx::work transaction(connection);
    CHECK_THROWS_AS(ledger.submit(transaction, "x"), pqxx::insufficient_privilege);
}

TEST_CASE_FIXTURE(Tables, "a database that can only be read is a DatabaseError") {
    Ledger<std::string> ledger(database, "q", options());
    const std::string id = ledger.submit("x");
    sql("ALTER DATABASE " + text("SELECT current_database()") +
        " SET default_transaction_read_only = on");
    const auto refused = [](auto call) {
        CHECK(contains(message_of<DatabaseError>(call), "read-only"));
    };
    refused([&] { Ledger<std::string>(Database(database.conninfo()), "q", options()); });
    CHECK(ledger.run(id, nothing) == LedgerOutcome::completed); // over the session from before
    refused([&] { Schema(Database(database.conninfo(), {.prefix = "other_"})).apply(); });
}

TEST_CASE_FIXTURE(Tables, "purging forgets old finished jobs, in steps of a thousand") {
    Ledger<std::string> ledger(database, "q", options());
    fill(2500, "2 h");
    const std::string pending = ledger.submit("x");
    const std::string fresh = ledger.submit("x");
    CHECK(ledger.run(fresh, nothing) == LedgerOutcome::completed);
    sql("UPDATE orizuru_ledger_history SET at = at"); // may be written to like any table
    CHECK(Ledger<std::string>(database, "other", options()).purge(0s) == 0);
    CHECK(number("SELECT orizuru_ledger_purge('q', 3600)") == 1000);
    CHECK(ledger.purge(1h) == 1500);
    CHECK(ledger.purge(1h) == 0);
    CHECK(number("SELECT count(*) FROM orizuru_ledger") == 2);
    CHECK(number("SELECT count(DISTINCT job) FROM orizuru_ledger_history") == 2);
    CHECK(ledger.purge(0s) == 1);
    CHECK(state(pending) == "pending");
    CHECK(ledger.run("old1", nothing) == LedgerOutcome::unknown);
}

TEST_CASE_FIXTURE(Tables, "an impossible age forgets nothing") {
    Ledger<std::string> ledger(database, "q", options());
    fill(1, "1 h");
    for (const std::chrono::seconds age :
         {std::chrono::seconds(-1), std::chrono::seconds::min(), std::chrono::seconds::max()}) {
        CHECK_THROWS_AS(ledger.purge(age), std::invalid_argument);
    }
    CHECK(number("SELECT count(*) FROM orizuru_ledger") == 1);
    CHECK(ledger.purge(std::chrono::hours(24 * 365 * 100)) == 0);
}

TEST_CASE_FIXTURE(Tables, "what is planned for few jobs would not read the whole table of many") {
    fill(10, "1 h");
    pqxx::nontransaction(postgres_connection).exec("VACUUM ANALYZE");
    REQUIRE(others_ended());
    sql("SELECT pg_stat_force_next_flush()");
    const int sequential = sequential_scans();
    {
        Ledger<std::string> ledger(database, "q", options());
        LedgerReconciler reconciler(database, uri, reconciling());
        for (int i = 0; i < 10; ++i) { // a plan is kept from the sixth time on
            const auto jobs = ledger.submit_all(std::vector<std::string>{"x", "y", "z"});
            CHECK(reconciler.reconcile().sent == 3);
            CHECK(ledger.run(jobs[0], [](pqxx::work&) {}) == LedgerOutcome::completed);
            CHECK(ledger.run_batch(std::span(jobs).subspan(1), [](pqxx::work&, auto) {}) ==
                  std::vector(2, LedgerOutcome::completed));
        }
    }
    REQUIRE(others_ended());
    CHECK(sequential_scans() == sequential);
}

TEST_CASE_FIXTURE(Tables, "a trigger of yours that reads a table is not compiled for each claim") {
    sql("CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF current_setting('jit') = 'on' AND current_setting('enable_seqscan') = 'off' THEN "
        "RAISE 'each scan is compiled'; END IF; RETURN NULL; END $$;"
        "CREATE TRIGGER look AFTER UPDATE ON orizuru_ledger FOR EACH ROW EXECUTE FUNCTION look()");
    Ledger<std::string> ledger(database, "q", options());
    const auto jobs = ledger.submit_all(std::vector<std::string>{"x", "y", "z"});
    CHECK(LedgerReconciler(database, uri, reconciling()).reconcile().sent == 3);
    CHECK(ledger.run(jobs[0], [](pqxx::work&) {}) == LedgerOutcome::completed);
    CHECK(ledger.run_batch(std::span(jobs).subspan(1), [](pqxx::work&, auto) {}) ==
          std::vector(2, LedgerOutcome::completed));
}

TEST_CASE_FIXTURE(Tables, "nothing reads the finished jobs, however many there are") {
    fill(100'000, "1 h");
    sql("ANALYZE");
    const auto used = [this](const std::string& index) {
        return number("SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = "
                      "'orizuru_ledger_" +
                      index + "'");
    };
    const auto read = [this] {
        return number("SELECT sum(idx_tup_read) FROM pg_stat_user_indexes "
                      "WHERE relname = 'orizuru_ledger'");
    };
    REQUIRE(others_ended());
    sql("SELECT pg_stat_force_next_flush()");
    const int sequential = sequential_scans();
    const int before = read();
    {
        Ledger<std::string> ledger(database, "q", options());
        LedgerReconciler reconciler(database, uri, reconciling());
        for (int i = 0; i < 20; ++i) {
            const std::string id = ledger.submit("x");
            const std::string other = ledger.submit("y");
            reconciler.reconcile();
            CHECK(ledger.run(id, [](pqxx::work&) {}) == LedgerOutcome::completed);
            CHECK(ledger.run(other, fail) == LedgerOutcome::failed);
            reconciler.reconcile();
        }
        CHECK(ledger.purge(24h) == 0);
    }
    REQUIRE(others_ended());
    CHECK(sequential_scans() == sequential);
    CHECK(used("due") > 40);
    CHECK(used("pending") > 40);
    CHECK(used("finished") == 1);
    CHECK(read() - before < 10'000);
}

} // namespace ledger_tables_test
