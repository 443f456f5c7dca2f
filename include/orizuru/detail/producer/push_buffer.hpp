// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Buffered pushing. Any thread adds messages to a backlog. The buffer's own thread sends messages
// that have waited too long, takes Redis' answers while no other thread calls, and retries after
// failures.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/producer/payload_source.hpp>
#include <orizuru/detail/producer/push_backlog.hpp>
#include <orizuru/detail/producer/push_line.hpp>
#include <orizuru/detail/producer/push_pipeline.hpp>
#include <orizuru/detail/producer/replica_wait.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace orizuru::detail {

class PushBuffer {
  public:
    /// Detects a forked child, which has the object without its thread: locks may be held for ever.
    struct Close {
        void operator()(PushBuffer* buffer) const noexcept {
            if (buffer->m_fork_mark.forked()) {
                buffer->m_line.pipeline().close_after_fork();
            } else {
                delete buffer;
            }
        }
    };
    using Pointer = std::unique_ptr<PushBuffer, Close>;

    /// Connects, and starts the thread.
    [[gnu::cold]] PushBuffer(const Endpoint& endpoint, const std::string& key, std::size_t most,
                             std::chrono::milliseconds time, ReplicaWait wait)
        : m_line(endpoint, key, most, std::move(wait)), m_time(time), m_thread([this] { run(); }) {}
    PushBuffer(const PushBuffer&) = delete;
    PushBuffer& operator=(const PushBuffer&) = delete;
    /// Tries to flush, for as long as one LPUSH may take.
    [[gnu::cold]] ~PushBuffer();

    /// Takes the one message of `payload`; returns the queue's length as last reported. When it
    /// throws, the message is not taken.
    std::uint64_t push(PayloadSource payload) {
        Lock lock = begin();
        if (backlog().full()) {
            make_room(lock);
        }
        const bool first = !backlog().filled();
        if (first && backlog().refused_bytes() > most_refused_bytes) {
            backlog().give_back();
        }
        add(payload);
        if (first) {
            m_due = Clock::now() + m_time;
            look_by(m_due);
        }
        if (backlog().full()) {
            send_full();
        }
        return backlog().length();
    }

    /// Returns when Redis has confirmed all earlier messages; false when `limit` came first. Throws
    /// the error of a failed attempt; RefusedError for a message that is not kept any longer.
    bool flush(TimePoint limit = TimePoint::max());

    [[nodiscard]] std::size_t unconfirmed() {
        const Lock lock = begin();
        return backlog().size();
    }

    /// LLEN.
    std::uint64_t length();

  private:
    using Lock = PushLine::Lock;

    [[nodiscard]] PushBacklog& backlog() noexcept { return m_line.backlog(); }
    [[nodiscard]] const PushPipeline& pipeline() const noexcept { return m_line.pipeline(); }
    [[nodiscard]] const std::string& key() const noexcept { return pipeline().key(); }
    /// The longest that a call may wait.
    [[nodiscard]] TimePoint patience() const {
        return pipeline().reply_due() + pipeline().endpoint().connect_timeout();
    }

    [[nodiscard]] Lock begin();
    void add(PayloadSource payload);
    void make_room(Lock& lock);
    void send_full() noexcept;
    bool step(Lock& lock, TimePoint limit);
    void look_after_the_line() noexcept;
    [[noreturn]] [[gnu::cold]] void throw_misused(std::string_view how) const;
    [[noreturn]] [[gnu::cold]] void throw_too_many(std::string_view command) const;

    // The thread.

    /// Makes the thread look at the backlog at this time at the latest.
    void look_by(TimePoint time) noexcept {
        if (time < m_next_look) {
            m_next_look = time;
            m_wake.signal();
        }
    }
    void run();
    void serve(Lock& lock);
    void sleep(Lock& lock);

    // Enough for four messages of the default max_payload.
    static constexpr std::size_t most_refused_bytes = std::size_t{64} << 20;
    // While other threads push, this thread looks for answers only this often: the pushing threads
    // take them, and waking it for each would be in the way.
    static constexpr std::chrono::milliseconds pause{10};

    ForkMark m_fork_mark;
    std::mutex m_mutex; ///< guards the members below, except the atomic and the wake
    PushLine m_line;
    std::chrono::milliseconds m_time;
    TimePoint m_due{};                        ///< time to send the chunk being filled
    TimePoint m_next_look = TimePoint::min(); ///< the thread's; long past while it is awake
    bool m_busy = false;                      ///< a call has come since the thread looked
    bool m_closing = false;
    std::atomic<std::thread::id> m_encoding{}; ///< the thread whose Codec is running
    Wake m_wake;                               ///< makes the thread look at the backlog
    std::thread m_thread;
};

inline PushBuffer::~PushBuffer() {
    try {
        flush(pipeline().reply_due());
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
        // flush() reports the error, and its documentation says to call it first.
    }
    {
        const std::lock_guard lock(m_mutex);
        m_closing = true;
    }
    m_line.end_connecting();
    m_wake.signal();
    m_thread.join();
}

inline PushBuffer::Lock PushBuffer::begin() {
    if (m_fork_mark.forked()) {
        throw_misused("in a forked child; make a new one there");
    }
    if (m_encoding.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
        throw_misused("by the Codec of what it is pushing");
    }
    Lock lock(m_mutex);
    m_busy = true;
    return lock;
}

// Notes the encoding thread: a Codec that used this producer would wait for the lock for ever.
inline void PushBuffer::add(PayloadSource payload) {
    m_encoding.store(std::this_thread::get_id(), std::memory_order_relaxed);
    const auto encoded = at_exit([this] { m_encoding.store({}, std::memory_order_relaxed); });
    backlog().add(payload);
}

inline bool PushBuffer::flush(TimePoint limit) {
    Lock lock = begin();
    const std::uint64_t last = backlog().number();
    while (!backlog().confirmed(last)) {
        if (backlog().number() == last && backlog().filled() && !backlog().blocked()) {
            backlog().close_chunk();
        }
        if (!step(lock, limit)) {
            return false;
        }
    }
    backlog().give_back();
    return true;
}

inline std::uint64_t PushBuffer::length() {
    Lock lock = begin();
    if (!m_line.await(lock, patience())) {
        throw_too_many("LLEN");
    }
    const auto left = at_exit([this] { look_after_the_line(); });
    const auto line = m_line.take();
    try {
        while (pipeline().in_flight() > 0) {
            m_line.hear(lock, TimePoint::max());
        }
    } catch (const Error&) { // NOLINT(bugprone-empty-catch)
        // Does not concern LLEN: `flush` reports the error, unless a retry succeeds first.
    }
    return m_line.length(lock);
}

inline void PushBuffer::make_room(Lock& lock) {
    const TimePoint limit = patience();
    while (backlog().full() && backlog().blocked()) {
        if (!step(lock, limit)) {
            throw_too_many("LPUSH");
        }
    }
    if (backlog().full()) {
        send_full();
    }
}

inline void PushBuffer::send_full() noexcept {
    if (backlog().blocked()) {
        return; // the next push has to wait
    }
    backlog().close_chunk();
    if (backlog().failed() || m_line.taken()) {
        return; // the thread sends it
    }
    const auto left = at_exit([this] { look_after_the_line(); });
    const auto line = m_line.take();
    try {
        m_line.send_if_connected();   // else the thread connects: no push waits for it
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
        // The backlog keeps the accepted messages.
    }
}

/// Sends the waiting chunks and takes or awaits an answer; if another thread has the line, waits
/// until it is free. False when `limit` came first.
inline bool PushBuffer::step(Lock& lock, TimePoint limit) {
    if (Clock::now() >= limit) {
        return false;
    }
    if (m_line.taken()) {
        return m_line.await(lock, limit);
    }
    const auto left = at_exit([this] { look_after_the_line(); });
    const auto line = m_line.take();
    m_line.send(lock, limit);
    m_line.hear(lock, limit);
    return true;
}

/// Makes the thread continue the work that is left when the line becomes free.
inline void PushBuffer::look_after_the_line() noexcept {
    if (backlog().waiting()) {
        look_by(backlog().retry_at());
    } else if (pipeline().in_flight() > 0) {
        look_by(Clock::now() + pause);
    }
}

inline void PushBuffer::throw_misused(std::string_view how) const {
    throw std::logic_error(joined({"a producer of '", key(), "' is used ", how}));
}

inline void PushBuffer::throw_too_many(std::string_view command) const {
    throw ConnectionError(joined({pipeline().endpoint().address(), ": ", command, " '", key(),
                                  "': too many threads wait for Redis"}),
                          ConnectionError::Outcome::not_run);
}

inline void PushBuffer::run() {
    Lock lock(m_mutex);
    while (!m_closing) {
        if (backlog().size() > 0 && !m_line.taken()) {
            try {
                serve(lock);
            } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
                // The backlog has noted the failure and the time of the next attempt.
            }
        }
        sleep(lock);
    }
}

inline void PushBuffer::serve(Lock& lock) {
    const auto line = m_line.take();
    do {
        const TimePoint now = Clock::now();
        if (backlog().filled() && !backlog().blocked() && (backlog().full() || now >= m_due)) {
            backlog().close_chunk();
        }
        if (backlog().waiting() && now >= backlog().retry_at()) {
            m_line.send(lock, TimePoint::max());
        }
    } while (pipeline().in_flight() > 0 && m_line.hear_now(lock));
}

inline void PushBuffer::sleep(Lock& lock) {
    const bool busy = std::exchange(m_busy, false);
    int fd = -1;
    short events = 0;
    m_next_look = TimePoint::max();
    if (backlog().filled() && !backlog().blocked()) {
        m_next_look = m_due;
    }
    if (backlog().size() == 0 || m_closing || m_line.taken()) {
        // The thread that has the line calls look_by() in time.
    } else if (pipeline().in_flight() == 0) {
        if (backlog().waiting()) {
            m_next_look = std::min(m_next_look, backlog().retry_at());
        }
    } else if (busy && pipeline().sent()) {
        m_next_look = std::min(m_next_look, Clock::now() + pause);
    } else {
        fd = pipeline().fd();
        events = pipeline().events();
        m_next_look = std::min(m_next_look, pipeline().deadline());
    }
    const TimePoint until = m_next_look;
    lock.unlock();
    wait_ready(fd, events, &m_wake, until);
    m_wake.clear();
    lock.lock();
    m_next_look = TimePoint::min();
}

} // namespace orizuru::detail
