// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Effects that happen once, by claims in Redis.

#if __cplusplus < 202002L
#error "orizuru needs C++20: -std=c++20, or cpp_std=c++20 in Meson"
#else

#include <orizuru/once/claim.hpp>
#include <orizuru/once/once.hpp>
#include <orizuru/once/once_options.hpp>
#include <orizuru/once/once_run.hpp>

#endif
