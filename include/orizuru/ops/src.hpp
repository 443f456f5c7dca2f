// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of dashboard.hpp, serve.hpp and web_command.hpp. A program that uses them, with
// ORIZURU_SEPARATE_COMPILATION defined, includes this in exactly one of its translation units, and
// <orizuru/src.hpp> in that one or another.

#ifndef ORIZURU_SEPARATE_COMPILATION
#error "<orizuru/ops/src.hpp> is for programs that define ORIZURU_SEPARATE_COMPILATION"
#endif

#include <orizuru/ops/dashboard.hpp>
#include <orizuru/ops/dashboard.ipp>
#include <orizuru/ops/serve.hpp>
#include <orizuru/ops/serve.ipp>
#include <orizuru/ops/web_command.hpp>
#include <orizuru/ops/web_command.ipp>
