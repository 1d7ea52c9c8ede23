#include "schedules/model/analytic_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "schedules/base/text.h"

namespace stagewright {

namespace {

// GPT sizes of the zero bubble paper (table 3), of GPT-3 (Brown et al. 2020, arXiv 2005.14165, table 2.1), and Llama 2
// 7B to 70B counted as layers of 12 h² parameters.
constexpr std::array models{
    ModelPreset{"gpt-1.5b", 22, 24, 2304, 1024, 50304, 6},   ModelPreset{"gpt-6.2b", 30, 32, 4096, 1024, 50304, 3},
    ModelPreset{"gpt-14.6b", 46, 40, 5120, 1024, 50304, 1},  ModelPreset{"gpt-28.3b", 62, 48, 6144, 1024, 50304, 1},
    ModelPreset{"gpt3-1.3b", 24, 16, 2048, 2048, 50304, 1},  ModelPreset{"gpt3-2.7b", 32, 32, 2560, 2048, 50304, 1},
    ModelPreset{"gpt3-6.7b", 32, 32, 4096, 2048, 50304, 1},  ModelPreset{"gpt3-13b", 40, 40, 5120, 2048, 50304, 1},
    ModelPreset{"gpt3-175b", 96, 96, 12288, 2048, 50304, 1}, ModelPreset{"llama2-7b", 32, 32, 4096, 4096, 32000, 1},
    ModelPreset{"llama2-13b", 40, 40, 5120, 4096, 32000, 1}, ModelPreset{"llama2-70b", 80, 64, 8192, 4096, 32000, 1},
};

// Peaks of dense 16-bit matrix products and memory as the makers' data sheets give them; links: NVLink one way, or a
// network card of 200 Gbit/s (V100, A100: 25 GB/s) where a pipeline crosses machines is set with --link.
constexpr std::array devices{
    DevicePreset{"v100", "NVIDIA V100 32 GB SXM2", 125e12, 0.9e12, 32e9, 150e9, 10'000},
    DevicePreset{"a100", "NVIDIA A100 80 GB SXM", 312e12, 2.039e12, 80e9, 300e9, 10'000, 15e9},
    DevicePreset{"h100", "NVIDIA H100 80 GB SXM", 989e12, 3.35e12, 80e9, 450e9, 10'000, 21e9},
    DevicePreset{"h200", "NVIDIA H200 141 GB SXM", 989e12, 4.8e12, 141e9, 450e9, 10'000},
    DevicePreset{"l40s", "NVIDIA L40S 48 GB PCIe", 362e12, 0.864e12, 48e9, 32e9, 10'000},
    DevicePreset{"l4", "NVIDIA L4 24 GB PCIe", 121e12, 0.3e12, 24e9, 32e9, 10'000},
};

template <typename Preset, std::size_t N>
Result<Preset> findPreset(const std::array<Preset, N>& presets, std::string_view name, const char* what)
{
    std::string names;
    for (const Preset& preset : presets) {
        if (preset.name == name) return preset;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", preset.name);
    }
    return fail(ErrorCode::Usage, fmt::format("unknown {} '{}'", what, name), "known are " + names);
}

Result<void> readOption(std::string_view text, AnalyticCosts& out)
{
    const KeyValue given = keyValueOf(text);
    const std::string_view key = given.key, value = given.value.value_or("");
    if (key == "b" && readNumber(value, out.microbatchSize) && out.microbatchSize >= 1 && out.microbatchSize <= 65536)
        return {};
    if (key == "seq" && readNumber(value, out.model.sequence) && out.model.sequence >= 1 &&
        out.model.sequence <= (1 << 24))
        return {};
    if (key == "efficiency" && readNumber(value, out.efficiency) && out.efficiency > 0 && out.efficiency <= 1)
        return {};
    if (key == "attention" && (value == "full" || value == "flash")) {
        out.keepsScores = value == "full";
        return {};
    }
    return fail(ErrorCode::Usage, fmt::format("analytic costs: '{}' is not an option", text),
                "options are b=N, seq=N, efficiency=0 to 1, attention=flash|full");
}

// Embedding and head count as one layer each; what is left over goes to the middle.
std::vector<int> layersByStage(int layers, int stages)
{
    std::vector<int> out(static_cast<std::size_t>(stages), (layers + 2) / stages);
    int left = (layers + 2) % stages;
    for (int k = 0; left > 0; ++k, --left) {
        const int middle = stages / 2 + (k % 2 == 0 ? k / 2 : -(k / 2) - 1);
        ++out[static_cast<std::size_t>(std::clamp(middle, 0, stages - 1))];
    }
    --out.front();
    --out.back();
    return out;
}

} // namespace

double ModelPreset::parameters() const
{
    const double h = hidden;
    return layers * (layerParameters() + 13 * h) + static_cast<double>(vocabulary) * h;
}

double ModelPreset::layerParameters() const
{
    const double h = hidden;
    return 2 * h * h * (1 + keyShare()) + 2 * h * inner() * experts;
}

double ModelPreset::embeddingParameters(bool first, bool last) const
{
    const int ends = (first ? 1 : 0) + (last ? 1 : 0);
    const int matrices = embeddings == Embeddings::Apart  ? 0
                         : embeddings == Embeddings::Tied ? std::min(1, ends)
                                                          : ends;
    return static_cast<double>(matrices) * vocabulary * hidden;
}

std::span<const ModelPreset> modelPresets() { return models; }

std::span<const DevicePreset> devicePresets() { return devices; }

Result<ModelPreset> modelPresetOf(std::string_view name) { return findPreset(models, name, "model"); }

Result<DevicePreset> devicePresetOf(std::string_view name) { return findPreset(devices, name, "device"); }

double stageFlops(OpKind kind, const StageShape& stage)
{
    const double h = stage.hidden;
    const double sbh = stage.sequence * stage.samples * h;
    const double head = stage.head ? 2 * sbh * stage.vocabulary : 0; // one product with the vocabulary
    const double attention = stage.layers * sbh * 4 * stage.sequence;
    const double products = stage.layers * sbh * 24 * h + head;
    switch (kind) {
    case OpKind::Forward:
    case OpKind::Recompute: return products + attention;
    case OpKind::InputGrad: return products + 2 * attention;
    case OpKind::WeightGrad: return products;
    case OpKind::Backward: return 2 * products + 2 * attention;
    default: return 0;
    }
}

Result<AnalyticCosts> parseAnalyticCosts(std::string_view text)
{
    AnalyticCosts out;
    const auto [names, settings] = keyValueOf(text, ':');
    const auto [modelName, deviceName] = keyValueOf(names, '@');
    if (!deviceName)
        return fail(ErrorCode::Usage, fmt::format("analytic costs: '{}' names no device", names),
                    "write MODEL@DEVICE, such as gpt-6.2b@a100");
    auto model = modelPresetOf(modelName);
    if (!model) return tl::unexpected(std::move(model.error()).with("analytic costs"));
    auto device = devicePresetOf(*deviceName);
    if (!device) return tl::unexpected(std::move(device.error()).with("analytic costs"));
    out.model = *model;
    out.device = *device;
    for (const std::string_view one : itemsOf(settings.value_or(""), ":")) STAGEWRIGHT_CHECK(readOption(one, out));
    return out;
}

Result<CostModel> analyticCosts(const Schedule& schedule, const AnalyticCosts& costs)
{
    const ModelPreset& model = costs.model;
    const int stages = schedule.stages;
    std::vector<int> layers = costs.layers;
    if (layers.empty()) {
        if (stages < 1 || model.layers + 2 < 2 * stages)
            return fail(ErrorCode::Usage,
                        fmt::format("analytic costs: {} layers of {} on {} stages", model.layers, model.name, stages),
                        fmt::format("at most {} stages, or give --stage-layers", (model.layers + 2) / 2));
        layers = layersByStage(model.layers, stages);
    } else if (layers.size() != static_cast<std::size_t>(stages) ||
               std::accumulate(layers.begin(), layers.end(), 0LL) != model.layers) {
        return fail(ErrorCode::Usage,
                    fmt::format("analytic costs: {} layer counts with the sum {} for {} stages and {} layers",
                                layers.size(), std::accumulate(layers.begin(), layers.end(), 0LL), stages,
                                model.layers),
                    "give one number per stage; their sum must be the layers of the model");
    }
    const int batch = costs.microbatchSize > 0 ? costs.microbatchSize : model.microbatchSize;
    const double s = model.sequence;
    const double h = model.hidden;
    const double sbh = s * batch * h;
    const double layerParameters = 12 * h * h + 13 * h;
    const double scores = costs.keepsScores ? 5.0 * model.heads * s * s * batch : 0;
    const auto nanos = [&](double flops, double bytes) {
        const double seconds =
            std::max(flops / (costs.device.flops * costs.efficiency), bytes / costs.device.bytesPerSecond);
        return std::max<Nanos>(1, std::llround(seconds * 1e9));
    };
    CostModel out(stages, CostSource::Analytic);
    for (int stage = 0; stage < stages; ++stage) {
        const double n = layers[static_cast<std::size_t>(stage)];
        const double top = stage + 1 == stages ? 1 : 0;
        const double bottom = stage == 0 ? 1 : 0;
        const double activation = n * (34 * sbh + scores) + top * (2 * s * batch * model.vocabulary + 2 * sbh);
        const double parameters = n * layerParameters + (top + bottom) * model.vocabulary * h;
        const StageShape shape{
            n, stage + 1 == stages, h, s, static_cast<double>(model.vocabulary), static_cast<double>(batch)};
        const Nanos input = nanos(stageFlops(OpKind::InputGrad, shape), 2 * parameters + 2 * activation);
        const Nanos weight = nanos(stageFlops(OpKind::WeightGrad, shape), 4 * parameters + n * 32 * sbh);
        const Nanos forward = nanos(stageFlops(OpKind::Forward, shape), 2 * parameters + activation);
        out.setPasses(stage, forward, input, weight);
        out.setDuration(OpKind::Optimizer, stage, nanos(0, 28 * parameters)); // reads 16 bytes a parameter, writes 12
        StageMemory& memory = out.memory[static_cast<std::size_t>(stage)];
        memory.activation = std::llround(activation);
        memory.freedAtInput = std::llround(activation - n * 32 * sbh - top * 2 * sbh);
        memory.boundary = std::llround(2 * sbh);
        memory.weight = memory.gradient = std::llround(2 * parameters);
        memory.optimizer = std::llround(12 * parameters);
    }
    out.links.all = {costs.device.linkLatency, costs.device.linkBytesPerSecond};
    out.links.copies = {costs.device.hostBytesPerSecond, costs.device.hostBytesPerSecond};
    out.origin = fmt::format("analytic: {} on {}, {} × {} tokens per microbatch, {} % of the peak", model.name,
                             costs.device.title, batch, model.sequence, std::round(costs.efficiency * 1000) / 10);
    return out;
}

} // namespace stagewright
