// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The processes that move money, around a PostgreSQL and two Redis servers. The one of the
// transfers is empty after each kill, because the ledger does not need it; the one of the receipts
// keeps everything that it has confirmed.

#pragma once

#include "crash/support/crowd.hpp"
#include "crash/support/payment_work.hpp"
#include "support/eventually.hpp"
#include "support/postgres_server.hpp"

#include <orizuru/postgres/schema.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

class PaymentCrowd final : public Crowd {
  public:
    PaymentCrowd(RedisServer& forgetful, RedisServer& lasting, PostgresServer& postgres,
                 FaultReport& report, std::uint64_t seed);

    void restart_lasting_redis() {
        m_lasting.restart();
        report().came("Redis killed and restarted with its data");
    }
    void restart_postgres() {
        m_postgres.restart();
        report().came("PostgreSQL killed and restarted");
    }
    /// How many transfers have been asked for.
    [[nodiscard]] std::uint64_t requested() { return number("SELECT count(*) FROM requested"); }

    /// Lets everything finish, and returns the violations, in words.
    std::vector<std::string> finish();

  private:
    /// The longest time without any progress.
    static constexpr std::chrono::seconds patience{60};

    std::string uri_for(const Work& work) override {
        const bool of_receipts =
            work.role == "clerk" || work.role == "relay" || work.queue == receipts_queue;
        return (of_receipts ? m_lasting : server()).uri();
    }
    void add_all(const std::string& role, std::size_t count, const std::string& queue = {}) {
        for (std::size_t i = 0; i < count; ++i) {
            add({.role = role,
                 .index = i,
                 .rate = 300,
                 .queue = queue,
                 .database = m_postgres.conninfo()});
        }
    }
    std::uint64_t number(const std::string& query) {
        pqxx::connection connection(m_postgres.conninfo());
        return pqxx::nontransaction(connection).exec(query)[0][0].as<std::uint64_t>();
    }
    void make_tables();
    void await_finished();
    void expect_none(const std::string& what, const std::string& query);

    RedisServer& m_lasting;
    PostgresServer& m_postgres;
};

inline PaymentCrowd::PaymentCrowd(RedisServer& forgetful, RedisServer& lasting,
                                  PostgresServer& postgres, FaultReport& report, std::uint64_t seed)
    : Crowd(forgetful, report, seed), m_lasting(lasting), m_postgres(postgres) {
    make_tables();
    add_all("payer", 4);
    add_all("clerk", 2);
    add_all("relay", 2);
    add_all("reconciler", 2);
    add_all("reviver", 2);
    add_all("collector", 1, transfers_queue);
    add_all("collector", 1, receipts_queue);
    add_all("submitter", 2);
}

inline void PaymentCrowd::make_tables() {
    Schema(m_postgres.conninfo()).apply();
    pqxx::connection connection(m_postgres.conninfo());
    pqxx::work tx(connection);
    tx.exec("CREATE TABLE accounts (id integer PRIMARY KEY, balance bigint NOT NULL)");
    tx.exec("INSERT INTO accounts SELECT id, 1000 FROM generate_series(1, 50) id");
    tx.exec(
        "CREATE TABLE requested (number bigint, from_id integer, to_id integer, amount integer)");
    tx.exec("CREATE TABLE applied (number bigint)");
    tx.exec("CREATE TABLE filed (number bigint)");
    tx.commit();
}

inline void PaymentCrowd::expect_none(const std::string& what, const std::string& query) {
    if (const std::uint64_t count = number("SELECT count(*) FROM (" + query + ") found");
        count != 0) {
        wrong().push_back(std::to_string(count) + ' ' + what);
    }
}

/// The backlog from the kills takes its time.
inline void PaymentCrowd::await_finished() {
    const auto left = [this] {
        return number("SELECT (SELECT count(*) FROM requested) - (SELECT count(*) FROM filed) + "
                      "(SELECT count(*) FROM orizuru_outbox)");
    };
    for (std::uint64_t before = left(); before > 0;) {
        std::uint64_t now = before;
        const bool moves = eventually(
            [&] {
                pass(std::chrono::milliseconds(100));
                now = left();
                return now < before;
            },
            patience);
        if (!moves) {
            return;
        }
        before = now;
    }
}

inline std::vector<std::string> PaymentCrowd::finish() {
    look_around();
    resume_redis();
    while (members().back().work().role == "submitter") {
        kill(members().back());
        members().pop_back();
    }
    await_finished();
    expect_none("transfers are lost",
                "SELECT number FROM requested EXCEPT SELECT number FROM applied");
    expect_none("transfers are doubled", "SELECT FROM applied GROUP BY number HAVING count(*) > 1");
    expect_none("transfers nobody has asked for",
                "SELECT number FROM applied EXCEPT SELECT number FROM requested");
    expect_none("receipts are lost", "SELECT number FROM applied EXCEPT SELECT number FROM filed");
    expect_none("receipts are doubled", "SELECT FROM filed GROUP BY number HAVING count(*) > 1");
    expect_none("jobs of the ledger are not completed",
                "SELECT FROM orizuru_ledger WHERE state <> 'completed'");
    expect_none("jobs have not each of their deaths and revivals in their history",
                "SELECT FROM orizuru_ledger_history GROUP BY job "
                "HAVING count(*) FILTER (WHERE from_state = 'dead') "
                "<> count(*) FILTER (WHERE to_state = 'dead')");
    expect_none("accounts have a wrong balance",
                "SELECT FROM accounts a WHERE balance <> 1000 "
                "+ (SELECT coalesce(sum(amount), 0) FROM requested WHERE to_id = a.id) "
                "- (SELECT coalesce(sum(amount), 0) FROM requested WHERE from_id = a.id)");
    report().came("transfer carried out", number("SELECT count(*) FROM applied"));
    report().came("transfer revived", number("SELECT count(*) FROM orizuru_ledger_history "
                                             "WHERE from_state = 'dead'"));
    report().came("transfer expired", number("SELECT count(*) FROM orizuru_ledger_history "
                                             "WHERE note = 'it has expired'"));
    report().came("run cancelled",
                  number("SELECT count(*) FROM orizuru_ledger_history WHERE from_state = 'running' "
                         "AND note = 'cancelled by mistake'"));
    return std::move(wrong());
}

} // namespace orizuru::test
