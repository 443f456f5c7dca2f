// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A retry pipeline of three queues: a message that fails moves on to the next queue, which could
// have slower consumers; one that fails everywhere is buried.  retry_pipeline <redis-uri>  prints
//
//     mail: sent to ada@example.org
//     mail: bob@busy.example goes to mail:retry1
//     mail: nobody@nowhere.example goes to mail:retry1
//     mail:retry1: sent to bob@busy.example
//     mail:retry1: nobody@nowhere.example goes to mail:retry2
//     mail:retry2: nobody@nowhere.example is buried

#include <orizuru/orizuru.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

namespace {

struct Mail {
    std::string to;
    MSGPACK_DEFINE(to)
};

const std::array<std::string, 3> queues{"mail", "mail:retry1", "mail:retry2"};

/// One address is always reached, one at the second attempt, one never.
void send(const Mail& mail, std::size_t attempt) {
    if (mail.to == "nobody@nowhere.example" || (mail.to == "bob@busy.example" && attempt == 0)) {
        throw std::runtime_error("550 mailbox unavailable");
    }
}

/// Handles the queue of this attempt, and returns when it is empty.
void attempt(const orizuru::Endpoint& redis, std::size_t number) {
    orizuru::Consumer<Mail> mails(redis, queues[number]);
    while (auto mail = mails.next(std::chrono::milliseconds(0))) {
        std::cout << queues[number] << ": ";
        try {
            send(**mail, number);
        } catch (const std::runtime_error& error) {
            // Each is one step in Redis: the mail is always in exactly one queue.
            if (number + 1 < queues.size()) {
                mail->push(queues[number + 1]);
                std::cout << (*mail)->to << " goes to " << queues[number + 1] << '\n';
            } else {
                mail->bury(error.what());
                std::cout << (*mail)->to << " is buried\n";
            }
            continue;
        }
        mail->ack();
        std::cout << "sent to " << (*mail)->to << '\n';
    }
}

} // namespace

int main(int argc, char** argv) {
    try {
        const orizuru::Endpoint redis(argc == 2 ? argv[1] : "");
        orizuru::Producer<Mail>(redis, queues[0])
            .push_all({{"ada@example.org"}, {"bob@busy.example"}, {"nobody@nowhere.example"}});
        for (std::size_t number = 0; number < queues.size(); ++number) {
            attempt(redis, number);
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "retry_pipeline: " << error.what() << '\n';
        return 1;
    }
}
