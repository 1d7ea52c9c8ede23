#include "app/ui/edit/edit_selection.h"

#include <algorithm>
#include <unordered_map>

#include "widgets/literals.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

EditSelection::EditSelection(TimelineView* view, ScheduleEditor* editor, EditOverlay* overlay)
    : QObject(overlay), m_view(view), m_state(view->viewState()), m_editor(editor), m_overlay(overlay)
{
    connect(m_state, &ViewState::selectionChanged, this, &EditSelection::selectionChanged);
    connect(overlay, &EditOverlay::opToggled, this, &EditSelection::toggle);
    connect(&view->selection(), &SelectionOverlay::idleClicked, this, [this](int panel, int rank, Nanos time) {
        if (m_editor->active() && panel == 0) chooseGap(gapAt(m_editor->times(), rank, time + origin()));
    });
}

Nanos EditSelection::origin() const { return m_view->panels().empty() ? 0 : m_view->panels().front()->origin; }

void EditSelection::clear()
{
    m_ops.clear();
    m_places.clear();
    m_gap = {};
}

void EditSelection::hold(bool on) { m_held = on; }

void EditSelection::follow()
{
    m_gap = {};
    m_overlay->setGap(std::nullopt);
    if (m_editor->touched().empty())
        keep();
    else
        m_ops = m_editor->touched();
}

void EditSelection::toggle(SpanRef ref)
{
    if (!m_editor->active() || ref.panel != 0) return;
    const OpPosition at = m_editor->positionOf(ref.span);
    if (!at.valid()) return;
    std::vector<OpPosition> next = m_ops;
    if (std::erase(next, at) == 0) next.push_back(at);
    choose(std::move(next));
}

void EditSelection::selectionChanged()
{
    if (!m_editor->active() || m_held) return;
    const auto& areas = m_state->areas();
    if (!areas.empty()) {
        m_ops = opsIn(areas);
    } else {
        const OpPosition at = primary();
        // Pressing one of several keeps them, so that they can be dragged together.
        if (at.valid() && m_ops.size() > 1 && std::find(m_ops.begin(), m_ops.end(), at) != m_ops.end()) {
            std::rotate(m_ops.begin(), std::find(m_ops.begin(), m_ops.end(), at), m_ops.end());
        } else {
            m_ops.clear();
            if (at.valid()) m_ops = {at};
        }
    }
    show();
}

OpPosition EditSelection::primary() const
{
    const SpanRef selected = m_state->selected();
    return m_editor->active() && selected.valid() && selected.panel == 0 ? m_editor->positionOf(selected.span)
                                                                         : OpPosition{};
}

std::vector<OpPosition> EditSelection::opsIn(const std::vector<AreaSelection>& areas) const
{
    std::vector<OpPosition> out;
    const auto& panels = m_view->panels();
    const auto& plan = m_view->scene().rows.plan;
    if (panels.empty() || !plan) return out;
    const TimelinePanel& panel = *panels.front();
    for (const AreaSelection& area : areas)
        for (int row = std::max(0, area.firstRow); row <= area.lastRow && row < static_cast<int>(plan->rankAt.size());
             ++row) {
            const auto [panelIndex, rankIndex] = plan->rankAt[static_cast<std::size_t>(row)];
            if (panelIndex != 0) continue;
            const LaneData& lane = panel.ranks[static_cast<std::size_t>(rankIndex)].compute;
            for (std::size_t i = lane.firstEndingAfter(area.range.begin);
                 i < lane.size() && lane.slices()[i].begin() < area.range.end; ++i) {
                const OpPosition at = m_editor->positionOf(lane.spanOf(i));
                if (at.valid()) out.push_back(at);
            }
        }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

void EditSelection::choose(std::vector<OpPosition> positions)
{
    if (!m_editor->active()) return;
    m_ops = std::move(positions);
    show();
}

// The first selected op is the selected op of every view; the overlay outlines the others.
void EditSelection::show()
{
    m_places.clear();
    for (const OpPosition at : m_ops)
        if (const Op* op = opAt(m_editor->schedule(), at)) m_places.emplace_back(at.rank, *op);
    m_held = true;
    if (m_state->areas().empty()) {
        const SpanId span = m_ops.empty() ? noSpan : m_editor->spanAt(m_ops.front());
        m_state->select(span == noSpan ? SpanRef{} : SpanRef{0, span});
    }
    m_held = false;
    std::vector<SpanId> outlined;
    if (m_ops.size() > 1)
        for (const OpPosition at : m_ops)
            if (const SpanId span = m_editor->spanAt(at); span != noSpan) outlined.push_back(span);
    m_overlay->setChosen(std::move(outlined));
    emit changed();
}

void EditSelection::keep()
{
    std::vector<OpPosition> next;
    std::unordered_map<int, std::unordered_map<Op, int>> places; // by rank
    for (const auto& [rank, op] : m_places) {
        auto [known, fresh] = places.try_emplace(rank);
        if (fresh && rank < static_cast<int>(m_editor->schedule().order.size())) {
            const auto& row = m_editor->schedule().order[static_cast<std::size_t>(rank)];
            for (std::size_t i = 0; i < row.size(); ++i) known->second.emplace(row[i], static_cast<int>(i));
        }
        const auto at = known->second.find(op);
        if (at != known->second.end()) next.push_back({rank, at->second});
    }
    m_ops = std::move(next);
}

void EditSelection::chooseGap(const RowGap& gap)
{
    if (!m_editor->active()) return;
    m_gap = gap;
    const Nanos origin = this->origin();
    m_overlay->setGap(gap.valid() ? std::optional(EditOverlay::GapMark{gap.rank, gap.begin - origin, gap.end - origin})
                                  : std::nullopt);
    emit changed();
}

QString EditSelection::names(const std::vector<OpPosition>& positions) const
{
    const Op* first = positions.empty() ? nullptr : opAt(m_editor->schedule(), positions.front());
    if (first == nullptr) return {};
    const QString name = QString::fromStdString(toText(*first));
    return positions.size() == 1 ? name
           : positions.size() == 2
               ? u"%1 and %2"_s.arg(name, QString::fromStdString(toText(*opAt(m_editor->schedule(), positions[1]))))
               : u"%1 and %2 more"_s.arg(name).arg(positions.size() - 1);
}

QRectF EditSelection::place() const
{
    const SpanId span = m_ops.empty() ? noSpan : m_editor->spanAt(m_ops.front());
    return m_view->rectOf({0, span}).value_or(QRectF(gutterWidth + 20, rulerHeight + 20, 10, 10));
}

bool EditSelection::apply(const QString& text, Result<Edited> change)
{
    if (!m_editor->active()) return false;
    m_state->setAreas({});
    return m_editor->apply(text, std::move(change));
}

} // namespace stagewright
