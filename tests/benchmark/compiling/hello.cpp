// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer and a consumer, as at the beginning of README.

#include <orizuru/orizuru.hpp>

#include <cstdio>
#include <string>

int main() {
    orizuru::Producer<std::string> producer("redis://localhost", "greetings");
    producer.push("hello");
    orizuru::Consumer<std::string> consumer("redis://localhost", "greetings");
    if (auto guard = consumer.next()) {
        std::puts((*guard)->c_str());
        guard->ack();
    }
}
