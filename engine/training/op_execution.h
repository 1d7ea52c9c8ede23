// One op of a schedule on a stage's layers; the rank loop and the one-rank replay run the same code.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/training/execution_plan.h"
#include "engine/workload/workload.h"

namespace stagewright {

// Floats of a position in a message.
inline int messageWidth(const Workload& workload, const Backend& backend)
{
    return workload.width() * backend.capabilities().layout.elementBytes / static_cast<int>(sizeof(float));
}

// Where a part lies in the whole (batch, positions, width): rows of the batch and of each sequence.
struct Region {
    int firstSample = 0;
    int samples = 0;
    int firstToken = 0;
    int tokens = 0;
    bool operator==(const Region&) const = default;

    std::size_t positions() const { return static_cast<std::size_t>(samples) * static_cast<std::size_t>(tokens); }
};

// The workload's sizes, and how slices and halves cut them.
struct PartShapes {
    int batch = 0;
    int sequence = 0; // positions of a sample
    // floats of a position in a message: as wide as the workload, or half as many where elements are of 16 bits
    int width = 0;
    std::vector<int> sliceTokens; // by slice; empty: no slices

    Region regionOf(int slice, int half) const;
    // The part's share of the microbatch's loss: its positions among all.
    double shareOf(const Part& part) const;
};

// The shapes of a job's microbatches, which may be of other sizes in each replica, and what each weighs in the whole
// batch.
class BatchShapes {
public:
    BatchShapes() = default;
    // samples: of one microbatch, by replica; empty: those of `common`.
    BatchShapes(const Schedule& schedule, const PartShapes& common, const std::vector<int>& samples);
    const PartShapes& ofRank(int rank) const
    {
        return m_shapes[m_shapes.size() == 1 ? 0 : static_cast<std::size_t>(rank / m_pipelineRanks)];
    }
    const PartShapes& ofMicrobatch(int microbatch) const
    {
        return m_shapes[m_replica.empty() ? 0
                                          : static_cast<std::size_t>(m_replica[static_cast<std::size_t>(microbatch)])];
    }
    // What the rank's microbatches weigh in a gradient of the mean over all samples.
    float lossScale(const Schedule& schedule, int rank) const;
    double meanOf(std::span<const double> losses) const; // over samples; by microbatch

private:
    std::vector<PartShapes> m_shapes; // one, or by replica
    std::vector<int> m_replica;       // by microbatch, where there are several
    int m_pipelineRanks = 1;
    std::int64_t m_samples = 0; // of the whole batch, where there are several
};

// Copies the positions that both regions have, each a block of (samples, tokens, width) elements of its region.
template <typename T>
void copyCommon(const Region& to, T* target, const Region& from, const T* source, std::size_t width)
{
    const int firstSample = std::max(to.firstSample, from.firstSample);
    const int endSample = std::min(to.firstSample + to.samples, from.firstSample + from.samples);
    const int firstToken = std::max(to.firstToken, from.firstToken);
    const int endToken = std::min(to.firstToken + to.tokens, from.firstToken + from.tokens);
    if (endToken <= firstToken) return;
    const auto count = static_cast<std::size_t>(endToken - firstToken) * width;
    const auto at = [firstToken](const Region& region, int sample) {
        return static_cast<std::size_t>(sample - region.firstSample) * static_cast<std::size_t>(region.tokens) +
               static_cast<std::size_t>(firstToken - region.firstToken);
    };
    for (int sample = firstSample; sample < endSample; ++sample)
        std::copy_n(source + at(from, sample) * width, count, target + at(to, sample) * width);
}

// As copyCommon(), of `width` floats a position, in whatever memory the buffers are.
void copyCommon(Memory& memory, const Region& to, float* target, const Region& from, const float* source,
                std::size_t width);

// A step's tokens and targets per microbatch: (batch, positions) of as many bytes as the workload says.
class StepData {
public:
    void sample(const Workload& workload, std::uint64_t seed, int step, int microbatches, const BatchShapes& shapes);
    // What a part sees: the whole itself, or a copy in `cut`.
    std::span<const std::uint8_t> tokens(const Part& part, const PartShapes& shapes,
                                         std::vector<std::uint8_t>& cut) const
    {
        return of(0, part, shapes, cut);
    }
    std::span<const std::uint8_t> targets(const Part& part, const PartShapes& shapes,
                                          std::vector<std::uint8_t>& cut) const
    {
        return of(1, part, shapes, cut);
    }

private:
    std::span<const std::uint8_t> of(std::size_t which, const Part& part, const PartShapes& shapes,
                                     std::vector<std::uint8_t>& cut) const;
    std::array<std::size_t, 2> m_width{}; // bytes of a position: of tokens, of targets
    std::vector<std::size_t> m_begin;     // of each microbatch's tokens, then its targets
    std::vector<std::uint8_t> m_bytes;
};

// take(message) gives an input, put(message, buffer) accepts an output, around(part) is called before each part. A full
// backward B is the input gradient, then the weight gradient: the caller must not let its output go before the op has
// ended. Where inputs are cut differently from the part, they are put together in a buffer of `allocator`, and split in
// the same way.
class OpExecution {
public:
    OpExecution(const PartShapes& shapes, const StepData& data, Allocator& allocator)
        : m_shapes(shapes), m_data(data), m_allocator(allocator)
    {
    }

    template <typename Take, typename Put>
    void run(const RankPlan& plan, const PlannedOp& planned, StageModel& model, Take&& take, Put&& put)
    {
        m_plan = &plan;
        const OpKind kind = planned.op.kind;
        const std::span<const PlannedPart> parts = m_plan->partsOf(planned);
        if (isWeightGrad(kind) && parts.size() > 1) {
            m_parts.clear();
            for (const PlannedPart& part : parts) m_parts.push_back(part.part);
            model.weightGradOver(m_parts);
            return;
        }
        for (const PlannedPart& planned1 : parts) {
            const Part& part = planned1.part;
            Buffer output;
            if (isForward(kind)) {
                output = forward(planned, model, part, gather(planned1, model, take));
            } else if (isReturn(kind)) {
                output = model.inputGrad(part, gather(planned1, model, take));
            } else if (isRecompute(kind)) {
                model.recompute(part);
            }
            if (output) scatter(planned1, model, std::move(output), put);
            if (makesWeightGradient(kind)) model.weightGrad(part);
        }
    }

private:
    Region regionOf(const MessageKey& key) const { return m_shapes.regionOf(key.slice, key.half); }
    bool isWhole(const MessageKey& key, const Part& part) const
    {
        return key.slice == part.slice && key.half == part.half;
    }
    Buffer take(std::size_t positions, const StageModel& model, int microbatch) const;
    Buffer forward(const PlannedOp& planned, StageModel& model, const Part& part, Buffer input);

    template <typename Take>
    Buffer gather(const PlannedPart& planned, const StageModel& model, Take& takeInput)
    {
        const std::span<const PlannedMessage> inputs = m_plan->inputsOf(planned);
        if (inputs.empty()) return {};
        if (inputs.size() == 1 && isWhole(inputs[0].key, planned.part)) return takeInput(inputs[0]);
        const Region region = m_shapes.regionOf(planned.part.slice, planned.part.half);
        Buffer whole = take(region.positions(), model, planned.part.microbatch);
        for (const PlannedMessage& input : inputs) {
            const Buffer piece = takeInput(input);
            copyCommon(m_allocator.memory(), region, whole.data(), regionOf(input.key), piece.data(),
                       static_cast<std::size_t>(m_shapes.width));
        }
        return whole;
    }

    template <typename Put>
    void scatter(const PlannedPart& planned, const StageModel& model, Buffer output, Put& putOutput)
    {
        const std::span<const PlannedMessage> outputs = m_plan->outputsOf(planned);
        if (outputs.size() == 1 && isWhole(outputs[0].key, planned.part)) {
            putOutput(outputs[0], std::move(output));
            return;
        }
        const Region region = m_shapes.regionOf(planned.part.slice, planned.part.half);
        for (const PlannedMessage& message : outputs) {
            const Region piece = regionOf(message.key);
            Buffer copy = take(piece.positions(), model, planned.part.microbatch);
            copyCommon(m_allocator.memory(), piece, copy.data(), region, output.data(),
                       static_cast<std::size_t>(m_shapes.width));
            putOutput(message, std::move(copy));
        }
    }

    const RankPlan* m_plan = nullptr; // of the op that runs
    const PartShapes& m_shapes;
    const StepData& m_data;
    Allocator& m_allocator;
    std::vector<Part> m_parts;
    std::vector<std::uint8_t> m_tokens;
    std::vector<std::uint8_t> m_targets;
};

} // namespace stagewright
