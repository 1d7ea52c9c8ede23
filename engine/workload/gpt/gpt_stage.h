// The layers of one stage of a GPT, over whatever arithmetic its device has.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/workload/gpt/kept_part.h"
#include "engine/workload/gpt/layers.h"
#include "engine/workload/parameter_stage.h"

namespace stagewright::layers {

// Calls out of order throw std::logic_error, wrong sizes and unknown parts std::invalid_argument; both before anything
// is changed. A backward computes with the version of the weights in use when it is called: what a forward keeps
// (normalised rows, projections, pre-activations without their bias) was made with the version in use then, so a caller
// that wants the exact gradient of a stored version uses it for F, I and W alike.
class LayerStage final : public ParameterStage {
public:
    // Throws std::bad_alloc where the weights do not fit. The arithmetic works in the allocator's memory.
    LayerStage(const ModelConfig& model, const StageSpec& stage, Allocator& allocator, std::unique_ptr<LayerMath> math);

    Buffer forward(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                   std::span<const std::uint8_t> targets) override;
    Buffer forwardForRecompute(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                               std::span<const std::uint8_t> targets) override;
    void recompute(const Part& part) override;
    Buffer inputGrad(const Part& part, Buffer outputGrad) override;
    void weightGrad(const Part& part) override;
    void weightGradOver(std::span<const Part> parts) override;
    void setSlices(std::span<const int> lengths) override;
    void setRecomputedLayers(int first, int last) override;
    void setBackwardFrom(int layer) override;
    void factorsInOps(int pieces) override;
    void keepFactorInputs(bool on) override;
    void addFactors(const Part& part, bool inputs, int refresh) override;
    void invertFactors(int piece, int refresh) override;
    std::vector<Buffer*> keptBuffers(const Part& part) override;
    void dropMicrobatches() override;

private:
    // The slices of a microbatch, or of one half of it: forwards count up, input gradients down.
    struct SliceChain {
        int forwarded = 0;
        int unfinished = 0; // slices whose input gradient is to come
    };
    using ChainKey = std::pair<std::int32_t, std::uint8_t>; // microbatch, half

    PartShape shapeOf(const Part& part) const;
    int sliceCount() const { return static_cast<int>(m_sliceLengths.size()); }
    Buffer run(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
               std::span<const std::uint8_t> targets, const DroppedLayers& dropped);
    // The block's earlier slices of the part's microbatch.
    std::vector<Pending<Block::Saved>> earlierSlices(const Part& part, std::size_t block);
    KeptPart& kept(const Part& part, KeptPart::Awaits awaits); // cuts a whole into halves if one is requested
    std::vector<Part> keptParts(std::span<const Part> parts);  // that await W; a whole may lie there as two halves
    void checkForwardOrder(const Part& part) const;
    bool embeddingLearns() const { return m_embedding && !m_cut; }
    bool learns() const { return m_from < m_blocks.size() || m_head || embeddingLearns(); }

    StageContext m_context;
    std::optional<Embedding> m_embedding;
    std::vector<Block> m_blocks;
    std::optional<Head> m_head;
    std::vector<int> m_sliceLengths;
    DroppedLayers m_recomputed; // what forwardForRecompute drops
    std::size_t m_from = 0;     // the first block that backwards reach
    bool m_cut = false;         // they end after the model's first layer
    std::map<Part, KeptPart> m_kept;
    // What K-FAC's factors of a part need where W came first; of a step that keeps it what they have had already.
    struct FactorPart {
        PartShape shape;
        std::vector<Block::FactorRows> blocks;
        bool inputs = false, gradients = false; // there
    };
    bool m_keepsFactors = false;
    std::map<Part, FactorPart> m_factors;
    std::set<std::pair<Part, bool>> m_added; // (part, inputs) of this step, before their W
    std::map<ChainKey, SliceChain> m_chains; // of microbatches whose first slice's input gradient is to come
};

} // namespace stagewright::layers
