// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How an effect runs under its claim. Part of once.hpp, which is the header to read first and to
// include.

#include <orizuru/detail/at_exit.hpp>
#include <orizuru/detail/once_scripts.hpp>
#include <orizuru/detail/schedule.hpp>
#include <orizuru/error.hpp>
#include <orizuru/once.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

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
