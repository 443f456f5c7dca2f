// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The processes that move money, each of which may be killed at any moment. A transfer is submitted
// to the ledger and carried out by a payer, which puts a receipt into the outbox in the same
// transaction, in order or not; a clerk files the receipt, by an inbox, one by one or in batches.
// Some transfers die, or are cancelled by a reviver, who lets the dead live again. The tables have
// no unique key, which would hide a double.
//
// There are two banks, each a tenant with a schema and queues of its own. Who submits transfers at
// one sends notices of them to the other one, by both outboxes' tables in one transaction.

#pragma once

#include "crash/support/late_times.hpp"
#include "crash/support/work.hpp"
#include "fuzz/simulation/chance.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/error.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/batch.hpp>
#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/msgpack.hpp>
#include <orizuru/postgres.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

inline constexpr int payment_accounts = 50;
/// The schemas.
inline constexpr std::array<const char*, 2> banks{"bank_a", "bank_b"};
[[nodiscard]] inline std::string transfers_queue(const std::string& bank) {
    return bank + ".transfers";
}
[[nodiscard]] inline std::string receipts_queue(const std::string& bank) {
    return bank + ".receipts";
}
/// The same connection string, for the tables of a bank.
[[nodiscard]] inline std::string at_bank(const std::string& conninfo, const std::string& bank) {
    return conninfo + " options='-c search_path=" + bank + "'";
}

struct Transfer {
    std::uint64_t number = 0;
    int from = 0, to = 0, amount = 0;
    MSGPACK_DEFINE(number, from, to, amount)
};

struct Receipt {
    std::string table; ///< in which it is filed
    std::uint64_t number = 0;
    MSGPACK_DEFINE(table, number)
};

/// Makes it as soon as the servers let it.
template <class Make>
auto once_reachable(Make make) {
    while (true) {
        try {
            return make();
        } catch (const DatabaseError&) { // NOLINT(bugprone-empty-catch)
        } catch (const pqxx::failure&) { // NOLINT(bugprone-empty-catch)
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

class PaymentWork {
  public:
    /// The work's queue is the bank, but for a collector.
    explicit PaymentWork(const Work& work)
        : m_work(work),
          m_chance(work.seed),
          m_transfers(transfers_queue(work.queue)),
          m_receipts(receipts_queue(work.queue)) {}

    /// Runs until it is killed. Returns the exit status.
    int run() {
        if (m_work.role == "submitter") {
            submit();
        } else if (m_work.role == "payer") {
            m_work.index % 2 == 0 ? pay() : pay_batches();
        } else if (m_work.role == "clerk") {
            m_work.index % 2 == 0 ? file_receipts() : file_batches();
        } else if (m_work.role == "reviver") {
            revive();
        } else if (m_work.role == "reconciler") {
            once_reachable([&] {
                return connected<LedgerReconciler>(database(), m_work.endpoint());
            })->run(std::stop_token());
        } else if (m_work.role == "relay") {
            once_reachable([&] {
                return connected<OutboxRelay>(database(), m_work.endpoint());
            })->run(std::stop_token());
        } else {
            connected<GarbageCollector>(m_work.endpoint(), m_work.queue,
                                        storm_collector(m_work.index))
                ->run(std::stop_token(), storm_pass);
        }
        return EXIT_FAILURE;
    }

  private:
    using Positions = std::span<const std::size_t>;

    static constexpr BatchOptions few{.size = 10, .time = std::chrono::milliseconds(100)};

    [[nodiscard]] Database database() const { return at_bank(m_work.database, m_work.queue); }
    [[nodiscard]] std::string other_bank() const {
        return m_work.queue == banks[0] ? banks[1] : banks[0];
    }
    [[nodiscard]] std::unique_ptr<orizuru::Ledger<Transfer>> open_ledger() const {
        RetryPolicy retry;
        retry.max_attempts = 1'000'000;
        retry.backoff = backoff::fixed(std::chrono::milliseconds(100));
        return once_reachable([&] {
            return std::make_unique<orizuru::Ledger<Transfer>>(
                database(), m_transfers,
                LedgerOptions{.name = m_work.role, .lease = storm_lease, .retry = retry});
        });
    }
    [[nodiscard]] std::unique_ptr<Inbox> open_inbox() const {
        return once_reachable([&] { return std::make_unique<Inbox>(database(), m_receipts); });
    }
    template <class T>
    [[nodiscard]] auto open_queue(const std::string& queue) const {
        return connected<Consumer<Job<T>>>(
            m_work.endpoint(), queue,
            ConsumerOptions{.name = m_work.name(),
                            .lease = storm_lease,
                            .prefetch = 10,
                            .on_event = noting_events(m_work.late_times(), m_work.serial)});
    }
    template <class T>
    [[nodiscard]] static std::vector<std::string>
    ids_of(const std::vector<MessageGuard<Job<T>>>& guards) {
        std::vector<std::string> ids;
        for (const auto& guard : guards) {
            ids.push_back(guard->id);
        }
        return ids;
    }

    void submit();
    void submit_ten(pqxx::connection& connection, orizuru::Ledger<Transfer>& ledger,
                    std::uint64_t& number);
    static void file(pqxx::work& tx, const Receipt& receipt) {
        tx.exec("INSERT INTO " + receipt.table + " VALUES (" + std::to_string(receipt.number) +
                ")");
    }
    /// Some wait, and some expire, which lets them die.
    LedgerJobOptions when() {
        LedgerJobOptions chosen;
        if (m_chance.happens(0.3)) {
            chosen.delay = std::chrono::milliseconds(m_chance.between(1, 200));
        }
        if (m_chance.happens(0.2)) {
            chosen.expires_after = std::chrono::milliseconds(m_chance.between(1, 300));
        }
        return chosen;
    }
    /// What fails is rolled back.
    void carry_out(pqxx::work& tx, const Transfer& transfer);
    void pay();
    void pay_batches();
    void revive();
    [[nodiscard]] static OutboxOrder order_of(std::uint64_t number) {
        return number % 2 == 0 ? OutboxOrder::commits : OutboxOrder::none;
    }
    void file_receipts();
    void file_batches();

    const Work& m_work;
    Chance m_chance;
    std::string m_transfers;
    std::string m_receipts;
};

/// The database knows whether a COMMIT in doubt has happened.
inline void PaymentWork::submit() {
    const auto ledger = open_ledger();
    for (std::uint64_t number = m_work.first_message();;) {
        auto connection = once_reachable(
            [&] { return std::make_unique<pqxx::connection>(database().conninfo()); });
        const pqxx::quiet_errorhandler quiet(*connection);
        try {
            while (true) {
                submit_ten(*connection, *ledger, number);
                std::this_thread::sleep_for(std::chrono::milliseconds(10'000 / m_work.rate));
            }
        } catch (const pqxx::failure&) { // NOLINT(bugprone-empty-catch)
        }
    }
}

/// The COMMIT is in the schema of the other bank.
inline void PaymentWork::submit_ten(pqxx::connection& connection, orizuru::Ledger<Transfer>& ledger,
                                    std::uint64_t& number) {
    pqxx::work tx(connection);
    std::vector<Transfer> transfers;
    for (std::size_t i = 0; i < 10; ++i) {
        const Transfer transfer{++number, static_cast<int>(m_chance.between(1, 50)),
                                static_cast<int>(m_chance.between(1, 50)),
                                static_cast<int>(m_chance.between(1, 100))};
        tx.exec("INSERT INTO requested VALUES (" + std::to_string(number) + ", " +
                std::to_string(transfer.from) + ", " + std::to_string(transfer.to) + ", " +
                std::to_string(transfer.amount) + ")");
        transfers.push_back(transfer);
    }
    ledger.submit_all(tx, transfers, when());
    const auto send = [&](const std::string& bank, const std::string& table) {
        tx.exec("SET LOCAL search_path = " + bank);
        Outbox<Receipt>(receipts_queue(bank), {.order = order_of(number / 10)})
            .push(tx, Receipt{table, number});
    };
    tx.exec("INSERT INTO announced VALUES (" + std::to_string(number) + ")");
    send(m_work.queue, "copied");
    if (m_work.queues > 1) {
        send(other_bank(), "noticed");
    }
    tx.commit();
}

inline void PaymentWork::carry_out(pqxx::work& tx, const Transfer& transfer) {
    const auto book = [&](int account, int amount) {
        tx.exec("UPDATE accounts SET balance = balance + " + std::to_string(amount) +
                " WHERE id = " + std::to_string(account));
    };
    book(transfer.from, -transfer.amount);
    book(transfer.to, transfer.amount);
    tx.exec("INSERT INTO applied VALUES (" + std::to_string(transfer.number) + ")");
    Outbox<Receipt>(m_receipts, {.order = order_of(transfer.number)})
        .push(tx, Receipt{"filed", transfer.number});
    if (m_chance.happens(0.03)) {
        throw std::runtime_error("the bank is closed");
    }
    if (m_chance.happens(0.02)) {
        throw DoNotRetry("no such account");
    }
}

inline void PaymentWork::pay() {
    const auto ledger = open_ledger();
    const auto transfers = open_queue<Transfer>(m_transfers);
    while (true) {
        try {
            if (auto guard = transfers->next()) {
                ledger->process(*guard, [&](pqxx::work& tx, const Transfer& transfer) {
                    carry_out(tx, transfer);
                });
            }
        } catch (const Error&) { // NOLINT(bugprone-empty-catch)
        }
    }
}

inline void PaymentWork::pay_batches() {
    const auto ledger = open_ledger();
    const auto transfers = open_queue<Transfer>(m_transfers);
    while (true) {
        try {
            auto guards = next_batch(*transfers, few);
            ledger->run_batch(ids_of(guards), [&](pqxx::work& tx, Positions claimed) {
                for (const std::size_t position : claimed) {
                    carry_out(tx, guards[position]->payload);
                }
            });
            std::ranges::for_each(guards, [](auto& guard) { guard.ack(); });
        } catch (const Error&) { // NOLINT(bugprone-empty-catch)
        }
    }
}

inline void PaymentWork::revive() {
    const auto ledger = open_ledger();
    for (int turn = 0;; ++turn) {
        try {
            for (const LedgerEntry& entry : ledger->list(LedgerState::dead)) {
                ledger->revive(entry.id);
            }
            const LedgerState cancelled =
                turn % 2 == 0 ? LedgerState::running : LedgerState::pending;
            for (const LedgerEntry& entry : ledger->list(cancelled, 2)) {
                ledger->cancel(entry.id, "cancelled by mistake");
            }
        } catch (const Error&) { // NOLINT(bugprone-empty-catch)
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

inline void PaymentWork::file_receipts() {
    const auto inbox = open_inbox();
    const auto receipts = open_queue<Receipt>(m_receipts);
    while (true) {
        try {
            if (auto guard = receipts->next()) {
                inbox->process(
                    *guard, (*guard)->id,
                    [](pqxx::work& tx, const Job<Receipt>& receipt) { file(tx, receipt.payload); });
            }
        } catch (const Error&) { // NOLINT(bugprone-empty-catch)
        }
    }
}

inline void PaymentWork::file_batches() {
    const auto inbox = open_inbox();
    const auto receipts = open_queue<Receipt>(m_receipts);
    while (true) {
        try {
            auto guards = next_batch(*receipts, few);
            const auto results =
                inbox->run_batch(ids_of(guards), [&](pqxx::work& tx, Positions fresh) {
                    for (const std::size_t position : fresh) {
                        file(tx, guards[position]->payload);
                    }
                });
            for (std::size_t i = 0; i < guards.size(); ++i) {
                results[i].outcome == InboxOutcome::busy ? guards[i].reject() : guards[i].ack();
            }
        } catch (const Error&) { // NOLINT(bugprone-empty-catch)
        }
    }
}

} // namespace orizuru::test
