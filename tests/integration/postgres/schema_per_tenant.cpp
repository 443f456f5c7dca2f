// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Tables in a schema for each tenant: the functions and triggers work in their own schema, whatever
// search_path is when they run.

#include "integration/postgres/ledger_fixture.hpp"
#include "integration/postgres/outbox_fixture.hpp"

#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/outbox.hpp>
#include <orizuru/postgres/outbox_relay.hpp>
#include <orizuru/postgres/schema.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <string>
#include <vector>

namespace schema_per_tenant_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

/// The tables in the schemas `a` and `b c`, and none elsewhere.
struct Tenants : QueueFixture {
    Tenants() {
        for (const std::string schema : {"a", "\"b c\""}) {
            sql("CREATE SCHEMA " + schema);
            Schema(of(schema)).apply();
        }
    }
    Tenants(const Tenants&) = delete;
    Tenants& operator=(const Tenants&) = delete;
    ~Tenants() {
        sql("DROP SCHEMA IF EXISTS a CASCADE; DROP SCHEMA IF EXISTS \"b c\" CASCADE;"
            "DROP SCHEMA IF EXISTS renamed CASCADE;"
            "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC");
    }

    std::string conninfo = emptied_database();
    pqxx::connection connection{conninfo};
    const std::string b = "\"b c\"";

    /// The same database, with one schema in search_path.
    [[nodiscard]] Database of(std::string schema) const {
        for (std::size_t at = 0; (at = schema.find(' ', at)) != std::string::npos; at += 3) {
            schema.replace(at, 1, "\\\\ ");
        }
        return {conninfo + " options='-c search_path=" + schema + "'"};
    }
    [[nodiscard]] Database of(const std::string& schema, const std::string& prefix) const {
        return {of(schema).conninfo(), {.prefix = prefix}};
    }
    pqxx::result sql(const std::string& statement) {
        return pqxx::nontransaction(connection)
            .exec("SET client_min_messages = warning;" + statement);
    }
    int number(const std::string& query) { return sql(query)[0][0].as<int>(); }
    std::string text(const std::string& query) { return sql(query)[0][0].as<std::string>(); }
    std::uint64_t relay(const std::string& schema) {
        return OutboxRelay(of(schema), uri, {.on_event = {}}).relay();
    }
    /// Does something in one schema, and commits in another one.
    template <class Use>
    void commit_elsewhere(const std::string& schema, const std::string& other, Use use) {
        pqxx::work tx(connection);
        tx.exec("SET LOCAL search_path = " + schema);
        use(tx);
        tx.exec("SET LOCAL search_path = " + other);
        tx.commit();
    }
    /// What a reconciler or a relay that sleeps for a minute says.
    void fall_asleep(const std::string& schema, const std::string& who) {
        sql("SET search_path = " + schema + "; SELECT orizuru_doze('" + who +
            "', 60000); RESET search_path");
    }
};

TEST_CASE_FIXTURE(Tenants, "a message is sent by the relay of the schema in which it was pushed") {
    for (const OutboxOrder order : {OutboxOrder::commits, OutboxOrder::none}) {
        const Outbox<std::string> outbox("q", {.order = order});
        commit_elsewhere("a", b, [&](pqxx::work& tx) { outbox.push(tx, "for a"); });
        CHECK(relay(b) == 0);
        CHECK(relay("a") == 1);
        commit_elsewhere(b, "pg_catalog", [&](pqxx::work& tx) { outbox.push(tx, "for b"); });
        CHECK(relay("a") == 0);
        CHECK(relay(b) == 1);
    }
    CHECK(redis.llen("q") == 4);
}

TEST_CASE_FIXTURE(Tenants, "messages for two schemas in one transaction are sent once each") {
    for (const OutboxOrder order : {OutboxOrder::commits, OutboxOrder::none}) {
        const Outbox<std::string> outbox("q", {.order = order});
        commit_elsewhere("a", b, [&](pqxx::work& tx) {
            outbox.push(tx, "for a");
            tx.exec("SET LOCAL search_path = " + b);
            outbox.push(tx, "for b");
        });
        CHECK(relay("a") == 1);
        CHECK(relay(b) == 1);
    }
    Texts payloads;
    for (const std::string& bytes : oldest_first("q")) {
        payloads.push_back(job_of(bytes).payload);
    }
    CHECK(payloads == Texts{"for a", "for b", "for a", "for b"});
}

TEST_CASE_FIXTURE(Tenants, "a message in no order wakes a relay that sleeps in its schema only") {
    pqxx::connection listening(conninfo);
    Listener listener(listening, "orizuru_outbox");
    const Outbox<std::string> outbox("q", {.order = OutboxOrder::none});
    fall_asleep("a", "outbox");
    commit_elsewhere("a", b, [&](pqxx::work& tx) { outbox.push(tx, "x"); });
    CHECK(listener.since() == 1);
    commit_elsewhere(b, "a", [&](pqxx::work& tx) { outbox.push(tx, "x"); });
    CHECK(listener.since() == 0);
}

TEST_CASE_FIXTURE(Tenants, "a job wakes a reconciler that sleeps in its schema only") {
    pqxx::connection listening(conninfo);
    Listener listener(listening, "orizuru_ledger");
    Ledger<std::string> of_a(of("a"), "q");
    Ledger<std::string> of_b(of(b), "q");
    fall_asleep("a", "ledger");
    commit_elsewhere("a", b, [&](pqxx::work& tx) { of_a.submit(tx, "x"); });
    CHECK(listener.since() == 1);
    commit_elsewhere(b, "a", [&](pqxx::work& tx) { of_b.submit(tx, "x"); });
    CHECK(listener.since() == 0);
    CHECK(LedgerReconciler(of("a"), uri).reconcile().sent == 1);
}

TEST_CASE_FIXTURE(Tenants, "a change that names its table is recorded in the history beside it") {
    Ledger<std::string> ledger(of("a"), "q");
    const std::string id = ledger.submit("x");
    for (const std::string& path : {b, std::string("public")}) {
        sql("SET search_path = " + path);
        sql("UPDATE a.orizuru_ledger SET state = 'dead', error = 'no' WHERE id = '" + id + "'");
        CHECK(ledger.history(id).back().to == LedgerState::dead);
        sql("UPDATE a.orizuru_ledger SET state = 'pending', max_attempts = 50 WHERE id = '" + id +
            "'");
        CHECK(ledger.history(id).back().to == LedgerState::pending);
    }
    CHECK(number("SELECT count(*) FROM \"b c\".orizuru_ledger_history") == 0);
}

TEST_CASE_FIXTURE(Tenants, "a function that is called by its schema works there") {
    Ledger<std::string> of_a(of("a"), "q");
    Ledger<std::string> of_b(of(b), "q");
    of_a.submit_once("j", "x");
    of_b.submit_once("j", "x");
    sql("SET search_path = " + b);
    CHECK(text("SELECT verdict FROM a.orizuru_ledger_claim('j'::text, 'w', 60000)") == "claimed");
    CHECK(of_a.find("j")->state == LedgerState::running);
    CHECK(of_b.find("j")->state == LedgerState::pending);
    CHECK(of_a.cancel("j", "no"));
    CHECK(of_b.cancel("j", "no"));
    CHECK(number("SELECT a.orizuru_ledger_purge('q', 0)") == 1);
    CHECK(of_b.find("j"));
    sql("SELECT a.orizuru_inbox_mark('s', 'i', 0)");
    CHECK(number("SELECT count(*) FROM a.orizuru_inbox") == 1);
    sql("SELECT a.orizuru_wake('ledger'), a.orizuru_doze('outbox', 1)");
    for (const std::string who : {"ledger", "outbox"}) {
        CHECK(number("SELECT (last_value > 1)::int FROM a.orizuru_" + who + "_sleep") == 1);
        CHECK(number("SELECT last_value FROM orizuru_" + who + "_sleep") == 1);
    }
}

TEST_CASE_FIXTURE(Tenants, "a run may work in another schema") {
    Ledger<std::string> ledger(of("a"), "q");
    const std::string id = ledger.submit("x");
    const auto other_schema = [&](pqxx::work& tx) { tx.exec("SET LOCAL search_path = " + b); };
    CHECK(ledger.run(id, other_schema) == LedgerOutcome::completed);
    CHECK(ledger.run(id, other_schema) == LedgerOutcome::repeated);
    const auto ids = ledger.submit_all(Texts{"x", "y"});
    CHECK(ledger.run_batch(ids, [&](pqxx::work& tx, auto) { other_schema(tx); }) ==
          std::vector(2, LedgerOutcome::completed));
    Inbox inbox(of("a"), "s");
    CHECK(inbox.run("i", other_schema) == InboxOutcome::ran);
    CHECK(inbox.run("i", other_schema) == InboxOutcome::repeated);
}

TEST_CASE_FIXTURE(Tenants,
                  "no function of the library looks a table or a function up by search_path") {
    // A name of the library that stands in no string, and that no schema precedes.
    const auto unbound = sql("SELECT proname, (regexp_match(prosrc, "
                             "'(?:^|[^[:alnum:]_.''\"])(orizuru_\\w+)'))[1] FROM pg_proc "
                             "WHERE proname LIKE 'orizuru_%' AND prosrc ~ "
                             "'(^|[^[:alnum:]_.''\"])orizuru_'");
    for (const auto& row : unbound) {
        FAIL_CHECK(row[0].as<std::string>() << " uses " << row[1].as<std::string>());
    }
    CHECK(number("SELECT count(*) FROM pg_proc WHERE prosrc LIKE '%\"b c\".orizuru_ledger%' "
                 "AND pronamespace = 'a'::regnamespace") == 0);
    CHECK(number("SELECT count(*) FROM pg_proc WHERE prosrc LIKE '%\"b c\".orizuru_ledger%'") > 5);
}

TEST_CASE_FIXTURE(Tenants,
                  "the tables of a schema that was renamed are refused until they are bound") {
    const Outbox<std::string> outbox("q");
    {
        Ledger<std::string> ledger(of("a"), "q");
        ledger.submit_once("j", "x");
    }
    sql("ALTER SCHEMA a RENAME TO renamed");
    const Database database = of("renamed");
    const auto refusal = [](auto use) { return message_of<SchemaError>(use); };
    CHECK(contains(refusal([&] { Ledger<std::string>(database, "q"); }), "work in the schema 'a'"));
    CHECK(contains(refusal([&] { Inbox(database, "s"); }), "see Schema::apply"));
    CHECK(contains(refusal([&] { OutboxRelay(database, uri); }), "work in the schema 'a'"));
    const auto push = [&] {
        commit_elsewhere("renamed", b, [&](pqxx::work& tx) { outbox.push(tx, "x"); });
    };
    CHECK_THROWS_AS(push(), pqxx::failure);
    CHECK(Schema(database).apply() == Schema::version);
    push();
    CHECK(relay("renamed") == 1);
    CHECK(Ledger<std::string>(database, "q").find("j"));
    CHECK(LedgerReconciler(database, uri).reconcile().sent == 1);
}

TEST_CASE_FIXTURE(Tenants,
                  "a copy whose functions work in the schema from which they came is refused") {
    // As a tool does that copies definitions without a look at the functions' sources.
    sql("DO $$ DECLARE f record; BEGIN "
        "FOR f IN SELECT pg_get_functiondef(oid) AS definition FROM pg_proc WHERE pronamespace = "
        "'a'::regnamespace LOOP EXECUTE replace(f.definition, 'FUNCTION a.', 'FUNCTION \"b c\".');"
        "END LOOP; END $$");
    CHECK(contains(message_of<SchemaError>([&] { OutboxRelay(of(b), uri); }), "schema 'a'"));
    for (const OutboxOrder order : {OutboxOrder::commits, OutboxOrder::none}) {
        const Outbox<std::string> outbox("q", {.order = order});
        const auto push = [&] {
            commit_elsewhere(b, "a", [&](pqxx::work& tx) { outbox.push(tx, "x"); });
        };
        CHECK(contains(message_of<pqxx::sql_error>(push),
                       "of the schema \"b c\" have the functions of the schema a"));
        CHECK(number("SELECT count(*) FROM a.orizuru_outbox_order") == 0);
    }
    CHECK(Schema(of(b)).apply() == Schema::version);
    commit_elsewhere(b, "a", [&](pqxx::work& tx) { Outbox<std::string>("q").push(tx, "x"); });
    CHECK(relay(b) == 1);
    CHECK(relay("a") == 0);
}

TEST_CASE_FIXTURE(Tenants, "a role with the rights that are granted can use the schema's tables") {
    sql("DROP ROLE IF EXISTS \"o'neil $do$\"; CREATE ROLE \"o'neil $do$\" LOGIN");
    const auto as_role = [&](const std::string& schema) {
        return Database(of(schema).conninfo() + " user='o\\'neil $do$'");
    };
    const auto refusal = [&] { return message_of<SchemaError>([&] { Inbox(as_role(b), "s"); }); };
    CHECK(contains(refusal(), "has no right to USAGE on schema \"b c\""));
    CHECK(contains(refusal(), "'o'neil $do$'"));
    CHECK(contains(
        message_of<SchemaError>([&] { static_cast<void>(Schema(as_role("a")).applied()); }),
        "no right to USAGE on schema a, where the tables 'orizuru_...' are"));
    CHECK_THROWS_AS(Schema(as_role("public,a")).apply(), SchemaError);
    {
        pqxx::connection owner(of(b).conninfo());
        pqxx::nontransaction transaction(owner);
        for (const TableUse use : {TableUse::inbox, TableUse::outbox, TableUse::relay,
                                   TableUse::ledger, TableUse::reconcile, TableUse::purge}) {
            transaction.exec(Schema(of(b)).grants("o'neil $do$", use));
        }
    }
    CHECK(Inbox(as_role(b), "s").run("i", [](pqxx::work&) {}) == InboxOutcome::ran);
    CHECK(Inbox(as_role(b), "s").purge(0s) == 1);
    {
        pqxx::connection user(as_role(b).conninfo());
        pqxx::work tx(user);
        Outbox<std::string>("q").push(tx, "x");
        tx.commit();
    }
    CHECK(OutboxRelay(as_role(b), uri).relay() == 1);
    Ledger<std::string> ledger(as_role(b), "jobs");
    const std::string id = ledger.submit("x");
    CHECK(LedgerReconciler(as_role(b), uri).reconcile().sent == 1);
    CHECK(ledger.run(id, [](pqxx::work&) {}) == LedgerOutcome::completed);
    CHECK(ledger.purge(0s) == 1);
    CHECK_THROWS_AS(Inbox(as_role("a"), "s"), SchemaError);
    sql("DROP OWNED BY \"o'neil $do$\"; DROP ROLE \"o'neil $do$\"");
}

TEST_CASE_FIXTURE(Tenants, "a migration goes to where the tables are, not to the first schema") {
    sql("DROP SCHEMA a CASCADE; CREATE SCHEMA a; CREATE SCHEMA renamed; SET search_path = a;" +
        sql_of_version(of("a"), 13) + "RESET search_path");
    const Database both(conninfo + " options='-c search_path=renamed,a'");
    CHECK(Schema(both).apply() == 13);
    CHECK(number("SELECT count(*) FROM pg_proc WHERE pronamespace = 'renamed'::regnamespace") == 0);
    CHECK(text("SELECT a.orizuru_home()") == "a");
    sql("SET search_path = renamed, a; " + Schema(both).sql(Schema::version));
    CHECK(number("SELECT count(*) FROM pg_proc WHERE pronamespace = 'renamed'::regnamespace") == 0);
}

/// Everything that the functions do, once.
void use_all(const Database& database, const std::string& uri) {
    for (const OutboxOrder order : {OutboxOrder::commits, OutboxOrder::none}) {
        pqxx::connection user(database.conninfo());
        pqxx::work tx(user);
        Outbox<std::string>("q", {.prefix = database.prefix(), .order = order}).push(tx, "x");
        tx.commit();
        CHECK(OutboxRelay(database, uri, {.on_event = {}}).relay() == 1);
    }
    Ledger<std::string> ledger(database, database.prefix());
    const std::vector<std::string> ids = ledger.submit_all(Texts{"x", "y", "z"});
    CHECK(LedgerReconciler(database, uri, {.on_event = {}}).reconcile().sent == 3);
    CHECK(ledger.run(ids[0], [](pqxx::work&) {}) == LedgerOutcome::completed);
    CHECK(ledger.run_batch(std::vector{ids[1]}, [](pqxx::work&, auto) {}) ==
          std::vector{LedgerOutcome::completed});
    CHECK(ledger.cancel(ids[2], "no"));
    CHECK(ledger.purge(0s) == 3);
    Inbox inbox(database, "s");
    CHECK(inbox.run("i", [](pqxx::work&) {}) == InboxOutcome::ran);
    CHECK(inbox.purge(0s) == 1);
    pqxx::connection user(database.conninfo());
    for (const std::string who : {"outbox", "ledger"}) {
        CHECK_NOTHROW(pqxx::nontransaction(user).exec("SELECT " + database.prefix() + "wake('" +
                                                      who + "'), " + database.prefix() + "doze('" +
                                                      who + "', 1)"));
    }
}

TEST_CASE_FIXTURE(Tenants,
                  "a prefix may begin the names of columns, or of another prefix's tables") {
    const Texts prefixes{"job", "q", "id", "st", "t", "s", "x_", "x_outbox_", "x_ledger_"};
    for (const std::string& prefix : prefixes) {
        CAPTURE(prefix);
        Schema(of(b, prefix)).apply();
        sql("SET search_path = a;" + sql_of_version(of("a", prefix), 13) + "RESET search_path");
    }
    for (const std::string& prefix : prefixes) {
        CHECK(Schema(of("a", prefix)).apply() == 13);
    }
    const auto use_each = [&](const std::string& schema) {
        for (const std::string& prefix : prefixes) {
            CAPTURE(schema);
            CAPTURE(prefix);
            use_all(of(schema, prefix), uri);
        }
    };
    use_each("a");
    use_each(b);
    sql("ALTER SCHEMA a RENAME TO renamed");
    for (const std::string& prefix : prefixes) {
        Schema(of("renamed", prefix)).apply();
    }
    use_each("renamed");
}

TEST_CASE_FIXTURE(Tenants, "the name of a schema may have what ends a string in SQL") {
    const std::string name = "\"$p$ $function$ $bind$ o'neil \\1\"";
    sql("ALTER SCHEMA a RENAME TO " + name);
    sql("ALTER DATABASE test SET search_path = " + name);
    const Database database(conninfo);
    CHECK(Schema(database).apply() == Schema::version);
    use_all(database, uri);
    sql("ALTER SCHEMA " + name + " RENAME TO a");
}

TEST_CASE_FIXTURE(Tenants, "a migration does without standard_conforming_strings") {
    const std::string off = " options='-c search_path=renamed -c standard_conforming_strings=off'";
    for (const bool printed : {false, true}) {
        sql("CREATE SCHEMA renamed");
        const Database database(conninfo + off);
        if (printed) {
            pqxx::connection user(database.conninfo());
            pqxx::nontransaction(user).exec(Schema(database).sql());
        } else {
            Schema(database).apply();
        }
        use_all(database, uri);
        sql("DROP SCHEMA renamed CASCADE");
    }
}

TEST_CASE_FIXTURE(Tenants, "a migration leaves it to its new functions to be executed by all") {
    sql("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;"
        "DROP ROLE IF EXISTS producing; CREATE ROLE producing LOGIN;"
        "CREATE SCHEMA renamed; SET search_path = renamed;" +
        sql_of_version(of("renamed"), 13) +
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA renamed TO producing; RESET search_path");
    Schema(of("renamed")).apply();
    sql("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC; SET search_path = "
        "renamed;" +
        Schema(of("renamed")).grants("producing", TableUse::outbox) +
        Schema(of("renamed")).grants("producing", TableUse::purge) +
        Schema(of("renamed")).grants("producing", TableUse::inbox) +
        Schema(of("renamed")).grants("producing", TableUse::reconcile) + "RESET search_path");
    const Database database(of("renamed").conninfo() + " user=producing");
    for (const OutboxOrder order : {OutboxOrder::commits, OutboxOrder::none}) {
        pqxx::connection user(database.conninfo());
        pqxx::work tx(user);
        Outbox<std::string>("q", {.order = order}).push(tx, "x");
        CHECK_NOTHROW(tx.commit());
    }
    Inbox inbox(database, "s");
    CHECK(inbox.run("i", [](pqxx::work&) {}) == InboxOutcome::ran);
    CHECK(inbox.purge(0s) == 1);
    CHECK_NOTHROW(LedgerReconciler(database, uri).reconcile());
    sql("DROP OWNED BY producing; DROP ROLE producing");
}

} // namespace schema_per_tenant_test
