// MemoryView: the text of the card under the pointer: how much is in use, what holds it since when, a counter's value.
#include <algorithm>
#include <map>

#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"

namespace stagewright {

namespace {

constexpr std::size_t mostHolders = 14; // lines of a card

} // namespace

MicrobatchRef MemoryView::holderAt(int rankIndex, Nanos axisTime, Bytes at) const
{
    const int place = placeOf(rankIndex);
    if (place < 0 || !m_places[static_cast<std::size_t>(place)].row->holdings) return {};
    Bytes below = 0;
    for (const Holding& one :
         m_places[static_cast<std::size_t>(place)].row->holdings->at(axisTime + m_panels.back()->origin)) {
        below += one.bytes;
        if (at < below)
            return one.microbatch < 0 ? MicrobatchRef{}
                                      : MicrobatchRef{one.microbatch, one.step - std::max(0, m_panels.back()->step)};
    }
    return {};
}

CardText MemoryView::cardAt(int rankIndex, Nanos axisTime, std::optional<Bytes> at) const
{
    CardText card;
    const int place = placeOf(rankIndex);
    if (place < 0 || m_panels.empty()) return card;
    const TimelinePanel& panel = *m_panels.back();
    const MemoryRow& row = *m_places[static_cast<std::size_t>(place)].row;
    if (axisTime < 0 || axisTime >= panel.duration) return card;
    card.title = headline() + u" · "_s + row.title.toLower();
    card.rows.emplace_back(u"In use"_s, bytesText(row.total().at(axisTime), panel.units));
    if (row.layers.size() > 1) {
        for (std::size_t k = row.layers.size(); k-- > 0;) {
            const Bytes below = k == 0 ? 0 : row.layers[k - 1].curve.at(axisTime);
            card.rows.emplace_back(u"  "_s + titleOf(row.layers[k].category),
                                   bytesText(row.layers[k].curve.at(axisTime) - below, panel.units));
        }
    }
    card.rows.emplace_back(u"Peak"_s, bytesText(row.total().peak, panel.units));
    if (row.ghost) {
        const QChar badge = letterOf(m_panels.size() - 2);
        card.rows.emplace_back(u"In use in %1"_s.arg(badge), bytesText(row.ghost->at(axisTime), panel.units));
    }
    if (row.predicted) card.rows.emplace_back(u"Simulated"_s, bytesText(row.predicted->at(axisTime), panel.units));
    const MemoryCurve* activations = row.activations();
    if (m_budget && activations != nullptr) {
        card.rows.emplace_back(u"Below budget"_s, bytesText(*m_budget - activations->at(axisTime), panel.units));
        if (const auto over = activations->firstOver(*m_budget))
            card.rows.emplace_back(u"First exceeded at"_s, durationText(*over, panel.units));
    }
    if (!row.holdings) return card;
    // The holders, oldest first, as stacked; many are summed up by stage.
    const std::vector<Holding> holders = row.holdings->at(axisTime + panel.origin);
    QStringList lines;
    std::map<int, std::pair<Bytes, QStringList>> byStage;
    Bytes below = 0;
    for (const Holding& one : holders) {
        auto& [bytes, microbatches] = byStage[one.stage];
        bytes += one.bytes;
        if (one.microbatch >= 0) microbatches << QString::number(one.microbatch);
        const bool marked = at && *at >= below && *at < below + one.bytes;
        below += one.bytes;
        if (lines.size() >= static_cast<int>(mostHolders) && !marked) continue;
        const QString who = one.microbatch < 0 ? u"stage %1"_s.arg(one.stage)
                                               : u"microbatch %1, stage %2"_s.arg(one.microbatch).arg(one.stage);
        lines << u"%1%2: %3 since %4"_s.arg(marked ? u"▶ "_s : QString(), who, bytesText(one.bytes, panel.units),
                                            durationText(std::max<Nanos>(0, one.since - panel.origin), panel.units));
    }
    if (static_cast<int>(holders.size()) > lines.size())
        lines << u"and %1 more"_s.arg(static_cast<int>(holders.size()) - lines.size());
    for (auto at2 = byStage.rbegin(); at2 != byStage.rend(); ++at2) {
        const auto& [stage, held] = *at2;
        QStringList numbers = held.second;
        if (numbers.size() > 12) numbers = numbers.mid(0, 12) << u"…"_s;
        QString line = u"Stage %1 holds %2"_s.arg(stage).arg(bytesText(held.first, panel.units));
        if (!numbers.isEmpty())
            line += (numbers.size() == 1 ? u": microbatch "_s : u": microbatches "_s) + numbers.join(u", "_s);
        lines.prepend(line);
    }
    card.note = lines.join(u'\n');
    return card;
}

CardText MemoryView::counterCard(int place, Nanos axisTime) const
{
    CardText card;
    if (place < 0 || place >= static_cast<int>(m_places.size()) || m_panels.empty()) return card;
    const MemoryPlace& at = m_places[static_cast<std::size_t>(place)];
    if (!at.row->counter) return card;
    const CounterCurve& counter = *at.row->counter;
    card.title = at.title + u" · "_s + (at.row->rankIndex < 0 ? u"of the run"_s : u"rank %1"_s.arg(at.row->rankIndex));
    if (at.subtitle.contains(u"alike"_s)) card.title = at.title + u" · "_s + at.subtitle;
    const auto value = counter.at(axisTime);
    card.rows.emplace_back(u"Value"_s, value ? counterText(*value, counter.unit) : u"none yet"_s);
    const Axis now = axis();
    const auto byTime = [](const CounterSample& s, Nanos t) { return s.time < t; };
    const auto first = std::lower_bound(counter.samples.begin(), counter.samples.end(), now.range.begin, byTime) -
                       counter.samples.begin();
    const auto last = std::lower_bound(counter.samples.begin(), counter.samples.end(), now.range.end, byTime) -
                      counter.samples.begin();
    const Extremes inView = counter.index.over(static_cast<std::size_t>(first), static_cast<std::size_t>(last),
                                               [&](std::size_t i) { return counter.samples[i].value; });
    if (!inView.empty())
        card.rows.emplace_back(u"Minimum, maximum in view"_s, counterText(inView.least, counter.unit) + u" – "_s +
                                                                  counterText(inView.most, counter.unit));
    return card;
}

} // namespace stagewright
