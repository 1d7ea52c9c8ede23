// Lowering: a compute-only schedule becomes one whose lists also say when messages are sent and received. Sends follow
// the op that made the message; the rule decides where receives go. The order of compute ops and overlapped pairs stay.
//
// Example, 1F1B on 2 ranks, 2 microbatches, rank 1:
//   just-in-time  1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1
//   rank-parity   1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1 1SEND_B1
//   grouped       1RECV_F0 1F0 1B0 (1SEND_B0 1RECV_F1) 1F1 1B1 1SEND_B1
//   pytorch       1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1
//   eager-post    1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1
//   batched       1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1, where several meet in one batch
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "schedules/messages/channels.h"
#include "schedules/model/schedule.h"

namespace stagewright {

enum class LoweringRule : std::uint8_t {
    JustInTime, // a receive directly before the op that needs it
    // _add_send_recv of torch.distributed.pipelining: the lists are swept, one op a rank and sweep; a send is
    // appended after its op, and at that moment its receive to the receiver's list
    PyTorch,
    EagerPost, // a receive `ahead` compute ops before the one that needs it; 0: all at the start of the list
    // just in time, but where a send is directly followed by a receive from the same neighbour, odd ranks receive
    // first
    RankParity,
    Grouped, // just in time, but a send and the receive directly after it are posted together
    // the lists are swept, one op a rank and sweep; all messages that a sweep makes are posted behind it, those of a
    // rank together, as Megatron-LM's batches: both sides of each are in the same batch, so that no buffers are needed
    Batched,
};

struct Lowering {
    LoweringRule rule = LoweringRule::JustInTime;
    int ahead = 0; // EagerPost
    // PyTorch: REDUCE_GRAD after a stage's last W or B; UNSHARD and RESHARD so that the stages of
    // the next three distinct ones are gathered
    bool collectives = false;
    bool operator==(const Lowering&) const = default;
};

std::string toText(const Lowering& lowering); // "just-in-time", "eager-post:2", "pytorch:collectives"
Result<Lowering> parseLowering(std::string_view text);
// The receives that a rule is meant for: posted for pytorch and eager-post, else blocking.
ReceiveMode receivesOf(LoweringRule rule);

// Messages that are already in the lists are dropped first. Fails (Invalid) where an op's input is not in the schedule,
// and under the rules that sweep where the order deadlocks. O(ops).
Result<Schedule> lower(const Schedule& schedule, const Lowering& lowering);

// The rule that makes these lists from their compute ops; none: no rule does. loweringOf: of lists that no rule makes,
// Batched where they post messages together, as these then need no buffers; else JustInTime. O(rules × ops).
std::optional<Lowering> exactLoweringOf(const Schedule& lists);
Lowering loweringOf(const Schedule& lists);

// Without sends and receives only, and without UNSHARD, RESHARD and REDUCE_GRAD only.
Schedule withoutMessages(const Schedule& schedule);
Schedule withoutCollectives(const Schedule& schedule);
// The inverse of lowering with collectives: without sends, receives, UNSHARD and RESHARD. REDUCE_GRAD stays where
// stages have copies. Lists whose ranks share state lose it with that: to lower others than the given ones, take
// withoutMessages().
Schedule withoutCommunication(const Schedule& schedule);
// Synchronous lists with collectives keep only their compute ops, without OPT, too: by these a schedule of shared state
// is recognised.
Schedule computeOrder(const Schedule& schedule);

} // namespace stagewright
