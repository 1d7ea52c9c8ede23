#include "traces/step/whole_step.h"

#include <algorithm>

#include "schedules/model/kinds.h"
#include "traces/step/step_ops.h"

namespace stagewright {

namespace {

template <typename Counts>
StepExtent extentOf(const Timeline& timeline, int step, Counts counts)
{
    StepExtent out;
    bool any = false, busy = false;
    for (const Track& track : timeline.tracks()) {
        if (!isListLane(track.lane)) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != step) continue;
            const bool computes = track.lane == Lane::Compute && isBusyOp(span.op);
            if (!computes && !(worksOnState(span.op.kind) && counts(span))) continue;
            busy = busy || computes;
            out.begin = any ? std::min(out.begin, span.start) : span.start;
            out.end = any ? std::max(out.end, span.end) : span.end;
            any = true;
        }
    }
    return busy ? out : StepExtent{};
}

} // namespace

StepExtent wholeStep(const Timeline& timeline, int step)
{
    return extentOf(timeline, step, [](const Span&) { return true; });
}

StepExtent listedStep(const Timeline& timeline, int step, const Schedule& lists)
{
    const bool listed = std::any_of(lists.order.begin(), lists.order.end(), [](const std::vector<Op>& ops) {
        return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return worksOnState(op.kind); });
    });
    return extentOf(timeline, step, [&](const Span& span) {
        if (!listed) return false;
        const std::string_view label = span.label == 0 ? std::string_view() : timeline.labelOf(span);
        return label != "optimizer" && label != "gradient norm";
    });
}

} // namespace stagewright
