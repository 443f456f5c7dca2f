// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of ledger_reconciler.hpp.

#include <orizuru/detail/postgres/ledger/reconciliation.hpp>

#include <utility>

namespace orizuru {

ORIZURU_INLINE LedgerReconciler::LedgerReconciler(Database database, Endpoint redis,
                                                  LedgerReconcilerOptions options)
    : m_reconciliation(std::make_unique<detail::LedgerReconciliation>(
          std::move(database), std::move(redis), std::move(options))) {}
ORIZURU_INLINE LedgerReconciler::LedgerReconciler(LedgerReconciler&&) noexcept = default;
ORIZURU_INLINE LedgerReconciler& LedgerReconciler::operator=(LedgerReconciler&&) noexcept = default;
ORIZURU_INLINE LedgerReconciler::~LedgerReconciler() = default;

ORIZURU_INLINE Reconciled LedgerReconciler::reconcile() { return m_reconciliation->reconcile(); }

ORIZURU_INLINE void LedgerReconciler::run(const std::stop_token& token) {
    m_reconciliation->run(token);
}

} // namespace orizuru
