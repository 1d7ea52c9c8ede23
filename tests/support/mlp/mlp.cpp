#include "support/mlp/mlp.h"

#include <numeric>

#include "engine/workload/parameter_stage.h"
#include "schedules/base/hashing.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace test {

namespace {

using namespace layers;

class MlpStage final : public ParameterStage {
public:
    MlpStage(int width, const StageSpec& stage, Allocator& allocator, std::unique_ptr<LayerMath> math)
        : ParameterStage(stage, allocator, std::move(math)), m_width(width), m_hidden(2 * width),
          m_rows(stage.microbatchSize)
    {
        constexpr float deviation = 0.3F;
        if (slice().first) m_first = &m_parameters.addNormal("first.weight", {width, Mlp::features}, deviation);
        for (int i = 0; i < slice().layerCount; ++i) {
            const std::string name = "layer" + std::to_string(slice().firstLayer + i);
            m_layers.push_back({m_parameters.addNormal(name + ".up", {m_hidden, width}, deviation),
                                m_parameters.addConstant(name + ".bias", {m_hidden}, 0.0F),
                                m_parameters.addNormal(name + ".down", {width, m_hidden}, deviation)});
        }
        if (slice().last) m_head = &m_parameters.addNormal("last.weight", {Mlp::classes, width}, deviation);
    }

    Buffer forward(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                   std::span<const std::uint8_t> targets) override
    {
        Kept& kept = start(part, std::move(input), tokens, targets);
        return run(part, kept);
    }
    Buffer forwardForRecompute(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                               std::span<const std::uint8_t> targets) override
    {
        Kept& kept = start(part, std::move(input), tokens, targets);
        Buffer copy;
        if (kept.input) {
            copy = take(MemoryCategory::Activations, part, m_math->words(area(m_width)));
            m_allocator.memory().copy(copy.data(), kept.input.data(), copy.size() * sizeof(float));
        }
        Buffer output = run(part, kept);
        kept.layers.clear();
        kept.logits.reset();
        kept.last.reset();
        kept.input = std::move(copy);
        return output;
    }
    void recompute(const Part& part) override { run(part, m_kept.at(part)); }
    std::vector<Buffer*> keptBuffers(const Part& part) override
    {
        std::vector<Buffer*> out;
        const auto found = m_kept.find(part);
        if (found == m_kept.end()) return out;
        Kept& kept = found->second;
        const auto add = [&](Buffer& buffer) {
            if (buffer) out.push_back(&buffer);
        };
        for (LayerKept& layer : kept.layers)
            for (Buffer* one : {&layer.input, &layer.hidden, &layer.outputGrad, &layer.hiddenGrad, &layer.sums})
                add(*one);
        for (Buffer* one : {&kept.features, &kept.input, &kept.last, &kept.logits, &kept.firstGrad}) add(*one);
        return out;
    }

    Buffer inputGrad(const Part& part, Buffer outputGrad) override
    {
        Kept& kept = m_kept.at(part);
        m_timer.begin(true);
        Buffer grad = std::move(outputGrad);
        if (m_head) {
            grad = elements(MemoryCategory::Activations, part, m_width);
            m_math->linearInputGrad(m_rows, Mlp::classes, m_width, lossScale(), elementsIn(kept.logits), m_head->used,
                                    elementsIn(grad));
            m_timer.lap(OpKind::InputGrad, 1 + m_layers.size());
        } else {
            grad.retag(tag(MemoryCategory::Activations, part));
        }
        for (std::size_t i = m_layers.size(); i-- > 0;) {
            LayerKept& now = kept.layers[i];
            now.outputGrad = std::move(grad);
            now.hiddenGrad = elements(MemoryCategory::Activations, part, m_hidden);
            now.sums = take(MemoryCategory::Activations, part, static_cast<std::size_t>(m_hidden));
            m_math->geluInputGrad(m_rows, m_hidden, m_width, elementsIn(now.outputGrad), m_layers[i].down.used,
                                  m_layers[i].bias.used, elementsIn(now.hidden), elementsIn(now.hiddenGrad),
                                  now.sums.data());
            grad = elements(MemoryCategory::Activations, part, m_width);
            m_math->linearInputGrad(m_rows, m_hidden, m_width, 1.0F, elementsIn(now.hiddenGrad), m_layers[i].up.used,
                                    elementsIn(grad));
            m_timer.lap(OpKind::InputGrad, 1 + i);
        }
        if (m_first) {
            kept.firstGrad = std::move(grad);
            return {};
        }
        grad.retag(tag(MemoryCategory::Communication, part));
        return grad;
    }

    void weightGrad(const Part& part) override
    {
        Kept& kept = m_kept.at(part);
        m_parameters.needGradients();
        m_timer.begin(true);
        if (m_head) {
            m_math->linearWeightGrad(m_rows, Mlp::classes, m_width, lossScale(), elementsIn(kept.logits),
                                     elementsIn(kept.last), m_head->gradient.data());
            m_timer.lap(OpKind::WeightGrad, 1 + m_layers.size());
        }
        for (std::size_t i = m_layers.size(); i-- > 0;) {
            const LayerKept& now = kept.layers[i];
            m_math->linearWeightGrad(m_rows, m_width, m_hidden, 1.0F, elementsIn(now.outputGrad),
                                     elementsIn(now.hidden), m_layers[i].down.gradient.data());
            m_math->linearWeightGrad(m_rows, m_hidden, m_width, 1.0F, elementsIn(now.hiddenGrad), elementsIn(now.input),
                                     m_layers[i].up.gradient.data());
            const AddedFloats bias[] = {
                {static_cast<std::size_t>(m_hidden), now.sums.data(), m_layers[i].bias.gradient.data()}};
            m_math->add(bias);
            m_timer.lap(OpKind::WeightGrad, 1 + i);
        }
        if (m_first) {
            m_math->linearWeightGrad(m_rows, m_width, Mlp::features, 1.0F, elementsIn(kept.firstGrad),
                                     elementsIn(kept.features), m_first->gradient.data());
            m_timer.lap(OpKind::WeightGrad, 0);
        }
        m_kept.erase(part);
    }
    void weightGradOver(std::span<const Part> parts) override
    {
        for (const Part& part : parts) weightGrad(part);
    }
    void setSlices(std::span<const int> lengths) override
    {
        if (!lengths.empty()) throw std::invalid_argument("an MLP's samples have one position");
    }
    void setRecomputedLayers(int, int) override {}
    void setBackwardFrom(int layer) override
    {
        if (layer > 0) throw std::invalid_argument("an MLP has no partial backward");
    }
    void dropMicrobatches() override { m_kept.clear(); }

private:
    struct Layer {
        Parameter& up; // (hidden, width)
        Parameter& bias;
        Parameter& down; // (width, hidden)
    };
    struct LayerKept {
        Buffer input, hidden; // before the GELU; after the input gradient its result
        Buffer outputGrad, hiddenGrad, sums;
    };
    struct Kept {
        Buffer features, input; // of the first stage, of the others
        Buffer targets;         // of the last stage
        std::vector<LayerKept> layers;
        Buffer last, logits; // what the head saw, and softmax − onehot
        Buffer firstGrad;
    };

    std::size_t area(int columns) const { return static_cast<std::size_t>(m_rows) * static_cast<std::size_t>(columns); }
    float lossScale() const { return m_lossScale / static_cast<float>(m_rows); }
    MemoryTag tag(MemoryCategory category, const Part& part) const
    {
        return {category, static_cast<std::uint16_t>(slice().stage), part.microbatch};
    }
    Buffer take(MemoryCategory category, const Part& part, std::size_t floats)
    {
        return m_allocator.take(floats, tag(category, part));
    }
    Buffer elements(MemoryCategory category, const Part& part, int columns)
    {
        return take(category, part, m_math->words(area(columns)));
    }

    Kept& start(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                std::span<const std::uint8_t> targets)
    {
        if (part.slice >= 0 || part.half > 0) throw std::invalid_argument("an MLP has whole microbatches only");
        Kept& kept = m_kept[part];
        if (m_first) {
            std::vector<float> numbers;
            for (const std::uint8_t byte : tokens) numbers.push_back(static_cast<float>(byte) / 128.0F - 1.0F);
            const Buffer floats = take(MemoryCategory::Workspace, part, numbers.size());
            m_allocator.memory().upload(floats.data(), numbers.data(), numbers.size() * sizeof(float));
            kept.features = elements(MemoryCategory::Activations, part, Mlp::features);
            if (m_math->elementBytes() == sizeof(float))
                m_allocator.memory().copy(kept.features.data(), floats.data(), floats.size() * sizeof(float));
            else
                m_math->toElements(numbers.size(), floats.data(), elementsIn(kept.features));
        } else {
            kept.input = std::move(input);
            kept.input.retag(tag(MemoryCategory::Activations, part));
        }
        if (!m_head) return kept;
        kept.targets = take(MemoryCategory::Activations, part, (targets.size() + 3) / 4);
        m_allocator.memory().upload(kept.targets.data(), targets.data(), targets.size());
        return kept;
    }

    Buffer run(const Part& part, Kept& kept)
    {
        m_timer.begin(true);
        Buffer stream = std::move(kept.input);
        if (m_first) {
            stream = elements(MemoryCategory::Activations, part, m_width);
            m_math->linearBare(m_rows, m_width, Mlp::features, elementsIn(kept.features), m_first->used,
                               elementsIn(stream));
            m_timer.lap(OpKind::Forward, 0);
        }
        kept.layers.clear();
        for (std::size_t i = 0; i < m_layers.size(); ++i) {
            LayerKept& now = kept.layers.emplace_back();
            now.input = std::move(stream);
            now.hidden = elements(MemoryCategory::Activations, part, m_hidden);
            const Buffer active = elements(MemoryCategory::Workspace, part, m_hidden);
            const Layer& layer = m_layers[i];
            m_math->expand(m_rows, m_hidden, m_width, elementsIn(now.input), layer.up.used, layer.bias.used,
                           elementsIn(now.hidden), elementsIn(active));
            m_math->activate(m_rows, m_hidden, elementsIn(now.hidden), layer.bias.used, elementsIn(active));
            stream = elements(MemoryCategory::Activations, part, m_width);
            m_math->linearBare(m_rows, m_width, m_hidden, elementsIn(active), layer.down.used, elementsIn(stream));
            m_timer.lap(OpKind::Forward, 1 + i);
        }
        if (!m_head) {
            stream.retag(tag(MemoryCategory::Communication, part));
            return stream;
        }
        kept.last = std::move(stream);
        kept.logits = elements(MemoryCategory::Activations, part, Mlp::classes);
        m_math->linearBare(m_rows, Mlp::classes, m_width, elementsIn(kept.last), m_head->used, elementsIn(kept.logits));
        m_math->crossEntropy(m_rows, Mlp::classes, elementsIn(kept.logits),
                             reinterpret_cast<const std::uint8_t*>(kept.targets.data()), m_losses[part]);
        m_timer.lap(OpKind::Forward, 1 + m_layers.size());
        return {};
    }

    int m_width, m_hidden, m_rows;
    Parameter* m_first = nullptr;
    std::vector<Layer> m_layers;
    Parameter* m_head = nullptr;
    std::map<Part, Kept> m_kept;
};

Result<std::shared_ptr<const Workload>> makeMlp(const std::string& text)
{
    int layers = 6, width = 32;
    for (const std::string_view item : itemsOf(text)) {
        const auto [name, value] = keyValueOf(item);
        int* number = name == "layers" ? &layers : name == "width" ? &width : nullptr;
        if (!number || !value || !readNumber(*value, *number) || *number < 1)
            return fail(ErrorCode::Usage, "mlp: '" + std::string(item) + "' is unknown",
                        "the keys are layers and width");
    }
    return std::make_shared<const Mlp>(layers, width);
}

} // namespace

std::string Mlp::text() const { return "layers=" + std::to_string(m_layers) + ",width=" + std::to_string(m_width); }

std::vector<std::pair<std::string, int>> Mlp::shape() const { return {{"layers", m_layers}, {"width", m_width}}; }

std::shared_ptr<const Workload> Mlp::withLayers(int layers) const
{
    return std::make_shared<const Mlp>(layers, m_width);
}

// The class is in the upper bits of the first two bytes.
void Mlp::sample(std::uint64_t seed, int step, std::int64_t first, int samples, std::span<std::uint8_t> tokens,
                 std::span<std::uint8_t> targets) const
{
    for (std::size_t row = 0; row < static_cast<std::size_t>(samples); ++row) {
        const std::uint64_t bits = mixBits(mixBits(mixBits(seed) ^ static_cast<std::uint64_t>(step)) ^
                                           (static_cast<std::uint64_t>(first) + row));
        for (std::size_t i = 0; i < features; ++i)
            tokens[row * features + i] = static_cast<std::uint8_t>(bits >> 8 * i);
        targets[row] = static_cast<std::uint8_t>((tokens[row * features] >> 6) * 4 + (tokens[row * features + 1] >> 6));
    }
}

Result<std::shared_ptr<const Workload>> Mlp::withData(const std::string& path) const
{
    return fail(ErrorCode::Usage, path + ": an MLP draws its own samples", "leave the file out");
}

double Mlp::forwardCost(LayerCosts::Part part) const
{
    return 2.0 * m_width *
           (part == LayerCosts::Part::Embedding ? features
            : part == LayerCosts::Part::Head    ? classes
                                                : 2 * hidden());
}

double Mlp::flops(OpKind kind, const StageSlice& slice, int microbatchSize) const
{
    double forward = forwardCost(LayerCosts::Part::Block) * slice.layerCount;
    if (slice.first) forward += forwardCost(LayerCosts::Part::Embedding);
    if (slice.last) forward += forwardCost(LayerCosts::Part::Head);
    const int passes = kind == OpKind::Backward ? 2 : isCompute(kind) ? 1 : 0;
    return forward * passes * microbatchSize;
}

std::vector<std::int64_t> Mlp::layerElements(const StageSlice& slice) const
{
    std::vector<std::int64_t> out;
    if (slice.first) out.push_back(std::int64_t{features} * m_width);
    out.insert(out.end(), static_cast<std::size_t>(slice.layerCount), (2 * std::int64_t{m_width} + 1) * hidden());
    if (slice.last) out.push_back(std::int64_t{classes} * m_width);
    return out;
}

StageMemory Mlp::memoryOf(const StageSlice& slice, int microbatchSize, const OptimizerConfig& optimizer,
                          const StageLayout& layout) const
{
    constexpr Bytes word = sizeof(float);
    const Bytes element = layout.elementBytes;
    const Bytes row = element * microbatchSize; // of one column
    const Bytes layers = slice.layerCount;
    const std::vector<std::int64_t> elements = layerElements(slice);
    const Bytes weights = std::accumulate(elements.begin(), elements.end(), Bytes{0});
    Bytes kept = layers * row * (m_width + hidden());
    Bytes after = layers * (2 * row * (m_width + hidden()) + word * hidden());
    for (Bytes* bytes : {&kept, &after}) {
        if (slice.first) *bytes += row * features;
        if (slice.last) *bytes += row * (m_width + classes) + (microbatchSize + word - 1) / word * word;
    }
    if (slice.first) after += row * m_width;
    StageMemory memory;
    memory.activation = kept;
    memory.freedAtInput = kept - after;
    memory.workspace = std::max(row * hidden(), slice.first ? word * microbatchSize * features : 0);
    memory.boundary = slice.first && slice.last ? 0 : row * m_width;
    memory.weight = word * weights + (element < word ? element * weights : 0);
    memory.gradient = word * weights;
    memory.optimizer = memory.gradient * (optimizer.kind == OptimizerKind::AdamW ? 2 : optimizer.momentum != 0 ? 1 : 0);
    return memory;
}

Result<void> Mlp::check(const Capabilities& device, bool shared) const
{
    if (m_width % 2 == 0 && (!shared || m_width % device.sharedTensor == 0)) return {};
    return fail(ErrorCode::Usage, "mlp: width=" + std::to_string(m_width), "use a multiple of 8");
}

MathUse Mlp::mathUse(int microbatchSize) const
{
    MathUse use;
    use.name = "mlp of width " + std::to_string(m_width) + ", " + std::to_string(microbatchSize) + " rows";
    use.rows = microbatchSize;
    use.layers = {{hidden(), m_width}, {m_width, hidden()}};
    use.widest = std::int64_t{hidden()} * microbatchSize;
    return use;
}

std::unique_ptr<StageModel> Mlp::makeStage(const StageSpec& stage, Allocator& allocator,
                                           std::unique_ptr<LayerMath> math) const
{
    return std::make_unique<MlpStage>(m_width, stage, allocator, std::move(math));
}

int Mlp::layerOf(const std::string& parameter) const
{
    return parameter.starts_with("layer")   ? std::stoi(parameter.substr(5))
           : parameter.starts_with("first") ? 0
                                            : m_layers;
}

} // namespace test

namespace workloads {
WorkloadInfo mlp() { return {"mlp", "a small MLP on synthetic samples", test::makeMlp}; }
} // namespace workloads

} // namespace stagewright
