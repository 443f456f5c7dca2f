// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A name whose resolution takes as long as a test wants, as when a DNS server does not answer.
//
// getaddrinfo below stands in for that of the C library: include this in one source of a program.

#pragma once

#include <dlfcn.h>
#include <netdb.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace orizuru::test {

/// Stands for 127.0.0.1.
class SlowName {
  public:
    static constexpr std::string_view name = "slow.test";

    /// From now on each resolution takes this long.
    static void take(std::chrono::milliseconds time) { state().time = time; }
    /// How many have begun, in all threads or in this one.
    [[nodiscard]] static std::size_t begun() {
        const std::lock_guard lock(state().mutex);
        return state().threads.size();
    }
    [[nodiscard]] static std::size_t begun_by(std::thread::id thread) {
        const std::lock_guard lock(state().mutex);
        return static_cast<std::size_t>(std::ranges::count(state().threads, thread));
    }
    static void resolve() {
        {
            const std::lock_guard lock(state().mutex);
            state().threads.push_back(std::this_thread::get_id());
        }
        std::this_thread::sleep_for(state().time.load());
    }

  private:
    struct State {
        std::atomic<std::chrono::milliseconds> time{};
        std::mutex mutex;
        std::vector<std::thread::id> threads; ///< of each resolution
    };
    static State& state() {
        static State instance;
        return instance;
    }
};

} // namespace orizuru::test

extern "C" {

int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
    using orizuru::test::SlowName;
    using Function = int(const char*, const char*, const addrinfo*, addrinfo**);
    static auto* const real = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    if (node != nullptr && node == SlowName::name) {
        SlowName::resolve();
        node = "127.0.0.1";
    }
    return real(node, service, hints, result);
}

} // extern "C"
