// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How many CPUs this process can keep busy: its affinity limits it, and so do the quotas of its
// control group and of all groups above it (version 2).

#include <orizuru/detail/base/numbers.hpp>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
[[nodiscard]] inline std::string_view control_group(std::string_view text) noexcept {
    constexpr std::string_view prefix = "0::";
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (line.starts_with(prefix)) {
            return line.substr(prefix.size());
        }
        text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
    return {};
}

/// Reads the affinity of the main thread and a file for each control group; 1 when the kernel does
/// not say. May throw std::bad_alloc.
[[nodiscard]] [[gnu::cold]] inline int usable_cpus() {
    cpu_set_t affinity;
    // Asks for the process, since this thread may be bound otherwise. Fails on a machine with more
    // CPUs than the set has room for.
    if (::sched_getaffinity(::getpid(), sizeof affinity, &affinity) != 0) {
        return 1;
    }
    int cpus = CPU_COUNT(&affinity);
    const std::string cgroups = beginning_of("/proc/self/cgroup");
    std::string group(control_group(cgroups));
    while (!group.empty()) {
        cpus = std::min(cpus, whole_cpus(beginning_of("/sys/fs/cgroup" + group + "/cpu.max")));
        group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
    return cpus;
}

} // namespace orizuru::detail
