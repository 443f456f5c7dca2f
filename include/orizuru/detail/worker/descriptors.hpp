// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Checks, before a worker connects, that the process may open the descriptors that its queues need.

#include <orizuru/detail/base/system.hpp>

#include <dirent.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>

namespace orizuru::detail {

/// 0 where the system does not tell.
[[nodiscard]] inline std::size_t open_descriptors() {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(system::descriptors), &::closedir);
    std::size_t entries = 0;
    while (folder && ::readdir(folder.get()) != nullptr) { // NOLINT(concurrency-mt-unsafe)
        ++entries;
    }
    return entries > 3 ? entries - 3 : 0; // ".", ".." and the folder's own
}

/// Throws std::system_error that names RLIMIT_NOFILE when it is too low: later, queues would wait
/// for connections that cannot be made.
inline void check_descriptors(std::size_t queues, std::size_t links, std::size_t limits) {
    constexpr std::size_t of_queue = 1 + system::wake_descriptors; // a connection; its waits' end
    // A link, and what else a worker has for its queues; half of it ends waits.
    constexpr std::size_t of_link = 8 + 8 * system::wake_descriptors;
    constexpr std::size_t of_limit = 2 + 2 * system::wake_descriptors;
    const std::size_t needed =
        open_descriptors() + of_queue * queues + of_link * links + of_limit * limits;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needed) {
        throw std::system_error(EMFILE, std::generic_category(),
                                "a worker of " + std::to_string(queues) + " queues needs " +
                                    std::to_string(needed) + " descriptors, and RLIMIT_NOFILE is " +
                                    std::to_string(limit.rlim_cur));
    }
}

} // namespace orizuru::detail
