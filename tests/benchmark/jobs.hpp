// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The jobs that both programs take, from one queue or several, and those that wait for their time.

#pragma once

#include "benchmark/latency.hpp"
#include "benchmark/messages.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/keys.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace orizuru::benchmark {

/// The queue's name. The first of several is the queue of all other workloads.
[[nodiscard]] inline std::string job_queue(std::int64_t index) {
    return index == 0 ? queue : queue + "-" + std::to_string(index);
}

/// Puts `count` jobs in each queue; their payloads are numbered messages.
inline Filled fill_jobs(Redis& redis, const Options& options) {
    constexpr std::size_t chunk = 1000;
    const auto count = static_cast<std::size_t>(options.number("count"));
    Filled all;
    for (std::int64_t i = 0; i < options.number("queues"); ++i) {
        const Filled filled = fill_list(redis, job_queue(i), count, chunk, [](std::size_t id) {
            std::string payload;
            Codec<Job<Message>>::encode(make_job(numbered(id)), payload);
            return payload;
        });
        all.ids.messages += filled.ids.messages;
        all.ids.sum += filled.ids.sum;
        all.sizes.messages += filled.sizes.messages;
        all.sizes.sum += filled.sizes.sum;
    }
    return all;
}

/// Schedules messages that are due in an hour or later.
inline void fill_schedule(Redis& redis, std::size_t waiting) {
    constexpr std::size_t chunk = 1000;
    const std::string scheduled = Keys(queue).scheduled();
    const auto due = (job_time() + std::chrono::hours(1)).time_since_epoch().count();
    for (std::size_t i = 0; i < waiting;) {
        std::vector<std::string> words;
        for (; words.size() < 2 * chunk && i < waiting; ++i) {
            words.push_back(std::to_string(due + static_cast<std::int64_t>(i)));
            words.push_back(std::string(8, '\0') + payload_of(numbered(i)));
        }
        redis.begin();
        redis.add("ZADD");
        redis.add(scheduled);
        for (const std::string& word : words) {
            redis.add(word);
        }
        redis.send();
        redis.reply();
    }
}

/// A message and when it is due, which is its time stamp.
struct Timed {
    JobTime due;
    Message message;
};

/// Messages at a steady rate, beginning in a second.
[[nodiscard]] inline std::vector<Timed> timed_messages(std::size_t per_second, std::size_t count) {
    using std::chrono::nanoseconds;
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    const auto offset =
        static_cast<std::int64_t>(now()) - static_cast<std::int64_t>(nanoseconds(wall).count());
    const JobTime begin = job_time() + std::chrono::seconds(1);
    std::vector<Timed> timed;
    for (std::size_t i = 0; i < count; ++i) {
        const JobTime due =
            begin + std::chrono::milliseconds(static_cast<std::int64_t>(i * 1000 / per_second));
        const std::int64_t stamp = nanoseconds(due.time_since_epoch()).count() + offset;
        timed.push_back({due, numbered(static_cast<std::uint64_t>(stamp))});
    }
    return timed;
}

} // namespace orizuru::benchmark
