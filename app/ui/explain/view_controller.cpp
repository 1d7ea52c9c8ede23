#include "app/ui/explain/view_controller.h"

#include <QApplication>
#include <QClipboard>
#include <QMenu>
#include <QScrollBar>
#include <QVBoxLayout>

#include "app/ui/workspace/workspace.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/side_panel.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

ViewController::ViewController(Workspace& workspace) : Feature(workspace)
{
    using I = ActionId;
    Actions& a = workspace.actions();
    ViewState* state = workspace.viewState();
    const Views& views = workspace.views();
    const auto on = [&](I id, auto slot) { connect(a[id], &QAction::triggered, this, slot); };
    on(I::CriticalPath, [state](bool wanted) { state->setShowsCriticalPath(wanted); });
    on(I::CommTracks, [state](bool wanted) { state->setShowsCommunication(wanted); });
    on(I::Memory, [state, memory = views.memory](bool wanted) {
        state->setShowsMemory(wanted);
        memory->setVisible(wanted);
    });
    on(I::SidePanel, [this] { showPanels(); });
    on(I::Details, [this] {
        m_workspace.actions()[I::SidePanel]->setChecked(true);
        showPanels();
        QScrollBar* bar = m_workspace.views().side->verticalScrollBar();
        bar->setValue(bar->maximum());
    });
    on(I::Fit, [state] { state->fitAll(); });
    on(I::FitSelection, [timeline = views.timeline] { timeline->fitSelection(); });
    on(I::Back, [state] { state->goBack(); });
    on(I::Forward, [state] { state->goForward(); });
    a[I::CriticalPath]->setChecked(state->showsCriticalPath());
    a[I::CommTracks]->setChecked(state->showsCommunication());
    a[I::Memory]->setChecked(state->showsMemory());
    a[I::SidePanel]->setChecked(true);
    // Home and F belong to the timeline while it has the focus; from anywhere else the window answers.
    for (const I id : {I::Fit, I::FitSelection, I::Back, I::Forward}) a[id]->setShortcutContext(Qt::WindowShortcut);
    connect(&workspace.room(), &Room::pageChanged, this, &ViewController::showPanels);
    connect(views.timeline, &TimelineView::areaAggregated, views.side, &SidePanel::setAggregation);
    connect(views.timeline, &TimelineView::contextMenuAsked, this, &ViewController::spanMenu);
    connect(&workspace, &Workspace::actionsRefreshed, this, &ViewController::refreshActions);
}

bool ViewController::escape()
{
    ViewState* state = m_workspace.viewState();
    if (!state->selected().valid() && state->areas().empty()) return false;
    state->clearSelection();
    return true;
}

void ViewController::showPanels()
{
    m_workspace.room().panelColumn()->parentWidget()->setVisible(m_workspace.shown().mode() != Shown::Mode::Empty && m_workspace.room().pageTitle().isEmpty() && m_workspace.actions()[ActionId::SidePanel]->isChecked());
}

void ViewController::refreshActions()
{
    using I = ActionId;
    Actions& a = m_workspace.actions();
    const bool shown = m_workspace.shown().mode() != Shown::Mode::Empty;
    for (const I id : {I::ExportPicture, I::SaveCopy, I::CloseFile, I::Fit, I::FitSelection, I::CriticalPath, I::MemoryBudget, I::CommTracks, I::Memory, I::Details, I::SidePanel})
        a[id]->setEnabled(shown);
    a[I::Back]->setEnabled(m_workspace.viewState()->canGoBack());
    a[I::Forward]->setEnabled(m_workspace.viewState()->canGoForward());
}

void ViewController::spanMenu(const QPoint& at, SpanRef ref)
{
    QMenu menu(m_workspace.window());
    if (ref.valid()) {
        m_workspace.viewState()->select(ref);
        menu.addAction(tr("Fit this op"), this, [this, ref] { m_workspace.views().timeline->fitSpan(ref); });
        menu.addAction(tr("Copy its details"), this, [this, ref] { QApplication::clipboard()->setText(m_workspace.views().timeline->cardOf(ref).plain()); });
        if (m_workspace.shown().mode() == Shown::Mode::Edit) {
            menu.addSeparator();
            for (const ActionId id : {ActionId::CutOps, ActionId::CopyOps, ActionId::PasteOps, ActionId::RemoveOps, ActionId::InsertDelay, ActionId::SplitBackward, ActionId::MergeBackward, ActionId::InsertRecompute,
                                      ActionId::FillGap, ActionId::SnapOps, ActionId::ChooseMicrobatch})
                menu.addAction(m_workspace.actions()[id]);
        }
        menu.addSeparator();
    }
    for (const ActionId id : {ActionId::Fit, ActionId::EditMode, ActionId::Compare, ActionId::ExportPicture, ActionId::ExportRun})
        menu.addAction(m_workspace.actions()[id]);
    menu.exec(at);
}

Feature* viewFeature(Workspace& workspace) { return new ViewController(workspace); }

} // namespace stagewright
