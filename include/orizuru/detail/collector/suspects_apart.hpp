// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets suspects wait apart where there is a consumer that takes them from there, and returns those
// for which no consumer asks to the source.

#include <orizuru/connection.hpp>
#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace orizuru::detail {

/// Looks at a few of the consumers that have been heard.
class SuspectTakers {
  public:
    enum class Found { nobody_lives, none, some };

    /// Notes that of those registered all but the unheard are alive.
    void heard(const std::vector<std::string>& registered,
               const std::vector<std::string>& unheard) {
        const std::set<std::string> silent(unheard.begin(), unheard.end());
        m_heard.clear();
        for (const std::string& id : registered) {
            if (m_heard.size() < most_asked && !silent.contains(id)) {
                m_heard.push_back(id);
            }
        }
        m_found.reset();
    }
    [[nodiscard]] bool some_heard() const noexcept { return !m_heard.empty(); }
    /// Tells if some of them could take suspects when this was first asked behind `heard`.
    /// Redis: LRANGE of one element for each of up to 32, until one can. Throws as
    /// Connection::command.
    [[nodiscard]] Found found(Connection& connection, const Keys& keys) {
        if (!m_found) {
            const bool some = std::ranges::any_of(m_heard, [&](const std::string& id) {
                return is_one(connection, keys.processing(id));
            });
            m_found = some ? Found::some : some_heard() ? Found::none : Found::nobody_lives;
        }
        return *m_found;
    }

  private:
    // Where old consumers are many, suspects are handled as these know it.
    static constexpr std::size_t most_asked = 32;

    static bool is_one(Connection& connection, const std::string& processing) {
        try {
            const Reply header = connection.command(processing, "LRANGE", processing, -1, -1);
            if (!is_strings(header)) {
                refuse(connection, "LRANGE");
            }
            return header.elements.size() == 1 && takes_suspects(header.elements[0].text);
        } catch (const ReplyError& error) {
            if (error.code() != "WRONGTYPE" && error.code() != "NOPERM") {
                throw;
            }
            return false; // it has left
        }
    }

    std::vector<std::string> m_heard;
    std::optional<Found> m_found;
};

/// Moves suspects for which nobody asks to the serving end of the source. A user without the right
/// to it leaves them. Redis: EXISTS; where there are some, a script for each 1000. Throws as
/// Connection::command.
inline void return_suspects(Connection& connection, const Keys& keys) {
    try {
        const Reply some = connection.command(keys.suspects(), "EXISTS", keys.suspects());
        require_type(connection, some, Reply::Type::integer, "EXISTS");
        std::int64_t moved = some.integer;
        while (moved > 0) {
            const Reply step = run_script(connection, keys.source(), return_suspects_script, 3,
                                          keys.suspects(), keys.source(), keys.suspects_asked());
            if (!is_count(step)) {
                refuse(connection, "EVALSHA");
            }
            moved = step.integer;
        }
    } catch (const ReplyError& error) {
        if (error.code() != "NOPERM") {
            throw;
        }
    }
}

} // namespace orizuru::detail
