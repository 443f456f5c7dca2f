// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A daemon that brings messages back to a queue: rejected ones, and those of consumers that died.
// Run one for each queue, or more: any number may run at once.
//
//     collector redis://127.0.0.1 jobs [seconds between passes, 10]
//
// prints "collecting", for each pass that moved something "3 reclaimed, 0 rejected, 0 buried", and
// at SIGTERM or Ctrl-C "stopped". An outage of Redis is told and waited out.

#include <orizuru/orizuru.hpp>

#include <chrono>
#include <csignal>
#include <ctime>
#include <exception>
#include <iostream>
#include <string>

namespace {

void collect_and_tell(orizuru::GarbageCollector& collector) {
    try {
        const orizuru::Collected moved = collector.collect();
        if (moved.reclaimed + moved.unacked + moved.buried > 0) {
            std::cout << moved.reclaimed << " reclaimed, " << moved.unacked << " rejected, "
                      << moved.buried << " buried" << std::endl;
        }
    } catch (const orizuru::Error& error) { // the moved messages stay moved; the next pass goes on
        std::cerr << error.what() << std::endl;
    }
}

} // namespace

int main(int argc, char** argv) {
    try {
        const std::string address = argc > 1 ? argv[1] : "redis://127.0.0.1";
        const std::string queue = argc > 2 ? argv[2] : "jobs";
        const timespec pause{argc > 3 ? std::stol(argv[3]) : 10, 0};

        // Blocked signals wait until sigwait takes them: this needs no handler and misses none.
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        sigprocmask(SIG_BLOCK, &signals, nullptr);

        orizuru::GarbageCollector collector(address, queue, {.on_event = [](const auto& event) {
                                                std::cerr << to_string(event.kind) << ": "
                                                          << event.detail << std::endl;
                                            }});
        std::cout << "collecting" << std::endl;
        do {
            collect_and_tell(collector);
        } while (sigtimedwait(&signals, nullptr, &pause) < 0);
        std::cout << "stopped" << std::endl;
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "collector: " << error.what() << '\n';
        return 1;
    }
}
