// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Coroutines of Boost.Asio as handlers, and what they await.

#include <orizuru/boost_asio.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

namespace net = boost::asio;

#include "integration/asio/coroutines.hpp"
#include "integration/asio/pushes.hpp"
#include "integration/asio/settlements.hpp"
