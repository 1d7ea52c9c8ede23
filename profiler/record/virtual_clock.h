// A recorded step on the virtual clock.
#pragma once

#include "profiler/record/step_record.h"

namespace stagewright {

// Gives every op its CPU time as duration (a filler its delay, a later op of a pair its own) and places the list with
// place(); then norms, then optimizers of all ranks, behind one barrier each, after the makespan. The step starts at
// begin. channels: whether messages share their links' bandwidth. perturbation: compute ops take its factors of their
// time, and start its delays later.
Result<void> placeOnVirtualClock(StepRecord& record, const Links& links, Nanos begin,
                                 const RunPerturbation& perturbation = {}, std::span<const int> gradientBuckets = {},
                                 const Channels& channels = {});

} // namespace stagewright
