// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Includes the consumer's whole engine: its classes and the definitions of their members.

#include <orizuru/detail/consumer/blocking_fetch_stop.hpp>
#include <orizuru/detail/consumer/channels_replies.hpp>
#include <orizuru/detail/consumer/fetcher_waiting.hpp>
#include <orizuru/detail/consumer/session.hpp>
#include <orizuru/detail/consumer/session_settling.hpp>
#include <orizuru/detail/consumer/window_messages.hpp>
#include <orizuru/detail/consumer/window_recovery.hpp>
#include <orizuru/detail/consumer/window_replies.hpp>
#include <orizuru/detail/consumer/window_requests.hpp>
