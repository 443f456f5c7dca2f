// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A table for a terminal.

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
        return out;
    }

  private:
    /// 0 for one that is left out.
    [[nodiscard]] std::size_t width(std::size_t at) const {
        std::size_t most = 0;
        for (const Row& row : m_rows) {
            most = std::max(most, row[at].columns());
        }
        return most == 0 && !m_rows.empty() ? 0 : std::max(most, m_columns[at].title.columns());
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
        out << line << '\n';
    }

    std::vector<Column> m_columns;
    std::vector<Row> m_rows;
};

} // namespace orizuru::detail::cli
