// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A cron expression as text, taken apart; cron.hpp says what it may hold.

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/jobs/cron_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class CronParser {
  public:
    explicit CronParser(std::string_view expression) : m_expression(expression) {}

    /// Throws std::invalid_argument that names the expression, the field and the reason.
    [[nodiscard]] CronTable parse() const;

    [[noreturn]] void refuse(const std::string& reason) const {
        throw std::invalid_argument("cron expression '" + std::string(m_expression) +
                                    "': " + reason);
    }

  private:
    struct Field {
        std::string_view name;
        unsigned least;
        unsigned most;
        std::span<const std::string_view> names = {};
    };

    static constexpr std::array<std::string_view, 12> month_names{
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
    static constexpr std::array<std::string_view, 7> weekday_names{"SUN", "MON", "TUE", "WED",
                                                                   "THU", "FRI", "SAT"};

    static std::vector<std::string_view> split(std::string_view text, std::string_view separators);
    static std::optional<unsigned> by_name(const Field& field, std::string_view text);
    static bool unrestricted(std::string_view text) {
        return text.starts_with('*') || text.starts_with('?');
    }

    [[noreturn]] void refuse(const Field& field, const std::string& reason) const {
        refuse(std::string(field.name) + ": " + reason);
    }
    [[nodiscard]] std::string_view written_out() const;
    [[nodiscard]] CronSet set(const Field& field, std::string_view text) const;
    [[nodiscard]] CronSet entry(const Field& field, std::string_view text) const;
    [[nodiscard]] std::pair<unsigned, unsigned> range(const Field& field,
                                                      std::string_view text) const;
    [[nodiscard]] unsigned value(const Field& field, std::string_view text) const;
    [[nodiscard]] unsigned number(const Field& field, std::string_view text, unsigned least,
                                  const std::string& kind) const;

    std::string_view m_expression;
};

inline CronTable CronParser::parse() const {
    std::vector<std::string_view> words;
    for (const std::string_view word : split(written_out(), " \t")) {
        if (!word.empty()) {
            words.push_back(word);
        }
    }
    if (words.size() != 5 && words.size() != 6) {
        refuse("it has " + std::to_string(words.size()) +
               " fields; minute, hour, day, month and weekday are needed, a second may be first");
    }
    if (words.size() == 5) {
        words.insert(words.begin(), "0");
    }
    CronTable table{.seconds = set({"second", 0, 59}, words[0]),
                    .minutes = set({"minute", 0, 59}, words[1]),
                    .hours = set({"hour", 0, 23}, words[2]),
                    .days = set({"day", 1, 31}, words[3]),
                    .months = set({"month", 1, 12, month_names}, words[4]),
                    .weekdays = set({"weekday", 0, 7, weekday_names}, words[5]),
                    .either_day = !unrestricted(words[3]) && !unrestricted(words[5])};
    constexpr CronSet second_sunday = CronSet{1} << 7;
    if ((table.weekdays & second_sunday) != 0) {
        table.weekdays = (table.weekdays & ~second_sunday) | 1;
    }
    return table;
}

inline std::string_view CronParser::written_out() const {
    struct Short {
        std::string_view name;
        std::string_view meaning;
    };
    constexpr std::array<Short, 7> shorts{{{"@hourly", "0 * * * *"},
                                           {"@daily", "0 0 * * *"},
                                           {"@midnight", "0 0 * * *"},
                                           {"@weekly", "0 0 * * 0"},
                                           {"@monthly", "0 0 1 * *"},
                                           {"@yearly", "0 0 1 1 *"},
                                           {"@annually", "0 0 1 1 *"}}};
    if (!m_expression.starts_with('@')) {
        return m_expression;
    }
    const auto* const found = std::ranges::find(shorts, m_expression, &Short::name);
    if (found == shorts.end()) {
        refuse("of those with @ there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly "
               "and @annually");
    }
    return found->meaning;
}

inline std::vector<std::string_view> CronParser::split(std::string_view text,
                                                       std::string_view separators) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto end = text.find_first_of(separators);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

inline CronSet CronParser::set(const Field& field, std::string_view text) const {
    CronSet numbers = 0;
    for (const std::string_view part : split(text, ",")) {
        numbers |= entry(field, part);
    }
    return numbers;
}

inline CronSet CronParser::entry(const Field& field, std::string_view text) const {
    const auto slash = text.find('/');
    const std::string_view span = text.substr(0, slash);
    const auto [first, last] = range(field, span);
    unsigned step = 1;
    if (slash != std::string_view::npos) {
        if (!unrestricted(span) && span.find('-') == std::string_view::npos) {
            refuse(field, "the step of '" + std::string(text) + "' needs * or a range before it");
        }
        step = number(field, text.substr(slash + 1), 1, "a step");
    }
    CronSet numbers = 0;
    for (unsigned n = first; n <= last; n += step) {
        numbers |= CronSet{1} << n;
    }
    return numbers;
}

inline std::pair<unsigned, unsigned> CronParser::range(const Field& field,
                                                       std::string_view text) const {
    if (text == "*" || text == "?") {
        return {field.least, field.most};
    }
    const auto dash = text.find('-');
    const unsigned first = value(field, text.substr(0, dash));
    if (dash == std::string_view::npos) {
        return {first, first};
    }
    unsigned last = value(field, text.substr(dash + 1));
    // Sunday ends a week as well: FRI-SUN.
    if (last == 0 && first > 0 && field.most == 7) {
        last = 7;
    }
    if (last < first) {
        refuse(field, "'" + std::string(text) + "' ends before it begins");
    }
    return {first, last};
}

inline unsigned CronParser::value(const Field& field, std::string_view text) const {
    if (const auto named = by_name(field, text)) {
        return *named;
    }
    std::string kind = "a number";
    if (!field.names.empty()) {
        kind = std::string(field.names.front()) + " to " + std::string(field.names.back()) +
               " or a number";
    }
    return number(field, text, field.least, kind);
}

inline std::optional<unsigned> CronParser::by_name(const Field& field, std::string_view text) {
    const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
    for (unsigned i = 0; i < field.names.size(); ++i) {
        if (std::ranges::equal(text, field.names[i], {}, upper)) {
            return field.least + i;
        }
    }
    return std::nullopt;
}

inline unsigned CronParser::number(const Field& field, std::string_view text, unsigned least,
                                   const std::string& kind) const {
    const auto number = whole_number(text);
    if (!number || *number < least || *number > field.most) {
        refuse(field, "'" + std::string(text) + "' is not " + kind + " from " +
                          std::to_string(least) + " to " + std::to_string(field.most));
    }
    return static_cast<unsigned>(*number);
}

} // namespace orizuru::detail
