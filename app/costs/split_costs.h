// Costs missing in a run that never split its backward: how long I and W take, and what I frees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "traces/run/run.h"
#include "traces/store/run_file.h"

namespace stagewright {

// Whether the costs have a time for I and one for W on some stage.
bool knowsSplit(const CostModel& costs);

// A source of these costs. By stage; unknown shares are < 0 (inputShare) or empty (freedShare).
enum class SplitBasis : std::uint8_t {
    Layers,
    Run,
    Shape,
};
struct SplitSource {
    std::vector<double> inputShare; // of a full backward that is I
    // of an activation that I frees; below 0 if it adds memory that W needs
    std::vector<std::optional<double>> freedShare;
    std::string words; // "#2 zb-h1", "the model's shape"
    SplitBasis basis = SplitBasis::Shape;
    std::optional<RunInfo> run; // the run, if it is one
};

// The model, microbatch size, backend, precision and layers by stage are the same and known.
bool sameSetup(const Run& a, const Run& b);
// The newest other run of the file with the same setup whose costs include I and W.
Result<std::optional<SplitSource>> splitOfFile(const RunFile& file, const Run& run);
// The times of the run's own layers, if recorded. Times only.
std::optional<SplitSource> splitOfLayers(const CostModel& costs, const std::vector<int>& blocksByStage);

// What completeSplit did: the stages whose B it split, and the places in `sources` of what it used (for the last of
// them).
struct SplitUse {
    std::vector<int> stages;           // none: the costs know I or W of every stage that has a B
    std::optional<std::size_t> times;  // none: half of B each, or as given
    std::optional<std::size_t> memory; // none: I frees nothing, or what the costs say
};

// Splits the full backward of every stage that has neither I nor W, and sets what I frees: each from the first source
// that has it; half each, and nothing, if none does. inputShare: given by the user, takes precedence. The origin says
// what was not measured and its source. ranks: their number.
SplitUse completeSplit(CostModel& costs, int ranks, const std::vector<SplitSource>& sources,
                       std::optional<double> inputShare = {});

// Where only I and W are known, a full backward takes the sum. Microbatches that differ get the kinds that they lack: I
// and W from their own B, as their stage's B is split, B from both, a recomputation from their forward.
void completeWhole(CostModel& costs, int ranks);

} // namespace stagewright
