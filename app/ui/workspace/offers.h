// What features offer each other: interfaces that a feature implements and others reach with
// Workspace::feature<Interface>().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <QString>
#include <QStringList>

#include "schedules/library/registry.h"
#include "traces/compare/compare.h"
#include "traces/run/notes.h"
#include "widgets/export/picture.h"
#include "widgets/panel/op_query.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

class RecordDialog;
class RecordProcess;
class ScheduleEditor;
struct Block;
struct Setup;
struct RunView;
struct ShownSteps;

class FileOpening {
public:
    // runs, schedules, blocks, lessons; traces open the import dialog
    virtual void openFiles(const QStringList& paths) = 0;
    // several files at once are one job: those that are not traces are opened
    virtual void openDropped(QStringList paths) = 0;
    virtual void closeFile(const QString& path) = 0; // shows another run if it held the one shown
    virtual void remember(const QString& path) = 0;  // as opened recently
    virtual QStringList recentFiles() const = 0;
    virtual void openOrder(const Schedule& schedule, const QString& path) = 0; // simulates it, or shows why it hangs

protected:
    ~FileOpening() = default;
};

class LibraryOpening {
public:
    // as a simulated run
    virtual void newFromLibrary(const QString& name, const Shape& shape, const CostModel::UnitCosts& costs = {}) = 0;
    // in the block editor
    virtual void openBlock(const Block& block) = 0;

protected:
    ~LibraryOpening() = default;
};

// Ops that are not placed.
class TrayOfOps {
public:
    // Whether it is shown, and whether it offers to place them all.
    virtual void setTray(bool shown, bool placesAll) = 0;
    virtual void takeKeys() = 0; // to place ops, if it is shown

protected:
    ~TrayOfOps() = default;
};

class OrderEditing {
public:
    virtual ScheduleEditor& editor() = 0;
    virtual const std::shared_ptr<const RunView>& source() const = 0; // the run whose order is edited
    virtual void enterEdit() = 0;
    virtual void leaveEdit() = 0;
    // Opens a run that is in memory only and edits it, with `order` as a change of this name.
    virtual void editRun(Run run, const QString& change, Schedule order) = 0;
    // An order with missing ops and no other fault, as a run of this name; false: not such an order.
    virtual bool editIncomplete(const Schedule& order, const QString& name = {}) = 0;
    virtual void compareWith(const QString& name) = 0; // a library schedule; empty: none
    virtual void saved() = 0;                          // the order as it is now is on disk
    virtual void recorded(const Schedule& order) = 0;  // it was trained, and its run is in a file
    virtual void redraw() = 0;                         // with another budget
    virtual bool offersRecovery() const = 0;           // of an edit from an earlier window
    virtual TrayOfOps& tray() = 0;
    // A lesson keeps the order: it is not saved for recovery, and not listed when edit mode is left.
    virtual void setKeptElsewhere(bool kept) = 0;
    virtual void setMoves(bool on) = 0; // ops can be dragged; every edit starts so
    virtual bool moves() const = 0;

protected:
    ~OrderEditing() = default;
};

class Recording {
public:
    virtual RecordProcess* process() = 0;
    virtual RecordDialog* openRecordDialog() = 0; // not modal; deleted when closed
    // The same with what the run shown was recorded with, its conditions included; null: it has no order.
    virtual RecordDialog* recordAgain() = 0;
    // aside: for a lesson, which reads the file itself: nothing is listed, shown or said here.
    virtual void startRecording(const Setup& setup, const QString& target, bool targetIsNew, bool aside = false) = 0;
    // follows one that runs elsewhere and writes its runs there
    virtual void attach(const QString& job, const QString& file) = 0;
    // trains the edited order with the source's setup, then compares
    virtual void runEdited() = 0;
    virtual bool isRecordingInto(const QString& file) const = 0;
    virtual bool awaits(const QString& file) const = 0;    // the file that a running recording writes
    virtual bool isScratch(const QString& file) const = 0; // deleted with the window
    // The running recording: the file that the child writes and the file that finally gets its runs. Empty: none.
    virtual std::pair<QString, QString> recordingFiles() const = 0;
    // Recovers the runs of a window that ended during a recording: adds them to `target` and says so.
    virtual void takeUpRecording(const QString& file, const QString& target) = 0;

protected:
    ~Recording() = default;
};

class OrderPlanning {
public:
    // The planner's dialog for the order that is shown or edited; cap: activations of a rank, nothing: none.
    virtual void planOrder(std::optional<Bytes> cap) = 0;
    // For another order, which is then opened as a run and edited.
    virtual void planFor(const Schedule& order, const CostModel& costs, const QString& name,
                         std::optional<Bytes> cap) = 0;

protected:
    ~OrderPlanning() = default;
};

class WhatIfAsking {
public:
    virtual void askWhatIf(const QString& changes) = 0; // of the run shown, as in simulate --what-if

protected:
    ~WhatIfAsking() = default;
};

class RunComparing {
public:
    // two to four; the first is A
    virtual void show(const std::vector<RunRef>& refs, int step = -1) = 0;
    // and the prediction error
    virtual void showPredicted(const RunRef& original, const RunRef& predicted, const RunRef& measured) = 0;
    // to those shown; again: removes it
    virtual void add(const RunRef& ref) = 0;
    // invalid: none
    virtual void setBaseline(const RunRef& ref) = 0;
    virtual const std::vector<std::shared_ptr<const RunView>>& shown() const = 0;
    // the run of the tabs Summary and Selection; null: no comparison is shown
    virtual const std::shared_ptr<const RunView>& beside() const = 0;

protected:
    ~RunComparing() = default;
};

class PlanComparing {
public:
    virtual void compareWithPlan(const RunRef& measured) = 0; // the plan is A; it is added to the simulated runs

protected:
    ~PlanComparing() = default;
};

class OpFinding {
public:
    // What else found something, a query or rules: marked in place of what a search found. Spans are sorted by id.
    virtual void mark(std::shared_ptr<const std::vector<SpanId>> spans, std::vector<Nanos> moments = {}) = 0;
    virtual void find(const QString& text, bool backward = false) = 0; // the next match; a new text searches first
    virtual void restart(bool backward) = 0;                           // the first match again, or the last
    virtual void clear() = 0;                                          // no matches, no marks

protected:
    ~OpFinding() = default;
};

class StepReading {
public:
    virtual void fit(const ShownSteps& steps) = 0; // zooms to them
    // the next step with a match, with its details
    virtual void findOn(const QString& text, const OpQuery& query, bool backward) = 0;

protected:
    ~StepReading() = default;
};

class NoteKeeping {
public:
    virtual const std::vector<Note>& notes(const RunRef& ref) const = 0; // known ones: own, then carried over
    virtual void addNote(const RunRef& ref, Note note) = 0;              // undoable; without an id
    virtual void forget(const RunRef& ref) = 0;                          // read again

protected:
    ~NoteKeeping() = default;
};

class PictureMaking {
public:
    virtual PictureContent picture() const = 0; // what the views show; without parts if nothing is shown

protected:
    ~PictureMaking() = default;
};

class TraceImporting {
public:
    // in the import dialog; no file: the one used last
    virtual void openTraces(const QStringList& traces, const QString& rulesFile = {}) = 0;

protected:
    ~TraceImporting() = default;
};

class OrderExporting {
public:
    virtual void exportOrder() = 0; // asks for a place and writes the order shown as a schedule that can be read again

protected:
    ~OrderExporting() = default;
};

class LessonOpening {
public:
    virtual void openFile(const QString& path) = 0; // a teacher's lesson; listed from then on

protected:
    ~LessonOpening() = default;
};

} // namespace stagewright
