// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// An image service: three kinds of jobs in one queue, beside one that keeps its order, a job that
// recurs, one that is pushed once however often it is asked for, an attribute that reaches the log,
// and a time limit. SIGTERM may come at any time: each job is done once.
//
//     thumbnails redis://127.0.0.1 [push]    does the jobs, or pushes them

#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/job_log.hpp>
#include <orizuru/worker/recur.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

using namespace std::chrono_literals;
using std::chrono::sys_seconds;

namespace {

void say(std::string_view line) {
    std::puts(std::string(line).c_str());
    std::fflush(stdout);
}

void push(const std::string& uri) {
    orizuru::JobProducer<std::string> resizing(uri, "images", {.kind = "resize"});
    orizuru::JobProducer<std::string> enhancing(uri, "images", {.kind = "enhance"});
    orizuru::JobProducer<int> indexing(uri, "index");
    for (int i = 0; i < 400; ++i) {
        resizing.push("image " + std::to_string(i));
        indexing.push(i);
        enhancing.push("moon.png", {.delay = 200ms,
                                    .attributes = {{"trace", "7f3a"}},
                                    .unique = "moon.png"}); // only the first is pushed
    }
}

void enhance(const std::string& /*image*/, orizuru::JobContext<std::string>& job) {
    while (job.attempt() == 1) { // for ever, but for the time limit
        if (job.stop_token().stop_requested()) {
            throw std::runtime_error("interrupted");
        }
        std::this_thread::sleep_for(1ms);
    }
}

void work(const std::string& uri) {
    const auto resize = [](const std::string& /*image*/) { std::this_thread::sleep_for(10ms); };
    const auto sweep = [](sys_seconds time) {
        say("sweep " + std::to_string(time.time_since_epoch().count()));
    };
    const auto index = [](int number) { say("index " + std::to_string(number)); };
    const auto make_sweep = [](sys_seconds time) {
        auto job = orizuru::make_job(time);
        job.kind = "sweep";
        return job;
    };
    orizuru::Worker worker(uri, {.concurrency = 4, .observers = {orizuru::log_jobs(say)}});
    worker.serve("images", {.retry = {.backoff = orizuru::backoff::fixed(50ms)}})
        .handle<std::string>("images", "resize", resize)
        .handle<std::string>("images", "enhance", enhance, {.time_limit = 100ms})
        .handle<sys_seconds>("images", "sweep", sweep)
        .handle<int>("index", index, {.concurrency = 1}) // one after the other
        .recur<sys_seconds>("images", {{"sweep", orizuru::Cron("* * * * * *"), make_sweep}});
    worker.run_and_exit();
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: thumbnails <redis-uri> [push]\n", stderr);
        return 1;
    }
    try {
        (argc == 2 ? work : push)(argv[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "thumbnails: %s\n", error.what());
        return 1;
    }
}
