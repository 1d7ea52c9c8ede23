// Names of spans with the numbers that label rules look for: "megatron.microbatch.forward stage 2 microbatch 0".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/import/otlp/otlp_spans.h"

namespace stagewright {

struct PipelinePlace { // of a rank
    int size = 0;      // ranks of the pipeline; 0: unknown
    int place = -1;
};

// Megatron-LM's passes carry no numbers: the k-th forward and backward of a step are those of the k-th place in its
// order, which follows from the number of microbatches (of the step's span) and of ranks: interleaved, where there is
// a multiple of the microbatches, in groups of as many microbatches as there are ranks (its default). Sets microbatch,
// chunk and stage of `spans`, which are one rank's, by start. Notes say what can't be counted.
void numberPasses(std::vector<KeptSpan>& spans, const NameTable& names, const PipelinePlace& place,
                  std::vector<std::string>& notes);

// The name with the span's numbers behind it: "NAME stage S microbatch M", "NAME chunk C microbatch M", "NAME step N".
std::string labelOf(const KeptSpan& span, std::string_view name);

} // namespace stagewright
