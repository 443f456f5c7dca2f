// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A program as a user would write it: one message there and back, then which libraries it was built
// with. The tests of this folder build it from outside of the source tree, in every way in which
// the library can be had. All that it uses must do without msgpack.

#include <orizuru/orizuru.hpp>

#include <hiredis/hiredis.h>
#if __has_include(<msgpack.hpp>)
#include <msgpack.hpp>
#endif

#include <chrono>
#include <exception>
#include <iostream>
#include <string>

namespace {

template <class Message>
bool there_and_back(const char* address, const Message& sent) {
    orizuru::Producer<Message> producer(address, "packaging");
    producer.push(sent);
    orizuru::Consumer<Message> consumer(address, "packaging");
    auto guard = consumer.next(std::chrono::seconds(10));
    return guard && **guard == sent && guard->ack();
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: consumer redis-uri\n";
        return 2;
    }
    try {
        if (!there_and_back(argv[1], orizuru::Raw{"x"})) {
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
