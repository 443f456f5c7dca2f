// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A program as a user would write it: one message there and back, some of what is beside queues,
// then which libraries it was built with. The tests of this folder build it from outside of the
// source tree, in every way in which the library can be had. All that it uses must do without
// msgpack.

#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/progress.hpp>
#include <orizuru/jobs/recurring.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/once.hpp>
#include <orizuru/orizuru.hpp>

#include <hiredis/hiredis.h>
#if __has_include(<msgpack.hpp>)
#include <msgpack.hpp>
#endif

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <thread>

namespace {

template <class Message>
bool there_and_back(const char* address, const Message& sent) {
    orizuru::Producer<Message> producer(address, "packaging");
    producer.push(sent);
    orizuru::Consumer<Message> consumer(address, "packaging");
    auto guard = consumer.next(std::chrono::seconds(10));
    return guard && **guard == sent && guard->ack();
}

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
        std::cerr << "usage: consumer redis-uri\n";
        return 2;
    }
    try {
        if (!there_and_back(argv[1], orizuru::Raw{"x"}) || !beside_queues(argv[1])) {
            return 1;
        }
#if __has_include(<msgpack.hpp>)
        if (!there_and_back(argv[1], std::string("x"))) {
            return 1;
        }
        std::cout << "msgpack " << MSGPACK_VERSION << '\n';
#else
        std::cout << "msgpack none\n";
#endif
        std::cout << "hiredis " << HIREDIS_MAJOR << '.' << HIREDIS_MINOR << '.' << HIREDIS_PATCH
                  << "\nok\n";
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
