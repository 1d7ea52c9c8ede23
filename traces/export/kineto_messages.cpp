#include "traces/export/kineto_messages.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "schedules/model/kinds.h"
#include "traces/analysis/kernel_class.h"

namespace stagewright {

KinetoMessages::KinetoMessages(const Run& run, int rank) : m_run(run), m_timeline(*run.timeline), m_rank(rank)
{
    for (int r = 0; r < m_timeline.ranks(); ++r) m_ranks += fmt::format("{}{}", r == 0 ? "[" : ", ", r);
    m_ranks += "]";
    tie();
}

int KinetoMessages::peerOf(const Op& op) const
{
    const auto schedule = m_run.schedule ? m_run.schedule : m_timeline.schedule();
    const bool later = isMessage(op.kind) && isSend(op.kind) == carriesActivation(op.kind);
    const int stage = op.stage + (later ? 1 : -1);
    return schedule && stage >= 0 && stage < schedule->placement.stages()
               ? schedule->placement.rankOf(stage, op.microbatch)
               : -1;
}

// Messages that kernels of the communication library carried are said by those: a receive has its kernel's times, a
// send starts in it or, where as many kernels are left as sends, is the next one.
void KinetoMessages::tie()
{
    const auto all = m_timeline.spans();
    std::vector<SpanId> kernels, sends, receives;
    KernelClasses classes;
    for (const Track& track : m_timeline.tracks()) {
        if (track.rank != m_rank) continue;
        for (SpanId id = track.begin; id < track.end; ++id)
            if (track.lane == Lane::Kernel && classes.of(m_timeline, track, all[id]) == KernelClass::SendReceive)
                kernels.push_back(id);
            else if (isMessageLane(track.lane) && all[id].label == 0 && isMessage(all[id].op.kind) &&
                     peerOf(all[id].op) >= 0)
                (track.lane == Lane::Send ? sends : receives).push_back(id);
    }
    if (kernels.empty()) return;
    for (auto* list : {&kernels, &sends, &receives})
        std::stable_sort(list->begin(), list->end(), [&](SpanId a, SpanId b) { return all[a].start < all[b].start; });
    std::set<std::pair<Nanos, SpanId>> left;
    for (const SpanId kernel : kernels) left.insert({all[kernel].start, kernel});
    const auto tie = [&](SpanId message, SpanId kernel) {
        left.erase({all[kernel].start, kernel});
        m_messageOf[kernel] = message;
        m_carried.insert(message);
    };
    for (const SpanId id : receives)
        for (auto at = left.lower_bound({all[id].start, 0}); at != left.end() && at->first == all[id].start; ++at)
            if (all[at->second].end == all[id].end) {
                tie(id, at->second);
                break;
            }
    const bool inOrder = left.size() == sends.size();
    for (const SpanId id : sends) {
        auto at = inOrder ? left.begin() : left.upper_bound({all[id].start, noSpan});
        if (!inOrder && at == left.begin()) continue;
        if (!inOrder) --at;
        if (all[at->second].start <= all[id].start && (inOrder || all[at->second].end >= all[id].start))
            tie(id, at->second);
    }
    for (const auto* list : {&sends, &receives}) // numbered here once, tied or not
        for (const SpanId id : *list) m_sequenceOf[id] = m_sequences[{peerOf(all[id].op), list == &sends}]++;
}

std::string KinetoMessages::text(bool sends, int peer, std::int64_t sequence) const
{
    return fmt::format(
        R"(,"Collective name":"{}","Process Group Name":"0","Process Group Description":"default_pg","Process Group Ranks":"{}","Group size":{},"Rank":{},"Src Rank":{},"Dst Rank":{},"Seq":{})",
        sends ? "send" : "recv", m_ranks, m_timeline.ranks(), m_rank, sends ? m_rank : peer, sends ? peer : m_rank,
        sequence);
}

std::string KinetoMessages::arguments(bool sends, int peer, SpanId message)
{
    const auto numbered = m_sequenceOf.find(message);
    return text(sends, peer, numbered != m_sequenceOf.end() ? numbered->second : m_sequences[{peer, sends}]++);
}

std::string KinetoMessages::argumentsOfKernel(SpanId kernel) const
{
    const auto found = m_messageOf.find(kernel);
    if (found == m_messageOf.end()) return {};
    const Op& op = m_timeline.spans()[found->second].op;
    return text(isSend(op.kind), peerOf(op), m_sequenceOf.at(found->second));
}

} // namespace stagewright
