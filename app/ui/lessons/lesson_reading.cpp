// What the page says of the canvas: read again after every change, shown in the panel, on the score rail and in the
// charts.
#include <algorithm>
#include <cmath>

#include <QPainter>

#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/execute/deadlock.h"
#include "schedules/model/kinds.h"
#include "traces/lessons/reports.h"
#include "widgets/deadlock/hang_overlay.h"
#include "widgets/lessons/score_rail.h"
#include "widgets/memory/memory_view.h"
#include "widgets/plot/painter_canvas.h"
#include "widgets/record/record_process.h"
#include "widgets/style.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

namespace {

// The op that is drawn for a place of a rank's list: its own, or for a message the next one that computes.
const Op* drawnAt(const Schedule& order, int rank, int position)
{
    if (rank < 0 || position < 0 || static_cast<std::size_t>(rank) >= order.order.size()) return nullptr;
    const auto& list = order.order[static_cast<std::size_t>(rank)];
    for (auto at = static_cast<std::size_t>(position); at < list.size(); ++at)
        if (isCompute(list[at].kind)) return &list[at];
    return nullptr;
}

// What of the canvas is never reached, and why; null: it runs.
std::shared_ptr<const HangOverlay::Marks> marksOf(const lessons::Canvas& canvas)
{
    const auto report = lessons::SimulatedReport::create(canvas);
    if (!report || (*report)->validation().cycle.empty()) return nullptr;
    const Schedule& order = (*report)->schedule();
    const auto hang = explainDeadlock(order, (*report)->channels());
    if (!hang || !hang->hung()) return nullptr;
    auto marks = std::make_shared<HangOverlay::Marks>();
    for (const BlockedRank& blocked : hang->blocked) {
        const auto& list = order.order[static_cast<std::size_t>(blocked.rank)];
        for (auto at = static_cast<std::size_t>(std::max(0, blocked.position)); at < list.size(); ++at)
            if (isCompute(list[at].kind)) marks->stopped.push_back({blocked.rank, list[at]});
        marks->why[blocked.rank] = qs(blocked.sentence);
    }
    for (const CycleOp& one : hang->cycleOps)
        if (const Op* op = drawnAt(order, one.rank, one.position)) marks->cycle.push_back({one.rank, *op});
    return marks;
}

} // namespace

LessonState LessonController::state() const
{
    LessonState now;
    if (!m_session) return now;
    now.said = m_session->learner().said;
    now.touched = m_session->touched();
    for (const lessons::Check* check : m_session->lesson().all<lessons::Check>()) {
        now.hints[check->id] = m_session->hintsOf(check->id);
        if (m_session->shown(check->id)) now.shown.insert(check->id);
    }
    for (const lessons::Quiz* quiz : m_session->lesson().all<lessons::Quiz>()) {
        now.hints[quiz->id] = m_session->hintsOf(quiz->id);
        now.misses[quiz->id] = m_session->missesOf(quiz->id);
        if (m_session->shown(quiz->id)) now.shown.insert(quiz->id);
    }
    now.notes = m_notes;
    now.running = m_runs->running();
    const RecordProcess* process = m_workspace.feature<Recording>()->process();
    now.runningWords = stateText(*process);
    now.runningShare = process->total() > 0 ? 100 * process->done() / process->total() : -1;
    for (const lessons::RunBlock* run : m_session->lesson().all<lessons::RunBlock>())
        now.expected[run->id] = LessonRuns::expectedSeconds(m_session->lesson(), *run);
    now.figures = m_figures;
    return now;
}

void LessonController::readAgain()
{
    if (!m_session) return;
    if (m_reading.waits([this] { readAgain(); })) return;
    const LessonPage page = m_session->page();
    std::string key = std::to_string(m_session->pageIndex()) + '/' + lessons::changesOf(m_session->canvas().settings);
    for (const lessons::Predict* predict : m_session->lesson().all<lessons::Predict>())
        if (const auto said = m_session->learner().said.find(predict->id); said != m_session->learner().said.end())
            key += '/' + said->second;
    const bool withRail = page.part == lessons::Part::Do && key != m_railKey;
    struct Read {
        PageReading page;
        std::shared_ptr<const HangOverlay::Marks> hang;
    };
    m_reading.start(
        [lesson = m_session->shared(), page, canvas = m_session->canvas(), learner = m_session->learner(), withRail] {
            return Read{readPage(*lesson, page, canvas, learner, withRail),
                        page.part == lessons::Part::Do ? marksOf(canvas) : nullptr};
        },
        [this, index = m_session->pageIndex(), key, withRail](const Read& read) {
            const PageReading& reading = read.page;
            if (index == m_session->pageIndex()) m_hang->setMarks(read.hang);
            if (withRail) {
                m_railKept = reading.rail;
                m_railKey = key;
            }
            if (index == m_session->pageIndex()) took(reading);
        });
}

void LessonController::took(const PageReading& reading)
{
    m_last = reading;
    m_session->read(reading);
    m_figures.clear();
    for (std::size_t i = 0; i < reading.blocks.size() && i < m_session->page().blocks.size(); ++i) {
        const auto* figure = std::get_if<lessons::Figure>(m_session->page().blocks[i]);
        if (figure == nullptr || !reading.blocks[i].figure) continue;
        const lessons::FigureData& data = *reading.blocks[i].figure; // its caption's field is below
        const double ratio = m_workspace.window()->devicePixelRatioF();
        const int width = lessonWidth - 76, height = static_cast<int>(std::lround(data.height(width)));
        QPixmap picture(QSize(width, height) * ratio);
        picture.setDevicePixelRatio(ratio);
        picture.fill(m_workspace.theme().canvas);
        QPainter painter(&picture);
        paintPlot(data.plot, painter, QRectF(0, 0, width, height), m_workspace.theme());
        m_figures[figure->file] = picture;
    }
    m_panel->setReading(reading, state());
    std::vector<Bytes> targets;
    if (!m_workspace.views().timeline->panels().empty())
        for (const double target : reading.targets)
            targets.push_back(static_cast<Bytes>(std::llround(
                target * static_cast<double>(m_workspace.views().timeline->panels().back()->units.memory))));
    m_workspace.views().memory->setRankBudgets(std::move(targets));
    if (m_session->page().part != lessons::Part::Do) {
        m_rail->setRail(std::nullopt);
    } else if (m_railKept) {
        lessons::ScoreRail rail = *m_railKept;
        rail.yours = reading.makespan;
        for (const double answer : reading.openAnswers)
            for (double* mark : {&rail.par, &rail.bound, &rail.bestKnown})
                if (std::abs(*mark - answer) < 1e-9) *mark = std::nan("");
        m_rail->setRail(rail);
    } else {
        m_rail->setRail(std::nullopt);
    }
    fitAxis();
    if (std::exchange(m_focusFirst, false) && m_panel->isVisible()) m_panel->focusFirst();
    refreshActions();
}

// As long as what the step will show, so that it stays while ops and sliders move; it grows with a longer canvas and
// does not shrink again within the step.
void LessonController::fitAxis()
{
    if (m_session->page().part != lessons::Part::Do) return;
    double farthest = m_last.axis;
    if (m_railKept) {
        for (const double mark : {m_railKept->par, m_railKept->bound, m_railKept->bestKnown})
            if (std::isfinite(mark)) farthest = std::max(farthest, mark * 4 / 3); // room for a worse order
        if (std::isfinite(m_railKept->guess) && m_railKept->guess < 2 * farthest)
            farthest = std::max(farthest, m_railKept->guess);
    }
    if (std::isfinite(m_last.makespan)) farthest = std::max(farthest, m_last.makespan);
    farthest = m_axis = std::max(farthest, m_axis);
    ViewState& axis = *m_workspace.viewState();
    const bool fitted = axis.isFitted();
    axis.setLeastEnd(static_cast<Nanos>(std::llround(farthest * static_cast<double>(rankShare))));
    const auto& panels = m_workspace.views().timeline->panels();
    if (farthest <= 0 || panels.empty() || panels.front()->duration > 0) return;
    axis.setExtent({0, 0}); // nothing is placed: the view's own default gives way
    if (fitted) axis.fitAll();
}

} // namespace stagewright
