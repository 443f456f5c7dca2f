// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// An image service in one program: three kinds of jobs in one queue, a queue that keeps its order
// beside it, a job that recurs, one that is pushed once however often it is asked for, an attribute
// that reaches a log line, a time limit, and SIGTERM in the middle. The totals must be exact.
//
// usage: thumbnails redis://127.0.0.1

#include <orizuru/connection.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/recur.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

struct Image {
    std::string name;
    int width = 0;
    MSGPACK_DEFINE(name, width)
};

constexpr int most = 400;

void log(orizuru::JobRun& job, const std::function<void()>& next) {
    next();
    if (const auto trace = job.attributes().find("trace"); trace != job.attributes().end()) {
        std::printf("%s, attempt %d, trace %s\n", job.kind().c_str(), job.attempt(),
                    trace->second.c_str());
        std::fflush(stdout);
    }
}

void work(const std::string& uri) {
    const auto note = [uri](const char* command, const std::string& key, const std::string& what) {
        thread_local orizuru::Connection connection(uri);
        connection.command(key, command, key, what);
    };
    const auto enhance = [note](const Image& image, orizuru::JobContext<Image>& job) {
        while (job.attempt() == 1) { // for ever: the time limit asks it to stop
            if (job.stop_token().stop_requested()) {
                throw std::runtime_error("interrupted");
            }
            std::this_thread::sleep_for(1ms);
        }
        note("SADD", "thumbnails:enhanced", image.name);
    };
    const auto sweep = [](std::chrono::sys_seconds time) {
        auto job = orizuru::make_job(time);
        job.kind = "sweep";
        return job;
    };
    orizuru::Worker worker(uri, {.concurrency = 4, .handle_middleware = {log}});
    worker.serve("images", {.retry = {.backoff = orizuru::backoff::fixed(50ms)}})
        .handle<Image>("images", "resize",
                       [note](const Image& image) {
                           std::this_thread::sleep_for(2ms);
                           note("SADD", "thumbnails:resized", image.name);
                       })
        .handle<Image>("images", "enhance", enhance, {.time_limit = 100ms})
        .handle<std::chrono::sys_seconds>("images", "sweep",
                                          [note](std::chrono::sys_seconds time) {
                                              note("RPUSH", "thumbnails:swept",
                                                   std::to_string(time.time_since_epoch().count()));
                                          })
        .handle<int>("index",
                     [note](int number) { // one after the other
                         note("RPUSH", "thumbnails:index", std::to_string(number));
                     },
                     {.concurrency = 1})
        .recur<std::chrono::sys_seconds>(
            "images", {{.name = "sweep", .cron = orizuru::Cron("* * * * * *"), .message = sweep}});
    worker.run_and_exit(); // until SIGTERM
}

/// Runs a worker until `done`, and then sends it SIGTERM.
void work_until(const std::string& uri, const std::function<bool()>& done) {
    const pid_t worker = ::fork();
    if (worker == 0) {
        work(uri);
        std::_Exit(EXIT_SUCCESS);
    }
    while (!done()) {
        std::this_thread::sleep_for(5ms);
    }
    ::kill(worker, SIGTERM);
    int status = 0;
    if (::waitpid(worker, &status, 0) != worker || status != 0) {
        throw std::runtime_error("the worker failed");
    }
}

int run(const std::string& uri) {
    const std::string resized = "thumbnails:resized";
    const std::string enhanced = "thumbnails:enhanced";
    const std::string index = "thumbnails:index";
    const std::string swept = "thumbnails:swept";
    orizuru::Connection redis(uri);
    const auto forget = [&] {
        for (const std::string& key : {resized, enhanced, index, swept}) {
            redis.command(key, "DEL", key);
        }
    };
    const auto members = [&](const std::string& key) {
        return redis.command(key, "SCARD", key).integer;
    };
    const auto list = [&](const std::string& key) {
        std::vector<std::string> texts;
        for (const orizuru::Reply& text : redis.command(key, "LRANGE", key, 0, -1).elements) {
            texts.push_back(text.text);
        }
        return texts;
    };
    forget();

    std::vector<Image> images;
    std::vector<int> numbers;
    std::vector<std::string> in_order;
    for (int i = 0; i < most; ++i) {
        images.push_back({"image " + std::to_string(i), 200});
        numbers.push_back(i);
        in_order.push_back(std::to_string(i));
    }
    orizuru::JobProducer<Image>(uri, "images", {.kind = "resize"}).push_all(images);
    orizuru::JobProducer<int>(uri, "index").push_all(numbers);
    orizuru::JobProducer<Image> enhancing(uri, "images", {.kind = "enhance"});
    int pushed = 0;
    for (int i = 0; i < 5; ++i) {
        const auto id = enhancing.push(
            {"moon.png", 900},
            {.delay = 200ms, .attributes = {{"trace", "7f3a"}}, .unique = "moon.png"});
        pushed += id ? 1 : 0;
    }

    work_until(uri, [&] { return members(resized) > most / 4; });
    const auto before = members(resized);
    work_until(uri, [&] {
        return members(resized) == most && members(enhanced) == 1 && list(index).size() == most &&
               !list(swept).empty();
    });

    const auto sweeps = list(swept);
    const bool each_once = std::set(sweeps.begin(), sweeps.end()).size() == sweeps.size();
    const bool well = before < most && pushed == 1 && list(index) == in_order && each_once;
    std::printf("resized %d of %d, %s SIGTERM in the middle\n", static_cast<int>(members(resized)),
                most, before < most ? "with" : "without");
    std::printf("enhanced %d, asked for 5 times\n", static_cast<int>(members(enhanced)));
    std::printf("indexed %d of %d, %s\n", static_cast<int>(list(index).size()), most,
                list(index) == in_order ? "in order" : "out of order");
    std::printf("swept, each second %s\n", each_once ? "once" : "more than once");
    std::puts(well ? "All is accounted for." : "Something is wrong.");
    forget();
    return well ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: thumbnails <redis-uri>\n", stderr);
        return EXIT_FAILURE;
    }
    try {
        return run(argv[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "thumbnails: %s\n", error.what());
        return EXIT_FAILURE;
    }
}
