// Idle time explained: causes and gaps marked on the timeline, the chain to the root, slack of ops.
#include <algorithm>

#include "app/ui/shell/main_window.h"
#include "traces/analysis/slack.h"
#include "widgets/background.h"
#include "widgets/timeline/timeline_notes.h"

namespace stagewright {

void MainWindow::connectGaps()
{
    GapSections* gaps = m_side->gaps();
    connect(gaps, &GapSections::causeChosen, this, &MainWindow::chooseCause);
    connect(gaps, &GapSections::gapChosen, this, &MainWindow::chooseGap);
    connect(gaps, &GapSections::walkAsked, this, &MainWindow::walkGaps);
    connect(gaps, &GapSections::opChosen, this, [this](SpanId span) {
        m_state->select({0, span});
        m_timeline->ensureVisible({0, span});
    });
    connect(m_timeline, &TimelineView::idleClicked, this, [this](int panel, int rank, Nanos axisTime) {
        if (m_mode != Mode::Run || m_tool != Tool::None || panel != 0 || !m_shown) return;
        const BubbleReport& report = m_shown->figures->bubbles;
        const Nanos time = axisTime + m_shown->panel->origin;
        for (std::size_t i = 0; i < report.gaps.size(); ++i)
            if (report.gaps[i].rank == rank && time >= report.gaps[i].start && time < report.gaps[i].end) {
                chooseGap(static_cast<int>(i));
                return;
            }
        chooseGap(-1);
    });
}

// Another run or step: nothing is marked.
void MainWindow::resetGaps()
{
    m_cause.reset();
    m_gap = -1;
    m_gapExplanation.reset();
    m_slack.reset();
    ++m_gapGeneration;
    m_slackAsked = false;
    askSlack();
    refreshNotes();
}

// Only where it is shown: for fading ops, or in an op's description.
void MainWindow::askSlack()
{
    const bool shown = (*m_actions)[ActionId::Slack]->isChecked() || m_state->selected().valid();
    if (!shown || m_slackAsked || !m_shown || m_mode != Mode::Run || m_shown->partial) return;
    m_slackAsked = true;
    inBackground(
        this,
        [run = m_shown->run, step = m_shown->step] {
            auto slack = std::make_shared<std::vector<Nanos>>(run->timeline->spans().size(), Nanos(-1));
            for (const OpSlack& op : slackOf(*run->timeline, step)) (*slack)[op.span] = op.slack;
            return std::shared_ptr<const std::vector<Nanos>>(std::move(slack));
        },
        [this, view = m_shown](const std::shared_ptr<const std::vector<Nanos>>& slack) {
            if (view != m_shown || m_mode != Mode::Run) return;
            m_slack = slack;
            m_mostSlack = slack->empty() ? 0 : *std::max_element(slack->begin(), slack->end());
            m_side->setSlack(slack);
            refreshNotes();
        });
}

void MainWindow::chooseCause(std::optional<IdleCause> cause)
{
    m_cause = cause;
    m_side->gaps()->setCause(cause);
    refreshNotes();
}

void MainWindow::chooseGap(int index)
{
    if (m_mode != Mode::Run || !m_shown || m_tool != Tool::None) return;
    const BubbleReport& report = m_shown->figures->bubbles;
    if (index >= static_cast<int>(report.gaps.size())) return;
    const quint64 generation = ++m_gapGeneration;
    m_gap = index;
    m_gapExplanation.reset();
    m_side->gaps()->setSelected(index, std::nullopt);
    if (index < 0) {
        refreshNotes();
        return;
    }
    m_state->clearSelection();
    refreshNotes();
    const Gap gap = report.gaps[static_cast<std::size_t>(index)];
    const TimeRange visible = m_state->visible();
    const Nanos begin = gap.start - m_shown->panel->origin, end = gap.end - m_shown->panel->origin;
    if (end <= visible.begin || begin >= visible.end) m_state->fit({begin - (end - begin) * 4, end + (end - begin) * 4});
    m_timeline->ensureRowVisible(0, gap.rank);
    m_toolPending = true;
    inBackground(
        this,
        [run = m_shown->run, step = m_shown->step, gap] {
            return std::make_shared<const GapExplanation>(GapExplainer(*run->timeline, step).explain(gap));
        },
        [this, generation, index](const std::shared_ptr<const GapExplanation>& explanation) {
            m_toolPending = false;
            if (generation != m_gapGeneration || m_mode != Mode::Run) return;
            m_gapExplanation = explanation;
            m_side->gaps()->setSelected(index, *explanation);
            m_side->showGap();
            refreshNotes();
        });
}

void MainWindow::walkGaps(int by)
{
    if (m_mode != Mode::Run || !m_shown || m_tool != Tool::None) return;
    const std::vector<int> order = gapsByLength(m_shown->figures->bubbles, m_cause);
    if (order.empty()) return;
    const auto at = std::find(order.begin(), order.end(), m_gap);
    const auto count = static_cast<std::ptrdiff_t>(order.size());
    std::ptrdiff_t next = by > 0 ? 0 : count - 1;
    if (at != order.end()) next = ((at - order.begin()) + by + count) % count;
    chooseGap(order[static_cast<std::size_t>(next)]);
}

void MainWindow::refreshNotes()
{
    if (m_mode != Mode::Run || !m_shown || showsToolPicture()) {
        m_timeline->setNotes(nullptr);
        return;
    }
    auto notes = std::make_shared<TimelineNotes>();
    const BubbleReport& report = m_shown->figures->bubbles;
    const Nanos origin = m_shown->panel->origin;
    const auto noteOf = [origin](const Gap& gap) { return GapNote{gap.rank, {gap.start - origin, gap.end - origin}}; };
    if (m_cause)
        for (const Gap& gap : report.gaps)
            if (gap.cause == *m_cause) notes->gaps.push_back(noteOf(gap));
    if (m_gap >= 0 && m_gap < static_cast<int>(report.gaps.size())) notes->selected = noteOf(report.gaps[static_cast<std::size_t>(m_gap)]);
    if (m_gapExplanation)
        for (const GapLink& step : m_gapExplanation->chain)
            if (step.span != noSpan) notes->chain.push_back(step.span);
    if (m_slack && (*m_actions)[ActionId::Slack]->isChecked()) {
        notes->slack = m_slack;
        notes->mostSlack = m_mostSlack;
    }
    m_timeline->setNotes(std::move(notes));
}

} // namespace stagewright
