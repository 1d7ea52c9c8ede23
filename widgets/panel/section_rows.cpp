#include "widgets/panel/section_rows.h"

#include <algorithm>
#include <cmath>

#include <QPushButton>

#include "traces/report/run_report.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/panel/figure_measure.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {

using document::Sign;
using document::Tone;

namespace {

constexpr int shortNote = 8;     // characters that are beside a value: "58.3 %"
constexpr int widestBrief = 190; // pixels of a name that may be long

// What a row says in a column; of names that may be long the whole.
QString titled(const document::Column& column, const QString& text)
{
    return inLines(column.title.empty() ? sentence(text) : u"%1: %2"_s.arg(sentence(column.title), breakable(text)));
}

double numberOf(const TableCell& cell)
{
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
    const auto* real = std::get_if<double>(&cell);
    return real != nullptr ? *real : std::nan("");
}

ColumnKind kindOf(const document::Column& column, const document::Row& row)
{
    return row.kind && column.kind == ColumnKind::Real ? *row.kind : column.kind;
}

// One unit for the times or sizes of a row, which its title names.
struct RowUnit {
    QString name; // empty: every value has its own, or none
    double size = 1;
    int decimals = -1; // −1: as many as a count of units needs

    QString text(double value) const { return decimals < 0 ? shortText(value / size) : fixed(value / size, decimals); }
};

RowUnit unitOf(ColumnKind kind, double most, const Units& units)
{
    if (kind != ColumnKind::Time && kind != ColumnKind::Size) return {};
    const bool time = kind == ColumnKind::Time;
    if (time ? units.shares() : units.memory != 1)
        return {time ? u"units"_s : u"microbatches"_s, static_cast<double>(time ? units.time : units.memory)};
    const NumberScale scale = time ? timeScale(most, timeUnit()) : byteScale(most);
    return {qtText(scale.name), scale.size, scale.size == 1 ? 0 : decimalsOf(most / scale.size)};
}

} // namespace

QString shownFigure(const document::Figure& figure, const Units& units)
{
    return QString::fromStdString(document::textOf(figure, units, timeUnit()));
}

QString shownCell(const document::Column& column, const document::Row& row, const TableCell& cell, const Units& units)
{
    const QString plain = QString::fromStdString(document::textOf(column, row, cell, units));
    if (const auto* text = std::get_if<std::string>(&cell))
        return column.words != nullptr ? qtText(column.words(*text)) : plain;
    const double value = numberOf(cell);
    const bool change = column.sign == Sign::Change;
    if (std::isnan(value) || column.sign == Sign::Relative || (change && value == 0)) return plain;
    switch (kindOf(column, row)) {
    case ColumnKind::Time:
        return change ? signedDurationText(std::llround(value), units) : durationText(std::llround(value), units);
    case ColumnKind::Size: return change ? plain : bytesText(std::llround(value), units);
    case ColumnKind::Share: return change ? u"%1 pt"_s.arg(signedFixed(100 * value, 1)) : percentText(value);
    case ColumnKind::Count: return change ? plain : u"%L1"_s.arg(std::llround(value));
    default: return plain;
    }
}

QString figureMeaning(const char* key) { return sentence(meaningOfFigure(key)); }

void SectionRows::add(PanelSection& panel, const document::Section& section) const
{
    for (const document::Element& element : section.elements) {
        if (const auto* figure = std::get_if<document::Figure>(&element)) add(panel, *figure);
        if (const auto* table = std::get_if<document::Table>(&element)) add(panel, *table);
        if (const auto* sentences = std::get_if<document::Sentences>(&element)) add(panel, *sentences);
    }
}

void SectionRows::add(PanelSection& panel, const document::Figure& figure) const
{
    if (!figure.shown) return;
    const bool known = figure.unknown.empty();
    const QString value = shownFigure(figure, units), note = QString::fromStdString(figure.note);
    QString title = QString::fromStdString(figure.title), tip = sentence(figure.meaning);
    if (!known) tip = u"Unknown: %1."_s.arg(QString::fromStdString(figure.unknown)) + u'\n' + tip;
    if (known && figure.kind == ColumnKind::Size && !figure.byRank.empty()) {
        title += u" (rank %1)"_s.arg(figure.fullestRank());
        for (std::size_t rank = 0; rank < figure.byRank.size(); ++rank)
            tip += u"\nrank %1: %2"_s.arg(rank).arg(bytesText(std::llround(figure.byRank[rank]), units));
    }
    const bool brief = known && note.size() <= shortNote && !note.isEmpty();
    panel.addRow(title, brief ? u"%1 (%2)"_s.arg(value, note) : value, tip, figure.tone);
    if (!figure.key.empty()) panel.setFigure(QString::fromStdString(figure.key), value);
    if (measure != nullptr) measure->tell(panel, figure);
    if (known && !brief && !note.isEmpty()) panel.addText(wholeQuantities(sentence(note)), "faint");
}

void SectionRows::add(PanelSection& panel, const document::Sentences& sentences) const
{
    const char* role = sentences.tone == Tone::Strong ? "value" : sentences.tone == Tone::Faint ? "faint" : "secondary";
    for (const std::string& line : sentences.lines)
        if (sentences.shown) panel.addText(wholeQuantities(sentence(QString::fromStdString(line).trimmed())), role);
}

void SectionRows::add(PanelSection& panel, const document::Table& table) const
{
    if (!table.shown) return;
    const std::vector<std::size_t> shown = document::shownColumns(table);
    if (shown.size() < 2) return;
    const auto signOf = [&](std::size_t c) { return table.columns[c].sign; };
    const auto change = std::find_if(shown.begin(), shown.end(), [&](auto c) { return signOf(c) == Sign::Change; });
    const bool texts =
        std::all_of(shown.begin(), shown.end(), [&](auto c) { return table.columns[c].kind == ColumnKind::Text; });
    std::size_t left = table.mostShown;
    for (const document::Row& row : table.rows) {
        if (!row.shown || left == 0) continue;
        --left;
        const auto text = [&](std::size_t c) { return shownCell(table.columns[c], row, row.cells[c], units); };
        const document::Column& first = table.columns[shown.front()];
        const QString name = text(shown.front());
        const QString label =
            first.brief ? QFontMetrics(fontOf(FontRole::Body)).elidedText(name, Qt::ElideMiddle, widestBrief) : name;
        QStringList tip, among;
        if (!row.meaning.empty()) tip << inLines(sentence(row.meaning));
        QString value = text(change != shown.end() ? *change : shown.back());
        for (const std::size_t c : shown) {
            const bool known = !std::holds_alternative<std::monostate>(row.cells[c]) && text(c) != u"–"_s;
            if (known && signOf(c) == Sign::Relative) value += u" (%1)"_s.arg(text(c));
            if (known && (c != shown.front() || label != name)) tip << titled(table.columns[c], text(c));
            if (c != shown.front()) among << u"%1 in %2"_s.arg(text(c), QString::fromStdString(table.columns[c].title));
        }
        if (texts && change == shown.end()) {
            panel.addText(u"%1: %2"_s.arg(name, among.join(u", "_s)));
        } else if (!row.action.empty() && act) {
            auto* button = new LinkButton(sentence(label), (tip << sentence(row.action)).join(u'\n'));
            button->setAccessibleDescription(sentence(row.action));
            const auto* key = std::get_if<std::string>(&row.cells.front());
            QObject::connect(
                button, &QPushButton::clicked, &panel,
                [does = act, key = key != nullptr ? QString::fromStdString(*key) : QString()] { does(key); },
                Qt::QueuedConnection);
            panel.addRow(button, value, tip.join(u'\n'), row.tone);
        } else if (row.op != noSpan && choose) {
            auto* button = new LinkButton(sentence(label), (tip << chosen).join(u'\n'));
            QObject::connect(
                button, &QPushButton::clicked, &panel, [go = choose, op = row.op] { go(op); }, Qt::QueuedConnection);
            panel.addRow(button, value, tip.join(u'\n'));
        } else {
            panel.addRow(sentence(label), value, tip.join(u'\n'), row.tone);
        }
    }
}

void SectionRows::addGrid(PanelSection& panel, const document::Table& table) const
{
    std::vector<std::size_t> values, changes;
    for (const std::size_t c : document::shownColumns(table))
        (table.columns[c].sign == Sign::Plain ? values : changes).push_back(c);
    const bool below = changes.size() > 1;
    const auto tipOf = [&](std::size_t c) { return QString::fromStdString(table.columns[c].meaning); };
    std::vector<PanelSection::Cell> heads;
    for (const std::size_t c : values)
        heads.push_back({QString::fromStdString(table.columns[c].title), "secondary", tipOf(c)});
    if (!below && !changes.empty()) heads.push_back({u"change"_s, "secondary", tipOf(changes[0])});
    panel.addCells(heads);
    for (const document::Row& row : table.rows) {
        if (!row.shown) continue;
        double most = 0;
        for (const std::size_t c : values)
            if (const double value = std::abs(numberOf(row.cells[c])); value > most) most = value;
        const RowUnit unit = unitOf(kindOf(table.columns[values.back()], row), most, units);
        const auto text = [&](std::size_t c) {
            const double value = numberOf(row.cells[c]);
            const bool change = table.columns[c].sign == Sign::Change;
            if (unit.name.isEmpty() || std::isnan(value) || (change && value == 0))
                return shownCell(table.columns[c], row, row.cells[c], units);
            return (change && value > 0 ? u"+"_s : QString()) + unit.text(value);
        };
        std::vector<PanelSection::Cell> cells, under(values.size() - changes.size());
        for (const std::size_t c : values) cells.push_back({text(c), "value", tipOf(c)});
        cells.front() = {sentence(cells.front().text), "secondary", sentence(row.meaning)};
        if (!unit.name.isEmpty()) cells.front().text += u", "_s + unit.name;
        for (std::size_t i = 0; i < changes.size(); ++i) {
            const std::size_t c = changes[i], of = values[values.size() - changes.size() + i];
            const double now = numberOf(row.cells[of]), before = now - numberOf(row.cells[c]);
            const bool relative =
                kindOf(table.columns[c], row) == ColumnKind::Time && before != 0 && !std::isnan(before);
            const Tone tone = row.toneOf(c);
            (below ? under : cells)
                .push_back({relative ? changeText(before, now) : text(c),
                            tone == Tone::Good  ? "better"
                            : tone == Tone::Bad ? "worse"
                                                : "secondary",
                            tipOf(c)});
        }
        panel.addCells(cells, below ? under : std::vector<PanelSection::Cell>());
    }
}

} // namespace stagewright
