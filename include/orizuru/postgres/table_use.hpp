// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The uses of the tables, each with its rights.

namespace orizuru {

/// The user of the tables, and so the rights that Schema::grants gives.
enum class TableUse {
    inbox,     ///< Inbox
    outbox,    ///< Outbox::push
    relay,     ///< OutboxRelay
    ledger,    ///< Ledger
    reconcile, ///< LedgerReconciler
    purge      ///< the purge() of Inbox and Ledger, besides inbox or ledger for the object itself
};

} // namespace orizuru
