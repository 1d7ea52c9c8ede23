#include "widgets/compare/compare_panel.h"

#include <algorithm>
#include <cmath>

#include <QGridLayout>

#include "widgets/panel/style.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

namespace {

// One unit for both columns of a row, chosen by the larger value.
struct Scale {
    double factor = 1;
    QString unit;
    int decimals = 3;
};

Scale scaleFor(const MetricDelta& metric, const Units& units)
{
    const double most = std::max(std::abs(metric.a), std::abs(metric.b));
    Scale scale;
    if (metric.unit == "fraction") return {0.01, QStringLiteral("%"), 1};
    auto choose = [&](std::initializer_list<std::pair<double, const char*>> steps) {
        for (const auto& [factor, unit] : steps)
            if (most >= factor || scale.unit.isEmpty()) scale = {factor, QString::fromUtf8(unit), 2};
    };
    if (metric.unit == "ns") {
        if (units.time != 1)
            scale = {static_cast<double>(units.time), QStringLiteral("u"), 2};
        else
            choose({{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}});
    } else if (metric.unit == "bytes") {
        if (units.memory != 1)
            scale = {static_cast<double>(units.memory), QStringLiteral("u"), 2};
        else
            choose({{1, "B"}, {1024.0, "KiB"}, {1048576.0, "MiB"}, {1073741824.0, "GiB"}});
    }
    if (!scale.unit.isEmpty() && most / scale.factor >= 100) scale.decimals = 1;
    return scale;
}

// The table is for what decides; causes of idle time stand below, each with its share of the change.
bool standsInTable(const std::string& key)
{
    return key != "span_ns" && key != "bubble_rate_span" && !key.starts_with("idle_ns.");
}

} // namespace

bool lessIsBetter(const std::string& key)
{
    return key.find("hidden") == std::string::npos && key.find("busy_fraction") == std::string::npos;
}

ComparePanel::ComparePanel(QWidget* parent) : SectionColumn(parent)
{
    m_table = addSection(tr("Difference (B against A)"));
    m_idle = addSection(tr("Idle time by rank"));
    m_split = addSection(tr("Where the change comes from"));
    m_why = addSection(tr("Why"));
    finish();
    setComparison(nullptr, nullptr, nullptr);
}

void ComparePanel::setComparison(std::shared_ptr<const Run> a, std::shared_ptr<const Run> b, std::shared_ptr<const Comparison> comparison)
{
    const bool shown = a && b && comparison;
    for (PanelSection* section : {m_table, m_idle, m_split, m_why}) {
        section->clear();
        section->setVisible(shown);
    }
    if (!shown) return;
    m_units = a->timeline ? Units{a->timeline->timeUnit(), a->timeline->memoryUnit()} : Units{};
    m_nameA = runTitle(a->info);
    m_nameB = runTitle(b->info);
    fillTable(*comparison);
    fillIdle(*comparison);
    fillSplit(*comparison);
    fillWhy(*comparison);
}

void ComparePanel::fillTable(const Comparison& comparison)
{
    auto* table = new QWidget;
    auto* grid = new QGridLayout(table);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(7);
    grid->setColumnStretch(0, 1);
    auto put = [&](int row, int column, const QString& text, const char* role, const QString& tooltip = {}) {
        auto* label = makeLabel(text, role, table, row > 0);
        label->setToolTip(tooltip);
        if (column > 0) label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        if (column == 0) label->setWordWrap(true); // never the figures
        grid->addWidget(label, row, column);
    };
    put(0, 1, QStringLiteral("A"), "secondary", m_nameA);
    put(0, 2, QStringLiteral("B"), "secondary", m_nameB);
    put(0, 3, tr("change"), "secondary", tr("B less A; for times also as a share of A."));
    int row = 1;
    for (const MetricDelta& metric : comparison.metrics) {
        if (metric.a == 0 && metric.b == 0) continue;
        if (!standsInTable(metric.key)) continue;
        const double delta = metric.delta();
        const Scale scale = scaleFor(metric, m_units);
        QString title = QString::fromStdString(metric.title);
        const QString whole = title;
        title.replace(QLatin1String("Peak activation, rank"), QLatin1String("Peak, rank")).replace(QLatin1String("Loss after the last step"), QLatin1String("Last loss"));
        title.replace(QLatin1String("communication"), QLatin1String("comm."), Qt::CaseInsensitive);
        title[0] = title[0].toUpper();
        if (!scale.unit.isEmpty()) title += QStringLiteral(", ") + scale.unit;
        QString change = signedFixed(delta / scale.factor, scale.decimals);
        if (metric.unit == "ns" && metric.a != 0)
            change = signedFixed(100 * delta / metric.a, 1) + QStringLiteral(" %");
        else if (metric.unit == "fraction")
            change += QStringLiteral(" pt");
        const bool neutral = std::abs(delta / scale.factor) < 0.5 * std::pow(10, -scale.decimals);
        const bool good = (delta < 0) == lessIsBetter(metric.key);
        put(row, 0, title, "secondary", whole);
        put(row, 1, fixed(metric.a / scale.factor, scale.decimals), "value");
        put(row, 2, fixed(metric.b / scale.factor, scale.decimals), "value");
        put(row, 3, change, neutral ? "secondary" : (good ? "better" : "worse"));
        ++row;
    }
    m_table->addWidget(table);
    m_table->addText(QString::fromStdString(comparison.headline));
}

void ComparePanel::fillIdle(const Comparison& comparison)
{
    const auto& a = comparison.bubblesA.ranks;
    const auto& b = comparison.bubblesB.ranks;
    const std::size_t ranks = std::max(a.size(), b.size());
    Nanos most = 1;
    for (std::size_t r = 0; r < ranks; ++r)
        most = std::max({most, r < a.size() ? a[r].idle : 0, r < b.size() ? b[r].idle : 0});
    m_idle->setVisible(ranks > 0);
    for (std::size_t r = 0; r < ranks; ++r) {
        for (const bool second : {false, true}) {
            const auto& from = second ? b : a;
            if (r >= from.size()) continue;
            auto* bar = new ShareBar;
            bar->setPlain(static_cast<double>(from[r].idle) / static_cast<double>(most), second);
            m_idle->addBar(second ? QString() : tr("Rank %1").arg(r), bar, durationText(from[r].idle, m_units),
                           tr("Rank %1 in %2 (%3): idle inside the step's window.").arg(r).arg(second ? QStringLiteral("B") : QStringLiteral("A"), second ? m_nameB : m_nameA));
        }
    }
}

void ComparePanel::fillSplit(const Comparison& comparison)
{
    const ChangeSplit& change = comparison.change;
    const double ranks = std::max<double>(1, static_cast<double>(comparison.bubblesB.ranks.size()));
    struct Part {
        QString title;
        Nanos time;
        QString meaning;
    };
    std::vector<Part> parts{{tr("Busy time"), change.busyDelta, tr("Ops themselves became longer or shorter.")},
                            {tr("Optimizer and collectives"), change.apartDelta, tr("Time in optimizer and collectives inside the window.")}};
    for (std::size_t c = 0; c < idleCauseCount; ++c) {
        const auto cause = static_cast<IdleCause>(c);
        const auto title = titleOf(cause);
        const auto meaning = meaningOf(cause);
        parts.push_back({tr("Idle: %1").arg(QString::fromUtf8(title.data(), static_cast<qsizetype>(title.size()))), change.idleDelta[c],
                         QString::fromUtf8(meaning.data(), static_cast<qsizetype>(meaning.size()))});
    }
    if (change.unexplained != 0) parts.push_back({tr("Different number of ranks"), change.unexplained, tr("The runs differ in ranks; this part can't be split.")});
    std::erase_if(parts, [](const Part& part) { return part.time == 0; });
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return std::abs(a.time) > std::abs(b.time); });
    m_split->setVisible(!parts.empty());
    for (const Part& part : parts)
        m_split->addRow(part.title, signedDurationText(static_cast<Nanos>(std::llround(static_cast<double>(part.time) / ranks)), m_units),
                        tr("%1\nA rank's mean share; all shares together are the change of the time, %2.").arg(part.meaning, signedDurationText(change.makespanDelta, m_units)),
                        part.time < 0 ? PanelSection::Tone::Better : PanelSection::Tone::Worse);
}

void ComparePanel::fillWhy(const Comparison& comparison)
{
    const Nanos delta = comparison.change.makespanDelta;
    m_why->setTitle(comparison.withinSpread || !comparison.sameUnits ? tr("What differs") : delta < 0 ? tr("Why B is faster") : (delta > 0 ? tr("Why B is slower") : tr("What differs")));
    m_why->setVisible(!comparison.why.empty());
    for (const std::string& sentence : comparison.why) {
        QString text = QString::fromStdString(sentence);
        if (!text.isEmpty()) text[0] = text[0].toUpper();
        m_why->addText(text);
    }
}

} // namespace stagewright
