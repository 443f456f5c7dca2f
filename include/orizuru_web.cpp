// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What the web page has that is no template, compiled once (meson.build).

#include <orizuru/ops/src.hpp>
