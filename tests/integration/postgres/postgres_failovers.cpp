// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Sessions to a server that can only be read: a standby has taken over from it, or an operator has
// fenced it.

#include "integration/postgres/ledger_fixture.hpp"
#include "integration/postgres/outbox_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/postgres_server.hpp"

#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/outbox.hpp>
#include <orizuru/postgres/outbox_relay.hpp>
#include <orizuru/postgres/schema.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <atomic>
#include <chrono>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace postgres_failovers_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

/// One server, with the tables.
struct OneServer : QueueFixture {
    OneServer() {
        Schema(server.conninfo()).apply();
        server.ask("CREATE TABLE effects (id text)");
    }

    PostgresServer server;

    void fence(bool on) { server.set("default_transaction_read_only", on ? "on" : "off"); }
};

/// Its name goes on to lead to it.
Database whatever_it_can(const PostgresServer& server, std::chrono::milliseconds patience = 30s) {
    return {server.conninfo() + " target_session_attrs=any", {.patience = patience}};
}

/// A primary, whose standby takes over while clients are connected.
struct TwoServers : OneServer {
    PostgresServer standby{PostgresServer::StandbyOf{server}};
    Database database{"host=" + server.folder() + ',' + standby.folder() +
                      " dbname=postgres user=orizuru"};

    /// The old primary goes on to answer those who read.
    void fail_over() {
        fence(true);
        const std::string last = server.ask("SELECT pg_current_wal_lsn()");
        REQUIRE(eventually([&] {
            return standby.ask("SELECT pg_last_wal_replay_lsn() >= '" + last + "'") == "t";
        }));
        standby.promote();
    }
};

auto effect(const std::string& id) {
    return [id](pqxx::work& tx) { tx.exec("INSERT INTO effects VALUES ('" + id + "')"); };
}

TEST_CASE_FIXTURE(TwoServers, "work goes on at the new primary although the old one answers") {
    Ledger<std::string> ledger(database, "q");
    Inbox inbox(database, "payments");
    const std::string before = ledger.submit("x");
    CHECK(inbox.run("a", effect("a")) == InboxOutcome::ran);
    fail_over();
    CHECK(ledger.run(before, effect(before)) == LedgerOutcome::completed);
    const std::string after = ledger.submit("y");
    CHECK(ledger.run(after, effect(after)) == LedgerOutcome::completed);
    CHECK(inbox.run("b", effect("b")) == InboxOutcome::ran);
    CHECK(inbox.run("a", effect("a")) == InboxOutcome::repeated);
    CHECK(standby.ask("SELECT count(*) FROM effects") == "4");
    CHECK(standby.ask("SELECT count(DISTINCT id) FROM effects") == "4");
}

TEST_CASE_FIXTURE(TwoServers, "who only reads sees what is written at the new primary although the "
                              "old one answers") {
    Ledger<std::string> ledger(database, "q");
    const std::string id = ledger.submit("x");
    fail_over();
    CHECK(Ledger<std::string>(standby.conninfo(), "q").run(id, effect(id)) ==
          LedgerOutcome::completed);
    CHECK(eventually([&] { return ledger.find(id).value().state == LedgerState::completed; }));
}

TEST_CASE_FIXTURE(TwoServers, "a relay and a reconciler that sleep hear of commits at the new "
                              "primary although the old one answers") {
    const std::jthread relaying([&](const std::stop_token& token) {
        OutboxRelay(database, uri, {.sweep = 24h, .on_event = {}}).run(token);
    });
    const std::jthread reconciling([&](const std::stop_token& token) {
        LedgerReconciler(database, uri, {.sweep = 24h}).run(token);
    });
    const auto asleep_at = [](const PostgresServer& one) {
        return one.ask("SELECT count(*) FROM orizuru_ledger_sleep, orizuru_outbox_sleep AS outbox "
                       "WHERE orizuru_ledger_sleep.last_value > 100000000000 "
                       "AND outbox.last_value > 100000000000") == "1";
    };
    REQUIRE(eventually([&] { return asleep_at(server); }));
    fail_over();
    const auto commit = [this] {
        pqxx::connection connection(standby.conninfo());
        pqxx::work tx(connection);
        Outbox<std::string>("pushed").push(tx, "x");
        tx.commit();
        Ledger<std::string>(standby.conninfo(), "submitted").submit("x");
    };
    commit();
    CHECK(eventually([&] { return redis.llen("pushed") == 1; }));
    CHECK(eventually([&] { return redis.llen("submitted") == 1; }));
    REQUIRE(eventually([&] { return asleep_at(standby); }));
    commit();
    CHECK(eventually([&] { return redis.llen("pushed") == 2; }));
    CHECK(eventually([&] { return redis.llen("submitted") == 2; }));
}

TEST_CASE_FIXTURE(OneServer, "an operation waits while the server can only be read") {
    const auto while_fenced = [this](const Database& database) {
        Ledger<std::string> ledger(database, "q");
        Inbox inbox(database, "payments");
        const std::string id = ledger.submit("x");
        CHECK(inbox.run("warm " + id, effect("warm")) == InboxOutcome::ran);
        fence(true);
        const std::jthread lifting([this] {
            std::this_thread::sleep_for(300ms);
            fence(false);
        });
        int calls = 0;
        CHECK(ledger.run(id, [&](pqxx::work& tx) {
            ++calls;
            effect(id)(tx);
        }) == LedgerOutcome::completed);
        CHECK(calls == 1);
        CHECK(inbox.run(id, effect(id)) == InboxOutcome::ran);
        CHECK(server.ask("SELECT count(*) FROM effects WHERE id = '" + id + "'") == "2");
    };
    SUBCASE("by a name for the primary") { while_fenced(server.conninfo()); }
    SUBCASE("by a name for any server") { while_fenced(whatever_it_can(server)); }
}

TEST_CASE_FIXTURE(OneServer, "an operation gives up when a server can only be read for longer than "
                             "its patience") {
    Inbox inbox(whatever_it_can(server, 100ms), "payments");
    Ledger<std::string> ledger(whatever_it_can(server, 100ms), "q");
    fence(true);
    const auto refusal = [](auto call) {
        CHECK(contains(message_of<DatabaseError>(call), "read-only"));
    };
    const auto passed = time_of([&] {
        refusal([&] { static_cast<void>(inbox.run("a", effect("a"))); });
        refusal([&] { ledger.submit("x"); });
        refusal([&] { ledger.purge(1h); });
    });
    CHECK(passed < 10s);
    refusal([&] { Inbox(server.conninfo(), "payments"); });
    fence(false);
    CHECK(inbox.run("a", effect("a")) == InboxOutcome::ran);
    CHECK_NOTHROW(ledger.submit("x"));
}

// The jobs that are left come again when their leases have ended.
TEST_CASE_FIXTURE(OneServer, "a batch ends at once when the server can only be read") {
    Ledger<std::string> ledger(whatever_it_can(server, 0ms), "q");
    const auto ids = ledger.submit_all(std::vector<std::string>{"x", "y", "z"});
    int calls = 0;
    CHECK_THROWS_AS(ledger.run_batch(ids,
                                     [&](pqxx::work&, std::span<const std::size_t>) {
                                         if (++calls == 1) {
                                             fence(true);
                                             throw std::runtime_error("no");
                                         }
                                     }),
                    DatabaseError);
    CHECK(calls == 2);
}

TEST_CASE_FIXTURE(OneServer, "a relay takes a server that can only be read for one that is away, "
                             "not for a queue that fails") {
    std::atomic<int> told = 0;
    OutboxRelay relay(whatever_it_can(server, 0ms), uri,
                      {.on_event = [&](const OutboxEvent&) { ++told; }});
    {
        pqxx::connection connection(server.conninfo());
        pqxx::work tx(connection);
        Outbox<std::string>("q").push(tx, "x");
        Outbox<std::string>("p").push(tx, "x");
        tx.commit();
    }
    fence(true);
    CHECK_THROWS_AS(relay.relay(), DatabaseError);
    CHECK(told == 0);
    fence(false);
    CHECK(relay.relay() == 2);
}

TEST_CASE_FIXTURE(LedgerFixture, "a function that makes its own transaction read-only has failed, "
                                 "and is not called again") {
    Ledger<std::string> ledger(database, "q", options());
    const std::string id = ledger.submit("x");
    int calls = 0;
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        ++calls;
        tx.exec("SET TRANSACTION READ ONLY");
        effect(id)(tx);
    }) == LedgerOutcome::failed);
    CHECK(calls == 1);
    CHECK(contains(ledger.find(id).value().error, "read-only"));
    Inbox inbox(database, "payments");
    CHECK_THROWS_AS(static_cast<void>(inbox.run("a",
                                                [&](pqxx::work& tx) {
                                                    ++calls;
                                                    tx.exec("SET TRANSACTION READ ONLY");
                                                    effect("a")(tx);
                                                })),
                    pqxx::sql_error);
    CHECK(calls == 2);
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::completed);
}

// As when the server can be written to again by the time that it is asked.
TEST_CASE_FIXTURE(LedgerFixture, "a statement of the library's own that could only read is tried "
                                 "again") {
    Ledger<std::string> ledger(database, "q", options());
    const std::string id = ledger.submit("x");
    sql("CREATE SEQUENCE refusals; "
        "CREATE FUNCTION refuse_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF nextval('refusals') = 1 THEN RAISE EXCEPTION 'fenced' USING ERRCODE = '25006'; END IF; "
        "RETURN NEW; END $$; "
        "CREATE TRIGGER refusing BEFORE UPDATE ON orizuru_ledger "
        "FOR EACH ROW EXECUTE FUNCTION refuse_once()");
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::completed);
}

TEST_CASE_FIXTURE(LedgerFixture, "a session that a function leaves in a failed transaction is not "
                                 "used again") {
    Ledger<std::string> ledger(database, "q", options());
    const std::string id = ledger.submit("x");
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        auto& connection = tx.conn();
        tx.abort();
        try {
            pqxx::nontransaction(connection).exec("BEGIN; SELECT 1 / 0");
        } catch (const pqxx::sql_error&) { // NOLINT(bugprone-empty-catch)
        }
        throw std::runtime_error("no");
    }) == LedgerOutcome::failed);
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::completed);
    CHECK(effects(id) == 1);
}

} // namespace postgres_failovers_test
