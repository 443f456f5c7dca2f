// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Handlers of a storm's worker as coroutines, where the compiler and Asio allow that.

#pragma once

#if __has_include(<asio/detail/config.hpp>)
#include <asio/detail/config.hpp>
#endif

#if defined(ASIO_HAS_CO_AWAIT)

#include <orizuru/asio.hpp>
#include <orizuru/worker/job_context.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/this_coro.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>

namespace orizuru::test {

/// Loops whose handlers may block: each is a strand, and there is a thread for each.
class Strands {
  public:
    explicit Strands(std::size_t count) : m_pool(count) {
        while (m_all.size() < count) {
            m_all.emplace_back(asio::make_strand(m_pool));
        }
    }
    Strands(const Strands&) = delete;
    Strands& operator=(const Strands&) = delete;
    ~Strands() = default;

    [[nodiscard]] const std::vector<asio::any_io_executor>& all() const noexcept { return m_all; }

  private:
    asio::thread_pool m_pool;
    std::vector<asio::any_io_executor> m_all;
};

/// A coroutine that calls `handle` after this time, in which a stop may cancel it.
template <class Handle>
auto after(std::chrono::milliseconds time, const Strands& strands, Handle handle) {
    return on(strands.all(), [=](JobContext<std::string>& job) -> asio::awaitable<void> {
        if (time.count() > 0) {
            asio::steady_timer timer(co_await asio::this_coro::executor, time);
            co_await timer.async_wait(asio::use_awaitable);
        }
        handle(job);
    });
}

} // namespace orizuru::test

#endif
