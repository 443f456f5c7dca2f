// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Schedules many messages in few round trips.

#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/detail/producer/payload_source.hpp>
#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

/// The script of schedule.hpp with up to as many messages as an LPUSH of push_all has; each is
/// atomic. `due` as there; with {"each", "0"}, `times` has the milliseconds of each message. Throws
/// as ProducerCore::command and `payloads` do; Error::pushed() counts the messages that are
/// certainly there.
inline void schedule_all(ProducerCore& producer, const std::vector<std::string>& due,
                         PayloadSource payloads, std::span<const std::string> times = {}) {
    std::uint64_t done = 0;
    std::string messages;
    std::size_t count = 0;
    const auto send = [&] {
        std::string command;
        begin_command(command, 9 + (times.empty() ? count : 2 * count));
        append_argument(command, std::string_view("EVAL"));
        append_argument(command, schedule_script());
        append_argument(command, 4);
        append_argument(command, schedule_keys(producer.keys()));
        append_argument(command, due);
        command += messages;
        producer.command("EVAL", command);
        done += count;
        messages.clear();
        count = 0;
    };
    try {
        for (std::string payload; payloads(payload); payload.clear()) {
            if (!times.empty()) {
                append_argument(messages, times[done + count]);
            }
            append_argument(messages, payload);
            if (++count == PushChunk::most_messages || messages.size() >= PushChunk::most_bytes) {
                send();
            }
        }
        if (count > 0) {
            send();
        }
    } catch (Error& error) {
        PushCount::set(error, done);
        throw;
    }
}

} // namespace orizuru::detail
