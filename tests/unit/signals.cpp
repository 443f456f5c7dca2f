// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/child.hpp"

#include <orizuru/detail/worker/signals.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <stdexcept>

namespace signals_test {

using orizuru::detail::Signals;
using orizuru::test::as_expected;
using orizuru::test::not_as_expected;
using orizuru::test::status_of_child;

volatile std::sig_atomic_t came_to_user = 0;

void listen_as_user() {
    for (const int number : {SIGTERM, SIGINT, SIGTSTP, SIGTTIN, SIGUSR1}) {
        std::signal(number, [](int) { came_to_user = came_to_user + 1; });
    }
}

int expect(bool condition) { return condition ? as_expected : not_as_expected; }

TEST_CASE("signals are read in the order in which they came") {
    std::signal(SIGTERM, SIG_DFL); // the test framework's
    const Signals signals;
    CHECK_FALSE(signals.next());
    for (const int number : {SIGTSTP, SIGTTIN, SIGTTIN, SIGTERM}) {
        std::raise(number);
    }
    CHECK(signals.next() == SIGTSTP);
    CHECK(signals.next() == SIGTTIN);
    CHECK(signals.next() == SIGTTIN);
    CHECK(signals.next() == SIGTERM);
    CHECK_FALSE(signals.next());
}

TEST_CASE("a second signal to stop ends the process, and so does the first one that is to") {
    CHECK(status_of_child([] {
              const Signals signals;
              std::raise(SIGTERM);
              std::raise(SIGTSTP);
              std::raise(SIGINT);
              return as_expected;
          }) == 128 + SIGINT);
    CHECK(status_of_child([] {
              const Signals signals;
              Signals::end_at_next();
              std::raise(SIGTERM);
              return as_expected;
          }) == 128 + SIGTERM);
}

TEST_CASE("other signals are left alone, and these come to the user, too, during and behind it") {
    CHECK(status_of_child([] {
              listen_as_user();
              {
                  const Signals signals;
                  for (const int number : {SIGINT, SIGTSTP, SIGTTIN, SIGUSR1}) {
                      std::raise(number);
                  }
              }
              const bool came_behind = came_to_user == 4;
              for (const int number : {SIGTERM, SIGINT, SIGTSTP, SIGTTIN}) {
                  std::raise(number);
              }
              return expect(came_behind && came_to_user == 8);
          }) == as_expected);
}

TEST_CASE("a handler of the user's gets what it has asked for") {
    CHECK(status_of_child([] {
              struct sigaction action {};
              action.sa_flags = SA_SIGINFO;
              action.sa_sigaction = [](int number, siginfo_t* info, void*) {
                  came_to_user = came_to_user + (number == SIGTERM && info->si_pid == ::getpid());
              };
              ::sigaction(SIGTERM, &action, nullptr);
              const Signals signals;
              ::kill(::getpid(), SIGTERM);
              const bool came = came_to_user == 1 && signals.next() == SIGTERM;
              return expect(came);
          }) == as_expected);
}

TEST_CASE("a signal to stop that nobody has heeded for an exception is raised again") {
    const auto fails = [] {
        try {
            const Signals signals;
            std::raise(SIGTERM);
            throw std::runtime_error("no queue");
        } catch (const std::runtime_error&) {
            return expect(came_to_user == 1); // the user's handler has had it
        }
    };
    CHECK(status_of_child(fails) == -1);
    CHECK(status_of_child([=] {
              listen_as_user();
              return fails();
          }) == as_expected);
}

TEST_CASE("a process has one listener at a time") {
    {
        const Signals signals;
        CHECK_THROWS_AS(Signals(), std::logic_error);
    }
    CHECK_NOTHROW(Signals());
}

} // namespace signals_test
