#include "widgets/timeline/row_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include <QCoreApplication>

#include "widgets/literals.h"
#include "widgets/timeline/rank_busy.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

namespace {

constexpr int mostUngrouped = 64;
constexpr int mostGroups = 32;
constexpr double busyGap = 0.02;   // ranks this far apart in busy time are not similar
constexpr double busyRange = 0.05; // a group may not span more

QString rangeText(int from, int to) { return from == to ? QString::number(from) : u"%1–%2"_s.arg(from).arg(to); }

using Parts = std::vector<std::vector<int>>;

Parts byCount(int ranks, int size)
{
    Parts parts;
    for (int rank = 0; rank < ranks; ++rank) {
        if (rank % size == 0) parts.emplace_back();
        parts.back().push_back(rank);
    }
    return parts;
}

Parts byStage(const TimelinePanel& panel)
{
    Parts parts;
    std::map<QString, std::size_t> known;
    for (std::size_t i = 0; i < panel.ranks.size(); ++i) {
        const auto [at, isNew] = known.try_emplace(panel.ranks[i].subtitle, parts.size());
        if (isNew) parts.emplace_back();
        parts[at->second].push_back(static_cast<int>(i));
    }
    return parts;
}

// From the idlest to the busiest; a group ends if the next rank is too far apart, or if it would span too much.
Parts byBusy(const TimelinePanel& panel)
{
    std::vector<int> order(panel.ranks.size());
    std::iota(order.begin(), order.end(), 0);
    const auto busy = [&](int rank) {
        const double share = busyOf(panel, panel.ranks[static_cast<std::size_t>(rank)]);
        return std::isnan(share) ? 0 : share;
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return busy(a) < busy(b); });
    Parts parts;
    for (const int rank : order) {
        const bool joins = !parts.empty() && busy(rank) - busy(parts.back().back()) < busyGap &&
                           busy(rank) - busy(parts.back().front()) < busyRange;
        if (!joins) parts.emplace_back();
        parts.back().push_back(rank);
    }
    for (auto& part : parts) std::sort(part.begin(), part.end());
    return parts;
}

std::optional<ParallelDimension> dimensionOf(Grouping grouping)
{
    switch (grouping) {
    case Grouping::Pipeline: return ParallelDimension::Pipeline;
    case Grouping::Data: return ParallelDimension::Data;
    case Grouping::Tensor: return ParallelDimension::Tensor;
    case Grouping::Expert: return ParallelDimension::Expert;
    case Grouping::Context: return ParallelDimension::Context;
    default: return std::nullopt;
    }
}

QString placeTitle(const RankPlace& place, Grouping grouping)
{
    const auto dimension = dimensionOf(grouping);
    if (!dimension) return place.host.empty() ? u"host unknown"_s : QString::fromStdString(place.host);
    const int at = place.place[static_cast<std::size_t>(*dimension)];
    const std::string_view name = toText(*dimension);
    return u"%1 %2"_s.arg(QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size())),
                          at < 0 ? u"unknown"_s : QString::number(at));
}

// Places by number, hosts in the order of their first rank.
Parts byPlace(const TimelinePanel& panel, Grouping grouping)
{
    const auto dimension = dimensionOf(grouping);
    std::map<int, std::vector<int>> parts;
    std::map<std::string, int> hosts;
    for (std::size_t i = 0; i < panel.ranks.size(); ++i) {
        const RankPlace& place = panel.ranks[i].place;
        const int key = dimension ? place.place[static_cast<std::size_t>(*dimension)]
                                  : hosts.try_emplace(place.host, static_cast<int>(hosts.size())).first->second;
        parts[key < 0 ? std::numeric_limits<int>::max() : key].push_back(static_cast<int>(i));
    }
    Parts out;
    for (auto& [key, ranks] : parts) out.push_back(std::move(ranks));
    return out;
}

// By pipeline rank: the first replica's alone, then the other replicas'.
Parts byReplica(const TimelinePanel& panel)
{
    Parts parts;
    for (int of = 0; of < panel.pipelineRanks(); ++of) {
        parts.push_back({of});
        parts.emplace_back();
        for (int replica = 1; replica < panel.replicas; ++replica)
            parts.back().push_back(replica * panel.pipelineRanks() + of);
    }
    return parts;
}

constexpr int mostWithReplicas = 32; // pipeline ranks

Grouping groupingOf(const TimelinePanel& panel, const RowSettings& settings)
{
    const bool replicas =
        settings.grouping == Grouping::Automatic && panel.replicas > 1 && panel.pipelineRanks() <= mostWithReplicas;
    return replicas ? Grouping::Replica : settings.grouping;
}

Parts partsOf(const TimelinePanel& panel, const RowSettings& settings)
{
    const int ranks = static_cast<int>(panel.ranks.size());
    const Grouping grouping = groupingOf(panel, settings);
    switch (grouping) {
    case Grouping::Automatic: return byCount(ranks, ranks > mostUngrouped ? suitableGroupSize(ranks) : 1);
    case Grouping::None: return byCount(ranks, 1);
    case Grouping::Count: return byCount(ranks, settings.groupSize > 1 ? settings.groupSize : suitableGroupSize(ranks));
    case Grouping::Stage: return byStage(panel);
    case Grouping::Busy: return byBusy(panel);
    case Grouping::Host:
    case Grouping::Pipeline:
    case Grouping::Data:
    case Grouping::Tensor:
    case Grouping::Expert:
    case Grouping::Context: return canGroup(panel, grouping) ? byPlace(panel, grouping) : byCount(ranks, 1);
    case Grouping::Replica: return canGroup(panel, grouping) ? byReplica(panel) : byCount(ranks, 1);
    }
    return {};
}

RankGroup groupOf(const TimelinePanel& panel, std::vector<int> ranks, Grouping grouping)
{
    RankGroup group;
    group.ranks = std::move(ranks);
    group.busyLeast = 1e9;
    for (const int index : group.ranks) {
        const double busy = busyOf(panel, panel.ranks[static_cast<std::size_t>(index)]);
        group.busyMean += busy;
        group.busyLeast = std::min(group.busyLeast, busy);
        group.busyMost = std::max(group.busyMost, busy);
    }
    group.busyMean /= static_cast<double>(group.ranks.size());
    const int first = panel.ranks[static_cast<std::size_t>(group.ranks.front())].rank,
              last = panel.ranks[static_cast<std::size_t>(group.ranks.back())].rank;
    const bool contiguous = last - first + 1 == static_cast<int>(group.ranks.size());
    group.detail = u"%1 ranks"_s.arg(group.ranks.size());
    if (grouping == Grouping::Replica) {
        const int from = panel.ranks[static_cast<std::size_t>(group.ranks.front())].replica,
                  to = panel.ranks[static_cast<std::size_t>(group.ranks.back())].replica;
        group.title = (from == to ? u"replica %1"_s : u"replicas %1"_s).arg(rangeText(from, to));
        group.detail = u"rank %1 of each pipeline"_s.arg(group.ranks.front() % panel.pipelineRanks());
    } else if (grouping == Grouping::Stage) {
        group.title = panel.ranks[static_cast<std::size_t>(group.ranks.front())].subtitle;
        if (group.title.isEmpty()) group.title = u"no stage"_s;
    } else if (grouping == Grouping::Busy) {
        const auto percent = [](double share) { return static_cast<int>(std::lround(share * 100)); };
        group.title = u"%1 % busy"_s.arg(rangeText(percent(group.busyLeast), percent(group.busyMost)));
    } else if (grouping == Grouping::Host || dimensionOf(grouping)) {
        group.title = placeTitle(panel.ranks[static_cast<std::size_t>(group.ranks.front())].place, grouping);
        if (contiguous) group.detail = u"ranks %1"_s.arg(rangeText(first, last));
    } else {
        group.title = contiguous ? rangeText(first, last) : group.detail;
    }
    return group;
}

RowItem itemOf(int panel, int rankIndex, int group, const PanelRank& rank, bool hasOps, const RowSettings& settings)
{
    RowItem item;
    item.kind = settings.collapsed.count(rank.rank) != 0 ? RowKind::Collapsed : RowKind::Rank;
    item.panel = panel;
    item.rankIndex = rankIndex;
    item.group = group;
    item.track = item.kind == RowKind::Rank && settings.trackless.count(rank.rank) == 0;
    if (item.kind == RowKind::Rank && (settings.lanes || settings.waits)) {
        const int work = rank.workLanes(), all = static_cast<int>(rank.lanes.size());
        item.firstLane = settings.lanes ? 0 : work;
        item.lanes = (settings.waits ? all : work) - item.firstLane;
        if (settings.thinStreams.lower_bound({rank.rank, {}}) != settings.thinStreams.lower_bound({rank.rank + 1, {}}))
            for (int lane = 0; lane < item.lanes; ++lane) {
                const auto at = static_cast<std::size_t>(item.firstLane + lane);
                item.thin.push_back(settings.thinStreams.count({rank.rank, streamName(rank.lanes[at])}) != 0);
                item.joined.push_back(lane > 0 && streamName(rank.lanes[at]) == streamName(rank.lanes[at - 1]));
            }
    }
    item.device = !hasOps && (!rank.lanes.empty() || rank.device.isOverview());
    if (item.device && rank.communication.empty()) item.track = false;
    return item;
}

} // namespace

std::string streamName(const PanelLane& lane) { return std::to_string(static_cast<int>(lane.lane)) + ' ' + lane.track; }

bool canGroup(const TimelinePanel& panel, Grouping grouping)
{
    if (grouping == Grouping::Replica) return panel.replicas > 1;
    const auto dimension = dimensionOf(grouping);
    if (!dimension && grouping != Grouping::Host) return true;
    for (const PanelRank& rank : panel.ranks) {
        const RankPlace &a = panel.ranks.front().place, &b = rank.place;
        if (dimension ? a.place[static_cast<std::size_t>(*dimension)] != b.place[static_cast<std::size_t>(*dimension)]
                      : a.host != b.host)
            return true;
    }
    return false;
}

int suitableGroupSize(int ranks)
{
    int size = 8;
    while ((ranks + size - 1) / size > mostGroups) size *= 4;
    return size;
}

RowPlan planRows(const std::vector<std::shared_ptr<const TimelinePanel>>& panels, const RowSettings& settings)
{
    RowPlan plan;
    std::vector<RowItem> rows;
    for (std::size_t p = 0; p < panels.size(); ++p) {
        const TimelinePanel& panel = *panels[p];
        const int index = static_cast<int>(p);
        const Grouping grouping = groupingOf(panel, settings);
        plan.groups.emplace_back();
        plan.itemOf.emplace_back(panel.ranks.size(), -1);
        plan.positionOf.emplace_back(panel.ranks.size(), -1);
        for (auto& part : partsOf(panel, settings)) {
            const int first = static_cast<int>(plan.rankAt.size());
            for (const int rank : part) {
                plan.positionOf[p][static_cast<std::size_t>(rank)] = static_cast<int>(plan.rankAt.size());
                plan.rankAt.emplace_back(index, rank);
            }
            int group = -1;
            bool expanded = true;
            const bool otherReplicas =
                grouping == Grouping::Replica && panel.ranks[static_cast<std::size_t>(part.front())].replica > 0;
            if (part.size() > 1 || otherReplicas) {
                RankGroup made = groupOf(panel, part, grouping);
                made.expanded = expanded =
                    settings.expanded.count(panel.ranks[static_cast<std::size_t>(part.front())].rank) != 0;
                group = static_cast<int>(plan.groups[p].size());
                plan.groups[p].push_back(std::move(made));
                RowItem item;
                item.kind = RowKind::Group;
                item.panel = index;
                item.rankIndex = part.front();
                item.group = group;
                item.track = false;
                item.firstPosition = first;
                item.lastPosition = first + static_cast<int>(part.size()) - 1;
                rows.push_back(item);
            }
            for (const int rank : part) {
                RowItem item =
                    itemOf(index, rank, group, panel.ranks[static_cast<std::size_t>(rank)], panel.hasOps(), settings);
                item.firstPosition = item.lastPosition = plan.positionOf[p][static_cast<std::size_t>(rank)];
                item.pinned = settings.pinned.count(panel.ranks[static_cast<std::size_t>(rank)].rank) != 0;
                if (item.pinned) {
                    plan.items.push_back(item);
                } else if (expanded) {
                    rows.push_back(item);
                }
            }
        }
    }
    plan.pinned = static_cast<int>(plan.items.size());
    plan.items.insert(plan.items.end(), rows.begin(), rows.end());
    for (std::size_t i = 0; i < plan.items.size(); ++i) { // groups first, then what shows a rank itself
        const RowItem& item = plan.items[i];
        const auto panel = static_cast<std::size_t>(item.panel);
        if (item.kind != RowKind::Group) continue;
        for (const int rank : plan.groups[panel][static_cast<std::size_t>(item.group)].ranks)
            plan.itemOf[panel][static_cast<std::size_t>(rank)] = static_cast<int>(i);
    }
    for (std::size_t i = plan.items.size(); i-- > 0;) {
        const RowItem& item = plan.items[i];
        if (item.kind != RowKind::Group)
            plan.itemOf[static_cast<std::size_t>(item.panel)][static_cast<std::size_t>(item.rankIndex)] =
                static_cast<int>(i);
    }
    return plan;
}

RowPlan plainPlan(const std::vector<int>& ranksByPanel)
{
    RowPlan plan;
    for (std::size_t p = 0; p < ranksByPanel.size(); ++p) {
        plan.groups.emplace_back();
        plan.itemOf.emplace_back();
        plan.positionOf.emplace_back();
        for (int rank = 0; rank < ranksByPanel[p]; ++rank) {
            RowItem item;
            item.panel = static_cast<int>(p);
            item.rankIndex = rank;
            item.firstPosition = item.lastPosition = static_cast<int>(plan.items.size());
            plan.itemOf[p].push_back(item.firstPosition);
            plan.positionOf[p].push_back(item.firstPosition);
            plan.rankAt.emplace_back(item.panel, rank);
            plan.items.push_back(item);
        }
    }
    return plan;
}

QString RankGroup::name() const
{
    return title.front().isDigit() && !title.contains(u'%') ? u"Ranks %1"_s.arg(title) : title;
}

} // namespace stagewright
