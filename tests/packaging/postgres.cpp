// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Asks a PostgreSQL that is not there which tables it has: libpqxx and libpq have to be linked.

#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/schema.hpp>

#include <cstdio>

int main() {
    try {
        orizuru::Schema schema(orizuru::Database("host=/nowhere"));
        std::printf("it has version %d\n", schema.applied());
    } catch (const orizuru::DatabaseError& error) {
        std::puts(error.what());
        return 0;
    }
    return 1;
}
