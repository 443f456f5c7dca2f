// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The cost of msgpack-c and of the parts of the standard library that Orizuru needs, too.

#include <msgpack.hpp>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

int main() {
    msgpack::sbuffer buffer;
    msgpack::pack(buffer, std::string("hello"));
    std::printf("%zu\n", buffer.size());
}
