// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Time zones by name, compiled once: an object of its own, as it may need the library date.

#include <orizuru/jobs/time_zone.hpp>
#include <orizuru/jobs/time_zone.ipp>
