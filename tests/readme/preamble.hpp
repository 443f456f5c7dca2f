// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What the README's excerpts take for granted.

#include <orizuru/orizuru.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

struct Order;
struct Celsius {
    int degrees = 0;
};

void charge(const Order& order);
void log_event(const orizuru::Event& event);
