// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Uses what is beside queues: all of it must do without msgpack.

#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/progress.hpp>
#include <orizuru/jobs/recurring.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/once.hpp>
#include <orizuru/orizuru.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <thread>

namespace {

bool beside_queues(const char* address) {
    using orizuru::Raw;
    orizuru::Producer<Raw> producer(address, "later");
    orizuru::push_after(producer, std::chrono::milliseconds(1), Raw{"x"});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    orizuru::Recurring<Raw> recurring(
        address, "later", {{.name = "daily", .cron = orizuru::Cron("@daily"), .message = [](auto) {
                                return Raw{};
                            }}});
    orizuru::Progress progress(address, "later");
    progress.set("job", 0.5);
    orizuru::Once once(address, "later");
    return orizuru::Scheduler(address, "later").move_due() == 1 && recurring.push_due() == 0 &&
           orizuru::DeadList(address, "later").size() == 0 &&
           progress.get("job").value().fraction == 0.5 &&
           once.run("id", [] {}).outcome == orizuru::OnceOutcome::ran;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: jobs redis-uri\n";
        return 2;
    }
    try {
        if (!beside_queues(argv[1])) {
            return 1;
        }
        std::cout << "ok\n";
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
