#include "app/ui/edit/plan_controller.h"

#include "app/ui/compare/compare_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "widgets/background.h"

namespace stagewright {

PlanController::PlanController(MainWindow& window) : QObject(&window), m_window(window)
{
    QAction* action = window.actions()[ActionId::ComparePlan];
    connect(action, &QAction::triggered, this, [this] { compare(m_window.shownRef()); });
    connect(&window, &MainWindow::actionsRefreshed, this, [this, action] {
        const auto view = m_window.shownView();
        action->setEnabled(m_window.mode() == MainWindow::Mode::Run && view && !view->partial && view->run->info.provenance != Provenance::Simulated);
    });
    connect(&window, &MainWindow::runShown, this, &PlanController::shown);
}

void PlanController::compare(const RunRef& measured)
{
    if (!measured.valid()) return;
    const quint64 generation = ++m_generation;
    m_measured = m_plan = {};
    ++m_busy;
    m_window.library()->request(measured, -1, [this, generation, measured](Result<std::shared_ptr<const RunView>> view) {
        --m_busy;
        if (generation != m_generation) return;
        if (!view) return m_window.banner()->showError(QString(), view.error());
        ++m_busy;
        inBackground(
            this,
            [run = (*view)->run]() -> Result<std::shared_ptr<Run>> {
                auto plan = planOf(*run);
                if (!plan) return tl::unexpected(std::move(plan.error()));
                return std::make_shared<Run>(std::move(*plan));
            },
            [this, generation, measured](Result<std::shared_ptr<Run>> plan) {
                --m_busy;
                if (generation != m_generation) return;
                if (!plan) return m_window.banner()->showRefusal(tr("no plan to compare with"), plan.error());
                m_window.banner()->clear();
                m_plan = m_window.library()->addSimulated(std::move(**plan));
                m_measured = measured;
                m_window.compare()->show({m_plan, m_measured});
            });
    });
}

void PlanController::shown()
{
    if (!m_plan.valid() || m_window.mode() != MainWindow::Mode::Compare) return;
    const auto& views = m_window.compare()->shown();
    if (views.size() != 2 || !(views[0]->ref == m_plan) || !(views[1]->ref == m_measured)) return;
    m_plan = m_measured = {};
    ++m_busy;
    inBackground(
        this, [plan = views[0]->run, run = views[1]->run, comparison = m_window.comparison()] { return firstDeviation(*plan, *run, *comparison); },
        [this, of = m_window.comparison()](std::optional<Deviation> deviation) {
            --m_busy;
            if (m_window.mode() == MainWindow::Mode::Compare && m_window.comparison() == of) tell(deviation);
        });
}

void PlanController::tell(const std::optional<Deviation>& deviation)
{
    m_deviation = deviation;
    if (!deviation) {
        m_window.banner()->showNote(tr("No op starts or ends more than 2 % of the step away from its plan"));
        return;
    }
    const SpanRef ref{1, deviation->op.b};
    m_window.viewState()->select(ref);
    m_window.timelineView()->ensureVisible(ref);
    m_window.banner()->showNote(tr("First deviation from the plan: %1").arg(QString::fromStdString(deviation->sentence)));
}

} // namespace stagewright
