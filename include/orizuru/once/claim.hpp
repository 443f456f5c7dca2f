// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What comes of claiming an id (once.hpp).

#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/reply.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace orizuru {

/// Who has claimed an id.
struct OnceToken {
    std::string id;
    /// Higher than that of every claim of the scope before, also when Redis was emptied meanwhile;
    /// not when its clock was set back as well, or that of the server which took over is behind.
    /// For whoever can refuse what comes too late.
    std::uint64_t fence = 0;

    friend bool operator==(const OnceToken&, const OnceToken&) = default;
};

struct Claim {
    enum class State {
        claimed, ///< by this call
        busy,    ///< by another one, whose lease holds
        done
    };

    State state;
    OnceToken token = {};                 ///< when claimed
    JobTime until = {};                   ///< when busy: the end of the lease, by Redis' clock
    std::chrono::milliseconds busy_for{}; ///< the same, from the call
    std::optional<std::string> result{};  ///< when done, if one was stored
};

namespace detail {

/// The reply of claim_script; none when it cannot be one.
[[nodiscard]] inline std::optional<Claim> read_claim(std::string_view id, Reply&& reply) {
    using Type = Reply::Type;
    using std::chrono::milliseconds;
    std::vector<Reply>& parts = reply.elements;
    const std::string_view state = parts.empty() ? std::string_view() : parts[0].text;
    if (state == "claimed" && parts.size() == 2 && parts[1].is(Type::string)) {
        const std::string& text = parts[1].text;
        OnceToken token{.id = std::string(id)};
        const char* const end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, token.fence);
        if (read.ec == std::errc{} && read.ptr == end) {
            return Claim{.state = Claim::State::claimed, .token = std::move(token)};
        }
    }
    if (state == "busy" && parts.size() == 3 && is_count(parts[1]) && is_count(parts[2])) {
        return Claim{.state = Claim::State::busy,
                     .until = JobTime(milliseconds(parts[1].integer)),
                     .busy_for = milliseconds(parts[2].integer)};
    }
    if (state == "done" && parts.size() == 2 &&
        (parts[1].is(Type::string) || parts[1].is(Type::nil))) {
        Claim done{.state = Claim::State::done};
        if (parts[1].is(Type::string)) {
            done.result = std::move(parts[1].text);
        }
        return done;
    }
    return std::nullopt;
}

} // namespace detail

} // namespace orizuru
