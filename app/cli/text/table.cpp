#include "app/cli/text/table.h"

#include <algorithm>
#include <cassert>

#include "schedules/base/shown_text.h"

namespace stagewright {

std::string tinted(std::string_view text, Tint tint, bool colour)
{
    if (!colour || tint == Tint::None) return std::string(text);
    std::string_view code;
    switch (tint) {
    case Tint::None: break;
    case Tint::Dim: code = "2"; break;
    case Tint::Bold: code = "1"; break;
    case Tint::Good: code = "32"; break;
    case Tint::Bad: code = "31"; break;
    case Tint::Warn: code = "33"; break;
    }
    return colourCode(code) + std::string(text) + colourCode("0");
}

std::size_t displayWidth(std::string_view text)
{
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Table::Table(std::vector<Column> columns) : m_columns(std::move(columns)) {}

void Table::add(std::vector<std::string> cells, Tint tint)
{
    assert(cells.size() <= m_columns.size());
    cells.resize(m_columns.size());
    m_rows.push_back({std::move(cells), tint});
}

std::string Table::text(bool colour, std::size_t indent) const
{
    std::vector<std::size_t> widths;
    bool titled = false;
    for (const Column& column : m_columns) {
        widths.push_back(displayWidth(column.title));
        titled = titled || !column.title.empty();
    }
    for (const Row& row : m_rows)
        for (std::size_t i = 0; i < row.cells.size(); ++i) widths[i] = std::max(widths[i], displayWidth(row.cells[i]));

    std::string result;
    const auto line = [&](const std::vector<std::string>& cells, Tint tint) {
        std::string text;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const std::string padding(widths[i] - displayWidth(cells[i]), ' ');
            if (i > 0) text += "  ";
            text += m_columns[i].align == Align::Right ? padding + cells[i] : cells[i] + padding;
        }
        text.erase(text.find_last_not_of(' ') + 1);
        result += std::string(indent, ' ') + tinted(text, tint, colour) + "\n";
    };
    if (titled) {
        std::vector<std::string> titles;
        for (const Column& column : m_columns) titles.push_back(column.title);
        line(titles, Tint::Dim);
    }
    for (const Row& row : m_rows) line(row.cells, row.tint);
    return result;
}

} // namespace stagewright
