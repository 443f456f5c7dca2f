// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The WAIT behind an LPUSH that replicas have to confirm.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/producer_options.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace orizuru::detail {

class ReplicaWait {
  public:
    /// None.
    ReplicaWait() = default;
    /// Throws std::invalid_argument.
    [[gnu::cold]] explicit ReplicaWait(const Replicas& replicas) : m_replicas(replicas) {
        if (replicas.count != 0) {
            check_count("replicas.count", replicas.count, 1000);
            check_time("replicas.within", replicas.within, std::chrono::milliseconds(1));
            append_command(m_command, "WAIT", replicas.count, replicas.within.count());
        }
    }

    [[nodiscard]] bool wanted() const noexcept { return !m_command.empty(); }
    /// Empty for none.
    [[nodiscard]] std::string_view command() const noexcept { return m_command; }
    /// How long it takes at most.
    [[nodiscard]] std::chrono::milliseconds time() const noexcept {
        return wanted() ? m_replicas.within : std::chrono::milliseconds(0);
    }
    /// `pushed`, when that is an error or the reply to WAIT tells of enough. Else throws
    /// ConnectionError.
    [[nodiscard]] Reply confirmed(Reply&& pushed, const Reply& waited) const {
        if (!pushed.is(Reply::Type::error) && !is_count(waited, m_replicas.count)) {
            refuse(waited);
        }
        return std::move(pushed);
    }

  private:
    [[noreturn]] [[gnu::cold]] void refuse(const Reply& reply) const {
        throw ConnectionError(reply.is(Reply::Type::error)
                                  ? joined({"pushed, but WAIT: ", reply.text})
                                  : joined({"pushed, but only ", Digits(reply.integer), " of ",
                                            Digits(m_replicas.count), " replicas have it after ",
                                            Digits(m_replicas.within.count()), " ms"}));
    }

    Replicas m_replicas;
    std::string m_command;
};

} // namespace orizuru::detail
