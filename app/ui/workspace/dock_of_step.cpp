#include "app/ui/workspace/dock_of_step.h"

#include "app/ui/workspace/bottom_dock.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

DockOfStep::DockOfStep(Workspace& workspace, const QString& name, const QString& title, QWidget* panel, QAction* toggle,
                       const std::function<void()>& shown)
    : Feature(workspace), m_job(workspace.jobs()), m_dock(makeBottomDock(workspace, name, title, panel, toggle, shown))
{
    connect(m_dock, &QDockWidget::visibilityChanged, this, &DockOfStep::refresh);
    connect(&workspace.shown(), &Shown::runShown, this, &DockOfStep::refresh);
    connect(&workspace.shown(), &Shown::modeChanged, this, &DockOfStep::refresh);
}

FeatureParts DockOfStep::parts() { return {.docks = {{m_dock}}}; }

void DockOfStep::refresh()
{
    if (m_dock->isHidden()) return;
    const Shown& shown = m_workspace.shown();
    const auto view = shown.mode() == Shown::Mode::Empty ? nullptr : shown.view();
    if (view == m_of) return;
    m_of = view;
    m_job.drop();
    if (view)
        compute(view);
    else
        clear();
}

void DockOfStep::choose(SpanId span)
{
    Shown& shown = m_workspace.shown();
    if (span == noSpan || !m_of || m_of != shown.view() || shown.mode() == Shown::Mode::Edit) return;
    if (m_of->run->timeline->spans()[span].step != m_of->step) {
        shown.chooseOp(span);
        return;
    }
    const SpanRef ref{0, span};
    m_workspace.viewState()->select(ref);
    m_workspace.views().timeline->selection().show(ref);
}

} // namespace stagewright
