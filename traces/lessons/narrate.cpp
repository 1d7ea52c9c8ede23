#include "traces/lessons/narrate.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/base/quantity.h"
#include "schedules/execute/deadlock_text.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/memory.h"

namespace stagewright::lessons {

namespace {

// Events by ascending priority: of several in one beat the last one here is described.
constexpr std::array<BeatEvent, 15> byPriority = {
    BeatEvent::None,         BeatEvent::GapEnds,    BeatEvent::Arrival,     BeatEvent::Filler,
    BeatEvent::DrainOver,    BeatEvent::Steady,     BeatEvent::Peak,        BeatEvent::LastForward,
    BeatEvent::SteadySkip,   BeatEvent::GapBegins,  BeatEvent::FirstReturn, BeatEvent::FirstBackward,
    BeatEvent::FirstForward, BeatEvent::CapReached, BeatEvent::Hang};

std::size_t priorityOf(BeatEvent event)
{
    return static_cast<std::size_t>(std::find(byPriority.begin(), byPriority.end(), event) - byPriority.begin());
}

class Narrator {
public:
    Narrator(const Timeline& timeline, int step, const NarrationOptions& options)
        : m_timeline(timeline), m_step(step), m_options(options)
    {
    }

    std::vector<Beat> beats()
    {
        collect();
        if (m_ops.empty()) return {};
        tellOps();
        tellGaps();
        tellMemory();
        tellRepetition();
        if (m_options.hang && m_options.hang->hung())
            tell(m_end, BeatEvent::Hang, noSpan, m_options.hang->cycle.empty() ? -1 : m_options.hang->cycle.front(),
                 "No rank can continue. " + describeDeadlock(*m_options.hang), "deadlock");
        return merged();
    }

private:
    struct OpAt {
        SpanId id;
        int rank;
    };

    void collect()
    {
        std::vector<Nanos> lengths;
        for (const Track& track : m_timeline.tracks()) {
            if (track.lane != Lane::Compute) continue;
            const auto [first, last] = m_timeline.stepRange(track, m_step);
            for (SpanId id = first; id < last; ++id) {
                const Span& one = span(id);
                if (one.step != m_step || !isBusy(one.op.kind) || (one.flags & SpanDiscarded)) continue;
                m_ops.push_back({id, track.rank});
                m_byRank[track.rank].push_back(id);
                lengths.push_back(one.duration());
                m_end = std::max(m_end, one.end);
                m_lastStage = std::max(m_lastStage, static_cast<int>(one.op.stage));
            }
        }
        std::stable_sort(m_ops.begin(), m_ops.end(),
                         [&](const OpAt& a, const OpAt& b) { return span(a.id).start < span(b.id).start; });
        if (lengths.empty()) return;
        m_median = std::max<Nanos>(upperMedian(std::move(lengths)), 1);
        m_begin = span(m_ops.front().id).start;
    }

    const Span& span(SpanId id) const { return m_timeline.spans()[id]; }
    std::string terse(SpanId id) const { return m_timeline.nameOf(span(id)); }
    std::string plain(SpanId id) const
    {
        const Op& op = span(id).op;
        return fmt::format("the {} of microbatch {} on rank {}", ruleOf(op.kind).title, op.microbatch,
                           m_timeline.trackOf(id).rank);
    }
    std::string time(Nanos nanos) const { return formatDuration(nanos, m_timeline.timeUnit()); }

    void tell(Nanos at, BeatEvent event, SpanId id, int rank, std::string plainWords, std::string terseWords,
              bool interesting = true)
    {
        Beat beat;
        beat.time = at;
        beat.event = event;
        beat.span = id;
        beat.rank = rank;
        beat.interesting = interesting;
        beat.plain = std::move(plainWords);
        if (!beat.plain.empty() && beat.plain[0] >= 'a' && beat.plain[0] <= 'z')
            beat.plain[0] = static_cast<char>(beat.plain[0] - 'a' + 'A');
        beat.terse = std::move(terseWords);
        m_told.push_back(std::move(beat));
    }

    void tellOps()
    {
        std::map<std::pair<int, Product>, bool> seen;
        std::map<int, std::vector<Product>> history;
        std::map<std::pair<int, int>, Nanos> forwardEnd; // by stage and microbatch
        std::set<int> steady, filled;
        std::map<int, SpanId> lastForward;
        for (const OpAt& op : m_ops)
            if (isForward(span(op.id).op.kind)) lastForward[op.rank] = op.id;
        for (const OpAt& op : m_ops) {
            const Span& one = span(op.id);
            const int j = one.op.microbatch;
            const int rank = op.rank;
            const OpKind kind = one.op.kind;
            m_told.push_back({one.start, op.id, rank, BeatEvent::None, false, 0, {}, terse(op.id)});
            bool& known = seen[{rank, productOf(kind)}];
            if (isForward(kind)) {
                forwardEnd[{one.op.stage, j}] = one.end;
                if (!known && one.op.stage == 0)
                    tell(one.start, BeatEvent::FirstForward, op.id, rank,
                         fmt::format(
                             "Microbatch {} enters the pipeline. Rank {} keeps its activations until its backward.", j,
                             rank),
                         fmt::format("{}: first forward", terse(op.id)));
                else if (!known)
                    tell(one.start, BeatEvent::Arrival, op.id, rank, arrival(op, j),
                         fmt::format("{}: first forward of rank {}", terse(op.id), rank));
                if (lastForward[rank] == op.id && m_byRank[rank].size() > 2)
                    tell(one.start, BeatEvent::LastForward, op.id, rank,
                         fmt::format("No more forwards on rank {}: only returns remain.", rank),
                         fmt::format("{}: last forward of rank {}", terse(op.id), rank));
            } else if (isReturn(kind) && !known) {
                const auto forward = forwardEnd.find({one.op.stage, j});
                if (one.op.stage == m_lastStage)
                    tell(one.start, BeatEvent::FirstBackward, op.id, rank,
                         fmt::format("Microbatch {} has reached the loss. From here gradients travel back.", j),
                         fmt::format("{}: first backward", terse(op.id)));
                else
                    tell(one.start, BeatEvent::FirstReturn, op.id, rank,
                         fmt::format("The first gradient is back on rank {}{}. Warm-up ends here.", rank,
                                     forward == forwardEnd.end()
                                         ? ""
                                         : fmt::format(", {} after its forward", time(one.start - forward->second))),
                         fmt::format("{}: first gradient on rank {}", terse(op.id), rank));
            } else if (isReturn(kind) && steady.count(rank) == 0 && alternates(history[rank])) {
                steady.insert(rank);
                tell(
                    one.start, BeatEvent::Steady, op.id, rank,
                    fmt::format("Rank {} now alternates: one in, one out. It holds {}.", rank, heldBefore(rank, op.id)),
                    fmt::format("rank {} steady, holds {}", rank, heldBefore(rank, op.id)));
            } else if (isWeightGrad(kind) && filled.count(rank) == 0) {
                if (const SpanId next = nextThatWaits(rank, op.id); next != noSpan) {
                    filled.insert(rank);
                    tell(
                        one.start, BeatEvent::Filler, op.id, rank,
                        fmt::format(
                            "Nothing waits for this weight gradient, so rank {} runs it until the input of {} arrives.",
                            rank, plain(next)),
                        fmt::format("{} fills until {}", terse(op.id), terse(next)));
                }
            }
            known = true;
            history[rank].push_back(productOf(kind));
        }
        for (const auto& [rank, ids] : m_byRank) {
            const Nanos end = span(ids.back()).end;
            if (m_end - end >= m_median / 2)
                tell(end, BeatEvent::DrainOver, ids.back(), rank,
                     fmt::format("Rank {} is done, {} before the last rank.", rank, time(m_end - end)),
                     fmt::format("rank {} done", rank));
        }
    }

    std::string arrival(const OpAt& op, int microbatch) const
    {
        std::string text = fmt::format("Rank {} receives microbatch {} and can start", op.rank, microbatch);
        const Nanos start = span(op.id).start;
        const auto before = m_byRank.find(op.rank - 1);
        if (before != m_byRank.end())
            for (const SpanId id : before->second)
                if (span(id).start <= start && span(id).end > start)
                    return text + fmt::format("; rank {} is already on {}.", op.rank - 1, span(id).op.microbatch);
        return text + ".";
    }

    // … F B F: the next return completes two rounds.
    static bool alternates(const std::vector<Product>& history)
    {
        std::vector<Product> rounds;
        for (const Product made : history)
            if (made == Product::Activation || made == Product::Gradient) rounds.push_back(made);
        const std::size_t n = rounds.size();
        return n >= 2 && rounds[n - 1] == Product::Activation && rounds[n - 2] == Product::Gradient;
    }

    int heldBefore(int rank, SpanId before) const
    {
        int held = 0;
        for (const SpanId id : m_byRank.at(rank)) {
            if (id == before) break;
            const OpKind kind = span(id).op.kind;
            held += isForward(kind) ? 1 : endsActivation(kind) ? -1 : 0;
        }
        return held;
    }

    // The next op of the rank other than a W, if its input was not there yet when this W started.
    SpanId nextThatWaits(int rank, SpanId weight) const
    {
        const auto& ids = m_byRank.at(rank);
        auto at = std::find(ids.begin(), ids.end(), weight);
        for (++at; at != ids.end() && isWeightGrad(span(*at).op.kind); ++at) {
        }
        if (at == ids.end()) return noSpan;
        for (const Edge& edge : m_timeline.edgesInto(*at))
            if (edge.kind == EdgeKind::Data && edge.arrival > span(weight).start) return *at;
        return noSpan;
    }

    std::string causeWords(const Gap& gap) const
    {
        const auto name = [&](SpanId id) { return id == noSpan ? std::string("its input") : plain(id); };
        switch (gap.cause) {
        case IdleCause::Warmup: return "its first input has not arrived yet";
        case IdleCause::Transfer: return fmt::format("the result of {} is in transit", name(gap.blamed));
        case IdleCause::Memory:
            return fmt::format("{} is ready, but memory is full",
                               gap.hasReadyOp ? stagewright::toText(gap.readyOp) : "a forward");
        case IdleCause::Order:
            return fmt::format("{} is ready, but the schedule orders it later",
                               gap.hasReadyOp ? stagewright::toText(gap.readyOp) : "an op");
        case IdleCause::Dependency:
        case IdleCause::Straggler:
        case IdleCause::Microbatch:
        case IdleCause::Imbalance: return fmt::format("it needs {}", name(gap.blamed));
        default: return std::string(meaningOf(gap.cause));
        }
    }

    void tellGaps()
    {
        auto bubbles = analyseBubbles(m_timeline, m_step, BubbleOptions{m_options.memoryCap});
        if (!bubbles) return;
        const auto& gaps = bubbles->gaps;
        for (std::size_t i = 0; i < gaps.size();) { // pieces of one interval belong together
            std::size_t last = i;
            while (last + 1 < gaps.size() && gaps[last + 1].rank == gaps[i].rank &&
                   gaps[last + 1].start == gaps[last].end)
                ++last;
            const Gap& first = gaps[i];
            const Nanos length = gaps[last].end - first.start;
            const Gap* largest = &first;
            for (std::size_t k = i; k <= last; ++k)
                if (gaps[k].end - gaps[k].start > largest->end - largest->start) largest = &gaps[k];
            const SpanId next = gaps[last].next;
            i = last + 1;
            if (length * 2 < m_median || next == noSpan) continue; // the drain has its own text
            if (first.cause != IdleCause::Warmup)
                tell(first.start, BeatEvent::GapBegins, next, first.rank,
                     fmt::format("Rank {} has nothing to run: {}.", first.rank, causeWords(*largest)),
                     fmt::format("rank {} waits: {}", first.rank, stagewright::toText(largest->cause)));
            tell(span(next).start, BeatEvent::GapEnds, next, first.rank,
                 fmt::format("{} starts; the gap was {}.", plain(next), time(length)),
                 fmt::format("{} after {}", terse(next), time(length)));
        }
    }

    void tellMemory()
    {
        if (!m_timeline.hasMemory()) return;
        for (const auto& [rank, ids] : m_byRank) {
            const MemorySeries series = memorySeries(m_timeline, rank, m_step);
            if (series.peak <= 0) continue;
            const auto holders = holdersAt(m_timeline, rank, series.peakTime);
            const SpanId at = startedBefore(rank, series.peakTime);
            int oldest = -1;
            for (const Holder& holder : holders)
                if (holder.microbatch >= 0 && (oldest < 0 || holder.microbatch < oldest)) oldest = holder.microbatch;
            std::set<int> held;
            for (const Holder& holder : holders) held.insert(holder.microbatch);
            if (held.size() > 1)
                tell(series.peakTime, BeatEvent::Peak, at, rank,
                     fmt::format("Rank {} holds {} microbatches: its peak. Microbatch {} has waited longest.", rank,
                                 held.size(), oldest),
                     fmt::format("rank {} peak {}", rank, held.size()));
            if (!m_options.memoryCap || series.peak < *m_options.memoryCap) continue;
            for (const MemoryPoint& point : series.points) {
                if (point.inUse < *m_options.memoryCap) continue;
                const SpanId frees = nextFreeing(rank, point.time);
                tell(point.time, BeatEvent::CapReached, frees, rank,
                     fmt::format("Rank {} is full ({} of {}). The next forward must wait for {}.", rank,
                                 formatBytes(point.inUse, m_timeline.memoryUnit()),
                                 formatBytes(*m_options.memoryCap, m_timeline.memoryUnit()),
                                 frees == noSpan ? "a backward" : plain(frees)),
                     fmt::format("rank {} full", rank));
                break;
            }
        }
    }

    SpanId startedBefore(int rank, Nanos moment) const
    {
        SpanId found = noSpan;
        for (const SpanId id : m_byRank.at(rank))
            if (span(id).start <= moment) found = id;
        return found;
    }
    SpanId nextFreeing(int rank, Nanos moment) const
    {
        for (const SpanId id : m_byRank.at(rank))
            if (span(id).end > moment && endsActivation(span(id).op.kind)) return id;
        return noSpan;
    }

    // Between the last first return and the first last forward every rank does the same again and again. Two rounds are
    // described.
    void tellRepetition()
    {
        Nanos from = m_begin, to = m_end;
        for (const auto& [rank, ids] : m_byRank) {
            Nanos firstReturn = m_end, lastForward = m_begin;
            for (const SpanId id : ids) {
                if (isReturn(span(id).op.kind)) firstReturn = std::min(firstReturn, span(id).start);
                if (isForward(span(id).op.kind)) lastForward = span(id).start;
            }
            from = std::max(from, firstReturn);
            to = std::min(to, lastForward);
        }
        std::vector<OpAt> ops;
        for (const OpAt& op : m_ops)
            if (span(op.id).start >= from && span(op.id).start < to) ops.push_back(op);
        if (ops.size() < 6) return;
        const Nanos room = std::max<Nanos>(m_median / 100, 1);
        // The first op of the round comes again, one round later.
        for (std::size_t n = 1; n * 3 <= ops.size(); ++n) {
            const auto alike = [&](std::size_t i, std::size_t j, Nanos period) {
                const Span& a = span(ops[i].id);
                const Span& b = span(ops[j].id);
                return ops[i].rank == ops[j].rank && a.op.kind == b.op.kind && a.op.stage == b.op.stage &&
                       std::abs(b.start - a.start - period) <= room;
            };
            const Nanos period = span(ops[n].id).start - span(ops[0].id).start;
            if (period <= 0) continue;
            std::size_t same = 0;
            while (same + n < ops.size() && alike(same, same + n, period)) ++same;
            const std::size_t rounds = (same + n) / n;
            if (rounds < 3) continue;
            Beat beat;
            beat.time = span(ops[2 * n].id).start;
            beat.span = ops[2 * n].id;
            beat.event = BeatEvent::SteadySkip;
            beat.skip = static_cast<int>((rounds - 2) * n); // ops; made beats in merged()
            beat.plain = fmt::format("The same pattern {} more time{}.", rounds - 2, rounds == 3 ? "" : "s");
            beat.terse = fmt::format("… {} more", rounds - 2);
            m_skipUntil = rounds * n < ops.size() ? span(ops[rounds * n].id).start : to;
            m_told.push_back(std::move(beat));
            return;
        }
    }

    std::vector<Beat> merged()
    {
        std::stable_sort(m_told.begin(), m_told.end(), [](const Beat& a, const Beat& b) { return a.time < b.time; });
        const Nanos room = m_median / 100;
        std::vector<Beat> out;
        for (Beat& one : m_told) {
            if (out.empty() || one.time - out.back().time > room) {
                out.push_back(std::move(one));
                continue;
            }
            Beat& here = out.back();
            const bool interesting = here.interesting || one.interesting;
            const int skip = std::max(here.skip, one.skip);
            const Nanos at = here.time;
            if (priorityOf(one.event) > priorityOf(here.event)) here = std::move(one);
            here.time = at;
            here.interesting = interesting;
            here.skip = skip;
        }
        for (Beat& beat : out) {
            if (beat.skip == 0) continue;
            const Nanos from = beat.time;
            beat.skip = static_cast<int>(std::count_if(
                out.begin(), out.end(), [&](const Beat& one) { return one.time > from && one.time < m_skipUntil; }));
        }
        return out;
    }

    const Timeline& m_timeline;
    int m_step;
    NarrationOptions m_options;
    std::vector<OpAt> m_ops; // by start
    std::map<int, std::vector<SpanId>> m_byRank;
    std::vector<Beat> m_told;
    Nanos m_median = 1;
    Nanos m_begin = 0;
    Nanos m_end = 0;
    Nanos m_skipUntil = 0;
    int m_lastStage = 0;
};

} // namespace

std::string_view toText(BeatEvent event)
{
    switch (event) {
    case BeatEvent::None: return "none";
    case BeatEvent::FirstForward: return "first forward";
    case BeatEvent::Arrival: return "arrival";
    case BeatEvent::FirstBackward: return "first backward";
    case BeatEvent::FirstReturn: return "first return";
    case BeatEvent::Steady: return "steady";
    case BeatEvent::GapBegins: return "gap begins";
    case BeatEvent::GapEnds: return "gap ends";
    case BeatEvent::Filler: return "filler";
    case BeatEvent::Peak: return "peak";
    case BeatEvent::CapReached: return "cap reached";
    case BeatEvent::LastForward: return "last forward";
    case BeatEvent::DrainOver: return "drain over";
    case BeatEvent::SteadySkip: return "steady skip";
    case BeatEvent::Hang: return "hang";
    }
    return "";
}

std::vector<Beat> beatsOf(const Timeline& timeline, int step, const NarrationOptions& options)
{
    return Narrator(timeline, step, options).beats();
}

} // namespace stagewright::lessons
