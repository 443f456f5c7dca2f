// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tells a forked child from the process that made an object, without a system call: getpid() costs
// more than encoding a message. The kernel (Linux 4.14) empties a page in the child.

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>

namespace orizuru::detail {

class ForkMark {
  public:
    ForkMark() noexcept {
        void* const page =
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            return;
        }
        if (::madvise(page, size, MADV_WIPEONFORK) != 0) {
            ::munmap(page, size);
            return;
        }
        m_mark = static_cast<volatile char*>(page);
        *m_mark = 1;
    }
    ForkMark(const ForkMark&) = delete;
    ForkMark& operator=(const ForkMark&) = delete;
    ~ForkMark() {
        if (m_mark != nullptr) {
            ::munmap(const_cast<char*>(m_mark), size);
        }
    }

    [[nodiscard]] bool forked() const noexcept {
        return m_mark != nullptr ? *m_mark == 0 : ::getpid() != m_pid;
    }

  private:
    static constexpr std::size_t size = 1; // the kernel makes it a page

    volatile char* m_mark = nullptr; ///< null where the kernel cannot do it
    pid_t m_pid = ::getpid();
};

} // namespace orizuru::detail
