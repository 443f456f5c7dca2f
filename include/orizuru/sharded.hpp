// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue over many shards: how it is created, grown and shrunk, and its producer. A consumer is a
// Consumer of each shard; for a Worker, <orizuru/worker/handle_shards.hpp> has all shards at once.

#if __cplusplus < 202002L
#error "orizuru needs C++20: -std=c++20, or cpp_std=c++20 in Meson"
#else

#include <orizuru/shards/sharded_producer.hpp> // IWYU pragma: export
#include <orizuru/shards/shards.hpp>           // IWYU pragma: export

#endif
