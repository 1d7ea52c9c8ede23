// What kind of work a device's kernel or copy does, by its name: one table of rules over the names that cuBLAS, cuDNN,
// CUTLASS, FlashAttention, NCCL, RCCL, Triton, rocBLAS, hipBLASLt, Composable Kernel, MIOpen, FBGEMM, Transformer
// Engine, Apex and PyTorch give them. docs/numbers.md, "Kernel classes".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

enum class KernelClass : std::uint8_t {
    MatrixProduct, // and convolutions
    Attention,
    Normalisation, // layer, batch, RMS norm; softmax
    Elementwise,
    Reduction, // and scan, sort
    Collective,
    SendReceive,
    Copy, // and concatenation, transposition, conversion
    Fill,
    Optimizer,
    Embedding, // and indexing, gather, scatter
    Other,
};
inline constexpr std::size_t kernelClassCount = 12;
std::string_view toText(KernelClass of);              // "matrix_product": as in JSON and tables
std::string_view titleOf(KernelClass of);             // "Matrix product"
std::string_view titleOfClass(std::string_view text); // of what toText() says; else the text
inline bool isCommunication(KernelClass of) { return of == KernelClass::Collective || of == KernelClass::SendReceive; }

// A kernel is of the first rule's class that matches its name, mangled or not; Other if none does. A kernel of a
// communication library is what its shape says that it does, if it says so. O(length of the name × rules).
KernelClass classOfKernel(std::string_view name, std::string_view shape = {});
// Copies and fills, as traces and recordings name them: "Memset (Device)" → Fill, everything else → Copy.
KernelClass classOfCopy(std::string_view name);

// NCCL and RCCL run all-to-alls, gathers and scatters as sends and receives, and RCCL everything in one kernel: what
// such a kernel does is in its shape, "collective AllToAll, grid 8×1×1, …", where the trace says so.
std::string withOperation(std::string_view shape, std::string_view operation);
std::string_view operationInShape(std::string_view shape); // "AllToAll"; "": the shape says none
// of "all_to_allv", "nccl:all_to_all", "_allgather_base", "send 0->1": "AllToAll", "AllGather", "SendRecv"; "": none
std::string_view operationCalled(std::string_view text);
// whether the kernel is of these libraries, and its name leaves open what it does
bool hidesOperation(std::string_view kernel);

// A name as people say it, without namespaces, template arguments and parameters: "gemm_bf16" of "void
// cutlass::gemm_bf16<128, 64>(int)"; of the element-wise kernels and reductions of PyTorch, whose names all start
// alike, what they do: "GeluCUDAKernelImpl", "sum_functor". O(length).
std::string briefKernelName(std::string_view name);

// Classes of spans on the lanes Kernel and Copy, each label matched once. Not thread safe.
class KernelClasses {
public:
    KernelClass of(const Track& track, std::uint32_t label, std::string_view name, std::string_view shape);
    KernelClass of(const Timeline& timeline, const Track& track, const Span& span)
    {
        return of(track, span.label, timeline.labelOf(span), timeline.shapeOf(span));
    }

private:
    static constexpr std::uint8_t unknown = 0xff;
    std::array<std::vector<std::uint8_t>, 2> m_byLabel; // of kernels, of copies
};

} // namespace stagewright
