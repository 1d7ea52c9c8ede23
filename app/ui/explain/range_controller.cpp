#include "app/ui/explain/range_controller.h"

#include <QSettings>
#include <QVBoxLayout>

#include "app/ui/workspace/workspace.h"
#include "traces/report/range_report.h"
#include "traces/report/run_report.h"
#include "widgets/literals.h"
#include "widgets/panel/side_panel.h"
#include "widgets/timeline/aggregation_panel.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

RangeController::RangeController(Workspace& workspace) : Feature(workspace), m_summing(workspace.jobs())
{
    QWidget* work = workspace.views().legend->parentWidget();
    m_table = new AggregationPanel(work);
    m_table->setMaximumHeight(200);
    auto* layout = qobject_cast<QVBoxLayout*>(work->layout());
    layout->insertWidget(layout->indexOf(workspace.views().legend), m_table);
    m_table->setBy(static_cast<AggregateBy>(
        std::clamp(QSettings().value(u"range/by"_s, 0).toInt(), 0, static_cast<int>(AggregateBy::Name))));
    connect(m_table, &AggregationPanel::byChanged, this,
            [](AggregateBy by) { QSettings().setValue(u"range/by"_s, static_cast<int>(by)); });
    connect(m_table, &AggregationPanel::cleared, this, [this] {
        m_workspace.viewState()->clearSelection();
        m_workspace.views().timeline->setFocus();
    });
    connect(workspace.views().side, &SidePanel::unfilterAsked, workspace.viewState(), &ViewState::clearSelection);
    connect(workspace.viewState(), &ViewState::selectionChanged, this, &RangeController::selectionChanged);
    connect(workspace.views().timeline, &TimelineView::rowsLaidOut, this, &RangeController::selectionChanged);
    connect(&workspace.shown(), &Shown::modeChanged, this, &RangeController::selectionChanged);
    connect(&workspace.shown(), &Shown::presented, this, [this] {
        m_presented = m_workspace.shown().view();
        filterPanel();
    });
    connect(&workspace, &Workspace::themeChanged, this, [this] { m_table->setTheme(m_workspace.theme()); });
}

bool RangeController::settled() const { return m_table->ready(); }

void RangeController::selectionChanged()
{
    TimelineView* view = m_workspace.views().timeline;
    m_table->setAreas(view->panels(), m_workspace.viewState()->areas(), view->scene().rows.plan);
    filterPanel();
}

void RangeController::filterPanel()
{
    const auto shown = m_workspace.shown().view();
    const auto range = m_workspace.viewState()->selectedRange();
    const bool hasOps = shown && !shown->panel->noOps; // else the panel has those of the devices' whole step only
    if (!hasOps || !range || range->empty() || m_workspace.shown().mode() != Shown::Mode::Run) {
        m_summing.drop();
        if (hasOps && shown->excerpt && m_presented.lock() == shown && m_workspace.shown().mode() == Shown::Mode::Run)
            m_workspace.views().side->setFilter(shown->figures,
                                                u"All figures are for the part in view, %1."_s.arg(
                                                    durationText(shown->excerpt->duration(), shown->panel->units)));
        else
            m_workspace.views().side->setFilter(nullptr);
        return;
    }
    if (m_summing.waits([this] { filterPanel(); })) return;
    const TimeRange asked{range->begin + shown->panel->origin, range->end + shown->panel->origin};
    m_summing.start(
        [shown, asked] {
            return std::make_shared<const RunReport>(
                reportIn(*shown->figures, *shown->run->timeline, asked.begin, asked.end));
        },
        [this, shown, asked](std::shared_ptr<const RunReport> figures) {
            const auto now = m_workspace.viewState()->selectedRange();
            if (shown != m_workspace.shown().view() || !now || m_workspace.shown().mode() != Shown::Mode::Run) return;
            const Units units = shown->panel->units;
            const Nanos length = figures->bubbles.makespan();
            QString note = u"All figures are for the selected range, %1."_s.arg(durationText(length, units));
            if (length < asked.end - asked.begin)
                note = u"All figures are for the part of the selected range inside step %1, %2."_s.arg(shown->step + 1)
                           .arg(durationText(length, units));
            m_workspace.views().side->setFilter(std::move(figures), note);
        });
}

namespace {

// The middle of every rank's time.
void showRange(const ShowRequest& request)
{
    Workspace& workspace = request.workspace;
    const TimeRange all = workspace.viewState()->extent();
    const int ranks = static_cast<int>(workspace.views().timeline->scene().rows.plan->rankAt.size());
    workspace.viewState()->setAreas(
        {{{all.begin + all.duration() * 3 / 10, all.begin + all.duration() * 6 / 10}, 0, ranks - 1}});
    request.settle();
}

} // namespace

std::vector<ShowEntry> RangeController::showTable()
{
    return {
        {"range", 190, &showRange},
    };
}

FeatureEntry rangeFeature() { return featureEntry<RangeController>(); }

} // namespace stagewright
