// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What the tests include of others: no mutant changes it.

#include <hiredis/hiredis.h>
#include <msgpack.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
