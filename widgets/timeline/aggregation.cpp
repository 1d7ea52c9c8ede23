#include "widgets/timeline/aggregation.h"

#include <algorithm>

namespace stagewright {

namespace {

void addRow(Aggregation& sum, const PanelRank& row, const TimeRange& range)
{
    ++sum.rows;
    Nanos filled = 0;
    const auto& slices = row.compute.slices();
    for (std::size_t i = row.compute.firstEndingAfter(range.begin); i < slices.size() && slices[i].begin() < range.end;
         ++i) {
        const Nanos inside = std::min(slices[i].end(), range.end) - std::max(slices[i].begin(), range.begin);
        const auto kind = static_cast<std::size_t>(slices[i].kind);
        ++sum.count;
        ++sum.countByKind[kind];
        sum.timeByKind[kind] += inside;
        filled += inside;
        if (isBusy(slices[i].opKind())) sum.busy += inside;
    }
    sum.idle += range.duration() - filled;
    for (const LaneData& lane : row.communication) {
        const auto& transfers = lane.slices();
        for (std::size_t i = lane.firstEndingAfter(range.begin);
             i < transfers.size() && transfers[i].begin() < range.end; ++i) {
            sum.communication += std::min(transfers[i].end(), range.end) - std::max(transfers[i].begin(), range.begin);
        }
    }
}

} // namespace

Aggregation aggregate(const std::vector<std::shared_ptr<const TimelinePanel>>& panels,
                      const std::vector<AreaSelection>& areas, const RowPlan* plan)
{
    Aggregation sum;
    for (const AreaSelection& area : areas) {
        int row = 0;
        for (std::size_t p = 0; p < panels.size(); ++p) {
            const TimelinePanel& panel = *panels[p];
            const TimeRange cut{std::max<Nanos>(area.range.begin, 0), std::min(area.range.end, panel.duration)};
            for (std::size_t i = 0; i < panel.ranks.size(); ++i, ++row) {
                const int position = plan != nullptr ? plan->positionOf[p][i] : row;
                if (position >= area.firstRow && position <= area.lastRow && !cut.empty())
                    addRow(sum, panel.ranks[i], cut);
            }
        }
    }
    if (!areas.empty()) {
        sum.range = areas.front().range;
        for (const AreaSelection& area : areas) {
            sum.range.begin = std::min(sum.range.begin, area.range.begin);
            sum.range.end = std::max(sum.range.end, area.range.end);
        }
    }
    return sum;
}

} // namespace stagewright
