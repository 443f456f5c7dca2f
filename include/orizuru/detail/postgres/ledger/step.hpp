// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One step of a reconciler: for one queue, at most a thousand jobs, one transaction with one
// sending to Redis in it.

#include <orizuru/connection.hpp>
#include <orizuru/detail/postgres/array.hpp>
#include <orizuru/detail/postgres/ledger/mark.hpp>
#include <orizuru/detail/postgres/ledger/queue_row.hpp>
#include <orizuru/detail/postgres/ledger/reading.hpp>
#include <orizuru/detail/postgres/ledger/stamp.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/postgres/ledger_event.hpp>
#include <orizuru/reply.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

// One step sends at most so many messages (as in tables/ledger_step.hpp), and at most so many bytes
// besides the last message's.
inline constexpr std::size_t most_sent = 1000;
inline constexpr std::size_t most_bytes_sent = 1 << 20;

/// The result of a step, all of it committed.
struct LedgerStep {
    enum class Next {
        done, ///< there was no more to do
        more, ///< there may be
        lost, ///< Redis had lost something: all is to be sent again
        busy  ///< another reconciler has the queue: nothing was done
    };
    Next next = Next::busy;
    std::uint64_t sent = 0;
    /// An event about a recovered job, a lost message, or a lost Redis.
    struct Told {
        LedgerEventKind kind;
        std::string job;
        std::string detail;
    };
    std::vector<Told> told = {};
    std::uint64_t retried = 0; ///< failed ones that are pending again
};

class LedgerStepper {
  public:
    struct Options {
        std::string prefix;
        std::string worker;
        std::chrono::milliseconds longest_idle; ///< see LedgerQueueLock
        std::chrono::milliseconds sweep;
    };

    explicit LedgerStepper(Options options);

    /// The queue's row is locked for the time of the step, and the jobs that it sends; it waits for
    /// nobody's lock: what is locked is left.
    [[nodiscard]] LedgerStep step(pqxx::connection& database, Connection& redis,
                                  const std::string& queue) const;

  private:
    struct Unsent {
        std::string job;
        std::string message;
        bool gone; ///< it was sent before, and is gone
    };
    struct Batch {
        std::vector<Unsent> jobs;
        bool full = false; ///< more may wait

        [[nodiscard]] std::string ids() const {
            std::vector<std::string> all;
            for (const Unsent& unsent : jobs) {
                all.push_back(unsent.job);
            }
            return to_array(all);
        }
    };

    [[nodiscard]] LedgerStep begin_epoch(pqxx::work& transaction, Connection& redis,
                                         const Keys& keys, const std::string& found,
                                         std::vector<LedgerStep::Told> told) const;
    /// Recovers what is due, notes that in `step`, and locks what is to be sent.
    [[nodiscard]] Batch take(pqxx::work& transaction, const std::string& queue, std::int64_t epoch,
                             LedgerStep& step) const;
    [[nodiscard]] static bool send(Connection& redis, const Keys& keys, const std::string& expected,
                                   const std::string& next, const Batch& batch);

    std::string m_worker;
    std::chrono::milliseconds m_sweep;
    LedgerQueueLock m_lock;
    std::string m_begin_epoch;
    std::string m_take;
    std::string m_sent;
};

inline LedgerStepper::LedgerStepper(Options options)
    : m_worker(std::move(options.worker)),
      m_sweep(options.sweep),
      m_lock(options.prefix, options.longest_idle),
      m_begin_epoch(with_prefix("UPDATE $p$ledger_queue SET epoch = greatest(epoch, $2) + 1, "
                                "sequence = 0, timeline = $p$ledger_timeline() "
                                "WHERE name = $1 RETURNING epoch",
                                options.prefix)),
      m_take(with_prefix("SELECT * FROM $p$ledger_take($1, $2, $3, $4)", options.prefix)),
      m_sent(with_prefix("SELECT $p$ledger_sent($1, $2, $3, $4, $5, $6)", options.prefix)) {}

inline LedgerStep LedgerStepper::step(pqxx::connection& database, Connection& redis,
                                      const std::string& queue) const {
    LedgerStep step;
    const Keys keys(queue);
    pqxx::work transaction(database);
    const std::optional<LedgerQueueRow> row = m_lock.take(transaction, queue);
    if (!row) {
        return step;
    }
    const LedgerMark& known = row->mark;
    const std::string found = redis.command(keys.ledger(), "GET", keys.ledger()).text;
    LedgerMark mark = parse_mark(found);
    if (!row->same_timeline) {
        return begin_epoch(transaction, redis, keys, found,
                           {{LedgerEventKind::postgres_replaced, {}, "it has another timeline"}});
    }
    if (!known.included_in(mark)) {
        const std::string lost =
            "Redis has " + (found.empty() ? "nothing" : found) + ", not " + known.text();
        return begin_epoch(
            transaction, redis, keys, found,
            known.epoch > 1 // else it is the first sending of all
                ? std::vector<LedgerStep::Told>{{LedgerEventKind::redis_lost, {}, lost}}
                : std::vector<LedgerStep::Told>{});
    }
    const Batch batch = take(transaction, queue, known.epoch, step);
    const std::uint64_t recovered = step.told.size() + step.retried;
    step.next =
        recovered >= most_sent || batch.full ? LedgerStep::Next::more : LedgerStep::Next::done;
    if (!batch.jobs.empty()) {
        // Never one that a step before has sent and not committed.
        mark.sequence = std::max(mark.sequence + 1, row->transaction);
        if (!send(redis, keys, found, mark.text(), batch)) {
            return {.next = LedgerStep::Next::more}; // lost meanwhile: all over again
        }
        execute(transaction, m_sent, batch.ids(), queue, known.epoch, mark.sequence,
                m_sweep.count(), batch.full ? "true" : "false");
        step.sent = batch.jobs.size();
        for (const Unsent& unsent : batch.jobs) {
            if (unsent.gone) {
                step.told.push_back({LedgerEventKind::message_lost, unsent.job, {}});
            }
        }
    }
    transaction.commit();
    return step;
}

inline LedgerStep LedgerStepper::begin_epoch(pqxx::work& transaction, Connection& redis,
                                             const Keys& keys, const std::string& found,
                                             std::vector<LedgerStep::Told> told) const {
    const LedgerMark begun{
        execute(transaction, m_begin_epoch, keys.source(), parse_mark(found).epoch)[0][0]
            .as<std::int64_t>(),
        0};
    transaction.commit();
    static_cast<void>(send(redis, keys, found, begun.text(), {}));
    return {.next = LedgerStep::Next::lost, .told = std::move(told)};
}

inline LedgerStepper::Batch LedgerStepper::take(pqxx::work& transaction, const std::string& queue,
                                                std::int64_t epoch, LedgerStep& step) const {
    Batch batch;
    for (const auto& row : execute(transaction, m_take, queue, m_worker, epoch, most_bytes_sent)) {
        const std::string job = text_of(row["job"]);
        const std::string outcome = text_of(row["outcome"]);
        if (outcome == "retried") {
            ++step.retried;
        } else if (!outcome.empty()) {
            step.told.push_back(
                {outcome == "died" ? LedgerEventKind::died : LedgerEventKind::lease_ended, job,
                 text_of(row["reason"])});
        } else {
            batch.jobs.push_back(
                {job,
                 with_ledger_attempt(from_hex(text_of(row["payload"])), row["tries"].as<int>()),
                 row["gone"].as<bool>()});
            batch.full = row["full_batch"].as<bool>();
        }
    }
    return batch;
}

inline bool LedgerStepper::send(Connection& redis, const Keys& keys, const std::string& expected,
                                const std::string& next, const Batch& batch) {
    const Reply reply = exchange(redis, keys.source(), "EVAL", [&](std::string& out) {
        begin_command(out, 7 + batch.jobs.size());
        append_argument(out, std::string_view("EVAL"));
        append_argument(out, send_script());
        append_argument(out, 2);
        for (const std::string& argument : {keys.ledger(), keys.source(), expected, next}) {
            append_argument(out, argument);
        }
        for (const Unsent& unsent : batch.jobs) {
            append_argument(out, unsent.message);
        }
    });
    require_type(redis, reply, Reply::Type::integer, "EVAL");
    return reply.integer == 1;
}

} // namespace orizuru::detail
