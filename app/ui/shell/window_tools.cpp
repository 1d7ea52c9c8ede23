// Tools for the run shown: each takes over the panel at the right and, if it has one, draws its own picture in the timeline.
#include <QFileInfo>
#include <QStackedWidget>

#include "app/costs/split_sources.h"
#include "app/ui/notes/notes_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "schedules/execute/deadlock.h"
#include "traces/fit/fit_costs.h"
#include "traces/report/run_report.h"
#include "widgets/background.h"
#include "widgets/tools/lowered_panel.h"
#include "widgets/tools/residual_panel.h"
#include "widgets/tools/what_if_panel.h"

namespace stagewright {

QString MainWindow::toolText() const
{
    switch (m_tool) {
    case Tool::None: return {};
    case Tool::Lowered: return tr("Lowered: sends and receives inserted by the rule \"%1\"").arg(QString::fromStdString(stagewright::toText(m_lowered->lowering())));
    case Tool::WhatIf: {
        const auto question = m_whatIf->question();
        const QString text = question ? QString::fromStdString(stagewright::toText(*question)) : QString();
        return text.isEmpty() ? tr("Above: as simulated. Below: what if, nothing changed") : tr("Above: as simulated. Below: what if %1").arg(text);
    }
    case Tool::Residuals: return {}; // figures only; the timeline is the run's
    }
    return {};
}

void MainWindow::buildTools()
{
    m_lowered = new LoweredPanel(m_panels);
    m_panels->addWidget(m_lowered);
    connect(m_lowered, &LoweredPanel::changed, this, &MainWindow::askTool);
    connect(m_lowered, &LoweredPanel::closeAsked, this, [this] { setTool(Tool::None); });
    m_whatIf = new WhatIfPanel(m_panels);
    m_panels->addWidget(m_whatIf);
    connect(m_whatIf, &WhatIfPanel::changed, this, &MainWindow::askTool);
    connect(m_whatIf, &WhatIfPanel::closeAsked, this, [this] { setTool(Tool::None); });
    m_residuals = new ResidualPanel(m_panels);
    m_panels->addWidget(m_residuals);
    connect(m_residuals, &ResidualPanel::changed, this, &MainWindow::askTool);
    connect(m_residuals, &ResidualPanel::opChosen, this, &MainWindow::chooseOp);
    connect(m_residuals, &ResidualPanel::closeAsked, this, [this] { setTool(Tool::None); });
    connect(m_lowered, &LoweredPanel::deadlockAsked, this, [this] {
        if (m_loweredPicture && m_loweredPicture->lowered)
            showDeadlock(m_loweredPicture->lowered, m_lowered->channels(), [this](const Schedule& fixed) { openOrder(fixed, QStringLiteral("mended")); });
    });
}

void MainWindow::setTool(Tool tool)
{
    if (m_mode != Mode::Run) tool = Tool::None;
    const auto drawsItsOwn = [](Tool of) { return of == Tool::Lowered || of == Tool::WhatIf; };
    const bool leaves = m_tool != tool && (drawsItsOwn(m_tool) || drawsItsOwn(tool));
    m_tool = tool;
    ++m_toolGeneration;
    m_toolPending = m_toolAgain = false;
    m_toolInput.reset();
    m_whatIfBase.reset();
    if (leaves && m_shown && m_mode == Mode::Run) {
        m_state->clearSelection();
        showToolPanels({m_shown->panel});
    }
    if (m_mode == Mode::Run) m_panels->setCurrentWidget(toolPanel());
    refreshActions();
    if (tool != Tool::None) askTool();
}

QWidget* MainWindow::toolPanel() const
{
    switch (m_tool) {
    case Tool::None: break;
    case Tool::Lowered: return m_lowered;
    case Tool::WhatIf: return m_whatIf;
    case Tool::Residuals: return m_residuals;
    }
    return m_side;
}

void MainWindow::showToolPanels(const std::vector<std::shared_ptr<const TimelinePanel>>& panels)
{
    const bool fitted = m_state->isFitted(), more = panels.size() != m_timeline->panels().size();
    m_timeline->setTrackHeight(m_tool == Tool::Lowered ? 26 : 0);
    m_timeline->setPanels(panels);
    m_memory->setPanels(panels);
    m_legend->setPanels(panels);
    m_timeline->setTitle(m_tool == Tool::Lowered ? tr("Lowered") : m_tool == Tool::WhatIf ? tr("What if")
                                                                                          : tr("Timeline"));
    if (fitted) m_state->fitAll();
    if (more || m_tool != Tool::WhatIf) splitViews();
    refreshNotes();
    m_notes->refresh();
    refreshStatus();
}

// The schedule of the run and the costs of its simulation; computed once per run and tool.
Result<std::shared_ptr<const MainWindow::ToolInput>> MainWindow::toolInput()
{
    if (m_toolInput) return m_toolInput;
    auto schedule = scheduleOfRun(*m_shown->run);
    if (!schedule) return tl::unexpected(schedule.error());
    auto costs = costsOf(*m_shown->run);
    if (!costs) return tl::unexpected(costs.error());
    completeWhole(*costs, schedule->ranks);
    auto input = std::make_shared<ToolInput>();
    input->schedule = std::make_shared<const Schedule>(withoutCommunication(*schedule));
    input->costs = std::move(*costs);
    m_toolInput = input;
    m_whatIf->setSchedule(*input->schedule, input->costs);
    return m_toolInput;
}

// One picture at a time: meanwhile only the latest request waits, so that pictures follow a slider as fast as possible.
template <typename Work, typename Then>
void MainWindow::makePicture(Work work, Then then)
{
    m_toolBusy = true;
    inBackground(this, std::move(work), [this, then = std::move(then), generation = m_toolGeneration](const auto& picture) {
        m_toolBusy = false;
        const bool again = m_toolAgain;
        m_toolAgain = false;
        m_toolPending = again;
        if (generation == m_toolGeneration) then(picture);
        if (again) askTool();
    });
}

void MainWindow::askTool()
{
    if (m_tool == Tool::None || !m_shown || m_mode != Mode::Run) return;
    m_toolPending = true;
    m_toolAgain = m_toolBusy;
    if (m_toolAgain) return;
    auto input = toolInput();
    if (!input) {
        m_banner->showRefusal(tr("this run has no order to simulate again"), input.error());
        setTool(Tool::None);
        return;
    }
    switch (m_tool) {
    case Tool::None: break;
    case Tool::Lowered: askLowered(**input); break;
    case Tool::WhatIf: askWhatIf(**input); break;
    case Tool::Residuals: askResiduals(**input); break;
    }
}

void MainWindow::askLowered(const ToolInput& input)
{
    LoweredRequest request{input.schedule, input.costs, m_lowered->lowering(), m_lowered->channels(), m_lowered->latency()};
    makePicture([request] { return std::make_shared<const LoweredPicture>(loweredPicture(request)); },
                [this](const std::shared_ptr<const LoweredPicture>& picture) {
                    m_loweredPicture = picture;
                    m_lowered->setPicture(*picture, Units{m_toolInput->costs.timeUnit, m_toolInput->costs.memoryUnit});
                    if (picture->panel) showToolPanels({picture->panel});
                });
}

void MainWindow::askWhatIf(const ToolInput& input)
{
    auto question = m_whatIf->question();
    if (!question) { // its text is incomplete: the last answer stays
        m_toolPending = false;
        m_whatIf->setFault(question.error());
        return;
    }
    struct Answer {
        std::shared_ptr<const WhatIfBase> base;
        WhatIfPicture picture;
    };
    makePicture(
        [schedule = input.schedule, costs = input.costs, base = m_whatIfBase, question = *question] {
            auto answer = std::make_shared<Answer>();
            answer->base = base ? base : std::make_shared<const WhatIfBase>(whatIfBase(schedule, costs));
            answer->picture = whatIfPicture(*answer->base, question);
            return std::shared_ptr<const Answer>(std::move(answer));
        },
        [this, question = *question](const std::shared_ptr<const Answer>& answer) {
            m_whatIfBase = answer->base;
            m_whatIf->setPicture(answer->picture, question, Units{m_toolInput->costs.timeUnit, m_toolInput->costs.memoryUnit});
            if (answer->picture.panel) showToolPanels({answer->base->panel, answer->picture.panel});
        });
}

void MainWindow::askWhatIf(const QString& changes)
{
    setTool(Tool::WhatIf);
    if (m_tool == Tool::WhatIf) m_whatIf->setFurther(changes);
}

void MainWindow::askResiduals(const ToolInput& input)
{
    std::vector<ResidualPanel::Source> others;
    for (const RunRef& ref : runs()->refs()) {
        const RunInfo* info = runs()->info(ref);
        if (info == nullptr || ref == m_shown->ref || info->stages != m_shown->run->info.stages || info->ranks != m_shown->run->info.ranks) continue;
        others.push_back({ref, ref.file == m_shown->ref.file ? runTitle(*info) : tr("%1 of %2").arg(runTitle(*info), QFileInfo(ref.file).fileName())});
    }
    m_residuals->setSources(others);
    const RunRef source = m_residuals->source();
    const Units units{m_shown->run->timeline->timeUnit(), m_shown->run->timeline->memoryUnit()};
    if (source.valid() && !(source == m_residualSource)) {
        m_library->request(source, -1, [this, source, generation = m_toolGeneration](Result<std::shared_ptr<const RunView>> view) {
            if (generation != m_toolGeneration) return;
            auto costs = view ? costsOf(*(*view)->run) : tl::unexpected(view.error());
            if (!costs) {
                m_toolPending = false;
                m_residuals->setFault(costs.error());
                return;
            }
            inBackground(
                this,
                [costs = std::move(*costs), run = (*view)->run, ranks = m_shown->run->info.ranks, file = m_library->isSimulated(source.file) ? std::string() : source.file.toStdString()] { return withBackward(costs, *run, ranks, file).costs; },
                [this, source, generation](CostModel complete) {
                    if (generation != m_toolGeneration) return;
                    m_residualSource = source;
                    m_residualCosts = std::move(complete);
                    askTool();
                });
        });
        return;
    }
    makePicture(
        [run = m_shown->run, step = m_shown->step, costs = source.valid() ? *m_residualCosts : input.costs] {
            return std::make_shared<const ResidualPicture>(residualPicture(*run, step, costs));
        },
        [this, view = m_shown, units](const std::shared_ptr<const ResidualPicture>& picture) {
            if (view != m_shown) return;
            m_residuals->setPicture(picture, view->run->timeline, view->step, units);
            m_residuals->setSelected(m_state->selected().valid() ? m_state->selected().span : noSpan);
        });
}

void MainWindow::chooseOp(SpanId span)
{
    if (m_mode != Mode::Run || !m_shown || span >= m_shown->run->timeline->spans().size()) return;
    const int step = m_shown->run->timeline->spans()[span].step;
    if (step != m_shown->step) {
        m_selectLater = span;
        showRun(m_shown->ref, step);
        return;
    }
    selectOp(span);
}

bool MainWindow::selectOp(SpanId span)
{
    if (m_mode == Mode::Edit || m_mode == Mode::Empty || !m_shown) return false;
    if (showsToolPicture()) setTool(Tool::None);
    const auto& panels = m_timeline->panels();
    if (panels.empty() || span >= panels.front()->timeline->spans().size()) return false;
    m_state->select({0, span});
    m_timeline->ensureVisible({0, span});
    return true;
}

} // namespace stagewright
