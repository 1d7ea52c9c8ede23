// devices --kernels: the time of every kernel at a model's shapes, and its rate beside those of a large GEMM and a
// large copy.
#pragma once

#include "app/cli/session.h"
#include "schedules/setup/setup.h"

namespace stagewright {

class OptionSet;

void addKernelTimesOptions(OptionSet& verb, Setup& setup); // a setup without a model: no kernels
Result<int> showKernelTimes(Session& session, const Setup& setup);

} // namespace stagewright
