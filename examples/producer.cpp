// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Puts a message on the queue `jobs` for each line of its input. In two terminals:
//
//     worker redis://127.0.0.1
//     producer redis://127.0.0.1
//
// Type lines into the second; it answers each with "<n> waiting", and the worker prints the line.
// Ends with its input. It reports a push that fails and does not repeat it: that is your decision,
// since the push may have reached Redis.

#include <orizuru/orizuru.hpp>

#include <exception>
#include <iostream>
#include <string>

namespace {

struct Errand {
    std::string text;
    int urgency = 0;
    MSGPACK_DEFINE(text, urgency)
};

} // namespace

int main(int argc, char** argv) {
    try {
        orizuru::Producer<Errand> jobs(argc == 2 ? argv[1] : "redis://127.0.0.1", "jobs");
        for (std::string line; std::getline(std::cin, line);) {
            try {
                const int urgency = line.ends_with('!') ? 1 : 0;
                std::cout << jobs.push({line, urgency}) << " waiting" << std::endl;
            } catch (const orizuru::ConnectionError& error) {
                std::cerr << (error.in_doubt() ? "pushed or not: " : "not pushed: ") << error.what()
                          << std::endl;
            }
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "producer: " << error.what() << '\n';
        return 1;
    }
}
