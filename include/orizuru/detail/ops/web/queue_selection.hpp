// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The queues that a viewer looks at: there may be thousands, and a page shows some.

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/web/host_name.hpp>
#include <orizuru/detail/ops/web/http_refusal.hpp>
#include <orizuru/detail/ops/web/percent.hpp>
#include <orizuru/detail/ops/web/queue_sampler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail::web {

/// The queues of a sample that a query chooses: `queue` is a whole name, `filter` a part of a name
/// in any case of ASCII; the page of them begins behind the `first` ones, and has `most`.
class QueueSelection {
  public:
    static constexpr std::uint64_t page_size = 50;

    /// The sample outlives this. Throws HttpRefusal for numbers that are none.
    QueueSelection(const QueueSample& sample, std::string_view query) {
        const auto number = [&](std::string_view name, std::uint64_t otherwise) {
            const auto text = query_value(query, name);
            const auto value = text ? whole_number(*text) : std::optional(otherwise);
            if (!value) {
                throw HttpRefusal{400, joined({"the parameter ", name, " is no number"})};
            }
            return *value;
        };
        const auto name = query_value(query, "queue");
        const std::string filter = lower(query_value(query, "filter").value_or(""));
        for (const QueueSample::Row& row : sample.rows) {
            if (name ? row.state.queue == *name
                     : filter.empty() || contains(row.state.queue, filter)) {
                m_rows.push_back(&row);
            }
        }
        m_first = std::min<std::uint64_t>(number("first", 0), m_rows.size());
        m_most = std::min({number("most", page_size), page_size, m_rows.size() - m_first});
    }

    /// All of them.
    [[nodiscard]] std::span<const QueueSample::Row* const> rows() const noexcept { return m_rows; }
    /// Those of the page.
    [[nodiscard]] std::span<const QueueSample::Row* const> page() const noexcept {
        return rows().subspan(narrow<std::size_t>(m_first), narrow<std::size_t>(m_most));
    }
    [[nodiscard]] std::uint64_t first() const noexcept { return m_first; }

  private:
    [[nodiscard]] static bool contains(std::string_view name, std::string_view part) {
        return lower(name).find(part) != std::string::npos;
    }

    std::vector<const QueueSample::Row*> m_rows;
    std::uint64_t m_first = 0;
    std::uint64_t m_most = 0;
};

} // namespace orizuru::detail::web
