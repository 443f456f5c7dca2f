// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tells a forked child from the process that made the mark, at the price of reading a byte: getpid
// is a system call.

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

namespace orizuru::detail {

class ForkMark {
  public:
    ForkMark()
        : m_page(
              ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        if (m_page == MAP_FAILED) {
            throw std::system_error(errno, std::generic_category(), "mmap");
        }
        // The kernel hands a child an empty page in its place (Linux 4.14).
        m_wiped = ::madvise(m_page, size(), MADV_WIPEONFORK) == 0;
        *static_cast<volatile char*>(m_page) = 1;
    }
    ForkMark(const ForkMark&) = delete;
    ForkMark& operator=(const ForkMark&) = delete;
    ~ForkMark() { ::munmap(m_page, size()); }

    [[nodiscard]] bool forked() const noexcept {
        return m_wiped ? *static_cast<const volatile char*>(m_page) == 0 : ::getpid() != m_pid;
    }

  private:
    static std::size_t size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

    void* m_page;
    bool m_wiped = false;
    pid_t m_pid = ::getpid();
};

} // namespace orizuru::detail
