// A team whose ranks are threads of this process.
#pragma once

#include "engine/training/rank_team.h"

namespace stagewright {

std::unique_ptr<RankTeam> makeThreadTeam(TrainingState& state);

} // namespace stagewright
