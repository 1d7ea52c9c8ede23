// One order of a step's messages between ranks that every rank can follow: each sends what it has made and posts the
// receives before it, and no two ranks wait for each other, however long a post waits for its other end. It is the
// order in which the messages would be made if every F took one unit of time, a B two: a message comes behind
// everything that it depends on.
#pragma once

#include <vector>

#include "engine/training/execution_plan.h"

namespace stagewright {

struct OrderedMessage {
    MessageKey key;
    int fromRank = 0;
    int toRank = 0;
};

// Messages that stay on their rank are left out. Any producers that the plan lacks too, with what depends on them.
// O(ops · rounds), a round being a sweep over the ranks.
std::vector<OrderedMessage> messageOrder(const ExecutionPlan& plan);
// For lists with sends and receives, where a send waits for its receive: as they send them. Where the lists wait
// for themselves, what nobody can come to is last.
std::vector<OrderedMessage> messageOrder(const ExecutionPlan& plan, const Schedule& lists, bool blockingReceives);

} // namespace stagewright
