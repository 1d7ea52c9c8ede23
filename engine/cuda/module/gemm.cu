// GEMMs by cuBLASLt. Its matrices are column-major: a row-major C = op(A) op(B) is its Cᵀ = op(B)ᵀ op(A)ᵀ, so
// that A and B change places and nothing is transposed. Where it has no algorithm for a fused end, the end is a kernel
// of its own.
#include <cstdint>
#include <cstring>
#include <tuple>

#include "engine/cuda/gemm_rules.h"
#include "engine/cuda/module/gemm_choice.h"

namespace stagewright::cuda::module {

bool GemmKey::operator<(const GemmKey& other) const
{
    const auto all = [](const GemmKey& k) {
        const StagewrightGemm& p = k.shape;
        return std::make_tuple(p.kind, p.rows, p.columns, p.depth, p.finish, p.floats, p.beta, p.aStride, p.bStride,
                               p.cStride, p.aBatch, p.bBatch, p.cBatch, p.batches, k.alignment[0], k.alignment[1],
                               k.alignment[2], k.fused);
    };
    return all(*this) < all(other);
}

namespace {

// The alignment that a matrix and those of later batches have in common.
int alignmentOf(const void* pointer, std::int64_t batchBytes)
{
    const std::uintptr_t places = reinterpret_cast<std::uintptr_t>(pointer) | static_cast<std::uintptr_t>(batchBytes);
    int alignment = gemmAlignment;
    while (alignment > 1 && places % static_cast<std::uintptr_t>(alignment) != 0) alignment /= 2;
    return alignment;
}

GemmKey keyOf(const StagewrightQueue& queue, const StagewrightGemm& p)
{
    GemmKey key{};
    key.shape = p;
    key.shape.beta = p.beta == 0.0F ? 0.0F : 1.0F; // whether C is read
    const bool bf16 = queue.request.bf16 != 0;
    const bool more = p.batches > 1;
    key.alignment[0] = alignmentOf(p.a, more ? p.aBatch * (bf16 ? 2 : 4) : 0);
    key.alignment[1] = alignmentOf(p.b, more ? p.bBatch * (bf16 ? 2 : 4) : 0);
    key.alignment[2] = alignmentOf(p.c, more ? p.cBatch * (bf16 && p.floats == 0 ? 2 : 4) : 0);
    key.fused = endIsFused(p, bf16, queue.request.tf32 != 0);
    return key;
}

// A stored matrix of (rows, columns) as cuBLASLt sees it.
int layout(cublasLtMatrixLayout_t& out, cudaDataType_t type, int rows, int columns, std::int64_t stride, int batches,
           std::int64_t batch)
{
    if (int bad = check(cublasLtMatrixLayoutCreate(&out, type, static_cast<std::uint64_t>(columns),
                                                   static_cast<std::uint64_t>(rows), stride),
                        "layout of a matrix"))
        return bad;
    if (batches <= 1) return 0;
    const std::int32_t count = batches;
    if (int bad = check(cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                        "batches of a matrix"))
        return bad;
    return check(
        cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch, sizeof batch),
        "batches of a matrix");
}

template <typename Value>
int set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const Value& value)
{
    return check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value), "description of a GEMM");
}

cublasLtEpilogue_t epilogueOf(int finish)
{
    switch (finish) {
    case STAGEWRIGHT_BIAS: return CUBLASLT_EPILOGUE_BIAS;
    case STAGEWRIGHT_GELU: return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    default: return CUBLASLT_EPILOGUE_DEFAULT;
    }
}

int choose(StagewrightQueue& queue, const StagewrightGemm& p, const GemmKey& key, bool fused, GemmPlan& plan)
{
    const cudaDataType_t element = queue.request.bf16 != 0 ? CUDA_R_16BF : CUDA_R_32F;
    const cublasComputeType_t compute =
        queue.request.bf16 == 0 && queue.request.tf32 != 0 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    plan.fused = fused;
    if (int bad = check(cublasLtMatmulDescCreate(&plan.description, compute, CUDA_R_32F), "description of a GEMM"))
        return bad;
    // Column-major: B is (columns of B, rows of B), so that A·Bᵀ takes it transposed.
    const cublasOperation_t opFirst = p.kind == STAGEWRIGHT_A_BT ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t opSecond = p.kind == STAGEWRIGHT_AT_B ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (int bad = set(plan.description, CUBLASLT_MATMUL_DESC_TRANSA, opFirst)) return bad;
    if (int bad = set(plan.description, CUBLASLT_MATMUL_DESC_TRANSB, opSecond)) return bad;
    if (queue.multiprocessors > 0) {
        const std::int32_t count = queue.multiprocessors;
        if (int bad = set(plan.description, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, count)) return bad;
    }
    if (fused && p.finish != STAGEWRIGHT_PLAIN) {
        if (int bad = set(plan.description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogueOf(p.finish))) return bad;
        if (p.bias)
            if (int bad = set(plan.description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, element)) return bad;
        if (p.aux) {
            const std::int64_t stride = p.columns;
            if (int bad = set(plan.description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, stride)) return bad;
            if (int bad = set(plan.description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, element)) return bad;
        }
        // The choice considers the alignment of these pointers but does not read them: it must not depend on the
        // addresses of the first call.
        void* const place = reinterpret_cast<void*>(std::uintptr_t{gemmAlignment});
        if (int bad = setEnd(plan, p, place, place)) return bad;
    }
    const bool aUp = p.kind == STAGEWRIGHT_AT_B;
    const bool bUp = p.kind == STAGEWRIGHT_A_BT;
    if (int bad = layout(plan.first, element, bUp ? p.columns : p.depth, bUp ? p.depth : p.columns, p.bStride,
                         p.batches, p.bBatch))
        return bad;
    if (int bad = layout(plan.second, element, aUp ? p.depth : p.rows, aUp ? p.rows : p.depth, p.aStride, p.batches,
                         p.aBatch))
        return bad;
    if (int bad = layout(plan.result, p.floats != 0 ? CUDA_R_32F : element, p.rows, p.columns, p.cStride, p.batches,
                         p.cBatch))
        return bad;

    cublasLtMatmulPreference_t preference = nullptr;
    if (int bad = check(cublasLtMatmulPreferenceCreate(&preference), "choice of a GEMM")) return bad;
    const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                          cublasStatus_t (*)(cublasLtMatmulPreference_t)>
        owner(preference, cublasLtMatmulPreferenceDestroy);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
        return check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
                     "choice of a GEMM");
    };
    const std::uint64_t workspace = workspaceBytes;
    if (int bad = prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace)) return bad;
    const std::uint32_t alignments[] = {static_cast<std::uint32_t>(key.alignment[1]),
                                        static_cast<std::uint32_t>(key.alignment[0]),
                                        static_cast<std::uint32_t>(key.alignment[2])};
    if (int bad = prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[0])) return bad;
    if (int bad = prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[1])) return bad;
    if (int bad = prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2])) return bad;
    if (int bad = prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[2])) return bad;
    constexpr int asked = 8;
    cublasLtMatmulHeuristicResult_t found[asked] = {};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(queue.gemm, plan.description, plan.first, plan.second, plan.result, plan.result,
                                       preference, asked, found, &count);
    cublasLtMatmulAlgo_t algorithms[asked] = {}; // by their estimated time
    std::size_t valid = 0;
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i)
        if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= workspaceBytes)
            algorithms[valid++] = found[i].algo;
    if (valid == 0) {
        lastErrorText() =
            std::string("cuBLASLt has no GEMM of ") + std::to_string(p.rows) + " x " + std::to_string(p.columns) +
            " x " + std::to_string(p.depth) + ": " +
            cublasLtGetStatusString(status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : status);
        return 1;
    }
    return chooseAlgorithm(queue, p, key, plan, {algorithms, valid}, plan.algorithm);
}

int planFor(StagewrightQueue& queue, const StagewrightGemm& p, GemmPlan*& out)
{
    const GemmKey key = keyOf(queue, p);
    const auto known = queue.plans.find(key);
    if (known != queue.plans.end()) {
        out = known->second.get();
        return 0;
    }
    auto plan = std::make_shared<GemmPlan>();
    if (choose(queue, p, key, key.fused, *plan) != 0) {
        if (p.finish == STAGEWRIGHT_PLAIN || !key.fused) return 1;
        plan = std::make_shared<GemmPlan>();
        if (int bad = choose(queue, p, key, false, *plan)) return bad;
    }
    out = plan.get();
    queue.plans.emplace(key, std::move(plan));
    return 0;
}

} // namespace

int setEnd(const GemmPlan& plan, const StagewrightGemm& p, const void* bias, void* aux)
{
    if (p.finish == STAGEWRIGHT_PLAIN || !plan.fused) return 0;
    if (p.bias)
        if (int bad = set(plan.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias)) return bad;
    if (!p.aux) return 0;
    return set(plan.description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
}

int multiply(StagewrightQueue* queue, const StagewrightGemm* gemm)
{
    if (int bad = queue->enter()) return bad;
    if (std::string fault = gemmFault(*gemm, queue->request.bf16 != 0); !fault.empty()) return failed(std::move(fault));
    GemmPlan* plan = nullptr;
    if (int bad = planFor(*queue, *gemm, plan)) return bad;
    if (int bad = setEnd(*plan, *gemm, gemm->bias, gemm->aux)) return bad;
    if (int bad = check(cublasLtMatmul(queue->gemm, plan->description, &gemm->alpha, gemm->b, plan->first, gemm->a,
                                       plan->second, &gemm->beta, gemm->c, plan->result, gemm->c, plan->result,
                                       &plan->algorithm, queue->workspace, workspaceBytes, queue->compute()),
                        "a GEMM"))
        return bad;
    return plan->fused || gemm->finish == STAGEWRIGHT_PLAIN ? 0 : finishGemm(queue, *gemm);
}

} // namespace stagewright::cuda::module
