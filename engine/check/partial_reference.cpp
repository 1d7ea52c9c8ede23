#include "engine/check/partial_reference.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>

#include <fmt/format.h>

#include "schedules/model/mesh.h"

namespace stagewright {

namespace {

// One undivided model a replica, each with its share of the batch: a schedule of its own, checked once for the replays
// of it.
Result<std::shared_ptr<const CheckedSchedule>> undividedReplicas(const Schedule& schedule)
{
    std::vector<Schedule> each;
    each.reserve(static_cast<std::size_t>(schedule.replicas));
    for (int replica = 0; replica < schedule.replicas; ++replica)
        each.push_back(undividedSchedule(replicaSchedule(schedule, replica).microbatches));
    STAGEWRIGHT_TRY(auto whole, overReplicas(each));
    return CheckedSchedule::of(std::move(whole));
}

TrainingOptions undividedOptions(const TrainingOptions& options)
{
    TrainingOptions out = options;
    out.cuts.clear();
    out.stageLayers.clear();
    out.sharding = {};
    out.recomputedLayers.reset();
    out.rankMemory.clear();
    return out;
}

using Named = std::map<std::string, std::span<const float>>;

Named valuesOf(Training& training)
{
    Named out;
    for (int stage = 0; stage < training.schedule().stages; ++stage)
        for (const ParameterView& parameter : training.parameters(stage)) out[parameter.name] = parameter.value;
    return out;
}

// The training's gradients of its last step; names and sizes are the reference's.
std::map<std::string, std::vector<float>> gradientsOf(Training& training)
{
    std::map<std::string, std::vector<float>> out;
    const std::vector<std::vector<float>> flat = training.lastGradients();
    for (int stage = 0; stage < training.schedule().stages; ++stage) {
        std::size_t at = 0;
        const std::vector<float>& all = flat[static_cast<std::size_t>(stage)];
        for (const ParameterView& parameter : training.parameters(stage)) {
            const std::size_t end = std::min(all.size(), at + parameter.value.size());
            out[parameter.name].assign(all.begin() + static_cast<std::ptrdiff_t>(std::min(at, end)),
                                       all.begin() + static_cast<std::ptrdiff_t>(end));
            at = end;
        }
    }
    return out;
}

struct Angles {
    double dot = 0, own = 0, other = 0, apart = 0; // sums of products and squares

    void add(std::span<const float> a, std::span<const float> b)
    {
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            const double x = a[i], y = b[i];
            dot += x * y;
            own += x * x;
            other += y * y;
            apart += (x - y) * (x - y);
        }
    }
    double distance() const { return apart == 0 ? 0 : std::sqrt(apart) / std::sqrt(other); }
    double cosine() const
    {
        return own > 0 && other > 0 ? dot / (std::sqrt(own) * std::sqrt(other)) : own == other ? 1 : 0;
    }
};

} // namespace

std::string layerNameOf(const std::string& parameter)
{
    const std::string first = parameter.substr(0, parameter.find('.'));
    return first.starts_with("layer") ? first.substr(5) : first;
}

Result<std::unique_ptr<PartialReference>>
PartialReference::create(const Schedule& schedule, const TrainingOptions& options, const BackendMaker& makeBackend)
{
    STAGEWRIGHT_TRY(const auto whole, undividedReplicas(schedule));
    auto out = std::make_unique<PartialReference>();
    for (std::unique_ptr<Replay>* replay : {&out->m_along, &out->m_probe}) {
        STAGEWRIGHT_TRY(auto backend, makeBackend());
        auto made = Replay::create(whole, undividedOptions(options), std::move(backend));
        if (!made) return tl::unexpected(std::move(made.error()).with("synchronous reference"));
        *replay = std::move(*made);
    }
    return out;
}

void PartialReference::before(Training& training) { m_probe->takeWeights(valuesOf(training)); }

Result<void> PartialReference::after(Training& training, const std::stop_token& stop)
{
    for (Replay* replay : {m_along.get(), m_probe.get()}) {
        STAGEWRIGHT_TRY(auto loss, replay->step(stop));
        if (replay == m_along.get()) m_loss = loss;
    }
    Angles weights;
    const Named trained = valuesOf(training);
    for (const ParameterView& parameter : m_along->parameters(0))
        weights.add(trained.at(parameter.name), parameter.value);
    m_deviation = weights.distance();
    const auto gradients = gradientsOf(training);
    const std::vector<std::vector<std::string>> names = m_probe->parameterNames();
    std::vector<std::pair<std::string, Angles>> layers;
    for (std::size_t i = 0; i < names[0].size(); ++i) {
        const std::string layer = layerNameOf(names[0][i]);
        if (layers.empty() || layers.back().first != layer) layers.emplace_back(layer, Angles{});
        layers.back().second.add(gradients.at(names[0][i]), m_probe->gradients()[0][i]);
    }
    m_layers.clear();
    for (const auto& [layer, angles] : layers) m_layers.push_back({layer, angles.cosine(), angles.distance()});
    return {};
}

Result<Difference> againstContributors(const Schedule& schedule, const Replay& replay, const TrainingOptions& options,
                                       const BackendMaker& makeBackend)
{
    try {
        std::map<std::string, const std::vector<float>*> byName;
        const auto names = replay.parameterNames();
        for (std::size_t stage = 0; stage < names.size(); ++stage)
            for (std::size_t i = 0; i < names[stage].size(); ++i)
                byName[names[stage][i]] = &replay.gradients()[stage][i];
        std::vector<int> cuts = options.cuts;
        std::sort(cuts.begin(), cuts.end());
        cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
        Difference out;
        for (std::size_t i = 0; i < cuts.size(); ++i) {
            const int until = i + 1 < cuts.size() ? cuts[i + 1] : options.workload->layers() + 1;
            STAGEWRIGHT_TRY(auto backend, makeBackend());
            STAGEWRIGHT_TRY(auto slices, slicesOf(*options.workload, 1));
            auto memory = backend->openMemory(0, 1, 1);
            if (!memory) return tl::unexpected(std::move(memory.error()).with("reference of the contributors"));
            Allocator allocator(*memory ? **memory : hostMemory());
            STAGEWRIGHT_TRY(auto model,
                            makeStage(*options.workload, *backend,
                                      {slices.front(), options.microbatchSize, options.seed, options.optimizer},
                                      allocator));
            const PartShapes shape{
                options.microbatchSize, options.workload->positions(), messageWidth(*options.workload, *backend), {}};
            const BatchShapes shapes(schedule, shape, {});
            StepData data;
            data.sample(*options.workload, options.seed, 0, schedule.microbatches, shapes);
            std::vector<int> contributed;
            for (int j = 0; j < schedule.microbatches; ++j)
                if (options.cuts[static_cast<std::size_t>(schedule.replicaOf(schedule.placement.rankOf(0, j)))] <=
                    cuts[i])
                    contributed.push_back(j);
            model->setLossScale(1.0F / static_cast<float>(contributed.size()));
            model->zeroGradients();
            std::vector<std::uint8_t> tokens, targets;
            for (const int j : contributed) {
                model->forward(j, {}, data.tokens(j, shape, tokens), data.targets(j, shape, targets));
                model->inputGrad(j, {});
                model->weightGrad(j);
            }
            for (const ParameterView& parameter : model->parameters()) {
                const int number = options.workload->layerOf(parameter.name);
                if (number >= cuts[i] && number < until) out.add(*byName.at(parameter.name), parameter.gradient);
            }
        }
        return out;
    } catch (const std::exception& e) {
        return fail(ErrorCode::Failed, fmt::format("undivided model over the contributors: {}", e.what()));
    }
}

} // namespace stagewright
