// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#pragma once

#include <stdexcept>

namespace orizuru::test {

/// What must not happen has happened.
class Violation : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

} // namespace orizuru::test
