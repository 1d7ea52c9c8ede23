#include "traces/report/document/document.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/text.h"

namespace stagewright::document {

namespace {

bool isShown(const Element& element)
{
    if (const auto* figure = std::get_if<Figure>(&element)) return figure->shown;
    if (const auto* table = std::get_if<Table>(&element))
        return table->shown && (!table->unknown.empty() || std::any_of(table->rows.begin(), table->rows.end(),
                                                                       [](const Row& row) { return row.shown; }));
    if (const auto* chart = std::get_if<Chart>(&element)) return !chart->plot.empty();
    if (const auto* sentences = std::get_if<Sentences>(&element)) return sentences->shown && !sentences->lines.empty();
    return true;
}

std::string signedText(const std::string& text, bool positive) { return positive ? "+" + text : text; }

// A number of that kind; times and sizes without the words "units" and "microbatches", as in columns.
std::string numberText(ColumnKind kind, Sign sign, double value, const Units& units)
{
    if (sign == Sign::Relative) return formatChange(value);
    const bool change = sign == Sign::Change;
    if (change && value == 0) return "=";
    switch (kind) {
    case ColumnKind::Time: return signedText(units.timeText(std::llround(value)), change && value > 0);
    case ColumnKind::Size: return signedText(units.memoryText(std::llround(value)), change && value > 0);
    case ColumnKind::Share:
        return change ? withTrueMinus(fmt::format("{:+.1f} points", 100 * value)) : formatPercent(value);
    case ColumnKind::Truth: return value != 0 ? "yes" : "no";
    default: return signedText(shortNumber(value, 4), change && value > 0);
    }
}

} // namespace

TableCell textCell(std::string text) { return text.empty() ? TableCell() : TableCell(std::move(text)); }

TableCell numberCell(std::int64_t value, bool known) { return known ? TableCell(value) : TableCell(); }

Column unshown(std::string key, ColumnKind kind) { return {{std::move(key), {}, kind}, Sign::Plain, false}; }

Table dataTable(std::string place, std::string_view columns, std::string unknown)
{
    Table out{std::move(place), {}, {}, std::move(unknown), false};
    for (const std::string_view one : split(columns, " ")) {
        const std::size_t colon = one.find(':');
        const std::string_view kind = colon == std::string_view::npos ? "" : one.substr(colon + 1);
        out.columns.push_back(unshown(one == "-" ? std::string() : std::string(one.substr(0, colon)),
                                      kind == "time"    ? ColumnKind::Time
                                      : kind == "size"  ? ColumnKind::Size
                                      : kind == "truth" ? ColumnKind::Truth
                                      : kind == "real"  ? ColumnKind::Real
                                                        : ColumnKind::Text));
    }
    return out;
}

Table listOf(std::string place, ColumnKind kind, std::vector<TableCell> values)
{
    Table out{std::move(place), {unshown("#", kind)}};
    out.shown = false;
    for (TableCell& value : values) out.add({std::move(value)});
    return out;
}

void Section::fact(std::string place, std::string text)
{
    Sentences& one = add(Sentences{std::move(place), {}});
    if (!text.empty()) one.lines.push_back(std::move(text));
    one.shown = false;
}

void Section::fact(std::string place, ColumnKind kind, std::optional<double> value)
{
    Figure& one = add(Figure{std::move(place), {}, kind, value.value_or(std::nan(""))});
    one.shown = false;
}

void Section::say(std::string line, Tone tone)
{
    if (!line.empty()) add(Sentences{{}, {std::move(line)}, false, tone});
}

bool Section::empty() const { return !shown || std::none_of(elements.begin(), elements.end(), isShown); }

int Figure::fullestRank() const
{
    return byRank.empty() ? -1 : static_cast<int>(std::max_element(byRank.begin(), byRank.end()) - byRank.begin());
}

const Figure* findFigure(const std::vector<Figure>& figures, std::string_view key)
{
    const auto found =
        std::find_if(figures.begin(), figures.end(), [key](const Figure& figure) { return figure.key == key; });
    return found == figures.end() ? nullptr : &*found;
}

std::string textOf(const Figure& figure, const Units& units, TimeUnit unit)
{
    if (!figure.unknown.empty() || !std::isfinite(figure.value)) return "–";
    if (!figure.words.empty()) return figure.words;
    switch (figure.kind) {
    case ColumnKind::Time: return formatDuration(std::llround(figure.value), units.time, unit);
    case ColumnKind::Size: return formatBytes(std::llround(figure.value), units.memory);
    case ColumnKind::Share: return formatPercent(figure.value);
    default: return shortNumber(figure.value);
    }
}

std::string textOf(const Column& column, const Row& row, const TableCell& cell, const Units& units)
{
    const auto* whole = std::get_if<std::int64_t>(&cell);
    const auto* real = std::get_if<double>(&cell);
    const bool ofRow = row.kind && column.kind == ColumnKind::Real;
    const ColumnKind kind = ofRow ? *row.kind : column.kind;
    if (whole == nullptr && real == nullptr)
        return std::holds_alternative<std::monostate>(cell) && column.sign != Sign::Plain ? "·" // nothing to change
                                                                                          : cellText(column, cell);
    if (!ofRow && column.sign == Sign::Plain && kind != ColumnKind::Truth) return cellText(column, cell, units);
    return numberText(kind, column.sign, whole != nullptr ? static_cast<double>(*whole) : *real, units);
}

std::string raised(std::string text)
{
    if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
}

std::vector<std::size_t> shownColumns(const Table& table)
{
    std::vector<std::size_t> shown;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
        if (table.columns[c].shown &&
            (!table.columns[c].sparse || std::any_of(table.rows.begin(), table.rows.end(), [c](const Row& row) {
                return row.shown && !std::holds_alternative<std::monostate>(row.cells[c]);
            })))
            shown.push_back(c);
    return shown;
}

Marks::Stretch stretchOf(const Timeline& timeline, SpanId span)
{
    const Span& of = timeline.spans()[span];
    return {timeline.trackOf(span).rank, of.start, of.end, timeline.nameOf(of), span};
}

std::vector<std::string> linesOf(const Marks& marks, const Units& units, std::size_t most)
{
    std::vector<std::string> lines;
    const auto at = [&units](const Marks::Stretch& one) {
        return fmt::format("rank {}, {} to {}", one.rank, units.timeText(one.start), units.timeText(one.end));
    };
    const auto behind = [](const std::string& text) { return text.empty() ? text : ": " + text; };
    for (const auto* all : {&marks.spans, &marks.gaps})
        for (const Marks::Stretch& one : *all) lines.push_back(at(one) + behind(one.text));
    for (const Marks::Arrow& arrow : marks.arrows)
        lines.push_back(at(arrow.from) + " → " + at(arrow.to) + behind(arrow.text));
    if (lines.size() <= most) return lines;
    const std::string more = fmt::format("{} more", lines.size() - most);
    lines.resize(most);
    lines.push_back(more);
    return lines;
}

std::string UnknownReasons::of(const Figure& figure)
{
    if (figure.unknown.empty()) return {};
    if (figure.unknown == m_last) return "unknown for the same reason";
    m_last = figure.unknown;
    return "unknown: " + figure.unknown;
}

} // namespace stagewright::document
