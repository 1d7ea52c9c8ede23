// Messages between threads of one process. One mailbox per rank, with a slot per message of the schedule: no
// allocation while a step runs. Waits are condition variables; nothing spins.
#pragma once

#include <functional>

#include "engine/transport/transport.h"
#include "schedules/messages/channels.h"
#include "schedules/model/placement.h"

namespace stagewright {

// Under rendezvous a rank has at most one send under way to another (the rank loop waits for each), so that only
// buffered messages queue where channels are limited. interrupted: also called by interrupt(), from any thread; may be
// empty.
std::unique_ptr<Transport> makeThreadsTransport(int ranks, const Placement& placement, const CellSpace& cells,
                                                const Channels& channels = {}, std::function<void()> interrupted = {});

} // namespace stagewright
