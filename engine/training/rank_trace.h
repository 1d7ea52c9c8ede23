// RankTrace: names the work that a rank requests from its device, so that a tracer's records find their op
// (profiler/cupti/external_id.h) and other tools see PyTorch's range names. A range lasts as long as the value; without
// a tracer it does nothing. On the rank's thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/training/training_state.h"

namespace stagewright {

class RankTrace {
public:
    using Range = GpuTracer::OpRange;

    RankTrace(const TrainingState& state, int rank);

    void beginStep() { m_beside.clear(); }
    // position: in the rank's list of computing ops; −1: outside it (gradient norm, optimizer). In the order that they
    // are recorded.
    Range op(const Op& op, int position);
    // A copy, or both ends of a message by NCCL, requested by the receiver.
    struct MessageRange {
        Range send;
        Range receive;
    };
    MessageRange message(const MessageKey& key) const;
    Range other() const; // what belongs to no op

private:
    const TrainingState& m_state;
    const GpuTracer* m_tracer;
    int m_rank;
    std::vector<std::string> m_names;                     // by position
    std::string m_name;                                   // of the running op outside the list
    std::map<std::pair<ExternalRole, int>, int> m_beside; // ops outside the list of this step so far, by role and stage
};

} // namespace stagewright
