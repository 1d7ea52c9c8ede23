// Replay: a synchronous schedule's ops on a single thread, all stages side by side, in a global order that keeps every
// rank's own order. One accumulator per copy of a stage, copies summed in rank order, the sums of several reductions of
// a step added in their order; of replicas that go back to different layers the mean over each layer's contributors;
// one optimizer step at the end. No threads, no transport, no recorder: what a training must equal bit for bit.
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <vector>

#include "engine/training/op_execution.h"
#include "engine/training/training.h"

namespace stagewright {

class Replay {
public:
    // The schedule must be synchronous and one that planExecution() accepts.
    static Result<std::unique_ptr<Replay>> create(const std::shared_ptr<const CheckedSchedule>& checked,
                                                  const TrainingOptions& options, std::unique_ptr<Backend> backend);

    Result<double> step(const std::stop_token& stop); // the mean loss
    // After step(): by stage, by parameter, as they were before clipping.
    const std::vector<std::vector<std::vector<float>>>& gradients() const { return m_gradients; }
    std::vector<std::vector<std::string>> parameterNames() const; // by stage, by parameter
    std::vector<ParameterView> parameters(int stage) const;       // after the last step
    // into every copy; optimizer state stays
    void takeWeights(const std::map<std::string, std::span<const float>>& byName);

private:
    struct Copy {
        StageSlice slice;
        int rank;
        std::unique_ptr<StageModel> model;
        std::vector<std::vector<float>> reduced; // by reduction of this step, where there are several
    };

    Replay(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options,
           std::unique_ptr<Backend> backend);
    Result<void> makeStages();
    Copy& copyOn(int stage, int rank);
    bool hasInputs(const RankPlan& plan, const PlannedOp& planned) const;
    void run(int rank, const PlannedOp& planned, OpExecution& execution, std::vector<double>& losses);
    std::vector<float> sumOfReductions(std::size_t first, std::size_t end) const;
    std::vector<float> meanOfContributors(const StageSlice& slice, const std::vector<std::vector<float>>& parts) const;
    void sumAndStep();

    std::shared_ptr<const Schedule> m_schedule;
    TrainingOptions m_options;
    ExecutionPlan m_plan;
    BatchShapes m_shapes;
    std::unique_ptr<Backend> m_backend;
    std::unique_ptr<Memory> m_memory;       // null: the host's
    std::unique_ptr<Allocator> m_allocator; // outlives the stages and messages below
    std::vector<Copy> m_copies;             // by stage, then by rank
    std::map<MessageKey, Buffer> m_messages;
    std::vector<std::vector<std::vector<float>>> m_gradients;
    StepData m_data;
    int m_step = 0;
};

} // namespace stagewright
