// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How many shards a queue has, as Redis keeps it: "16 32" says that producers push to 16 shards,
// and that consumers also read the 32 to which the queue grows or from which it has shrunk.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/shards/shard_names.hpp>
#include <orizuru/error.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

class ShardLayout {
  public:
    static constexpr std::size_t most_shards = 1024;

    explicit ShardLayout(std::size_t written) : m_counts{written} {}
    /// Throws ProtocolError that names the queue for a text that is none.
    ShardLayout(std::string_view queue, std::string_view text) {
        for (std::size_t at = 0; at <= text.size();) {
            const std::size_t end = std::min(text.find(' ', at), text.size());
            const auto count = whole_number(text.substr(at, end - at));
            if (!count || *count < 1 || *count > most_shards) {
                throw ProtocolError(joined(
                    {"queue '", queue, "': '", text, "' in Redis are no numbers of shards"}));
            }
            m_counts.push_back(static_cast<std::size_t>(*count));
            at = end + 1;
        }
    }

    [[nodiscard]] std::string text() const {
        std::string text;
        for (const std::size_t count : m_counts) {
            text += joined({text.empty() ? "" : " ", Digits(count)});
        }
        return text;
    }

    /// To how many shards producers push.
    [[nodiscard]] std::size_t written() const noexcept { return m_counts.front(); }
    [[nodiscard]] bool reads(std::size_t count) const noexcept {
        return std::ranges::find(m_counts, count) != m_counts.end();
    }
    /// The names of all shards that are read.
    [[nodiscard]] std::vector<std::string> names(std::string_view queue) const {
        std::vector<std::string> all;
        for (const std::size_t count : m_counts) {
            for (std::string& name : shard_names(queue, count)) {
                if (std::ranges::find(all, name) == all.end()) {
                    all.push_back(std::move(name));
                }
            }
        }
        return all;
    }

    void read(std::size_t count) { m_counts.push_back(count); }
    /// Producers push to `count` shards, which are read already.
    void write(std::size_t count) noexcept {
        const auto place = std::ranges::find(m_counts, count);
        std::rotate(m_counts.begin(), place, place + 1);
    }

  private:
    std::vector<std::size_t> m_counts; ///< the first is written
};

} // namespace orizuru::detail
