// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: a Plain can be read, not written.

#include <orizuru/orizuru.hpp>

#include <string_view>

struct Plain {};

template <>
struct orizuru::Codec<Plain> {
    static Plain decode(std::string_view) { return {}; }
};

int main() {
    orizuru::Producer<Plain> producer("redis://localhost", "queue");
    producer.push(Plain());
}
