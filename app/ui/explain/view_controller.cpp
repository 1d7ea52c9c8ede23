#include "app/ui/explain/view_controller.h"

#include <cmath>

#include <QApplication>
#include <QClipboard>
#include <QLayout>
#include <QMenu>
#include <QScrollBar>
#include <QSplitter>
#include <QVBoxLayout>

#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/inspector.h"
#include "widgets/panel/side_panel.h"
#include "widgets/search/find_field.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

std::vector<ActionEntry> ViewController::actionTable()
{
    return {
        item("fit", ActionGroup::ViewFit, u"&Fit all"_s, "Home", u"Shows the whole step"_s,
             {.button = u"Fit"_s, .tool = 41}),
        item("fitSelection", ActionGroup::ViewFit, u"Fit the se&lection"_s, "F",
             u"Zooms to the selection; again: everything"_s),
        item("back", ActionGroup::ViewFit, u"View &back"_s, "Alt+Left", u"Previous view"_s,
             {.needs = Needs::Nothing, .missing = u"There is no earlier view."_s}),
        item("forward", ActionGroup::ViewFit, u"View &forward"_s, "Alt+Right", u"Next view"_s,
             {.needs = Needs::Nothing, .missing = u"There is no later view."_s}),
        item("commTracks", ActionGroup::ViewTracks, u"Comm &tracks"_s, {}, u"Shows transfers under each rank"_s,
             {.button = u"Comm tracks"_s, .tool = 32, .checkable = true}),
        item("memory", ActionGroup::ViewTracks, u"&Memory"_s, {}, u"Activation memory of each rank on the same axis"_s,
             {.button = u"Memory"_s, .tool = 33, .checkable = true}),
        item("sidePanel", ActionGroup::ViewPanels, u"&Side panel"_s, "Ctrl+B", u"Figures at the right"_s,
             {.checkable = true}),
        item("details", ActionGroup::ViewPanels, u"&Details of the selection"_s, "Q",
             u"Scrolls the side panel to the selected op"_s),
        item("criticalPath", ActionGroup::AnalyseStep, u"&Critical path"_s, {},
             u"Outlines the chain of ops that decides when the step ends"_s,
             {.at = 0, .button = u"Critical path"_s, .tool = 31, .checkable = true}),
    };
}

ViewController::ViewController(Workspace& workspace) : Feature(workspace)
{
    Actions& a = workspace.actions();
    ViewState* state = workspace.viewState();
    const Views& views = workspace.views();
    const auto on = [&](ActionId id, auto slot) { connect(a[id], &QAction::triggered, this, slot); };
    const auto show = [state](bool ShownParts::*part, bool wanted) {
        ShownParts parts = state->shows();
        parts.*part = wanted;
        state->setShows(parts);
    };
    on("criticalPath", [show](bool wanted) { show(&ShownParts::criticalPath, wanted); });
    on("commTracks", [show](bool wanted) { show(&ShownParts::communication, wanted); });
    on("memory", [show, memory = views.memory](bool wanted) {
        show(&ShownParts::memory, wanted);
        memory->setVisible(wanted);
    });
    on("sidePanel", [this] { showPanels(); });
    on("details", [this] {
        m_workspace.actions()["sidePanel"]->setChecked(true);
        showPanels();
        m_workspace.room().inspector()->open(Inspector::Tab::Selection);
    });
    on("fit", [state] { state->fitAll(); });
    on("fitSelection", [timeline = views.timeline] { timeline->selection().fit(); });
    on("back", [state] { state->goBack(); });
    on("forward", [state] { state->goForward(); });
    a["criticalPath"]->setChecked(state->shows().criticalPath);
    a["commTracks"]->setChecked(state->shows().communication);
    a["memory"]->setChecked(state->shows().memory);
    a["sidePanel"]->setChecked(true);
    // Home and F belong to the timeline while it has the focus; from anywhere else the window answers.
    for (const ActionId id : {"fit", "fitSelection", "back", "forward"}) a[id]->setShortcutContext(Qt::WindowShortcut);
    connect(&workspace.room(), &Room::pageChanged, this, &ViewController::showPanels);
    connect(&views.timeline->selection(), &SelectionOverlay::areaAggregated, views.side->selection(),
            &SelectionColumn::setAggregation);
    connect(&views.timeline->input(), &TimelineInput::contextMenuAsked, this, &ViewController::spanMenu);
    connect(&workspace, &Workspace::actionsRefreshed, this, &ViewController::refreshActions);
    connect(&workspace.shown(), &Shown::replacing, this, &ViewController::keepPlace);
    // What a dock takes and gives back is shared by timeline and charts, not by the charts alone.
    connect(workspace.room().rows(), &QSplitter::splitterMoved, this, [this] {
        const Views& shared = m_workspace.views();
        const int both = shared.timeline->height() + shared.memory->height();
        if (shared.memory->isVisible() && both > 0) m_share = static_cast<double>(shared.timeline->height()) / both;
    });
    connect(&workspace.shown(), &Shown::presented, this, [this] { m_share = 0; });
    connect(&workspace.room(), &Room::docksChanged, this, &ViewController::shareRoom);
    connect(&workspace.shown(), &Shown::runShown, this, &ViewController::openAtPlace);
}

void ViewController::shareRoom()
{
    QSplitter* rows = m_workspace.room().rows();
    if (m_workspace.shown().mode() == Shown::Mode::Empty || !rows->isVisible()) return;
    m_workspace.window()->layout()->activate(); // the room is what the dock left
    const Views& views = m_workspace.views();
    QList<int> sizes = rows->sizes();
    const int timeline = rows->indexOf(views.timeline), memory = rows->indexOf(views.memory);
    const int both = sizes[timeline] + sizes[memory];
    sizes[timeline] = static_cast<int>(std::lround(m_share * both));
    sizes[memory] = both - sizes[timeline];
    if (m_share > 0 && views.memory->isVisibleTo(rows))
        rows->setSizes(sizes); // as the user had it
    else
        m_workspace.shown().splitViews();
}

void ViewController::keepPlace()
{
    if (m_file.isEmpty() || m_workspace.shown().mode() != Shown::Mode::Run) return;
    const Views& views = m_workspace.views();
    m_places[m_file] = {views.timeline->scene().scroll, views.side->summary()->verticalScrollBar()->value(),
                        views.find->text()};
}

void ViewController::openAtPlace()
{
    const QString file = m_workspace.shown().ref().file;
    if (m_workspace.shown().mode() != Shown::Mode::Run || file.isEmpty() || file == m_file) return;
    const bool first = std::exchange(m_file, file).isEmpty(); // the session restores its own
    const Views& views = m_workspace.views();
    const auto left = m_places.find(file);
    if (first && left == m_places.end()) return;
    const Place place = left != m_places.end() ? left->second : Place{};
    views.timeline->setScrollTop(place.scroll);
    views.side->summary()->verticalScrollBar()->setValue(place.panel);
    views.find->setText(place.find);
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
    m_workspace.room().panelColumn()->parentWidget()->setVisible(m_workspace.shown().mode() != Shown::Mode::Empty &&
                                                                 m_workspace.room().pageTitle().isEmpty() &&
                                                                 m_workspace.actions()["sidePanel"]->isChecked());
}

void ViewController::refreshActions()
{
    Actions& a = m_workspace.actions();
    const bool shown = m_workspace.shown().mode() != Shown::Mode::Empty;
    for (const ActionId id : {"fit", "fitSelection", "criticalPath", "commTracks", "memory", "details", "sidePanel"})
        a[id]->setEnabled(shown);
    a["back"]->setEnabled(m_workspace.viewState()->canGoBack());
    a["forward"]->setEnabled(m_workspace.viewState()->canGoForward());
}

void ViewController::spanMenu(const QPoint& at, SpanRef ref)
{
    QMenu menu(m_workspace.window());
    if (ref.valid()) {
        m_workspace.viewState()->select(ref);
        menu.addAction(u"Fit this op"_s, this, [this, ref] { m_workspace.views().timeline->selection().fitTo(ref); });
        menu.addAction(u"Copy its details"_s, this, [this, ref] {
            QApplication::clipboard()->setText(m_workspace.views().timeline->cardOf(ref).plain());
        });
        if (m_workspace.shown().mode() == Shown::Mode::Edit) {
            menu.addSeparator();
            for (const ActionId id : {"cutOps", "copyOps", "pasteOps", "removeOps", "insertDelay", "splitBackward",
                                      "mergeBackward", "insertRecompute", "fillGap", "snapOps", "chooseMicrobatch"})
                menu.addAction(m_workspace.actions()[id]);
        }
        menu.addSeparator();
    }
    for (const ActionId id : {"fit", "editMode", "compare", "exportPicture", "exportRun"})
        menu.addAction(m_workspace.actions()[id]);
    menu.exec(at);
}

FeatureEntry viewFeature() { return featureEntry<ViewController>(); }

} // namespace stagewright
