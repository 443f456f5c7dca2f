// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Coroutines of Asio as handlers of a Worker, and pushes that they await, on the program's own
// loop. Needs Asio 1.19 or newer; for Boost.Asio include <orizuru/boost_asio.hpp>.

#include <asio/version.hpp>

#if ASIO_VERSION < 101900
#error "<orizuru/asio.hpp> needs Asio 1.19 or newer"
#endif

#include <orizuru/async/async_producer.hpp>
#include <orizuru/codec.hpp>
#include <orizuru/detail/asio/awaited_push.hpp>
#include <orizuru/detail/asio/coroutine_handler.hpp>

#include <exception>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include <asio/any_io_executor.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/execution/context.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/query.hpp>
#include <asio/system_error.hpp>
#include <asio/use_awaitable.hpp>

#if !defined(ASIO_HAS_CO_AWAIT)
#error "Asio finds no coroutines in this compiler: use g++ 12 or newer, say"
#endif

namespace orizuru {

namespace detail {

struct Asio {
    using Executor = asio::any_io_executor;
    using Context = asio::execution_context;
    using Signal = asio::cancellation_signal;
    template <class T>
    using Awaitable = asio::awaitable<T>;

    template <class E>
    [[nodiscard]] static Context& context_of(const E& executor) {
        if constexpr (requires { executor.context(); }) { // use_future's has no other way
            return executor.context();
        } else {
            return asio::query(executor, asio::execution::context);
        }
    }
    template <class E, class Function>
    static void post(const E& executor, Function function) {
        asio::post(executor, std::move(function));
    }
    template <class Ended>
    static void spawn(const Executor& executor, Awaitable<void> run, Signal& signal, Ended ended) {
        asio::co_spawn(executor, std::move(run),
                       asio::bind_cancellation_slot(signal.slot(), std::move(ended)));
    }
    static void cancel(Signal& signal) { signal.emit(asio::cancellation_type::terminal); }

    template <class Token, class Signature, class Start, class... Arguments>
    static auto initiate(Start start, Token& token, Arguments... arguments) {
        return asio::async_initiate<Token, Signature>(std::move(start), token,
                                                      std::move(arguments)...);
    }
    /// While it lives, the handler's context runs.
    template <class Handler>
    [[nodiscard]] static auto work_of(const Handler& handler) {
        return asio::make_work_guard(asio::get_associated_executor(handler));
    }
    template <class Handler>
    [[nodiscard]] static auto slot_of(const Handler& handler) {
        return asio::get_associated_cancellation_slot(handler);
    }
    /// A cancellation of this type may end an operation that has had its effect.
    [[nodiscard]] static bool may_leave_effects(asio::cancellation_type type) {
        using Type = asio::cancellation_type;
        return (type & (Type::terminal | Type::partial)) != Type::none;
    }
    [[nodiscard]] static std::exception_ptr aborted() {
        return std::make_exception_ptr(asio::system_error(asio::error::operation_aborted));
    }
};

} // namespace detail

/// Makes a handler of a coroutine: `coroutine` takes what a handler of jobs of a T takes (const T&,
/// JobContext<T>&, const Job<T>&), and returns asio::awaitable<void>.
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
[[nodiscard]] detail::CoroutineHandler<detail::Asio, F> on(const asio::any_io_executor& executor,
                                                           F coroutine) {
    return {{executor}, std::move(coroutine)};
}
/// Does the same for several executors, which get the jobs in turns: one for each thread. Throws
/// std::invalid_argument when there are none.
template <class F>
[[nodiscard]] detail::CoroutineHandler<detail::Asio, F>
on(const std::vector<asio::any_io_executor>& executors, F coroutine) {
    return {executors, std::move(coroutine)};
}
template <class F>
[[nodiscard]] detail::CoroutineHandler<detail::Asio, F>
on(std::initializer_list<asio::any_io_executor> executors, F coroutine) {
    return {executors, std::move(coroutine)};
}

/// Pushes a message; ends when Redis has it, or with what AsyncProducer::push tells. The token says
/// how to wait, as with all of Asio; without one, the call is awaited:
///
///     co_await orizuru::async_push(producer, order);
///
/// Throws at once EncodeError, and std::logic_error in a forked child; then nothing is pushed. Once
/// begun, which the default does when it is awaited, the message is pushed, whatever becomes of the
/// wait: if that is cancelled (terminal or partial), it ends with operation_aborted; with a context
/// that is destroyed, what waits there is destroyed. Until it is begun, leave the producer where it
/// is. A callback without an executor of its own is called on Asio's threads.
template <MessageEncodable T,
          asio::completion_token_for<void(std::exception_ptr)> Token = asio::use_awaitable_t<>>
auto async_push(AsyncProducer<T>& producer, const std::type_identity_t<T>& message,
                Token&& token = Token()) {
    return detail::async_push<detail::Asio, T, Token>(producer, message, token);
}

} // namespace orizuru
