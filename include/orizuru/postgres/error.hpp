// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What can go wrong with PostgreSQL. What a function of the user throws, pqxx's exceptions among
// it, passes through as it is.

#include <orizuru/error.hpp>

namespace orizuru {

/// PostgreSQL could not be reached for as long as Database::patience(), or refused. what() names
/// the server without the password, and the reason.
class DatabaseError : public Error {
    using Error::Error;
};

/// The tables are missing, of another version than this library knows, or the user has not the
/// rights that it takes: a person has to mend it (schema.hpp).
class SchemaError : public DatabaseError {
    using DatabaseError::DatabaseError;
};

} // namespace orizuru
