// What costs of a run that never split its backward don't know: how long I and W take, and what I frees.
#pragma once

#include <cstdint>
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

// Where it is taken from. By stage; shares outside of what is known are < 0 (inputShare) and none (freedShare).
enum class SplitBasis : std::uint8_t { Layers, Run, Shape };
struct SplitSource {
    std::vector<double> inputShare;                // of a full backward that is I
    std::vector<std::optional<double>> freedShare; // of an activation that I frees; below 0 where it adds what W needs
    std::string words;                             // "#2 zb-h1", "the model's shape"
    SplitBasis basis = SplitBasis::Shape;
    std::optional<RunInfo> run;                    // the run, where it is one
};

// The model, microbatch size, backend, precision and layers by stage are the same and known.
bool sameSetup(const Run& a, const Run& b);
// The newest other run of the file of the same setup whose costs know I and W.
Result<std::optional<SplitSource>> splitOfFile(const RunFile& file, const Run& run);
// What the layers of the run itself took, where they were timed. Times only.
std::optional<SplitSource> splitOfLayers(const CostModel& costs, const std::vector<int>& blocksByStage);

// What completeSplit did: the stages whose B it parted, and the places in `sources` of what it took (of the last of them).
struct SplitUse {
    std::vector<int> stages; // none: the costs know I or W of every stage that has a B
    std::optional<std::size_t> times;  // none: half of B each, or as given
    std::optional<std::size_t> memory; // none: I frees nothing, or what the costs say
};

// Parts the full backward of every stage that has neither I nor W, and sets what I frees: each from the first source that knows it; half each,
// and nothing, where none does. inputShare: given by the user, goes before all. The origin says what was not measured and where it is
// from. ranks: how many there are.
SplitUse completeSplit(CostModel& costs, int ranks, const std::vector<SplitSource>& sources, std::optional<double> inputShare = {});

// A full backward takes what I and W take, where only they are known.
void completeWhole(CostModel& costs, int ranks);

} // namespace stagewright
