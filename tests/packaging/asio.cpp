// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A coroutine pushes to an address where no Redis is.

#include <orizuru/asio.hpp>
#include <orizuru/async/async_producer.hpp>

#include <cstdio>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/use_future.hpp>

namespace {

asio::awaitable<void> push() {
    orizuru::AsyncProducer<orizuru::Raw> producer("unix:///nowhere/redis.sock", "packaging");
    const orizuru::Raw message{"x"};
    co_await orizuru::async_push(producer, message);
}

} // namespace

int main() {
    asio::io_context io(1);
    auto pushed = asio::co_spawn(io, push(), asio::use_future);
    io.run();
    try {
        pushed.get();
    } catch (const orizuru::ConnectionError& error) {
        std::puts(error.what());
        return 0;
    }
    return 1;
}
