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
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

// What one step sends: no more messages, and no more bytes but for the last message's.
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
        std::size_t bytes = 0;

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
    void recover(pqxx::work& transaction, const std::string& queue, LedgerStep& step) const;
    [[nodiscard]] Batch unsent(pqxx::work& transaction, const std::string& queue,
                               std::int64_t epoch) const;
    [[nodiscard]] Batch lock(pqxx::work& transaction, Batch batch) const;
    [[nodiscard]] static bool send(Connection& redis, const Keys& keys, const std::string& expected,
                                   const std::string& next, const Batch& batch);

    std::string m_worker;
    std::chrono::milliseconds m_sweep;
    LedgerQueueLock m_lock;
    std::string m_begin_epoch;
    std::string m_recover;
    std::string m_unsent;
    std::string m_lock_jobs;
    std::string m_sent;
    std::string m_sequence;
};

inline LedgerStepper::LedgerStepper(Options options)
    : m_worker(std::move(options.worker)),
      m_sweep(options.sweep),
      m_lock(options.prefix, options.longest_idle),
      m_begin_epoch(with_prefix("UPDATE $p$ledger_queue SET epoch = greatest(epoch, $2) + 1, "
                                "sequence = 0, timeline = $p$ledger_timeline() "
                                "WHERE name = $1 RETURNING epoch",
                                options.prefix)),
      m_recover(with_prefix("SELECT * FROM $p$ledger_recover($1, $2)", options.prefix)),
      // What was lost with Redis before what was lost alone (losses.hpp), and that before
      // what is new; one range of an index each.
      m_unsent(with_prefix(R"sql(
SELECT id, encode(payload, 'hex'), sent_epoch = $2, attempt FROM (
    SELECT id, payload, sent_epoch, attempt, sum(octet_length(payload)) OVER (
        ORDER BY sent_epoch = 0, sent_epoch, created_at
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - octet_length(payload) AS before
    FROM ((SELECT id, payload, sent_epoch, created_at, attempt FROM $p$ledger
           WHERE queue = $1 AND state = 'pending' AND sent_epoch >= 1 AND sent_epoch < $2
           ORDER BY sent_epoch, created_at LIMIT 1000)
          UNION ALL
          (SELECT id, payload, sent_epoch, created_at, attempt FROM $p$ledger
           WHERE queue = $1 AND state = 'pending' AND sent_epoch > 0 AND sent_epoch = $2
           AND sent_at < (SELECT gone_before FROM $p$ledger_queue WHERE name = $1)
           ORDER BY sent_at LIMIT 1000)
          UNION ALL
          (SELECT id, payload, sent_epoch, created_at, attempt FROM $p$ledger
           WHERE queue = $1 AND state = 'pending' AND sent_epoch = 0
           ORDER BY created_at LIMIT 1000)
          LIMIT 1000) AS next) AS batch
WHERE before < $3
)sql",
                           options.prefix)),
      // Still pending, in words that do not lead the planner to the index of all that is.
      m_lock_jobs(with_prefix("SELECT id FROM $p$ledger WHERE id = ANY ($1::text[]) "
                              "AND due IS NULL AND finished_at IS NULL "
                              "FOR NO KEY UPDATE SKIP LOCKED",
                              options.prefix)),
      // Never before gone_before, or it would be sent again and again after the clock was set back.
      m_sent(with_prefix(R"sql(
UPDATE $p$ledger SET sent_epoch = $2,
    sent_again = CASE WHEN sent_epoch = $2 THEN least(sent_again + 1, 20) ELSE 0 END,
    sent_at = greatest(clock_timestamp(), (SELECT gone_before FROM $p$ledger_queue WHERE name = $4))
        + CASE WHEN sent_epoch = $2
               THEN least($3::bigint << least(sent_again + 1, 20), greatest($3, 3600000)) - $3
               ELSE 0 END * interval '1 ms'
WHERE id = ANY ($1::text[])
)sql",
                         options.prefix)),
      m_sequence(with_prefix("UPDATE $p$ledger_queue SET sequence = $2, gone_before = "
                             "CASE WHEN $3::boolean THEN gone_before END WHERE name = $1",
                             options.prefix)) {}

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
    recover(transaction, queue, step);
    const Batch waiting = unsent(transaction, queue, known.epoch);
    const bool full = waiting.jobs.size() == most_sent || waiting.bytes >= most_bytes_sent;
    const Batch batch = lock(transaction, waiting);
    const std::size_t recovered = step.told.size() + step.retried;
    step.next = recovered >= 1000 || (full && !batch.jobs.empty()) ? LedgerStep::Next::more
                                                                   : LedgerStep::Next::done;
    if (!batch.jobs.empty()) {
        // Never one that a step before has sent and not committed.
        mark.sequence = std::max(mark.sequence + 1, row->transaction);
        if (!send(redis, keys, found, mark.text(), batch)) {
            return {.next = LedgerStep::Next::more}; // lost meanwhile: all over again
        }
        execute(transaction, m_sent, batch.ids(), known.epoch, m_sweep.count(), queue);
        execute(transaction, m_sequence, queue, mark.sequence, full ? "true" : "false");
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

inline void LedgerStepper::recover(pqxx::work& transaction, const std::string& queue,
                                   LedgerStep& step) const {
    for (const auto& row : execute(transaction, m_recover, queue, m_worker)) {
        const bool died = row[2].as<bool>();
        if (!row[1].as<bool>() && !died) {
            ++step.retried;
            continue;
        }
        step.told.push_back({died ? LedgerEventKind::died : LedgerEventKind::lease_ended,
                             text_of(row[0]), text_of(row[3])});
    }
}

inline LedgerStepper::Batch LedgerStepper::unsent(pqxx::work& transaction, const std::string& queue,
                                                  std::int64_t epoch) const {
    Batch batch;
    for (const auto& row : execute(transaction, m_unsent, queue, epoch, most_bytes_sent)) {
        batch.jobs.push_back({text_of(row[0]),
                              with_ledger_attempt(from_hex(text_of(row[1])), row[3].as<int>()),
                              row[2].as<bool>()});
        batch.bytes += batch.jobs.back().message.size();
    }
    return batch;
}

/// Those that nobody else has locked, locked.
inline LedgerStepper::Batch LedgerStepper::lock(pqxx::work& transaction, Batch batch) const {
    if (batch.jobs.empty()) {
        return batch;
    }
    std::set<std::string> free;
    for (const auto& row : execute(transaction, m_lock_jobs, batch.ids())) {
        free.insert(text_of(row[0]));
    }
    std::erase_if(batch.jobs, [&](const Unsent& unsent) { return !free.contains(unsent.job); });
    return batch;
}

inline bool LedgerStepper::send(Connection& redis, const Keys& keys, const std::string& expected,
                                const std::string& next, const Batch& batch) {
    const Reply reply = redis.roundtrip(keys.source(), "EVAL", [&](std::string& out) {
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
    redis.require(reply, Reply::Type::integer, "EVAL");
    return reply.integer == 1;
}

} // namespace orizuru::detail
