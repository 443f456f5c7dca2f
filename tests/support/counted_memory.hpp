// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Counts every malloc, calloc and realloc of the process, those of operator new and of hiredis too:
// what the system says of a process' memory depends on what runs beside it. counted_memory.cpp, to
// be linked with the program, replaces glibc's malloc; sanitizers bring one of their own.

#pragma once

#include <malloc.h>

#include <atomic>
#include <cstddef>

namespace orizuru::test {

/// Counts for this thread how often it allocates, and for the process how many bytes it has.
class CountedMemory {
  public:
    /// The allocations of this thread so far.
    [[nodiscard]] static std::size_t allocations() { return t_allocations; }

    /// The largest growth, in bytes, of the process' allocations while the action runs. One thread
    /// at a time.
    template <class Action>
    [[nodiscard]] static std::size_t growth_of(Action action) {
        const std::size_t before = s_bytes;
        s_peak = before;
        action();
        return s_peak - before;
    }

    static void* came(void* memory) noexcept {
        ++t_allocations;
        add(memory);
        return memory;
    }
    static void add(void* memory) noexcept {
        const std::size_t size = ::malloc_usable_size(memory);
        const std::size_t bytes = s_bytes.fetch_add(size) + size;
        std::size_t peak = s_peak;
        while (bytes > peak && !s_peak.compare_exchange_weak(peak, bytes)) {
        }
    }
    static void remove(void* memory) noexcept { s_bytes -= ::malloc_usable_size(memory); }

  private:
    static inline thread_local std::size_t t_allocations = 0;
    static inline std::atomic<std::size_t> s_bytes{0};
    static inline std::atomic<std::size_t> s_peak{0};
};

} // namespace orizuru::test
