// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Includes the consumer's whole engine: its classes and the definitions of their members.

#include <orizuru/detail/consumer/fetcher_waiting.hpp>
#include <orizuru/detail/consumer/lane_driving.hpp>
#include <orizuru/detail/consumer/lane_replies.hpp>
#include <orizuru/detail/consumer/mirror_messages.hpp>
#include <orizuru/detail/consumer/mirror_recovery.hpp>
#include <orizuru/detail/consumer/mirror_replies.hpp>
#include <orizuru/detail/consumer/mirror_requests.hpp>
#include <orizuru/detail/consumer/session.hpp>
#include <orizuru/detail/consumer/session_settling.hpp>
#include <orizuru/detail/consumer/waiter_stop.hpp>
