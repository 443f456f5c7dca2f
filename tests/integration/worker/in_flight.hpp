// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the tests of handlers whose jobs end later: keeps what ends them.

#pragma once

#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

/// The JobDone of each job in flight, with a name. Copies share them.
class Kept {
  public:
    void add(std::string name, JobDone done) const {
        const std::lock_guard lock(m_shelf->mutex);
        m_shelf->all.emplace_back(std::move(name), std::move(done));
    }
    [[nodiscard]] std::size_t size() const {
        const std::lock_guard lock(m_shelf->mutex);
        return m_shelf->all.size();
    }
    [[nodiscard]] bool has(std::size_t count) const {
        return eventually([&] { return size() == count; });
    }
    /// The oldest of this name.
    [[nodiscard]] JobDone take(const std::string& name) const {
        const std::lock_guard lock(m_shelf->mutex);
        const auto found = std::ranges::find(m_shelf->all, name, &Named::first);
        REQUIRE(found != m_shelf->all.end());
        JobDone done = std::move(found->second);
        m_shelf->all.erase(found);
        return done;
    }
    [[nodiscard]] std::vector<JobDone> take_all() const {
        const std::lock_guard lock(m_shelf->mutex);
        std::vector<JobDone> all;
        for (auto& [name, done] : m_shelf->all) {
            all.push_back(std::move(done));
        }
        m_shelf->all.clear();
        return all;
    }

  private:
    using Named = std::pair<std::string, JobDone>;

    struct Shelf {
        std::mutex mutex;
        std::vector<Named> all;
    };
    std::shared_ptr<Shelf> m_shelf = std::make_shared<Shelf>();
};

/// Jobs that end when their JobDone is taken from `kept`.
struct InFlightFixture : WorkerFixture {
    Kept kept; ///< which the handlers share, as the jobs in it share the handlers

    ~InFlightFixture() { static_cast<void>(kept.take_all()); }

    /// A handler that keeps what ends its job.
    [[nodiscard]] auto keep() const {
        return [kept = kept](const Raw& payload, JobDone done) {
            kept.add(payload.bytes, std::move(done));
        };
    }
    /// Options for any number of jobs in flight, whose failures come again much later.
    [[nodiscard]] static QueueOptions any_number() {
        QueueOptions chosen = much_later();
        chosen.concurrency = 10'000;
        return chosen;
    }
};

} // namespace orizuru::test
