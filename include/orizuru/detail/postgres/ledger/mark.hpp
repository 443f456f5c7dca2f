// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The mark shows whether Redis has all that was sent to it: a key that counts the sendings, written
// in one step with each. PostgreSQL has the same count.
//
//   Redis has         meaning
//   the same          nothing is missing
//   more, this epoch  a reconciler died between its sending and its COMMIT: its messages are sent
//                     again, as the count does not say which they were
//   anything else     Redis was lost, or went back in time: a new epoch begins, in which nothing
//   was
//                     sent yet
//
// The new epoch is committed before it is written to Redis, so that none has two beginnings. A
// sending's number is at least its transaction's. So the number of a sending that was rolled back
// is not used again: else a Redis that was away meanwhile would seem to have the later sending.
//
// PostgreSQL may go back in time as well, by a failover to a standby that was behind or from a
// backup. It may then have jobs again whose messages Redis no longer has. Its timeline shows that,
// and a new epoch begins too. A copy of its files, put back without a recovery, does not show it.

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru::detail {

struct LedgerMark {
    std::int64_t epoch = 0;
    std::int64_t sequence = 0;

    [[nodiscard]] std::string text() const {
        return std::to_string(epoch) + ':' + std::to_string(sequence);
    }
    /// True if a Redis that has `found` has all that was sent up to this.
    [[nodiscard]] bool included_in(const LedgerMark& found) const noexcept {
        return found.epoch == epoch && found.sequence >= sequence;
    }
};

/// The mark that Redis has; zeros when no reconciler has written it.
[[nodiscard]] inline LedgerMark parse_mark(std::string_view text) {
    const auto colon = std::min(text.find(':'), text.size());
    const auto epoch = whole_number(text.substr(0, colon));
    const auto sequence = whole_number(text.substr(std::min(colon + 1, text.size())));
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (!epoch || !sequence || *epoch > most || *sequence > most) {
        return {};
    }
    return {static_cast<std::int64_t>(*epoch), static_cast<std::int64_t>(*sequence)};
}

// KEYS[1] the mark, [2] source. ARGV[1] the mark expected, empty: none, [2] the next one, [3..]
// messages. Returns whether the expected one was there, else nothing has happened.
inline std::string_view send_script() {
    static constexpr auto script = adding_script(R"lua(
local mark, source = KEYS[1], KEYS[2]
local refused = refusal({{mark, 'string'}, {source, 'list'}},
    {{'GET', mark}, {'SET', mark, 'x'}, {'LPUSH', source, 'x'}})
if refused then return refused end
if (redis.call('GET', mark) or '') ~= ARGV[1] then return 0 end
if #ARGV > 2 then redis.call('LPUSH', source, unpack(ARGV, 3)) end
redis.call('SET', mark, ARGV[2])
return 1
)lua");
    return script;
}

} // namespace orizuru::detail
