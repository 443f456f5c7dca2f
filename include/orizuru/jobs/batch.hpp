// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Messages by the batch, for handlers that do many at once for little more than the cost of one:
// rows of one insertion, lines of one request.

#include <orizuru/codec.hpp>
#include <orizuru/consumer.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/error.hpp>
#include <orizuru/message_guard.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <stop_token>
#include <utility>
#include <vector>

namespace orizuru {

/// Limits of a batch: it is complete as soon as it reaches either.
struct BatchOptions {
    /// The most messages, 1 to 100,000. With a `prefetch` as large Redis is asked least often.
    int size = 100;
    /// The longest time that the first message waits for others; 0 = take those that are there, up
    /// to `size`.
    std::chrono::milliseconds time = std::chrono::seconds(1);
};

namespace detail {

inline void validate(const BatchOptions& options) {
    if (options.size < 1 || options.size > 100'000) {
        throw std::invalid_argument("the size of a batch must be 1 to 100000");
    }
    if (options.time.count() < 0) {
        throw std::invalid_argument("the time of a batch must not be negative");
    }
}

} // namespace detail

/// Waits for a message, then for others until the batch is complete. Returns none when it is
/// stopped.
///
/// The messages are in the order of the queue. Each guard is settled on its own; settling the
/// oldest first costs least. A guard that is destroyed unsettled rejects its message. All of them
/// keep their lease meanwhile. A message that cannot be decoded is reported to on_event and
/// skipped, as in iteration.
///
/// A stop or an error while the batch waits for more messages ends it at once: the messages it has
/// are returned, and none is rejected. The next call throws the error again if it lasts.
///
/// Redis: the commands of as many calls of `Consumer::next`, and no others.
/// Throws: std::invalid_argument for options that are out of range, and std::bad_alloc when there
///     is no memory for `size` guards, both before anything is fetched; while the batch is empty,
///     what `next` throws, except DecodeError.
/// Thread: the one that may call `next`.
template <MessageDecodable T>
[[nodiscard]] std::vector<MessageGuard<T>> next_batch(Consumer<T>& consumer,
                                                      const BatchOptions& options = {},
                                                      const std::stop_token& token = {}) {
    using std::chrono::milliseconds;
    detail::validate(options);
    const auto size = static_cast<std::size_t>(options.size);
    std::vector<MessageGuard<T>> batch;
    batch.reserve(size);
    auto deadline = detail::TimePoint::max(); // the first one is awaited for ever
    auto left = milliseconds::max();
    while (batch.size() < size && (left.count() > 0 || options.time.count() == 0)) {
        try {
            auto guard = consumer.next(token, left);
            if (!guard) {
                break;
            }
            if (batch.empty()) {
                deadline = detail::deadline_in(options.time);
            }
            batch.push_back(std::move(*guard));
        } catch (const DecodeError&) { // NOLINT(bugprone-empty-catch)
            // on_event has been told; the message is on the dead list.
        } catch (...) {
            if (batch.empty()) {
                throw;
            }
            break;
        }
        left = std::max(milliseconds(0),
                        std::chrono::ceil<milliseconds>(deadline - detail::Clock::now()));
    }
    return batch;
}

} // namespace orizuru
