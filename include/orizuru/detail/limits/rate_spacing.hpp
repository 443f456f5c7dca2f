// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The distance between the permits of a rate, so that no span has more than it may.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/limits/rate.hpp>

#include <algorithm>
#include <chrono>

namespace orizuru::detail {

struct RateSpacing {
    std::chrono::microseconds apart{0}; ///< 0: there is no rate
    std::chrono::microseconds late{0};  ///< a permit may be taken so late without delaying the next
    std::chrono::microseconds per{0};

    /// A permit is taken between the time at which it is due and `late` behind. Those taken in a
    /// span of `per` are therefore due in one of `per` + `late`, which must not have room for one
    /// more. Throws std::invalid_argument for a rate that cannot be.
    [[nodiscard]] static RateSpacing of(const Rate& rate) {
        check_count("the permits of a rate", rate.most, 1'000'000);
        check_time("the span of a rate", rate.per, std::chrono::milliseconds(1));
        const std::chrono::microseconds per = rate.per;
        const auto late =
            std::min<std::chrono::microseconds>(per / 20, std::chrono::milliseconds(50));
        return {(per + late + std::chrono::microseconds(rate.most - 1)) / rate.most, late, per};
    }
};

} // namespace orizuru::detail
