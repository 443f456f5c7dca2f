// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: nothing says how a Plain is read.

#include <orizuru/orizuru.hpp>

struct Plain {};

int main() {
    orizuru::Consumer<Plain> consumer("redis://localhost", "queue");
    while (auto guard = consumer.next()) {
        guard->ack();
    }
}
