// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A program compiled with the library of version 0.1.0, which git has.

#pragma once

#include "support/posix.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <stdexcept>
#include <string>

namespace orizuru::test {

class OlderVersion {
  public:
    /// Compiles a source of tests/crash. Takes as long as a compiler takes.
    explicit OlderVersion(const std::string& source, const std::string& more_packages = "")
        : m_source(source) {
        const std::string log = m_folder.path() + "/log";
        pid_t pid = spawn({"/bin/bash", "-c", script, "bash", SOURCE_ROOT, commit, m_folder.path(),
                           COMPILER, source, more_packages},
                          Fd{::open("/dev/null", O_RDONLY | O_CLOEXEC)}.get(), log);
        int status = 0;
        wait_for(pid, 0, &status);
        if (WIFEXITED(status) && WEXITSTATUS(status) == no_history) {
            m_missing =
                std::string("skipped: there is no history of git with the commit ") + commit;
        } else if (status != 0) {
            throw std::runtime_error(std::string("the library of ") + commit + ": " +
                                     contents_of(log));
        }
    }

    /// Why there is no such program.
    [[nodiscard]] const std::optional<std::string>& missing() const noexcept { return m_missing; }
    [[nodiscard]] std::string program() const { return m_folder.path() + "/" + m_source; }

  private:
    static constexpr const char* commit = "583a45e";
    static constexpr int no_history = 77;
    /// A clone without its history, or sources that were never in one, cannot have it; elsewhere it
    /// must be there. Nothing is fetched.
    static constexpr auto script = R"sh(
        set -euo pipefail
        root=$1 commit=$2 folder=$3 compiler=$4 source=$5 packages=$6
        cd "$root"
        if ! git cat-file -e "$commit^{commit}"; then
            shallow=$(git rev-parse --is-shallow-repository || echo true)
            [ "$shallow" = false ] || exit 77
            exit 1
        fi
        git archive "$commit" include | tar -x -C "$folder"
        flags=$(pkg-config --cflags --libs hiredis openssl $packages)
        $compiler -std=c++20 -O1 -w -pthread -DMSGPACK_NO_BOOST -DSOURCE_ROOT="\"$root\"" \
            -I"$folder/include" -Itests "tests/crash/$source.cpp" -o "$folder/$source" $flags
    )sh";

    const std::string m_source;
    TempDir m_folder;
    std::optional<std::string> m_missing;
};

} // namespace orizuru::test
