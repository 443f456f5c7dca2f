// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Trusts a file that is not there: OpenSSL has to be linked.

#include <orizuru/tls.hpp>

#include <cstdio>
#include <stdexcept>

int main() {
    try {
        static_cast<void>(orizuru::tls_endpoint("rediss://localhost?cacert=/nowhere"));
    } catch (const std::invalid_argument& error) {
        std::puts(error.what());
        return 0;
    }
    return 1;
}
