// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Takes messages from the queue `jobs`, which `producer` fills, until Ctrl-C or SIGTERM.
//
//     worker redis://127.0.0.1
//
// prints "waiting as worker:...", then "done: ..." for each message, and at the end "stopped". Any
// number of workers can run at once. Restart Redis meanwhile: they wait and go on. `collector`
// brings back the messages of a killed one.

#include <orizuru/orizuru.hpp>

#include <csignal>
#include <exception>
#include <iostream>
#include <string>

namespace {

struct Errand {
    std::string text;
    int urgency = 0;
    MSGPACK_DEFINE(text, urgency)
};

void tell(const orizuru::Event& event) {
    std::cerr << to_string(event.kind) << ": " << event.detail << std::endl;
}

} // namespace

int main(int argc, char** argv) {
    try {
        orizuru::Consumer<Errand> jobs(argc == 2 ? argv[1] : "redis://127.0.0.1", "jobs",
                                       {.name = "worker", .on_event = tell});
        // stop() may be called in a signal handler; a handler finds no local variables.
        static auto& stopped_by_signal = jobs;
        for (const int number : {SIGINT, SIGTERM}) {
            std::signal(number, [](int) { stopped_by_signal.stop(); });
        }

        std::cout << "waiting as " << jobs.name() << std::endl;
        for (auto& job : jobs) {
            std::cout << "done: " << job->text << (job->urgency > 0 ? " (urgent)" : "")
                      << std::endl;
            if (!job.ack()) {
                std::cout << "too late: someone else gets it, too" << std::endl;
            }
        }
        for (const int number : {SIGINT, SIGTERM}) {
            std::signal(number, SIG_DFL); // the consumer ends now
        }
        std::cout << "stopped" << std::endl;
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "worker: " << error.what() << '\n';
        return 1;
    }
}
