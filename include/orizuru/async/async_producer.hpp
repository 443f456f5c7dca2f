// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Pushes messages without a wait, and tells later that Redis has them: for event loops.

#include <orizuru/codec.hpp>
#include <orizuru/detail/async/async_producer_core.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/producer_options.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace orizuru {

namespace detail {
struct AsyncProducerAccess;
} // namespace detail

/// @cond
// For a T without a Codec that can encode it.
template <class T>
class AsyncProducer : detail::NoCodec<T, detail::Coding::encode> {
    using detail::NoCodec<T, detail::Coding::encode>::NoCodec;
};
/// @endcond

/// Pushes messages to one queue; any number of threads and coroutines may share it. It owns one
/// connection and one thread.
///
/// push() accepts a message and returns; the thread pushes all that came while it waited for Redis
/// before, and tells each caller that Redis has the message, or why not. With <orizuru/asio.hpp>
/// coroutines await that: `co_await orizuru::async_push(producer, message)`. The producer repeats
/// nothing that Redis may have done.
///
/// Messages of one thread keep their order, except for one that follows another's failure.
///
/// The memory of messages that wait has no bound: await each before you push the next, or look at
/// unconfirmed().
///
/// All member functions except the destructor and assignment are thread-safe.
template <MessageEncodable T>
class AsyncProducer<T> {
  public:
    /// Connects and starts the thread. Throws as the constructor of Producer; std::system_error
    /// when the process can have no more threads.
    ///
    /// The destructor pushes what was accepted, until a failure or for command_timeout; the rest is
    /// told to have failed. It takes as long as an LPUSH longer, and as what it calls. What a call
    /// pushes behind that is not pushed, and not told of. In a forked child it sends and tells
    /// nothing.
    AsyncProducer(const Endpoint& endpoint, std::string queue, ProducerOptions options = {})
        : m_core(endpoint, std::move(queue), options) {}

    /// Accepts a message, and calls `pushed(error)` once, on the producer's thread: with null when
    /// Redis has the message, and with `replicas` enough of them, else with what Producer::push
    /// throws. Encodes the message before it returns.
    ///
    /// `pushed` holds up all later pushes while it runs. It must not throw (std::terminate), must
    /// not end, move or assign the producer, and may push.
    ///
    /// Redis: an LPUSH, atomic, for up to 1000 messages or 512 KiB that wait at the time.
    /// Blocks: never. `pushed` is called when Redis has answered, at most connect_timeout and
    ///     command_timeout after its LPUSH was begun, with replicas also their time. When a
    ///     connection fails, or too few replicas confirm, all that wait behind that LPUSH fail with
    ///     it and are not pushed; so none waits for more than two LPUSHes' time, unless over 1000
    ///     messages or 512 KiB are before it.
    /// Throws: EncodeError; std::logic_error in a forked child. Then `pushed` is not called.
    template <class F>
    void push(const T& message, F pushed) requires std::invocable<F&, std::exception_ptr> {
        std::string payload = detail::encoded(message, options().max_payload);
        m_core.push(std::make_unique<Push<F>>(std::move(payload), std::move(pushed)));
    }

    /// The number of accepted messages whose callers have not been told yet; a call of `pushed`
    /// that runs counts.
    [[nodiscard]] std::size_t unconfirmed() const { return m_core.unconfirmed(); }

    /// The keys of the queue. Valid as long as this producer; throws std::logic_error when it was
    /// moved from.
    [[nodiscard]] const Keys& keys() const { return m_core.keys(); }
    /// The options as they were given. Valid, and throws, as keys().
    [[nodiscard]] const ProducerOptions& options() const { return m_core.options(); }

  private:
    friend struct detail::AsyncProducerAccess;

    template <class F>
    class Push final : public detail::AsyncPush {
      public:
        Push(std::string payload, F pushed)
            : AsyncPush(std::move(payload)), m_pushed(std::move(pushed)) {}
        void end(std::exception_ptr error) noexcept override {
            std::invoke(m_pushed, std::move(error));
        }

      private:
        F m_pushed;
    };

    detail::AsyncProducerCore m_core;
};

namespace detail {

/// For those who are told in their own way.
struct AsyncProducerAccess {
    template <class T>
    [[nodiscard]] static AsyncProducerCore& core(AsyncProducer<T>& producer) noexcept {
        return producer.m_core;
    }
};

} // namespace detail

} // namespace orizuru
