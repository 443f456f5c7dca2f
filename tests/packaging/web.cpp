// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Serves the page at an address that is none.

#include <orizuru/ops/dashboard.hpp>
#include <orizuru/ops/serve.hpp>

#include <cstdio>
#include <stdexcept>
#include <stop_token>

int main() {
    orizuru::Dashboard dashboard(orizuru::Endpoint("unix:///nowhere/redis.sock"));
    try {
        orizuru::serve(dashboard, "nowhere", std::stop_token());
    } catch (const std::invalid_argument& error) {
        std::puts(error.what());
        return 0;
    }
    return 1;
}
