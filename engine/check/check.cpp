// checkSchedule: a schedule's training against its one-rank replay, against itself, and against the undivided model.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "engine/check/check.h"
#include "engine/check/partial_reference.h"
#include "engine/check/replay.h"
#include "engine/check/stale_check.h"
#include "engine/training/execution_plan.h"
#include "engine/training/training.h"
#include "engine/transport/process_job.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright {

namespace {

// Where the order of W differs, sums are rounded differently: how far such gradients may differ.
double orderToleranceOf(const TrainingOptions& options)
{
    const BackendTraits& traits = traitsOf(options.backend);
    switch (traits.resolved(options.device.precision)) {
    case Precision::Fp32: return traits.reorderedTolerance;
    case Precision::Tf32: return 1e-2;
    default: return 1e-1; // activations of 8 bits
    }
}
// An optimizer step that was rolled back leaves the weights a rounding error away: what gradients may differ by
// afterwards.
constexpr double rollbackTolerance = 1e-4;

bool weightsInMicrobatchOrder(const Schedule& schedule)
{
    std::vector<int> last(static_cast<std::size_t>(schedule.stages), -1);
    for (const std::vector<Op>& list : schedule.order) {
        for (const Op& op : list) {
            if (!makesWeightGradient(op.kind)) continue;
            if (op.microbatch < last[op.stage]) return false;
            last[op.stage] = op.microbatch;
        }
    }
    return true;
}

Result<Difference> againstUndivided(const Schedule& schedule, const Replay& replay, const TrainingOptions& options,
                                    const BackendMaker& makeBackend, const std::stop_token& stop)
{
    TrainingOptions whole = options;
    whole.stageLayers.clear();
    STAGEWRIGHT_TRY(std::unique_ptr<Backend> backend, makeBackend());
    STAGEWRIGHT_TRY(const auto undivided, checkedUndivided(schedule.microbatches));
    STAGEWRIGHT_TRY(std::unique_ptr<Replay> reference, Replay::create(undivided, whole, std::move(backend)));
    STAGEWRIGHT_CHECK(reference->step(stop));
    std::map<std::string, const std::vector<float>*> byName;
    const auto names = replay.parameterNames();
    for (std::size_t stage = 0; stage < names.size(); ++stage) {
        for (std::size_t i = 0; i < names[stage].size(); ++i) byName[names[stage][i]] = &replay.gradients()[stage][i];
    }
    Difference difference;
    const auto wholeNames = reference->parameterNames();
    for (std::size_t i = 0; i < wholeNames[0].size(); ++i) {
        const auto found = byName.find(wholeNames[0][i]);
        if (found == byName.end()) {
            return fail(ErrorCode::Failed,
                        fmt::format("parameter {} of the undivided model is on no stage", wholeNames[0][i]));
        }
        difference.add(*found->second, reference->gradients()[0][i]);
    }
    return difference;
}

// Copies of a stage hold the same weights, bit for bit.
bool copiesAgree(Training& training)
{
    const Placement& placement = training.schedule().placement;
    for (int stage = 0; stage < placement.stages(); ++stage) {
        const std::vector<ParameterView> first = training.parameters(stage);
        for (std::size_t copy = 1; copy < placement.copiesOf(stage).size(); ++copy) {
            const std::vector<ParameterView> other = training.parameters(stage, static_cast<int>(copy));
            for (std::size_t i = 0; i < first.size(); ++i) {
                if (std::memcmp(first[i].value.data(), other[i].value.data(), first[i].value.size_bytes()) != 0)
                    return false;
            }
        }
    }
    return true;
}

bool weightsAgree(Training& training, const Replay& replay)
{
    for (int stage = 0; stage < training.schedule().stages; ++stage) {
        const std::vector<ParameterView> trained = training.parameters(stage);
        const std::vector<ParameterView> replayed = replay.parameters(stage);
        for (std::size_t i = 0; i < trained.size(); ++i)
            if (trained[i].value.size() != replayed[i].value.size() ||
                std::memcmp(trained[i].value.data(), replayed[i].value.data(), trained[i].value.size_bytes()) != 0)
                return false;
        if (trained.size() != replayed.size()) return false;
    }
    return true;
}

// Why its sums are rounded differently from those of the undivided model; empty: they are not.
std::string otherSums(const Schedule& schedule, const ExecutionPlan& plan)
{
    if (plan.slices) return "sequence slices";
    if (plan.halves) return "halves of microbatches";
    if (plan.concatenates) return "W over several microbatches in one GEMM";
    if (schedule.placement.hasCopies()) return "copies of a stage are summed";
    return weightsInMicrobatchOrder(schedule) ? "" : "W is summed in a different order";
}

std::string noteOf(const CheckResult& result, const Difference& whole, const std::string& other)
{
    if (!result.orderEqual) return "the run's order is not the schedule's";
    if (!result.copiesEqual) return "copies of a stage hold different weights";
    if (!result.weightsEqual) return "weights differ from the one-rank replay's";
    const bool exact = result.rollbacks == 0 || !result.sharing.empty(); // shared state comes back bit for bit
    if (!result.gradientsEqual && exact) return "gradients differ from the one-rank replay";
    if (!result.lossesEqual && exact) return "losses differ from the one-rank replay";
    if (!result.repeatEqual) return "a second run gives different bits";
    const std::string reference =
        result.partial ? "the undivided model over each layer's contributors" : "the undivided model";
    std::string text = whole.equal ? fmt::format("equal to {} bit for bit", reference)
                                   : fmt::format("{:.1e} from {} ({})", whole.error, reference,
                                                 other.empty() ? "bit for bit was expected" : other);
    if (result.partial) text += fmt::format("; weights {:.1e} from synchronous training", result.deviation);
    if (result.rollbacks > 0)
        text += fmt::format("; {} optimizer steps rolled back and repeated, {:.1e} from the one-rank replay",
                            result.rollbacks, result.gradientError);
    return text;
}

} // namespace

void Difference::add(std::span<const float> a, std::span<const float> b)
{
    if (a.size() != b.size()) {
        equal = false;
        error = std::numeric_limits<double>::infinity();
        return;
    }
    if (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0) return;
    equal = false;
    double distance = 0;
    double size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        distance = apart <= distance ? distance : apart; // NaN stays
        size = std::max(size, std::abs(static_cast<double>(b[i])));
    }
    const double relative = distance == 0 ? 0 : size > 0 ? distance / size : std::numeric_limits<double>::infinity();
    error = std::isnan(relative) ? std::numeric_limits<double>::infinity() : std::max(error, relative);
}

bool sameBits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

Difference compareGradients(const std::vector<std::vector<float>>& training,
                            const std::vector<std::vector<std::vector<float>>>& reference)
{
    Difference difference;
    for (std::size_t stage = 0; stage < reference.size(); ++stage) {
        std::size_t at = 0;
        for (const std::vector<float>& tensor : reference[stage]) {
            const std::span<const float> all(training[stage]);
            difference.add(at + tensor.size() <= all.size() ? all.subspan(at, tensor.size()) : std::span<const float>(),
                           tensor);
            at += tensor.size();
        }
        if (at != training[stage].size()) difference.equal = false;
    }
    return difference;
}

TrainingOptions clockedOptions(const TrainingOptions& options, int training)
{
    TrainingOptions clocked = options;
    if (training > 0) clocked.job = nullptr;
    const bool wallOnly = options.channels.sends == SendMode::Rendezvous || options.channels.limited();
    if (clocked.clock == ClockMode::Auto)
        clocked.clock = training == 0 || wallOnly ? ClockMode::Wall : ClockMode::Virtual;
    return clocked;
}

CheckResult checkResultOf(const Schedule& schedule, const TrainingOptions& options)
{
    CheckResult result;
    result.schedule = schedule.name;
    result.backend = options.backend;
    result.shape = fmt::format("p={} m={} v={}{}", schedule.pipelineRanks(), schedule.microbatches,
                               schedule.stages / schedule.pipelineRanks(),
                               schedule.replicas > 1 ? fmt::format(" r={}", schedule.replicas) : std::string());
    result.weights = schedule.weights;
    result.gradientsEqual = result.lossesEqual = result.repeatEqual = result.orderEqual = result.copiesEqual = true;
    return result;
}

bool serves(const TrainingOptions& options) { return options.job && options.job->index() != 0; }

Result<CheckResult> servedCheck(std::span<const std::unique_ptr<Training>> trainings, const Schedule& schedule,
                                const TrainingOptions& options)
{
    STAGEWRIGHT_CHECK(serveTrainings(trainings, *options.job));
    CheckResult result = checkResultOf(schedule, options);
    result.passed = true; // as far as is known here
    return result;
}

Schedule undividedSchedule(int microbatches)
{
    Schedule schedule;
    schedule.name = "undivided";
    schedule.ranks = schedule.stages = 1;
    schedule.microbatches = microbatches;
    schedule.placement = Placement::loop(1, 1);
    schedule.order.resize(1);
    schedule.paired.resize(1);
    for (int j = 0; j < microbatches; ++j) {
        schedule.order[0].push_back(makeForward(0, j));
        schedule.order[0].push_back(makeBackward(0, j));
    }
    return schedule;
}

Result<std::shared_ptr<const CheckedSchedule>> checkedUndivided(int microbatches)
{
    return CheckedSchedule::of(undividedSchedule(microbatches));
}

Result<CheckResult> checkSchedule(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options,
                                  int steps, const std::stop_token& stop)
{
    TrainingOptions agreed = options;
    STAGEWRIGHT_CHECK(agreeOnOptions(agreed, checked->compute().ranks));
    agreed.clock = options.clock;
    return checkSchedule(checked, agreed, steps, stop,
                         [&agreed] { return makeBackend(agreed.backend, agreed.device); });
}

Result<CheckResult> checkSchedule(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options,
                                  int steps, const std::stop_token& stop, const BackendMaker& makeBackend)
{
    if (steps < 1) return fail(ErrorCode::Usage, fmt::format("{} steps; a check needs at least 1", steps));
    const Schedule& schedule = checked->compute();
    STAGEWRIGHT_TRY(const ExecutionPlan plan, planExecution(*checked));
    if (plan.shared && options.optimizer.kind == OptimizerKind::Kfac)
        return fail(ErrorCode::Usage,
                    "K-FAC: owners have the factors of their own samples, and the one-rank replay those of all",
                    "check it without --replicas");
    if (schedule.weights != WeightRule::Synchronous) return checkStale(checked, options, steps, stop, makeBackend);
    std::vector<std::unique_ptr<Training>> trainings;
    for (int i = 0; i < 2; ++i) {
        STAGEWRIGHT_TRY(std::unique_ptr<Backend> backend, makeBackend());
        Result<std::unique_ptr<Training>> training =
            createTraining(checked, clockedOptions(options, i), std::move(backend));
        if (!training) return tl::unexpected(std::move(training.error()));
        (*training)->keepGradients(true);
        trainings.push_back(std::move(*training));
        if (serves(options)) return servedCheck(trainings, schedule, options);
    }
    STAGEWRIGHT_TRY(std::unique_ptr<Backend> backend, makeBackend());
    STAGEWRIGHT_TRY(std::unique_ptr<Replay> replay, Replay::create(checked, options, std::move(backend)));

    std::unique_ptr<PartialReference> synchronous; // of partial backward
    if (!options.cuts.empty()) {
        STAGEWRIGHT_TRY(synchronous, PartialReference::create(schedule, options, makeBackend));
    }
    CheckResult result = checkResultOf(schedule, options);
    result.partial = !options.cuts.empty();
    if (plan.shared) result.sharing = toText(options.sharding);
    bool lossesNear = true;
    Difference whole;
    for (int step = 0; step < steps; ++step) {
        STAGEWRIGHT_TRY(double reference, replay->step(stop));
        std::vector<StepOutcome> outcomes;
        if (synchronous) synchronous->before(*trainings[0]);
        for (const auto& training : trainings) {
            STAGEWRIGHT_TRY(StepOutcome outcome, training->step(stop));
            Result<Schedule> ran = scheduleOf(*outcome.timeline, step);
            if (!ran || !(*ran == schedule)) result.orderEqual = false;
            outcomes.push_back(std::move(outcome));
        }
        if (synchronous) {
            STAGEWRIGHT_CHECK(synchronous->after(*trainings[0], stop));
            result.deviation = synchronous->deviation();
        }
        const std::vector<std::vector<float>> gradients = trainings[0]->lastGradients();
        const Difference difference = compareGradients(gradients, replay->gradients());
        result.gradientError = std::max(result.gradientError, difference.error);
        result.gradientsEqual = result.gradientsEqual && difference.equal;
        Difference repeat;
        const std::vector<std::vector<float>> again = trainings[1]->lastGradients();
        for (std::size_t stage = 0; stage < gradients.size(); ++stage) repeat.add(again[stage], gradients[stage]);
        result.repeatEqual = result.repeatEqual && repeat.equal && sameBits(outcomes[0].loss, outcomes[1].loss);
        result.lossesEqual = result.lossesEqual && sameBits(outcomes[0].loss, reference);
        lossesNear = lossesNear && std::abs(outcomes[0].loss - reference) <= rollbackTolerance * std::abs(reference);
        result.copiesEqual = result.copiesEqual && copiesAgree(*trainings[0]);
        if (plan.shared) result.weightsEqual = result.weightsEqual && weightsAgree(*trainings[0], *replay);
        result.traffic = outcomes[0].traffic;
        result.rollbacks += outcomes[0].rollbacks;
        result.loss = outcomes[0].loss;
        result.referenceLoss = reference;
        // later steps start from weights that may differ by roundings
        if (step == 0 && options.replicaSamples.empty()) {
            STAGEWRIGHT_TRY(Difference apart, synchronous
                                                  ? againstContributors(schedule, *replay, options, makeBackend)
                                                  : againstUndivided(schedule, *replay, options, makeBackend, stop));
            whole = apart;
        }
    }
    const std::string other =
        options.replicaSamples.empty() ? otherSums(schedule, plan) : "not compared: microbatches of several sizes";
    const bool wholeHolds = other.empty() ? whole.equal : whole.error <= orderToleranceOf(options);
    const bool replayHolds = result.rollbacks > 0 && !plan.shared
                                 ? result.gradientError <= rollbackTolerance && lossesNear
                                 : result.gradientsEqual && result.lossesEqual;
    result.note = noteOf(result, whole, other);
    result.passed = replayHolds && result.repeatEqual && result.orderEqual && result.copiesEqual &&
                    result.weightsEqual && wholeHolds;
    return result;
}

} // namespace stagewright
