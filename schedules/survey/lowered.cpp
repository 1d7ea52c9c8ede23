#include "schedules/survey/lowered.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "schedules/execute/deadlock.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/kinds.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright {
namespace {

std::vector<ChannelUse> channelsOf(const SimResult& result)
{
    const auto rankOf = [&](std::size_t op) {
        const auto at = std::upper_bound(result.offsets.begin(), result.offsets.end(), op);
        return static_cast<int>(at - result.offsets.begin()) - 1;
    };
    std::map<std::pair<int, int>, ChannelUse> uses;
    for (const MessageTimes& message : result.messages) {
        const int from = rankOf(message.send), to = rankOf(message.receive);
        ChannelUse& use = uses[{from, to}];
        use.from = from;
        use.to = to;
        ++use.messages;
        if (message.begin < 0 || message.arrival < 0) continue;
        use.busy += message.arrival - message.begin;
        const Nanos posted = std::max(message.sendPosted, std::min(message.receivePosted, message.begin));
        use.queued += std::max<Nanos>(0, message.begin - posted);
        use.unposted += std::max<Nanos>(0, posted - message.sendPosted);
    }
    std::vector<ChannelUse> out;
    out.reserve(uses.size());
    for (const auto& [key, use] : uses) out.push_back(use);
    return out;
}

} // namespace

LoweredFigures loweredFigures(const LoweredRequest& request)
{
    LoweredFigures out;
    CostModel costs = request.costs;
    if (request.latency >= 0) {
        costs.links = Links{{}, {}, costs.links.collectives, costs.links.copies};
        costs.links.all.latency =
            std::llround(request.latency * static_cast<double>(forwardUnit(*request.schedule, costs)));
    }
    Channels atOnce; // each message leaves when its op ends
    atOnce.apart = request.channels.apart;
    if (const auto before = simulate(*request.schedule, costs, atOnce)) out.makespanBefore = before->makespan;
    auto lowered = lower(*request.schedule, request.lowering);
    if (!lowered) {
        out.fault = lowered.error();
        return out;
    }
    out.lowered = std::make_shared<const Schedule>(std::move(*lowered));
    for (const auto& list : out.lowered->order)
        out.sends += static_cast<std::size_t>(
            std::count_if(list.begin(), list.end(), [](const Op& op) { return isSend(op.kind); }));
    auto result = simulate(*out.lowered, costs, request.channels);
    if (!result) {
        out.fault = result.error();
        const auto stuck = explainDeadlock(*out.lowered, request.channels);
        out.hangs = stuck && stuck->hung();
        return out;
    }
    out.makespan = result->makespan;
    out.channels = channelsOf(*result);
    auto timeline = timelineOf(*out.lowered, *result, costs, TimelineParts::All, request.channels);
    if (!timeline) {
        out.fault = timeline.error();
        return out;
    }
    out.timeline = std::move(*timeline);
    return out;
}

} // namespace stagewright
