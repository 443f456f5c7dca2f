// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: the handler's result would be lost.

#include <orizuru/worker.hpp>

#include <string>

int main() {
    orizuru::Worker worker("redis://localhost");
    worker.handle<std::string>("queue", [](const std::string& text) { return text.empty(); });
}
