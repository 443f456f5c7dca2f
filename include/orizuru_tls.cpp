// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// TLS compiled once: for builds that want it as a static library.

#include <orizuru/tls/src.hpp>
