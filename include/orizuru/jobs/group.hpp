// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Jobs that wait for jobs: when all jobs of a group have ended, one more follows.
//
//     orizuru::JobGroup group("redis://localhost", "{shop}orders",
//                             {.then = orizuru::GroupThen("{shop}reports", Report{day})});
//     group.push_all("{shop}orders", orders);
//     group.push("{shop}mails", mail);
//     group.commit();
//
// The step that settles a member for good counts its end, once, however often the job was delivered
// or settled; the step in which none is left pushes the job that follows, once. A member has ended
// when it is acked, discarded or has expired, when a person has removed it or a bounded push has
// dropped it, and when it was removed from the dead list. A job that waits for its next try or is
// dead has not ended, unless the dead count (OnDead::count).
//
// A job that follows in a queue of another hash tag is pushed to the group's own queue in that
// step. The worker that fetches it there pushes it on, if its QueueOptions::forward_to names that
// queue, and then removes it: at least once, with the same id. It repeats that every 5 s while
// Redis refuses it or is out of reach, and goes on with other jobs. JobGroupOptions::replicas is
// not for that push.
//
// Members are handled by workers; a plain consumer settles one by ack_unique (unique.hpp). After a
// consumer's plain ack, or when somebody takes a member from Redis by hand, the group waits on.
//
// Redis: the hash Keys::group, beside the queue that the group is made with, and its id in
// Keys::groups until it has ended: so an Inspector lists it.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/group/membership.hpp>
#include <orizuru/detail/jobs/push/new_job.hpp>
#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/producer/script_pushes.hpp>
#include <orizuru/detail/redis/server_clock.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/jobs/group/group_state.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/producer_options.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

/// Says if a member that goes to the dead list has ended.
enum class OnDead {
    wait, ///< the group waits until it was redriven and is done, or is removed from the list
    count ///< it has ended, as failed: a later redrive is no affair of the group
};

/// Options of one job of a group. It cannot be unique, bounded or for later.
struct GroupJobOptions {
    /// Time until it expires, by Redis' clock.
    std::optional<std::chrono::milliseconds> expires_after = {};
    /// Data that travels beside the payload.
    JobAttributes attributes = {};
    /// Number of tries in all; empty: as its RetryPolicy says.
    std::optional<int> max_attempts = {};
    /// Which of the queue's handlers it is for, as JobProducerOptions::kind.
    std::string kind = {};
};

/// The job that follows a group. Its id is the group's, and its attributes `group_jobs` and
/// `group_failed` say in decimal how many members there were, and how many of them count as failed.
class GroupThen {
  public:
    /// If `queue` has another hash tag than the group's, a Worker must serve the group's, with the
    /// right to push to this one, and with its name in QueueOptions::forward_to. Throws what
    /// Codec<T> throws, and std::invalid_argument for an expires_after: its time would begin when
    /// the group is made.
    template <MessageEncodable T>
    GroupThen(std::string queue, const T& payload, const GroupJobOptions& options = {})
        : m_queue(std::move(queue)) {
        detail::append_encoded(payload, m_job.payload.bytes);
        choose(options);
    }

  private:
    friend class JobGroup;

    void choose(const GroupJobOptions& options);

    std::string m_queue;
    Job<Raw> m_job = {};
};

/// Options of a JobGroup.
struct JobGroupOptions {
    /// The job that is pushed when all have ended; empty: none, only state() tells.
    std::optional<GroupThen> then = {};
    /// Says if a member that goes to the dead list has ended.
    OnDead on_dead = OnDead::wait;
    /// Time after the last push in which it must be committed, or it ends: its members are handled
    /// all the same, but nothing follows. 1 s to 3650 days.
    std::chrono::milliseconds expires_after = std::chrono::hours(24);
    /// As in ProducerOptions.
    std::int64_t max_payload = ProducerOptions().max_payload;
    /// As in ProducerOptions: a WAIT goes out behind each script.
    Replicas replicas = {};
};

/// Makes a group and pushes its members: one connection, used by one thread at a time.
///
/// A group that is not committed stays open until it expires, also when this object goes.
class JobGroup {
  public:
    /// Connects, and makes the group beside `queue`, whose hash tag the queues of its jobs have.
    /// Redis: a script, O(log groups), which also takes up to 100 that have expired off the list.
    /// Blocks as Producer::push. Throws as Producer's constructor does, and as push;
    ///     std::invalid_argument for an expires_after that cannot be.
    JobGroup(const Endpoint& endpoint, std::string queue, const JobGroupOptions& options = {});

    /// Makes a job and pushes it as a member; returns its id. Its times are by Redis' clock.
    /// Redis: a script, O(1).
    /// Atomic: the job is pushed and is a member, or neither. In doubt
    /// (ConnectionError::in_doubt())
    ///     a second call makes a second member.
    /// Blocks and throws as Producer::push; ReplyError with the code CLOSED when the group has
    ///     expired, std::invalid_argument for a queue of another hash tag, std::logic_error behind
    ///     the commit, EncodeError for attributes or a max_attempts that cannot be. Nothing was
    ///     pushed then.
    template <MessageEncodable T>
    std::string push(const std::string& queue, const T& payload,
                     const GroupJobOptions& options = {}) {
        return std::move(push_all(queue, std::span(std::addressof(payload), 1), options).front());
    }

    /// Does the same for many; returns their ids.
    /// Redis: a script for up to 500 jobs or 1 MiB each.
    /// Atomic: each script; the whole is not.
    /// Blocks and throws as `push`. Of the jobs, Error::pushed() counts the first ones that are
    ///     certainly pushed; what is in doubt is one script.
    template <std::ranges::input_range R>
        requires MessageEncodable<std::ranges::range_value_t<R>> std::vector<std::string>
        push_all(const std::string& queue, R&& payloads, const GroupJobOptions& options = {}) {
            detail::ScriptPushes pushes = pushes_to(queue);
            std::vector<std::string> ids;
            for (const std::ranges::range_value_t<R>& payload : payloads) {
                auto job =
                    detail::new_job(payload, options.kind, options, detail::job_time_by(m_clock));
                job.group = m_field;
                const std::string bytes = detail::encoded(job, m_producer.options().max_payload);
                ids.push_back(std::move(job.id)); // before it may be sent: it needs memory
                pushes.add(ids.back(), bytes);
            }
            pushes.send();
            return ids;
        }

    /// Closes the group: when all its members have ended, or have by now, the next job follows.
    /// Redis: a script, O(1).
    /// Atomic: all of it. In doubt, call it again: it is committed once.
    /// Blocks and throws as Producer::push; ReplyError with the code CLOSED when the group has
    ///     expired, std::logic_error when it was committed.
    void commit();

    /// Returns how far the group is. Redis: HMGET, O(1). Blocks and throws as Producer::push.
    [[nodiscard]] GroupState state();

    /// Its id, and the id of the job that follows. Valid as long as this.
    [[nodiscard]] const std::string& id() const noexcept { return m_id; }

  private:
    /// Reads the clock, too.
    detail::ScriptPushes pushes_to(const std::string& queue);
    [[nodiscard]] std::string key() const;
    void open(const JobGroupOptions& options);
    Reply run(std::string_view script, const std::vector<std::string>& keys,
              const std::vector<std::string>& arguments);

    detail::ProducerCore m_producer;
    detail::ServerClock m_clock;
    std::string m_id;
    std::string m_field; ///< a member's field `group`
    bool m_committed = false;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/jobs/group/job_group.ipp>
#endif
