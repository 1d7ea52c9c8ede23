#include "widgets/panel/figure_measure.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>

#include "widgets/literals.h"

namespace stagewright {
namespace {

PanelSection::Tone toneOf(double change, double least, FigureMeasure::Good good)
{
    if (std::abs(change) < least) return PanelSection::Tone::Faint;
    return (change < 0) == (good == FigureMeasure::Good::Less) ? PanelSection::Tone::Better : PanelSection::Tone::Worse;
}

} // namespace

QString shownFigure(const document::Figure& figure, const Units& units)
{
    return QString::fromStdString(document::textOf(figure, units, timeUnit()));
}

FigureMeasure::FigureMeasure(const Run& run, std::shared_ptr<const RunReport> figures, const QString& name)
    : m_figures(std::move(figures)), m_name(name), m_units{run.timeline->timeUnit(), run.timeline->memoryUnit()},
      m_ranks(run.info.ranks)
{
    if (const Metric* loss = run.metric("loss"); loss != nullptr && !loss->values.empty())
        m_lastLoss = loss->values.back();
}

std::shared_ptr<const FigureMeasure> FigureMeasure::against(const Run& run, bool withinNoise) const
{
    auto paired = std::make_shared<FigureMeasure>(*this);
    paired->m_withinNoise = withinNoise;
    paired->m_sameTime = run.timeline->timeUnit() == m_units.time;
    paired->m_sameMemory = run.timeline->memoryUnit() == m_units.memory;
    paired->m_sameRanks = run.info.ranks == m_ranks;
    return paired;
}

QString FigureMeasure::words() const { return u"Against the baseline, %1"_s.arg(m_name); }

const char* FigureMeasure::Change::role() const
{
    return tone == PanelSection::Tone::Better ? "better" : tone == PanelSection::Tone::Worse ? "worse" : "secondary";
}

FigureMeasure::Change FigureMeasure::share(double now, double before, int decimals) const
{
    const double points = 100 * (now - before);
    return {u"%1 pt"_s.arg(signedFixed(points, decimals)), toneOf(points, 0.5 * std::pow(10.0, -decimals), Good::Less)};
}

FigureMeasure::Change FigureMeasure::count(double now, double before) const { return difference(now, before, 0); }

FigureMeasure::Change FigureMeasure::difference(double now, double before, int decimals) const
{
    return {signedFixed(now - before, decimals), PanelSection::Tone::Faint};
}

FigureMeasure::Change FigureMeasure::relative(double now, double before, Good good, bool coloured) const
{
    if (before == 0) return now == 0 ? Change{} : Change{changeText(before, now), PanelSection::Tone::Faint};
    return {changeText(before, now),
            coloured ? toneOf(100 * (now - before) / before, 0.05, good) : PanelSection::Tone::Faint};
}

void FigureMeasure::tell(PanelSection& section, const Change& change) const
{
    section.addChange(change.text, words(), change.tone);
}

void FigureMeasure::tell(PanelSection& section, const document::Figure& now) const
{
    const std::vector<document::Figure> all = m_figures->figures();
    const document::Figure* before = document::findFigure(all, now.key);
    if (before == nullptr || !before->unknown.empty() || !now.unknown.empty()) return;
    const Good good = now.moreIsBetter ? Good::More : Good::Less;
    if (now.kind == ColumnKind::Time)
        tellTime(section, std::llround(now.value), std::llround(before->value), false, good);
    else if (now.kind == ColumnKind::Share)
        tell(section, share(now.value, before->value));
    else if (now.kind != ColumnKind::Size)
        tell(section, count(now.value, before->value));
    else if (m_sameMemory)
        tell(section, relative(now.value, before->value, good, true));
}

void FigureMeasure::tellTime(PanelSection& section, Nanos now, Nanos before, bool ofStep, Good good) const
{
    if (!m_sameTime || (!ofStep && !m_sameRanks)) return;
    tell(section, relative(static_cast<double>(now), static_cast<double>(before), good, !m_withinNoise));
}

void FigureMeasure::tellBytes(PanelSection& section, Bytes most, const std::vector<Bytes>& byRank) const
{
    if (!m_sameMemory || byRank.empty()) return;
    tell(section, relative(static_cast<double>(most),
                           static_cast<double>(*std::max_element(byRank.begin(), byRank.end())), Good::Less, true));
}

} // namespace stagewright
