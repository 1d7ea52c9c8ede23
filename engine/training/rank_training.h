// A training whose ranks are threads here, all of them or those of this process.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/training/process_communicator.h"
#include "engine/training/rank_report.h"
#include "engine/training/training.h"
#include "engine/training/training_state.h"
#include "profiler/cupti/gpu_tracer.h"

namespace stagewright {

// The caller's thread orders steps and waits for them; each rank's thread runs runRank() until it is ordered to leave.
class RankTraining final : public Training {
public:
    explicit RankTraining(std::shared_ptr<TrainingState> state);
    ~RankTraining() override;

    // Starts the ranks and waits until they have made their stages.
    Result<void> start(ProcessCommunicator* processes);
    Result<StepOutcome> step(const std::stop_token& stop) override;
    std::optional<Deadlock> stall() const override { return m_stall; }
    std::optional<Error> lost() const override { return m_state->communicator->lost(); }
    const Schedule& schedule() const override { return *m_state->schedule; }
    const Schedule& lists() const override { return m_state->lowered ? *m_state->lowered : *m_state->schedule; }
    ClockMode clock() const override { return m_state->clock; }
    std::vector<ParameterView> parameters(int stage, int copy) override;
    void keepGradients(bool keep) override { m_state->keepGradients = keep; }
    std::vector<std::vector<float>> lastGradients() const override;
    Result<SavedTraining> saved() override;
    std::vector<Bytes> peak(MemoryCategory category) const override;
    std::vector<std::pair<std::string, std::string>> configuration() const override;
    TraceFacts traceFacts() const override { return m_traceFacts; }
    void timeLayers(bool on) override;
    std::vector<LayerCosts> layerCosts() const override;
    std::vector<std::pair<std::string, std::string>> environment() const override;
    Result<Served> serve() override;

private:
    // As SharedState says it of a rank that may be elsewhere.
    bool hasAllValues(const StageShare& share) const;
    // Put together from what the ranks of the stage own.
    std::vector<ParameterView> sharedParameters(int stage, int copy);

    Result<StepOutcome> runStep(const std::stop_token& stop);
    void order(RankCommand command);
    bool restLocked() const;
    RankRun& runOf(int rank) const { return m_state->ranks[static_cast<std::size_t>(rank)]; }
    void prepareStep(int step);
    bool allRest() const;
    // Until all ranks here are at rest, or for this long (< 0: forever); then those elsewhere, likewise.
    bool awaitStep(Nanos atMost) { return awaitRest(atMost) && m_state->communicator->rested(atMost); }
    bool awaitRest(Nanos atMost);
    // Waits for the end of the step; stops it if there is no progress for the time-out, or if a rank does not stop.
    void watch();
    double meanLoss() const;

    std::shared_ptr<TrainingState> m_state;
    std::vector<int> m_here; // ranks
    std::vector<std::thread> m_threads;
    ProcessCommunicator* m_processes = nullptr;            // the state's communicator, where it is one
    std::map<std::pair<int, int>, StageWeights> m_weights; // of stages elsewhere, by stage and copy, as last asked for
    std::optional<Deadlock> m_stall;
    TraceFacts m_traceFacts;
    std::string m_dataHash; // once it was asked for
    int m_first = 0;        // steps that were done before, by the training that it goes on from
    int m_steps = 0;        // of this one
    bool m_timesLayers = false;
};

} // namespace stagewright
