#include "app/cli/text/document_markdown.h"

#include <algorithm>

namespace stagewright::document {

namespace {

// What Markdown would read as more than text is behind a backslash.
std::string plain(std::string_view text)
{
    std::string out;
    for (const char c : text) {
        if (std::string_view("\\`*_<>[]|").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    const std::size_t first = out.find_first_not_of(' ');
    const bool list = first != std::string::npos && std::string_view("#+-").find(out[first]) != std::string_view::npos;
    return list ? out.insert(first, 1, '\\') : out;
}

std::string cell(const std::string& text)
{
    std::string out = plain(text);
    std::replace(out.begin(), out.end(), '\n', ' ');
    return " " + out + " |";
}

std::string code(const std::string& text) { return text.empty() ? text : "```text\n" + text + "```\n"; }

class SectionMarkdown {
public:
    SectionMarkdown(const Section& section, const Units& units, const DocumentTextOptions& options)
        : m_units(units), m_options(options)
    {
        if (!section.title.empty()) put("## " + plain(raised(section.title)) + "\n");
        for (const Element& element : section.elements) {
            if (!std::holds_alternative<Figure>(element)) m_list = false;
            std::visit([this](const auto& one) { print(one); }, element);
        }
    }
    std::string text() && { return std::move(m_out); }

private:
    void put(const std::string& text) // a block, with an empty line before
    {
        if (!text.empty()) m_out += "\n" + text;
    }

    void print(const Figure& figure)
    {
        if (!figure.shown) return;
        const std::string more = figure.unknown.empty() ? figure.note : m_reasons.of(figure);
        const std::string line = "- " + plain(raised(figure.title)) + ": **" + plain(textOf(figure, m_units)) + "**" +
                                 (more.empty() ? "" : ", " + plain(more)) + "\n";
        m_list ? void(m_out += line) : put(line);
        m_list = true;
    }
    void print(const Table& table)
    {
        if (!table.shown || table.columns.empty()) return;
        if (!table.unknown.empty()) return put("Unknown: " + plain(table.unknown) + ".\n");
        const std::vector<std::size_t> columns = shownColumns(table);
        std::string head = "|", rule = "|", rows;
        for (const std::size_t c : columns) {
            head += cell(table.columns[c].title);
            rule += table.columns[c].kind == ColumnKind::Text ? "---|" : "--:|";
        }
        std::size_t count = 0;
        for (const Row& row : table.rows) {
            if (!row.shown || ++count > table.mostShown) continue;
            std::string line = "|";
            for (const std::size_t c : columns) line += cell(textOf(table.columns[c], row, row.cells[c], m_units));
            rows += line + "\n";
        }
        if (count > 0) put(head + "\n" + rule + "\n" + rows);
        if (count > table.mostShown) put(std::to_string(count - table.mostShown) + " more rows: --json\n");
    }
    void print(const Chart& chart) { put(code(plotText(chart.plot))); }
    void print(const Sentences& sentences)
    {
        for (const std::string& line : sentences.lines)
            if (sentences.shown)
                put(plain(raised(line.substr(std::min(line.find_first_not_of(' '), line.size())))) + "\n");
    }
    void print(const Marks& marks)
    {
        if (marks.empty()) return put(m_options.timeline ? code(m_options.timeline(marks)) : std::string());
        put(plain(marks.title) + "\n");
        std::string lines;
        for (const std::string& line : linesOf(marks, m_units)) lines += "- " + plain(line) + "\n";
        put(lines);
    }

    std::string m_out;
    bool m_list = false; // the last line is of a list of figures
    const Units& m_units;
    const DocumentTextOptions& m_options;
    UnknownReasons m_reasons;
};

} // namespace

std::string markdownOf(const Document& document, const DocumentTextOptions& options)
{
    std::string out;
    if (!document.title.empty()) out = "# " + plain(document.title) + "\n";
    if (!document.subtitle.empty()) out += "\n" + plain(document.subtitle) + "\n";
    for (const Section& section : document.sections)
        if (!section.empty()) out += SectionMarkdown(section, document.units, options).text();
    return out.substr(std::min(out.find_first_not_of('\n'), out.size()));
}

} // namespace stagewright::document
