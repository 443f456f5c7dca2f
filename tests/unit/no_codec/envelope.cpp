// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: an envelope can be read, the Plain in it cannot.

#include <orizuru/consumer.hpp>
#include <orizuru/jobs/job.hpp>

struct Plain {};

int main() {
    orizuru::Consumer<orizuru::Job<Plain>> consumer("redis://localhost", "queue");
    while (auto guard = consumer.next()) {
        guard->ack();
    }
}
