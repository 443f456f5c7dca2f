// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of consumer_core.hpp.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/heartbeat.hpp>
#include <orizuru/detail/consumer/link.hpp>
#include <orizuru/detail/consumer/session.hpp>
#include <orizuru/detail/redis/limits.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE void check(const ConsumerOptions& options) {
    check_label(options.name);
    check_time("lease", options.lease, std::chrono::milliseconds(100));
    check_count("prefetch", options.prefetch, largest_batch);
    check_max_payload(options.max_payload);
}

ORIZURU_INLINE std::shared_ptr<Heartbeat> connect_link(Endpoint endpoint, TimePoint deadline) {
    return std::make_shared<Heartbeat>(std::make_shared<Link>(std::move(endpoint), deadline));
}

ORIZURU_INLINE ConsumerCore::ConsumerCore(Endpoint endpoint, std::string queue,
                                          ConsumerOptions options) {
    const Keys keys(std::move(queue));
    check(options);
    const TimePoint deadline = Clock::now() + endpoint.connect_timeout();
    m_session = Session::open(connect_link(std::move(endpoint), deadline), keys, std::move(options),
                              deadline);
}

ORIZURU_INLINE ConsumerCore::ConsumerCore(std::shared_ptr<Heartbeat> link, std::string queue,
                                          ConsumerOptions options) {
    const Keys keys(std::move(queue));
    check(options);
    const TimePoint deadline = Clock::now() + link->link()->endpoint().connect_timeout();
    m_session = Session::open(std::move(link), keys, std::move(options), deadline);
}

ORIZURU_INLINE ConsumerCore::~ConsumerCore() { m_session->close(); }

ORIZURU_INLINE DeliveryPtr ConsumerCore::next(const std::stop_token& token, Timeout& timeout) {
    return m_session->next(token, timeout);
}

ORIZURU_INLINE DeliveryPtr ConsumerCore::poll(const std::stop_token& token, Awaited& awaited) {
    return m_session->poll(token, awaited);
}

ORIZURU_INLINE void ConsumerCore::watch(std::shared_ptr<const Wake> news) {
    m_session->watch(std::move(news));
}

ORIZURU_INLINE std::optional<bool> ConsumerCore::bury(const DeliveryPtr& message,
                                                      const std::string& reason,
                                                      const std::stop_token& token,
                                                      TimePoint deadline) {
    return m_session->bury(message, reason, token, deadline);
}

ORIZURU_INLINE void ConsumerCore::postpone(DeliveryPtr message) noexcept {
    m_session->postpone(std::move(message));
}

ORIZURU_INLINE void ConsumerCore::tell(EventKind kind, std::string_view detail,
                                       std::string_view payload) {
    m_session->tell(kind, detail, payload);
}

ORIZURU_INLINE void ConsumerCore::limit(int most) { m_session->limit(most); }
ORIZURU_INLINE std::size_t ConsumerCore::in_hand() const noexcept { return m_session->in_hand(); }
ORIZURU_INLINE void ConsumerCore::stop() noexcept { m_session->stop(); }
ORIZURU_INLINE bool ConsumerCore::stopped() const noexcept { return m_session->stopped(); }
ORIZURU_INLINE void ConsumerCore::end_by(TimePoint time) noexcept { m_session->end_by(time); }
ORIZURU_INLINE std::size_t ConsumerCore::flush() { return m_session->flush(); }
ORIZURU_INLINE std::uint64_t ConsumerCore::size() { return m_session->size(); }
ORIZURU_INLINE std::string ConsumerCore::id() const { return m_session->id(); }
ORIZURU_INLINE const Keys& ConsumerCore::keys() const noexcept { return m_session->keys(); }
ORIZURU_INLINE const ConsumerOptions& ConsumerCore::options() const noexcept {
    return m_session->options();
}

} // namespace orizuru::detail
