// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Coroutines of Boost.Asio as handlers of a Worker, and what they await, on the program's own loop:
// see <orizuru/asio/coroutines.inl>. Needs Boost 1.77 or newer; for Asio without Boost include
// <orizuru/asio.hpp>.

#include <boost/asio/version.hpp>

#if BOOST_ASIO_VERSION < 101900
#error "<orizuru/boost_asio.hpp> needs Boost 1.77 or newer"
#endif

#include <exception>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#if !defined(BOOST_ASIO_HAS_CO_AWAIT)
#error "Boost.Asio finds no coroutines in this compiler: use g++ 12 or newer, say"
#endif

namespace orizuru::detail {

struct BoostAsio {
    using Executor = boost::asio::any_io_executor;
    using Context = boost::asio::execution_context;
    using Signal = boost::asio::cancellation_signal;
    template <class T>
    using Awaitable = boost::asio::awaitable<T>;
    using UseAwaitable = boost::asio::use_awaitable_t<>;
    template <class Token, class Signature>
    static constexpr bool completes = boost::asio::completion_token_for<Token, Signature>;

    template <class E>
    [[nodiscard]] static Context& context_of(const E& executor) {
        if constexpr (requires { executor.context(); }) { // use_future's has no other way
            return executor.context();
        } else {
            return boost::asio::query(executor, boost::asio::execution::context);
        }
    }
    template <class E, class Function>
    static void post(const E& executor, Function function) {
        boost::asio::post(executor, std::move(function));
    }
    template <class Ended>
    static void spawn(const Executor& executor, Awaitable<void> run, Signal& signal, Ended ended) {
        boost::asio::co_spawn(executor, std::move(run),
                              boost::asio::bind_cancellation_slot(signal.slot(), std::move(ended)));
    }
    static void cancel(Signal& signal) { signal.emit(boost::asio::cancellation_type::terminal); }

    template <class Token, class Signature, class Start, class... Arguments>
    static auto initiate(Start start, Token& token, Arguments... arguments) {
        return boost::asio::async_initiate<Token, Signature>(std::move(start), token,
                                                             std::move(arguments)...);
    }
    /// While it lives, the handler's context runs.
    template <class Handler>
    [[nodiscard]] static auto work_of(const Handler& handler) {
        return boost::asio::make_work_guard(boost::asio::get_associated_executor(handler));
    }
    template <class Handler>
    [[nodiscard]] static auto slot_of(const Handler& handler) {
        return boost::asio::get_associated_cancellation_slot(handler);
    }
    /// A cancellation of this type may end an operation that has had its effect.
    [[nodiscard]] static bool may_leave_effects(boost::asio::cancellation_type type) {
        using Type = boost::asio::cancellation_type;
        return (type & (Type::terminal | Type::partial)) != Type::none;
    }
    [[nodiscard]] static std::exception_ptr aborted() {
        return std::make_exception_ptr(
            boost::system::system_error(boost::asio::error::operation_aborted));
    }
};

// A program has one Asio: including both headers is an error here.
using TheAsio = BoostAsio;

} // namespace orizuru::detail

#include <orizuru/asio/coroutines.inl>
