// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Coroutines as handlers of a Worker, and awaited calls: the interface of <orizuru/asio.hpp> and
// <orizuru/boost_asio.hpp>, for the library that the including header calls detail::TheAsio.
//
// The last argument of an awaited call, its token, says how to wait, as with all of Asio; without
// one the call is awaited: `co_await orizuru::async_ack(guard)`. It begins then, as with a callback
// at once; until it has begun, leave its object where it is.
//
// A call that has begun is carried out, whatever becomes of the wait: if that is cancelled
// (terminal or partial), it ends with operation_aborted; with a context that is destroyed, what
// waits there is destroyed. A callback without an executor of its own is called on Asio's threads.

#include <orizuru/async/async_consumer.hpp>
#include <orizuru/async/async_producer.hpp>
#include <orizuru/codec.hpp>
#include <orizuru/detail/asio/awaited_message.hpp>
#include <orizuru/detail/asio/awaited_progress.hpp>
#include <orizuru/detail/asio/awaited_push.hpp>
#include <orizuru/detail/asio/awaited_settlement.hpp>
#include <orizuru/detail/asio/coroutine_handler.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/guard_access.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/script.hpp>
#include <orizuru/worker/job_context.hpp>

#include <cstddef>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace orizuru {

namespace detail {

using Executor = TheAsio::Executor;

/// Completes an operation with these arguments.
template <class Token, class... Arguments>
concept TokenFor = TheAsio::completes<Token, void(Arguments...)>;
template <class Token>
concept SettlementToken = TokenFor<Token, std::exception_ptr, bool>;

} // namespace detail

/// Makes a handler of a coroutine: `coroutine` takes what a handler of jobs of a T takes (const T&,
/// JobContext<T>&, const Job<T>&), and returns awaitable<void>.
///
///     asio::awaitable<void> charge(const Order& order, JobContext<Order>& job);
///
///     worker.handle<Order>("orders", orizuru::on(io.get_executor(), charge),
///                          {.concurrency = 10'000});
///
/// It is called, resumed and destroyed on the executor only, which must be that of one thread or a
/// strand: Asio's cancellation needs that. When it returns, its job is acked; when it throws, its
/// attempt has failed. `coroutine` lives as long as the worker and its jobs, and what it refers to
/// must live as long.
///
/// A stop of the worker and the end of its time limit cancel it (cancellation_type::terminal): what
/// it awaits ends with operation_aborted. Let that through: after a stop the job is requeued,
/// after its time limit it has failed. JobRun::stop_token hears of both as well.
///
/// A context that is destroyed requeues what is in flight there. What comes for it after that has
/// failed: "the context of its executor is gone".
template <class F>
[[nodiscard]] detail::CoroutineHandler<detail::TheAsio, F> on(const detail::Executor& executor,
                                                              F coroutine) {
    return {{executor}, std::move(coroutine)};
}
/// Does the same for several executors, which get the jobs in turns: one for each thread. Throws
/// std::invalid_argument when there are none.
template <class F>
[[nodiscard]] detail::CoroutineHandler<detail::TheAsio, F>
on(const std::vector<detail::Executor>& executors, F coroutine) {
    return {executors, std::move(coroutine)};
}
/// Does the same for a list in braces.
template <class F>
[[nodiscard]] detail::CoroutineHandler<detail::TheAsio, F>
on(std::initializer_list<detail::Executor> executors, F coroutine) {
    return {executors, std::move(coroutine)};
}

/// Pushes a message; ends when Redis has it, or with what AsyncProducer::push tells.
/// Throws at once EncodeError, and std::logic_error in a forked child; then nothing is pushed.
template <MessageEncodable T,
          detail::TokenFor<std::exception_ptr> Token = detail::TheAsio::UseAwaitable>
auto async_push(AsyncProducer<T>& producer, const std::type_identity_t<T>& message,
                Token&& token = Token()) {
    return detail::async_push<detail::TheAsio, T, Token>(producer, message, token);
}

/// Waits for the next message: ends with it, in std::optional<MessageGuard<T>>; with nothing after
/// a stop, or when the consumer goes; or with what Consumer::next throws. What comes for a wait
/// that was cancelled goes to the next one; once the wait has ended with a message, what is not
/// resumed any more destroys its guard, which rejects it. Throws std::logic_error at once in a
/// forked child.
template <MessageDecodable T, detail::TokenFor<std::exception_ptr, std::optional<MessageGuard<T>>>
                                  Token = detail::TheAsio::UseAwaitable>
auto async_next(AsyncConsumer<T>& consumer, Token&& token = Token()) {
    return detail::async_next<detail::TheAsio, T, Token>(consumer, token);
}

/// For AckMode::deferred: sends the acks that guards have given; ends with what Consumer::flush
/// returns or throws. Cancelling ends the wait only. Throws std::logic_error at once in a forked
/// child.
template <MessageDecodable T,
          detail::TokenFor<std::exception_ptr, std::size_t> Token = detail::TheAsio::UseAwaitable>
auto async_flush(AsyncConsumer<T>& consumer, Token&& token = Token()) {
    return detail::async_flush<detail::TheAsio, T, Token>(consumer, token);
}

/// Acks a message of any consumer; ends with true once Redis has done it, in either AckMode, with
/// false if the lease was lost, or with what MessageGuard::ack throws, as late as that.
///
/// Meanwhile the guard counts as settled, and it may be moved or destroyed. When Redis refuses, it
/// is unsettled again; if it has gone, the consumer asks again in the background. If the wait was
/// cancelled, ConsumerOptions::on_event gets the outcome.
///
/// In a handler of a Worker, move the guard out of its job first: JobContext::guard() keeps it
/// locked as long as its result lives, in `co_await async_ack(*job.guard())` until that is over.
///
///     auto guard = std::move(*job.guard());
///     co_await orizuru::async_push(guard, "invoices");
///
/// Redis: acks that come while one script runs go out together with the next one. Other
/// settlements are a script for each, up to 16 on their way at a time.
///
/// Throws at once std::logic_error for a guard that is settled or was moved from, and in a forked
/// child; then nothing has happened.
template <class T, detail::SettlementToken Token = detail::TheAsio::UseAwaitable>
auto async_ack(MessageGuard<T>& guard, Token&& token = Token()) {
    detail::GuardCore& core = detail::GuardAccess::core(guard);
    return detail::async_settle<detail::TheAsio, Token>(core, core.acking(), token);
}

/// Does the same for reject.
template <class T, detail::SettlementToken Token = detail::TheAsio::UseAwaitable>
auto async_reject(MessageGuard<T>& guard, Token&& token = Token()) {
    detail::GuardCore& core = detail::GuardAccess::core(guard);
    return detail::async_settle<detail::TheAsio, Token>(core, core.rejecting(), token);
}

/// Does the same for release.
template <class T, detail::SettlementToken Token = detail::TheAsio::UseAwaitable>
auto async_release(MessageGuard<T>& guard, Token&& token = Token()) {
    detail::GuardCore& core = detail::GuardAccess::core(guard);
    return detail::async_settle<detail::TheAsio, Token>(core, core.releasing(), token);
}

/// Does the same for push: moves the same bytes to another queue. Throws std::invalid_argument at
/// once for an invalid queue name.
template <class T, detail::SettlementToken Token = detail::TheAsio::UseAwaitable>
auto async_push(MessageGuard<T>& guard, std::string_view queue, Token&& token = Token()) {
    detail::GuardCore& core = detail::GuardAccess::core(guard);
    return detail::async_settle<detail::TheAsio, Token>(core, core.pushing(queue), token);
}
/// Moves `replacement` there instead, a T or what it is. Throws EncodeError at once.
template <class T, MessageEncodable U,
          detail::SettlementToken Token = detail::TheAsio::UseAwaitable>
auto async_push(MessageGuard<T>& guard, std::string_view queue, const U& replacement,
                Token&& token = Token()) {
    detail::GuardCore& core = detail::GuardAccess::core(guard);
    return detail::async_settle<detail::TheAsio, Token>(
        core, core.pushing(queue, detail::encoded(replacement, core.max_payload())), token);
}

/// Does the same for bury.
template <class T, detail::SettlementToken Token = detail::TheAsio::UseAwaitable>
auto async_bury(MessageGuard<T>& guard, std::string_view reason, Token&& token = Token()) {
    detail::GuardCore& core = detail::GuardAccess::core(guard);
    return detail::async_settle<detail::TheAsio, Token>(core, core.burying(reason), token);
}

/// Does the same for settle, by a script of your own.
template <class T, detail::SettlementToken Token = detail::TheAsio::UseAwaitable>
auto async_settle(MessageGuard<T>& guard, const Script& script, std::vector<std::string> keys,
                  std::vector<std::string> args, Token&& token = Token()) {
    detail::GuardCore& core = detail::GuardAccess::core(guard);
    return detail::async_settle<detail::TheAsio, Token>(
        core, core.settling(script, std::move(keys), std::move(args)), token);
}

/// Publishes the progress of a job in flight, as JobRun::progress; ends with what that returns. It
/// is written for one job after the other. Throws std::invalid_argument at once.
template <detail::SettlementToken Token = detail::TheAsio::UseAwaitable>
auto async_progress(JobRun& job, double fraction, std::string_view note = {},
                    Token&& token = Token()) {
    return detail::async_progress<detail::TheAsio, Token>(job, fraction, note, token);
}

} // namespace orizuru
