// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue as an Inspector sees it.

#include <orizuru/codec.hpp>
#include <orizuru/jobs/group/group_state.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru {

/// Where a message of a queue can be.
enum class Place {
    waiting,   ///< in the queue
    held,      ///< by a consumer
    scheduled, ///< not yet due
    rejected,  ///< until a collector puts it back
    suspected, ///< blamed for the deaths of consumers: waits apart until it is tried again
    dead       ///< until a person decides
};

/// The reason for which messages wait that could run if their queue had no limit (Worker::limit).
enum class LimitWait {
    nothing, ///< no limit holds them up
    slot,    ///< as many handlers run as may
    permit   ///< its rate has no permit now
};

/// The name as a word: `nothing`, `slot` or `permit`.
[[nodiscard]] constexpr std::string_view to_string(LimitWait wait) noexcept {
    switch (wait) {
    case LimitWait::nothing:
        return "nothing";
    case LimitWait::slot:
        return "slot";
    case LimitWait::permit:
        return "permit";
    }
    return "unknown";
}

/// The numbers of a queue at one moment.
struct QueueState {
    std::string queue;           ///< its name
    std::uint64_t waiting = 0;   ///< messages in the queue
    std::uint64_t held = 0;      ///< messages that consumers hold, also those that died
    std::uint64_t scheduled = 0; ///< messages that a scheduler has not moved yet
    std::uint64_t rejected = 0;  ///< messages that wait for a collector
    std::uint64_t suspected = 0; ///< messages that wait apart: Place::suspected
    std::uint64_t dead = 0;      ///< elements of the dead list
    std::uint64_t consumers = 0; ///< registered, whether they are alive or not
    std::uint64_t unheard = 0;   ///< unheard for their lease: no collector has been here since
    bool paused = false;         ///< workers must not take from it
    /// There are rejected messages, and for a day or longer no collector has been here.
    bool uncollected = false;
    /// Time at which the message to be served next was enqueued; empty if it is no job, or there is
    /// none.
    std::optional<JobTime> oldest = {};
    /// Time at which the first of those scheduled is due.
    std::optional<JobTime> next_due = {};
    /// Redis' clock; empty for a user without the right to TIME.
    std::optional<JobTime> now = {};
    std::uint64_t keys = 0;   ///< keys that have jobs, if it has jobs with keys (keyed.hpp)
    std::uint64_t behind = 0; ///< jobs behind the one of their key that is out: in no place yet
    /// Groups that were made beside it (jobs/group.hpp) and have not ended; if there are more than
    /// 1000, those that have expired count, too, until the next one is made.
    std::uint64_t groups = 0;
    /// Members of these groups that have not ended; empty if there are more than 1000.
    std::optional<std::uint64_t> members = 0;
    std::uint64_t slots_taken = 0; ///< handlers that run, if it has a limit of them (Worker::limit)
    LimitWait waits_for = LimitWait::nothing; ///< for this it waits by its limit
};

/// A registered consumer.
struct ConsumerState {
    std::string id; ///< that of its incarnation: Consumer::name
    /// Rest of its lease; empty: it has gone unheard for its lease. Then a collector gives back
    /// what it holds.
    std::optional<std::chrono::milliseconds> lease_left = {};
    std::uint64_t held = 0; ///< messages that it holds
    /// Number of its settlements and fetches, about.
    std::uint64_t steps = 0;
};

/// The result of Inspector::cancel.
enum class CancelResult {
    not_found, ///< unchanged: the job was neither waiting, held nor put off
    buried,    ///< it is on the dead list, and does not run
    requested  ///< a consumer holds it; its worker will tell the handler to stop, if it still runs
};

/// A message where an Inspector has found it.
struct PlacedMessage {
    Place place = Place::waiting; ///< says which of the following are set
    std::string payload; ///< bytes of the message; empty for a dead element that is no entry
    /// The element as Redis has it, by which it is found again.
    std::string bytes;
    /// Why it died.
    std::string reason = {};
    /// Time at which it died or is due.
    std::optional<JobTime> time = {};
    /// Id of the consumer that holds it.
    std::string consumer = {};
    /// Number of times that a suspected one was blamed for a consumer's death; forgotten 72 h after
    /// the last.
    std::uint64_t blamed = 0;
    /// Time at which the handler of a held one began, as its worker has reported: it does so every
    /// 5 s, of up to 100 jobs of a queue that run for the longest.
    std::optional<JobTime> running_since = {};

    /// The job in the payload; nothing when that is no job's envelope.
    [[nodiscard]] std::optional<Job<Raw>> job() const;
};

/// A key of a queue in order (keyed.hpp).
struct KeyState {
    std::string key;          ///< its name
    std::uint64_t behind = 0; ///< jobs behind the one that is out
    /// The job that is out, usually one; empty for Inspector::keys.
    std::vector<PlacedMessage> out = {};
};

/// A group of jobs (jobs/group.hpp).
struct QueueGroup {
    std::string id;        ///< that of the group
    GroupState state = {}; ///< its progress
    /// Time at which it was made, by Redis' clock.
    std::optional<JobTime> made = {};
    /// Rest of the time until it is gone, unless it is committed or gets more members; of one that
    /// is done, until it is forgotten. Empty: it stays.
    std::optional<std::chrono::milliseconds> expires_in = {};
    /// Queue to which the job that follows will go; empty: none follows, or it has been pushed.
    std::string then_queue = {};
};

} // namespace orizuru
