// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Redis keys of a queue, all in the hash slot of its source list. For a queue Q:
//
//   Q                               list    the source: pushed left, taken right
//   orizuru:{Q}:consumers           set     ids of the registered consumers
//   orizuru:{Q}:heartbeat:<id>      string  expires when the consumer goes unheard for its lease
//   orizuru:{Q}:processing:<id>     list    the consumer's messages, then its header
//                                   string  a fence in place of the list: expires after 10 min,
//                                           or 7 days while a late request may meet it
//   orizuru:{Q}:writes              string  exists while Redis takes writes, and since when it has
//   orizuru:{Q}:unack               list    rejected messages; the collector requeues them
//   orizuru:{Q}:dead                list    undecodable, buried and poison messages
//   orizuru:{Q}:recoveries          hash    how often a message was blamed for a consumer's death
//   orizuru:{Q}:suspects            list    blamed messages, apart from the others until they are
//                                           tried again: pushed left, taken right
//   orizuru:{Q}:suspects:asked      string  expires: a consumer has lately asked for them
//   orizuru:{Q}:collected           string  expires: a collector has lately begun a pass
//   orizuru:{Q}:swept               string  the same for the search for lists without an owner
//   orizuru:{Q}:scheduled           zset    messages not yet due, each behind an 8-byte number
//   orizuru:{Q}:scheduled:sequence  string  the last such number
//   orizuru:{Q}:scheduled:wake      list    an element: a message now comes due before all others
//   orizuru:{Q}:schedulers          zset    ids of schedulers and when each was last heard
//   orizuru:{Q}:recurring           hash    name of a recurrence -> its last occurrence
//   orizuru:{Q}:unique:<id>         string  a unique job's lock: how it is released, the job's id
//   orizuru:{Q}:key:<key>           list    a key's order: the ticket of its job that is out, then
//                                           those behind it, each with its ticket in front
//   orizuru:{Q}:burst:<key>         string  a key's burst that is not settled; expires
//   orizuru:{Q}:keyed               zset    the keys that have jobs, and how many wait behind the
//                                           one that is out; '' has the sum of all, below zero
//   orizuru:{Q}:keyed:upkeep        string  the worker that looks after the orders; expires
//   orizuru:{Q}:group:<id>          hash    a group of jobs: its members that have not ended, their
//                                           number, and the job that follows them; expires until
//                                           it is committed, and an hour behind its end
//   orizuru:{Q}:groups              zset    ids of the groups that have not ended, and when to look
//                                           whether they have expired
//   orizuru:{Q}:paused              string  exists while workers must not take from the queue
//   orizuru:{Q}:rate                string  the rate of the queue (Worker::limit), as the next one
//   orizuru:{Q}:slots               zset    the slots for handlers that processes have, by when
//                                           they lapse
//   orizuru:{Q}:slots:freed         list    wakes a process that waits for a slot
//   orizuru:{Q}:rate:<key>          string  a rate limit: when the next permit is due; expires
//   orizuru:{Q}:cancelled           hash    ids of jobs to be cancelled while they run, until when
//                                           that holds, and why; expires
//   orizuru:{Q}:progress:<id>       hash    a job's progress: fraction, note, time
//   orizuru:{Q}:result:<id>         string  a job's result
//   orizuru:{Q}:once:<id>           hash    a claim: state, fence, until, nonce; once done:
//                                           state, fence, result
//   orizuru:{Q}:fences              string  the last claim's fencing token
//   orizuru:{Q}:shards              string  how many shards producers push to, and which others
//                                           are read: "16 32 @7"
//   orizuru:{Q}:ledger              string  epoch:sequence of the last entry that a ledger sent
//   orizuru:{Q}:worker:<id>         hash    what a worker has last reported; expires
//   orizuru:{Q}:counts              hash    how the jobs of all workers have ended, and their times
//   orizuru:{Q}:counts:<date>       hash    how they ended on that day (UTC); expires
//
// Beside them, for all queues of a server:
//
//   orizuru:queues                  set     names of queues that workers serve or have served
//
// A queue name with a hash tag keeps its tag: {tag}Q gives orizuru:{tag}:{tag}Q:consumers.

#include <orizuru/detail/base/joined.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

/// Names the keys of one queue: a value, no connection.
class Keys {
  public:
    /// Throws std::invalid_argument when `queue` is empty, has a brace without a valid hash tag
    /// ("{tag}", as Redis Cluster reads it), or lies under "orizuru:".
    [[gnu::cold]] explicit Keys(std::string queue) : m_source(std::move(queue)) {
        const std::string_view name = m_source;
        if (name.empty()) {
            throw std::invalid_argument("the queue name is empty");
        }
        if (name.starts_with("orizuru:")) {
            refuse("names under 'orizuru:' are reserved");
        }
        if (name.find_first_of("{}") == std::string_view::npos) {
            m_prefix = detail::joined({"orizuru:{", name, "}:"});
            return;
        }
        const auto open = name.find('{');
        const auto close = name.find('}', open); // none where nothing opens
        if (close == std::string_view::npos || close == open + 1) {
            refuse("a brace is allowed only as part of a hash tag {tag}");
        }
        m_prefix =
            detail::joined({"orizuru:", name.substr(open, close - open + 1), ":", name, ":"});
    }

    /// The set of the queues that workers serve or have served.
    [[nodiscard]] static std::string queues() { return "orizuru:queues"; }

    /// List: the source, whose key is the name of the queue. Pushed left, taken right. Valid as
    /// long as this object.
    [[nodiscard]] const std::string& source() const noexcept { return m_source; }
    /// Set: the ids of the registered consumers.
    [[nodiscard]] std::string consumers() const { return key("consumers"); }
    /// String: expires when the consumer goes unheard for its lease.
    [[nodiscard]] std::string heartbeat(std::string_view id) const { return key("heartbeat:", id); }
    /// List: the messages that the consumer holds, then its header. A string in its place is a
    /// fence: the consumer has gone.
    [[nodiscard]] std::string processing(std::string_view id) const {
        return key("processing:", id);
    }
    /// String: exists while Redis takes writes, and says since when it has.
    [[nodiscard]] std::string writes() const { return key("writes"); }
    /// List: rejected messages, which a collector requeues.
    [[nodiscard]] std::string unack() const { return key("unack"); }
    /// List: undecodable, buried and poison messages, each in an entry with its reason.
    [[nodiscard]] std::string dead() const { return key("dead"); }
    /// Hash: how often a message was blamed for the death of a consumer.
    [[nodiscard]] std::string recoveries() const { return key("recoveries"); }
    /// List: blamed messages, which wait apart until they are tried again.
    [[nodiscard]] std::string suspects() const { return key("suspects"); }
    /// String: exists when a consumer has lately asked for suspects; expires.
    [[nodiscard]] std::string suspects_asked() const { return key("suspects:asked"); }
    /// String: exists when a collector has lately begun a pass; expires.
    [[nodiscard]] std::string collected() const { return key("collected"); }
    /// String: exists when a collector has lately searched for lists without an owner; expires.
    [[nodiscard]] std::string swept() const { return key("swept"); }
    /// Sorted set: messages that are not yet due, each behind an 8-byte number, by their times.
    [[nodiscard]] std::string scheduled() const { return key("scheduled"); }
    /// String: the last number that a scheduled message was given.
    [[nodiscard]] std::string scheduled_sequence() const { return key("scheduled:sequence"); }
    /// List: has an element when a message was scheduled that comes due before all others.
    [[nodiscard]] std::string scheduled_wake() const { return key("scheduled:wake"); }
    /// Sorted set: the ids of the schedulers, by when each was last heard.
    [[nodiscard]] std::string schedulers() const { return key("schedulers"); }
    /// Hash: the last occurrence of each recurrence, by its name.
    [[nodiscard]] std::string recurring() const { return key("recurring"); }
    /// String: the lock of a unique job, with how it is released and the job's id.
    [[nodiscard]] std::string unique(std::string_view id) const { return key("unique:", id); }
    /// List: the order of a key, with the ticket of its job that is out and the jobs behind it.
    [[nodiscard]] std::string order(std::string_view job_key) const { return key("key:", job_key); }
    /// String: a burst of a key that is not settled: the ticket of the last job that was handled
    /// alone for it, and how many are to be; expires.
    [[nodiscard]] std::string burst(std::string_view job_key) const {
        return key("burst:", job_key);
    }
    /// Sorted set: the keys that have jobs, by how many wait behind the one that is out; the empty
    /// one has the sum of all, below zero.
    [[nodiscard]] std::string keyed() const { return key("keyed"); }
    /// String: the worker that looks after the orders of the keys; expires.
    [[nodiscard]] std::string keyed_upkeep() const { return key("keyed:upkeep"); }
    /// Hash: a group of jobs, with its members that have not ended and the job that follows.
    [[nodiscard]] std::string group(std::string_view id) const { return key("group:", id); }
    /// Sorted set: the ids of groups that have not ended, by when to look whether they have
    /// expired.
    [[nodiscard]] std::string groups() const { return key("groups"); }
    /// String: exists while workers must not take from the queue.
    [[nodiscard]] std::string paused() const { return key("paused"); }
    /// String: when the next permit of the queue's rate is due; expires.
    [[nodiscard]] std::string queue_rate() const { return key("rate"); }
    /// Sorted set: the slots for handlers that are taken, by when each lapses.
    [[nodiscard]] std::string slots_taken() const { return key("slots"); }
    /// List: has an element when a slot is free; expires.
    [[nodiscard]] std::string slots_freed() const { return key("slots:freed"); }
    /// String: when the next permit of a rate limit is due; expires.
    [[nodiscard]] std::string rate(std::string_view limit_key) const {
        return key("rate:", limit_key);
    }
    /// Hash: the ids of jobs that are to be cancelled while they run, with the reasons; expires.
    [[nodiscard]] std::string cancelled() const { return key("cancelled"); }
    /// Hash: a job's progress, with fraction, note and time; expires.
    [[nodiscard]] std::string progress(std::string_view job_id) const {
        return key("progress:", job_id);
    }
    /// String: a job's result; expires.
    [[nodiscard]] std::string result(std::string_view job_id) const {
        return key("result:", job_id);
    }
    /// Hash: a claim of the id, with its state, fence and lease; once done, with its result.
    [[nodiscard]] std::string once(std::string_view id) const { return key("once:", id); }
    /// String: the fencing token of the last claim.
    [[nodiscard]] std::string fences() const { return key("fences"); }
    /// String: the number of shards that producers push to, and which others are read.
    [[nodiscard]] std::string shards() const { return key("shards"); }
    /// String: epoch and sequence of the last entry that a ledger has sent.
    [[nodiscard]] std::string ledger() const { return key("ledger"); }
    /// Hash: the last report of the worker whose consumer has this id; expires.
    [[nodiscard]] std::string worker(std::string_view id) const { return key("worker:", id); }
    /// Hash: how the jobs of all workers have ended, and how long they took.
    [[nodiscard]] std::string counts() const { return key("counts"); }
    /// Hash: how they ended on that day, in UTC; expires.
    [[nodiscard]] std::string counts(std::string_view date) const { return key("counts:", date); }

  private:
    [[noreturn]] [[gnu::cold]] void refuse(std::string_view reason) const {
        throw std::invalid_argument(detail::joined({"queue '", m_source, "': ", reason}));
    }
    [[nodiscard]] std::string key(std::string_view name, std::string_view id = {}) const {
        return detail::joined({m_prefix, name, id});
    }

    std::string m_source;
    std::string m_prefix;
};

} // namespace orizuru
