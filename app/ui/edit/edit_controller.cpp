#include "app/ui/edit/edit_controller.h"

#include <QKeyEvent>
#include <QMessageBox>
#include <QSettings>
#include <QStackedWidget>

#include "app/costs/split_sources.h"
#include "app/ui/edit/empty_canvas.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/workspace.h"
#include "traces/run/simulated_run.h"
#include "widgets/background.h"
#include "widgets/edit/move_hint.h"
#include "widgets/edit/op_tray.h"
#include "widgets/edit/schedule_text.h"
#include "widgets/literals.h"
#include "widgets/panel/inspector.h"
#include "widgets/preferences/preferences.h"
#include "widgets/record/record_process.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

EditController::EditController(Workspace& workspace)
    : Feature(workspace), m_editor(new ScheduleEditor(this)), m_overlay(new EditOverlay(workspace.views().timeline)),
      m_panel(new EditPanel(m_editor, workspace.room().panels())),
      m_selection(new EditSelection(workspace.views().timeline, m_editor, m_overlay)),
      m_drag(new EditDrag(workspace, m_editor, m_selection, m_overlay)),
      m_commands(new EditCommands(workspace, m_editor, m_selection, m_drag, m_panel)),
      m_deck(new EditDeck(workspace, m_editor)),
      m_picture(new EditPicture(workspace, m_editor, m_selection, m_overlay, *m_drag)),
      m_reference(new EditReference(workspace, m_editor, m_overlay, m_panel, *m_drag, *m_picture)),
      m_recovery(new EditRecovery(workspace, *this)), m_completing(workspace.jobs())
{
    workspace.views().timeline->add(m_overlay);
    workspace.views().timeline->installEventFilter(this);
    m_panel->setAccessibleName(u"Edited schedule"_s);
    connectActions();
    connectParts();
    const QSettings settings;
    const std::pair<ActionId, const char*> remembered[] = {{"scheduleText", "edit/text"},
                                                           {"strictMoves", "edit/strict"},
                                                           {"carryAlong", "edit/carry"},
                                                           {"ghostOriginal", "edit/ghost"}};
    for (const auto& [id, key] : remembered) {
        workspace.actions()[id]->setChecked(settings.value(QLatin1String(key), id == "scheduleText").toBool());
        connect(workspace.actions()[id], &QAction::toggled, this,
                [key = key](bool on) { QSettings().setValue(QLatin1String(key), on); });
    }
    m_recovery->offer();
}

// What is kept as it changes comes back at the next start; only without that closing would lose it.
bool EditController::mayClose()
{
    const bool lost = m_editor->active() && m_editor->changed() && !m_keptElsewhere &&
                      !(m_kept && *m_kept == m_editor->schedule()) && !PreferenceStore::instance().value().autosave;
    if (!lost) return true;
    QMessageBox box(QMessageBox::Question, u"Close"_s,
                    u"The edited order of %1 is not saved."_s.arg(runTitle(m_source->run->info)), QMessageBox::NoButton,
                    m_workspace.window());
    box.setObjectName(u"closeEdited"_s);
    box.setInformativeText(
        u"Edited orders are not kept automatically, as the preferences say. Closing discards this one."_s);
    box.addButton(u"Discard it"_s, QMessageBox::DestructiveRole);
    auto* stay = box.addButton(u"Keep editing"_s, QMessageBox::RejectRole);
    box.setDefaultButton(stay);
    box.setEscapeButton(stay);
    box.exec();
    return box.clickedButton() != stay;
}

FeatureParts EditController::parts() { return {.panels = {m_panel}}; }

bool EditController::escape()
{
    if (!m_editor->previewing()) return false;
    m_editor->cancelPreview();
    m_overlay->setDrag(std::nullopt);
    return true;
}

void EditController::connectActions()
{
    const Actions& actions = m_workspace.actions();
    const auto editing = [this] { return m_workspace.shown().mode() == Shown::Mode::Edit; };
    connect(actions["editMode"], &QAction::triggered, this,
            [this](bool wanted) { wanted ? enterEdit() : leaveEdit(); });
    connect(actions["newEmpty"], &QAction::triggered, this, [this] {
        askEmptyCanvas(m_workspace.window(),
                       [this](int ranks, int stages, int microbatches) { newEmpty(ranks, stages, microbatches); });
    });
    connect(actions["undo"], &QAction::triggered, this, [this, editing] { // else that of the notes
        if (editing()) m_editor->undoStack()->undo();
    });
    connect(actions["redo"], &QAction::triggered, this, [this, editing] {
        if (editing()) m_editor->undoStack()->redo();
    });
    Shown& shown = m_workspace.shown();
    connect(&shown, &Shown::replacing, m_editor, &ScheduleEditor::stop);
    connect(&shown, &Shown::modeChanging, this, [this, editing] {
        m_overlay->setMoves(editing());
        m_workspace.room().inspector()->showAlone(editing() ? m_panel : nullptr);
        if (!editing()) m_overlay->clear();
    });
    shown.setCaptions(Shown::Mode::Edit, [this]() -> Shown::Captions {
        if (!m_source) return {};
        const QString title = runTitle(m_source->run->info); // of a lesson: the order is the learner's from the start
        return {m_keptElsewhere ? title : u"%1 (edited)%2"_s.arg(title, m_editor->changed() ? u" *"_s : QString()),
                u", simulated as you edit"_s,
                u"model: %1"_s.arg(QString::fromStdString(
                    m_editor->costs().origin.empty() ? std::string("costs of the run") : m_editor->costs().origin))};
    });
    connect(&m_workspace, &Workspace::actionsRefreshed, this, &EditController::refreshActions);
    connect(&m_workspace, &Workspace::themeChanged, this, [this] { m_panel->setTheme(m_workspace.theme()); });
}

void EditController::connectParts()
{
    connect(m_editor, &ScheduleEditor::edited, this, &EditController::edited);
    // after the change was announced
    connect(m_editor->undoStack(), &QUndoStack::indexChanged, this, &EditController::refreshEdit);
    connect(m_editor, &ScheduleEditor::refused, m_drag, [this](const Error& why) { m_drag->refuse(why); });
    connect(m_selection, &EditSelection::changed, this, &EditController::selected);
    connect(m_drag, &EditDrag::explained, this, &EditController::refreshActions);
    connect(m_drag, &EditDrag::ended, this, [this] {
        m_reference->refreshGhost();
        m_picture->showWaiting();
        if (const auto costs = std::exchange(m_waitingCosts, std::nullopt); costs && m_editor->active())
            takeCosts(*costs);
    });
    connect(m_picture, &EditPicture::drawn, m_reference, &EditReference::refreshGhost);
    connect(m_picture, &EditPicture::detailed, this, &EditController::refreshEdit);
    connect(m_reference, &EditReference::changed, this, &EditController::refreshActions);
    connect(m_recovery, &EditRecovery::preferencesChanged, this, [this] { // switched on during an edit
        if (m_editor->active() && !(m_kept && *m_kept == m_editor->schedule()))
            m_recovery->keep(m_keptElsewhere ? nullptr : m_source);
    });
    connect(m_deck->text(), &ScheduleText::caretMoved, this, [this](OpPosition at) {
        const auto& ops = m_selection->ops();
        if (!m_editor->active() || opAt(m_editor->schedule(), at) == nullptr || (ops.size() == 1 && ops.front() == at))
            return;
        m_selection->choose({at});
        if (m_workspace.viewState()->selected().valid())
            m_workspace.views().timeline->selection().show(m_workspace.viewState()->selected());
    });
    OpTray* tray = m_deck->tray();
    connect(tray, &OpTray::placeAsked, m_commands, &EditCommands::place);
    connect(tray, &OpTray::placeAllAsked, m_commands, &EditCommands::placeAll);
    connect(tray, &OpTray::opDragged, m_drag, &EditDrag::trayDragged);
    connect(tray, &OpTray::opDropped, m_drag, &EditDrag::trayDropped);
    connect(tray, &OpTray::opDragCancelled, m_drag, &EditDrag::end);
    connect(m_panel, &EditPanel::runAsked, this, [this] { m_workspace.feature<Recording>()->runEdited(); });
    connect(m_panel, &EditPanel::doneAsked, this, &EditController::leaveEdit);
    connect(m_panel, &EditPanel::deadlockAsked, this, &EditController::showEditedDeadlock);
}

void EditController::selected()
{
    m_panel->setChosen(m_selection->ops());
    if (!m_selection->ops().empty()) m_deck->text()->select(m_selection->ops().front());
    refreshActions();
}

void EditController::refreshActions()
{
    const Actions& actions = m_workspace.actions();
    auto* recording = m_workspace.feature<Recording>();
    const bool records = recording != nullptr && recording->process()->running();
    const auto& shown = m_workspace.shown().view();
    // of a growing run only the newest step is here
    actions["editMode"]->setEnabled(m_workspace.shown().mode() != Shown::Mode::Empty && shown && !shown->partial &&
                                    !shown->excerpt);
    actions["editMode"]->setChecked(m_workspace.shown().mode() == Shown::Mode::Edit);
    actions["undo"]->setEnabled(m_editor->undoStack()->canUndo());
    actions["redo"]->setEnabled(m_editor->undoStack()->canRedo());
    actions["runEdited"]->setEnabled(m_workspace.shown().mode() == Shown::Mode::Edit && m_editor->valid() && !records);
    m_panel->setCanRun(!records, u"A recording is running."_s);
    actions["ghostLibrary"]->setEnabled(m_editor->active() && m_reference->hasPicture());
    m_commands->refresh();
}

// Ctrl+C copies a table everywhere except on the canvas, where it copies the selected ops.
bool EditController::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_workspace.views().timeline && m_editor->active() &&
        (event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress)) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->matches(QKeySequence::Copy) && m_workspace.actions()["copyOps"]->isEnabled()) {
            if (event->type() == QEvent::ShortcutOverride)
                event->accept();
            else
                m_workspace.actions()["copyOps"]->trigger();
            return true;
        }
    }
    return QObject::eventFilter(watched, event);
}

void EditController::begun(const std::shared_ptr<const RunView>& source, const Schedule& schedule,
                           const CostModel& costs, const Channels& channels, OpPosition selected)
{
    m_source = source;
    m_selection->clear();
    m_picture->clear();
    m_deck->begin();
    m_kept.reset();
    m_editor->start(schedule, costs, channels);
    m_picture->keepOriginal();
    if (m_left && m_left->file == source->ref.file && m_left->id == source->ref.id &&
        m_left->schedule.order.size() == schedule.order.size())
        m_editor->replace(u"Restore the unfinished edit"_s, m_left->schedule);
    m_left.reset();
    m_reference->make();
    m_deck->fit(true);
    if (selected.valid() && opAt(schedule, selected) != nullptr) m_selection->choose({selected});
    m_reference->refreshGhost();
}

// Where I and W are from, and the memory that I frees where that is from elsewhere.
static QString splitNote(const BackwardCosts& complete)
{
    const auto sourceAt = [&](std::optional<std::size_t> place) { return place ? &complete.sources[*place] : nullptr; };
    const auto nameOf = [](const SplitSource& source) {
        if (source.basis == SplitBasis::Run && source.run)
            return u"run %1, %2, which has the same setup"_s.arg(source.run->id).arg(runTitle(*source.run));
        return source.basis == SplitBasis::Layers ? u"the run's layers, which were timed one by one"_s
                                                  : u"the shape of the model"_s;
    };
    const SplitSource* times = sourceAt(complete.use.times);
    const SplitSource* memory = sourceAt(complete.use.memory);
    QString text = times ? u"I and W were not measured in this run: B is split as in %1."_s.arg(nameOf(*times))
                         : u"I and W were not measured in this run: each is taken as half of B."_s;
    if (memory && memory != times) text += u' ' + u"What I frees is as in %1."_s.arg(nameOf(*memory));
    if (!times || times->basis == SplitBasis::Shape)
        text += u' ' + u"Record a split schedule with this model, such as ZB-H1, and they are taken from it."_s;
    return text;
}

void EditController::completeSplit(const CostModel& measured, const BackwardCosts& given)
{
    m_completing.drop();
    m_waitingCosts.reset();
    if (!m_source || measured.source != CostSource::Fitted || given.use.stages.empty()) {
        m_panel->setSplitNote({});
        return;
    }
    m_panel->setSplitNote(splitNote(given));
    if (m_workspace.library()->isSimulated(m_source->ref.file)) return;
    m_completing.start([path = m_source->ref.file.toStdString(), run = m_source->run, measured,
                        ranks = m_editor->schedule().ranks] { return withBackward(measured, *run, ranks, path); },
                       [this](BackwardCosts complete) {
                           if (!m_editor->active()) return;
                           complete.costs.origin = m_editor->costs().origin;
                           m_panel->setSplitNote(splitNote(complete));
                           if (!(complete.costs == m_editor->costs())) takeCosts(complete.costs);
                       });
}

// Not during a drag: a running drag ends first.
void EditController::takeCosts(const CostModel& costs)
{
    if (m_drag->dragging()) {
        m_waitingCosts = costs;
        return;
    }
    m_editor->setCosts(costs);
    if (!m_editor->changed()) m_picture->keepOriginal();
}

void EditController::ended()
{
    if (!m_source) return;
    keepLeft();
    m_source.reset();
    if (!m_keptElsewhere) m_workspace.viewState()->setLeastEnd(0);
    m_recovery->clear();
    m_completing.drop();
    m_waitingCosts.reset();
    m_selection->clear();
    m_picture->clear();
    m_overlay->clear();
    m_drag->stop();
    m_reference->stop();
    m_deck->end();
}

// Leaving loses no changes: a valid order stays in the list as a simulated run; any other is restored when the same
// run is edited again.
void EditController::keepLeft()
{
    const Schedule& order = m_editor->schedule();
    if (m_keptElsewhere || !m_editor->changed() || (m_kept && *m_kept == order)) return;
    if (!m_editor->complete() || !validate(order).valid()) {
        m_left = Left{m_source->ref.file, m_source->ref.id, order};
        m_workspace.banner()->showNote(u"The order still has a fault. Edit the same run again to restore it."_s);
        return;
    }
    ++m_keeping;
    inBackground(
        this,
        [schedule = std::make_shared<const Schedule>(order),
         costs = std::make_shared<const CostModel>(m_editor->costs()),
         name = u"%1 (edited)"_s.arg(runTitle(m_source->run->info)).toStdString()]() -> Result<std::shared_ptr<Run>> {
            STAGEWRIGHT_TRY(auto run, simulatedRun(*schedule, *costs));
            run.info.name = name;
            return std::make_shared<Run>(std::move(run));
        },
        [this](Result<std::shared_ptr<Run>> run) {
            --m_keeping;
            if (run) m_workspace.library()->addSimulated(std::move(**run));
        });
}

void EditController::saved()
{
    if (!m_editor->active()) return;
    m_kept = m_editor->schedule();
    m_recovery->clear();
}

void EditController::recorded(const Schedule& order)
{
    if (!m_editor->active() || m_editor->schedule() != order) return;
    saved();
}

void EditController::redraw()
{
    if (m_editor->active() && m_source) m_picture->draw();
}

bool EditController::settled() const { return m_keeping == 0 && m_reference->settled() && m_deck->text()->settled(); }

void EditController::edited()
{
    if (!m_editor->active()) return ended();
    if (!m_source) return;
    m_drag->hint()->hide();
    m_selection->follow();
    m_picture->draw();
    m_deck->showOrder();
    m_selection->show();
    m_reference->recogniseSoon();
    m_recovery->keep(m_keptElsewhere ? nullptr : m_source);
    refreshEdit();
}

} // namespace stagewright
