// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of outbox_relay.hpp.

#include <orizuru/detail/postgres/outbox_rounds.hpp>

#include <utility>

namespace orizuru {

ORIZURU_INLINE OutboxRelay::OutboxRelay(Database database, Endpoint redis,
                                        OutboxRelayOptions options)
    : m_rounds(std::make_unique<detail::OutboxRounds>(std::move(database), std::move(redis),
                                                      std::move(options))) {}
ORIZURU_INLINE OutboxRelay::~OutboxRelay() = default;

ORIZURU_INLINE std::uint64_t OutboxRelay::relay() { return m_rounds->relay(); }

ORIZURU_INLINE void OutboxRelay::run(const std::stop_token& token) { m_rounds->run(token); }

} // namespace orizuru
