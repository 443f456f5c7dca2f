// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: the header of recur is not included.

#include <orizuru/jobs/recurring.hpp>
#include <orizuru/worker.hpp>

#include <string>
#include <vector>

int main() {
    orizuru::Worker worker("redis://localhost");
    worker.recur<std::string>("queue",
                              std::vector<orizuru::Recurrence<orizuru::Job<std::string>>>());
}
