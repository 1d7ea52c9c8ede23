// A CUDA module without CUDA: the same table as libstagewright_cuda.so over the host's memory, with the kernels' own
// bodies. Requests are not done until somebody must see them, and then only what they wait for: as late as the marks
// allow. Every range that work reads or writes is compared with what other lanes did to it: work that no mark puts in
// order fails at once, naming both. Times are synthetic: a microsecond per piece of work and a nanosecond for every 16
// bytes, in order of lanes and marks, and not before it was requested.
//   STAGEWRIGHT_FAKE_DEVICES   how many devices [1]     STAGEWRIGHT_FAKE_MEMORY   bytes of each [1 GiB]
//   STAGEWRIGHT_FAKE_NCCL      absent: there is none; broken: the connection fails after ten messages
// Ends of a communicator in several processes meet in shared memory: a message has gone only when both ends have been posted
// (fake_communicator.cpp).
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/cuda/column_sums.h"
#include "engine/cuda/gemm_rules.h"
#include "tests/support/emulated_flash.h"
#include "tests/support/fake_device.h"

namespace {

using namespace stagewright::cuda;
using namespace stagewright::fake;

template <typename Work>
int withElements(const StagewrightQueue* queue, Work&& work)
{
    return queue->request.bf16 != 0 ? work(Bf16{}) : work(Fp32{});
}
std::size_t width(const StagewrightQueue* queue) { return queue->request.bf16 != 0 ? 2 : 4; }
// A launch of x · y · z blocks, as CUDA allows it (compute capability 8.0 and later): else it fails.
constexpr std::size_t mostBlocksX = 0x7fffffff, mostBlocksYZ = 65535;
std::string gridFault(const char* what, std::size_t x, std::size_t y = 1, std::size_t z = 1)
{
    if (x >= 1 && y >= 1 && z >= 1 && x <= mostBlocksX && y <= mostBlocksYZ && z <= mostBlocksYZ) return {};
    return std::string(what) + ": a launch of " + std::to_string(x) + " x " + std::to_string(y) + " x " +
           std::to_string(z) + " blocks, at least one and at most " + std::to_string(mostBlocksX) + " x " +
           std::to_string(mostBlocksYZ) + " x " + std::to_string(mostBlocksYZ) + " are possible";
}
template <typename... Sizes>
std::size_t times(Sizes... sizes)
{
    return (static_cast<std::size_t>(sizes) * ...);
}
template <typename Rows>
std::string columnsFault(const char* what, int rows, int columns)
{
    return gridFault(what, (times(columns) + columnTile - 1) / columnTile, times(columnParts<Rows>(rows, columns)));
}
std::size_t flatBlocks(std::size_t count) { return (count + 255) / 256; } // a thread a number

template <typename E>
void multiplyNow(const StagewrightGemm& p, bool fused)
{
    for (int batch = 0; batch < p.batches; ++batch) {
        const auto* a = row<E>(p.a, static_cast<std::size_t>(batch * p.aBatch));
        const auto* b = row<E>(p.b, static_cast<std::size_t>(batch * p.bBatch));
        for (int r = 0; r < p.rows; ++r) {
            for (int c = 0; c < p.columns; ++c) {
                float sum = 0;
                for (int k = 0; k < p.depth; ++k) {
                    const float x = p.kind == STAGEWRIGHT_AT_B ? E::load(a, times(k, p.aStride) + r)
                                                               : E::load(a, times(r, p.aStride) + k);
                    const float y = p.kind == STAGEWRIGHT_A_BT ? E::load(b, times(c, p.bStride) + k)
                                                               : E::load(b, times(k, p.bStride) + c);
                    sum += x * y;
                }
                sum *= p.alpha;
                const std::size_t at = times(r, p.cStride) + c;
                const std::size_t dense = times(r, p.columns) + c;
                if (!fused) { // a separate kernel reads what the GEMM left
                    typename E::Stored stored;
                    E::store(&stored, 0, sum);
                    sum = E::load(&stored, 0);
                }
                if (p.finish == STAGEWRIGHT_BIAS || p.finish == STAGEWRIGHT_GELU) sum += E::load(row<E>(p.bias, 0), c);
                if (p.finish == STAGEWRIGHT_GELU) {
                    E::store(row<E>(p.aux, 0), dense, sum);
                    sum = geluOf<E>(sum);
                }
                if (p.floats != 0) {
                    auto* to = static_cast<float*>(p.c) + batch * p.cBatch;
                    to[at] = p.beta == 0.0F ? sum : to[at] * p.beta + sum;
                } else {
                    auto* to = row<E>(p.c, static_cast<std::size_t>(batch * p.cBatch));
                    E::store(to, at, p.beta == 0.0F ? sum : E::load(to, at) * p.beta + sum);
                }
            }
        }
    }
}
int multiply(StagewrightQueue* queue, const StagewrightGemm* gemm)
{
    if (std::string fault = gemmFault(*gemm, queue->request.bf16 != 0); !fault.empty()) return failed(std::move(fault));
    const StagewrightGemm p = *gemm;
    const auto bytes = [&](std::int64_t batch, int rows, std::int64_t stride, int columns, std::size_t element) {
        return (times(p.batches - 1, batch) + times(rows - 1, stride) + static_cast<std::size_t>(columns)) * element;
    };
    const std::size_t e = width(queue);
    const bool aUp = p.kind == STAGEWRIGHT_AT_B;
    const bool bUp = p.kind == STAGEWRIGHT_A_BT;
    const Touched c{p.c, bytes(p.cBatch, p.rows, p.cStride, p.columns, p.floats != 0 ? 4 : e), true};
    const bool fused = endIsFused(p, queue->request.bf16 != 0, queue->request.tf32 != 0);
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "GEMM",
                   {{p.a, bytes(p.aBatch, aUp ? p.depth : p.rows, p.aStride, aUp ? p.rows : p.depth, e), false},
                    {p.b, bytes(p.bBatch, bUp ? p.columns : p.depth, p.bStride, bUp ? p.depth : p.columns, e), false},
                    {p.bias, times(p.columns, e), false},
                    {p.aux, times(p.rows, p.columns, e), true},
                    c},
                   [p, fused] { multiplyNow<decltype(element)>(p, fused); });
    });
}

int norm(StagewrightQueue* queue, const StagewrightNorm* norm)
{
    if (std::string fault = gridFault("layer norm", times(norm->rows)); !fault.empty()) return failed(std::move(fault));
    const StagewrightNorm n = *norm;
    const std::size_t all = times(n.rows, n.width, width(queue));
    const std::size_t one = times(n.width, width(queue));
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "layer norm",
                   {{n.x, all, n.bias != nullptr},
                    {n.bias, one, false},
                    {n.gamma, one, false},
                    {n.beta, one, false},
                    {n.normal, all, true},
                    {n.deviation, times(n.rows, 4), true},
                    {n.out, all, true}},
                   [n] {
                       using E = decltype(element);
                       byHeld<E>(normInPieces<E>(n), n.width, 1, [&](auto held) {
                           for (int r = 0; r < n.rows; ++r)
                               normRow<E, decltype(held)::value>(OneLane{}, n, static_cast<std::size_t>(r));
                       });
                   });
    });
}
int scaleShift(StagewrightQueue* queue, const StagewrightNorm* norm)
{
    if (std::string fault = gridFault("scale and shift", times(norm->rows)); !fault.empty())
        return failed(std::move(fault));
    const StagewrightNorm n = *norm;
    const std::size_t all = times(n.rows, n.width, width(queue));
    const std::size_t one = times(n.width, width(queue));
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "scale and shift",
                   {{n.normal, all, false}, {n.gamma, one, false}, {n.beta, one, false}, {n.out, all, true}}, [n] {
                       using E = decltype(element);
                       for (std::size_t r = 0; r < times(n.rows); ++r)
                           scaleShiftsInPieces<E>(n) ? scaleShiftRow<E, E::wide>(OneLane{}, n, r)
                                                     : scaleShiftRow<E, 1>(OneLane{}, n, r);
                   });
    });
}
int normBackward(StagewrightQueue* queue, const StagewrightNorm* norm)
{
    if (std::string fault = gridFault("layer norm backward", times(norm->rows)); !fault.empty())
        return failed(std::move(fault));
    const StagewrightNorm n = *norm;
    const std::size_t all = times(n.rows, n.width, width(queue));
    const std::size_t floats = times(n.width, 4);
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "layer norm backward",
                   {{n.outGrad, all, false},
                    {n.normal, all, false},
                    {n.deviation, times(n.rows, 4), false},
                    {n.gamma, times(n.width, width(queue)), false},
                    {n.residual, all, false},
                    {n.inputGrad, all, true},
                    {n.gammaSum, floats, true},
                    {n.betaSum, floats, true},
                    {n.residualSum, floats, true},
                    {n.inputSum, floats, true},
                    {n.partial, 4 * partFloats<NormRows<decltype(element)>>(n.rows, n.width), true}},
                   [n] {
                       using E = decltype(element);
                       byHeld<E>(normBackwardInPieces<E>(n), n.width, 1, [&](auto held) {
                           for (int r = 0; r < n.rows; ++r)
                               normBackwardRow<E, decltype(held)::value>(OneLane{}, n, static_cast<std::size_t>(r));
                       });
                       sumColumns(NormRows<E>{n}, n.rows);
                   });
    });
}
int geluGrad(StagewrightQueue* queue, int32_t rows, int32_t columns, void* hidden, void* gradient, float* sums,
             float* partial)
{
    const std::size_t bytes = times(rows, columns, width(queue));
    return withElements(queue, [&](auto element) {
        using Rows = GeluRows<decltype(element)>;
        if (std::string fault = columnsFault<Rows>("gradient of GELU", rows, columns); !fault.empty())
            return failed(std::move(fault));
        return ask(queue, 0, "gradient of GELU",
                   {{hidden, bytes, true},
                    {gradient, bytes, true},
                    {sums, times(columns, 4), true},
                    {partial, 4 * partFloats<Rows>(rows, columns), true}},
                   [=] {
                       sumColumns(Rows{hidden, gradient, columns, sums}, rows);
                   });
    });
}
template <bool Backward>
int anySoftmax(StagewrightQueue* queue, const StagewrightSoftmax* softmax)
{
    if (std::string fault = gridFault("softmax", times(softmax->rows), times(softmax->blocks)); !fault.empty())
        return failed(std::move(fault));
    const StagewrightSoftmax s = *softmax;
    const std::size_t bytes = times(s.blocks, s.blockStride, width(queue));
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, Backward ? "softmax backward" : "softmax",
                   {{s.scores, bytes, !Backward}, {s.gradient, bytes, Backward}}, [s] {
                       using E = decltype(element);
                       for (int block = 0; block < s.blocks; ++block)
                           for (int r = 0; r < s.rows; ++r)
                               if constexpr (Backward)
                                   softmaxBackwardRow<E>(OneLane{}, s, block, r);
                               else
                                   softmaxRow<E>(OneLane{}, s, block, r);
                   });
    });
}
template <typename Row>
void eachHeadRow(const StagewrightFlash& f, Row&& row)
{
    for (int sample = 0; sample < f.batch; ++sample)
        for (int head = 0; head < f.heads; ++head)
            for (int r = 0; r < f.tokens; ++r) row(sample, head, r);
}
// What the module gives to the matrix units runs through the same bodies. Work has no caller to report a fault to.
template <typename Run>
void emulated(Run&& run)
{
    try {
        run();
    } catch (const KernelFault& fault) {
        std::fprintf(stderr, "attention: %s\n", fault.what());
        std::abort();
    }
}
template <bool Backward>
int anyFlash(StagewrightQueue* queue, const StagewrightFlash* flash)
{
    if (std::string fault = gridFault("attention", times(flash->tokens), times(flash->heads), times(flash->batch));
        !fault.empty())
        return failed(std::move(fault));
    const StagewrightFlash f = *flash;
    const std::size_t e = width(queue);
    const std::size_t in = (times(f.batch * f.tokens - 1, f.stride) + times(f.heads, f.width)) * e;
    const std::size_t out = times(f.batch, f.tokens, f.heads, f.width, e);
    const std::size_t sums = times(f.batch, f.heads, f.tokens, 4);
    return withElements(queue, [&](auto element) {
        using E = decltype(element);
        const bool tiles = std::is_same_v<E, Bf16> && fitsTiles(f);
        if constexpr (Backward) {
            return ask(queue, 0, "attention backward",
                       {{f.query, in, false},
                        {f.key, in, false},
                        {f.value, in, false},
                        {f.out, out, false},
                        {f.sums, sums, false},
                        {f.outGrad, out, false},
                        {f.inner, sums, true},
                        {f.queryGrad, in, true},
                        {f.keyGrad, in, true},
                        {f.valueGrad, in, true}},
                       [f, tiles] {
                           if (tiles) return emulated([&] { emulateFlashBackward(f); });
                           eachHeadRow(f, [&](int b, int h, int r) { flashInnerRow<E>(OneLane{}, f, b, h, r); });
                           eachHeadRow(f, [&](int b, int h, int r) { flashQueryRow<E>(OneLane{}, f, b, h, r); });
                           eachHeadRow(f, [&](int b, int h, int r) { flashKeyRow<E>(OneLane{}, f, b, h, r); });
                       });
        } else {
            return ask(queue, 0, "attention",
                       {{f.query, in, false},
                        {f.key, in, false},
                        {f.value, in, false},
                        {f.out, out, true},
                        {f.sums, sums, true}},
                       [f, tiles] {
                           if (tiles) return emulated([&] { emulateFlash(f); });
                           eachHeadRow(f, [&](int b, int h, int r) { flashRow<E>(OneLane{}, f, b, h, r); });
                       });
        }
    });
}
int embed(StagewrightQueue* queue, const StagewrightEmbedding* embedding)
{
    if (std::string fault = gridFault("embedding", times(embedding->batch, embedding->tokens)); !fault.empty())
        return failed(std::move(fault));
    const StagewrightEmbedding e = *embedding;
    const std::size_t rows = times(e.batch, e.tokens);
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "embedding", {{e.bytes, rows, false}, {e.out, times(rows, e.width, width(queue)), true}},
                   [e, rows] {
                       using E = decltype(element);
                       for (int r = 0; r < static_cast<int>(rows); ++r)
                           embedsInPieces<E>(e) ? embedRow<E, E::wide>(OneLane{}, e, r)
                                                : embedRow<E, 1>(OneLane{}, e, r);
                   });
    });
}
int embedGrad(StagewrightQueue* queue, const StagewrightEmbedding* embedding)
{
    const StagewrightEmbedding e = *embedding;
    const std::size_t rows = times(e.batch, e.tokens);
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "embedding's gradient",
                   {{e.bytes, rows, false},
                    {e.outGrad, times(rows, e.width, width(queue)), false},
                    {e.tokenGrad, times(e.vocabulary, e.width, 4), true},
                    {e.positionGrad, times(e.past + e.tokens, e.width, 4), true}},
                   [e] {
                       using E = decltype(element);
                       for (int token = 0; token < e.vocabulary; ++token)
                           sumColumns(TokenRows<E>{e, token}, e.batch * e.tokens);
                       const bool pieces = positionGradsInPieces<E>(e);
                       for (std::size_t i = 0; i < times(e.tokens, e.width); i += pieces ? E::wide : 1)
                           pieces ? positionGradAt<E, E::wide>(e, i) : positionGradAt<E, 1>(e, i);
                   });
    });
}
int crossEntropy(StagewrightQueue* queue, int32_t rows, int32_t vocabulary, void* logits, const std::uint8_t* targets,
                 float* rowLoss, double* loss)
{
    if (std::string fault = gridFault("cross entropy", times(rows)); !fault.empty()) return failed(std::move(fault));
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "cross entropy",
                   {{logits, times(rows, vocabulary, width(queue)), true},
                    {targets, times(rows), false},
                    {rowLoss, times(rows, 4), true},
                    {loss, 8, true}},
                   [=] {
                       for (int r = 0; r < rows; ++r)
                           crossEntropyRow<decltype(element)>(OneLane{}, vocabulary, logits, targets[r], rowLoss,
                                                              static_cast<std::size_t>(r));
                       meanLoss(OneLane{}, rows, rowLoss, loss);
                   });
    });
}
int columnSums(StagewrightQueue* queue, int32_t rows, int32_t columns, const void* x, float* sums, float* partial)
{
    return withElements(queue, [&](auto element) {
        using Rows = PlainRows<decltype(element)>;
        if (std::string fault = columnsFault<Rows>("column sums", rows, columns); !fault.empty())
            return failed(std::move(fault));
        return ask(queue, 0, "column sums",
                   {{x, times(rows, columns, width(queue)), false},
                    {sums, times(columns, 4), true},
                    {partial, 4 * partFloats<Rows>(rows, columns), true}},
                   [=] {
                       sumColumns(Rows{x, columns, sums}, rows);
                   });
    });
}
// What a launch over these tensors touches, and the tensors themselves, which the caller may change after it.
struct Tensors {
    std::vector<StagewrightTensor> all;
    std::vector<Touched> touched;
    std::size_t blocks = 0;

    Tensors(const StagewrightTensor* tensors, int count, bool writes, std::size_t elementBytes)
        : all(tensors, tensors + count)
    {
        for (const StagewrightTensor& t : all) {
            for (const auto& [at, written] : {std::pair<const void*, bool>{t.value, writes},
                                              {t.gradient, false},
                                              {t.moment1, writes},
                                              {t.moment2, writes}})
                touched.push_back({at, t.count * 4, written});
            touched.push_back({t.used, t.count * elementBytes, true});
            blocks += flatBlocks((t.count + numbersOfThread - 1) / numbersOfThread);
        }
    }
};
int add(StagewrightQueue* queue, const StagewrightTensor* sums, int32_t count)
{
    if (count == 0) return 0;
    const Tensors tensors(sums, count, true, 4);
    if (std::string fault = gridFault("sum", tensors.blocks); !fault.empty()) return failed(std::move(fault));
    return ask(queue, 0, "sum", tensors.touched, [all = tensors.all] {
        for (const StagewrightTensor& t : all)
            for (std::size_t i = 0; i < t.count; i += numbersOfThread) addFour(t, i);
    });
}
int squareSum(StagewrightQueue* queue, const StagewrightTensor* given, int32_t count, double* partial, double* sum)
{
    Tensors tensors(given, count, false, 4);
    tensors.touched.push_back({partial, STAGEWRIGHT_PARTIALS * 8, true});
    tensors.touched.push_back({sum, 8, true});
    return ask(queue, 0, "square sum", tensors.touched, [all = tensors.all, sum] {
        *sum = 0;
        for (const StagewrightTensor& t : all) *sum += ownSquares(OneLane{}, t.count, t.gradient);
    });
}
int step(StagewrightQueue* queue, int32_t kind, const StagewrightStep* given, const StagewrightTensor* list,
         int32_t count)
{
    if (count == 0) return 0;
    const Tensors tensors(list, count, kind != STAGEWRIGHT_PREDICT, width(queue));
    if (std::string fault = gridFault("optimizer", tensors.blocks); !fault.empty()) return failed(std::move(fault));
    const StagewrightStep s = *given;
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "optimizer", tensors.touched, [s, kind, all = tensors.all] {
            for (const StagewrightTensor& t : all)
                for (std::size_t i = 0; i < t.count; i += numbersOfThread) stepFour<decltype(element)>(kind, s, t, i);
        });
    });
}
int toElements(StagewrightQueue* queue, std::uint64_t count, const float* x, void* elements)
{
    if (std::string fault = gridFault("rounding to elements", flatBlocks(count)); !fault.empty())
        return failed(std::move(fault));
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "rounding to elements", {{x, count * 4, false}, {elements, count * width(queue), true}},
                   [=] {
                       using E = decltype(element);
                       for (std::uint64_t i = 0; i < count; ++i) E::store(row<E>(elements, 0), i, x[i]);
                   });
    });
}

const StagewrightCudaTable table = {STAGEWRIGHT_CUDA_ABI,
                                    sizeof(StagewrightCudaTable),
                                    sizeof(StagewrightCudaFacts),
                                    sizeof(StagewrightCudaDevice),
                                    lastError,
                                    facts,
                                    deviceCount,
                                    describe,
                                    take,
                                    give,
                                    openQueue,
                                    closeQueue,
                                    enter,
                                    finish,
                                    finished,
                                    mark,
                                    dropMark,
                                    await,
                                    nanosBetween,
                                    copyRows,
                                    clear,
                                    upload,
                                    download,
                                    multiply,
                                    norm,
                                    scaleShift,
                                    normBackward,
                                    anySoftmax<false>,
                                    anySoftmax<true>,
                                    anyFlash<false>,
                                    anyFlash<true>,
                                    embed,
                                    embedGrad,
                                    crossEntropy,
                                    columnSums,
                                    add,
                                    squareSum,
                                    step,
                                    toElements,
                                    geluGrad,
                                    openCommunicator,
                                    closeCommunicator,
                                    communicatorAwait,
                                    communicatorMark,
                                    transfer,
                                    collect,
                                    newCommunicatorId,
                                    joinCommunicator,
                                    settleCommunicator,
                                    post,
                                    pollCommunicator,
                                    abortCommunicator};

} // namespace

extern "C" __attribute__((visibility("default"))) const StagewrightCudaTable* stagewright_cuda_module(void)
{
    return &table;
}
