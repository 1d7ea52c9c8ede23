// StaleModel: the training of an asynchronous schedule by its update rule, on one rank, microbatch after microbatch.
// Written from the rule alone: every stage keeps the history of its weights, and each microbatch picks the ones its
// rule names. It knows no rank loop, no weight versions of the layers, no messages.
//
//   Stashed      F and B of microbatch j at stage s with w(n − d), the update with the newest: w(n+1) = w(n) − lr ∇f
//   Predicted    F with w(n − d) moved d updates on along the direction of the last one, B with w(n)
//   TwoVersions  all microbatches of step t with w(t−1), the update on w(t)
// n counts the updates of the stage; d is how many of them lie between F and B of the microbatch in the schedule's
// lists (updatesBetween()). Each call of step() starts with an empty pipeline, as Training::step() does.
// With Staleness::None every d is 0: the same updates on the same data, synchronously. The deviation of an
// asynchronous run is measured from that.
#pragma once

#include <deque>
#include <memory>
#include <stop_token>
#include <vector>

#include "engine/training/op_execution.h"
#include "engine/training/training.h"

namespace stagewright {

enum class Staleness {
    OfSchedule,
    None,
};

class StaleModel {
public:
    // The schedule must be asynchronous, accepted by planExecution(), and run its backwards by rising microbatch
    // (Usage).
    static Result<std::unique_ptr<StaleModel>> create(const Schedule& schedule, const TrainingOptions& options,
                                                      std::unique_ptr<Backend> backend, Staleness staleness);
    ~StaleModel();

    Result<double> step(const std::stop_token& stop); // the mean loss
    // By stage, by parameter: gradients of the last update, newest weights.
    const std::vector<std::vector<std::vector<float>>>& gradients() const { return m_gradients; }
    std::vector<std::vector<std::vector<float>>> weights() const;

private:
    struct Stage;
    StaleModel(const Schedule& schedule, const TrainingOptions& options, std::unique_ptr<Backend> backend);
    Result<void> makeStages(Staleness staleness);
    double run(int microbatch);
    void update(Stage& stage);

    Schedule m_schedule;
    TrainingOptions m_options;
    PartShapes m_shapes;
    std::unique_ptr<Backend> m_backend;
    std::unique_ptr<Memory> m_memory;       // null: the host's
    std::unique_ptr<Allocator> m_allocator; // outlives the stages
    std::vector<std::unique_ptr<Stage>> m_stages;
    std::vector<std::vector<std::vector<float>>> m_gradients;
    StepData m_data;
    int m_step = 0;
};

// ‖w − w′‖₂ / ‖w′‖₂ over all weights: those of the training, and those of the model.
double deviationOf(Training& training, const StaleModel& reference);

} // namespace stagewright
