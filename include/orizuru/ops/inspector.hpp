// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Looks into queues of any programs: numbers, consumers and messages, wherever these are. Removes
// messages, has them served now, or moves them to other queues.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/detail/redis/place/queue_connections.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/ops/queue_counts.hpp>
#include <orizuru/ops/queue_state.hpp>
#include <orizuru/reply.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

namespace detail {
struct SearchPosition;
struct SoughtId;
} // namespace detail

/// Looks into queues, and removes, runs or moves their messages. For one thread at a time: one
/// connection, in a Cluster one for each hash tag, made when it is needed.
///
/// Reading needs no right to write: a user with `+@read +eval_ro` and a replica suffice, except for
/// the clock, which needs TIME. Each step is one script, so a message is in exactly one place, and
/// what a consumer holds is never touched. All calls block at most connect_timeout and
/// command_timeout, and throw std::invalid_argument for an impossible queue name, ConnectionError,
/// ReplyError (it names the key) and ProtocolError.
class Inspector {
  public:
    /// Does not connect yet.
    explicit Inspector(Endpoint endpoint)
        : m_connections(std::make_unique<detail::QueueConnections>(std::move(endpoint))) {}

    /// The queues that workers serve or have served, sorted: each worker adds its own when it
    /// starts, and every 10 minutes. Redis: SMEMBERS, O(queues).
    [[nodiscard]] std::vector<std::string> queues();
    /// Takes a queue off that list, until a worker serves it; false when it is not there. Nothing
    /// else changes. Redis: SREM, O(1).
    bool forget(const std::string& queue);
    /// The queues that have a key of this library or whose next message is a job, sorted: also
    /// those that no worker has served. A queue of other messages that only producers have used
    /// cannot be told from other lists. Ends early at a stop, with what it has found. In a Cluster
    /// it asks all masters, with connections of their own. Redis: two SCANs to their end, O(keys of
    /// the database), 1000 in each step, and a script for the lists of others in each, O(these); in
    /// a Cluster CLUSTER SLOTS.
    [[nodiscard]] std::vector<std::string> find_queues(const std::stop_token& token = {});

    /// The numbers of a queue; zeros for one that does not exist, and for a retired shard. Redis: a
    /// script, O(consumers + groups, 1000 of these at most), and TIME.
    [[nodiscard]] QueueState state(const std::string& queue);
    /// Called for a queue that is left out, with the reason.
    using Refused = std::function<void(const std::string& queue, const std::exception& reason)>;
    /// The numbers of many queues, in their order. Calls `refused` for a queue that cannot be, or
    /// that Redis refuses, and leaves it out; without `refused` it throws. Redis: for up to 100
    /// queues and about 1000 consumers and groups a script, O(queues + consumers + groups), and
    /// TIME; in a Cluster for each.
    [[nodiscard]] std::vector<QueueState> states(std::span<const std::string> queues,
                                                 const Refused& refused = {});

    /// The keys of a queue in order that have jobs (keyed.hpp), after skipping `first` of them:
    /// those with most jobs behind the one that is out come first. Redis: ZRANGE, O(log keys +
    /// first + count). Throws std::invalid_argument for a negative number, too.
    [[nodiscard]] std::vector<KeyState> keys(const std::string& queue, std::int64_t first,
                                             std::int64_t count);
    /// One key, with the job that is out, wherever that is; nothing if the key has no job. It looks
    /// for the job where `find` does: `out` is empty if it lies beyond `most` messages of its
    /// place, moves meanwhile, or was taken from Redis by hand. Redis: LINDEX, LLEN, and as find.
    [[nodiscard]] std::optional<KeyState> key(const std::string& queue, const std::string& key,
                                              std::int64_t most = 10'000);
    /// The groups that were made beside the queue (jobs/group.hpp) and have not ended, after
    /// skipping `first` of them, the oldest first if all have one expires_after. Redis: a script,
    /// O(log groups + first + count). Throws as keys.
    [[nodiscard]] std::vector<QueueGroup> groups(const std::string& queue, std::int64_t first,
                                                 std::int64_t count);
    /// One group, up to an hour behind its end; nothing when it is gone. Redis: a script, O(1).
    [[nodiscard]] std::optional<QueueGroup> group(const std::string& queue, const std::string& id);

    /// The registered consumers, by their ids. Redis: O(consumers).
    [[nodiscard]] std::vector<ConsumerState> consumers(const std::string& queue);

    /// Returns what workers have reported of the queue's jobs since ever; they do so every 5 s and
    /// when they stop. Jobs that a plain consumer takes are not in it. Redis: HGETALL, O(1).
    [[nodiscard]] QueueStatistics counts(const std::string& queue);
    /// Counts for many queues, as `states` does. Redis: a script for up to 100, in a Cluster for
    /// each.
    [[nodiscard]] std::vector<QueueStatistics> all_counts(std::span<const std::string> queues,
                                                          const Refused& refused = {});
    /// The outcomes of the last `count` days, 90 at most, the oldest first and today's last, with
    /// zeros for a day without any. Redis: a script, O(count), and TIME. Throws
    /// std::invalid_argument for a negative number, too.
    [[nodiscard]] std::vector<DayCounts> days(const std::string& queue, int count);
    /// The last reports of the workers that have a consumer of the queue, by its id. One that was
    /// just started has none for 5 s, one unheard for 15 s none any more; a paused queue has no
    /// consumers. Redis: a script, O(consumers).
    [[nodiscard]] std::vector<WorkerReport> workers(const std::string& queue);

    /// Returns up to `count` messages of a place, after skipping `first` of them. Those served next
    /// come first; of suspected ones those tried next, of rejected ones those rejected first, of
    /// the dead the newest. Payloads come whole. Redis: O(first + count), for held ones O(consumers
    /// + count); for suspected ones also an HMGET for up to 1000 of them, as find, remove_if and
    /// run_if do. Throws std::invalid_argument for a negative number, too.
    [[nodiscard]] std::vector<PlacedMessage> peek(const std::string& queue, Place place,
                                                  std::int64_t first, std::int64_t count);

    /// Removes a message; false when it has gone from its place. A unique job releases its own lock
    /// in the same step. Of equal ones one goes. Redis: as DeadList::remove and
    /// ScheduledList::cancel, with the same error FAR. Throws std::invalid_argument for a held one.
    bool remove(const std::string& queue, const PlacedMessage& message);

    /// Has a message served before all others, if it waits or is suspected, or behind all that
    /// wait, as a push would; false when it has gone from its place. Of equal ones one goes. A
    /// suspected one then runs beside others again, which are blamed, too, if its consumer dies. A
    /// job that was dead, or not due yet, has waited since then: its enqueued_at becomes now, if
    /// the user has the right to TIME. Redis: as DeadList::redrive and ScheduledList::run_now.
    /// Throws as remove does, and std::invalid_argument for a dead element that is no entry.
    bool run_now(const std::string& queue, const PlacedMessage& message);

    /// Puts a message on the queue `to`, behind all that wait there; false when it has gone from
    /// its place. Of equal ones one goes. `to` may be the message's own queue.
    ///
    /// The lock of a unique job stays, and stays the first queue's: the job's envelope then names
    /// that queue, as a retry in another queue has it, so that the ack in `to` releases the lock.
    ///
    /// Redis: as run_now. Throws as run_now does; in a Cluster ReplyError with the code CROSSSLOT
    /// when the queues are in different slots. Nothing has changed then.
    bool move(const std::string& queue, const PlacedMessage& message, const std::string& to);

    /// Cancels a job, which goes to the dead list with the reason: at once if it waits, is put off,
    /// rejected or suspected. If a consumer holds it, its worker requests a stop of its stop_token
    /// within WorkerOptions::recheck and 100 ms, and buries it when its handler then throws,
    /// without another try, or has not begun. When the handler returns all the same, or the job was
    /// acked before it ran (Guarantee::at_most_once), it is done, and the worker tells of
    /// WorkerEventKind::cancelled_too_late. A unique job gives up a lock of its own queue with its
    /// burial; of a key, the next job follows. `reason`: cut after 200 bytes; if it is empty,
    /// "cancelled".
    ///
    /// It looks where `find` does, at up to `most` messages of each place. Jobs that wait behind
    /// others of their key are not found. A request holds for 10 minutes, or until its worker has
    /// carried it out; a job that is redriven, or pushed with the same id, before the next look of
    /// all workers behind that may be cancelled again. A plain Consumer, and a worker without the
    /// right to Keys::cancelled, take no requests.
    ///
    /// Redis: as find, then a script, O(1) or as DeadList::remove; while there is a request, each
    /// worker of the queue reads them all once in a recheck: HGETALL. Throws as remove does;
    /// std::invalid_argument for a job whose worker handles it in a batch, if that has reported;
    /// ReplyError with the code MANY when 100 jobs of the queue are being cancelled: nothing has
    /// changed then.
    CancelResult cancel(const std::string& queue, const std::string& job_id,
                        std::string_view reason = {}, std::int64_t most = 10'000);

    /// Removes the messages of a place that the caller chooses, as `remove` does, until it has
    /// removed `limit`; returns how many.
    ///
    /// It asks `chosen` about one after the other, those that are served last first (of the dead
    /// the newest). While others push, take and remove, it misses none that is there all the time;
    /// only of equal messages, while others remove from the back, it may miss some. It may ask
    /// about one twice. It does not look for messages that are pushed later, so it ends. The
    /// messages that it takes from up to 100 are one atomic step. So many are in memory at a time,
    /// whole: about a mebibyte when their sizes are like those of the ones before, and always up to
    /// 10. Completed steps stay done, whatever it throws, also what `chosen` throws.
    ///
    /// Redis: two scripts for up to 100 messages, each O(what they read) while nothing else
    /// changes, and at most O(20,000), for run_if of waiting ones O(those run) more. In a list,
    /// when 10,000 of the last stay, it goes on with the first 10,000: if there are more between
    /// them, it throws ReplyError with the code FAR at the end, which says how many it has removed;
    /// so it does when it has to look again so often that it ends before it has seen all. Throws
    /// std::invalid_argument for held ones.
    std::uint64_t remove_if(const std::string& queue, Place place,
                            const std::function<bool(const PlacedMessage&)>& chosen,
                            std::uint64_t limit);
    /// Does the same for run_now. Those of one step keep their order. Dead elements that are no
    /// entries stay, and are not asked for.
    std::uint64_t run_if(const std::string& queue, Place place,
                         const std::function<bool(const PlacedMessage&)>& chosen,
                         std::uint64_t limit);
    /// Removes all messages that a place has at the start, as `remove` does, those that are served
    /// next first (of the dead the oldest); returns how many. Redis: reads each once; up to 100 are
    /// one atomic step, O(1) for each. Throws as remove_if does, but never FAR.
    std::uint64_t clear(const std::string& queue, Place place);

    /// Returns the messages of the job with this id and their places: usually one or none. Looks at
    /// up to `most` messages of each place, those that are served last first (of the dead the
    /// newest), of a consumer's the oldest. One that moves meanwhile may be found twice, or, if it
    /// goes back, missed. One that a consumer holds all the time is found once. It ends with 200
    /// messages or 16 MiB; there may be more then.
    ///
    /// Redis: SMEMBERS and scripts that read, up to 1000 messages or about a mebibyte each; O(bytes
    /// of all that it looks at + consumers), for Redis copies each message whole: a list with a
    /// gibibyte has a thousand steps. Throws std::invalid_argument for an empty id or a negative
    /// number.
    [[nodiscard]] std::vector<PlacedMessage> find(const std::string& queue,
                                                  const std::string& job_id, std::int64_t most);
    /// Finds, as `find` does, the jobs whose ids begin with this.
    [[nodiscard]] std::vector<PlacedMessage>
    find_prefix(const std::string& queue, const std::string& id_prefix, std::int64_t most);

  private:
    bool cancel_placed(const Keys& keys, const PlacedMessage& message, std::string_view reason);
    void request_cancel(const Keys& keys, const std::string& job_id, const std::string& consumer,
                        std::string_view reason);

    enum class Change { removal, run };

    /// Calls `take` with some queues that one connection has, until it was called for all. `take`
    /// returns how many of the first it is done with; 0 when Redis refuses the first.
    void
    take_together(std::span<const std::string> queues, const Refused& refused,
                  const std::function<std::size_t(Connection&, std::span<const Keys> some)>& take);

    /// Positions are those of LRANGE and ZRANGE.
    [[nodiscard]] std::vector<PlacedMessage> peek_list(const Keys& keys, Place place,
                                                       std::int64_t first, std::int64_t last);
    [[nodiscard]] std::vector<PlacedMessage> peek_dead(const Keys& keys, std::int64_t first,
                                                       std::int64_t last);
    [[nodiscard]] std::vector<QueueGroup> read_groups(const Keys& keys, std::int64_t first,
                                                      std::int64_t last, const std::string& id);
    [[nodiscard]] std::vector<PlacedMessage> peek_scheduled(const Keys& keys, std::int64_t first,
                                                            std::int64_t last);
    [[nodiscard]] std::vector<PlacedMessage> peek_held(const Keys& keys, std::int64_t first,
                                                       std::int64_t count);
    PlacedMessage dead_message(const Keys& keys, Reply& reply);
    static PlacedMessage scheduled_message(Connection& connection, Reply& element,
                                           const Reply& score);

    /// `reply` has the element, then the score of a scheduled one, and of a dead one where its
    /// parts are. Not for held ones.
    PlacedMessage message_of(const Keys& keys, Place place, Reply& reply);

    std::vector<PlacedMessage> look_back(const Keys& keys, Place place,
                                         detail::SearchPosition& position, std::int64_t most,
                                         std::int64_t& length);
    std::int64_t size_of(const Keys& keys, Place place);
    std::uint64_t change_if(const Keys& keys, Place place, Change change,
                            const std::function<bool(const PlacedMessage&)>& chosen,
                            std::uint64_t limit);
    /// They look at `most` messages of a list, from the first to the last of `some`, the first of
    /// which was at `first`; at its right end if that is -1.
    std::uint64_t remove_some(const Keys& keys, const std::vector<PlacedMessage>& some,
                              std::int64_t first, std::uint64_t most);
    std::uint64_t remove_others(const Keys& keys, const std::vector<PlacedMessage>& some,
                                std::int64_t first, std::uint64_t most);
    std::uint64_t run_some(const Keys& keys, const std::vector<PlacedMessage>& some,
                           std::int64_t first, std::uint64_t most,
                           detail::SearchPosition& position);

    std::vector<PlacedMessage> find_everywhere(const std::string& queue,
                                               const detail::SoughtId& sought, std::int64_t most);
    void find_in_place(const Keys& keys, Place place, const detail::SoughtId& sought,
                       std::int64_t most, std::vector<PlacedMessage>& found);
    void find_held(const Keys& keys, const detail::SoughtId& sought, std::int64_t most,
                   std::vector<PlacedMessage>& found);

    detail::Owned<std::unique_ptr<detail::QueueConnections>, "inspector"> m_connections;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/inspector.ipp>
#include <orizuru/ops/inspector_bulk.ipp>
#include <orizuru/ops/inspector_changes.ipp>
#include <orizuru/ops/inspector_counts.ipp>
#include <orizuru/ops/inspector_search.ipp>
#endif
