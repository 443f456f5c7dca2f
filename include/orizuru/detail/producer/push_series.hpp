// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One push or push_all in progress. It writes a chunk while the one before is in flight, and counts
// the messages that are certainly in the queue, from the first without a gap.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/producer/payload_source.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/producer/push_pipeline.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::detail {

class PushSeries {
  public:
    using Chunks = std::array<PushChunk, PushPipeline::most>;

    /// Throws std::logic_error when another series has taken the pipeline.
    PushSeries(PushPipeline& pipeline, Chunks& chunks) : m_pipeline(pipeline), m_chunks(chunks) {
        pipeline.take();
        for (PushChunk& chunk : chunks) {
            chunk.clear();
        }
    }
    PushSeries(const PushSeries&) = delete;
    PushSeries& operator=(const PushSeries&) = delete;
    ~PushSeries() { m_pipeline.give_back(); }

    /// Adds the next message of `payloads`, and sends the chunk when that fills it; false when
    /// there is none. Throws as `payloads` does; errors of Redis are about earlier messages.
    bool add(PayloadSource payloads) {
        if (!m_chunks[m_filling].add(payloads)) {
            return false;
        }
        if (m_chunks[m_filling].full()) {
            send();
        }
        return true;
    }

    /// Sends the rest and waits for all answers.
    void finish() {
        if (!m_chunks[m_filling].empty()) {
            send();
        }
        settle();
    }

    /// Waits for the answers to all chunks sent.
    void settle() {
        while (m_pipeline.in_flight() > 0) {
            step();
        }
    }

    /// Returns how many messages are certainly in the queue, from the first without a gap.
    [[nodiscard]] std::uint64_t pushed() const noexcept { return m_pushed; }
    /// The queue's length after the last of them; nothing if there was none.
    [[nodiscard]] std::optional<std::uint64_t> length() const noexcept { return m_length; }

  private:
    void send() {
        m_pipeline.start(m_chunks[m_filling].command());
        m_filling = 1 - m_filling;
        // The next chunk reuses the memory of the older one.
        while (!m_pipeline.sent() || m_pipeline.in_flight() == PushPipeline::most) {
            step();
        }
    }

    void step() {
        if (const auto reply = m_pipeline.next()) {
            take(*reply);
        } else {
            m_pipeline.wait();
        }
    }

    void take(const Reply& reply) {
        PushChunk& chunk = m_chunks[m_oldest];
        if (reply.is(Reply::Type::error)) {
            return refused(reply);
        }
        m_oldest = 1 - m_oldest;
        m_redirections = 0;
        m_pushed += chunk.size();
        m_length = static_cast<std::uint64_t>(reply.integer);
        chunk.clear();
    }

    /// Goes to the server that may now answer at the address, or has the key.
    [[gnu::cold]] void refused(const Reply& reply) {
        if (const auto answer = m_pipeline.ask(reply, m_chunks[m_oldest].command(),
                                               [](auto push) { return push(); })) {
            return take(*answer);
        }
        if (refuses_a_length(reply)) {
            refuse_largest(reply);
        }
        const bool elsewhere = refers_elsewhere(reply) && m_redirections++ < most_redirections;
        const std::size_t refused = m_oldest;
        m_oldest = 1 - m_oldest;
        const bool one_behind = m_pipeline.in_flight() > 0;
        const std::string remark = fate_of_the_next();
        if (!elsewhere || !remark.empty()) {
            throw m_pipeline.refusal(reply, remark);
        }
        m_oldest = refused;
        m_pipeline.abandon();
        m_pipeline.start(m_chunks[refused].command());
        if (one_behind) {
            m_pipeline.start(m_chunks[1 - refused].command());
        }
    }

    /// Pushes the messages before the one that is too long: the first error about a message is the
    /// one that counts.
    [[noreturn]] [[gnu::cold]] void refuse_largest(const Reply& reply) {
        PushChunk& chunk = m_chunks[m_oldest];
        std::string payload = chunk.largest();
        chunk.cut_at_largest();
        if (!chunk.empty()) {
            m_pipeline.start(chunk.command());
            settle();
        }
        throw m_pipeline.refusal_of(std::move(payload), reply);
    }

    /// The fate of the LPUSH behind a refused one, for the error's message.
    [[gnu::cold]] std::string fate_of_the_next() {
        if (m_pipeline.in_flight() == 0) {
            return {};
        }
        const std::string messages = joined(
            {" (the ", Digits(m_chunks[m_oldest].size()), " messages behind those refused "});
        try {
            while (true) {
                if (const auto reply = m_pipeline.next()) {
                    return reply->is(Reply::Type::error) ? "" : joined({messages, "were pushed)"});
                }
                m_pipeline.wait();
            }
        } catch (const Error&) {
            return joined({messages, "may have been pushed)"});
        }
    }

    PushPipeline& m_pipeline;
    Chunks& m_chunks;
    static constexpr int most_redirections = 1;

    std::size_t m_filling = 0;
    std::size_t m_oldest = 0; ///< the oldest chunk in flight
    int m_redirections = 0;   ///< those since a push last ran
    std::uint64_t m_pushed = 0;
    std::optional<std::uint64_t> m_length;
};

} // namespace orizuru::detail
