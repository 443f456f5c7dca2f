// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Detects, without a system call, a forked child of the process that made an object: getpid() costs
// more than encoding a message. The kernel empties a page in the child; where it cannot, getpid()
// it is.

#include <orizuru/detail/base/system.hpp>

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace orizuru::detail {

/// A number of this process that none of its ancestors has. All its objects share one page.
class ProcessGeneration {
  public:
    using Number = std::uint64_t;

    /// The number's address; a forked child finds another or 0. Null if the kernel cannot do that.
    [[nodiscard]] static const std::atomic<Number>* page() noexcept {
        std::atomic<Number>* const page = shared_page();
        // Outside the page: a child continues its parent's count.
        static std::atomic<Number> last{0};
        if (page != nullptr && page->load(std::memory_order_relaxed) == 0) {
            Number none = 0;
            page->compare_exchange_strong(none, ++last);
        }
        return page;
    }

  private:
    static constexpr std::size_t size = sizeof(std::atomic<Number>); // the kernel maps a whole page

    // The first thread to make a page wins. None waits for another: a child that is forked
    // meanwhile would wait for ever.
    static std::atomic<Number>* shared_page() noexcept {
        static std::atomic<std::atomic<Number>*> shared{nullptr};
        std::atomic<Number>* found = shared.load(std::memory_order_acquire);
        if (found != nullptr) {
            return found;
        }
        std::atomic<Number>* const made = make_page();
        if (made == nullptr || shared.compare_exchange_strong(found, made)) {
            return made;
        }
        ::munmap(made, size);
        return found;
    }

    static std::atomic<Number>* make_page() noexcept {
        void* const page =
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            return nullptr;
        }
        if (!system::wipe_on_fork(page, size)) {
            ::munmap(page, size);
            return nullptr;
        }
        return ::new (page) std::atomic<Number>(0);
    }
};

class ForkMark {
  public:
    ForkMark() noexcept
        : m_page(ProcessGeneration::page()), m_made_in(m_page != nullptr ? m_page->load() : 0) {}

    [[nodiscard]] bool forked() const noexcept {
        return m_page != nullptr ? m_page->load(std::memory_order_relaxed) != m_made_in
                                 : ::getpid() != m_pid;
    }

  private:
    const std::atomic<ProcessGeneration::Number>* m_page;
    ProcessGeneration::Number m_made_in;
    pid_t m_pid = ::getpid();
};

} // namespace orizuru::detail
