#include "traces/analysis/kernel_class.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

#include "traces/analysis/kernels.h"

namespace stagewright {

namespace {

struct Rule {
    KernelClass of;
    std::initializer_list<std::string_view> parts; // lower case; "^" at the start of one: the name starts with it
};

// In this order: a name often has parts of several rules (an optimizer's kernel is element-wise, too; a fused
// normalisation names the copy in it), so the more specific class is before the more general one.
using K = KernelClass;
const std::initializer_list<Rule> rules = {
    // NCCL, RCCL and HCCL; a group of sends and receives is one kernel "SendRecv".
    {K::SendReceive,
     {"nccldevkernel_sendrecv", "ncclkernel_sendrecv", "rccldevkernel_sendrecv", "rcclkernel_sendrecv", "nvshmem_put",
      "nvshmemi_put", "hcom_send", "hcom_receive", "hcom_batchsendrecv", "collective-permute"}},
    {K::Collective,
     {"^nccl",      "^rccl",     "nccldevkernel", "ncclkernel",          "ncclgenerickernel", "^mscclkernel",
      "^mscclpp",   "^oneccl",   "^hcom_",        "all-reduce",          "all-gather",        "reduce-scatter",
      "all-to-all", "allreduce", "all_reduce",    "cross_device_reduce", "reducescatter",     "reduce_scatter",
      "all_gather", "allgather", "alltoall",      "all_to_all",          "deep_ep::",         "nvshmem"}},
    {K::Attention,
     {"flash_fwd",
      "flash_bwd",
      "flashattn",
      "flash_attn",
      "flash_attention",
      "flash::",
      "fmha",
      "attention",
      "attn",
      "sdpa",
      "scaled_dot_product",
      "decode_kernel_mha",
      "mha_fwd",
      "mha_bwd",
      "flashinfer::batchprefill",
      "flashinfer::batchdecode",
      "flashinfer::singleprefill",
      "flashinfer::singledecode",
      "flash_mla",
      "paged_kv",
      "flashforwardkernel",
      "flashkernel",
      "flashkeykernel",
      "flashquerykernel",
      "flashforwardgroups",
      "flashkeygroups",
      "flashquerygroups"}},
    {K::Reduction, {"topk", "dot_kernel<", "reduce_1block"}}, // "gatherTopK"; cuBLAS' dot products name its GEMV types
    // Before optimizers: tables are updated in their own kernels, by the optimizer in the name.
    {K::Embedding,
     {"embedding", "indexing_backward", "index_elementwise_kernel", "indexselect", "index_select", "index_put",
      "indexfunc", "index_kernel", "gather", "scatter", "fbgemm_gpu", "bounds_check_indices", "linearize_index",
      "index_add", "index_copy", "embedkernel", "tokengradkernel", "positiongradkernel"}},
    {K::Optimizer,
     {"multi_tensor_apply", "multitensorapply", "adam", "adagrad", "fusedsgd", "sgd_kernel", "lamb_stage", "lambstage",
      "lion_kernel", "muon_kernel", "stepkernel", "fused_optimizer", "optimizer_kernel", "foreach_copy", "foreach_add",
      "foreach_mul", "^aclnnforeach"}},
    {K::Normalisation,
     {"layer_norm",
      "layernorm",
      "rms_norm",
      "rmsnorm",
      "batch_norm",
      "batchnorm",
      "group_norm",
      "groupnorm",
      "instance_norm",
      "instancenorm",
      "softmax",
      "ln_fwd",
      "ln_bwd",
      "bn_fw",
      "bn_bw",
      "gammabeta",
      "rowwisemoments",
      "cucomputegradinput",
      "cucomputepartgrad",
      "normalization::",
      "fused_rms",
      "miopenlrn",
      "normkernel",
      "normbackwardkernel"}},
    // Triton code of PyTorch's compiler: pointwise, reductions, templates (of matrix products; of attention above).
    {K::Elementwise, {"^triton_poi_", "scal_kernel<"}}, // cuBLAS' scaling names its transposed types
    {K::Reduction, {"^triton_red_", "^triton_per_"}},
    {K::MatrixProduct, {"^triton_tem_", "^triton_mm",
                        "^dot.",        "gemm",
                        "gemv",         "nvjet",
                        "xmma",         "cutlass",
                        "cijk_",        "matmul",
                        "^bmm_",        "_bmm_",
                        "_mm_kernel",   "grouped_mm",
                        "scaled_mm",    "splitkreduce",
                        "marlin",       "fprop",
                        "dgrad",        "wgrad",
                        "cudnn::cnn",   "cudnn::winograd",
                        "winograd",     "implicit_conv",
                        "convolve",     "convolution",
                        "conv2d",       "conv1d",
                        "conv3d",       "conv_depthwise",
                        "conv_fwd",     "conv_bwd",
                        "asmconv",      "scudnn",
                        "hcudnn",       "s1688cudnn",
                        "h884cudnn",    "kernel_grouped_conv",
                        "sgemm",        "tensorop"}},
    {K::Fill,
     {"fillfunctor", "fill_kernel", "fillbuffer", "memset", "zero_kernel", "set_zero", "zeroslike", "oneslike"}},
    {K::Copy,
     {"direct_copy_kernel",
      "copy_kernel",
      "catarraybatchedcopy",
      "copybuffer",
      "copy_device_to_device",
      "memcpy",
      "transpose",
      "permute",
      "nchwtonhwc",
      "nhwctonchw",
      "nchw2nhwc",
      "tensortransform",
      "cast_kernel",
      "convert_kernel",
      "batched_copy",
      "copypage",
      "narrowkernel",
      "toelementskernel",
      "tensormove",
      "^aclnncast",
      "stridedslice",
      "^aclnncat",
      "^aclnninplacecopy"}},
    {K::Reduction, {"reduce_kernel",    "devicereduce",      "device_reduce",
                    "devicescan",       "device_scan",       "tensor_kernel_scan",
                    "cumsum",           "cumprod",           "scankernel",
                    "radixsort",        "radix_sort",        "bitonicsort",
                    "mergesort",        "devicecompact",     "deviceselect",
                    "reducebykey",      "kthvalue",          "argmax",
                    "nll_loss",         "cross_entropy",     "crossentropy",
                    "dot_kernel",       "_norm_kernel",      "lpnorm",
                    "columnsumskernel", "columnpartskernel", "partialskernel",
                    "squareskernel",    "meanlosskernel",    "cub::",
                    "reducesum",        "reducemean",        "reducemax",
                    "hipcub",           "rocprim",           "thrust::"}},
    {K::Elementwise,
     {"elementwise",
      "pointwise",
      "cublaslt::epilogue",
      "cudafunctor",
      "gelu",
      "silu",
      "swiglu",
      "geglu",
      "relu",
      "dropout",
      "rotary",
      "rope_kernel",
      "bias_act",
      "biasact",
      "add_bias",
      "act_and_mul",
      "mul_kernel",
      "add_kernel",
      "addkernel",
      "scaleshiftkernel",
      "distribution_",
      "masked_fill",
      "where_kernel",
      "clamp",
      "activation",
      "^op_tensor",
      "^aclnnadd",
      "^aclnnsub",
      "^aclnnmul",
      "^aclnndiv",
      "^aclnninplaceadd",
      "^aclnninplacemul",
      "^aclnninplacediv",
      "quant"}},
};

bool matches(std::string_view name, std::string_view part)
{
    return part.front() == '^' ? name.starts_with(part.substr(1)) : name.find(part) != std::string_view::npos;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, kernelClassCount> names{{
    {"matrix_product", "Matrix product"},
    {"attention", "Attention"},
    {"normalisation", "Normalisation"},
    {"elementwise", "Element-wise"},
    {"reduction", "Reduction"},
    {"collective", "Collective"},
    {"send_receive", "Send, receive"},
    {"copy", "Copy"},
    {"fill", "Fill"},
    {"optimizer", "Optimizer"},
    {"embedding", "Embedding"},
    {"other", "Other"},
}};

} // namespace

std::string_view toText(KernelClass of) { return names[static_cast<std::size_t>(of)].first; }

std::string_view titleOf(KernelClass of) { return names[static_cast<std::size_t>(of)].second; }

std::string_view titleOfClass(std::string_view text)
{
    for (std::size_t of = 0; of < kernelClassCount; ++of)
        if (toText(static_cast<KernelClass>(of)) == text) return titleOf(static_cast<KernelClass>(of));
    return text;
}

namespace {

constexpr std::string_view operationMark = "collective ";
constexpr std::string_view sendsAndReceives = "SendRecv";

} // namespace

std::string withOperation(std::string_view shape, std::string_view operation)
{
    return std::string(operationMark).append(operation).append(shape.empty() ? "" : ", ").append(shape);
}

std::string_view operationInShape(std::string_view shape)
{
    if (!shape.starts_with(operationMark)) return {};
    shape.remove_prefix(operationMark.size());
    return shape.substr(0, shape.find(','));
}

std::string_view operationCalled(std::string_view text)
{
    std::string letters;
    for (const char c : text)
        if (std::isalpha(static_cast<unsigned char>(c)) != 0)
            letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::string_view name = letters;
    for (const std::string_view library : {"nccl", "rccl", "hcom"})
        if (name.starts_with(library)) name.remove_prefix(library.size());
    constexpr std::pair<std::string_view, std::string_view> operations[] = {
        {"alltoall", "AllToAll"},   {"allgather", "AllGather"},
        {"allreduce", "AllReduce"}, {"reducescatter", "ReduceScatter"},
        {"broadcast", "Broadcast"}, {"gather", "Gather"},
        {"scatter", "Scatter"},     {"reduce", "Reduce"}};
    for (const auto& [part, operation] : operations)
        if (name.find(part) != std::string_view::npos) return operation;
    if (name.starts_with("send") || name.starts_with("recv") || name.starts_with("isend") || name.starts_with("irecv"))
        return sendsAndReceives;
    return {};
}

bool hidesOperation(std::string_view kernel)
{
    const std::string operation = collectiveOfKernel(kernel);
    return operation == sendsAndReceives || operation == "Generic" || operation == "collective";
}

KernelClass classOfKernel(std::string_view name, std::string_view shape)
{
    if (const std::string_view operation = operationInShape(shape); !operation.empty() && hidesOperation(name))
        return operation == sendsAndReceives ? KernelClass::SendReceive : KernelClass::Collective;
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string_view text = lower;
    if (text.starts_with("void ")) text.remove_prefix(5);
    for (const Rule& rule : rules)
        for (const std::string_view part : rule.parts)
            if (matches(text, part)) return rule.of;
    return KernelClass::Other;
}

KernelClass classOfCopy(std::string_view name)
{
    const KernelClass of = classOfKernel(name);
    return of == KernelClass::Fill ? KernelClass::Fill : KernelClass::Copy;
}

namespace {

bool isWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The words of an expression in order, without the namespaces before them: "at::native::MulFunctor<float>" →
// MulFunctor, float.
std::vector<std::string_view> wordsOf(std::string_view text)
{
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < text.size();) {
        if (!isWordCharacter(text[at])) {
            ++at;
            continue;
        }
        std::size_t end = at;
        while (end < text.size() && isWordCharacter(text[end])) ++end;
        if (text.substr(end, 2) != "::") words.push_back(text.substr(at, end - at));
        at = end;
    }
    return words;
}

// Whether a template argument of PyTorch's general kernels names the operation, and not a size or a type.
bool saysOperation(std::string_view word)
{
    constexpr std::array<std::string_view, 4> wrappers{"ReduceOp", "AUnaryFunctor", "BUnaryFunctor", "BinaryFunctor"};
    if (std::find(wrappers.begin(), wrappers.end(), word) != wrappers.end() || word.starts_with("gpu_kernel_impl") ||
        word.starts_with("func_wrapper"))
        return false;
    constexpr std::array<std::string_view, 6> parts{"unctor", "_kernel", "KernelImpl", "Ops", "launch_", "_cuda"};
    return std::any_of(parts.begin(), parts.end(),
                       [word](std::string_view part) { return word.find(part) != std::string_view::npos; });
}

} // namespace

std::string briefKernelName(std::string_view name)
{
    std::string_view brief = name;
    // its bracket is not that of parameters
    for (const std::string_view unnamed : {"(anonymous namespace)::", "<unnamed>::"})
        if (const std::size_t at = brief.find(unnamed);
            at != std::string_view::npos && brief.substr(0, at).find_first_of("(<") == std::string_view::npos)
            brief.remove_prefix(at + unnamed.size());
    const std::size_t bracket = brief.find_first_of("(<");
    const std::string_view inside = bracket == std::string_view::npos ? std::string_view() : brief.substr(bracket);
    if (bracket != std::string_view::npos && bracket > 0) brief = brief.substr(0, bracket);
    while (brief.ends_with(' ')) brief.remove_suffix(1);
    const bool signature = !inside.empty() || brief.starts_with("void "); // else words: "copy within the device"
    if (signature && !brief.starts_with("mem") && !brief.starts_with("Mem")) {
        brief = brief.substr(brief.find_last_of(' ') + 1);
        brief = brief.substr(brief.find_last_of(':') + 1);
    }
    if (brief.ends_with("elementwise_kernel") || brief == "reduce_kernel" || brief == "multi_tensor_apply_kernel" ||
        brief == "device_kernel" || brief == "Kernel2")
        for (const std::string_view word : wordsOf(inside))
            if (saysOperation(word) || ((brief == "device_kernel" || brief == "Kernel2") && word.size() > 8))
                return std::string(word);
    return std::string(brief.empty() ? name : brief);
}

KernelClass KernelClasses::of(const Track& track, std::uint32_t label, std::string_view name, std::string_view shape)
{
    std::vector<std::uint8_t>& known = m_byLabel[track.lane == Lane::Copy ? 1 : 0];
    if (label >= known.size()) known.resize(label + 1U, unknown);
    std::uint8_t& of = known[label];
    if (of == unknown)
        of = static_cast<std::uint8_t>(track.lane == Lane::Copy ? classOfCopy(name) : classOfKernel(name, shape));
    const auto found = static_cast<KernelClass>(of);
    // A recording has the kernels of its transports on a track of their own, whatever their names.
    return isCollectiveTrack(track) && !isCommunication(found) ? KernelClass::Collective : found;
}

} // namespace stagewright
