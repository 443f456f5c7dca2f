// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What libFuzzer, or the program of the corpora, gives its bytes to.

#pragma once

#include "input.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::test {

class Target {
  public:
    using Function = void(Input input);

    /// To be made before main: an object of each source.
    Target(std::string name, Function* function) { all().emplace(std::move(name), function); }

    /// nullptr when there is none of that name.
    [[nodiscard]] static Function* find(std::string_view name) {
        const auto found = all().find(name);
        return found == all().end() ? nullptr : found->second;
    }
    /// Of a program with one target.
    [[nodiscard]] static Function* only() { return all().begin()->second; }

  private:
    static std::map<std::string, Function*, std::less<>>& all() {
        static std::map<std::string, Function*, std::less<>> targets;
        return targets;
    }
};

} // namespace orizuru::test
