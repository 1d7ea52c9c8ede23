// RunLibrary: the open files and the runs read from them. Lists and reads on worker threads, caches recent runs, and
// feeds the RunsModel (state, time and bubble ratio of every run). In-memory runs are also here, under a path
// "sim:NAME". GUI thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include <QObject>
#include <QThreadPool>

#include "app/ui/runs/run_view.h"
#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/run/notes.h"
#include "widgets/literals.h"
#include "widgets/panel/op_query.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

struct LargeRun;
struct RunLanes;

class RunLibrary : public QObject {
    Q_OBJECT
public:
    using Answer = std::function<void(Result<std::shared_ptr<const RunView>>)>;

    explicit RunLibrary(QObject* parent = nullptr);
    ~RunLibrary() override; // waits for its workers

    RunsModel* model() { return &m_model; }
    static QString normalised(const QString& path); // absolute, clean; "sim:" paths as they are

    void open(const QString& path);    // lists its runs; listed() or failed() follows
    void reload(const QString& path);  // lists again; cached runs that changed are read again
    void refresh(const QString& path); // reads everything in it again
    void close(const QString& path);
    // Adds an in-memory run and returns its reference. A run of the same name is replaced.
    RunRef addSimulated(Run run);
    // Runs of a lesson: not in the list, the session or the files saved with it, until closeAside().
    RunRef addAside(Run run);
    void setAside(const QString& path); // likewise a file, before it is opened
    bool isAside(const QString& path) const { return m_model.isHidden(normalised(path)); }
    void closeAside();
    // listed ones, in the order they were added
    std::vector<std::pair<RunRef, std::shared_ptr<const Run>>> simulatedRuns() const;
    bool isSimulated(const QString& path) const { return path.startsWith("sim:"_L1); }
    std::shared_ptr<const Run> cachedRun(const RunRef& ref) const; // null: not read yet

    // A step of a run. The answer may come before this returns (a step shown before) or later; every request is
    // answered once, in no fixed order.
    void request(const RunRef& ref, int step, Answer answer);
    // Several steps of it on one axis.
    void requestSteps(const RunRef& ref, const ShownSteps& steps, Answer answer);
    bool isLarge(const RunRef& ref) const; // more than a million spans: read in parts
    // Every step of a large run on one axis, with the figures and details of one of them (−1: the representative step).
    // The stored overview comes first (`preview`, at most once), then the lanes; a newer request cancels an older one,
    // which is then answered with an Error (Cancelled).
    void requestEveryStep(const RunRef& ref, int detail, std::function<void(std::shared_ptr<const RunView>)> preview,
                          Answer answer);
    // The overview of such a run with as many buckets as memory allows: the first picture has few.
    void requestFineOverview(const RunRef& ref, Answer answer);
    // The run with a step too large for a timeline that was shown last; null: another one.
    std::shared_ptr<const LargeRun> vastRun(const RunRef& ref) const;
    // A part of it, drawn into `base` (readExcerptView). A newer request cancels an older one, which is then answered
    // with an Error (Cancelled).
    void requestExcerpt(const RunRef& ref, std::shared_ptr<const TimelinePanel> base, Nanos begin, Nanos end,
                        Answer answer);
    // As findStep(), of the run whose every step is shown.
    void requestMatch(const RunRef& ref, const OpQuery& query, int from, bool backward,
                      std::function<void(Result<int>)> answer);
    void cancelEveryStep(); // cancels reading it, or searching it
    bool readsEveryStep() const { return m_stopLanes.has_value(); }
    // A step of a run that is being recorded, without reading those before it; not kept.
    void requestNewest(const RunRef& ref, int step, Answer answer);
    void setBudget(const MemoryBudget& budget); // for views made from now on; earlier ones are dropped
    const MemoryBudget& budget() const { return m_choices.budget; }
    void setKernelsByClass(bool byClass); // the same
    bool kernelsByClass() const { return m_choices.kernelsByClass; }
    // Notes on in-memory runs, written with them by saveCopy().
    void setNotesSource(std::function<std::vector<Note>(const RunRef&)> notes) { m_notes = std::move(notes); }
    // Writes every run of `path` to `target` (temporary name, then renamed).
    void saveCopy(const QString& path, const QString& target, std::function<void(Result<void>)> answer);
    // Appends the runs of `other` to the file `path`, each under a unique name; answers with the new ids.
    void adopt(const QString& path, const QString& other, std::function<void(Result<std::vector<qint64>>)> answer);
    void rename(const RunRef& ref, const QString& name); // in its file, or in memory
    void remove(const RunRef& ref);
    bool busy() const { return m_reading > 0; }
    QString takeRemark(const QString& path); // what of an opened file is missing or not read, once; mostly empty

signals:
    void listed(const QString& path, const std::vector<stagewright::RunRef>& refs);
    void failed(const QString& path, const stagewright::Error& error);
    void busyChanged();
    void wrote(const QString& path);               // by this library
    void simulatedChanged();                       // a run in memory was added, replaced or closed
    void lanesProgress(qint64 done, qint64 total); // spans of the run whose every step is being read

private:
    struct Cached {
        RunRef ref;
        qint64 spans = 0;
        int steps = 0;
        RunState state = RunState::Complete;
        std::shared_ptr<const Run> run;
        std::map<int, std::shared_ptr<const RunView>> views;
        std::shared_ptr<const LargeRun> large; // of a run that is read in parts
    };
    RunRef addTo(const QString& path, Run run);
    void requestPart(const RunRef& ref, int step, Answer answer);
    void readEveryStep(const std::shared_ptr<const LargeRun>& large, const std::shared_ptr<const RunView>& detail,
                       std::shared_ptr<const RunView> overview, Answer answer);
    std::function<void(std::string_view, std::int64_t, std::int64_t)> reporter();
    void dropLanes(); // off the GUI thread: freeing hundreds of megabytes takes time
    Cached* cached(const RunRef& ref);
    void keep(const std::shared_ptr<const RunView>& view, int askedStep);
    void list(const QString& path);
    void summarise(const std::vector<RunRef>& refs);
    void setBusy(int change);
    template <typename Work, typename Done>
    void inPool(Work work, Done done, QThreadPool* pool = nullptr);
    template <typename Work, typename Done>
    void inPoolUntilStopped(std::optional<std::stop_source>& place, decltype(Progress::report) report, Work work,
                            Done done);
    template <typename Change>
    void change(const RunRef& ref, Change apply);

    std::function<std::vector<Note>(const RunRef&)> m_notes;
    RunsModel m_model;
    ViewChoices m_choices;
    std::map<QString, QString> m_remarks; // of open files; empty once it was taken
    std::vector<Cached> m_cache;          // most recently used first
    std::map<QString, std::vector<std::shared_ptr<const Run>>> m_simulated;
    QThreadPool m_pool;     // reading for the screen
    QThreadPool m_slowPool; // summaries, one at a time
    int m_reading = 0;
    std::shared_ptr<const LargeRun> m_lanesOf; // source of m_lanes
    std::shared_ptr<const LargeRun> m_vast;    // opened, and now shown as a whole
    std::shared_ptr<const RunLanes> m_lanes;   // of the run whose every step was shown last
    std::optional<std::stop_source> m_stopLanes;
    std::optional<std::stop_source> m_stopExcerpt;
};

} // namespace stagewright
