// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The rate of a queue, in a process that serves it.
//
// A process reserves its grants up to a second ahead, and sleeps until then: with 1,000 processes,
// who would ask at each grant are too many. Who finds that second taken asks again in about one.
// What a process dies with is lost, a second's grants at most. While the queue is empty nothing is
// granted: its processes wait in Redis for a message, and the one that gets it asks for a grant.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/limits/grant.hpp>
#include <orizuru/detail/limits/permits.hpp>
#include <orizuru/detail/limits/queue_limit.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/redis/place/queue_connections.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/limits/rate.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

class QueueRate final : public QueueLimit {
  public:
    /// Does not connect yet. Throws std::system_error without a free descriptor.
    QueueRate(const Endpoint& endpoint, Keys keys, const Rate& rate)
        : m_keys(std::move(keys)), m_rate(rate), m_connections(m_cutoff.guard(endpoint)) {}

    [[nodiscard]] Admission admit(Jobs jobs, int wanted) override;
    void fetched(int jobs) noexcept override {
        const std::lock_guard lock(m_mutex);
        for (const TimePoint now = Clock::now(); jobs > 0; --jobs) {
            m_permits.promise(now);
        }
    }
    [[nodiscard]] bool begin() noexcept override {
        const std::lock_guard lock(m_mutex);
        return m_permits.use(Clock::now());
    }
    void cut_off() noexcept override { m_cutoff.signal(); }

  private:
    static constexpr std::chrono::microseconds ahead = std::chrono::seconds(1);
    // Grants of a fast rate are taken several at once: one by one they would take a round trip
    // each.
    static constexpr std::int64_t together = 5000; ///< microseconds

    [[nodiscard]] Admission at_hand();
    [[nodiscard]] Clock::duration before_next_try() noexcept {
        return ahead / 2 + std::chrono::microseconds(m_random() % (ahead / 2).count());
    }

    const Keys m_keys;
    const Rate m_rate;
    Cutoff m_cutoff;
    QueueConnections m_connections;                                              ///< for admit()
    std::minstd_rand m_random{narrow<std::minstd_rand::result_type>(entropy())}; ///< too

    std::mutex m_mutex; ///< guards what follows
    Permits m_permits;
};

inline QueueRate::Admission QueueRate::at_hand() {
    const std::lock_guard lock(m_mutex);
    const TimePoint now = Clock::now();
    m_permits.drop_void(now);
    return {m_permits.usable(now), m_permits.next(now)};
}

inline QueueRate::Admission QueueRate::admit(Jobs jobs, int wanted) {
    if (const Admission had = at_hand(); had.most > 0 || had.again != TimePoint::max()) {
        return had;
    }
    const std::int64_t spacing = grant_spacing(m_rate);
    const auto most = static_cast<int>(std::min<std::int64_t>(wanted, together / spacing + 1));
    const std::vector<std::string> lists =
        jobs == Jobs::at_hand ? std::vector<std::string>()
                              : std::vector<std::string>{m_keys.source(), m_keys.suspects()};
    Connection& connection = *m_connections.of(m_keys);
    const TimePoint asked = Clock::now();
    const Grant grant = ask_for_grants(connection, m_keys.queue_rate(), lists, m_rate, ahead, most);
    const TimePoint answered = Clock::now();
    if (grant.count < 0) {
        return {.empty = true};
    }
    if (grant.count == 0) {
        return {.again = answered +
                         std::max<Clock::duration>(grant.first_in - ahead, before_next_try())};
    }
    {
        const std::lock_guard lock(m_mutex);
        for (std::int64_t i = 0; i < grant.count; ++i) {
            const auto in = grant.first_in + std::chrono::microseconds(i * spacing);
            m_permits.add(asked + in, answered + in);
        }
    }
    Admission granted = at_hand();
    granted.again = std::min(granted.again, Clock::now() + ahead); // the answer may be too late
    return granted;
}

} // namespace orizuru::detail
