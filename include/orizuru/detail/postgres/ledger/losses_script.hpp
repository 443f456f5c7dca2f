// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads all that LedgerLosses has to know of a queue's messages in Redis.

#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/postgres/ledger/stamp.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

#include <string>
#include <string_view>

namespace orizuru::detail {

// KEYS[1] the ledger's mark, [2] source, [3] dead. ARGV[1] the time up to which the dead list was
// looked at, [2] how many bytes of a payload and [3] of a reason are of use, [4] how many entries
// are, [5] how many bytes of entries it reads at least before it stops. Returns
//   the mark, empty: none
//   the beginning of the message that is served next, nil: there is none
//   the beginning of the payload, the reason and the ledger_attempt of new entries, the oldest
//   first
//   the time up to which the dead list is looked at now
//   1 when there are more new entries, else 0
//
// Entries are pushed left and their times grow. The new ones are counted by doubling steps and then
// halving ones: O(log(n)) LINDEX of n new ones, one when there is none. An entry whose time lies in
// the future is from before the clock was set back, and not new. An element that is no entry has
// the time of the next older one.
inline std::string_view find_losses_script() {
    static constexpr auto script =
        reading_script(read_entry_function, ledger_attempt_function, R"lua(
local mark, source, dead = unpack(KEYS)
local refused = refusal({{mark, 'string'}, {source, 'list'}, {dead, 'list'}}, {{'TIME'},
    {'GET', mark}, {'LINDEX', source, '0'}, {'LINDEX', dead, '0'}, {'LLEN', dead}})
if refused then return refused end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local seen = math.min(tonumber(ARGV[1]), now)
local size = redis.call('LLEN', dead)
local function is_new(at)
    for i = at, math.min(at + 100, size - 1) do
        local _, _, _, _, time = read(redis.call('LINDEX', dead, i))
        if time then return time > seen and time <= now end
    end
    return false
end
local new, bound = 0, 1
while bound <= size and is_new(bound - 1) do new, bound = bound, bound * 2 end
bound = math.min(bound, size + 1)
while bound - new > 1 do
    local middle = math.floor((new + bound) / 2)
    if is_new(middle - 1) then new = middle else bound = middle end
end
local entries, bytes, newest, at = {}, 0, 0, new - 1
while at >= 0 and new - 1 - at < tonumber(ARGV[4]) and bytes < tonumber(ARGV[5]) do
    local entry = redis.call('LINDEX', dead, at)
    local first, last, reason, reason_end, time = read(entry)
    if first and time > seen and time <= now then
        entries[#entries + 1] = {string.sub(entry, first, math.min(last, first + ARGV[2] - 1)),
            string.sub(entry, reason, math.min(reason_end, reason + ARGV[3] - 1)),
            ledger_attempt(entry, first, last)}
        newest = math.max(newest, time)
    end
    bytes, at = bytes + #entry, at - 1
end
local more = at >= 0 and newest > 0
if more then
    -- There may be more of the same millisecond, but not for ever.
    seen = newest - 1 > seen and newest - 1 or newest
elseif newest > 0 then
    seen = math.min(newest, now - 1) -- more of this millisecond may come
end
local served = redis.call('LINDEX', source, -1)
return {redis.call('GET', mark) or '', served and string.sub(served, 1, ARGV[2]), entries, seen,
    more and 1 or 0}
)lua");
    return script;
}

} // namespace orizuru::detail
