// One sentence on why a rank was idle.
#include "traces/analysis/explain_gap.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/model/kinds.h"
#include "schedules/timeline/message_view.h"
#include "traces/analysis/bubbles.h"

namespace stagewright {

namespace {

class Sentence {
public:
    Sentence(const Timeline& timeline, const Gap& gap) : m_timeline(timeline), m_gap(gap) {}

    std::string text() const
    {
        const std::string length = span(m_gap.end - m_gap.start);
        const std::string who = fmt::format("rank {}", m_gap.rank);
        if (!m_timeline.missingRanks().empty())
            return fmt::format("{} is idle for {}{}: what it waited for is unknown, because {}", who, length,
                               m_gap.next == noSpan ? "" : " before " + name(m_gap.next), m_timeline.missingRanks());
        if (m_gap.cause == IdleCause::Drain || m_gap.next == noSpan)
            return fmt::format("{} has no more work in this step: it is idle for {} until the last rank is done", who,
                               length);
        const std::string next = name(m_gap.next);
        if (m_gap.wait != noSpan && m_gap.blamed != noSpan)
            return fmt::format("{} waits {} before {}: {}", who, length, next, standing());
        switch (m_gap.cause) {
        case IdleCause::Warmup:
            return fmt::format("{} waits {} for its first op, {}, while the pipeline fills{}", who, length, next,
                               producer(": "));
        case IdleCause::Dependency: return fmt::format("{} waits {} before {}{}", who, length, next, producer(": "));
        case IdleCause::Transfer:
            if (m_gap.blamed == noSpan)
                return fmt::format("{} waits {} for the input of {} to arrive", who, length, next);
            return fmt::format("{} waits {} before {}: {} on rank {} has ended and its {} is still in transit", who,
                               length, next, name(m_gap.blamed), rankOf(m_gap.blamed), message(m_gap.blamed));
        case IdleCause::Order:
            if (!m_gap.hasReadyOp)
                return fmt::format("{} waits {} before {}: the schedule contains this delay", who, length, next);
            return fmt::format("{} waits {} before {} although {} could run: the schedule orders it later", who, length,
                               next, toText(m_gap.readyOp));
        case IdleCause::Memory:
            return fmt::format("{} waits {} before {}: {} could run, but would exceed the memory cap", who, length,
                               next, toText(m_gap.readyOp));
        case IdleCause::Collective:
            if (m_gap.blamed == noSpan) break;
            return isGather(m_timeline.spans()[m_gap.blamed].op.kind)
                       ? fmt::format("{} waits {} before {}: the weights of stage {} are still being gathered by {}",
                                     who, length, next, m_timeline.spans()[m_gap.blamed].op.stage, name(m_gap.blamed))
                       : fmt::format("{} waits {}: the gradients of stage {} are still being reduced by {}", who,
                                     length, m_timeline.spans()[m_gap.blamed].op.stage, name(m_gap.blamed));
        case IdleCause::Launch:
            if (m_gap.unsure && !hasInputs())
                return fmt::format("{} is idle for {} before {}: what its inputs from other ranks waited for is not in "
                                   "the run",
                                   who, length, next);
            if (m_gap.unsure)
                return fmt::format(
                    "{} starts {} only {} after its last input was made: the trace does not say when it arrived", who,
                    next, length);
            return fmt::format("{} takes {} to start {} although all its inputs are there", who, length, next);
        case IdleCause::Imbalance:
            if (m_gap.blamed == noSpan) break;
            return fmt::format(
                "{} waits {} before {} because stage {} costs more than the average stage, as in {} on rank {}", who,
                length, next, m_timeline.spans()[m_gap.blamed].op.stage, name(m_gap.blamed), rankOf(m_gap.blamed));
        case IdleCause::Straggler:
            if (m_gap.blamed == noSpan) break;
            if (m_gap.rankFactor > 0)
                return fmt::format("{} waits {} before {} because rank {} is slow: it takes {:.2f}× as long as other "
                                   "ranks for the same work, as in {}",
                                   who, length, next, rankOf(m_gap.blamed), m_gap.rankFactor, name(m_gap.blamed));
            return fmt::format(
                "{} waits {} before {} because {} on rank {} took {}, longer than the median of its kind", who, length,
                next, name(m_gap.blamed), rankOf(m_gap.blamed), span(m_timeline.spans()[m_gap.blamed].duration()));
        case IdleCause::Microbatch:
            if (m_gap.blamed == noSpan) break;
            return fmt::format("{} waits {} before {} because microbatch {} takes {:.2f}× as long as the others on "
                               "every stage, as in {} on rank {}",
                               who, length, next, m_timeline.spans()[m_gap.blamed].op.microbatch,
                               m_gap.microbatchFactor, name(m_gap.blamed), rankOf(m_gap.blamed));
        case IdleCause::PeerWait:
        case IdleCause::HeadOfLine:
            if (m_gap.blamed == noSpan) break;
            if (isCollective(m_timeline.spans()[m_gap.blamed].op.kind) && rankOf(m_gap.blamed) == m_gap.rank)
                return fmt::format(
                    "{} waits {}{}: another rank of stage {} has not come to {}, which starts on all of them at once",
                    who, length, m_gap.next == noSpan ? "" : " before " + next,
                    m_timeline.spans()[m_gap.blamed].op.stage, name(m_gap.blamed));
            if (m_gap.cause == IdleCause::PeerWait && rankOf(m_gap.blamed) != m_gap.rank && !isInput(m_gap.blamed))
                return fmt::format(
                    "{} waits {} before {}: a reduction starts only when rank {} reaches it too, after {}", who, length,
                    next, rankOf(m_gap.blamed), name(m_gap.blamed));
            return fmt::format("{} waits {} before {}: the {} of {} {}", who, length, next, message(m_gap.blamed),
                               name(m_gap.blamed),
                               m_gap.cause == IdleCause::PeerWait ? "waits until the other side is ready"
                                                                  : "is queued behind other messages");
        case IdleCause::RecomputeWait:
            return fmt::format("{} delays {} by {} until its gradient arrives, although its input is there", who, next,
                               length);
        case IdleCause::ReloadWait:
            if (m_gap.blamed == noSpan) break;
            return fmt::format("{} waits {} before {} until {} has reloaded its activations", who, length, next,
                               name(m_gap.blamed));
        default: break;
        }
        return fmt::format("{} waits {} before {}: {}", who, length, next, meaningOf(m_gap.cause));
    }

private:
    std::string span(Nanos nanos) const { return formatDuration(nanos, m_timeline.timeUnit()); }
    std::string name(SpanId id) const { return m_timeline.nameOf(m_timeline.spans()[id]); }
    int rankOf(SpanId id) const { return m_timeline.trackOf(id).rank; }
    bool hasInputs() const // from other ranks, as far as they are in the run
    {
        const auto edges = m_timeline.edgesInto(m_gap.next);
        return std::any_of(edges.begin(), edges.end(), [this](const Edge& edge) {
            return edge.kind != EdgeKind::Launch && rankOf(edge.from) != m_gap.rank;
        });
    }

    // Times in sentences count from the start of the step.
    std::string clock(Nanos time, int step) const
    {
        const auto marks = m_timeline.stepMarks();
        auto mark =
            std::lower_bound(marks.begin(), marks.end(), step, [](const StepMark& m, int s) { return m.step < s; });
        Nanos begin = m_timeline.begin();
        if (mark != marks.end() && mark->step == step) {
            begin = mark->begin;
            for (; mark != marks.end() && mark->step == step; ++mark) begin = std::min(begin, mark->begin);
        }
        return span(time - begin);
    }

    std::string message(SpanId id) const
    {
        const OpKind kind = m_timeline.spans()[id].op.kind;
        return isReturn(kind) ? "gradient" : "output";
    }

    bool isInput(SpanId id) const
    {
        for (const Edge& edge : m_timeline.edgesInto(m_gap.next))
            if (edge.from == id) return true;
        return false;
    }

    // Describes the message that the rank waits at.
    std::string standing() const
    {
        const Span& wait = m_timeline.spans()[m_gap.wait];
        const auto view = messageOfWait(m_timeline, m_gap.wait);
        const std::string what = fmt::format("the {} of {}", message(m_gap.blamed), name(m_gap.blamed));
        const int receiver = view && view->receive != noSpan ? rankOf(view->receive) : m_gap.rank;
        const std::string at =
            isSend(wait.op.kind)
                ? fmt::format("it waits in its send of {} to rank {}", what, receiver)
                : fmt::format("it waits in its receive of {} from rank {}", what, rankOf(m_gap.blamed));
        switch (m_gap.cause) {
        case IdleCause::Dependency: return fmt::format("{}, which is not computed yet", at);
        case IdleCause::PeerWait: return fmt::format("{} until the other side is ready", at);
        case IdleCause::HeadOfLine: return fmt::format("{}, which is queued behind other messages", at);
        default: return fmt::format("{}, which is in transit", at);
        }
    }

    std::string producer(const char* before) const
    {
        if (m_gap.blamed == noSpan) return {};
        const Span& from = m_timeline.spans()[m_gap.blamed];
        std::string text = fmt::format("{}{} on rank {} ends at {}", before, name(m_gap.blamed), rankOf(m_gap.blamed),
                                       clock(from.end, from.step));
        for (const Edge& edge : m_timeline.edgesInto(m_gap.next)) {
            if (edge.from != m_gap.blamed || edge.kind != EdgeKind::Data || edge.arrival <= from.end) continue;
            text += fmt::format(" and its {} arrives {} later", message(m_gap.blamed), span(edge.arrival - from.end));
            break;
        }
        return text;
    }

    const Timeline& m_timeline;
    const Gap& m_gap;
};

} // namespace

std::string_view titleOf(const Timeline& timeline, const Gap& gap)
{
    if (!timeline.missingRanks().empty()) return "Unknown";
    if (gap.cause != IdleCause::Dependency || gap.next == noSpan) return titleOf(gap.cause);
    const OpKind next = timeline.spans()[gap.next].op.kind;
    return isForward(next)  ? "Waiting for activations"
           : isReturn(next) ? "Waiting for the gradient"
                            : titleOf(gap.cause);
}

std::string explainGap(const Timeline& timeline, const Gap& gap) { return Sentence(timeline, gap).text(); }

} // namespace stagewright
