// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tells what to do after a reply: the protocol decides, its driver acts. The first word of an error
// of Redis, where it is a code, tells what the error asks for.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/redis/place/redirections.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace orizuru::detail {

enum class Remedy : std::uint8_t {
    none,
    back_off,  ///< refused for now and not run: wait, then repeat
    reconnect, ///< the connection is of no more use: close it, and recover if registered
    send_body, ///< Redis does not know the script by its name, and has not run it
    recover,   ///< this list's commands are in doubt: find out which ran; the connection stays
    give_up    ///< only a person can fix it, and it has not run; the reason is for the user
};

struct Verdict {
    Remedy remedy = Remedy::none;
    std::string reason;
};

/// True if the user has no right to the command, or the server does not know it.
[[nodiscard]] [[gnu::cold]] inline bool may_not(const Reply& error) noexcept {
    return error.text.starts_with("NOPERM ") || error.text.starts_with("ERR ");
}

/// `recover` where the code tells nothing.
[[nodiscard]] [[gnu::cold]] inline Remedy remedy_for(std::string_view code,
                                                     std::string_view text) noexcept {
    const auto is_in = [code](std::initializer_list<std::string_view> codes) {
        return std::ranges::find(codes, code) != codes.end();
    };
    // Comes from SCRIPT KILL, which Redis allows only before a script's first write.
    const bool killed = code == "ERR" && text.find("ERR Script killed") != std::string_view::npos;
    if (is_redirected(text) || is_in({"READONLY", "MASTERDOWN", "UNBLOCKED"})) {
        return Remedy::reconnect;
    }
    if (killed ||
        is_in({"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MISCONF", "NOREPLICAS", "OOM"})) {
        return Remedy::back_off;
    }
    if (is_in({"NOAUTH", "WRONGPASS", "NOPERM", "MOVED", "ASK", "CROSSSLOT", "TLS"})) {
        return Remedy::give_up;
    }
    return code == "NOSCRIPT" ? Remedy::send_body : Remedy::recover;
}
[[nodiscard]] [[gnu::cold]] inline Remedy remedy_for(const Reply& error) noexcept {
    return remedy_for(error.code(), error.text);
}
[[nodiscard]] [[gnu::cold]] inline Remedy remedy_for(const ReplyError& error) noexcept {
    return remedy_for(error.code(), error.what());
}

/// True if the error of a command that is to wait is about the whole server, not about one key.
[[nodiscard]] [[gnu::cold]] inline bool holds_all(std::string_view error) noexcept {
    const std::string_view code = error.substr(0, error.find(' '));
    return code == "LOADING" || code == "BUSY" || code == "CLUSTERDOWN" || code == "MISCONF" ||
           code == "NOREPLICAS";
}

/// True if Redis may serve the same command later, here or elsewhere, without a person's help.
[[nodiscard]] [[gnu::cold]] inline bool is_for_now(const ReplyError& error) noexcept {
    const Remedy meaning = remedy_for(error);
    return meaning == Remedy::back_off || meaning == Remedy::reconnect;
}

/// True if a new connection to the same address may lead to another server, which can serve.
[[nodiscard]] inline bool refers_elsewhere(const Reply& reply) noexcept {
    return reply.is(Reply::Type::error) && remedy_for(reply) == Remedy::reconnect;
}

/// True if the server closes the connection because a string of the command is longer than its
/// proto-max-bulk-len. It has run neither this command nor those behind it.
[[nodiscard]] [[gnu::cold]] inline bool refuses_a_length(const Reply& reply) noexcept {
    return reply.is(Reply::Type::error) &&
           reply.text.find("invalid bulk length") != std::string::npos;
}

/// The verdict on an error reply to a command that is not in doubt.
[[nodiscard]] [[gnu::cold]] inline Verdict refused(const Reply& reply) {
    const Remedy remedy = remedy_for(reply);
    const bool known = remedy == Remedy::back_off || remedy == Remedy::reconnect;
    return {known ? remedy : Remedy::give_up, reply.text};
}

/// The text with a '?' for each control character: a terminal would act on it.
[[nodiscard]] [[gnu::cold]] inline std::string printable(std::string_view text) {
    std::string out(text);
    std::ranges::replace_if(
        out, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    return out;
}

/// An error of Redis as an exception: its first word is the code.
[[nodiscard]] [[gnu::cold]] inline ReplyError reply_error(std::string_view about,
                                                          std::string_view text) {
    return {printable(text.substr(0, text.find(' '))),
            joined({about, ": ", printable(text), hint_of_address(about, text)})};
}

} // namespace orizuru::detail
