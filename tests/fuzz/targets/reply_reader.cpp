// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Any bytes, as if a server had sent them: they are read the same wherever they are cut, what is
// read is what was written, and what is announced takes no memory.
//
// input: how the bytes are cut, how often they are repeated, the bytes.

#include "input.hpp"
#include "replies.hpp"
#include "target.hpp"

#include <orizuru/detail/redis/reply_reader.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace reply_reader_target {

using orizuru::ProtocolError;
using orizuru::Reply;
using orizuru::detail::ReplyReader;
using orizuru::test::check;
using orizuru::test::Input;
using orizuru::test::written;

constexpr std::size_t most_bytes = 8192;

struct Outcome {
    std::vector<std::string> replies; ///< as bytes
    std::string error;                ///< empty: the reader waits for more
    friend bool operator==(const Outcome&, const Outcome&) = default;
};

template <class ChunkSize>
Outcome outcome_of(std::string_view bytes, ChunkSize chunk_size) {
    Outcome outcome;
    ReplyReader reader;
    const std::size_t all = bytes.size();
    std::size_t shown = 0;
    try {
        do {
            const std::size_t size = std::min(chunk_size(), bytes.size());
            reader.feed(bytes.substr(0, size));
            bytes.remove_prefix(size);
            while (const Reply* const reply = reader.next()) {
                outcome.replies.push_back(written(*reply));
                shown += outcome.replies.back().size();
            }
        } while (!bytes.empty());
    } catch (const ProtocolError& error) {
        outcome.error = error.what();
    }
    check(shown <= all, "no reply is more than what was sent");
    return outcome;
}

const orizuru::test::Target target("reply_reader", [](Input input) {
    const auto cuts = input.number<std::uint8_t>();
    const std::size_t repeated = input.below(256);
    std::string bytes(input.rest());
    // Rarely: it takes long.
    for (std::size_t left = repeated > 250 ? repeated * repeated : 0;
         left > 0 && bytes.size() < most_bytes; --left) {
        bytes += input.rest();
    }
    const Outcome whole = outcome_of(bytes, [&] { return bytes.size(); });
    std::minstd_rand random(cuts + 1U);
    const std::size_t longest = 1U + cuts % 32U;
    const auto chunk_size = [&] { return 1U + random() % longest; };
    check(outcome_of(bytes, chunk_size) == whole, "a reply is the same wherever it is cut");
    std::string again;
    for (const std::string& reply : whole.replies) {
        again += reply;
    }
    const Outcome once_more = outcome_of(again, [&] { return again.size(); });
    check(once_more == Outcome{whole.replies, {}}, "what was read is read again");
});

} // namespace reply_reader_target
