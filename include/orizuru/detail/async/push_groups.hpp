// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Group commit: one thread pushes with each LPUSH what came while the one before ran, and tells
// each caller.

#include <orizuru/detail/async/async_push.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/producer_options.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace orizuru::detail {

class PushGroups {
  public:
    /// Connects, and starts the thread.
    [[gnu::cold]] PushGroups(const Endpoint& endpoint, std::string queue, ProducerOptions options)
        : m_patience(endpoint.command_timeout()),
          m_producer(endpoint, std::move(queue), options),
          m_ended("the AsyncProducer of '" + keys().source() + "' has ended") {
        m_group.reserve(PushChunk::most_messages);
        m_thread.start([this] { run(); });
    }
    PushGroups(const PushGroups&) = delete;
    PushGroups& operator=(const PushGroups&) = delete;
    /// Pushes the rest, for as long as one LPUSH may take.
    [[gnu::cold]] ~PushGroups() {
        {
            const std::lock_guard lock(m_mutex);
            m_end = deadline_in(m_patience);
        }
        m_came.notify_one();
        m_thread.end();
    }

    [[nodiscard]] bool forked() const noexcept { return m_fork_mark.forked(); }
    [[gnu::cold]] void close_after_fork() noexcept { m_producer.close_after_fork(); }

    [[nodiscard]] const Keys& keys() const { return m_producer.keys(); }
    [[nodiscard]] const ProducerOptions& options() const { return m_producer.options(); }

    void push(std::unique_ptr<AsyncPush> push) {
        refuse_fork();
        bool first = false;
        {
            const std::lock_guard lock(m_mutex);
            first = m_came_meanwhile.empty();
            m_came_meanwhile.push_back(std::move(push));
            ++m_unconfirmed;
        }
        if (first) {
            m_came.notify_one();
        }
    }

    [[nodiscard]] std::size_t unconfirmed() const noexcept { return m_unconfirmed; }

    void refuse_fork() const {
        if (forked()) {
            throw std::logic_error(joined({"an AsyncProducer of '", keys().source(),
                                           "' is used in a forked child; make a new one there"}));
        }
    }

  private:
    using Pushes = Fifo<std::unique_ptr<AsyncPush>>;

    static constexpr TimePoint never = TimePoint::max();

    // The thread.

    void run() {
        while (take()) {
            while (!m_waiting.empty()) {
                if (Clock::now() >= end()) {
                    fail(come_meanwhile(), not_run(m_ended.c_str()));
                    return; // what they push now would never end
                }
                push_group();
            }
        }
    }
    [[nodiscard]] TimePoint end() {
        const std::lock_guard lock(m_mutex);
        return m_end;
    }
    bool take();
    void push_group();
    /// Returns a ConnectionError of a push that did not run, or std::bad_alloc where there is no
    /// memory for one.
    [[nodiscard]] [[gnu::cold]] static std::exception_ptr not_run(const char* reason) noexcept {
        try {
            return std::make_exception_ptr(ConnectionError(reason));
        } catch (...) {
            return std::current_exception();
        }
    }
    [[nodiscard]] [[gnu::cold]] Pushes come_meanwhile() noexcept {
        const std::lock_guard lock(m_mutex);
        return std::move(m_came_meanwhile);
    }
    [[gnu::cold]] void fail(const Pushes& meanwhile, std::exception_ptr error) noexcept;
    void tell(const Pushes& pushes, std::size_t first, std::size_t end,
              std::exception_ptr error) noexcept;

    const std::chrono::milliseconds m_patience;
    const ForkMark m_fork_mark;

    std::atomic<std::size_t> m_unconfirmed{0};

    std::mutex m_mutex; ///< guards the next three
    std::condition_variable m_came;
    Pushes m_came_meanwhile;
    TimePoint m_end = never; ///< from then on nothing is pushed

    // The thread's.

    ProducerCore m_producer;
    const std::string m_ended; ///< why the rest fails
    Pushes m_waiting;          ///< older than those that came meanwhile
    Pushes m_group;            ///< the messages of one LPUSH
    OwnThread m_thread;
};

/// Waits for pushes. Returns false at the end, when none is left.
inline bool PushGroups::take() {
    std::unique_lock lock(m_mutex);
    m_came.wait(lock, [this] { return !m_came_meanwhile.empty() || m_end != never; });
    std::swap(m_waiting, m_came_meanwhile);
    return !m_waiting.empty();
}

inline void PushGroups::push_group() {
    std::size_t bytes = 0;
    // push_all sends that much with one LPUSH. A message that Redis may refuse for its length, over
    // 1 MiB, is the last of its group: those before it are pushed.
    while (!m_waiting.empty() && m_group.size() < PushChunk::most_messages &&
           bytes < PushChunk::most_bytes / 2) {
        bytes += m_waiting.front()->payload().size();
        m_group.push_back(m_waiting.pop_front());
    }
    std::size_t next = 0;
    std::size_t pushed = m_group.size();
    std::exception_ptr error;
    std::exception_ptr of_waiting;
    try {
        m_producer.push_all([&](std::string& out) {
            if (next == m_group.size()) {
                return false;
            }
            out += m_group[next++]->payload();
            return true;
        });
    } catch (Error& failure) {
        pushed = narrow<std::size_t>(failure.pushed());
        PushCount::set(failure, 0); // it is about single pushes from here on
        error = std::current_exception();
        if (dynamic_cast<const ConnectionError*>(&failure) != nullptr) {
            of_waiting = not_run(failure.what());
        }
    } catch (...) {
        pushed = 0;
        error = std::current_exception();
    }
    // Not what those that are told push now.
    const Pushes meanwhile = of_waiting ? come_meanwhile() : Pushes();
    tell(m_group, 0, pushed, nullptr);
    tell(m_group, pushed, m_group.size(), std::move(error));
    m_group.clear();
    if (of_waiting) {
        fail(meanwhile, std::move(of_waiting));
    }
}

/// Tells what waits, and what came behind it, that it was not pushed.
inline void PushGroups::fail(const Pushes& meanwhile, std::exception_ptr error) noexcept {
    if (meanwhile.empty()) {
        tell(m_waiting, 0, m_waiting.size(), std::move(error));
    } else {
        tell(m_waiting, 0, m_waiting.size(), error);
        tell(meanwhile, 0, meanwhile.size(), std::move(error));
    }
    m_waiting.clear();
}

/// Keeps no part of the error: the last that is told owns it.
inline void PushGroups::tell(const Pushes& pushes, std::size_t first, std::size_t end,
                             std::exception_ptr error) noexcept {
    for (std::size_t i = first; i + 1 < end; ++i) {
        pushes[i]->end(error);
        --m_unconfirmed;
    }
    if (first < end) {
        pushes[end - 1]->end(std::move(error));
        --m_unconfirmed;
    }
}

} // namespace orizuru::detail
