// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must compile: the same as its neighbours, and a Codec.

#include <orizuru/orizuru.hpp>

#include <string>
#include <string_view>

struct Plain {};

template <>
struct orizuru::Codec<Plain> {
    static std::string encode(const Plain&) { return {}; }
    static Plain decode(std::string_view) { return {}; }
};

int main() {
    orizuru::Producer<Plain> producer("redis://localhost", "queue");
    orizuru::Consumer<Plain> consumer("redis://localhost", "queue");
}
