#include "app/cli/text/document_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "app/cli/text/document_markdown.h"
#include "app/cli/text/table.h"

namespace stagewright::document {

namespace {

using TextTable = stagewright::Table;

Tint tintOf(Tone tone)
{
    switch (tone) {
    case Tone::Plain: return Tint::None;
    case Tone::Strong: return Tint::Bold;
    case Tone::Good: return Tint::Good;
    case Tone::Bad: return Tint::Bad;
    case Tone::Warn: return Tint::Warn;
    case Tone::Faint: return Tint::Dim;
    }
    return Tint::None;
}

class SectionText {
public:
    SectionText(const Section& section, const Units& units, const DocumentTextOptions& options)
        : m_title(inLine(section.title)), m_units(units), m_options(options)
    {
        for (const Element& element : section.elements) {
            if (!std::holds_alternative<Figure>(element)) endFigures();
            if (!std::holds_alternative<Table>(element) || !section.folded)
                std::visit([this](const auto& one) { print(one); }, element);
        }
        endFigures();
    }
    std::string text() && { return std::move(m_out); }

private:
    void put(const std::string& text)
    {
        if (!m_title.empty()) m_out += tinted(m_title, Tint::Bold, m_options.colour) + "\n";
        m_title.clear();
        m_out += text;
    }
    void endFigures()
    {
        if (!m_figures.empty()) put(m_figures.text(m_options.colour));
        m_figures = TextTable({{""}, {""}, {""}});
    }

    void print(const Figure& figure)
    {
        if (!figure.shown) return;
        m_figures.add({inLine(figure.title), textOf(figure, m_units),
                       figure.unknown.empty() ? figure.note : m_reasons.of(figure)},
                      tintOf(figure.tone));
    }
    // A table at the section's start whose first column has no title has that of the section there.
    void print(const Table& table)
    {
        if (!table.shown || table.columns.empty()) return;
        if (!table.unknown.empty()) return put(table.unknown + "\n");
        const auto rows = static_cast<std::size_t>(
            std::count_if(table.rows.begin(), table.rows.end(), [](const Row& row) { return row.shown; }));
        if (rows == 0) return;
        const std::vector<std::size_t> shown = shownColumns(table);
        std::vector<TextTable::Column> heads;
        for (const std::size_t c : shown)
            heads.push_back({inLine(table.columns[c].title), table.columns[c].kind == ColumnKind::Text
                                                                 ? TextTable::Align::Left
                                                                 : TextTable::Align::Right});
        const bool titled =
            heads.front().title.empty() &&
            std::any_of(heads.begin(), heads.end(), [](const auto& head) { return !head.title.empty(); });
        if (titled) heads.front().title = std::exchange(m_title, {});
        TextTable out(std::move(heads));
        std::size_t left = std::min(rows, table.mostShown);
        for (const Row& row : table.rows) {
            if (!row.shown || left == 0) continue;
            --left;
            std::vector<std::string> cells;
            for (const std::size_t c : shown) {
                cells.push_back(textOf(table.columns[c], row, row.cells[c], m_units));
                if (table.columns[c].brief) cells.back() = shortened(cells.back());
            }
            out.add(std::move(cells), tintOf(row.tone));
        }
        put(out.text(m_options.colour));
        if (rows > table.mostShown) put(fmt::format("{} more rows: --json\n", rows - table.mostShown));
    }
    void print(const Chart& chart)
    {
        if (!chart.plot.empty()) put(plotText(chart.plot));
    }
    void print(const Sentences& sentences)
    {
        for (const std::string& line : sentences.lines)
            if (sentences.shown) put(tinted(line, tintOf(sentences.tone), m_options.colour) + "\n");
    }
    void print(const Marks& marks)
    {
        if (marks.empty()) return m_options.timeline ? put(m_options.timeline(marks)) : void();
        put(marks.title.empty() ? marks.title : inLine(marks.title) + "\n");
        for (const std::string& line : linesOf(marks, m_units)) put("  " + line + "\n");
    }

    std::string m_title; // until it is printed
    std::string m_out;
    const Units& m_units;
    const DocumentTextOptions& m_options;
    TextTable m_figures{{{""}, {""}, {""}}};
    UnknownReasons m_reasons;
};

} // namespace

std::string plotText(const Plot& plot)
{
    if (plot.empty()) return {};
    static constexpr const char* blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    constexpr std::size_t width = 60;
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const PlotSeries& series : plot.series)
        for (const PlotPoint& point : series.points) low = std::min(low, point.y), high = std::max(high, point.y);
    TextTable out({{""}, {""}});
    for (const PlotSeries& series : plot.series) {
        std::string line;
        const std::size_t points = series.points.size();
        for (std::size_t i = 0; i < std::min(width, points); ++i) {
            const double value = series.points[points <= width ? i : i * points / width].y;
            line += blocks[high > low ? static_cast<int>(std::lround(7 * (value - low) / (high - low))) : 0];
        }
        if (points > 0)
            out.add({inLine(series.title), fmt::format("{}  {} → {}", line, shortNumber(series.points.front().y, 4),
                                                       shortNumber(series.points.back().y, 4))});
    }
    return out.text(false);
}

} // namespace stagewright::document

namespace stagewright {

std::string inLine(std::string title)
{
    if (title.size() > 1 && std::islower(static_cast<unsigned char>(title[1])) != 0)
        title[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(title[0])));
    return title;
}

std::string shortened(const std::string& name)
{
    constexpr std::size_t most = 56;
    if (displayWidth(name) <= most) return name;
    std::size_t end = most - 1;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
    return name.substr(0, end) + "…";
}

std::string sectionText(const document::Section& section, const Units& units, const DocumentTextOptions& options)
{
    return document::SectionText(section, units, options).text();
}

std::string documentText(const document::Document& document, const DocumentTextOptions& options)
{
    if (options.markdown) return document::markdownOf(document, options);
    std::string out;
    if (!document.title.empty())
        out = tinted(document.title, Tint::Bold, options.colour) +
              (document.subtitle.empty() ? "" : "  " + document.subtitle) + "\n";
    bool first = true;
    for (const document::Section& section : document.sections) {
        const std::string text = section.empty() ? std::string() : sectionText(section, document.units, options);
        if (text.empty()) continue;
        out += (first ? "" : "\n") + text;
        first = false;
    }
    return out;
}

} // namespace stagewright
