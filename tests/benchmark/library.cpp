// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The same workloads through the library's public interface. See run.py.

#include "benchmark/library_consume.hpp"
#include "benchmark/library_flow.hpp"
#include "benchmark/library_held.hpp"
#include "benchmark/library_jobs.hpp"
#include "benchmark/library_produce.hpp"
#include "benchmark/program.hpp"

int main(int argc, char** argv) {
    using namespace orizuru::benchmark;
    return run(argc, argv,
               {
                   {"produce", library_produce},
                   {"consume", library_consume},
                   {"single", library_consume},
                   {"by_hand", library_consume},
                   {"consumers", library_consumers},
                   {"held", library_held},
                   {"groups", library_groups},
                   {"backlog", library_backlog},
                   {"both", library_both},
                   {"latency", library_latency},
                   {"memory", library_memory},
                   {"jobs", library_jobs},
                   {"worker", library_worker},
                   {"queues", library_worker},
                   {"lateness", library_lateness},
               });
}
