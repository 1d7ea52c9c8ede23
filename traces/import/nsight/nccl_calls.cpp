#include "traces/import/nsight/nccl_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

namespace stagewright {

namespace {

std::optional<std::int64_t> valueOf(const NvtxPayload& payload, std::string_view name)
{
    const auto found = payload.find(name);
    return found == payload.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> communicatorOf(const NvtxPayload& payload)
{
    const auto id = valueOf(payload, "NCCL communicator ID");
    return id ? std::optional(fmt::format("{:x}", static_cast<std::uint64_t>(*id))) : std::nullopt;
}

struct Batch { // calls whose kernels are launched within a range
    std::uint32_t thread = 0;
    Nanos begin = 0;
    Nanos end = 0;
    std::vector<const NcclCall*> calls;
    std::vector<std::size_t> kernels; // of ForeignRank::messages, by launch
};

bool isMessage(std::string_view name) { return name == "ncclSend" || name == "ncclRecv"; }

// A single call, or all calls between the outermost start and end of a group. Calls are sorted by thread and start.
std::vector<Batch> batchesOf(const ForeignRank& rank, const std::vector<NcclCall>& calls)
{
    std::vector<Batch> batches;
    std::vector<const NcclCall*> pending;
    int depth = 0;
    std::uint32_t thread = 0;
    for (const NcclCall& call : calls) {
        if (call.range.thread != thread) {
            thread = call.range.thread;
            depth = 0;
            pending.clear();
        }
        const std::string& name = rank.names[call.range.name];
        if (name == "ncclGroupStart") {
            ++depth;
        } else if (name == "ncclGroupEnd") {
            depth = std::max(0, depth - 1);
            if (depth > 0) continue;
            if (!pending.empty()) batches.push_back({thread, call.range.start, call.range.end, std::move(pending), {}});
            pending.clear();
        } else if (isMessage(name) && valueOf(call.payload, "Peer rank") && communicatorOf(call.payload)) {
            if (depth > 0)
                pending.push_back(&call);
            else
                batches.push_back({thread, call.range.start, call.range.end, {&call}, {}});
        }
    }
    return batches;
}

} // namespace

bool isNcclCall(std::string_view name)
{
    return isMessage(name) || name == "ncclGroupStart" || name == "ncclGroupEnd" ||
           name.starts_with("ncclCommInitRank") || name == "ncclCommSplit" || name == "ncclCommShrink" ||
           name == "ncclCommDestroy" || name == "ncclCommAbort";
}

void tieNcclCalls(ForeignRank& rank, std::vector<NcclCall> calls)
{
    std::sort(calls.begin(), calls.end(), [](const NcclCall& a, const NcclCall& b) {
        return std::tie(a.range.thread, a.range.start, a.range.end) <
               std::tie(b.range.thread, b.range.start, b.range.end);
    });
    for (const NcclCall& call : calls) {
        const auto communicator = communicatorOf(call.payload);
        const auto place = valueOf(call.payload, "Rank"), ranks = valueOf(call.payload, "No. of ranks");
        if (communicator && place && ranks && *place >= 0 && *place < *ranks && *ranks <= 1'000'000)
            rank.placeInGroup[*communicator] = static_cast<int>(*place);
    }
    std::vector<Batch> batches = batchesOf(rank, calls);
    if (batches.empty()) return;
    std::stable_sort(rank.launches.begin(), rank.launches.end(),
                     [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
    std::vector<std::pair<Nanos, std::size_t>> kernels; // by launch
    std::vector<std::size_t> batchOf(rank.messages.size(), batches.size());
    for (std::size_t i = 0; i < rank.messages.size(); ++i) {
        const ForeignMessage& message = rank.messages[i];
        if (!message.device || message.kind != MessageKind::Collective || rank.names[message.name] != "SendRecv" ||
            message.correlation < 0)
            continue;
        const auto launch = std::lower_bound(rank.launches.begin(), rank.launches.end(), message.correlation,
                                             [](const Launch& a, std::int64_t b) { return a.correlation < b; });
        if (launch == rank.launches.end() || launch->correlation != message.correlation) continue;
        auto batch = std::upper_bound(batches.begin(), batches.end(), std::pair(launch->thread, launch->time),
                                      [](const auto& at, const Batch& b) { return at < std::pair(b.thread, b.begin); });
        if (batch == batches.begin()) continue;
        --batch;
        if (batch->thread != launch->thread || launch->time > batch->end) continue;
        batchOf[i] = static_cast<std::size_t>(batch - batches.begin());
        kernels.emplace_back(launch->time, i);
    }
    std::sort(kernels.begin(), kernels.end());
    for (const auto& [time, kernel] : kernels) batches[batchOf[kernel]].kernels.push_back(kernel);
    for (const Batch& batch : batches) {
        if (batch.kernels.empty()) continue;
        std::vector<std::string> communicators; // in order of their first call: a group launches one kernel for each
        for (const NcclCall* call : batch.calls)
            if (const std::string one = *communicatorOf(call->payload);
                std::find(communicators.begin(), communicators.end(), one) == communicators.end())
                communicators.push_back(one);
        std::vector<bool> used(batch.kernels.size(), false);
        for (const NcclCall* call : batch.calls) {
            const std::string communicator = *communicatorOf(call->payload);
            const auto number = static_cast<std::size_t>(
                std::find(communicators.begin(), communicators.end(), communicator) - communicators.begin());
            const std::size_t at = communicators.size() == batch.kernels.size() ? number : 0;
            ForeignMessage message = rank.messages[batch.kernels[at]];
            const bool sends = rank.names[call->range.name] == "ncclSend";
            message.kind = sends ? MessageKind::Send : MessageKind::Receive;
            message.name = rank.names.idOf(sends ? "send" : "recv");
            message.group = rank.names.idOf(communicator);
            message.from = message.to = -1;
            (sends ? message.to : message.from) =
                static_cast<int>(std::clamp<std::int64_t>(*valueOf(call->payload, "Peer rank"), -1, 1'000'000));
            message.inGroup = true;
            message.bytes = valueOf(call->payload, "Message size [bytes]").value_or(-1);
            if (used[at])
                rank.messages.push_back(message);
            else
                rank.messages[batch.kernels[at]] = message;
            used[at] = true;
        }
    }
}

} // namespace stagewright
