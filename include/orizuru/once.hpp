// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Effects that happen once, by claims in Redis.

#include <orizuru/once/claim.hpp>
#include <orizuru/once/once.hpp>
#include <orizuru/once/once_options.hpp>
#include <orizuru/once/once_run.hpp>
