// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Finds the messages that a queue has lost although Redis has its mark (mark.hpp): those
// that were removed alone, and those that were buried. No job may wait for one of them.
//
// Buried: the job is pending, and an entry of the dead list is a message of the try for which it is
// (stamp.hpp). Then the job has failed in that try, which is the reconciler's: the messages
// of one try, of which there may be several, count once, whenever they are buried.
//
// Gone: the job is pending, its message was sent longer ago than a sweep takes, and the source list
// is empty or serves next a job that was submitted after that sending. For what is pushed first is
// served first, so that nothing is gone in a backlog, however long it is. The comparison is by
// PostgreSQL's clock alone. That is decided for all of them at once, by a time in the queue's row,
// and the reconciler's steps send them again (step.hpp). A message that somebody holds and
// has not claimed, or has put off, is taken for gone, too; the claims admit one run. Each message
// that is sent again can be held or put off as well, so a sending must be twice as old as the one
// before until it is taken for gone, up to an hour: sent_at is later than the sending by what that
// is more than a sweep.

#include <orizuru/connection.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/postgres/array.hpp>
#include <orizuru/detail/postgres/encoding.hpp>
#include <orizuru/detail/postgres/ledger/losses_script.hpp>
#include <orizuru/detail/postgres/ledger/mark.hpp>
#include <orizuru/detail/postgres/ledger/queue_row.hpp>
#include <orizuru/detail/postgres/ledger/reading.hpp>
#include <orizuru/detail/postgres/ledger/step.hpp>
#include <orizuru/detail/postgres/ledger/tries.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/postgres/ledger_event.hpp>
#include <orizuru/reply.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class LedgerLosses {
  public:
    /// `retry` is for jobs whose messages were buried, except its max_attempts.
    LedgerLosses(const LedgerStepper::Options& options, RetryPolicy retry);

    /// One transaction and one script, in which the queue's row is locked; it waits for nobody's
    /// lock. At most a thousand entries of the dead list: then `next` is more.
    [[nodiscard]] LedgerStep search(pqxx::connection& database, Connection& redis,
                                    const std::string& queue) const {
        return storing_reasons(
            [&](ReasonForm form) { return search(database, redis, queue, form); });
    }

  private:
    static constexpr std::size_t most_entries = 1000;
    static constexpr std::size_t most_entry_bytes = std::size_t{8} << 20;

    /// The reason of the last burial of each job in each try, by its id and its ledger_attempt.
    using Burials = std::map<std::pair<std::string, std::int64_t>, std::string>;
    /// State of the queue in Redis, by find_losses_script.
    struct Found {
        LedgerMark mark;
        /// The job whose message is served next; empty: there is no message; none: it is unknown.
        std::optional<std::string> served = {};
        Burials buried = {};
        std::int64_t dead_seen = 0;
        bool more = false;
    };
    /// Jobs that have failed in a try, in the same order.
    struct Failures {
        std::vector<std::string> jobs;
        std::vector<std::string> delays;
        std::vector<std::string> reasons;
    };

    [[nodiscard]] LedgerStep search(pqxx::connection& database, Connection& redis,
                                    const std::string& queue, ReasonForm form) const;
    [[nodiscard]] static Found ask(Connection& redis, const Keys& keys, std::int64_t dead_seen);
    /// Leaves out the ids that the database's encoding cannot hold: they are no jobs of its.
    static void keep_possible(pqxx::work& transaction, Found& found);
    /// Returns whether all of them are settled.
    bool fail_buried(pqxx::work& transaction, const std::string& queue, std::int64_t epoch,
                     const Burials& buried, ReasonForm form, LedgerStep& step) const;

    std::string m_worker;
    std::chrono::milliseconds m_sweep;
    RetryPolicy m_retry;
    LedgerQueueLock m_lock;
    std::string m_buried;
    std::string m_count_buried;
    std::string m_claim;
    std::string m_fail;
    std::string m_seen;
    std::string m_gone;
};

inline LedgerLosses::LedgerLosses(const LedgerStepper::Options& options, RetryPolicy retry)
    : m_worker(options.worker),
      m_sweep(options.sweep),
      m_retry(std::move(retry)),
      m_lock(options.prefix, options.longest_idle) {
    const auto sql = [&](const std::string& text) { return with_prefix(text, options.prefix); };
    // Pending, in words that do not lead the planner to the index of all that is.
    const std::string of_buried =
        sql("FROM unnest($1::text[], $2::bigint[]) AS entry (id, attempt) "
            "JOIN $p$ledger AS job ON job.id = entry.id WHERE job.queue = $3 "
            "AND job.due IS NULL AND job.finished_at IS NULL AND job.sent_epoch = $4 "
            "AND job.attempt = entry.attempt");
    m_buried = sql("SELECT job.id, job.attempt, job.max_attempts, coalesce((SELECT "
                   "extract(epoch FROM clock_timestamp() - min(at)) * 1000 FROM $p$ledger_history "
                   "WHERE job = entry.id AND to_state = 'failed'), 0)::bigint ") +
               of_buried + " FOR NO KEY UPDATE OF job SKIP LOCKED";
    m_count_buried = "SELECT count(*) " + of_buried;
    // No reconciler is woken for a try that ends at once.
    m_claim = sql("UPDATE $p$ledger SET state = 'running', attempt = attempt + 1, "
                  "token = token + 1, worker = $2, due = 'infinity', "
                  "changed_at = clock_timestamp(), changed_by = $2 WHERE id = ANY ($1::text[])");
    m_fail = sql("UPDATE $p$ledger AS job SET "
                 "state = CASE WHEN next.delay < 0 THEN 'dead' ELSE 'failed' END, "
                 "due = clock_timestamp() + next.delay * interval '1 ms', error = next.reason, "
                 "changed_at = clock_timestamp(), changed_by = $4 "
                 "FROM unnest($1::text[], $2::bigint[], $3::text[]) AS next (id, delay, reason) "
                 "WHERE job.id = next.id");
    m_seen = sql("UPDATE $p$ledger_queue SET dead_seen = $2 WHERE name = $1");
    // A time of submission that is still to come is from before the clock was set back.
    m_gone = sql(R"sql(
UPDATE $p$ledger_queue AS q SET gone_before = greatest(q.gone_before, limits.at)
FROM (SELECT least(clock_timestamp() - $3::bigint * interval '1 ms', served.at) AS at
      FROM (SELECT 'infinity'::timestamptz AS at WHERE $4::text = ''
            UNION ALL
            SELECT created_at FROM $p$ledger
            WHERE id = $4 AND queue = $1 AND created_at <= clock_timestamp()) AS served) AS limits
WHERE q.name = $1
  AND (SELECT sent_at FROM $p$ledger
       WHERE queue = $1 AND state = 'pending' AND sent_epoch > 0 AND sent_epoch = $2
       ORDER BY sent_at LIMIT 1) < limits.at
)sql");
}

inline LedgerStep LedgerLosses::search(pqxx::connection& database, Connection& redis,
                                       const std::string& queue, ReasonForm form) const {
    LedgerStep step;
    const Keys keys(queue);
    pqxx::work transaction(database);
    const std::optional<LedgerQueueRow> row = m_lock.take(transaction, queue);
    if (!row) {
        return step;
    }
    step.next = LedgerStep::Next::done;
    Found found = ask(redis, keys, row->dead_seen);
    if (form == ReasonForm::ascii) {
        keep_possible(transaction, found);
    }
    if (!row->same_timeline || !row->mark.included_in(found.mark)) {
        return step; // the next step has all of them sent again
    }
    const bool settled = fail_buried(transaction, queue, row->mark.epoch, found.buried, form, step);
    if (settled && found.dead_seen != row->dead_seen) {
        execute(transaction, m_seen, queue, found.dead_seen);
    }
    if (settled && found.more) {
        step.next = LedgerStep::Next::more;
    } else if (found.served) {
        execute(transaction, m_gone, queue, row->mark.epoch, m_sweep.count(), *found.served);
    }
    transaction.commit();
    return step;
}

inline LedgerLosses::Found LedgerLosses::ask(Connection& redis, const Keys& keys,
                                             std::int64_t dead_seen) {
    Reply reply = redis.command(keys.dead(), "EVAL", find_losses_script(), 3, keys.ledger(),
                                keys.source(), keys.dead(), dead_seen, longest_envelope_start,
                                longest_last_error, most_entries, most_entry_bytes);
    const auto need = [&](bool shape) {
        if (!shape) {
            refuse(redis, "EVAL");
        }
    };
    need(reply.is(Reply::Type::array) && reply.elements.size() == 5);
    const std::vector<Reply>& parts = reply.elements;
    need(parts[0].is(Reply::Type::string) && parts[2].is(Reply::Type::array) &&
         is_count(parts[3]) && is_count(parts[4]));
    Found found{.mark = parse_mark(parts[0].text),
                .dead_seen = parts[3].integer,
                .more = parts[4].integer == 1};
    const auto job_of = [](const std::string& start) -> std::optional<std::string> {
        const auto id = envelope_id(start);
        return id && storable(*id) ? std::optional(std::string(*id)) : std::nullopt;
    };
    found.served =
        parts[1].is(Reply::Type::string) ? job_of(parts[1].text) : std::optional(std::string());
    for (const Reply& entry : parts[2].elements) {
        need(entry.is(Reply::Type::array) && entry.elements.size() == 3);
        const std::vector<Reply>& fields = entry.elements;
        need(fields[0].is(Reply::Type::string) && fields[1].is(Reply::Type::string) &&
             is_count(fields[2]));
        if (const auto job = job_of(fields[0].text)) {
            found.buried[{*job, fields[2].integer}] = fields[1].text;
        }
    }
    return found;
}

inline void LedgerLosses::keep_possible(pqxx::work& transaction, Found& found) {
    const auto is_impossible = [&](const std::string& id) {
        if (to_ascii(id) == id) {
            return false;
        }
        // No parameters: with libpqxx 6 they do not begin a subtransaction.
        pqxx::subtransaction attempt(transaction);
        return unless_untranslatable([&] { return attempt.exec("SELECT " + attempt.quote(id)); })
            .empty();
    };
    std::erase_if(found.buried, [&](const auto& one) { return is_impossible(one.first.first); });
    if (found.served && is_impossible(*found.served)) {
        found.served.reset();
    }
}

inline bool LedgerLosses::fail_buried(pqxx::work& transaction, const std::string& queue,
                                      std::int64_t epoch, const Burials& buried, ReasonForm form,
                                      LedgerStep& step) const {
    if (buried.empty()) {
        return true;
    }
    std::vector<std::string> jobs;
    std::vector<std::string> attempts;
    for (const auto& [message, reason] : buried) {
        jobs.push_back(message.first);
        attempts.push_back(std::to_string(message.second));
    }
    const std::string ids = to_array(jobs);
    const std::string tries = to_array(attempts);
    const auto all =
        execute(transaction, m_count_buried, ids, tries, queue, epoch)[0][0].as<std::size_t>();
    if (all == 0) {
        return true;
    }
    Failures failures;
    for (const auto& row : execute(transaction, m_buried, ids, tries, queue, epoch)) {
        const std::string job = text_of(row[0]);
        const auto attempt = row[1].as<int>();
        const LedgerNextTry next = next_ledger_try(
            m_retry,
            {attempt + 1, row[2].as<int>(), std::chrono::milliseconds(row[3].as<std::int64_t>())},
            job, buried.at({job, attempt}));
        failures.jobs.push_back(job);
        failures.delays.push_back(std::to_string(next.delay_ms()));
        failures.reasons.push_back(in_form(form, next.reason));
        step.told.push_back(
            {next.delay ? LedgerEventKind::buried : LedgerEventKind::died, job, next.reason});
    }
    const std::string failed = to_array(failures.jobs);
    execute(transaction, m_claim, failed, m_worker);
    execute(transaction, m_fail, failed, to_array(failures.delays), to_array(failures.reasons),
            m_worker);
    return failures.jobs.size() == all;
}

} // namespace orizuru::detail
