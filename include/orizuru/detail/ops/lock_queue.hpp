// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The name of a lock's queue in the envelope of a unique job. Jobs that are where they were pushed
// have none; a job that moves to another queue gets it, so that its ack there releases the lock.

#include <orizuru/detail/jobs/own_lock.hpp>
#include <orizuru/msgpack.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Returns how many bytes precede the missing name; nothing for a job that needs none, and for
/// other payloads.
[[nodiscard]] inline std::optional<std::size_t> before_lock_queue(std::string_view payload) {
    const auto fields = unique_fields(payload);
    const bool lacks_it = fields && fields->unique_queue.empty();
    return lacks_it ? std::optional(fields->before_queue) : std::nullopt;
}

/// As msgpack.
[[nodiscard]] inline std::string packed_name(std::string_view name) {
    std::string bytes;
    MsgpackAppender appender{bytes};
    msgpack::packer packer(appender);
    packer.pack_str(static_cast<std::uint32_t>(name.size()));
    packer.pack_str_body(name.data(), static_cast<std::uint32_t>(name.size()));
    return bytes;
}

} // namespace orizuru::detail
