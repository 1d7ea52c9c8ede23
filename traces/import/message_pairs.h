// Which sends of a job match which receives, and which collectives of several ranks belong together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "traces/foreign/foreign_trace.h"

namespace stagewright {

struct MessageEnd {
    std::uint32_t rank = 0;    // index into the ranks given
    std::uint32_t message = 0; // of ForeignRank::messages
    bool operator==(const MessageEnd&) const = default;
};

struct MessagePairs {
    struct Pair {
        MessageEnd send;
        MessageEnd receive;
    };
    std::vector<Pair> pairs;
    std::vector<std::vector<MessageEnd>> collectives; // two ranks or more, in order of ranks
    std::int64_t unpaired = 0;                        // sends and receives that lack their other side
    std::set<int> absent;                             // ranks of the job on those other sides that have no trace here
    std::int64_t unpairedCollectives = 0;
    std::int64_t lackingCollectives = 0; // of `collectives`: fewer ranks than their group has, as the traces list it
    std::vector<std::string> notes;
};

// Sends and receives by source, destination, tag and sequence number; in order if there are no numbers or they do not
// match. Numbers of a group are translated through its list of ranks if they can only be group numbers. Collectives by
// group, name and sequence number; without a number in order, and only where they overlap in time. Ranges named
// "nccl:send 0->1" name the messages of their kernels. Changes `from` and `to` of the ranks' messages to ranks of the
// job, and sorts launches by correlation. The result is meaningless once a stop was requested.
MessagePairs pairMessages(std::vector<ForeignRank>& ranks, const std::stop_token& stop = {});

} // namespace stagewright
