// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What Redis knows of who lives, and the steps that beats and collectors take there: heartbeats and
// the series of writes (write_series.hpp). As the library's scripts do it, but in C++: a million
// seeds take minutes.

#pragma once

#include "fuzz/absence/time.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace orizuru::test {

/// What could be wrong with the rule.
enum class Fault {
    none,
    absence_counts_at_once,
    refused_beats_count,    ///< as writes
    own_start_counts,       ///< a collector gives the grace from its own start on, and no other
    long_gaps,              ///< a series goes on over pauses of more than a lease
    refusals_forgotten,     ///< a collector that was refused goes on as if it had not been
    replacements_forgotten, ///< and so does one whose connection was lost
    each_replacement_counts ///< as a refusal, however soon it follows another one
};
struct NamedFault {
    std::string_view name;
    Fault fault;
};
inline constexpr std::array faults{
    NamedFault{"absence_counts_at_once", Fault::absence_counts_at_once},
    NamedFault{"refused_beats_count", Fault::refused_beats_count},
    NamedFault{"own_start_counts", Fault::own_start_counts},
    NamedFault{"long_gaps", Fault::long_gaps},
    NamedFault{"refusals_forgotten", Fault::refusals_forgotten},
    NamedFault{"replacements_forgotten", Fault::replacements_forgotten},
    NamedFault{"each_replacement_counts", Fault::each_replacement_counts},
};

/// The rule's figures (collector_scripts.hpp).
struct Rule {
    static constexpr Millis left_mark = 24 * 3600 * 1000;
    static constexpr Millis unknown_gap = 2000;
    static constexpr Millis longest_confirmation = 2000;
    static constexpr Millis longest_stay = 15'000; ///< of a single collect()

    /// A lost connection tells of an outage no sooner behind another one (LastRefusal).
    static constexpr Millis replacements_apart = 2 * (5000 + 1000);

    /// The longest pause between two writes of one series.
    static Millis gap(std::optional<Millis> lease) { return lease ? *lease * 5 / 12 : unknown_gap; }
    /// Returns how long a living consumer needs for its next attempt to beat.
    static Millis next_attempt(Millis lease) {
        return std::min<Millis>(lease / 3, 5000) + std::min<Millis>(lease / 12, 1000);
    }
    /// How long a series must have lasted before the absence of a consumer counts.
    static Millis need(std::optional<Millis> lease, Millis grace, Millis allowance) {
        return lease ? std::max(*lease / 2, std::min(*lease, allowance)) : grace;
    }
};

class LifeSigns {
  public:
    struct Series {
        Millis gap;    ///< the longest pause between two writes
        Millis age;    ///< since when there was none longer
        Millis credit; ///< how long before that nobody had beaten
        Millis set_at;
        Millis expires;
    };
    /// A collector's question whether a consumer is dead.
    struct Question {
        int consumer;
        std::optional<Millis> lease; ///< empty: it does not say, as those of 0.1.0
        Millis grace;
        Millis allowance;               ///< how much of the lease there is time for
        bool runs;                      ///< the collector goes on asking
        std::optional<Millis> answered; ///< for how long, since the collector was refused
    };
    struct Answer {
        enum class Verdict { alive, dead, gone, not_yet } verdict;
        Millis wait = 0; ///< how long the series still has to last
        Millis gap = 0;  ///< for how long it goes on without another write
    };

    explicit LifeSigns(Fault fault) : m_fault(fault) {}

    void beat(Millis now, int consumer, Millis lease, bool tells) {
        if (m_fenced.contains(consumer)) {
            return;
        }
        m_registered.insert(consumer);
        m_heartbeats[consumer] = now + lease;
        if (tells) {
            write(now, Rule::gap(lease), Writer::beat);
        }
    }
    /// Of a beat that was refused.
    void refused(Millis now, Millis lease) {
        if (m_fault == Fault::refused_beats_count) {
            write(now, Rule::gap(lease), Writer::beat);
        }
    }
    /// A collector's pass begins; `all_heard`: no consumer's heartbeat is missing.
    void visit(Millis now, bool all_heard) {
        const Series* series = current(now);
        if (series != nullptr && is_mark(*series)) {
            if (all_heard) {
                m_series.reset();
            }
        } else if (series != nullptr) {
            write(now, series->gap, Writer::collector);
        }
    }
    [[nodiscard]] bool heard(Millis now, int consumer) const {
        const auto found = m_heartbeats.find(consumer);
        return found != m_heartbeats.end() && found->second > now;
    }
    [[nodiscard]] const std::set<int>& registered() const { return m_registered; }
    [[nodiscard]] bool fenced(int consumer) const { return m_fenced.contains(consumer); }

    Answer reap(Millis now, const Question& question) {
        if (heard(now, question.consumer)) {
            return {Answer::Verdict::alive};
        }
        if (m_fenced.contains(question.consumer)) {
            return {Answer::Verdict::gone};
        }
        if (m_fault != Fault::absence_counts_at_once && m_fault != Fault::own_start_counts) {
            const Answer answer = look(now, question);
            if (answer.wait > 0) {
                return answer;
            }
        }
        m_fenced.insert(question.consumer);
        m_registered.erase(question.consumer);
        return {Answer::Verdict::dead};
    }

  private:
    enum class Writer { beat, collector };

    static bool is_mark(const Series& series) { return series.gap == Rule::left_mark; }

    [[nodiscard]] const Series* current(Millis now) const {
        return m_series && m_series->expires > now ? &*m_series : nullptr;
    }
    void set(Millis now, Millis gap, Millis age, Millis credit) {
        m_series = {gap, age, credit, now, now + gap};
    }

    /// Goes on with the series, or begins another.
    void write(Millis now, Millis gap, Writer writer) {
        const Series* before = current(now);
        if (m_fault == Fault::long_gaps) {
            gap *= 3;
        }
        if (before == nullptr) {
            set(now, gap, 0, 0);
            return;
        }
        const Millis passed = now - before->set_at;
        if (before->gap <= gap) {
            set(now, before->gap, before->age + passed, before->credit);
        } else {
            set(now, gap, 0, writer == Writer::beat ? 0 : before->credit);
        }
    }
    /// How long the series has to go on before the consumer's absence counts.
    Answer look(Millis now, const Question& question) {
        const Millis need = Rule::need(question.lease, question.grace, question.allowance);
        const Millis gap = Rule::gap(question.lease);
        const Millis fresh = std::min(need, Rule::longest_confirmation);
        const Series* before = current(now);
        if (!question.runs && before == nullptr && need > fresh) {
            set(now, Rule::left_mark, 0, 0);
            return {Answer::Verdict::not_yet, need, Rule::left_mark};
        }
        if (!question.runs && before != nullptr && before->gap > gap) {
            const Millis credit =
                question.lease ? before->age + now - before->set_at + before->credit : 0;
            if (question.lease && credit + fresh < need) {
                return {Answer::Verdict::not_yet, need - credit - fresh, before->gap};
            }
            set(now, std::min(gap, std::max<Millis>(1, fresh / 2)), 0, credit);
        } else {
            write(now, gap, Writer::collector);
        }
        const bool knows = question.runs && question.lease && question.answered &&
                           m_fault != Fault::refusals_forgotten;
        const Millis unsure = knows ? Rule::next_attempt(*question.lease) - *question.answered : 0;
        return {Answer::Verdict::not_yet,
                std::max<Millis>(
                    {0, need - m_series->age - m_series->credit, fresh - m_series->age, unsure}),
                m_series->gap};
    }

    Fault m_fault;
    std::map<int, Millis> m_heartbeats; ///< when they expire
    std::set<int> m_registered;
    std::set<int> m_fenced;
    std::optional<Series> m_series;
};

} // namespace orizuru::test
