// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Asks for the times of a zone: where the standard library has none, date has to be linked.

#include <orizuru/jobs/time_zone.hpp>

#include <cstdio>
#include <stdexcept>

int main() {
    try {
        const orizuru::TimeZone zone("Nowhere/Never");
    } catch (const std::invalid_argument& error) {
        std::puts(error.what());
        return 0;
    }
    return 1;
}
