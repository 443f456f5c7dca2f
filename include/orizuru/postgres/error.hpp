// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Errors of the library's own work in PostgreSQL. Exceptions that a function of yours throws,
// pqxx's among them, pass through as they are; so do those that pqxx throws in a transaction of
// yours, and at the COMMIT of the effects of your function.

#include <orizuru/error.hpp>

namespace orizuru {

/// PostgreSQL could not be reached, or could only be read, for as long as Database::patience(), or
/// ended the session 20 times; or it refused: a right was taken back, others were in the way 20
/// times. what() names the server without the password, and the reason in PostgreSQL's
/// words.
class DatabaseError : public Error {
    using Error::Error;
};

/// The tables are missing or of another version than this library knows, or the user lacks a right
/// that it needs: a person has to mend it (schema.hpp).
class SchemaError : public DatabaseError {
    using DatabaseError::DatabaseError;
};

} // namespace orizuru
