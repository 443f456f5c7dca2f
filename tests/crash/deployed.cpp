// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The processes of a storm, compiled with an older version of the library: see rolling_deploys.cpp.

#include "crash/support/storm_work.hpp"

#include <cstdlib>

int main(int count, char** arguments) {
    return orizuru::test::main_of_storm(count, arguments, [] { return EXIT_FAILURE; });
}
