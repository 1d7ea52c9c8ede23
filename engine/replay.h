// Replay: a schedule's ops on a single thread, all stages side by side, in a global order that keeps every rank's own
// order, one gradient accumulator per stage. No threads, no messages, no recorder: what a training must equal bit for
// bit.
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <tuple>
#include <vector>

#include "engine/backend.h"
#include "engine/op_execution.h"
#include "engine/training.h"

namespace stagewright {

class Replay
{
public:
    // The schedule must be one that planExecution() accepts.
    static Result<std::unique_ptr<Replay>> create(const Schedule& schedule, const TrainingOptions& options,
                                                  std::unique_ptr<Backend> backend);

    Result<double> step(std::stop_token stop); // the mean loss
    // After step(): by stage, by parameter, as they were before clipping.
    const std::vector<std::vector<std::vector<float>>>& gradients() const { return m_gradients; }
    std::vector<std::vector<std::string>> parameterNames() const; // likewise

private:
    Replay(const Schedule& schedule, const TrainingOptions& options, std::unique_ptr<Backend> backend);
    bool hasInputs(const Op& op) const;

    Schedule m_schedule;
    TrainingOptions m_options;
    std::unique_ptr<Backend> m_backend;
    Allocator m_allocator; // outlives the stages and messages below
    std::vector<std::unique_ptr<StageModel>> m_stages;
    std::map<std::tuple<bool, std::uint16_t, std::int32_t>, Buffer> m_messages; // (gradient, stage, microbatch)
    std::vector<std::vector<std::vector<float>>> m_gradients;
    StepData m_data;
    int m_step = 0;
};

} // namespace stagewright
