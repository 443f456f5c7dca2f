// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The web page's definitions that are no templates, compiled once (meson.build).

#include <orizuru/ops/src.hpp>
