// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of the headers for PostgreSQL that are no templates. A program that uses them,
// with ORIZURU_SEPARATE_COMPILATION defined, includes this in exactly one of its translation units,
// and <orizuru/src.hpp> in that one or another.

#ifndef ORIZURU_SEPARATE_COMPILATION
#error "<orizuru/postgres/src.hpp> is for programs that define ORIZURU_SEPARATE_COMPILATION"
#endif

#include <orizuru/detail/postgres/conninfo.hpp>
#include <orizuru/detail/postgres/conninfo.ipp>
#include <orizuru/detail/postgres/ledger/core.hpp>
#include <orizuru/detail/postgres/ledger/core.ipp>
#include <orizuru/detail/postgres/outbox_rows.hpp>
#include <orizuru/detail/postgres/outbox_rows.ipp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/database.ipp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/postgres/inbox.ipp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/ledger_reconciler.ipp>
#include <orizuru/postgres/outbox_relay.hpp>
#include <orizuru/postgres/outbox_relay.ipp>
#include <orizuru/postgres/schema.hpp>
#include <orizuru/postgres/schema.ipp>
