// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The same with the core of the library, for mutants of headers that it does not include.

#include "others.hpp"

#include <orizuru/orizuru.hpp>
