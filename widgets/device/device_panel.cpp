#include "widgets/device/device_panel.h"

#include <limits>

#include <QBoxLayout>
#include <QTabWidget>

#include "traces/report/table_document.h"
#include "widgets/document/figure_table.h"
#include "widgets/document/section_view.h"
#include "widgets/literals.h"
#include "widgets/plot/plot_widget.h"

namespace stagewright {

DeviceFigures deviceFiguresOf(const Run& run, int step, const Units& units)
{
    const StepContext context(run, step);
    const auto table = [&context](const char* name) { return reportTable(*findAnalysis(name), context); };
    DeviceFigures out{table("kernels"), table("launch_gaps"), table("links"), table("roofline"), {}, {}, units};
    if (!out.roofline.unknown.empty()) return out;
    if (auto rows = rooflineOf(context)) out.rows = std::move(*rows);
    if (const auto ceilings = ceilingsOf(run)) out.ceilings = *ceilings;
    return out;
}

DevicePanel::DevicePanel(QWidget* parent) : QWidget(parent), m_pages(new QTabWidget(this))
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    m_pages->setDocumentMode(true);
    m_pages->setAccessibleName(u"Device figures"_s);
    layout->addWidget(m_pages);
    const QString titles[] = {u"Kernels"_s, u"Links"_s, u"Roofline"_s};
    for (int page = 0; page < count; ++page) {
        auto* body = new QWidget(this);
        auto* beside = new QBoxLayout(page == 2 ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom, body);
        beside->setContentsMargins(0, 0, 0, 0);
        beside->setSpacing(0);
        m_bodies[static_cast<std::size_t>(page)] = body;
        m_pages->addTab(body, titles[page]);
    }
    m_plot = new PlotWidget(u"rooflinePlot"_s, u"Roofline"_s, m_bodies.back());
    m_plot->setUsualSize({420, 260});
    static_cast<QBoxLayout*>(m_bodies.back()->layout())->addWidget(m_plot, 2);
    setFigures(nullptr);
}

FigureTable* DevicePanel::table(int page)
{
    const auto& views = m_views[static_cast<std::size_t>(page)];
    return views.empty() ? nullptr : views.front()->table();
}

QString DevicePanel::lineText() const
{
    QStringList lines;
    for (const SectionView* view : m_views[static_cast<std::size_t>(m_pages->currentIndex())])
        lines << view->lineText();
    return lines.join(u'\n');
}

void DevicePanel::setTheme(const Theme& theme)
{
    m_theme = &theme;
    m_plot->setTheme(theme);
    for (const auto& views : m_views)
        for (SectionView* view : views) view->setTheme(theme);
}

void DevicePanel::say(const QString& line)
{
    document::Section section;
    section.say(line.toStdString());
    for (int page = 0; page < count; ++page) show(page, {section});
}

void DevicePanel::setWorking() { say(u"Computing…"_s); }

void DevicePanel::show(int page, const std::vector<document::Section>& sections)
{
    const auto at = static_cast<std::size_t>(page);
    for (SectionView* view : m_views[at]) delete view;
    m_views[at].clear();
    auto* layout = static_cast<QBoxLayout*>(m_bodies[at]->layout());
    for (const document::Section& section : sections) {
        auto* view = new SectionView(section, m_units, m_bodies[at]);
        view->setTheme(*m_theme);
        connect(view, &SectionView::spanChosen, this, [this](SpanId span) {
            if (span != noSpan) emit spanChosen(span);
        });
        layout->insertWidget(static_cast<int>(m_views[at].size()), view, view->table() != nullptr ? 3 : 0);
        m_views[at].push_back(view);
    }
}

void DevicePanel::setFigures(std::shared_ptr<const DeviceFigures> figures)
{
    m_units = figures ? figures->units : Units{};
    m_plot->setPlot(figures && figures->ceilings ? rooflinePlot(figures->rows, *figures->ceilings) : Plot());
    m_plot->setVisible(figures && figures->ceilings.has_value());
    if (!figures) return say(u"No run is shown. Choose one in the list, or open a file (Ctrl+O)."_s);
    const auto section = [](const ReportTable& table) {
        return tableSection(table, {}, std::numeric_limits<std::size_t>::max());
    };
    std::vector<document::Section> kernels{section(figures->kernels)};
    if (figures->launchGaps.unknown.empty()) kernels.push_back(section(figures->launchGaps));
    show(0, kernels);
    show(1, {section(figures->links)});
    show(2, {section(figures->roofline)});
}

} // namespace stagewright
