// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Records in an error how many messages a failed push_all has certainly pushed.

#include <orizuru/error.hpp>

#include <cstdint>

namespace orizuru::detail {

struct PushCount {
    static void set(Error& error, std::uint64_t pushed) noexcept { error.m_pushed = pushed; }
};

} // namespace orizuru::detail
