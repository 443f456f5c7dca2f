// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// libFuzzer's way into the target of the program.

#include "input.hpp"
#include "target.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    orizuru::test::Target::only()(orizuru::test::Input(data, size));
    return 0;
}
