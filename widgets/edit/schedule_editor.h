// ScheduleEditor: a schedule under change, apart from every view. It keeps the original beside the current order, checks
// and times the order after each change, and owns the undo stack. Costs are those given to start(); an order that can't
// run is timed with its unmet needs left out, so that it can still be drawn.
//
// While the user drags, preview() shows an order without committing it; commit happens through move(). GUI thread only.
#pragma once

#include <memory>

#include <QObject>
#include <QUndoStack>

#include "schedules/cost_model.h"
#include "schedules/edit.h"
#include "schedules/schedule.h"
#include "schedules/simulate.h"
#include "schedules/timeline/timeline.h"
#include "schedules/validate.h"

namespace stagewright {

struct EditFigures {
    Nanos makespan = 0;
    double bubbleFraction = 0;
    Bytes peakActivation = 0; // of the rank with the largest
    int peakRank = 0;
};

// Where an op of the schedule stands.
struct OpPosition {
    int rank = -1;
    int position = -1;
    bool valid() const { return rank >= 0 && position >= 0; }
    bool operator==(const OpPosition&) const = default;
};

class ScheduleEditor : public QObject {
    Q_OBJECT
public:
    explicit ScheduleEditor(QObject* parent = nullptr);
    ~ScheduleEditor() override;

    // Begins with a schedule; clears the undo stack. The original's figures are those of `schedule` under `costs`.
    void start(const Schedule& schedule, const CostModel& costs);
    bool active() const { return m_active; }
    void stop();

    const Schedule& schedule() const { return m_schedule; } // the committed order
    const Schedule& shown() const;                          // the preview where there is one
    const Schedule& original() const { return m_original; }
    const CostModel& costs() const { return m_costs; }
    const Validation& validation() const { return m_validation; } // of shown()
    bool valid() const { return m_validation.valid(); }
    bool changed() const { return !(m_schedule == m_original); }
    const std::shared_ptr<const Timeline>& timeline() const { return m_timeline; } // of shown(); null while inactive
    const EditFigures& figures() const { return m_figures; }                       // of shown()
    const EditFigures& originalFigures() const { return m_originalFigures; }
    QUndoStack* undoStack() { return &m_undo; }

    // Moves the op to `to` (position in the list without it). False: nothing to do, or no such op.
    bool move(OpPosition from, int to);
    // Moves by one place to the left (−1) or right (+1); repeated nudges of one op undo as one.
    bool nudge(OpPosition from, int by);
    bool insertDelay(int rank, int at, Nanos delay);
    bool removeDelay(OpPosition at); // false unless a filler stands there
    void replace(const QString& text, Schedule next); // another order, as one undoable change named so
    void revert();                   // back to the original, as one undoable change

    void preview(OpPosition from, int to);
    void cancelPreview();
    bool previewing() const { return m_preview != nullptr; }

    // The position of a compute span of timeline() in shown(); invalid for other lanes.
    OpPosition positionOf(SpanId span) const;
    SpanId spanAt(OpPosition position) const; // noSpan where there is none
    // Both ops of the first fault, for outlining; empty while valid.
    std::vector<SpanId> faultSpans() const;

signals:
    void edited(); // shown(), validation(), timeline() or figures() changed

private:
    class OrderCommand;
    void push(const QString& text, Schedule next, int mergeId = -1);
    void adopt(const Schedule& schedule);
    void refresh();

    bool m_active = false;
    Schedule m_original;
    Schedule m_schedule;
    std::unique_ptr<Schedule> m_preview;
    CostModel m_costs;
    Validation m_validation;
    std::shared_ptr<const Timeline> m_timeline;
    EditFigures m_figures;
    EditFigures m_originalFigures;
    QUndoStack m_undo;
};

// List execution that never stops: where no rank can go on, the first head op (by rank) starts without its unmet inputs.
// Equal to simulate() for an order that runs. O(ops × ranks) at worst.
SimResult placeRelaxed(const Schedule& schedule, const CostModel& costs);

} // namespace stagewright
