// ScheduleEditor: a schedule being edited, independent of any view. It keeps the original beside the current order,
// checks and times the order after each change, and owns the undo stack. Costs are those given to start(); an order
// that can't run is timed without its unmet needs, so that it can still be drawn.
//
// While the user drags, a preview shows an order without committing it. GUI thread only.
#pragma once

#include <memory>

#include <QObject>
#include <QUndoStack>

#include "schedules/check/validate.h"
#include "schedules/edit/edit.h"
#include "schedules/edit/edit_ops.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

struct EditFigures {
    Nanos makespan = 0;
    double bubbleFraction = 0;
    Bytes peakActivation = 0; // of the rank with the largest
    int peakRank = 0;
    std::vector<Bytes> peaks; // by rank
    std::vector<Nanos> busy;  // by rank
    Nanos window = 0;         // from the first op to the last, of which that is a share
};
EditFigures editFigures(const Schedule& schedule, const SimResult& result);

class ScheduleEditor : public QObject {
    Q_OBJECT
public:
    explicit ScheduleEditor(QObject* parent = nullptr);
    ~ScheduleEditor() override;

    // Starts with a schedule; clears the undo stack. The original's figures are those of `schedule` under `costs`.
    // channels: how its messages travel; not ones that need sends and receives in the lists.
    void start(const Schedule& schedule, const CostModel& costs, const Channels& channels = {});
    // New costs for the same edit: order, original and undo stack stay, and both orders are timed again. Ends a
    // preview.
    void setCosts(const CostModel& costs);
    bool active() const { return m_active; }
    void stop();

    const Schedule& schedule() const { return m_schedule; } // the committed order
    const Schedule& shown() const;                          // the preview if there is one
    const Schedule& original() const { return m_original; }
    const CostModel& costs() const { return m_costs; }
    const Channels& channels() const { return m_channels; }
    const Validation& validation() const { return m_validation; } // of shown()
    bool valid() const { return m_validation.valid(); }
    bool changed() const { return !(m_schedule == m_original); }
    const SimResult& times() const { return m_times; } // of shown()
    // The picture of shown(); null while inactive. Above detailLimit ops, and for a preview, only the compute spans.
    const std::shared_ptr<const Timeline>& timeline() const { return m_timeline; }
    const EditFigures& figures() const { return m_figures; } // of shown()
    const EditFigures& originalFigures() const { return m_originalFigures; }
    const EditFigures& committedFigures() const { return m_preview ? m_committed.figures : m_figures; } // of schedule()
    bool committedValid() const { return (m_preview ? m_committed.validation : m_validation).valid(); }
    const std::vector<OpPosition>& touched() const { return m_touched; } // current places of the ops of the last change
    bool complete() const { return m_unplaced.empty(); }
    const std::vector<Op>& unplaced() const { return m_unplaced; } // of schedule()
    QUndoStack* undoStack() { return &m_undo; }

    static constexpr std::size_t detailLimit = 4000; // up to this many ops are computed in full at once

    // Applies a change computed elsewhere; a merge id ≥ 0 merges it with the previous change of the same id. False: an
    // error, reported by refused(), or nothing changed.
    bool apply(const QString& text, Result<Edited> edited, int mergeId = -1);
    // Moves the op to `to` (position in the list without it). False: nothing to do, or no such op.
    bool move(OpPosition from, int to);
    // Moves by one place to the left (−1) or right (+1); repeated nudges of one op undo as one.
    bool nudge(OpPosition from, int by);
    bool insertDelay(int rank, int at, Nanos delay);
    bool removeDelay(OpPosition at); // false unless there is a filler
    // another order, as one undoable change of this name
    void replace(const QString& text, const Schedule& next, int mergeId = -1);
    // back to the original, as one undoable change
    void revert();

    // The full timeline of schedule(), computed elsewhere; replaces timeline().
    void setDetailed(std::shared_ptr<const Timeline> timeline);

    void preview(OpPosition from, int to);
    void preview(Schedule order, std::vector<OpPosition> touched);
    void cancelPreview();
    bool previewing() const { return m_preview != nullptr; }

    // The position of a compute span of timeline() in shown(); invalid for other lanes.
    OpPosition positionOf(SpanId span) const;
    SpanId spanAt(OpPosition position) const; // noSpan where there is none
    // Both ops of the first fault, for outlining; empty while valid.
    std::vector<SpanId> faultSpans() const;

signals:
    // the committed order changed: shown(), validation(), timeline() or figures()
    void edited();
    void previewed();                              // a preview is shown, or ended
    void refused(const stagewright::Error& error); // a change that can't be made

private:
    class OrderCommand;
    void push(const QString& text, const Schedule& next, std::vector<OpPosition> touched, int mergeId = -1);
    void adopted(std::vector<OpPosition> touched); // m_schedule was changed
    void refresh();

    bool m_active = false;
    bool m_endsMeansValid = false; // of m_schedule: a permutation of a rank's list is valid where it ends
    Schedule m_original;
    Schedule m_schedule;
    std::unique_ptr<Schedule> m_preview;
    struct Results {
        Validation validation;
        SimResult times;
        std::shared_ptr<const Timeline> timeline;
        EditFigures figures;
        std::vector<OpPosition> touched;
    };
    Results m_committed; // of m_schedule, while a preview is shown
    CostModel m_costs;
    Channels m_channels;
    Validation m_validation;
    SimResult m_times;
    std::shared_ptr<const Timeline> m_timeline;
    EditFigures m_figures;
    EditFigures m_originalFigures;
    std::vector<OpPosition> m_touched;
    std::vector<Op> m_unplaced;
    QUndoStack m_undo;
};

} // namespace stagewright
