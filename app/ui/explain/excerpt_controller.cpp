#include "app/ui/explain/excerpt_controller.h"

#include <algorithm>

#include "app/ui/runs/run_lanes.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

ExcerptController::ExcerptController(Workspace& workspace) : Feature(workspace)
{
    m_moved.setSingleShot(true);
    m_moved.setInterval(120);
    connect(&m_moved, &QTimer::timeout, this, &ExcerptController::look);
    connect(workspace.viewState(), &ViewState::visibleChanged, this, [this] {
        if (run()) m_moved.start();
    });
    connect(&workspace.shown(), &Shown::presented, this, &ExcerptController::presented);
    connect(&workspace.views().timeline->selection(), &SelectionOverlay::idleClicked, this,
            &ExcerptController::clicked);
    connect(&workspace.views().timeline->selection(), &SelectionOverlay::sliceAsked, this, &ExcerptController::clicked);
}

std::shared_ptr<const LargeRun> ExcerptController::run() const
{
    const auto& view = m_workspace.shown().view();
    if (m_workspace.shown().mode() != Shown::Mode::Run || !view || !view->panel->isPart()) return nullptr;
    return m_workspace.library()->vastRun(view->ref);
}

void ExcerptController::presented()
{
    const auto& view = m_workspace.shown().view();
    if (view && view->excerpt) return;
    m_asked.reset();
    m_base = run() ? view : nullptr;
    if (m_base) m_moved.start();
    if (!m_base) m_fine.reset();
    if (m_base && m_base != m_fine && m_base->panel->overview) refine();
}

void ExcerptController::refine()
{
    m_workspace.library()->requestFineOverview(m_base->ref,
                                               [this, base = m_base](Result<std::shared_ptr<const RunView>> view) {
                                                   if (!view || m_base != base || !run()) return; // the first one stays
                                                   m_fine = *view;
                                                   if (m_workspace.shown().view() == base)
                                                       m_workspace.shown().presentPart(*view);
                                                   else
                                                       m_base = *view; // an excerpt is shown
                                               });
}

void ExcerptController::look()
{
    const auto large = run();
    if (!large || !m_base || !(m_base->ref == m_workspace.shown().ref())) return;
    const TimeRange visible = m_workspace.viewState()->visible();
    const Nanos origin = m_base->panel->origin;
    const qint64 spans = large->spansIn(visible.begin + origin, visible.end + origin);
    if (spans <= large->limits.excerpt) {
        const bool fits = m_asked && visible.begin >= m_asked->begin && visible.end <= m_asked->end &&
                          m_asked->duration() <= 2 * visible.duration();
        if (spans > 0 && !fits) read(visible); // figures are of about what is in view
    } else if (m_workspace.shown().view()->excerpt && !large->keepsLanes()) {
        // zoomed out: only the overview has it all
        m_asked.reset();
        m_workspace.viewState()->clearSelection();
        m_workspace.shown().presentPart(m_base);
    }
}

void ExcerptController::clicked(int panel, int rank, Nanos axisTime)
{
    const auto large = run();
    if (!large || !m_base || panel != 0) return;
    const Nanos origin = m_base->panel->origin;
    TimeRange around = m_workspace.viewState()->visible();
    if (!large->keepsLanes() && large->spansIn(around.begin + origin, around.end + origin) > large->limits.excerpt) {
        m_workspace.room().tell(
            u"%L1 spans are in view. Zoom in to at most %L2 to select ops and see causes, arrows and memory"_s
                .arg(large->spansIn(around.begin + origin, around.end + origin))
                .arg(large->limits.excerpt),
            8000);
        return;
    }
    // it was read: nothing runs there
    if (m_asked && m_workspace.shown().view()->excerpt && m_asked->contains(axisTime)) {
        selectAt(rank, axisTime);
        return;
    }
    while (around.duration() > 2 &&
           large->spansIn(around.begin + origin, around.end + origin) > large->limits.excerpt) {
        const Nanos half = around.duration() / 4;
        around = {axisTime - half, axisTime + half};
    }
    read(around, [this, rank, axisTime] { selectAt(rank, axisTime); });
}

void ExcerptController::read(TimeRange axisRange, std::function<void()> then)
{
    m_asked = axisRange;
    const Nanos origin = m_base->panel->origin;
    m_workspace.library()->requestExcerpt(
        m_base->ref, m_base->panel, axisRange.begin + origin, axisRange.end + origin,
        [this, base = m_base, axisRange, then = std::move(then)](Result<std::shared_ptr<const RunView>> view) {
            if (!view && view.error().code == ErrorCode::Cancelled) return;
            if (m_base != base || !run()) return;
            // nothing ran there
            if (!view && view.error().code == ErrorCode::Invalid) {
                m_workspace.room().tell(QString::fromStdString(view.error().message), 6000);
                return;
            }
            if (!view) {
                m_asked.reset();
                m_workspace.banner()->showError(QString(), view.error());
                return;
            }
            m_workspace.shown().presentPart(*view);
            if (then) then();
        });
}

void ExcerptController::selectAt(int rank, Nanos axisTime)
{
    const auto& panels = m_workspace.views().timeline->panels();
    if (panels.empty() || rank < 0 || rank >= static_cast<int>(panels.front()->ranks.size())) return;
    const PanelRank& row = panels.front()->ranks[static_cast<std::size_t>(rank)];
    const LaneData& lane = row.compute.size() == 0 && !row.lanes.empty() ? row.lanes.front().data : row.compute;
    const std::size_t at = lane.firstEndingAfter(axisTime);
    const SpanId span = at < lane.size() && lane.slices()[at].begin() <= axisTime ? lane.spanOf(at) : noSpan;
    if (span == noSpan) return;
    m_workspace.viewState()->select({0, span});
    m_workspace.views().timeline->selection().show({0, span});
}

FeatureEntry excerptFeature() { return featureEntry<ExcerptController>(); }

} // namespace stagewright
