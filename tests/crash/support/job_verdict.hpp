// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// After a storm of jobs, when nothing waits any more: compares each job's journal with the dead
// lists and with the crashes that the collectors have counted.
//
// A job's message changes with each attempt and with nothing else. So an attempt is one message;
// the next is one more, and one for each worker that died with it. How many died, only a job's own
// count tells, until its ack ends that: workers also die with jobs that no handler has begun.

#pragma once

#include "crash/support/job_journal.hpp"
#include "crash/support/job_pushing.hpp"
#include "crash/support/job_work.hpp"

#include <orizuru/codec.hpp>
#include <orizuru/jobs/job.hpp>

#include <msgpack.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

class JobVerdict {
  public:
    /// Reads all journals of the folder. `killed`: the serials of processes that could not requeue
    /// anything.
    JobVerdict(const std::string& folder, std::set<std::uint64_t> killed);

    void add_recoveries(const std::map<std::string, std::int64_t>& counts) {
        for (const auto& [id, count] : counts) {
            m_crashes[number_in(id)] += count;
        }
    }
    void add_dead(const std::vector<std::string>& entries);

    /// How often each kind of event has come; before the end of the storm, too.
    [[nodiscard]] std::map<std::string, std::uint64_t> came() const;
    /// Returns the violations, in words.
    std::vector<std::string> judge();

  private:
    /// Redis' clock has microseconds, and due times have milliseconds.
    static constexpr std::int64_t tolerance = 1;

    [[nodiscard]] static std::string reason_of(std::uint64_t job) {
        return kind_of_job(job) == "limited" ? failure_by_time : failure_of_job(job);
    }

    struct Attempt {
        std::uint64_t body = 0;
        std::optional<std::int64_t> next_not_before; ///< the first one of its failures
        /// Runs that may have failed by their time limit, by process: the next one is not before.
        std::map<std::uint64_t, std::int64_t> too_late;
        std::int64_t first_start = 0;
        std::set<std::uint64_t> unfinished; ///< serials of processes in which a handler had it

        [[nodiscard]] std::optional<std::int64_t> failed_at() const {
            std::optional<std::int64_t> first = next_not_before;
            for (const auto& [serial, clock] : too_late) {
                first = std::min(first.value_or(clock), clock);
            }
            return first;
        }
    };
    struct Told {
        bool confirmed = false;
        std::uint64_t unique = 0;
        std::int64_t not_before = 0;
        std::map<int, Attempt> attempts;
        bool done = false;
        std::optional<std::int64_t> acked;
        std::int64_t last_start = 0;                   ///< when no other worker had it
        int last_attempt = 0;                          ///< the same
        std::vector<std::pair<int, std::string>> died; ///< attempt and reason
    };

    void tell(const JobRecord& record);
    void started(Told& job, const JobRecord& record);
    void judge(std::uint64_t number, const Told& job);
    void judge_attempts(std::uint64_t number, const Told& job, const std::string& name);
    void judge_death(std::uint64_t number, const Told& job, const std::string& name);
    void judge_unique();
    /// `what` names the job. Its records tell the rest.
    void accuse(std::uint64_t job, const std::string& what) {
        m_wrong.push_back(what + history(job));
    }
    [[nodiscard]] std::string history(std::uint64_t job) const;
    /// How many processes were killed while a handler had it.
    [[nodiscard]] std::uint64_t killed_with(const Attempt& attempt) const {
        return static_cast<std::uint64_t>(
            std::ranges::count_if(attempt.unfinished, [this](std::uint64_t serial) {
                return m_killed.contains(serial);
            }));
    }
    /// Nothing where the job's ack may have ended its count.
    [[nodiscard]] std::optional<std::int64_t> crashes(std::uint64_t job) const {
        const auto found = m_crashes.find(job);
        return found == m_crashes.end() ? std::nullopt : std::optional(found->second);
    }

    std::vector<JobRecord> m_records; ///< of all jobs, in their order
    std::set<std::uint64_t> m_killed;
    std::map<std::uint64_t, Told> m_jobs;
    std::map<std::uint64_t, std::int64_t> m_crashes; ///< by job
    std::map<std::string, std::uint64_t> m_came;
    std::vector<std::string> m_wrong;
};

inline JobVerdict::JobVerdict(const std::string& folder, std::set<std::uint64_t> killed)
    : m_killed(std::move(killed)) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        if (file.path().extension() == ".journal") {
            const auto more = JobJournal::read(file.path());
            m_records.insert(m_records.end(), more.begin(), more.end());
        }
    }
    std::ranges::stable_sort(m_records, {}, &JobRecord::time);
    std::ranges::for_each(m_records, [this](const JobRecord& record) { tell(record); });
}

inline void JobVerdict::tell(const JobRecord& record) {
    Told& job = m_jobs[record.job];
    switch (record.step) {
    case JobStep::pushing:
        job.not_before = record.clock;
        job.unique = record.unique;
        ++m_came["push begun"];
        break;
    case JobStep::pushed:
        job.confirmed = true;
        ++m_came["push confirmed"];
        break;
    case JobStep::not_pushed:
        m_came["unique push refused"] += record.unique != 0 ? 1 : 0;
        break;
    case JobStep::started:
        started(job, record);
        break;
    case JobStep::failing: {
        Attempt& attempt = job.attempts[record.attempt];
        attempt.unfinished.erase(record.serial);
        attempt.next_not_before =
            std::min(attempt.next_not_before.value_or(record.clock), record.clock);
        break;
    }
    case JobStep::stopping:
    case JobStep::done: {
        Attempt& attempt = job.attempts[record.attempt];
        attempt.unfinished.erase(record.serial);
        job.done = job.done || record.step == JobStep::done;
        if (record.clock != 0) {
            attempt.too_late[record.serial] = record.clock;
        }
        break;
    }
    case JobStep::in_time:
        job.attempts[record.attempt].too_late.erase(record.serial);
        break;
    case JobStep::acked:
        job.acked = record.time;
        break;
    }
}

inline void JobVerdict::started(Told& job, const JobRecord& record) {
    const std::string name = "job " + std::to_string(record.job);
    ++m_came["handler called"];
    if (record.misplaced) {
        accuse(record.job, name + " came to a handler of another kind, or beside too many others");
    }
    const auto [known, is_new] = job.attempts.try_emplace(record.attempt);
    Attempt& attempt = known->second;
    if (is_new) {
        attempt.body = record.body;
        attempt.first_start = record.clock;
    } else if (attempt.body != record.body) {
        accuse(record.job,
               "DUP " + name + " has attempt " + std::to_string(record.attempt) + " twice");
    }
    attempt.first_start = std::min(attempt.first_start, record.clock);
    if (!record.held) {
        return;
    }
    // After the death of a worker that defers acks it is unknown which of its jobs it had acked.
    if (!record.defers) {
        attempt.unfinished.insert(record.serial);
    }
    ++m_came["handler called by the only owner"];
    if (job.acked) {
        accuse(record.job, "DUP " + name + " came again after its ack");
    }
    if (record.attempt < job.last_attempt) {
        accuse(record.job, name + " came with attempt " + std::to_string(record.attempt) +
                               " after " + std::to_string(job.last_attempt));
    }
    job.last_attempt = record.attempt;
}

inline void JobVerdict::add_dead(const std::vector<std::string>& entries) {
    Scratch scratch;
    for (const std::string& entry : entries) {
        // [2, payload, reason, ms]
        const msgpack::object_handle handle = msgpack::unpack(entry.data(), entry.size());
        const auto fields = handle.get().as<std::vector<msgpack::object>>();
        const auto job = Codec<Job<std::string>>::decode(fields.at(1).as<std::string>(), scratch);
        m_jobs[number_in(job.id)].died.emplace_back(job.attempt, fields.at(2).as<std::string>());
        ++m_came["job died"];
    }
}

inline std::map<std::string, std::uint64_t> JobVerdict::came() const {
    auto came = m_came;
    for (const auto& [number, job] : m_jobs) {
        for (const auto& [count, attempt] : job.attempts) {
            came["crash seen and counted as an attempt"] += killed_with(attempt);
            came["job tried again after a failure"] += count > 1 ? 1 : 0;
        }
    }
    return came;
}

inline std::vector<std::string> JobVerdict::judge() {
    for (const auto& [number, job] : m_jobs) {
        judge(number, job);
    }
    judge_unique();
    return std::move(m_wrong);
}

inline void JobVerdict::judge(std::uint64_t number, const Told& job) {
    const std::string name = "job " + std::to_string(number);
    if ((job.confirmed || !job.attempts.empty()) && !job.done && job.died.empty()) {
        accuse(number, (job.confirmed ? "LOST " : "VANISHED ") + name + " with " +
                           std::to_string(job.attempts.size()) + " attempts seen");
    }
    judge_attempts(number, job, name);
    judge_death(number, job, name);
}

inline void JobVerdict::judge_attempts(std::uint64_t number, const Told& job,
                                       const std::string& name) {
    std::int64_t least = 1;
    std::int64_t unseen = 0; // workers that died with it before a handler had begun it
    std::int64_t killed = 0;
    std::optional<std::int64_t> not_before = job.not_before;
    for (const auto& [count, attempt] : job.attempts) {
        const std::string which = name + ", attempt " + std::to_string(count);
        if (count < least) {
            accuse(number, which + ": " + std::to_string(least) + " was to come");
        }
        unseen += count - least;
        if (!not_before) {
            accuse(number, which + " follows one that has not failed");
        } else if (attempt.first_start < *not_before - tolerance) {
            accuse(number, which + " came " + std::to_string(*not_before - attempt.first_start) +
                               " ms before its time");
        }
        const auto died = static_cast<std::int64_t>(killed_with(attempt));
        killed += died;
        least = count + 1 + died;
        not_before = attempt.failed_at();
    }
    const std::optional<std::int64_t> counted = crashes(number);
    if (counted && *counted < killed + unseen) {
        accuse(number, name + ": " + std::to_string(killed + unseen) + " workers died with it, " +
                           std::to_string(*counted) + " were counted");
    }
}

/// Checks that the job is on the dead list, once, because its last attempt has failed: each of its
/// attempts was begun, and each death with it counts as one more.
inline void JobVerdict::judge_death(std::uint64_t number, const Told& job,
                                    const std::string& name) {
    if (job.died.empty()) {
        return;
    }
    const auto& [last_number, reason] = job.died.front();
    const auto last = job.attempts.find(last_number);
    const bool failed = last != job.attempts.end() && last->second.failed_at();
    const auto failures = static_cast<std::int64_t>(job.attempts.size());
    if (job.died.size() > 1 || !failed || failures + crashes(number).value_or(0) < job_attempts ||
        reason != reason_of(number)) {
        accuse(number, name + " died " + std::to_string(job.died.size()) + " times, of attempt " +
                           std::to_string(last_number) + ": " + reason);
    }
}

inline void JobVerdict::judge_unique() {
    std::map<std::uint64_t, int> pushed;
    for (const auto& [number, job] : m_jobs) {
        if (job.unique != 0 && (job.confirmed || !job.attempts.empty()) &&
            ++pushed[job.unique] > 1) {
            accuse(number, "a unique push let job " + std::to_string(number) + " pass");
        }
    }
}

/// The records of the job, each on a line of its own.
inline std::string JobVerdict::history(std::uint64_t job) const {
    std::string lines;
    for (const JobRecord& record : m_records) {
        if (record.job == job) {
            const bool killed = m_killed.contains(record.serial);
            lines += "\n    " + std::to_string(record.time / 1'000'000) +
                     " ms: " + std::string(name_of(record.step)) + (record.held ? ", held" : "") +
                     ", attempt " + std::to_string(record.attempt) + ", process " +
                     std::to_string(record.serial) + (killed ? " (killed)" : "") +
                     (record.defers ? ", deferring" : "") + ", clock " +
                     std::to_string(record.clock);
        }
    }
    return lines;
}

} // namespace orizuru::test
