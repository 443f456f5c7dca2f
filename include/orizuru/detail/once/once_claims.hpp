// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Does the work of a Once, whatever the types of its effects and messages.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/detail/once/claim_renewal.hpp>
#include <orizuru/detail/once/once_calls.hpp>
#include <orizuru/detail/once/once_scripts.hpp>
#include <orizuru/detail/once/read_claim.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/once/claim.hpp>
#include <orizuru/once/once_options.hpp>
#include <orizuru/once/once_run.hpp>
#include <orizuru/reply.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

[[nodiscard]] inline OnceOptions checked(OnceOptions options) {
    check_time("lease", options.lease, std::chrono::milliseconds(100));
    check_ttl(options.remember);
    return options;
}

inline void check_result(const std::optional<std::string_view>& result) {
    if (result && result->size() > largest_once_result) {
        throw std::invalid_argument("the result of what is done once has more than 1 MiB");
    }
}

/// Any thread. Blocks and throws as Once says.
class OnceClaims {
  public:
    OnceClaims(Endpoint endpoint, std::string scope, const OnceOptions& options)
        : m_keys(std::move(scope)),
          m_options(checked(options)),
          m_renewal(Route::to_key(endpoint, m_keys.source()), options.lease, options.remember),
          m_connection(Route::to_key(std::move(endpoint), m_keys.source())) {}

    Claim claim(std::string_view id);
    bool complete(const OnceToken& token, std::optional<std::string_view> result = {});
    bool release(const OnceToken& token);
    void renew() noexcept {
        if (!m_fork_mark.forked()) {
            m_renewal.renew();
        }
    }
    OnceRun run(std::string_view id, const OnceCall& effect);
    OnceRun run(std::string_view id, const OnceCall& effect, const OnceMessage& message);

  private:
    using Result = std::optional<std::string>;

    /// Parent and child would go on counting from the same number, and Redis would take the claim
    /// of one for the other's.
    void refuse_fork() const {
        if (m_fork_mark.forked()) {
            throw std::logic_error("a Once of '" + m_keys.source() +
                                   "' is used in a forked child; make a new one there");
        }
    }
    template <class... Arguments>
    Reply command(std::string_view script, const std::string& record,
                  const Arguments&... arguments);
    template <class... Arguments>
    bool change(std::string_view script, const OnceToken& token, const Arguments&... arguments);
    [[noreturn]] void refuse() {
        const std::lock_guard lock(m_commanding);
        detail::refuse(m_connection, "EVAL");
    }

    Result perform(const OnceToken& token, const OnceCall& effect);
    bool settle(const OnceMessage& message, const OnceToken& token, const Result& result);

    const Keys m_keys;
    const OnceOptions m_options;
    const std::string m_nonce = random_hex(16);
    std::atomic<std::uint64_t> m_claims{0};
    ClaimRenewal m_renewal;
    const ForkMark m_fork_mark;

    std::mutex m_commanding; ///< guards what follows
    Connection m_connection;
};

template <class... Arguments>
Reply OnceClaims::command(std::string_view script, const std::string& record,
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
bool OnceClaims::change(std::string_view script, const OnceToken& token,
                        const Arguments&... arguments) {
    check_id(token.id);
    refuse_fork();
    const std::string fence = std::to_string(token.fence);
    // Until the answer is there, which other threads or a time-out may delay, the claim must hold.
    const auto last = at_exit([&] { m_renewal.drop(fence); });
    const std::string record = m_keys.once(token.id);
    const Reply reply = command(script, record, 1, record, fence, arguments...);
    if (!is_count(reply) || reply.integer > 1) {
        refuse();
    }
    return reply.integer == 1;
}

inline Claim OnceClaims::claim(std::string_view id) {
    check_id(id);
    refuse_fork();
    const std::string record = m_keys.once(id);
    const std::string nonce = m_nonce + ":" + std::to_string(++m_claims);
    Reply reply = command(claim_script, record, 2, record, m_keys.fences(), m_options.lease.count(),
                          m_options.remember.count(), nonce);
    auto claim = read_claim(id, std::move(reply));
    if (!claim) {
        refuse();
    }
    if (claim->state == Claim::State::claimed) {
        m_renewal.add(std::to_string(claim->token.fence), record);
    }
    return std::move(*claim);
}

inline bool OnceClaims::complete(const OnceToken& token, std::optional<std::string_view> result) {
    check_result(result);
    const auto remember = m_options.remember.count();
    return result ? change(complete_claim_script, token, remember, *result)
                  : change(complete_claim_script, token, remember);
}

inline bool OnceClaims::release(const OnceToken& token) {
    return change(release_claim_script, token);
}

/// Swallows what fails: it follows a failure that the caller is told.
template <class Action>
void attempt(Action action) noexcept {
    try {
        action();
    } catch (...) { // NOLINT(bugprone-empty-catch)
    }
}

inline OnceClaims::Result OnceClaims::perform(const OnceToken& token, const OnceCall& effect) {
    Result result;
    try {
        result = effect(token);
    } catch (...) {
        attempt([&] { release(token); });
        throw;
    }
    try {
        check_result(result);
    } catch (const std::invalid_argument&) {
        complete(token); // it has run, whatever it returned
        throw;
    }
    return result;
}

inline OnceRun OnceClaims::run(std::string_view id, const OnceCall& effect) {
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

inline OnceRun OnceClaims::run(std::string_view id, const OnceCall& effect,
                               const OnceMessage& message) {
    Claim claim = this->claim(id);
    switch (claim.state) {
    case Claim::State::done:
        message.ack();
        return {.outcome = OnceOutcome::repeated, .result = std::move(claim.result)};
    case Claim::State::busy:
        message.put_off(claim.busy_for);
        return {.outcome = OnceOutcome::busy, .busy_for = claim.busy_for};
    case Claim::State::claimed:
        break;
    }
    Result result = perform(claim.token, effect);
    const bool done = settle(message, claim.token, result);
    return {.outcome = done ? OnceOutcome::ran : OnceOutcome::lost, .result = std::move(result)};
}

/// Returns whether the id was marked as done and the message removed, in one step.
inline bool OnceClaims::settle(const OnceMessage& message, const OnceToken& token,
                               const Result& result) {
    const std::string fence = std::to_string(token.fence);
    // Until the answer is there, which other threads or a time-out may delay, the claim must hold.
    const auto last = at_exit([&] { m_renewal.drop(fence); });
    std::vector<std::string> arguments{fence, std::to_string(m_options.remember.count())};
    if (result) {
        arguments.push_back(*result);
    }
    try {
        if (message.settle(complete_claim_body(), {m_keys.once(token.id)}, std::move(arguments))) {
            return true;
        }
    } catch (const ReplyError& error) {
        if (error.code() == "FENCED") {
            message.put_off(m_options.lease);
            return false;
        }
        attempt([&] { complete(token, result); });
        throw;
    } catch (...) {
        attempt([&] { complete(token, result); });
        throw;
    }
    complete(token, result); // for the consumer that has the message now
    return false;
}

} // namespace orizuru::detail
