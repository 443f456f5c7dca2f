// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: msgpack cannot make a Plain that it reads.

#include <orizuru/orizuru.hpp>

struct Plain {
    explicit Plain(int chosen) : number(chosen) {}

    int number;

    MSGPACK_DEFINE(number)
};

int main() {
    orizuru::Consumer<Plain> consumer("redis://localhost", "queue");
    while (auto guard = consumer.next()) {
        guard->ack();
    }
}
