// What a training says of itself: weights, gradients, memory, configuration and environment.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/device/machine.h"
#include "engine/training/rank_training.h"
#include "engine/training/resume.h"
#include "engine/transport/bytes.h"
#include "schedules/messages/channel_facts.h"

namespace stagewright {

std::vector<ParameterView> RankTraining::parameters(int stage, int copy)
{
    const int rank = m_state->schedule->placement.copiesOf(stage)[static_cast<std::size_t>(copy)].rank;
    if (const auto& share = m_state->stageOn(stage, rank).share; share && !hasAllValues(*share))
        return sharedParameters(stage, copy);
    if (m_state->communicator->isHere(rank)) return m_state->stageOn(stage, rank).model->parameters();
    Result<StageWeights> weights = m_state->communicator->weightsOf(stage, rank);
    if (!weights) m_state->stop(weights.error());
    StageWeights& kept = m_weights[{stage, copy}];
    kept = weights ? std::move(*weights) : StageWeights();
    return kept.views();
}

std::vector<std::vector<float>> RankTraining::lastGradients() const
{
    std::vector<std::vector<float>> gradients;
    gradients.reserve(static_cast<std::size_t>(m_state->schedule->stages));
    for (int stage = 0; stage < m_state->schedule->stages; ++stage) gradients.push_back(m_state->gradientsOf(stage));
    return gradients;
}

Result<SavedTraining> RankTraining::saved()
{
    SavedTraining saved;
    const Schedule& schedule = *m_state->schedule;
    for (int stage = 0; stage < schedule.stages; ++stage) {
        const StageRun& first = m_state->firstCopy(stage);
        const bool divided = first.share && first.share->level != ShardLevel::None;
        for (const StageRun* run : m_state->copiesOf(stage)) {
            if (!divided && run != &first) continue; // all have the same
            if (!m_state->communicator->isHere(run->rank))
                STAGEWRIGHT_CHECK(m_state->communicator->addSavedOf(stage, run->rank, saved));
            else
                saveStage(*run, [&saved](const StatePart& part, std::span<const float> numbers) {
                    saved.add(part, numbers);
                });
        }
    }
    const int steps = m_first + m_steps;
    int updates = steps;
    for (const StageRun& run : m_state->stages) // between steps all have as many
        if (run.model && schedule.weights != WeightRule::Synchronous) updates = run.versions.updates();
    if (m_dataHash.empty()) m_dataHash = dataHash(*m_state->options.workload);
    saved.facts = {
        {"step", fmt::format("{}", steps)}, {"updates", fmt::format("{}", updates)}, {"data_hash", m_dataHash}};
    const auto add = [&saved](const std::pair<std::string, std::string>& fact) {
        if (saved.fact(fact.first) == nullptr) saved.facts.push_back(fact);
    };
    for (const auto& fact : lastingFacts(schedule, m_state->options)) add(fact);
    for (const auto& fact : configuration()) add(fact);
    for (const auto& fact : environment())
        if (fact.first == "products" || fact.first == "kernels") add(fact);
    return saved;
}

std::vector<Bytes> RankTraining::peak(MemoryCategory category) const
{
    std::vector<Bytes> peaks;
    peaks.reserve(static_cast<std::size_t>(m_state->schedule->ranks));
    for (int rank = 0; rank < m_state->schedule->ranks; ++rank)
        peaks.push_back(m_state->peaksOf(rank).of[static_cast<std::size_t>(category)]);
    return peaks;
}

std::vector<std::pair<std::string, std::string>> RankTraining::environment() const
{
    auto facts = m_state->backend->environment();
    for (const auto& more : {machineFacts(), m_state->communicator->facts()})
        facts.insert(facts.end(), more.begin(), more.end());
    return facts;
}

bool RankTraining::hasAllValues(const StageShare& share) const
{
    const bool bf16 = m_state->backend->capabilities().layout.elementBytes < static_cast<int>(sizeof(float));
    return share.level == ShardLevel::None || (!bf16 && share.level != ShardLevel::Weights);
}

std::vector<ParameterView> RankTraining::sharedParameters(int stage, int copy)
{
    StageWeights& kept = m_weights[{stage, copy}];
    kept = {};
    std::vector<float> flat;
    for (const StageRun* run : m_state->copiesOf(stage)) {
        const bool here = m_state->communicator->isHere(run->rank);
        std::vector<float> values;
        Result<StageWeights> owned = here ? weightsFrom(bytesOf(ownedWeights(*run->model, values)))
                                          : m_state->communicator->weightsOf(stage, run->rank);
        if (!owned) {
            m_state->stop(owned.error());
            return {};
        }
        const StageShare& share = *run->share;
        flat.resize(static_cast<std::size_t>(share.flat.padded));
        values = std::move(owned->tensors.back().value); // behind the names and shapes of all
        std::size_t at = 0;
        for (const ShardPiece& piece : share.flat.pieces) {
            if (piece.owner != share.member) continue;
            std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(at), piece.size(), flat.begin() + piece.begin);
            at += static_cast<std::size_t>(piece.size());
        }
        if (kept.tensors.empty()) kept.tensors.assign(owned->tensors.begin(), owned->tensors.end() - 1);
    }
    std::size_t at = 0;
    for (StageWeights::Tensor& tensor : kept.tensors) {
        std::size_t count = 1;
        for (const int extent : tensor.shape) count *= static_cast<std::size_t>(extent);
        tensor.value.assign(flat.begin() + static_cast<std::ptrdiff_t>(at),
                            flat.begin() + static_cast<std::ptrdiff_t>(at + count));
        at += count;
    }
    return kept.views();
}

std::vector<std::pair<std::string, std::string>> RankTraining::configuration() const
{
    const TrainingOptions& options = m_state->options;
    const Schedule& plan = *m_state->schedule;
    const bool synchronous = plan.weights == WeightRule::Synchronous;
    const SavedFacts lasting = lastingFacts(plan, options);
    std::vector<std::pair<std::string, std::string>> pairs;
    const auto add = [&pairs](std::string key, std::string value) {
        pairs.emplace_back(std::move(key), std::move(value));
    };
    const auto put = [&](std::string_view key) {
        for (const auto& fact : lasting)
            if (fact.first == key) pairs.push_back(fact);
    };
    add("schedule", plan.name);
    add("ranks", fmt::format("{}", plan.ranks));
    if (plan.replicas > 1) add("replicas", fmt::format("{}", plan.replicas));
    add("stages", fmt::format("{}", plan.stages));
    add("microbatches", fmt::format("{}", plan.microbatches));
    put("model");
    std::string layers;
    for (int stage = 0; stage < plan.stages; ++stage) {
        layers += fmt::format("{}{}", layers.empty() ? "" : ",", m_state->firstCopy(stage).slice.layerCount);
    }
    add("stage_layers", layers);
    add("microbatch_size", fmt::format("{}", options.microbatchSize));
    if (!options.replicaSamples.empty())
        add("replica_samples", fmt::format("{}", fmt::join(options.replicaSamples, ",")));
    for (const char* key : {"data", "sampling", "seed", "optimizer", "warmup_of_learning_rate", "weights", "clip_norm"})
        put(key);
    if (m_state->plan.shared) {
        add("shard", toText(options.sharding));
        if (options.sharding.bucket > 0) add("bucket_bytes", fmt::format("{}", options.sharding.bucket));
    }
    put("cut");
    if (synchronous && m_state->plan.steps && !m_state->plan.shared)
        add("optimizer_steps", "by rank, validated afterwards");
    if (const auto& slices = m_state->shapes.ofRank(0).sliceTokens; !slices.empty())
        add("slice_tokens", fmt::format("{}", fmt::join(slices, ",")));
    if (options.recomputedLayers && m_state->plan.recomputes)
        add("recomputed_layers",
            fmt::format("{}-{}", options.recomputedLayers->first, options.recomputedLayers->second));
    if (options.order.by != ReadyOrder::By::List) add("order", toText(options.order));
    add("backend", options.backend);
    if (m_state->ranks.front().memory) {
        add("precision", std::string(toText(m_state->backend->traits().resolved(options.device.precision))));
        add("sharing",
            m_state->clock == ClockMode::Virtual ? "serialised" : std::string(toText(options.device.sharing)));
        if (options.device.sharing == DeviceSharing::Queues)
            add("devices", fmt::format("{}", m_state->backend->sideBySide(m_state->schedule->ranks)));
        const bool byMpi = options.job && options.device.transport == DeviceTransport::Copies;
        const char* way = byMpi && options.job->processes().takesDeviceMemory() ? "mpi" : "host";
        add("gpu_transport", byMpi ? std::string(way) : std::string(toText(options.device.transport)));
    }
    add("transport", std::string(m_state->transport->name()));
    for (const auto& [key, value] : channelFacts(options.channels, m_state->loweredBy, options.links.haveBandwidth()))
        add(key, value);
    if (m_state->plan.copies) {
        const Copies& copies = options.links.copies;
        const std::string speeds =
            copies.known() ? fmt::format("{} bytes/s out, {} in, ", copies.outBytesPerSecond, copies.inBytesPerSecond)
                           : std::string();
        add("copies",
            fmt::format("{}{}{} duplex", speeds,
                        copies.known() || copies.latency > 0 ? fmt::format("latency {} ns (emulated), ", copies.latency)
                                                             : std::string("of this computer's memory, "),
                        copies.fullDuplex ? "full" : "half"));
    }
    add("clock", std::string(toText(m_state->clock)));
    if (m_state->clock == ClockMode::Virtual) add("permits", fmt::format("{}", m_state->control.permits()));
    const auto linkText = [](const Link& link) {
        return fmt::format("{} ns, {}", link.latency,
                           link.bytesPerSecond > 0 ? fmt::format("{} bytes/s", link.bytesPerSecond)
                                                   : "no bandwidth limit");
    };
    add("link", options.links.all == Link{} ? "none" : linkText(options.links.all));
    for (const auto& [ends, link] : options.links.overrides) {
        add(fmt::format("link_{}_{}", ends.first, ends.second), linkText(link));
    }
    return pairs;
}

std::vector<LayerCosts> RankTraining::layerCosts() const
{
    const TrainingOptions& options = m_state->options;
    const StageLayout layout = traitsOf(options.backend).layout(options.device.precision);
    const auto memoryOf = [&](LayerCosts::Part part) { // of a single part, next to a stage of others
        StageSlice slice{0, 0, part == LayerCosts::Part::Block ? 1 : 0, part == LayerCosts::Part::Embedding,
                         part == LayerCosts::Part::Head};
        return options.workload->memoryOf(slice, options.microbatchSize, options.optimizer, layout);
    };
    std::vector<LayerCosts> out;
    for (int stage = 0; stage < m_state->schedule->stages; ++stage) {
        const StageRun& run = m_state->firstCopy(stage);
        for (LayerCosts part : run.model ? run.model->partTimes() : run.partTimes) {
            if (part.forward() <= 0) return {};
            part.memory = memoryOf(part.part);
            out.push_back(part);
        }
    }
    return out;
}

} // namespace stagewright
