// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Coroutines of Asio as handlers of a Worker, on the program's own loop. Needs Asio 1.19 or newer;
// for Boost.Asio include <orizuru/boost_asio.hpp>.

#include <asio/version.hpp>

#if ASIO_VERSION < 101900
#error "<orizuru/asio.hpp> needs Asio 1.19 or newer"
#endif

#include <orizuru/detail/asio/coroutine_handler.hpp>

#include <initializer_list>
#include <utility>
#include <vector>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/co_spawn.hpp>
#include <asio/execution_context.hpp>
#include <asio/post.hpp>

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

    template <class Function>
    static void post(const Executor& executor, Function function) {
        asio::post(executor, std::move(function));
    }
    template <class Ended>
    static void spawn(const Executor& executor, Awaitable<void> run, Signal& signal, Ended ended) {
        asio::co_spawn(executor, std::move(run),
                       asio::bind_cancellation_slot(signal.slot(), std::move(ended)));
    }
    static void cancel(Signal& signal) { signal.emit(asio::cancellation_type::terminal); }
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
/// When the worker stops or the time limit is over, it is cancelled (cancellation_type::terminal):
/// what it awaits ends with operation_aborted. Let that through: after a stop the job is requeued,
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

} // namespace orizuru
