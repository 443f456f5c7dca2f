// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Forgets finished jobs with each sweep of a reconciler, a thousand of one queue at a time, so that
// other work goes on in between.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/postgres/ledger/queues.hpp>
#include <orizuru/detail/postgres/ledger/session.hpp>
#include <orizuru/detail/postgres/purge.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// One thread's at a time. The session outlives it.
class LedgerPurging {
  public:
    struct Step {
        std::string queue;
        Purged done;
    };

    /// Without an age there is never anything to do; with one, throws SchemaError without the
    /// rights.
    LedgerPurging(LedgerSession& session, std::optional<std::chrono::seconds> age)
        : m_session(session), m_age(age) {
        if (m_age) {
            m_session.check_use(TableUse::purge);
        }
    }

    /// All these queues are to be looked at.
    void begin(const std::vector<LedgerQueue>& queues) {
        m_queues.clear();
        if (!m_age) {
            return;
        }
        std::ranges::transform(queues, std::back_inserter(m_queues), &LedgerQueue::name);
        std::erase_if(m_places, [&](const auto& place) {
            return place.second.until <= Clock::now() ||
                   std::ranges::find(m_queues, place.first) == m_queues.end();
        });
    }
    /// False when there is nothing to do until the next begin().
    [[nodiscard]] bool goes_on() const noexcept { return !m_queues.empty(); }
    /// A thousand jobs at most. A queue that fails is left for the next begin().
    Step step() {
        Step step{std::move(m_queues.back()), {}};
        m_queues.pop_back();
        const auto place = m_places
                               .try_emplace(step.queue, Place{Purge(m_session.database().prefix(),
                                                                    "ledger", step.queue, *m_age),
                                                              deadline_in(held_for)})
                               .first;
        step.done = m_session.in([&](pqxx::connection& connection) {
            pqxx::nontransaction transaction(connection);
            return place->second.purge.step(transaction);
        });
        if (step.done.goes_on()) {
            m_queues.push_back(step.queue);
        }
        return step;
    }

  private:
    // A held job is tried again only after this time: each try takes a transaction's number, and a
    // million of them with each sweep would soon use those up.
    static constexpr std::chrono::hours held_for{1};

    struct Place {
        Purge purge; ///< goes on behind what is held
        TimePoint until;
    };

    LedgerSession& m_session;
    std::optional<std::chrono::seconds> m_age;
    std::vector<std::string> m_queues;
    std::map<std::string, Place> m_places;
};

} // namespace orizuru::detail
