#include "traces/fit/measured_layers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
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
    out.problem.link = costs.links.all;
    if (out.problem.link == Link{}) out.unknown.push_back("the run's messages took no time that was measured");
    const auto byStage = wholesOf(configured(run, "stage_layers")).value_or(std::vector<int>());
    std::size_t all = 0;
    for (const int count : byStage) all += static_cast<std::size_t>(std::max(0, count));
    if (static_cast<int>(byStage.size()) == costs.stages() && all == blocks)
        compare(costs, byStage, out);
    else
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
    const PartitionProblem& problem = measured.problem;
    constexpr double nano = 1e-9;
    double least = INFINITY;
    for (const ModelLayer& layer : problem.layers)
        if (layer.kind == ModelLayer::Kind::Block) least = std::min(least, nano * static_cast<double>(layer.forward));
    const bool floorless = least < constants.layerFloor; // the floor is another machine's
    if (floorless) constants.layerFloor = 0;
    constants.measured = {};
    const auto secondsOf = [](const ModelLayer& layer, double over) {
        const double unit = nano / over;
        return PassRatios{static_cast<double>(layer.forward) * unit, static_cast<double>(layer.input) * unit,
                          static_cast<double>(layer.weight) * unit};
    };
    const double block = layerFigures(model, cluster, way, constants).forward;
    const double head = headSeconds(model, cluster, way, constants);
    MeasuredRatios& out = constants.measured;
    PassRatios sum{0, 0, 0};
    for (const ModelLayer& layer : problem.layers) {
        if (layer.kind == ModelLayer::Kind::Embedding) out.embedding = secondsOf(layer, way.samples);
        if (layer.kind == ModelLayer::Kind::Loss) out.head = secondsOf(layer, head);
        if (layer.kind != ModelLayer::Kind::Block || static_cast<int>(out.layers.size()) == model.layers) continue;
        const PassRatios& one = out.layers.emplace_back(secondsOf(layer, block));
        sum = {sum.forward + one.forward, sum.input + one.input, sum.weight + one.weight};
    }
    if (out.layers.empty()) return no("it has no layers", "record one");
    const auto count = static_cast<double>(out.layers.size());
    out.mean = {sum.forward / count, sum.input / count, sum.weight / count};
    out.perOp = secondsOf(problem.perOp, 1);
    const auto times = [](double ratio) { return fmt::format("{:.3g}×", ratio); };
    std::string words = fmt::format(
        "measured in run {} ({} a microbatch, one device): {}, embedding and loss; F, I, W of a layer take {}, {}, {} "
        "what the formulas say, and so for other microbatches and t",
        run.info.name, counted(way.samples, "sample"), counted(static_cast<long long>(out.layers.size()), "layer"),
        times(out.mean.forward), times(out.mean.input), times(out.mean.weight));
    if (model.layers > static_cast<int>(out.layers.size()))
        words += fmt::format("; layers {} to {} count as the mean", out.layers.size(), model.layers - 1);
    words += "; analytic: all-reduces, messages, gradients, optimizer, memory";
    if (floorless) words += "; the constants' floor of a layer is left out, as measured layers are below it";
    for (const std::string& one : measured.unknown) words += "; unknown: " + one;
    return MeasuredConstants{std::move(constants), std::move(words)};
}

} // namespace stagewright
