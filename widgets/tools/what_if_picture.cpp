#include "widgets/tools/what_if_picture.h"

#include <QCoreApplication>

#include <cmath>

#include "schedules/timeline/timeline_of.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

// above this, without causes and critical path, so that the picture follows the fields
constexpr std::size_t explainedOps = 4'000;

Result<std::shared_ptr<const TimelinePanel>> panelOf(const WhatIfCase& of, const QString& name)
{
    STAGEWRIGHT_TRY(auto timeline, timelineOf(of.schedule, of.result, of.costs, TimelineParts::All, of.channels));
    PanelOptions options;
    options.step = 0;
    options.name = name;
    options.causes = of.result.start.size() <= explainedOps;
    return makePanel(timeline, options);
}

} // namespace

std::string toText(const WhatIfQuestion& question)
{
    std::string out;
    for (const WhatIfChange& change : question.changes) out += (out.empty() ? "" : ",") + toText(change);
    return out;
}

WhatIfBase whatIfBase(std::shared_ptr<const Schedule> schedule, const CostModel& costs, const Channels& channels,
                      const std::optional<Lowering>& lowering)
{
    WhatIfBase out;
    out.schedule = std::move(schedule);
    out.costs = costs;
    out.channels = channels;
    out.lowering = lowering;
    auto whatIf = WhatIf::create(*out.schedule, costs, channels, lowering);
    if (!whatIf) {
        out.fault = whatIf.error();
        return out;
    }
    auto asItIs = whatIf->caseOf({});
    auto panel = asItIs ? panelOf(*asItIs, u"Unchanged, simulated"_s) : tl::unexpected(asItIs.error());
    if (!panel) {
        out.fault = panel.error();
        return out;
    }
    out.panel = std::move(*panel);
    out.whatIf = std::move(*whatIf);
    return out;
}

WhatIfPicture whatIfPicture(const WhatIfBase& base, const WhatIfQuestion& question)
{
    WhatIfPicture out;
    if (base.fault) {
        out.fault = base.fault;
        return out;
    }
    std::optional<WhatIf> other;
    if (question.latency >= 0) {
        CostModel costs = base.costs;
        costs.links = Links{{}, {}, costs.links.collectives};
        costs.links.all.latency =
            std::llround(question.latency * static_cast<double>(forwardUnit(*base.schedule, costs)));
        auto made = WhatIf::create(*base.schedule, std::move(costs), base.channels, base.lowering);
        if (!made) {
            out.fault = made.error();
            return out;
        }
        other = std::move(*made);
    }
    auto before = base.whatIf->answer({});
    auto changed = (other ? *other : *base.whatIf).caseOf(question.changes);
    auto panel = changed ? panelOf(*changed, u"Changed"_s) : tl::unexpected(changed.error());
    if (!before || !panel) {
        out.fault = before ? panel.error() : before.error();
        return out;
    }
    out.answer = std::move(*before);
    out.answer.makespanAfter = changed->result.makespan;
    out.answer.bubbleAfter = figuresOf(changed->schedule, changed->result).bubbleFraction;
    if (!out.answer.peakBefore.empty()) out.answer.peakAfter = changed->result.peakActivation;
    out.answer.microbatchesAfter = changed->schedule.microbatches;
    out.panel = std::move(*panel);
    return out;
}

} // namespace stagewright
