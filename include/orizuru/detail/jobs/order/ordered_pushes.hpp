// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Pushes jobs of one key, in few round trips.

#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// The producer outlives this.
class OrderedPushes {
  public:
    /// Throws std::invalid_argument for a key that cannot be.
    OrderedPushes(ProducerCore& producer, std::string_view key) : m_producer(producer), m_key(key) {
        if (key.empty()) {
            throw std::invalid_argument("the job has no key");
        }
        check_key(key);
    }

    /// Adds a job with its ticket, and sends all that there are when they are many.
    void add(std::string_view ticket, std::string_view job) {
        append_argument(m_arguments, digits_of(ticket, m_producer.keys()));
        append_argument(m_arguments, job);
        if (++m_count == most || m_arguments.size() >= PushChunk::most_bytes) {
            send();
        }
    }
    /// Sends those that are left. Throws as ProducerCore::command; Error::pushed() counts the jobs
    /// that are certainly there.
    void send() {
        if (m_count == 0) {
            return;
        }
        try {
            push();
        } catch (Error& error) {
            PushCount::set(error, m_done);
            throw;
        }
        m_done += m_count;
        m_count = 0;
        m_arguments.clear();
    }

  private:
    void push() {
        const CachedScript& script = push_in_order_script();
        try {
            run("EVALSHA", script.sha1());
            return;
        } catch (const ReplyError& error) {
            // A user may have the right to EVAL alone. A script that was refused has changed
            // nothing.
            if (error.code() != "NOPERM" && remedy_for(error) != Remedy::send_body) {
                throw;
            }
        }
        run("EVAL", script.source());
    }
    void run(std::string_view name, std::string_view script) {
        std::string command;
        begin_command(command, 6 + 2 * m_count);
        append_argument(command, name);
        append_argument(command, script);
        append_argument(command, 3);
        for (const std::string& key : order_keys(m_producer.keys(), m_key)) {
            append_argument(command, key);
        }
        command += m_arguments;
        m_producer.command(name, command);
    }

    static constexpr std::size_t most = 500;

    ProducerCore& m_producer;
    const std::string m_key;
    std::string m_arguments;
    std::size_t m_count = 0;
    std::uint64_t m_done = 0;
};

} // namespace orizuru::detail
