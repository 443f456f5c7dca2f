// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the tests of queues with keys.

#pragma once

#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace orizuru::test {

/// The jobs that wait behind the one of the key that is out.
inline Texts jobs_behind(RedisClient& redis, const std::string& key) {
    Texts found;
    for (const std::string& element : redis.lrange("orizuru:{q}:key:" + key)) {
        if (element.size() > 16) {
            found.push_back(WorkerFixture::job_of(element.substr(16)).payload.bytes);
        }
    }
    return found;
}

struct Keyed : WorkerFixture {
    KeyedJobProducer<Raw> producer{uri, "q"};

    void push(const std::string& key, const Texts& payloads) {
        for (const std::string& payload : payloads) {
            producer.push(key, Raw{payload});
        }
    }
    static std::string order(const std::string& key) { return "orizuru:{q}:key:" + key; }
    Texts behind(const std::string& key) { return jobs_behind(redis, key); }
    /// The keys that are counted, with the jobs behind theirs, the sum of all below zero first.
    Texts counted() {
        Texts all;
        for (const auto& one :
             redis.command({"ZRANGE", "orizuru:{q}:keyed", "0", "-1", "WITHSCORES"}).elements) {
            all.push_back(one.text);
        }
        return all;
    }
    bool no_order_left() { return redis.keys("orizuru:{q}:key:*").empty(); }
    /// Runs a worker until all is handled.
    void serve(orizuru::QueueOptions chosen = {}, int concurrency = 1,
               const KeyedOptions& keyed = {}) {
        Worker worker(uri, options(concurrency));
        worker.handle_keyed<Raw>("q", write_down(), std::move(chosen), keyed);
        const Running running(worker);
        CHECK(eventually([this] { return nothing_left() && no_order_left(); }));
        const Texts left = counted();
        CHECK((left.empty() || left == Texts{"", "0"}));
    }
};

} // namespace orizuru::test
