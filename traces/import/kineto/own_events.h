// Chrome JSON as exported here: ops have their kind as category and say their step, and bubbles follow from them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "traces/import/kineto/kineto_event.h"
#include "traces/import/kineto/trace_threads.h"

namespace stagewright {

class OwnEvents {
public:
    // Takes an op as a range with PyTorch's label, and leaves a bubble out; false: it is neither.
    bool take(const KinetoEvent& event, ForeignSpan span, TraceThreads& threads, ForeignRank& rank);
    // Once all are read: the ranges of other threads that isLabel are what the ops and steps were read from, so they
    // are operators of the host. Steps that follow each other are marked, so that gathers before and after a step's ops
    // are its own.
    void finish(ForeignRank& rank, const std::function<bool(std::uint32_t name)>& isLabel);

private:
    struct Before {
        std::string process, op;
        Nanos start = 0;
        Nanos end = -1;
    };
    Before m_before; // the op that was read last; none: its end is before its start
    // by process and step: from its first op to the end of its last
    std::map<std::string, std::map<std::int64_t, ForeignSpan>> m_steps;
    std::set<std::uint32_t> m_threads; // that have such ops
};

} // namespace stagewright
