// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of producer_core.hpp.

#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/producer/push_buffer.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/producer/push_count.hpp>
#include <orizuru/detail/producer/push_pipeline.hpp>
#include <orizuru/detail/producer/push_series.hpp>
#include <orizuru/error.hpp>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

namespace orizuru::detail {

struct ProducerCore::Parts {
    Parts(Endpoint endpoint, std::string queue, ProducerOptions chosen)
        : keys(std::move(queue)),
          options(checked(chosen)),
          chunks{PushChunk(keys.source()), PushChunk(keys.source())} {
        if (options.buffer == 0) {
            unbuffered.emplace(std::move(endpoint), keys.source());
        } else {
            buffer.reset(new PushBuffer(std::move(endpoint), keys.source(),
                                        static_cast<std::size_t>(options.buffer),
                                        options.buffer_time));
        }
    }

    static ProducerOptions checked(ProducerOptions options) {
        check_max_payload(options.max_payload);
        if (options.buffer < 0 || options.buffer > static_cast<int>(PushChunk::most_messages)) {
            throw std::invalid_argument("buffer must be 0 to 1000");
        }
        if (options.buffer_time < std::chrono::milliseconds(1) ||
            options.buffer_time > std::chrono::hours(24)) {
            throw std::invalid_argument("buffer_time must be 1 ms to 24 h");
        }
        return options;
    }
    [[nodiscard]] PushPipeline& pipeline() noexcept {
        return buffer ? buffer->pipeline() : *unbuffered;
    }

    Keys keys;
    ProducerOptions options;
    PushSeries::Chunks chunks;
    std::optional<PushPipeline> unbuffered; ///< without a buffer, else the buffer's
    PushBuffer::Pointer buffer;
};

ORIZURU_INLINE ProducerCore::ProducerCore(Endpoint endpoint, std::string queue,
                                          ProducerOptions options)
    : m_parts(std::make_unique<Parts>(std::move(endpoint), std::move(queue), options)) {}
ORIZURU_INLINE ProducerCore::ProducerCore(ProducerCore&&) noexcept = default;
ORIZURU_INLINE ProducerCore& ProducerCore::operator=(ProducerCore&&) noexcept = default;
ORIZURU_INLINE ProducerCore::~ProducerCore() = default;

ORIZURU_INLINE const Keys& ProducerCore::keys() const noexcept { return m_parts->keys; }
ORIZURU_INLINE const ProducerOptions& ProducerCore::options() const noexcept {
    return m_parts->options;
}

ORIZURU_INLINE std::uint64_t ProducerCore::push(PayloadSource payload) {
    if (m_parts->buffer) {
        return m_parts->buffer->push(payload);
    }
    PushSeries series(*m_parts->unbuffered, m_parts->chunks);
    series.add(payload);
    series.finish();
    return *series.length();
}

ORIZURU_INLINE std::uint64_t ProducerCore::push_all(PayloadSource payloads) {
    flush();
    std::optional<std::uint64_t> length;
    {
        PushSeries series(m_parts->pipeline(), m_parts->chunks);
        try {
            try {
                while (series.add(payloads)) {
                }
            } catch (...) {
                // What fails in Redis was in front of what has failed here.
                series.settle();
                throw;
            }
            series.finish();
        } catch (Error& error) {
            PushCount::set(error, series.pushed());
            throw;
        }
        length = series.length();
    }
    return length ? *length : this->length();
}

ORIZURU_INLINE void ProducerCore::flush() {
    if (m_parts->buffer) {
        m_parts->buffer->flush();
    }
}

ORIZURU_INLINE std::size_t ProducerCore::unconfirmed() const {
    return m_parts->buffer ? m_parts->buffer->unconfirmed() : 0;
}

ORIZURU_INLINE std::uint64_t ProducerCore::length() {
    return m_parts->buffer ? m_parts->buffer->length() : m_parts->unbuffered->length();
}

ORIZURU_INLINE Reply ProducerCore::command(std::string_view name, std::string_view bytes) {
    flush();
    return m_parts->pipeline().command(name, bytes);
}

} // namespace orizuru::detail
