// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The main function of every doctest binary.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
