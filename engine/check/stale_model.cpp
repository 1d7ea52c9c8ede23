#include "engine/check/stale_model.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include <fmt/format.h>

#include "engine/training/gradient_rules.h"
#include "engine/training/step_rules.h"

namespace stagewright {

namespace {

using Tensors = std::vector<std::vector<float>>; // by parameter

// The direction of a stage's updates, from its gradients alone.
class Direction {
public:
    explicit Direction(const OptimizerConfig& config) : m_config(config) {}

    // After update `number` (from 1) of weights `before` by the gradients in `parameters`.
    void follow(const std::vector<ParameterView>& parameters, const Tensors& before, int number)
    {
        m_mean.resize(parameters.size());
        m_square.resize(parameters.size());
        m_direction.resize(parameters.size());
        for (std::size_t p = 0; p < parameters.size(); ++p) {
            const std::span<const float> gradient = parameters[p].gradient;
            m_mean[p].resize(gradient.size(), 0.0);
            m_square[p].resize(gradient.size(), 0.0);
            m_direction[p].resize(gradient.size(), 0.0);
            for (std::size_t i = 0; i < gradient.size(); ++i) {
                const double g = gradient[i];
                if (m_config.kind == OptimizerKind::Sgd) {
                    const double decay = parameters[p].shape.size() > 1 ? m_config.weightDecay : 0.0;
                    m_mean[p][i] = m_config.momentum * m_mean[p][i] + g + decay * static_cast<double>(before[p][i]);
                    m_direction[p][i] = m_mean[p][i];
                    continue;
                }
                m_mean[p][i] = m_config.beta1 * m_mean[p][i] + (1 - m_config.beta1) * g;
                m_square[p][i] = m_config.beta2 * m_square[p][i] + (1 - m_config.beta2) * g * g;
                const double mean = m_mean[p][i] / (1 - std::pow(m_config.beta1, number));
                const double square = m_square[p][i] / (1 - std::pow(m_config.beta2, number));
                m_direction[p][i] = mean / (std::sqrt(square) + m_config.epsilon);
            }
        }
        const double warm =
            m_config.warmupSteps > 0 ? std::min(1.0, static_cast<double>(number) / m_config.warmupSteps) : 1.0;
        m_rate = m_config.learningRate * warm;
    }
    Tensors ahead(const Tensors& weights, int updates) const
    {
        Tensors moved = weights;
        for (std::size_t p = 0; p < m_direction.size(); ++p) {
            for (std::size_t i = 0; i < moved[p].size(); ++i)
                moved[p][i] =
                    static_cast<float>(static_cast<double>(moved[p][i]) - m_rate * updates * m_direction[p][i]);
        }
        return moved;
    }

private:
    OptimizerConfig m_config;
    double m_rate = 0;
    std::vector<std::vector<double>> m_mean, m_square, m_direction;
};

Tensors valuesOf(StageModel& model)
{
    Tensors values;
    for (const ParameterView& parameter : model.parameters())
        values.emplace_back(parameter.value.begin(), parameter.value.end());
    return values;
}

} // namespace

struct StaleModel::Stage {
    std::unique_ptr<StageModel> model;
    std::vector<int> delays; // by microbatch
    std::size_t longest = 0; // history is kept so far back
    // The newest last: weights, and the weights a forward predicts from them.
    struct Version {
        Tensors weights;
        Direction direction;
    };
    std::deque<Version> history;
    int updates = 0;

    const Version& back(int updatesAgo) const
    {
        const std::size_t ago = std::min<std::size_t>(static_cast<std::size_t>(updatesAgo), history.size() - 1);
        return history[history.size() - 1 - ago];
    }
    void load(const Tensors& weights)
    {
        const std::vector<ParameterView> parameters = model->parameters();
        for (std::size_t p = 0; p < parameters.size(); ++p)
            std::copy(weights[p].begin(), weights[p].end(), parameters[p].value.begin());
        model->parametersWritten();
    }
};

StaleModel::StaleModel(const Schedule& schedule, const TrainingOptions& options, std::unique_ptr<Backend> backend)
    : m_schedule(schedule), m_options(options), m_shapes{options.microbatchSize,
                                                         options.workload->positions(),
                                                         messageWidth(*options.workload, *backend),
                                                         {}},
      m_backend(std::move(backend))
{
}

StaleModel::~StaleModel() = default;

Result<std::unique_ptr<StaleModel>> StaleModel::create(const Schedule& schedule, const TrainingOptions& options,
                                                       std::unique_ptr<Backend> backend, Staleness staleness)
{
    if (schedule.weights == WeightRule::Synchronous)
        return fail(ErrorCode::Usage,
                    fmt::format("schedule '{}' is synchronous: its weights are never stale", schedule.name));
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        std::vector<int> last(static_cast<std::size_t>(schedule.stages), -1);
        for (const Op& op : schedule.order[rank]) {
            if (!makesWeightGradient(op.kind)) continue;
            if (op.microbatch < last[op.stage]) {
                return fail(
                    ErrorCode::Usage,
                    fmt::format("rank {}: {} comes after microbatch {} of the stage", rank, toText(op), last[op.stage]),
                    "run the backwards of an asynchronous schedule by rising microbatch");
            }
            last[op.stage] = op.microbatch;
        }
    }
    std::unique_ptr<StaleModel> model(new StaleModel(schedule, options, std::move(backend)));
    Result<std::unique_ptr<Memory>> memory = model->m_backend->openMemory(0, 1, 1);
    if (!memory) return tl::unexpected(std::move(memory.error()).with("one-rank model of stale weights"));
    model->m_memory = std::move(*memory);
    model->m_allocator = std::make_unique<Allocator>(model->m_memory ? *model->m_memory : hostMemory());
    STAGEWRIGHT_CHECK(model->makeStages(staleness));
    return model;
}

Result<void> StaleModel::makeStages(Staleness staleness)
{
    STAGEWRIGHT_TRY(std::vector<StageSlice> slices,
                    slicesOf(*m_options.workload, m_schedule.stages, m_options.stageLayers));
    const std::vector<std::vector<int>> between = updatesBetween(m_schedule);
    for (const StageSlice& slice : slices) {
        Result<std::unique_ptr<StageModel>> made =
            makeStage(*m_options.workload, *m_backend,
                      {slice, m_options.microbatchSize, m_options.seed, m_options.optimizer}, *m_allocator);
        if (!made) return tl::unexpected(std::move(made.error()).with("one-rank model of stale weights"));
        auto stage = std::make_unique<Stage>();
        stage->model = std::move(*made);
        stage->model->setLossScale(lossScaleOf(m_schedule));
        stage->delays = between[static_cast<std::size_t>(slice.stage)];
        if (m_schedule.weights == WeightRule::TwoVersions) std::fill(stage->delays.begin(), stage->delays.end(), 1);
        if (staleness == Staleness::None) std::fill(stage->delays.begin(), stage->delays.end(), 0);
        for (const int delay : stage->delays)
            stage->longest = std::max(stage->longest, static_cast<std::size_t>(delay));
        stage->history.push_back({valuesOf(*stage->model), Direction(m_options.optimizer)});
        m_stages.push_back(std::move(stage));
    }
    m_gradients.resize(m_stages.size());
    return {};
}

// F and B of one microbatch through all stages; its loss.
double StaleModel::run(int microbatch)
{
    const auto j = static_cast<std::size_t>(microbatch);
    const bool predicts = m_schedule.weights == WeightRule::Predicted;
    std::vector<std::uint8_t> cut;
    Buffer stream;
    for (const auto& stage : m_stages) {
        const Stage::Version& version = stage->back(stage->delays[j]);
        stage->load(predicts ? version.direction.ahead(version.weights, stage->delays[j]) : version.weights);
        const StageSlice& slice = stage->model->slice();
        stream = stage->model->forward(
            microbatch, std::move(stream),
            slice.first ? m_data.tokens(microbatch, m_shapes, cut) : std::span<const std::uint8_t>(),
            slice.last ? m_data.targets(microbatch, m_shapes, cut) : std::span<const std::uint8_t>());
    }
    const double loss = m_stages.back()->model->loss(microbatch);
    stream.reset();
    for (std::size_t s = m_stages.size(); s-- > 0;) {
        Stage& stage = *m_stages[s];
        if (predicts) stage.load(stage.back(0).weights);
        stream = stage.model->inputGrad(microbatch, std::move(stream));
        stage.model->weightGrad(microbatch);
    }
    return loss;
}

void StaleModel::update(Stage& stage)
{
    const Stage::Version& newest = stage.back(0);
    stage.load(newest.weights);
    ++stage.updates;
    Tensors& gradients = m_gradients[static_cast<std::size_t>(stage.model->slice().stage)];
    gradients.clear();
    for (const ParameterView& parameter : stage.model->parameters())
        gradients.emplace_back(parameter.gradient.begin(), parameter.gradient.end());
    Direction direction = newest.direction;
    if (m_schedule.weights == WeightRule::Predicted)
        direction.follow(stage.model->parameters(), newest.weights, stage.updates);
    stage.model->optimizerStep(m_options.optimizer, stage.updates, 1.0f);
    stage.model->zeroGradients();
    stage.history.push_back({valuesOf(*stage.model), std::move(direction)});
    while (stage.history.size() > stage.longest + 1) stage.history.pop_front();
}

Result<double> StaleModel::step(const std::stop_token& stop)
{
    try {
        m_data.sample(*m_options.workload, m_options.seed, m_step++, m_schedule.microbatches,
                      BatchShapes(m_schedule, m_shapes, {}));
        const bool eachMicrobatch = m_schedule.weights != WeightRule::TwoVersions;
        double sum = 0;
        for (int j = 0; j < m_schedule.microbatches; ++j) {
            if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "one-rank model of stale weights stopped");
            sum += run(j);
            if (!eachMicrobatch && j + 1 < m_schedule.microbatches) continue;
            for (const auto& stage : m_stages) update(*stage);
        }
        return sum / static_cast<double>(m_schedule.microbatches);
    } catch (const std::exception& e) {
        return fail(ErrorCode::Failed, fmt::format("one-rank model of stale weights: {}", e.what()));
    }
}

std::vector<std::vector<std::vector<float>>> StaleModel::weights() const
{
    std::vector<Tensors> all;
    for (const auto& stage : m_stages) all.push_back(stage->back(0).weights);
    return all;
}

double deviationOf(Training& training, const StaleModel& reference)
{
    const std::vector<Tensors> weights = reference.weights();
    double apart = 0;
    double size = 0;
    for (std::size_t stage = 0; stage < weights.size(); ++stage) {
        const std::vector<ParameterView> parameters = training.parameters(static_cast<int>(stage));
        for (std::size_t p = 0; p < parameters.size(); ++p) {
            for (std::size_t i = 0; i < parameters[p].value.size(); ++i) {
                const double w = weights[stage][p][i];
                const double difference = static_cast<double>(parameters[p].value[i]) - w;
                apart += difference * difference;
                size += w * w;
            }
        }
    }
    return size > 0 ? std::sqrt(apart / size) : 0.0;
}

} // namespace stagewright
