#include "traces/analysis/analysis_registry.h"

#include <algorithm>
#include <array>

#include "traces/step/step_ops.h"

namespace stagewright {

namespace analyses {
#define STAGEWRIGHT_ANALYSIS(name, subject) extern const AnalysisInfo name;
#include "traces/analysis/analyses.def"
#undef STAGEWRIGHT_ANALYSIS
} // namespace analyses

namespace {

#define STAGEWRIGHT_ANALYSIS(name, subject) &analyses::name,
constexpr auto all = std::to_array<const AnalysisInfo*>({
#include "traces/analysis/analyses.def"
});
#undef STAGEWRIGHT_ANALYSIS

#define STAGEWRIGHT_ANALYSIS(name, subject) AnalysisSubject::subject,
constexpr auto subjects = std::to_array<AnalysisSubject>({
#include "traces/analysis/analyses.def"
});
#undef STAGEWRIGHT_ANALYSIS

} // namespace

std::span<const AnalysisInfo* const> allAnalyses() { return all; }

AnalysisSubject subjectOf(const AnalysisInfo& analysis)
{
    return subjects[static_cast<std::size_t>(std::find(all.begin(), all.end(), &analysis) - all.begin())];
}

std::string_view titleOf(AnalysisSubject subject)
{
    switch (subject) {
    case AnalysisSubject::Ops: return "Ops, idle time and memory";
    case AnalysisSubject::Communication: return "Communication";
    case AnalysisSubject::Devices: return "Devices and kernels";
    case AnalysisSubject::Training: break;
    }
    return "Training";
}

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

std::string unknownWithoutAllRanks(const Run& run)
{
    std::string without = unknownWithoutOps(run);
    return without.empty() ? run.timeline->missingRanks() : without;
}

std::string unknownWithoutMessages(const Run& run)
{
    if (std::string without = unknownWithoutAllRanks(run); !without.empty()) return without;
    if (const std::string_view without = whyNoArrivals(*run.timeline); !without.empty()) return std::string(without);
    return run.timeline->hasEdges() ? "" : "the run doesn't say which op waited for which";
}

} // namespace stagewright
