// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Names whose resolution takes as long as a test wants, as when a DNS server does not answer, or
// finds the addresses that it wants.
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
#include <utility>
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

/// Stands for the addresses of the test.
class SeveralAddresses {
  public:
    static constexpr std::string_view name = "several.test";

    static void set(std::vector<std::string> addresses) { state() = std::move(addresses); }
    static const std::vector<std::string>& all() { return state(); }

  private:
    static std::vector<std::string>& state() {
        static std::vector<std::string> addresses;
        return addresses;
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
    if (node != nullptr && node == orizuru::test::SeveralAddresses::name) {
        addrinfo** end = result;
        for (const std::string& address : orizuru::test::SeveralAddresses::all()) {
            if (const int error = real(address.c_str(), service, hints, end); error != 0) {
                return error;
            }
            while (*end != nullptr) {
                end = &(*end)->ai_next;
            }
        }
        return 0;
    }
    return real(node, service, hints, result);
}

} // extern "C"
