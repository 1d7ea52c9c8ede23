// Messages of a rank in Kineto's terms: the other rank, the sequence number, and the kernel of a communication library
// that carried each, if any.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "traces/run/run.h"

namespace stagewright {

class KinetoMessages {
public:
    KinetoMessages(const Run& run, int rank);

    // The rank at the other side, from the placement; −1: the run has no schedule.
    int peerOf(const Op& op) const;
    // A kernel says its message itself; then no record on the host is needed.
    bool hasKernel(SpanId message) const { return m_carried.contains(message); }
    std::string argumentsOfKernel(SpanId kernel) const; // ',"Collective name":…'; empty: it carried none
    // Those of a message on lane Send or Receive, else (noSpan) of the next one to or from that rank.
    std::string arguments(bool sends, int peer, SpanId message = noSpan);

private:
    void tie();
    std::string text(bool sends, int peer, std::int64_t sequence) const;

    const Run& m_run;
    const Timeline& m_timeline;
    int m_rank;
    std::string m_ranks;                                      // "[0, 1]"
    std::unordered_map<SpanId, SpanId> m_messageOf;           // by kernel
    std::unordered_set<SpanId> m_carried;                     // messages that kernels carried
    std::unordered_map<SpanId, std::int64_t> m_sequenceOf;    // by message, if kernels carried any
    std::map<std::pair<int, bool>, std::int64_t> m_sequences; // so far, by peer and direction
};

} // namespace stagewright
