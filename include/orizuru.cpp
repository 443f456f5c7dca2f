// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The library compiled once: for builds that want it as a static library.

#include <orizuru/src.hpp>
