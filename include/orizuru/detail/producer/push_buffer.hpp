// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Buffered pushing: a backlog that any thread fills, and a thread that sends what has waited for
// too long, takes Redis' answers while nobody calls, and tries again after failures.
//
// The mutex guards the backlog and is never held while a thread waits. One thread at a time has
// the line: it connects, sends and takes answers. Others fill the backlog meanwhile, and wait for
// the line only when they need an answer.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/payload_source.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/producer/push_backlog.hpp>
#include <orizuru/detail/producer/push_pipeline.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace orizuru::detail {

class PushBuffer {
  public:
    /// Knows a forked child, which has the object without its thread: locks may be held for ever.
    struct Close {
        void operator()(PushBuffer* buffer) const noexcept {
            if (buffer->m_fork_mark.forked()) {
                buffer->m_backlog.pipeline().close_after_fork();
            } else {
                delete buffer;
            }
        }
    };
    using Pointer = std::unique_ptr<PushBuffer, Close>;

    /// Connects, and starts the thread.
    PushBuffer(Endpoint endpoint, const std::string& key, std::size_t most,
               std::chrono::milliseconds time)
        : m_backlog(std::move(endpoint), key, most), m_time(time), m_thread([this] { run(); }) {}
    PushBuffer(const PushBuffer&) = delete;
    PushBuffer& operator=(const PushBuffer&) = delete;
    /// Tries to flush, for at most command_timeout.
    ~PushBuffer();

    /// Takes the one message of `payload`; returns the queue's length as last heard. When it
    /// throws, the message is not taken.
    std::uint64_t push(PayloadSource payload) {
        Lock lock = begin();
        if (m_backlog.full()) {
            make_room(lock);
        }
        const bool first = !m_backlog.filled();
        add(payload);
        if (first) {
            m_due = Clock::now() + m_time;
            look_by(m_due);
        }
        if (m_backlog.full()) {
            send_full();
        }
        return m_backlog.length();
    }

    /// Returns when Redis has confirmed what was pushed before; false when `limit` came first.
    /// Throws what fails.
    bool flush(TimePoint limit = TimePoint::max());

    [[nodiscard]] std::size_t unconfirmed() {
        const Lock lock = begin();
        return m_backlog.size();
    }

    /// LLEN.
    std::uint64_t length();

  private:
    using Lock = std::unique_lock<std::mutex>;

    [[nodiscard]] PushPipeline& pipeline() noexcept { return m_backlog.pipeline(); }
    [[nodiscard]] const std::string& key() const noexcept { return m_backlog.pipeline().key(); }
    /// The longest that a call may wait.
    [[nodiscard]] TimePoint patience() const {
        const Endpoint& endpoint = m_backlog.pipeline().endpoint();
        return deadline_in(endpoint.connect_timeout() + endpoint.command_timeout());
    }

    [[nodiscard]] Lock begin();
    void add(PayloadSource payload);
    void make_room(Lock& lock);
    void send_full() noexcept;
    /// Makes the thread look at the backlog at this time at the latest.
    void look_by(TimePoint time) noexcept {
        if (time < m_next_look) {
            m_next_look = time;
            m_wake.signal();
        }
    }

    // The line.

    [[nodiscard]] auto take_line() noexcept {
        m_line_taken = true;
        return at_exit([this] { release_line(); });
    }
    void release_line() noexcept;
    bool step(Lock& lock, TimePoint limit);
    void connect(Lock& lock, TimePoint limit);
    void hear(Lock& lock, TimePoint limit);
    bool hear_now();
    [[noreturn]] void throw_too_many(const char* command) const;

    // The thread.

    void run();
    void serve(Lock& lock);
    void sleep(Lock& lock);

    // While somebody pushes, the thread looks after Redis' answers only so often: the one who
    // pushes takes them, and a thread that is woken by each would be in the way.
    static constexpr std::chrono::milliseconds pause{10};

    ForkMark m_fork_mark;
    std::mutex m_mutex; ///< guards what follows, but for the signals
    PushBacklog m_backlog;
    std::chrono::milliseconds m_time;
    TimePoint m_due{};                        ///< when the chunk that is being filled must go
    TimePoint m_next_look = TimePoint::min(); ///< the thread's; long past while it is awake
    bool m_busy = false;                      ///< somebody has called since the thread looked
    bool m_closing = false;
    bool m_line_taken = false;
    int m_waiting = 0; ///< threads that wait for the line
    std::condition_variable m_line_free;
    std::atomic<std::thread::id> m_encoding{}; ///< the thread whose Codec is at work
    Wake m_wake;                               ///< for the thread: look at the backlog
    Wake m_stop;                               ///< ends connecting
    std::thread m_thread;
};

inline PushBuffer::~PushBuffer() {
    try {
        flush(deadline_in(pipeline().endpoint().command_timeout()));
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
        // The user was told to call flush, where this can be heard of.
    }
    {
        const std::lock_guard lock(m_mutex);
        m_closing = true;
    }
    m_stop.signal();
    m_wake.signal();
    m_thread.join();
}

inline PushBuffer::Lock PushBuffer::begin() {
    if (m_fork_mark.forked()) {
        throw std::logic_error("a producer of '" + key() +
                               "' is used in a forked child; make a new one there");
    }
    if (m_encoding.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
        throw std::logic_error("a producer of '" + key() +
                               "' is used by the Codec of what it is pushing");
    }
    Lock lock(m_mutex);
    m_busy = true;
    return lock;
}

// Encodes under the lock, for which a Codec that uses this producer would wait for ever.
inline void PushBuffer::add(PayloadSource payload) {
    m_encoding.store(std::this_thread::get_id(), std::memory_order_relaxed);
    const auto encoded = at_exit([this] { m_encoding.store({}, std::memory_order_relaxed); });
    m_backlog.add(payload);
}

inline bool PushBuffer::flush(TimePoint limit) {
    Lock lock = begin();
    const std::uint64_t last = m_backlog.number();
    while (!m_backlog.confirmed(last)) {
        if (m_backlog.number() == last && m_backlog.filled() && !m_backlog.blocked()) {
            m_backlog.close_chunk();
        }
        if (!step(lock, limit)) {
            return false;
        }
    }
    return true;
}

inline std::uint64_t PushBuffer::length() {
    Lock lock = begin();
    const TimePoint limit = patience();
    while (m_line_taken) {
        if (!step(lock, limit)) {
            throw_too_many("LLEN");
        }
    }
    const auto line = take_line();
    try {
        while (pipeline().in_flight() > 0) {
            hear(lock, TimePoint::max());
        }
    } catch (const Error&) { // NOLINT(bugprone-empty-catch)
        // Not what was asked for: `flush` tells of it, if it does not heal by itself.
    }
    std::uint64_t length = 0;
    unlocked(lock, [&] { length = pipeline().length(); });
    return length;
}

inline void PushBuffer::make_room(Lock& lock) {
    const TimePoint limit = patience();
    while (m_backlog.full() && m_backlog.blocked()) {
        if (!step(lock, limit)) {
            throw_too_many("LPUSH");
        }
    }
    if (m_backlog.full()) {
        send_full();
    }
}

inline void PushBuffer::send_full() noexcept {
    if (m_backlog.blocked()) {
        return; // the next push has to wait
    }
    m_backlog.close_chunk();
    if (m_backlog.failed() || m_line_taken) {
        return; // the thread sends it
    }
    const auto line = take_line();
    try {
        // Nobody who pushes shall wait for a connection.
        if (pipeline().in_flight() > 0 || pipeline().connected()) {
            m_backlog.send(TimePoint());
        }
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
        // What was accepted stays so.
    }
}

inline void PushBuffer::release_line() noexcept {
    m_line_taken = false;
    if (m_waiting > 0) {
        m_line_free.notify_all();
    }
    if (m_backlog.waiting()) {
        look_by(m_backlog.retry_at());
    } else if (pipeline().in_flight() > 0) {
        look_by(Clock::now() + pause);
    }
}

/// Sends what waits and takes an answer or waits for one; or waits until the line is free, when
/// another thread has it. False when `limit` comes first.
inline bool PushBuffer::step(Lock& lock, TimePoint limit) {
    if (Clock::now() >= limit) {
        return false;
    }
    if (m_line_taken) {
        ++m_waiting;
        const auto counted = at_exit([this] { --m_waiting; });
        return m_line_free.wait_until(lock, limit) == std::cv_status::no_timeout;
    }
    const auto line = take_line();
    if (m_backlog.waiting() && pipeline().in_flight() == 0 && !pipeline().connected()) {
        connect(lock, limit);
    }
    m_backlog.send(TimePoint());
    hear(lock, limit);
    return true;
}

inline void PushBuffer::hear(Lock& lock, TimePoint limit) {
    if (pipeline().in_flight() == 0 || m_backlog.take_answer()) {
        return;
    }
    short ready = 0;
    unlocked(lock, [&] { ready = pipeline().await(limit); });
    m_backlog.read(ready);
}

inline void PushBuffer::connect(Lock& lock, TimePoint limit) {
    const Endpoint& endpoint = pipeline().endpoint();
    std::unique_ptr<Stream> stream;
    try {
        unlocked(lock, [&] {
            stream = std::make_unique<Stream>(
                endpoint, std::min(limit, deadline_in(endpoint.connect_timeout())), &m_stop);
        });
    } catch (...) {
        m_backlog.note_failure();
        throw;
    }
    pipeline().adopt(std::move(stream));
}

inline void PushBuffer::run() {
    Lock lock(m_mutex);
    while (!m_closing) {
        if (m_backlog.size() > 0 && !m_line_taken) {
            try {
                serve(lock);
            } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
                // The backlog has noted it, and when to try again.
            }
        }
        sleep(lock);
    }
}

inline void PushBuffer::serve(Lock& lock) {
    const auto line = take_line();
    do {
        const TimePoint now = Clock::now();
        if (m_backlog.filled() && !m_backlog.blocked() && (m_backlog.full() || now >= m_due)) {
            m_backlog.close_chunk();
        }
        if (m_backlog.waiting() && now >= m_backlog.retry_at()) {
            if (pipeline().in_flight() == 0 && !pipeline().connected()) {
                connect(lock, TimePoint::max());
            }
            m_backlog.send(TimePoint());
        }
    } while (pipeline().in_flight() > 0 && hear_now());
}

/// Takes an answer, or reads what has come; false when there is nothing.
inline bool PushBuffer::hear_now() {
    if (m_backlog.take_answer()) {
        return true;
    }
    const short ready = pipeline().await(TimePoint());
    m_backlog.read(ready);
    return ready != 0;
}

inline void PushBuffer::sleep(Lock& lock) {
    const bool busy = std::exchange(m_busy, false);
    int fd = -1;
    short events = 0;
    m_next_look = TimePoint::max();
    if (m_backlog.filled() && !m_backlog.blocked()) {
        m_next_look = m_due;
    }
    if (m_backlog.size() == 0 || m_closing || m_line_taken) {
        // Nothing to look after; the thread that has the line says when there is.
    } else if (pipeline().in_flight() == 0) {
        if (m_backlog.waiting()) {
            m_next_look = std::min(m_next_look, m_backlog.retry_at());
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

inline void PushBuffer::throw_too_many(const char* command) const {
    const PushPipeline& pipeline = m_backlog.pipeline();
    throw ConnectionError(pipeline.endpoint().address() + ": " + command + " '" + key() +
                              "': too many threads wait for Redis",
                          ConnectionError::Outcome::not_run);
}

} // namespace orizuru::detail
