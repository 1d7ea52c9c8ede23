// Which op each message between ranks carries.
#pragma once

#include <vector>

#include "schedules/model/schedule.h"
#include "traces/foreign/foreign_trace.h"
#include "traces/import/message_pairs.h"
#include "traces/import/op_ranges.h"
#include "traces/import/rank_work.h"

namespace stagewright {

struct MessageOp { // the op that made it
    int step = -1;
    int rank = -1; // −1: unknown
    Op op;
};

// By pair. Messages of a pair of ranks are sent in the order in which their ops ran: each op whose result the other
// rank needs takes its share if their numbers divide, else the last op that had ended when a message was posted.
std::vector<MessageOp> opsOfMessages(const std::vector<MessagePairs::Pair>& pairs,
                                     const std::vector<ForeignRank>& ranks, const std::vector<RankOps>& ops,
                                     const std::vector<RankWork>& work, const Schedule& schedule);

// The op that needs the result of `op`: the next stage's forward, the previous stage's input gradient. False: none.
bool consumerOf(const Op& op, int stages, Op& consumer);

} // namespace stagewright
