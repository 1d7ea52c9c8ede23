#include "widgets/edit/schedule_editor.h"

#include <algorithm>

#include <QUndoCommand>

#include "schedules/model/kinds.h"
#include "schedules/model/schedule_delta.h"
#include "schedules/timeline/timeline_of.h"
#include "widgets/literals.h"

namespace stagewright {

EditFigures editFigures(const Schedule& schedule, const SimResult& result)
{
    EditFigures figures;
    figures.makespan = result.makespan;
    figures.bubbleFraction = figuresOf(schedule, result).bubbleFraction;
    figures.peaks = result.peakActivation;
    const auto largest = std::max_element(result.peakActivation.begin(), result.peakActivation.end());
    if (largest != result.peakActivation.end()) {
        figures.peakActivation = *largest;
        figures.peakRank = static_cast<int>(largest - result.peakActivation.begin());
    }
    Nanos first = result.makespan;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        Nanos busy = 0;
        Nanos until = 0; // both ops of a pair have one interval
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i) {
            if (!isBusy(schedule.order[r][i].kind)) continue;
            const std::size_t id = result.offsets[r] + i;
            first = std::min(first, result.start[id]);
            busy += std::max<Nanos>(0, result.end[id] - std::max(until, result.start[id]));
            until = std::max(until, result.end[id]);
        }
        figures.busy.push_back(busy);
    }
    figures.window = result.makespan - first;
    return figures;
}

namespace {

// Whole ops of F, B, I, W, R and delays: after a move within a rank such an order is valid exactly if it
// ends. R is an exception: it must precede its backward, which does not need it to end.
bool endsMeansValid(const Schedule& schedule)
{
    for (const auto& row : schedule.order)
        for (const Op& op : row)
            if (op.slice >= 0 || op.half != 0 || op.count != 1 || (!isCompute(op.kind) && !isDelay(op.kind)) ||
                isRecompute(op.kind))
                return false;
    return std::all_of(schedule.paired.begin(), schedule.paired.end(), [](const auto& row) { return row.empty(); });
}

} // namespace

// Stores the difference between before and after. Changes with the same merge id undo as one.
class ScheduleEditor::OrderCommand : public QUndoCommand {
public:
    OrderCommand(ScheduleEditor& editor, const QString& text, const Schedule& after, std::vector<OpPosition> touched,
                 int mergeId)
        : QUndoCommand(text), m_editor(editor), m_delta(editor.m_schedule, after), m_touched(std::move(touched)),
          m_mergeId(mergeId)
    {
    }
    void undo() override
    {
        m_delta.undo(m_editor.m_schedule);
        m_editor.adopted({});
    }
    void redo() override
    {
        m_delta.redo(m_editor.m_schedule);
        m_editor.adopted(m_touched);
    }
    int id() const override { return m_mergeId; }
    bool mergeWith(const QUndoCommand* next) override // next is already done
    {
        const auto* other = static_cast<const OrderCommand*>(next);
        Schedule before = m_editor.m_schedule;
        other->m_delta.undo(before);
        m_delta.undo(before);
        m_delta = ScheduleDelta(before, m_editor.m_schedule);
        m_touched = other->m_touched;
        setObsolete(m_delta.empty());
        return true;
    }

private:
    ScheduleEditor& m_editor;
    ScheduleDelta m_delta;
    std::vector<OpPosition> m_touched;
    int m_mergeId;
};

ScheduleEditor::ScheduleEditor(QObject* parent) : QObject(parent) {}

ScheduleEditor::~ScheduleEditor()
{
    QObject::disconnect(&m_undo, nullptr, nullptr, nullptr); // clearing it emits signals; whoever listens may be gone
}

void ScheduleEditor::start(const Schedule& schedule, const CostModel& costs, const Channels& channels)
{
    m_channels = channels;
    m_undo.clear();
    m_preview.reset();
    m_original = schedule;
    m_schedule = schedule;
    m_costs = costs;
    m_active = true;
    m_touched.clear();
    m_unplaced = unplacedOps(m_schedule);
    m_endsMeansValid = false;
    refresh();
    m_originalFigures = m_figures;
    emit edited();
}

void ScheduleEditor::setCosts(const CostModel& costs)
{
    if (!m_active || costs == m_costs) return;
    cancelPreview();
    m_costs = costs;
    const auto original = simulate(m_original, m_costs, m_channels);
    m_originalFigures = editFigures(m_original, original ? *original : simulateRelaxed(m_original, m_costs));
    m_touched.clear();
    refresh();
    emit edited();
}

void ScheduleEditor::stop()
{
    if (!m_active) return;
    m_active = false;
    m_undo.clear();
    m_preview.reset();
    m_timeline.reset();
    m_validation = {};
    m_times = {};
    m_touched.clear();
    m_unplaced.clear();
    emit edited();
}

const Schedule& ScheduleEditor::shown() const { return m_preview ? *m_preview : m_schedule; }

bool ScheduleEditor::apply(const QString& text, Result<Edited> change, int mergeId)
{
    if (!m_active) return false;
    if (!change) {
        cancelPreview();
        emit refused(change.error());
        return false;
    }
    if (change->schedule == m_schedule) {
        cancelPreview();
        return false;
    }
    push(text, change->schedule, std::move(change->positions), mergeId);
    return true;
}

bool ScheduleEditor::move(OpPosition from, int to)
{
    const Op* op = opAt(m_schedule, from);
    if (!m_active || op == nullptr || to < 0 || to == from.position ||
        to >= static_cast<int>(m_schedule.order[static_cast<std::size_t>(from.rank)].size())) {
        cancelPreview();
        return false;
    }
    return apply(u"Move %1 on rank %2"_s.arg(QString::fromStdString(toText(*op))).arg(from.rank),
                 moveOps(m_schedule, {from}, to - from.position));
}

bool ScheduleEditor::nudge(OpPosition from, int by)
{
    const Op* op = opAt(m_schedule, from);
    if (!m_active || op == nullptr) return false;
    const int to = from.position + by;
    if (to < 0 || to >= static_cast<int>(m_schedule.order[static_cast<std::size_t>(from.rank)].size())) return false;
    const auto mergeId =
        static_cast<int>((std::hash<Op>()(*op) ^ (static_cast<std::size_t>(from.rank) << 20U)) & 0x3fffffffU);
    return apply(u"Nudge %1 on rank %2"_s.arg(QString::fromStdString(toText(*op))).arg(from.rank),
                 moveOps(m_schedule, {from}, by), mergeId);
}

bool ScheduleEditor::insertDelay(int rank, int at, Nanos delay)
{
    if (!m_active || rank < 0 || at < 0 || delay <= 0 || delay > 0xffffffffLL) return false;
    auto next =
        stagewright::insertDelay(m_schedule, rank, static_cast<std::size_t>(at), static_cast<std::uint32_t>(delay));
    if (!next) return false;
    push(u"Insert delay on rank %1"_s.arg(rank), next->schedule, {{rank, at}});
    return true;
}

bool ScheduleEditor::removeDelay(OpPosition at)
{
    if (!m_active || !at.valid()) return false;
    auto next = stagewright::removeDelay(m_schedule, at.rank, static_cast<std::size_t>(at.position));
    if (!next) return false;
    push(u"Remove delay on rank %1"_s.arg(at.rank), next->schedule, {});
    return true;
}

void ScheduleEditor::revert()
{
    if (m_active && changed()) push(u"Back to the original"_s, m_original, {});
}

void ScheduleEditor::preview(OpPosition from, int to)
{
    if (!m_active) return;
    auto moved = moveOps(m_schedule, {from}, to - from.position);
    if (moved && to >= 0) preview(std::move(moved->schedule), std::move(moved->positions));
}

void ScheduleEditor::preview(Schedule order, std::vector<OpPosition> positions)
{
    if (!m_active || (m_preview && *m_preview == order)) return;
    if (!m_preview) m_committed = {m_validation, std::move(m_times), m_timeline, m_figures, m_touched};
    m_preview = std::make_unique<Schedule>(std::move(order));
    m_touched = std::move(positions);
    refresh();
    emit previewed();
}

void ScheduleEditor::cancelPreview()
{
    if (!m_preview) return;
    m_preview.reset();
    m_validation = std::move(m_committed.validation);
    m_times = std::move(m_committed.times);
    m_timeline = std::move(m_committed.timeline);
    m_figures = std::move(m_committed.figures);
    m_touched = std::move(m_committed.touched);
    emit previewed();
}

void ScheduleEditor::setDetailed(std::shared_ptr<const Timeline> timeline)
{
    if (!m_active || !timeline) return;
    (m_preview ? m_committed.timeline : m_timeline) = std::move(timeline);
}

void ScheduleEditor::replace(const QString& text, const Schedule& next, int mergeId)
{
    if (m_active && !(next == m_schedule)) push(text, next, {}, mergeId);
}

void ScheduleEditor::push(const QString& text, const Schedule& next, std::vector<OpPosition> positions, int mergeId)
{
    m_preview.reset();
    m_undo.push(new OrderCommand(*this, text, next, std::move(positions), mergeId));
}

void ScheduleEditor::adopted(std::vector<OpPosition> positions)
{
    m_preview.reset();
    m_touched = std::move(positions);
    m_unplaced = unplacedOps(m_schedule);
    refresh();
    emit edited();
}

void ScheduleEditor::refresh()
{
    const Schedule& order = shown();
    // A drag changes the order of one rank only; then one pass gives both whether it is valid and when ops run.
    const bool moved = m_preview && m_endsMeansValid && m_preview->placement == m_schedule.placement &&
                       m_preview->opCount() == m_schedule.opCount();
    auto simulated = moved ? simulate(order, m_costs, m_channels) : Result<SimResult>(fail(ErrorCode::Invalid, {}));
    if (simulated) {
        m_validation = {};
    } else if (moved && order.opCount() > detailLimit) { // which op waits is computed in the background
        Fault fault;
        fault.kind = FaultKind::Deadlock;
        fault.message = "an op would have to wait for a later one";
        m_validation = {};
        m_validation.faults.push_back(std::move(fault));
    } else {
        m_validation = validate(order);
    }
    if (!simulated && m_validation.valid()) simulated = simulate(order, m_costs, m_channels);
    m_times = simulated ? std::move(*simulated) : simulateRelaxed(order, m_costs);
    if (!m_preview) m_endsMeansValid = m_validation.valid() && endsMeansValid(order);
    m_figures = editFigures(order, m_times);
    const bool large = m_preview || order.opCount() > detailLimit;
    auto timeline = timelineOf(order, m_times, m_costs, large ? TimelineParts::SpansOnly : TimelineParts::All);
    if (timeline) m_timeline = *timeline; // otherwise the last picture stays
}

OpPosition ScheduleEditor::positionOf(SpanId span) const
{
    if (!m_timeline || span == noSpan || span >= m_timeline->spans().size()) return {};
    const Track& track = m_timeline->trackOf(span);
    if (!isListLane(track.lane) || track.rank >= static_cast<int>(shown().order.size())) return {};
    const auto& row = shown().order[static_cast<std::size_t>(track.rank)];
    const Op& op = m_timeline->spans()[span].op;
    if (track.lane != Lane::Compute) { // a stage is gathered several times: the n-th span is the n-th op
        auto nth = std::count_if(m_timeline->spans().begin() + track.begin, m_timeline->spans().begin() + span,
                                 [&](const Span& before) { return before.op == op; });
        for (std::size_t i = 0; i < row.size(); ++i)
            if (row[i] == op && nth-- == 0) return {track.rank, static_cast<int>(i)};
        return {};
    }
    // Spans of a compute track are in list order, except for zero durations and overlapped pairs: search nearby, then
    // further away.
    const auto guess = static_cast<std::size_t>(span - track.begin);
    if (guess < row.size() && row[guess] == op) return {track.rank, static_cast<int>(guess)};
    const auto found = std::find(row.begin(), row.end(), op);
    if (found == row.end()) return {};
    return {track.rank, static_cast<int>(found - row.begin())};
}

SpanId ScheduleEditor::spanAt(OpPosition position) const
{
    if (!m_timeline || !position.valid() || position.rank >= static_cast<int>(shown().order.size())) return noSpan;
    const auto& row = shown().order[static_cast<std::size_t>(position.rank)];
    if (position.position >= static_cast<int>(row.size())) return noSpan;
    const Op& op = row[static_cast<std::size_t>(position.position)];
    if (const Track* beside = m_timeline->trackOf(position.rank, ruleOf(op.kind).lane);
        beside != nullptr && beside->lane != Lane::Compute) {
        auto nth = std::count(row.begin(), row.begin() + position.position, op);
        for (SpanId id = beside->begin; id < beside->end; ++id)
            if (m_timeline->spans()[id].op == op && nth-- == 0) return id;
    }
    const Track* track = m_timeline->trackOf(position.rank, Lane::Compute);
    if (track == nullptr) return noSpan;
    const SpanId guess = track->begin + static_cast<SpanId>(position.position);
    if (guess < track->end && m_timeline->spans()[guess].op == op) return guess;
    for (SpanId id = track->begin; id < track->end; ++id)
        if (m_timeline->spans()[id].op == op) return id;
    return noSpan;
}

std::vector<SpanId> ScheduleEditor::faultSpans() const
{
    std::vector<SpanId> spans;
    auto add = [&](int rank, int position) {
        const SpanId span = spanAt({rank, position});
        if (span != noSpan && std::find(spans.begin(), spans.end(), span) == spans.end()) spans.push_back(span);
    };
    if (m_validation.faults.empty()) return spans;
    const Fault& fault = m_validation.faults.front();
    add(fault.rank, fault.position);
    add(fault.otherRank, fault.otherPosition);
    if (fault.kind == FaultKind::Deadlock)
        for (const Wait& wait : m_validation.cycle) add(wait.rank, wait.position);
    return spans;
}

} // namespace stagewright
