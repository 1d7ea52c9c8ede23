// What a setup says of a training (record, check): the optimizer, the layers to recompute, the devices.
#pragma once

#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/training/training.h"
#include "schedules/base/result.h"
#include "schedules/execute/perturb.h"
#include "schedules/model/schedule.h"
#include "schedules/setup/setup.h"

namespace stagewright {

class Session;

DeviceOptions deviceOptionsOf(const Setup& setup);
Result<void> applyTo(const Setup& setup, TrainingOptions& training);
// The links of --cluster between the ranks of the schedule, as they can be emulated: one for each pair, without queues
// on network cards.
Result<void> applyCluster(const Setup& setup, const Schedule& schedule, TrainingOptions& training, Session& session);
// Refuses what only GPUs have a use for on a backend that has none (Usage).
Result<void> checkDeviceUses(const Setup& setup, const std::string& backend);
// Says that --recompute-layers changes nothing where none of the schedules recomputes.
void noteUnusedLayers(const Setup& setup, const std::vector<const Schedule*>& schedules, Session& session);

// Whether a real run of so many steps, warm-up included, can be disturbed so: ranks can only be slowed, in steps it has
// (Usage).
Result<void> disturbsRealRun(const Perturbation& perturbation, int steps);

} // namespace stagewright
