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
#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/producer_options.hpp>

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
            m_ending = true;
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

    [[nodiscard]] std::size_t unconfirmed() {
        refuse_fork();
        const std::lock_guard lock(m_mutex);
        return m_unconfirmed;
    }

  private:
    using Pushes = Fifo<std::unique_ptr<AsyncPush>>;

    void refuse_fork() const {
        if (forked()) {
            throw std::logic_error(joined({"an AsyncProducer of '", keys().source(),
                                           "' is used in a forked child; make a new one there"}));
        }
    }

    // The thread.

    void run() {
        while (take()) {
            while (!m_waiting.empty()) {
                if (Clock::now() >= end()) {
                    fail_waiting(m_ended.c_str());
                } else {
                    push_group();
                }
            }
        }
    }
    [[nodiscard]] TimePoint end() {
        const std::lock_guard lock(m_mutex);
        return m_end;
    }
    bool take();
    void push_group();
    [[gnu::cold]] void fail_waiting(const char* reason) noexcept;
    void tell(const Pushes& pushes, std::size_t first, std::size_t end,
              const std::exception_ptr& error) noexcept;

    const std::chrono::milliseconds m_patience;
    const ForkMark m_fork_mark;

    std::mutex m_mutex; ///< guards the next five
    std::condition_variable m_came;
    Pushes m_came_meanwhile;
    std::size_t m_unconfirmed = 0;
    bool m_ending = false;
    TimePoint m_end = TimePoint::max(); ///< from then on nothing is pushed

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
    m_came.wait(lock, [this] { return !m_came_meanwhile.empty() || m_ending; });
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
    try {
        m_producer.push_all([&](std::string& out) {
            if (next == m_group.size()) {
                return false;
            }
            out += m_group[next++]->payload();
            return true;
        });
        tell(m_group, 0, m_group.size(), nullptr);
    } catch (Error& error) {
        const auto pushed = static_cast<std::size_t>(error.pushed());
        PushCount::set(error, 0); // it is about single pushes from here on
        tell(m_group, 0, pushed, nullptr);
        tell(m_group, pushed, m_group.size(), std::current_exception());
        if (dynamic_cast<const ConnectionError*>(&error) != nullptr) {
            fail_waiting(error.what());
        }
    } catch (...) {
        tell(m_group, 0, m_group.size(), std::current_exception());
    }
    m_group.clear();
}

/// All that has come so far was not pushed.
inline void PushGroups::fail_waiting(const char* reason) noexcept {
    Pushes meanwhile;
    {
        const std::lock_guard lock(m_mutex);
        std::swap(meanwhile, m_came_meanwhile);
    }
    std::exception_ptr error;
    try {
        throw ConnectionError(reason);
    } catch (...) {
        error = std::current_exception(); // it, or that there is no memory for it
    }
    for (Pushes* const pushes : {&m_waiting, &meanwhile}) {
        tell(*pushes, 0, pushes->size(), error);
        pushes->clear();
    }
}

inline void PushGroups::tell(const Pushes& pushes, std::size_t first, std::size_t end,
                             const std::exception_ptr& error) noexcept {
    {
        const std::lock_guard lock(m_mutex);
        m_unconfirmed -= end - first;
    }
    for (std::size_t i = first; i < end; ++i) {
        pushes[i]->end(error);
    }
}

} // namespace orizuru::detail
