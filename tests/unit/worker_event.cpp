// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/stderr_pipe.hpp"

#include <orizuru/worker/worker_event.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <set>
#include <string>
#include <string_view>

namespace worker_event_test {

using orizuru::WorkerEvent;
using orizuru::WorkerEventKind;

TEST_CASE("each kind of a worker's event has a name of its own") {
    std::set<std::string_view> names;
    const int kinds = static_cast<int>(WorkerEventKind::consumer) + 1; // the last one
    for (int kind = 0; kind < kinds; ++kind) {
        names.insert(to_string(static_cast<WorkerEventKind>(kind)));
    }
    CHECK(static_cast<int>(names.size()) == kinds);
    CHECK_FALSE(names.contains("unknown"));
    CHECK(to_string(WorkerEventKind::succeeded) == "succeeded");
}

/// What goes to stderr.
std::string written(const WorkerEvent& event) {
    const orizuru::test::ShortPipe pipe;
    const orizuru::test::StderrInto here(pipe);
    orizuru::write_to_stderr(event);
    return event.kind == WorkerEventKind::succeeded ? pipe.drain() : pipe.drain_line();
}

TEST_CASE("a worker writes a line for an event by default, but none for a success") {
    CHECK(written({.kind = WorkerEventKind::started}) == "orizuru: started\n");
    CHECK(written({.kind = WorkerEventKind::failed,
                   .queue = "q",
                   .job_id = "7",
                   .detail = "busy",
                   .retry_in = std::chrono::milliseconds(20)}) ==
          "orizuru: failed queue=q job=7 retry_in=20ms busy\n");
    CHECK(written({.kind = WorkerEventKind::succeeded, .queue = "q", .job_id = "7"}).empty());
}

} // namespace worker_event_test
