// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: the header of handle_shards is not included.

#include <orizuru/worker.hpp>

#include <string>

int main() {
    orizuru::Worker worker("redis://localhost");
    worker.handle_shards<std::string>("queue", [](const std::string&) {});
}
