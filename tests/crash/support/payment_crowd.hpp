// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The processes that move money at two banks, around a PostgreSQL with a standby and two Redis
// servers. The one of the transfers is empty after each kill, because the ledger does not need it;
// the one of the receipts keeps everything that it has confirmed.

#pragma once

#include "crash/support/crowd.hpp"
#include "crash/support/payment_work.hpp"
#include "crash/support/postgres_pair.hpp"
#include "crash/support/write_outages.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"

#include <orizuru/postgres/schema.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

class PaymentCrowd final : public Crowd {
  public:
    /// `old`: a program of an older version, which makes the tables and runs all but collectors
    /// until `roll_out`. Then no bank sends notices to the other one, which 0.1.0 cannot.
    PaymentCrowd(RedisServer& forgetful, RedisServer& lasting, PostgresPair& postgres,
                 FaultReport& report, std::uint64_t seed, std::string old = {});

    /// Of the one of the transfers.
    void restart_redis() {
        await_free_writes(outages());
        judge_lives(m_forgetful_client, outages()); // it will know of nobody
        Crowd::restart_redis();
    }
    void restart_lasting_redis() {
        await_free_writes(m_lasting_outages);
        const std::int64_t since = monotonic_time();
        m_lasting.restart();
        m_lasting_outages.was_restarted(since);
        report().came("Redis killed and restarted with its data");
    }
    /// Of one of the two Redis, in turn.
    void refuse_writes_at_times(std::uint64_t faults, std::uint64_t least);
    /// Brings the tables to this version; what starts from now on is of it, too.
    void roll_out() {
        for (const char* const bank : banks) {
            Schema(at_bank(m_postgres.primary().conninfo(), bank)).apply();
        }
        m_old.clear();
    }
    void restart_postgres() {
        m_postgres.restart_primary();
        report().came("PostgreSQL killed and restarted");
    }
    void fail_over_postgres() {
        m_postgres.fail_over();
        report().came("PostgreSQL killed and replaced by its standby");
    }
    [[nodiscard]] std::uint64_t count_outages() const override {
        return Crowd::count_outages() + m_lasting_outages.count();
    }
    /// How many transfers have been asked for.
    [[nodiscard]] std::uint64_t requested() { return sum("SELECT count(*) FROM requested"); }

    /// Lets everything finish, and returns the violations, in words.
    std::vector<std::string> finish();

  protected:
    void look_around() override {
        Crowd::look_around();
        m_lasting_outages.look();
    }

  private:
    /// The longest time without any progress.
    static constexpr std::chrono::seconds patience{60};

    std::string program_for(const Work& work) override {
        const bool is_old = !m_old.empty() && work.role != "collector";
        report().came(is_old ? "processes of 0.1.0" : "processes of today");
        return is_old ? m_old : "";
    }
    std::string uri_for(const Work& work) override {
        const bool of_receipts = work.role == "clerk" || work.role == "relay" ||
                                 std::ranges::any_of(banks, [&](const char* bank) {
                                     return work.queue == receipts_queue(bank);
                                 });
        return (of_receipts ? m_lasting : server()).uri();
    }
    void add_all(const std::string& role, std::size_t count, const std::string& queue) {
        for (std::size_t i = 0; i < count; ++i) {
            add({.role = role,
                 .index = m_added[role]++,
                 .rate = 300,
                 .queue = queue,
                 .database = m_postgres.conninfo(),
                 .queues = m_notices ? banks.size() : 1});
        }
    }
    [[nodiscard]] std::uint64_t number(const std::string& bank, const std::string& query) const {
        pqxx::connection connection(at_bank(m_postgres.primary().conninfo(), bank));
        return pqxx::nontransaction(connection).exec(query)[0][0].as<std::uint64_t>();
    }
    /// At both banks.
    [[nodiscard]] std::uint64_t sum(const std::string& query) const {
        return number(banks[0], query) + number(banks[1], query);
    }
    void await_free_writes(const WriteOutages& outages) {
        while (!outages.may_begin()) {
            pass(std::chrono::milliseconds(10));
        }
    }
    void make_tables(const std::string& bank);
    void await_finished();
    /// At each bank.
    void expect_none(const std::string& what, const std::string& query);

    RedisServer& m_lasting;
    PostgresPair& m_postgres;
    std::string m_old;
    const bool m_notices;
    RedisClient m_forgetful_client{server().uri()};
    RedisClient m_lasting_client{m_lasting.uri()};
    WriteOutages m_lasting_outages{m_lasting, report()};
    std::map<std::string, std::size_t> m_added; ///< by role
};

inline PaymentCrowd::PaymentCrowd(RedisServer& forgetful, RedisServer& lasting,
                                  PostgresPair& postgres, FaultReport& report, std::uint64_t seed,
                                  std::string old)
    : Crowd(forgetful, report, seed),
      m_lasting(lasting),
      m_postgres(postgres),
      m_old(std::move(old)),
      m_notices(m_old.empty()) {
    for (const std::string bank : banks) {
        make_tables(bank);
        add_all("payer", 2, bank);
        add_all("clerk", 2, bank);
        add_all("relay", 2, bank);
        add_all("reconciler", 2, bank);
        add_all("reviver", 1, bank);
        add_all("collector", 1, transfers_queue(bank));
        add_all("collector", 1, receipts_queue(bank));
    }
    for (std::size_t i = 0; i < banks.size(); ++i) {
        const std::string bank = banks.at(i);
        static_cast<void>(m_postgres.primary().ask(
            "CREATE VIEW " + bank + ".other_announced AS SELECT * FROM " + banks.at(1 - i) +
            ".announced WHERE " + (m_notices ? "true" : "false")));
        add_all("submitter", 1, bank);
    }
}

inline void PaymentCrowd::refuse_writes_at_times(std::uint64_t faults, std::uint64_t least) {
    if (outages().count() > m_lasting_outages.count()) {
        m_lasting_outages.begin_at_times(chance(), faults, least);
    } else {
        Crowd::refuse_writes_at_times(faults, least);
    }
}

inline void PaymentCrowd::make_tables(const std::string& bank) {
    const std::string conninfo = m_postgres.primary().conninfo();
    static_cast<void>(m_postgres.primary().ask("CREATE SCHEMA " + bank));
    if (m_old.empty()) {
        Schema(at_bank(conninfo, bank)).apply();
    } else {
        const pid_t process =
            spawn({m_old, "schema", at_bank(conninfo, bank)},
                  Fd{::open("/dev/null", O_RDONLY | O_CLOEXEC)}.get(), "/dev/null");
        int status = 0;
        wait_for(process, 0, &status);
        if (status != 0) {
            wrong().emplace_back("the older version has made no tables");
        }
    }
    pqxx::connection connection(at_bank(conninfo, bank));
    pqxx::work tx(connection);
    tx.exec("CREATE TABLE accounts (id integer PRIMARY KEY, balance bigint NOT NULL)");
    tx.exec("INSERT INTO accounts SELECT id, 1000 FROM generate_series(1, 50) id");
    tx.exec(
        "CREATE TABLE requested (number bigint, from_id integer, to_id integer, amount integer)");
    tx.exec("CREATE TABLE applied (number bigint)");
    for (const char* table : {"filed", "announced", "copied", "noticed"}) {
        tx.exec(std::string("CREATE TABLE ") + table + " (number bigint)");
    }
    tx.commit();
}

inline void PaymentCrowd::expect_none(const std::string& what, const std::string& query) {
    if (const std::uint64_t count = sum("SELECT count(*) FROM (" + query + ") found"); count != 0) {
        wrong().push_back(std::to_string(count) + ' ' + what);
    }
}

/// The backlog from the kills takes its time.
inline void PaymentCrowd::await_finished() {
    const auto left = [this] {
        return sum("SELECT (SELECT count(*) FROM orizuru_outbox) + "
                   "abs((SELECT count(*) FROM requested) - (SELECT count(*) FROM filed)) + "
                   "abs((SELECT count(*) FROM announced) - (SELECT count(*) FROM copied)) + "
                   "abs((SELECT count(*) FROM other_announced) - (SELECT count(*) FROM noticed))");
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
    free_redis();
    m_lasting_outages.end();
    while (members().back().work().role == "submitter") {
        kill(members().back());
        members().pop_back();
    }
    await_finished();
    judge_lives(m_forgetful_client, outages());
    judge_lives(m_lasting_client, m_lasting_outages);
    expect_none("transfers are lost",
                "SELECT number FROM requested EXCEPT SELECT number FROM applied");
    expect_none("transfers are doubled", "SELECT FROM applied GROUP BY number HAVING count(*) > 1");
    expect_none("transfers nobody has asked for",
                "SELECT number FROM applied EXCEPT SELECT number FROM requested");
    expect_none("receipts are lost", "SELECT number FROM applied EXCEPT SELECT number FROM filed");
    expect_none("receipts are doubled", "SELECT FROM filed GROUP BY number HAVING count(*) > 1");
    for (const std::string table : {"copied", "noticed"}) {
        const std::string source = table == "copied" ? "announced" : "other_announced";
        expect_none("messages of a bank are not " + table,
                    "SELECT number FROM " + source + " EXCEPT SELECT number FROM " + table);
        expect_none("messages of a bank are " + table + " twice",
                    "SELECT FROM " + table + " GROUP BY number HAVING count(*) > 1");
        expect_none("messages are " + table + " at the wrong bank",
                    "SELECT number FROM " + table + " EXCEPT SELECT number FROM " + source);
    }
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
    report().came("transfer carried out", sum("SELECT count(*) FROM applied"));
    report().came("transfer revived", sum("SELECT count(*) FROM orizuru_ledger_history "
                                          "WHERE from_state = 'dead'"));
    report().came("transfer expired", sum("SELECT count(*) FROM orizuru_ledger_history "
                                          "WHERE note = 'it has expired'"));
    report().came("run cancelled",
                  sum("SELECT count(*) FROM orizuru_ledger_history WHERE from_state = 'running' "
                      "AND note = 'cancelled by mistake'"));
    return std::move(wrong());
}

} // namespace orizuru::test
