// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

//: name = "this library"
//: server = "redis"
//: needs.command.redis-server = "redis-server"
//: needs.header."hiredis/hiredis.h" = "libhiredis-dev"
//: needs.header."msgpack.hpp" = "libmsgpack-cxx-dev"
//: libraries = "-lhiredis"
//: note = "encodes msgpack; a lease and a fence guard each message"
//:
//: [modes.single]
//: settings = "push; prefetch 1, immediate ack"
//: count = 20_000
//:
//: [modes.deferred]
//: settings = "push; prefetch 1, deferred ack"
//: count = 20_000
//:
//: [modes.batch]
//: settings = "push_all; prefetch 100, deferred ack"
//: count = 1_000_000
//:
//: [modes.large]
//: settings = "push_all; prefetch 1000, deferred ack"
//: count = 1_000_000

#include "support/client.hpp"

#include <orizuru/orizuru.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Message {
    std::uint64_t id = 0;
    std::string name;
    MSGPACK_DEFINE(id, name)
};

bool one_by_one(const peers::Task& task) {
    return task.rate > 0 || task.mode == "single" || task.mode == "deferred";
}

void produce(const peers::Task& task) {
    orizuru::Producer<Message> producer("unix://" + task.address, task.queue);
    std::vector<Message> messages(one_by_one(task) ? 1 : 10'000, Message{0, "sixteen letters."});
    const peers::Production production(task);
    for (std::uint64_t id = 0; id < task.count;) {
        if (task.rate > 0) {
            production.wait_for_turn(id);
            const auto name = peers::name_now();
            messages[0].name.assign(name.data(), name.size());
        }
        messages.resize(std::min<std::uint64_t>(messages.size(), task.count - id));
        for (auto& message : messages) {
            message.id = id++;
        }
        one_by_one(task) ? producer.push(messages[0]) : producer.push_all(messages);
    }
    production.done();
}

orizuru::ConsumerOptions options(const std::string& mode) {
    if (mode == "single") {
        return {};
    }
    const int prefetch = mode == "deferred" ? 1 : mode == "batch" ? 100 : 1000;
    return {.prefetch = prefetch, .ack = orizuru::AckMode::deferred};
}

void consume(const peers::Task& task) {
    orizuru::Consumer<Message> consumer("unix://" + task.address, task.queue, options(task.mode));
    peers::Tally tally(task);
    peers::ready();
    while (tally.missing() > 0) {
        auto guard = consumer.next();
        tally.handle((*guard)->id, (*guard)->name);
        if (!guard->ack()) {
            throw std::runtime_error("the lease was lost");
        }
    }
    if (consumer.flush() > 0) {
        throw std::runtime_error("an ack came too late");
    }
    tally.done();
}

} // namespace

int main(int argc, char** argv) { return peers::run(argc, argv, produce, consume); }
