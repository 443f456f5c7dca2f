// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The parts for PostgreSQL compiled once: for builds that want them as a static library.

#include <orizuru/postgres/src.hpp>
