// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Precompiled for the program of the tests with PostgreSQL, as headers.hpp for the other one.

#include "integration/postgres/postgres_fixture.hpp"

#include <orizuru/orizuru.hpp>
#include <orizuru/postgres.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>
