// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages for later and messages that recur: two that wait, and one for each second by a cron
// expression. Ends by itself, in some three seconds.  scheduled <redis-uri> [time zone]  prints
//
//     in half a second, 1 ms late
//     tick at 17:03:21 UTC, 1 ms late
//     tick at 17:03:22 UTC, 1 ms late
//     in two seconds, 1 ms late
//     tick at 17:03:23 UTC, 1 ms late
//     All is accounted for.
//
// and exits with 1 when a message comes twice or not at all. Two schedulers and two lists of
// recurrences run, as they would in two processes, and still each message comes once. The time zone
// is UTC, an offset such as +02:00 or, where there are named ones, a name such as Europe/Berlin.

#include <orizuru/jobs/recurring.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/orizuru.hpp>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <iomanip>
#include <iostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using orizuru::JobTime;

struct Reminder {
    std::string text;
    std::int64_t due = 0; // milliseconds since 1970
    MSGPACK_DEFINE(text, due)
};

Reminder reminder(std::string text, JobTime due) {
    return {std::move(text), due.time_since_epoch().count()};
}

orizuru::Recurrence<Reminder> each_second(const orizuru::TimeZone& zone) {
    return {.name = "tick",
            .cron = orizuru::Cron("* * * * * *"), // with six fields the first is the second
            .message =
                [zone](std::chrono::sys_seconds time) {
                    const std::time_t shown = zone.to_local(time).time_since_epoch().count();
                    std::tm parts{};
                    std::ostringstream text;
                    text << "tick at " << std::put_time(::gmtime_r(&shown, &parts), "%T ")
                         << zone.name();
                    return reminder(text.str(), time);
                },
            .zone = zone,
            .catch_up = 60};
}

/// Runs a part in a thread of its own, until the thread is told to stop.
template <class Part>
std::jthread start(Part part) {
    return std::jthread([part = std::move(part)](std::stop_token token) mutable {
        part.run(token); // waits out outages; its exceptions need a person
    });
}

struct Outcome {
    std::multiset<std::string> waited;
    std::multiset<std::int64_t> ticks;

    [[nodiscard]] bool complete() const { return waited.size() >= 2 && ticks.size() >= 3; }
    /// True when each message came once, and none of the seconds is missing.
    [[nodiscard]] bool well() const {
        return complete() &&
               waited == std::multiset<std::string>{"in half a second", "in two seconds"} &&
               std::set(ticks.begin(), ticks.end()).size() == ticks.size() &&
               *ticks.rbegin() - *ticks.begin() == 1000 * (std::ssize(ticks) - 1);
    }
};

/// Takes messages until all have come, 30 s at most; then stops all parts, and takes the rest.
Outcome take_and_tell(const orizuru::Endpoint& redis, const std::string& queue,
                      std::vector<std::jthread> running) {
    orizuru::Consumer<Reminder> reminders(redis, queue);
    const JobTime give_up = orizuru::job_time() + 30s;
    Outcome outcome;
    while (auto guard = reminders.next(running.empty() ? 0s : 30s)) {
        const auto& [text, due] = **guard;
        std::cout << text << ", " << orizuru::job_time().time_since_epoch().count() - due
                  << " ms late" << std::endl;
        if (text.starts_with("tick ")) {
            outcome.ticks.insert(due);
        } else {
            outcome.waited.insert(text);
        }
        guard->ack();
        if (outcome.complete() || orizuru::job_time() >= give_up) {
            running.clear();
        }
    }
    return outcome;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 2 && argc != 3) {
            throw std::invalid_argument("usage: scheduled <redis-uri> [time zone]");
        }
        const orizuru::Endpoint redis(argv[1]);
        const orizuru::TimeZone zone(argc == 3 ? argv[2] : "UTC");
        const JobTime now = orizuru::job_time();
        const std::string queue = "scheduled-" + std::to_string(now.time_since_epoch().count());

        std::vector<std::jthread> running;
        for (int process = 0; process < 2; ++process) {
            running.push_back(start(orizuru::Scheduler(redis, queue)));
            running.push_back(
                start(orizuru::Recurring<Reminder>(redis, queue, {each_second(zone)})));
        }
        orizuru::Producer<Reminder> producer(redis, queue);
        push_at(producer, now + 2s, reminder("in two seconds", now + 2s));
        push_after(producer, 500ms, reminder("in half a second", orizuru::job_time() + 500ms));
        const bool all_is_well = take_and_tell(redis, queue, std::move(running)).well();

        orizuru::Connection connection(redis);
        for (const auto& key : connection.command("", "KEYS", "*{" + queue + "}:*").elements) {
            connection.command(key.text, "DEL", key.text);
        }
        std::cout << (all_is_well ? "All is accounted for.\n" : "This does not add up!\n");
        return all_is_well ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "scheduled: " << error.what() << '\n';
        return 1;
    }
}
