// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The membership of a job in a group (jobs/group.hpp). Its envelope names the group: `orz-group:`,
// the group's id of 32 hexadecimal digits, `:`, and the queue beside which the group lies. The step
// that ends the job takes it out of the group (detail/redis/scripts/group_ends.hpp). All others
// leave it in: retries, burials, redrives, moves to other queues.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/script.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace orizuru::detail {

class CachedScript;

inline constexpr std::string_view group_prefix = "orz-group:";

/// Returns the field `group` of an envelope.
[[nodiscard]] std::string group_field(const Keys& keys, std::string_view group_id);

/// A job in its group.
struct Membership {
    std::string group; ///< the group's key in Redis
    std::string field; ///< the member there
};
/// Reads that field; returns nothing if it names no group.
[[nodiscard]] std::optional<Membership> membership_of(std::string_view group_field,
                                                      std::string_view job_id);

/// Composes the ack of a member.
[[nodiscard]] Settlement acking_member(const GuardCore& guard, const Membership& member);

/// KEYS group; ARGV field
[[nodiscard]] Script ack_member_body();

// Scripts of a maker.

/// KEYS group, Keys::groups; ARGV names and values of its fields, of which `expires` is the second:
/// it goes then, if nobody pushes to it and it is not committed. Takes up to 100 that have expired
/// off the list.
[[nodiscard]] std::string_view open_group_script();
/// KEYS group, source; ARGV id and job by turns. Refused with the code CLOSED when the group is not
/// open, and when Redis' memory is full.
[[nodiscard]] const CachedScript& push_members_script();
/// KEYS group. Returns 1, 0 when it was committed before, -1 when there is none.
[[nodiscard]] std::string_view commit_group_script();

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/jobs/group/membership.ipp>
#endif
