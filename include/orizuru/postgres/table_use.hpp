// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What the tables are used for.

namespace orizuru {

/// Who uses a table, and so which rights it takes: what Schema::grants gives.
enum class TableUse {
    inbox,     ///< Inbox
    outbox,    ///< Outbox::push
    relay,     ///< OutboxRelay
    ledger,    ///< Ledger
    reconcile, ///< LedgerReconciler
    purge      ///< the purge() of Inbox and Ledger, besides inbox or ledger for the object itself
};

} // namespace orizuru
