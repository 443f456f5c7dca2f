// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Three queues and one worker: by strict order, by weights, and with one queue paused. Ends by
// itself.  priorities <redis-uri>  prints
//
//     strict: urgent urgent urgent normal normal normal bulk bulk bulk
//     weighted 6:3:1, the first 100 of 300: 61 urgent, 29 normal, 10 bulk
//     urgent paused: normal normal normal bulk bulk bulk, then urgent urgent urgent
//     All is accounted for.
//
// where the numbers of the second line are random. Exits with 1 when it sees anything else.

#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/worker.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using orizuru::QueueOrder;

using Names = std::vector<std::string>;

const std::array<std::string, 3> queues{"urgent", "normal", "bulk"};
const std::array<int, 3> weights{6, 3, 1};

void require(bool holds, const std::string& what) {
    if (!holds) {
        throw std::runtime_error(what);
    }
}

void fill(const std::string& uri, std::size_t each) {
    for (const std::string& queue : queues) {
        orizuru::JobProducer<std::string> jobs(uri, queue);
        for (std::size_t i = 0; i < each; ++i) {
            jobs.push(queue);
        }
    }
}

/// Returns the first `count` jobs that one thread handles, in its order. Calls `at` for each.
template <class At>
Names handled(const std::string& uri, QueueOrder order, std::size_t count, At at) {
    orizuru::Worker worker(uri, {.concurrency = 1, .order = order, .recheck = 50ms});
    Names seen;
    const auto note = [&](const std::string& queue) {
        seen.push_back(queue);
        at(seen.size());
        if (seen.size() == count) {
            worker.stop();
        }
    };
    for (std::size_t i = 0; i < queues.size(); ++i) {
        worker.handle<std::string>(queues[i], note, {.weight = weights[i]});
    }
    worker.run_and_exit(); // what has not ended writes to `seen`
    return seen;
}

std::string line(const Names& names, std::size_t begin, std::size_t end) {
    std::string text;
    for (std::size_t i = begin; i < end; ++i) {
        text += " " + names[i];
    }
    return text;
}

auto count(const Names& names, const std::string& queue) {
    return std::ranges::count(names, queue);
}

void show_strict_order(const std::string& uri) {
    fill(uri, 3);
    const Names seen = handled(uri, QueueOrder::strict, 9, [](std::size_t) {});
    std::cout << "strict:" << line(seen, 0, 9) << std::endl;
    const auto place = [](const std::string& queue) { return std::ranges::find(queues, queue); };
    require(std::ranges::is_sorted(seen, {}, place), "not in the queues' order");
}

void show_weights(const std::string& uri) {
    fill(uri, 100);
    Names seen = handled(uri, QueueOrder::weighted, 300, [](std::size_t) {});
    for (const std::string& queue : queues) {
        require(count(seen, queue) == 100, "not each one once");
    }
    seen.resize(100);
    std::cout << "weighted 6:3:1, the first 100 of 300: " << count(seen, "urgent") << " urgent, "
              << count(seen, "normal") << " normal, " << count(seen, "bulk") << " bulk"
              << std::endl;
}

void show_a_pause(const std::string& uri) {
    fill(uri, 3);
    orizuru::Pause urgent(uri, "urgent");
    urgent.pause();
    const Names seen = handled(uri, QueueOrder::strict, 9, [&](std::size_t handled) {
        if (handled == 6) {
            urgent.resume();
        }
    });
    std::cout << "urgent paused:" << line(seen, 0, 6) << ", then" << line(seen, 6, 9) << std::endl;
    require(std::ranges::find(seen, "urgent") - seen.begin() == 6, "not paused");
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 2) {
            throw std::invalid_argument("usage: priorities <redis-uri>");
        }
        show_strict_order(argv[1]);
        show_weights(argv[1]);
        show_a_pause(argv[1]);
        std::cout << "All is accounted for." << std::endl;
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "priorities: " << error.what() << '\n';
        return 1;
    }
}
