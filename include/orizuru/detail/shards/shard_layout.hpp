// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The number of a queue's shards, as Redis keeps it: "16 32 @7" says that producers push to 16
// shards, that consumers also read the 32 to which the queue grows or from which it has shrunk, and
// that this was the change with the number 7.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/shards/shard_names.hpp>
#include <orizuru/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class ShardLayout {
  public:
    static constexpr std::size_t most_shards = 1024;

    ShardLayout(std::size_t written, std::uint64_t change) : m_counts{written}, m_change(change) {}
    /// Throws ProtocolError that names the queue for a text that no layout has.
    ShardLayout(std::string_view queue, std::string_view text) {
        const std::size_t mark = std::min(text.find(" @"), text.size());
        m_change = whole_number(text.substr(std::min(mark + 2, text.size()))).value_or(0);
        for (std::size_t at = 0; at <= mark;) {
            const std::size_t end = std::min(text.find(' ', at), text.size());
            m_counts.push_back(
                narrow<std::size_t>(whole_number(text.substr(at, end - at)).value_or(0)));
            at = end + 1;
        }
        const bool possible = std::ranges::all_of(
            m_counts, [](std::size_t count) { return count >= 1 && count <= most_shards; });
        if (!possible || this->text() != text) {
            throw ProtocolError(
                joined({"queue '", queue, "': '", text, "' in Redis are no numbers of shards"}));
        }
    }

    [[nodiscard]] std::string text() const {
        std::string text;
        for (const std::size_t count : m_counts) {
            text += joined({Digits(count), " "});
        }
        return joined({text, "@", Digits(m_change)});
    }

    /// To how many shards producers push.
    [[nodiscard]] std::size_t written() const noexcept { return m_counts.front(); }
    [[nodiscard]] bool reads(std::size_t count) const noexcept {
        return std::ranges::find(m_counts, count) != m_counts.end();
    }
    /// The number of the change that has led to it.
    [[nodiscard]] std::uint64_t change() const noexcept { return m_change; }
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

    /// Begins the next change.
    void advance() noexcept { ++m_change; }
    void read(std::size_t count) {
        if (!reads(count)) {
            m_counts.push_back(count);
        }
    }
    /// Producers push to `count` shards, which are read already.
    void write(std::size_t count) noexcept {
        const auto place = std::ranges::find(m_counts, count);
        std::rotate(m_counts.begin(), place, place + 1);
    }
    /// Only those that are written are read.
    void read_written() { m_counts.resize(1); }

  private:
    std::vector<std::size_t> m_counts; ///< the first is written
    std::uint64_t m_change = 0;
};

} // namespace orizuru::detail
