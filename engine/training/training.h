// Training: executes a Schedule for real, one thread per rank, and reports what happened as one Timeline per step.
//
//     auto training = Training::create(checked, options); // a CheckedSchedule
//     for (int i = 0; i < steps; ++i) { auto step = (*training)->step(stop); … }
//
// Several trainings may live side by side and be stepped in turn (a, b, a, b), so that they share the load of the
// machine.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/training/op_runner.h"
#include "engine/workload/workload.h"
#include "schedules/base/result.h"
#include "schedules/execute/deadlock.h"
#include "schedules/execute/perturb.h"
#include "schedules/execute/ready_order.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/model/state_sharding.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

class CheckedSchedule;
class GpuTracer;  // profiler/cupti/gpu_tracer.h
class ProcessJob; // engine/transport/process_job.h
class SavedFile;  // engine/saved/saved_training.h
struct SavedTraining;
struct TraceFacts;

// wall: real threads, real waits; valid while ranks ≤ idle cores. virtual: ops really execute, admitted through
// min(cores, ranks) permits, then are placed by dependency with their CPU time ("projected for p devices").
// Auto: wall where ranks ≤ idle cores at the start, else virtual.
enum class ClockMode {
    Auto,
    Wall,
    Virtual,
};
std::string_view toText(ClockMode mode);

struct TrainingOptions {
    std::shared_ptr<const Workload> workload = defaultWorkload();
    int microbatchSize = 4;
    // Samples of one microbatch, by replica: gradients and losses are means over all samples. Empty: microbatchSize in
    // all.
    std::vector<int> replicaSamples;
    std::vector<int> stageLayers; // empty: balanced
    OptimizerConfig optimizer;
    std::uint64_t seed = 1;
    ClockMode clock = ClockMode::Auto;
    RunPerturbation perturbation; // slow ranks, late launches; slow links are in `links`
    Links links;                  // emulated links: a message is delayed by latency + bytes / bandwidth
    std::string backend = "cpu";
    DeviceOptions device; // of backends with devices of their own
    // Traces what the devices do, from its start() to its stop(), both the caller's: ops then have their kernels'
    // times. Null: none.
    std::shared_ptr<GpuTracer> tracer;
    // Which layers an R recomputes (first, last; global numbers), where the schedule has R ops. None: all.
    std::optional<std::pair<int, int>> recomputedLayers;
    // What the ranks of a stage share, where the schedule's lists have its ops (sharesState(),
    // schedules/model/shard_rules.h).
    StateSharding sharding;
    // Partial backward, by replica: the layer that it goes back to (schedules/model/partial_backward.h), where the
    // lists have no backward of what lies below. Empty: all go back to layer 0.
    std::vector<int> cuts;
    // What a rank may hold in all, by rank: counted, not taken from the machine. An allocation beyond it ends the
    // training, naming rank, op and both numbers. Empty: no limits; 0: none for that rank.
    std::vector<Bytes> rankMemory;
    // What each rank may keep on its host while OFFLOAD has moved it there, as rankMemory; copies take as long as
    // links.copies says (emulated).
    std::vector<Bytes> hostMemory;
    OpRunners runners; // of resources that the engine does not know
    // How ranks choose their next op. Other than by the list, the order is found in every step (on the virtual clock at
    // virtual times), and each step's timeline has the schedule that ran.
    ReadyOrder order;
    // Schedules that steps take turns with, the first of them the training's: cycle_plans.h. Empty: that one.
    std::vector<std::shared_ptr<const CheckedSchedule>> cycle;
    // How messages travel. Under rendezvous the ranks run a lowered schedule, send by send and receive by receive, on
    // the wall clock: the one given, or a compute-only one lowered by `lowering`. So an order that waits for itself
    // hangs here as simulate() and explainDeadlock() say.
    Channels channels;
    Lowering lowering;
    // Its ranks are spread over the processes of the job, in order; all of them make the same trainings in the same
    // order. Null: all ranks are threads of this process.
    std::shared_ptr<ProcessJob> job;
    // The checkpoint that it goes on from: by names, so that schedule, ranks, replicas and sharding may be others.
    // Every process of a job reads it. Null: from the start.
    std::shared_ptr<const SavedFile> resume;
    double timeoutSeconds = 120; // watchdog: a step that makes no progress this long fails, naming who waits for what
};

// What a rank took in a step in gathers of weights and reductions of gradients, as its transport counts it.
struct RankTraffic {
    int gathers = 0;    // UNSHARD ops
    int reductions = 0; // REDUCE_GRAD ops
    Bytes messages = 0; // activations and their gradients
    Bytes gathered = 0;
    Bytes reduced = 0; // gradients and their sums
    bool operator==(const RankTraffic&) const = default;
};

struct StepOutcome {
    int step = 0;          // 0-based, warm-up steps included
    double loss = 0;       // mean over microbatches, nats per token
    Nanos stepTime = 0;    // on the run's clock: first to last span of the step
    Nanos wallTime = 0;    // wall-clock time
    double contention = 0; // 1 − CPU time / wall time over busy ops
    Nanos clockBand = 0;   // how far times of ranks on other clocks may be wrong; 0: all have one clock
    // Optimizer ops in the lists run before the global norm is known: how many stages had to roll theirs back.
    int rollbacks = 0;
    bool skipped = false;                     // no stage stepped: a gradient is not finite
    std::vector<RankTraffic> traffic;         // by rank
    std::shared_ptr<const Timeline> timeline; // this step alone, after all earlier ones on the run's clock
};

class Training {
public:
    // The checked one may serve several trainings.
    static Result<std::unique_ptr<Training>> create(const std::shared_ptr<const CheckedSchedule>& schedule,
                                                    const TrainingOptions& options);
    virtual ~Training() = default;

    // Runs one step on all ranks. On a stop request, an exception in a rank or the watchdog: all ranks stop, the step
    // is dropped, an Error (Cancelled, Failed) says why, and the training can't continue.
    virtual Result<StepOutcome> step(const std::stop_token& stop) = 0;

    // After a step that the watchdog stopped: who waited for whom, from what the ranks recorded about their messages;
    // with a way out where the schedule itself hangs. None: no such step.
    virtual std::optional<Deadlock> stall() const { return std::nullopt; }

    // Between steps: that ranks in another process are gone with it.
    virtual std::optional<Error> lost() const { return std::nullopt; }

    // The compute-only order that is trained.
    virtual const Schedule& schedule() const = 0;
    // The lists as the ranks run them: with sends and receives under rendezvous, else schedule().
    virtual const Schedule& lists() const { return schedule(); }
    virtual ClockMode clock() const = 0; // Wall or Virtual
    // Between steps. Copies of a stage are numbered by their first microbatch.
    virtual std::vector<ParameterView> parameters(int stage, int copy = 0) = 0;
    // Gradients of the last step (asynchronous schedules: of the last update) as they were before clipping and the
    // optimizer, summed over copies: by stage, by parameter, concatenated.
    virtual void keepGradients(bool keep) = 0;
    virtual std::vector<std::vector<float>> lastGradients() const = 0;
    // Between steps: a copy of all that the next one starts from, with its facts (docs/formats.md, "Checkpoints").
    // Failed where a rank elsewhere does not answer.
    virtual Result<SavedTraining> saved() = 0;
    // By rank, last step: the exact maximum; for activations the maximum over op ends, as the simulator counts.
    virtual std::vector<Bytes> peak(MemoryCategory category) const = 0;
    // Configuration and environment as text pairs, for the run.
    virtual std::vector<std::pair<std::string, std::string>> configuration() const = 0;
    virtual std::vector<std::pair<std::string, std::string>> environment() const = 0;
    // Between steps: whether the following ones time what each part of the model takes (StageModel::timeParts).
    // layerCosts(): in the model's order, with the bytes that its shape says; empty where a part was not timed.
    virtual void timeLayers(bool /*on*/) {}
    virtual std::vector<LayerCosts> layerCosts() const { return {}; }
    // In a process of the job that does not lead (process 0 does): nothing above is for it, its ranks run what the
    // leader asks for. Whether it did something just now; an error (Failed, Cancelled) once its ranks have stopped;
    // Leave once the leader is done.
    enum class Served {
        Nothing,
        Something,
        Leave,
    };
    virtual Result<Served> serve() { return Served::Leave; }
    // What the tracer delivered of the steps that it traced, and what was missing. State, reason and cost are the
    // caller's.
    virtual TraceFacts traceFacts() const;
};

// Where ranks are in several processes: what the options leave open (clock, library of products) becomes what the
// leader settles on.
Result<void> agreeOnOptions(TrainingOptions& options, int ranks);

// Serves until the leader is done with all of them, or one of them stops.
Result<void> serveTrainings(std::span<const std::unique_ptr<Training>> trainings, const ProcessJob& job);

// As Training::create, options.backend being a name for messages only.
Result<std::unique_ptr<Training>> createTraining(const std::shared_ptr<const CheckedSchedule>& schedule,
                                                 const TrainingOptions& options, std::unique_ptr<Backend> backend);

} // namespace stagewright
