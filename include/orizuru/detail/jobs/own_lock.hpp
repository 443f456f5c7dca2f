// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Removes a message from a list for people, with the lock of a unique job. It needs no msgpack: the
// message may be none of this library's.

#include <orizuru/connection.hpp>
#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/unique_options.hpp>
#include <orizuru/keys.hpp>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// What the envelope of a unique job says of its lock.
struct UniqueFields {
    std::string_view job_id;
    std::string_view unique_id;
    std::string_view unique_queue;
    std::size_t before_queue; ///< how many bytes of the envelope precede unique_queue
};
/// Nothing for what is no unique job.
[[nodiscard]] inline std::optional<UniqueFields> unique_fields(std::string_view payload) {
    EnvelopeStart envelope(payload);
    if (!envelope.enter_array() || !envelope.pass_unsigned()) {
        return std::nullopt;
    }
    const auto job_id = envelope.text();
    if (!job_id || !envelope.pass_unsigned() || !envelope.integer() || !envelope.integer() ||
        !envelope.pass_optional_integer() || !envelope.pass_optional_integer() ||
        !envelope.text()) {
        return std::nullopt;
    }
    const auto unique_id = envelope.text();
    const std::size_t before_queue = payload.size() - envelope.left();
    const auto unique_queue = envelope.text();
    if (!unique_id || unique_id->empty() || !unique_queue) {
        return std::nullopt;
    }
    return UniqueFields{*job_id, *unique_id, *unique_queue, before_queue};
}

/// A lock that the ack of a job in a payload would release.
struct OwnLock {
    std::string key;
    std::string value;
};
/// Nothing for what is no unique job. `here`: the queue whose list it is in.
[[nodiscard]] inline std::optional<OwnLock> own_lock(std::string_view payload, const Keys& here) {
    const auto fields = unique_fields(payload);
    if (!fields) {
        return std::nullopt;
    }
    try {
        return OwnLock{lock_key(std::string(fields->unique_queue), fields->unique_id, here),
                       lock_of(UniqueRelease::on_ack, fields->job_id)};
    } catch (const std::invalid_argument&) {
        return std::nullopt; // no queue has such a name
    }
}

/// Removes an element of a list; false when it has gone. Throws as DeadList::remove.
inline bool remove_element(Connection& connection, const std::string& list,
                           const std::string& bytes, const std::optional<OwnLock>& lock) {
    const auto remove = [&](const auto&... keys_and_values) {
        return is_yes(connection.command(list, "EVAL", remove_dead_script(), keys_and_values...));
    };
    try {
        return lock ? remove(2, list, lock->key, bytes, lock->value) : remove(1, list, bytes);
    } catch (const ReplyError& error) {
        if (!lock || error.code() != "CROSSSLOT") {
            throw;
        }
    }
    return remove(1, list, bytes); // a payload may name any queue for its lock
}

} // namespace orizuru::detail
