// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Jobs, taken by the library's commands and by the commands of other libraries, and messages for
// later, by hiredis alone. Nothing is decoded.

#pragma once

#include "benchmark/bare_consumer.hpp"
#include "benchmark/bare_flow.hpp"
#include "benchmark/jobs.hpp"
#include "benchmark/latency.hpp"
#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/detail/jobs/due_messages.hpp>
#include <orizuru/detail/jobs/schedule.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace orizuru::benchmark {

/// One script fetches `batch` messages and acks the batch before.
inline void bare_jobs(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Total wanted = fill_jobs(redis, options).sizes;
    BareConsumer consumer(options.socket(), options.number("batch"), 1);
    meter.start();
    consumer.take(wanted.messages);
    consumer.flush();
    meter.stop();
    expect(consumer.total(), wanted);
    meter.print(wanted.messages);
}

/// One thread and one connection for each queue, blocked in BRPOP: at most once. Or in BLMOVE, and
/// then either no message is ever done, or LREM takes it off: what one writes by hand.
inline void bare_queues(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Total wanted = fill_jobs(redis, options).sizes;
    const auto count = static_cast<std::uint64_t>(options.number("count"));
    const std::string way = options.word("way");
    const bool pops = way == "brpop";
    std::vector<Total> totals(static_cast<std::size_t>(options.number("queues")));
    std::vector<std::jthread> threads;
    meter.start();
    for (std::size_t i = 0; i < totals.size(); ++i) {
        threads.emplace_back([&, i] {
            Redis own(options.socket());
            const std::string list = job_queue(static_cast<std::int64_t>(i));
            for (Total total; total.messages < count; totals[i] = total) {
                const Reply reply =
                    pops ? own.command("BRPOP", list, "0")
                         : own.command("BLMOVE", list, list + "-taken", "RIGHT", "LEFT", "0");
                total.add(pops ? reply->element[1]->len : reply->len);
                if (way == "lrem") {
                    own.command("LREM", list + "-taken", "1", text_of(*reply));
                }
            }
        });
    }
    threads.clear();
    meter.stop();
    Total all;
    for (const Total& total : totals) {
        all.messages += total.messages;
        all.sum += total.sum;
    }
    expect(all, wanted);
    meter.print(all.messages);
}

/// How late scheduled messages come, while `waiting` others are not due. The library's script moves
/// them, each time when it said that the next one is due.
inline void bare_lateness(const Options& options) {
    const auto count = warm_up + static_cast<std::size_t>(options.number("count"));
    Redis redis(options.socket());
    Meter meter(options.socket());
    fill_schedule(redis, static_cast<std::size_t>(options.number("waiting")));
    const std::vector<std::string> keys = detail::schedule_keys(Keys(queue));
    for (const Timed& timed : timed_messages(options.number("rate"), count)) {
        redis.command("EVAL", detail::schedule_script(), "4", keys[0], keys[1], keys[2], keys[3],
                      "at", std::to_string(timed.due.time_since_epoch().count()),
                      payload_of(timed.message));
    }
    std::atomic<bool> done{false};
    const std::jthread scheduling([&] {
        Redis own(options.socket());
        while (!done) {
            const Reply step =
                own.command("EVAL", detail::move_due_script, "3", keys[0], queue,
                            Keys(queue).schedulers(), "100", "1048576", "bare", "60000");
            std::this_thread::sleep_for(
                std::chrono::milliseconds(std::min(step->element[1]->integer, 100LL)));
        }
    });
    BareList list(options.socket());
    Latencies latencies;
    meter.start();
    while (latencies.size() < count) {
        if (const Reply message = list.wait()) {
            latencies.add(stamp_of(text_of(*message)));
            list.settle(1, 1, 0);
            list.fetched();
        }
    }
    meter.stop();
    done = true;
    meter.print(count, latencies.figures());
}

} // namespace orizuru::benchmark
