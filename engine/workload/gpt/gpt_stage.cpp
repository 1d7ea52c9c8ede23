#include "engine/workload/gpt/gpt_stage.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/layers/denormals.h"

namespace stagewright::layers {

using Awaits = KeptPart::Awaits;

namespace {

bool isWhole(const Part& part) { return part.slice < 0 && part.half == 0; }

} // namespace

LayerStage::LayerStage(const ModelConfig& model, const StageSpec& stage, Allocator& allocator,
                       std::unique_ptr<LayerMath> math)
    : ParameterStage(stage, allocator, std::move(math)), m_context{model, stage.microbatchSize, m_slice.stage,
                                                                   allocator, *m_math},
      m_recomputed{0, static_cast<std::size_t>(m_slice.layerCount), m_slice.last}
{
    if (m_slice.first) m_embedding.emplace(m_context, m_parameters);
    m_blocks.reserve(static_cast<std::size_t>(m_slice.layerCount));
    for (int i = 0; i < m_slice.layerCount; ++i) m_blocks.emplace_back(m_context, m_slice.firstLayer + i, m_parameters);
    if (m_slice.last) m_head.emplace(m_context, m_parameters);
}

PartShape LayerStage::shapeOf(const Part& part) const
{
    PartShape shape{part.microbatch, m_context.batch, m_context.model.sequence};
    if (part.slice >= 0) {
        if (part.slice >= sliceCount())
            throw std::invalid_argument(nameOf(part) + ": the sequence has " + std::to_string(sliceCount()) +
                                        " slices");
        const auto index = static_cast<std::ptrdiff_t>(part.slice);
        shape.tokens = m_sliceLengths[static_cast<std::size_t>(index)];
        for (auto length = m_sliceLengths.begin(); length != m_sliceLengths.begin() + index; ++length)
            shape.past += *length;
        shape.followed = part.slice + 1 < sliceCount();
    }
    if (part.half > 2) throw std::invalid_argument(nameOf(part) + ": halves are 1 and 2");
    if (part.half != 0) {
        if (m_context.batch % 2 != 0)
            throw std::invalid_argument(nameOf(part) + ": a batch of " + std::to_string(m_context.batch) +
                                        " has no halves; make it even");
        shape.batch /= 2;
    }
    return shape;
}

void LayerStage::setSlices(std::span<const int> lengths)
{
    if (!m_kept.empty())
        throw std::logic_error("stage " + std::to_string(m_slice.stage) +
                               ": slices change while microbatches are kept");
    int sum = 0;
    for (const int length : lengths) {
        if (length < 1)
            throw std::invalid_argument("a slice of " + std::to_string(length) + " tokens; at least 1 is needed");
        sum += length;
    }
    if (!lengths.empty() && sum != m_context.model.sequence)
        throw std::invalid_argument("the slices' lengths sum to " + std::to_string(sum) + "; the sequence has " +
                                    std::to_string(m_context.model.sequence) + " tokens");
    m_sliceLengths.assign(lengths.begin(), lengths.end());
}

void LayerStage::setRecomputedLayers(int first, int last)
{
    const auto inside = [this](int layer) {
        return static_cast<std::size_t>(std::clamp(layer - m_slice.firstLayer, 0, m_slice.layerCount));
    };
    m_recomputed = {};
    if (first > last) return;
    m_recomputed.first = inside(first);
    m_recomputed.end = inside(std::min(last, m_context.model.layers - 1) + 1);
    // The head goes with the model's last layer.
    m_recomputed.head = m_slice.last && first < m_context.model.layers && last >= m_context.model.layers - 1;
}

void LayerStage::setBackwardFrom(int layer)
{
    m_cut = layer > 0;
    m_from = static_cast<std::size_t>(std::clamp(layer - m_slice.firstLayer, 0, m_slice.layerCount));
}

void LayerStage::checkForwardOrder(const Part& part) const
{
    bool again = m_kept.contains(part);
    if (part.half == 0) {
        for (const std::uint8_t half : {std::uint8_t{1}, std::uint8_t{2}})
            again = again || m_kept.contains({part.microbatch, part.slice, half});
    } else {
        again = again || m_kept.contains({part.microbatch, part.slice, 0});
    }
    if (again) throw std::logic_error(nameOf(part) + ": forward again before its weight gradient");
    if (part.slice < 0) return;
    const auto chain = m_chains.find({part.microbatch, part.half});
    const int next = chain == m_chains.end() ? 0 : chain->second.forwarded;
    if (part.slice != next)
        throw std::logic_error(nameOf(part) + ": forward out of order; " +
                               (next < sliceCount() ? "slice " + std::to_string(next) + " is next"
                                                    : std::string("all slices have had theirs")));
}

std::vector<Pending<Block::Saved>> LayerStage::earlierSlices(const Part& part, std::size_t block)
{
    std::vector<Pending<Block::Saved>> earlier;
    for (std::int16_t slice = 0; slice < part.slice; ++slice) {
        KeptPart& there = m_kept.at({part.microbatch, slice, part.half});
        earlier.push_back({there.shape, &there.blocks[block]});
    }
    return earlier;
}

Buffer LayerStage::forward(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                           std::span<const std::uint8_t> targets)
{
    return run(part, std::move(input), tokens, targets, {});
}

Buffer LayerStage::forwardForRecompute(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                                       std::span<const std::uint8_t> targets)
{
    return run(part, std::move(input), tokens, targets, m_recomputed);
}

Buffer LayerStage::run(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                       std::span<const std::uint8_t> targets, const DroppedLayers& dropped)
{
    const FlushDenormals flush;
    const int microbatch = part.microbatch;
    KeptPart now;
    now.shape = shapeOf(part);
    checkForwardOrder(part);
    const std::size_t size = m_context.stream(now.shape);
    if (!m_embedding && input.size() != m_math->words(size))
        throw std::invalid_argument("stage " + std::to_string(m_slice.stage) + ": input of " +
                                    std::to_string(input.size()) + " floats, " + std::to_string(m_math->words(size)) +
                                    " needed");
    now.dropped = dropped;
    now.dropped.first = std::max(dropped.first, m_from); // what lies below the cut is not recomputed either
    now.awaits = now.dropped.any() ? Awaits::Recompute : Awaits::InputGrad;
    now.blocks.resize(m_blocks.size());
    Buffer stream;
    m_timer.begin(isWhole(part));
    if (m_embedding) {
        m_embedding->keepTokens(now.embedding, now.shape, tokens);
        stream = m_context.borrow(size, microbatch);
        m_embedding->forward(now.embedding, now.shape, elementsIn(stream));
        if (!embeddingLearns()) now.embedding = {};
        m_timer.lap(OpKind::Forward, 0);
    } else {
        // The blocks change it into the output.
        stream = std::move(input);
        stream.retag(m_context.tag(MemoryCategory::Workspace, microbatch));
    }
    const auto keepInput = [&] {
        now.input = m_context.keep(size, microbatch);
        m_context.allocator.memory().copy(now.input.data(), stream.data(), now.input.size() * sizeof(float));
    };
    for (std::size_t i = 0; i < m_blocks.size(); ++i) {
        const bool drop = i >= now.dropped.first && i < now.dropped.end;
        if (drop && i == now.dropped.first && !(i == 0 && embeddingLearns())) keepInput();
        m_blocks[i].forward(now.blocks[i], now.shape, earlierSlices(part, i), elementsIn(stream),
                            drop || i < m_from ? Forward::Drop : Forward::Keep);
        m_timer.lap(OpKind::Forward, 1 + i);
    }
    if (m_head) {
        if (dropped.head && now.dropped.first >= m_blocks.size() && !(m_blocks.empty() && embeddingLearns()))
            keepInput();
        Embedding::check(targets, now.shape, m_context.model.vocabulary, "targets");
        Buffer staged;
        const std::uint8_t* bytes = targets.data();
        if (dropped.head) now.head.targets = m_context.bytes(targets, MemoryCategory::Activations, microbatch);
        if (!m_context.allocator.memory().isHost()) {
            if (!dropped.head) staged = m_context.bytes(targets, MemoryCategory::Workspace, microbatch);
            bytes = reinterpret_cast<const std::uint8_t*>((dropped.head ? now.head.targets : staged).data());
        }
        m_head->forward(now.head, now.shape, elementsIn(stream), bytes, dropped.head ? Forward::Drop : Forward::Keep,
                        m_losses[part]);
        m_timer.lap(OpKind::Forward, 1 + m_blocks.size());
        stream.reset();
    } else {
        stream.retag(m_context.tag(MemoryCategory::Communication, microbatch));
    }
    if (part.slice >= 0) {
        SliceChain& chain = m_chains[{microbatch, part.half}];
        ++chain.forwarded;
        ++chain.unfinished;
    }
    if (learns()) m_kept.emplace(part, std::move(now));
    return stream;
}

void LayerStage::recompute(const Part& part)
{
    const FlushDenormals flush;
    const auto found = m_kept.find(part);
    // Layers outside the stage are recomputed elsewhere, those below the cut nowhere: nothing to do here.
    const bool elsewhere = std::max(m_recomputed.first, m_from) >= m_recomputed.end && !m_recomputed.head;
    if (found != m_kept.end() && found->second.awaits == Awaits::InputGrad && elsewhere) return;
    KeptPart& now = kept(part, Awaits::Recompute);
    const DroppedLayers dropped = now.dropped;
    Buffer stream = std::move(now.input);
    if (stream) {
        stream.retag(m_context.tag(MemoryCategory::Workspace, part.microbatch));
    } else {
        stream = m_context.borrow(m_context.stream(now.shape), part.microbatch);
        m_embedding->forward(now.embedding, now.shape, elementsIn(stream));
    }
    for (std::size_t i = dropped.first; i < dropped.end; ++i) {
        const bool last = i + 1 == dropped.end && !dropped.head;
        m_blocks[i].forward(now.blocks[i], now.shape, earlierSlices(part, i), elementsIn(stream),
                            last ? Forward::KeepWithoutOutput : Forward::Keep);
    }
    if (dropped.head) {
        const Buffer targets = std::move(now.head.targets);
        m_head->forward(now.head, now.shape, elementsIn(stream), reinterpret_cast<const std::uint8_t*>(targets.data()),
                        Forward::Keep, m_losses[part]);
    }
    now.awaits = Awaits::InputGrad;
}

KeptPart& LayerStage::kept(const Part& part, Awaits awaits)
{
    auto found = m_kept.find(part);
    if (found == m_kept.end() && part.half != 0 && part.slice < 0) {
        const Part whole(part.microbatch);
        const auto both = m_kept.find(whole);
        if (both != m_kept.end() && both->second.awaits == awaits) {
            shapeOf(part); // throws where there are no halves
            KeptPart second = both->second.cutInHalf(m_context);
            KeptPart first = std::move(both->second);
            m_kept.erase(both);
            m_kept.emplace(Part{part.microbatch, -1, 1}, std::move(first));
            m_kept.emplace(Part{part.microbatch, -1, 2}, std::move(second));
            found = m_kept.find(part);
        }
    }
    if (found != m_kept.end() && found->second.awaits == awaits) return found->second;
    const bool dropped = found != m_kept.end() && found->second.awaits == Awaits::Recompute;
    switch (awaits) {
    case Awaits::Recompute:
        throw std::logic_error(nameOf(part) + ": recomputation without a forward that dropped layers");
    case Awaits::InputGrad:
        throw std::logic_error(nameOf(part) + (dropped ? ": input gradient before its recomputation"
                                                       : ": input gradient without a forward"));
    case Awaits::WeightGrad: break;
    }
    throw std::logic_error(nameOf(part) + ": weight gradient without an input gradient");
}

Buffer LayerStage::inputGrad(const Part& part, Buffer outputGrad)
{
    const FlushDenormals flush;
    const int microbatch = part.microbatch;
    const std::size_t size = m_context.stream(shapeOf(part));
    if (!m_head && outputGrad.size() != m_math->words(size))
        throw std::invalid_argument("stage " + std::to_string(m_slice.stage) + ": output gradient of " +
                                    std::to_string(outputGrad.size()) + " floats, " +
                                    std::to_string(m_math->words(size)) + " needed");
    const auto chain = part.slice < 0 ? m_chains.end() : m_chains.find({microbatch, part.half});
    if (chain != m_chains.end()) {
        if (chain->second.forwarded < sliceCount())
            throw std::logic_error(nameOf(part) + ": input gradient before the forward of slice " +
                                   std::to_string(chain->second.forwarded));
        if (part.slice + 1 != chain->second.unfinished)
            throw std::logic_error(nameOf(part) + ": input gradient out of order; slice " +
                                   std::to_string(chain->second.unfinished - 1) + " is next");
    }
    KeptPart& now = kept(part, Awaits::InputGrad);
    Buffer grad;
    m_timer.begin(isWhole(part));
    if (m_head) {
        grad = m_head->inputGrad(now.head, now.shape, m_lossScale);
        m_timer.lap(OpKind::InputGrad, 1 + m_blocks.size());
    } else {
        grad = std::move(outputGrad);
        grad.retag(m_context.tag(MemoryCategory::Activations, microbatch));
    }
    for (std::size_t i = m_blocks.size(); i-- > m_from;) {
        grad = m_blocks[i].inputGrad(now.blocks[i], now.shape, earlierSlices(part, i), std::move(grad));
        m_timer.lap(OpKind::InputGrad, 1 + i);
    }
    now.awaits = Awaits::WeightGrad;
    if (chain != m_chains.end() && --chain->second.unfinished == 0) m_chains.erase(chain);
    if (m_from > 0 || (m_embedding && m_cut)) return {}; // nobody below goes back
    if (m_embedding) {
        now.embedding.outputGrad = std::move(grad);
        return {};
    }
    grad.retag(m_context.tag(MemoryCategory::Communication, microbatch));
    return grad;
}

void LayerStage::weightGrad(const Part& part) { weightGradOver({&part, 1}); }

std::vector<Part> LayerStage::keptParts(std::span<const Part> parts)
{
    if (parts.empty())
        throw std::logic_error("stage " + std::to_string(m_slice.stage) + ": weight gradient over no part");
    std::vector<Part> there;
    for (const Part& part : parts) {
        const Part first(part.microbatch, part.slice, 1);
        const Part second(part.microbatch, part.slice, 2);
        if (part.half == 0 && !m_kept.contains(part) && m_kept.contains(first) && m_kept.contains(second)) {
            there.push_back(first);
            there.push_back(second);
        } else {
            there.push_back(part);
        }
    }
    for (std::size_t i = 0; i < there.size(); ++i) {
        kept(there[i], Awaits::WeightGrad);
        if (std::find(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(i), there[i]) !=
            there.begin() + static_cast<std::ptrdiff_t>(i))
            throw std::logic_error(nameOf(there[i]) + ": twice in one weight gradient");
    }
    return there;
}

void LayerStage::weightGradOver(std::span<const Part> parts)
{
    const FlushDenormals flush;
    const std::vector<Part> there = keptParts(parts);
    m_parameters.needGradients();
    std::vector<KeptPart*> now;
    now.reserve(there.size());
    for (const Part& part : there) now.push_back(&m_kept.at(part));
    m_timer.begin(there.size() == 1 && isWhole(there.front()));
    if (m_head) {
        std::vector<Pending<Head::Saved>> pending;
        pending.reserve(now.size());
        for (KeptPart* part : now) pending.push_back({part->shape, &part->head});
        m_head->weightGrad(pending, m_lossScale);
        m_timer.lap(OpKind::WeightGrad, 1 + m_blocks.size());
    }
    const double meanRows = m_context.microbatchRows() / static_cast<double>(m_lossScale);
    FactorPart* factors = nullptr;
    const Part& first = there.front();
    const bool inputs = !m_added.contains({first, true}), gradients = !m_added.contains({first, false});
    if (m_keepsFactors && (inputs || gradients)) {
        factors = &m_factors[first];
        *factors = {now.front()->shape, std::vector<Block::FactorRows>(m_blocks.size()), inputs, gradients};
    }
    std::vector<Pending<Block::Saved>> pending(now.size());
    for (std::size_t i = m_blocks.size(); i-- > m_from;) {
        for (std::size_t k = 0; k < now.size(); ++k) pending[k] = {now[k]->shape, &now[k]->blocks[i]};
        m_blocks[i].weightGrad(pending, meanRows, factors != nullptr ? &factors->blocks[i] : nullptr,
                               factors != nullptr && factors->inputs, factors != nullptr && factors->gradients);
        m_timer.lap(OpKind::WeightGrad, 1 + i);
    }
    if (embeddingLearns()) {
        for (KeptPart* part : now) m_embedding->weightGrad(part->embedding, part->shape);
        m_timer.lap(OpKind::WeightGrad, 0);
    }
    for (const Part& part : there) m_kept.erase(part);
}

void LayerStage::factorsInOps(int pieces) { m_parameters.factorsInOps(pieces); }

void LayerStage::keepFactorInputs(bool on)
{
    m_keepsFactors = on;
    m_added.clear();
}

void LayerStage::addFactors(const Part& part, bool inputs, int refresh)
{
    const FlushDenormals flush;
    const double meanRows = m_context.microbatchRows() / static_cast<double>(m_lossScale);
    const auto waits = m_factors.find(part); // where the other half waits, this one may be of the next cycle
    if (waits != m_factors.end() && (inputs ? waits->second.inputs : waits->second.gradients)) {
        FactorPart& there = waits->second;
        for (std::size_t i = m_from; i < m_blocks.size(); ++i)
            m_blocks[i].addFactors(there.blocks[i], there.shape, inputs, meanRows, refresh);
        (inputs ? there.inputs : there.gradients) = false;
        if (!there.inputs && !there.gradients) m_factors.erase(waits);
        return;
    }
    const auto found = m_kept.find(part);
    if (!m_keepsFactors || found == m_kept.end()) return;
    const KeptPart& now = found->second;
    const bool back = now.awaits == Awaits::WeightGrad;
    if (now.awaits == Awaits::Recompute || (!inputs && !back)) return;
    for (std::size_t i = m_from; i < m_blocks.size(); ++i)
        m_blocks[i].addFactors(now.blocks[i], now.shape, inputs, back, meanRows, refresh);
    m_added.insert({part, inputs});
}

void LayerStage::invertFactors(int piece, int refresh) { m_parameters.invertFactors(piece, refresh); }

std::vector<Buffer*> LayerStage::keptBuffers(const Part& part)
{
    const auto found = m_kept.find(part);
    return found == m_kept.end() ? std::vector<Buffer*>() : found->second.buffers(part.slice < 0);
}

void LayerStage::dropMicrobatches()
{
    m_kept.clear();
    m_factors.clear();
    m_chains.clear();
}

} // namespace stagewright::layers
