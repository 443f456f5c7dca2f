// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A second account of a queue's series of writes (write_series.hpp), and the time by which it goes:
// it passes only when the simulation says so, in steps that are longer than any run takes.

#pragma once

#include "fuzz/model/server.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace orizuru::test {

class SeriesAccount {
  public:
    // In milliseconds; all consumers have this lease.
    static constexpr std::int64_t lease = 60'000;
    static constexpr std::int64_t gap = lease * 5 / 12;
    static constexpr std::int64_t step = 10'000;

    /// For Redis it is as if the time had passed since the last write.
    void pass(Server& redis, const std::string& key, std::int64_t time) {
        m_now += time;
        const Reply value = redis.command({"GET", key});
        const std::int64_t left = redis.command({"PTTL", key}).integer - time;
        if (value.is(Reply::Type::string) && left > 0) {
            redis.command({"SET", key, value.text, "PX", std::to_string(left)});
        } else {
            redis.command({"DEL", key});
        }
    }
    /// A beat was taken, or a collector asked for one who is missing.
    void write() {
        m_begin = m_now - age();
        m_last = m_now;
    }
    /// For how long a series has lasted that goes on with a write now.
    [[nodiscard]] std::int64_t age() const {
        return m_last && m_now - *m_last < gap ? m_now - m_begin : 0;
    }

  private:
    std::int64_t m_now = 0;
    std::int64_t m_begin = 0;
    std::optional<std::int64_t> m_last;
};

} // namespace orizuru::test
