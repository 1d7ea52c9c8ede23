// Tools over the run shown: each takes the panel at the right and, where it has one, a picture of its own in the timeline.
#include <QStackedWidget>

#include "app/ui/banner.h"
#include "app/ui/main_window.h"
#include "schedules/deadlock.h"
#include "widgets/background.h"
#include "widgets/tools/lowered_panel.h"

namespace stagewright {

void MainWindow::buildTools()
{
    m_lowered = new LoweredPanel(m_panels);
    m_panels->addWidget(m_lowered);
    connect(m_lowered, &LoweredPanel::changed, this, &MainWindow::askTool);
    connect(m_lowered, &LoweredPanel::closeAsked, this, [this] { setTool(Tool::None); });
    connect(m_lowered, &LoweredPanel::deadlockAsked, this, [this] {
        if (m_loweredPicture && m_loweredPicture->lowered)
            showDeadlock(m_loweredPicture->lowered, m_lowered->channels(), [this](const Schedule& fixed) { openOrder(fixed, QStringLiteral("mended")); });
    });
}

void MainWindow::setTool(Tool tool)
{
    if (m_mode != Mode::Run) tool = Tool::None;
    const bool leaves = m_tool != tool;
    m_tool = tool;
    ++m_toolGeneration;
    m_toolPending = false;
    m_toolInput.reset();
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
    }
    return m_side;
}

void MainWindow::showToolPanels(const std::vector<std::shared_ptr<const TimelinePanel>>& panels)
{
    const bool fitted = m_state->isFitted();
    m_timeline->setTrackHeight(m_tool == Tool::Lowered ? 26 : 0);
    m_timeline->setPanels(panels);
    m_memory->setPanels(panels);
    m_legend->setPanels(panels);
    m_timeline->setTitle(m_tool == Tool::Lowered ? tr("Lowered") : tr("Timeline"));
    if (fitted) m_state->fitAll();
    splitViews();
    refreshNotes();
    refreshStatus();
}

// The schedule of the run and the costs it is simulated with; made once for a run and tool.
Result<std::shared_ptr<const MainWindow::ToolInput>> MainWindow::toolInput()
{
    if (m_toolInput) return m_toolInput;
    auto schedule = scheduleOfRun(*m_shown->run);
    if (!schedule) return tl::unexpected(schedule.error());
    auto costs = costsOf(*m_shown->run);
    if (!costs) return tl::unexpected(costs.error());
    completeCosts(*costs, schedule->ranks);
    auto input = std::make_shared<ToolInput>();
    input->schedule = std::make_shared<const Schedule>(withoutCommunication(*schedule));
    input->costs = std::move(*costs);
    m_toolInput = input;
    return m_toolInput;
}

void MainWindow::askTool()
{
    if (m_tool == Tool::None || !m_shown || m_mode != Mode::Run) return;
    auto input = toolInput();
    if (!input) {
        m_banner->showError(tr("this run has no order that could be simulated again"), input.error());
        setTool(Tool::None);
        return;
    }
    const quint64 generation = ++m_toolGeneration;
    m_toolPending = true;
    if (m_tool == Tool::Lowered) {
        LoweredRequest request{(*input)->schedule, (*input)->costs, m_lowered->lowering(), m_lowered->channels(), m_lowered->latency()};
        inBackground(
            this, [request] { return std::make_shared<const LoweredPicture>(loweredPicture(request)); },
            [this, generation](const std::shared_ptr<const LoweredPicture>& picture) {
                if (generation != m_toolGeneration) return;
                m_toolPending = false;
                m_loweredPicture = picture;
                m_lowered->setPicture(*picture, Units{m_toolInput->costs.timeUnit, m_toolInput->costs.memoryUnit});
                if (picture->panel) showToolPanels({picture->panel});
            });
    }
}

} // namespace stagewright
