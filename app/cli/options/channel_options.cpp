#include "app/cli/options/channel_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "app/cli/option_set.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "schedules/execute/deadlock_text.h"
#include "schedules/messages/messages.h"

namespace stagewright {

void addLowerOption(OptionSet& verb, std::string& lower)
{
    verb.value("--lower", &lower,
               "Insert sends and receives: just-in-time, pytorch[:collectives], eager-post[:N ops ahead], rank-parity, "
               "grouped, batched")
        .form("RULE")
        .check([](const std::string& text) {
            const auto rule = parseLowering(text);
            return rule ? std::string() : fmt::format("{}; {}", rule.error().message, rule.error().remedy);
        });
}

void addChannelOptions(OptionSet& verb, ChannelOptions& options)
{
    verb.value("--sends", &options.sends,
               "buffered: a send never waits; rendezvous: it waits for its receive [buffered]")
        .form("MODE")
        .check(oneOf({"buffered", "rendezvous"}));
    verb.value("--channels", &options.channels,
               "Messages in flight at once from one rank to another: N; shared: any number, which share a link's "
               "bandwidth; 0: any number, each with the whole bandwidth; one: sends and receives of a rank one after "
               "the other, in the order of its list [shared]")
        .form("N|one|shared")
        .check([](const std::string& text) {
            Channels channels;
            return readLimit(text, channels) ? std::string() : fmt::format("'{}' is not a limit: {}", text, limitForms);
        });
    addLowerOption(verb, options.lower);
    verb.value("--receives", &options.receives,
               "Under rendezvous: blocking: the rank waits at a receive; posted: the op that needs the message waits "
               "[as the rule says]")
        .form("MODE")
        .check(oneOf({"blocking", "posted"}));
}

bool limitsMessages(const ChannelOptions& options)
{
    Channels channels;
    return readLimit(options.channels, channels) && channels.limited();
}

void noteUnusedAlone(const Schedule& schedule, std::initializer_list<std::pair<const char*, bool>> given,
                     Session& session)
{
    std::vector<std::string> unused;
    for (const auto& [name, asked] : given)
        if (asked) unused.emplace_back(name);
    if (schedule.ranks == 1 && !unused.empty())
        session.note(fmt::format("{} not used: a single rank sends no messages", fmt::join(unused, ", ")));
}

Result<ChannelChoice> chooseChannels(const Schedule& schedule, bool lowered, const ChannelOptions& options,
                                     Session& session)
{
    ChannelChoice out;
    out.channels.sends = options.sends == "rendezvous" ? SendMode::Rendezvous : SendMode::Buffered;
    readLimit(options.channels, out.channels);
    if (schedule.ranks == 1 && !lowered) {
        noteUnusedAlone(schedule,
                        {{"--sends", out.channels.sends == SendMode::Rendezvous},
                         {"--channels", options.channels != "shared"},
                         {"--lower", !options.lower.empty()},
                         {"--receives", !options.receives.empty()}},
                        session);
        return out;
    }
    if (!options.lower.empty()) {
        auto rule = parseLowering(options.lower);
        if (!rule) return tl::unexpected(std::move(rule.error()).with("--lower"));
        out.lowering = *rule;
    } else if ((out.channels.sends == SendMode::Rendezvous || out.channels.limited()) && !lowered) {
        out.lowering = Lowering{};
        session.note("sends and receives inserted just in time; --lower chooses another rule");
    }
    if (out.lowering && lowered) {
        session.note(schedule.name + " already has its sends and receives: --lower is not used");
        out.lowering.reset();
    }
    if (!options.receives.empty() && !out.lowering && !lowered)
        session.note(
            "--receives is not used: there are no receives in the order; --lower or --sends rendezvous inserts them");
    if (out.lowering) out.channels.receives = receivesOf(out.lowering->rule);
    if (!options.receives.empty())
        out.channels.receives = options.receives == "posted" ? ReceiveMode::Posted : ReceiveMode::Blocking;
    return out;
}

Result<LoweredChoice> chooseLowering(const Schedule& schedule, const ChannelOptions& options, Session& session)
{
    STAGEWRIGHT_TRY(auto chosen, chooseChannels(schedule, isLowered(schedule), options, session));
    LoweredChoice out{schedule, chosen.channels, chosen.lowering};
    if (out.lowering) {
        auto lowered = lower(schedule, *out.lowering);
        if (lowered)
            out.schedule = std::move(*lowered);
        else
            out.lowering.reset();
    }
    return out;
}

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
