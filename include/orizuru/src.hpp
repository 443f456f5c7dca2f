// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// All definitions of the library that are no templates. With ORIZURU_SEPARATE_COMPILATION defined
// in the whole program, exactly one of its translation units includes this.

#ifndef ORIZURU_SEPARATE_COMPILATION
#error "<orizuru/src.hpp> is for programs that define ORIZURU_SEPARATE_COMPILATION"
#endif

#include <orizuru/connection.hpp>
#include <orizuru/connection.ipp>
#include <orizuru/detail/consumer/consumer_core.hpp>
#include <orizuru/detail/consumer/consumer_core.ipp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/consumer/guard_core.ipp>
#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/producer/producer_core.ipp>
#include <orizuru/endpoint.hpp>
#include <orizuru/endpoint.ipp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/garbage_collector.ipp>
#include <orizuru/script.hpp>
#include <orizuru/script.ipp>
