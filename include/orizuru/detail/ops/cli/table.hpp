// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A table for a terminal.

#include <orizuru/detail/ops/cli/screen.hpp>
#include <orizuru/detail/ops/cli/visible_text.hpp>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail::cli {

/// Titles, and rows below them. A column in which each cell is empty is left out.
class Table {
  public:
    enum class Align { left, right };
    struct Column {
        VisibleText title;
        Align align = Align::left;
    };
    using Row = std::vector<VisibleText>;

    explicit Table(std::vector<Column> columns) : m_columns(std::move(columns)) {}

    /// A cell for each column.
    void add(Row row) { m_rows.push_back(std::move(row)); }

    /// Makes it as high and wide as the screen at most: leaves out the last rows, and says how
    /// many; cuts texts down to 10 columns, titles down to their cells, then the ends of all lines.
    void fit(ScreenSize screen) {
        // The cursor stands below the last line.
        const std::size_t most = screen.lines < 3 ? 0 : screen.lines - 2;
        if (m_rows.size() > most) {
            // The line that says so takes one more.
            const std::size_t kept = most < 1 ? 0 : most - 1;
            m_left_out = m_rows.size() - kept;
            m_rows.resize(kept);
        }
        m_most_columns = screen.columns;
        cut_texts(m_columns.size() - 1, 8); // a remark
        for (std::size_t at = 0; at + 1 < m_columns.size(); ++at) {
            cut_texts(at, 12);
        }
        while (cut_longest_title()) {
        }
        for (std::size_t at = 0; at + 1 < m_columns.size(); ++at) {
            cut_texts(at, 10);
        }
    }

    friend std::ostream& operator<<(std::ostream& out, const Table& table) {
        Row titles;
        std::vector<std::size_t> widths;
        for (std::size_t at = 0; at < table.m_columns.size(); ++at) {
            titles.push_back(table.m_columns[at].title);
            widths.push_back(table.width(at));
        }
        table.write(out, titles, widths);
        for (const Row& row : table.m_rows) {
            table.write(out, row, widths);
        }
        if (table.m_left_out > 0) {
            VisibleText more("… and " + std::to_string(table.m_left_out) + " more");
            more.cut_to(table.m_most_columns);
            out << more << '\n';
        }
        return out;
    }

  private:
    [[nodiscard]] std::size_t cells_width(std::size_t at) const {
        std::size_t most = 0;
        for (const Row& row : m_rows) {
            most = std::max(most, row[at].columns());
        }
        return most;
    }
    /// 0 for one that is left out.
    [[nodiscard]] std::size_t width(std::size_t at) const {
        const std::size_t most = cells_width(at);
        return most == 0 && !m_rows.empty() ? 0 : std::max(most, m_columns[at].title.columns());
    }

    /// So many columns a line has too many.
    [[nodiscard]] std::size_t excess() const {
        std::size_t sum = 0;
        for (std::size_t at = 0; at < m_columns.size(); ++at) {
            const std::size_t one = width(at);
            sum += one == 0 ? 0 : one + (sum == 0 ? 0 : 2);
        }
        return sum > m_most_columns ? sum - m_most_columns : 0;
    }

    /// Cuts the texts of a column as far as needed, but not below `least` columns.
    void cut_texts(std::size_t at, std::size_t least) {
        const std::size_t now = cells_width(at);
        if (m_columns[at].align == Align::right || now <= least) {
            return;
        }
        const std::size_t most = std::max(least, now - std::min(now, excess()));
        for (Row& row : m_rows) {
            row[at].cut_to(most);
        }
    }

    /// Cuts the title, but never the first, that is wider than its cells by the most columns; false
    /// when none is, or need be.
    bool cut_longest_title() {
        const auto surplus = [this](std::size_t at) {
            const std::size_t least = std::max<std::size_t>(cells_width(at), 4);
            const std::size_t columns = width(at) == 0 ? 0 : m_columns[at].title.columns();
            return columns - std::min(columns, least);
        };
        std::size_t longest = 0;
        for (std::size_t at = 1; at < m_columns.size(); ++at) {
            longest = longest == 0 || surplus(at) > surplus(longest) ? at : longest;
        }
        const std::size_t cut = longest == 0 ? 0 : std::min(surplus(longest), excess());
        if (cut > 0) {
            VisibleText& title = m_columns[longest].title;
            title.cut_to(title.columns() - cut);
        }
        return cut > 0;
    }

    void write(std::ostream& out, const Row& row, const std::vector<std::size_t>& widths) const {
        std::string line;
        for (std::size_t at = 0; at < row.size(); ++at) {
            if (widths[at] == 0) {
                continue;
            }
            const std::string space(widths[at] - row[at].columns(), ' ');
            const bool right = m_columns[at].align == Align::right;
            line += line.empty() ? "" : "  ";
            line += right ? space + row[at].text() : row[at].text() + space;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out << cut_line(std::move(line)) << '\n';
    }

    [[nodiscard]] std::string cut_line(std::string line) const {
        return visible_columns(line) <= m_most_columns ? line : cut_visible(line, m_most_columns);
    }

    std::vector<Column> m_columns;
    std::vector<Row> m_rows;
    std::size_t m_left_out = 0; ///< rows
    std::size_t m_most_columns = std::string::npos;
};

} // namespace orizuru::detail::cli
