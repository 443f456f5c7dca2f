// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The rules by which the end of each member of a group counts (jobs/group.hpp), tried in every
// state that a maker, three members and two faults can reach. It has no code of the library: it
// says what the scripts have to do, and why each of their conditions is there.

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

namespace group_model_test {

constexpr std::size_t members = 3;
constexpr int faults = 2;

/// The rule that is left out.
enum class Flaw {
    none,
    counts_each_end,     ///< an end counts though the member has ended before
    then_before_commit,  ///< the maker's commit is not waited for
    removal_uncounted,   ///< a job that a person removes is still waited for
    death_counts_always, ///< a dead job counts as ended, though it may be redriven
    then_at_each_end     ///< any end may find the group without members
};

struct Member {
    char waiting = 0; ///< copies, as the next two
    char held = 0;
    char dead = 0;
    bool pushed = false;
    bool pending = false; ///< in the group
    bool ended = false;   ///< as a user sees it
};

struct State {
    std::array<Member, members> jobs{};
    bool open = true; ///< the maker is a member, too: its commit is its end
    char left = 1;
    char failed = 0;
    char died = 0; ///< whose first end was their death
    char then = 0;
    char faults_left = faults;

    [[nodiscard]] std::string key() const {
        std::string text{static_cast<char>(open), left, failed, died, then, faults_left};
        for (const Member& job : jobs) {
            text += {job.waiting,
                     job.held,
                     job.dead,
                     static_cast<char>(job.pushed),
                     static_cast<char>(job.pending),
                     static_cast<char>(job.ended)};
        }
        return text;
    }
};

class Model {
  public:
    Model(bool counts_dead, Flaw flaw) : m_counts_dead(counts_dead), m_flaw(flaw) {}

    /// Returns what is wrong with a state that can be reached; empty if none is.
    std::string search() {
        reach({});
        while (!m_open.empty() && m_wrong.empty()) {
            const State state = m_open.back();
            m_open.pop_back();
            check(state);
            if (state.open) {
                State next = state;
                commit(next);
                reach(next);
            }
            for (std::size_t job = 0; job < members; ++job) {
                work(state, job);
            }
        }
        return m_wrong;
    }
    [[nodiscard]] std::size_t states() const { return m_known.size(); }

  private:
    void reach(const State& state) {
        if (m_known.insert(state.key()).second) {
            m_open.push_back(state);
        }
    }
    void check(const State& state) {
        bool quiet = !state.open;
        for (const Member& job : state.jobs) {
            quiet = quiet && job.waiting + job.held + job.dead == 0;
            if (state.then > 0 && job.pushed && !job.ended) {
                m_wrong = "then comes before a member has ended";
            }
        }
        if (state.then > 0 && state.open) {
            m_wrong = "then comes before the commit";
        } else if (state.then > 1) {
            m_wrong = "then comes twice";
        } else if (quiet && state.then == 0) {
            m_wrong = "then does not come";
        } else if (state.failed != state.died) {
            m_wrong = "the number of the failed is wrong";
        }
    }
    void less(State& state) const {
        --state.left;
        const bool is_last = m_flaw == Flaw::then_at_each_end ? state.left <= 0 : state.left == 0;
        state.then += is_last ? 1 : 0;
    }
    void commit(State& state) const {
        state.open = false;
        if (m_flaw == Flaw::then_before_commit) {
            ++state.left;
        }
        less(state);
    }
    void end(State& state, std::size_t index, bool died = false) const {
        Member& job = state.jobs[index];
        state.died += died && !job.ended ? 1 : 0;
        job.ended = true;
        const bool counts = job.pending || m_flaw == Flaw::counts_each_end;
        job.pending = false;
        if (counts) {
            state.failed += died ? 1 : 0;
            less(state);
        } else if (m_flaw == Flaw::then_at_each_end && state.left == 0) {
            ++state.then;
        }
    }
    void work(const State& state, std::size_t index) {
        const auto step = [&](bool possible, auto change) {
            if (possible) {
                State next = state;
                change(next, next.jobs[index]);
                reach(next);
            }
        };
        const Member& job = state.jobs[index];
        step(state.open && !job.pushed, [&](State& next, Member& to) {
            to.pushed = to.pending = true;
            to.waiting = 1;
            const bool first = m_flaw == Flaw::then_before_commit && next.left == 1;
            next.left += first ? 0 : 1;
        });
        step(job.waiting > 0, [](State&, Member& to) {
            --to.waiting;
            ++to.held;
        });
        step(job.held > 0, [&](State& next, Member& to) {
            --to.held;
            end(next, index);
        });
        step(job.held > 0, [](State&, Member& to) { // a kill, a retry
            --to.held;
            ++to.waiting;
        });
        step(job.held > 0, [&](State& next, Member& to) {
            --to.held;
            ++to.dead;
            if (m_counts_dead) {
                end(next, index, true);
            } else if (m_flaw == Flaw::death_counts_always && to.pending) {
                to.pending = false;
                less(next);
            }
        });
        step(job.dead > 0, [](State&, Member& to) {
            --to.dead;
            ++to.waiting;
        });
        step(job.waiting > 0, [&](State& next, Member& to) {
            --to.waiting;
            remove(next, index);
        });
        step(job.dead > 0, [&](State& next, Member& to) {
            --to.dead;
            remove(next, index);
        });
        // A failover has forgotten that it was taken.
        step(state.faults_left > 0 && job.waiting + job.held > 0, [](State& next, Member& to) {
            --next.faults_left;
            ++to.waiting;
        });
    }
    void remove(State& state, std::size_t index) const {
        if (m_flaw != Flaw::removal_uncounted) {
            end(state, index);
        }
    }

    bool m_counts_dead;
    Flaw m_flaw;
    std::vector<State> m_open;
    std::unordered_set<std::string> m_known;
    std::string m_wrong;
};

TEST_CASE("in every state then comes once, behind the commit and the end of each member") {
    for (const bool counts_dead : {false, true}) {
        Model model(counts_dead, Flaw::none);
        CAPTURE(counts_dead);
        CHECK(model.search() == "");
        CHECK(model.states() > 5'000);
        MESSAGE(model.states(), " states");
    }
}

TEST_CASE("each of the rules is needed") {
    CHECK(Model(false, Flaw::counts_each_end).search() != "");
    CHECK(Model(true, Flaw::counts_each_end).search() != "");
    CHECK(Model(false, Flaw::then_before_commit).search() == "then comes before the commit");
    CHECK(Model(false, Flaw::removal_uncounted).search() == "then does not come");
    CHECK(Model(false, Flaw::death_counts_always).search() ==
          "then comes before a member has ended");
    CHECK(Model(false, Flaw::then_at_each_end).search() == "then comes twice");
}

} // namespace group_model_test
