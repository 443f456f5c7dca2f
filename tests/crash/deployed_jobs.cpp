// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A process of rolling_jobs.cpp, compiled with an older version of the library.

#include "crash/support/deployed_jobs.hpp"

int main(int count, char** arguments) {
    return count < 4 ? 2
                     : orizuru::test::DeployedJobs::run(arguments[1], arguments[2], arguments[3],
                                                        count > 4 ? arguments[4] : "");
}
