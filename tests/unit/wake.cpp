// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/wake.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <thread>

namespace wake_test {

using namespace std::chrono_literals;
using orizuru::detail::Clock;
using orizuru::detail::TimePoint;
using orizuru::detail::wait_ready;
using orizuru::detail::Wake;

constexpr auto for_ever = 60s; // far longer than a test may take

class Pipe {
  public:
    Pipe() { REQUIRE(::pipe(m_ends.data()) == 0); }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        ::close(m_ends[0]);
        hang_up();
    }

    [[nodiscard]] int reader() const { return m_ends[0]; }
    [[nodiscard]] int writer() const { return m_ends[1]; }
    void write() { REQUIRE(::write(m_ends[1], "x", 1) == 1); }
    void hang_up() {
        if (m_ends[1] >= 0) {
            ::close(m_ends[1]);
            m_ends[1] = -1;
        }
    }

  private:
    std::array<int, 2> m_ends{-1, -1};
};

void set_timer(std::chrono::microseconds first, std::chrono::microseconds interval) {
    const itimerval timer{{0, static_cast<suseconds_t>(interval.count())},
                          {0, static_cast<suseconds_t>(first.count())}};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
}

/// Calls `handler` on SIGALRM for as long as it lives.
class Alarm {
  public:
    Alarm(void (*handler)(int), std::chrono::microseconds first,
          std::chrono::microseconds interval) {
        struct sigaction action {};
        action.sa_handler = handler;
        ::sigaction(SIGALRM, &action, &m_before);
        set_timer(first, interval);
    }
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    ~Alarm() {
        set_timer(0us, 0us);
        ::sigaction(SIGALRM, &m_before, nullptr);
    }

  private:
    struct sigaction m_before {};
};

volatile sig_atomic_t alarms = 0;
const Wake* to_wake = nullptr;

TEST_CASE("a wait ends when the descriptor is ready, and says for what") {
    Pipe pipe;
    CHECK(wait_ready(pipe.writer(), POLLOUT, nullptr, Clock::now() + for_ever) == POLLOUT);
    pipe.write();
    CHECK(wait_ready(pipe.reader(), POLLIN, nullptr, Clock::now() + for_ever) == POLLIN);
}

TEST_CASE("a hang-up is reported though nobody asked for it") {
    Pipe pipe;
    pipe.hang_up();
    CHECK((wait_ready(pipe.reader(), POLLIN, nullptr, Clock::now() + for_ever) & POLLHUP) != 0);
}

TEST_CASE("a wait ends at its deadline and not before") {
    const Pipe pipe;
    for (const auto wait : {1us, 999us, 1500us, 20000us}) {
        const TimePoint deadline = Clock::now() + wait;
        CHECK(wait_ready(pipe.reader(), POLLIN, nullptr, deadline) == 0);
        CHECK(Clock::now() >= deadline);
    }
}

TEST_CASE("without a descriptor only the deadline and the wake count") {
    Wake wake;
    const TimePoint deadline = Clock::now() + 5ms;
    CHECK(wait_ready(-1, 0, &wake, deadline) == 0);
    CHECK(Clock::now() >= deadline);
    wake.signal();
    CHECK(wait_ready(-1, 0, &wake, Clock::now() + for_ever) == 0);
}

TEST_CASE("a deadline that has passed, however long ago, asks without waiting") {
    Pipe pipe;
    for (const TimePoint deadline :
         {Clock::now(), Clock::now() - 1h, TimePoint(), TimePoint(-1ns), TimePoint::min()}) {
        const TimePoint begin = Clock::now();
        CHECK(wait_ready(pipe.reader(), POLLIN, nullptr, deadline) == 0);
        CHECK(Clock::now() - begin < for_ever);
    }
    pipe.write();
    CHECK(wait_ready(pipe.reader(), POLLIN, nullptr, TimePoint::min()) == POLLIN);
}

TEST_CASE("a wait without a deadline is ended by a wake") {
    Wake wake;
    const Pipe pipe;
    std::thread other([&] { wake.signal(); });
    CHECK(wait_ready(pipe.reader(), POLLIN, &wake, TimePoint::max()) == 0);
    other.join();
}

TEST_CASE("a wake that came before the wait is not missed, and lasts until it is cleared") {
    Wake wake;
    wake.signal();
    wake.signal();
    for (int i = 0; i < 2; ++i) {
        wait_ready(-1, 0, &wake, Clock::now() + for_ever);
    }
    CHECK(wait_ready(wake.fd(), POLLIN, nullptr, TimePoint::min()) == POLLIN);
    wake.clear();
    CHECK(wait_ready(wake.fd(), POLLIN, nullptr, TimePoint::min()) == 0);
    wake.clear(); // nothing to clear: must not block
}

TEST_CASE("a descriptor that is ready is reported though the wake is signalled too") {
    Wake wake;
    wake.signal();
    Pipe pipe;
    pipe.write();
    CHECK(wait_ready(pipe.reader(), POLLIN, &wake, Clock::now() + for_ever) == POLLIN);
}

TEST_CASE("the deadline is kept in spite of a signal every 5 ms") {
    alarms = 0;
    const Pipe pipe;
    // A wait that began anew with each signal would end with the signals, after 2 s.
    const Alarm alarm(
        [](int) {
            alarms = alarms + 1;
            if (alarms == 400) {
                set_timer(0us, 0us);
            }
        },
        5ms, 5ms);
    const TimePoint begin = Clock::now();
    CHECK(wait_ready(pipe.reader(), POLLIN, nullptr, begin + 100ms) == 0);
    const auto passed = Clock::now() - begin;
    CHECK(passed >= 100ms);
    CHECK(passed < 1500ms);
    CHECK(alarms > 0);
}

TEST_CASE("a signal handler ends a wait") {
    const Wake wake;
    to_wake = &wake;
    const Alarm alarm([](int) { to_wake->signal(); }, 10ms, 0us);
    const TimePoint begin = Clock::now();
    CHECK(wait_ready(-1, 0, &wake, begin + for_ever) == 0);
    CHECK(Clock::now() - begin < for_ever);
}

TEST_CASE("errno is as it was after a signal, even one for which there is no room") {
    const Wake wake;
    const std::uint64_t most = UINT64_MAX - 1; // fills an eventfd; a pipe is full of signals
    [[maybe_unused]] const auto written = ::write(wake.fd(), &most, sizeof most);
    errno = EDOM;
    for (int i = 0; i < 200'000; ++i) {
        wake.signal();
    }
    const int after = errno;
    CHECK(after == EDOM);
    CHECK(wait_ready(wake.fd(), POLLIN, nullptr, TimePoint::min()) == POLLIN);
    wake.clear();
    CHECK(wait_ready(wake.fd(), POLLIN, nullptr, TimePoint::min()) == 0);
}

TEST_CASE("a signal of a forked child is cleared as any other") {
    const Wake wake;
    const pid_t child = ::fork();
    if (child == 0) {
        wake.signal();
        ::_exit(0);
    }
    const Pipe pipe;
    CHECK(wait_ready(pipe.reader(), POLLIN, &wake, Clock::now() + for_ever) == 0);
    ::waitpid(child, nullptr, 0);
    wake.clear();
    const TimePoint deadline = Clock::now() + 5ms;
    CHECK(wait_ready(pipe.reader(), POLLIN, &wake, deadline) == 0);
    CHECK(Clock::now() >= deadline);
}

TEST_CASE("a program started by this one does not inherit the descriptor") {
    const Wake wake;
    CHECK((::fcntl(wake.fd(), F_GETFD) & FD_CLOEXEC) != 0);
    wake.renew();
    CHECK((::fcntl(wake.fd(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("others may signal while it is renewed, and what they signal afterwards arrives") {
    const Wake wake;
    std::atomic<bool> over{false};
    std::thread other([&] {
        while (!over) {
            wake.signal(); // SIGPIPE would end this process
        }
    });
    for (int i = 0; i < 20'000; ++i) {
        wake.renew();
    }
    over = true;
    other.join();
    wake.signal();
    CHECK(wait_ready(wake.fd(), POLLIN, nullptr, TimePoint::min()) == POLLIN);
}

} // namespace wake_test
