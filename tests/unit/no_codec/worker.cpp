// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: nothing says how a Plain is read.

#include <orizuru/worker.hpp>

struct Plain {};

int main() {
    orizuru::Worker worker("redis://localhost");
    worker.handle<Plain>("queue", [](const Plain&) {});
}
