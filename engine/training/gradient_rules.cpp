#include "engine/training/gradient_rules.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine/training/op_execution.h"
#include "schedules/model/mesh.h"

namespace stagewright {

Verdict judgeGradients(std::span<const double> squareSums, double clipNorm)
{
    double sum = 0;
    for (const double part : squareSums) sum += part;
    if (!std::isfinite(sum)) return {1.0f, true};
    const double norm = std::sqrt(sum);
    return {clipNorm > 0 && norm > clipNorm ? static_cast<float>(clipNorm / norm) : 1.0f, false};
}

float lossScaleOf(const Schedule& schedule)
{
    const bool each = schedule.weights == WeightRule::Stashed || schedule.weights == WeightRule::Predicted;
    return each ? 1.0f : 1.0f / static_cast<float>(schedule.microbatches);
}

std::int64_t firstLearned(const Workload& workload, const StageSlice& slice, int cut, std::int64_t elements)
{
    if (cut <= 0) return 0;
    const std::vector<std::int64_t> layers = workload.layerElements(slice);
    std::int64_t at = 0;
    std::size_t part = 0;
    if (slice.first) at += layers[part++];
    for (int block = slice.firstLayer; block < slice.firstLayer + slice.layerCount; ++block) {
        if (block >= cut) return at;
        at += layers[part++];
    }
    return slice.last ? at : elements;
}

std::vector<ContributedRange> contributionsTo(const Schedule& schedule, const Workload& workload,
                                              const StageSlice& slice, std::span<const int> cuts,
                                              const BatchShapes& shapes, std::int64_t elements)
{
    std::vector<std::int64_t> from;
    std::vector<std::int64_t> samples;
    for (const int rank : holdersOf(schedule.placement, slice.stage)) {
        from.push_back(
            firstLearned(workload, slice, cuts[static_cast<std::size_t>(schedule.replicaOf(rank))], elements));
        samples.push_back(0);
        for (int j = 0; j < schedule.microbatches; ++j)
            if (schedule.placement.rankOf(slice.stage, j) == rank) samples.back() += shapes.ofRank(rank).batch;
    }
    return contributedRanges(from, samples, elements);
}

void StageModel::factorsInOps(int /*pieces*/)
{
    throw std::invalid_argument("this model has no factors for K-FAC; take --optimizer adamw");
}
void StageModel::keepFactorInputs(bool /*on*/) {}
void StageModel::addFactors(const Part& /*part*/, bool /*inputs*/, int /*refresh*/) {}
void StageModel::invertFactors(int /*piece*/, int /*refresh*/) {}

void StageModel::packGradients(const Buffer& to) { copyGradients(*this, to.span()); }

void StageModel::sumGradients(std::span<const Buffer> copies)
{
    std::vector<std::span<const float>> parts;
    for (const Buffer& copy : copies) parts.push_back(copy.span());
    stagewright::sumGradients(*this, parts);
}

std::size_t gradientCount(StageModel& model)
{
    std::size_t count = 0;
    for (const ParameterView& parameter : model.parameters()) count += parameter.gradient.size();
    return count;
}

void copyGradients(StageModel& model, std::span<float> to)
{
    std::size_t at = 0;
    for (const ParameterView& parameter : model.parameters()) {
        std::copy(parameter.gradient.begin(), parameter.gradient.end(), to.begin() + static_cast<std::ptrdiff_t>(at));
        at += parameter.gradient.size();
    }
}

void sumGradients(StageModel& model, std::span<const std::span<const float>> copies)
{
    std::size_t at = 0;
    for (const ParameterView& parameter : model.parameters()) {
        for (std::size_t i = 0; i < parameter.gradient.size(); ++i, ++at) {
            float sum = copies.front()[at];
            for (std::size_t c = 1; c < copies.size(); ++c) sum += copies[c][at];
            parameter.gradient[i] = sum;
        }
    }
    model.parametersWritten();
}

} // namespace stagewright
