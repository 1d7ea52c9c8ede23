// Connects every action and view, and decides which actions are enabled.
#include <QApplication>
#include <QComboBox>
#include <QLineEdit>
#include <QMessageBox>
#include <QProgressBar>
#include <QScrollBar>
#include <QStackedWidget>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/shell/welcome_page.h"
#include "app/ui/shell/window_set.h"
#include "widgets/search/find_field.h"

namespace stagewright {

void MainWindow::connectAll()
{
    using I = ActionId;
    const Actions& a = *m_actions;
    auto on = [&](I id, auto slot) { connect(a[id], &QAction::triggered, this, slot); };
    on(I::Open, [this] { openAsked(); });
    on(I::SaveCopy, [this] { saveCopyAsked(); });
    on(I::CloseFile, [this] {
        if (m_shown) closeFile(m_shown->ref.file);
    });
    on(I::Quit, [] { WindowSet::instance().quit(); });
    on(I::Undo, [this] {
        if (m_mode == Mode::Edit) m_editor->undoStack()->undo(); // else that of the notes
    });
    on(I::Redo, [this] {
        if (m_mode == Mode::Edit) m_editor->undoStack()->redo();
    });
    on(I::EditMode, [this](bool wanted) { wanted ? enterEdit() : leaveEdit(); });
    on(I::NewSchedule, [this] { openScheduleBrowser(); });
    on(I::BuildingBlock, [this] { openBlockEditor(); });
    on(I::RunEdited, [this] { runEdited(); });
    on(I::Record, [this] { openRecordDialog(); });
    on(I::CancelRecording, [this] { m_process->cancel(); });
    on(I::CriticalPath, [this](bool wanted) { m_state->setShowsCriticalPath(wanted); });
    on(I::MemoryBudget, [this] { askBudget(); });
    on(I::NextGap, [this] { walkGaps(1); });
    on(I::PreviousGap, [this] { walkGaps(-1); });
    on(I::Slack, [this](bool wanted) {
        askSlack();
        m_legend->setSlack(wanted);
        refreshNotes();
    });
    on(I::WhatIf, [this](bool wanted) { setTool(wanted ? Tool::WhatIf : Tool::None); });
    on(I::Residuals, [this](bool wanted) { setTool(wanted ? Tool::Residuals : Tool::None); });
    on(I::LoweredView, [this](bool wanted) { setTool(wanted ? Tool::Lowered : Tool::None); });
    on(I::CommTracks, [this](bool wanted) { m_state->setShowsCommunication(wanted); });
    on(I::Memory, [this](bool wanted) {
        m_state->setShowsMemory(wanted);
        m_memory->setVisible(wanted);
    });
    on(I::RunsList, [this](bool wanted) { m_runsPanel->setVisible(wanted); });
    on(I::SidePanel, [this] { showPanels(); });
    on(I::Details, [this] {
        (*m_actions)[I::SidePanel]->setChecked(true);
        showPanels();
        m_side->verticalScrollBar()->setValue(m_side->verticalScrollBar()->maximum());
    });
    on(I::Fit, [this] { m_state->fitAll(); });
    on(I::FitSelection, [this] { m_timeline->fitSelection(); });
    on(I::Back, [this] { m_state->goBack(); });
    on(I::Forward, [this] { m_state->goForward(); });
    on(I::AllSteps, [this](bool wanted) {
        if (!m_shown) return;
        if (wanted)
            showSteps(m_shown->ref, {});
        else
            showRun(m_shown->ref, m_shown->step);
    });
    on(I::ChooseSteps, [this] { chooseSteps(); });
    on(I::PreviousStep, [this] { stepBy(-1); });
    on(I::NextStep, [this] { stepBy(1); });
    on(I::Find, [this] {
        m_find->setFocus();
        m_find->selectAll();
    });
    on(I::FindNext, [this] { find(m_find->text()); });
    on(I::FindPrevious, [this] { find(m_find->text(), true); });
    on(I::Keys, [this] { showKeys(); });
    on(I::About, [this] {
        QMessageBox::about(this, tr("About Stagewright"),
                           tr("Stagewright %1\n\nA workbench for pipeline-parallel training: design a schedule, run it for real, see where "
                              "the time and the memory went, change it, and verify the change.\n\nApache-2.0. Inter typeface: SIL Open Font License.")
                               .arg(QApplication::applicationVersion()));
    });
    a[I::CriticalPath]->setChecked(m_state->showsCriticalPath());
    a[I::CommTracks]->setChecked(m_state->showsCommunication());
    a[I::Memory]->setChecked(m_state->showsMemory());
    a[I::RunsList]->setChecked(true);
    a[I::SidePanel]->setChecked(true);
    // Home and F belong to the timeline while it has the focus; from anywhere else the window answers.
    for (const I id : {I::Fit, I::FitSelection, I::Back, I::Forward})
        a[id]->setShortcutContext(Qt::WindowShortcut);

    connect(m_runsPanel, &RunsPanel::runChosen, this, [this](const RunRef& ref) {
        if (m_shown && ref == m_shown->ref && m_mode == Mode::Run) return;
        showRun(ref);
    });
    connect(m_runsPanel, &RunsPanel::runChosenAgain, this, [this](const RunRef& ref) {
        if (m_mode == Mode::Compare) showRun(ref); // one of those compared, alone
    });
    connect(m_runsPanel, &RunsPanel::compareAsked, this, [this](const RunRef& ref) {
        m_compare->add(ref);
    });
    connect(m_runsPanel, &RunsPanel::left, m_timeline, [this] { m_timeline->setFocus(); });
    connect(m_runsPanel, &RunsPanel::menuAsked, this, &MainWindow::runMenu);
    connectGaps();
    connect(m_side, &SidePanel::budgetAsked, this, &MainWindow::askBudget);
    connect(m_library, &RunLibrary::listed, this, &MainWindow::fileListed);
    connect(m_library, &RunLibrary::failed, this, [this](const QString& path, const Error& error) {
        m_openFirst.removeAll(path);
        if (m_mode == Mode::Empty && m_openFirst.isEmpty()) m_pending = false;
        if (path == m_recordFile) m_looking = false;
        if (path == m_recordFile && m_process->running()) return; // the child has not created it yet
        m_banner->showError(QString(), error);
        if (runs()->refs().empty() && m_mode == Mode::Empty) m_library->close(path);
        refreshStatus();
    });
    connect(m_library, &RunLibrary::busyChanged, this, [this] { m_reading->setVisible(m_library->busy()); });
    connect(m_state, &ViewState::selectionChanged, this, &MainWindow::selectionChanged);
    connect(m_state, &ViewState::historyChanged, this, &MainWindow::refreshActions);
    connect(m_timeline, &TimelineView::statusChanged, this, &MainWindow::refreshStatus);
    connect(m_timeline, &TimelineView::areaAggregated, this, [this](const Aggregation& sum) { m_side->setAggregation(sum); });
    connect(m_timeline, &TimelineView::contextMenuAsked, this, &MainWindow::spanMenu);
    connect(m_steps, &QComboBox::activated, this, [this](int index) {
        if (!m_shown || m_mode != Mode::Run) return;
        const int chosen = m_steps->itemData(index).toInt();
        if (chosen >= 0)
            showRun(m_shown->ref, chosen);
        else if (chosen == -2)
            showSteps(m_shown->ref, {});
        else if (chosen == -3)
            chooseSteps();
    });
    connect(m_welcome, &WelcomePage::recordAsked, this, [this] { openRecordDialog(); });
    connect(m_welcome, &WelcomePage::lessonsAsked, (*m_actions)[ActionId::Lessons], &QAction::trigger);
    connect(m_welcome, &WelcomePage::openAsked, this, &MainWindow::openAsked);
    connect(m_welcome, &WelcomePage::newAsked, this, &MainWindow::openScheduleBrowser);
    connect(m_welcome, &WelcomePage::fileChosen, this, [this](const QString& path) { openFiles({path}); });
    connect(m_process, &RecordProcess::finished, this, &MainWindow::recordingEnded);
    connect(m_process, &RecordProcess::progressed, this, &MainWindow::refreshActions);
    m_poll.setInterval(700);
    connect(&m_poll, &QTimer::timeout, this, &MainWindow::pollRecording);
}

void MainWindow::closeFile(const QString& path)
{
    if (!m_shown || (m_shown->ref.file != path && !(m_other && m_other->ref.file == path))) {
        m_library->close(path);
        return;
    }
    m_editor->stop();
    ++m_generation;
    m_pending = false;
    m_library->close(path);
    m_shown.reset();
    m_other.reset();
    const auto rest = runs()->refs();
    if (rest.empty())
        setMode(Mode::Empty);
    else
        showRun(rest.front());
}

void MainWindow::refreshActions()
{
    using I = ActionId;
    const Actions& a = *m_actions;
    const bool shown = m_mode != Mode::Empty;
    const bool recording = m_process->running();
    for (const I id : {I::ExportPicture, I::ExportCsv, I::ExportPyTorch, I::ExportTorchTitan, I::SaveCopy, I::CloseFile, I::Fit, I::FitSelection, I::Find, I::FindNext,
                       I::FindPrevious, I::CriticalPath, I::MemoryBudget, I::CommTracks, I::Memory, I::Details, I::SidePanel})
        a[id]->setEnabled(shown);
    const bool whole = shown && m_shown && !m_shown->partial;
    for (const I id : {I::ExportChrome, I::ExportKineto, I::EditMode}) // of a growing run only the newest step is here
        a[id]->setEnabled(whole);
    a[I::EditMode]->setChecked(m_mode == Mode::Edit);
    const bool again = m_mode == Mode::Run && whole;
    for (const I id : {I::LoweredView, I::WhatIf, I::NextGap, I::PreviousGap, I::Slack})
        a[id]->setEnabled(again);
    a[I::LoweredView]->setChecked(m_tool == Tool::Lowered);
    a[I::WhatIf]->setChecked(m_tool == Tool::WhatIf);
    a[I::Residuals]->setEnabled(again && m_shown && m_shown->run->info.provenance != Provenance::Simulated);
    a[I::Residuals]->setChecked(m_tool == Tool::Residuals);
    a[I::Compare]->setEnabled(m_mode == Mode::Compare || runs()->refs().size() > 1);
    a[I::Compare]->setChecked(m_mode == Mode::Compare);
    a[I::SwapCompare]->setEnabled(m_mode == Mode::Compare);
    a[I::Undo]->setEnabled(m_editor->undoStack()->canUndo());
    a[I::Redo]->setEnabled(m_editor->undoStack()->canRedo());
    if (m_edit != nullptr) m_edit->refreshActions();
    a[I::RunEdited]->setEnabled(m_mode == Mode::Edit && m_editor->valid() && !recording);
    a[I::Record]->setEnabled(!recording);
    a[I::CancelRecording]->setEnabled(recording);
    a[I::Back]->setEnabled(m_state->canGoBack());
    a[I::Forward]->setEnabled(m_state->canGoForward());
    const bool steps = m_mode == Mode::Run && m_shown && m_shown->stepCount > 1;
    a[I::PreviousStep]->setEnabled(steps);
    a[I::NextStep]->setEnabled(steps);
    a[I::AllSteps]->setEnabled(steps);
    a[I::AllSteps]->setChecked(steps && m_shown->steps);
    a[I::ChooseSteps]->setEnabled(steps);
    m_find->setEnabled(shown);
    m_editPanel->setCanRun(!recording, tr("A recording is running."));
    emit actionsRefreshed();
}

} // namespace stagewright
