// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: the header of handle_batch is not included.

#include <orizuru/jobs/batch.hpp>
#include <orizuru/worker.hpp>

#include <string>

int main() {
    orizuru::Worker worker("redis://localhost");
    worker.handle_batch<std::string>(
        "queue", [](orizuru::JobBatch<std::string>) {}, orizuru::BatchOptions());
}
