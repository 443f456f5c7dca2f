// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Jobs that are unique: at most one of an id at a time. The caller derives the id from the job. The
// push takes a lock in Redis in the same step, and writes the job's own id into it, so that a late
// ack never releases the lock of a newer job.
//
// The lock bounds pushes, not runs: deliveries repeat as those of any message, and a worker that
// acks before its handlers run (Guarantee::at_most_once) releases the lock then. The lock belongs
// to the queue of the push, also when `retry` brings the job to another one
// (RetryPolicy::retry_queue) or an Inspector moves it there. ScheduledList::cancel releases it as
// an ack does, and so does all else by which the library drops a job for good: push_bounded, an
// Inspector, and whatever removes it from the dead list. A job on the dead list, moved otherwise,
// or settled by a plain ack keeps its lock until that expires.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/guard_access.hpp>
#include <orizuru/detail/jobs/group/membership.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/unique_options.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

namespace detail {

template <class T>
bool push_locked(Producer<Job<T>>& producer, std::string_view id, Job<T> job,
                 const UniqueOptions& options, const std::vector<std::string>& due) {
    check_id(id);
    check_ttl(options.ttl);
    job.unique_id = id;
    job.unique_queue.clear();
    const bool expires = options.release != UniqueRelease::never;
    return is_yes(producer.command(
        "EVAL", push_unique_script(), 5, schedule_keys(producer.keys()), producer.keys().unique(id),
        due, encoded(job, producer.options().max_payload), lock_of(options.release, job.id),
        expires ? options.ttl.count() : 0));
}

} // namespace detail

/// Puts a job on the queue unless another one holds the lock of `id`; returns whether it did. The
/// job carries the id as its unique_id.
/// Redis: one script, O(1).
/// Atomic: a crash leaves job and lock or neither. In doubt (ConnectionError::in_doubt()), a second
///     call returns false when the first has pushed the job and the lock is still held; it pushes
///     the job again when that was acked meanwhile, unless with on_expiry or never.
/// Blocks and throws as Producer::push; std::invalid_argument for an id that has not 1 to 512 bytes
/// or a ttl that cannot be. Nothing has happened then.
template <MessageEncodable T>
bool push_unique(Producer<Job<T>>& producer, std::string_view id, Job<T> job,
                 const UniqueOptions& options = {}) {
    return detail::push_locked(producer, id, std::move(job), options, {"after", "0"});
}

/// Does the same for later, as push_after (scheduler.hpp). The lock is held while the job waits,
/// and for its ttl from when it is due. O(log(n)) of the scheduled messages.
template <MessageEncodable T>
bool push_unique_after(Producer<Job<T>>& producer, std::string_view id,
                       std::chrono::milliseconds delay, Job<T> job,
                       const UniqueOptions& options = {}) {
    return detail::push_locked(producer, id, std::move(job), options, detail::due_after(delay));
}

/// Does the same for a time, by Redis' clock.
template <MessageEncodable T>
bool push_unique_at(Producer<Job<T>>& producer, std::string_view id, JobTime time, Job<T> job,
                    const UniqueOptions& options = {}) {
    return detail::push_locked(producer, id, std::move(job), options, detail::due_at(time));
}

/// Acks a job, and releases its lock when it has one, still holds it, and was pushed with
/// UniqueRelease::on_ack; counts the end of a member of a group (group.hpp). A Worker does so.
/// Redis: GET, DEL and the removal, in one script; without a unique_id as ack().
/// Atomic: a crash leaves both or neither. Returns, blocks and throws as every settlement
/// (message_guard.hpp): false, and no release, when the lease was lost.
template <class T>
bool ack_unique(MessageGuard<Job<T>>& guard) {
    detail::GuardCore& core = detail::GuardAccess::core(guard);
    if (const auto member = detail::membership_of(guard->group, guard->id)) {
        core.refuse_if_awaited();
        return core.settle(detail::acking_member(core, *member));
    }
    return detail::ack_unique(core, {guard->id, guard->unique_id, guard->unique_queue});
}

/// Makes a job's lock last at least `ttl` from now, for a job that takes longer than expected;
/// false when the job does not hold it (any more), or never did. The producer must be of the job's
/// queue, and the calling thread's: a handler needs one of its own. Redis: GET and PEXPIRE in a
/// script, O(1). Works when memory is full. Blocks and throws as push_unique.
template <MessageEncodable T>
bool extend_unique(Producer<Job<T>>& producer, const Job<T>& job, std::chrono::milliseconds ttl) {
    detail::check_ttl(ttl);
    if (job.unique_id.empty()) {
        return false;
    }
    using detail::lock_of;
    const Reply reply = producer.command(
        "EVAL", detail::extend_lock_script(), 1,
        detail::lock_key(job.unique_queue, job.unique_id, producer.keys()), ttl.count(),
        lock_of(UniqueRelease::on_ack, job.id), lock_of(UniqueRelease::on_expiry, job.id),
        lock_of(UniqueRelease::never, job.id));
    return detail::is_yes(reply);
}

} // namespace orizuru
