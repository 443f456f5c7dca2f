// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Pushes messages by a script that takes two arguments for each, in few round trips.

#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// The producer and the script outlive this.
class ScriptPushes {
  public:
    ScriptPushes(ProducerCore& producer, const CachedScript& script, std::vector<std::string> keys)
        : m_producer(producer), m_script(script), m_keys(std::move(keys)) {}

    /// Adds a message, and sends all that there are when they are many.
    void add(std::string_view first, std::string_view second) {
        append_argument(m_arguments, first);
        append_argument(m_arguments, second);
        if (++m_count == most || m_arguments.size() >= PushChunk::most_bytes) {
            send();
        }
    }
    /// Sends those that are left. Throws as ProducerCore::command; Error::pushed() counts the
    /// messages that are certainly there.
    void send() {
        if (m_count == 0) {
            return;
        }
        try {
            run_by_either(m_script, [this](std::string_view name, std::string_view script) {
                run(name, script);
            });
        } catch (Error& error) {
            PushCount::set(error, m_done);
            throw;
        }
        m_done += m_count;
        m_count = 0;
        m_arguments.clear();
    }

  private:
    void run(std::string_view name, std::string_view script) {
        std::string command;
        begin_command(command, 3 + m_keys.size() + 2 * m_count);
        append_argument(command, name);
        append_argument(command, script);
        append_argument(command, m_keys.size());
        append_argument(command, m_keys);
        command += m_arguments;
        m_producer.command(name, command);
    }

    static constexpr std::size_t most = 500;

    ProducerCore& m_producer;
    const CachedScript& m_script;
    const std::vector<std::string> m_keys;
    std::string m_arguments;
    std::size_t m_count = 0;
    std::uint64_t m_done = 0;
};

} // namespace orizuru::detail
