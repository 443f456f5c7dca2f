// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs a script by its name in Redis' cache; sends its text only when the cache lacks it.

#include <orizuru/connection.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <string_view>

namespace orizuru::detail {

/// `arguments`: the number of keys, the keys, the rest. Throws as Connection::command.
template <class... Arguments>
Reply run_script(Connection& connection, std::string_view about, const CachedScript& script,
                 const Arguments&... arguments) {
    try {
        return connection.command(about, "EVALSHA", script.sha1(), arguments...);
    } catch (const ReplyError& error) {
        if (remedy_for(error) != Remedy::send_body) {
            throw;
        }
    }
    return connection.command(about, "EVAL", script.source(), arguments...);
}

/// Calls run("EVALSHA", name), and then run("EVAL", text) where Redis does not know the script, or
/// the user has the right to EVAL alone: a script that was refused has changed nothing.
template <class Run>
auto run_by_either(const CachedScript& script, Run run) {
    try {
        return run("EVALSHA", script.sha1());
    } catch (const ReplyError& error) {
        if (error.code() != "NOPERM" && remedy_for(error) != Remedy::send_body) {
            throw;
        }
    }
    return run("EVAL", script.source());
}

} // namespace orizuru::detail
