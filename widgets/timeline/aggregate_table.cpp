#include "widgets/timeline/aggregate_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <QCoreApplication>

#include "schedules/base/median.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/timeline/lane_painter.h"

namespace stagewright {

namespace {

using Key = std::tuple<int, int, int, int>; // what, panel, first, second

class Collector {
public:
    Collector(AggregateTable& table, AggregateBy by, bool badges) : m_table(table), m_by(by), m_badges(badges) {}

    void addRank(const TimelinePanel& panel, int panelIndex, const PanelRank& rank, const TimeRange& range)
    {
        ++m_table.ranks;
        m_table.rankTime += range.duration();
        if (panel.noOps) return addDevices(panel, panelIndex, rank, range);
        Nanos at = range.begin;
        const auto& slices = rank.compute.slices();
        for (std::size_t i = rank.compute.firstEndingAfter(range.begin);
             i < slices.size() && slices[i].begin() < range.end; ++i) {
            const Slice& slice = slices[i];
            const Nanos begin = std::max(slice.begin(), range.begin), end = std::min(slice.end(), range.end);
            if (begin > at) add(AggregateLine::What::Idle, panelIndex, 0, 0, begin - at);
            at = std::max(at, end);
            ++m_table.ops;
            const int kind = static_cast<int>(slice.kind);
            const int stage = m_by == AggregateBy::Stage || m_by == AggregateBy::StageAndKind
                                  ? panel.timeline->spans()[rank.compute.spanOf(i)].op.stage
                                  : 0;
            int first = kind, second = 0;
            switch (m_by) {
            case AggregateBy::Kind:
            case AggregateBy::Name: break;
            case AggregateBy::Stage: first = stage; break;
            case AggregateBy::Microbatch: first = slice.microbatchOr(-1); break;
            case AggregateBy::Rank: first = rank.rank; break;
            case AggregateBy::StageAndKind:
                first = stage;
                second = kind;
                break;
            case AggregateBy::RankAndKind:
                first = rank.rank;
                second = kind;
                break;
            }
            add(AggregateLine::What::Ops, panelIndex, first, second, end - begin);
        }
        if (m_by == AggregateBy::Name) addWork(panel, panelIndex, rank, range);
        if (range.end > at) add(AggregateLine::What::Idle, panelIndex, 0, 0, range.end - at);
        std::vector<const LaneData*> lanes;
        for (const LaneData& lane : rank.communication) lanes.push_back(&lane);
        for (const PanelLane& lane : rank.lanes)
            if (isCollectiveLane(lane.lane)) lanes.push_back(&lane.data);
        for (const LaneData* lane : lanes) {
            const auto& transfers = lane->slices();
            for (std::size_t i = lane->firstEndingAfter(range.begin);
                 i < transfers.size() && transfers[i].begin() < range.end; ++i) {
                const Nanos part =
                    std::min(transfers[i].end(), range.end) - std::max(transfers[i].begin(), range.begin);
                add(AggregateLine::What::Transfers, panelIndex, static_cast<int>(transfers[i].kind), 0, part);
            }
        }
    }

    // Kernels and copies under the ops, by name.
    void addWork(const TimelinePanel& panel, int panelIndex, const PanelRank& rank, const TimeRange& range)
    {
        for (const PanelLane& lane : rank.lanes) {
            if (!isDeviceLane(lane.lane)) continue;
            const auto& slices = lane.data.slices();
            for (std::size_t i = lane.data.firstEndingAfter(range.begin);
                 i < slices.size() && slices[i].begin() < range.end; ++i)
                add(AggregateLine::What::Work, panelIndex, nameOf(panel, lane.data, i), 0,
                    std::min(slices[i].end(), range.end) - std::max(slices[i].begin(), range.begin));
        }
    }

    // Kernels and copies; idle while none of them runs, each GPU by itself. Stages and microbatches are unknown: then
    // by class.
    void addDevices(const TimelinePanel& panel, int panelIndex, const PanelRank& rank, const TimeRange& range)
    {
        for (const PanelLane& lane : rank.lanes) {
            if (!isDeviceLane(lane.lane)) continue;
            const auto& slices = lane.data.slices();
            for (std::size_t i = lane.data.firstEndingAfter(range.begin);
                 i < slices.size() && slices[i].begin() < range.end; ++i) {
                ++m_table.kernels;
                const int of = static_cast<int>(slices[i].kind);
                int first = of, second = 0;
                if (m_by == AggregateBy::Rank || m_by == AggregateBy::RankAndKind) {
                    first = rank.rank;
                    second = m_by == AggregateBy::RankAndKind ? of : 0;
                } else if (m_by == AggregateBy::Name) {
                    first = nameOf(panel, lane.data, i);
                    second = of;
                }
                add(AggregateLine::What::Ops, panelIndex, first, second,
                    std::min(slices[i].end(), range.end) - std::max(slices[i].begin(), range.begin));
                m_devices.insert(panelIndex);
            }
        }
        if (rank.gpus.empty()) return addIdle(panelIndex, rank.device, range);
        for (const PanelRank::Gpu& one : rank.gpus) addIdle(panelIndex, one.device, range);
        m_table.rankTime += static_cast<Nanos>(rank.gpus.size() - 1) * range.duration();
    }

    void addIdle(int panelIndex, const LaneData& device, const TimeRange& range)
    {
        Nanos at = range.begin;
        const auto& busy = device.slices();
        if (busy.empty()) return; // of a run too large for it
        for (std::size_t i = device.firstEndingAfter(range.begin); i < busy.size() && busy[i].begin() < range.end;
             ++i) {
            if (busy[i].begin() > at) add(AggregateLine::What::Idle, panelIndex, 0, 0, busy[i].begin() - at);
            at = std::max(at, busy[i].end());
        }
        if (range.end > at) add(AggregateLine::What::Idle, panelIndex, 0, 0, range.end - at);
    }

    void finish()
    {
        for (auto& [key, line] : m_lines) {
            line.share =
                m_table.rankTime > 0 ? static_cast<double>(line.total) / static_cast<double>(m_table.rankTime) : 0;
            line.durations = DurationSpread::of(std::move(m_durations[key]));
            name(key, line);
            m_table.lines.push_back(std::move(line));
        }
    }

private:
    int nameOf(const TimelinePanel& panel, const LaneData& lane, std::size_t slice)
    {
        const SpanId id = lane.spanOf(slice);
        const QString name = id == noSpan ? u"in steps that are not loaded"_s : nameOfWork(*panel.timeline, id);
        return static_cast<int>(m_names.try_emplace(name, m_names.size()).first->second);
    }

    void add(AggregateLine::What what, int panel, int first, int second, Nanos part)
    {
        const Key key(static_cast<int>(what), panel, first, second);
        AggregateLine& line = m_lines[key];
        ++line.count;
        line.total += part;
        line.squares += static_cast<double>(part) * static_cast<double>(part);
        m_durations[key].push_back(part);
    }

    void name(const Key& key, AggregateLine& line) const
    {
        const auto [what, panel, first, second] = key;
        line.what = static_cast<AggregateLine::What>(what);
        line.panel = panel;
        if (line.what == AggregateLine::What::Idle) {
            line.name = u"Idle"_s;
        } else if (line.what == AggregateLine::What::Work) {
            line.name = nameAt(first);
        } else if (line.what == AggregateLine::What::Ops && m_devices.contains(panel)) {
            const bool byRank = m_by == AggregateBy::Rank || m_by == AggregateBy::RankAndKind;
            if (m_by != AggregateBy::Rank)
                line.of = static_cast<KernelClass>(byRank || m_by == AggregateBy::Name ? second : first);
            const QString title = line.of ? QString::fromStdString(std::string(titleOf(*line.of))) : QString();
            line.name = byRank ? u"Rank %1"_s.arg(first) + (line.of ? u" · "_s + title : QString()) : title;
            if (m_by == AggregateBy::Name) line.name = nameAt(first);
        } else if (line.what == AggregateLine::What::Transfers || m_by == AggregateBy::Kind ||
                   m_by == AggregateBy::Name) {
            line.kind = static_cast<OpKind>(first);
            line.name = sentence(ruleOf(*line.kind).title);
        } else if (m_by == AggregateBy::Microbatch) {
            line.name = first < 0 ? u"No microbatch"_s : u"Microbatch %1"_s.arg(first);
        } else {
            const bool byRank = m_by == AggregateBy::Rank || m_by == AggregateBy::RankAndKind;
            line.name = (byRank ? u"Rank %1"_s : u"Stage %1"_s).arg(first);
            if (m_by == AggregateBy::StageAndKind || m_by == AggregateBy::RankAndKind) {
                line.kind = static_cast<OpKind>(second);
                line.name += u" · "_s + sentence(ruleOf(*line.kind).title);
            }
        }
        if (m_badges) line.name = QString(QChar(static_cast<char16_t>(u'A' + panel))) + u" · "_s + line.name;
    }

    QString nameAt(int number) const
    {
        for (const auto& [text, of] : m_names)
            if (of == static_cast<std::size_t>(number)) return text;
        return {};
    }

    AggregateTable& m_table;
    AggregateBy m_by;
    bool m_badges;
    std::map<Key, AggregateLine> m_lines;
    std::map<Key, std::vector<Nanos>> m_durations;
    std::map<QString, std::size_t> m_names; // of kernels, in the order they were met
    std::set<int> m_devices;                // panels whose lines are of kernels
};

} // namespace

DurationSpread DurationSpread::of(std::vector<Nanos> durations)
{
    DurationSpread out;
    if (durations.empty()) return out;
    const auto [least, most] = std::minmax_element(durations.begin(), durations.end());
    out.least = *least;
    out.most = *most;
    constexpr double mostBars = 24; // beyond that they are thinner than the gaps between them
    const double wanted = std::ceil(1.5 * std::sqrt(static_cast<double>(durations.size())));
    out.bars.resize(out.least == out.most ? 1 : static_cast<std::size_t>(std::min(mostBars, wanted)), 0);
    const double each = static_cast<double>(out.most - out.least) / static_cast<double>(out.bars.size());
    for (const Nanos duration : durations) {
        const auto bar = each > 0 ? static_cast<std::size_t>(static_cast<double>(duration - out.least) / each) : 0;
        ++out.bars[std::min(bar, out.bars.size() - 1)];
    }
    out.percentile95 = quantileOf(durations, 0.95);
    out.median = lowerMedian(std::move(durations));
    return out;
}

double DurationSpread::begin(std::size_t bar) const
{
    const double share = bars.empty() ? 0 : static_cast<double>(bar) / static_cast<double>(bars.size());
    return static_cast<double>(least) + share * static_cast<double>(most - least);
}

Nanos AggregateLine::spread() const
{
    if (count < 2) return 0;
    const double middle = static_cast<double>(total) / static_cast<double>(count);
    return static_cast<Nanos>(
        std::lround(std::sqrt(std::max(0.0, squares / static_cast<double>(count) - middle * middle))));
}

AggregateTable aggregateTable(const std::vector<std::shared_ptr<const TimelinePanel>>& panels,
                              const std::vector<AreaSelection>& areas, const RowPlan* plan, AggregateBy by)
{
    AggregateTable table;
    if (areas.empty()) return table;
    table.range = areas.front().range;
    Collector collector(table, by, panels.size() > 1);
    for (const AreaSelection& area : areas) {
        table.range = {std::min(table.range.begin, area.range.begin), std::max(table.range.end, area.range.end)};
        int position = 0;
        for (std::size_t p = 0; p < panels.size(); ++p) {
            const TimeRange cut{std::max<Nanos>(area.range.begin, 0), std::min(area.range.end, panels[p]->duration)};
            for (std::size_t i = 0; i < panels[p]->ranks.size(); ++i, ++position) {
                const int at = plan != nullptr ? plan->positionOf[p][i] : position;
                if (at < area.firstRow || at > area.lastRow || cut.empty()) continue;
                collector.addRank(*panels[p], static_cast<int>(p), panels[p]->ranks[i], cut);
            }
        }
    }
    collector.finish();
    return table;
}

std::int64_t slicesIn(const std::vector<std::shared_ptr<const TimelinePanel>>& panels,
                      const std::vector<AreaSelection>& areas)
{
    std::int64_t count = 0;
    for (const AreaSelection& area : areas) {
        for (const auto& panel : panels) {
            for (const PanelRank& rank : panel->ranks) {
                const auto add = [&](const LaneData& lane) {
                    const std::size_t from = lane.firstEndingAfter(area.range.begin),
                                      to = lane.firstBeginningAt(area.range.end);
                    count += to > from ? static_cast<std::int64_t>(to - from) : 0;
                };
                add(rank.compute);
                if (!panel->noOps) continue;
                for (const PanelLane& lane : rank.lanes)
                    if (isDeviceLane(lane.lane)) add(lane.data);
            }
        }
    }
    return count;
}

} // namespace stagewright
