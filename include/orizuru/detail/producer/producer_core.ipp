// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of producer_core.hpp.

#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/producer/push_pipeline.hpp>
#include <orizuru/detail/producer/push_series.hpp>
#include <orizuru/detail/producer/replica_wait.hpp>
#include <orizuru/error.hpp>

#include <optional>
#include <utility>

namespace orizuru::detail {

struct ProducerCore::Parts {
    [[gnu::cold]] Parts(const Endpoint& endpoint, std::string&& queue, ProducerOptions chosen)
        : keys(std::move(queue)),
          options(chosen),
          chunks{PushChunk(keys.source()), PushChunk(keys.source())},
          pipeline(endpoint, keys.source(), ReplicaWait(options.replicas)) {}

    Keys keys;
    ProducerOptions options;
    PushSeries::Chunks chunks;
    PushPipeline pipeline;
};

ORIZURU_INLINE ProducerCore::ProducerCore(const Endpoint& endpoint, std::string&& queue,
                                          ProducerOptions options) {
    check_max_payload(options.max_payload);
    m_parts = std::make_unique<Parts>(endpoint, std::move(queue), options);
}
ORIZURU_INLINE ProducerCore::ProducerCore(ProducerCore&&) noexcept = default;
ORIZURU_INLINE ProducerCore& ProducerCore::operator=(ProducerCore&&) noexcept = default;
ORIZURU_INLINE ProducerCore::~ProducerCore() = default;

ORIZURU_INLINE const Keys& ProducerCore::keys() const { return m_parts->keys; }
ORIZURU_INLINE const ProducerOptions& ProducerCore::options() const { return m_parts->options; }

ORIZURU_INLINE std::uint64_t ProducerCore::push(PayloadSource payload) {
    PushSeries series(m_parts->pipeline, m_parts->chunks);
    series.add(payload);
    series.finish();
    return *series.length();
}

ORIZURU_INLINE std::uint64_t ProducerCore::push_all(PayloadSource payloads) {
    std::optional<std::uint64_t> length;
    {
        PushSeries series(m_parts->pipeline, m_parts->chunks);
        try {
            try {
                while (series.add(payloads)) {
                }
            } catch (...) {
                // If Redis refuses messages sent before, this throws that error instead.
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

ORIZURU_INLINE std::uint64_t ProducerCore::length() { return m_parts->pipeline.length(); }

ORIZURU_INLINE void ProducerCore::read(ServerClock& clock) { m_parts->pipeline.read(clock); }

ORIZURU_INLINE Reply ProducerCore::command(std::string_view name, std::string_view bytes) {
    return m_parts->pipeline.command(name, bytes);
}

ORIZURU_INLINE void ProducerCore::close_after_fork() noexcept {
    m_parts->pipeline.close_after_fork();
}

} // namespace orizuru::detail
