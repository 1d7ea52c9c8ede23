#include "traces/analysis/analysis_registry.h"

#include <array>

#include "traces/step/step_ops.h"

namespace stagewright {

namespace analyses {
#define STAGEWRIGHT_ANALYSIS(name) extern const AnalysisInfo name;
#include "traces/analysis/analyses.def"
#undef STAGEWRIGHT_ANALYSIS
} // namespace analyses

namespace {

#define STAGEWRIGHT_ANALYSIS(name) &analyses::name,
constexpr auto all = std::to_array<const AnalysisInfo*>({
#include "traces/analysis/analyses.def"
});
#undef STAGEWRIGHT_ANALYSIS

} // namespace

std::span<const AnalysisInfo* const> allAnalyses() { return all; }

const AnalysisInfo* findAnalysis(std::string_view name)
{
    for (const AnalysisInfo* info : all)
        if (info->name == name) return info;
    return nullptr;
}

std::string unknownWithoutOps(const Run& run)
{
    if (run.timeline->empty()) return "the run has no spans";
    return hasOps(*run.timeline) ? "" : std::string(whyNoOps(*run.timeline));
}

std::string unknownWithoutMessages(const Run& run)
{
    if (std::string without = unknownWithoutOps(run); !without.empty()) return without;
    if (const std::string_view without = whyNoArrivals(*run.timeline); !without.empty()) return std::string(without);
    return run.timeline->hasEdges() ? "" : "the run doesn't say which op waited for which";
}

} // namespace stagewright
