// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Must not compile: the header of log_jobs is not included.

#include <orizuru/worker.hpp>

#include <string>

int main() { orizuru::Worker worker("redis://localhost", {.observers = {orizuru::log_jobs()}}); }
