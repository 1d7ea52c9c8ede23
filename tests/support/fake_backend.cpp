#include "support/fake_backend.h"

#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/workloads.h"

namespace stagewright::test {

namespace {

class FakeStage final : public StageModel {
public:
    FakeStage(int width, const StageSlice& slice, std::uint64_t seed, const FakeOptions& options, Allocator& allocator)
        : m_slice(slice), m_width(static_cast<std::size_t>(width)), m_options(options), m_allocator(allocator)
    {
        m_values = take(MemoryCategory::Weights, m_width * layers());
        m_gradients = take(MemoryCategory::Gradients, m_width * layers());
        for (std::size_t i = 0; i < m_values.size(); ++i) {
            const std::size_t layer = static_cast<std::size_t>(slice.firstLayer) + i / m_width;
            const std::uint64_t mixed =
                (seed + 1) * 0x9e3779b97f4a7c15u + (layer * m_width + i % m_width) * 0xbf58476d1ce4e5b9u;
            m_values.data()[i] = 0.8f + static_cast<float>((mixed >> 40) % 1000) * 4e-4f;
        }
    }

    const StageSlice& slice() const override { return m_slice; }

    Buffer forward(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                   std::span<const std::uint8_t> targets) override
    {
        hook(OpKind::Forward, part.microbatch);
        return run(part, std::move(input), tokens, targets, false);
    }
    Buffer forwardForRecompute(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                               std::span<const std::uint8_t> targets) override
    {
        hook(OpKind::Forward, part.microbatch);
        return run(part, std::move(input), tokens, targets, true);
    }
    void recompute(const Part& part) override
    {
        hook(OpKind::Recompute, part.microbatch);
        Kept& kept = m_kept.at(part);
        if (kept.inputs) throw std::logic_error("recomputation without a forward that dropped layers");
        const Buffer output = multiply(kept, part.microbatch);
    }

    Buffer inputGrad(const Part& part, Buffer outputGrad) override
    {
        const int microbatch = part.microbatch;
        hook(OpKind::InputGrad, microbatch);
        const Buffer temporary = take(MemoryCategory::Workspace, m_options.workspace, microbatch);
        Kept& kept = m_kept.at(part);
        if (!kept.inputs) throw std::logic_error("input gradient before its recomputation");
        if (m_slice.last) outputGrad = std::move(kept.outputGrad);
        kept.products = take(MemoryCategory::Activations, m_width * layers(), microbatch);
        kept.stash.reset();
        kept.stash = take(MemoryCategory::Activations, m_options.keptForWeights * layers(), microbatch);
        Buffer gradient = take(MemoryCategory::Communication, m_width, microbatch);
        std::copy_n(outputGrad.data(), m_width, gradient.data());
        for (std::size_t layer = layers(); layer-- > 0;) {
            for (std::size_t i = 0; i < m_width; ++i) {
                kept.products.data()[layer * m_width + i] =
                    kept.inputs.data()[layer * m_width + i] * gradient.data()[i];
                gradient.data()[i] *= used()[layer * m_width + i];
            }
        }
        kept.input.reset();
        kept.inputs.reset();
        if (m_slice.first) return {};
        return gradient;
    }

    void weightGrad(const Part& part) override
    {
        hook(OpKind::WeightGrad, part.microbatch);
        const Kept& kept = m_kept.at(part);
        const bool skip = std::exchange(skipNextWeightGrad(), false);
        if (std::exchange(poisonNextWeightGrad(), false))
            kept.products.data()[0] = std::numeric_limits<float>::quiet_NaN();
        for (std::size_t i = 0; i < m_gradients.size(); ++i)
            m_gradients.data()[i] += skip ? 0.0f : kept.products.data()[i];
        m_kept.erase(part);
    }

    void weightGradOver(std::span<const Part> parts) override
    {
        for (const Part& part : parts) weightGrad(part);
    }
    void setSlices(std::span<const int>) override {}
    void setRecomputedLayers(int, int) override {}
    void setBackwardFrom(int) override {}
    void undoOptimizerStep(const OptimizerConfig& config, int, float gradientScale) override
    {
        for (std::size_t i = 0; i < m_values.size(); ++i)
            m_values.data()[i] += static_cast<float>(config.learningRate) * gradientScale * m_gradients.data()[i];
    }
    void keepVersion(int version) override { keep(version, 0); }
    void useVersion(int version) override
    {
        if (version >= 0 && !m_versions.contains(version)) throw std::logic_error("the version is not kept");
        m_used = version;
    }
    void dropVersion(int version) override
    {
        if (version == m_used || m_versions.erase(version) == 0)
            throw std::logic_error("the version is in use or not kept");
    }
    void keepPredicted(int version, const OptimizerConfig& config, int, double updates) override
    {
        keep(version, static_cast<float>(config.learningRate * updates));
    }

    double loss(const Part& part) const override { return m_losses.at(part); }
    void setLossScale(float scale) override { m_scale = scale; }
    void zeroGradients() override { std::fill_n(m_gradients.data(), m_gradients.size(), 0.0f); }
    double gradientSquareSum() const override
    {
        double sum = 0;
        for (const float g : m_gradients.span()) sum += static_cast<double>(g) * static_cast<double>(g);
        return sum;
    }
    void optimizerStep(const OptimizerConfig& config, int, float gradientScale) override
    {
        hook(OpKind::Optimizer, -1);
        m_direction.resize(m_values.size());
        for (std::size_t i = 0; i < m_values.size(); ++i) {
            m_direction[i] = gradientScale * m_gradients.data()[i];
            m_values.data()[i] -= static_cast<float>(config.learningRate) * m_direction[i];
        }
    }
    std::vector<ParameterView> parameters() override
    {
        std::vector<ParameterView> views;
        for (std::size_t layer = 0; layer < layers(); ++layer) {
            views.push_back({"layer" + std::to_string(static_cast<std::size_t>(m_slice.firstLayer) + layer) + ".scale",
                             {static_cast<int>(m_width)},
                             m_values.span().subspan(layer * m_width, m_width),
                             m_gradients.span().subspan(layer * m_width, m_width)});
        }
        return views;
    }
    void saveState(int delayed, const StateSink& sink) override
    {
        eachLayer([&](const ParameterView& view, std::size_t first) {
            const auto give = [&](StateKind kind, const float* numbers) {
                sink({view.name, view.shape, kind, 0}, std::span(numbers + first, m_width));
            };
            give(StateKind::Value, m_values.data());
            if (!m_direction.empty()) give(StateKind::Moment1, m_direction.data());
            if (delayed >= 0) give(StateKind::Delayed, m_versions.at(delayed).data());
        });
    }
    void loadState(int delayed, const StateSource& source) override
    {
        if (delayed >= 0) keep(delayed, 0);
        eachLayer([&](const ParameterView& view, std::size_t first) {
            const auto take = [&](StateKind kind, float* numbers) {
                return source({view.name, view.shape, kind, 0}, std::span(numbers + first, m_width));
            };
            if (!take(StateKind::Value, m_values.data())) throw std::runtime_error(view.name + " was not saved");
            std::vector<float> direction(m_values.size());
            if (take(StateKind::Moment1, direction.data())) {
                m_direction.resize(m_values.size());
                std::copy_n(direction.data() + first, m_width, m_direction.data() + first);
            }
            if (delayed >= 0) take(StateKind::Delayed, m_versions.at(delayed).data());
        });
    }
    std::vector<Buffer*> keptBuffers(const Part& part) override
    {
        std::vector<Buffer*> there;
        if (const auto found = m_kept.find(part); found != m_kept.end())
            for (Buffer Kept::*of : {&Kept::input, &Kept::inputs, &Kept::stash, &Kept::outputGrad, &Kept::products})
                if (found->second.*of) there.push_back(&(found->second.*of));
        return there;
    }
    void dropMicrobatches() override { m_kept.clear(); }

private:
    struct Kept {
        Buffer input, inputs, stash, outputGrad, products;
    };

    template <typename Visit>
    void eachLayer(Visit&& visit)
    {
        const std::vector<ParameterView> views = parameters();
        for (std::size_t layer = 0; layer < views.size(); ++layer) visit(views[layer], layer * m_width);
    }
    const float* used() const { return m_used < 0 ? m_values.data() : m_versions.at(m_used).data(); }
    // The current weights, moved on by `reach` in the direction of the last step.
    void keep(int version, float reach)
    {
        Buffer& stored = m_versions[version];
        stored = take(MemoryCategory::Weights, m_values.size());
        for (std::size_t i = 0; i < m_values.size(); ++i)
            stored.data()[i] = m_values.data()[i] - (m_direction.empty() ? 0.0f : reach * m_direction[i]);
    }
    Buffer run(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
               std::span<const std::uint8_t> targets, bool drop)
    {
        const int microbatch = part.microbatch;
        const Buffer temporary = take(MemoryCategory::Workspace, m_options.workspace, microbatch);
        Kept& kept = m_kept[part];
        if (m_slice.first) {
            input = take(MemoryCategory::Activations, m_width, microbatch);
            for (std::size_t i = 0; i < m_width; ++i)
                input.data()[i] = static_cast<float>(tokens[i % tokens.size()]) / 256.0f;
        } else {
            input.retag(tag(MemoryCategory::Activations, microbatch));
        }
        kept.input = std::move(input);
        Buffer output = multiply(kept, microbatch);
        if (drop) {
            kept.stash.reset();
            kept.inputs.reset();
        }
        if (!m_slice.last) return output;
        double loss = 0;
        kept.outputGrad = take(MemoryCategory::Activations, m_width, microbatch);
        for (std::size_t i = 0; i < m_width; ++i) {
            const float apart = output.data()[i] - static_cast<float>(targets[i % targets.size()]) / 256.0f;
            loss += 0.5 * static_cast<double>(apart) * static_cast<double>(apart);
            kept.outputGrad.data()[i] = apart * m_scale;
        }
        m_losses[part] = loss / static_cast<double>(m_width);
        return {};
    }
    // The layers' product; keeps their inputs and the stash.
    Buffer multiply(Kept& kept, int microbatch)
    {
        kept.stash = take(MemoryCategory::Activations, m_options.keptAtForward * layers(), microbatch);
        kept.inputs = take(MemoryCategory::Activations, m_width * layers(), microbatch);
        Buffer output = take(MemoryCategory::Communication, m_width, microbatch);
        std::copy_n(kept.input.data(), m_width, output.data());
        for (std::size_t layer = 0; layer < layers(); ++layer) {
            std::copy_n(output.data(), m_width, kept.inputs.data() + layer * m_width);
            for (std::size_t i = 0; i < m_width; ++i) output.data()[i] *= used()[layer * m_width + i];
        }
        return output;
    }

    std::size_t layers() const { return static_cast<std::size_t>(m_slice.layerCount); }
    MemoryTag tag(MemoryCategory category, int microbatch) const
    {
        return {category, static_cast<std::uint16_t>(m_slice.stage), microbatch};
    }
    Buffer take(MemoryCategory category, std::size_t floats, int microbatch = -1)
    {
        return m_allocator.take(floats, tag(category, microbatch));
    }
    void hook(OpKind kind, int microbatch) const
    {
        if (m_options.hook) m_options.hook(kind, m_slice.stage, microbatch);
    }

    StageSlice m_slice;
    std::size_t m_width;
    FakeOptions m_options;
    Allocator& m_allocator;
    float m_scale = 1;
    Buffer m_values;
    Buffer m_gradients;
    std::map<Part, Kept> m_kept;
    std::map<Part, double> m_losses;
    std::vector<float> m_direction; // of the last step; empty: none yet
    std::map<int, Buffer> m_versions;
    int m_used = -1;
};

class FakeWorkload final : public Gpt {
public:
    FakeWorkload(const ModelConfig& config, std::function<FakeOptions()> ofStage)
        : Gpt(config), m_ofStage(std::move(ofStage))
    {
    }
    std::unique_ptr<StageModel> makeStage(const StageSpec& stage, Allocator& allocator,
                                          std::unique_ptr<layers::LayerMath>) const override
    {
        return std::make_unique<FakeStage>(width(), stage.slice, stage.seed, m_ofStage(), allocator);
    }

private:
    std::function<FakeOptions()> m_ofStage;
};

} // namespace

bool& poisonNextWeightGrad()
{
    thread_local bool poison = false;
    return poison;
}

bool& skipNextWeightGrad()
{
    thread_local bool skip = false;
    return skip;
}

std::shared_ptr<const Workload> fakeWorkload(const Workload& like, std::function<FakeOptions()> ofStage)
{
    return std::make_shared<const FakeWorkload>(dynamic_cast<const Gpt&>(like).config(), std::move(ofStage));
}

Result<void> BareBackend::checkRoom(std::span<const StageUse>) const { return {}; }

Result<std::unique_ptr<Memory>> BareBackend::openMemory(int rank, int, int)
{
    return m_memory ? m_memory(rank) : nullptr;
}

Result<std::unique_ptr<layers::LayerMath>> BareBackend::makeMath(const StageUse&, Allocator&)
{
    return std::unique_ptr<layers::LayerMath>();
}

} // namespace stagewright::test
