#include "traces/import/otlp/span_labels.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr std::string_view forwardPass = "megatron.microbatch.forward";
constexpr std::string_view backwardPass = "megatron.microbatch.backward";

struct Unit {
    int chunk = 0;
    int microbatch = 0;
};

// The order in which a rank runs the forwards of its chunks.
std::vector<Unit> unitsOf(int microbatches, int chunks, int group)
{
    std::vector<Unit> units;
    for (int first = 0; first < microbatches; first += group)
        for (int chunk = 0; chunk < chunks; ++chunk)
            for (int m = first; m < std::min(first + group, microbatches); ++m) units.push_back({chunk, m});
    return units;
}

// The step's optimizer and gradients are of all stages of the rank; they stand for the first of them.
bool isOfRank(std::string_view name)
{
    return name == "megatron.train.iteration.optimizer" || name == "megatron.grad_sync.finish";
}

} // namespace

void numberPasses(std::vector<KeptSpan>& spans, const NameTable& names, const PipelinePlace& place,
                  std::vector<std::string>& notes)
{
    for (KeptSpan& span : spans)
        if (place.place >= 0 && span.stage < 0 && isOfRank(names[span.name])) span.stage = place.place;
    std::int64_t uneven = 0, unplaced = 0;
    Nanos until = 0; // of the step before: those inside it are parts of it
    for (const KeptSpan& step : spans) {
        if (step.step < 0 || step.start < until) continue;
        until = step.end;
        std::int64_t microbatches = step.microbatches;
        std::vector<std::size_t> forwards, backwards;
        const auto first = std::lower_bound(spans.begin(), spans.end(), step.start,
                                            [](const KeptSpan& span, Nanos time) { return span.start < time; });
        for (auto at = first; at != spans.end() && at->start < step.end; ++at) {
            if (microbatches < 0) microbatches = at->microbatches;
            const std::string& name = names[at->name];
            if (at->microbatch >= 0) continue; // it says so itself
            if (name == forwardPass) forwards.push_back(static_cast<std::size_t>(at - spans.begin()));
            if (name == backwardPass) backwards.push_back(static_cast<std::size_t>(at - spans.begin()));
        }
        if (forwards.empty()) continue;
        const auto passes = static_cast<std::int64_t>(forwards.size());
        if (microbatches <= 0) microbatches = passes; // one chunk
        if (microbatches > passes || passes % microbatches != 0 ||
            (!backwards.empty() && backwards.size() != forwards.size())) {
            ++uneven;
            continue;
        }
        const int chunks = static_cast<int>(passes / microbatches);
        if (chunks > 1 && place.size <= 0) {
            ++unplaced;
            continue;
        }
        const std::vector<Unit> units =
            unitsOf(static_cast<int>(microbatches), chunks, chunks > 1 ? place.size : static_cast<int>(passes));
        const auto number = [&](const std::vector<std::size_t>& of, bool backward) {
            for (std::size_t k = 0; k < of.size(); ++k) {
                KeptSpan& span = spans[of[k]];
                span.microbatch = units[k].microbatch;
                const int chunk = backward ? chunks - 1 - units[k].chunk : units[k].chunk;
                if (place.place >= 0)
                    span.stage = chunk * place.size + place.place;
                else if (chunks > 1)
                    span.chunk = chunk;
            }
        };
        number(forwards, false);
        number(backwards, true);
    }
    if (uneven > 0)
        notes.push_back(fmt::format("{} steps have other numbers of forward and backward spans than their microbatches "
                                    "say: their passes are counted in order",
                                    uneven));
    if (unplaced > 0)
        notes.push_back(fmt::format("{} steps have several passes a microbatch, and the ranks of the pipeline are "
                                    "unknown (dl.pipeline_parallel.size): which chunk a pass is of is not known",
                                    unplaced));
}

std::string labelOf(const KeptSpan& span, std::string_view name)
{
    std::string label(name);
    if (span.stage >= 0)
        label += fmt::format(" stage {}", span.stage);
    else if (span.chunk >= 0)
        label += fmt::format(" chunk {}", span.chunk);
    if (span.microbatch >= 0)
        label += fmt::format(" microbatch {}", span.microbatch);
    else if (span.step >= 0)
        label += fmt::format(" step {}", span.step);
    return label;
}

} // namespace stagewright
