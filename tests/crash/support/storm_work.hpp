// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The work of the processes of a storm on a queue.

#pragma once

#include "crash/support/consumer_work.hpp"
#include "crash/support/process.hpp"
#include "crash/support/producer_work.hpp"
#include "crash/support/steady_work.hpp"
#include "crash/support/work.hpp"

#include <orizuru/garbage_collector.hpp>

#include <cstdlib>
#include <stop_token>

namespace orizuru::test {

/// Runs in the child. Returns its exit status.
inline int do_work(const Work& work) {
    if (work.role == "producer") {
        ProducerWork(work).run();
    } else if (work.role == "consumer") {
        ConsumerWork(work).run();
    } else if (work.role == "steady") {
        SteadyWork(work).run();
        return EXIT_SUCCESS;
    } else {
        connected<GarbageCollector>(work.endpoint(), work.queue, storm_collector(work.index))
            ->run(std::stop_token(), storm_pass);
    }
    return EXIT_FAILURE; // it should have been killed
}

/// The main function of a program with such a storm.
template <class Parent>
int main_of_storm(int count, char** arguments, Parent parent) {
    return main_of_processes(count, arguments, do_work, parent);
}

} // namespace orizuru::test
