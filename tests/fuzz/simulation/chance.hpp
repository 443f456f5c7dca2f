// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// All that is random in the seeded test, from one seed. The distributions of the standard library
// differ from one implementation to the next; these do not, so a seed means the same everywhere.

#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace orizuru::test {

class Chance {
  public:
    explicit Chance(std::uint64_t seed) : m_engine(seed) {}

    /// 0 to `count` - 1.
    std::size_t below(std::size_t count) { return m_engine() % count; }
    int between(int first, int last) {
        return first + static_cast<int>(below(static_cast<std::size_t>(last - first) + 1));
    }
    /// 0 to 1, 1 excluded.
    double fraction() { return static_cast<double>(m_engine() >> 11) * 0x1p-53; }
    bool happens(double probability) { return fraction() < probability; }

    template <class Container>
    auto& pick(Container& from) {
        return from[below(from.size())];
    }

  private:
    std::mt19937_64 m_engine;
};

} // namespace orizuru::test
