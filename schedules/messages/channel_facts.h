// How messages travelled in a run, as its configuration keeps it: keys sends, receives, channels, lowering.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"

namespace stagewright {

struct ChannelFacts {
    Channels channels;
    std::optional<Lowering> lowering; // none: the lists are as given, or have no messages
};

// What is the default is left out, but for what links carry where one has a bandwidth (limitText()). lowering: "" for
// none.
std::vector<std::pair<std::string, std::string>> channelFacts(const Channels& channels, const std::string& lowering,
                                                              bool bandwidth);
// value(key), "" where there is none. Runs from before messages shared their links have no key channels: each then had
// its own bandwidth.
ChannelFacts readChannelFacts(const std::function<std::string(std::string_view)>& value);

} // namespace stagewright
