// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Notes when a reconciler attends to each queue, and what it has to do there besides a step.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/postgres/ledger/queues.hpp>
#include <orizuru/detail/postgres/ledger/step.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace orizuru::detail {

class LedgerAgenda {
  public:
    /// Forgets all other queues.
    void keep(const std::vector<LedgerQueue>& queues) {
        std::erase_if(m_items, [&](const auto& item) {
            return std::ranges::none_of(
                queues, [&](const LedgerQueue& queue) { return queue.name == item.first; });
        });
    }
    /// Each queue is due at once, and lost messages are to be searched for.
    void sweep(const std::vector<LedgerQueue>& queues) {
        for (const LedgerQueue& queue : queues) {
            search(queue.name);
        }
    }
    /// A queue is due at once, and lost messages are to be searched for.
    void search(const std::string& queue) { m_items[queue].unsearched = true; }
    /// A queue is due at once, although a look may see nothing.
    void urge(const std::string& queue) { m_items[queue].urgent = true; }
    [[nodiscard]] bool any_urgent() const {
        return std::ranges::any_of(m_items, [](const auto& item) { return item.second.urgent; });
    }

    /// Returns when a queue that a look has seen is due.
    [[nodiscard]] TimePoint due(const LedgerQueue& queue) const {
        const auto found = m_items.find(queue.name);
        if (found == m_items.end()) {
            return queue.due;
        }
        const Item& item = found->second;
        return std::max(item.urgent || item.unsearched ? TimePoint{} : queue.due, item.until);
    }
    [[nodiscard]] TimePoint pause_end(const std::string& queue) const {
        const auto found = m_items.find(queue);
        return found == m_items.end() ? TimePoint{} : found->second.until;
    }
    /// True if lost messages are to be searched for.
    [[nodiscard]] bool is_unsearched(const std::string& queue) const {
        const auto found = m_items.find(queue);
        return found != m_items.end() && found->second.unsearched;
    }

    void searched(const std::string& queue) { m_items[queue].unsearched = false; }
    void begin(const std::string& queue) { m_items[queue].urgent = false; }
    /// After a step that did not throw: no pause when it got on.
    void stepped(const std::string& queue, const LedgerStep& step) {
        Item& item = m_items[queue];
        item.failed.reset();
        item.urgent = item.urgent || step.next == LedgerStep::Next::more;
        const bool nothing = step.sent + step.retried + step.told.size() == 0;
        if (step.next == LedgerStep::Next::busy || step.next == LedgerStep::Next::lost ||
            (step.next == LedgerStep::Next::done && nothing)) {
            item.until = deadline_in(std::min(item.vain.next(), longest_in_vain));
        }
    }
    void failed(const std::string& queue) {
        Item& item = m_items[queue];
        item.until = deadline_in(item.failed.next());
    }
    void leave(const std::string& queue, std::chrono::milliseconds time) {
        m_items[queue].until = deadline_in(time);
    }
    /// A look has seen that there is nothing to be done.
    void nothing_due(const std::string& queue) { m_items[queue].vain.reset(); }

  private:
    // Another reconciler works in the queue, or a job is locked, or Redis loses something again and
    // again: of the end of that nobody tells.
    static constexpr std::chrono::milliseconds longest_in_vain{1000};

    struct Item {
        bool urgent = false;
        bool unsearched = false;
        TimePoint until{};
        JitteredPauses failed = {};
        JitteredPauses vain = {};
    };

    std::map<std::string, Item> m_items;
};

} // namespace orizuru::detail
