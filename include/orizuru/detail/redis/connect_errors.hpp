// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Why connecting has failed, where that makes a difference to who tries.

#include <orizuru/error.hpp>

namespace orizuru::detail {

/// The caller's `wake` ended the wait; nothing is wrong with Redis.
class GivenUp : public ConnectionError {
    using ConnectionError::ConnectionError;
};

/// The server that another one named is not there, or not the one that it was taken for: another
/// attempt may find a better one.
class WrongServer : public ConnectionError {
    using ConnectionError::ConnectionError;
};

} // namespace orizuru::detail
