// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Repairs the append-only file of a redis-server that was killed.
//
// A kill in the middle of a write can leave the beginning of a script's MULTI ... EXEC at the end
// of the file. Redis (seen with 7.0.15) ignores it at the next start and cuts off only its last,
// incomplete command; what is then written behind it closes the transaction, and the start after
// that runs half a script. `redis-check-aof --fix` cuts off the whole transaction.

#pragma once

#include "support/posix.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::test {

/// `folder` is the server's `--dir`; `server` is its program, which lies beside redis-check-aof.
/// Does nothing if the server has never written such a file.
inline void repair_append_only_file(const std::string& folder, std::string_view server) {
    const std::string manifest = folder + "/appendonlydir/appendonly.aof.manifest";
    if (!std::filesystem::exists(manifest)) {
        return;
    }
    constexpr std::string_view last_word = "server";
    const std::string program =
        std::string(server.substr(0, server.size() - last_word.size())) + "check-aof";
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        throw_errno("pipe");
    }
    const Fd input{ends[0]};
    Fd answer{ends[1]};
    if (::write(answer.get(), "y\n", 2) != 2) { // to "Continue?"
        throw_errno("write to a pipe");
    }
    answer.reset();
    const std::string output = folder + "/check.log";
    int status = 0;
    wait_for(spawn({program, "--fix", manifest}, input.get(), output), 0, &status);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        throw std::runtime_error(program + " failed: " + contents_of(output));
    }
}

} // namespace orizuru::test
