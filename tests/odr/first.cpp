// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Values and exceptions pass between two translation units that both include the whole library.

#include "second.hpp"

#include <chrono>
#include <cstdio>
#include <string>

namespace {

std::string use_all() {
    std::string out = orizuru::Keys("queue").unack();
    orizuru::Codec<int>::encode(7, out);
    const auto never = [] {
        orizuru::Producer<std::string> producer("redis://localhost", "queue");
        orizuru::Consumer<std::string> consumer("redis://localhost", "queue");
        orizuru::GarbageCollector collector("redis://localhost", "queue");
        const orizuru::BackgroundCollector collecting("redis://localhost", "queue",
                                                      std::chrono::seconds(5));
        producer.push("text");
        if (auto guard = consumer.next()) {
            guard->ack();
        }
        collector.collect();
        orizuru::JobProducer<std::string>("redis://localhost", "queue").push("text");
        orizuru::Worker worker("redis://localhost");
        worker.handle<std::string>("queue", [](const std::string&) {});
        worker.handle_batch<int>("numbers", [](orizuru::JobBatch<int>) {}, {});
        worker.run();
        orizuru::Recurring<int>("redis://localhost", "queue", {}).push_due();
        orizuru::DeadList("redis://localhost", "queue").trim();
        orizuru::ScheduledList("redis://localhost", "queue").cancel({});
        orizuru::Progress("redis://localhost", "queue").set("job", 1);
        orizuru::Once("redis://localhost", "queue").renew();
        orizuru::Pause("redis://localhost", "queue").pause();
    };
    static_cast<void>(never);
    return out;
}

bool same() {
    return use_all() == second::use_all() && second::endpoint().port() == 7000 &&
           second::script().sha1() == orizuru::Script("return 1").sha1();
}

bool caught() {
    try {
        second::refuse();
    } catch (const orizuru::ReplyError& error) {
        return error.code() == "OOM";
    }
}

} // namespace

int main() {
    if (!same() || !caught()) {
        std::puts("the translation units do not agree");
        return 1;
    }
}
