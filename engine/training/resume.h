// A training that goes on from another's checkpoint: what both must share, and the state of a stage out of its ranks
// and into them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/saved/saved_training.h"
#include "engine/training/training_state.h"

namespace stagewright {

// What a training's result depends on whoever runs it: model, data, seed, optimizer, rule for weights, samples of a
// step.
SavedFacts lastingFacts(const Schedule& schedule, const TrainingOptions& options);

// The hash counts all its bytes; 16 digits.
std::string dataHash(const Workload& workload);

// Usage, naming both sides and the option, where the training is another than the one of options.resume.
Result<void> checkResume(const Schedule& schedule, const TrainingOptions& options);

// Between steps, on any thread while the rank is at rest: what this copy of a stage has; and into one that is new.
void saveStage(const StageRun& run, const StateSink& sink);
void resumeStage(StageRun& run, const SavedFile& saved);

// The same between processes. False: damaged.
std::vector<std::byte> savedBytes(const StageRun& run);
bool takeSaved(std::span<const std::byte> bytes, SavedTraining& saved);

} // namespace stagewright
