// --sends, --channels, --lower, --receives: how a schedule's messages travel. And a deadlock as text and JSON.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "schedules/base/result.h"
#include "schedules/execute/deadlock.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"
#include "schedules/model/schedule.h"

namespace stagewright {

class Json;
class OptionSet;
class Session;

struct ChannelOptions {
    std::string sends = "buffered";
    std::string channels = "shared"; // limitText()
    std::string lower;               // "": none requested
    std::string receives;            // "": as the rule says
};
bool limitsMessages(const ChannelOptions& options); // beyond what links carry
void addChannelOptions(OptionSet& verb, ChannelOptions& options);
void addLowerOption(OptionSet& verb, std::string& lower);

// How the messages of a schedule travel, and by which rule its sends and receives are inserted, with notes on what is
// not used: all that who trains a CheckedSchedule needs, which lowers itself.
struct ChannelChoice {
    Channels channels;
    std::optional<Lowering> lowering; // none: its lists stay as given
};
Result<ChannelChoice> chooseChannels(const Schedule& schedule, bool lowered, const ChannelOptions& options,
                                     Session& session);
// Says which of the given options a schedule has no use for because it has a single rank.
void noteUnusedAlone(const Schedule& schedule, std::initializer_list<std::pair<const char*, bool>> given,
                     Session& session);

// Of a schedule that need not be valid, as it is run: lowered by the rule, or by the just-in-time rule where the
// channels matter and it is not lowered yet (with a note). One that can't be lowered (it is not valid) comes back as it
// is.
struct LoweredChoice {
    Schedule schedule;
    Channels channels;
    std::optional<Lowering> lowering; // none: its lists are as given
};
Result<LoweredChoice> chooseLowering(const Schedule& schedule, const ChannelOptions& options, Session& session);

// Sentences, and the cycle drawn on the lists.
std::string deadlockText(const Schedule& schedule, const Deadlock& deadlock, int columns);
// Keys hung, cycle (waits in order), victims, circle, fix, fix_rule, other_ways, works_if_buffered, works_if_posted,
// works_with_streams, grouping_works; empty lists where nothing hangs.
void addDeadlockJson(Json& object, const Deadlock& deadlock);
// Keys sends, channels, links_shared, one_stream, receives, lowering.
void addChannelsJson(Json& object, const LoweredChoice& choice);

} // namespace stagewright
