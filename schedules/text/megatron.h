// What Megatron-LM runs, in its words (August 2026): its layout string (megatron/core/transformer/
// pipeline_parallel_layer_layout.py) and its orders (megatron/core/pipeline_parallel/schedules.py).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// "Et*3|(tt|)*29,m|L": stages from the first to the last, separated by |; E the embedding, t a layer, m one of
// multi-token prediction, L the loss. Commas are left out, then (…)*n is repeated, without nesting, then any one
// character x*n. Stage k is on rank k mod ranks, its chunk k div ranks; a stage may be empty.
struct MegatronLayout {
    struct Stage {
        bool embedding = false;
        int layers = 0;
        int predictions = 0; // of multi-token prediction
        bool loss = false;
    };
    int ranks = 1;
    std::vector<Stage> stages;

    int chunks() const { return static_cast<int>(stages.size()) / ranks; }
    std::vector<int> layers() const; // by stage
};
// Errors (Usage), as Megatron-LM's: a character that is none of these; stages that can't be divided among the ranks; no E
// first or L last, or several of them; m before a t, in several stages, or not in the last chunk of its rank.
// Precondition: ranks ≥ 1.
Result<MegatronLayout> readMegatronLayout(std::string_view text, int ranks);
// The text of a layout, shortened by repetition. Precondition: no count is negative.
std::string toText(const MegatronLayout& layout);
// The text of stages with so many layers, the embedding in the first, the loss in the last.
std::string megatronLayout(const std::vector<int>& layers);

// An order as Megatron-LM is asked for it.
struct MegatronOrder {
    int chunks = 1; // stages of a rank
    int group = 0;  // microbatches of a group; 0: there is one stage per rank
};
// Errors (Invalid): it runs 1F1B, and interleaved 1F1B in groups of no fewer microbatches than ranks, none larger than
// the batch and a last one of as many; the remedy names the nearest.
Result<MegatronOrder> megatronOrder(const Schedule& schedule);

} // namespace stagewright
