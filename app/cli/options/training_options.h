// Options of the verbs that train for real (record, check): the optimizer, the layers to recompute, the devices.
#pragma once

#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/training/training.h"
#include "schedules/base/result.h"
#include "schedules/execute/perturb.h"
#include "schedules/model/schedule.h"

namespace stagewright {

class OptionSet;
class Session;

struct TrainingChoice {
    std::string optimizer = "adamw";
    double learningRate = -1; // < 0: the engine's default; the same below
    double momentum = -1;
    double weightDecay = -1;
    double clipNorm = -1;
    std::string recomputeLayers; // "2", "1-3"; "": all
    std::vector<int> devices;    // empty: all
    std::string products;        // openblas, onednn; "": the fastest
    std::string precision;       // "": the backend's default
    std::string transport;       // copies, nccl; "": copies
    std::string sharing;         // queues, partitions, serialised; "": as there are devices
};
void addTrainingOptions(OptionSet& verb, TrainingChoice& choice);
void addArithmeticOptions(OptionSet& verb, TrainingChoice& choice); // only --device, --precision and --products
DeviceOptions deviceOptionsOf(const TrainingChoice& choice);
Result<void> applyTo(const TrainingChoice& choice, TrainingOptions& training);
// Refuses what only GPUs have a use for on a backend that has none (Usage).
Result<void> checkDeviceUses(const TrainingChoice& choice, const std::string& backend);
// Says that --recompute-layers changes nothing where none of the schedules recomputes.
void noteUnusedLayers(const TrainingChoice& choice, const std::vector<const Schedule*>& schedules, Session& session);

// Whether a real run of so many steps, warm-up included, can be disturbed so: ranks can only be slowed, in steps it has
// (Usage).
Result<void> disturbsRealRun(const Perturbation& perturbation, int steps);

} // namespace stagewright
