// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of buffered_producer_core.hpp.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/producer/push_buffer.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/producer/replica_wait.hpp>

#include <chrono>
#include <utility>

namespace orizuru::detail {

struct BufferedProducerCore::Parts {
    Parts(const Endpoint& endpoint, std::string queue, BufferedProducerOptions chosen)
        : keys(std::move(queue)),
          options(chosen),
          buffer(new PushBuffer(endpoint, keys.source(), static_cast<std::size_t>(options.size),
                                options.time, ReplicaWait(options.replicas))) {}

    Keys keys;
    BufferedProducerOptions options;
    PushBuffer::Pointer buffer;
};

ORIZURU_INLINE BufferedProducerCore::BufferedProducerCore(const Endpoint& endpoint,
                                                          std::string queue,
                                                          BufferedProducerOptions options) {
    check_max_payload(options.max_payload);
    check_count("size", options.size, static_cast<int>(PushChunk::most_messages));
    check_time("time", options.time, std::chrono::milliseconds(1));
    m_parts = std::make_unique<Parts>(endpoint, std::move(queue), options);
}
ORIZURU_INLINE
BufferedProducerCore::BufferedProducerCore(BufferedProducerCore&&) noexcept = default;
ORIZURU_INLINE BufferedProducerCore&
BufferedProducerCore::operator=(BufferedProducerCore&&) noexcept = default;
ORIZURU_INLINE BufferedProducerCore::~BufferedProducerCore() = default;

ORIZURU_INLINE std::uint64_t BufferedProducerCore::push(PayloadSource payload) {
    return m_parts->buffer->push(payload);
}
ORIZURU_INLINE void BufferedProducerCore::flush() { m_parts->buffer->flush(); }
ORIZURU_INLINE std::size_t BufferedProducerCore::unconfirmed() const {
    return m_parts->buffer->unconfirmed();
}
ORIZURU_INLINE std::uint64_t BufferedProducerCore::length() { return m_parts->buffer->length(); }

ORIZURU_INLINE const Keys& BufferedProducerCore::keys() const { return m_parts->keys; }
ORIZURU_INLINE const BufferedProducerOptions& BufferedProducerCore::options() const {
    return m_parts->options;
}

} // namespace orizuru::detail
