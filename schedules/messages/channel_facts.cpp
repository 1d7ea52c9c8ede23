#include "schedules/messages/channel_facts.h"

namespace stagewright {

std::vector<std::pair<std::string, std::string>> channelFacts(const Channels& channels, const std::string& lowering,
                                                              bool bandwidth)
{
    std::vector<std::pair<std::string, std::string>> out;
    if (channels.sends == SendMode::Rendezvous) {
        out.emplace_back("sends", "rendezvous");
        out.emplace_back("receives", channels.blockingReceives() ? "blocking" : "posted");
    }
    if (!lowering.empty()) out.emplace_back("lowering", lowering);
    if (const std::string limit = limitText(channels); bandwidth || channels.limited())
        out.emplace_back("channels", limit);
    return out;
}

ChannelFacts readChannelFacts(const std::function<std::string(std::string_view)>& value)
{
    ChannelFacts out;
    if (value("sends") == "rendezvous") out.channels.sends = SendMode::Rendezvous;
    if (!readLimit(value("channels"), out.channels)) out.channels.apart = true;
    if (auto rule = parseLowering(value("lowering"))) out.lowering = *rule;
    out.channels.receives = receivesOf(out.lowering.value_or(Lowering{}).rule);
    if (const std::string receives = value("receives"); !receives.empty())
        out.channels.receives = receives == "posted" ? ReceiveMode::Posted : ReceiveMode::Blocking;
    return out;
}

} // namespace stagewright
