// Attention of whole sequences in bf16, forward: by the module's own kernel or by cuDNN's, whichever was measured to be
// faster for the shape on this kind of device; kept as GEMMs' choices are (gemm_choice.h), so that repeated
// trainings give the same bits.
#include <algorithm>
#include <cstdio>
#include <mutex>

#include "engine/cuda/module/call_time.h"
#include "engine/cuda/module/cudnn_attention.h"
#include "engine/device/kept_choices.h"

namespace stagewright::cuda::module {

namespace {

constexpr double expectedSeconds = 1e-4; // of a call, for the number of calls that are measured

int byOwn(StagewrightQueue* queue, const StagewrightFlash& f)
{
    return queue->groups ? flashGroups(queue, f) : flashTiles(queue, f);
}
bool byCudnn(StagewrightQueue& queue, const StagewrightFlash& f)
{
    return queue.attention->forward(f, queue.workspace, workspaceBytes);
}

// Measured on the very matrices: both write the same results.
bool cudnnIsFaster(StagewrightQueue& queue, const StagewrightFlash& f, std::string& reason)
{
    const CallTimer timer(queue);
    const double other = timer.seconds(expectedSeconds, [&] { return byCudnn(queue, f); });
    const double own = timer.seconds(expectedSeconds, [&] { return byOwn(&queue, f) == 0; });
    char text[96];
    std::snprintf(text, sizeof text, "measured: cudnn %.1f us, own %.1f us", 1e6 * other, 1e6 * own);
    reason = text;
    return other < worthwhile * own;
}

int cudnnIsChosen(StagewrightQueue& queue, const StagewrightFlash& f, bool& out)
{
    out = false;
    if (queue.partition || choicesByTable()) return 0;
    const auto [mine, unknown] =
        queue.attentionChoices.try_emplace({f.batch, f.heads, f.tokens, f.width, f.stride}, false);
    out = mine->second;
    if (!unknown) return 0;
    if (!queue.attentionOpened) {
        queue.attentionOpened = true;
        queue.attention = CudnnAttention::open(queue.compute());
    }
    if (!queue.attention) return 0;
    cudaDeviceProp device{};
    if (int bad = check(cudaGetDeviceProperties(&device, queue.request.device), "describing the CUDA device"))
        return bad;
    std::string key = std::string(device.name) + "; cuDNN " + std::to_string(cudnnVersion()) + "; attention of " +
                      std::to_string(f.batch) + " x " + std::to_string(f.tokens) + " tokens, " +
                      std::to_string(f.heads) + " heads of " + std::to_string(f.width) + ", rows " +
                      std::to_string(f.stride) + " apart";
    std::replace(key.begin(), key.end(), '\t', ' ');
    static std::mutex mutex;
    static std::map<std::string, bool> chosen; // equal in all queues of the process
    const std::lock_guard lock(mutex);
    const auto [at, fresh] = chosen.try_emplace(key, false);
    if (fresh) {
        const KeptChoices kept;
        if (const auto line = kept.find(key)) {
            at->second = line->first == "cudnn";
        } else if (std::string reason; kept.canKeep()) {
            at->second = cudnnIsFaster(queue, f, reason);
            kept.keep(key, at->second ? "cudnn" : "own", reason);
        }
    }
    out = mine->second = at->second;
    return 0;
}

} // namespace

int attend(StagewrightQueue* queue, const StagewrightFlash& f)
{
    bool chosen = false;
    if (int bad = cudnnIsChosen(*queue, f, chosen)) return bad;
    return chosen && byCudnn(*queue, f) ? 0 : byOwn(queue, f);
}

} // namespace stagewright::cuda::module
