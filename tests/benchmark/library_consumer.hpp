// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The Consumer's handler of all workloads: it reads the message, adds it up and acks.

#pragma once

#include "benchmark/messages.hpp"
#include "benchmark/options.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/orizuru.hpp>

#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace orizuru::benchmark {

[[nodiscard]] inline std::string address_of(const Options& options) {
    return "unix://" + options.socket();
}

[[nodiscard]] inline ConsumerOptions consumer_options(const Options& options) {
    const bool deferred = options.word("ack") == "deferred";
    return {.prefetch = static_cast<int>(options.number("batch")),
            .ack = deferred ? AckMode::deferred : AckMode::immediate};
}

[[nodiscard]] inline std::uint64_t value_of(const Message& message) noexcept { return message.id; }
[[nodiscard]] inline std::uint64_t value_of(const Raw& raw) noexcept { return raw.bytes.size(); }
[[nodiscard]] inline std::uint64_t value_of(const Job<Message>& job) noexcept {
    return job.payload.id;
}

/// The sum of `value_of` of all messages.
template <class T>
[[nodiscard]] Total total_for(const Filled& filled) noexcept {
    if constexpr (std::same_as<T, Message>) {
        return filled.ids;
    } else {
        return filled.sizes;
    }
}

template <class T>
void ack(MessageGuard<T>& guard) {
    if (!guard.ack()) {
        throw std::runtime_error("the lease was lost");
    }
}

/// Takes messages until `total` has this many.
template <class T>
void take(Consumer<T>& consumer, Total& total, std::uint64_t messages) {
    while (total.messages < messages) {
        auto guard = consumer.next();
        total.add(value_of(**guard));
        ack(*guard);
    }
}

template <class T>
void flush(Consumer<T>& consumer) {
    if (consumer.flush() != 0) {
        throw std::runtime_error("acks came too late");
    }
}

} // namespace orizuru::benchmark
