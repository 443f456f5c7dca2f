// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A request to stop of one's own, which another one brings about, too.

#include <stop_token>
#include <utility>

namespace orizuru::detail {

/// Any thread, except for its end.
class LinkedStop {
  public:
    /// A stop is requested on the thread that requests one of `outer`.
    explicit LinkedStop(std::stop_token outer) : m_link(std::move(outer), StopBy{m_source}) {}
    LinkedStop(const LinkedStop&) = delete;
    LinkedStop& operator=(const LinkedStop&) = delete;
    ~LinkedStop() = default;

    [[nodiscard]] std::stop_source source() const noexcept { return m_source; }
    [[nodiscard]] std::stop_token token() const noexcept { return m_source.get_token(); }

  private:
    struct StopBy {
        std::stop_source source;
        void operator()() noexcept { source.request_stop(); }
    };

    std::stop_source m_source;
    std::stop_callback<StopBy> m_link;
};

} // namespace orizuru::detail
