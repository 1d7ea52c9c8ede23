// The life of a rank.
#pragma once

#include "engine/training/training_state.h"

namespace stagewright {

// A rank's life: makes its stages, then obeys commands until Leave. Exceptions end in RunControl::stop().
void runRank(const std::shared_ptr<TrainingState>& state, int rank);

} // namespace stagewright
