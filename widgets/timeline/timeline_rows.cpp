// TimelineView: its rows: which are drawn, the row mark in the gutter, groups.
#include <algorithm>
#include <cmath>
#include <set>

#include "widgets/literals.h"
#include "widgets/timeline/lane_painter.h"
#include "widgets/timeline/rank_busy.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

void TimelineView::planAgain()
{
    m_plan = std::make_shared<const RowPlan>(planRows(m_scene.panels, m_state->rows()));
    layOut();
    invalidate();
    updateGeometry();
    emit rowsLaidOut();
}

int TimelineView::cursorRow() const
{
    if (!m_cursor) return -1;
    const auto& rows = m_scene.rows.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].firstPosition == m_cursor->first && (rows[i].kind == RowKind::Group) == (m_cursor->second == 1))
            return static_cast<int>(i);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) { // its group was folded
        if (rows[i].firstPosition <= m_cursor->first && rows[i].lastPosition >= m_cursor->first)
            return static_cast<int>(i);
    }
    return -1;
}

void TimelineView::setCursorRow(int row)
{
    if (row < 0 || row >= static_cast<int>(m_scene.rows.rows.size())) {
        m_cursor.reset();
    } else {
        const RowPlace& place = m_scene.place(row);
        m_cursor = std::pair(place.firstPosition, place.kind == RowKind::Group ? 1 : 0);
        if (row >= m_scene.rows.pinned) showRows(m_scene.rowTop(row), m_scene.rowTop(row) + place.height);
        setAccessibleDescription(rowText(row));
    }
    invalidate();
    emit cursorMoved();
}

void TimelineView::moveCursor(int by)
{
    const int rows = static_cast<int>(m_scene.rows.rows.size());
    if (rows == 0) return;
    int from = cursorRow();
    if (from < 0) {
        const SpanRef selected = m_state->selected();
        if (m_scene.rectOf(selected)) {
            from = m_scene.rowOf(
                selected.panel,
                m_scene.panels[static_cast<std::size_t>(selected.panel)]->timeline->trackOf(selected.span).rank);
            return setCursorRow(from);
        }
        return setCursorRow(by > 0 ? 0 : rows - 1);
    }
    setCursorRow(std::clamp(from + by, 0, rows - 1));
}

void TimelineView::toggleGroup(int row)
{
    if (row < 0 || row >= static_cast<int>(m_scene.rows.rows.size())) return;
    const RowPlace place = m_scene.place(row);
    if (place.group < 0) return;
    const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(place.panel)];
    const RankGroup& group = m_scene.groupOf(place);
    RowSettings rows = m_state->rows();
    const int key = panel.ranks[static_cast<std::size_t>(group.ranks.front())].rank;
    if (rows.expanded.erase(key) == 0) rows.expanded.insert(key);
    m_state->setRows(rows);
}

std::vector<int> TimelineView::chosenRanks() const
{
    std::set<int> ranks;
    const auto add = [&](int position) {
        const auto [panel, rankIndex] = m_plan->rankAt[static_cast<std::size_t>(position)];
        ranks.insert(m_scene.panels[static_cast<std::size_t>(panel)]->ranks[static_cast<std::size_t>(rankIndex)].rank);
    };
    if (!m_plan) return {};
    const int all = static_cast<int>(m_plan->rankAt.size());
    if (!m_state->areas().empty()) {
        for (const AreaSelection& area : m_state->areas()) {
            for (int at = std::max(0, area.firstRow); at <= std::min(area.lastRow, all - 1); ++at) add(at);
        }
    } else if (const int row = cursorRow(); row >= 0) {
        for (int at = m_scene.place(row).firstPosition; at <= m_scene.place(row).lastPosition; ++at) add(at);
    } else if (const SpanRef selected = m_state->selected(); m_scene.rectOf(selected)) {
        ranks.insert(m_scene.panels[static_cast<std::size_t>(selected.panel)]->timeline->trackOf(selected.span).rank);
    }
    return {ranks.begin(), ranks.end()};
}

QString TimelineView::rowText(int row) const
{
    if (row < 0 || row >= static_cast<int>(m_scene.rows.rows.size())) return {};
    const RowPlace& place = m_scene.place(row);
    if (place.kind == RowKind::Group) {
        const RankGroup& group = m_scene.groupOf(place);
        const QString name =
            group.title.front().isDigit() && !group.title.contains(u'%') ? u"Ranks %1"_s.arg(group.title) : group.title;
        return u"%1, %2, %3 busy, %4"_s.arg(name, group.detail, busyText(group.busyMean),
                                            group.expanded ? u"open"_s : u"folded"_s);
    }
    const PanelRank& rank = m_scene.rankOf(place);
    QStringList words{rank.title};
    if (!rank.subtitle.isEmpty()) words << rank.subtitle;
    words << u"%1 busy"_s.arg(busyText(busyOf(*m_scene.panels[static_cast<std::size_t>(place.panel)], rank)));
    if (row < m_scene.rows.pinned) words << u"pinned"_s;
    if (place.kind == RowKind::Collapsed) words << u"folded"_s;
    return words.join(u", "_s);
}

void TimelineView::gutterClicked(QPointF at)
{
    const int row = m_scene.rowUnder(at.y());
    setCursorRow(row);
    if (row >= 0 && m_scene.place(row).kind == RowKind::Group) toggleGroup(row);
}

CardText TimelineView::groupCard(const RowPlace& row, Nanos axisTime) const
{
    CardText card;
    const RankGroup& group = m_scene.groupOf(row);
    const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(row.panel)];
    if (axisTime < 0 || axisTime >= panel.duration) return card;
    card.title =
        group.title.front().isDigit() && !group.title.contains(u'%') ? u"Ranks %1"_s.arg(group.title) : group.title;
    card.rows.emplace_back(u"Ranks"_s, QString::number(group.ranks.size()));
    card.rows.emplace_back(u"Busy, mean"_s, busyText(group.busyMean));
    if (!std::isnan(group.busyMean))
        card.rows.emplace_back(u"Minimum, maximum"_s,
                               percentText(group.busyLeast) + u" – "_s + percentText(group.busyMost));
    int working = 0;
    for (const int rank : group.ranks) {
        const LaneData& lane = panel.ranks[static_cast<std::size_t>(rank)].compute;
        const std::size_t at = lane.firstEndingAfter(axisTime);
        if (at < lane.size() && lane.slices()[at].begin() <= axisTime) ++working;
    }
    card.rows.emplace_back(u"Busy now"_s, u"%1 of %2"_s.arg(working).arg(group.ranks.size()));
    card.note =
        group.expanded ? u"Click the gutter to fold these ranks."_s : u"Double click to show them one by one."_s;
    return card;
}

} // namespace stagewright
