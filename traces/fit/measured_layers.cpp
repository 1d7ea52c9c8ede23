#include "traces/fit/measured_layers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/layout/layer_table.h"
#include "schedules/model/layer_costs.h"
#include "traces/fit/fit_costs.h"
#include "traces/fit/measured_step.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

ModelLayer layerOf(const PassTimes& times)
{
    ModelLayer out;
    out.forward = times.forward;
    out.input = times.input;
    out.weight = times.weight;
    return out;
}

// Sums over the layers of each stage, whose blocks are given, beside the run's ops.
void compare(const CostModel& costs, const std::vector<int>& blocks, MeasuredLayers& out)
{
    const auto& layers = out.problem.layers;
    std::size_t next = 0;
    int compared = 0;
    double errors = 0, inLayers = 0, whole = 0;
    for (int stage = 0; stage < costs.stages(); ++stage) {
        ModelLayer sum;
        const auto add = [&](const ModelLayer& one) {
            sum.forward += one.forward;
            sum.input += one.input;
            sum.weight += one.weight;
        };
        int left = blocks[static_cast<std::size_t>(stage)];
        for (; next < layers.size(); ++next) {
            const bool block = layers[next].kind == ModelLayer::Kind::Block;
            if (block && left == 0) break;
            if (layers[next].kind == ModelLayer::Kind::Loss && stage + 1 < costs.stages()) break;
            add(layers[next]);
            left -= block ? 1 : 0;
        }
        const ModelLayer own = sum;
        add(out.problem.perOp);
        const PassTimes measured = passTimesOf(costs, stage);
        const auto one = [&](Nanos layered, Nanos inOps, Nanos op) {
            if (op <= 0) return;
            const double error = std::abs(static_cast<double>(inOps) / static_cast<double>(op) - 1);
            out.largestError = std::max(out.largestError, error);
            errors += error;
            inLayers += static_cast<double>(layered);
            whole += static_cast<double>(op);
            ++compared;
        };
        one(own.forward, sum.forward, measured.forward);
        if (measured.halved) {
            one(own.input + own.weight, sum.input + sum.weight, measured.input + measured.weight);
        } else {
            one(own.input, sum.input, measured.input);
            one(own.weight, sum.weight, measured.weight);
        }
    }
    if (compared > 0) out.meanError = errors / compared;
    if (whole > 0) out.byLayers = inLayers / whole;
}

// Blocks of a stage keep equal parts of what its forward was seen to keep, without what embedding and loss keep.
std::vector<double> keptBytes(const CostModel& costs, const std::vector<int>& blocks,
                              const std::vector<ModelLayer>& layers)
{
    std::vector<double> out(layers.size(), -1);
    std::size_t next = 0;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
        double left = static_cast<double>(costs.memory[stage].activation);
        std::vector<std::size_t> own;
        for (; next < layers.size(); ++next) {
            const bool block = layers[next].kind == ModelLayer::Kind::Block;
            if (block && static_cast<int>(own.size()) == blocks[stage]) break;
            if (layers[next].kind == ModelLayer::Kind::Loss && stage + 1 < blocks.size()) break;
            if (block)
                own.push_back(next);
            else
                left -= static_cast<double>(layers[next].activation);
        }
        for (const std::size_t layer : own)
            if (left > 0) out[layer] = left / static_cast<double>(own.size());
    }
    return out;
}

} // namespace

Result<MeasuredLayers> measuredLayersOf(const Run& run)
{
    STAGEWRIGHT_TRY(const CostModel costs, costsOf(run));
    const auto no = [&](std::string why) {
        return fail(ErrorCode::Usage, fmt::format("run {}: {}", run.info.name, why),
                    "record it with the own engine on one computer, which times each layer");
    };
    if (costs.layers.empty()) return no("what its layers take is unknown");
    MeasuredLayers out;
    std::size_t blocks = 0, whole = 0;
    for (const LayerCosts& part : costs.layers) {
        const PassTimes times = passTimesOf(part);
        ModelLayer layer = layerOf(times);
        if (part.part == LayerCosts::Part::PerOp) {
            out.problem.perOp = layer;
            continue;
        }
        using Kind = ModelLayer::Kind;
        layer.kind = part.part == LayerCosts::Part::Embedding ? Kind::Embedding
                     : part.part == LayerCosts::Part::Head    ? Kind::Loss
                                                              : Kind::Block;
        blocks += layer.kind == Kind::Block ? 1 : 0;
        whole += times.halved ? 1 : 0;
        const std::size_t number = out.problem.layers.size();
        if (layer.forward <= 0) return no(fmt::format("the forward of layer {} is unknown", number));
        if (layer.input + layer.weight <= 0) return no(fmt::format("the backward of layer {} is unknown", number));
        layer.weights = part.memory.weight;
        layer.activation = part.memory.activation;
        layer.boundary = part.memory.boundary;
        out.problem.layers.push_back(layer);
    }
    if (whole > 0)
        out.unknown.push_back(
            fmt::format("of {} layers only the full backward was measured: I and W count half of it each", whole));
    double weights = 0, state = 0;
    for (const StageMemory& stage : costs.memory) {
        weights += static_cast<double>(stage.weight);
        state += static_cast<double>(stage.weight + stage.gradient + stage.optimizer);
    }
    if (weights > 0) out.problem.state = state / weights;
    out.problem.link = costs.links.all;
    if (out.problem.link == Link{}) out.unknown.push_back("the run's messages took no time that was measured");
    const auto byStage = wholesOf(configured(run, "stage_layers")).value_or(std::vector<int>());
    std::size_t all = 0;
    for (const int count : byStage) all += static_cast<std::size_t>(std::max(0, count));
    if (static_cast<int>(byStage.size()) == costs.stages() && all == blocks) {
        compare(costs, byStage, out);
        out.kept = keptBytes(costs, byStage, out.problem.layers);
    } else
        out.unknown.push_back("the layers of its stages: the sums are not compared with the stages' ops");
    out.problem.origin = fmt::format("{} measured layers of run {}", out.problem.layers.size(), run.info.name);
    return out;
}

Result<MeasuredConstants> measuredConstants(const Run& run, const ModelPreset& model, const Cluster& cluster,
                                            StepConstants constants)
{
    const auto no = [&](std::string why, std::string remedy) {
        return fail(ErrorCode::Usage, fmt::format("run {}: {}", run.info.name, why), std::move(remedy));
    };
    STAGEWRIGHT_TRY(const auto own, trainedModelOf(run));
    const auto shape = [](const ModelPreset& one) {
        return fmt::format("hidden={},heads={},seq={},vocab={}", one.hidden, one.heads, one.sequence, one.vocabulary);
    };
    if (shape(own) != shape(model))
        return no(fmt::format("its layers have {}, the model {}", shape(own), shape(model)),
                  "choose for the run's model, with any number of layers");
    Parallelism way; // as it was measured
    if (!readNumber(configured(run, "microbatch_size"), way.samples) || way.samples < 1)
        return no("its microbatches have no one size", "record one whose replicas are alike");
    STAGEWRIGHT_TRY(const auto measured, measuredLayersOf(run));
    LayerTable table;
    constexpr double nano = 1e-9;
    const auto secondsOf = [](const ModelLayer& layer) {
        return PassRatios{static_cast<double>(layer.forward) * nano, static_cast<double>(layer.input) * nano,
                          static_cast<double>(layer.weight) * nano};
    };
    table.perOp = secondsOf(measured.problem.perOp);
    for (std::size_t i = 0; i < measured.problem.layers.size(); ++i) {
        const ModelLayer& layer = measured.problem.layers[i];
        LayerPoint point;
        point.samples = way.samples;
        point.seconds = secondsOf(layer);
        if (i < measured.kept.size()) point.kept[0] = measured.kept[i];
        table.layers.push_back({layer.kind, {point}, -1});
    }
    auto made = constantsOf(table, model, cluster, std::move(constants), true);
    if (!made) return no(made.error().message, "record one with layers");
    std::string words = fmt::format("measured in run {} ({} a microbatch, one device): {}", run.info.name,
                                    counted(way.samples, "sample"), made->words);
    for (const std::string& one : measured.unknown) words += "; unknown: " + one;
    const auto silent = [&](std::size_t i) {
        return measured.problem.layers[i].kind == ModelLayer::Kind::Block && measured.kept[i] < 0;
    };
    std::size_t without = 0, blocks = 0;
    for (std::size_t i = 0; i < measured.kept.size(); ++i) {
        without += silent(i) ? 1 : 0;
        blocks += measured.problem.layers[i].kind == ModelLayer::Kind::Block ? 1 : 0;
    }
    if (without > 0 && without < blocks)
        words += fmt::format("; unknown: bytes kept of {} of {} layers", without, blocks);
    return MeasuredConstants{std::move(made->constants), std::move(words)};
}

} // namespace stagewright
