// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Money that moves exactly once:  payments unix:///tmp/redis.sock "host=/tmp dbname=bank" 2000
//
// Transfers between accounts are submitted to a ledger in PostgreSQL; a reconciler sends them to
// the queue, and three workers carry them out. On purpose
//   - a worker is killed every 100 ms, wherever it is, and another one begins in its place;
//   - Redis is emptied (FLUSHALL) in the middle: all waiting messages are gone;
//   - one attempt in twenty fails.
// At the end the sum of all balances is the same, and each transfer was carried out once; else it
// exits with 1. Run it with databases of its own: examples/run payments

#include <orizuru/connection.hpp>
#include <orizuru/postgres.hpp>
#include <orizuru/worker.hpp>

#include <pqxx/pqxx>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

namespace {

using namespace std::chrono_literals;

struct Transfer {
    int number = 0, from = 0, to = 0, amount = 0;
    MSGPACK_DEFINE(number, from, to, amount)
};

constexpr int accounts = 50, first_balance = 1000;

orizuru::Ledger<Transfer> open_ledger(const orizuru::Database& database) {
    return {
        database,
        "transfers",
        {.lease = 2s, .retry = {.max_attempts = 1000, .backoff = orizuru::backoff::fixed(200ms)}}};
}

/// Changes both accounts and notes the transfer, in the transaction in which the ledger completes
/// the job.
void carry_out(pqxx::work& tx, const Transfer& transfer) {
    const auto book = [&](int account, int amount) {
        tx.exec("UPDATE accounts SET balance = balance + " + std::to_string(amount) +
                " WHERE id = " + std::to_string(account));
    };
    book(transfer.from, -transfer.amount);
    book(transfer.to, transfer.amount);
    tx.exec("INSERT INTO carried_out VALUES (" + std::to_string(transfer.number) + ")");
    static std::atomic<int> calls = 0;
    if (++calls % 20 == 0) {
        throw std::runtime_error("the bank is closed");
    }
}

/// Until it is killed.
void work(const orizuru::Endpoint& redis, const orizuru::Database& database) {
    auto ledger = open_ledger(database);
    // Its events would only tell of the faults that this program makes on purpose.
    orizuru::Worker worker(redis, {.concurrency = 4, .collect_interval = 1s, .on_event = nullptr});
    worker.handle<Transfer>("transfers",
                            [&](const Transfer& transfer, orizuru::JobContext<Transfer>& job) {
                                ledger.run(job.id(),
                                           [&](pqxx::work& tx) { carry_out(tx, transfer); });
                            },
                            {.lease = 2s});
    worker.run();
}

/// Sends submitted jobs, due retries and the jobs of dead workers; and all unfinished jobs when
/// Redis has lost them.
void reconcile(const orizuru::Endpoint& redis, const orizuru::Database& database) {
    orizuru::LedgerReconciler(database, redis).run(std::stop_token());
}

/// Runs `life` in a process of its own, with its own connections: it leaves those of its parent
/// alone.
template <class Life>
pid_t start(Life life) {
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL); // it dies with its parent, however that ends
        if (::getppid() != parent) {
            std::_Exit(1); // which has happened already
        }
        try {
            life();
        } catch (const std::exception& error) {
            std::cerr << error.what() << '\n';
        }
        std::_Exit(1);
    }
    return pid > 0 ? pid : throw std::system_error(errno, std::generic_category(), "fork");
}

void make_tables(pqxx::connection& bank) {
    pqxx::work tx(bank);
    tx.exec("CREATE TABLE accounts (id integer PRIMARY KEY, balance integer NOT NULL)");
    tx.exec("INSERT INTO accounts SELECT id, " + std::to_string(first_balance) +
            " FROM generate_series(1, " + std::to_string(accounts) + ") id");
    tx.exec("CREATE TABLE carried_out (transfer integer)"); // not unique: it would hide doubles
    tx.commit();
}

/// Submits a hundred in each transaction, which could do other work, too.
void submit_all(pqxx::connection& bank, const orizuru::Database& database, int transfers) {
    auto ledger = open_ledger(database);
    std::minstd_rand random(1);
    std::uniform_int_distribution<int> any(1, accounts);
    for (int number = 0; number < transfers;) {
        pqxx::work tx(bank);
        for (const int end = std::min(number + 100, transfers); number < end; ++number) {
            ledger.submit(tx, {number, any(random), any(random), any(random)});
        }
        tx.commit();
    }
}

int number_in(pqxx::connection& bank, const std::string& query) {
    return pqxx::nontransaction(bank).exec(query)[0][0].as<int>();
}

/// Kills one worker after the other until all transfers are carried out; returns how many it
/// killed.
int kill_until_done(pqxx::connection& bank, std::array<pid_t, 3>& workers, int transfers,
                    orizuru::Connection& redis, const std::function<void()>& life) {
    constexpr const char* done = "SELECT count(*) FROM orizuru_ledger WHERE state = 'completed'";
    int kills = 0;
    for (bool flushed = false; number_in(bank, done) < transfers; ++kills) {
        std::this_thread::sleep_for(100ms);
        pid_t& worker = workers.at(static_cast<std::size_t>(kills) % workers.size());
        ::kill(worker, SIGKILL);
        ::waitpid(worker, nullptr, 0);
        worker = start(life);
        if (!flushed && number_in(bank, done) > transfers / 2) {
            flushed = true;
            redis.command("", "FLUSHALL");
            std::cout << "Redis is emptied on purpose, with " << transfers - number_in(bank, done)
                      << " transfers to go\n";
        }
    }
    return kills;
}

} // namespace

int main(int count, char** arguments) {
    if (count < 3) {
        std::cerr << "usage: payments REDIS DATABASE [TRANSFERS]\n";
        return 2;
    }
    const orizuru::Endpoint redis_address(arguments[1]);
    const orizuru::Database database(arguments[2]);
    const int transfers = count > 3 ? std::atoi(arguments[3]) : 2000;

    const auto worker_life = [&] { work(redis_address, database); };
    orizuru::Schema(database).apply();
    pqxx::connection bank(database.conninfo());
    make_tables(bank);
    start([&] { reconcile(redis_address, database); });
    std::array workers{start(worker_life), start(worker_life), start(worker_life)};
    submit_all(bank, database, transfers);
    orizuru::Connection redis(redis_address);
    const int kills = kill_until_done(bank, workers, transfers, redis, worker_life);

    const int sum = number_in(bank, "SELECT sum(balance) FROM accounts");
    const int done = number_in(bank, "SELECT count(*) FROM carried_out");
    const int different = number_in(bank, "SELECT count(DISTINCT transfer) FROM carried_out");
    const int tries = number_in(bank, "SELECT sum(attempt) FROM orizuru_ledger");
    std::cout << kills << " workers killed on purpose\n"
              << tries << " tries\n"
              << done << " transfers carried out, " << different << " different ones, of "
              << transfers << "\n"
              << sum << " on all accounts, " << accounts * first_balance << " before\n";
    const bool right =
        sum == accounts * first_balance && done == transfers && different == transfers;
    std::cout << (right ? "Each transfer was carried out once.\n" : "SOMETHING IS WRONG\n");
    return right ? 0 : 1;
}
