// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Helpers for processes that run a worker.

#pragma once

#include "integration/worker/worker_fixture.hpp"
#include "support/redis_client.hpp"

#include <orizuru/worker.hpp>

#include <functional>
#include <string>

namespace orizuru::test {

struct ServingFixture : WorkerFixture {
    /// It has a connection of its own, because another thread reports events meanwhile.
    using Handler = std::function<void(JobContext<Raw>&, RedisClient&)>;

    int serve(const Handler& handler, int concurrency = 1, const std::string& queue = "q") {
        WorkerOptions chosen = options(concurrency);
        chosen.signal_handling = orizuru::SignalHandling::worker;
        chosen.on_event = [this](const WorkerEvent& event) {
            if (event.kind == WorkerEventKind::report) {
                RedisClient(uri).lpush("reports", std::string(event.detail));
            }
        };
        Worker worker(uri, chosen);
        worker.handle<Raw>(queue, [&](JobContext<Raw>& context) {
            RedisClient own(uri);
            handler(context, own);
        });
        return worker.run();
    }
};

} // namespace orizuru::test
