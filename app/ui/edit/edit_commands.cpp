#include "app/ui/edit/edit_commands.h"

#include <algorithm>

#include <QInputDialog>

#include "app/ui/workspace/workspace.h"
#include "schedules/edit/missing_collectives.h"
#include "schedules/model/kinds.h"
#include "widgets/edit/edit_panel.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

EditCommands::EditCommands(Workspace& workspace, ScheduleEditor* editor, EditSelection* selection, EditDrag* drag,
                           EditPanel* panel)
    : QObject(drag), m_workspace(workspace), m_editor(editor), m_selection(selection), m_drag(drag)
{
    Actions& actions = workspace.actions();
    auto on = [&](ActionId id, auto slot) { connect(actions[id], &QAction::triggered, this, slot); };
    auto chooseAmong = [this](const std::vector<OpPosition>& positions, auto fits) { // the selected op stays the first
        std::vector<OpPosition> all{chosen().front()};
        for (const OpPosition at : positions)
            if (fits(at) && !(at == all.front())) all.push_back(at);
        m_selection->choose(std::move(all));
    };
    auto whole = [this](const QString& text, auto change) {
        return [this, text, change] {
            m_selection->apply(text.arg(m_selection->names()), change(m_editor->schedule(), chosen()));
        };
    };
    on("cutOps", [this] { copy(true); });
    on("copyOps", [this] { copy(false); });
    on("pasteOps", [this] { paste(); });
    on("removeOps", [this] { remove(); });
    on("insertDelay", [this] { insertDelay(); });
    on("splitBackward", [this] { // counts the backwards among the selected ops: "Split 32 backwards"
        std::vector<OpPosition> backwards;
        for (const OpPosition at : chosen())
            if (const Op* op = opAt(m_editor->schedule(), at); op != nullptr && isFullBackward(op->kind))
                backwards.push_back(at);
        const QString what = backwards.size() > 2
                                 ? countText(static_cast<qint64>(backwards.size()), u"1 backward"_s, u"%L1 backwards"_s)
                                 : m_selection->names(backwards.empty() ? chosen() : backwards);
        m_selection->apply(u"Split %1"_s.arg(what), splitBackward(m_editor->schedule(), chosen()));
    });
    on("mergeBackward",
       whole(u"Merge %1"_s, [](const Schedule& s, const std::vector<OpPosition>& p) { return mergeBackward(s, p); }));
    on("insertRecompute", whole(u"Recompute %1"_s, [](const Schedule& s, const std::vector<OpPosition>& p) {
           return insertRecompute(s, p);
       }));
    on("swapOps", [this] {
        if (chosen().size() == 2)
            m_selection->apply(u"Swap %1"_s.arg(m_selection->names()),
                               swapTwo(m_editor->schedule(), chosen()[0], chosen()[1]));
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
        m_selection->choose(allPositions(m_editor->schedule()));
    });
    on("chooseMicrobatch", [this, chooseAmong] {
        const Op* op = chosen().empty() ? nullptr : opAt(m_editor->schedule(), chosen().front());
        if (op != nullptr && op->microbatch >= 0)
            chooseAmong(allPositions(m_editor->schedule()),
                        [&](OpPosition at) { return opAt(m_editor->schedule(), at)->microbatch == op->microbatch; });
    });
    on("chooseRank", [this, chooseAmong] {
        if (!chosen().empty())
            chooseAmong(allPositions(m_editor->schedule(), chosen().front().rank), [](OpPosition) { return true; });
    });
    on("microbatches", [this] { askMicrobatches(); });
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
    panel->setOpActions({actions["insertDelay"], actions["removeOps"], actions["splitBackward"],
                         actions["mergeBackward"], actions["insertRecompute"], actions["swapOps"], actions["fillGap"],
                         actions["snapOps"], actions["copyOps"], actions["pasteOps"]});
}

void EditCommands::refresh()
{
    const Actions& actions = m_workspace.actions();
    const bool editing = m_editor->active();
    const Schedule& order = m_editor->schedule();
    bool any = false, whole = false, parts = false, compute = false;
    for (const OpPosition at : chosen()) {
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
    enable({"rankAbove", "rankBelow"}, any && chosen().size() == 1);
    enable({"pasteOps"}, editing && !m_pattern.empty());
    enable({"splitBackward"}, whole);
    enable({"mergeBackward"}, parts);
    enable({"insertRecompute"}, compute);
    enable({"swapOps"}, any && chosen().size() == 2 && chosen()[0].rank == chosen()[1].rank);
    enable({"fillGap"}, editing && (m_selection->gap().valid() || chosen().size() == 1));
    enable({"snapAll", "chooseAll", "microbatches", "scheduleText", "ghostOriginal"}, editing);
    enable({"revertOrder"}, editing && m_editor->changed());
    enable({"goThere"}, m_drag->canGo());
    enable({"carryThere"}, m_drag->canCarry());
}

void EditCommands::copy(bool cut)
{
    auto pattern = copyPattern(m_editor->schedule(), m_editor->costs(), m_editor->times(), chosen());
    if (!pattern) return m_drag->refuse(pattern.error());
    m_pattern = std::move(*pattern);
    m_copies = cut ? -1 : 0; // the first paste puts cut ops back
    const QString what = m_selection->names();
    if (cut)
        m_selection->apply(u"Cut %1"_s.arg(what), removeOps(m_editor->schedule(), chosen()));
    else
        m_workspace.room().tell(
            u"Copied %1. Paste inserts them for the next microbatch; paste again for the one after."_s.arg(what), 8000);
    refresh();
}

void EditCommands::paste()
{
    if (!m_editor->active() || m_pattern.empty()) return;
    const int next = m_copies + 1;
    auto stamped = stampPattern(m_editor->schedule(), m_editor->times(), m_pattern, next);
    if (!stamped) return m_drag->refuse(stamped.error());
    const int microbatch = m_pattern.items.front().op.microbatch + next * m_pattern.microbatches;
    const int shoved = stamped->shoved;
    const bool changed = m_selection->apply(next == 0 ? u"Paste back"_s : u"Paste for microbatch %1"_s.arg(microbatch),
                                            std::move(stamped->edited));
    m_copies = next;
    if (!changed)
        m_workspace.room().tell(u"Microbatch %1 is already there"_s.arg(microbatch), 6000);
    else if (shoved > 0)
        m_workspace.room().tell(u"Pasted for microbatch %1; %2"_s.arg(microbatch)
                                    .arg(countText(static_cast<qint64>(shoved), u"1 op of its ranks moved later"_s,
                                                   u"%L1 ops of its ranks moved later"_s)),
                                6000);
}

void EditCommands::remove()
{
    const bool delay = chosen().size() == 1 && opAt(m_editor->schedule(), chosen().front()) != nullptr &&
                       isDelay(opAt(m_editor->schedule(), chosen().front())->kind);
    m_selection->apply(delay ? u"Remove delay on rank %1"_s.arg(chosen().front().rank)
                             : u"Remove %1"_s.arg(m_selection->names()),
                       removeOps(m_editor->schedule(), chosen()));
}

void EditCommands::insertDelay()
{
    if (chosen().empty()) return;
    const OpPosition at = *std::min_element(chosen().begin(), chosen().end());
    const SpanId span = m_editor->spanAt(at);
    const Nanos length = span == noSpan ? rankShare : m_editor->timeline()->spans()[span].duration();
    m_editor->insertDelay(at.rank, at.position, std::clamp<Nanos>(length, 1, 0xffffffffLL));
}

void EditCommands::fill()
{
    RowGap gap = m_selection->gap();
    if (!gap.valid() && chosen().size() == 1)
        gap = gapBefore(m_editor->times(), chosen().front().rank, chosen().front().position);
    m_selection->apply(u"Fill a gap of rank %1"_s.arg(gap.rank),
                       fillGap(m_editor->schedule(), m_editor->costs(), m_editor->times(), gap));
}

void EditCommands::snap(bool all)
{
    if (!m_editor->active()) return;
    if (all) {
        Edited next{earliestOrder(m_editor->schedule(), m_editor->costs()), {}};
        if (!m_selection->apply(u"Snap all to the earliest place"_s, std::move(next)))
            m_workspace.room().tell(u"Every op is already where it can start earliest"_s, 6000);
        return;
    }
    if (!m_selection->apply(u"Snap %1 to the earliest place"_s.arg(m_selection->names()),
                            snapToEarliest(m_editor->schedule(), m_editor->costs(), m_editor->times(), chosen())))
        m_workspace.room().tell(u"It is already where it can start earliest"_s, 6000);
}

void EditCommands::toRank(int by)
{
    if (chosen().size() != 1 || !m_editor->active()) return;
    const OpPosition from = chosen().front();
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
    m_selection->apply(u"Move %1 to rank %2"_s.arg(QString::fromStdString(toText(*op))).arg(target),
                       moveToRank(m_editor->schedule(), from, target, static_cast<int>(at - first)));
}

void EditCommands::extend(int by)
{
    if (chosen().empty()) return;
    int edge = chosen().front().position;
    const int rank = chosen().front().rank;
    for (const OpPosition at : chosen())
        if (at.rank == rank) edge = by < 0 ? std::min(edge, at.position) : std::max(edge, at.position);
    const OpPosition next{rank, edge + by};
    if (opAt(m_editor->schedule(), next) == nullptr) return;
    std::vector<OpPosition> more = chosen();
    more.push_back(next);
    m_selection->choose(std::move(more));
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

void EditCommands::place(const std::vector<Op>& ops)
{
    if (!m_editor->active() || ops.empty()) return;
    Edited change{m_editor->schedule(), {}};
    SimResult times = m_editor->times();
    for (const Op& op : ops) {
        const OpPosition own = placeOfMissing(change.schedule, op); // of a gather or reduction
        const int rank = own.valid() ? own.rank : change.schedule.placement.rankOf(op.stage, op.microbatch);
        const int at = own.valid() ? own.position : earliestPlace(change.schedule, m_editor->costs(), times, op, rank);
        auto next = insertOps(change.schedule, rank, at, {op});
        if (!next) return m_drag->refuse(next.error());
        change.schedule = std::move(next->schedule);
        for (OpPosition& other : change.positions)
            if (other.rank == rank && other.position >= at) ++other.position;
        change.positions.push_back({rank, at});
        if (ops.size() > 1) times = simulateRelaxed(change.schedule, m_editor->costs());
    }
    const QString name = QString::fromStdString(toText(ops.front()));
    m_selection->apply(ops.size() == 1 ? u"Place %1"_s.arg(name)
                                       : u"Place %1 and %2 more"_s.arg(name).arg(ops.size() - 1),
                       std::move(change));
}

// All remaining ops: each rank takes what it can start first; placed ops keep their order.
void EditCommands::placeAll()
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
    m_selection->apply(countText(static_cast<qint64>(left.size()), u"Place 1 op"_s, u"Place %L1 ops"_s),
                       Edited{std::move(next), {}});
}

bool EditCommands::changeMicrobatches(int count)
{
    if (!m_editor->active()) return false;
    auto next = Result<Schedule>(m_editor->schedule());
    if (m_editor->original().opCount() == 0 && count > next->microbatches)
        next->microbatches = count; // started from an empty canvas: new ops go to the tray
    else
        next = withMicrobatches(m_editor->schedule(), m_editor->costs(), count);
    if (!next) {
        m_drag->refuse(next.error());
        return false;
    }
    return m_selection->apply(countText(count, u"Change to 1 microbatch"_s, u"Change to %L1 microbatches"_s),
                              Edited{std::move(*next), {}});
}

void EditCommands::askMicrobatches()
{
    if (!m_editor->active()) return;
    bool ok = false;
    const int count =
        QInputDialog::getInt(m_workspace.window(), u"Microbatches"_s, u"Number of microbatches per step:"_s,
                             m_editor->schedule().microbatches, 1, 65536, 1, &ok);
    if (ok) changeMicrobatches(count);
}

} // namespace stagewright
