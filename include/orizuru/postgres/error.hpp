// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What can go wrong with PostgreSQL in what the library does there itself. What a function of the
// user throws, pqxx's exceptions among it, passes through as it is; so does what pqxx throws in a
// transaction of the user's, and at the COMMIT of what a function of the user has done.

#include <orizuru/error.hpp>

namespace orizuru {

/// PostgreSQL could not be reached for as long as Database::patience(), or ended the session 20
/// times; or it refused: a right was taken back, the database can only be read, others were in the
/// way 20 times. what() names the server without the password, and the reason in PostgreSQL's
/// words.
class DatabaseError : public Error {
    using Error::Error;
};

/// The tables are missing, of another version than this library knows, or the user has not the
/// rights that it takes: a person has to mend it (schema.hpp).
class SchemaError : public DatabaseError {
    using DatabaseError::DatabaseError;
};

} // namespace orizuru
