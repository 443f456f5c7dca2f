// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The WAIT behind a push that replicas have to confirm.

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
    /// Returns how long it takes at most.
    [[nodiscard]] std::chrono::milliseconds time() const noexcept {
        return wanted() ? m_replicas.within : std::chrono::milliseconds(0);
    }
    /// True if the push was refused, or the reply to WAIT tells of enough.
    [[nodiscard]] bool enough(const Reply& pushed, const Reply& waited) const noexcept {
        return pushed.is(Reply::Type::error) || is_count(waited, m_replicas.count);
    }
    [[nodiscard]] [[gnu::cold]] std::string shortage(const Reply& waited) const {
        return waited.is(Reply::Type::error)
                   ? joined({"done, but WAIT: ", waited.text})
                   : joined({"done, but only ", Digits(waited.integer), " of ",
                             Digits(m_replicas.count), " replicas have it after ",
                             Digits(m_replicas.within.count()), " ms"});
    }
    /// `pushed`, when there are enough. Else throws ConnectionError.
    [[nodiscard]] Reply confirmed(Reply&& pushed, const Reply& waited) const {
        if (!enough(pushed, waited)) {
            throw ConnectionError(shortage(waited), ConnectionError::Outcome::in_doubt);
        }
        return std::move(pushed);
    }

  private:
    Replicas m_replicas;
    std::string m_command;
};

} // namespace orizuru::detail
