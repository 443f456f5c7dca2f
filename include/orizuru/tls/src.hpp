// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of tls.hpp. A program that uses it, with ORIZURU_SEPARATE_COMPILATION defined,
// includes this in exactly one of its translation units, and <orizuru/src.hpp> in that one or
// another.

#ifndef ORIZURU_SEPARATE_COMPILATION
#error "<orizuru/tls/src.hpp> is for programs that define ORIZURU_SEPARATE_COMPILATION"
#endif

#include <orizuru/tls.hpp>
#include <orizuru/tls/tls_endpoint.ipp>
