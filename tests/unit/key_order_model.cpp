// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The rules by which a queue keeps the order of each key (keyed.hpp), tried in every state that two
// processes can reach with four jobs of two keys and three faults, one by one, and with two in
// bursts. It has no code of the library: it says what the scripts have to do, and why each of their
// conditions is there.

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
constexpr int most_deaths = 2; ///< of the workers of one job: then a collector buries it

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

/// The work that a process has in hand. A death leaves the message alone.
struct Held {
    Message message;
    std::vector<Message> behind; ///< the rest of its burst, which the list has as well
    char ran = 0;                ///< jobs that are done, and not settled
    bool asked = false;          ///< for the rest
};

/// Left by a burst until it is settled.
struct Mark {
    char ticket = 0; ///< of the last job that was handled alone for it
    char left = 0;   ///< jobs that are to be
};

struct State {
    std::vector<Message> source; ///< the last one is served next
    std::array<std::optional<Held>, 2> held;
    std::vector<Message> scheduled;
    std::vector<Message> rejected;
    std::vector<Message> dead;
    std::array<Order, 2> orders;
    std::array<Mark, 2> marks;
    std::array<char, jobs> blamed{};
    char deaths = 0;
    char pushed = 0;
    char tickets = 0;
    char faults_left = 0;
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
            text += '-';
            if (one) {
                text += {one->message.job, one->message.ticket, one->ran, one->asked ? '?' : ' '};
                add(one->behind);
            }
        }
        for (const Mark& mark : marks) {
            text += {mark.ticket, mark.left};
        }
        text.append(blamed.data(), blamed.size()) += deaths;
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
    no_sweep,           ///< nobody looks for tickets that are nowhere
    burst_unchecked,    ///< the end of a burst does not compare tickets
    burst_not_run,      ///< it takes along the jobs that have not run
    turn_stays,         ///< a job that fails in it does not get the turn
    suspect_leads,      ///< a job that was blamed leads a burst
    no_mark             ///< a burst that killed its worker may come again
};

class Model {
  public:
    struct Limits {
        std::size_t burst = 1;
        char faults = 3;
        std::optional<char> killer = {}; ///< the job that kills its worker; then little else fails
    };
    /// `keys`: bit i is the key of job i.
    Model(unsigned keys, Flaw flaw, const Limits& limits)
        : m_keys(keys), m_flaw(flaw), m_limits(limits) {}

    /// Returns what is wrong with a state that can be reached; empty if none is.
    std::string search() {
        State first;
        first.faults_left = m_limits.faults;
        reach(first);
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
                m_limits.killer ? die(next) : fail(next);
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
    /// `more`: the jobs of a burst that end with the message.
    void advance(State& state, const Message& message, std::size_t more = 0) {
        Order& order = state.orders[key_of(message.job)];
        if (m_flaw != Flaw::advance_unchecked && order.out != message.ticket) {
            return;
        }
        order.out = 0;
        order.waiting.erase(order.waiting.begin(),
                            order.waiting.begin() + static_cast<std::ptrdiff_t>(more));
        if (!order.waiting.empty()) {
            const Message next = order.waiting.front();
            order.waiting.erase(order.waiting.begin());
            order.out = next.ticket;
            state.source.insert(state.source.begin(), next);
        }
    }
    /// The jobs behind the one that is out, for the process that has handled it.
    void lead(State& state, Held& held) {
        held.asked = true;
        const std::size_t key = key_of(held.message.job);
        const Order& order = state.orders[key];
        const bool suspected = state.blamed[static_cast<std::size_t>(held.message.job)] > 0;
        if (order.out != held.message.ticket || (suspected && m_flaw != Flaw::suspect_leads)) {
            return;
        }
        Mark& mark = state.marks[key];
        if (mark.left > 0 && mark.ticket != held.message.ticket) {
            mark = {held.message.ticket, static_cast<char>(mark.left - 1)};
        }
        if (mark.left == 0) {
            const std::size_t more = std::min(m_limits.burst - 1, order.waiting.size());
            held.behind.assign(order.waiting.begin(),
                               order.waiting.begin() + static_cast<std::ptrdiff_t>(more));
            const bool marks = more > 0 && m_flaw != Flaw::no_mark;
            mark = {held.message.ticket, static_cast<char>(marks ? more : 0)};
        }
    }
    /// Ends the jobs of a burst that are done; the turn goes to the next one of them, which moves.
    /// Returns whether it is the process' turn.
    bool end_burst(State& state, const Held& held) {
        Order& order = state.orders[key_of(held.message.job)];
        state.done |= bit(held.message.job);
        if (order.out != held.message.ticket && m_flaw != Flaw::burst_unchecked) {
            return false;
        }
        state.marks[key_of(held.message.job)] = {};
        for (char i = 1; i < held.ran; ++i) {
            state.done |= bit(held.behind[static_cast<std::size_t>(i - 1)].job);
        }
        if (m_flaw != Flaw::turn_stays) {
            order.waiting.erase(order.waiting.begin(), order.waiting.begin() + held.ran);
            order.out = in_hand(held).ticket;
        }
        return true;
    }
    /// The job that runs, or is the next one to.
    static Message in_hand(const Held& held) {
        return held.ran == 0 ? held.message : held.behind[static_cast<std::size_t>(held.ran - 1)];
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
                held = Held{take(next.source, next.source.size() - 1), {}};
                reach(std::move(next));
            }
            return;
        }
        const Message message = held->message;
        if (message.ticket == 0 && m_flaw != Flaw::handled_unentered) {
            held.reset();
            enter(next, message.job);
            reach(std::move(next));
            return;
        }
        if (held->ran <= std::ssize(held->behind)) {
            run(state, process);
        }
        if (held->ran > 0) {
            settle(next, process);
            if (m_limits.burst > 1 && !state.held.at(process)->asked) {
                next = state;
                lead(next, *next.held.at(process));
                reach(std::move(next));
            }
        }
    }
    void run(const State& state, std::size_t process) {
        State next = state;
        auto& held = next.held.at(process);
        check_turn(state, *held);
        if (in_hand(*held).job != m_limits.killer) {
            ++held->ran;
        } else {
            if (++next.deaths > most_deaths + 1) {
                complain("too many deaths");
            }
            blame(next, process);
        }
        reach(std::move(next));
    }
    /// The process has died: a collector counts that of the message that it held.
    void blame(State& state, std::size_t process) {
        const Message message = std::exchange(state.held.at(process), std::nullopt)->message;
        if (++state.blamed[static_cast<std::size_t>(message.job)] < most_deaths) {
            state.source.push_back(message);
            return;
        }
        state.dead.push_back(message);
        if (message.job != m_limits.killer) {
            complain("an innocent one is dead");
        }
    }
    /// Something else has killed a process, before the killer has.
    void die(const State& state) {
        for (std::size_t process = 0; process < state.held.size() && state.deaths == 0; ++process) {
            if (state.held.at(process)) {
                State next = state;
                blame(next, process);
                reach(std::move(next));
            }
        }
    }
    /// All that has run.
    void settle(State state, std::size_t process) {
        const Held held = *std::exchange(state.held.at(process), std::nullopt);
        const Message message = held.message;
        const std::size_t more = static_cast<std::size_t>(held.ran) - 1;
        const Order& order = state.orders[key_of(message.job)];
        state.done |= bit(message.job);
        state.blamed[static_cast<std::size_t>(message.job)] = 0;
        if (order.out == message.ticket || m_flaw == Flaw::burst_unchecked) {
            for (std::size_t i = 0; i < more; ++i) {
                state.done |= bit(held.behind[i].job);
            }
            if (!held.behind.empty()) {
                state.marks[key_of(message.job)] = {};
            }
        }
        const std::size_t taken = m_flaw == Flaw::burst_not_run ? held.behind.size() : more;
        const bool checks = m_flaw != Flaw::burst_unchecked || more == 0;
        if (m_flaw != Flaw::no_advance) {
            advance(state, {message.job, checks ? message.ticket : order.out},
                    std::min(taken, order.waiting.size()));
        }
        reach(std::move(state));
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
        const Held held = *state.held.at(process);
        const Message message = held.message;
        State rest = state;
        rest.held.at(process).reset();
        const auto with = [&](auto change) {
            State next = rest;
            change(next);
            reach(std::move(next));
        };
        with([&](State& next) { next.source.push_back(message); }); // it has died, or requeues
        with([&](State& next) { next.dead.push_back(message); });   // a collector buries it
        if (message.ticket == 0 || held.ran > std::ssize(held.behind)) {
            return;
        }
        const Message failed = in_hand(held); // or stopped
        const auto with_failed = [&](auto change) {
            with([&](State& next) {
                if (held.ran == 0 || end_burst(next, held)) {
                    change(next);
                }
            });
        };
        with_failed([&](State& next) { next.scheduled.push_back(failed); });
        with_failed([&](State& next) { next.rejected.push_back(failed); });
        with_failed([&](State& next) {
            const bool keeps = m_flaw == Flaw::buried_with_ticket;
            next.dead.push_back({failed.job, keeps ? failed.ticket : '\0'});
            next.exempt |= bit(failed.job);
            advance(next, failed);
        });
    }

    // What has to hold.

    /// All of one key are handled one after the other, in the order of their pushes.
    void check_turn(const State& state, const Held& held) {
        const Message message = in_hand(held);
        unsigned settled = state.done | state.gone | state.exempt | bit(message.job);
        settled |= held.ran > 0 ? bit(held.message.job) : 0U;
        for (char i = 1; i < held.ran; ++i) {
            settled |= bit(held.behind[static_cast<std::size_t>(i - 1)].job);
        }
        const unsigned exempt = state.exempt & (bit(held.message.job) | bit(message.job));
        for (char earlier = 0; earlier < message.job; ++earlier) {
            if (key_of(earlier) == key_of(message.job) && (settled & bit(earlier)) == 0 &&
                exempt == 0) {
                complain("out of order");
            }
        }
        for (const auto& other : state.held) {
            const bool also =
                other && other->message.ticket != 0 && other->message.job != held.message.job;
            const unsigned both =
                also ? bit(other->message.job) | bit(held.message.job) | bit(message.job) : 0;
            if (also && key_of(other->message.job) == key_of(message.job) &&
                (state.mistaken & both) == 0) {
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
                f(one->message);
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
    Limits m_limits;
    std::vector<State> m_open;
    std::unordered_set<std::string> m_known;
    std::size_t m_moves = 0;
    std::string m_wrong;
};

/// Which jobs have the second key; the rest is the same with the keys exchanged.
constexpr std::array<unsigned, 8> patterns = {0b0000, 0b0010, 0b0100, 0b0110,
                                              0b1000, 0b1010, 0b1100, 0b1110};

constexpr Model::Limits one_by_one{};
constexpr Model::Limits in_bursts{.burst = 3, .faults = 2};
constexpr Model::Limits killing(char job) { return {.burst = 4, .faults = 1, .killer = job}; }

std::string first_wrong(Flaw flaw) {
    for (const unsigned keys : patterns) {
        for (const auto& limits : {one_by_one, in_bursts, killing(1), killing(3)}) {
            if (std::string wrong = Model(keys, flaw, limits).search(); !wrong.empty()) {
                return wrong;
            }
        }
    }
    return {};
}

void check_all(const Model::Limits& limits) {
    std::size_t states = 0;
    for (const unsigned keys : patterns) {
        Model model(keys, Flaw::none, limits);
        CAPTURE(keys);
        CHECK(model.search() == "");
        states += model.states();
    }
    MESSAGE(states, " states");
}

TEST_CASE("in every state each key keeps its order, nothing is lost, and no key stands still") {
    SUBCASE("one by one") { check_all(one_by_one); }
    SUBCASE("in bursts") { check_all(in_bursts); }
}

TEST_CASE("a job that kills its workers is buried after one death more in a burst, and no other") {
    for (char job = 0; job < jobs; ++job) {
        check_all(killing(job));
    }
}

TEST_CASE("each of the rules is needed") {
    CHECK(first_wrong(Flaw::two_out) != "");
    CHECK(first_wrong(Flaw::advance_unchecked) != "");
    CHECK(first_wrong(Flaw::no_advance) != "");
    CHECK(first_wrong(Flaw::buried_with_ticket) != "");
    CHECK(first_wrong(Flaw::handled_unentered) != "");
    CHECK(first_wrong(Flaw::no_chore) != "");
    CHECK(first_wrong(Flaw::no_sweep) != "");
    CHECK(first_wrong(Flaw::burst_unchecked) != "");
    CHECK(first_wrong(Flaw::burst_not_run) != "");
    CHECK(first_wrong(Flaw::turn_stays) != "");
    CHECK(first_wrong(Flaw::suspect_leads) != "");
    CHECK(first_wrong(Flaw::no_mark) != "");
}

} // namespace key_order_model_test
