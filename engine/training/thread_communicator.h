// A communicator whose ranks are threads of this process.
#pragma once

#include "engine/training/rank_communicator.h"

namespace stagewright {

std::unique_ptr<RankCommunicator> makeThreadCommunicator(TrainingState& state);

} // namespace stagewright
