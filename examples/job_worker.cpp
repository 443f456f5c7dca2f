// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Hashes files in the background: one process enqueues them, any number of others work.
//
//     job_worker redis://127.0.0.1 add FOLDER    enqueues a job for each file in it
//     job_worker redis://127.0.0.1 work          hashes them, four at once, until Ctrl-C
//
// prints "14650fb0739d0383  notes.txt" for each file (FNV-1a, 64 bits). A file that cannot be read
// is tried three times and then goes to the dead list. Press Ctrl-C in the middle and start it
// again, or kill -9 it: nothing is lost. After Ctrl-Z it takes no more jobs; at SIGTTIN it reports
// what each thread does.

#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/worker.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>

namespace {

using namespace std::chrono_literals;

/// Empty when the worker stopped it.
std::string hash_of(const std::string& path, const std::stop_token& token) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read " + path);
    }
    std::uint64_t hash = 0xcbf29ce484222325;
    std::array<char, 65536> block;
    while (file.read(block.data(), block.size()), file.gcount() > 0) {
        for (std::streamsize i = 0; i < file.gcount(); ++i) {
            hash ^= static_cast<unsigned char>(block[static_cast<std::size_t>(i)]);
            hash *= 0x100000001b3;
        }
        if (token.stop_requested()) {
            return {};
        }
    }
    std::ostringstream text;
    text << std::hex << std::setfill('0') << std::setw(16) << hash;
    return text.str();
}

void add(const std::string& uri, const std::string& folder) {
    orizuru::JobProducer<std::string> files(uri, "files");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) {
            files.push(entry.path().string());
        }
    }
}

int work(const std::string& uri) {
    orizuru::Worker worker(uri, {.concurrency = 4, .stop_timeout = 5s, .collect_interval = 2s});
    worker.handle<std::string>(
        "files",
        [](const std::string& path, orizuru::JobContext<std::string>& job) {
            const std::string hash = hash_of(path, job.stop_token());
            if (hash.empty()) {
                job.guard()->release(); // for another worker; this attempt does not count
                return;
            }
            std::cout << hash + "  " + path + "\n" << std::flush;
        },
        {.retry = {.max_attempts = 3, .backoff = orizuru::backoff::exponential(500ms, 1min)},
         .lease = 5s});
    const int unfinished = worker.run();
    const auto counts = worker.statistics();
    std::cout << "done: " << counts.succeeded << ", failed tries: " << counts.failed
              << ", dead: " << counts.died << std::endl;
    return unfinished;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc == 4 && argv[2] == std::string("add")) {
            add(argv[1], argv[3]);
        } else if (argc == 3 && argv[2] == std::string("work")) {
            if (work(argv[1]) > 0) {
                std::_Exit(1); // some handlers have not ended; their jobs are back in the queue
            }
        } else {
            throw std::invalid_argument("usage: job_worker <redis-uri> add <folder> | work");
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "job_worker: " << error.what() << '\n';
        return 1;
    }
}
