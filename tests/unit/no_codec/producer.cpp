// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: nothing says how a Plain is written.

#include <orizuru/orizuru.hpp>

struct Plain {};

int main() {
    orizuru::Producer<Plain> producer("redis://localhost", "queue");
    producer.push(Plain());
}
