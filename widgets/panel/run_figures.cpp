#include "widgets/panel/run_figures.h"

namespace stagewright {

void completeCosts(CostModel& costs, int ranks)
{
    for (int stage = 0; stage < costs.stages(); ++stage) {
        for (int rank = 0; rank < ranks; ++rank) {
            const Nanos full = costs.duration(OpKind::Backward, stage, rank);
            const Nanos input = costs.duration(OpKind::InputGrad, stage, rank);
            const Nanos weight = costs.duration(OpKind::WeightGrad, stage, rank);
            if (full == 0 && input + weight > 0) {
                costs.setDuration(OpKind::Backward, stage, rank, input + weight);
            } else if (full > 0 && input == 0 && weight == 0) {
                costs.setDuration(OpKind::InputGrad, stage, rank, full - full / 2);
                costs.setDuration(OpKind::WeightGrad, stage, rank, full / 2);
            }
        }
    }
}

} // namespace stagewright
