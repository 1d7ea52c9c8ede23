// Table: aligned columns for the terminal. Numbers are right-aligned, a negative number has a true minus (−). Widths
// count characters, not bytes; colours are added after alignment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagewright {

enum class Tint {
    None,
    Dim,
    Bold,
    Good,
    Bad,
    Warn,
};
std::string tinted(std::string_view text, Tint tint, bool colour);

std::size_t displayWidth(std::string_view text); // UTF-8 characters

class Table {
public:
    enum class Align {
        Left,
        Right,
    };
    struct Column {
        std::string title;
        Align align = Align::Left;
    };

    explicit Table(std::vector<Column> columns);

    // Short rows are filled with empty cells; a row longer than the columns is a bug.
    void add(std::vector<std::string> cells, Tint tint = Tint::None);
    bool empty() const { return m_rows.empty(); }
    // So many spaces before each line's first column; no trailing spaces; titles dimmed if colour.
    std::string text(bool colour, std::size_t indent = 0) const;

    // The same of rows that are too many to be kept: measure() all of them, then write titles() and each line().
    void measure(const std::vector<std::string>& cells);
    std::string titles(bool colour, std::size_t indent = 0) const; // none of the columns has one: ""
    std::string line(const std::vector<std::string>& cells, Tint tint, bool colour, std::size_t indent = 0) const;

private:
    struct Row {
        std::vector<std::string> cells;
        Tint tint;
    };
    std::vector<Column> m_columns;
    std::vector<std::size_t> m_widths; // of titles and what was measured
    std::vector<Row> m_rows;
};

} // namespace stagewright
