#include "app/ui/files/runs_list_controller.h"

#include <algorithm>

#include <QApplication>
#include <QClipboard>
#include <QInputDialog>
#include <QLineEdit>
#include <QMenu>

#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/runs/runs_panel.h"
#include "widgets/table_copy.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

std::vector<ActionEntry> RunsListController::actionTable()
{
    return {
        item("renameRun", ActionGroup::FileKeep, u"Rena&me the run…"_s, {},
             u"Gives the run shown another name, in its file if it has one"_s,
             {.at = 2000, .missing = u"Show one run."_s}),
        item("runsList", ActionGroup::ViewPanels, u"&Runs list"_s, "Ctrl+L", u"Files and their runs, at the left"_s,
             {.checkable = true}),
    };
}

RunsListController::RunsListController(Workspace& workspace) : Feature(workspace)
{
    RunsPanel* list = workspace.views().runs;
    connect(list, &RunsPanel::runChosen, this, [this](const RunRef& ref) {
        Shown& shown = m_workspace.shown();
        if (shown.mode() != Shown::Mode::Run || !(ref == shown.ref())) shown.showRun(ref);
    });
    connect(list, &RunsPanel::runChosenAgain, this, [this](const RunRef& ref) {
        // one of those compared, alone
        if (m_workspace.shown().mode() == Shown::Mode::Compare) m_workspace.shown().showRun(ref);
    });
    connect(list, &RunsPanel::compareAsked, this,
            [this](const RunRef& ref) { m_workspace.feature<RunComparing>()->add(ref); });
    connect(list, &RunsPanel::left, this, [this] { m_workspace.views().timeline->setFocus(); });
    connect(list, &RunsPanel::menuAsked, this, &RunsListController::openMenu);
    QAction* wanted = workspace.actions()["runsList"];
    wanted->setChecked(true);
    connect(workspace.actions()["renameRun"], &QAction::triggered, this, [this] { rename(m_workspace.shown().ref()); });
    connect(&workspace.shown(), &Shown::modeChanged, this, &RunsListController::refreshActions);
    refreshActions();
    connect(wanted, &QAction::triggered, this, &RunsListController::refresh); // an empty one takes no room
    connect(workspace.library(), &RunLibrary::listed, this, &RunsListController::refresh);
    connect(&workspace.shown(), &Shown::modeChanging, this, &RunsListController::refresh);
    connect(&workspace, &Workspace::actionsRefreshed, this, &RunsListController::refresh);
    connect(&workspace.room(), &Room::pageChanged, this, &RunsListController::refresh);
    workspace.window()->installEventFilter(this); // a wider window has room again
}

bool RunsListController::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::Resize) refresh();
    return Feature::eventFilter(watched, event);
}

void RunsListController::refreshActions()
{
    const bool one = m_workspace.shown().mode() == Shown::Mode::Run && m_workspace.shown().ref().valid();
    m_workspace.actions()["renameRun"]->setEnabled(one);
}

void RunsListController::refresh()
{
    constexpr int roomy = 1280; // px: a page beside the list
    const bool page = !m_workspace.room().pageTitle().isEmpty() && m_workspace.window()->width() < roomy;
    const bool any = m_workspace.runs()->rowCount() > 0 || m_workspace.views().runs->hasBelow();
    m_workspace.views().runs->setVisible(m_workspace.actions()["runsList"]->isChecked() && any && !page);
}

void RunsListController::rename(const RunRef& ref)
{
    const RunInfo* info = m_workspace.runs()->info(ref);
    if (info == nullptr) return;
    bool ok = false;
    const QString name = QInputDialog::getText(m_workspace.window(), u"Rename the run"_s, u"Name"_s, QLineEdit::Normal,
                                               QString::fromStdString(info->name), &ok);
    if (ok && !name.trimmed().isEmpty()) m_workspace.library()->rename(ref, name.trimmed());
    if (m_workspace.library()->isSimulated(ref.file) && m_workspace.shown().ref() == ref)
        m_workspace.shown().showAgain();
}

void RunsListController::remove(const RunRef& ref)
{
    if (m_workspace.shown().view() && m_workspace.shown().ref() == ref) {
        const auto refs = m_workspace.runs()->refs();
        const auto other = std::find_if(refs.begin(), refs.end(), [&](const RunRef& one) { return !(one == ref); });
        if (other != refs.end())
            m_workspace.shown().showRun(*other);
        else
            m_workspace.shown().showNothing();
    }
    m_workspace.library()->remove(ref);
}

void RunsListController::openMenu(const QPoint& at, const RunRef& ref, const QString& file)
{
    QMenu menu(m_workspace.window());
    if (ref.valid()) {
        const RunRef shown = m_workspace.shown().ref();
        menu.addAction(u"Show"_s, this, [this, ref] { m_workspace.shown().showRun(ref); });
        QAction* compare = menu.addAction(u"Compare with the run shown"_s, this, [this, ref] {
            m_workspace.feature<RunComparing>()->show({m_workspace.shown().ref(), ref});
        });
        compare->setEnabled(shown.valid() && !(shown == ref));
        menu.addAction(u"Use as baseline"_s, this,
                       [this, ref] { m_workspace.feature<RunComparing>()->setBaseline(ref); });
        menu.addSeparator();
        emit m_workspace.runMenuOpening(&menu, ref);
        const bool stored = !m_workspace.library()->isSimulated(ref.file);
        menu.addAction(u"Rename…"_s, this, [this, ref] { rename(ref); });
        menu.addAction(u"Delete from the file"_s, this, [this, ref] { remove(ref); })->setEnabled(stored);
        menu.addSeparator();
    }
    if (!file.isEmpty()) {
        menu.addAction(u"Read the file again"_s, this, [this, file] { m_workspace.library()->reload(file); });
        menu.addAction(u"Copy its path"_s, this, [file] { QApplication::clipboard()->setText(file); });
    }
    menu.addSeparator();
    RunsPanel* list = m_workspace.views().runs;
    addCopyActions(&menu, list, [list] { return list->table(); });
    menu.exec(at);
}

FeatureEntry runs_listFeature() { return featureEntry<RunsListController>(); }

} // namespace stagewright
