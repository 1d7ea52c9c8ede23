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

Table::Table(std::vector<Column> columns) : m_columns(std::move(columns))
{
    for (const Column& column : m_columns) m_widths.push_back(displayWidth(column.title));
}

void Table::add(std::vector<std::string> cells, Tint tint)
{
    assert(cells.size() <= m_columns.size());
    measure(cells);
    m_rows.push_back({std::move(cells), tint});
}

void Table::measure(const std::vector<std::string>& cells)
{
    for (std::size_t i = 0; i < cells.size(); ++i) m_widths[i] = std::max(m_widths[i], displayWidth(cells[i]));
}

std::string Table::titles(bool colour, std::size_t indent) const
{
    std::vector<std::string> titles;
    for (const Column& column : m_columns) titles.push_back(column.title);
    const bool any = std::any_of(titles.begin(), titles.end(), [](const std::string& title) { return !title.empty(); });
    return any ? line(titles, Tint::Dim, colour, indent) : std::string();
}

std::string Table::line(const std::vector<std::string>& cells, Tint tint, bool colour, std::size_t indent) const
{
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::size_t width = displayWidth(cells[i]);
        const std::string padding(m_widths[i] - std::min(width, m_widths[i]),
                                  ' '); // what was not measured may be wider
        if (i > 0) text += "  ";
        text += m_columns[i].align == Align::Right ? padding + cells[i] : cells[i] + padding;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return std::string(indent, ' ') + tinted(text, tint, colour) + "\n";
}

std::string Table::text(bool colour, std::size_t indent) const
{
    std::string result = titles(colour, indent);
    for (const Row& row : m_rows) result += line(row.cells, row.tint, colour, indent);
    return result;
}

} // namespace stagewright
