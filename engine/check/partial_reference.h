// What partial backward is measured against: the same replicas' training where all go back to layer 0, by an undivided
// model on one rank.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/check/check.h"
#include "engine/check/replay.h"
#include "engine/training/training.h"
#include "schedules/check/checked_schedule.h"

namespace stagewright {

// A layer's gradient beside that of all replicas, at the same weights and data.
struct LayerDeviation {
    std::string layer;   // "embedding", "0" …, "head"
    double cosine = 1;   // of the angle between both
    double distance = 0; // ‖g − g′‖₂ / ‖g′‖₂
};

class PartialReference {
public:
    // For a training with cuts. Makes two undivided models a replica.
    static Result<std::unique_ptr<PartialReference>> create(const Schedule& schedule, const TrainingOptions& options,
                                                            const BackendMaker& makeBackend);

    // Around each step of the training, which keeps its gradients.
    void before(Training& training);
    Result<void> after(Training& training, const std::stop_token& stop);

    // After the last step.
    // of synchronous training from the same start
    double loss() const { return m_loss; }
    // ‖w − w′‖₂ / ‖w′‖₂ of all weights from synchronous training
    double deviation() const { return m_deviation; }
    const std::vector<LayerDeviation>& layers() const { return m_layers; } // embedding, blocks, head

private:
    std::unique_ptr<Replay> m_along; // on its own weights
    std::unique_ptr<Replay> m_probe; // on the training's
    double m_loss = 0;
    double m_deviation = 0;
    std::vector<LayerDeviation> m_layers;
};

// The replay's first gradients, layer by layer, against those of an undivided model over the contributors' microbatches
// alone: code that knows no cut, no copies and no rescaling. Microbatches of one size.
Result<Difference> againstContributors(const Schedule& schedule, const Replay& replay, const TrainingOptions& options,
                                       const BackendMaker& makeBackend);

// "embedding", "3", "head" of a parameter's name.
std::string layerNameOf(const std::string& parameter);

} // namespace stagewright
