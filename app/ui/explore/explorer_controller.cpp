#include "app/ui/explore/explorer_controller.h"

#include <cmath>
#include <mutex>

#include <QFileDialog>
#include <QFileInfo>
#include <QPushButton>
#include <QSettings>
#include <fmt/format.h>

#include "app/costs/survey_runs.h"
#include "app/ui/workspace/actions.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/base/small_file.h"
#include "schedules/base/text.h"
#include "schedules/layout/layout.h"
#include "schedules/library/registry.h"
#include "schedules/setup/keys.h"
#include "schedules/survey/memory.h"
#include "traces/fit/measured_step.h"
#include "traces/fit/recorded_jobs.h"
#include "traces/fit/recorded_lines.h"
#include "traces/format/atomic_file.h"
#include "traces/plot/plot_files.h"
#include "traces/run/run_facts.h"
#include "traces/run/simulated_run.h"
#include "traces/store/run_file.h"
#include "widgets/background.h"
#include "widgets/explore/survey_text.h"
#include "widgets/library/schedule_preview.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/plot/painter_canvas.h"
#include "widgets/record/record_dialog.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

struct ExplorerController::Growing {
    std::mutex mutex;
    std::vector<SweepRow> rows;
    std::size_t done = 0;
    bool changed = false;

    explicit Growing(const std::vector<Setup>& points) : rows(points.size())
    {
        for (std::size_t i = 0; i < points.size(); ++i) rows[i].point = points[i];
    }
    // Simulates the points, on the pool.
    void fill(const std::vector<Setup>& points, const Progress& progress)
    {
        sweep(points, exploreSource(), progress, [this](std::size_t i, const SweepRow& row) {
            const std::lock_guard lock(mutex);
            rows[i] = row;
            ++done;
            changed = true;
        });
    }
};

std::vector<ActionEntry> ExplorerController::actionTable()
{
    return {
        item("explorer", ActionGroup::AnalyseCompare, u"E&xplorer"_s, "Ctrl+Shift+E",
             u"Every library schedule for a shape, costs and a memory cap: memory against time, and over one "
             "or two parameters"_s,
             {.at = 30, .checkable = true}),
    };
}

namespace {

Result<WaysAnswer> waysOf(WaysQuestion asked, const Progress& progress = {})
{
    STAGEWRIGHT_TRY(const auto question, withRecordedLayers(std::move(asked)));
    return waysSurvey(question, progress);
}

} // namespace

ExplorerController::ExplorerController(Workspace& workspace)
    : Feature(workspace), m_view(new ExploreView(workspace.window())), m_sweep(workspace.jobs()),
      m_survey(workspace.jobs()), m_preview(workspace.jobs()), m_stateJob(workspace.jobs()),
      m_waysJob(workspace.jobs()), m_problemJob(workspace.jobs())
{
    m_pool.setMaxThreadCount(2);
    m_previewPool.setMaxThreadCount(1);
    m_view->setTheme(workspace.theme());
    connect(&workspace, &Workspace::themeChanged, this, [this] { m_view->setTheme(m_workspace.theme()); });
    QAction* action = workspace.actions()["explorer"];
    connect(action, &QAction::triggered, this, &ExplorerController::setShown);
    connect(&workspace.shown(), &Shown::modeChanged, this, [this, action] { action->setChecked(shown()); });
    connect(m_view, &ExploreView::closeAsked, this, [this] { setShown(false); });
    connect(m_view, &ExploreView::questionChanged, this, &ExplorerController::ask);
    connect(m_view, &ExploreView::surveyChanged, this, [this] { m_later.start(); });
    connect(m_view, &ExploreView::stateChanged, this, [this] { m_later.start(); });
    connect(m_view->state()->picture(), &StatePicture::activated, this,
            [this](const QString& schedule) { open(m_view->question().point(schedule.toStdString())); });
    connect(m_view, &ExploreView::previewAsked, this, &ExplorerController::askPreview);
    connect(m_view, &ExploreView::openAsked, this, &ExplorerController::open);
    connect(m_view, &ExploreView::saveAsked, this, &ExplorerController::saveAsked);
    connect(m_view->findChild<QPushButton*>(u"planOrder"_s), &QPushButton::clicked, this, [this] {
        const SweepRow* chosen = m_view->rowAt(m_view->selected());
        if (chosen == nullptr || !chosen->good()) return;
        const Setup point = chosen->point;
        const auto made = preparedCase(point);
        if (!made) return m_workspace.banner()->showError(QString(), made.error());
        const double cap = m_view->question().cap;
        m_workspace.feature<OrderPlanning>()->planFor(
            made->state.schedule, made->costs, scheduleTitle(point.schedules.front()),
            cap > 0 ? std::optional(static_cast<Bytes>(std::llround(cap * static_cast<double>(made->costs.memoryUnit))))
                    : std::nullopt);
    });
    connect(m_view, &ExploreView::cancelAsked, this, &ExplorerController::cancel);
    connect(m_view, &ExploreView::csvAsked, this, [this] {
        const QString path =
            QFileDialog::getSaveFileName(m_workspace.window(), u"Table as CSV"_s, u"explore.csv"_s, u"CSV (*.csv)"_s);
        if (path.isEmpty()) return;
        if (auto done = writeTable(path); !done) m_workspace.banner()->showError(QString(), done.error());
    });
    connect(m_view, &ExploreView::pictureAsked, this, [this](ExplorePlot plot) {
        const QString path =
            QFileDialog::getSaveFileName(m_workspace.window(), u"Export the plot"_s, u"explore.svg"_s,
                                         u"Pictures (*.svg *.pdf *.png);;Points (*.csv);;TikZ (*.tex)"_s);
        if (path.isEmpty()) return;
        if (auto done = writePicture(plot, path); !done) m_workspace.banner()->showError(QString(), done.error());
    });
    connect(m_view->ways(), &ChooseView::openAsked, this, &ExplorerController::saveWay);
    connect(m_view->ways(), &ChooseView::trainAsked, this, &ExplorerController::trainWay);
    connect(m_view->ways(), &ChooseView::measuredAsked, this, &ExplorerController::takeLayers);
    connect(m_view->planner(), &PlannerView::questionChanged, this, &ExplorerController::askProblem);
    connect(m_view->planner(), &PlannerView::openAsked, this, &ExplorerController::openProblem);
    connect(m_view->planner(), &PlannerView::layoutAsked, this, [this] {
        const QString path = QFileDialog::getSaveFileName(m_workspace.window(), u"Save layout"_s, u"layout.json"_s,
                                                          u"Layouts (*.json)"_s);
        if (!path.isEmpty()) saveLayout(path);
    });
    connect(m_view->planner(), &PlannerView::runsAsked, this, &ExplorerController::takeJobs);
    m_waysBeat.setInterval(100);
    connect(&m_waysBeat, &QTimer::timeout, this, [this] {
        if (!m_waysJob.running()) return m_waysBeat.stop();
        m_view->setWork(u"simulating way %1"_s.arg(m_waysDone->load() + 1), true);
    });
    m_growth.setInterval(40);
    connect(&m_growth, &QTimer::timeout, this, &ExplorerController::grow);
    m_later.setSingleShot(true);
    m_later.setInterval(120);
    connect(&m_later, &QTimer::timeout, this, &ExplorerController::askSurvey);
}

FeatureParts ExplorerController::parts() { return {.pages = {m_view}}; }

bool ExplorerController::shown() const { return m_view->isVisibleTo(m_workspace.window()); }

void ExplorerController::setShown(bool shown)
{
    m_workspace.room().showPage(shown ? m_view : nullptr, u"Explorer"_s);
    m_workspace.actions()["explorer"]->setChecked(shown);
    if (!shown) {
        cancel();
        return;
    }
    if (!m_everShown) {
        m_everShown = true;
        m_view->restore();
    }
    ask();
    m_view->pareto()->setFocus();
}

void ExplorerController::ask()
{
    if (!shown()) return;
    m_survey.drop(); // of the question before
    const ExploreQuestion question = m_view->question();
    std::vector<Setup> points = memoryPoints(question);
    auto growing = std::make_shared<Growing>(points);
    m_sweepRows = growing;
    m_growth.start();
    m_view->setWork(u"simulating…"_s, true);
    m_sweep.start(
        [points = std::move(points), question, growing](const std::stop_token& stop) {
            Progress progress;
            progress.stop = stop;
            growing->fill(points, progress);
            return boundsOf(question, progress);
        },
        [this](std::vector<ExploreBound> bounds) {
            grow();
            m_view->setBounds(std::move(bounds));
            if (m_view->selected() < 0) m_view->selectFrontier();
            m_later.start();
        },
        &m_pool);
}

void ExplorerController::askState()
{
    m_stateJob.drop();
    m_stateQuestion = m_view->state()->question(m_view->question());
    m_stateRows.clear();
    m_stateNext = 0;
    for (const std::string& name : stateSchedules()) m_stateRows.push_back({name, {}});
    nextState();
}

void ExplorerController::nextState()
{
    m_view->state()->setRows(std::make_shared<const std::vector<StateRow>>(m_stateRows), m_stateQuestion);
    const std::size_t all = m_stateRows.size();
    m_view->setWork(m_stateNext < all ? u"%1 of %2 schedules"_s.arg(m_stateNext).arg(all) : u"%1 schedules"_s.arg(all),
                    m_stateNext < all);
    if (m_stateNext >= all) return;
    m_stateJob.start(
        [question = m_stateQuestion, name = m_stateRows[m_stateNext].schedule](const std::stop_token& stop) {
            Progress progress;
            progress.stop = stop;
            return stateSurvey(question, {name}, progress);
        },
        [this](std::vector<StateRow> rows) {
            m_stateRows[m_stateNext++] = std::move(rows.front());
            nextState();
        },
        &m_pool);
}

void ExplorerController::askMixed()
{
    m_stateJob.drop();
    StateView* page = m_view->state();
    auto question = page->mixedQuestion();
    if (!question) {
        m_view->setWork({}, false);
        return page->setMixedError(u"%1; %2"_s.arg(QString::fromStdString(question.error().message),
                                                   QString::fromStdString(question.error().remedy)));
    }
    m_view->setWork(u"simulating…"_s, true);
    m_stateJob.start(
        [question = *question](const std::stop_token& stop) {
            Progress progress;
            progress.stop = stop;
            using Answered = std::pair<MixedQuestion, MixedAnswer>;
            return withRecordedLines(question).transform(
                [&](const MixedQuestion& read) { return Answered(read, mixedSurvey(read, progress)); });
        },
        [this, page](const Result<std::pair<MixedQuestion, MixedAnswer>>& answer) {
            m_view->setWork(answer ? u"%1 divisions"_s.arg(mixedRuleCount) : QString(), false);
            if (!answer) return page->setMixedError(qtText(answer.error().message + "; " + answer.error().remedy));
            page->setMixed(std::make_shared<const MixedAnswer>(answer->second), answer->first);
        },
        &m_pool);
}

void ExplorerController::askWays()
{
    m_waysJob.drop();
    ChooseView* page = m_view->ways();
    auto question = page->question();
    if (!question) {
        m_view->setWork({}, false);
        return page->setError(u"%1; %2"_s.arg(QString::fromStdString(question.error().message),
                                              QString::fromStdString(question.error().remedy)));
    }
    m_view->setWork(u"computing…"_s, true);
    auto closed = *question;
    closed.tried = 0;
    m_waysJob.start([closed] { return waysOf(closed); },
                    [this, page, tried = question->tried](Result<WaysAnswer> answer) {
                        if (!answer) {
                            m_view->setWork({}, false);
                            return page->setError(u"%1; %2"_s.arg(QString::fromStdString(answer.error().message),
                                                                  QString::fromStdString(answer.error().remedy)));
                        }
                        m_view->setWork(u"%1 ways"_s.arg(answer->all.candidates.size()), false);
                        const bool simulates = tried > 0 && answer->fits();
                        WaysQuestion question = answer->question;
                        question.tried = tried;
                        page->setAnswer(std::make_shared<const WaysAnswer>(std::move(*answer)));
                        if (simulates) simulateWays(question);
                    },
                    &m_pool);
}

void ExplorerController::takeLayers()
{
    const RunRef ref = m_workspace.shown().ref();
    if (!ref.valid())
        return m_workspace.banner()->showNote(u"No run is shown: record one, or open its file, and show it"_s);
    const auto model = trainedModelOf(*m_workspace.shown().view()->run);
    if (!model) return m_workspace.banner()->showError(QString(), model.error());
    ChooseView* page = m_view->ways();
    page->setField("sizes", qtText(fmt::format("layers={},hidden={},heads={},seq={},vocab={}", model->layers,
                                               model->hidden, model->heads, model->sequence, model->vocabulary)));
    page->setField("layers-from", u"%1#%2"_s.arg(ref.file).arg(ref.id));
}

void ExplorerController::takeJobs()
{
    const RunRef ref = m_workspace.shown().ref();
    if (!ref.valid())
        return m_workspace.banner()->showNote(u"No run is shown: record some with replicas, and show one"_s);
    m_view->setWork(u"reading runs…"_s, true);
    inBackground(
        this,
        [path = ref.file.toStdString(), lines = m_view->planner()->program() == "cephalo"_L1]() -> Result<std::string> {
            STAGEWRIGHT_TRY(const auto file, RunFile::open(path, OpenMode::Read));
            STAGEWRIGHT_TRY(const auto infos, file->runs());
            std::vector<RecordedJob> jobs;
            std::vector<Run> replicas;
            for (const RunInfo& info : infos) {
                STAGEWRIGHT_TRY(Run run, file->read(info.id));
                if (lines && !configured(run, "rank_memory").empty()) replicas.push_back(std::move(run));
                if (lines || configured(run, "cut").empty()) continue;
                STAGEWRIGHT_TRY(auto job, recordedJobOf(run));
                jobs.push_back(std::move(job));
            }
            if (lines && !replicas.empty()) {
                STAGEWRIGHT_TRY(auto read, cephaloProblem(replicas));
                return std::move(read.problem);
            }
            if (lines)
                return fail(ErrorCode::Usage, "no run of the file has a memory by rank",
                            "record replicas of one rank each with --rank-memory");
            if (jobs.empty())
                return fail(ErrorCode::Usage, "no run of the file has partial backward",
                            "record some with replicas and a cut");
            return jigsawProblem(jobs);
        },
        [this](const Result<std::string>& problem) {
            m_view->setWork({}, false);
            if (!problem) return m_workspace.banner()->showError(QString(), problem.error());
            m_view->planner()->setProblem(qtText(*problem));
        });
}

void ExplorerController::trainWay(const QString& command)
{
    std::vector<std::string> words;
    for (const QString& word : command.split(u' ', Qt::SkipEmptyParts).mid(2)) words.push_back(word.toStdString());
    const auto setup = withOptions({}, words);
    if (!setup) return m_workspace.banner()->showError(QString(), setup.error());
    if (RecordDialog* dialog = m_workspace.feature<Recording>()->openRecordDialog()) dialog->setSetup(*setup);
}

void ExplorerController::simulateWays(const WaysQuestion& question)
{
    m_waysDone = std::make_shared<std::atomic<int>>(0);
    m_waysBeat.start();
    m_waysJob.start(
        [question, done = m_waysDone](const std::stop_token& stop) {
            Progress progress;
            progress.stop = stop;
            progress.report = [done](std::string_view, std::int64_t ways, std::int64_t) {
                done->store(static_cast<int>(ways));
            };
            return waysSurvey(question, progress);
        },
        [this](Result<WaysAnswer> answer) {
            m_waysBeat.stop();
            if (!answer) return;
            m_view->setWork(u"%1 ways"_s.arg(answer->all.candidates.size()), false);
            m_view->ways()->setAnswer(std::make_shared<const WaysAnswer>(std::move(*answer)));
        },
        &m_pool);
}

void ExplorerController::askProblem()
{
    if (!shown() || m_view->page() != ExplorePage::Planners) return;
    m_problemJob.stop();
    if (m_problemJob.waits([this] { askProblem(); })) return;
    m_view->setWork(u"planning…"_s, true);
    m_problemJob.start(
        [problem = m_view->planner()->problem()](const std::stop_token& stop) {
            Progress progress;
            progress.stop = stop;
            return solveProblem(problem, progress);
        },
        [this](const Result<PlannerAnswer>& answer) {
            if (!answer && answer.error().code == ErrorCode::Cancelled) return; // another one is asked for
            m_view->setWork({}, false);
            m_view->planner()->setAnswer(answer);
        },
        &m_pool);
}

void ExplorerController::openProblem()
{
    const QString path =
        QFileDialog::getOpenFileName(m_workspace.window(), u"Open a problem"_s, {}, u"Problems (*.json)"_s);
    if (path.isEmpty()) return;
    const auto text = readSmallFile(path.toStdString());
    if (!text) return m_workspace.banner()->showError(QFileInfo(path).fileName(), text.error());
    m_view->planner()->setProblem(QString::fromStdString(*text));
}

void ExplorerController::saveLayout(const QString& path, std::function<void(Result<void>)> answer)
{
    m_view->setWork(u"saving…"_s, true);
    inBackground(
        this,
        [problem = m_view->planner()->problem(), path = path.toStdString(),
         name = QFileInfo(path).fileName().toStdString()]() -> Result<std::string> {
            STAGEWRIGHT_TRY(const auto solved, layoutOfProblem(problem, name, {}));
            if (!solved) return fail(ErrorCode::Usage, "no plan fits");
            STAGEWRIGHT_CHECK(writeFileAtomically(path, toJson(solved->layout)));
            return solved->choose;
        },
        [this, path, answer = std::move(answer)](const Result<std::string>& done) {
            m_view->setWork(done ? u"saved to %1"_s.arg(QFileInfo(path).fileName()) : QString(), false);
            if (done)
                m_workspace.banner()->showNote(u"For a model, beside equal stages: %1"_s.arg(qtText(*done)));
            else
                m_workspace.banner()->showError(QString(), done.error());
            if (answer) answer(done ? Result<void>() : tl::unexpected(done.error()));
        });
}

void ExplorerController::askChart(const std::vector<std::string>& schedules)
{
    SurveyChart* chart = m_view->survey(m_view->chartShown());
    chart->setAnswer(nullptr);
    m_view->setWork(u"simulating…"_s, true);
    SurveyValues values;
    for (const SurveyField& field : chart->survey().fields()) {
        if (const auto parameter = parameterOf(field.name))
            values[field.name] = textOf(m_view->question().value(*parameter));
        if (field.name == "schedules") values[field.name] = joined(schedules, ",");
        if (field.name == "schedule" && !schedules.empty()) values[field.name] = schedules.front();
    }
    m_survey.start(
        [survey = &chart->survey(), values](const std::stop_token& stop) -> Result<SurveyAnswer> {
            Progress progress;
            progress.stop = stop;
            STAGEWRIGHT_TRY(const auto question, SurveyQuestion::read(*survey, values));
            return survey->answer(question, progress);
        },
        [this, chart](Result<SurveyAnswer> answer) {
            m_view->setWork(answer ? QString() : qtText(answer.error().message), false);
            if (answer && answer->complete) chart->setAnswer(std::make_shared<const SurveyAnswer>(std::move(*answer)));
        },
        &m_pool);
}

void ExplorerController::askSurvey()
{
    if (!shown()) return;
    if (m_view->page() == ExplorePage::Planners) return askProblem();
    if (m_view->page() == ExplorePage::Choose) return askWays();
    if (m_view->page() == ExplorePage::State) {
        switch (m_view->state()->topic()) {
        case StateTopic::Stages: return askState();
        case StateTopic::Mixed: return askMixed();
        case StateTopic::Cuts: m_stateJob.drop(); return m_view->setWork({}, false); // answered by the page
        }
    }
    const std::vector<std::string> schedules = m_view->ticked();
    m_lines.reset();
    m_heat.reset();
    std::vector<Setup> points;
    m_surveyRows.reset();
    if (m_view->chartShown() >= ExploreChart::Levels) return askChart(schedules);
    if (m_view->chartShown() == ExploreChart::Heat) {
        const auto [across, up] = m_view->heatParameters();
        if (across != up) m_heat = std::make_shared<HeatPicture>(heatOf(m_view->question(), across, up, schedules));
        if (m_heat) points = pointsOf(*m_heat);
    } else {
        m_lines = std::make_shared<LinesPicture>(linesOf(m_view->question(), m_view->lineParameter(), schedules));
        points = pointsOf(*m_lines);
    }
    auto growing = std::make_shared<Growing>(points);
    growing->changed = true;
    m_surveyRows = growing;
    m_growth.start();
    m_survey.start(
        [points = std::move(points), growing](const std::stop_token& stop) {
            Progress progress;
            progress.stop = stop;
            growing->fill(points, progress);
            return 0;
        },
        [this](int) { grow(); }, &m_pool);
}

void ExplorerController::grow()
{
    const auto taken = [](const std::shared_ptr<Growing>& growing, std::vector<SweepRow>& rows, std::size_t& done) {
        if (!growing) return false;
        const std::lock_guard lock(growing->mutex);
        done = growing->done;
        if (!growing->changed) return false;
        growing->changed = false;
        rows = growing->rows;
        return true;
    };
    std::vector<SweepRow> rows;
    std::size_t done = 0;
    if (taken(m_sweepRows, rows, done))
        m_view->setRows(std::make_shared<const std::vector<SweepRow>>(std::move(rows)), m_view->question());
    std::size_t surveyed = 0;
    std::vector<SweepRow> surveyRows;
    if (taken(m_surveyRows, surveyRows, surveyed)) {
        if (m_lines) {
            auto picture = std::make_shared<LinesPicture>(*m_lines);
            picture->rows = surveyRows;
            m_view->setLines(std::move(picture));
        } else if (m_heat) {
            auto picture = std::make_shared<HeatPicture>(*m_heat);
            picture->rows = surveyRows;
            m_view->setHeat(std::move(picture));
        } else {
            m_view->setHeat(nullptr);
        }
    }
    if (m_survey.running() && m_surveyRows) {
        const std::size_t all = m_surveyRows->rows.size();
        m_view->setWork(surveyed < all ? u"%1 of %2 points"_s.arg(surveyed).arg(all) : QString(), surveyed < all);
    } else if (m_sweepRows) {
        const std::size_t all = m_sweepRows->rows.size();
        m_view->setWork(done < all ? u"%1 of %2 schedules"_s.arg(done).arg(all) : u"%1 schedules"_s.arg(all),
                        done < all && m_sweep.running());
    }
    if (!m_sweep.running() && !m_survey.running()) m_growth.stop();
}

void ExplorerController::askPreview(int row)
{
    m_preview.drop();
    const SweepRow* at = m_view->rowAt(row);
    if (at == nullptr || !at->good()) {
        m_view->miniature()->setPanel(nullptr, at == nullptr ? QString() : scheduleTitle(at->schedule()),
                                      at == nullptr ? u"point to a schedule"_s : QString::fromStdString(at->error));
        return;
    }
    if (m_preview.waits([this, row] { askPreview(row); })) return;
    const PreviewRequest request{at->schedule(), shapeOf(at->point), *unitsOf(at->point)};
    const QString title = scheduleTitle(at->schedule());
    const Units units{at->timeUnit, at->memoryUnit};
    const QString note = u"%1, bubble %2, peak %3"_s.arg(durationText(at->step, units), percentText(at->bubbleFraction),
                                                         bytesText(at->peak(), units));
    m_preview.start([request] { return std::make_shared<const SchedulePreview>(previewOf(request)); },
                    [this, title, note](const std::shared_ptr<const SchedulePreview>& preview) {
                        m_view->miniature()->setPanel(preview->panel, title, note);
                    },
                    &m_previewPool);
}

void ExplorerController::open(const Setup& point)
{
    setShown(false);
    m_workspace.feature<LibraryOpening>()->newFromLibrary(QString::fromStdString(point.schedules.front()),
                                                          shapeOf(point), *unitsOf(point));
}

QString ExplorerController::askedRunFile()
{
    QSettings settings;
    const QString before = settings.value(u"explore/saveTo"_s, u"explored.stagewright"_s).toString();
    QString path =
        QFileDialog::getSaveFileName(m_workspace.window(), u"Save as run"_s, before, u"Run files (*.stagewright)"_s,
                                     nullptr, QFileDialog::DontConfirmOverwrite);
    if (path.isEmpty()) return {};
    if (QFileInfo(path).suffix().isEmpty()) path += u".stagewright"_s;
    settings.setValue(u"explore/saveTo"_s, path);
    return path;
}

void ExplorerController::saveAsked(const Setup& point)
{
    if (const QString path = askedRunFile(); !path.isEmpty()) saveAsRun(point, path);
}

void ExplorerController::saveWay(int way)
{
    if (const QString path = askedRunFile(); !path.isEmpty()) saveWayAsRun(way, path);
}

void ExplorerController::saveWayAsRun(int way, const QString& path, std::function<void(Result<void>)> answer)
{
    saveMade(
        [ways = m_view->ways()->answer(), way]() -> Result<Run> {
            const LayoutQuestion& question = ways->question.layout;
            const Layout layout = layoutOf(question.model, ways->shown[static_cast<std::size_t>(way)].way);
            const auto step = bestStep(layout, question.model, question.cluster, question.constants);
            if (!step)
                return fail(ErrorCode::Usage, "no schedule of the library has these stages and microbatches",
                            "choose another way");
            STAGEWRIGHT_TRY(const auto schedule,
                            makeSchedule(step->schedule, {layout.ranks, layout.microbatches, layout.chunks()}));
            return simulatedRun(schedule,
                                layoutCosts(schedule, layout, question.model, question.cluster, question.constants));
        },
        path, std::move(answer));
}

void ExplorerController::saveAsRun(const Setup& point, const QString& path, std::function<void(Result<void>)> answer)
{
    saveMade(
        [point]() -> Result<Run> {
            STAGEWRIGHT_TRY(const auto made, preparedCase(point));
            return simulatedRun(made.state.schedule, made.costs);
        },
        path, std::move(answer));
}

void ExplorerController::saveMade(std::function<Result<Run>()> made, const QString& path,
                                  std::function<void(Result<void>)> answer)
{
    m_view->setWork(u"saving…"_s, true);
    inBackground(
        this,
        [made = std::move(made), target = path.toStdString(),
         now = QDateTime::currentMSecsSinceEpoch()]() -> Result<void> {
            STAGEWRIGHT_TRY(auto run, made());
            run.info.createdUnixMs = now;
            STAGEWRIGHT_TRY(auto file, RunFile::open(target, OpenMode::Create));
            STAGEWRIGHT_CHECK(file->add(run));
            return {};
        },
        [this, path, answer = std::move(answer)](const Result<void>& done) {
            if (!done) {
                m_view->setWork({}, false);
                m_workspace.banner()->showError(QString(), done.error());
            } else {
                m_view->setWork(u"saved to %1"_s.arg(QFileInfo(path).fileName()), false);
                m_workspace.library()->open(path);
                m_workspace.library()->reload(path);
            }
            if (answer) answer(done);
        });
}

void ExplorerController::cancel()
{
    m_sweep.stop();
    m_survey.stop();
    if (m_stateJob.running() && m_view->state()->topic() == StateTopic::Stages)
        m_view->setWork(u"%1 of %2 schedules"_s.arg(m_stateNext).arg(m_stateRows.size()), false);
    else if (m_stateJob.running())
        m_view->setWork({}, false);
    m_stateJob.drop();
    if (m_waysJob.running()) m_view->setWork({}, false);
    m_waysJob.drop();
    if (m_problemJob.running()) m_view->setWork({}, false);
    m_problemJob.drop();
}

Result<void> ExplorerController::writeTable(const QString& path) const
{
    std::vector<SweepRow> rows;
    for (int i = 0; m_view->rowAt(i) != nullptr; ++i) rows.push_back(*m_view->rowAt(i));
    return writeFileAtomically(path.toStdString(), sweepCsv(rows));
}

QString ExplorerController::setup(ExplorePlot plot) const
{
    if (plot == ExplorePlot::Choose)
        return m_view->ways()->answer() ? qtText(m_view->ways()->answer()->setup()) : QString();
    if (plot == ExplorePlot::Planner) return m_view->planner()->said();
    if (plot != ExplorePlot::State) return qtText(setupOf(m_view->question()));
    const StateView* state = m_view->state();
    switch (state->topic()) {
    case StateTopic::Stages: return qtText(state->question(m_view->question()).setup());
    case StateTopic::Mixed: {
        const auto question = state->mixedQuestion();
        return question ? qtText(question->setup()) : QString();
    }
    case StateTopic::Cuts: return qtText(state->cutQuestion().setup());
    }
    return {};
}

Result<void> ExplorerController::writePicture(ExplorePlot plot, const QString& path, const PictureStyle& style) const
{
    const Plot shown = m_view->plotOf(plot);
    if (const QString suffix = QFileInfo(path).suffix(); suffix == "csv"_L1 || suffix == "tex"_L1) {
        STAGEWRIGHT_TRY(const std::string text, plotText(shown, m_view->caption(plot).toStdString(),
                                                         setup(plot).toStdString(), path.toStdString()));
        return writeFileAtomically(path.toStdString(), text);
    }
    STAGEWRIGHT_TRY(const auto kind, pictureKindOf(path));
    PictureContent content;
    content.title = m_view->caption(plot);
    content.caption = {setup(plot)};
    content.theme = &m_workspace.theme();
    PicturePart part;
    part.name = u"Plot"_s;
    part.height = [tall = shown.tall](double width) { return width * 0.6 * tall; };
    part.elastic = true;
    part.paint = [&shown](QPainter& painter, const QRectF& rect, const PaintRequest& request) {
        paintPlot(shown, painter, rect, request.theme);
    };
    content.parts = {std::move(part)};
    STAGEWRIGHT_TRY(const auto bytes, pictureBytes(content, style, kind));
    return writeFileAtomically(path.toStdString(),
                               std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
}

namespace {

void showPlots(const ShowRequest& request)
{
    auto* explorer = request.workspace.feature<ExplorerController>();
    explorer->setShown(true);
    explorer->view()->setChart(request.name == "heat"_L1        ? ExploreChart::Heat
                               : request.name == "levels"_L1    ? ExploreChart::Levels
                               : request.name == "keeping"_L1   ? ExploreChart::Keeping
                               : request.name == "readiness"_L1 ? ExploreChart::Readiness
                                                                : ExploreChart::Lines);
    explorer->view()->setPage(ExplorePage::Schedules);
    request.settle();
}

void showState(const ShowRequest& request, StateTopic topic)
{
    auto* explorer = request.workspace.feature<ExplorerController>();
    explorer->setShown(true);
    explorer->view()->setChart(ExploreChart::Lines);
    explorer->view()->setPage(ExplorePage::State);
    explorer->view()->state()->setTopic(topic);
    request.settle();
}

} // namespace

std::vector<ShowEntry> ExplorerController::showTable()
{
    return {
        {"explore", 230, &showPlots},
        {"heat", 240, &showPlots},
        {"levels", 242, &showPlots},
        {"keeping", 243, &showPlots},
        {"readiness", 244, &showPlots},
        {"state", 250, [](const ShowRequest& request) { showState(request, StateTopic::Stages); }},
        {"uneven", 260, [](const ShowRequest& request) { showState(request, StateTopic::Mixed); }},
        {"choose", 245,
         [](const ShowRequest& request) {
             auto* explorer = request.workspace.feature<ExplorerController>();
             explorer->setShown(true);
             explorer->view()->setPage(ExplorePage::Choose);
             request.settle();
         }},
        {"planners", 247,
         [](const ShowRequest& request) {
             auto* explorer = request.workspace.feature<ExplorerController>();
             explorer->setShown(true);
             explorer->view()->setPage(ExplorePage::Planners);
             if (!request.schedule.isEmpty()) explorer->view()->planner()->choose(request.schedule);
             request.settle();
         }},
        {"partial", 270, [](const ShowRequest& request) { showState(request, StateTopic::Cuts); }},
    };
}

FeatureEntry explorerFeature() { return featureEntry<ExplorerController>(); }

} // namespace stagewright
