#include "schedules/layout/parallelism.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/quantity.h"

namespace stagewright {

namespace {

constexpr double weightBytes = 2, gradientBytes = 4, optimizerBytes = 12;
constexpr double passBytes = 16; // of a parameter, for the optimizer

// s b h, and what a layer keeps of a microbatch, in bytes.
double widthOf(const ModelPreset& model, const Parallelism& way)
{
    return static_cast<double>(model.sequence) * way.samples * model.hidden;
}

// Products of a layer for one token and unit of width, two operations a weight: 24 h where nothing differs.
double productsOf(const ModelPreset& model) { return 4.0 * model.hidden * (1 + model.keyShare()) + 4 * model.inner(); }

double keptOf(const ModelPreset& model, const Parallelism& way, KeptActivations kept, bool sequence)
{
    const double t = way.tensor;
    const double scores = 5.0 * model.heads * model.sequence / model.hidden;
    // of the 24 that are shared 4 are keys and values, and 16 within the perceptron
    const double shared = 4 + 4 * model.keyShare() + 4 * model.inner() / model.hidden;
    switch (kept) {
    case KeptActivations::All:
        return widthOf(model, way) * (sequence ? (10 + shared + scores) / t : 10 + (shared + scores) / t);
    case KeptActivations::Selective: return widthOf(model, way) * (sequence ? (10 + shared) / t : 10 + shared / t);
    case KeptActivations::Inputs: return widthOf(model, way) * (sequence ? 2 / t : 2);
    }
    return 0;
}

double messageOf(const ModelPreset& model, const Parallelism& way) { return 2 * widthOf(model, way) / way.tensor; }

// Parameters of embedding and head on the fullest device, which has the first stage.
double endParametersOf(const ModelPreset& model, const Parallelism& way)
{
    return model.embeddingParameters(true, way.pipeline == 1) / way.tensor;
}

double parametersOf(const ModelPreset& model, const Parallelism& way, const MeasuredRatios& measured)
{
    return measured.keptMean.parameters * model.layerParameters() * model.layers /
               (static_cast<double>(way.tensor) * way.pipeline) +
           endParametersOf(model, way);
}

// By each layer's own ratios: of the rank that needs most.
MemoryParts memoryByLayer(const ModelPreset& model, const Parallelism& way, const MeasuredRatios& measured)
{
    const auto kept = static_cast<std::size_t>(way.kept);
    const double p = way.pipeline, layer = model.layerParameters() / way.tensor;
    const double bytes = keptOf(model, way, way.kept, way.sequence);
    const int perStage = std::max(1, model.layers / (way.pipeline * way.chunks));
    std::vector<double> keeps(static_cast<std::size_t>(way.pipeline), 0), has = keeps;
    double largest = 0;
    for (int i = 0; i < model.layers; ++i) {
        const KeptRatios& ratios = measured.keptOf(i);
        const auto rank = static_cast<std::size_t>(i / perStage % way.pipeline);
        keeps[rank] += ratios.bytes[kept] * bytes;
        has[rank] += ratios.parameters * layer;
        largest = std::max(largest, ratios.parameters * layer);
    }
    MemoryParts most;
    for (int rank = 0; rank < way.pipeline; ++rank) {
        const auto i = static_cast<std::size_t>(rank);
        const double held =
            way.chunks == 1 ? std::min(way.microbatches, way.pipeline - rank) : p + (p - 1) / way.chunks;
        const double ends = model.embeddingParameters(rank == 0, rank + 1 == way.pipeline) / way.tensor;
        const double whole = gatheredBytes(way, model.layers / p, largest, ends);
        const MemoryParts one{stateBytes(way) * (has[i] + ends) + whole, held * keeps[i], stateBytes(way) * ends,
                              whole};
        if (one.sum() > most.sum()) most = one;
    }
    return most;
}

double perCard(const Cluster& cluster, const StepConstants& c) { return cluster.card() * c.betweenShare; }

// Bytes per second of a device to another, of which so many in a row are its group.
double rateOf(const Cluster& cluster, const StepConstants& c, int group)
{
    if (group <= cluster.perHost) return cluster.within() * c.withinShare;
    return perCard(cluster, c) * std::min(1.0, static_cast<double>(cluster.cards) / cluster.perHost);
}

// What one layer takes for one microbatch, in seconds.
struct LayerTimes {
    double forward = 0, input = 0, weight = 0, reduce = 0;
    double recompute = 0, recomputeReduce = 0;
    double compute() const { return forward + input + weight; }
    double tensor() const { return 4 * reduce; }
};

LayerTimes layerOf(const ModelPreset& model, const Cluster& cluster, const Parallelism& way, const StepConstants& c,
                   int layer = -1)
{
    const double t = way.tensor, width = widthOf(model, way), s = model.sequence;
    const double rate = cluster.device.flops * c.efficiency;
    LayerTimes out;
    const double computed =
        std::max(width * (productsOf(model) + 4 * s) / (t * rate), c.layerFloor) +
        keptOf(model, way, KeptActivations::All, false) / (cluster.device.bytesPerSecond * c.memoryShare);
    const PassRatios& measured = c.measuredAt(way).of(layer);
    const auto& again = c.measuredAt(way).keptOf(layer).again;
    out.forward = computed * measured.forward;
    out.input = computed * measured.input;
    out.weight = computed * measured.weight;
    // all cards of a host serve an all-reduce that leaves it
    const double link = way.tensor <= cluster.perHost ? cluster.within() * c.withinShare
                                                      : perCard(cluster, c) * std::min(cluster.cards, way.tensor);
    if (way.tensor > 1) out.reduce = c.collective + 2 * (t - 1) / t * 2 * width / link;
    if (way.kept == KeptActivations::Inputs) {
        out.recompute = out.forward * again[static_cast<std::size_t>(way.kept)];
        out.recomputeReduce = 2 * out.reduce;
    } else if (way.kept == KeptActivations::Selective) {
        out.recompute = 4 * width * s / (t * rate) * measured.forward * again[static_cast<std::size_t>(way.kept)];
        out.recomputeReduce = 0.5 * out.reduce;
    }
    return out;
}

// What the embedding and the head of a rank take of a microbatch; the fuller one where they are on two ranks.
double endsOf(const ModelPreset& model, const Cluster& cluster, const Parallelism& way, const StepConstants& c)
{
    const MeasuredRatios& measured = c.measuredAt(way);
    const double head = headSeconds(model, cluster, way, c) * measured.head.sum();
    const double embedding = measured.embedding.sum() * way.samples / way.tensor;
    return way.pipeline > 1 ? std::max(head, embedding) : head + embedding;
}

} // namespace

const MeasuredRatios& StepConstants::measuredAt(const Parallelism& way) const
{
    const auto distance = [&](const MeasuredRatios& one) {
        return std::abs(std::log(static_cast<double>(one.samples) / way.samples)) +
               std::abs(std::log(static_cast<double>(one.tensor) / way.tensor));
    };
    const MeasuredRatios* best = &measured;
    for (const MeasuredRatios& one : others)
        if (distance(one) < distance(*best)) best = &one;
    return *best;
}

std::string_view toText(KeptActivations kept)
{
    switch (kept) {
    case KeptActivations::All: return "none";
    case KeptActivations::Selective: return "selective";
    case KeptActivations::Inputs: return "full";
    }
    return "";
}

std::optional<KeptActivations> keptNamed(std::string_view name)
{
    for (const KeptActivations kept : {KeptActivations::All, KeptActivations::Selective, KeptActivations::Inputs})
        if (toText(kept) == name) return kept;
    return std::nullopt;
}

std::string toText(const Parallelism& way)
{
    return fmt::format("t{} p{} v{} d{} b{} {}", way.tensor, way.pipeline, way.chunks, way.replicas, way.samples,
                       toText(way.kept));
}

std::string toText(const MemoryParts& memory)
{
    const auto size = [](double bytes) { return formatBytes(std::llround(bytes)); };
    std::string within;
    if (memory.embedding > 0) within = fmt::format(" {} embedding and head", size(memory.embedding));
    if (memory.gathered > 0)
        within += fmt::format("{} {} gathered weights", within.empty() ? "" : " and", size(memory.gathered));
    return fmt::format("{} of state{}{} and {} of activations", size(memory.state),
                       within.empty() ? "" : ", of it" + within, within.empty() ? "" : ",", size(memory.activations));
}

StepParts stepOf(const ModelPreset& model, const Cluster& cluster, const Parallelism& way,
                 const StepConstants& constants)
{
    const LayerTimes layer = layerOf(model, cluster, way, constants);
    const double layers = static_cast<double>(model.layers) / way.pipeline; // of a rank
    const MeasuredRatios& measured = constants.measuredAt(way);
    const double m = way.microbatches, parameters = parametersOf(model, way, measured);
    const double ops = way.chunks * measured.perOp.sum();
    const double gathers = 3 * gatherSeconds(parameters, cluster, way, constants); // of a microbatch
    const double stage =
        layers * (layer.compute() + layer.recompute + layer.tensor() + layer.recomputeReduce) + ops + gathers;
    StepParts out;
    out.compute = m * (layers * layer.compute() + ops + endsOf(model, cluster, way, constants));
    out.recompute = m * layers * layer.recompute;
    out.tensor = m * layers * (layer.tensor() + layer.recomputeReduce);
    out.bubble = (way.pipeline - 1) * stage / way.chunks;
    if (way.pipeline > 1)
        out.messages =
            (m * way.chunks + way.pipeline - 1) * 2 * messageOf(model, way) / rateOf(cluster, constants, way.devices());
    out.data =
        m * gathers + reduceSeconds(parameters, cluster, way, constants) + tiedSeconds(model, cluster, way, constants);
    out.optimizer = optimizerSeconds(parameters, cluster, constants);
    return out;
}

MemoryParts memoryOf(const ModelPreset& model, const Parallelism& way, const StepConstants& constants)
{
    const MeasuredRatios& measured = constants.measuredAt(way);
    if (!measured.kept.empty()) return memoryByLayer(model, way, measured);
    const double layers = model.layers, p = way.pipeline;
    const double held = way.chunks == 1 ? layers / p * std::min(way.microbatches, way.pipeline)
                                        : layers * (1 + (p - 1) / (p * way.chunks));
    const double ends = endParametersOf(model, way);
    const double whole = gatheredBytes(way, layers / p, model.layerParameters() / way.tensor, ends);
    return {stateBytes(way) * parametersOf(model, way, measured) + whole,
            held * keptOf(model, way, way.kept, way.sequence), stateBytes(way) * ends, whole};
}

LayerFigures layerFigures(const ModelPreset& model, const Cluster& cluster, const Parallelism& way,
                          const StepConstants& constants, int number)
{
    const LayerTimes layer = layerOf(model, cluster, way, constants, number);
    LayerFigures out;
    const KeptRatios& kept = constants.measuredAt(way).keptOf(number);
    out.parameters = kept.parameters * model.layerParameters() / way.tensor;
    out.alone = layer.forward;
    out.again = layer.recompute;
    const double gather = gatherSeconds(out.parameters, cluster, way, constants);
    out.forward = layer.forward + 2 * layer.reduce + gather;
    out.input = layer.input + 2 * layer.reduce + layer.recompute + layer.recomputeReduce + 2 * gather;
    out.weight = layer.weight;
    out.kept = keptOf(model, way, way.kept, way.sequence) * kept.bytes[static_cast<std::size_t>(way.kept)];
    return out;
}

double headSeconds(const ModelPreset& model, const Cluster& cluster, const Parallelism& way,
                   const StepConstants& constants)
{
    return 2 * widthOf(model, way) * model.vocabulary / (way.tensor * cluster.device.flops * constants.efficiency);
}

double messageBytes(const ModelPreset& model, const Parallelism& way) { return messageOf(model, way); }

double stateBytes(const Parallelism& way)
{
    const double d = way.replicas;
    return weightBytes / (way.zero >= 3 ? d : 1) + gradientBytes / (way.zero >= 2 ? d : 1) +
           optimizerBytes / (way.zero >= 1 ? d : 1);
}

double gatheredBytes(const Parallelism& way, double layers, double parameters, double others)
{
    if (way.zero < 3 || way.replicas < 2) return 0;
    return weightBytes * (std::min(2.0, layers) * parameters + others);
}

double gatherSeconds(double parameters, const Cluster& cluster, const Parallelism& way, const StepConstants& constants)
{
    if (way.zero < 3 || way.replicas < 2) return 0;
    const double d = way.replicas;
    return (d - 1) / d * weightBytes * parameters / rateOf(cluster, constants, way.tensor * way.replicas);
}

double tiedSeconds(const ModelPreset& model, const Cluster& cluster, const Parallelism& way,
                   const StepConstants& constants)
{
    if (model.embeddings != Embeddings::Tied || way.pipeline < 2) return 0;
    return weightBytes * model.embeddingParameters(true, false) / way.tensor /
           rateOf(cluster, constants, way.devices());
}

double reduceSeconds(double parameters, const Cluster& cluster, const Parallelism& way, const StepConstants& constants)
{
    const double d = way.replicas;
    return way.replicas < 2 || way.zero >= 3 // then each microbatch's are scattered
               ? 0
               : 2 * (d - 1) / d * weightBytes * parameters / rateOf(cluster, constants, way.tensor * way.replicas);
}

double optimizerSeconds(double parameters, const Cluster& cluster, const StepConstants& constants)
{
    return constants.optimizerPasses * passBytes * parameters / cluster.device.bytesPerSecond;
}

Link linkOf(const Cluster& cluster, const StepConstants& constants, int group)
{
    return {group <= cluster.perHost ? cluster.device.linkLatency : cluster.betweenDelay,
            rateOf(cluster, constants, group)};
}

} // namespace stagewright
