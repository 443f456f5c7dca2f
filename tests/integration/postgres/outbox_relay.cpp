// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Relays: several at once, waking, outages and refusals.

#include "integration/postgres/outbox_fixture.hpp"
#include "support/redis_server.hpp"

#include <orizuru/error.hpp>
#include <orizuru/postgres/error.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace outbox_relay_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct RelayFixture : OutboxFixture {
    /// The latest detail of a relay's events of one kind.
    struct Log {
        std::mutex mutex;
        std::vector<std::pair<OutboxEventKind, std::string>> told;
    };
    std::shared_ptr<Log> log = std::make_shared<Log>();

    OutboxRelayOptions options(std::chrono::milliseconds sweep = 24h) {
        return {.sweep = sweep, .on_event = [log = log](const OutboxEvent& event) {
                    const std::lock_guard lock(log->mutex);
                    log->told.emplace_back(event.kind, event.queue);
                }};
    }
    bool was_told(OutboxEventKind kind, const std::string& queue = "") {
        const std::lock_guard lock(log->mutex);
        return std::ranges::find(log->told, std::pair(kind, queue)) != log->told.end();
    }

    void commit_many(int count, const std::string& payload = {}) {
        pqxx::work tx(postgres_connection);
        for (int i = 0; i < count; ++i) {
            outbox.push(tx, std::to_string(i) + payload);
        }
        tx.commit();
    }
    /// More bytes than a connection holds that is not read.
    std::int64_t pushes() { return info("commandstats", "cmdstat_lpush:calls"); }

    /// Eight writers. Each commit has the next number of one of four queues, taken under a row
    /// lock.
    void write(int commits) {
        sql("CREATE TABLE counters (queue text PRIMARY KEY, value integer)");
        std::vector<std::jthread> writers;
        for (int writer = 0; writer < 8; ++writer) {
            writers.emplace_back([this, writer, commits] {
                pqxx::connection connection(database.conninfo());
                for (int i = 0; i < commits; ++i) {
                    write_one(connection, "q" + std::to_string((writer + i) % 4));
                }
            });
        }
    }
    static void write_one(pqxx::connection& connection, const std::string& queue) {
        pqxx::work tx(connection);
        const pqxx::result next =
            tx.exec("INSERT INTO counters VALUES (" + tx.quote(queue) +
                    ", 1) ON CONFLICT (queue) DO UPDATE SET value = counters.value + 1 "
                    "RETURNING value");
        Outbox<std::string>(queue).push(tx, next[0][0].as<std::string>());
        tx.commit();
    }
    bool all_sent(int count) {
        return eventually([&] { return number("SELECT count(*) FROM orizuru_outbox") == 0; }) &&
               redis.llen("q0") + redis.llen("q1") + redis.llen("q2") + redis.llen("q3") == count;
    }
};

Texts numbers(std::size_t count) {
    Texts texts;
    for (std::size_t i = 1; i <= count; ++i) {
        texts.push_back(std::to_string(i));
    }
    return texts;
}

TEST_CASE_FIXTURE(RelayFixture, "three relays send each queue's messages in the order of commits") {
    constexpr int commits = 100;
    {
        const RunningRelay one(database, uri, options());
        const RunningRelay two(database, uri, options());
        const RunningRelay three(database, uri, options());
        write(commits);
        CHECK(all_sent(8 * commits));
    }
    for (const std::string queue : {"q0", "q1", "q2", "q3"}) {
        CAPTURE(queue);
        CHECK(sent(queue) == numbers(2 * commits));
    }
    CHECK(log->told.empty());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(RelayFixture, "a relay is woken by a commit") {
    const RunningRelay relay(database, uri, options());
    commit("first");
    REQUIRE(eventually([&] { return redis.llen("q") == 1; }));
    for (int i = 2; i <= 5; ++i) {
        CHECK(time_of([&] {
                  commit("next");
                  CHECK(eventually([&] { return redis.llen("q") == i; }));
              }) < 3s);
    }
}

TEST_CASE_FIXTURE(RelayFixture, "the sweep finds messages without a NOTIFY") {
    const RunningRelay relay(database, uri, options(100ms));
    commit("a");
    REQUIRE(eventually([&] { return is_empty(); }));
    // As if its NOTIFY were lost.
    sql("ALTER TABLE orizuru_outbox DISABLE TRIGGER orizuru_outbox_commit");
    commit("b");
    sql("INSERT INTO orizuru_outbox_order (queue, message) "
        "SELECT queue, message FROM orizuru_outbox");
    CHECK(eventually([&] { return sent() == Texts{"a", "b"}; }));
}

TEST_CASE_FIXTURE(RelayFixture, "a relay that runs ends at once when it is to stop") {
    std::optional<RunningRelay> relay(std::in_place, database, uri, options());
    commit("a");
    REQUIRE(eventually([&] { return is_empty(); }));
    CHECK(time_of([&] { relay.reset(); }) < 5s);
}

TEST_CASE_FIXTURE(RelayFixture, "a step has as many messages as the batch, in their order") {
    commit_many(25);
    const auto before = pushes();
    CHECK(OutboxRelay(database, uri, {.batch = 10}).relay() == 25);
    CHECK(pushes() - before == 3);
    const Texts all = sent();
    REQUIRE(all.size() == 25);
    for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK(all[i] == std::to_string(i));
    }
}

TEST_CASE_FIXTURE(RelayFixture, "a step has little more than 1 MiB") {
    commit_many(10, std::string(300'000, 'x'));
    const auto before = pushes();
    CHECK(relay() == 10);
    CHECK(pushes() - before == 3); // 4, 4, 2
    CHECK(redis.llen("q") == 10);
}

TEST_CASE_FIXTURE(RelayFixture,
                  "a queue that another relay has locked is left to it, and the rest is sent") {
    commit("a", "held");
    commit("b");
    pqxx::connection other(database.conninfo());
    pqxx::work held(other);
    held.exec("SELECT FROM orizuru_outbox_queue WHERE name = 'held' FOR UPDATE");
    CHECK(OutboxRelay(Database(impatient()), uri, options()).relay() == 1);
    CHECK(sent() == Texts{"b"});
    held.abort();
    CHECK(relay() == 1);
    CHECK(sent("held") == Texts{"a"});
}

TEST_CASE_FIXTURE(RelayFixture, "another relay soon sends the messages of one that died") {
    commit("a");
    pqxx::connection other(database.conninfo());
    std::optional<pqxx::work> dying(std::in_place, other);
    dying->exec("SELECT FROM orizuru_outbox_queue FOR UPDATE");
    const RunningRelay relay(database, uri, options());
    CHECK_FALSE(eventually([&] { return redis.llen("q") == 1; }, 300ms));
    dying.reset(); // and there is no NOTIFY
    CHECK(eventually([&] { return sent() == Texts{"a"}; }));
}

TEST_CASE_FIXTURE(RelayFixture,
                  "messages that were deleted by hand are not sent, and delay nothing") {
    commit("a");
    commit("b");
    sql("DELETE FROM orizuru_outbox WHERE message = (SELECT min(message) FROM orizuru_outbox)");
    CHECK(relay() == 1);
    CHECK(sent() == Texts{"b"});
    commit("c");
    sql("DELETE FROM orizuru_outbox");
    CHECK(relay() == 0);
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(RelayFixture, "a queue that Redis refuses does not delay another") {
    redis.command({"SET", "bad", "a string"});
    commit("a", "bad");
    commit("b");
    OutboxRelay once(database, uri, options());
    CHECK_THROWS_AS(once.relay(), ReplyError);
    CHECK(was_told(OutboxEventKind::refused, "bad"));
    CHECK(sent() == Texts{"b"});
    const RunningRelay running(database, uri, options());
    for (int i = 2; i <= 10; ++i) {
        commit("c");
        CHECK(eventually([&] { return redis.llen("q") == i; }));
    }
    redis.del("bad");
    CHECK(eventually([&] { return sent("bad") == Texts{"a"}; }));
    CHECK_FALSE(was_told(OutboxEventKind::redis_failed));
}

TEST_CASE_FIXTURE(RelayFixture,
                  "a message at which Redis ends the connection does not delay another queue") {
    RedisServer server({"--client-query-buffer-limit", "1mb"});
    RedisClient client(server.uri());
    commit(std::string(3 << 20, 'x'), "large");
    commit("a");
    OutboxRelay once(database, server.uri(), options());
    CHECK_THROWS_AS(once.relay(), ConnectionError);
    CHECK(was_told(OutboxEventKind::redis_failed, "large"));
    CHECK(client.llen("q") == 1);
    const RunningRelay running(database, server.uri(), options());
    for (int i = 2; i <= 10; ++i) {
        commit("b");
        CHECK(eventually([&] { return client.llen("q") == i; }));
    }
    client.command({"CONFIG", "SET", "client-query-buffer-limit", "1gb"});
    CHECK(eventually([&] { return client.llen("large") == 1; }));
    CHECK_FALSE(was_told(OutboxEventKind::redis_failed));
}

TEST_CASE_FIXTURE(RelayFixture, "a queue at which PostgreSQL fails does not delay another") {
    sql("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'no'; END $$;"
        "CREATE TRIGGER refuse BEFORE DELETE ON orizuru_outbox_order FOR EACH ROW "
        "WHEN (OLD.queue = 'bad') EXECUTE FUNCTION refuse()");
    commit("a", "bad");
    commit("b");
    OutboxRelay once(database, uri, options());
    CHECK_THROWS_AS(once.relay(), DatabaseError);
    CHECK(was_told(OutboxEventKind::postgres_failed, "bad"));
    CHECK(sent() == Texts{"b"});
    const RunningRelay running(database, uri, options());
    for (int i = 2; i <= 10; ++i) {
        commit("c");
        CHECK(eventually([&] { return redis.llen("q") == i; }));
    }
    sql("DROP TRIGGER refuse ON orizuru_outbox_order");
    CHECK(eventually([&] { return is_empty(); }));
    CHECK(sent("bad").back() == "a");
    CHECK_FALSE(was_told(OutboxEventKind::postgres_failed));
}

TEST_CASE_FIXTURE(RelayFixture, "a relay sleeps when the cause of its failure is gone") {
    redis.command({"SET", "bad", "a string"});
    commit("a", "bad");
    const RunningRelay running(database, uri, options());
    REQUIRE(eventually([&] { return was_told(OutboxEventKind::refused, "bad"); }));
    sql("TRUNCATE orizuru_outbox, orizuru_outbox_order");
    CHECK(eventually([&] {
        const auto last_query = [&] {
            return text("SELECT max(query_start) FROM pg_stat_activity "
                        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'");
        };
        const std::string before = last_query();
        std::this_thread::sleep_for(300ms);
        return last_query() == before;
    }));
}

TEST_CASE_FIXTURE(RelayFixture, "the server ends a step that hangs for far longer than Redis may") {
    sql("CREATE TABLE timeouts (value text);"
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO timeouts "
        "VALUES (current_setting('idle_in_transaction_session_timeout')); RETURN NULL; END $$;"
        "CREATE TRIGGER note BEFORE DELETE ON orizuru_outbox_order FOR EACH STATEMENT "
        "EXECUTE FUNCTION note()");
    const auto timeout_with = [&](const std::string& query) {
        sql("TRUNCATE timeouts");
        commit("a");
        OutboxRelay(database, uri + query, options()).relay();
        return text("SELECT value FROM timeouts");
    };
    CHECK(timeout_with("") == "30s");
    CHECK(timeout_with("?connect_timeout=10000&command_timeout=15000") == "50s");
}

TEST_CASE_FIXTURE(RelayFixture, "a relay that loses its session in a step leaves it to others") {
    RedisServer server;
    commit("a");
    std::optional<RunningRelay> frozen(std::in_place, database,
                                       server.uri() + "?command_timeout=60000", options());
    REQUIRE(eventually([&] { return is_empty(); }));
    server.pause();
    commit("b");
    commit("c", "p");
    REQUIRE(eventually([&] {
        return number("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = "
                      "'idle in transaction' AND query LIKE '%encode(payload%'") == 1;
    }));
    {
        RedisServer other;
        OutboxRelay relay(database, other.uri(), options());
        CHECK(eventually([&] {
            relay.relay();
            return is_empty();
        }));
    }
    server.resume();
    RedisClient client(server.uri());
    CHECK(eventually([&] { return client.llen("q") == 2; })); // by the step that was frozen
    CHECK(eventually([&] { return was_told(OutboxEventKind::postgres_failed, "q"); }));
    commit("d");
    CHECK(eventually([&] { return client.llen("q") == 3; }));
}

TEST_CASE_FIXTURE(RelayFixture,
                  "messages that are committed while Redis is away are sent when it is back") {
    RedisServer server;
    const RunningRelay relay(database, server.uri(), options());
    server.kill();
    commit("a");
    commit("b", "p");
    CHECK(eventually([&] { return was_told(OutboxEventKind::redis_failed); }));
    CHECK_FALSE(is_empty());
    server.restart();
    CHECK(eventually([&] { return is_empty(); }));
    RedisClient client(server.uri());
    CHECK(client.llen("q") == 1);
    CHECK(client.llen("p") == 1);
}

TEST_CASE_FIXTURE(RelayFixture, "a relay reads its notifications while Redis is away") {
    RedisServer server;
    const RunningRelay relay(database, server.uri(), options());
    server.kill();
    commit("a");
    REQUIRE(eventually([&] { return was_told(OutboxEventKind::redis_failed); }));
    notify("outbox", 1000);
    CHECK(all_is_read());
    server.restart();
    CHECK(eventually([&] { return is_empty(); }));
}

TEST_CASE_FIXTURE(RelayFixture, "a relay reads its notifications while it works off a backlog") {
    sql("CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END $$;"
        "CREATE TRIGGER slow BEFORE DELETE ON orizuru_outbox_order FOR EACH STATEMENT "
        "EXECUTE FUNCTION sleep()");
    commit_many(1000);
    OutboxRelayOptions one_by_one = options();
    one_by_one.batch = 1;
    const RunningRelay relay(database, uri, one_by_one);
    REQUIRE(eventually([&] { return redis.llen("q") > 0; }));
    notify("outbox", 200);
    CHECK(all_is_read());
    CHECK_FALSE(is_empty());
}

TEST_CASE_FIXTURE(RelayFixture,
                  "a single pass says which of the two servers is away, and moves nothing") {
    RedisServer server;
    OutboxRelay relay(database, server.uri(), options());
    commit("a");
    server.kill();
    CHECK_THROWS_AS(relay.relay(), ConnectionError);
    server.restart();
    postgres().kill();
    CHECK_THROWS_AS(relay.relay(), DatabaseError);
    postgres().restart();
    CHECK(relay.relay() == 1);
    CHECK(RedisClient(server.uri()).llen("q") == 1);
}

TEST_CASE_FIXTURE(RelayFixture, "a relay goes on, and is woken, after PostgreSQL was restarted") {
    const RunningRelay relay(database, uri, options());
    commit("a");
    REQUIRE(eventually([&] { return is_empty(); }));
    postgres().kill();
    CHECK(eventually([&] { return was_told(OutboxEventKind::postgres_failed); }));
    postgres().restart();
    pqxx::connection connection(database.conninfo());
    for (const std::string payload : {"b", "c"}) {
        pqxx::work tx(connection);
        outbox.push(tx, payload);
        tx.commit();
        CHECK(eventually([&] { return sent().back() == payload; }));
    }
    CHECK(sent() == Texts{"a", "b", "c"});
}

TEST_CASE_FIXTURE(RelayFixture, "the database's default isolation does not matter to a relay") {
    const Database serializable(database.conninfo() +
                                " options='-c default_transaction_isolation=serializable'");
    {
        const RunningRelay one(serializable, uri, options());
        const RunningRelay two(serializable, uri, options());
        write(50);
        CHECK(all_sent(400));
    }
    CHECK(sent("q0") == numbers(100));
    CHECK(log->told.empty());
}

TEST_CASE_FIXTURE(RelayFixture, "a relay refuses what cannot be") {
    const auto make = [&](OutboxRelayOptions options) { OutboxRelay(database, uri, options); };
    CHECK_THROWS_AS(make({.batch = 0}), std::invalid_argument);
    CHECK_THROWS_AS(make({.batch = 1001}), std::invalid_argument);
    CHECK_THROWS_AS(make({.sweep = 99ms}), std::invalid_argument);
    CHECK_THROWS_AS(make({.sweep = 24h + 1ms}), std::invalid_argument);
    CHECK_THROWS_AS(OutboxRelay(Database(new_database()), uri, {}), SchemaError);
    CHECK_THROWS_AS(OutboxRelay(Database("host=/nowhere"), uri, {}), DatabaseError);
    CHECK_THROWS_AS(OutboxRelay(database, "unix:///nowhere", {}), ConnectionError);
}

TEST_CASE_FIXTURE(RelayFixture, "a look costs what waits, not the queues that were ever used") {
    sql("INSERT INTO orizuru_outbox_queue SELECT 'q' || n FROM generate_series(1, 20000) n");
    for (const std::string queue : {"q7", "q", "q19000"}) {
        commit("x", queue);
        pqxx::work tx(postgres_connection);
        Outbox<std::string>(queue, {.order = OutboxOrder::none}).push(tx, "y");
        tx.commit();
    }
    const auto searches = [this] {
        // Other sessions have counted when they have ended.
        REQUIRE(eventually([this] {
            return number("SELECT count(*) FROM pg_stat_activity WHERE datname = "
                          "current_database() AND pid <> pg_backend_pid() "
                          "AND backend_type = 'client backend'") == 0;
        }));
        return number("SELECT sum(idx_scan) + sum(seq_scan) + sum(seq_tup_read) FROM "
                      "pg_stat_user_tables WHERE relname LIKE 'orizuru_outbox%'");
    };
    const int before = searches();
    CHECK(relay() == 6);
    CHECK(searches() - before < 200);
    CHECK(sent("q19000") == Texts{"x", "y"});
}

TEST_CASE_FIXTURE(RelayFixture, "a relay needs each of the rights of TableUse::relay") {
    sql("DROP ROLE IF EXISTS relay; CREATE ROLE relay LOGIN");
    const std::string grants = Schema(database).grants("relay", TableUse::relay);
    sql(grants);
    const Database as_relay(database.conninfo() + " user=relay");
    OutboxRelay relay(as_relay, uri, options());
    for (const std::string& grant : table_grants(grants)) {
        CAPTURE(grant);
        commit("a");
        sql("REVOKE" + grant.substr(5, grant.rfind(" TO ") - 5) + " FROM relay");
        CHECK_THROWS_AS(OutboxRelay(as_relay, uri, {}), SchemaError);
        // The constructor alone looks at the one, and only `run` sleeps.
        if (!contains(grant, "orizuru_schema") && !contains(grant, "orizuru_outbox_sleep")) {
            CHECK_THROWS_AS(relay.relay(), DatabaseError);
        }
        sql(grant);
        CHECK(relay.relay() == 1);
    }
    CHECK(table_grants(grants).size() == 8);
    sql("DROP OWNED BY relay");
}

} // namespace outbox_relay_test
