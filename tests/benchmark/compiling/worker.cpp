// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker of one queue.

#include <orizuru/worker.hpp>

#include <cstdio>
#include <string>

int main() {
    orizuru::Worker worker("redis://localhost");
    worker.handle<std::string>("greetings",
                               [](const std::string& greeting) { std::puts(greeting.c_str()); });
    return worker.run();
}
