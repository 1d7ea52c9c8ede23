#include "widgets/document/section_view.h"

#include <algorithm>

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "traces/report/table_curves.h"
#include "widgets/document/figure_table.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/panel/section_rows.h"
#include "widgets/plot/plot_widget.h"
#include "widgets/readable.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/table_copy.h"

namespace stagewright {
namespace {

constexpr int widestFigures = 440;

FigureCell cellOf(const document::Column& column, const document::Row& row, const TableCell& cell, const Units& units)
{
    const QString shown = shownCell(column, row, cell, units);
    if (std::holds_alternative<std::string>(cell))
        return {shown, 0, QString::fromStdString(document::textOf(column, row, cell, units))};
    const auto* whole = std::get_if<std::int64_t>(&cell);
    const auto* real = std::get_if<double>(&cell);
    return {shown, whole != nullptr ? static_cast<double>(*whole) : real != nullptr ? *real : 0, {}};
}

// A row for each place across.
TableText tableTextOf(const Plot& curves, const QString& title)
{
    TableText out{title, {qtText(curves.across.title)}, {}};
    for (const PlotSeries& curve : curves.series) out.header << qtText(curve.title);
    for (const PlotItem& item : curves.items) {
        QStringList row{QString::number(item.x0)};
        for (const PlotSeries& curve : curves.series) row << qtText(curveValue(curve, item.x0));
        out.rows.push_back(std::move(row));
    }
    return out;
}

} // namespace

SectionView::SectionView(const document::Section& section, const Units& units, QWidget* parent)
    : QWidget(parent), m_units(units), m_title(QString::fromStdString(section.title)), m_page(new QVBoxLayout(this))
{
    m_page->setContentsMargins(0, 0, 0, 0);
    m_page->setSpacing(0);
    m_line = makeLabel({}, "secondary", this);
    m_line->setContentsMargins(12, 6, 12, 6);
    m_line->setWordWrap(true);
    m_page->addWidget(m_line);
    for (const document::Element& element : section.elements)
        std::visit([this](const auto& one) { add(one); }, element);
    if (m_line->text().isEmpty()) m_line->setText(sentence(m_title));
    if (m_table == nullptr && m_plot == nullptr) m_page->addStretch(1); // the line stays at the top
}

QString SectionView::lineText() const { return m_line->text(); }

void SectionView::setTheme(const Theme& theme)
{
    if (m_plot != nullptr) m_plot->setTheme(theme);
    if (m_figures != nullptr) m_figures->setTheme(theme);
}

void SectionView::add(const document::Figure& figure)
{
    if (!figure.shown) return;
    if (m_figures == nullptr) {
        m_figures = new PanelSection({}, this);
        m_figures->setRuled(false);
        m_figures->setContentsMargins(12, 0, 12, 0);
        m_figures->setMaximumWidth(textPixels(widestFigures));
        auto* row = new QHBoxLayout; // values stay near their titles where the panel is wide
        row->addWidget(m_figures, 1);
        row->addStretch(1);
        m_page->addLayout(row);
    }
    SectionRows{m_units, nullptr, {}, {}}.add(*m_figures, figure);
}

void SectionView::add(const document::Table& table)
{
    if (!table.shown) return;
    if (!table.unknown.empty()) return m_line->setText(sentence(QString::fromStdString(table.unknown)));
    const std::vector<std::size_t> shown = document::shownColumns(table);
    std::vector<FigureColumn> columns;
    for (const std::size_t c : shown) {
        const document::Column& column = table.columns[c];
        columns.push_back({QString::fromStdString(column.title), QString::fromStdString(column.meaning),
                           column.kind != ColumnKind::Text, 100, column.brief && column.words == nullptr});
    }
    std::vector<std::vector<FigureCell>> rows;
    std::vector<SpanId> ops; // of the rows shown
    for (const document::Row& row : table.rows) {
        if (!row.shown) continue;
        auto& cells = rows.emplace_back();
        for (const std::size_t c : shown) cells.push_back(cellOf(table.columns[c], row, row.cells[c], m_units));
        ops.push_back(row.op);
    }
    const bool leads = std::any_of(ops.begin(), ops.end(), [](SpanId op) { return op != noSpan; });
    m_table = new FigureTable(m_title, std::move(columns), -1, this);
    m_table->setObjectName(u"reportTable"_s);
    m_table->setToolTip(
        leads ? u"Choosing a row goes to its op; Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"_s
              : u"Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"_s);
    m_table->setRows(std::move(rows));
    m_table->resizeColumnsToContents();
    connect(m_table, &FigureTable::chosen, this,
            [this, ops = std::move(ops)](int at) { emit spanChosen(ops[static_cast<std::size_t>(at)]); });
    m_page->addWidget(m_table, 2);
}

void SectionView::add(const document::Chart& chart)
{
    if (chart.plot.empty()) return;
    m_plot = new PlotWidget(u"curvePlot"_s, qtText(chart.title), this);
    m_plot->setUsualSize({560, 230});
    m_plot->setPlot(chart.plot);
    makeCopyable(m_plot, [plot = m_plot] { return tableTextOf(plot->plot(), plot->accessibleName()); });
    m_page->insertWidget(m_table != nullptr ? m_page->indexOf(m_table) : m_page->count(), m_plot, 3); // above its table
    if (m_table != nullptr) setTabOrder(m_plot, m_table);
}

void SectionView::add(const document::Sentences& sentences)
{
    if (!sentences.shown) return;
    QStringList lines;
    if (!m_line->text().isEmpty()) lines << m_line->text();
    for (const std::string& line : sentences.lines) lines << sentence(QString::fromStdString(line));
    m_line->setText(lines.join(u'\n'));
}

void SectionView::add(const document::Marks& marks)
{
    if (marks.empty()) return;
    m_marks = new LinkButton(u"Mark on the timeline: %1"_s.arg(QString::fromStdString(marks.title)),
                             u"Esc in the timeline clears the marks"_s, this);
    connect(m_marks, &QPushButton::clicked, this, [this, marks] { emit marksChosen(marks); });
    m_page->insertWidget(1, m_marks);
}

} // namespace stagewright
