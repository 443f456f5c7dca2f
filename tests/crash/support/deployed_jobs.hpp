// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The processes of rolling_jobs.cpp, in words that version 0.1.0 knows, too.

#pragma once

#include "crash/support/worker_storm.hpp"
#include "support/redis_client.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/worker.hpp>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::test {

/// The payload of a job is its number and a letter: f fails twice, d is for later, u has a lock, k
/// is of a kind, x fails until the diary has `mercy`, and p does none of that.
class DeployedJobs {
  public:
    static constexpr std::string_view letters = "fdukxp";

    /// Chooses among the processes by the first word; the others are the addresses of Redis and of
    /// the diary, or of Redis and the first number and how many numbers.
    static int run(const std::string& what, const std::string& uri, const std::string& third,
                   const std::string& fourth = "") {
        if (what == "work") {
            return work(uri, third);
        }
        if (what == "push") {
            push(uri, std::stoi(third), std::stoi(fourth));
        } else if (what == "redrive") {
            DeadList(uri, "q").redrive_all(std::stoull(third));
        } else {
            return 2;
        }
        return EXIT_SUCCESS;
    }

  private:
    static int work(const std::string& uri, const std::string& diary) {
        const RetryPolicy often{.max_attempts = 1000,
                                .backoff = backoff::fixed(std::chrono::milliseconds(20))};
        Worker worker(uri, WorkerStorm::options(2));
        worker
            .handle<Raw>(
                "q", [&](JobContext<Raw>& job) { handle(job, diary, ""); },
                {.retry = often, .lease = std::chrono::milliseconds(500), .max_recoveries = 1000})
            .handle<Raw>("q", "kind", [&](JobContext<Raw>& job) { handle(job, diary, "kind"); },
                         {.retry = often});
        return worker.run();
    }
    static void handle(JobContext<Raw>& job, const std::string& diary, const std::string& kind) {
        const std::string& payload = job->payload.bytes;
        const int before =
            job.attributes().count("before") == 1 ? std::stoi(job.attributes().at("before")) : 0;
        if (job.attributes().at("tag") != payload || job.kind() != kind ||
            before >= job.attempt() || (before == 0) != (job.attempt() == 1)) {
            WorkerStorm::write(diary, {"SADD", "wrong", payload});
        }
        job.set_attribute("before", std::to_string(job.attempt()));
        if (payload.back() == 'f' && job.attempt() < 3) {
            throw std::runtime_error("not yet");
        }
        if (payload.back() == 'x' && !RedisClient(diary).exists("mercy")) {
            throw std::runtime_error("no mercy");
        }
        WorkerStorm::write(diary, {"SADD", "done", payload});
    }
    static void push(const std::string& uri, int first, int count) {
        JobProducer<Raw> plain(uri, "q");
        JobProducer<Raw> of_kind(uri, "q", {.kind = "kind"});
        for (int number = first; number < first + count; ++number) {
            for (const char letter : letters) {
                const std::string payload = std::to_string(number) + letter;
                JobOptions options;
                options.expires_after = std::chrono::hours(1);
                options.attributes = {{"tag", payload}};
                options.delay = std::chrono::milliseconds(letter == 'd' ? 300 : 0);
                if (letter == 'x') {
                    options.max_attempts = 2;
                }
                if (letter == 'u') {
                    options.unique = payload;
                }
                JobProducer<Raw>& producer = letter == 'k' ? of_kind : plain;
                if (!producer.push(Raw{payload}, options)) {
                    throw std::runtime_error(payload + " was not pushed");
                }
            }
        }
    }
};

} // namespace orizuru::test
