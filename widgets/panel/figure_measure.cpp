#include "widgets/panel/figure_measure.h"

#include <algorithm>
#include <cmath>

#include "traces/report/run_document.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"

namespace stagewright {
namespace {

document::Tone toneOf(double change, double least, bool moreIsBetter = false)
{
    if (std::abs(change) < least) return document::Tone::Faint;
    return (change > 0) == moreIsBetter ? document::Tone::Good : document::Tone::Bad;
}

} // namespace

FigureMeasure::FigureMeasure(const Run& run, std::shared_ptr<const RunReport> figures, const QString& name)
    : m_figures(std::move(figures)), m_all(m_figures->figures()),
      m_name(name), m_units{run.timeline->timeUnit(), run.timeline->memoryUnit()}, m_ranks(run.info.ranks)
{
    for (document::Figure& figure : trainingFigures(run, m_figures->step)) m_all.push_back(std::move(figure));
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
    return tone == document::Tone::Good ? "better" : tone == document::Tone::Bad ? "worse" : "secondary";
}

FigureMeasure::Change FigureMeasure::share(double now, double before, int decimals) const
{
    const double points = 100 * (now - before);
    return {u"%1 pt"_s.arg(signedFixed(points, decimals)), toneOf(points, 0.5 * std::pow(10.0, -decimals))};
}

FigureMeasure::Change FigureMeasure::of(const document::Figure& now) const
{
    const auto before = std::find_if(m_all.begin(), m_all.end(), [&now](const document::Figure& one) {
        return now.key.empty() ? one.title == now.title : one.key == now.key;
    });
    if (before == m_all.end() || !before->unknown.empty() || !now.unknown.empty() || !std::isfinite(now.value) ||
        !std::isfinite(before->value))
        return {};
    const bool time = now.kind == ColumnKind::Time;
    if (now.kind == ColumnKind::Share) return share(now.value, before->value);
    if (!time && now.kind != ColumnKind::Size)
        return {signedFixed(now.value - before->value, now.kind == ColumnKind::Real ? 3 : 0)};
    if (time ? !m_sameTime || (now.summed && !m_sameRanks) : !m_sameMemory) return {};
    if (before->value == 0 && now.value == 0) return {};
    const bool coloured = before->value != 0 && !(time && m_withinNoise);
    return {changeText(before->value, now.value),
            coloured ? toneOf(100 * (now.value - before->value) / before->value, 0.05, now.moreIsBetter)
                     : document::Tone::Faint};
}

void FigureMeasure::tell(PanelSection& section, const Change& change) const
{
    section.addChange(change.text, words(), change.tone);
}

} // namespace stagewright
