// Costs missing in a run that never split its backward: how long I and W take, and what I frees.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/cost_model.h"
#include "traces/run.h"
#include "traces/store/run_file.h"

namespace stagewright {

// Whether the costs have a time for I and one for W on some stage.
bool knowsSplit(const CostModel& costs);

// A source of these costs. By stage; unknown shares are < 0 (inputShare) or empty (freedShare).
struct SplitSource {
    std::vector<double> inputShare;                // of a full backward that is I
    std::vector<std::optional<double>> freedShare; // of an activation that I frees; below 0 if it adds memory that W needs
    std::string words;                             // "#2 zb-h1", "the model's shape"
    std::optional<RunInfo> run;                    // the run, if it is one
};

// The model, microbatch size, backend, precision and layers by stage are the same and known.
bool sameSetup(const Run& a, const Run& b);
// The newest other run of the file with the same setup whose costs include I and W.
Result<std::optional<SplitSource>> splitOfFile(const RunFile& file, const Run& run);
// The times of the run's own layers, if recorded. Times only.
std::optional<SplitSource> splitOfLayers(const CostModel& costs, const std::vector<int>& blocksByStage);

// Splits every full backward into I and W, and sets what I frees: each from the first source that has it; half each, and nothing, if
// none does. inputShare: given by the user, takes precedence. The origin says what was not measured and its source. Does nothing
// if the costs have it. ranks: their number.
void completeSplit(CostModel& costs, int ranks, const std::vector<SplitSource>& sources, std::optional<double> inputShare = {});

} // namespace stagewright
