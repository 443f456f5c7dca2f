// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What the README's excerpts take for granted.

#include <orizuru/orizuru.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

struct Order;
struct Celsius {
    int degrees = 0;
};

void charge(const Order& order);
bool bank_is_open();
void write_down(std::size_t lines);
void log_event(const orizuru::Event& event);
