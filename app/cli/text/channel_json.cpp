#include "app/cli/text/channel_json.h"

#include "app/cli/text/json.h"
#include "schedules/execute/deadlock_text.h"

namespace stagewright {

std::string deadlockText(const Schedule& schedule, const Deadlock& deadlock, int columns)
{
    return describeDeadlock(deadlock) + "\n" + drawDeadlock(schedule, deadlock, columns);
}

void addDeadlockJson(Json& object, const Deadlock& deadlock)
{
    Json cycle = Json::array();
    for (const int rank : deadlock.cycle)
        for (const BlockedRank& blocked : deadlock.blocked)
            if (blocked.rank == rank)
                cycle.push_back({{"rank", rank},
                                 {"position", blocked.position},
                                 {"op", toText(blocked.op)},
                                 {"on_rank", blocked.onRank},
                                 {"on_position", blocked.onPosition},
                                 {"waits_for", toText(blocked.waitsFor)},
                                 {"sentence", blocked.sentence}});
    Json cycleOps = Json::array();
    for (const CycleOp& op : deadlock.cycleOps)
        cycleOps.push_back({{"rank", op.rank}, {"position", op.position}, {"op", toText(op.op)}});
    Json fix = Json::array();
    for (const OrderChange& change : deadlock.fix)
        fix.push_back({{"rank", change.rank}, {"op", toText(change.op)}, {"from", change.from}, {"to", change.to}});
    object["hung"] = deadlock.hung();
    object["cycle"] = std::move(cycle);
    object["victims"] = deadlock.victims;
    object["circle"] = std::move(cycleOps);
    object["fix"] = std::move(fix);
    object["fix_rule"] = textOrNull(deadlock.fixRule);
    object["other_ways"] = deadlock.otherWays;
    object["works_if_buffered"] = deadlock.hung() ? Json(deadlock.worksIfBuffered) : Json(nullptr);
    object["grouping_works"] = Json(deadlock.groupingWorks);
    object["works_if_posted"] = deadlock.hung() ? Json(deadlock.worksIfPosted) : Json(nullptr);
    object["works_with_streams"] = deadlock.hung() ? Json(deadlock.worksWithStreams) : Json(nullptr);
}

void addChannelsJson(Json& object, const LoweredChoice& choice)
{
    object["sends"] = choice.channels.sends == SendMode::Rendezvous ? "rendezvous" : "buffered";
    object["channels"] = choice.channels.perDirection;
    object["links_shared"] = !choice.channels.apart;
    object["one_stream"] = choice.channels.oneStream;
    object["receives"] = choice.channels.blockingReceives() ? "blocking" : "posted";
    object["lowering"] = choice.lowering ? Json(toText(*choice.lowering)) : Json(nullptr);
}

} // namespace stagewright
