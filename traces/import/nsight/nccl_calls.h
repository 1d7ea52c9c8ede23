// Peers of NCCL's kernels for sends and receives, from the ranges and payloads of the calls on the host (NCCL's own
// NVTX domain, nvtx_payload_schemas.h of NCCL 2.2x: "NCCL communicator ID", "Message size [bytes]", "Peer rank",
// "Rank", "No. of ranks").
#pragma once

#include <cstdint>
#include <vector>

#include "traces/foreign/foreign_trace.h"
#include "traces/import/nsight/nvtx_payload.h"

namespace stagewright {

struct NcclCall { // "ncclSend", with the data of its payload
    ForeignSpan range;
    NvtxPayload payload;
};

bool isNcclCall(std::string_view name); // one that matters here: sends, receives, groups, communicators

// Kernels "SendRecv" that were launched within a send, a receive or the end of a group become the messages of that call
// or group, one for each; peers are places in the communicator, which is the process group (hexadecimal). The rank's
// own places come from the calls that created communicators. Kernels without a call that gives a peer stay unchanged.
// Sorts launches.
void tieNcclCalls(ForeignRank& rank, std::vector<NcclCall> calls);

} // namespace stagewright
