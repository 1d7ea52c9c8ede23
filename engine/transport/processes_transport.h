// Messages between ranks of several processes. Each side posts its own end: the sender's bytes go from its buffer, the
// receiver's come into one of its own allocator when it takes them, with no copy between. Ranks of one process go on
// talking as threads do.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/transport/process_job.h"
#include "engine/transport/transport.h"
#include "schedules/messages/channels.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/placement.h"

namespace stagewright {

class ProcessesTransport : public Transport {
public:
    // What goes out later than it was sent (emulated links) or is on its way: to be called by some thread, until the
    // time returned (never: −1). Cheap where nothing is to do.
    virtual Nanos pump(Nanos now) = 0;
};

struct RanksByProcess {
    int ranks = 1;
    int perProcess = 1;
    int processOf(int rank) const { return rank / perProcess; }
};

// A message that rank `toRank`, which is here, takes from `fromRank`, which may be here too.
struct ExpectedMessage {
    MessageKey key;
    int fromRank = 0;
    int toRank = 0;
};

// expected: in the order of their sends, where channels are limited and sends wait for their receives. There a sender
// waits in waitSent() until its receiver has offered to take the message and the time of its link has passed; it then
// lies beside the receiver's buffers (one copy more). links: of such messages; of others the sender knows when they are
// available. threads: between the ranks that are here. wake: called when pump() is to be called earlier than it said.
Result<std::unique_ptr<ProcessesTransport>>
makeProcessesTransport(std::shared_ptr<ProcessJob> job, const RanksByProcess& where, const Placement& placement,
                       const CellSpace& cells, const std::vector<ExpectedMessage>& expected, const Channels& channels,
                       const Links& links, std::unique_ptr<Transport> threads, std::function<void()> wake);

} // namespace stagewright
