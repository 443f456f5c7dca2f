// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One thread that takes messages from a queue for all who wait for one.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/async/awaited_message.hpp>
#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/base/timeout.hpp>
#include <orizuru/detail/consumer/consumer_core.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

namespace orizuru::detail {

class MessageRequests {
  public:
    /// Connects, registers, and starts the thread.
    [[gnu::cold]] MessageRequests(const Endpoint& endpoint, std::string&& queue,
                                  ConsumerOptions&& options, std::unique_ptr<MessageSlot> slot)
        : m_consumer(std::in_place, endpoint, std::move(queue), std::move(options)),
          m_slot(std::move(slot)) {
        m_thread.start([this] { run(); });
    }
    MessageRequests(const MessageRequests&) = delete;
    MessageRequests& operator=(const MessageRequests&) = delete;
    /// Tells all who wait that there is no more.
    [[gnu::cold]] ~MessageRequests() {
        {
            const std::lock_guard lock(m_mutex);
            m_ending = true;
            m_consumer->stop();
        }
        m_came.notify_one();
        m_thread.end();
    }

    [[nodiscard]] bool forked() const noexcept { return m_fork_mark.forked(); }
    [[gnu::cold]] void close_after_fork() noexcept { m_consumer.reset(); }
    void refuse_fork() const {
        if (forked()) {
            throw std::logic_error(joined({"an AsyncConsumer of '", keys().source(),
                                           "' is used in a forked child; make a new one there"}));
        }
    }

    void next(std::unique_ptr<MessageWaiter> waiter) {
        refuse_fork();
        std::unique_lock lock(m_mutex);
        if (m_closed) {
            lock.unlock();
            waiter->end(nullptr);
            return;
        }
        if (m_requests.size() >= m_bound) {
            // Those that were cancelled would pile up where there are no messages.
            m_requests.erase_if([](const auto& request) { return !request->listens(); });
            m_bound = std::max(least_bound, 2 * m_requests.size());
        }
        m_requests.push_back(std::move(waiter));
        if (m_requests.size() == 1) {
            m_came.notify_one();
        }
    }
    void flush(std::unique_ptr<FlushWaiter> waiter) {
        refuse_fork();
        std::unique_lock lock(m_mutex);
        if (m_closed) {
            lock.unlock();
            waiter->end(0, std::make_exception_ptr(ConnectionError(joined(
                               {"the AsyncConsumer of '", keys().source(), "' has ended"}))));
            return;
        }
        m_flushes.push_back(std::move(waiter));
        m_interrupt.request_stop();
        m_came.notify_one();
    }
    void stop() noexcept {
        if (forked()) {
            return;
        }
        {
            const std::lock_guard lock(m_mutex); // the thread is about to wait, or waits
            m_consumer->stop();
        }
        m_came.notify_one();
    }
    [[nodiscard]] const ConsumerCore& consumer() const noexcept { return *m_consumer; }
    [[nodiscard]] const Keys& keys() const noexcept { return m_consumer->keys(); }

  private:
    using Requests = Fifo<std::unique_ptr<MessageWaiter>>;
    using Flushes = Fifo<std::unique_ptr<FlushWaiter>>;

    static constexpr std::size_t least_bound = 64;

    // The thread.

    void run();
    void serve_waiting() noexcept;
    /// Fills the slot. Returns false when it was stopped or interrupted.
    bool fetch();
    void flush(const Flushes& flushes) noexcept;
    static void end_all(Requests& requests) noexcept;
    void close() noexcept;
    /// The consumer requeues it in its place.
    void put_back() noexcept {
        if (GuardCore* const guard = m_slot->guard()) {
            GuardCore::put_back(guard->give_up());
            m_slot->clear();
        }
    }

    const ForkMark m_fork_mark;
    std::optional<ConsumerCore> m_consumer; ///< until a forked child closes it

    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_came;
    Requests m_requests;
    std::size_t m_bound = least_bound; ///< so many requests make it look for cancelled ones
    Flushes m_flushes;
    std::stop_source m_interrupt; ///< ends the thread's fetch
    bool m_ending = false;
    bool m_closed = false; ///< the thread serves nobody any more

    // The thread's.

    const std::unique_ptr<MessageSlot> m_slot; ///< may have what came for one who is gone
    Requests m_waiting;                        ///< they came before the others
    bool m_stopped = false;                    ///< the thread has seen the stop
    OwnThread m_thread;
};

inline void MessageRequests::run() {
    bool ending = false;
    while (!ending) {
        Flushes flushes;
        {
            std::unique_lock lock(m_mutex);
            m_came.wait(lock, [this] {
                return m_ending || !m_requests.empty() || !m_waiting.empty() ||
                       !m_flushes.empty() || (m_consumer->stopped() && !m_stopped);
            });
            flushes = std::move(m_flushes);
            if (m_waiting.empty()) {
                std::swap(m_waiting, m_requests);
            }
            ending = m_ending;
        }
        flush(flushes);
        serve_waiting();
    }
    close();
}

/// Those who are told may ask again, so without the lock; they are told themselves.
inline void MessageRequests::close() noexcept {
    Requests requests;
    Flushes flushes;
    {
        const std::lock_guard lock(m_mutex);
        requests = std::move(m_requests);
        flushes = std::move(m_flushes);
        m_closed = true;
    }
    flush(flushes);
    end_all(requests);
}

inline void MessageRequests::serve_waiting() noexcept {
    while (!m_waiting.empty() && !m_consumer->stopped()) {
        const std::unique_ptr<MessageWaiter>& first = m_waiting.front();
        if (first->listens()) {
            try {
                if (m_slot->guard() != nullptr && !m_slot->guard()->held()) {
                    put_back(); // the consumer knows whether it is lost
                }
                if (m_slot->guard() == nullptr && !fetch()) {
                    break;
                }
                first->take(*m_slot);
            } catch (...) {
                first->end(std::current_exception());
            }
        }
        m_waiting.pop_front();
    }
    if (!m_consumer->stopped()) {
        return;
    }
    if (!std::exchange(m_stopped, true)) {
        put_back();
        try {
            // Requeues what was fetched.
            fetch();
        } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
            // The consumer's destructor tries again.
        }
    }
    end_all(m_waiting);
}

inline bool MessageRequests::fetch() {
    std::stop_token interrupted;
    {
        const std::lock_guard lock(m_mutex);
        if (!m_flushes.empty()) {
            return false;
        }
        if (m_interrupt.stop_requested()) {
            m_interrupt = std::stop_source();
        }
        interrupted = m_interrupt.get_token();
    }
    Timeout never = Timeout::never();
    return m_consumer->next(interrupted, never, [this](const std::string& payload) -> GuardCore& {
        return m_slot->decode(payload);
    });
}

inline void MessageRequests::flush(const Flushes& flushes) noexcept {
    if (flushes.empty()) {
        return;
    }
    std::size_t late = 0;
    std::exception_ptr error;
    try {
        late = m_consumer->flush();
    } catch (...) {
        error = std::current_exception();
    }
    for (const auto& waiter : flushes) {
        waiter->end(std::exchange(late, 0), error);
    }
}

inline void MessageRequests::end_all(Requests& requests) noexcept {
    while (!requests.empty()) {
        requests.pop_front()->end(nullptr);
    }
}

} // namespace orizuru::detail
