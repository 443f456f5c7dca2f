// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "second.hpp"

#include <chrono>

namespace second {

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
    };
    static_cast<void>(never);
    return out;
}

orizuru::Endpoint endpoint() { return "redis://localhost:7000"; }

orizuru::Script script() { return orizuru::Script("return 1"); }

void refuse() { throw orizuru::ReplyError("OOM", "OOM command not allowed"); }

} // namespace second
