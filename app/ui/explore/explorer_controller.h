// ExplorerController: the explorer's page in the window. Simulates the points that its sliders request, off the GUI
// thread, latest request first; opens and saves points; writes the table and the plots.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include <QObject>
#include <QThreadPool>
#include <QTimer>

#include "app/ui/workspace/feature.h"
#include "schedules/base/result.h"
#include "widgets/explore/explore_view.h"
#include "widgets/export/picture.h"
#include "widgets/job.h"

namespace stagewright {

class ExplorerController : public Feature {
    Q_OBJECT
public:
    explicit ExplorerController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    FeatureParts parts() override;

    ExploreView* view() { return m_view; }
    bool shown() const;
    void setShown(bool shown);
    bool settled() const override { return !m_later.isActive(); }

    // Adds the simulated point to a run file (created if absent); answers on the GUI thread.
    void saveAsRun(const Setup& point, const QString& path, std::function<void(Result<void>)> answer = {});
    Result<void> writeTable(const QString& path) const;
    // Alpa's plan of the page Planners as a layout, likewise.
    void saveLayout(const QString& path, std::function<void(Result<void>)> answer = {});
    // Adds the simulated pipeline of a way of the page Choose, likewise.
    void saveWayAsRun(int way, const QString& path, std::function<void(Result<void>)> answer = {});
    // As png, svg or pdf, by suffix; for paper unless the style says otherwise.
    Result<void> writePicture(ExplorePlot plot, const QString& path, const PictureStyle& style = paperStyle()) const;

private:
    static PictureStyle paperStyle()
    {
        PictureStyle style;
        style.look = PictureStyle::Look::Paper;
        return style;
    }
    struct Growing; // rows as they arrive

    void ask();
    void askSurvey();
    void askState();
    void askMixed();   // its topic Uneven ranks
    void askWays();    // of the page Choose: in closed form, then simulated
    void takeLayers(); // of the shown run, for Choose
    void takeJobs();   // of the shown run's file, for Planners
    void simulateWays(const WaysQuestion& question);
    void saveWay(int way);
    void trainWay(const QString& command); // stagewright record …, in the dialog
    void askProblem();                     // of the page Planners, at once
    void openProblem();
    void askChart(const std::vector<std::string>& schedules);
    void nextState(); // simulates the next schedule of the page State
    void grow();      // shows the rows that have arrived
    void askPreview(int row);
    void open(const Setup& point);
    void saveAsked(const Setup& point);
    QString askedRunFile(); // where to save; empty: nowhere
    void saveMade(std::function<Result<Run>()> made, const QString& path, std::function<void(Result<void>)> answer);
    void cancel();
    QString setup(ExplorePlot plot) const; // what was simulated, in a sentence

    ExploreView* m_view;
    QThreadPool m_pool; // a sweep and a survey
    QThreadPool m_previewPool;
    Job m_sweep;
    Job m_survey;
    Job m_preview;
    Job m_stateJob;
    Job m_waysJob;
    Job m_problemJob;
    StateQuestion m_stateQuestion;
    std::vector<StateRow> m_stateRows; // those done have cells
    std::size_t m_stateNext = 0;
    std::shared_ptr<Growing> m_sweepRows;
    std::shared_ptr<Growing> m_surveyRows;
    std::shared_ptr<LinesPicture> m_lines; // of the running survey
    std::shared_ptr<HeatPicture> m_heat;
    QTimer m_growth;
    QTimer m_waysBeat; // shows how many ways are simulated
    std::shared_ptr<std::atomic<int>> m_waysDone;
    QTimer m_later; // the survey waits until the sliders rest
    bool m_everShown = false;
};

} // namespace stagewright
