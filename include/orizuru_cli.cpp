// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The command line compiled once: for builds that want it as a static library.

#include <orizuru/ops/cli.hpp>
#include <orizuru/ops/cli.ipp>
