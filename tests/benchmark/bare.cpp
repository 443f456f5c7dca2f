// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The program that only sends the library's commands, by hiredis. See run.py.

#include "benchmark/bare_consume.hpp"
#include "benchmark/bare_flow.hpp"
#include "benchmark/bare_held.hpp"
#include "benchmark/bare_jobs.hpp"
#include "benchmark/bare_produce.hpp"
#include "benchmark/program.hpp"

int main(int argc, char** argv) {
    using namespace orizuru::benchmark;
    return run(argc, argv,
               {
                   {"produce", bare_produce},
                   {"consume", bare_consume},
                   {"single", bare_single},
                   {"by_hand", bare_by_hand},
                   {"consumers", bare_consumers},
                   {"held", bare_held},
                   {"groups", bare_groups},
                   {"backlog", bare_backlog},
                   {"both", bare_both},
                   {"latency", bare_latency},
                   {"memory", bare_memory},
                   {"jobs", bare_jobs},
                   {"worker", bare_jobs},
                   {"queues", bare_queues},
                   {"lateness", bare_lateness},
               });
}
