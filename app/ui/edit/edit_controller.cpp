// Edit mode: layout, pictures of the order, selection of ops.
#include "app/ui/edit/edit_controller.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <QKeyEvent>
#include <QSettings>
#include <QSplitter>
#include <QStackedWidget>

#include "app/costs/split_sources.h"
#include "app/ui/edit/recovery_bar.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/edit/missing_collectives.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/run/simulated_run.h"
#include "widgets/background.h"
#include "widgets/edit/move_hint.h"
#include "widgets/edit/op_tray.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/edit/schedule_text.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

EditController::EditController(Workspace& workspace)
    : Feature(workspace), m_editor(new ScheduleEditor(this)), m_overlay(new EditOverlay(workspace.views().timeline)),
      m_panel(new EditPanel(m_editor, workspace.room().panels())), m_detailing(workspace.jobs()),
      m_explaining(workspace.jobs()), m_completing(workspace.jobs()), m_recognising(workspace.jobs()),
      m_referencing(workspace.jobs())
{
    workspace.views().timeline->add(m_overlay);
    m_panel->setAccessibleName(u"Edited schedule"_s);
    m_autosave = new EditAutosave(workspace.jobs(), this);
    buildDeck();
    connectAll();
    connectDrag();
    connectCommands();
    connectReference();
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
    m_deck->hide();
    offerRecovery();
}

EditController::~EditController() = default;

FeatureParts EditController::parts()
{
    FeatureParts parts;
    parts.panels = {m_panel};
    return parts;
}

bool EditController::escape()
{
    if (!m_editor->previewing()) return false;
    m_editor->cancelPreview();
    m_overlay->setDrag(std::nullopt);
    return true;
}

bool EditController::on(ActionId id) const { return m_workspace.actions()[id]->isChecked(); }

Units EditController::units() const { return {m_editor->costs().timeUnit, m_editor->costs().memoryUnit}; }

void EditController::buildDeck()
{
    auto* rows = qobject_cast<QSplitter*>(m_workspace.views().timeline->parentWidget());
    m_deck = new QSplitter(Qt::Vertical);
    m_deck->setObjectName(u"editDeck"_s);
    m_deck->setHandleWidth(1);
    m_deck->setChildrenCollapsible(false);
    m_tray = new OpTray(m_deck);
    m_text = new ScheduleText(m_deck);
    m_deck->addWidget(m_tray);
    m_deck->addWidget(m_text);
    m_deck->setMinimumHeight(90);
    if (rows != nullptr) rows->addWidget(m_deck);
    m_hint = new MoveHint(m_workspace.views().timeline);
}

void EditController::connectAll()
{
    Actions& actions = m_workspace.actions();
    Shown& shown = m_workspace.shown();
    connect(actions["editMode"], &QAction::triggered, this,
            [this](bool wanted) { wanted ? enterEdit() : leaveEdit(); });
    connect(actions["undo"], &QAction::triggered, this, [this] {
        if (m_workspace.shown().mode() == Shown::Mode::Edit) m_editor->undoStack()->undo(); // else that of the notes
    });
    connect(actions["redo"], &QAction::triggered, this, [this] {
        if (m_workspace.shown().mode() == Shown::Mode::Edit) m_editor->undoStack()->redo();
    });
    connect(&shown, &Shown::replacing, m_editor, &ScheduleEditor::stop);
    connect(&shown, &Shown::modeChanging, this, [this] {
        const bool edits = m_workspace.shown().mode() == Shown::Mode::Edit;
        m_overlay->setMoves(edits);
        if (edits)
            m_workspace.room().panels()->setCurrentWidget(m_panel);
        else
            m_overlay->clear();
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
    connect(&m_workspace, &Workspace::themeChanged, this, &EditController::applyTheme);
    connect(m_editor, &ScheduleEditor::edited, this, &EditController::edited);
    // after the change was announced
    connect(m_editor->undoStack(), &QUndoStack::indexChanged, this, [this] { refreshEdit(); });
    connect(m_editor, &ScheduleEditor::refused, this, &EditController::refused);
    connect(m_workspace.viewState(), &ViewState::selectionChanged, this, &EditController::selectionChanged);
    connect(actions["scheduleText"], &QAction::toggled, this, [this](bool wanted) {
        m_text->setVisible(wanted);
        m_deck->setVisible(m_editor->active() && (wanted || showsTray()));
        if (wanted && m_editor->active()) {
            m_text->setSchedule(std::make_shared<const Schedule>(m_editor->schedule()), m_editor->validation());
            m_text->field()->setFocus();
        }
    });
    connect(m_text, &ScheduleText::typed, this, [this](const Schedule& schedule, int session) {
        if (m_editor->active()) m_editor->replace(u"Type in the text"_s, schedule, session);
    });
    connect(m_text, &ScheduleText::caretMoved, this, [this](OpPosition at) {
        if (!m_editor->active() || opAt(m_editor->schedule(), at) == nullptr ||
            (m_chosen.size() == 1 && m_chosen.front() == at))
            return;
        choose({at});
        if (m_workspace.viewState()->selected().valid())
            m_workspace.views().timeline->selection().show(m_workspace.viewState()->selected());
    });
    connect(m_text, &ScheduleText::undoAsked, m_editor->undoStack(), &QUndoStack::undo);
    connect(m_text, &ScheduleText::redoAsked, m_editor->undoStack(), &QUndoStack::redo);
    connect(m_text, &ScheduleText::leaveAsked, this, [this] { m_workspace.views().timeline->setFocus(); });
    connect(m_tray, &OpTray::placeAsked, this, &EditController::place);
    connect(m_tray, &OpTray::placeAllAsked, this, &EditController::placeAll);
    connect(m_tray, &OpTray::opDragged, this, &EditController::trayDragged);
    connect(m_tray, &OpTray::opDropped, this, &EditController::trayDropped);
    connect(m_tray, &OpTray::opDragCancelled, this, &EditController::endDrag);
    connect(m_overlay, &EditOverlay::opToggled, this, [this](SpanRef ref) {
        if (!m_editor->active() || ref.panel != 0) return;
        const OpPosition at = m_editor->positionOf(ref.span);
        if (!at.valid()) return;
        std::vector<OpPosition> next = m_chosen;
        const auto there = std::find(next.begin(), next.end(), at);
        if (there == next.end())
            next.push_back(at);
        else
            next.erase(there);
        choose(std::move(next));
    });
    connect(&m_workspace.views().timeline->selection(), &SelectionOverlay::idleClicked, this,
            [this](int panel, int rank, Nanos time) {
                if (m_editor->active() && panel == 0)
                    chooseGap(gapAt(m_editor->times(), rank, time + (m_picture ? m_picture->origin : 0)));
            });
    connect(m_panel, &EditPanel::runAsked, this, [this] { m_workspace.feature<Recording>()->runEdited(); });
    connect(m_panel, &EditPanel::doneAsked, this, &EditController::leaveEdit);
    connect(m_panel, &EditPanel::deadlockAsked, this, &EditController::showEditedDeadlock);
    m_workspace.views().timeline->installEventFilter(this);
}

bool EditController::showsTray() const { return m_trayShown && m_tray->count() > 0; }

void EditController::setTray(bool shown, bool placesAll)
{
    m_tray->setPlacesAll(placesAll);
    if (std::exchange(m_trayShown, shown) == shown) return;
    m_tray->setVisible(showsTray());
    m_deck->setVisible(m_editor->active() && (on("scheduleText") || showsTray()));
    fitDeck(false);
}

// The tray has the height of its chips, up to four rows, taken from the views above, never from the text.
void EditController::fitDeck(bool fresh)
{
    auto* rows = qobject_cast<QSplitter*>(m_workspace.views().timeline->parentWidget());
    if (rows == nullptr || !m_deck->isVisible()) return;
    const int height = rows->height();
    const bool text = on("scheduleText"), tray = showsTray();
    const int lines = text ? 75 + 16 * std::min(m_editor->schedule().ranks, 12) : 0;
    const int chips = tray ? m_tray->heightFor(m_deck->width()) : 0;
    const int wanted = fresh || !text ? lines : std::max(m_text->height(), m_text->minimumSizeHint().height());
    const int deck = std::clamp(std::min(wanted, height / 3) + chips, 110, std::max(110, height * 3 / 5));
    QList<int> sizes = rows->sizes();
    const int timeline = rows->indexOf(m_workspace.views().timeline),
              memory = rows->indexOf(m_workspace.views().memory);
    sizes[rows->indexOf(m_deck)] = deck;
    const bool charts = m_workspace.views().memory->isVisible();
    sizes[timeline] = charts ? std::min(m_workspace.views().timeline->sizeHint().height(), (height - deck) * 62 / 100)
                             : height - deck;
    if (memory >= 0) sizes[memory] = std::max(60, height - deck - sizes[timeline]);
    rows->setSizes(sizes);
    if (text && tray) m_deck->setSizes({chips, std::max(m_text->minimumSizeHint().height(), deck - chips)});
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
                           const CostModel& costs, OpPosition selected)
{
    m_source = source;
    m_chosen.clear();
    m_chosenOps.clear();
    m_gap = {};
    m_picture.reset();
    m_originalPicture.reset();
    m_text->clear();
    m_text->setVisible(on("scheduleText"));
    m_kept.reset();
    m_editor->start(schedule, costs);
    m_originalPicture = m_picture;
    if (m_left && m_left->file == source->ref.file && m_left->id == source->ref.id &&
        m_left->schedule.order.size() == schedule.order.size())
        m_editor->replace(u"Restore the unfinished edit"_s, m_left->schedule);
    m_left.reset();
    makeReference();
    fitDeck(true);
    if (selected.valid() && opAt(schedule, selected) != nullptr) choose({selected});
    refreshGhost();
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
    if (m_dragging) {
        m_waitingCosts = costs;
        return;
    }
    m_editor->setCosts(costs);
    if (!m_editor->changed()) m_originalPicture = m_picture;
}

void EditController::ended()
{
    if (!m_source) return;
    keepLeft();
    m_source.reset();
    m_autosave->clear();
    for (Job* job : {&m_detailing, &m_explaining, &m_completing, &m_recognising, &m_referencing}) job->drop();
    m_waitingCosts.reset();
    m_dragging = false;
    m_recognise.stop();
    m_chosen.clear();
    m_chosenOps.clear();
    m_gap = {};
    m_picture.reset();
    m_waiting.reset();
    m_originalPicture.reset();
    m_overlay->clear();
    m_hint->hide();
    m_deck->hide();
    m_text->clear();
    m_workspace.views().timeline->setPreview(nullptr);
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
    m_autosave->clear();
}

void EditController::recorded(const Schedule& order)
{
    if (!m_editor->active() || m_editor->schedule() != order) return;
    saved();
}

void EditController::redraw()
{
    if (m_editor->active() && m_source) picture(m_editor->schedule().opCount() <= ScheduleEditor::detailLimit);
}

bool EditController::settled() const { return m_keeping == 0 && !m_recognise.isActive() && m_text->settled(); }

void EditController::edited()
{
    if (!m_editor->active()) return ended();
    if (!m_source) return;
    m_gap = {};
    m_overlay->setGap(std::nullopt);
    m_hint->hide();
    if (!m_editor->touched().empty())
        m_chosen = m_editor->touched();
    else
        keepChosen();
    picture(m_editor->schedule().opCount() <= ScheduleEditor::detailLimit);
    if (m_text->isVisibleTo(m_deck))
        m_text->setSchedule(std::make_shared<const Schedule>(m_editor->schedule()), m_editor->validation());
    std::vector<TrayOp> tray;
    if (!m_editor->complete()) {
        const Schedule& order = m_editor->schedule();
        const auto& unplaced = m_editor->unplaced();
        const std::unordered_set<Op> missing(unplaced.begin(), unplaced.end());
        for (const Op& op : unplaced) {
            bool ready = true;
            order.graph.eachNeed(op, order.stages, [&](const Need& need, int stage) {
                Op input = asKind(op, need.kind);
                input.stage = static_cast<std::uint16_t>(stage);
                ready = ready && !missing.contains(input) && !missing.contains(asKind(input, need.orKind));
            });
            tray.push_back({op, order.placement.rankOf(op.stage, op.microbatch), ready});
        }
    }
    for (const MissingCollective& missing : missingCollectives(m_editor->schedule()))
        tray.push_back({missing.op, missing.at.rank, true});
    const int chipsBefore = showsTray() ? m_tray->heightFor(m_deck->width()) : 0;
    m_tray->setOps(std::move(tray));
    m_tray->setVisible(showsTray());
    m_deck->setVisible(on("scheduleText") || showsTray());
    if (chipsBefore != (showsTray() ? m_tray->heightFor(m_deck->width()) : 0)) fitDeck(false);
    showChosen();
    recogniseSoon();
    keepSoon();
    refreshEdit();
}

// The committed order on screen. Large orders are drawn at once from their spans; the rest is computed in the
// background.
void EditController::picture(bool detailed)
{
    PanelOptions options;
    options.step = 0;
    options.name = QString::fromStdString(m_editor->schedule().name);
    options.memoryCap = m_workspace.shown().budget();
    options.causes = detailed;
    options.pyramids = detailed || m_editor->schedule().opCount() > 200000;
    if (m_editor->timeline() == nullptr) return;
    const bool keep = !m_workspace.views().timeline->panels().empty() &&
                      m_workspace.viewState()->extent().duration() > 0 && !m_workspace.viewState()->isFitted();
    m_picture = makePanel(m_editor->timeline(), options);
    m_choosing = true;
    m_workspace.views().timeline->setPanels({m_picture});
    if (detailed) m_workspace.views().memory->setPanels({m_picture});
    m_workspace.views().legend->setPanels({m_picture});
    m_choosing = false;
    if (!keep) m_workspace.viewState()->fitAll();
    m_overlay->setFaults(m_editor->faultSpans());
    refreshGhost();
    m_detailing.drop();
    if (detailed) return;
    options.causes = options.pyramids = true;
    m_detailing.start(
        [order = std::make_shared<const Schedule>(m_editor->schedule()),
         times = std::make_shared<const SimResult>(m_editor->times()),
         costs = std::make_shared<const CostModel>(m_editor->costs()),
         options]() -> std::shared_ptr<const TimelinePanel> {
            auto timeline = timelineOf(*order, *times, *costs);
            return timeline ? makePanel(*timeline, options) : nullptr;
        },
        [this](const std::shared_ptr<const TimelinePanel>& panel) {
            if (!panel) return;
            m_waiting = panel;
            if (!m_dragging) showWaiting();
        });
}

// Replaces the drawn spans with the detailed picture of the same order; its span ids differ.
void EditController::showWaiting()
{
    if (!m_waiting || m_dragging) return;
    m_picture = std::exchange(m_waiting, nullptr);
    const std::vector<OpPosition> chosen = m_chosen;
    m_editor->setDetailed(m_picture->timeline);
    m_choosing = true;
    m_workspace.views().timeline->setPanels({m_picture});
    m_workspace.views().memory->setPanels({m_picture});
    m_choosing = false;
    m_overlay->setFaults(m_editor->faultSpans());
    m_chosen = chosen;
    showChosen();
    if (!m_originalPicture || !m_editor->changed()) m_originalPicture = m_picture;
    refreshGhost();
    refreshEdit();
}

OpPosition EditController::primary() const
{
    const SpanRef selected = m_workspace.viewState()->selected();
    return m_editor->active() && selected.valid() && selected.panel == 0 ? m_editor->positionOf(selected.span)
                                                                         : OpPosition{};
}

std::vector<OpPosition> EditController::opsIn(const std::vector<AreaSelection>& areas) const
{
    std::vector<OpPosition> out;
    const auto& panels = m_workspace.views().timeline->panels();
    const auto& plan = m_workspace.views().timeline->scene().rows.plan;
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

void EditController::selectionChanged()
{
    if (!m_editor->active() || m_choosing || !m_source) return;
    const auto& areas = m_workspace.viewState()->areas();
    if (!areas.empty()) {
        m_chosen = opsIn(areas);
    } else {
        const OpPosition at = primary();
        // Pressing one of several keeps them, so that they can be dragged together.
        if (at.valid() && m_chosen.size() > 1 && std::find(m_chosen.begin(), m_chosen.end(), at) != m_chosen.end()) {
            std::rotate(m_chosen.begin(), std::find(m_chosen.begin(), m_chosen.end(), at), m_chosen.end());
        } else {
            m_chosen.clear();
            if (at.valid()) m_chosen = {at};
        }
    }
    showChosen();
}

void EditController::choose(std::vector<OpPosition> positions)
{
    if (!m_editor->active()) return;
    m_chosen = std::move(positions);
    showChosen();
}

// The first selected op is the selected op of every view; the overlay outlines the others.
void EditController::showChosen()
{
    m_chosenOps.clear();
    for (const OpPosition at : m_chosen)
        if (const Op* op = opAt(m_editor->schedule(), at)) m_chosenOps.emplace_back(at.rank, *op);
    m_choosing = true;
    if (m_workspace.viewState()->areas().empty()) {
        const SpanId span = m_chosen.empty() ? noSpan : m_editor->spanAt(m_chosen.front());
        m_workspace.viewState()->select(span == noSpan ? SpanRef{} : SpanRef{0, span});
    }
    m_choosing = false;
    std::vector<SpanId> outlined;
    if (m_chosen.size() > 1)
        for (const OpPosition at : m_chosen)
            if (const SpanId span = m_editor->spanAt(at); span != noSpan) outlined.push_back(span);
    m_overlay->setChosen(std::move(outlined));
    m_panel->setChosen(m_chosen);
    if (!m_chosen.empty()) m_text->select(m_chosen.front());
    refreshActions();
}

void EditController::keepChosen()
{
    std::vector<OpPosition> next;
    std::unordered_map<int, std::unordered_map<Op, int>> places; // by rank
    for (const auto& [rank, op] : m_chosenOps) {
        auto [known, fresh] = places.try_emplace(rank);
        if (fresh && rank < static_cast<int>(m_editor->schedule().order.size())) {
            const auto& row = m_editor->schedule().order[static_cast<std::size_t>(rank)];
            for (std::size_t i = 0; i < row.size(); ++i) known->second.emplace(row[i], static_cast<int>(i));
        }
        const auto at = known->second.find(op);
        if (at != known->second.end()) next.push_back({rank, at->second});
    }
    m_chosen = std::move(next);
}

void EditController::chooseGap(const RowGap& gap)
{
    if (!m_editor->active()) return;
    m_gap = gap;
    const Nanos origin = m_picture ? m_picture->origin : 0;
    m_overlay->setGap(gap.valid() ? std::optional(EditOverlay::GapMark{gap.rank, gap.begin - origin, gap.end - origin})
                                  : std::nullopt);
    refreshActions();
}

void EditController::applyTheme()
{
    const Theme& theme = m_workspace.theme();
    m_panel->setTheme(theme);
    m_text->setTheme(theme);
    m_tray->setTheme(theme);
}

} // namespace stagewright
