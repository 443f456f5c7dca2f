// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Replaces operator new by one that fails on demand, in the library only: see LibraryCall. Include
// it once in a program.

#pragma once

#include "crash/support/library_call.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace orizuru::test {

class FailingMemory {
  public:
    enum class Kind {
        once,
        lasting ///< all the others too, until `end` or for `longest`
    };
    static constexpr std::chrono::milliseconds longest{15};

    /// Lets the allocation after the next `before` ones fail.
    static void begin(long before, Kind kind) {
        s_kind = kind;
        s_left = before;
    }
    /// Ends the shortage. Returns whether any allocation has failed.
    static bool end() {
        s_failing_until = never;
        s_to_refuse = 0;
        return s_left.exchange(-1) < 0;
    }

    /// Lets the next `times` allocations of `size` bytes or more fail.
    static void refuse(std::size_t size, int times) {
        s_refused_size = size;
        s_to_refuse = times;
    }
    /// How many of them have not come.
    [[nodiscard]] static int to_refuse() { return s_to_refuse; }
    /// Whether this one fails, and counts it.
    [[nodiscard]] static bool refuses(std::size_t size) {
        return !LibraryCall::outside && refused(size);
    }

    // If inlined, the compiler would see its malloc beside a delete.
    [[gnu::noinline]] static void* allocate(std::size_t size) {
        if (!LibraryCall::outside && (fails() || refused(size))) {
            throw std::bad_alloc();
        }
        void* const memory = std::malloc(size == 0 ? 1 : size);
        return memory != nullptr ? memory : throw std::bad_alloc();
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr Clock::rep never = 0;

    static bool fails() {
        if (s_left >= 0 && s_left.fetch_sub(1) == 0) {
            if (s_kind == Kind::lasting) {
                s_failing_until = (Clock::now() + longest).time_since_epoch().count();
            }
            return true;
        }
        const Clock::rep until = s_failing_until;
        return until != never && Clock::now().time_since_epoch().count() < until;
    }

    static bool refused(std::size_t size) {
        int left = size >= s_refused_size ? s_to_refuse.load() : 0;
        while (left > 0 && !s_to_refuse.compare_exchange_weak(left, left - 1)) {
        }
        return left > 0;
    }

    static inline std::atomic<long> s_left{-1};
    static inline std::atomic<std::size_t> s_refused_size{0};
    static inline std::atomic<int> s_to_refuse{0};
    static inline std::atomic<Kind> s_kind{Kind::once};
    static inline std::atomic<Clock::rep> s_failing_until{never};
};

} // namespace orizuru::test

void* operator new(std::size_t size) { return orizuru::test::FailingMemory::allocate(size); }
void* operator new[](std::size_t size) { return orizuru::test::FailingMemory::allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
