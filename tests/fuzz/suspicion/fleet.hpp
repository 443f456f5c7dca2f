// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A model of workers that share a queue, of jobs that kill the worker that runs them, and of the
// collector, which blames all that a dead one held. Time passes in steps. The rule of how many
// suspects are held is the library's own (detail/mirror/trial.hpp). Jobs have ids, so no two that
// live share a count; some come again under the same id once they are done.
//
// With one killer at a time, each of which comes when nobody is suspected any more, only the
// killers may be buried, and no job may be begun more than four times. Where killers overlap, a
// job that has lain beside one in three deaths may lie beside another one in the fourth.

#pragma once

#include <orizuru/detail/mirror/trial.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

enum class Blunder : std::uint8_t { none, all_together, count_stays, never_narrower };

struct NamedBlunder {
    std::string_view name;
    Blunder blunder;
};
inline constexpr std::array blunders{
    NamedBlunder{"all_together", Blunder::all_together},     ///< suspects go back to the queue
    NamedBlunder{"count_stays", Blunder::count_stays},       ///< an ack leaves the count
    NamedBlunder{"never_narrower", Blunder::never_narrower}, ///< each level has the first's limit
};

/// One seed.
class Fleet {
  public:
    Fleet(std::uint64_t seed, Blunder blunder, int killers_at_once)
        : m_random(seed), m_blunder(blunder), m_killers_at_once(killers_at_once) {
        m_threads = static_cast<int>(up_to(3) == 0 ? 1 + up_to(63) : 2 + up_to(14));
        m_workers.resize(1 + up_to(3));
        m_limits = detail::TrialLimits::of(m_threads, most_recoveries);
        m_innocent_left = 20 * m_threads * static_cast<int>(m_workers.size());
        m_killers_left = 3 * killers_at_once;
    }

    /// Returns what was wrong, if anything was; adds to `tally` what happened.
    std::optional<std::string> run(std::map<std::string, std::uint64_t>& tally) {
        for (int step = 0; !m_wrong && !over(); ++step) {
            if (step > 1'000'000) {
                return "it does not end";
            }
            produce();
            for (Worker& worker : m_workers) {
                live(worker);
            }
        }
        tally["deaths"] += m_deaths;
        tally["innocent jobs begun"] += m_begun;
        tally["innocent jobs buried"] += m_innocent_buried;
        tally["killers buried"] += m_killers_buried;
        return m_wrong;
    }

  private:
    static constexpr int most_recoveries = 3;

    struct Job {
        std::uint64_t name;
        bool kills;
        int left;  ///< steps to its end
        int begun; ///< how often
    };
    struct Worker {
        std::vector<Job> held;
        std::vector<bool> suspected; ///< those of them
        int down = 0;                ///< steps until it lives again
        std::vector<Job> lost;       ///< until they are collected
    };

    std::uint64_t up_to(std::uint64_t most) {
        return std::uniform_int_distribution<std::uint64_t>(0, most)(m_random);
    }
    [[nodiscard]] bool over() const {
        return m_innocent_left == 0 && m_killers_left == 0 && m_killers == 0 && m_source.empty() &&
               m_apart.empty() && std::ranges::all_of(m_workers, [](const Worker& worker) {
                   return worker.held.empty() && worker.lost.empty();
               });
    }
    [[nodiscard]] bool nobody_suspected() const {
        return m_apart.empty() && std::ranges::all_of(m_workers, [](const Worker& worker) {
                   return worker.lost.empty() &&
                          std::ranges::find(worker.suspected, true) == worker.suspected.end();
               });
    }
    void produce() {
        while (m_innocent_left > 0 && up_to(3) > 0) {
            --m_innocent_left;
            m_source.push_back({++m_names, false, duration(), 0});
        }
        const bool calm = m_killers_at_once > 1 || nobody_suspected();
        if (m_killers_left > 0 && m_killers < m_killers_at_once && calm && up_to(20) == 0) {
            --m_killers_left;
            ++m_killers;
            m_source.push_back({1'000'000 + ++m_names, true, duration(), 0});
        }
    }
    int duration() { return static_cast<int>(1 + up_to(up_to(9) == 0 ? 200 : 20)); }

    void live(Worker& worker) {
        if (worker.down > 0) {
            if (--worker.down == 0) {
                collect(worker);
            }
            return;
        }
        while (std::cmp_less(worker.held.size(), m_threads) && take(worker)) {
        }
        for (std::size_t i = 0; i < worker.held.size();) {
            Job& job = worker.held[i];
            if (--job.left > 0) {
                ++i;
            } else if (job.kills) {
                die(worker);
                return;
            } else {
                acked(worker, i);
            }
        }
    }
    bool take(Worker& worker) {
        if (!m_apart.empty() && fits(worker, m_apart.front())) {
            begin(worker, m_apart, true);
            return true;
        }
        if (m_source.empty()) {
            return false;
        }
        begin(worker, m_source, false);
        return true;
    }
    void begin(Worker& worker, std::deque<Job>& from, bool suspected) {
        Job job = from.front();
        from.pop_front();
        m_begun += job.kills ? 0 : 1;
        if (++job.begun > most_recoveries + 1 && m_killers_at_once == 1) {
            m_wrong = "a job was begun " + std::to_string(job.begun) + " times";
        }
        worker.held.push_back(job);
        worker.suspected.push_back(suspected);
    }
    [[nodiscard]] int level(const Job& job) const {
        const auto found = m_recoveries.find(job.name);
        return found == m_recoveries.end() ? 1 : std::clamp(found->second, 1, most_recoveries);
    }
    [[nodiscard]] bool fits(const Worker& worker, const Job& job) const {
        int count = 0;
        int highest = level(job);
        for (std::size_t i = 0; i < worker.held.size(); ++i) {
            if (worker.suspected[i]) {
                ++count;
                highest = std::max(highest, level(worker.held[i]));
            }
        }
        if (m_blunder == Blunder::never_narrower) {
            highest = 1;
        }
        return count < m_limits.most[static_cast<std::size_t>(highest) - 1];
    }
    void acked(Worker& worker, std::size_t at) {
        if (worker.suspected[at] && m_blunder != Blunder::count_stays) {
            m_recoveries.erase(worker.held[at].name);
        }
        if (up_to(2) > 0) { // the same id comes again
            m_source.push_back({worker.held[at].name, false, duration(), 0});
        }
        worker.held.erase(worker.held.begin() + static_cast<std::ptrdiff_t>(at));
        worker.suspected.erase(worker.suspected.begin() + static_cast<std::ptrdiff_t>(at));
    }
    void die(Worker& worker) {
        ++m_deaths;
        worker.lost = std::exchange(worker.held, {});
        worker.suspected.clear();
        worker.down = static_cast<int>(1 + up_to(10));
    }
    void collect(Worker& worker) {
        std::map<std::uint64_t, int> counted;
        for (const Job& job : worker.lost) {
            counted[job.name] = m_recoveries[job.name] + 1;
        }
        for (const auto& [name, count] : counted) {
            m_recoveries[name] = count;
        }
        for (Job job : std::exchange(worker.lost, {})) {
            job.left = duration();
            if (counted[job.name] > most_recoveries) {
                bury(job);
            } else {
                (m_blunder == Blunder::all_together ? m_source : m_apart).push_back(job);
            }
        }
        std::erase_if(m_recoveries, [](const auto& each) { return each.second > most_recoveries; });
    }
    void bury(const Job& job) {
        m_killers_buried += job.kills ? 1 : 0;
        m_killers -= job.kills ? 1 : 0;
        m_innocent_buried += job.kills ? 0 : 1;
        if (!job.kills && m_killers_at_once == 1) {
            m_wrong = "an innocent job was buried";
        }
    }

    std::mt19937_64 m_random;
    Blunder m_blunder;
    int m_killers_at_once;
    int m_threads = 1;
    detail::TrialLimits m_limits;
    std::vector<Worker> m_workers;
    int m_innocent_left = 0;
    int m_killers_left = 0;
    int m_killers = 0; ///< that live
    std::uint64_t m_names = 0;
    std::deque<Job> m_source;
    std::deque<Job> m_apart;
    std::map<std::uint64_t, int> m_recoveries;
    std::uint64_t m_deaths = 0;
    std::uint64_t m_begun = 0;
    std::uint64_t m_innocent_buried = 0;
    std::uint64_t m_killers_buried = 0;
    std::optional<std::string> m_wrong;
};

} // namespace orizuru::test
