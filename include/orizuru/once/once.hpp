// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Effects once, with Redis alone. A process that is about to do something claims its id for the
// time of a lease, does it, and then marks the id as done for all who come with the same id. A
// claim is not a mark: when its holder dies or fails, the id can be claimed again, and nothing is
// lost.
//
// It is guaranteed that at most one claim of an id has a lease that holds; each claim has a fencing
// token, higher than all before it in its scope; only the latest claim changes anything; and a
// claim behind the mark gets the stored result.
//
// It is not guaranteed that an effect happens once: Redis cannot undo an effect elsewhere. It is
// repeated
//   when its process dies between the effect and the mark, or cannot reach Redis for the lease;
//   when it goes on after its claim's lease, and another process has claimed the id;
//   when it throws after it has had consequences;
//   when Redis forgets: it keeps a mark for `remember`, unless its memory, its files or a failover
//   lose it. The same is true of a claim.
// So pass the id to the outside system as its idempotency key, if it has such keys; else the token,
// if it can refuse tokens lower than the highest it has seen. Mark and effect in one transaction
// take a database that holds both (postgres/inbox.hpp).
//
// Times are by Redis' clock; no other is read. When it leaps, leases end early or late.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/consumer/guard_access.hpp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/detail/once/effect.hpp>
#include <orizuru/detail/once/once_calls.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/once/claim.hpp>
#include <orizuru/once/once_options.hpp>
#include <orizuru/once/once_run.hpp>
#include <orizuru/script.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

namespace detail {
class OnceClaims;
}

/// Claims ids in one scope, and remembers which are done: two connections, the second from the
/// first renewal on. Any thread, several at once: commands go one after the other, effects run side
/// by side.
///
/// Each call is one script, O(1), and atomic. A call whose reply was lost is repeated once, which
/// changes nothing: it blocks at most twice connect_timeout and command_timeout, and as long for
/// each thread before it. Throws ConnectionError, ReplyError (it names the key), ProtocolError;
/// std::logic_error in a forked child: make a new object there.
/// Renewing, completing and releasing work when Redis' memory is full; a claim is refused as OOM.
class Once {
  public:
    /// The most bytes of a result: 1 MiB.
    static constexpr std::size_t largest_result = detail::largest_once_result;

    /// Connects. `scope` names the keys as a queue does: that of the messages, or another one,
    /// which in a cluster must lie in the same slot ("{orders}payments"). Throws as Producer's
    /// constructor does; std::invalid_argument for options that cannot be.
    Once(Endpoint endpoint, std::string scope, OnceOptions options = {});
    Once(const Once&) = delete;
    Once& operator=(const Once&) = delete;
    ~Once();

    /// Claims an id, unless another claim's lease holds or it is done. Each claim is to be
    /// completed or released: `renew` keeps it until then. Throws std::invalid_argument for an id
    /// that has not 1 to 512 bytes, before anything is sent. In doubt, nobody renews it: the id may
    /// be busy for the lease.
    [[nodiscard]] Claim claim(std::string_view id);

    /// Marks the token's id as done, with a result, if any: any bytes, at most `largest_result`;
    /// std::invalid_argument for more. True also after the lease, when nobody else has claimed it,
    /// and when it was done by this token before. False: another one has, or it was released, or
    /// Redis has forgotten it; nothing has happened.
    bool complete(const OnceToken& token, std::optional<std::string_view> result = {});

    /// Forgets an attempt, so that the next can begin at once. False: the token is not the latest
    /// (any more), or its id is done; nothing has happened. So also when it is released already,
    /// perhaps by this call, which was repeated because its first reply was lost.
    bool release(const OnceToken& token);

    /// Renews all claims made through this object: for ConsumerOptions::on_beat,
    /// `[&once] { once.renew(); }`. Neither that consumer nor its guards may outlive this object:
    /// an unsettled guard keeps the beats going. The next beat repeats a renewal that failed.
    /// Redis: a script for each 100 claims. Blocks at most connect_timeout and, for each script,
    /// command_timeout; keep these well below the consumer's lease. Does nothing in a forked child.
    void renew() noexcept;

    /// Claims an id, calls `effect` and marks the id as done, with the result that `effect`
    /// returns. When `effect` throws, releases the claim and passes the exception on. For a
    /// Worker's handler, since the Worker acks the message afterwards: after a crash in between the
    /// message comes again, and its id is found to be done. When the outcome is busy, schedule the
    /// message again: an ack would lose it if the other run fails.
    ///
    ///     const auto run = once.run(job.id(), [&] { charge(*job); });
    ///     if (run.outcome == OnceOutcome::busy) {
    ///         push_after(*job.guard(), run.busy_for); // retry.hpp
    ///     }
    ///
    /// Throws as claim and complete; by the latter after the effect, which may then be repeated.
    /// A result over largest_result is not stored: std::invalid_argument, and the id is done.
    template <OnceEffect F>
    [[nodiscard]] OnceRun run(std::string_view id, F effect);

    /// Does the same for a message, which it settles: acks it in the step that marks the id as
    /// done, or when the id was done before. When the id is busy, or another process has claimed it
    /// meanwhile, schedules the message again after the lease; for that the queue needs a Scheduler
    /// (scheduler.hpp). No crash loses the message. When `effect` or the claim throws, it stays
    /// unsettled. Settling blocks and throws as every settlement (message_guard.hpp). When the
    /// message was lost to another consumer, the id is marked as done all the same. Throws
    /// std::logic_error, before the claim, for a job with a key (keyed.hpp), which only its Worker
    /// acks: use the other one.
    template <class T, OnceEffect F>
    OnceRun run(MessageGuard<T>& guard, std::string_view id, F effect);

  private:
    OnceRun run_effect(std::string_view id, const detail::OnceCall& effect);
    OnceRun run_effect(std::string_view id, const detail::OnceCall& effect,
                       const detail::OnceMessage& message);

    const std::unique_ptr<detail::OnceClaims> m_claims;
};

template <OnceEffect F>
OnceRun Once::run(std::string_view id, F effect) {
    return run_effect(
        id, [&effect](const OnceToken& token) { return detail::result_of(effect, token); });
}

template <class T, OnceEffect F>
OnceRun Once::run(MessageGuard<T>& guard, std::string_view id, F effect) {
    detail::GuardAccess::core(guard).refuse_if_awaited();
    const auto call = [&effect](const OnceToken& token) {
        return detail::result_of(effect, token);
    };
    const detail::OnceMessage message{
        .ack = [&guard] { return guard.ack(); },
        .put_off =
            [&guard](std::chrono::milliseconds delay) {
                return guard.settle(detail::schedule_body(), detail::schedule_keys(guard.keys()),
                                    detail::due_after(delay));
            },
        .settle =
            [&guard](const Script& body, std::vector<std::string> keys,
                     std::vector<std::string> arguments) {
                return guard.settle(body, std::move(keys), std::move(arguments));
            }};
    return run_effect(id, call, message);
}

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/once/once.ipp>
#endif
