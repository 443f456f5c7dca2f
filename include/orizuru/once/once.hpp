// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Effects once, with Redis alone. Whoever is about to do something claims its id, for the time of a
// lease; does it; and then marks the id as done, for whoever comes with the same id. A claim is not
// a mark: when its holder dies, or fails, the id can be claimed again, and nothing is lost.
//
// What holds: of all who come with an id, one at a time has a claim whose lease holds; each claim
// has a fencing token, higher than all before it in its scope; only the latest changes anything;
// and who comes after the mark gets the stored result instead of a claim.
//
// What does not: Redis cannot undo what was done elsewhere. An effect is repeated
//   when its process dies behind it and before the mark, or cannot reach Redis for the lease;
//   when it goes on after its claim's lease, and another one has claimed the id;
//   when it throws behind what it did;
//   when Redis forgets: a mark lives for `remember`, and as long as Redis' memory, its files and
//   its failovers keep it. So does a claim.
// So pass the id on to the system outside, if that knows ids; else the token, if that can refuse
// what is lower than the highest it has seen. Mark and effect in one transaction take a database
// that holds both.
//
// Times are by Redis' clock; no other is read. When that leaps, leases end early or late.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/effect.hpp>
#include <orizuru/detail/base/entropy.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/detail/once/claim_renewal.hpp>
#include <orizuru/detail/once/once_scripts.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/once/claim.hpp>
#include <orizuru/reply.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

struct OnceOptions {
    /// For how long a claim holds unless it is renewed; 100 ms to 24 h. With renewal from a
    /// consumer's beats, at least the consumer's lease, of which each has three.
    std::chrono::milliseconds lease = std::chrono::seconds(30);
    /// For how long it is remembered that an id is done, with its result; 1 ms to 100 years. Longer
    /// than the id can come again. A claim is remembered for as long after its lease.
    std::chrono::milliseconds remember = std::chrono::hours(24);
};

enum class OnceOutcome {
    ran,      ///< it was done, and is marked as done
    repeated, ///< it was done before: nothing has run
    busy,     ///< another one is at it: nothing has run
    lost      ///< it was done, but the claim or the message was lost meanwhile: it may be repeated
};

struct OnceRun {
    OnceOutcome outcome;
    std::optional<std::string> result{};  ///< of this run or of the one before
    std::chrono::milliseconds busy_for{}; ///< when busy: what is left of the other's lease
};

/// What Once::run calls, with the claim's token or nothing. It may return a result to be stored.
template <class F>
concept OnceEffect = detail::Effect<F, const OnceToken&>;

/// Claims of one scope: two connections, the second from the first renewal on. Any thread, several
/// at once: commands go one after the other, effects run side by side.
///
/// Each call is one script, O(1), and atomic. A call whose reply was lost is repeated once, which
/// changes nothing: it blocks at most twice connect_timeout and command_timeout, and as long for
/// each thread before it. Throws ConnectionError, ReplyError (it names the key), ProtocolError;
/// std::logic_error in a forked child, where a new object is to be made.
/// Renewing, completing and releasing work when Redis' memory is full; a claim is refused as OOM.
class Once {
  public:
    static constexpr std::size_t largest_result = std::size_t{1} << 20;

    /// Connects. `scope` names the keys as a queue does: that of the messages, or another one,
    /// which in a cluster must lie in the same slot ("{orders}payments"). Throws as Producer's
    /// constructor does; std::invalid_argument for options that cannot be.
    Once(Endpoint endpoint, std::string scope, OnceOptions options = {});

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
    /// `[&once] { once.renew(); }`, of a consumer that does not outlive this, nor do its guards:
    /// one that is not settled keeps the beats going. What fails the next beat tries again. A
    /// script for each 100. Blocks at most connect_timeout and, for each script, command_timeout;
    /// to keep the consumer's own lease these should be well below it. In a forked child nothing
    /// happens.
    void renew() noexcept {
        if (!m_fork_mark.forked()) {
            m_renewal.renew();
        }
    }

    /// Claims an id, calls `effect` and marks the id as done, with what `effect` returns. What it
    /// throws is passed on, and its claim released. For a Worker's handler, behind which the
    /// message is acked: a crash in between has it come again, and found to be done. When busy, an
    /// ack would lose the message if the other one fails: the caller has it come again.
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

    /// The same for a message, which it settles: acks it in the step that marks the id as done;
    /// acks what was done before; and has what is busy, or was claimed by another one meanwhile,
    /// come again after the lease, for which the queue needs a Scheduler (scheduler.hpp).
    /// No crash loses it. What `effect` throws, or claim, leaves it unsettled; settling blocks and
    /// throws as every settlement (message_guard.hpp). When it was lost to another consumer the id
    /// is marked as done all the same.
    template <class T, OnceEffect F>
    OnceRun run(MessageGuard<T>& guard, std::string_view id, F effect);

  private:
    using Result = std::optional<std::string>;

    /// Both processes would count on from the same number, and one's claim be taken for the
    /// other's.
    void refuse_fork() const {
        if (m_fork_mark.forked()) {
            throw std::logic_error("a Once of '" + m_keys.source() +
                                   "' is used in a forked child; make a new one there");
        }
    }
    template <class... Arguments>
    Reply command(const std::string& script, const std::string& record,
                  const Arguments&... arguments);
    template <class... Arguments>
    bool change(const std::string& script, const OnceToken& token, const Arguments&... arguments);
    [[noreturn]] void refuse() {
        const std::lock_guard lock(m_commanding);
        m_connection.refuse("EVAL");
    }

    // once_running.hpp
    template <class F>
    Result perform(const OnceToken& token, F& effect);
    template <class T>
    bool settle(MessageGuard<T>& guard, const OnceToken& token, const Result& result);

    const Keys m_keys;
    const OnceOptions m_options;
    const std::string m_nonce = detail::random_hex<16>();
    std::atomic<std::uint64_t> m_claims{0};
    detail::ClaimRenewal m_renewal;
    const detail::ForkMark m_fork_mark;

    std::mutex m_commanding; ///< guards what follows
    Connection m_connection;
};

namespace detail {

[[nodiscard]] inline OnceOptions checked(OnceOptions options) {
    if (options.lease < std::chrono::milliseconds(100) || options.lease > std::chrono::hours(24)) {
        throw std::invalid_argument("lease must be 100 ms to 24 h");
    }
    check_ttl(options.remember);
    return options;
}

inline void check_result(const std::optional<std::string_view>& result) {
    if (result && result->size() > Once::largest_result) {
        throw std::invalid_argument("the result of what is done once has more than 1 MiB");
    }
}

} // namespace detail

inline Once::Once(Endpoint endpoint, std::string scope, OnceOptions options)
    : m_keys(std::move(scope)),
      m_options(detail::checked(options)),
      m_renewal(endpoint, options.lease, options.remember),
      m_connection(std::move(endpoint)) {}

template <class... Arguments>
Reply Once::command(const std::string& script, const std::string& record,
                    const Arguments&... arguments) {
    const auto send = [&] { return m_connection.command(record, "EVAL", script, arguments...); };
    const std::lock_guard lock(m_commanding);
    try {
        return send();
    } catch (const ConnectionError& error) {
        if (!error.in_doubt()) {
            throw;
        }
        try {
            return send();
        } catch (const ConnectionError&) {
            throw error; // NOLINT(cert-err60-cpp): the first one was in doubt
        }
    }
}

template <class... Arguments>
bool Once::change(const std::string& script, const OnceToken& token,
                  const Arguments&... arguments) {
    detail::check_id(token.id);
    refuse_fork();
    const std::string fence = std::to_string(token.fence);
    // While the answer is awaited, for other threads or a time-out, the claim is to hold.
    const auto last = detail::at_exit([&] { m_renewal.drop(fence); });
    const std::string record = m_keys.once(token.id);
    const Reply reply = command(script, record, 1, record, fence, arguments...);
    if (!detail::is_count(reply) || reply.integer > 1) {
        refuse();
    }
    return reply.integer == 1;
}

inline Claim Once::claim(std::string_view id) {
    detail::check_id(id);
    refuse_fork();
    const std::string record = m_keys.once(id);
    const std::string nonce = m_nonce + ":" + std::to_string(++m_claims);
    Reply reply = command(detail::claim_script(), record, 2, record, m_keys.fences(),
                          m_options.lease.count(), m_options.remember.count(), nonce);
    auto claim = detail::read_claim(id, std::move(reply));
    if (!claim) {
        refuse();
    }
    if (claim->state == Claim::State::claimed) {
        m_renewal.add(std::to_string(claim->token.fence), record);
    }
    return std::move(*claim);
}

inline bool Once::complete(const OnceToken& token, std::optional<std::string_view> result) {
    detail::check_result(result);
    const auto remember = m_options.remember.count();
    return result ? change(detail::complete_claim_script(), token, remember, *result)
                  : change(detail::complete_claim_script(), token, remember);
}

inline bool Once::release(const OnceToken& token) {
    return change(detail::release_claim_script(), token);
}

namespace detail {

/// What fails here comes behind a failure that the caller is told.
template <class Action>
void attempt(Action action) noexcept {
    try {
        action();
    } catch (...) { // NOLINT(bugprone-empty-catch)
    }
}

template <class T>
void wait_for_claim(MessageGuard<T>& guard, std::chrono::milliseconds delay) {
    guard.settle(schedule_body(), schedule_keys(guard.keys()), due_after(delay));
}

} // namespace detail

template <class F>
Once::Result Once::perform(const OnceToken& token, F& effect) {
    Result result;
    try {
        result = detail::result_of(effect, token);
    } catch (...) {
        detail::attempt([&] { release(token); });
        throw;
    }
    try {
        detail::check_result(result);
    } catch (const std::invalid_argument&) {
        complete(token); // it has run, whatever it returned
        throw;
    }
    return result;
}

template <OnceEffect F>
OnceRun Once::run(std::string_view id, F effect) {
    Claim claim = this->claim(id);
    switch (claim.state) {
    case Claim::State::done:
        return {.outcome = OnceOutcome::repeated, .result = std::move(claim.result)};
    case Claim::State::busy:
        return {.outcome = OnceOutcome::busy, .busy_for = claim.busy_for};
    case Claim::State::claimed:
        break;
    }
    Result result = perform(claim.token, effect);
    const bool done = complete(claim.token, result);
    return {.outcome = done ? OnceOutcome::ran : OnceOutcome::lost, .result = std::move(result)};
}

template <class T, OnceEffect F>
OnceRun Once::run(MessageGuard<T>& guard, std::string_view id, F effect) {
    Claim claim = this->claim(id);
    switch (claim.state) {
    case Claim::State::done:
        guard.ack();
        return {.outcome = OnceOutcome::repeated, .result = std::move(claim.result)};
    case Claim::State::busy:
        detail::wait_for_claim(guard, claim.busy_for);
        return {.outcome = OnceOutcome::busy, .busy_for = claim.busy_for};
    case Claim::State::claimed:
        break;
    }
    Result result = perform(claim.token, effect);
    const bool done = settle(guard, claim.token, result);
    return {.outcome = done ? OnceOutcome::ran : OnceOutcome::lost, .result = std::move(result)};
}

/// Whether the id was marked as done and the message removed, in one step.
template <class T>
bool Once::settle(MessageGuard<T>& guard, const OnceToken& token, const Result& result) {
    const std::string fence = std::to_string(token.fence);
    // While the answer is awaited, for other threads or a time-out, the claim is to hold.
    const auto last = detail::at_exit([&] { m_renewal.drop(fence); });
    std::vector<std::string> arguments{fence, std::to_string(m_options.remember.count())};
    if (result) {
        arguments.push_back(*result);
    }
    try {
        if (guard.settle(detail::complete_claim_body(), {m_keys.once(token.id)},
                         std::move(arguments))) {
            return true;
        }
    } catch (const ReplyError& error) {
        if (error.code() == "FENCED") {
            detail::wait_for_claim(guard, m_options.lease);
            return false;
        }
        detail::attempt([&] { complete(token, result); });
        throw;
    } catch (...) {
        detail::attempt([&] { complete(token, result); });
        throw;
    }
    complete(token, result); // for whoever has the message now
    return false;
}

} // namespace orizuru
