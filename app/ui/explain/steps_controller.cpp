#include "app/ui/explain/steps_controller.h"

#include <algorithm>

#include <QAction>
#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QGridLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QStatusBar>
#include <QToolButton>

#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/search/find_field.h"
#include "widgets/style.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

std::vector<ActionEntry> StepsController::actionTable()
{
    return {
        item("allSteps", ActionGroup::ViewSteps, u"All ste&ps on one axis"_s, "Ctrl+Shift+A",
             u"Every step of the run, with a line at the start of each; again: a single step"_s, {.checkable = true}),
        item("chooseSteps", ActionGroup::ViewSteps, u"Choose s&teps…"_s, {}, u"A range of steps on one axis"_s),
        item("previousStep", ActionGroup::AnalyseSteps, u"&Previous step"_s, "Ctrl+PgUp", {},
             {.missing = u"This run has only one step."_s}),
        item("nextStep", ActionGroup::AnalyseSteps, u"&Next step"_s, "Ctrl+PgDown", {},
             {.missing = u"This run has only one step."_s}),
    };
}

StepsController::StepsController(Workspace& workspace)
    : Feature(workspace), m_box(workspace.views().steps), m_progress(new QProgressBar(workspace.window())),
      m_cancel(new QToolButton(workspace.window()))
{
    m_progress->setObjectName(u"stepsProgress"_s);
    m_progress->setRange(0, 1000);
    m_progress->setTextVisible(false);
    m_progress->setFixedWidth(120);
    m_progress->setAccessibleName(u"Reading every step"_s);
    m_progress->setToolTip(u"Spans read so far, of all in the run. The overview stays until all have been read."_s);
    m_cancel->setObjectName(u"cancelSteps"_s);
    m_cancel->setText(u"Cancel"_s);
    m_cancel->setAccessibleName(u"Cancel reading every step"_s);
    m_cancel->setToolTip(u"Stop reading and show one step again"_s);
    m_cancel->setAutoRaise(true);
    m_progress->hide();
    m_cancel->hide();
    workspace.room().statusBar()->addWidget(m_progress);
    workspace.room().statusBar()->addWidget(m_cancel);
    connect(m_cancel, &QToolButton::clicked, this, &StepsController::cancel);
    RunLibrary* library = workspace.library();
    connect(library, &RunLibrary::busyChanged, this, &StepsController::refresh);
    connect(library, &RunLibrary::lanesProgress, this, [this](qint64 done, qint64 total) {
        m_progress->setValue(total > 0 ? static_cast<int>(done * 1000 / total) : 0);
    });
    connect(&workspace.views().timeline->selection(), &SelectionOverlay::idleClicked, this, &StepsController::detail);
    connect(&workspace.views().timeline->selection(), &SelectionOverlay::sliceAsked, this, &StepsController::detail);
    connectActions();
}

void StepsController::connectActions()
{
    Actions& actions = m_workspace.actions();
    connect(actions["allSteps"], &QAction::triggered, this, [this](bool wanted) {
        const auto view = m_workspace.shown().view();
        if (!view) return;
        if (wanted)
            m_workspace.shown().showSteps(view->ref, {});
        else
            m_workspace.shown().showRun(view->ref, view->step);
    });
    connect(actions["chooseSteps"], &QAction::triggered, this, &StepsController::choose);
    connect(actions["previousStep"], &QAction::triggered, this, [this] { stepBy(-1); });
    connect(actions["nextStep"], &QAction::triggered, this, [this] { stepBy(1); });
    connect(m_box, &QComboBox::activated, this, [this](int index) {
        Shown& shown = m_workspace.shown();
        if (!shown.view() || shown.mode() != Shown::Mode::Run) return;
        const int chosen = m_box->itemData(index).toInt();
        if (chosen >= 0)
            shown.showRun(shown.ref(), chosen);
        else if (chosen == -2)
            shown.showSteps(shown.ref(), {});
        else if (chosen == -3)
            choose();
    });
    connect(&m_workspace.shown(), &Shown::modeChanging, this, &StepsController::fillBox);
    connect(&m_workspace, &Workspace::actionsRefreshed, this, [this] {
        const auto& view = m_workspace.shown().view();
        const bool several = m_workspace.shown().mode() == Shown::Mode::Run && view && view->stepCount > 1;
        Actions& all = m_workspace.actions();
        for (const ActionId id : {"previousStep", "nextStep", "allSteps", "chooseSteps"}) all[id]->setEnabled(several);
        all["allSteps"]->setChecked(several && view->steps);
    });
}

void StepsController::fillBox()
{
    m_box->clear();
    const bool shown = m_workspace.shown().mode() == Shown::Mode::Run && m_workspace.shown().view() &&
                       m_workspace.shown().view()->stepCount > 1;
    m_box->setEnabled(shown);
    if (!shown) {
        m_box->addItem(m_workspace.shown().mode() == Shown::Mode::Run ? u"One step"_s : u"Step"_s);
        return;
    }
    const Run& run = *m_workspace.shown().view()->run;
    const int steps = m_workspace.shown().view()->stepCount;
    const int median = m_workspace.shown().view()->median;
    for (int step = 0; step < steps; ++step) {
        QString text = u"Step %1 of %2"_s.arg(step + 1).arg(steps);
        if (step < run.info.warmupSteps)
            text += u", warm-up"_s;
        else if (step == median)
            text += u", median"_s;
        m_box->addItem(text, step);
    }
    m_box->insertSeparator(m_box->count());
    const bool part = m_workspace.shown().view()->steps && (m_workspace.shown().view()->steps->first > 0 ||
                                                            m_workspace.shown().view()->steps->last < steps - 1);
    if (part)
        m_box->addItem(u"Steps %1 to %2"_s.arg(m_workspace.shown().view()->steps->first + 1)
                           .arg(m_workspace.shown().view()->steps->last + 1),
                       -1);
    m_box->addItem(u"All %1 steps"_s.arg(steps), -2);
    m_box->addItem(u"Choose steps…"_s, -3);
    m_box->setCurrentIndex(m_workspace.shown().view()->steps ? m_box->findData(part ? -1 : -2)
                                                             : m_workspace.shown().view()->step);
}

void StepsController::stepBy(int by)
{
    if (m_workspace.shown().mode() != Shown::Mode::Run || !m_workspace.shown().view()) return;
    const int next = m_workspace.shown().view()->step + by;
    if (next >= 0 && next < m_workspace.shown().view()->stepCount)
        m_workspace.shown().showRun(m_workspace.shown().view()->ref, next);
}

void StepsController::choose()
{
    if (m_workspace.shown().mode() != Shown::Mode::Run || !m_workspace.shown().view()) return;
    const int all = m_workspace.shown().view()->stepCount;
    const ShownSteps now = m_workspace.shown().view()->steps.value_or(
        ShownSteps{m_workspace.shown().view()->step, m_workspace.shown().view()->step});
    auto* dialog = new QDialog(m_workspace.window());
    dialog->setObjectName(u"chooseSteps"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(u"Steps on one axis"_s);
    auto* layout = new QGridLayout(dialog);
    layout->setContentsMargins(20, 18, 20, 16);
    layout->setSpacing(9);
    QSpinBox* boxes[2] = {};
    const QString names[2] = {u"&From step"_s, u"&To step"_s};
    for (int i = 0; i < 2; ++i) {
        boxes[i] = new QSpinBox(dialog);
        boxes[i]->setRange(1, all);
        boxes[i]->setValue((i == 0 ? now.first : now.last) + 1);
        auto* label = new QLabel(names[i], dialog);
        label->setBuddy(boxes[i]);
        layout->addWidget(label, i, 0);
        layout->addWidget(boxes[i], i, 1);
    }
    layout->addWidget(
        makeLabel(u"Of %1 steps. The side panel keeps the figures of the median step."_s.arg(all), "secondary", dialog),
        2, 0, 1, 2);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, dialog);
    buttons->button(QDialogButtonBox::Ok)->setText(u"Show"_s);
    buttons->button(QDialogButtonBox::Ok)->setObjectName(u"primary"_s);
    layout->addWidget(buttons, 3, 0, 1, 2);
    connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, dialog,
            [this, dialog, ref = m_workspace.shown().view()->ref, from = boxes[0], to = boxes[1]] {
                const int first = std::min(from->value(), to->value()) - 1,
                          last = std::max(from->value(), to->value()) - 1;
                dialog->accept();
                if (first == last)
                    m_workspace.shown().showRun(ref, first);
                else
                    m_workspace.shown().showSteps(ref, {first, last});
            });
    connect(dialog, &QDialog::finished, this, &StepsController::fillBox); // the box shows what is shown
    dialog->open();
}

void StepsController::refresh()
{
    const bool reading = m_workspace.library()->readsEveryStep();
    if (reading && !m_progress->isVisible()) m_progress->setValue(0);
    m_progress->setVisible(reading);
    m_cancel->setVisible(reading);
}

void StepsController::cancel()
{
    m_workspace.library()->cancelEveryStep();
    refresh();
}

void StepsController::detail(int panel, int rank, Nanos axisTime)
{
    const auto& panels = m_workspace.views().timeline->panels();
    if (m_workspace.shown().mode() != Shown::Mode::Run || panel != 0 || panels.empty() || !panels.front()->isPart() ||
        panels.front()->overview)
        return;
    if (m_workspace.library()->vastRun(m_workspace.shown().ref())) return; // its steps are read in excerpts
    const TimelinePanel& shown = *panels.front();
    if (rank < 0 || rank >= static_cast<int>(shown.ranks.size())) return;
    const LaneData& lane = shown.ranks[static_cast<std::size_t>(rank)].compute;
    const std::size_t at = lane.firstEndingAfter(axisTime);
    if (at >= lane.size() || lane.slices()[at].begin() > axisTime || lane.spanOf(at) != noSpan) return;
    const int step = shown.stepNumberAt(axisTime);
    if (step < 0 || step == shown.detailStep) return;
    m_workspace.shown().showEveryStep(m_workspace.shown().ref(), step,
                                      [this, rank, axisTime] { selectAt(rank, axisTime); });
}

void StepsController::fit(const ShownSteps& steps)
{
    const auto& panels = m_workspace.views().timeline->panels();
    if (panels.empty() || !panels.front()->isPart()) return;
    const int last = steps.last < 0 ? m_workspace.views().timeline->panels().front()->steps.back().step : steps.last;
    std::optional<TimeRange> range;
    for (const PanelStep& step : panels.front()->steps) {
        if (step.step < steps.first || step.step > last) continue;
        range = range ? TimeRange{std::min(range->begin, step.begin), std::max(range->end, step.end)}
                      : TimeRange{step.begin, step.end};
    }
    if (range && (steps.first > 0 || steps.last >= 0)) m_workspace.viewState()->setVisible(*range);
}

void StepsController::selectAt(int rank, Nanos axisTime)
{
    const auto& panels = m_workspace.views().timeline->panels();
    if (panels.empty() || rank >= static_cast<int>(panels.front()->ranks.size())) return;
    const LaneData& lane = panels.front()->ranks[static_cast<std::size_t>(rank)].compute;
    const std::size_t at = lane.firstEndingAfter(axisTime);
    const SpanId span = at < lane.size() ? lane.spanOf(at) : noSpan;
    if (span == noSpan) return;
    m_workspace.viewState()->select({0, span});
    m_workspace.views().timeline->selection().show({0, span});
}

void StepsController::findOn(const QString& text, const OpQuery& query, bool backward)
{
    const RunRef ref = m_workspace.shown().ref();
    const int from = m_workspace.views().timeline->panels().front()->detailStep;
    m_workspace.library()->requestMatch(
        ref, query, from, backward, [this, ref, text, from, backward](Result<int> step) {
            if (!(m_workspace.shown().ref() == ref) || (!step && step.error().code == ErrorCode::Cancelled)) return;
            if (!step || *step < 0) {
                if (step)
                    m_workspace.views().find->setAnswer(u"no match"_s, false);
                else
                    m_workspace.views().find->setFault(QString::fromStdString(step.error().message));
                return;
            }
            if (*step == from) { // around once: from its other end
                m_workspace.feature<OpFinding>()->restart(backward);
                return;
            }
            m_workspace.shown().showEveryStep(
                ref, *step, [this, text, backward] { m_workspace.feature<OpFinding>()->find(text, backward); });
        });
    refresh();
}

std::vector<ShowEntry> StepsController::showTable()
{
    return {
        {"steps", 180, [](const ShowRequest& request) { request.workspace.actions()["allSteps"]->trigger(); }},
    };
}

FeatureEntry stepsFeature() { return featureEntry<StepsController>(); }

} // namespace stagewright
