#include "engine/cuda/device_math.h"

#include <cmath>
#include <vector>

#include "engine/cuda/column_sums.h"

namespace stagewright::cuda {

namespace {

using namespace layers;

constexpr int flashWidth = 128; // of a head, at most
constexpr std::size_t slotsPerBlock = 256;

void gemm(int kind, int rows, int columns, int depth, StagewrightGemm& p)
{
    p = {};
    p.kind = kind;
    p.rows = rows;
    p.columns = columns;
    p.depth = depth;
    p.alpha = 1.0F;
    p.batches = 1;
}

class DeviceMath final : public LayerMath {
public:
    DeviceMath(DeviceMemory& memory, Allocator& allocator, int stage, int flashFrom)
        : m_memory(memory), m_table(memory.table()), m_queue(memory.queue()), m_allocator(allocator),
          m_tag(workspaceTag(stage)), m_flashFrom(flashFrom)
    {
    }

    int elementBytes() const override { return m_memory.request().bf16 != 0 ? 2 : 4; }

    void layerNorm(int rows, int width, Elements x, ConstElements bias, ConstElements gamma, ConstElements beta,
                   Elements normal, float* deviation, Elements out) override
    {
        StagewrightNorm n{};
        n.rows = rows;
        n.width = width;
        n.x = x;
        n.bias = bias;
        n.gamma = gamma;
        n.beta = beta;
        n.normal = normal;
        n.deviation = deviation;
        n.out = out;
        done(m_table.norm(m_queue, &n));
    }
    void scaleShift(int rows, int width, ConstElements normal, ConstElements gamma, ConstElements beta,
                    Elements out) override
    {
        StagewrightNorm n{};
        n.rows = rows;
        n.width = width;
        n.normal = const_cast<void*>(normal.data); // read only here
        n.gamma = gamma;
        n.beta = beta;
        n.out = out;
        done(m_table.scaleShift(m_queue, &n));
    }
    void layerNormBackward(int rows, int width, ConstElements outGrad, ConstElements normal, const float* deviation,
                           ConstElements gamma, ConstElements residual, Elements inputGrad,
                           const ColumnSums& sums) override
    {
        StagewrightNorm n{};
        n.rows = rows;
        n.width = width;
        n.outGrad = outGrad;
        n.normal = const_cast<void*>(normal.data); // read only here, as the deviation
        n.deviation = const_cast<float*>(deviation);
        n.gamma = gamma;
        n.residual = residual;
        n.inputGrad = inputGrad;
        n.gammaSum = sums.gamma;
        n.betaSum = sums.beta;
        n.residualSum = sums.residual;
        n.inputSum = sums.input;
        const Buffer partial = partialSums<NormRows>(rows, width);
        n.partial = partial.data();
        done(m_table.normBackward(m_queue, &n));
    }

    void linear(int rows, int out, int in, ConstElements x, ConstElements weight, ConstElements bias,
                Elements y) override
    {
        StagewrightGemm p{};
        forwardProduct(p, rows, out, in, x, weight, y);
        p.finish = STAGEWRIGHT_BIAS;
        p.bias = bias;
        done(m_table.multiply(m_queue, &p));
    }
    void linearAdd(int rows, int out, int in, ConstElements x, ConstElements weight, Elements y) override
    {
        StagewrightGemm p{};
        forwardProduct(p, rows, out, in, x, weight, y);
        p.beta = 1.0F;
        done(m_table.multiply(m_queue, &p));
    }
    void linearBare(int rows, int out, int in, ConstElements x, ConstElements weight, Elements y) override
    {
        StagewrightGemm p{};
        forwardProduct(p, rows, out, in, x, weight, y);
        done(m_table.multiply(m_queue, &p));
    }
    void linearInputGrad(int rows, int out, int in, float alpha, ConstElements dy, ConstElements weight,
                         Elements dx) override
    {
        StagewrightGemm p{};
        gemm(STAGEWRIGHT_A_B, rows, in, out, p);
        place(p, dy, out, weight, in, dx, in);
        p.alpha = alpha;
        done(m_table.multiply(m_queue, &p));
    }
    void linearWeightGrad(int rows, int out, int in, float alpha, ConstElements dy, ConstElements x,
                          float* gradient) override
    {
        StagewrightGemm p{};
        gemm(STAGEWRIGHT_AT_B, out, in, rows, p);
        place(p, dy, out, x, in, gradient, in);
        p.alpha = alpha;
        p.beta = 1.0F;
        p.floats = 1;
        done(m_table.multiply(m_queue, &p));
    }

    bool expandsInOne() const override { return true; }
    void expand(int rows, int out, int in, ConstElements x, ConstElements weight, ConstElements bias, Elements hidden,
                Elements activation) override
    {
        StagewrightGemm p{};
        forwardProduct(p, rows, out, in, x, weight, activation ? activation : hidden);
        p.finish = activation ? STAGEWRIGHT_GELU : STAGEWRIGHT_BIAS;
        p.bias = bias;
        p.aux = activation ? hidden.data : nullptr;
        done(m_table.multiply(m_queue, &p));
    }
    void activate(int, int, ConstElements, ConstElements, Elements) override {}
    void geluInputGrad(int rows, int wide, int width, ConstElements outputGrad, ConstElements contract, ConstElements,
                       Elements hidden, Elements hiddenGrad, float* biasSums) override
    {
        StagewrightGemm p{};
        gemm(STAGEWRIGHT_A_B, rows, wide, width, p);
        place(p, outputGrad, width, contract, wide, hiddenGrad, wide);
        done(m_table.multiply(m_queue, &p));
        const Buffer partial = partialSums<GeluRows>(rows, wide);
        done(m_table.geluGrad(m_queue, rows, wide, hidden, hiddenGrad, biasSums, partial.data()));
    }

    std::size_t keptByAttention(const AttentionShape& shape) const override
    {
        if (isFlash(shape)) return rowsOf(shape);
        return static_cast<std::size_t>(shape.batch) * sampleFloats(shape);
    }
    std::size_t attentionWorkspace(const AttentionShape& shape) const override
    {
        return isFlash(shape) ? rowsOf(shape) : sampleFloats(shape);
    }

    void attentionForward(const AttentionShape& shape, ConstElements query, int queryStride,
                          std::span<const KeySegment> segments, float* kept, Elements out) override
    {
        if (isFlash(shape)) {
            StagewrightFlash f = flashOf(shape, query, queryStride, segments.front(), kept, out);
            done(m_table.flash(m_queue, &f));
            return;
        }
        const float scale = 1.0F / std::sqrt(static_cast<float>(shape.headWidth()));
        for (int sample = 0; sample < shape.batch; ++sample) {
            const Elements p{kept + static_cast<std::size_t>(sample) * sampleFloats(shape)};
            const ConstElements q = ofSample(query, sample, shape.tokens, queryStride);
            const Elements o = ofSample(out, sample, shape.tokens, shape.hidden);
            eachSegment(segments, [&](const KeySegment& s, int first, bool) {
                scores(shape, q, queryStride, s, sample, scale, at(p, static_cast<std::size_t>(first)));
            });
            softmax(shape, p, {});
            eachSegment(segments, [&](const KeySegment& s, int first, bool begins) {
                StagewrightGemm m{};
                gemm(STAGEWRIGHT_A_B, shape.tokens, shape.headWidth(), s.tokens, m);
                place(m, at(p, static_cast<std::size_t>(first)), keysOf(shape),
                      ofSample(s.value, sample, s.tokens, s.stride), s.stride, o, shape.hidden);
                heads(shape, m, blockOf(shape), shape.headWidth(), shape.headWidth());
                m.beta = begins ? 0.0F : 1.0F;
                done(m_table.multiply(m_queue, &m));
            });
        }
    }

    void attentionBackward(const AttentionShape& shape, ConstElements query, int queryStride,
                           std::span<const KeySegment> segments, const float* kept, ConstElements out,
                           ConstElements outGrad, Elements queryGrad, std::span<const KeyGradSegment> gradients,
                           float* workspace) override
    {
        if (isFlash(shape)) {
            StagewrightFlash f = flashOf(shape, query, queryStride, segments.front(), const_cast<float*>(kept),
                                         Elements{const_cast<void*>(out.data)});
            f.outGrad = outGrad;
            f.queryGrad = queryGrad;
            f.keyGrad = gradients.front().key;
            f.valueGrad = gradients.front().value;
            f.addKeys = gradients.front().empty ? 0 : 1;
            f.inner = workspace;
            done(m_table.flashBackward(m_queue, &f));
            return;
        }
        const int width = shape.headWidth();
        const float scale = 1.0F / std::sqrt(static_cast<float>(width));
        const Elements inner{workspace};
        for (int sample = 0; sample < shape.batch; ++sample) {
            const ConstElements p{kept + static_cast<std::size_t>(sample) * sampleFloats(shape)};
            const ConstElements q = ofSample(query, sample, shape.tokens, queryStride);
            const Elements dq = ofSample(queryGrad, sample, shape.tokens, queryStride);
            const ConstElements grad = ofSample(outGrad, sample, shape.tokens, shape.hidden);
            std::size_t segment = 0;
            eachSegment(segments, [&](const KeySegment& s, int first, bool) {
                const KeyGradSegment& to = gradients[segment++];
                StagewrightGemm m{};
                gemm(STAGEWRIGHT_AT_B, s.tokens, width, shape.tokens, m);
                place(m, at(p, static_cast<std::size_t>(first)), keysOf(shape), grad, shape.hidden,
                      ofSample(to.value, sample, s.tokens, to.stride), to.stride);
                heads(shape, m, blockOf(shape), width, width);
                m.beta = to.empty ? 0.0F : 1.0F;
                done(m_table.multiply(m_queue, &m));
                KeySegment values = s;
                values.key = s.value;
                scores(shape, grad, shape.hidden, values, sample, 1.0F, at(inner, static_cast<std::size_t>(first)));
            });
            softmax(shape, Elements{const_cast<void*>(p.data)}, inner);
            segment = 0;
            eachSegment(segments, [&](const KeySegment& s, int first, bool begins) {
                const KeyGradSegment& to = gradients[segment++];
                const ConstElements part = at(inner, static_cast<std::size_t>(first));
                StagewrightGemm m{};
                gemm(STAGEWRIGHT_A_B, shape.tokens, width, s.tokens, m);
                place(m, part, keysOf(shape), ofSample(s.key, sample, s.tokens, s.stride), s.stride, dq, queryStride);
                heads(shape, m, blockOf(shape), width, width);
                m.alpha = scale;
                m.beta = begins ? 0.0F : 1.0F;
                done(m_table.multiply(m_queue, &m));
                gemm(STAGEWRIGHT_AT_B, s.tokens, width, shape.tokens, m);
                place(m, part, keysOf(shape), q, queryStride, ofSample(to.key, sample, s.tokens, to.stride), to.stride);
                heads(shape, m, blockOf(shape), width, width);
                m.alpha = scale;
                m.beta = to.empty ? 0.0F : 1.0F;
                done(m_table.multiply(m_queue, &m));
            });
        }
    }

    void embed(int batch, int tokens, int past, int width, const std::uint8_t* bytes, ConstElements tokenTable,
               ConstElements positionTable, Elements out) override
    {
        StagewrightEmbedding e{};
        e.batch = batch;
        e.tokens = tokens;
        e.past = past;
        e.width = width;
        e.bytes = bytes;
        e.tokenTable = tokenTable;
        e.positionTable = positionTable;
        e.out = out;
        done(m_table.embed(m_queue, &e));
    }
    void embedWeightGrad(int batch, int tokens, int past, int width, int vocabulary, const std::uint8_t* bytes,
                         ConstElements outGrad, float* tokenGrad, float* positionGrad) override
    {
        StagewrightEmbedding e{};
        e.batch = batch;
        e.tokens = tokens;
        e.past = past;
        e.width = width;
        e.vocabulary = vocabulary;
        e.bytes = bytes;
        e.outGrad = outGrad;
        e.tokenGrad = tokenGrad;
        e.positionGrad = positionGrad;
        done(m_table.embedGrad(m_queue, &e));
    }
    void crossEntropy(int rows, int vocabulary, Elements logits, const std::uint8_t* targets, LossCell& cell) override
    {
        if (!cell.slot) cell.slot = newSlot();
        m_fetched.clear();
        const Buffer rowLoss = m_allocator.take(static_cast<std::size_t>(rows), m_tag);
        done(m_table.crossEntropy(m_queue, rows, vocabulary, logits, targets, rowLoss.data(),
                                  static_cast<double*>(cell.slot)));
    }
    // All of a step's are fetched with the first that is wanted.
    double loss(const LossCell& cell) override
    {
        if (m_fetched.empty()) fetchLosses();
        const auto* slot = static_cast<const double*>(cell.slot);
        for (std::size_t block = 0;; ++block) {
            const auto* first = reinterpret_cast<const double*>(m_slots[block].data());
            if (slot >= first && slot < first + slotsPerBlock)
                return m_fetched[block * slotsPerBlock + static_cast<std::size_t>(slot - first)];
        }
    }

    void columnSums(int rows, int width, ConstElements x, float* sums) override
    {
        const Buffer partial = partialSums<PlainRows>(rows, width);
        done(m_table.columnSums(m_queue, rows, width, x, sums, partial.data()));
    }
    void add(std::span<const AddedFloats> sums) override
    {
        std::vector<StagewrightTensor> list;
        for (const AddedFloats& one : sums) list.push_back({one.count, one.sum, one.x, nullptr, nullptr, nullptr});
        done(m_table.add(m_queue, list.data(), static_cast<int>(list.size())));
    }
    void scale(std::size_t count, float factor, float* x) override
    {
        StagewrightStep s{};
        s.gradientScale = factor;
        const StagewrightTensor tensor{count, x, nullptr, nullptr, nullptr, nullptr};
        done(m_table.step(m_queue, STAGEWRIGHT_SCALE, &s, &tensor, 1));
    }
    double squareSum(std::span<const std::span<const float>> tensors) override
    {
        const Buffer partial = m_allocator.take((STAGEWRIGHT_PARTIALS + 1) * sizeof(double) / sizeof(float), m_tag);
        auto* doubles = reinterpret_cast<double*>(partial.data());
        double* sum = doubles + STAGEWRIGHT_PARTIALS;
        std::vector<StagewrightTensor> list;
        for (const std::span<const float> tensor : tensors)
            list.push_back({tensor.size(), nullptr, tensor.data(), nullptr, nullptr, nullptr});
        if (list.empty()) return 0;
        done(m_table.squareSum(m_queue, list.data(), static_cast<int>(list.size()), doubles, sum));
        return fetch(sum);
    }

    void adamW(std::span<const TensorStep> tensors, const AdamWStep& step) override
    {
        stepOn(STAGEWRIGHT_ADAMW, tensors, stepOf(step));
    }
    void undoAdamW(std::span<const TensorStep> tensors, const AdamWStep& step) override
    {
        stepOn(STAGEWRIGHT_UNDO_ADAMW, tensors, stepOf(step));
    }
    void sgd(std::span<const TensorStep> tensors, const SgdStep& step) override
    {
        stepOn(STAGEWRIGHT_SGD, tensors, stepOf(step));
    }
    void undoSgd(std::span<const TensorStep> tensors, const SgdStep& step) override
    {
        stepOn(STAGEWRIGHT_UNDO_SGD, tensors, stepOf(step));
    }
    void predict(std::size_t count, const float* value, const float* moment1, const float* moment2, float reach,
                 const AdamWStep& step, Elements out) override
    {
        StagewrightStep s{};
        // Read only here: value and moments.
        const StagewrightTensor tensor{
            count, const_cast<float*>(value), nullptr, const_cast<float*>(moment1), const_cast<float*>(moment2), out};
        s.correction1 = step.correction1;
        s.correction2 = step.correction2;
        s.epsilon = step.epsilon;
        s.reach = reach;
        done(m_table.step(m_queue, STAGEWRIGHT_PREDICT, &s, &tensor, 1));
    }
    void toElements(std::size_t count, const float* value, Elements elements) override
    {
        done(m_table.toElements(m_queue, count, value, elements));
    }

private:
    void done(int status) const { m_memory.done(status); }

    // Workspace of sums over rows; none where one launch adds them up. The elements' type does not matter.
    template <template <typename> typename Rows>
    Buffer partialSums(int rows, int width) const
    {
        const std::size_t count = partFloats<Rows<Fp32>>(rows, width);
        return count == 0 ? Buffer() : m_allocator.take(count, m_tag);
    }

    static void place(StagewrightGemm& p, const void* a, int aStride, const void* b, int bStride, void* c, int cStride)
    {
        p.a = a;
        p.aStride = aStride;
        p.b = b;
        p.bStride = bStride;
        p.c = c;
        p.cStride = cStride;
    }
    static void forwardProduct(StagewrightGemm& p, int rows, int out, int in, ConstElements x, ConstElements weight,
                               Elements y)
    {
        gemm(STAGEWRIGHT_A_BT, rows, out, in, p);
        place(p, x, in, weight, in, y, out);
    }

    bool isFlash(const AttentionShape& shape) const
    {
        return shape.past == 0 && shape.tokens >= m_flashFrom && shape.headWidth() <= flashWidth;
    }
    static std::size_t rowsOf(const AttentionShape& shape)
    {
        return static_cast<std::size_t>(shape.rows()) * static_cast<std::size_t>(shape.heads);
    }
    static StagewrightFlash flashOf(const AttentionShape& shape, ConstElements query, int stride,
                                    const KeySegment& keys, float* sums, Elements out)
    {
        StagewrightFlash f{};
        f.batch = shape.batch;
        f.heads = shape.heads;
        f.tokens = shape.tokens;
        f.width = shape.headWidth();
        f.stride = stride;
        f.query = query;
        f.key = keys.key;
        f.value = keys.value;
        f.sums = sums;
        f.out = out;
        return f;
    }

    // A sample's probabilities, (heads, tokens, keys), begin at a cache line.
    static int keysOf(const AttentionShape& shape) { return shape.past + shape.tokens; }
    static std::int64_t blockOf(const AttentionShape& shape) { return std::int64_t{shape.tokens} * keysOf(shape); }
    std::size_t sampleFloats(const AttentionShape& shape) const
    {
        constexpr std::size_t line = 16;
        return (words(static_cast<std::size_t>(blockOf(shape)) * static_cast<std::size_t>(shape.heads)) + line - 1) /
               line * line;
    }
    template <typename View>
    View ofSample(View base, int sample, int tokens, int stride) const
    {
        return at(base, static_cast<std::size_t>(sample) * static_cast<std::size_t>(tokens) *
                            static_cast<std::size_t>(stride));
    }
    // f(segment, its first key, whether it is the first)
    template <typename Visit>
    static void eachSegment(std::span<const KeySegment> segments, Visit&& visit)
    {
        int first = 0;
        for (const KeySegment& segment : segments) {
            visit(segment, first, first == 0);
            first += segment.tokens;
        }
    }
    static void heads(const AttentionShape& shape, StagewrightGemm& p, std::int64_t a, std::int64_t b, std::int64_t c)
    {
        p.batches = shape.heads;
        p.aBatch = a;
        p.bBatch = b;
        p.cBatch = c;
    }
    // (tokens, segment's keys) of every head = scale · x · keyᵀ
    void scores(const AttentionShape& shape, ConstElements x, int stride, const KeySegment& s, int sample, float scale,
                Elements to) const
    {
        StagewrightGemm m{};
        gemm(STAGEWRIGHT_A_BT, shape.tokens, s.tokens, shape.headWidth(), m);
        place(m, x, stride, ofSample(s.key, sample, s.tokens, s.stride), s.stride, to, keysOf(shape));
        heads(shape, m, shape.headWidth(), shape.headWidth(), blockOf(shape));
        m.alpha = scale;
        done(m_table.multiply(m_queue, &m));
    }
    void softmax(const AttentionShape& shape, Elements scores, Elements gradient) const
    {
        StagewrightSoftmax s{};
        s.blocks = shape.heads;
        s.rows = shape.tokens;
        s.columns = keysOf(shape);
        s.past = shape.past;
        s.blockStride = blockOf(shape);
        s.scores = scores;
        s.gradient = gradient;
        done(gradient ? m_table.softmaxBackward(m_queue, &s) : m_table.softmax(m_queue, &s));
    }

    static StagewrightStep stepOf(const AdamWStep& step)
    {
        StagewrightStep s{};
        s.learningRate = step.learningRate;
        s.beta1 = step.beta1;
        s.beta2 = step.beta2;
        s.correction1 = step.correction1;
        s.correction2 = step.correction2;
        s.epsilon = step.epsilon;
        s.weightDecay = step.weightDecay;
        s.gradientScale = step.gradientScale;
        return s;
    }
    static StagewrightStep stepOf(const SgdStep& step)
    {
        StagewrightStep s{};
        s.learningRate = step.learningRate;
        s.momentum = step.momentum;
        s.weightDecay = step.weightDecay;
        s.gradientScale = step.gradientScale;
        return s;
    }
    void stepOn(int kind, std::span<const TensorStep> tensors, const StagewrightStep& step) const
    {
        std::vector<StagewrightTensor> list;
        for (const TensorStep& t : tensors)
            list.push_back({t.count, t.value, t.gradient, t.moment1, t.moment2, t.used});
        done(m_table.step(m_queue, kind, &step, list.data(), static_cast<int>(list.size())));
    }

    double fetch(const double* number) const
    {
        double value = 0;
        m_memory.download(&value, number, sizeof value);
        return value;
    }
    void fetchLosses()
    {
        m_fetched.resize(m_slots.size() * slotsPerBlock);
        for (std::size_t block = 0; block < m_slots.size(); ++block) {
            const std::size_t used = block + 1 < m_slots.size() ? slotsPerBlock : m_slotsUsed;
            m_memory.download(&m_fetched[block * slotsPerBlock], m_slots[block].data(), used * sizeof(double));
        }
    }
    void* newSlot()
    {
        if (m_slots.empty() || m_slotsUsed == slotsPerBlock) {
            m_slots.push_back(m_allocator.take(slotsPerBlock * sizeof(double) / sizeof(float), m_tag));
            m_slotsUsed = 0;
        }
        return reinterpret_cast<double*>(m_slots.back().data()) + m_slotsUsed++;
    }

    DeviceMemory& m_memory;
    const StagewrightCudaTable& m_table;
    StagewrightQueue* m_queue;
    Allocator& m_allocator;
    MemoryTag m_tag;
    int m_flashFrom;
    std::vector<Buffer> m_slots;
    std::vector<double> m_fetched; // all slots' numbers; empty: some may be newer on the device
    std::size_t m_slotsUsed = 0;
};

} // namespace

std::unique_ptr<LayerMath> makeDeviceMath(DeviceMemory& memory, Allocator& allocator, int stage, int flashFrom)
{
    return std::make_unique<DeviceMath>(memory, allocator, stage, flashFrom);
}

} // namespace stagewright::cuda
