#include "app/ui/explain/gaps_controller.h"

#include <algorithm>

#include "app/ui/workspace/workspace.h"
#include "traces/analysis/slack.h"
#include "widgets/gaps/gaps_overlay.h"
#include "widgets/literals.h"
#include "widgets/panel/side_panel.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

std::vector<ActionEntry> GapsController::actionTable()
{
    return {
        item("nextGap", ActionGroup::AnalyseGaps, u"Explain the next &gap"_s, "G",
             u"Shows a gap's cause, its chain and what would remove it; the longest gap of the marked cause first"_s),
        item("previousGap", ActionGroup::AnalyseGaps, u"Explain the previous gap"_s, "Shift+G"),
        item("slack", ActionGroup::AnalyseGaps, u"&Slack of ops"_s, "Ctrl+Shift+S",
             u"Ops fade by how much later they could start; ops in full colour decide when the step ends"_s,
             {.checkable = true}),
    };
}

GapsController::GapsController(Workspace& workspace)
    : Feature(workspace), m_overlay(new GapsOverlay(this)), m_explaining(workspace.jobs()),
      m_measuring(workspace.jobs())
{
    workspace.views().timeline->add(m_overlay);
    Actions& actions = workspace.actions();
    connect(actions["nextGap"], &QAction::triggered, this, [this] { walkGaps(1); });
    connect(actions["previousGap"], &QAction::triggered, this, [this] { walkGaps(-1); });
    connect(actions["slack"], &QAction::triggered, this, [this](bool wanted) {
        askSlack();
        m_workspace.views().legend->setSlack(wanted);
        refreshMarks();
    });
    Shown& shown = workspace.shown();
    connect(&shown, &Shown::presented, this, &GapsController::reset);
    connect(&shown, &Shown::pictureChanged, this, &GapsController::refreshMarks);
    connect(&shown, &Shown::selectionShown, this, [this] {
        if (m_workspace.shown().mode() != Shown::Mode::Run) return;
        askSlack();
        // Its chain goes with a new selection, unless that is an op of the chain.
        const SpanRef op = m_workspace.viewState()->selected();
        if (m_gap < 0 || !op.valid()) return;
        const auto ofChain = [&](const GapLink& link) { return link.span == op.span; };
        if (!m_gapExplanation || std::none_of(m_gapExplanation->chain.begin(), m_gapExplanation->chain.end(), ofChain))
            chooseGap(-1);
    });
    connect(&shown, &Shown::timesRefreshed, this, [this] {
        if (m_slack && m_workspace.shown().mode() == Shown::Mode::Run)
            m_workspace.views().side->selection()->setSlack(m_slack);
    });
    connect(&workspace, &Workspace::actionsRefreshed, this, [this] {
        const auto& view = m_workspace.shown().view();
        for (const ActionId id : {"nextGap", "previousGap", "slack"})
            m_workspace.actions()[id]->setEnabled(m_workspace.shown().mode() == Shown::Mode::Run && view &&
                                                  !view->partial);
    });
    GapSections* gaps = m_workspace.views().side->gaps();
    connect(gaps, &GapSections::causeChosen, this, &GapsController::chooseCause);
    connect(gaps, &GapSections::gapChosen, this, &GapsController::chooseGap);
    connect(gaps, &GapSections::walkAsked, this, &GapsController::walkGaps);
    connect(gaps, &GapSections::opChosen, this, [this](SpanId span) {
        m_workspace.viewState()->select({0, span});
        m_workspace.views().timeline->selection().show({0, span});
    });
    connect(&m_workspace.views().timeline->selection(), &SelectionOverlay::idleClicked, this,
            [this](int panel, int rank, Nanos axisTime) {
                if (m_workspace.shown().mode() != Shown::Mode::Run || m_workspace.shown().tool() != Shown::Tool::None ||
                    panel != 0 || !m_workspace.shown().view())
                    return;
                const BubbleReport& report = m_workspace.shown().view()->figures->bubbles;
                const Nanos time = axisTime + m_workspace.shown().view()->panel->origin;
                for (std::size_t i = 0; i < report.gaps.size(); ++i)
                    if (report.gaps[i].rank == rank && time >= report.gaps[i].start && time < report.gaps[i].end) {
                        chooseGap(static_cast<int>(i));
                        return;
                    }
                chooseGap(-1);
            });
}

bool GapsController::escape()
{
    if (m_gap >= 0)
        chooseGap(-1);
    else if (m_cause)
        chooseCause(std::nullopt);
    else
        return false;
    return true;
}

void GapsController::reset()
{
    m_cause.reset();
    m_gap = -1;
    m_gapExplanation.reset();
    m_slack.reset();
    m_explaining.drop();
    m_measuring.drop();
    m_slackAsked = false;
    askSlack();
    refreshMarks();
}

// Only where it is shown: for fading ops, or in an op's description.
void GapsController::askSlack()
{
    const bool shown = m_workspace.actions()["slack"]->isChecked() || m_workspace.viewState()->selected().valid();
    if (!shown || m_slackAsked || !m_workspace.shown().view() || m_workspace.shown().mode() != Shown::Mode::Run ||
        m_workspace.shown().view()->partial)
        return;
    m_slackAsked = true;
    m_measuring.start(
        [run = m_workspace.shown().view()->run, step = m_workspace.shown().view()->step] {
            auto slack = std::make_shared<std::vector<Nanos>>(run->timeline->spans().size(), Nanos(-1));
            const StepContext context(*run->timeline, step);
            for (const OpSlack& op : context.slack()) (*slack)[op.span] = op.slack;
            return std::shared_ptr<const std::vector<Nanos>>(std::move(slack));
        },
        [this, view = m_workspace.shown().view()](const std::shared_ptr<const std::vector<Nanos>>& slack) {
            if (view != m_workspace.shown().view() || m_workspace.shown().mode() != Shown::Mode::Run) return;
            m_slack = slack;
            m_mostSlack = slack->empty() ? 0 : *std::max_element(slack->begin(), slack->end());
            m_workspace.views().side->selection()->setSlack(slack);
            refreshMarks();
        });
}

void GapsController::chooseCause(std::optional<IdleCause> cause)
{
    m_cause = cause;
    m_workspace.views().side->gaps()->setCause(cause);
    refreshMarks();
}

void GapsController::chooseGap(int index)
{
    if (m_workspace.shown().mode() != Shown::Mode::Run || !m_workspace.shown().view() ||
        m_workspace.shown().tool() != Shown::Tool::None)
        return;
    const BubbleReport& report = m_workspace.shown().view()->figures->bubbles;
    if (index >= static_cast<int>(report.gaps.size())) return;
    m_explaining.drop();
    m_gap = index;
    m_gapExplanation.reset();
    m_workspace.views().side->gaps()->setSelected(index, std::nullopt);
    if (index < 0) {
        refreshMarks();
        return;
    }
    m_workspace.viewState()->clearSelection();
    m_workspace.views().timeline->input().hideCard(); // it would lie over the chain, and the panel says more
    refreshMarks();
    const Gap gap = report.gaps[static_cast<std::size_t>(index)];
    const TimeRange visible = m_workspace.viewState()->visible();
    const Nanos begin = gap.start - m_workspace.shown().view()->panel->origin,
                end = gap.end - m_workspace.shown().view()->panel->origin;
    if (end <= visible.begin || begin >= visible.end)
        m_workspace.viewState()->fit({begin - (end - begin) * 4, end + (end - begin) * 4});
    m_workspace.views().timeline->selection().showRank(0, gap.rank);
    m_explaining.start(
        [run = m_workspace.shown().view()->run, step = m_workspace.shown().view()->step, gap] {
            return std::make_shared<const GapExplanation>(GapExplainer(StepContext(*run->timeline, step)).explain(gap));
        },
        [this, index](const std::shared_ptr<const GapExplanation>& explanation) {
            if (m_workspace.shown().mode() != Shown::Mode::Run) return;
            m_gapExplanation = explanation;
            m_workspace.views().side->gaps()->setSelected(index, *explanation);
            refreshMarks();
        });
}

void GapsController::walkGaps(int by)
{
    if (m_workspace.shown().mode() != Shown::Mode::Run || !m_workspace.shown().view() ||
        m_workspace.shown().tool() != Shown::Tool::None)
        return;
    const std::vector<int> order = gapsByLength(m_workspace.shown().view()->figures->bubbles, m_cause);
    if (order.empty()) return;
    const auto at = std::find(order.begin(), order.end(), m_gap);
    const auto count = static_cast<std::ptrdiff_t>(order.size());
    std::ptrdiff_t next = by > 0 ? 0 : count - 1;
    if (at != order.end()) next = ((at - order.begin()) + by + count) % count;
    chooseGap(order[static_cast<std::size_t>(next)]);
}

void GapsController::refreshMarks()
{
    if (m_workspace.shown().mode() != Shown::Mode::Run || !m_workspace.shown().view() ||
        m_workspace.shown().showsToolPicture()) {
        m_overlay->set(nullptr);
        return;
    }
    auto notes = std::make_shared<TimelineNotes>();
    const BubbleReport& report = m_workspace.shown().view()->figures->bubbles;
    const Nanos origin = m_workspace.shown().view()->panel->origin;
    const auto noteOf = [origin](const Gap& gap) { return GapNote{gap.rank, {gap.start - origin, gap.end - origin}}; };
    if (m_cause)
        for (const Gap& gap : report.gaps)
            if (gap.cause == *m_cause) notes->gaps.push_back(noteOf(gap));
    if (m_gap >= 0 && m_gap < static_cast<int>(report.gaps.size()))
        notes->selected = noteOf(report.gaps[static_cast<std::size_t>(m_gap)]);
    if (m_gapExplanation)
        for (const GapLink& step : m_gapExplanation->chain)
            if (step.span != noSpan) notes->chain.push_back(step.span);
    if (m_slack && m_workspace.actions()["slack"]->isChecked()) {
        notes->slack = m_slack;
        notes->mostSlack = m_mostSlack;
    }
    m_overlay->set(std::move(notes));
}

std::vector<ShowEntry> GapsController::showTable()
{
    return {
        {"gap", 50, [](const ShowRequest& request) { request.workspace.actions()["nextGap"]->trigger(); }},
        {"slack", 60, [](const ShowRequest& request) { request.workspace.actions()["slack"]->trigger(); }},
    };
}

FeatureEntry gapsFeature() { return featureEntry<GapsController>(); }

} // namespace stagewright
