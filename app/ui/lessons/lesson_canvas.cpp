// The canvas of a lesson's step: shown as a run, compared with another schedule, or edited; kept in sync with drags.
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/run/simulated_run.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/lessons/score_rail.h"
#include "widgets/literals.h"

#include <algorithm>
#include <cmath>

#include <QTimer>

namespace stagewright {
namespace {

// The canvas as a run: simulated, or, if ops are missing or deadlocked, placed as far as possible.
Result<Run> runOf(const lessons::Canvas& canvas, const std::string& name)
{
    STAGEWRIGHT_TRY(auto order, lessons::shownOn(canvas));
    STAGEWRIGHT_TRY(auto costs, lessons::costsFor(order, canvas.settings));
    if (costs.origin.empty()) costs.origin = "the lesson's costs";
    auto run = simulatedRun(order, costs, lessons::channelsOf(canvas.settings));
    if (!run) {
        auto timeline = timelineOf(order, simulateRelaxed(order, costs), costs);
        if (!timeline) return tl::unexpected(run.error());
        run = runOfSchedule(order);
        run->schedule = std::make_shared<const Schedule>(order);
        run->costs = costs;
        run->timeline = *timeline;
        run->info.steps = 1;
        run->info.clock = "model";
    }
    run->info.name = name;
    return run;
}

// Whether the canvas shows the number that the page asks to guess: its step time, its span or its bubble ratio.
bool answersGuess(const lessons::Lesson& lesson, const LessonPage& page, const lessons::Step& step,
                  const lessons::Canvas& canvas, const lessons::Learner& learner)
{
    if (page.part != lessons::Part::Guess) return false;
    const lessons::StepState state(lesson, step, canvas, learner);
    std::vector<double> shown;
    for (const char* key : {"makespan", "span", "100*bubble_fraction"})
        if (const auto expression = lessons::Expression::parse(key))
            if (const auto value = state.evaluate(*expression); value && value->number() != nullptr)
                shown.push_back(*value->number());
    return std::any_of(page.blocks.begin(), page.blocks.end(), [&](const lessons::Block* block) {
        const auto* predict = std::get_if<lessons::Predict>(block);
        if (predict == nullptr) return false;
        const auto truth = state.evaluate(predict->truth);
        return truth && truth->number() != nullptr && std::any_of(shown.begin(), shown.end(), [&](double one) {
                   return std::abs(one - *truth->number()) < 1e-6;
               });
    });
}

} // namespace

bool LessonController::editsHere() const
{
    if (!m_session || m_session->page().part != lessons::Part::Do || m_session->step() == nullptr) return false;
    for (const char* tool : {"move", "place", "split", "warmup", "text"})
        if (m_session->allows(tool)) {
            const auto order = lessons::shownOn(m_session->canvas());
            return order && *order == m_session->canvas().schedule;
        }
    return false;
}

void LessonController::showCanvas()
{
    hideGap();
    if (m_session->step() == nullptr) { // the canvas is still empty; the panel is beside the current view
        if (m_workspace.shown().mode() == Shown::Mode::Empty)
            m_workspace.feature<LibraryOpening>()->newFromLibrary(u"gpipe"_s, Shape{2, 1, 0});
        return;
    }
    const QString name = m_session->lesson().number > 0 ? u"Lesson %1"_s.arg(m_session->lesson().number)
                                                        : u"Lesson %1"_s.arg(qs(m_session->lesson().id));
    if (answersGuess(m_session->lesson(), m_session->page(), *m_session->step(), m_session->canvas(),
                     m_session->learner())) {
        m_syncing = true;
        m_wantEdit = false;
        // an empty axis
        m_workspace.feature<OrderEditing>()->editIncomplete(lessons::emptySchedule(m_session->canvas().settings), name);
        m_syncing = false;
        readAgain();
        return;
    }
    auto run = runOf(m_session->canvas(), name.toStdString());
    if (!run) {
        m_workspace.banner()->showError(u"this step's canvas can't be drawn"_s, run.error());
        return;
    }
    m_wantEdit = editsHere();
    m_shownSettings = m_session->canvas().settings;
    m_syncing = true;
    // nothing is placed yet: there is no run to show, only a tray
    if (run->timeline == nullptr || run->timeline->empty()) {
        m_wantEdit = false;
        m_workspace.feature<OrderEditing>()->editIncomplete(m_session->canvas().schedule, name);
        m_syncing = false;
        readAgain();
        return;
    }
    m_canvasRef = m_workspace.library()->addAside(std::move(*run));
    const RunRef other = m_wantEdit ? RunRef{} : comparedRun();
    if (other.valid())
        m_workspace.feature<RunComparing>()->show({other, m_canvasRef});
    else
        m_workspace.shown().showRun(m_canvasRef);
    if (m_session->step()->view == "memory" && !m_workspace.actions()["memory"]->isChecked())
        m_workspace.actions()["memory"]->trigger();
    m_syncing = false;
    readAgain();
}

// The step's comparison schedule above its canvas, with the same settings but undisturbed: a slow machine against a
// healthy one. In edit mode its outlines appear behind the order on request instead.
RunRef LessonController::comparedRun()
{
    const std::string& name = m_session->step()->compare;
    if (name.empty()) return {};
    lessons::Settings settings = m_session->canvas().settings;
    settings.slow.clear();
    settings.perturb.clear();
    auto schedule = lessons::makeFor(name, settings);
    auto run = schedule ? runOf({std::move(*schedule), settings}, name) : tl::unexpected(schedule.error());
    if (!run) {
        m_workspace.banner()->showError(u"%1 can't be compared with the canvas"_s.arg(qs(name)), run.error());
        return {};
    }
    return m_workspace.library()->addAside(std::move(*run));
}

void LessonController::syncCanvas()
{
    m_panel->setCanvas(m_session->canvas());
    ScheduleEditor* editor = &m_workspace.feature<OrderEditing>()->editor();
    if (m_workspace.shown().mode() == Shown::Mode::Edit && editor->active() && editsHere() &&
        m_session->canvas().settings == m_shownSettings) {
        m_syncing = true;
        editor->replace(u"lesson edit"_s, m_session->canvas().schedule);
        m_syncing = false;
        readAgain();
    } else {
        showCanvas();
    }
}

// A drag shows on the rail at once; a dropped op that can't run there moves back, with the reason.
void LessonController::editorChanged()
{
    ScheduleEditor* editor = &m_workspace.feature<OrderEditing>()->editor();
    hideGap();
    if (!m_session || !editor->active() || m_workspace.shown().mode() != Shown::Mode::Edit || !editsHere()) return;
    const bool valid = editor->valid();
    m_rail->setYours(valid ? static_cast<double>(editor->figures().makespan) / static_cast<double>(rankShare)
                           : std::nan(""));
    if (editor->previewing()) m_panel->tools()->setRefusal({}); // of an earlier mistake elsewhere
    if (m_syncing || editor->previewing() || editor->schedule() == m_session->canvas().schedule) return;
    if (LessonSession::runs(m_session->canvas().schedule) && !LessonSession::runs(editor->schedule())) {
        const Error why = LessonSession::whyNot(editor->schedule());
        QTimer::singleShot(0, this, [this, why] {
            m_workspace.feature<OrderEditing>()->editor().undoStack()->undo();
            refuse(why, true);
        });
        return;
    }
    m_refusal.clear();
    m_panel->tools()->setRefusal({});
    m_session->setOrder(editor->schedule());
    m_panel->setCanvas(m_session->canvas());
    readAgain();
}

} // namespace stagewright
