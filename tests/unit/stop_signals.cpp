// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/child.hpp"

#include <orizuru/detail/ops/cli/stop_signals.hpp>

#include <doctest/doctest.h>

#include <csignal>

namespace stop_signals_test {

using orizuru::detail::cli::StopSignals;
using orizuru::test::as_expected;
using orizuru::test::eventually;
using orizuru::test::not_as_expected;
using orizuru::test::status_of_child;

constexpr int by_a_signal = -1;

volatile std::sig_atomic_t came_to_user = 0;

/// Sends one to this process and waits until it has requested the stop.
bool stops_by(int number) {
    const StopSignals signals;
    const std::stop_token token = signals.token();
    ::kill(::getpid(), number);
    return eventually([&] { return token.stop_requested(); });
}

TEST_CASE("the first SIGINT or SIGTERM requests a stop") {
    for (const int number : {SIGINT, SIGTERM}) {
        CHECK(status_of_child([=] { return stops_by(number) ? as_expected : not_as_expected; }) ==
              as_expected);
    }
}

TEST_CASE("the second one ends the process, whatever it waits for") {
    CHECK(status_of_child([] {
              std::signal(SIGTERM, SIG_DFL); // doctest has a handler of its own
              const StopSignals signals;
              const std::stop_token token = signals.token();
              ::kill(::getpid(), SIGINT);
              if (!eventually([&] { return token.stop_requested(); })) {
                  return not_as_expected;
              }
              ::kill(::getpid(), SIGTERM);
              return eventually([] { return false; }) ? as_expected : not_as_expected;
          }) == by_a_signal);
}

TEST_CASE("the second one ends it at its end, too, whatever handler the program has") {
    CHECK(status_of_child([] {
              std::signal(SIGINT, [](int) { came_to_user = came_to_user + 1; });
              for (int i = 0; i < 1000; ++i) {
                  const StopSignals signals;
                  const std::stop_token token = signals.token();
                  ::kill(::getpid(), SIGINT);
                  if (!eventually([&] { return token.stop_requested(); })) {
                      return not_as_expected;
                  }
                  ::kill(::getpid(), SIGINT);
              }
              return as_expected;
          }) == by_a_signal);
}

TEST_CASE("one that comes as it ends is a stop, or the program's") {
    CHECK(status_of_child([] {
              std::signal(SIGINT, [](int) { came_to_user = came_to_user + 1; });
              for (int i = 0; i < 1000; ++i) {
                  const StopSignals signals;
                  ::kill(::getpid(), SIGINT);
              }
              return as_expected; // it has ended each time
          }) == as_expected);
}

TEST_CASE("without a signal it ends at once, and the user's handler is heard again") {
    CHECK(status_of_child([] {
              std::signal(SIGTERM, [](int) { came_to_user = came_to_user + 1; });
              bool stopped = false;
              for (int i = 0; i < 100; ++i) {
                  const StopSignals signals;
                  stopped |= signals.token().stop_requested();
              }
              const bool silent = came_to_user == 0;
              std::raise(SIGTERM);
              return silent && !stopped && came_to_user == 1 ? as_expected : not_as_expected;
          }) == as_expected);
}

TEST_CASE("a signal that the process ignores stays ignored, and the other one stops it") {
    CHECK(status_of_child([] {
              std::signal(SIGINT, SIG_IGN);
              {
                  const StopSignals signals;
                  std::raise(SIGINT);
                  if (signals.token().stop_requested()) {
                      return not_as_expected;
                  }
              }
              if (!stops_by(SIGTERM)) {
                  return not_as_expected;
              }
              std::signal(SIGTERM, SIG_IGN);
              const StopSignals deaf;
              std::raise(SIGTERM);
              return deaf.token().stop_requested() ? not_as_expected : as_expected;
          }) == as_expected);
}

} // namespace stop_signals_test
