// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Buffered pushing: a backlog that the user fills, and a thread that sends what has waited for too
// long, hears Redis' answers while nobody calls, and tries again after failures.

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
#include <chrono>
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
        const auto lock = begin();
        if (m_backlog.full()) {
            make_room();
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

    /// Returns when Redis has confirmed all, or at the limit. Throws what fails.
    void flush(TimePoint limit = TimePoint::max());

    [[nodiscard]] std::size_t unconfirmed() {
        refuse_fork();
        refuse_encoding();
        const std::lock_guard lock(m_mutex);
        return m_backlog.size();
    }

    /// LLEN.
    std::uint64_t length();

    /// For the caller alone, behind a `flush` and until the next `push`.
    [[nodiscard]] PushPipeline& pipeline() noexcept { return m_backlog.pipeline(); }

  private:
    using Lock = std::unique_lock<std::mutex>;

    void refuse_fork() const {
        if (m_fork_mark.forked()) {
            throw std::logic_error("a producer of '" + m_backlog.pipeline().key() +
                                   "' is used in a forked child; make a new one there");
        }
    }
    void refuse_encoding() const {
        if (m_encoding) {
            throw std::logic_error("a producer of '" + m_backlog.pipeline().key() +
                                   "' is used by the Codec of what it is pushing");
        }
    }
    [[nodiscard]] Lock begin() {
        refuse_fork();
        refuse_encoding();
        pipeline().refuse_taken();
        Lock lock(m_mutex);
        m_busy = true;
        return lock;
    }

    // Encodes under the lock, for which a Codec that uses this producer would wait for ever.
    void add(PayloadSource payload) {
        m_encoding = true;
        const auto encoded = at_exit([this] { m_encoding = false; });
        m_backlog.add(payload);
    }
    void make_room();
    void send_full() noexcept;
    /// Makes the thread look at the backlog at this time at the latest.
    void look_by(TimePoint time) noexcept {
        if (time < m_next_look) {
            m_next_look = time;
            m_wake.signal();
        }
    }
    template <class Action>
    void telling_failure(Action action) {
        try {
            action();
        } catch (...) {
            look_by(m_backlog.retry_at());
            throw;
        }
    }

    void run();
    void serve(Lock& lock);
    void connect(Lock& lock);
    void sleep(Lock& lock);

    // While somebody pushes, the thread looks after Redis' answers only so often: the one who
    // pushes takes them, and a thread that is woken by each would be in the way.
    static constexpr std::chrono::milliseconds pause{10};

    ForkMark m_fork_mark;
    std::mutex m_mutex;
    PushBacklog m_backlog;
    std::chrono::milliseconds m_time;
    TimePoint m_due{};                        ///< when the chunk that is being filled must go
    TimePoint m_next_look = TimePoint::min(); ///< the thread's; long past while it is awake
    bool m_busy = false;                      ///< somebody has called since the thread looked
    bool m_encoding = false;                  ///< the user's thread only: a Codec is at work
    bool m_closing = false;
    Wake m_wake; ///< for the thread: look at the backlog
    Wake m_stop; ///< ends its connecting
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

inline void PushBuffer::flush(TimePoint limit) {
    const auto lock = begin();
    telling_failure([=, this] {
        while (m_backlog.size() > 0) {
            if (m_backlog.filled() && !m_backlog.blocked()) {
                m_backlog.close_chunk();
            }
            m_backlog.send(limit);
            if (!m_backlog.hear(limit)) {
                return;
            }
        }
    });
}

inline std::uint64_t PushBuffer::length() {
    const auto lock = begin();
    try {
        while (pipeline().in_flight() > 0) {
            m_backlog.hear();
        }
    } catch (const Error&) {
        // Not what was asked for: `flush` tells of it, if it does not heal by itself.
        look_by(m_backlog.retry_at());
    }
    return pipeline().length();
}

inline void PushBuffer::make_room() {
    telling_failure([this] {
        while (m_backlog.blocked()) {
            m_backlog.send();
            m_backlog.hear();
        }
    });
    send_full();
}

inline void PushBuffer::send_full() noexcept {
    if (m_backlog.blocked()) {
        return; // the next push has to wait
    }
    m_backlog.close_chunk();
    if (m_backlog.failed()) {
        return; // the thread tries again
    }
    try {
        m_backlog.send();
        look_by(Clock::now() + pause);
    } catch (const std::exception&) {
        // What was accepted stays so.
        look_by(m_backlog.retry_at());
    }
}

inline void PushBuffer::run() {
    Lock lock(m_mutex);
    while (!m_closing) {
        // An empty backlog's pipeline may be in use by another thread.
        if (m_backlog.size() > 0) {
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
    do {
        const TimePoint now = Clock::now();
        if (m_backlog.filled() && !m_backlog.blocked() && (m_backlog.full() || now >= m_due)) {
            m_backlog.close_chunk();
        }
        if (m_backlog.waiting() && now >= m_backlog.retry_at()) {
            if (pipeline().in_flight() == 0 && !pipeline().connected()) {
                connect(lock);
            }
            if (m_backlog.size() > 0) { // not done by others meanwhile
                m_backlog.send();
            }
        }
    } while (m_backlog.size() > 0 && pipeline().in_flight() > 0 && m_backlog.hear(TimePoint()));
}

/// Without the lock: nobody who pushes shall wait for it.
inline void PushBuffer::connect(Lock& lock) {
    std::unique_ptr<Stream> stream;
    try {
        unlocked(lock, [&] {
            const Endpoint& endpoint = pipeline().endpoint();
            stream = std::make_unique<Stream>(endpoint, deadline_in(endpoint.connect_timeout()),
                                              &m_stop);
        });
    } catch (...) {
        if (pipeline().in_flight() == 0) { // else others have connected meanwhile
            m_backlog.note_failure();
        }
        throw;
    }
    if (m_backlog.size() > 0 && pipeline().in_flight() == 0 && !pipeline().connected()) {
        pipeline().adopt(std::move(stream));
    }
}

inline void PushBuffer::sleep(Lock& lock) {
    const bool busy = std::exchange(m_busy, false);
    int fd = -1;
    short events = 0;
    m_next_look = TimePoint::max();
    if (m_backlog.filled() && !m_backlog.blocked()) {
        m_next_look = m_due;
    }
    if (m_backlog.size() == 0 || m_closing) {
        // Nothing to look after.
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

} // namespace orizuru::detail
