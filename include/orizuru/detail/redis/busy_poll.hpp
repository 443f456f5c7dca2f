// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Polls for up to 50 us for a reply, and up to 100 us for several, before it sleeps, where that
// pays: waking a sleeping CPU takes longer than the round trip to a Redis nearby.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/system.hpp>
#include <orizuru/detail/base/wake.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// The first 4 KiB of a file; empty when it cannot be read.
[[nodiscard]] inline std::string beginning_of(const std::string& path) {
    std::array<char, 4096> text{};
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? -1 : ::read(fd, text.data(), text.size());
    if (fd >= 0) {
        ::close(fd);
    }
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

/// Whole CPUs in the text of a cpu.max file, "QUOTA PERIOD" in microseconds, at least one; the
/// largest int for "max PERIOD" and for any other text.
/// Source: Linux, Documentation/admin-guide/cgroup-v2.rst, "cpu.max".
[[nodiscard]] inline int whole_cpus(std::string_view cpu_max) noexcept {
    constexpr int unlimited = std::numeric_limits<int>::max();
    cpu_max = cpu_max.substr(0, cpu_max.find('\n'));
    const auto space = std::min(cpu_max.find(' '), cpu_max.size());
    const auto quota = whole_number(cpu_max.substr(0, space));
    const auto period = whole_number(cpu_max.substr(std::min(space + 1, cpu_max.size())));
    if (!quota || !period || *period == 0) {
        return unlimited;
    }
    return static_cast<int>(std::clamp<std::uint64_t>(*quota / *period, 1, unlimited));
}

/// The path of the process' control group in the text of /proc/self/cgroup; empty without one.
/// Source: cgroups(7), "/proc/pid/cgroup": version 2 is the line "0::PATH".
[[nodiscard]] inline std::string control_group(std::string_view text) {
    constexpr std::string_view prefix = "\n0::";
    const std::string lines = joined({"\n", text, "\n"});
    const auto line = lines.find(prefix);
    const auto path = line + prefix.size();
    return line == std::string::npos ? "" : lines.substr(path, lines.find('\n', path) - path);
}

/// Reads the affinity of the main thread and, on Linux, a file for each control group; 1 when the
/// kernel does not say. May throw std::bad_alloc.
[[nodiscard]] [[gnu::cold]] inline int usable_cpus() {
    int cpus = system::usable_cpus();
    std::string group = control_group(beginning_of("/proc/self/cgroup"));
    while (!group.empty()) {
        cpus = std::min(cpus, whole_cpus(beginning_of("/sys/fs/cgroup" + group + "/cpu.max")));
        group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
    return cpus;
}

/// Learns from the waits of one socket how long the next one may poll before it sleeps. With one
/// CPU it never polls: Redis or the kernel would need that CPU.
///
/// Polling begins when waits that slept took about as long as waking a CPU. It continues while
/// waits that poll are clearly shorter than those were. It ends after waits that polled in vain,
/// and at once when the kernel takes the CPU away: other threads then need it, and the kernel
/// sooner serves a thread that has slept. Each end doubles the number of waits until polling begins
/// again; many answers in time halve it.
class BusyPoll {
  public:
    using Duration = Clock::duration;

    static constexpr Duration longest = std::chrono::microseconds(50);
    /// A thread that sleeps less shares a CPU with Redis: polling gains nothing, and the kernel
    /// would have to separate the two. A round trip then takes 8 to 12 us; between two CPUs that
    /// do not fall asleep, of which each wakes the other at once, 20 to 27 us.
    static constexpr Duration wakes = std::chrono::microseconds(16);
    /// A wait that slept at most this long might have been answered within `longest` of polling.
    static constexpr Duration nearby = std::chrono::microseconds(200);
    /// A polling thread that was away for this long has lost its CPU.
    static constexpr Duration away = std::chrono::microseconds(150);

    explicit BusyPoll(int cpus) noexcept : m_useful(cpus > 1) {}

    [[nodiscard]] bool useful() const noexcept { return m_useful; }
    /// Returns how long the next wait may poll. A wait for several replies takes the place of
    /// several waits, and may poll for as long as two.
    [[nodiscard]] Duration budget(std::size_t replies = 1) const noexcept {
        return replies > 1 ? 2 * m_budget : m_budget;
    }

    /// The wait polled for `time`, with or without an answer.
    void polled(Duration time, bool answered) noexcept {
        if (answered && time <= away) {
            m_budget = longest;
            on_answer(time);
            return;
        }
        if (time <= away && m_warm_up > 0) {
            --m_warm_up;
            return;
        }
        m_budget /= 2;
        if (time > away || m_budget < shortest) {
            stop();
        }
    }
    /// The wait slept for `time` without polling.
    void slept(Duration time) noexcept {
        if (time < wakes || time > nearby) {
            m_waits = 0;
            return;
        }
        m_slept = m_waits == 0 ? time : average(m_slept, time);
        if (++m_waits >= m_trials) {
            m_budget = longest;
            m_polled = Duration::zero();
            m_waits = 0;
            m_warm_up = cold;
        }
    }

  private:
    static constexpr Duration shortest = std::chrono::microseconds(10);
    static constexpr int least_trials = 8;
    static constexpr int most_trials = 1024;
    static constexpr int sample = 64;
    /// Redis' CPU has slept too: this many first waits in vain do not count.
    static constexpr int cold = 16;
    static constexpr int forgiving = 256;

    static Duration average(Duration before, Duration now) noexcept {
        return before + (now - before) / 8;
    }

    void on_answer(Duration time) noexcept {
        m_polled = m_polled == Duration::zero() ? time : average(m_polled, time);
        if (++m_waits % sample == 0 && m_polled > m_slept * 3 / 4) {
            stop();
        } else if (m_waits == forgiving) {
            m_waits = 0;
            m_trials = std::max(m_trials / 2, least_trials);
        }
    }
    void stop() noexcept {
        m_budget = Duration::zero();
        m_trials = std::min(m_trials * 2, most_trials);
        m_waits = 0;
    }

    bool m_useful;
    Duration m_budget{};
    int m_trials = least_trials; ///< waits that sleep, until it polls
    int m_waits = 0;             ///< such waits in a row, or answers since polling began
    int m_warm_up = 0;           ///< waits in vain that do not count yet
    Duration m_slept{};          ///< the average before polling began
    Duration m_polled{};         ///< the average since polling began
};

/// Waits as `wait_ready` does, but first polls for as long as `poll` permits for so many replies.
inline short wait_ready(BusyPoll& poll, int fd, short events, const Wake* wake, TimePoint deadline,
                        std::size_t replies = 1) {
    const TimePoint begin = Clock::now();
    if (!poll.useful() || begin >= deadline) {
        return wait_ready(fd, events, wake, deadline);
    }
    if (poll.budget() == BusyPoll::Duration::zero()) {
        const short ready = wait_ready(fd, events, wake, deadline);
        if (ready != 0) {
            poll.slept(Clock::now() - begin);
        }
        return ready;
    }
    const TimePoint end = std::min(deadline, begin + poll.budget(replies));
    TimePoint now = begin;
    while (now < end) {
        const auto ready = poll_ready(fd, events, wake, std::chrono::milliseconds(0));
        now = Clock::now();
        if (ready) {
            if (*ready != 0) {
                poll.polled(now - begin, true);
            }
            return *ready;
        }
    }
    poll.polled(now - begin, false);
    return wait_ready(fd, events, wake, deadline);
}

} // namespace orizuru::detail
