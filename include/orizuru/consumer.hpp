// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Takes messages from a queue. Delivery is at least once: a message is in Redis, in the source or
// in the consumer's processing list, until it is settled. It is delivered again when the consumer
// dies or is unheard for its lease before an ack has reached Redis, and when Redis itself loses
// what it had confirmed (a failover, a restart without appendfsync always).

#include <orizuru/codec.hpp>
#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/timeout.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/consumer_core.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/message_guard.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace orizuru {

namespace detail {

template <class T>
class FetchingQueue;

} // namespace detail

/// A consumer of one queue: three connections, and a thread that keeps the lease.
///
/// `next` and iteration belong to one thread; guards may be settled on any; stop(), stopped(),
/// size(), name() and flush() may be called from any. An outage of Redis is waited out; a
/// connection that Redis has closed while it was idle is replaced (name() says what that changes).
template <MessageDecodable T>
class Consumer {
  public:
    class Iterator;

    /// Connects and registers.
    /// Redis: one script, O(1), and INFO memory.
    /// Throws: std::invalid_argument for a queue name or options that cannot be;
    ///     ConnectionError within connect_timeout (name resolution excluded); ReplyError when
    ///     Redis refuses the credentials, or the user lacks a right that consuming needs;
    ///     std::system_error when the process can have no more descriptors or threads.
    Consumer(Endpoint endpoint, std::string queue, ConsumerOptions options = {})
        : m_core(std::move(endpoint), std::move(queue), std::move(options)) {}

    Consumer(const Consumer&) = delete;
    Consumer& operator=(const Consumer&) = delete;

    /// Sends deferred acks and gives back what was fetched and not handed out; waits at most
    /// command_timeout, or less after end_by. Guards live on; the last one leaves the registry.
    ~Consumer() = default;

    /// The next message; waits until there is one. Nothing = stopped.
    /// Redis: BLMOVE, or one script that sends the deferred acks too and takes up to `prefetch`.
    ///     A BLMOVE whose time is up is ended by CLIENT UNBLOCK and CLIENT ID, which Redis counts
    ///     as an error reply; without the right to them it ends within 5 s.
    /// Throws: DecodeError when a message cannot be decoded or is over max_payload: it is on the
    ///     dead list. ReplyError when the source is no list, rights were taken away, or Redis
    ///     refuses each fetch for a reason that neither waiting nor a new connection mends.
    ///     std::bad_alloc when memory is short. Nothing is lost by any of them, and `next` can be
    ///     called again.
    ///
    /// When decoding a message throws std::bad_alloc, so does `next`, and the message stays in
    /// hand, in its place: the following call hands it out before any other. That call waits until
    /// 100 ms have passed since the first failure, or a second since the second one; a stop ends
    /// the wait, and so does a timeout that is over before. The third failure in a row sends the
    /// message to the dead list, as a DecodeError: a Codec may ask for memory that no machine has.
    /// The count is this consumer's, and in memory.
    [[nodiscard]] std::optional<MessageGuard<T>> next() {
        return next(std::stop_token(), detail::Timeout::never());
    }
    /// The same for at most `timeout`; 0 asks Redis once and does not wait for a message.
    [[nodiscard]] std::optional<MessageGuard<T>> next(std::chrono::milliseconds timeout) {
        return next(std::stop_token(), detail::Timeout(timeout));
    }
    /// The same; a stop that `token` requests ends this call only.
    [[nodiscard]] std::optional<MessageGuard<T>> next(std::stop_token token) {
        return next(token, detail::Timeout::never());
    }
    [[nodiscard]] std::optional<MessageGuard<T>> next(std::stop_token token,
                                                      std::chrono::milliseconds timeout) {
        return next(token, detail::Timeout(timeout));
    }

    /// From now on a fetch takes at most `most` messages, 1 to `prefetch`, and none is sent ahead.
    /// Call it before each `next` when the number that you can handle varies. For the thread that
    /// calls `next`. Throws std::invalid_argument.
    void limit(int most) { m_core.limit(most); }

    /// How many messages `next` hands out without asking Redis: what is left of a batch, and a
    /// message that there was no memory to decode. With a prefetch of 1 there is no batch. For the
    /// thread that calls `next`.
    [[nodiscard]] std::size_t in_hand() const noexcept { return m_core.in_hand(); }

    /// Ends `next`, now and for good, within 20 ms. Any thread, and a signal handler. What was
    /// fetched and not handed out is given back by `next` or the destructor.
    void stop() noexcept { m_core.stop(); }
    [[nodiscard]] bool stopped() const noexcept { return m_core.stopped(); }

    /// Bounds the end: nothing of this consumer waits for Redis beyond `deadline` any more, neither
    /// the calls of `next` and the settlements that are under way, which then end as if their own
    /// time were over, nor the destructor. What it has not given back by then comes again after the
    /// lease. Guards that outlive it wait as ever. Any thread.
    void end_by(std::chrono::steady_clock::time_point deadline) noexcept {
        m_core.end_by(deadline);
    }

    /// Sends the deferred acks and waits for Redis, as long as a settlement would.
    /// Returns how many acks since the last flush came too late: those messages are delivered
    /// again. After 0 none of the messages acked so far will be.
    /// Throws ConnectionError when Redis could not be reached, ReplyError when it refused: the acks
    /// stay queued.
    std::size_t flush() { return m_core.flush(); }

    /// The length of the source list.
    /// Redis: LLEN, O(1); waits at most command_timeout, connecting anew included.
    /// Throws ConnectionError when there is none in time, or it breaks before the answer;
    /// ReplyError.
    std::uint64_t size() { return m_core.size(); }

    /// The id of the present incarnation, as in the registry. It changes when a lease was lost,
    /// when a connection broke in the middle of something, and when the connection that waits for
    /// messages has closed: only the list tells then what Redis still knows of.
    [[nodiscard]] std::string name() const { return m_core.id(); }

    /// for (auto& guard : consumer): until stopped. An undecodable message is told to on_event and
    /// passed over; the guard of the round before is rejected unless it was settled. What else
    /// `next` throws leaves the loop; begun again, it goes on.
    [[nodiscard]] Iterator begin() { return Iterator(*this); }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  private:
    using Guard = MessageGuard<T>;

    // For a worker: it takes over messages that it has no memory to decode, as another type.
    template <class>
    friend class detail::FetchingQueue;

    static constexpr int most_shortages = 3;

    std::optional<Guard> next(const std::stop_token& token, detail::Timeout timeout) {
        return next(token, timeout,
                    [](const std::bad_alloc&, detail::DeliveryPtr&) { return false; });
    }
    /// `take_over`, called with a delivery that there is no memory to decode, returns whether it
    /// has moved it out; then there is no message. A delivery that it leaves, or throws from, stays
    /// in hand.
    template <class TakeOver>
    std::optional<Guard> next(const std::stop_token& token, detail::Timeout timeout,
                              TakeOver take_over);
    template <class TakeOver>
    void decode(detail::DeliveryPtr& delivery, typename Guard::Holder& message, std::string& reason,
                TakeOver take_over);
    void decode(const std::string& payload, typename Guard::Holder& message, std::string& reason);
    template <class U>
    static void decode_into(std::optional<U>& message, std::string_view payload, Scratch& scratch) {
        message.emplace(detail::decode<U>(payload, scratch));
    }
    template <class U>
    static void decode_into(std::unique_ptr<U>& message, std::string_view payload,
                            Scratch& scratch) {
        message = std::make_unique<U>(detail::decode<U>(payload, scratch));
    }
    /// The delivery as another message. What its Codec throws leaves the delivery where it is.
    template <MessageDecodable U>
    [[nodiscard]] MessageGuard<U> guard_as(detail::DeliveryPtr& delivery) {
        typename MessageGuard<U>::Holder message;
        Scratch scratch;
        decode_into(message, delivery->payload, scratch);
        return MessageGuard<U>(m_core.guard(std::move(delivery)), std::move(message));
    }

    detail::ConsumerCore m_core;
    Scratch m_scratch;
};

template <MessageDecodable T>
class Consumer<T>::Iterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = MessageGuard<T>;

    explicit Iterator(Consumer& consumer) : m_consumer(&consumer) { advance(); }

    [[nodiscard]] MessageGuard<T>& operator*() const noexcept { return *m_guard; }
    Iterator& operator++() {
        m_guard.reset();
        advance();
        return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) noexcept {
        return !iterator.m_guard;
    }

  private:
    void advance() {
        while (true) {
            try {
                m_guard = m_consumer->next();
                return;
            } catch (const DecodeError&) { // NOLINT(bugprone-empty-catch)
                // on_event has been told; the message is on the dead list.
            }
        }
    }

    Consumer* m_consumer;
    mutable std::optional<MessageGuard<T>> m_guard;
};

template <MessageDecodable T>
template <class TakeOver>
std::optional<MessageGuard<T>> Consumer<T>::next(const std::stop_token& token,
                                                 detail::Timeout timeout, TakeOver take_over) {
    while (auto delivery = m_core.next(token, timeout)) {
        typename Guard::Holder message;
        std::string reason;
        try {
            decode(delivery, message, reason, take_over);
        } catch (...) {
            if (delivery) {
                m_core.put_back(std::move(delivery));
            }
            throw;
        }
        if (!delivery) {
            return std::nullopt;
        }
        if (message) {
            delivery->shortages = 0;
            return Guard(m_core.guard(std::move(delivery)), std::move(message));
        }
        const auto buried = m_core.bury(delivery, reason, token, timeout.deadline());
        if (buried.value_or(true)) {
            m_core.tell(EventKind::decode_failed, reason, delivery->payload);
        }
        if (buried == true) {
            throw DecodeError(detail::joined({"a message of '", m_core.keys().source(),
                                              "' is on the dead list: ", reason}),
                              std::move(delivery->payload));
        }
    }
    return std::nullopt;
}

/// Without a message, `reason` says why there is none, unless `take_over` has the delivery. Throws
/// std::bad_alloc, as long as it does not bury the message for that.
template <MessageDecodable T>
template <class TakeOver>
void Consumer<T>::decode(detail::DeliveryPtr& delivery, typename Guard::Holder& message,
                         std::string& reason, TakeOver take_over) {
    try {
        decode(delivery->payload, message, reason);
    } catch (const std::bad_alloc& shortage) {
        if (take_over(shortage, delivery)) {
            return;
        }
        if (delivery->shortages + 1 < most_shortages) {
            throw;
        }
        reason = std::string("no memory to decode it, three times in a row: ") + shortage.what();
    }
}

/// Without a message, `reason` says why there is none. Throws std::bad_alloc.
template <MessageDecodable T>
void Consumer<T>::decode(const std::string& payload, typename Guard::Holder& message,
                         std::string& reason) {
    const auto max_payload = static_cast<std::uint64_t>(m_core.options().max_payload);
    if (payload.size() > max_payload) {
        reason = detail::over_max_payload(payload.size(), max_payload);
        return;
    }
    try {
        decode_into(message, payload, m_scratch);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        reason = error.what();
    } catch (...) {
        reason = "its Codec threw no std::exception";
    }
}

} // namespace orizuru
