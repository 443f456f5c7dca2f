// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The queue that a key of the library belongs to (keys.hpp).

#include <orizuru/keys.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// True if a key can end so, behind its queue's part.
[[nodiscard]] inline bool ends_a_key(std::string_view text) {
    static constexpr std::array<std::string_view, 26> words{
        "consumers",    "unack",      "dead",      "recoveries",     "collected",
        "swept",        "scheduled",  "recurring", "paused",         "scheduled:sequence",
        "fences",       "schedulers", "shards",    "ledger",         "scheduled:wake",
        "counts",       "writes",     "suspects",  "suspects:asked", "keyed",
        "keyed:upkeep", "cancelled",  "groups",    "rate",           "slots",
        "slots:freed"};
    static constexpr std::array<std::string_view, 12> before_ids{
        "heartbeat:", "processing:", "unique:", "progress:", "result:", "once:",
        "worker:",    "counts:",     "key:",    "burst:",    "rate:",   "group:"};
    return std::ranges::find(words, text) != words.end() ||
           std::ranges::any_of(before_ids,
                               [&](std::string_view word) { return text.starts_with(word); });
}

/// Returns nothing for a key that is none of a queue's.
[[nodiscard]] inline std::optional<std::string> queue_of_key(std::string_view key) {
    constexpr std::string_view beginning = "orizuru:{";
    const auto close = key.find("}:");
    if (!key.starts_with(beginning) || close == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view tag = key.substr(beginning.size() - 1, close + 2 - beginning.size());
    const std::string_view rest = key.substr(close + 2);
    std::string_view name = tag.substr(1, tag.size() - 2);
    const auto tagged = rest.find(tag);
    if (tagged != std::string_view::npos && !ends_a_key(rest)) { // the name has the hash tag in it
        auto end = rest.find(':', tagged + tag.size());
        while (end != std::string_view::npos && !ends_a_key(rest.substr(end + 1))) {
            end = rest.find(':', end + 1);
        }
        name = rest.substr(0, end);
    }
    try {
        const Keys keys{std::string(name)};
        const std::string any = keys.dead();
        const bool its = key.starts_with(std::string_view(any).substr(0, any.rfind(':') + 1));
        return its ? std::optional(keys.source()) : std::nullopt;
    } catch (const std::invalid_argument&) {
        return std::nullopt; // no queue has such a name
    }
}

} // namespace orizuru::detail
