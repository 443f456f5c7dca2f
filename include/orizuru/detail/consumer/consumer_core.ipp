// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of consumer_core.hpp except a worker's: see consumer_polling.ipp.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/heartbeat.hpp>
#include <orizuru/detail/consumer/link.hpp>
#include <orizuru/detail/consumer/session.hpp>
#include <orizuru/detail/redis/limits.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>

#include <chrono>
#include <exception>
#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE void validate(const ConsumerOptions& options) {
    check_label(options.name);
    check_time("lease", options.lease, std::chrono::milliseconds(100));
    check_count("prefetch", options.prefetch, largest_batch);
    check_max_payload(options.max_payload);
}

ORIZURU_INLINE ConsumerCore::ConsumerCore(const Endpoint& endpoint, std::string&& queue,
                                          ConsumerOptions&& options) {
    const Keys keys(std::move(queue));
    validate(options);
    const TimePoint deadline = Clock::now() + endpoint.connect_timeout();
    Endpoint labelled = Route::to_key(endpoint, keys.source());
    if (options.name != ConsumerOptions().name) {
        EndpointParts::of(labelled).label = std::make_shared<const std::string>(options.name);
    }
    m_session =
        Session::open(std::make_shared<Heartbeat>(std::make_shared<Link>(labelled, deadline)), keys,
                      std::move(options), deadline);
}

ORIZURU_INLINE ConsumerCore::~ConsumerCore() { m_session->close(); }

ORIZURU_INLINE bool ConsumerCore::next(const std::stop_token& token, Timeout& timeout,
                                       Decode decode) {
    return take([&] { return m_session->fetcher().next(token, timeout); }, token, timeout, decode,
                [](const std::string&, const std::bad_alloc&) { return nullptr; });
}

template <class Fetch>
bool ConsumerCore::take(Fetch fetch, const std::stop_token& token, Timeout& timeout, Decode decode,
                        StandIn stand_in) {
    while (true) {
        m_session->refuse_fork(); // each time: a Codec may have forked
        DeliveryPtr delivery = fetch();
        if (!delivery) {
            return false;
        }
        std::string reason;
        GuardCore* guard = nullptr;
        try {
            guard = guard_of(delivery, decode, stand_in, reason);
        } catch (...) {
            m_session->fetcher().postpone(std::move(delivery));
            throw;
        }
        if (guard != nullptr) {
            delivery->forget_shortages();
            guard->guard(*m_session, std::move(delivery));
            return true;
        }
        bury(delivery, reason, token, timeout.deadline());
    }
}

/// If it returns null, `reason` says why. Throws std::bad_alloc before the third shortage in a row.
ORIZURU_INLINE GuardCore* ConsumerCore::guard_of(const DeliveryPtr& delivery, Decode decode,
                                                 StandIn stand_in, std::string& reason) {
    const std::string& payload = delivery->payload;
    const auto max_payload = static_cast<std::uint64_t>(options().max_payload);
    if (payload.size() > max_payload) {
        reason = over_max_payload(payload.size(), max_payload);
        return nullptr;
    }
    try {
        return &decode(payload);
    } catch (const std::bad_alloc& shortage) {
        if (GuardCore* const guard = stand_in(payload, shortage)) {
            return guard;
        }
        if (++delivery->shortages < most_shortages) {
            throw;
        }
        reason = std::string("no memory to decode it, three times in a row: ") + shortage.what();
    } catch (const std::exception& error) {
        reason = error.what();
    } catch (...) {
        reason = "its Codec threw no std::exception";
    }
    return nullptr;
}

/// Throws DecodeError once the message is on the dead list.
ORIZURU_INLINE void ConsumerCore::bury(const DeliveryPtr& delivery, const std::string& reason,
                                       const std::stop_token& token, TimePoint deadline) {
    const auto buried = m_session->bury(delivery, reason, token, deadline);
    if (buried.value_or(true)) {
        m_session->tell(EventKind::decode_failed, reason, delivery->payload);
    }
    if (buried == true) {
        throw DecodeError(
            joined({"a message of '", keys().source(), "' is on the dead list: ", reason}),
            std::move(delivery->payload));
    }
}

ORIZURU_INLINE std::size_t ConsumerCore::Remainder::flush() const {
    const auto session = m_session.lock();
    return session ? session->flush() : 0;
}

ORIZURU_INLINE void ConsumerCore::Remainder::end_by(TimePoint time) const noexcept {
    if (const auto session = m_session.lock()) {
        session->end_by(time);
    }
}

ORIZURU_INLINE void ConsumerCore::mark_suspects() { m_session->mark_suspects(); }
ORIZURU_INLINE void ConsumerCore::limit(int most) { m_session->fetcher().limit(most); }
ORIZURU_INLINE std::size_t ConsumerCore::in_hand() const noexcept {
    return m_session->fetcher().in_hand();
}
ORIZURU_INLINE void ConsumerCore::stop() noexcept { m_session->fetcher().stop(); }
ORIZURU_INLINE bool ConsumerCore::stopped() const noexcept {
    return m_session->fetcher().stopped();
}
ORIZURU_INLINE void ConsumerCore::end_by(TimePoint time) noexcept { m_session->end_by(time); }
ORIZURU_INLINE std::size_t ConsumerCore::flush() { return m_session->flush(); }
ORIZURU_INLINE std::uint64_t ConsumerCore::size() { return m_session->size(); }
ORIZURU_INLINE std::string ConsumerCore::id() const { return m_session->id(); }
ORIZURU_INLINE bool ConsumerCore::connected() const { return m_session->connected(); }
ORIZURU_INLINE const Keys& ConsumerCore::keys() const noexcept { return m_session->keys(); }
ORIZURU_INLINE const ConsumerOptions& ConsumerCore::options() const noexcept {
    return m_session->options();
}

} // namespace orizuru::detail
