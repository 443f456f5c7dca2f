// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Asks a Redis that is not there for its queues, by the command line.

#include <orizuru/ops/cli.hpp>

#include <array>

int main() {
    std::array<const char*, 4> arguments{"orizuru", "-u", "unix:///nowhere/redis.sock", "ls"};
    return orizuru::Cli().run(static_cast<int>(arguments.size()), arguments.data()) == 1 ? 0 : 1;
}
