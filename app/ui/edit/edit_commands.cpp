// Edit mode: commands on the selected ops, each one undoable step with a name.
#include <algorithm>

#include <QDialog>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QInputDialog>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QStatusBar>

#include "app/ui/edit/edit_controller.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/edit/missing_collectives.h"
#include "schedules/model/kinds.h"
#include "traces/run/simulated_run.h"
#include "widgets/edit/move_hint.h"
#include "widgets/edit/op_tray.h"
#include "widgets/edit/schedule_text.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/record/record_process.h"
#include "widgets/style.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

std::vector<ActionEntry> EditController::actionTable()
{
    return {
        {.id = "undo",
         .group = ActionGroup::EditUndo,
         .text = u"&Undo"_s,
         .keys = "Ctrl+Z",
         .tooltip = u"Undoes the last change to the order"_s,
         .needs = Needs::Nothing,
         .missing = u"Nothing has changed."_s},
        {.id = "redo",
         .group = ActionGroup::EditUndo,
         .text = u"&Redo"_s,
         .keys = "Ctrl+Shift+Z|Ctrl+Y",
         .tooltip = u"Redoes the change undone last"_s,
         .needs = Needs::Nothing,
         .missing = u"Nothing has been undone."_s},
        {.id = "cutOps",
         .group = ActionGroup::Order,
         .text = u"C&ut"_s,
         .keys = "Ctrl+X",
         .tooltip = u"Removes the selected ops; the first Paste puts them back, further ones paste them for the "
                    "following microbatches"_s,
         .needs = Needs::Editing},
        {.id = "copyOps",
         .group = ActionGroup::Order,
         .text = u"&Copy the pattern"_s,
         .button = u"Copy"_s,
         .keys = "Ctrl+Ins",
         .tooltip = u"Ctrl+C on the canvas. Copies the selected ops with their ranks and rhythm"_s,
         .needs = Needs::Editing},
        {.id = "pasteOps",
         .group = ActionGroup::Order,
         .text = u"&Paste for the next microbatch"_s,
         .button = u"Paste"_s,
         .keys = "Ctrl+V",
         .tooltip = u"Pastes the pattern one period later for the next microbatch; again for the one after"_s,
         .needs = Needs::Editing,
         .missing = u"Nothing has been copied."_s},
        {.id = "removeOps",
         .group = ActionGroup::Order,
         .text = u"Remo&ve"_s,
         .button = u"Remove"_s,
         .keys = "Delete",
         .tooltip = u"Removes the selected ops; those the schedule needs go to the tray"_s,
         .needs = Needs::Editing},
        {.id = "insertDelay",
         .group = ActionGroup::Order,
         .line = true,
         .text = u"Insert &delay before it"_s,
         .button = u"Insert delay"_s,
         .keys = "Shift+D",
         .tooltip = u"An intended delay, as long as the op"_s,
         .needs = Needs::Editing},
        {.id = "splitBackward",
         .group = ActionGroup::Order,
         .text = u"&Split B into I and W"_s,
         .button = u"Split B"_s,
         .keys = "B",
         .tooltip = u"The weight gradient follows the input gradient and can be moved on its own"_s,
         .needs = Needs::Editing,
         .missing = u"Select a full backward (B) first."_s},
        {.id = "mergeBackward",
         .group = ActionGroup::Order,
         .text = u"&Merge I and W into B"_s,
         .button = u"Merge I, W"_s,
         .keys = "Shift+B",
         .tooltip = u"One full backward in place of the input gradient"_s,
         .needs = Needs::Editing,
         .missing = u"Select an input gradient (I) or weight gradient (W) first."_s},
        {.id = "insertRecompute",
         .group = ActionGroup::Order,
         .text = u"&Recompute before its backward"_s,
         .button = u"Recompute"_s,
         .keys = "Shift+R",
         .tooltip = u"Inserts R before the backward, so the forward keeps only its input"_s,
         .needs = Needs::Editing},
        {.id = "swapOps",
         .group = ActionGroup::Order,
         .text = u"S&wap the two ops"_s,
         .button = u"Swap"_s,
         .keys = "Shift+X",
         .tooltip = u"Swaps the two selected ops of one rank"_s,
         .needs = Needs::Editing,
         .missing = u"Select two ops of one rank first."_s},
        {.id = "fillGap",
         .group = ActionGroup::Order,
         .text = u"&Fill W here"_s,
         .button = u"Fill W here"_s,
         .keys = "Shift+W",
         .tooltip = u"Moves weight gradients that fit into the selected gap, or the one before the selected op"_s,
         .needs = Needs::Editing,
         .missing = u"Select a gap first: click idle time or the op after it."_s},
        {.id = "snapOps",
         .group = ActionGroup::Order,
         .text = u"S&nap to the earliest place"_s,
         .button = u"Snap"_s,
         .keys = "Shift+S",
         .tooltip = u"Moves each selected op to where it can start earliest"_s,
         .needs = Needs::Editing},
        {.id = "snapAll",
         .group = ActionGroup::Order,
         .text = u"Snap &all"_s,
         .keys = "Ctrl+Alt+S",
         .tooltip = u"Each rank runs the op whose inputs arrived first; memory may grow"_s,
         .needs = Needs::Editing},
        {.id = "rankAbove",
         .group = ActionGroup::Order,
         .line = true,
         .text = u"Move to the rank a&bove"_s,
         .keys = "Ctrl+Up",
         .tooltip = u"Only to a rank with a copy of its stage; a delay can go anywhere"_s,
         .needs = Needs::Editing},
        {.id = "rankBelow",
         .group = ActionGroup::Order,
         .text = u"Move to the rank be&low"_s,
         .keys = "Ctrl+Down",
         .tooltip = u"Only to a rank with a copy of its stage; a delay can go anywhere"_s,
         .needs = Needs::Editing},
        {.id = "goThere",
         .group = ActionGroup::Order,
         .text = u"&Go to the nearest valid place"_s,
         .keys = "Ctrl+.",
         .tooltip = u"For the op that was dropped at an invalid place"_s,
         .needs = Needs::Editing,
         .missing = u"No op was dropped at an invalid place."_s},
        {.id = "carryThere",
         .group = ActionGroup::Order,
         .text = u"Carr&y its dependants along"_s,
         .keys = "Ctrl+Shift+.|Ctrl+>",
         .tooltip = u"Leaves the dropped op there and moves its dependants as far as needed"_s,
         .needs = Needs::Editing,
         .missing = u"No op was dropped at an invalid place."_s},
        {.id = "chooseMicrobatch",
         .group = ActionGroup::Order,
         .line = true,
         .text = u"Select its m&icrobatch"_s,
         .keys = "Ctrl+D",
         .tooltip = u"Selects all ops of the same microbatch, to copy or move them together"_s,
         .needs = Needs::Editing},
        {.id = "chooseRank",
         .group = ActionGroup::Order,
         .text = u"Select its rank"_s,
         .keys = "Ctrl+Alt+A",
         .tooltip = u"Selects all ops of the same rank"_s,
         .needs = Needs::Editing},
        {.id = "chooseAll",
         .group = ActionGroup::Order,
         .text = u"Select all"_s,
         .keys = "Ctrl+A",
         .tooltip = u"Selects every op"_s,
         .needs = Needs::Editing},
        {.id = "extendLeft",
         .group = ActionGroup::Order,
         .text = u"Extend the selection to the previous op"_s,
         .keys = "Shift+Left",
         .needs = Needs::Editing},
        {.id = "extendRight",
         .group = ActionGroup::Order,
         .text = u"Extend the selection to the next op"_s,
         .keys = "Shift+Right",
         .needs = Needs::Editing},
        {.id = "microbatches",
         .group = ActionGroup::Order,
         .line = true,
         .text = u"Micr&obatches…"_s,
         .keys = "Ctrl+Alt+M",
         .tooltip = u"Changes their number, where the order has a repeating pattern"_s,
         .needs = Needs::Editing},
        {.id = "revertOrder",
         .group = ActionGroup::Order,
         .text = u"Back to the original"_s,
         .tooltip = u"One change, which can be undone"_s,
         .needs = Needs::Editing,
         .missing = u"Nothing has changed."_s},
        {.id = "scheduleText",
         .group = ActionGroup::Order,
         .line = true,
         .text = u"Schedule &text"_s,
         .keys = "Ctrl+T",
         .tooltip = u"The order as editable text under the canvas, kept in sync"_s,
         .checkable = true,
         .needs = Needs::Editing},
        {.id = "ghostOriginal",
         .group = ActionGroup::Order,
         .text = u"Outlines of the original"_s,
         .keys = "O",
         .tooltip = u"Where the ops were, as faint outlines"_s,
         .checkable = true,
         .needs = Needs::Editing},
        {.id = "ghostLibrary",
         .group = ActionGroup::Order,
         .text = u"Outlines of the library schedule"_s,
         .keys = "Shift+O",
         .tooltip = u"For the schedule chosen in the side panel"_s,
         .checkable = true,
         .needs = Needs::Editing,
         .missing = u"Not compared with a library schedule."_s},
        {.id = "carryAlong",
         .group = ActionGroup::Order,
         .text = u"Moves carry dependants along"_s,
         .tooltip = u"Ops that depend on a moved op move later as far as needed; otherwise only that op moves. Hold "
                    "Shift while dragging to do it once"_s,
         .checkable = true,
         .needs = Needs::Editing},
        {.id = "strictMoves",
         .group = ActionGroup::Order,
         .text = u"Refuse moves that break the order"_s,
         .tooltip = u"The op moves back and the reason is shown; otherwise it stays and the fault is outlined"_s,
         .checkable = true,
         .needs = Needs::Editing},
        {.id = "newEmpty",
         .group = ActionGroup::ScheduleEdit,
         .at = 10,
         .text = u"New e&mpty canvas…"_s,
         .keys = "Ctrl+Alt+N",
         .tooltip = u"Every op starts in a tray, to be placed by hand"_s},
        {.id = "editMode",
         .group = ActionGroup::ScheduleEdit,
         .at = 30,
         .text = u"&Edit the schedule"_s,
         .button = u"Edit"_s,
         .keys = "E",
         .tool = 21,
         .tooltip = u"Drag ops along their rank; the order is checked and timed as you drag"_s,
         .checkable = true},
    };
}

void EditController::connectCommands()
{
    Actions& actions = m_workspace.actions();
    auto on = [&](ActionId id, auto slot) { connect(actions[id], &QAction::triggered, this, slot); };
    auto whole = [this](const QString& text, auto change) {
        return [this, text, change] { apply(text.arg(names(m_chosen)), change(m_editor->schedule(), m_chosen)); };
    };
    on("cutOps", [this] { copy(true); });
    on("copyOps", [this] { copy(false); });
    on("pasteOps", [this] { paste(); });
    on("removeOps", [this] { remove(); });
    on("insertDelay", [this] { insertDelay(); });
    on("splitBackward", [this] { // counts the backwards among the selected ops: "Split 32 backwards"
        std::vector<OpPosition> backwards;
        for (const OpPosition at : m_chosen)
            if (const Op* op = opAt(m_editor->schedule(), at); op != nullptr && isFullBackward(op->kind))
                backwards.push_back(at);
        const QString what = backwards.size() > 2
                                 ? countText(static_cast<qint64>(backwards.size()), u"1 backward"_s, u"%L1 backwards"_s)
                                 : names(backwards.empty() ? m_chosen : backwards);
        apply(u"Split %1"_s.arg(what), splitBackward(m_editor->schedule(), m_chosen));
    });
    on("mergeBackward",
       whole(u"Merge %1"_s, [](const Schedule& s, const std::vector<OpPosition>& p) { return mergeBackward(s, p); }));
    on("insertRecompute", whole(u"Recompute %1"_s, [](const Schedule& s, const std::vector<OpPosition>& p) {
           return insertRecompute(s, p);
       }));
    on("swapOps", [this] {
        if (m_chosen.size() == 2)
            apply(u"Swap %1"_s.arg(names(m_chosen)), swapTwo(m_editor->schedule(), m_chosen[0], m_chosen[1]));
    });
    on("fillGap", [this] { fill(); });
    on("snapOps", [this] { snap(false); });
    on("snapAll", [this] { snap(true); });
    on("rankAbove", [this] { toRank(-1); });
    on("rankBelow", [this] { toRank(1); });
    on("extendLeft", [this] { extend(-1); });
    on("extendRight", [this] { extend(1); });
    on("chooseAll", [this] {
        m_workspace.viewState()->clearSelection();
        choose(allPositions(m_editor->schedule()));
    });
    on("chooseMicrobatch", [this] {
        if (m_chosen.empty()) return;
        const Op* op = opAt(m_editor->schedule(), m_chosen.front());
        if (op == nullptr || op->microbatch < 0) return;
        std::vector<OpPosition> all{m_chosen.front()};
        for (const OpPosition at : allPositions(m_editor->schedule()))
            if (opAt(m_editor->schedule(), at)->microbatch == op->microbatch && !(at == all.front())) all.push_back(at);
        choose(std::move(all));
    });
    on("chooseRank", [this] {
        if (m_chosen.empty()) return;
        std::vector<OpPosition> all{m_chosen.front()};
        for (const OpPosition at : allPositions(m_editor->schedule(), all.front().rank))
            if (!(at == all.front())) all.push_back(at);
        choose(std::move(all));
    });
    on("microbatches", [this] { askMicrobatches(); });
    on("newEmpty", [this] { askEmpty(); });
    on("revertOrder", [this] { m_editor->revert(); });
    // Keys of single ops belong to the canvas; the text and the tables have their own copy and paste.
    for (const ActionId id : {"cutOps", "copyOps", "pasteOps", "removeOps", "splitBackward", "mergeBackward",
                              "insertRecompute", "swapOps", "fillGap", "snapOps", "snapAll", "rankAbove", "rankBelow",
                              "extendLeft", "extendRight", "chooseAll", "chooseMicrobatch", "chooseRank"}) {
        m_workspace.views().timeline->addAction(actions[id]);
        actions[id]->setShortcutContext(Qt::WidgetShortcut);
    }
    for (const ActionId id : {"insertDelay", "removeOps", "splitBackward", "mergeBackward", "insertRecompute",
                              "swapOps", "fillGap", "snapOps", "copyOps", "pasteOps"})
        actions[id]->setIconText(actions.buttonText(id));
    m_panel->setOpActions({actions["insertDelay"], actions["removeOps"], actions["splitBackward"],
                           actions["mergeBackward"], actions["insertRecompute"], actions["swapOps"], actions["fillGap"],
                           actions["snapOps"], actions["copyOps"], actions["pasteOps"]});
}

void EditController::refreshActions()
{
    const Actions& actions = m_workspace.actions();
    auto* recording = m_workspace.feature<Recording>();
    const bool records = recording != nullptr && recording->process()->running();
    const bool editing = m_editor->active() && m_source;
    const auto& shown = m_workspace.shown().view();
    // of a growing run only the newest step is here
    actions["editMode"]->setEnabled(m_workspace.shown().mode() != Shown::Mode::Empty && shown && !shown->partial &&
                                    !shown->excerpt);
    actions["editMode"]->setChecked(m_workspace.shown().mode() == Shown::Mode::Edit);
    actions["undo"]->setEnabled(m_editor->undoStack()->canUndo());
    actions["redo"]->setEnabled(m_editor->undoStack()->canRedo());
    actions["runEdited"]->setEnabled(m_workspace.shown().mode() == Shown::Mode::Edit && m_editor->valid() && !records);
    m_panel->setCanRun(!records, u"A recording is running."_s);
    const Schedule& order = m_editor->schedule();
    bool any = false, whole = false, parts = false, compute = false;
    for (const OpPosition at : m_chosen) {
        const Op* op = editing ? opAt(order, at) : nullptr;
        if (op == nullptr) continue;
        any = true;
        whole = whole || isFullBackward(op->kind);
        parts = parts || isSplitBackward(op->kind);
        compute = compute || isForward(op->kind) || isReturn(op->kind);
        if (whole && parts && compute) break;
    }
    auto enable = [&](std::initializer_list<ActionId> ids, bool on) {
        for (const ActionId id : ids) actions[id]->setEnabled(on);
    };
    enable({"cutOps", "copyOps", "removeOps", "insertDelay", "snapOps", "extendLeft", "extendRight", "chooseMicrobatch",
            "chooseRank"},
           any);
    enable({"rankAbove", "rankBelow"}, any && m_chosen.size() == 1);
    enable({"pasteOps"}, editing && !m_pattern.empty());
    enable({"splitBackward"}, whole);
    enable({"mergeBackward"}, parts);
    enable({"insertRecompute"}, compute);
    enable({"swapOps"}, any && m_chosen.size() == 2 && m_chosen[0].rank == m_chosen[1].rank);
    enable({"fillGap"}, editing && (m_gap.valid() || m_chosen.size() == 1));
    enable({"snapAll", "chooseAll", "microbatches", "scheduleText", "ghostOriginal"}, editing);
    enable({"revertOrder"}, editing && m_editor->changed());
    enable({"goThere"}, editing && !m_hint->isHidden() && m_goThere >= 0);
    enable({"carryThere"}, editing && !m_hint->isHidden());
    actions["ghostLibrary"]->setEnabled(editing && m_againstPicture != nullptr);
}

QString EditController::names(const std::vector<OpPosition>& positions) const
{
    const Op* first = positions.empty() ? nullptr : opAt(m_editor->schedule(), positions.front());
    if (first == nullptr) return {};
    const QString name = QString::fromStdString(toText(*first));
    return positions.size() == 1 ? name
           : positions.size() == 2
               ? u"%1 and %2"_s.arg(name, QString::fromStdString(toText(*opAt(m_editor->schedule(), positions[1]))))
               : u"%1 and %2 more"_s.arg(name).arg(positions.size() - 1);
}

bool EditController::apply(const QString& text, Result<Edited> change)
{
    if (!m_editor->active()) return false;
    m_workspace.viewState()->setAreas({}); // an area selection becomes a selection of ops
    return m_editor->apply(text, std::move(change));
}

void EditController::refused(const Error& error)
{
    QString text = QString::fromStdString(error.message);
    if (!text.isEmpty()) text[0] = text[0].toUpper();
    if (!error.remedy.empty()) text += u"; "_s + QString::fromStdString(error.remedy);
    m_workspace.room().tell(text, 10000);
    const SpanId span = m_chosen.empty() ? noSpan : m_editor->spanAt(m_chosen.front());
    const auto rect = span == noSpan ? std::nullopt : m_workspace.views().timeline->rectOf({0, span});
    m_goThere = -1;
    m_refusedFrom = {};
    QString reason = QString::fromStdString(error.message), remedy = QString::fromStdString(error.remedy);
    for (QString* one : {&reason, &remedy})
        if (!one->isEmpty()) (*one)[0] = (*one)[0].toUpper();
    m_hint->showAt(rect.value_or(QRectF(gutterWidth + 20, rulerHeight + 20, 10, 10)), reason, remedy, false, false,
                   false);
}

void EditController::copy(bool cut)
{
    auto pattern = copyPattern(m_editor->schedule(), m_editor->costs(), m_editor->times(), m_chosen);
    if (!pattern) return refused(pattern.error());
    m_pattern = std::move(*pattern);
    m_copies = cut ? -1 : 0; // the first paste puts cut ops back
    const QString what = names(m_chosen);
    if (cut)
        apply(u"Cut %1"_s.arg(what), removeOps(m_editor->schedule(), m_chosen));
    else
        m_workspace.room().tell(
            u"Copied %1. Paste inserts them for the next microbatch; paste again for the one after."_s.arg(what), 8000);
    refreshActions();
}

void EditController::paste()
{
    if (!m_editor->active() || m_pattern.empty()) return;
    const int next = m_copies + 1;
    auto stamped = stampPattern(m_editor->schedule(), m_editor->times(), m_pattern, next);
    if (!stamped) return refused(stamped.error());
    const int microbatch = m_pattern.items.front().op.microbatch + next * m_pattern.microbatches;
    const int shoved = stamped->shoved;
    const bool changed =
        apply(next == 0 ? u"Paste back"_s : u"Paste for microbatch %1"_s.arg(microbatch), std::move(stamped->edited));
    m_copies = next;
    if (!changed)
        m_workspace.room().tell(u"Microbatch %1 is already there"_s.arg(microbatch), 6000);
    else if (shoved > 0)
        m_workspace.room().tell(u"Pasted for microbatch %1; %2"_s.arg(microbatch)
                                    .arg(countText(static_cast<qint64>(shoved), u"1 op of its ranks moved later"_s,
                                                   u"%L1 ops of its ranks moved later"_s)),
                                6000);
}

void EditController::remove()
{
    const bool delay = m_chosen.size() == 1 && opAt(m_editor->schedule(), m_chosen.front()) != nullptr &&
                       isDelay(opAt(m_editor->schedule(), m_chosen.front())->kind);
    apply(delay ? u"Remove delay on rank %1"_s.arg(m_chosen.front().rank) : u"Remove %1"_s.arg(names(m_chosen)),
          removeOps(m_editor->schedule(), m_chosen));
}

void EditController::insertDelay()
{
    if (m_chosen.empty()) return;
    const OpPosition at = *std::min_element(m_chosen.begin(), m_chosen.end());
    const SpanId span = m_editor->spanAt(at);
    const Nanos length = span == noSpan ? rankShare : m_editor->timeline()->spans()[span].duration();
    m_editor->insertDelay(at.rank, at.position, std::clamp<Nanos>(length, 1, 0xffffffffLL));
}

void EditController::fill()
{
    RowGap gap = m_gap;
    if (!gap.valid() && m_chosen.size() == 1)
        gap = gapBefore(m_editor->times(), m_chosen.front().rank, m_chosen.front().position);
    apply(u"Fill a gap of rank %1"_s.arg(gap.rank),
          fillGap(m_editor->schedule(), m_editor->costs(), m_editor->times(), gap));
}

void EditController::snap(bool all)
{
    if (!m_editor->active()) return;
    if (all) {
        Edited next{earliestOrder(m_editor->schedule(), m_editor->costs()), {}};
        if (!apply(u"Snap all to the earliest place"_s, std::move(next)))
            m_workspace.room().tell(u"Every op is already where it can start earliest"_s, 6000);
        return;
    }
    if (!apply(u"Snap %1 to the earliest place"_s.arg(names(m_chosen)),
               snapToEarliest(m_editor->schedule(), m_editor->costs(), m_editor->times(), m_chosen)))
        m_workspace.room().tell(u"It is already where it can start earliest"_s, 6000);
}

void EditController::toRank(int by)
{
    if (m_chosen.size() != 1 || !m_source) return;
    const OpPosition from = m_chosen.front();
    const Op* op = opAt(m_editor->schedule(), from);
    if (op == nullptr) return;
    // The next rank in that direction that may hold it; if none may, the next one, which then gives the reason.
    int target = from.rank + by;
    for (int rank = from.rank + by; rank >= 0 && rank < m_editor->schedule().ranks; rank += by)
        if (isDelay(op->kind) || (op->stage < m_editor->schedule().placement.stages() &&
                                  std::any_of(m_editor->schedule().placement.copiesOf(op->stage).begin(),
                                              m_editor->schedule().placement.copiesOf(op->stage).end(),
                                              [&](const auto& copy) { return copy.rank == rank; }))) {
            target = rank;
            break;
        }
    if (target < 0 || target >= m_editor->schedule().ranks) return;
    const SimResult& times = m_editor->times();
    const auto first = times.start.begin() + static_cast<std::ptrdiff_t>(times.indexOf(target, 0)),
               last = times.start.begin() + static_cast<std::ptrdiff_t>(times.indexOf(target + 1, 0));
    const auto at =
        std::lower_bound(first, last, times.start[times.indexOf(from.rank, static_cast<std::size_t>(from.position))]);
    apply(u"Move %1 to rank %2"_s.arg(QString::fromStdString(toText(*op))).arg(target),
          moveToRank(m_editor->schedule(), from, target, static_cast<int>(at - first)));
}

void EditController::extend(int by)
{
    if (m_chosen.empty()) return;
    int edge = m_chosen.front().position;
    const int rank = m_chosen.front().rank;
    for (const OpPosition at : m_chosen)
        if (at.rank == rank) edge = by < 0 ? std::min(edge, at.position) : std::max(edge, at.position);
    const OpPosition next{rank, edge + by};
    if (opAt(m_editor->schedule(), next) == nullptr) return;
    std::vector<OpPosition> chosen = m_chosen;
    chosen.push_back(next);
    choose(std::move(chosen));
}

namespace {

// Before the first op of its rank that starts after its inputs arrive; a weight gradient or a backward before forwards.
int earliestPlace(const Schedule& order, const CostModel& costs, const SimResult& times, const Op& op, int rank)
{
    Schedule trial = order;
    auto& row = trial.order[static_cast<std::size_t>(rank)];
    row.push_back(op);
    SimResult with = times; // as if it were last
    const std::size_t at = times.indexOf(rank + 1, 0);
    with.start.insert(with.start.begin() + static_cast<std::ptrdiff_t>(at), 0);
    with.end.insert(with.end.begin() + static_cast<std::ptrdiff_t>(at), 0);
    for (std::size_t r = static_cast<std::size_t>(rank) + 1; r < with.offsets.size(); ++r) ++with.offsets[r];
    const std::vector<Nanos> arrivals = arrivalsOf(trial, costs, with);
    int place = 0;
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
        if (times.start[times.indexOf(rank, i)] < arrivals[at] ||
            (isForward(op.kind) && times.start[times.indexOf(rank, i)] <= arrivals[at]))
            place = static_cast<int>(i) + 1;
    // Never before its inputs on the same rank.
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
        if (row[i].stage == op.stage && row[i].microbatch == op.microbatch && row[i].kind < op.kind)
            place = std::max(place, static_cast<int>(i) + 1);
    return place;
}

} // namespace

void EditController::place(const std::vector<Op>& ops)
{
    if (!m_editor->active() || ops.empty()) return;
    Edited change{m_editor->schedule(), {}};
    SimResult times = m_editor->times();
    for (const Op& op : ops) {
        const OpPosition own = placeOfMissing(change.schedule, op); // of a gather or reduction
        const int rank = own.valid() ? own.rank : change.schedule.placement.rankOf(op.stage, op.microbatch);
        const int at = own.valid() ? own.position : earliestPlace(change.schedule, m_editor->costs(), times, op, rank);
        auto next = insertOps(change.schedule, rank, at, {op});
        if (!next) return refused(next.error());
        change.schedule = std::move(next->schedule);
        for (OpPosition& other : change.positions)
            if (other.rank == rank && other.position >= at) ++other.position;
        change.positions.push_back({rank, at});
        if (ops.size() > 1) times = simulateRelaxed(change.schedule, m_editor->costs());
    }
    const QString name = QString::fromStdString(toText(ops.front()));
    apply(ops.size() == 1 ? u"Place %1"_s.arg(name) : u"Place %1 and %2 more"_s.arg(name).arg(ops.size() - 1),
          std::move(change));
}

// All remaining ops: each rank takes what it can start first; placed ops keep their order.
void EditController::placeAll()
{
    if (!m_editor->active() || m_editor->complete()) return;
    Schedule next = m_editor->schedule();
    std::vector<Op> left = m_editor->unplaced();
    std::stable_sort(left.begin(), left.end(), [](const Op& a, const Op& b) {
        return std::pair(!isForward(a.kind), a.microbatch) < std::pair(!isForward(b.kind), b.microbatch);
    });
    for (const Op& op : left)
        next.order[static_cast<std::size_t>(next.placement.rankOf(op.stage, op.microbatch))].push_back(op);
    std::vector<std::size_t> placed;
    for (const auto& row : m_editor->schedule().order) placed.push_back(row.size());
    next = earliestOrder(next, m_editor->costs(), placed);
    apply(countText(static_cast<qint64>(left.size()), u"Place 1 op"_s, u"Place %L1 ops"_s),
          Edited{std::move(next), {}});
}

bool EditController::changeMicrobatches(int count)
{
    if (!m_editor->active()) return false;
    auto next = Result<Schedule>(m_editor->schedule());
    if (m_editor->original().opCount() == 0 && count > next->microbatches)
        next->microbatches = count; // started from an empty canvas: new ops go to the tray
    else
        next = withMicrobatches(m_editor->schedule(), m_editor->costs(), count);
    if (!next) {
        refused(next.error());
        return false;
    }
    return apply(countText(count, u"Change to 1 microbatch"_s, u"Change to %L1 microbatches"_s),
                 Edited{std::move(*next), {}});
}

void EditController::askMicrobatches()
{
    if (!m_editor->active()) return;
    bool ok = false;
    const int count =
        QInputDialog::getInt(m_workspace.window(), u"Microbatches"_s, u"Number of microbatches per step:"_s,
                             m_editor->schedule().microbatches, 1, 65536, 1, &ok);
    if (ok) changeMicrobatches(count);
}

void EditController::askEmpty()
{
    auto* dialog = new QDialog(m_workspace.window());
    dialog->setObjectName(u"newEmpty"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(u"New empty canvas"_s);
    auto* layout = new QVBoxLayout(dialog);
    layout->setContentsMargins(20, 18, 20, 16);
    layout->setSpacing(12);
    layout->addWidget(
        makeLabel(u"Every op starts in a tray under the canvas, to be placed by hand."_s, "secondary", dialog));
    auto* form = new QFormLayout;
    QSpinBox* boxes[3] = {};
    const QString words[3] = {u"Ranks"_s, u"Stages"_s, u"Microbatches"_s};
    const int values[3] = {2, 2, 2}, most[3] = {1024, 4096, 4096};
    for (int i = 0; i < 3; ++i) {
        boxes[i] = new QSpinBox(dialog);
        boxes[i]->setRange(1, most[i]);
        boxes[i]->setValue(values[i]);
        boxes[i]->setAccessibleName(words[i]);
        form->addRow(words[i], boxes[i]);
    }
    boxes[1]->setToolTip(u"Stage s is on rank s mod ranks."_s);
    connect(boxes[0], &QSpinBox::valueChanged, boxes[1], [stages = boxes[1]](int ranks) {
        stages->setValue(std::max(ranks, stages->value() / std::max(1, ranks) * ranks));
    });
    layout->addLayout(form);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, dialog);
    buttons->button(QDialogButtonBox::Ok)->setText(u"Start"_s);
    buttons->button(QDialogButtonBox::Ok)->setObjectName(u"primary"_s);
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, dialog, [this, dialog, r = boxes[0], s = boxes[1], m = boxes[2]] {
        const int ranks = r->value(), stages = s->value(), microbatches = m->value();
        dialog->accept();
        newEmpty(ranks, stages, microbatches);
    });
    dialog->open();
}

// The source of an empty canvas is a GPipe run of the same shape, for comparison.
void EditController::newEmpty(int ranks, int stages, int microbatches)
{
    Schedule base = emptySchedule(ranks, stages, microbatches);
    const Schedule nothing = base;
    for (int r = 0; r < ranks; ++r) { // backwards of a rank from the last stage down
        auto& row = base.order[static_cast<std::size_t>(r)];
        for (int j = 0; j < microbatches; ++j)
            for (int s = r; s < stages; s += ranks) row.push_back(makeForward(s, j));
        for (int j = 0; j < microbatches; ++j)
            for (int s = stages - 1; s >= 0; --s)
                if (s % ranks == r) row.push_back(makeBackward(s, j));
    }
    base = earliestOrder(base, CostModel::uniform(base));
    base.name = "empty";
    auto run = simulatedRun(base, CostModel::uniform(base));
    if (!run) {
        m_workspace.banner()->showError(QString(), run.error());
        return;
    }
    run->info.name = u"canvas %1 × %2"_s.arg(ranks).arg(microbatches).toStdString();
    editRun(std::move(*run), {}, nothing);
}

// Its source is the same order with the rest placed, so that it has costs and can be trained.
bool EditController::editIncomplete(const Schedule& order, const QString& name)
{
    const Validation found = validate(order);
    if (found.valid() || std::any_of(found.faults.begin(), found.faults.end(), [](const Fault& fault) {
            return fault.kind != FaultKind::Count && fault.kind != FaultKind::Deadlock;
        }))
        return false;
    const std::vector<Op> left = unplacedOps(order);
    if (left.empty()) return false;
    Schedule whole = order;
    for (const Op& op : left)
        whole.order[static_cast<std::size_t>(whole.placement.rankOf(op.stage, op.microbatch))].push_back(op);
    whole = earliestOrder(whole, CostModel::uniform(whole));
    auto run = simulatedRun(whole, CostModel::uniform(whole));
    if (!run) return false;
    run->info.name = !name.isEmpty() ? name.toStdString() : whole.name.empty() ? u"order"_s.toStdString() : whole.name;
    editRun(std::move(*run), {}, order);
    return true;
}

} // namespace stagewright
