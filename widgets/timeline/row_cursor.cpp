#include "widgets/timeline/row_cursor.h"

#include <algorithm>
#include <functional>
#include <set>

#include "widgets/literals.h"
#include "widgets/timeline/rank_busy.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr double foldWidth = 20; // of the room of the triangles

bool isRow(const TimelineScene& scene, int row) { return row >= 0 && row < static_cast<int>(scene.rows.rows.size()); }

// What a click at a triangle does to the settings of rows; empty: none is there.
std::function<RowSettings(RowSettings)> foldAt(const TimelineScene& scene, QPointF at)
{
    const int row = scene.rowUnder(at.y());
    if (at.x() >= foldWidth || !isRow(scene, row) || scene.place(row).kind == RowKind::Group) return {};
    const RowPlace& place = scene.place(row);
    const PanelRank& rank = scene.rankOf(place);
    const double below = at.y() - scene.rowTop(row) - (place.lanesTop() - place.top);
    if (place.lanes == 0 || below < 0)
        return [number = rank.rank](RowSettings rows) {
            if (rows.collapsed.erase(number) == 0) rows.collapsed.insert(number);
            return rows;
        };
    int lane = 0;
    while (lane + 1 < place.lanes && place.laneTop(lane + 1) <= below) ++lane;
    return [stream = std::pair(rank.rank, streamName(rank.lanes[static_cast<std::size_t>(place.firstLane + lane)]))](
               RowSettings rows) {
        if (rows.thinStreams.erase(stream) == 0) rows.thinStreams.insert(stream);
        return rows;
    };
}

} // namespace

int RowCursor::row() const
{
    if (!m_at || view() == nullptr) return -1;
    const auto& rows = view()->scene().rows.rows;
    const auto [position, isGroup] = *m_at;
    const auto find = [&](auto fits) {
        const auto at = std::find_if(rows.begin(), rows.end(), fits);
        return at == rows.end() ? -1 : static_cast<int>(at - rows.begin());
    };
    const int same = find(
        [&](const RowPlace& row) { return row.firstPosition == position && (row.kind == RowKind::Group) == isGroup; });
    return same >= 0 ? same : find([&](const RowPlace& row) { // its group was folded
        return row.firstPosition <= position && row.lastPosition >= position;
    });
}

void RowCursor::set(int row)
{
    const TimelineScene& scene = view()->scene();
    if (!isRow(scene, row)) {
        m_at.reset();
    } else {
        const RowPlace& place = scene.place(row);
        m_at = std::pair(place.firstPosition, place.kind == RowKind::Group);
        if (row >= scene.rows.pinned) view()->showRows(scene.rowTop(row), scene.rowTop(row) + place.height);
        view()->setAccessibleDescription(rowText(scene, row));
    }
    update();
    emit moved();
}

void RowCursor::move(int by)
{
    const TimelineScene& scene = view()->scene();
    const int rows = static_cast<int>(scene.rows.rows.size());
    if (rows == 0) return;
    const int from = row();
    if (from >= 0) return set(std::clamp(from + by, 0, rows - 1));
    const SpanRef selected = state().selected();
    if (scene.rectOf(selected)) return set(scene.rowOf(selected.panel, scene.rankNumber(selected)));
    set(by > 0 ? 0 : rows - 1);
}

std::vector<int> RowCursor::chosenRanks() const
{
    const TimelineScene& scene = view()->scene();
    const auto& plan = scene.rows.plan;
    if (!plan) return {};
    std::set<int> ranks;
    const auto add = [&](int first, int last) {
        for (int at = std::max(0, first); at <= std::min(last, static_cast<int>(plan->rankAt.size()) - 1); ++at) {
            const auto [panel, rankIndex] = plan->rankAt[static_cast<std::size_t>(at)];
            ranks.insert(scene.panel(panel).ranks[static_cast<std::size_t>(rankIndex)].rank);
        }
    };
    if (!state().areas().empty()) {
        for (const AreaSelection& area : state().areas()) add(area.firstRow, area.lastRow);
    } else if (const int at = row(); at >= 0) {
        add(scene.place(at).firstPosition, scene.place(at).lastPosition);
    } else if (scene.rectOf(state().selected())) {
        ranks.insert(scene.rankNumber(state().selected()));
    }
    return {ranks.begin(), ranks.end()};
}

void RowCursor::paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    const int at = row();
    if (at < 0 || !view()->hasFocus()) return;
    const RowPlace& place = scene.place(at);
    painter.setClipRect(at < scene.rows.pinned ? scene.pinnedRect() : scene.scrolledRect(), Qt::IntersectClip);
    painter.fillRect(QRectF(0, scene.rowTop(at) - 1, 3, place.bottom() - place.top + 2), theme.accent);
}

std::optional<OverlayHit> RowCursor::hit(const OverlayPress& press)
{
    if (press.button != Qt::LeftButton || press.at.x() >= gutterFor(view()->width()) - 12) return std::nullopt;
    OverlayHit hit;
    if (foldAt(view()->scene(), press.at)) hit.cursor = Qt::PointingHandCursor;
    hit.click = [this, at = press.at] {
        const TimelineScene& scene = view()->scene();
        const int row = scene.rowUnder(at.y());
        set(row);
        if (row >= 0 && scene.place(row).kind == RowKind::Group)
            toggleGroup(state(), scene, row);
        else if (const auto settings = foldAt(scene, at))
            state().setRows(settings(state().rows()));
    };
    return hit;
}

bool RowCursor::key(ViewAction action, bool asked)
{
    if (action != ViewAction::Cancel || !m_at) return false;
    if (!asked) set(-1);
    return true;
}

QString rowText(const TimelineScene& scene, int row)
{
    if (!isRow(scene, row)) return {};
    const RowPlace& place = scene.place(row);
    if (place.kind == RowKind::Group) {
        const RankGroup& group = scene.groupOf(place);
        return u"%1, %2, %3 busy, %4"_s.arg(group.name(), group.detail, busyText(group.busyMean),
                                            group.expanded ? u"open"_s : u"folded"_s);
    }
    const PanelRank& rank = scene.rankOf(place);
    QStringList words{rank.title};
    if (!rank.subtitle.isEmpty()) words << rank.subtitle;
    words << u"%1 busy"_s.arg(busyText(busyOf(scene.panel(place.panel), rank)));
    if (row < scene.rows.pinned) words << u"pinned"_s;
    if (place.kind == RowKind::Collapsed) words << u"folded"_s;
    return words.join(u", "_s);
}

void toggleGroup(ViewState& state, const TimelineScene& scene, int row)
{
    if (!isRow(scene, row) || scene.place(row).group < 0) return;
    const RowPlace& place = scene.place(row);
    RowSettings rows = state.rows();
    const int key = scene.panel(place.panel).ranks[static_cast<std::size_t>(scene.groupOf(place).ranks.front())].rank;
    if (rows.expanded.erase(key) == 0) rows.expanded.insert(key);
    state.setRows(rows);
}

} // namespace stagewright
