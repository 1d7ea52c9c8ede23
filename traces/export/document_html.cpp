#include "traces/export/document_html.h"

#include <algorithm>

#include <fmt/format.h>

#include "traces/export/timeline_svg.h"
#include "traces/plot/plot_files.h"
#include "traces/plot/svg_colours.h"

namespace stagewright::document {

namespace {

constexpr std::size_t mostRows = 512;

std::string paragraph(const std::string& text, const char* classes = "")
{
    return fmt::format("<p{}>{}</p>\n", *classes == '\0' ? "" : fmt::format(" class=\"{}\"", classes), escaped(text));
}

std::string tableHtml(const Table& table, const Units& units)
{
    const std::vector<std::size_t> shown = shownColumns(table);
    const auto isFigure = [&](std::size_t c) { return table.columns[c].kind != ColumnKind::Text; };
    std::string out = "<div class=\"scroll\"><table><thead><tr>";
    for (const std::size_t c : shown)
        out += fmt::format(
            "<th{}{}>{}</th>", isFigure(c) ? " class=\"n\"" : "",
            table.columns[c].meaning.empty() ? "" : fmt::format(" title=\"{}\"", escaped(table.columns[c].meaning)),
            escaped(table.columns[c].title));
    out += "</tr></thead><tbody>\n";
    const auto rows = std::count_if(table.rows.begin(), table.rows.end(), [](const Row& row) { return row.shown; });
    const std::size_t most = std::min(mostRows, table.mostShown);
    std::size_t left = most;
    for (const Row& row : table.rows) {
        if (!row.shown || left == 0) continue;
        --left;
        out += row.tone == Tone::Strong ? "<tr class=\"strong\">" : "<tr>";
        for (const std::size_t c : shown) {
            const Tone of = row.toneOf(c);
            const char* tone = of == Tone::Good ? "better" : of == Tone::Bad ? "worse" : "";
            const bool toned = *tone != '\0' && table.columns[c].sign != Sign::Plain;
            const std::string classes =
                fmt::format("{}{}{}", isFigure(c) ? "n" : "", isFigure(c) && toned ? " " : "", toned ? tone : "");
            out += fmt::format(
                "<td{}>{}{}</td>", classes.empty() ? "" : " class=\"" + classes + "\"",
                escaped(textOf(table.columns[c], row, row.cells[c], units)),
                c == shown.front() && !row.meaning.empty() ? "<small>" + escaped(row.meaning) + "</small>" : "");
        }
        out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
    if (static_cast<std::size_t>(rows) > most)
        out += paragraph(fmt::format("The first {} of {} rows.", most, rows), "note");
    return out;
}

std::string html(const Table& table, const Units& units)
{
    if (!table.shown || table.columns.empty()) return {};
    if (!table.unknown.empty()) return paragraph("Unknown: " + table.unknown + ".", "note");
    const bool any = std::any_of(table.rows.begin(), table.rows.end(), [](const Row& row) { return row.shown; });
    return any ? tableHtml(table, units) : std::string();
}

std::string html(const Sentences& sentences)
{
    std::string out;
    for (const std::string& line : sentences.lines)
        if (sentences.shown) out += paragraph(line, sentences.tone == Tone::Warn ? "note" : "");
    return out;
}

std::string html(const Figure& figure, const Units& units, UnknownReasons& reasons)
{
    const std::string more = !figure.unknown.empty()                         ? reasons.of(figure)
                             : figure.note.empty() || figure.meaning.empty() ? figure.note + figure.meaning
                                                                             : figure.meaning + "; " + figure.note;
    return "<div><dt>" + escaped(raised(figure.title)) + "</dt><dd>" + escaped(textOf(figure, units)) + "<small>" +
           escaped(more) + "</small></dd></div>\n";
}

std::string html(const Marks& marks, const Units& units, const std::function<std::string(const Marks&)>& timeline)
{
    if (marks.empty()) return timeline ? timeline(marks) : std::string();
    std::string out;
    for (const std::string& line : linesOf(marks, units)) out += "<li>" + escaped(line) + "</li>\n";
    return paragraph(marks.title) + "<ul>\n" + out + "</ul>\n";
}

std::string sectionHtml(const Section& section, const Units& units,
                        const std::function<std::string(const Marks&)>& timeline)
{
    std::string open, folded, figures;
    UnknownReasons reasons;
    const auto endFigures = [&] {
        if (!figures.empty()) open += "<dl class=\"headline\">\n" + figures + "</dl>\n";
        figures.clear();
    };
    for (const Element& element : section.elements) {
        const auto* figure = std::get_if<Figure>(&element);
        if (figure != nullptr && figure->shown) figures += html(*figure, units, reasons);
        if (figure != nullptr) continue;
        std::string& out = section.folded ? folded : open;
        if (const auto* table = std::get_if<Table>(&element)) {
            const std::string text = html(*table, units);
            if (!text.empty() && !section.folded) endFigures();
            out += text;
        } else if (const auto* sentences = std::get_if<Sentences>(&element)) {
            const std::string text = html(*sentences);
            if (!text.empty() && !section.folded) endFigures();
            out += text;
        } else if (endFigures(); const auto* chart = std::get_if<Chart>(&element)) {
            if (!chart->plot.empty()) open += plotSvg(chart->plot, chart->title);
        } else {
            open += html(std::get<Marks>(element), units, timeline);
        }
    }
    endFigures();
    const std::string title = escaped(raised(section.title));
    std::string out;
    if (!open.empty()) out = (title.empty() ? "" : "<h2>" + title + "</h2>\n") + open;
    if (!folded.empty()) out += "<details><summary>" + title + "</summary>\n" + folded + "</details>\n";
    return out;
}

} // namespace

} // namespace stagewright::document

namespace stagewright {

std::string documentHtml(const document::Document& document,
                         const std::function<std::string(const document::Marks&)>& timeline)
{
    std::string out;
    if (!document.title.empty()) out = "<h1>" + escaped(document.title) + "</h1>\n";
    if (!document.subtitle.empty()) out += "<p class=\"meta\">" + escaped(document.subtitle) + "</p>\n";
    for (const document::Section& section : document.sections)
        if (!section.empty()) out += document::sectionHtml(section, document.units, timeline);
    return out;
}

} // namespace stagewright
