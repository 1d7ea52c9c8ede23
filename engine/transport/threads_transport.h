// Messages between threads of one process. One mailbox per rank, with a slot per message of the schedule: no
// allocation while a step runs. Waits are condition variables; nothing spins.
#pragma once

#include "engine/transport/transport.h"
#include "schedules/placement.h"

namespace stagewright {

std::unique_ptr<Transport> makeThreadsTransport(int ranks, const Placement& placement, const CellSpace& cells);

} // namespace stagewright
