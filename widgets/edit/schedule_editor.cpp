#include "widgets/edit/schedule_editor.h"

#include <algorithm>

#include <QUndoCommand>

#include "schedules/timeline/timeline_of.h"

namespace stagewright {
namespace {

EditFigures editFigures(const Schedule& schedule, const SimResult& result)
{
    EditFigures figures;
    figures.makespan = result.makespan;
    figures.bubbleFraction = figuresOf(schedule, result).bubbleFraction;
    const auto largest = std::max_element(result.peakActivation.begin(), result.peakActivation.end());
    if (largest != result.peakActivation.end()) {
        figures.peakActivation = *largest;
        figures.peakRank = static_cast<int>(largest - result.peakActivation.begin());
    }
    return figures;
}

} // namespace

// Holds the order before and after. Nudges of one op (same merge id) become one step back.
class ScheduleEditor::OrderCommand : public QUndoCommand {
public:
    OrderCommand(ScheduleEditor& editor, const QString& text, Schedule before, Schedule after, int mergeId)
        : QUndoCommand(text), m_editor(editor), m_before(std::move(before)), m_after(std::move(after)), m_mergeId(mergeId)
    {
    }
    void undo() override { m_editor.adopt(m_before); }
    void redo() override { m_editor.adopt(m_after); }
    int id() const override { return m_mergeId; }
    bool mergeWith(const QUndoCommand* next) override
    {
        m_after = static_cast<const OrderCommand*>(next)->m_after;
        setObsolete(m_after == m_before);
        return true;
    }

private:
    ScheduleEditor& m_editor;
    Schedule m_before;
    Schedule m_after;
    int m_mergeId;
};

ScheduleEditor::ScheduleEditor(QObject* parent) : QObject(parent) {}

ScheduleEditor::~ScheduleEditor()
{
    QObject::disconnect(&m_undo, nullptr, nullptr, nullptr); // clearing it tells; whoever listens may be gone
}

void ScheduleEditor::start(const Schedule& schedule, const CostModel& costs)
{
    m_undo.clear();
    m_preview.reset();
    m_original = schedule;
    m_schedule = schedule;
    m_costs = costs;
    m_active = true;
    refresh();
    m_originalFigures = m_figures;
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
    emit edited();
}

const Schedule& ScheduleEditor::shown() const { return m_preview ? *m_preview : m_schedule; }

bool ScheduleEditor::move(OpPosition from, int to)
{
    m_preview.reset();
    if (!m_active || !from.valid() || to < 0 || to == from.position) {
        if (m_active) adopt(m_schedule);
        return false;
    }
    auto moved = moveOp(m_schedule, from.rank, static_cast<std::size_t>(from.position), static_cast<std::size_t>(to));
    if (!moved) {
        adopt(m_schedule);
        return false;
    }
    const Op op = m_schedule.order[static_cast<std::size_t>(from.rank)][static_cast<std::size_t>(from.position)];
    push(tr("Move %1 on rank %2").arg(QString::fromStdString(toText(op))).arg(from.rank), std::move(moved->schedule));
    return true;
}

bool ScheduleEditor::nudge(OpPosition from, int by)
{
    if (!m_active || !from.valid() || from.rank >= static_cast<int>(m_schedule.order.size())) return false;
    const auto& row = m_schedule.order[static_cast<std::size_t>(from.rank)];
    const int to = from.position + by;
    if (from.position >= static_cast<int>(row.size()) || to < 0 || to >= static_cast<int>(row.size())) return false;
    auto moved = moveOp(m_schedule, from.rank, static_cast<std::size_t>(from.position), static_cast<std::size_t>(to));
    if (!moved) return false;
    const Op op = row[static_cast<std::size_t>(from.position)];
    const auto mergeId = static_cast<int>((std::hash<Op>()(op) ^ (static_cast<std::size_t>(from.rank) << 20U)) & 0x3fffffffU);
    push(tr("Nudge %1 on rank %2").arg(QString::fromStdString(toText(op))).arg(from.rank), std::move(moved->schedule), mergeId);
    return true;
}

bool ScheduleEditor::insertDelay(int rank, int at, Nanos delay)
{
    if (!m_active || rank < 0 || at < 0 || delay <= 0 || delay > 0xffffffffLL) return false;
    auto next = stagewright::insertDelay(m_schedule, rank, static_cast<std::size_t>(at), static_cast<std::uint32_t>(delay));
    if (!next) return false;
    push(tr("Insert delay on rank %1").arg(rank), std::move(next->schedule));
    return true;
}

bool ScheduleEditor::removeDelay(OpPosition at)
{
    if (!m_active || !at.valid()) return false;
    auto next = stagewright::removeDelay(m_schedule, at.rank, static_cast<std::size_t>(at.position));
    if (!next) return false;
    push(tr("Remove delay on rank %1").arg(at.rank), std::move(next->schedule));
    return true;
}

void ScheduleEditor::revert()
{
    if (m_active && changed()) push(tr("Back to the original"), m_original);
}

void ScheduleEditor::preview(OpPosition from, int to)
{
    if (!m_active || !from.valid() || to < 0) return;
    auto moved = moveOp(m_schedule, from.rank, static_cast<std::size_t>(from.position), static_cast<std::size_t>(to));
    if (!moved) return;
    if (m_preview && *m_preview == moved->schedule) return;
    m_preview = std::make_unique<Schedule>(std::move(moved->schedule));
    refresh();
    emit edited();
}

void ScheduleEditor::cancelPreview()
{
    if (!m_preview) return;
    m_preview.reset();
    adopt(m_schedule);
}

void ScheduleEditor::replace(const QString& text, Schedule next)
{
    if (m_active && !(next == m_schedule)) push(text, std::move(next));
}

void ScheduleEditor::push(const QString& text, Schedule next, int mergeId)
{
    m_preview.reset();
    m_undo.push(new OrderCommand(*this, text, m_schedule, std::move(next), mergeId));
}

void ScheduleEditor::adopt(const Schedule& schedule)
{
    m_preview.reset();
    m_schedule = schedule;
    refresh();
    emit edited();
}

void ScheduleEditor::refresh()
{
    const Schedule& order = shown();
    m_validation = validate(order);
    SimResult result;
    auto simulated = m_validation.valid() ? simulate(order, m_costs) : Result<SimResult>(fail(ErrorCode::Invalid, {}));
    if (simulated)
        result = std::move(*simulated);
    else
        result = placeRelaxed(order, m_costs);
    m_figures = editFigures(order, result);
    auto timeline = timelineOf(order, result, m_costs);
    if (timeline) m_timeline = *timeline; // else the last picture stays
}

OpPosition ScheduleEditor::positionOf(SpanId span) const
{
    if (!m_timeline || span == noSpan || span >= m_timeline->spans().size()) return {};
    const Track& track = m_timeline->trackOf(span);
    if (track.lane != Lane::Compute || track.rank >= static_cast<int>(shown().order.size())) return {};
    // Spans of a compute track stand in list order, but for zero durations and overlapped pairs: look near, then far.
    const auto& row = shown().order[static_cast<std::size_t>(track.rank)];
    const Op& op = m_timeline->spans()[span].op;
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
    const Track* track = m_timeline->trackOf(position.rank, Lane::Compute);
    if (track == nullptr) return noSpan;
    const Op& op = row[static_cast<std::size_t>(position.position)];
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
        for (const Wait& wait : m_validation.cycle)
            add(wait.rank, wait.position);
    return spans;
}

} // namespace stagewright
