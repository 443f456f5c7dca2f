// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Coroutines of Asio as handlers, and what they await.

#include <orizuru/asio.hpp>

#include <asio/bind_executor.hpp>
#include <asio/detached.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/this_coro.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

namespace net = asio;

#include "integration/asio/coroutines.hpp"
#include "integration/asio/pushes.hpp"
#include "integration/asio/settlements.hpp"
