// Edit mode: entering and leaving it, and runs that are made to be edited.
#include <QFileInfo>

#include "app/costs/split_sources.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/edit/empty_canvas.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/deadlock.h"
#include "app/ui/workspace/workspace.h"
#include "traces/fit/executed_run.h"
#include "traces/fit/fit_costs.h"
#include "traces/report/run_report.h"
#include "traces/run/simulated_run.h"
#include "widgets/literals.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

void EditController::refreshEdit()
{
    m_workspace.refreshActions();
    m_workspace.refreshCaptions();
}

void EditController::showEditedDeadlock()
{
    showDeadlock(m_workspace, std::make_shared<const Schedule>(m_editor->schedule()), {},
                 [this](const Schedule& fixed) {
                     if (m_workspace.shown().mode() == Shown::Mode::Edit)
                         m_editor->replace(u"remove the deadlock"_s, fixed);
                 });
}

void EditController::editRun(Run run, const QString& change, Schedule order)
{
    const RunRef ref = m_keptElsewhere ? m_workspace.library()->addAside(std::move(run))
                                       : m_workspace.library()->addSimulated(std::move(run));
    m_workspace.library()->request(ref, -1,
                                   [this, request = m_workspace.shown().request(), change,
                                    order = std::move(order)](Result<std::shared_ptr<const RunView>> view) {
                                       if (!m_workspace.shown().answered(request))
                                           return; // superseded by another request
                                       if (!view) {
                                           m_workspace.banner()->showError(QString(), view.error());
                                           m_workspace.refreshCaptions();
                                           return;
                                       }
                                       m_workspace.shown().present(*view, true);
                                       if (change.isEmpty()) {
                                           startEdit(order);
                                           return;
                                       }
                                       startEdit(std::nullopt);
                                       if (m_workspace.shown().mode() == Shown::Mode::Edit)
                                           m_editor->replace(change, order);
                                   });
}

void EditController::editRunAgain(const RunRef& ref, const Schedule& original, const QString& change,
                                  const Schedule& order, const std::function<void(bool)>& done)
{
    auto begin = [=, this] {
        const quint64 request = m_workspace.shown().request();
        m_workspace.library()->request(ref, -1, [=, this](const Result<std::shared_ptr<const RunView>>& view) {
            if (!m_workspace.shown().answered(request)) return; // superseded by another request
            const auto schedule = view ? scheduleOfRun(*(*view)->run) : Result<Schedule>(tl::unexpected(view.error()));
            if (!schedule || schedule->order != original.order || schedule->placement != original.placement) {
                m_workspace.refreshCaptions();
                done(false);
                return;
            }
            m_workspace.shown().present(*view, true);
            startEdit(std::nullopt);
            if (m_workspace.shown().mode() == Shown::Mode::Edit) m_editor->replace(change, order);
            done(m_workspace.shown().mode() == Shown::Mode::Edit);
        });
    };
    if (m_workspace.runs()->info(ref) != nullptr) return begin();
    if (m_workspace.library()->isSimulated(ref.file) || !QFileInfo::exists(ref.file)) return done(false);
    auto once = std::make_shared<std::vector<QMetaObject::Connection>>();
    auto answered = [=, this](const QString& path) {
        if (path != ref.file) return;
        for (const QMetaObject::Connection& one : *once) disconnect(one);
        if (m_workspace.runs()->info(ref) != nullptr)
            begin();
        else
            done(false);
    };
    once->push_back(connect(m_workspace.library(), &RunLibrary::listed, this, answered));
    once->push_back(connect(m_workspace.library(), &RunLibrary::failed, this, answered));
    m_workspace.library()->open(ref.file);
}

void EditController::newEmpty(int ranks, int stages, int microbatches)
{
    auto canvas = emptyCanvas(ranks, stages, microbatches);
    if (!canvas) return m_workspace.banner()->showError(QString(), canvas.error());
    editRun(std::move(canvas->run), {}, canvas->order);
}

bool EditController::editIncomplete(const Schedule& order, const QString& name)
{
    auto canvas = incompleteCanvas(order, name);
    if (canvas) editRun(std::move(canvas->run), {}, canvas->order);
    return canvas.has_value();
}

void EditController::enterEdit() { startEdit(std::nullopt); }

void EditController::startEdit(std::optional<Schedule> beginWith)
{
    if (m_workspace.shown().mode() == Shown::Mode::Edit) return;
    m_workspace.refreshActions(); // the button stays unchecked until it succeeds
    m_workspace.shown().setTool(Shown::Tool::None);
    const std::shared_ptr<const RunView> source =
        m_workspace.shown().mode() == Shown::Mode::Compare ? m_workspace.shown().other() : m_workspace.shown().view();
    if (!source) return;
    emit m_workspace.shown().asked();
    auto schedule = beginWith ? Result<Schedule>(std::move(*beginWith)) : scheduleOfRun(*source->run);
    if (!schedule) {
        m_workspace.banner()->showRefusal(u"this run can't be edited"_s, schedule.error());
        return;
    }
    auto costs = costsOf(*source->run);
    if (!costs) {
        m_workspace.banner()->showRefusal(u"this run can't be edited"_s, costs.error());
        return;
    }
    // Timed as levers, what-ifs and residuals time the run: with its own links and channels.
    Channels channels;
    if (const auto executed = executedRun(*source->run); executed && !executed->lowering) {
        *costs = executed->costs;
        channels = executed->channels;
    }
    const CostModel measured = *costs;
    BackwardCosts complete = withBackward(measured, *source->run, schedule->ranks, {});
    complete.costs.origin = costs->origin;
    *costs = complete.costs;
    if (costs->origin.empty())
        costs->origin = costs->source == CostSource::Fitted
                            ? u"fitted from %1"_s.arg(runTitle(source->run->info)).toStdString()
                            : u"unit costs"_s.toStdString();
    const SpanRef selected = m_workspace.viewState()->selected();
    int rank = -1;
    int position = -1;
    if (selected.valid() && selected.span < source->run->timeline->spans().size() &&
        m_workspace.shown().mode() == Shown::Mode::Run) {
        rank = source->run->timeline->trackOf(selected.span).rank;
        position = source->panel->positionOf(selected.span);
    }
    m_source = source;
    m_workspace.shown().presentEdited(source);
    m_panel->setSource(runTitle(source->run->info), QString::fromStdString(costs->origin),
                       stepTimesOf(*source->run, source->figures ? source->figures->bubbles.stepTime() : 0));
    begun(source, *schedule, *costs, channels, {rank, position});
    completeSplit(measured, complete);
    // The axis stays while the step gets shorter, so that it looks so. A lesson sets its own.
    if (!m_keptElsewhere) m_workspace.viewState()->setLeastEnd(m_workspace.viewState()->extent().end);
    m_workspace.viewState()->fitAll();
    m_workspace.viewState()->clearHistory();
    m_workspace.views().timeline->setFocus();
    m_workspace.shown().ready();
}

void EditController::leaveEdit()
{
    if (m_workspace.shown().mode() != Shown::Mode::Edit) return;
    const auto source = m_source;
    m_editor->stop();
    if (source)
        m_workspace.shown().present(source, true);
    else
        m_workspace.shown().showNothing();
}

std::vector<ShowEntry> EditController::showTable()
{
    return {
        {"edit", 0, [](const ShowRequest& request) { request.workspace.feature<OrderEditing>()->enterEdit(); }},
    };
}

FeatureEntry editFeature() { return featureEntry<EditController>(); }

} // namespace stagewright
