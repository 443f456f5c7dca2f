// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Asks Redis how many more handlers of a queue may run.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/limits/admission_script.hpp>
#include <orizuru/detail/limits/rate_spacing.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/detail/worker/limits/queue_limit.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/limits/fleet_limit.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// A process says and asks this. See admission_script.
struct AdmissionRequest {
    int holding = 0;
    int wanted = 0;
    QueueLimit::Jobs jobs = QueueLimit::Jobs::to_fetch;
    int unused = 0;
    bool renews = false; ///< all slots, and not only those that come and go
};

struct Admission {
    enum class Kind { granted, too_soon, empty, full };

    Kind kind = Kind::granted;
    int count = 0;
    std::chrono::milliseconds wait{0}; ///< for too_soon and full
};

/// For one thread at a time.
class Admissions {
  public:
    Admissions(Endpoint endpoint, const Keys& keys, std::string_view name,
               std::chrono::milliseconds lease, const FleetLimit& limit)
        : m_endpoint(Route::to_key(std::move(endpoint), keys.source())),
          m_keys(keys),
          m_owner(make_identity(name).id),
          m_lease(lease),
          m_most(limit.concurrency.value_or(0)),
          m_spacing(limit.rate ? RateSpacing::of(*limit.rate) : RateSpacing()) {}

    /// Connects where it has to. Throws as Connection does: Redis may count what it has not
    /// granted, until the next call. Redis: EVALSHA, see admission_script.
    [[nodiscard]] Admission ask(const AdmissionRequest& request) {
        if (!m_connection) {
            m_connection = std::make_unique<Connection>(m_endpoint);
        }
        const int kept = std::exchange(m_kept, 0);
        m_had = std::max(m_had, request.holding + request.wanted);
        const Reply reply =
            run_script(*m_connection, m_keys.source(), admission_script, 6, m_keys.slots_taken(),
                       m_keys.slots_freed(), m_keys.queue_rate(), m_keys.writes(), m_keys.source(),
                       m_keys.suspects(), m_owner, m_lease.count(), request.holding, m_had,
                       request.renews ? 0 : kept, m_most, m_spacing.apart.count(),
                       m_spacing.late.count(), m_spacing.per.count(), request.wanted,
                       request.jobs == QueueLimit::Jobs::to_fetch ? "fetch" : "hold", m_next_due,
                       request.unused);
        const auto is_number = [](const Reply& number) { return is_count(number, -2); };
        if (!reply.is(Reply::Type::array) || reply.elements.size() != 2 ||
            !std::ranges::all_of(reply.elements, is_number) ||
            reply.elements[0].integer > request.wanted) {
            refuse(*m_connection, "EVALSHA");
        }
        return admitted(reply, request);
    }
    /// The connection on which to wait for a free slot.
    [[nodiscard]] std::unique_ptr<Connection> connect() const {
        return std::make_unique<Connection>(m_endpoint);
    }
    [[nodiscard]] const Keys& keys() const noexcept { return m_keys; }

  private:
    [[nodiscard]] Admission admitted(const Reply& reply, const AdmissionRequest& request) {
        const std::int64_t count = reply.elements[0].integer;
        const std::int64_t time = reply.elements[1].integer;
        m_kept = m_had = request.holding + static_cast<int>(std::max<std::int64_t>(count, 0));
        if (count > 0) {
            m_next_due = time;
            return {.count = static_cast<int>(count)};
        }
        using Kind = Admission::Kind;
        return {.kind = count == -1   ? Kind::empty
                        : count == -2 ? Kind::full
                        : time > 0    ? Kind::too_soon
                                      : Kind::granted,
                .wait = std::chrono::milliseconds(time)};
    }

    const Endpoint m_endpoint;
    const Keys m_keys;
    const std::string m_owner;
    const std::chrono::milliseconds m_lease;
    const int m_most;
    const RateSpacing m_spacing;
    std::unique_ptr<Connection> m_connection;
    int m_had = 0;  ///< slots that Redis may count
    int m_kept = 0; ///< those of them that it counts, unless it has lost them
    std::int64_t m_next_due = 0;
};

} // namespace orizuru::detail
