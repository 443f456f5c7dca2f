// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The common part of all programs that provoke faults: takes a seed and a size, prints both, counts
// the faults that really came, tells how to repeat a failure, and fails when something went wrong
// or when a kind of fault never came. A storm, in which chance and the machine decide what comes,
// goes on until each kind did.

#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

/// A program's options, `--name value`; all have a default.
class FaultOptions {
  public:
    using Values = std::map<std::string, std::string, std::less<>>;

    /// Throws std::invalid_argument for an option that `values` does not name.
    FaultOptions(int count, char** arguments, Values values)
        : m_program(arguments[0]), m_values(std::move(values)) {
        for (int i = 1; i < count; i += 2) {
            const std::string_view name = arguments[i];
            const auto known = m_values.find(name.substr(name.starts_with("--") ? 2 : 0));
            if (known == m_values.end() || !name.starts_with("--") || i + 1 == count) {
                throw std::invalid_argument("usage: " + command({}));
            }
            known->second = arguments[i + 1];
        }
    }

    [[nodiscard]] const std::string& text(std::string_view name) const {
        return m_values.find(name)->second;
    }
    /// Throws std::invalid_argument when the value is not a number.
    [[nodiscard]] std::uint64_t number(std::string_view name) const {
        const std::string& value = text(name);
        std::size_t used = 0;
        std::uint64_t result = 0;
        try {
            result = std::stoull(value, &used);
        } catch (const std::exception&) {
            used = 0;
        }
        if (used == 0 || used != value.size()) {
            throw std::invalid_argument("--" + std::string(name) + " is no number: " + value);
        }
        return result;
    }

    /// The command line that repeats this run, with some options changed.
    [[nodiscard]] std::string command(const Values& changed) const {
        std::string line = m_program;
        for (const auto& [name, value] : m_values) {
            const auto other = changed.find(name);
            line += " --" + name + ' ' + (other == changed.end() ? value : other->second);
        }
        return line;
    }

  private:
    std::string m_program;
    Values m_values;
};

/// The faults that came and the failures. Any thread.
class FaultReport {
  public:
    explicit FaultReport(const FaultOptions& options) : m_options(options) {
        std::cout << options.command({}) << std::endl;
    }

    /// Counts a fault of this kind that really came.
    void came(std::string_view kind, std::uint64_t times = 1) {
        const std::lock_guard lock(m_mutex);
        m_came.try_emplace(std::string(kind)).first->second += times;
    }
    /// True if a storm that had so many faults has to go on: it is to have `least`, and each of the
    /// kinds that `all_came` looks for. It ends without one that has not come in many times as
    /// many.
    template <std::predicate Condition>
    [[nodiscard]] bool wants_more(std::uint64_t faults, std::uint64_t least,
                                  Condition all_came) const {
        return faults < least || (faults < 20 * least && !all_came());
    }
    [[nodiscard]] bool have_come(const std::vector<std::string_view>& kinds) const {
        const std::lock_guard lock(m_mutex);
        return std::ranges::all_of(kinds, [this](std::string_view kind) {
            const auto found = m_came.find(kind);
            return found != m_came.end() && found->second > 0;
        });
    }
    /// `again`: the options that lead straight to the failure.
    void violation(const std::string& what, const FaultOptions::Values& again = {}) {
        const std::lock_guard lock(m_mutex);
        if (++m_violations <= shown_violations) {
            m_shown.push_back("violation: " + what + "\n  to repeat: " + m_options.command(again));
            std::cout << m_shown.back() << std::endl;
        }
    }
    [[nodiscard]] std::size_t violations() const {
        const std::lock_guard lock(m_mutex);
        return m_violations;
    }
    /// More failures would not be shown: the run may end.
    [[nodiscard]] bool is_full() const { return violations() >= shown_violations; }

    /// Prints everything, and returns the program's exit status.
    [[nodiscard]] int finish(const std::vector<std::string_view>& expected) {
        const std::lock_guard lock(m_mutex);
        for (const std::string_view kind : expected) {
            m_came.try_emplace(std::string(kind));
        }
        bool complete = true;
        for (const auto& [kind, times] : m_came) {
            std::cout << "    " << times << ' ' << kind << '\n';
            complete &= times > 0;
        }
        for (const std::string& one : m_shown) { // again: of a long output the end is kept
            std::cout << one << '\n';
        }
        std::cout << (complete ? "" : "a kind of fault never came\n") << m_violations
                  << " violations" << std::endl;
        return complete && m_violations == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }

  private:
    static constexpr std::size_t shown_violations = 10;

    const FaultOptions& m_options;
    mutable std::mutex m_mutex;
    std::map<std::string, std::uint64_t, std::less<>> m_came;
    std::vector<std::string> m_shown;
    std::size_t m_violations = 0;
};

/// The main function of such a program: it prints what `body` throws.
template <class Program>
int run_fault_program(Program program) {
    try {
        return program();
    } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        return 2;
    }
}

} // namespace orizuru::test
