#include "traces/import/kineto/own_events.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/model/kinds.h"
#include "schedules/model/op.h"
#include "traces/import/kineto/xla_devices.h"

namespace stagewright {

bool OwnEvents::take(const KinetoEvent& event, ForeignSpan span, TraceThreads& threads, ForeignRank& rank)
{
    if (event.category == "bubble") {
        ++rank.leftOut["bubbles"];
        return true;
    }
    const auto op = parseOp(event.name);
    if (!op || ruleOf(op->kind).text != event.category) return false;
    // The ops of a pair that ran as one interval are listed one after the other.
    if (m_before.process == event.pid && m_before.start == span.start && m_before.end == span.end &&
        span.end > span.start && isCompute(op->kind) && !rank.annotations.empty()) {
        rank.annotations.back().name = rank.names.idOf(fmt::format("PP:({};{})OVERLAP_F_B", m_before.op, event.name));
        m_before = {};
        return true;
    }
    m_before =
        isCompute(op->kind) ? Before{std::string(event.pid), std::string(event.name), span.start, span.end} : Before{};
    span.name = rank.names.idOf(fmt::format("PP:{}", event.name));
    span.thread = threads.of(event.pid, event.tid, false, rank);
    if (event.args.step >= 0) {
        ForeignSpan& whole = m_steps[std::string(event.pid)].try_emplace(event.args.step, span).first->second;
        whole.start = std::min(whole.start, span.start);
        whole.end = std::max(whole.end, span.end);
    }
    rank.annotations.push_back(span);
    m_threads.insert(span.thread);
    return true;
}

void OwnEvents::finish(ForeignRank& rank, const std::function<bool(std::uint32_t name)>& isLabel)
{
    if (m_threads.empty()) return;
    const auto others =
        std::stable_partition(rank.annotations.begin(), rank.annotations.end(), [&](const ForeignSpan& span) {
            return m_threads.contains(span.thread) || !isLabel(span.name);
        });
    rank.hostOps.insert(rank.hostOps.end(), others, rank.annotations.end());
    rank.annotations.erase(others, rank.annotations.end());
    for (const auto& [process, steps] : m_steps)
        for (auto at = steps.begin(); at != steps.end() && std::next(at) != steps.end(); ++at)
            if (std::next(at)->second.start < at->second.end) return;
    for (const auto& [process, steps] : m_steps)
        for (const auto& [number, whole] : steps)
            rank.annotations.push_back(
                {whole.start, whole.end, rank.names.idOf(profilerStep(std::to_string(number))), whole.thread});
}

} // namespace stagewright
