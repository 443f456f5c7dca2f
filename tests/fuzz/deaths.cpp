// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The seeded test of who is taken for dead (absence/world.hpp). With a fault put in, it must find
// violations.
//
// usage: deaths [--seed FIRST] [--seeds COUNT] [--fault NAME]

#include "fuzz/absence/life_signs.hpp"
#include "fuzz/absence/world.hpp"

#include <cstdint>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using orizuru::test::Fault;
using orizuru::test::faults;
using orizuru::test::Tally;
using orizuru::test::World;

constexpr std::uint64_t shown_violations = 5;

struct Options {
    std::uint64_t first = 1;
    std::uint64_t count = 10'000;
    Fault fault = Fault::none;
};

Fault named(std::string_view name) {
    for (const auto& fault : faults) {
        if (fault.name == name) {
            return fault.fault;
        }
    }
    throw std::invalid_argument("no fault is named '" + std::string(name) + "'");
}

Options parse(int count, char** arguments) {
    Options options;
    for (int i = 1; i < count; i += 2) {
        const std::string_view name = arguments[i];
        if (i + 1 == count) {
            throw std::invalid_argument("a value is missing after " + std::string(name));
        }
        const std::string value = arguments[i + 1];
        if (name == "--seed") {
            options.first = std::stoull(value);
        } else if (name == "--seeds") {
            options.count = std::stoull(value);
        } else if (name == "--fault") {
            options.fault = named(value);
        } else {
            throw std::invalid_argument("unknown: " + std::string(name));
        }
    }
    return options;
}

/// Returns how many seeds had a violation.
std::uint64_t run(const Options& options) {
    Tally tally;
    std::uint64_t violations = 0;
    for (std::uint64_t seed = options.first; seed < options.first + options.count; ++seed) {
        const auto wrong = World(seed, options.fault).run(tally);
        if (wrong && ++violations <= shown_violations) {
            std::cout << "seed " << seed << ": " << *wrong << '\n';
        }
    }
    for (const auto& [what, times] : tally) {
        std::cout << "  " << times << ' ' << what << '\n';
    }
    std::cout << options.count << " seeds, " << violations << " violations\n";
    return violations;
}

} // namespace

int main(int count, char** arguments) {
    try {
        const Options options = parse(count, arguments);
        const bool found = run(options) > 0;
        return found == (options.fault != Fault::none) ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "deaths: " << error.what() << '\n';
        return 2;
    }
}
