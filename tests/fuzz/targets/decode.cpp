// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Any payload, decoded into seven types: it is read as msgpack-c reads it within our limits, and
// what decodes is encoded and decoded to the same.
//
// input: the payload.

#include "input.hpp"
#include "messages.hpp"
#include "support/msgpack_itself.hpp"
#include "target.hpp"

#include <orizuru/detail/codec/msgpack_reader.hpp>

#include <msgpack.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace decode_target {

using namespace orizuru::test;
using orizuru::detail::MsgpackReader;

/// What `read` gives; nothing for what is refused in one of the ways that Codec names.
template <class Read>
auto unless_refused(Read read) -> std::optional<decltype(read())> {
    try {
        return read();
    } catch (const std::invalid_argument&) {
        return std::nullopt; // no msgpack, beyond a limit, or no T
    } catch (const msgpack::unpack_error&) {
        return std::nullopt; // msgpack's own word for the first
    }
}

void compare_readers(std::string_view payload) {
    msgpack::zone our_zone;
    msgpack::zone their_zone;
    MsgpackReader reader(payload, our_zone);
    const auto ours = unless_refused([&] { return reader.read(); });
    const auto theirs = unless_refused([&] { return unpacked(payload, their_zone); });
    check(ours.has_value() == theirs.has_value(), "we accept what msgpack accepts");
    check(!ours || same(*ours, *theirs), "we read what msgpack reads");
}

template <class T>
void decode(std::string_view payload) {
    const auto value = unless_refused([&] { return decoded<T>(payload); });
    if (value) {
        // Compared as bytes: a number that is none does not equal itself.
        const std::string bytes = encoded(*value);
        check(encoded(decoded<T>(bytes)) == bytes, "what decodes is encoded and decoded again");
    }
}

const orizuru::test::Target target("decode", [](Input input) {
    const std::string_view payload = input.rest();
    compare_readers(payload);
    decode<std::int64_t>(payload);
    decode<std::string>(payload);
    decode<Numbers>(payload);
    decode<Texts>(payload);
    decode<Table>(payload);
    decode<Order>(payload);
    decode<Tree>(payload);
});

} // namespace decode_target
