// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: decode does not take what the library has.

#include <orizuru/worker.hpp>

#include <string>

struct Plain {};

template <>
struct orizuru::Codec<Plain> {
    static Plain decode(const std::string&) { return {}; }
};

int main() {
    orizuru::Worker worker("redis://localhost");
    worker.handle<Plain>("queue", [](const Plain&) {});
}
