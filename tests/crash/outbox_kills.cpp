// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A message's way from a transaction to its effect, with a process that is killed before and after
// each of its sends: the writer, the relay, and the consumer with its inbox. After each death
// others go on; then every committed order has its one effect by a message in order, in the order
// of the commits, and its one effect by a message in no order; no other order has any.
//
// usage: outbox_kills [--flow all|writer|relay|consumer] [--when all|before|after] [--at all|N]

#include "crash/support/fault_program.hpp"
#include "crash/support/send_kills.hpp"
#include "support/collect_dead.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/msgpack.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/postgres/outbox.hpp>
#include <orizuru/postgres/outbox_relay.hpp>
#include <orizuru/postgres/schema.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace outbox_kills_test {

using namespace std::chrono_literals;
using namespace orizuru;
using namespace orizuru::test;

const std::string in_order = "q";
const std::string in_none = "any";

/// The two servers, and the work of each process.
class World {
  public:
    World() {
        Schema(m_database).apply();
        pqxx::connection connection(m_database.conninfo());
        pqxx::nontransaction(connection)
            .exec("CREATE TABLE orders (number serial PRIMARY KEY);"
                  "CREATE TABLE effects (position serial PRIMARY KEY, queue text, payload text)");
    }

    void clear() {
        const auto connection = connect();
        pqxx::nontransaction(*connection)
            .exec("TRUNCATE orders, effects, orizuru_inbox, orizuru_outbox, orizuru_outbox_order, "
                  "orizuru_outbox_queue RESTART IDENTITY");
        RedisClient(m_redis.uri()).flushall();
    }

    /// Three orders, two of them in one transaction.
    void write() {
        const auto connection = connect();
        for (const int orders : {1, 2}) {
            pqxx::work tx(*connection);
            for (int i = 0; i < orders; ++i) {
                const auto number =
                    tx.exec("INSERT INTO orders DEFAULT VALUES RETURNING number")[0][0];
                m_outbox.push(tx, number.as<std::string>());
                m_unordered.push(tx, number.as<std::string>());
            }
            tx.commit();
        }
    }
    void relay() {
        // In two steps.
        OutboxRelay(m_database, m_redis.uri(), {.batch = 2}).relay();
    }
    void consume() {
        Inbox inbox(m_database, "orders");
        for (const std::string& queue : {in_order, in_none}) {
            Consumer<Job<std::string>> consumer(m_redis.uri(), queue, {.lease = 1h});
            while (auto guard = consumer.next(0ms)) {
                const std::string id = (*guard)->id;
                inbox.process(*guard, id, [&](pqxx::work& tx, const Job<std::string>& job) {
                    tx.exec("INSERT INTO effects (queue, payload) VALUES (" + tx.quote(queue) +
                            ", " + tx.quote(job.payload) + ")");
                });
            }
        }
    }

    void go_on() {
        m_left = !only_we_are_left();
        relay();
        collect();
        consume();
    }
    /// `dead` is the flow whose process died.
    [[nodiscard]] std::vector<std::string> wrong(std::string_view dead) {
        std::vector<std::string> words;
        const auto orders = column("SELECT number FROM orders ORDER BY number");
        if (orders.size() != 3 && dead != "writer") {
            words.push_back("of three orders there are " + std::to_string(orders.size()));
        }
        for (const std::string& queue : {in_order, in_none}) {
            const auto effects =
                column("SELECT payload FROM effects WHERE queue = '" + queue + "' ORDER BY " +
                       (queue == in_order ? "position" : "payload"));
            if (effects != orders) {
                words.push_back(std::to_string(orders.size()) + " orders, and " + queue +
                                " has the effects");
                for (const std::string& effect : effects) {
                    words.back() += ' ' + effect;
                }
            }
        }
        if (!column("SELECT message FROM orizuru_outbox").empty()) {
            words.emplace_back("messages are left");
        }
        if (m_left) {
            words.emplace_back("the connections of the dead are left");
        }
        return words;
    }

  private:
    /// Waits until the sessions of a dead process are gone, with their transactions.
    [[nodiscard]] bool only_we_are_left() {
        return eventually([&] {
            const auto connection = connect();
            const auto sessions =
                pqxx::nontransaction(*connection)
                    .exec("SELECT FROM pg_stat_activity WHERE backend_type = 'client backend'");
            RedisClient redis(m_redis.uri());
            return sessions.size() == 1 &&
                   std::ranges::count(redis.command({"CLIENT", "LIST"}).text, '\n') == 1;
        });
    }
    void collect() {
        RedisClient redis(m_redis.uri());
        for (const std::string& queue : {in_order, in_none}) {
            collect_dead(redis, m_redis.uri(), queue);
        }
    }

    /// The first column.
    [[nodiscard]] std::vector<std::string> column(const std::string& query) {
        const auto connection = connect();
        std::vector<std::string> values;
        for (const auto& row : pqxx::nontransaction(*connection).exec(query)) {
            values.push_back(row[0].as<std::string>());
        }
        return values;
    }

    [[nodiscard]] std::unique_ptr<pqxx::connection> connect() const {
        return std::make_unique<pqxx::connection>(m_database.conninfo());
    }

    bool m_left = false;
    PostgresServer m_postgres;
    RedisServer m_redis;
    Database m_database{m_postgres.conninfo()};
    Outbox<std::string> m_outbox{in_order};
    Outbox<std::string> m_unordered{in_none, {.order = OutboxOrder::none}};
};

const std::array flows{
    Flow<World>{"writer", [](World&) {}, [](World& world) { world.write(); }},
    Flow<World>{"relay", [](World& world) { world.write(); }, [](World& world) { world.relay(); }},
    Flow<World>{"consumer",
                [](World& world) {
                    world.write();
                    world.relay();
                },
                [](World& world) { world.consume(); }},
};

const FaultProgram program("outbox_kills", [](int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments, SendKills<World>::options);
        return SendKills<World>(options).run(flows);
    });
});

} // namespace outbox_kills_test
