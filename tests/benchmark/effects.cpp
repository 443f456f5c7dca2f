// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The cost of each way to an effect. The effect is an UPDATE of one of 1000 rows in PostgreSQL for
// each message, by threads with a consumer each. PostgreSQL writes to the disk (fsync) before a
// COMMIT returns; Redis keeps its data in memory. Prints messages per second, and their ratio to
// the same effects without a queue.
//
// usage: effects [MESSAGES]

#include "support/postgres_server.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/jobs/batch.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/once.hpp>
#include <orizuru/postgres.hpp>
#include <orizuru/producer.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace orizuru;
using Guard = MessageGuard<Job<int>>;
using Clock = std::chrono::steady_clock;

void effect(pqxx::work& tx, int message) {
    tx.exec("UPDATE rows SET number = number + 1 WHERE id = " + std::to_string(message % 1000));
}

class Effects {
  public:
    explicit Effects(int messages) : m_messages(messages) {
        Schema(m_database).apply();
        pqxx::connection connection(m_database.conninfo());
        pqxx::work tx(connection);
        tx.exec("CREATE TABLE rows (id integer PRIMARY KEY, number integer NOT NULL)");
        tx.exec("INSERT INTO rows SELECT n, 0 FROM generate_series(0, 999) n");
        tx.commit();
    }

    void run(int threads) {
        m_threads = threads;
        m_bare = without_queue();
        std::printf("%d threads\n%-44s %8.0f/s\n", threads, "the effects alone", m_bare);
        tell("plain: effect, ack", plain());
        tell("Once: claim, effect, done + ack", once());
        tell("Inbox: mark + effect, ack", inbox());
        tell("Inbox: 100 marks + effects, 100 acks", inbox_batches());
        tell("Outbox: a push in its own transaction", outbox(OutboxOrder::commits));
        tell("Outbox: the same in no order", outbox(OutboxOrder::none));
        tell("Outbox: 100 pushes in a transaction", outbox_batches());
        tell("Outbox: relay", relay());
        tell("Ledger: 100 submits in a transaction", submit_batches("submitted together"));
        tell("the same without a history", submit_batches("submitted briefly", brief));
        tell("Ledger: submit in its own transaction", submit());
        tell("Ledger: reconciler", reconcile());
        tell("Ledger: claim, effect + completed, ack", ledger());
        tell("its tables by hand, prepared: the same", prepared_by_hand());
        tell("Ledger: the same without a history", brief_ledger());
        const auto [first, last] = beside_a_snapshot();
        tell("the same beside an open snapshot, the first sixth", first);
        tell("the same beside an open snapshot, the last sixth", last);
        tell("Ledger: 100 claims, effects + completed, acks", ledger_batches("ledger batches"));
        tell("Ledger: the same without a history", ledger_batches("brief batches", brief));
        tell("its tables by hand: 100 claims, effects + completed", by_hand());
    }

  private:
    /// What goes well leaves none.
    static inline const LedgerOptions brief{.history = LedgerHistory::failures};

    void tell(const char* what, double rate) const {
        std::printf("%-52s %8.0f/s  %5.2f\n", what, rate, rate / m_bare);
    }

    /// Calls `body(thread)` in each thread; returns messages per second.
    double timed(const std::function<void(int)>& body) const {
        std::vector<std::thread> threads;
        const auto begun = Clock::now();
        for (int i = 0; i < m_threads; ++i) {
            threads.emplace_back(body, i);
        }
        std::ranges::for_each(threads, &std::thread::join);
        return m_messages / std::chrono::duration<double>(Clock::now() - begun).count();
    }
    /// Calls `handle(guard)` for each message of the queue.
    double consume(const std::string& queue, const std::function<void(Guard&)>& handle) {
        std::atomic<int> left = m_messages;
        return timed([&](int) {
            Consumer<Job<int>> consumer(m_redis.uri(), queue);
            while (left > 0) {
                if (auto guard = consumer.next(std::chrono::milliseconds(100))) {
                    handle(*guard);
                    --left;
                }
            }
        });
    }
    /// Calls `handle(ids, guards)` for batches of the queue.
    double consume_batches(
        const std::string& queue,
        const std::function<void(std::vector<std::string>&, const std::vector<Guard>&)>& handle) {
        std::atomic<int> left = m_messages;
        return timed([&](int) {
            Consumer<Job<int>> consumer(m_redis.uri(), queue,
                                        {.prefetch = batch, .ack = AckMode::deferred});
            while (left.fetch_sub(batch) > 0) {
                auto guards = next_batch(consumer, {.size = batch});
                std::vector<std::string> ids;
                for (const Guard& guard : guards) {
                    ids.push_back(guard->id);
                }
                handle(ids, guards);
                for (Guard& guard : guards) {
                    guard.ack();
                }
            }
        });
    }
    static void effects(pqxx::work& tx, const std::vector<Guard>& guards,
                        std::span<const std::size_t> positions) {
        std::string rows;
        for (const std::size_t position : positions) {
            rows += ',' + std::to_string(guards[position]->payload % 1000);
        }
        tx.exec("UPDATE rows SET number = number + 1 WHERE id IN (" + rows.substr(1) + ")");
    }
    [[nodiscard]] std::vector<int> numbers() const {
        std::vector<int> all(static_cast<std::size_t>(m_messages));
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
    void fill(const std::string& queue) {
        std::vector<Job<int>> jobs;
        for (int i = 0; i < m_messages; ++i) {
            jobs.push_back(make_job(i));
        }
        Producer<Job<int>>(m_redis.uri(), queue).push_all(jobs);
    }

    double without_queue() {
        return timed([this](int thread) {
            pqxx::connection connection(m_database.conninfo());
            for (int i = thread; i < m_messages; i += m_threads) {
                pqxx::work tx(connection);
                effect(tx, i);
                tx.commit();
            }
        });
    }
    double plain() {
        fill("plain");
        return consume("plain", [this](Guard& guard) {
            thread_local pqxx::connection connection(m_database.conninfo());
            pqxx::work tx(connection);
            effect(tx, guard->payload);
            tx.commit();
            guard.ack();
        });
    }
    double once() {
        fill("once");
        Once once(m_redis.uri(), "once");
        return consume("once", [&](Guard& guard) {
            thread_local pqxx::connection connection(m_database.conninfo());
            once.run(guard, guard->id, [&] {
                pqxx::work tx(connection);
                effect(tx, guard->payload);
                tx.commit();
            });
        });
    }
    double inbox() {
        fill("inbox");
        Inbox inbox(m_database, "effects");
        return consume("inbox", [&](Guard& guard) {
            inbox.process(guard, guard->id,
                          [](pqxx::work& tx, const Job<int>& job) { effect(tx, job.payload); });
        });
    }
    double inbox_batches() {
        fill("inbox batches");
        Inbox inbox(m_database, "effects of batches");
        return consume_batches("inbox batches", [&](auto& ids, const auto& guards) {
            static_cast<void>(inbox.run_batch(
                ids, [&](pqxx::work& tx, auto fresh) { effects(tx, guards, fresh); }));
        });
    }
    double ledger_batches(const std::string& queue, const LedgerOptions& options = {}) {
        Ledger<int> ledger(m_database, queue, options);
        ledger.submit_all(numbers());
        LedgerReconciler(m_database, m_redis.uri()).reconcile();
        return consume_batches(queue, [&](auto& ids, const auto& guards) {
            ledger.run_batch(ids,
                             [&](pqxx::work& tx, auto claimed) { effects(tx, guards, claimed); });
        });
    }
    /// What a program of one's own would send for the same changes of the same rows.
    double by_hand() {
        Ledger<int>(m_database, "by hand").submit_all(numbers());
        std::atomic<int> first = 0;
        std::atomic<int> left = m_messages;
        return timed([&](int thread) {
            pqxx::connection connection(m_database.conninfo());
            const std::string worker = "worker " + std::to_string(thread);
            while (left > 0) {
                std::string rows;
                {
                    pqxx::work tx(connection);
                    for (const auto& row : tx.exec(
                             "UPDATE orizuru_ledger SET state = 'running', attempt = attempt + 1, "
                             "token = token + 1, worker = '" +
                             worker +
                             "', "
                             "due = now() + interval '30 s' WHERE id IN (SELECT id FROM "
                             "orizuru_ledger WHERE queue = 'by hand' AND state = 'pending' LIMIT " +
                             std::to_string(batch) + " FOR UPDATE SKIP LOCKED) RETURNING id")) {
                        rows += ",'" + row[0].as<std::string>() + '\'';
                    }
                    tx.commit();
                }
                if (rows.empty()) {
                    return; // others have the rest
                }
                pqxx::work tx(connection);
                const int from = (first += batch) % 1000;
                tx.exec("UPDATE rows SET number = number + 1 WHERE id BETWEEN " +
                        std::to_string(from) + " AND " + std::to_string(from + batch - 1));
                left -= static_cast<int>(
                    tx.exec("UPDATE orizuru_ledger SET state = 'completed' WHERE id IN (" +
                            rows.substr(1) + ") AND worker = '" + worker +
                            "' AND state = 'running'")
                        .affected_rows());
                tx.commit();
            }
        });
    }
    double outbox_batches() {
        return timed([this](int thread) {
            const Outbox<int> outbox("outbox");
            pqxx::connection connection(m_database.conninfo());
            for (int i = thread * batch; i < m_messages; i += m_threads * batch) {
                pqxx::work tx(connection);
                outbox.push_all(tx, std::vector<int>(batch, i));
                tx.commit();
            }
        });
    }
    double outbox(OutboxOrder order) {
        return timed([this, order](int thread) {
            const Outbox<int> outbox("outbox", {.order = order});
            pqxx::connection connection(m_database.conninfo());
            for (int i = thread; i < m_messages; i += m_threads) {
                pqxx::work tx(connection);
                outbox.push(tx, i);
                tx.commit();
            }
        });
    }
    double relay() {
        OutboxRelay relay(m_database, m_redis.uri());
        const auto begun = Clock::now();
        const auto sent = static_cast<double>(relay.relay()); // of all three pushes above
        return sent / std::chrono::duration<double>(Clock::now() - begun).count();
    }
    double submit() {
        Ledger<int> ledger(m_database, "ledger");
        return timed([&](int thread) {
            for (int i = thread; i < m_messages; i += m_threads) {
                ledger.submit(i);
            }
        });
    }
    double submit_batches(const std::string& queue, const LedgerOptions& options = {}) {
        Ledger<int> ledger(m_database, queue, options);
        const double rate = timed([&](int thread) {
            for (int i = thread * batch; i < m_messages; i += m_threads * batch) {
                ledger.submit_all(std::vector<int>(batch, i));
            }
        });
        LedgerReconciler(m_database, m_redis.uri()).reconcile(); // else the next one sends them too
        return rate;
    }
    double reconcile() {
        LedgerReconciler reconciler(m_database, m_redis.uri());
        return timed([&](int thread) {
            if (thread == 0) {
                reconciler.reconcile();
            }
        });
    }
    double ledger() {
        Ledger<int> ledger(m_database, "ledger");
        return consume("ledger", [&](Guard& guard) {
            ledger.process(guard, [](pqxx::work& tx, int message) { effect(tx, message); });
        });
    }

    double brief_ledger() {
        const std::string queue = "brief ledger";
        Ledger<int> ledger(m_database, queue, brief);
        ledger.submit_all(numbers());
        LedgerReconciler(m_database, m_redis.uri()).reconcile();
        return consume(queue, [&](Guard& guard) {
            ledger.process(guard, [](pqxx::work& tx, int message) { effect(tx, message); });
        });
    }

    /// The rates of the first and of the last sixth, whose claims go past all dead rows.
    std::pair<double, double> beside_a_snapshot() {
        const std::string queue = "beside a snapshot";
        Ledger<int> ledger(m_database, queue);
        ledger.submit_all(numbers());
        LedgerReconciler(m_database, m_redis.uri()).reconcile();
        const std::jthread reconciling([this](const std::stop_token& token) {
            LedgerReconciler(m_database, m_redis.uri()).run(token);
        });
        pqxx::connection connection(m_database.conninfo());
        pqxx::transaction<pqxx::repeatable_read> snapshot(connection);
        snapshot.exec("SELECT count(*) FROM rows");
        const int sixth = std::max(m_messages / 6, 1);
        std::vector<Clock::time_point> reached(static_cast<std::size_t>(m_messages / sixth) + 1);
        reached.front() = Clock::now();
        std::atomic<int> done = 0;
        consume(queue, [&](Guard& guard) {
            ledger.process(guard, [](pqxx::work& tx, int message) { effect(tx, message); });
            if (const int count = ++done; count % sixth == 0) {
                reached[static_cast<std::size_t>(count / sixth)] = Clock::now();
            }
        });
        const auto rate = [&](std::size_t part) {
            return sixth / std::chrono::duration<double>(reached[part] - reached[part - 1]).count();
        };
        return {rate(1), rate(reached.size() - 1)};
    }

    /// What a program of one's own would do for each message.
    double prepared_by_hand() {
        Ledger<int>(m_database, "prepared").submit_all(numbers());
        LedgerReconciler(m_database, m_redis.uri()).reconcile();
        std::atomic<int> left = m_messages;
        return timed([&](int thread) {
            pqxx::connection connection(m_database.conninfo());
            connection.prepare("claim", "SELECT claimed FROM orizuru_ledger_claim($1, $2, 30000), "
                                        "set_config('synchronous_commit', 'off', true)");
            connection.prepare("complete",
                               "UPDATE orizuru_ledger SET state = 'completed' WHERE id = $1 AND "
                               "token = $2 AND worker = $3 AND state = 'running'");
            Consumer<Job<int>> consumer(m_redis.uri(), "prepared");
            for (int run = 0; left > 0; ++run) {
                auto guard = consumer.next(std::chrono::milliseconds(100));
                if (!guard) {
                    continue;
                }
                const std::string id = (*guard)->id;
                const std::string worker =
                    "worker " + std::to_string(thread) + '/' + std::to_string(run);
                const auto token = pqxx::nontransaction(connection)
                                       .exec_prepared("claim", id, worker)[0][0]
                                       .as<std::int64_t>();
                pqxx::work tx(connection);
                effect(tx, (*guard)->payload);
                tx.exec_prepared("complete", id, token, worker);
                tx.commit();
                guard->ack();
                --left;
            }
        });
    }

    static constexpr int batch = 100;

    int m_messages;
    int m_threads = 1;
    double m_bare = 0;
    test::RedisServer m_redis;
    test::PostgresServer m_postgres{{"fsync=on"}};
    Database m_database{m_postgres.conninfo()};
};

} // namespace

int main(int count, char** arguments) {
    Effects effects(count > 1 ? std::atoi(arguments[1]) : 5000);
    effects.run(1);
    effects.run(8);
}
