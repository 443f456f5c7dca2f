// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What the excerpts of README.md, the pages in examples and tests/README.md take for granted.

#include <orizuru/buffered_producer.hpp>
#include <orizuru/orizuru.hpp>

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

struct Order;
struct Refund;

void charge(const Order& order);
void give_back(const Refund& refund);
bool bank_is_open();
void write_down(std::size_t lines);
void log_event(const orizuru::Event& event);
