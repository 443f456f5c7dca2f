// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The rules by which a queue keeps the order of each key (keyed.hpp), tried in every state that two
// processes can reach with four jobs of two keys and three faults. It has no code of the library:
// it says what the scripts have to do, and why each of their conditions is there.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace key_order_model_test {

constexpr int jobs = 4;
constexpr int faults = 3;

/// A job as it is somewhere: with a ticket it is the one of its key that is out.
struct Message {
    char job;
    char ticket; ///< 0: none
};

/// The list of a key: the ticket of the job that is out, and those that wait behind it.
struct Order {
    char out = 0; ///< 0: there is no list
    std::vector<Message> waiting;
};

struct State {
    std::vector<Message> source; ///< the last one is served next
    std::array<std::optional<Message>, 2> held;
    std::vector<Message> scheduled;
    std::vector<Message> rejected;
    std::vector<Message> dead;
    std::array<Order, 2> orders;
    char pushed = 0;
    char tickets = 0;
    char faults_left = faults;
    unsigned done = 0;
    unsigned gone = 0;     ///< removed by a person
    unsigned exempt = 0;   ///< left the order of their key: dead, or mistaken
    unsigned mistaken = 0; ///< taken for lost by a sweep

    [[nodiscard]] std::string key() const {
        std::string text{pushed,
                         tickets,
                         faults_left,
                         static_cast<char>(done),
                         static_cast<char>(gone),
                         static_cast<char>(exempt),
                         static_cast<char>(mistaken)};
        const auto add = [&](const auto& messages) {
            for (const Message& message : messages) {
                text += {message.job, message.ticket};
            }
            text += '|';
        };
        add(source);
        for (const auto& one : held) {
            text += one ? std::string{one->job, one->ticket} : "-";
        }
        for (const auto* const place : {&scheduled, &rejected, &dead}) {
            add(*place);
        }
        for (const Order& order : orders) {
            text += order.out;
            add(order.waiting);
        }
        return text;
    }
};

/// Rules that are left out, to see that the model misses them.
enum class Flaw {
    none,
    two_out,            ///< a push does not look for the list
    advance_unchecked,  ///< an ack does not compare tickets
    no_advance,         ///< an ack only removes
    buried_with_ticket, ///< a burial leaves the ticket in the entry
    handled_unentered,  ///< a job without a ticket is handled as it is
    no_chore,           ///< nobody looks after what a collector has buried
    no_sweep            ///< nobody looks for tickets that are nowhere
};

class Model {
  public:
    /// `keys`: bit i is the key of job i.
    Model(unsigned keys, Flaw flaw) : m_keys(keys), m_flaw(flaw) {}

    /// Returns what is wrong with a state that can be reached; empty if none is.
    std::string search() {
        reach({});
        while (!m_open.empty() && m_wrong.empty()) {
            const State state = std::move(m_open.back());
            m_open.pop_back();
            check(state);
            const std::size_t before = m_moves;
            work(state);
            if (m_moves == before) {
                check_end(state);
            }
            if (state.faults_left > 0) {
                State next = state;
                --next.faults_left;
                fail(next);
            }
        }
        return m_wrong;
    }
    [[nodiscard]] std::size_t states() const { return m_known.size(); }

  private:
    [[nodiscard]] std::size_t key_of(char job) const {
        return m_keys >> static_cast<unsigned>(job) & 1U;
    }
    [[nodiscard]] bool sweeps() const {
        return m_flaw != Flaw::no_sweep && m_flaw != Flaw::no_advance;
    }
    static unsigned bit(char job) { return 1U << static_cast<unsigned>(job); }

    void reach(State state) {
        ++m_moves;
        if (m_known.insert(state.key()).second) {
            m_open.push_back(std::move(state));
        }
    }
    void complain(const std::string& what) {
        if (m_wrong.empty()) {
            m_wrong = what;
        }
    }

    // The scripts.

    void push(State& state, char job) {
        Order& order = state.orders[key_of(job)];
        const Message message{job, ++state.tickets};
        if (order.out == 0 || m_flaw == Flaw::two_out) {
            order.out = message.ticket;
            state.source.insert(state.source.begin(), message);
        } else {
            order.waiting.push_back(message);
        }
    }
    void advance(State& state, const Message& message) {
        Order& order = state.orders[key_of(message.job)];
        if (m_flaw != Flaw::advance_unchecked && order.out != message.ticket) {
            return;
        }
        order.out = 0;
        if (!order.waiting.empty()) {
            const Message next = order.waiting.front();
            order.waiting.erase(order.waiting.begin());
            order.out = next.ticket;
            state.source.insert(state.source.begin(), next);
        }
    }
    /// A job without a ticket gets one, and is served next if it is the one that is out.
    void enter(State& state, char job) {
        Order& order = state.orders[key_of(job)];
        const Message message{job, ++state.tickets};
        if (order.out == 0) {
            order.out = message.ticket;
            state.source.push_back(message);
        } else {
            order.waiting.push_back(message);
        }
    }

    /// What happens without a fault.
    void work(const State& state) {
        if (state.pushed < jobs) {
            State next = state;
            push(next, next.pushed++);
            reach(std::move(next));
        }
        for (std::size_t process = 0; process < state.held.size(); ++process) {
            work(state, process);
        }
        const auto back = [&](std::vector<Message> State::*place) {
            for (std::size_t i = 0; i < (state.*place).size(); ++i) {
                State next = state;
                next.source.insert(next.source.begin(), take(next.*place, i));
                reach(std::move(next));
            }
        };
        back(&State::scheduled);
        back(&State::rejected);
        for (std::size_t i = 0; i < state.dead.size() && m_flaw != Flaw::no_chore; ++i) {
            if (state.dead[i].ticket != 0) {
                State next = state;
                advance(next, std::exchange(next.dead[i], {next.dead[i].job, 0}));
                next.exempt |= bit(state.dead[i].job);
                reach(std::move(next));
            }
        }
        for (const Order& order : state.orders) {
            if (order.out != 0 && !is_out(state, order.out) && sweeps()) {
                State next = state;
                const auto key = static_cast<std::size_t>(&order - state.orders.data());
                advance(next, {job_of_key(key), order.out});
                reach(std::move(next));
            }
        }
    }
    void work(const State& state, std::size_t process) {
        State next = state;
        auto& held = next.held.at(process);
        if (!held) {
            if (!next.source.empty()) {
                held = take(next.source, next.source.size() - 1);
                reach(std::move(next));
            }
            return;
        }
        const Message message = *std::exchange(held, std::nullopt);
        if (message.ticket == 0 && m_flaw != Flaw::handled_unentered) {
            enter(next, message.job);
        } else {
            check_turn(state, message);
            next.done |= bit(message.job);
            if (m_flaw != Flaw::no_advance) {
                advance(next, message);
            }
        }
        reach(std::move(next));
    }

    /// One fault, or what a person does.
    void fail(const State& state) {
        const auto mistake = [&](const Message& message) {
            State swept = state; // by one that has missed it on its way from place to place
            swept.exempt |= bit(message.job);
            swept.mistaken |= bit(message.job);
            advance(swept, message);
            reach(std::move(swept));
        };
        for_each(state, [&](const Message& message) {
            if (message.ticket != 0) {
                mistake(message);
            }
        });
        for (std::size_t process = 0; process < state.held.size(); ++process) {
            if (state.held.at(process)) {
                fail(state, process);
            }
        }
        for (std::size_t i = 0; i < state.dead.size(); ++i) {
            State redriven = state;
            redriven.source.insert(redriven.source.begin(), take(redriven.dead, i));
            reach(std::move(redriven));
            State purged = state;
            purged.gone |= bit(take(purged.dead, i).job);
            reach(std::move(purged));
        }
        for (const auto place : {&State::source, &State::scheduled, &State::rejected}) {
            for (std::size_t i = 0; i < (state.*place).size(); ++i) {
                State removed = state;
                const Message message = take(removed.*place, i);
                removed.gone |= bit(message.job);
                if (message.ticket != 0) {
                    advance(removed, message);
                }
                reach(std::move(removed));
            }
        }
    }
    void fail(const State& state, std::size_t process) {
        const Message message = *state.held.at(process);
        State rest = state;
        rest.held.at(process).reset();
        const auto with = [&](auto change) {
            State next = rest;
            change(next);
            reach(std::move(next));
        };
        with([&](State& next) { next.source.push_back(message); }); // it has died, or requeues
        with([&](State& next) { next.dead.push_back(message); });   // a collector buries it
        if (message.ticket != 0) {
            with([&](State& next) { next.scheduled.push_back(message); });
            with([&](State& next) { next.rejected.push_back(message); });
            with([&](State& next) {
                const bool keeps = m_flaw == Flaw::buried_with_ticket;
                next.dead.push_back({message.job, keeps ? message.ticket : '\0'});
                next.exempt |= bit(message.job);
                advance(next, message);
            });
        }
    }

    // What has to hold.

    /// All of one key are handled one after the other, in the order of their pushes.
    void check_turn(const State& state, const Message& message) {
        for (char earlier = 0; earlier < message.job; ++earlier) {
            const unsigned settled = state.done | state.gone | state.exempt | bit(message.job);
            if (key_of(earlier) == key_of(message.job) && (settled & bit(earlier)) == 0 &&
                (state.exempt & bit(message.job)) == 0) {
                complain("out of order");
            }
        }
        for (const auto& other : state.held) {
            const bool also = other && other->ticket != 0 && other->job != message.job;
            const unsigned both = also ? bit(other->job) | bit(message.job) : 0;
            if (also && key_of(other->job) == key_of(message.job) && (state.mistaken & both) == 0) {
                complain("two at once");
            }
        }
    }
    void check(const State& state) {
        unsigned found = state.done | state.gone;
        const auto find = [&](const Message& message) {
            if ((found & bit(message.job)) != 0) {
                complain("twice");
            }
            found |= bit(message.job);
        };
        for_each(state, find);
        std::ranges::for_each(state.dead, find);
        for (const Order& order : state.orders) {
            std::ranges::for_each(order.waiting, find);
        }
        if (std::popcount(found) != state.pushed) {
            complain("lost");
        }
    }
    /// Nothing moves any more.
    void check_end(const State& state) {
        unsigned ended = state.done | state.gone;
        for (const Message& message : state.dead) {
            ended |= bit(message.job);
        }
        if (std::popcount(ended) != jobs) {
            complain("a key stands still");
        }
    }
    template <class F>
    static void for_each(const State& state, F f) {
        for (const auto* const place : {&state.source, &state.scheduled, &state.rejected}) {
            std::ranges::for_each(*place, f);
        }
        for (const auto& one : state.held) {
            if (one) {
                f(*one);
            }
        }
    }
    static bool is_out(const State& state, char ticket) {
        bool found = false;
        const auto look = [&](const Message& message) {
            found = found || message.ticket == ticket;
        };
        for_each(state, look);
        std::ranges::for_each(state.dead, look);
        return found;
    }
    [[nodiscard]] char job_of_key(std::size_t key) const {
        char job = 0;
        while (key_of(job) != key) {
            ++job;
        }
        return job;
    }
    static Message take(std::vector<Message>& place, std::size_t index) {
        const Message message = place[index];
        place.erase(place.begin() + static_cast<std::ptrdiff_t>(index));
        return message;
    }

    unsigned m_keys;
    Flaw m_flaw;
    std::vector<State> m_open;
    std::unordered_set<std::string> m_known;
    std::size_t m_moves = 0;
    std::string m_wrong;
};

/// Which jobs have the second key; the rest is the same with the keys exchanged.
constexpr std::array<unsigned, 8> patterns = {0b0000, 0b0010, 0b0100, 0b0110,
                                              0b1000, 0b1010, 0b1100, 0b1110};

std::string first_wrong(Flaw flaw) {
    for (const unsigned keys : patterns) {
        if (std::string wrong = Model(keys, flaw).search(); !wrong.empty()) {
            return wrong;
        }
    }
    return {};
}

TEST_CASE("in every state each key keeps its order, nothing is lost, and no key stands still") {
    std::size_t states = 0;
    for (const unsigned keys : patterns) {
        Model model(keys, Flaw::none);
        CAPTURE(keys);
        CHECK(model.search() == "");
        states += model.states();
    }
    MESSAGE(states, " states");
}

TEST_CASE("each of the rules is needed") {
    CHECK(first_wrong(Flaw::two_out) != "");
    CHECK(first_wrong(Flaw::advance_unchecked) != "");
    CHECK(first_wrong(Flaw::no_advance) != "");
    CHECK(first_wrong(Flaw::buried_with_ticket) != "");
    CHECK(first_wrong(Flaw::handled_unentered) != "");
    CHECK(first_wrong(Flaw::no_chore) != "");
    CHECK(first_wrong(Flaw::no_sweep) != "");
}

} // namespace key_order_model_test
