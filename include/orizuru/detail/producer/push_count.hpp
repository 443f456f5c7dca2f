// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Adds to an error on its way out how far a push_all had come.

#include <orizuru/error.hpp>

#include <cstdint>

namespace orizuru::detail {

struct PushCount {
    static void set(Error& error, std::uint64_t pushed) noexcept { error.m_pushed = pushed; }
};

} // namespace orizuru::detail
