// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The seeded test of whom the deaths of workers bury (suspicion/fleet.hpp). With a blunder put in,
// it must find violations. With several killers at once, it tells how many innocent jobs are
// buried.
//
// usage: killers [--seed FIRST] [--seeds COUNT] [--at-once COUNT] [--blunder NAME]

#include "fuzz/suspicion/fleet.hpp"

#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using orizuru::test::Blunder;
using orizuru::test::blunders;
using orizuru::test::Fleet;

constexpr std::uint64_t shown_violations = 5;

struct Options {
    std::uint64_t first = 1;
    std::uint64_t count = 1000;
    int at_once = 1;
    Blunder blunder = Blunder::none;
};

Blunder named(std::string_view name) {
    for (const auto& blunder : blunders) {
        if (blunder.name == name) {
            return blunder.blunder;
        }
    }
    throw std::invalid_argument("no blunder is named '" + std::string(name) + "'");
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
        } else if (name == "--at-once") {
            options.at_once = std::stoi(value);
        } else if (name == "--blunder") {
            options.blunder = named(value);
        } else {
            throw std::invalid_argument("unknown: " + std::string(name));
        }
    }
    return options;
}

/// Returns how many seeds had a violation.
std::uint64_t run(const Options& options) {
    std::map<std::string, std::uint64_t> tally;
    std::uint64_t violations = 0;
    for (std::uint64_t seed = options.first; seed < options.first + options.count; ++seed) {
        const auto wrong = Fleet(seed, options.blunder, options.at_once).run(tally);
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
        return found == (options.blunder != Blunder::none) ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "killers: " << error.what() << '\n';
        return 2;
    }
}
