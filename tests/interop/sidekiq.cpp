// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A consumer and a producer of Sidekiq's jobs, which are JSON in the list queue:NAME.
//
// usage: sidekiq redis-uri consume COUNT     prints each payload
//        sidekiq redis-uri produce COUNT     jobs of the class Handler with the arguments 0 to
//        COUNT-1

#include <orizuru/orizuru.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

namespace {

using orizuru::Raw;

bool consume(const char* address, int count) {
    orizuru::Consumer<Raw> consumer(address, "queue:default", {.prefetch = 100});
    for (int i = 0; i < count; ++i) {
        auto job = consumer.next(std::chrono::seconds(60));
        if (!job) {
            return false;
        }
        std::cout << (*job)->bytes << '\n';
        if (!job->ack()) {
            return false;
        }
    }
    return !consumer.next(std::chrono::milliseconds(0));
}

void produce(const char* address, int count) {
    orizuru::Producer<Raw> producer(address, "queue:default");
    for (int i = 0; i < count; ++i) {
        char jid[32];
        std::snprintf(jid, sizeof jid, "%024d", i);
        producer.push(
            Raw{R"({"class":"Handler","args":[)" + std::to_string(i) + R"(],"jid":")" + jid +
                R"(","queue":"default","retry":false,"created_at":1.0,"enqueued_at":1.0})"});
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: sidekiq redis-uri consume|produce COUNT\n";
        return 2;
    }
    try {
        const int count = std::stoi(argv[3]);
        if (std::string(argv[2]) == "consume") {
            return consume(argv[1], count) ? 0 : 1;
        }
        produce(argv[1], count);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
