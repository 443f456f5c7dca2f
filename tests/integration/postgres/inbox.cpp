// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Effects in PostgreSQL, once for each id.

#include "integration/postgres/postgres_fixture.hpp"
#include "integration/postgres/postgres_proxy.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"
#include "support/proxy.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/msgpack.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace inbox_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct InboxFixture : PostgresFixture, QueueFixture {
    InboxFixture() {
        sql("CREATE TABLE effects (id text)");
        sql("CREATE TABLE accounts (id integer PRIMARY KEY, balance integer NOT NULL)");
        sql("INSERT INTO accounts VALUES (1, 0), (2, 0)");
    }

    static void effect(pqxx::work& tx, const std::string& id) {
        tx.exec("INSERT INTO effects VALUES (" + tx.quote(id) + ")");
    }
    static void pay(pqxx::work& tx, int account) {
        tx.exec("UPDATE accounts SET balance = balance + 1 WHERE id = " + std::to_string(account));
    }
    /// Ends the session by the server; throws the resulting exception.
    void lose_session(pqxx::work& tx) {
        const auto pid = tx.exec("SELECT pg_backend_pid()")[0][0].as<std::string>();
        sql("SELECT pg_terminate_backend(" + pid + ")");
        tx.exec("SELECT 1");
    }
    /// For functions that throw.
    template <class F>
    void run(const std::string& id, F f) {
        static_cast<void>(inbox.run(id, f));
    }
    int effects() { return number("SELECT count(*) FROM effects"); }
    int marks() { return number("SELECT count(*) FROM orizuru_inbox"); }
    int balance(int account) {
        return number("SELECT balance FROM accounts WHERE id = " + std::to_string(account));
    }

    /// A consumer that holds the message `a`.
    MessageGuard<std::string> delivered() {
        producer.push("a");
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        return std::move(*guard);
    }

    Producer<std::string> producer{uri, "q"};
    Consumer<std::string> consumer{uri, "q", {.lease = 1h}};
    Inbox inbox{database, "payments"};
};

TEST_CASE_FIXTURE(InboxFixture, "a message that is delivered twice has one effect and two acks") {
    producer.push_all({"a", "a"});
    std::vector<InboxOutcome> outcomes;
    while (auto guard = consumer.next(0ms)) {
        outcomes.push_back(inbox.process(*guard, **guard, effect));
        CHECK(guard->settled());
    }
    CHECK(outcomes == std::vector{InboxOutcome::ran, InboxOutcome::repeated});
    CHECK(effects() == 1);
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(InboxFixture, "each scope processes an id once") {
    Inbox other(database, "letters");
    const auto add = [](pqxx::work& tx) { effect(tx, "a"); };
    CHECK(inbox.run("a", add) == InboxOutcome::ran);
    CHECK(other.run("a", add) == InboxOutcome::ran);
    CHECK(inbox.run("a", add) == InboxOutcome::repeated);
    CHECK(effects() == 2);
}

TEST_CASE_FIXTURE(InboxFixture,
                  "no session sees the effects or the mark before both are committed") {
    auto guard = delivered();
    inbox.process(guard, "a", [&](pqxx::work& tx, const std::string& id) {
        effect(tx, id);
        CHECK(effects() == 0);
        CHECK(marks() == 0);
        CHECK_FALSE(guard.settled());
    });
    CHECK(effects() == 1);
    CHECK(marks() == 1);
    CHECK(guard.settled());
}

TEST_CASE_FIXTURE(
    InboxFixture,
    "what the function throws rolls its effects back and leaves the message unsettled") {
    auto guard = delivered();
    const auto fail = [&](pqxx::work& tx, const std::string& id) {
        effect(tx, id);
        throw std::runtime_error("no money");
    };
    CHECK(message_of<std::runtime_error>([&] { inbox.process(guard, "a", fail); }) == "no money");
    CHECK_FALSE(guard.settled());
    CHECK(effects() == 0);
    CHECK(inbox.process(guard, "a", effect) == InboxOutcome::ran);
    CHECK(effects() == 1);
}

TEST_CASE_FIXTURE(InboxFixture, "a statement that PostgreSQL refuses is not tried again") {
    int calls = 0;
    CHECK_THROWS_AS(run("a",
                        [&](pqxx::work& tx) {
                            ++calls;
                            tx.exec("INSERT INTO accounts VALUES (1, 0)");
                        }),
                    pqxx::unique_violation);
    CHECK(calls == 1);
    CHECK(marks() == 0);
}

TEST_CASE_FIXTURE(InboxFixture, "what PostgreSQL refuses of the function's effects at the COMMIT "
                                "is as pqxx throws it") {
    sql("CREATE TABLE children (account integer REFERENCES accounts DEFERRABLE INITIALLY "
        "DEFERRED)");
    CHECK_THROWS_AS(run("a", [](pqxx::work& tx) { tx.exec("INSERT INTO children VALUES (3)"); }),
                    pqxx::foreign_key_violation);
    CHECK(marks() == 0);
}

TEST_CASE_FIXTURE(InboxFixture,
                  "a mark that PostgreSQL refuses is a DatabaseError with its words") {
    const auto refusal = [this] {
        return message_of<DatabaseError>(
            [this] { run("a", [](pqxx::work&) { FAIL("was called"); }); });
    };
    sql("ALTER TABLE orizuru_inbox ADD CHECK (id <> 'a')");
    CHECK(contains(refusal(), "violates check constraint"));
    CHECK(contains(refusal(), database.address() + ": "));
    sql("DROP TABLE orizuru_inbox");
    CHECK(contains(refusal(), "orizuru_inbox"));
    CHECK(contains(message_of<DatabaseError>([this] { inbox.purge(1h); }), "orizuru_inbox"));
}

TEST_CASE_FIXTURE(InboxFixture, "a database that can only be read is a DatabaseError") {
    const std::string name = text("SELECT current_database()");
    sql("ALTER DATABASE " + name + " SET default_transaction_read_only = on");
    // With sessions of its own.
    Inbox reading({database.conninfo() + " target_session_attrs=any", {.patience = 0s}},
                  "payments");
    const auto refusal = [](auto call) {
        const std::string message = message_of<DatabaseError>(call);
        CHECK(contains(message, "read-only"));
        CHECK(contains(message, "user=orizuru"));
    };
    refusal([&] { static_cast<void>(reading.run("a", [](pqxx::work&) { FAIL("was called"); })); });
    refusal([&] { reading.purge(1h); });
    refusal([&] { Inbox(Database(database.conninfo()), "payments"); });
}

TEST_CASE_FIXTURE(InboxFixture, "a statement's failure that the function swallows is no success") {
    CHECK_THROWS_AS(run("a",
                        [&](pqxx::work& tx) {
                            effect(tx, "a");
                            CHECK_THROWS(tx.exec("INSERT INTO accounts VALUES (1, 0)"));
                        }),
                    std::logic_error);
    CHECK(effects() == 0);
    CHECK(inbox.run("a", [](pqxx::work& tx) { effect(tx, "a"); }) == InboxOutcome::ran);
    CHECK(effects() == 1);
}

TEST_CASE_FIXTURE(InboxFixture, "a function that ends its transaction gets an error") {
    CHECK_THROWS_AS(run("a", [](pqxx::work& tx) { tx.abort(); }), std::logic_error);
    CHECK_THROWS_AS(run("a", [](pqxx::work& tx) { tx.exec("ROLLBACK"); }), std::logic_error);
    CHECK_THROWS_AS(run("a",
                        [](pqxx::work& tx) {
                            tx.exec("ROLLBACK");
                            tx.exec("BEGIN");
                            effect(tx, "b");
                        }),
                    std::logic_error);
    CHECK(marks() == 0);
    CHECK(effects() == 0);
}

TEST_CASE_FIXTURE(InboxFixture, "of two deliveries at once the second waits for the first") {
    std::atomic<int> inside = 0;
    std::atomic<bool> together = false;
    std::vector<InboxOutcome> outcomes(2);
    const auto run = [&](InboxOutcome& outcome) {
        outcome = inbox.run("a", [&](pqxx::work& tx) {
            together = together || ++inside > 1;
            effect(tx, "a");
            // The other one is waiting for this transaction.
            CHECK(eventually([&] {
                return number("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = "
                              "'transactionid'") == 1;
            }));
            --inside;
        });
    };
    std::thread other([&] { run(outcomes[0]); });
    run(outcomes[1]);
    other.join();
    std::ranges::sort(outcomes);
    CHECK(outcomes == std::vector{InboxOutcome::ran, InboxOutcome::repeated});
    CHECK_FALSE(together);
    CHECK(effects() == 1);
}

TEST_CASE_FIXTURE(InboxFixture, "the second of two deliveries runs when the first fails") {
    std::barrier both_inside(2);
    std::thread other([&] {
        CHECK_THROWS(run("a", [&](pqxx::work& tx) {
            both_inside.arrive_and_wait();
            effect(tx, "first");
            throw std::runtime_error("no money");
        }));
    });
    both_inside.arrive_and_wait();
    CHECK(inbox.run("a", [](pqxx::work& tx) { effect(tx, "second"); }) == InboxOutcome::ran);
    other.join();
    CHECK(text("SELECT string_agg(id, ',') FROM effects") == "second");
}

TEST_CASE_FIXTURE(InboxFixture,
                  "a delivery whose id another transaction keeps goes to the back of its queue") {
    Inbox hasty(database, "payments", {.wait = 50ms});
    auto guard = delivered();
    CHECK(inbox.run("a", [&](pqxx::work&) {
        bool called = false;
        producer.push("b");
        CHECK(hasty.process(guard, "a", [&](pqxx::work&, const std::string&) { called = true; }) ==
              InboxOutcome::busy);
        CHECK_FALSE(called);
    }) == InboxOutcome::ran);
    CHECK(guard.settled());
    CHECK(waiting() == Texts{msgpack_str("b"), msgpack_str("a")});
}

TEST_CASE_FIXTURE(InboxFixture,
                  "a worker's job whose id another transaction keeps comes again, and "
                  "has its effect when that one fails") {
    pqxx::connection connection(database.conninfo());
    std::optional<pqxx::work> other(std::in_place, connection);
    other->exec("INSERT INTO orizuru_inbox VALUES ('payments', 'a'), ('payments', 'b')");
    Inbox hasty(database, "payments", {.wait = 50ms});
    std::atomic<int> put_off = 0;
    std::atomic<int> thrown = 0;
    Worker worker(uri, {.signal_handling = SignalHandling::none,
                        .collect_interval = std::nullopt,
                        .on_event = {}});
    const auto run = [&](const std::string& id) {
        return hasty.run(id, [&](pqxx::work& tx) { effect(tx, id); });
    };
    worker.handle<std::string>("put off", [&](const std::string& id, JobContext<std::string>& job) {
        if (run(id) == InboxOutcome::busy) {
            ++put_off;
            push_after(*job.guard(), 100ms);
        }
    });
    worker.handle<std::string>(
        "thrown",
        [&](const std::string& id) {
            if (run(id) == InboxOutcome::busy) {
                ++thrown;
                throw std::runtime_error("busy");
            }
        },
        {.retry = {.max_attempts = 1'000'000, .backoff = backoff::fixed(100ms)}});
    JobProducer<std::string>(uri, "put off").push("a");
    JobProducer<std::string>(uri, "thrown").push("b");
    const Running running(worker);
    CHECK(eventually([&] { return put_off > 1 && thrown > 1; }));
    CHECK(effects() == 0);
    other.reset();
    CHECK(eventually([this] {
        return number("SELECT count(DISTINCT id) FROM effects") == 2 && effects() == 2;
    }));
}

TEST_CASE_FIXTURE(InboxFixture, "without a wait a delivery whose id is being processed is busy") {
    Inbox hasty(database, "payments", {.wait = 0ms});
    CHECK(inbox.run("a", [&](pqxx::work&) {
        CHECK(hasty.run("a", [](pqxx::work&) { FAIL("was called"); }) == InboxOutcome::busy);
    }) == InboxOutcome::ran);
}

TEST_CASE_FIXTURE(InboxFixture, "the function has the lock_timeout that the user has set") {
    Inbox patient(Database(database.conninfo() + " options='-c lock_timeout=1234'"), "payments");
    CHECK(patient.run("a", [](pqxx::work& tx) {
        CHECK(tx.exec("SHOW lock_timeout")[0][0].as<std::string>() == "1234ms");
    }) == InboxOutcome::ran);
}

TEST_CASE_FIXTURE(InboxFixture, "two transactions in a deadlock both come to their end") {
    std::atomic<int> calls = 0;
    std::barrier first_locked(2);
    const auto run = [&](const std::string& id, int first, int second) {
        bool waited = false;
        CHECK(inbox.run(id, [&](pqxx::work& tx) {
            ++calls;
            pay(tx, first);
            if (!std::exchange(waited, true)) {
                first_locked.arrive_and_wait();
            }
            pay(tx, second);
        }) == InboxOutcome::ran);
    };
    std::thread other([&] { run("a", 1, 2); });
    run("b", 2, 1);
    other.join();
    CHECK(calls > 2);
    CHECK(balance(1) == 2);
    CHECK(balance(2) == 2);
}

TEST_CASE_FIXTURE(InboxFixture, "serializable transactions are tried again until they fit") {
    Inbox serializable(
        Database(database.conninfo() + " options='-c default_transaction_isolation=serializable'"),
        "payments");
    constexpr int threads = 4;
    std::atomic<int> calls = 0;
    std::barrier all_inside(threads);
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) {
        workers.emplace_back([&, i] {
            bool waited = false;
            CHECK(serializable.run(std::to_string(i), [&](pqxx::work& tx) {
                ++calls;
                const int found =
                    tx.exec("SELECT balance FROM accounts WHERE id = 1")[0][0].as<int>();
                if (!std::exchange(waited, true)) {
                    all_inside.arrive_and_wait();
                }
                tx.exec("UPDATE accounts SET balance = " + std::to_string(found + 1) +
                        " WHERE id = 1");
            }) == InboxOutcome::ran);
        });
    }
    std::ranges::for_each(workers, &std::thread::join);
    CHECK(calls > threads);
    CHECK(balance(1) == threads);
}

TEST_CASE_FIXTURE(InboxFixture,
                  "a delivery whose COMMIT is refused while another one commits has not run") {
    sql("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$;"
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW WHEN (NEW.id = 'first') EXECUTE FUNCTION refuse()");
    std::future<InboxOutcome> other;
    CHECK(inbox.run("a", [&](pqxx::work& tx) {
        effect(tx, "first");
        if (other.valid()) {
            return;
        }
        other = std::async(std::launch::async, [this] {
            return inbox.run("a", [](pqxx::work& own) { effect(own, "second"); });
        });
        CHECK(eventually([this] {
            return number("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = "
                          "'transactionid'") == 1;
        }));
    }) == InboxOutcome::repeated);
    CHECK(other.get() == InboxOutcome::ran);
    CHECK(text("SELECT string_agg(id, ',') FROM effects") == "second");
}

TEST_CASE_FIXTURE(InboxFixture, "a session that the server ends is begun anew, with one effect") {
    int calls = 0;
    CHECK(inbox.run("a", [&](pqxx::work& tx) {
        effect(tx, "a");
        if (++calls == 1) {
            lose_session(tx);
        }
    }) == InboxOutcome::ran);
    CHECK(calls == 2);
    CHECK(effects() == 1);
}

TEST_CASE_FIXTURE(InboxFixture, "a function that took longer than the patience before its session "
                                "ended is called again") {
    Inbox hasty(Database(database.conninfo(), {.patience = 1s}), "payments");
    int calls = 0;
    CHECK(hasty.run("a", [&](pqxx::work& tx) {
        effect(tx, "a");
        if (++calls == 1) {
            std::this_thread::sleep_for(2s);
            lose_session(tx);
        }
    }) == InboxOutcome::ran);
    CHECK(calls == 2);
    CHECK(effects() == 1);
}

TEST_CASE_FIXTURE(InboxFixture,
                  "without patience either an idle session that was ended is replaced") {
    Inbox hasty(Database(database.conninfo(), {.patience = 0s}), "payments");
    const std::string others = "FROM pg_stat_activity WHERE datname = current_database() AND "
                               "pid <> pg_backend_pid()";
    sql("SELECT pg_terminate_backend(pid) " + others);
    REQUIRE(eventually([&] { return number("SELECT count(*) " + others) == 0; }));
    CHECK(hasty.run("a", [](pqxx::work& tx) { effect(tx, "a"); }) == InboxOutcome::ran);
}

TEST_CASE_FIXTURE(InboxFixture, "without patience a lost session is not begun anew") {
    Inbox hasty(Database(database.conninfo(), {.patience = 0s}), "payments");
    int calls = 0;
    const auto ends_its_session = [&](pqxx::work& tx) {
        ++calls;
        tx.exec("SELECT pg_terminate_backend(pg_backend_pid())");
    };
    CHECK_THROWS_AS(static_cast<void>(hasty.run("a", ends_its_session)), DatabaseError);
    CHECK(calls == 1);
    CHECK(hasty.run("a", [](pqxx::work&) {}) == InboxOutcome::ran);
}

TEST_CASE_FIXTURE(InboxFixture,
                  "an error of another connection inside the function passes through") {
    int calls = 0;
    CHECK_THROWS_AS(run("a",
                        [&](pqxx::work&) {
                            ++calls;
                            const pqxx::connection other("host=/tmp/orizuru-nowhere");
                        }),
                    pqxx::broken_connection);
    CHECK(calls == 1);
    CHECK(marks() == 0);
}

TEST_CASE("work goes on when PostgreSQL is killed and started in the middle of it") {
    PostgresServer own;
    Database database(own.conninfo());
    Schema(database).apply();
    Inbox inbox(database, "payments");
    pqxx::connection before(own.conninfo());
    pqxx::nontransaction(before).exec("CREATE TABLE effects (id text)");
    int calls = 0;
    CHECK(inbox.run("a", [&](pqxx::work& tx) {
        tx.exec("INSERT INTO effects VALUES ('a')");
        if (++calls == 1) {
            own.restart();
        }
    }) == InboxOutcome::ran);
    CHECK(calls == 2);
    pqxx::connection after(own.conninfo());
    CHECK(pqxx::nontransaction(after).exec("SELECT count(*) FROM effects")[0][0].as<int>() == 1);
}

/// Returns when so many connections of the inbox's database are idle.
void leave_idle(Inbox& inbox, int connections) {
    std::barrier all_inside(connections);
    std::vector<std::jthread> workers;
    for (int i = 0; i < connections; ++i) {
        workers.emplace_back([&, i] {
            CHECK(inbox.run(std::to_string(i), [&](pqxx::work&) {
                all_inside.arrive_and_wait();
            }) == InboxOutcome::ran);
        });
    }
}

TEST_CASE("connections that a restart has ended do not use up an operation's patience") {
    PostgresServer own;
    Database database(own.conninfo(), {.patience = 3s});
    Schema(database).apply();
    Inbox inbox(database, "payments");
    leave_idle(inbox, 40);
    own.restart();
    CHECK(inbox.run("a", [](pqxx::work&) {}) == InboxOutcome::ran);
}

TEST_CASE_FIXTURE(InboxFixture,
                  "connections that a firewall has forgotten, which is seen only when they are "
                  "used, do not use up an operation's patience") {
    PostgresProxy way;
    Inbox own(way.to(database), "payments");
    leave_idle(own, 40);
    constexpr auto to_server = Relay::Direction::to_server;
    for (std::size_t i = 0; i < way.proxy.accepted(); ++i) {
        way.proxy.cut_after(to_server, way.proxy.bytes(i, to_server), Relay::Cut::rst, i);
    }
    CHECK(own.run("a", [](pqxx::work&) {}) == InboxOutcome::ran);
}

TEST_CASE("an operation gives up when PostgreSQL is away for longer than its patience") {
    PostgresServer own;
    Database database(own.conninfo() + " password=secret", {.patience = 100ms});
    Schema(database).apply();
    Inbox inbox(database, "payments");
    own.stop();
    const std::string message = message_of<DatabaseError>(
        [&] { static_cast<void>(inbox.run("a", [](pqxx::work&) { FAIL("was called"); })); });
    CHECK(contains(message, "user=orizuru"));
    CHECK_FALSE(contains(message, "secret"));
}

TEST_CASE_FIXTURE(InboxFixture, "one effect, wherever the connection to PostgreSQL ends") {
    PostgresProxy way;
    int run = 0;
    const int rounds = cut_everywhere(
        way, [&] { return std::make_unique<Inbox>(way.to(database), "payments"); },
        [&](Inbox& cut) {
            const std::string id = std::to_string(++run);
            REQUIRE(cut.run(id, [&](pqxx::work& tx) { effect(tx, id); }) == InboxOutcome::ran);
            REQUIRE(number("SELECT count(*) FROM effects WHERE id = '" + id + "'") == 1);
        },
        9);
    CHECK(rounds > 50);
}

TEST_CASE_FIXTURE(InboxFixture, "a message whose lease is lost has its effect, and no other one") {
    auto guard = delivered();
    CHECK(inbox.process(guard, "a", [&](pqxx::work& tx, const std::string& id) {
        effect(tx, id);
        redis.command({"DEL", heartbeat(consumer.name())});
        GarbageCollector(uri, "q", {.grace = 0ms}).collect();
    }) == InboxOutcome::ran);
    auto again = consumer.next(patience);
    REQUIRE(again);
    CHECK(inbox.process(*again, "a", effect) == InboxOutcome::repeated);
    CHECK(effects() == 1);
}

TEST_CASE_FIXTURE(InboxFixture,
                  "a forked child is refused, and leaves its parent's sessions alone") {
    const auto session_for = [this](const std::string& id) {
        std::string pid;
        CHECK(inbox.run(id, [&](pqxx::work& tx) {
            pid = tx.exec("SELECT pg_backend_pid()")[0][0].as<std::string>();
        }) == InboxOutcome::ran);
        return pid;
    };
    const std::string before = session_for("a");
    CHECK(status_of_child([this] {
              for (int i = 0; i < 3; ++i) { // an idle connection, and none
                  if (!is_logic_error([&] { run("b", [](pqxx::work&) {}); }) ||
                      !is_logic_error([&] { inbox.purge(1h); })) {
                      return not_as_expected;
                  }
              }
              std::destroy_at(&inbox);
              return as_expected;
          }) == as_expected);
    CHECK(session_for("b") == before);
}

TEST_CASE_FIXTURE(InboxFixture, "marks older than an age are forgotten, in steps, in this scope") {
    sql("INSERT INTO orizuru_inbox SELECT 'payments', n::text, now() - interval '2 days' FROM "
        "generate_series(1, 2500) n");
    sql("INSERT INTO orizuru_inbox VALUES ('letters', 'a', now() - interval '2 days')");
    sql("INSERT INTO orizuru_inbox VALUES ('payments', 'new', now() - interval '23 hours')");
    CHECK(inbox.purge(24h) == 2500);
    CHECK(inbox.purge(24h) == 0);
    CHECK(marks() == 2);
    CHECK_THROWS_AS(inbox.purge(-1s), std::invalid_argument);
    CHECK_THROWS_AS(inbox.purge(std::chrono::seconds::max()), std::invalid_argument);
    CHECK(marks() == 2);
}

TEST_CASE_FIXTURE(InboxFixture, "a mark that a foreign key refers to stays, and the rest goes") {
    sql("INSERT INTO orizuru_inbox SELECT 'payments', n::text, now() - interval '2 days' FROM "
        "generate_series(1, 2500) n");
    sql("INSERT INTO orizuru_inbox VALUES ('letters', '7', now() - interval '2 days')");
    sql("CREATE TABLE receipts (scope text, id text, "
        "FOREIGN KEY (scope, id) REFERENCES orizuru_inbox DEFERRABLE INITIALLY DEFERRED);"
        "INSERT INTO receipts VALUES ('payments', '7'), ('payments', '2400')");
    std::vector<std::string> held;
    CHECK(inbox.purge(24h, [&](std::string_view id, std::string_view reason) {
        held.emplace_back(id);
        CHECK(contains(std::string(reason), "receipts"));
    }) == 2498);
    std::ranges::sort(held);
    CHECK(held == std::vector<std::string>{"2400", "7"});
    CHECK(marks() == 3);
    CHECK(inbox.purge(24h) == 0);
}

TEST_CASE_FIXTURE(InboxFixture, "a purge leaves an id that is marked anew meanwhile") {
    sql("INSERT INTO orizuru_inbox SELECT 'payments', id, now() - interval '2 days' "
        "FROM unnest('{a, b}'::text[]) AS id");
    sql("CREATE TABLE receipts (scope text, id text, FOREIGN KEY (scope, id) REFERENCES "
        "orizuru_inbox); INSERT INTO receipts VALUES ('payments', 'a')");
    // The purge has read which are old, and waits before it comes to `b`. Then `a` fails, and `b`
    // is tried alone.
    sql("CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN "
        "PERFORM set_config(''lock_timeout'', ''0'', true), pg_advisory_xact_lock(7); "
        "RETURN OLD; END'; CREATE TRIGGER pause BEFORE DELETE ON orizuru_inbox "
        "FOR EACH ROW WHEN (OLD.id = 'a') EXECUTE FUNCTION pause()");
    pqxx::connection pausing(database.conninfo());
    pqxx::work pause(pausing);
    pause.exec("SELECT pg_advisory_xact_lock(7)");
    auto purged = std::async(std::launch::async, [&] { return inbox.purge(24h); });
    CHECK(someone_dozes_off());
    CHECK(number("SELECT purged FROM orizuru_purge('inbox', 'payments', 86400, 0, '{a}')") == 1);
    CHECK(inbox.run("b", [](pqxx::work& tx) { effect(tx, "b"); }) == InboxOutcome::ran);
    pause.commit();
    CHECK(purged.get() == 0);
    CHECK(inbox.run("b", [](pqxx::work& tx) { effect(tx, "b"); }) == InboxOutcome::repeated);
    CHECK(effects() == 1);
}

TEST_CASE_FIXTURE(InboxFixture, "a purge reads only old marks") {
    sql("INSERT INTO orizuru_inbox SELECT 'payments', n::text FROM generate_series(1, 5000) n");
    sql("ANALYZE orizuru_inbox");
    const auto counted = [this](const std::string& what) {
        return number("SELECT " + what +
                      " FROM pg_stat_user_indexes WHERE indexrelname = "
                      "'orizuru_inbox_processed_at'");
    };
    // The session counts when it ends.
    CHECK(Inbox(database, "payments").purge(24h) == 0);
    REQUIRE(eventually([&] { return counted("idx_scan") > 0; }));
    CHECK(counted("idx_tup_read") == 0);
}

TEST_CASE_FIXTURE(InboxFixture, "many threads share the connections of an inbox") {
    constexpr int threads = 8;
    constexpr int ids = 200;
    std::vector<std::thread> workers;
    std::atomic<int> ran = 0;
    for (int i = 0; i < threads; ++i) {
        workers.emplace_back([&] {
            for (int id = 0; id < ids; ++id) {
                const auto outcome = inbox.run(
                    std::to_string(id), [&](pqxx::work& tx) { effect(tx, std::to_string(id)); });
                ran += outcome == InboxOutcome::ran ? 1 : 0;
            }
        });
    }
    std::ranges::for_each(workers, &std::thread::join);
    CHECK(ran == ids);
    CHECK(effects() == ids);
    CHECK(number("SELECT count(DISTINCT id) FROM effects") == ids);
}

TEST_CASE_FIXTURE(InboxFixture, "a job with a key is refused by process, before anything is done") {
    KeyedJobProducer<Raw>(uri, "q").push("a", Raw{"x"});
    Worker worker(uri, {.signal_handling = SignalHandling::none});
    std::promise<std::string> refusal;
    worker.handle_keyed<Raw>("q", [&](JobContext<Raw>& job) {
        refusal.set_value(message_of<std::logic_error>([&] {
            static_cast<void>(
                inbox.process(*job.guard(), job.id(), [](pqxx::work& tx, const Job<Raw>& payload) {
                    effect(tx, payload.id);
                }));
        }));
    });
    {
        const Running running(worker);
        CHECK(contains(refusal.get_future().get(), "key"));
        CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    }
    CHECK(effects() == 0);
    CHECK(marks() == 0);
    CHECK(redis.llen("q") == 0);
}

} // namespace inbox_test
