// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How often a collector works beside a consumer (ConsumerOptions::collect).

#include <orizuru/detail/base/config.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/event.hpp>
#include <orizuru/keys.hpp>

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <stdexcept>

namespace orizuru {

namespace detail {
class ConsumerCore;
} // namespace detail

/// An interval, or none. A collector is compiled only into a program that makes one of an interval.
class CollectInterval {
  public:
    CollectInterval() = default;
    /// 1 ms or more. Throws std::invalid_argument.
    template <std::convertible_to<std::chrono::milliseconds> Interval>
    CollectInterval(Interval interval) : m_interval(interval), m_start(&start) {
        if (m_interval < std::chrono::milliseconds(1)) {
            throw std::invalid_argument("collect must be 1 ms or more");
        }
    }

  private:
    friend class detail::ConsumerCore;

    using OnEvent = std::function<void(const Event&)>;
    using Start = std::shared_ptr<void>(const Endpoint&, const Keys&, std::chrono::milliseconds,
                                        const OnEvent&);
    static Start start;

    /// Collects until the result is destroyed. Throws std::system_error when the process can have
    /// no more threads or descriptors.
    [[nodiscard]] std::shared_ptr<void> begin(const Endpoint& endpoint, const Keys& keys,
                                              const OnEvent& on_event) const {
        return m_start == nullptr ? nullptr : m_start(endpoint, keys, m_interval, on_event);
    }

    std::chrono::milliseconds m_interval{};
    Start* m_start = nullptr;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/collector/collect_interval.ipp>
#endif
