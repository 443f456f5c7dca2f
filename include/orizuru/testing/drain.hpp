// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs a Worker in a test until its work is done.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/ops/queue_state.hpp>
#include <orizuru/worker/worker.hpp>

#include <chrono>
#include <cstdint>
#include <future>
#include <stdexcept>
#include <stop_token>
#include <string>

namespace orizuru::testing {

/// Runs the worker on another thread until each message of the queue has ended: it is acked,
/// discarded or dead. So it waits for retries and for what is scheduled for later. Then the worker
/// is stopped, and cannot run again. Use SignalHandling::none.
///
/// Throws what Worker::run throws, and std::runtime_error that says what is left when that takes
/// longer than `patience`: the worker is stopped then, too.
inline void drain(Worker& worker, const Endpoint& endpoint, const std::string& queue,
                  std::chrono::milliseconds patience = std::chrono::minutes(1)) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    Inspector inspector(endpoint);
    std::stop_source stop;
    // Its destructor waits for the worker, whatever is thrown meanwhile.
    auto running = std::async(std::launch::async, [&] { worker.run(stop.get_token()); });
    QueueState left;
    {
        const auto at_end = detail::at_exit([&] { stop.request_stop(); });
        const auto ended = [&] {
            left = inspector.state(queue);
            return left.waiting + left.held + left.scheduled + left.rejected + left.suspected == 0;
        };
        while (!ended()) {
            const bool over = std::chrono::steady_clock::now() > deadline;
            if (over ||
                running.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) {
                break;
            }
        }
    }
    running.get();
    const auto count = [](std::uint64_t number, const char* what) {
        return number == 0 ? std::string() : " " + std::to_string(number) + what;
    };
    const std::string told = count(left.waiting, " waiting") + count(left.held, " held") +
                             count(left.scheduled, " scheduled") +
                             count(left.rejected, " rejected") +
                             count(left.suspected, " suspected");
    if (!told.empty()) {
        throw std::runtime_error("queue '" + queue + "' is not drained:" + told);
    }
}

} // namespace orizuru::testing
