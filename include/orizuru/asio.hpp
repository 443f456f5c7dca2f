// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Coroutines of Asio as handlers of a Worker, and what they await, on the program's own loop: see
// <orizuru/asio/coroutines.inl>. Needs Asio 1.19 or newer; for Boost.Asio include
// <orizuru/boost_asio.hpp>.

#include <asio/version.hpp>

#if ASIO_VERSION < 101900
#error "<orizuru/asio.hpp> needs Asio 1.19 or newer"
#endif

#include <exception>
#include <utility>

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

namespace orizuru::detail {

struct Asio {
    using Executor = asio::any_io_executor;
    using Context = asio::execution_context;
    using Signal = asio::cancellation_signal;
    template <class T>
    using Awaitable = asio::awaitable<T>;
    using UseAwaitable = asio::use_awaitable_t<>;
    template <class Token, class Signature>
    static constexpr bool completes = asio::completion_token_for<Token, Signature>;

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

// A program has one Asio: including both headers is an error here.
using TheAsio = Asio;

} // namespace orizuru::detail

#include <orizuru/asio/coroutines.inl>
