// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The whole core. You may include its parts one by one; jobs.hpp, worker.hpp, once.hpp and
// postgres.hpp are opt-in. It needs C++20, exceptions, hiredis and threads. With msgpack-c in the
// include path, messages are msgpack by default; without, you have Raw and your own Codecs.

#if __cplusplus < 202002L
#error "orizuru needs C++20: -std=c++20, or cpp_std=c++20 in Meson"
#else

/// @namespace orizuru
/// A reliable message queue on Redis.

#include <orizuru/background_collector.hpp>
#include <orizuru/codec.hpp>
#include <orizuru/connection.hpp>
#include <orizuru/consumer.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/reply.hpp>
#include <orizuru/script.hpp>

#if __has_include(<msgpack.hpp>)
#include <orizuru/msgpack.hpp>
#endif

#endif
