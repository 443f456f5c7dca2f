// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of inbox.hpp.

#include <orizuru/detail/postgres/inbox_marks.hpp>

#include <utility>

namespace orizuru {

ORIZURU_INLINE Inbox::Inbox(Database database, std::string scope, InboxOptions options)
    : m_marks(
          std::make_unique<detail::InboxMarks>(std::move(database), std::move(scope), options)) {}
ORIZURU_INLINE Inbox::~Inbox() = default;

ORIZURU_INLINE InboxOutcome Inbox::run_effects(std::string_view id,
                                               const std::function<void(pqxx::work&)>& effects) {
    return m_marks->run(id, effects);
}

ORIZURU_INLINE std::vector<InboxResult> Inbox::run_batch_effects(
    std::span<const std::string> ids,
    const std::function<void(pqxx::work&, std::span<const std::size_t>)>& effects) {
    return m_marks->run_batch(ids, effects);
}

ORIZURU_INLINE std::uint64_t
Inbox::purge(std::chrono::seconds age,
             const std::function<void(std::string_view, std::string_view)>& on_held) {
    return m_marks->purge(age, on_held);
}

} // namespace orizuru
