// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "second.hpp"

namespace second {

std::string use_all() {
    std::string out = orizuru::Keys("queue").unack();
    orizuru::Codec<int>::encode(7, out);
    const auto never = [] {
        orizuru::Producer<std::string> producer("redis://localhost", "queue");
        orizuru::Consumer<std::string> consumer("redis://localhost", "queue");
        orizuru::GarbageCollector collector("redis://localhost", "queue");
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
        orizuru::Progress("redis://localhost", "queue").set("job", 1);
        orizuru::Once("redis://localhost", "queue").renew();
        orizuru::Pause("redis://localhost", "queue").pause();
    };
    static_cast<void>(never);
    return out;
}

orizuru::Endpoint endpoint() { return "redis://localhost:7000"; }

orizuru::Script script() { return orizuru::Script("return 1"); }

void refuse() { throw orizuru::ReplyError("OOM", "OOM command not allowed"); }

} // namespace second
