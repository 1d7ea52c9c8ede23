// What a process reports after a step to the one that leads, as bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "engine/training/rank_communicator.h"
#include "engine/workload/stage_model.h"

namespace stagewright {

// What the ranks that are here report: events, peaks, losses, and what was asked for (gradients, times of the model's
// parts). Empties their recorders.
std::vector<std::byte> reportOf(TrainingState& state, const std::function<bool(int rank)>& isHere);
// Puts it into the state. offset: of the other process's clock. False: damaged; the state may hold a part.
bool takeReport(TrainingState& state, std::span<const std::byte> report, Nanos offset);

// Where a rank has the fp32 weights of what it owns only: the names and shapes of all and behind them one tensor,
// `owned`, whose values are fetched into the caller's.
std::vector<ParameterView> ownedWeights(StageModel& model, std::vector<float>& owned);
std::vector<std::byte> bytesOf(const std::vector<ParameterView>& parameters);
Result<StageWeights> weightsFrom(std::span<const std::byte> bytes); // Failed where they are damaged

} // namespace stagewright
