#include "widgets/timeline/view_state.h"

#include <algorithm>

namespace stagewright {

static constexpr Nanos leastDuration = 10;

TimeRange ViewState::bounded(TimeRange range) const
{
    const Nanos margin = m_extent.duration() / 10;
    const Nanos lowest = m_extent.begin - margin;
    const Nanos highest = std::max(m_extent.end + margin, lowest + leastDuration);
    const Nanos duration = std::clamp(range.duration(), leastDuration, highest - lowest);
    Nanos begin = range.begin;
    if (range.duration() != duration) begin += (range.duration() - duration) / 2; // about the centre
    begin = std::clamp(begin, lowest, highest - duration);
    return {begin, begin + duration};
}

void ViewState::setLeastEnd(Nanos end)
{
    if (end == m_leastEnd) return;
    const bool fitted = isFitted();
    m_leastEnd = end;
    setExtent(m_given);
    if (fitted) fitAll();
}

void ViewState::setExtent(const TimeRange& given)
{
    m_given = given;
    const TimeRange extent{given.begin, std::max(given.end, m_leastEnd)};
    if (extent == m_extent) return;
    m_extent = extent;
    emit extentChanged();
    const TimeRange kept = bounded(m_visible);
    if (kept != m_visible) {
        m_visible = kept;
        emit visibleChanged();
    }
}

TimeRange ViewState::fittedExtent() const
{
    return bounded({m_extent.begin, m_extent.end + m_extent.duration() * 12 / 1000});
}

void ViewState::setVisible(const TimeRange& range, bool remember)
{
    const TimeRange next = bounded(range);
    if (next != m_visible) {
        m_visible = next;
        emit visibleChanged();
    }
    if (remember) rememberVisible();
}

void ViewState::rememberVisible()
{
    if (!m_history.empty() && m_history[m_at] == m_visible) return;
    if (!m_history.empty()) m_history.resize(m_at + 1);
    m_history.push_back(m_visible);
    constexpr std::size_t most = 200;
    if (m_history.size() > most) m_history.erase(m_history.begin());
    m_at = m_history.size() - 1;
    emit historyChanged();
}

void ViewState::fitAll() { setVisible(fittedExtent()); }

void ViewState::fit(const TimeRange& range)
{
    const Nanos margin = std::max<Nanos>(range.duration() / 25, 1);
    setVisible({range.begin - margin, range.end + margin});
}

void ViewState::goBack()
{
    if (!m_history.empty() && m_visible != m_history[m_at]) rememberVisible();
    if (!canGoBack()) return;
    --m_at;
    m_visible = bounded(m_history[m_at]);
    emit visibleChanged();
    emit historyChanged();
}

void ViewState::goForward()
{
    if (!canGoForward()) return;
    ++m_at;
    m_visible = bounded(m_history[m_at]);
    emit visibleChanged();
    emit historyChanged();
}

void ViewState::clearHistory()
{
    m_history.clear();
    m_at = 0;
    emit historyChanged();
}

void ViewState::setHoverTime(std::optional<Nanos> time)
{
    if (time == m_hoverTime) return;
    m_hoverTime = time;
    emit hoverTimeChanged();
}

void ViewState::setHovered(const SpanRef& ref, const MicrobatchRef& microbatch)
{
    if (ref == m_hovered && microbatch == m_hoveredMicrobatch) return;
    m_hovered = ref;
    m_hoveredMicrobatch = microbatch;
    emit hoveredChanged();
}

void ViewState::select(const SpanRef& ref)
{
    if (ref == m_selected && m_areas.empty()) return;
    m_selected = ref;
    m_areas.clear();
    emit selectionChanged();
}

void ViewState::setAreas(std::vector<AreaSelection> areas)
{
    if (areas == m_areas) return;
    m_areas = std::move(areas);
    if (!m_areas.empty()) m_selected = {};
    emit selectionChanged();
}

std::optional<TimeRange> ViewState::selectedRange() const
{
    if (m_areas.empty()) return std::nullopt;
    TimeRange all = m_areas.front().range;
    for (const AreaSelection& area : m_areas) {
        all.begin = std::min(all.begin, area.range.begin);
        all.end = std::max(all.end, area.range.end);
    }
    return all;
}

void ViewState::clearSelection()
{
    if (!m_selected.valid() && m_areas.empty()) return;
    m_selected = {};
    m_areas.clear();
    emit selectionChanged();
}

void ViewState::setShows(const ShownParts& parts)
{
    if (parts == m_shows) return;
    m_shows = parts;
    emit shownChanged();
}

void ViewState::setRows(const RowSettings& rows)
{
    if (rows == m_rows) return;
    const bool reordered = rows.grouping != m_rows.grouping || rows.groupSize != m_rows.groupSize;
    m_rows = rows;
    if (reordered) m_rows.expanded.clear();
    emit rowsChanged();
    if (reordered) setAreas({});
}

void ViewState::setTimeOrigin(TimeOrigin origin)
{
    if (origin == m_timeOrigin) return;
    m_timeOrigin = origin;
    emit timeDisplayChanged();
}

} // namespace stagewright
