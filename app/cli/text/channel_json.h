// How a schedule's messages travel, and a deadlock, as text and JSON.
#pragma once

#include <string>

#include "schedules/execute/deadlock.h"
#include "schedules/model/schedule.h"
#include "schedules/setup/prepare.h"

namespace stagewright {

class Json;

// Sentences, and the cycle drawn on the lists.
std::string deadlockText(const Schedule& schedule, const Deadlock& deadlock, int columns);
// Keys hung, cycle (waits in order), victims, circle, fix, fix_rule, other_ways, works_if_buffered, works_if_posted,
// works_with_streams, grouping_works; empty lists where nothing hangs.
void addDeadlockJson(Json& object, const Deadlock& deadlock);
// Keys sends, channels, links_shared, one_stream, receives, lowering.
void addChannelsJson(Json& object, const LoweredChoice& choice);

} // namespace stagewright
