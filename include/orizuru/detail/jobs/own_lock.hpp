// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Removes messages for people, with the lock of a unique job, or out of a group. It needs no
// msgpack: the message may be none of this library's.

#include <orizuru/connection.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/jobs/group/member_removal.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/unique_options.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Fields about the lock in a unique job's envelope.
struct UniqueFields {
    std::string_view job_id;
    std::string_view unique_id;
    std::string_view unique_queue;
    std::size_t before_queue; ///< bytes of the envelope before unique_queue
};
/// Returns nothing for what is no unique job.
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
/// Returns nothing for what is no unique job. `here`: the queue whose list it is in.
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

/// Runs a step that removes messages and releases their locks. A payload may name any queue for its
/// lock: when Redis refuses the step, it drops the locks that are in another slot of a Cluster
/// (CROSSSLOT), or not the queue's (NOPERM), and tries again. Throws as `step` when there are none.
template <class Step>
auto without_foreign_locks(std::span<std::optional<OwnLock>> locks, const Keys& here,
                           const Step& step) {
    for (;;) {
        try {
            return step();
        } catch (const ReplyError& error) {
            const bool elsewhere = error.code() == "CROSSSLOT";
            const std::string dead = here.dead();
            const std::string_view own = std::string_view(dead).substr(
                0, elsewhere ? dead.find('}') + 1 : dead.size() - std::string_view("dead").size());
            const auto is_foreign = [&](const std::optional<OwnLock>& lock) {
                return lock && !lock->key.starts_with(own);
            };
            if ((!elsewhere && error.code() != "NOPERM") ||
                std::ranges::none_of(locks, is_foreign)) {
                throw;
            }
            std::ranges::replace_if(locks, is_foreign, std::nullopt);
        }
    }
}

/// Removes a message from `key` by a script that takes its lock as the second key and value, if it
/// has one; false when it has gone. Throws as Connection::command.
inline bool remove_message(Connection& connection, std::string_view script, const std::string& key,
                           const std::string& bytes, std::string_view payload, const Keys& here) {
    // A ticket (order/job_order.hpp), found without msgpack, which may be missing here.
    const auto ticket = payload.rfind("orz-key:");
    if (ticket != std::string_view::npos && payload.find(here.source(), ticket) == ticket + 25) {
        throw std::invalid_argument("the job has its turn in the order of its key, and others wait "
                                    "for it: remove it by an Inspector");
    }
    if (may_be_member(payload)) {
        return remove_member(connection, key, bytes, payload, here);
    }
    std::optional<OwnLock> lock = own_lock(payload, here);
    return without_foreign_locks({&lock, 1}, here, [&] {
        return is_yes(
            lock ? connection.command(key, "EVAL", script, 2, key, lock->key, bytes, lock->value)
                 : connection.command(key, "EVAL", script, 1, key, bytes));
    });
}

} // namespace orizuru::detail
