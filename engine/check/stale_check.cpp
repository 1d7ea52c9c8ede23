#include "engine/check/stale_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "engine/check/check.h"
#include "engine/check/stale_model.h"
#include "engine/training/step_rules.h"
#include "engine/transport/process_job.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright {

namespace {

// Predictions are rounded apart: the layers reckon in float, the model in double. AdamW makes much of the rounding of a
// gradient near zero, so that single weights may differ by more: the check uses their distance as a whole.
struct Apart {
    double gradients; // and losses
    double weights;   // relative L2 of all
};
constexpr Apart predictedApart{1e-4, 1e-5};
// A prediction next to the middle of two bf16 numbers may be rounded to either: it is then 2^-8 of itself off.
constexpr Apart predictedApartInBf16{2e-2, 1e-3};

Difference compareWeights(Training& training, const StaleModel& model)
{
    Difference difference;
    const auto weights = model.weights();
    for (std::size_t stage = 0; stage < weights.size(); ++stage) {
        const std::vector<ParameterView> parameters = training.parameters(static_cast<int>(stage));
        for (std::size_t p = 0; p < parameters.size(); ++p) difference.add(parameters[p].value, weights[stage][p]);
    }
    return difference;
}

bool sameWeights(Training& a, Training& b)
{
    for (int stage = 0; stage < a.schedule().stages; ++stage) {
        const std::vector<ParameterView> first = a.parameters(stage);
        const std::vector<ParameterView> second = b.parameters(stage);
        for (std::size_t p = 0; p < first.size(); ++p) {
            if (std::memcmp(first[p].value.data(), second[p].value.data(), first[p].value.size_bytes()) != 0)
                return false;
        }
    }
    return true;
}

// "weights lag 3 2 1 0 updates by stage"
std::string lagText(const Schedule& schedule)
{
    if (schedule.weights == WeightRule::TwoVersions) return "weights lag one update on every stage";
    std::string text;
    for (const std::vector<int>& delays : updatesBetween(schedule))
        text += fmt::format("{} ", *std::max_element(delays.begin(), delays.end()));
    return fmt::format("weights {} {}updates by stage",
                       schedule.weights == WeightRule::Predicted ? "are predicted over at most" : "lag at most", text);
}

} // namespace

Result<CheckResult> checkStale(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options,
                               int steps, const std::stop_token& stop, const BackendMaker& makeBackend)
{
    const Schedule& schedule = checked->compute();
    std::vector<std::unique_ptr<Training>> trainings;
    std::vector<std::unique_ptr<StaleModel>> models; // the schedule's rule, synchronous training
    Apart allowed = predictedApart;
    for (int i = 0; i < 2; ++i) {
        STAGEWRIGHT_TRY(std::unique_ptr<Backend> backend, makeBackend());
        if (backend->capabilities().layout.elementBytes < 4) allowed = predictedApartInBf16;
        Result<std::unique_ptr<Training>> training =
            createTraining(checked, clockedOptions(options, i), std::move(backend));
        if (!training) return tl::unexpected(std::move(training.error()));
        (*training)->keepGradients(true);
        trainings.push_back(std::move(*training));
        if (serves(options)) return servedCheck(trainings, schedule, options);
    }
    for (const Staleness staleness : {Staleness::OfSchedule, Staleness::None}) {
        STAGEWRIGHT_TRY(std::unique_ptr<Backend> backend, makeBackend());
        Result<std::unique_ptr<StaleModel>> model =
            StaleModel::create(schedule, options, std::move(backend), staleness);
        if (!model) return tl::unexpected(std::move(model.error()));
        models.push_back(std::move(*model));
    }
    CheckResult result = checkResultOf(schedule, options);
    bool weightsEqual = true;
    bool lossesNear = true;
    for (int step = 0; step < steps; ++step) {
        std::vector<double> references;
        for (const auto& model : models) {
            STAGEWRIGHT_TRY(double loss, model->step(stop));
            references.push_back(loss);
        }
        std::vector<double> losses;
        for (const auto& training : trainings) {
            STAGEWRIGHT_TRY(StepOutcome outcome, training->step(stop));
            const Result<Schedule> ran = scheduleOf(*outcome.timeline, step);
            if (!ran || !(*ran == schedule)) result.orderEqual = false;
            losses.push_back(outcome.loss);
        }
        const Difference gradients = compareGradients(trainings[0]->lastGradients(), models[0]->gradients());
        const Difference now = compareWeights(*trainings[0], *models[0]);
        weightsEqual = weightsEqual && now.equal;
        result.gradientError = std::max(result.gradientError, gradients.error);
        result.gradientsEqual = result.gradientsEqual && gradients.equal && now.equal;
        result.lossesEqual = result.lossesEqual && sameBits(losses[0], references[0]);
        lossesNear = lossesNear && std::abs(losses[0] - references[0]) <= allowed.gradients * std::abs(references[0]);
        result.repeatEqual =
            result.repeatEqual && sameBits(losses[0], losses[1]) && sameWeights(*trainings[0], *trainings[1]);
        result.loss = losses[0];
        result.referenceLoss = references[0];
    }
    result.deviation = deviationOf(*trainings[0], *models[1]);
    const bool predicted = schedule.weights == WeightRule::Predicted;
    const double apart = deviationOf(*trainings[0], *models[0]);
    const bool holds = predicted ? apart <= allowed.weights && result.gradientError <= allowed.gradients && lossesNear
                                 : result.gradientsEqual && result.lossesEqual;
    result.passed = holds && result.repeatEqual && result.orderEqual;
    result.note =
        !result.orderEqual    ? std::string("the run's order is not the schedule's")
        : !result.repeatEqual ? std::string("a second run gives different bits")
        : !holds              ? fmt::format("weights are {:.1e} from the one-rank model of stale weights", apart)
                 : fmt::format("{}; weights {} the one-rank model of the rule, {:.1e} from synchronous training",
                               lagText(schedule),
                               weightsEqual ? std::string("equal bit for bit to") : fmt::format("{:.1e} from", apart),
                               result.deviation);
    return result;
}

} // namespace stagewright
