// devices --kernels: the time of every kernel at a model's shapes, and its rate beside those of a large GEMM and a
// large copy.
#pragma once

#include "app/cli/options/training_options.h"
#include "app/cli/session.h"

namespace stagewright {

struct KernelTimesChoice {
    std::string model; // "": no kernels
    std::string backend = "cpu";
    int microbatchSize = 4;
    TrainingChoice training;
};
void addKernelTimesOptions(OptionSet& verb, KernelTimesChoice& choice);
Result<int> showKernelTimes(Session& session, const KernelTimesChoice& choice);

} // namespace stagewright
