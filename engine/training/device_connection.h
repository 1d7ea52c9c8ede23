// Messages between devices whose ranks are in several processes, by the devices' own connection (--transport nccl).
#pragma once

#include "engine/training/training_state.h"
#include "engine/transport/processes_transport.h"
#include "schedules/base/result.h"

namespace stagewright {

// Whether the ranks' memories here can be connected with those in other processes.
bool connectsDevices(const TrainingState& state);

// Every process of the job calls it, with the state's memories, plan and shapes; it leads to the same answer in all:
// the state's transport, which is `said`, becomes one between devices. Usage where two ranks are on one device, naming
// both; Unavailable where there is no NCCL.
Result<void> connectDevices(TrainingState& state, const RanksByProcess& where,
                            std::unique_ptr<ProcessesTransport> said);

} // namespace stagewright
