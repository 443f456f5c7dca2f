// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Takes messages without a thread that waits for them: for event loops.

#include <orizuru/codec.hpp>
#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/async/async_consumer_core.hpp>
#include <orizuru/detail/async/awaited_message.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/guard_access.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/message_guard.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace orizuru {

namespace detail {
struct AsyncConsumerAccess;

/// A slot for a message of this type.
template <class T>
class GuardSlot final : public MessageSlot {
  public:
    GuardCore& decode(const std::string& payload) override {
        m_guard.emplace(GuardAccess::decoded<T>(payload, m_scratch));
        return GuardAccess::core(*m_guard);
    }
    [[nodiscard]] GuardCore* guard() noexcept override {
        return m_guard ? &GuardAccess::core(*m_guard) : nullptr;
    }
    void clear() noexcept override { m_guard.reset(); }

    [[nodiscard]] std::optional<MessageGuard<T>>& content() noexcept { return m_guard; }

  private:
    std::optional<MessageGuard<T>> m_guard;
    Scratch m_scratch;
};

} // namespace detail

/// @cond
// For a T without a Codec that can decode it.
template <class T>
class AsyncConsumer : detail::NoCodec<T, detail::Coding::decode> {
    using detail::NoCodec<T, detail::Coding::decode>::NoCodec;
};
/// @endcond

/// A Consumer whose messages any number of coroutines and threads take, none of which waits in a
/// thread. It has the connections of a Consumer, and a thread more, which waits for all.
///
/// next() returns at once, and calls with the message later. With <orizuru/asio.hpp> coroutines
/// await that, and the ends of their guards' settlements:
///
///     while (auto order = co_await orizuru::async_next(consumer)) {
///         co_await orizuru::async_ack(*order);
///     }
///
/// The guards' own functions block. What is said of Consumer and ConsumerOptions holds; with
/// prefetch, many of those who wait are served by one fetch.
///
/// All member functions except the destructor and assignment are thread-safe.
template <MessageDecodable T>
class AsyncConsumer<T> {
  public:
    /// Connects, registers and starts the threads. Throws as the constructor of Consumer.
    ///
    /// The destructor stops, and tells those who wait for a message. It takes as long as that of
    /// Consumer, and as what it calls. Settlements that are awaited and have no outcome by then are
    /// told to be in doubt; they go on while guards live. In a forked child it sends and tells
    /// nothing.
    AsyncConsumer(const Endpoint& endpoint, std::string queue, ConsumerOptions options = {})
        : m_core(endpoint, std::move(queue), std::move(options),
                 std::make_unique<detail::GuardSlot<T>>()) {}

    /// Calls `told(guard, error)` once, on the consumer's thread: with a message; with nothing and
    /// what Consumer::next throws; or with nothing and null, after a stop. Those who called first
    /// are told first.
    ///
    /// `told` holds up all others while it runs. It must not throw (std::terminate), must not end,
    /// move or assign the consumer, and may call next().
    ///
    /// Redis: as Consumer::next. Blocks: never. Throws: std::logic_error in a forked child; then
    /// `told` is not called.
    template <class F>
    void
    next(F told) requires std::invocable<F&, std::optional<MessageGuard<T>>, std::exception_ptr> {
        m_core.next(std::make_unique<Next<F>>(std::move(told)));
    }

    /// For AckMode::deferred: sends the acks that guards have given, and calls `told(late, error)`
    /// once, on the consumer's thread, with what Consumer::flush returns, or 0 and what it throws.
    /// It interrupts the wait for messages. As to `told`, as next().
    template <class F>
    void flush(F told) requires std::invocable<F&, std::size_t, std::exception_ptr> {
        m_core.flush(std::make_unique<Flush<F>>(std::move(told)));
    }

    /// Ends all waits for messages, within 20 ms, and those that are begun later. What was fetched
    /// and not handed out is requeued. Guards and their settlements go on.
    void stop() noexcept { m_core.stop(); }
    /// True once stop() was called; waits that it ends may not have ended yet.
    [[nodiscard]] bool stopped() const noexcept { return m_core.stopped(); }

    /// As Consumer::name.
    [[nodiscard]] std::string name() const { return m_core.id(); }
    /// As Consumer::connected.
    [[nodiscard]] bool connected() const { return m_core.connected(); }

    /// The keys of the queue. Valid as long as this consumer; throws std::logic_error when it was
    /// moved from.
    [[nodiscard]] const Keys& keys() const { return m_core.keys(); }
    /// The options as they were given. Valid, and throws, as keys().
    [[nodiscard]] const ConsumerOptions& options() const { return m_core.options(); }

  private:
    friend struct detail::AsyncConsumerAccess;

    template <class F>
    class Next final : public detail::MessageWaiter {
      public:
        explicit Next(F told) : m_told(std::move(told)) {}

        [[nodiscard]] bool listens() const noexcept override { return true; }
        void take(detail::MessageSlot& slot) noexcept override {
            auto& content = static_cast<detail::GuardSlot<T>&>(slot).content();
            std::invoke(m_told, std::exchange(content, std::nullopt), nullptr);
        }
        void end(std::exception_ptr error) noexcept override {
            std::invoke(m_told, std::nullopt, std::move(error));
        }

      private:
        F m_told;
    };
    template <class F>
    class Flush final : public detail::FlushWaiter {
      public:
        explicit Flush(F told) : m_told(std::move(told)) {}
        void end(std::size_t late, std::exception_ptr error) noexcept override {
            std::invoke(m_told, late, std::move(error));
        }

      private:
        F m_told;
    };

    detail::AsyncConsumerCore m_core;
};

namespace detail {

/// For those who are told in their own way.
struct AsyncConsumerAccess {
    template <class T>
    [[nodiscard]] static AsyncConsumerCore& core(AsyncConsumer<T>& consumer) noexcept {
        return consumer.m_core;
    }
};

} // namespace detail

} // namespace orizuru
