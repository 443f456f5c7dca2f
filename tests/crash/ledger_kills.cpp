// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A job's way through the ledger, with a process that is killed before and after each of its sends:
// the submitter, the reconciler, a worker whose function succeeds or fails, alone and in batches,
// the reconciler and the worker with an emptied Redis, a reconciler that finds one message buried
// and the others gone, and one who revives dead jobs. After each death others go on; then every
// committed job has its one effect and is completed, and no other job has any.
//
// usage: ledger_kills [--flow all|NAME] [--when all|before|after] [--at all|N]

#include "crash/support/fault_program.hpp"
#include "crash/support/send_kills.hpp"
#include "support/collect_dead.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/jobs/backoff.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/msgpack.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/schema.hpp>

#include <pqxx/pqxx>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ledger_kills_test {

using namespace std::chrono_literals;
using namespace orizuru;
using namespace orizuru::test;

const std::string queue = "q";

/// The two servers, and the work of each process.
class World {
  public:
    World() {
        Schema(m_database).apply();
        run("CREATE TABLE orders (number serial PRIMARY KEY)");
        run("CREATE TABLE effects (number integer)");
    }

    void clear() {
        run("TRUNCATE orders, effects, orizuru_ledger, orizuru_ledger_history, "
            "orizuru_ledger_queue RESTART IDENTITY");
        lose_redis();
        m_given_up = false;
    }
    void lose_redis() { RedisClient(m_redis.uri()).flushall(); }

    /// Three orders, two of them in one transaction.
    void submit(const LedgerJobOptions& chosen = {}) {
        auto ledger = open();
        pqxx::connection connection(m_database.conninfo());
        for (const int orders : {1, 2}) {
            pqxx::work tx(connection);
            for (int i = 0; i < orders; ++i) {
                ledger.submit(
                    tx,
                    tx.exec("INSERT INTO orders DEFAULT VALUES RETURNING number")[0][0].as<int>(),
                    chosen);
            }
            tx.commit();
        }
    }
    /// Three that have waited until now.
    void submit_due() {
        submit({.delay = 1h});
        run("UPDATE orizuru_ledger SET due = clock_timestamp()");
    }
    /// Three that are late: they die, once.
    void submit_expired() {
        submit({.expires_after = 1h});
        run("UPDATE orizuru_ledger SET expires = clock_timestamp()");
        m_given_up = true;
    }
    void reconcile() {
        LedgerReconciler(m_database, m_redis.uri(),
                         {.sweep = 100ms, .retry = {.backoff = backoff::fixed(1ms)}})
            .reconcile();
    }
    /// A program that cannot read them buries the first message; the others are removed.
    void lose_messages() {
        try {
            static_cast<void>(Consumer<Job<std::string>>(m_redis.uri(), queue).next(0ms));
        } catch (const DecodeError&) { // NOLINT(bugprone-empty-catch)
        }
        RedisClient(m_redis.uri()).del(queue);
        run("UPDATE orizuru_ledger SET sent_at = sent_at - interval '1 h'");
    }
    /// Handles all messages; the first `failures` runs fail after their effects.
    void work(int failures = 0) {
        auto ledger = open();
        Consumer<Job<int>> consumer(m_redis.uri(), queue, {.lease = 1h});
        while (auto guard = consumer.next(0ms)) {
            ledger.process(*guard, [&](pqxx::work& tx, int number) {
                tx.exec("INSERT INTO effects VALUES (" + std::to_string(number) + ")");
                if (failures-- > 0) {
                    throw std::runtime_error("no money");
                }
                return number;
            });
        }
    }

    /// The same in batches.
    void work_in_batches(int failures = 0) {
        auto ledger = open();
        Consumer<Job<int>> consumer(m_redis.uri(), queue, {.lease = 1h, .prefetch = 10});
        while (true) {
            std::vector<MessageGuard<Job<int>>> guards;
            std::vector<std::string> ids;
            while (auto guard = consumer.next(0ms)) {
                ids.push_back((*guard)->id);
                guards.push_back(std::move(*guard));
            }
            if (guards.empty()) {
                return;
            }
            ledger.run_batch(ids, [&](pqxx::work& tx, std::span<const std::size_t> claimed) {
                for (const std::size_t position : claimed) {
                    tx.exec("INSERT INTO effects VALUES (" +
                            std::to_string(guards[position]->payload) + ")");
                }
                if (failures-- > 0) {
                    throw std::runtime_error("no money");
                }
            });
            for (auto& guard : guards) {
                guard.ack();
            }
        }
    }

    void give_all_up() {
        auto ledger = open();
        for (const LedgerEntry& entry : ledger.list(LedgerState::pending)) {
            ledger.give_up(entry.id, "nobody needs it");
        }
        m_given_up = true;
    }
    void revive() {
        auto ledger = open();
        for (const LedgerEntry& entry : ledger.list(LedgerState::dead)) {
            ledger.revive(entry.id);
        }
    }

    void go_on() {
        m_finished = eventually([this] {
            revive();
            reconcile();
            RedisClient redis(m_redis.uri());
            collect_dead(redis, m_redis.uri(), queue);
            work();
            return run("SELECT FROM orizuru_ledger WHERE state <> 'completed'").empty();
        });
    }
    /// `dead` is the flow whose process died.
    [[nodiscard]] std::vector<std::string> wrong(std::string_view dead) {
        std::vector<std::string> words;
        const auto orders = run("SELECT FROM orders").size();
        if (orders != 3 && dead != "submitter") {
            words.push_back("of three orders there are " + std::to_string(orders));
        }
        const auto expect_none = [&](const char* what, const std::string& query) {
            if (!run(query).empty()) {
                words.emplace_back(what);
            }
        };
        expect_none("an order without an effect",
                    "SELECT number FROM orders EXCEPT SELECT number FROM effects");
        expect_none("an effect without an order",
                    "SELECT number FROM effects EXCEPT SELECT number FROM orders");
        expect_none("an effect twice", "SELECT FROM effects GROUP BY number HAVING count(*) > 1");
        expect_none("a job that is not completed",
                    "SELECT FROM orizuru_ledger WHERE state <> 'completed'");
        if (!dead.empty() && dead.find("batches") == std::string_view::npos) { // those have none
            expect_none("a completed job without its result",
                        "SELECT FROM orizuru_ledger WHERE result IS NULL");
        }
        expect_none("a job that was completed twice",
                    "SELECT FROM orizuru_ledger_history WHERE to_state = 'completed' GROUP BY job "
                    "HAVING count(*) > 1");
        expect_none("a burial that was counted twice",
                    "SELECT FROM orizuru_ledger_history WHERE to_state = 'failed' AND note LIKE "
                    "'undecodable%' GROUP BY job HAVING count(*) > 1");
        // In the one flow each job has died once; its revival is known, and the death as well.
        const auto lives = [](const char* times) {
            return std::string("SELECT FROM orizuru_ledger_history GROUP BY job HAVING "
                               "count(*) FILTER (WHERE from_state = 'dead') <> ") +
                   times;
        };
        expect_none("a job whose history has not each of its deaths and revivals",
                    lives("count(*) FILTER (WHERE to_state = 'dead')"));
        expect_none("a job that has not died as often as it should", lives(m_given_up ? "1" : "0"));
        if (!m_finished) {
            words.emplace_back("not everything was finished");
        }
        return words;
    }

  private:
    [[nodiscard]] Ledger<int> open() const {
        return {m_database, queue, {.lease = 100ms, .retry = {.backoff = backoff::fixed(1ms)}}};
    }
    /// The parent's connections: a child has its own.
    pqxx::result run(const std::string& sql) {
        return pqxx::nontransaction(m_connection).exec(sql);
    }

    bool m_given_up = false;
    bool m_finished = false;
    PostgresServer m_postgres;
    RedisServer m_redis;
    Database m_database{m_postgres.conninfo()};
    pqxx::connection m_connection{m_postgres.conninfo()};
};

void send(World& world) {
    world.submit();
    world.reconcile();
}
void lose(World& world) {
    send(world);
    world.lose_redis();
}
void lose_messages(World& world) {
    send(world);
    world.lose_messages();
}

void give_up(World& world) {
    world.submit();
    world.give_all_up();
}

const std::array flows{
    Flow<World>{"submitter", [](World&) {}, [](World& world) { world.submit(); }},
    Flow<World>{"reconciler", [](World& world) { world.submit(); },
                [](World& world) { world.reconcile(); }},
    Flow<World>{"due", [](World& world) { world.submit_due(); },
                [](World& world) { world.reconcile(); }},
    Flow<World>{"expired", [](World& world) { world.submit_expired(); },
                [](World& world) { world.reconcile(); }},
    Flow<World>{"worker", send, [](World& world) { world.work(); }},
    Flow<World>{"failing", send, [](World& world) { world.work(2); }},
    Flow<World>{"batches", send, [](World& world) { world.work_in_batches(); }},
    Flow<World>{"failing_batches", send, [](World& world) { world.work_in_batches(2); }},
    Flow<World>{"emptied", lose,
                [](World& world) {
                    world.reconcile();
                    world.work();
                }},
    Flow<World>{"searching", lose_messages, [](World& world) { world.reconcile(); }},
    Flow<World>{"reviver", give_up, [](World& world) { world.revive(); }},
};

const FaultProgram program("ledger_kills", [](int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments, SendKills<World>::options);
        return SendKills<World>(options).run(flows);
    });
});

} // namespace ledger_kills_test
