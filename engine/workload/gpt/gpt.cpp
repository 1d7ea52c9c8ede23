#include "engine/workload/gpt/gpt.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/workload/gpt/double_model.h"
#include "engine/workload/gpt/gpt_kernels.h"
#include "engine/workload/gpt/gpt_stage.h"
#include "engine/workload/gpt/stage_memory.h"
#include "schedules/model/analytic_costs.h"

namespace stagewright {

namespace {

Result<std::shared_ptr<const Workload>> makeGpt(const std::string& text)
{
    STAGEWRIGHT_TRY(const ModelConfig config, parseModelConfig(text));
    return std::make_shared<const Gpt>(config);
}

constexpr double mostProducts = 2e8; // of the form in double
constexpr int mostSamples = 4;

// Multiplications of a forward and a backward, about.
double productsOf(const ModelConfig& model, int samples)
{
    const double rows = static_cast<double>(samples) * model.sequence;
    const double hidden = model.hidden;
    return 3 * rows * (model.layers * (12 * hidden * hidden + 2 * hidden * model.sequence) + hidden * model.vocabulary);
}

ModelConfig cut(ModelConfig model, int samples)
{
    model.layers = std::min(model.layers, 3);
    while (productsOf(model, samples) > mostProducts && model.sequence > 16) model.sequence /= 2;
    while (productsOf(model, samples) > mostProducts && model.hidden / model.heads > 8 &&
           model.hidden % (2 * model.heads) == 0)
        model.hidden /= 2;
    while (productsOf(model, samples) > mostProducts && model.heads > 1) {
        model.hidden = model.hidden / model.heads * (model.heads / 2);
        model.heads /= 2;
    }
    return model;
}

} // namespace

WorkloadInfo workloads::gpt() { return {"gpt", "a GPT-style decoder on bytes", makeGpt}; }

Gpt::Gpt(const ModelConfig& config, std::shared_ptr<const Corpus> corpus)
    : m_config(config), m_corpus(corpus ? std::move(corpus) : Corpus::builtIn())
{
}

std::vector<std::pair<std::string, int>> Gpt::shape() const
{
    return {{"layers", m_config.layers},
            {"hidden", m_config.hidden},
            {"heads", m_config.heads},
            {"sequence", m_config.sequence},
            {"vocabulary", m_config.vocabulary}};
}

std::shared_ptr<const Workload> Gpt::withLayers(int layers) const
{
    ModelConfig config = m_config;
    config.layers = layers;
    return std::make_shared<const Gpt>(config, m_corpus);
}

void Gpt::sample(std::uint64_t seed, int step, std::int64_t first, int samples, std::span<std::uint8_t> tokens,
                 std::span<std::uint8_t> targets) const
{
    m_corpus->sample(seed, step, first, samples, m_config.sequence, tokens, targets);
}

Result<std::shared_ptr<const Workload>> Gpt::withData(const std::string& path) const
{
    STAGEWRIGHT_TRY(auto corpus, Corpus::fromFile(path));
    return std::make_shared<const Gpt>(m_config, std::move(corpus));
}

// 2 per weight, and the causal half of the two attention products.
double Gpt::forwardCost(LayerCosts::Part part) const
{
    const double hidden = m_config.hidden;
    switch (part) {
    case LayerCosts::Part::Embedding: return hidden; // one addition an element
    case LayerCosts::Part::Head: return 2.0 * hidden * m_config.vocabulary;
    default: return 24.0 * hidden * hidden + 2.0 * hidden * (m_config.sequence + 1);
    }
}

double Gpt::flops(OpKind kind, const StageSlice& slice, int microbatchSize) const
{
    return stageFlops(kind, {static_cast<double>(slice.layerCount), slice.last, static_cast<double>(m_config.hidden),
                             static_cast<double>(m_config.sequence), static_cast<double>(m_config.vocabulary),
                             static_cast<double>(microbatchSize)});
}

std::vector<std::int64_t> Gpt::layerElements(const StageSlice& slice) const
{
    return stagewright::layerElements(m_config, slice);
}

StageMemory Gpt::memoryOf(const StageSlice& slice, int microbatchSize, const OptimizerConfig& optimizer,
                          const StageLayout& layout) const
{
    return stageMemoryOf(m_config, slice, microbatchSize, optimizer, layout);
}

// Rows of two-byte elements that end within a float can't be cut, stacked or sent.
Result<void> Gpt::check(const Capabilities& device, bool shared) const
{
    STAGEWRIGHT_CHECK(checkModelConfig(m_config));
    if (device.layout.elementBytes == 2 && (m_config.hidden % 2 != 0 || m_config.vocabulary % 2 != 0))
        return fail(
            ErrorCode::Usage,
            fmt::format("hidden {} and vocabulary {} must be even in bf16", m_config.hidden, m_config.vocabulary),
            "use even ones, or --precision fp32");
    const int together = device.sharedTensor;
    if (shared && m_config.hidden % together != 0)
        return fail(ErrorCode::Usage,
                    fmt::format("hidden {} is not a multiple of {}: ranks share a stage's state in one vector, in "
                                "which each tensor has to start at {} bytes",
                                m_config.hidden, together, 2 * together), // of the narrowest elements
                    fmt::format("use a multiple of {}, or --backend cpu", together));
    return {};
}

MathUse Gpt::mathUse(int microbatchSize) const
{
    const int h = m_config.hidden;
    MathUse use;
    use.rows = m_config.sequence * microbatchSize;
    use.name = fmt::format("hidden {}, {} tokens", h, use.rows);
    use.layers = {{3 * h, h}, {h, h}, {4 * h, h}, {h, 4 * h}}; // a block's; attention's products left out
    use.widest = std::int64_t{4} * h * m_config.sequence * microbatchSize;
    use.headWidth = h / m_config.heads;
    return use;
}

std::unique_ptr<StageModel> Gpt::makeStage(const StageSpec& stage, Allocator& allocator,
                                           std::unique_ptr<layers::LayerMath> math) const
{
    return std::make_unique<layers::LayerStage>(m_config, stage, allocator, std::move(math));
}

int Gpt::layerOf(const std::string& parameter) const
{
    if (parameter.starts_with("embedding")) return 0;
    return parameter.starts_with("layer") ? std::stoi(parameter.substr(5)) : m_config.layers;
}

std::optional<DoubleForm> Gpt::doubleForm(int microbatchSize) const
{
    const int samples = std::min(microbatchSize, mostSamples);
    const ModelConfig model = cut(m_config, samples);
    auto reference = std::make_unique<DoubleModel>();
    reference->layers = model.layers;
    reference->hidden = model.hidden;
    reference->heads = model.heads;
    reference->sequence = model.sequence;
    reference->vocabulary = model.vocabulary;
    reference->batch = samples;
    return DoubleForm{std::make_shared<const Gpt>(model, m_corpus),
                      fmt::format("{} layers of {}, sequence {}", model.layers, model.hidden, model.sequence), samples,
                      std::move(reference)};
}

std::unique_ptr<TimedKernels> Gpt::kernels(layers::LayerMath& math, Allocator& allocator, int microbatchSize) const
{
    return gptKernels(m_config, math, allocator, microbatchSize);
}

} // namespace stagewright
