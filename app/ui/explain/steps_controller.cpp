#include "app/ui/explain/steps_controller.h"

#include <QAction>
#include <QProgressBar>
#include <QStatusBar>
#include <QToolButton>

#include "app/ui/search/search_controller.h"
#include "app/ui/shell/main_window.h"
#include "widgets/search/find_field.h"

namespace stagewright {

StepsController::StepsController(MainWindow& window)
    : QObject(&window), m_window(window), m_progress(new QProgressBar(&window)), m_cancel(new QToolButton(&window))
{
    m_progress->setObjectName(QStringLiteral("stepsProgress"));
    m_progress->setRange(0, 1000);
    m_progress->setTextVisible(false);
    m_progress->setFixedWidth(120);
    m_progress->setAccessibleName(tr("Reading every step"));
    m_progress->setToolTip(tr("Spans read so far, of all in the run. The overview stays until all have been read."));
    m_cancel->setObjectName(QStringLiteral("cancelSteps"));
    m_cancel->setText(tr("Cancel"));
    m_cancel->setAccessibleName(tr("Cancel reading every step"));
    m_cancel->setToolTip(tr("Stop reading and show one step again"));
    m_cancel->setAutoRaise(true);
    m_progress->hide();
    m_cancel->hide();
    window.statusBar()->addWidget(m_progress);
    window.statusBar()->addWidget(m_cancel);
    connect(m_cancel, &QToolButton::clicked, this, &StepsController::cancel);
    RunLibrary* library = window.library();
    connect(library, &RunLibrary::busyChanged, this, &StepsController::refresh);
    connect(library, &RunLibrary::lanesProgress, this, [this](qint64 done, qint64 total) {
        m_progress->setValue(total > 0 ? static_cast<int>(done * 1000 / total) : 0);
    });
    connect(window.timelineView(), &TimelineView::idleClicked, this, &StepsController::detail);
    connect(window.timelineView(), &TimelineView::sliceAsked, this, &StepsController::detail);
}

void StepsController::refresh()
{
    const bool reading = m_window.library()->readsEveryStep();
    if (reading && !m_progress->isVisible()) m_progress->setValue(0);
    m_progress->setVisible(reading);
    m_cancel->setVisible(reading);
}

void StepsController::cancel()
{
    m_window.library()->cancelEveryStep();
    refresh();
}

void StepsController::detail(int panel, int rank, Nanos axisTime)
{
    const auto& panels = m_window.timelineView()->panels();
    if (m_window.mode() != MainWindow::Mode::Run || panel != 0 || panels.empty() || !panels.front()->isPart() || panels.front()->overview) return;
    const TimelinePanel& shown = *panels.front();
    if (rank < 0 || rank >= static_cast<int>(shown.ranks.size())) return;
    const LaneData& lane = shown.ranks[static_cast<std::size_t>(rank)].compute;
    const std::size_t at = lane.firstEndingAfter(axisTime);
    if (at >= lane.size() || lane.slices()[at].begin() > axisTime || lane.spanOf(at) != noSpan) return;
    const int step = shown.stepNumberAt(axisTime);
    if (step < 0 || step == shown.detailStep) return;
    m_window.showEveryStep(m_window.shownRef(), step, [this, rank, axisTime] { selectAt(rank, axisTime); });
}

void StepsController::fit(const ShownSteps& steps)
{
    const auto& panels = m_window.timelineView()->panels();
    if (panels.empty() || !panels.front()->isPart()) return;
    const int last = steps.last < 0 ? m_window.timelineView()->panels().front()->steps.back().step : steps.last;
    std::optional<TimeRange> range;
    for (const PanelStep& step : panels.front()->steps) {
        if (step.step < steps.first || step.step > last) continue;
        range = range ? TimeRange{std::min(range->begin, step.begin), std::max(range->end, step.end)} : TimeRange{step.begin, step.end};
    }
    if (range && (steps.first > 0 || steps.last >= 0)) m_window.viewState()->setVisible(*range);
}

void StepsController::selectAt(int rank, Nanos axisTime)
{
    const auto& panels = m_window.timelineView()->panels();
    if (panels.empty() || rank >= static_cast<int>(panels.front()->ranks.size())) return;
    const LaneData& lane = panels.front()->ranks[static_cast<std::size_t>(rank)].compute;
    const std::size_t at = lane.firstEndingAfter(axisTime);
    const SpanId span = at < lane.size() ? lane.spanOf(at) : noSpan;
    if (span == noSpan) return;
    m_window.viewState()->select({0, span});
    m_window.timelineView()->ensureVisible({0, span});
}

void StepsController::findOn(const QString& text, const OpQuery& query, bool backward)
{
    const RunRef ref = m_window.shownRef();
    const int from = m_window.timelineView()->panels().front()->detailStep;
    m_window.library()->requestMatch(ref, query, from, backward, [this, ref, text, from, backward](Result<int> step) {
        if (!(m_window.shownRef() == ref) || (!step && step.error().code == ErrorCode::Cancelled)) return;
        if (!step || *step < 0) {
            if (step)
                m_window.findField()->setAnswer(tr("no match"), false);
            else
                m_window.findField()->setFault(QString::fromStdString(step.error().message));
            return;
        }
        if (*step == from) { // around once: from its other end
            m_window.search()->restart(backward);
            return;
        }
        m_window.showEveryStep(ref, *step, [this, text, backward] { m_window.find(text, backward); });
    });
    refresh();
}

} // namespace stagewright
