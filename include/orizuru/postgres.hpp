// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// All classes that keep their state in PostgreSQL. They need libpqxx 6.4 or later, and libpq.

#if __cplusplus < 202002L
#error "orizuru needs C++20: -std=c++20, or cpp_std=c++20 in Meson"
#else

#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/postgres/inbox_options.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_entry.hpp>
#include <orizuru/postgres/ledger_event.hpp>
#include <orizuru/postgres/ledger_function.hpp>
#include <orizuru/postgres/ledger_job_options.hpp>
#include <orizuru/postgres/ledger_options.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/ledger_reconciler_options.hpp>
#include <orizuru/postgres/outbox.hpp>
#include <orizuru/postgres/outbox_event.hpp>
#include <orizuru/postgres/outbox_options.hpp>
#include <orizuru/postgres/outbox_relay.hpp>
#include <orizuru/postgres/outbox_relay_options.hpp>
#include <orizuru/postgres/schema.hpp>
#include <orizuru/postgres/table_use.hpp>

#endif
