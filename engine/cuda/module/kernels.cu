// The kernels: which thread computes what. The arithmetic is in kernel_bodies.h and lanes.h.
#include "engine/cuda/column_sums.h"
#include "engine/cuda/flash_tiles.h"
#include "engine/cuda/lanes.h"
#include "engine/cuda/module/device_threads.cuh"
#include "engine/cuda/module/queue.cuh"

namespace stagewright::cuda::module {

namespace {

constexpr int rowThreads = 256;
constexpr int normThreads = 128; // so that a lane has a few pieces of a row
constexpr int flatThreads = 256;

using Warp = WarpLanes<DeviceThreads>;
using Block = BlockLanes<DeviceThreads, rowThreads>;
using NormBlock = BlockLanes<DeviceThreads, normThreads>;

__device__ std::size_t flatIndex() { return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
unsigned blocksFor(std::size_t count) { return static_cast<unsigned>((count + flatThreads - 1) / flatThreads); }

template <typename E, int Held>
__global__ void __launch_bounds__(normThreads) normKernel(StagewrightNorm n)
{
    normRow<E, Held>(NormBlock{}, n, blockIdx.x);
}
template <typename E, int Held>
__global__ void __launch_bounds__(normThreads) normBackwardKernel(StagewrightNorm n)
{
    normBackwardRow<E, Held>(NormBlock{}, n, blockIdx.x);
}
template <typename E, int N>
__global__ void __launch_bounds__(normThreads) scaleShiftKernel(StagewrightNorm n)
{
    scaleShiftRow<E, N>(NormBlock{}, n, blockIdx.x);
}

template <typename Rows>
__global__ void __launch_bounds__(columnThreads, Rows::blocks)
    columnSumsKernel(Rows of, int rows, int parts, float* partial)
{
    sumColumnsBlock(DeviceThreads{}, of, rows, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), parts,
                    partial);
}
template <typename Rows> // the same under a name of its own
__global__ void __launch_bounds__(columnThreads, Rows::blocks)
    geluGradKernel(Rows of, int rows, int parts, float* partial)
{
    sumColumnsBlock(DeviceThreads{}, of, rows, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), parts,
                    partial);
}
template <typename Rows>
__global__ void columnPartsKernel(Rows of, int parts, const float* partial)
{
    if (flatIndex() < static_cast<std::size_t>(of.width))
        addColumnParts(of, parts, partial, static_cast<int>(flatIndex()));
}
template <typename Rows>
void sumColumnsOn(cudaStream_t stream, void (*kernel)(Rows, int, int, float*), const Rows& of, int rows, float* partial)
{
    const int parts = columnParts<Rows>(rows, of.width);
    const dim3 grid(static_cast<unsigned>((of.width + columnTile - 1) / columnTile), static_cast<unsigned>(parts));
    kernel<<<grid, columnThreads, 0, stream>>>(of, rows, parts, parts == 1 ? nullptr : partial);
    if (parts > 1)
        columnPartsKernel<<<blocksFor(static_cast<std::size_t>(of.width)), flatThreads, 0, stream>>>(of, parts,
                                                                                                     partial);
}

// C (rows, columns) of a plain GEMM becomes what the fused one makes.
template <typename E>
__global__ void finishKernel(StagewrightGemm p, std::size_t count)
{
    const std::size_t i = flatIndex();
    if (i >= count) return;
    const std::size_t column = i % static_cast<std::size_t>(p.columns);
    const std::size_t at = i / static_cast<std::size_t>(p.columns) * static_cast<std::size_t>(p.cStride) + column;
    auto* c = row<E>(p.c, 0);
    float value = E::load(c, at) + E::load(row<E>(p.bias, 0), column);
    if (p.finish == STAGEWRIGHT_GELU) {
        E::store(row<E>(p.aux, 0), i, value);
        value = geluOf<E>(value);
    }
    E::store(c, at, value);
}

template <typename E>
__global__ void softmaxKernel(StagewrightSoftmax s)
{
    softmaxRow<E>(Block{}, s, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x));
}
template <typename E>
__global__ void softmaxBackwardKernel(StagewrightSoftmax s)
{
    softmaxBackwardRow<E>(Block{}, s, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x));
}

enum class FlashPass {
    Forward,
    Inner,
    Query,
    Key,
};
template <typename E, FlashPass pass>
__global__ void flashKernel(StagewrightFlash f)
{
    const int r = static_cast<int>(blockIdx.x) * (rowThreads / 32) + static_cast<int>(threadIdx.x) / 32;
    if (r >= f.tokens) return; // whole warps
    const int sample = static_cast<int>(blockIdx.z);
    const int head = static_cast<int>(blockIdx.y);
    const Warp lanes;
    if constexpr (pass == FlashPass::Forward) flashRow<E>(lanes, f, sample, head, r);
    if constexpr (pass == FlashPass::Inner) flashInnerRow<E>(lanes, f, sample, head, r);
    if constexpr (pass == FlashPass::Query) flashQueryRow<E>(lanes, f, sample, head, r);
    if constexpr (pass == FlashPass::Key) flashKeyRow<E>(lanes, f, sample, head, r);
}

template <typename E, int N>
__global__ void embedKernel(StagewrightEmbedding e)
{
    embedRow<E, N>(Block{}, e, static_cast<int>(blockIdx.x));
}
template <typename E>
__global__ void tokenGradKernel(StagewrightEmbedding e)
{
    sumColumnsBlock(DeviceThreads{}, TokenRows<E>{e, static_cast<int>(blockIdx.y)}, e.batch * e.tokens,
                    static_cast<int>(blockIdx.x), 0, 1, nullptr);
}
template <typename E, int N>
__global__ void positionGradKernel(StagewrightEmbedding e, std::size_t count)
{
    if (flatIndex() * N < count) positionGradAt<E, N>(e, flatIndex() * N);
}

template <typename E>
__global__ void crossEntropyKernel(int vocabulary, void* logits, const std::uint8_t* targets, float* rowLoss)
{
    crossEntropyRow<E>(Block{}, vocabulary, logits, targets[blockIdx.x], rowLoss, blockIdx.x);
}
__global__ void meanLossKernel(int rows, const float* rowLoss, double* loss) { meanLoss(Block{}, rows, rowLoss, loss); }

// Tensors of one launch: blocks firstBlock[k] … firstBlock[k + 1] are of the k-th.
struct TensorList {
    static constexpr int most = 64;
    StagewrightTensor at[most];
    unsigned firstBlock[most + 1];
    int count;
};
static_assert(sizeof(TensorList) + sizeof(StagewrightStep) + 16 <= 4096, "a kernel's arguments");

// launch(list, whether others were before) until all tensors have had theirs.
template <typename Launch>
void eachList(const StagewrightTensor* tensors, int count, Launch&& launch)
{
    for (int done = 0; done < count;) {
        TensorList list;
        list.firstBlock[0] = 0;
        for (list.count = 0; list.count < TensorList::most && done + list.count < count; ++list.count) {
            list.at[list.count] = tensors[done + list.count];
            list.firstBlock[list.count + 1] =
                list.firstBlock[list.count] +
                blocksFor((list.at[list.count].count + numbersOfThread - 1) / numbersOfThread);
        }
        launch(list, done > 0);
        done += list.count;
    }
}
// visit(tensor, first element) for this thread's four.
template <typename Visit>
__device__ void atFour(const TensorList& list, Visit&& visit)
{
    static_assert((TensorList::most & (TensorList::most - 1)) == 0, "halved until it is one");
    int k = 0; // the last that starts at this block or before
    for (int half = TensorList::most / 2; half > 0; half /= 2)
        if (k + half < list.count && blockIdx.x >= list.firstBlock[k + half]) k += half;
    const std::size_t i =
        (static_cast<std::size_t>(blockIdx.x - list.firstBlock[k]) * blockDim.x + threadIdx.x) * numbersOfThread;
    if (i < list.at[k].count) visit(list.at[k], i);
}

__global__ void addKernel(const __grid_constant__ TensorList list)
{
    atFour(list, [](const StagewrightTensor& t, std::size_t i) { addFour(t, i); });
}
// Each block a part of the numbers; then one block adds up the parts.
__global__ void squaresKernel(const __grid_constant__ TensorList list, bool more, double* partial)
{
    squaresPart(Block{}, list.at, list.count, more, partial, static_cast<int>(blockIdx.x));
}
__global__ void addPartialsKernel(const double* partial, double* sum) { addPartials(Block{}, partial, sum); }

template <typename E>
__global__ void stepKernel(int kind, StagewrightStep s, const __grid_constant__ TensorList list)
{
    atFour(list, [kind, &s](const StagewrightTensor& t, std::size_t i) { stepFour<E>(kind, s, t, i); });
}
template <typename E>
__global__ void toElementsKernel(std::size_t count, const float* x, void* elements)
{
    if (flatIndex() < count) E::store(row<E>(elements, 0), flatIndex(), x[flatIndex()]);
}

dim3 flashGrid(const StagewrightFlash& f) // a warp a row
{
    return dim3(static_cast<unsigned>((f.tokens + rowThreads / 32 - 1) / (rowThreads / 32)),
                static_cast<unsigned>(f.heads), static_cast<unsigned>(f.batch));
}

int launched(const char* what) { return check(cudaGetLastError(), what); }

// f(E{}) for the queue's elements, on its device; then what the launch said.
template <typename Launch>
int onElements(StagewrightQueue* queue, const char* what, Launch&& launch)
{
    if (int bad = queue->enter()) return bad;
    if (queue->request.bf16 != 0)
        launch(Bf16{});
    else
        launch(Fp32{});
    return launched(what);
}

template <typename Element>
using Of = std::decay_t<Element>;

// launch(pieces of N elements) with as many elements a thread as `wide` says.
template <typename E, typename Launch>
void byPieces(bool wide, Launch&& launch)
{
    if (wide)
        launch(std::integral_constant<int, E::wide>{});
    else
        launch(std::integral_constant<int, 1>{});
}

} // namespace

int norm(StagewrightQueue* queue, const StagewrightNorm* n)
{
    return onElements(queue, "layer norm", [&](auto e) {
        using E = Of<decltype(e)>;
        byHeld<E>(normInPieces<E>(*n), n->width, normThreads, [&](auto held) {
            normKernel<E, decltype(held)::value><<<n->rows, normThreads, 0, queue->compute()>>>(*n);
        });
    });
}

int scaleShift(StagewrightQueue* queue, const StagewrightNorm* n)
{
    return onElements(queue, "scale and shift", [&](auto e) {
        using E = Of<decltype(e)>;
        byPieces<E>(scaleShiftsInPieces<E>(*n), [&](auto pieces) {
            scaleShiftKernel<E, decltype(pieces)::value><<<n->rows, normThreads, 0, queue->compute()>>>(*n);
        });
    });
}

int normBackward(StagewrightQueue* queue, const StagewrightNorm* n)
{
    return onElements(queue, "layer norm backward", [&](auto e) {
        using E = Of<decltype(e)>;
        using Rows = NormRows<E>;
        byHeld<E>(normBackwardInPieces<E>(*n), n->width, normThreads, [&](auto held) {
            normBackwardKernel<E, decltype(held)::value><<<n->rows, normThreads, 0, queue->compute()>>>(*n);
        });
        sumColumnsOn(queue->compute(), columnSumsKernel<Rows>, Rows{*n}, n->rows, n->partial);
    });
}

int finishGemm(StagewrightQueue* queue, const StagewrightGemm& p)
{
    const std::size_t count = static_cast<std::size_t>(p.rows) * p.columns;
    return onElements(queue, "end of a GEMM", [&](auto e) {
        finishKernel<Of<decltype(e)>><<<blocksFor(count), flatThreads, 0, queue->compute()>>>(p, count);
    });
}

int softmax(StagewrightQueue* queue, const StagewrightSoftmax* s)
{
    const dim3 grid(static_cast<unsigned>(s->rows), static_cast<unsigned>(s->blocks));
    return onElements(queue, "softmax",
                      [&](auto e) { softmaxKernel<Of<decltype(e)>><<<grid, rowThreads, 0, queue->compute()>>>(*s); });
}

int softmaxBackward(StagewrightQueue* queue, const StagewrightSoftmax* s)
{
    const dim3 grid(static_cast<unsigned>(s->rows), static_cast<unsigned>(s->blocks));
    return onElements(queue, "softmax backward", [&](auto e) {
        softmaxBackwardKernel<Of<decltype(e)>><<<grid, rowThreads, 0, queue->compute()>>>(*s);
    });
}

// On the matrix units where they take it, else by streaming keys past each row.
int flash(StagewrightQueue* queue, const StagewrightFlash* f)
{
    if (int bad = queue->enter()) return bad;
    if (queue->request.bf16 != 0 && fitsTiles(*f)) return attend(queue, *f);
    return onElements(queue, "attention", [&](auto e) {
        flashKernel<Of<decltype(e)>, FlashPass::Forward><<<flashGrid(*f), rowThreads, 0, queue->compute()>>>(*f);
    });
}

int flashBackward(StagewrightQueue* queue, const StagewrightFlash* f)
{
    const bool tiles = queue->request.bf16 != 0 && fitsTiles(*f);
    const int bad = onElements(queue, "attention backward", [&](auto e) {
        using E = Of<decltype(e)>;
        flashKernel<E, FlashPass::Inner><<<flashGrid(*f), rowThreads, 0, queue->compute()>>>(*f);
        if (tiles) return;
        flashKernel<E, FlashPass::Query><<<flashGrid(*f), rowThreads, 0, queue->compute()>>>(*f);
        flashKernel<E, FlashPass::Key><<<flashGrid(*f), rowThreads, 0, queue->compute()>>>(*f);
    });
    if (bad != 0 || !tiles) return bad;
    return queue->groups ? flashGroupsBackward(queue, *f) : flashTilesBackward(queue, *f);
}

int embed(StagewrightQueue* queue, const StagewrightEmbedding* g)
{
    return onElements(queue, "embedding", [&](auto e) {
        using E = Of<decltype(e)>;
        byPieces<E>(embedsInPieces<E>(*g), [&](auto pieces) {
            embedKernel<E, decltype(pieces)::value><<<g->batch * g->tokens, rowThreads, 0, queue->compute()>>>(*g);
        });
    });
}

int embedGrad(StagewrightQueue* queue, const StagewrightEmbedding* g)
{
    const dim3 grid(static_cast<unsigned>((g->width + columnTile - 1) / columnTile),
                    static_cast<unsigned>(g->vocabulary));
    const std::size_t count = static_cast<std::size_t>(g->tokens) * g->width;
    return onElements(queue, "embedding's gradient", [&](auto e) {
        using E = Of<decltype(e)>;
        tokenGradKernel<E><<<grid, columnThreads, 0, queue->compute()>>>(*g);
        byPieces<E>(positionGradsInPieces<E>(*g), [&](auto pieces) {
            constexpr int N = decltype(pieces)::value;
            positionGradKernel<E, N><<<blocksFor(count / N), flatThreads, 0, queue->compute()>>>(*g, count);
        });
    });
}

int crossEntropy(StagewrightQueue* queue, int32_t rows, int32_t vocabulary, void* logits, const uint8_t* targets,
                 float* rowLoss, double* loss)
{
    return onElements(queue, "cross entropy", [&](auto e) {
        crossEntropyKernel<Of<decltype(e)>>
            <<<rows, rowThreads, 0, queue->compute()>>>(vocabulary, logits, targets, rowLoss);
        meanLossKernel<<<1, rowThreads, 0, queue->compute()>>>(rows, rowLoss, loss);
    });
}

int columnSums(StagewrightQueue* queue, int32_t rows, int32_t width, const void* x, float* sums, float* partial)
{
    return onElements(queue, "column sums", [&](auto e) {
        using Rows = PlainRows<Of<decltype(e)>>;
        sumColumnsOn(queue->compute(), columnSumsKernel<Rows>, Rows{x, width, sums}, rows, partial);
    });
}

int add(StagewrightQueue* queue, const StagewrightTensor* sums, int32_t count)
{
    if (int bad = queue->enter()) return bad;
    eachList(sums, count, [&](const TensorList& list, bool) {
        addKernel<<<list.firstBlock[list.count], flatThreads, 0, queue->compute()>>>(list);
    });
    return launched("sum");
}

int squareSum(StagewrightQueue* queue, const StagewrightTensor* tensors, int32_t count, double* partial, double* sum)
{
    if (int bad = queue->enter()) return bad;
    eachList(tensors, count, [&](const TensorList& list, bool more) {
        squaresKernel<<<STAGEWRIGHT_PARTIALS, rowThreads, 0, queue->compute()>>>(list, more, partial);
    });
    addPartialsKernel<<<1, rowThreads, 0, queue->compute()>>>(partial, sum);
    return launched("square sum");
}

int step(StagewrightQueue* queue, int32_t kind, const StagewrightStep* s, const StagewrightTensor* tensors,
         int32_t count)
{
    return onElements(queue, "optimizer", [&](auto e) {
        eachList(tensors, count, [&](const TensorList& list, bool) {
            stepKernel<Of<decltype(e)>>
                <<<list.firstBlock[list.count], flatThreads, 0, queue->compute()>>>(kind, *s, list);
        });
    });
}

int toElements(StagewrightQueue* queue, uint64_t count, const float* x, void* elements)
{
    return onElements(queue, "rounding to elements", [&](auto e) {
        toElementsKernel<Of<decltype(e)>><<<blocksFor(count), flatThreads, 0, queue->compute()>>>(count, x, elements);
    });
}

int geluGrad(StagewrightQueue* queue, int32_t rows, int32_t width, void* hidden, void* gradient, float* sums,
             float* partial)
{
    return onElements(queue, "gradient of GELU", [&](auto e) {
        using Rows = GeluRows<Of<decltype(e)>>;
        sumColumnsOn(queue->compute(), geluGradKernel<Rows>, Rows{hidden, gradient, width, sums}, rows, partial);
    });
}

} // namespace stagewright::cuda::module
