#include "traces/compare/why.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/base/quantity.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/memory.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

constexpr std::size_t mostWaits = 3;

std::string list(const std::vector<std::string>& words, std::size_t most)
{
    std::string text;
    const std::size_t shown = std::min(words.size(), most);
    for (std::size_t i = 0; i < shown; ++i) {
        const bool last = i + 1 == shown && words.size() == shown;
        if (i > 0) text += last ? " and " : ", ";
        text += words[i];
    }
    if (words.size() > shown) text += fmt::format(" and {} more", words.size() - shown);
    return text;
}

bool comparable(const Run& a, const Run& b) { return a.timeline->timeUnit() == b.timeline->timeUnit(); }

// How long a rank waits before an op in either run.
struct WaitChange {
    SpanId a = noSpan;
    SpanId b = noSpan;
    int rank = 0;
    Nanos waitA = 0;
    Nanos waitB = 0;

    Nanos delta() const { return waitB - waitA; }
};

class Why {
public:
    Why(const Comparison& comparison, const Alignment& alignment, const Run& a, const Run& b)
        : m_comparison(comparison), m_alignment(alignment), m_runA(a), m_runB(b), m_a(*a.timeline), m_b(*b.timeline)
    {
    }

    std::vector<std::string> sentences()
    {
        madeAlike();
        if (m_comparison.sameUnits) conditions();
        if (m_comparison.sameUnits) {
            profiler();
            noise();
            compute();
            outside();
            slowerRanks();
            ledger();
            ladder();
            split();
            busy();
            fillers();
            firstOfTheLastRank();
            wires();
            waits();
            sameTime();
        } else {
            m_sentences.push_back("the runs use different units of time, so only shares are compared");
        }
        peaks();
        price();
        weights();
        partners();
        return std::move(m_sentences);
    }

private:
    std::string time(Nanos nanos) const { return formatDuration(nanos, m_a.timeUnit()); }
    std::string signedTime(Nanos nanos) const { return fmt::format("{}{}", nanos > 0 ? "+" : "", time(nanos)); }
    std::string nameA(SpanId id) const { return m_a.nameOf(m_a.spans()[id]); }
    std::string nameB(SpanId id) const { return m_b.nameOf(m_b.spans()[id]); }

    std::string change(Nanos a, Nanos b) const { return fmt::format("{} → {}", time(a), time(b)); }

    // Different setups are named before any figure.
    void madeAlike()
    {
        std::vector<std::string> words;
        for (const RunDifference& one : m_comparison.differences) {
            const auto named = [](const std::string& value) { return value.empty() ? std::string("unknown") : value; };
            words.push_back(fmt::format("{} {} against {}", one.title, named(one.a), named(one.b)));
        }
        if (!words.empty()) m_sentences.push_back("different setups: " + list(words, words.size()));
    }

    // What the schedules account for, apart from what comes with other conditions.
    void conditions()
    {
        const auto& rungs = m_comparison.ladder;
        const std::string changed = changedConditions(m_comparison);
        if (changed.empty() || rungs.size() < 2) return;
        Nanos ofSchedule = 0;
        bool other = false;
        for (const LadderRung& rung : rungs) {
            const bool own = rung.kind == RungKind::Split || rung.kind == RungKind::Place ||
                             rung.kind == RungKind::Order || rung.kind == RungKind::Placement ||
                             rung.kind == RungKind::Sharing || rung.kind == RungKind::Messages;
            if (own) ofSchedule += rung.change;
            other = other || own;
        }
        const Nanos all = m_comparison.change.stepDelta;
        m_sentences.push_back(
            other ? fmt::format("the schedule of B accounts for {} of {}, simulated with A's conditions; the rest, {}, "
                                "comes with another {}",
                                signedTime(ofSchedule), signedTime(all), signedTime(all - ofSchedule), changed)
                  : fmt::format("both run the same order: the change of {} comes with another {}", signedTime(all),
                                changed));
    }

    // Everything but the headline is of traced steps.
    void profiler()
    {
        const auto add = [this](const char* name, const Run& run, bool apart) {
            const auto times = profilerTimesOf(run);
            if (apart && times)
                m_sentences.push_back(fmt::format("a step of {} takes {} without the profiler, {} with it; all figures "
                                                  "below are of steps with it",
                                                  name, time(times->without), time(times->with)));
        };
        add("A", m_runA, m_comparison.withoutProfilerA);
        add("B", m_runB, m_comparison.withoutProfilerB);
    }

    void noise()
    {
        const Nanos delta = m_comparison.stepTimeB - m_comparison.stepTimeA;
        if (delta == 0) return;
        if (m_comparison.withinSpread)
            m_sentences.push_back(
                fmt::format("the change of {} is smaller than the spread between steps ({}), so it is not significant",
                            time(std::llabs(delta)), time(*m_comparison.spread)));
        else if (m_comparison.tooFewSteps)
            m_sentences.push_back(fmt::format(
                "the noise is unknown, so no difference is claimed: each run needs {} measured steps, and {}",
                fewestSteps, stepsText()));
    }

    std::string stepsText() const
    {
        std::vector<std::string> words;
        const auto add = [&words](const char* name, const Run& run) {
            const int steps = std::max(0, run.info.steps - run.info.warmupSteps);
            if (hasNoise(run) && steps < fewestSteps) words.push_back(fmt::format("{} has {}", name, steps));
        };
        add("A", m_runA);
        add("B", m_runB);
        return list(words, words.size());
    }

    // Ranks whose ops take longer in one run than the other ranks' do, whichever run is A: "the ops of rank 2 take longer
    // in B: forwards 1.50×, full backwards 1.48×".
    void slowerRanks()
    {
        slowerRanksIn("B", 1);
        slowerRanksIn("A", -1);
    }

    void slowerRanksIn(const char* slow, int sign) // −1: durations of B are the usual ones
    {
        struct Sum {
            Nanos a = 0, b = 0; // of the other run, and of the one that may be slow
            int ops = 0, beyond = 0;
        };
        std::map<OpKind, std::map<int, Sum>> sums;
        for (const OpDelta& op : m_comparison.ops) {
            if (!op.inBoth() || m_a.spans()[op.a].op.kind != m_b.spans()[op.b].op.kind) continue;
            Sum& sum = sums[op.op.kind][op.rank];
            const Nanos a = m_a.spans()[op.a].duration(), b = m_b.spans()[op.b].duration();
            sum.a += sign > 0 ? a : b;
            sum.b += sign > 0 ? b : a;
            ++sum.ops;
            sum.beyond += sign * op.durationDelta > 0 && op.duration.shows ? 1 : 0;
        }
        std::map<int, std::vector<std::string>> byRank;
        for (const auto& [kind, ranks] : sums) {
            std::vector<double> factors;
            for (const auto& [rank, sum] : ranks)
                factors.push_back(sum.a > 0 ? static_cast<double>(sum.b) / static_cast<double>(sum.a) : 1.0);
            const double usual = std::max(1.0, lowerMedian(std::move(factors)));
            for (const auto& [rank, sum] : ranks) {
                const double factor = sum.a > 0 ? static_cast<double>(sum.b) / static_cast<double>(sum.a) : 1.0;
                if (ranks.size() > 1 && factor > slowRank * usual && 2 * sum.beyond > sum.ops)
                    byRank[rank].push_back(fmt::format("{} {:.2f}×", kindWords(kind), factor));
            }
        }
        for (const auto& [rank, kinds] : byRank)
            m_sentences.push_back(
                fmt::format("the ops of rank {} take longer in {}: {}", rank, slow, list(kinds, kinds.size())));
    }

    static std::string ops(std::size_t count) { return fmt::format("{} op{}", count, count == 1 ? "" : "s"); }

    static std::string kindWords(OpKind kind)
    {
        return std::string(isCompute(kind) ? ruleOf(kind).plural : ruleOf(kind).text);
    }

    // Two runs at different clock speeds fool people: where the ops themselves explain over half, that comes first.
    void compute()
    {
        const Nanos delta = m_comparison.change.stepDelta;
        const auto ranks = static_cast<Nanos>(m_comparison.reportA.bubbles.ranks.size());
        const Nanos busy = m_comparison.change.busyDelta;
        if (!m_comparison.shows() || delta == 0 || ranks == 0 || m_a.ranks() != m_b.ranks() ||
            (busy < 0) != (delta < 0))
            return;
        if (std::llabs(busy) * 2 <= std::llabs(delta) * ranks || m_comparison.reportA.bubbles.busy == 0) return;
        if (m_runA.info.microbatches != m_runB.info.microbatches) return; // more work, not longer ops
        const double share = static_cast<double>(busy) / static_cast<double>(m_comparison.reportA.bubbles.busy);
        m_sentences.push_back(fmt::format("not the schedule: the ops themselves take {} {} time",
                                          formatPercent(std::fabs(share)), busy < 0 ? "less" : "more"));
    }

    // What is not the ops' time: gathers before the first of them, reductions and the optimizer behind the last.
    void outside()
    {
        const BubbleReport& a = m_comparison.reportA.bubbles;
        const BubbleReport& b = m_comparison.reportB.bubbles;
        const Nanos most = std::max<Nanos>(1, a.stepTime() / 500);
        if (std::llabs(b.outside() - a.outside()) < most) return;
        std::string text =
            fmt::format("gathers, reductions and the optimizer before the first op and after the last take {}",
                        change(a.outside(), b.outside()));
        text += a.makespan() == b.makespan() ? fmt::format("; the ops take {} in both", time(a.makespan()))
                                             : fmt::format("; the ops {}", change(a.makespan(), b.makespan()));
        m_sentences.push_back(std::move(text));
    }

    void ledger()
    {
        const Nanos delta = m_comparison.change.makespanDelta;
        std::vector<std::pair<Nanos, PathClass>> classes;
        for (std::size_t i = 0; i < pathClassCount; ++i)
            if (const Nanos moved = m_comparison.ledgerB.byClass[i] - m_comparison.ledgerA.byClass[i]; moved != 0)
                classes.emplace_back(moved, static_cast<PathClass>(i));
        if (classes.empty() || delta == 0) return;
        std::stable_sort(classes.begin(), classes.end(),
                         [](const auto& x, const auto& y) { return std::llabs(x.first) > std::llabs(y.first); });
        std::vector<std::string> words;
        Nanos rest = delta;
        for (std::size_t i = 0; i < std::min<std::size_t>(classes.size(), 2); ++i) {
            const auto [moved, part] = classes[i];
            words.push_back(fmt::format("{} {} ({})", lower(titleOf(part)), signedTime(moved),
                                        change(m_comparison.ledgerA.of(part), m_comparison.ledgerB.of(part))));
            rest -= moved;
        }
        if (rest != 0) words.push_back(fmt::format("the remainder {}", signedTime(rest)));
        m_sentences.push_back(fmt::format("on the critical path: {}", list(words, words.size())));
    }

    // "one change at a time: 33 units → 30 units (the backward is split into I and W) → …"
    void ladder()
    {
        const auto& rungs = m_comparison.ladder;
        if (rungs.size() < 2) return;
        if (rungs.size() == 2 && rungs.back().change == 0) return;
        std::string text = "one change at a time: " + time(rungs.front().makespan);
        for (std::size_t i = 1; i < rungs.size(); ++i)
            text += fmt::format(" → {} ({})", time(rungs[i].makespan), rungs[i].title);
        m_sentences.push_back(std::move(text));
    }

    // W ops that run after the last input gradient of their rank fill the drain.
    void fillers()
    {
        const auto drain = static_cast<std::size_t>(IdleCause::Drain);
        const Nanos a = m_comparison.reportA.bubbles.byCause[drain];
        const Nanos b = m_comparison.reportB.bubbles.byCause[drain];
        if (a <= b || m_a.ranks() != m_b.ranks()) return;
        const int late = latestWeights(m_b, m_alignment.opsB());
        if (late > latestWeights(m_a, m_alignment.opsA()))
            m_sentences.push_back(fmt::format("{} W op{} inside the drain; its idle time falls {}", late,
                                              late == 1 ? " runs" : "s run", change(a, b)));
    }

    static int latestWeights(const Timeline& timeline, const StepOps& ops)
    {
        int late = 0;
        for (int rank = 0; rank < ops.ranks(); ++rank) {
            int now = 0;
            for (const SpanId id : ops.busy(rank)) {
                const OpKind kind = timeline.spans()[id].op.kind;
                now = isWeightGrad(kind) ? now + 1 : isReturn(kind) ? 0 : now;
            }
            late += now;
        }
        return late;
    }

    void firstOfTheLastRank()
    {
        if (m_a.ranks() != m_b.ranks() || m_a.ranks() < 2) return;
        const auto first = [](const StepOps& ops, const Timeline& timeline) {
            const auto& busy = ops.busy(ops.ranks() - 1);
            return busy.empty() ? Nanos{0} : timeline.spans()[busy.front()].start - ops.windowBegin();
        };
        const Nanos a = first(m_alignment.opsA(), m_a);
        const Nanos b = first(m_alignment.opsB(), m_b);
        const int chunksA = m_runA.info.stages / std::max(1, m_a.ranks());
        const int chunksB = m_runB.info.stages / std::max(1, m_b.ranks());
        if (chunksA == chunksB || a == b || chunksA == 0 || chunksB == 0) return;
        m_sentences.push_back(fmt::format("the first op of rank {} starts after {} chunks: {}", m_a.ranks() - 1,
                                          b < a ? "shorter" : "longer", change(a, b)));
    }

    void wires()
    {
        const PathLedger& a = m_comparison.ledgerA;
        const PathLedger& b = m_comparison.ledgerB;
        if (a.of(PathClass::Wire) == b.of(PathClass::Wire)) return;
        const auto times = [](int count) { return count == 1 ? std::string("once") : fmt::format("{} times", count); };
        m_sentences.push_back(fmt::format("A waits for transfers {} on its critical path, B {}: {}", times(a.wires),
                                          times(b.wires), change(a.of(PathClass::Wire), b.of(PathClass::Wire))));
    }

    // GPipe and 1F1B.
    void sameTime()
    {
        if (m_comparison.change.stepDelta != 0 || !peaksDiffer()) return;
        m_sentences.push_back("same step time; the runs differ in memory");
    }

    bool peaksDiffer() const
    {
        return m_a.memoryUnit() == m_b.memoryUnit() && m_a.hasMemory() && m_b.hasMemory() &&
               peakByRank(m_a, m_comparison.stepA) != peakByRank(m_b, m_comparison.stepB);
    }

    // Other costs of the saved time besides activations: messages and copies of weights.
    void price()
    {
        if (!m_runA.schedule || !m_runB.schedule) return;
        const auto perMicrobatch = [](const Schedule& schedule) {
            std::size_t hops = 0;
            for (const auto& [stage, next] : schedule.graph.edges(schedule.stages))
                hops += schedule.placement.rankOf(stage, 0) != schedule.placement.rankOf(next, 0) ? 2U : 0U;
            return hops;
        };
        const Schedule& a = *m_runA.schedule;
        const Schedule& b = *m_runB.schedule;
        if (a.stages < 1 || b.stages < 1 || a.microbatches < 1 || b.microbatches < 1) return;
        std::vector<std::string> words;
        if (const std::size_t x = perMicrobatch(a), y = perMicrobatch(b); x != y)
            words.push_back(fmt::format("messages of a microbatch {} → {}", x, y));
        if (a.placement.hasCopies() != b.placement.hasCopies())
            words.push_back(b.placement.hasCopies() ? "every stage's weights are stored twice"
                                                    : "every stage's weights are stored once instead of twice");
        if (!words.empty()) m_sentences.push_back("besides: " + list(words, 2));
    }

    static std::string lower(std::string_view text)
    {
        std::string out(text);
        if (!out.empty() && out[0] >= 'A' && out[0] <= 'Z') out[0] = static_cast<char>(out[0] - 'A' + 'a');
        return out;
    }

    // "4 ranks × −6 units = idle −24 units (drain −12 units, …) and busy +2 units"
    void split()
    {
        const ChangeSplit& change = m_comparison.change;
        if (m_a.ranks() != m_b.ranks()) {
            m_sentences.push_back(fmt::format("A runs on {} ranks and B on {}", m_a.ranks(), m_b.ranks()));
            return;
        }
        if (change.makespanDelta == 0) return;
        std::vector<std::pair<Nanos, std::string>> causes;
        Nanos idle = 0;
        for (std::size_t i = 0; i < idleCauseCount; ++i) {
            idle += change.idleDelta[i];
            if (change.idleDelta[i] == 0) continue;
            causes.emplace_back(change.idleDelta[i], fmt::format("{} {}", lower(titleOf(static_cast<IdleCause>(i))),
                                                                 signedTime(change.idleDelta[i])));
        }
        std::stable_sort(causes.begin(), causes.end(),
                         [](const auto& x, const auto& y) { return std::llabs(x.first) > std::llabs(y.first); });
        std::vector<std::string> words;
        words.reserve(causes.size());
        for (const auto& cause : causes) words.push_back(cause.second);
        std::string text =
            fmt::format("{} ranks × {} = idle {}", m_a.ranks(), signedTime(change.makespanDelta), signedTime(idle));
        if (!words.empty()) text += fmt::format(" ({})", list(words, 4));
        text += change.busyDelta == 0 ? std::string(", busy unchanged")
                                      : fmt::format(", busy {}", signedTime(change.busyDelta));
        if (change.apartDelta != 0)
            text += fmt::format(", optimizer and collectives {}", signedTime(change.apartDelta));
        m_sentences.push_back(std::move(text));
    }

    // Longer or shorter work is listed separately from waiting.
    void busy()
    {
        const Nanos change = m_comparison.change.busyDelta;
        if (m_a.ranks() != m_b.ranks() || std::llabs(change) * 100 < m_comparison.reportA.bubbles.busy) return;
        Nanos forward = 0;
        Nanos backward = 0;
        Nanos recompute = 0;
        const auto add = [&](const BubbleReport& report, Nanos sign) {
            for (const RankBubbles& rank : report.ranks)
                for (const KindTraits& rule : allKinds()) {
                    const Nanos busy = sign * rank.busyByKind[static_cast<std::size_t>(rule.kind)];
                    if (isForward(rule.kind)) forward += busy;
                    if (isOfBackward(rule.kind)) backward += busy;
                    if (isRecompute(rule.kind)) recompute += busy;
                }
        };
        add(m_comparison.reportA.bubbles, -1);
        add(m_comparison.reportB.bubbles, 1);
        std::vector<std::string> parts;
        if (forward != 0) parts.push_back(fmt::format("forwards {}", signedTime(forward)));
        if (backward != 0) parts.push_back(fmt::format("backwards {}", signedTime(backward)));
        if (recompute != 0) parts.push_back(fmt::format("recomputing {}", signedTime(recompute)));
        m_sentences.push_back(fmt::format("the ops themselves take {} {} in total: {}", time(std::llabs(change)),
                                          change < 0 ? "less" : "more", list(parts, 3)));
    }

    void waits()
    {
        std::map<SpanId, WaitChange> changes; // by span of A
        for (const OpDelta& op : m_comparison.ops)
            if (op.a != noSpan && op.b != noSpan) changes[op.a] = {op.a, op.b, op.rank, 0, 0};
        for (const Gap& gap : m_comparison.reportA.bubbles.gaps)
            if (const auto change = changes.find(gap.next); gap.next != noSpan && change != changes.end())
                change->second.waitA += gap.end - gap.start;
        for (const Gap& gap : m_comparison.reportB.bubbles.gaps) {
            const SpanId partner = m_alignment.partnerOfB(gap.next);
            if (const auto change = changes.find(partner); partner != noSpan && change != changes.end())
                change->second.waitB += gap.end - gap.start;
        }
        std::vector<WaitChange> sorted;
        for (const auto& [a, change] : changes)
            if (change.delta() != 0) sorted.push_back(change);
        const bool faster = m_comparison.change.makespanDelta < 0;
        std::stable_sort(sorted.begin(), sorted.end(), [faster](const WaitChange& x, const WaitChange& y) {
            const bool xExplains = (x.delta() < 0) == faster; // changes in the direction of the total come first
            const bool yExplains = (y.delta() < 0) == faster;
            if (xExplains != yExplains) return xExplains;
            return std::llabs(x.delta()) > std::llabs(y.delta());
        });
        // smaller ones are noise beside the makespan
        const Nanos threshold = std::max<Nanos>(1, m_comparison.reportA.bubbles.makespan() / 500);
        for (std::size_t i = 0; i < std::min(sorted.size(), mostWaits); ++i)
            if (std::llabs(sorted[i].delta()) >= threshold) m_sentences.push_back(sentence(sorted[i]));
    }

    std::string sentence(const WaitChange& change) const
    {
        std::string text =
            change.waitB == 0
                ? fmt::format("rank {} no longer waits {} before {}", change.rank, time(change.waitA), nameB(change.b))
            : change.waitA == 0
                ? fmt::format("rank {} now waits {} before {}", change.rank, time(change.waitB), nameB(change.b))
                : fmt::format("rank {} waits {} before {} instead of {}", change.rank, time(change.waitB),
                              nameB(change.b), time(change.waitA));
        const std::string reason = reasonOf(change);
        return reason.empty() ? text : text + ": " + reason;
    }

    std::string reasonOf(const WaitChange& change) const
    {
        if (change.delta() < 0) { // ops that fill the wait
            const auto fillers = m_alignment.broughtForward(change.b);
            if (!fillers.empty()) return fmt::format("it runs {} first, which A ran later", names(fillers, true));
        } else {
            const auto gone = m_alignment.putOff(change.a);
            if (!gone.empty())
                return fmt::format("{} no longer {} the wait, B runs {} later", names(gone, false),
                                   gone.size() > 1 ? "fill" : "fills", gone.size() > 1 ? "them" : "it");
        }
        // the input that came last
        const bool less = change.delta() < 0;
        const SpanId last = less ? lastInput(m_alignment.opsA(), change.a) : lastInput(m_alignment.opsB(), change.b);
        const SpanId a = less ? last : m_alignment.partnerOfB(last);
        const SpanId b = less ? m_alignment.partnerOfA(last) : last;
        if (a != noSpan && b != noSpan)
            if (std::string reason = producerReason(a, b, less); !reason.empty()) return reason;
        // else the rank itself got there at another time
        const Nanos freeA = m_a.spans()[change.a].start - change.waitA - m_comparison.reportA.bubbles.windowBegin;
        const Nanos freeB = m_b.spans()[change.b].start - change.waitB - m_comparison.reportB.bubbles.windowBegin;
        const Nanos moved = freeB - freeA;
        if (moved == 0 || (moved > 0) != less || std::llabs(moved) * 2 < std::llabs(change.delta())) return {};
        return fmt::format("it gets there {} {}", time(std::llabs(moved)), moved < 0 ? "earlier" : "later");
    }

    static SpanId lastInput(const StepOps& ops, SpanId id)
    {
        Input last;
        for (const Input& input : ops.inputs(id))
            if (last.from == noSpan || input.arrival > last.arrival) last = input;
        return last.from;
    }

    // Empty where the producer did not move the way of the wait: then the rank itself got there at another time.
    std::string producerReason(SpanId a, SpanId b, bool earlier) const
    {
        const Span& spanA = m_a.spans()[a];
        const Span& spanB = m_b.spans()[b];
        const int rank = m_alignment.opsA().rankOf(a);
        const Nanos endDelta = (spanB.end - m_comparison.reportB.bubbles.windowBegin) -
                               (spanA.end - m_comparison.reportA.bubbles.windowBegin);
        if (endDelta == 0 || (endDelta < 0) != earlier) return {};
        std::string text = fmt::format("{} on rank {} ends {} {}", nameB(b), rank, time(std::llabs(endDelta)),
                                       endDelta < 0 ? "earlier" : "later");
        if (isFullBackward(spanA.op.kind) && isInputGrad(spanB.op.kind))
            return text + fmt::format(" than {} did, because the weight gradient runs later", nameA(a));
        if (isInputGrad(spanA.op.kind) && isFullBackward(spanB.op.kind))
            return text + fmt::format(" than {} did, because the weight gradient runs within it", nameA(a));
        const auto gone = m_alignment.putOff(a);
        const auto come = m_alignment.broughtForward(b);
        if (endDelta < 0 && !gone.empty())
            return text + fmt::format(", because {} {} after it", names(gone, false), gone.size() > 1 ? "run" : "runs");
        if (endDelta > 0 && !come.empty())
            return text + fmt::format(", because {} {} before it", names(come, true), come.size() > 1 ? "run" : "runs");
        const Nanos durationDelta = spanB.duration() - spanA.duration();
        if ((durationDelta < 0) == (endDelta < 0) && std::llabs(durationDelta) * 2 >= std::llabs(endDelta))
            text += fmt::format(", because it is {} {}", time(std::llabs(durationDelta)),
                                durationDelta < 0 ? "shorter" : "longer");
        return text;
    }

    std::string names(const std::vector<SpanId>& spans, bool ofB) const
    {
        std::vector<std::string> words;
        words.reserve(spans.size());
        for (const SpanId id : spans) words.push_back(ofB ? nameB(id) : nameA(id));
        return list(words, 3);
    }

    void peaks()
    {
        if (m_a.memoryUnit() != m_b.memoryUnit() || !m_a.hasMemory() || !m_b.hasMemory()) return;
        const auto a = peakByRank(m_a, m_comparison.stepA);
        const auto b = peakByRank(m_b, m_comparison.stepB);
        std::vector<std::size_t> changed;
        for (std::size_t rank = 0; rank < std::min(a.size(), b.size()); ++rank)
            if (a[rank] != b[rank]) changed.push_back(rank);
        if (changed.empty()) {
            m_sentences.push_back("peak activation is the same on every rank");
            return;
        }
        std::stable_sort(changed.begin(), changed.end(), [&](std::size_t x, std::size_t y) {
            return std::llabs(b[x] - a[x]) > std::llabs(b[y] - a[y]);
        });
        const auto risen =
            std::count_if(changed.begin(), changed.end(), [&](std::size_t rank) { return b[rank] > a[rank]; });
        const bool alike = risen == 0 || risen == static_cast<std::ptrdiff_t>(changed.size());
        std::vector<std::string> words;
        words.reserve(changed.size());
        for (const std::size_t rank : changed)
            words.push_back(fmt::format("on rank {} from {} to {}", rank, formatBytes(a[rank], m_a.memoryUnit()),
                                        formatBytes(b[rank], m_a.memoryUnit())));
        m_sentences.push_back(fmt::format("peak activation {} {}",
                                          !alike      ? "changed"
                                          : risen > 0 ? "rose"
                                                      : "fell",
                                          list(words, 4)));
    }

    // A run that changes the mathematics is more than a change of speed.
    void weights()
    {
        const std::string a = weightsText(m_runA);
        const std::string b = weightsText(m_runB);
        if (!a.empty()) m_sentences.push_back("A changes the mathematics: weights " + a);
        if (!b.empty()) m_sentences.push_back("B changes the mathematics: weights " + b);
    }

    void partners()
    {
        if (m_alignment.splitsBackward())
            m_sentences.push_back(
                "one run splits the backward into input and weight gradient: its input gradients are compared with "
                "the full backwards of the other");
        if (m_alignment.onlyInA() + m_alignment.onlyInB() > 0)
            m_sentences.push_back(fmt::format("{} of A and {} of B have no partner in the other run",
                                              ops(m_alignment.onlyInA()), ops(m_alignment.onlyInB())));
    }

    const Comparison& m_comparison;
    const Alignment& m_alignment;
    const Run& m_runA;
    const Run& m_runB;
    const Timeline& m_a;
    const Timeline& m_b;
    std::vector<std::string> m_sentences;
};

std::string plainHeadline(const Comparison& comparison, const Run& a, const Run& b)
{
    const BubbleReport& reportA = comparison.reportA.bubbles;
    const BubbleReport& reportB = comparison.reportB.bubbles;
    if (!comparable(a, b))
        return fmt::format("bubble {} in A and {} in B; their times are in different units",
                           formatPercent(reportA.bubbleFraction), formatPercent(reportB.bubbleFraction));
    const Nanos timeA = comparison.stepTimeA;
    const Nanos timeB = comparison.stepTimeB;
    const Nanos unit = a.timeline->timeUnit();
    const char* const apart = " without the profiler";
    const std::string textA = formatDuration(timeA, unit) + (comparison.withoutProfilerA ? apart : "");
    const std::string textB = formatDuration(timeB, unit) + (comparison.withoutProfilerB ? apart : "");
    if (timeA == timeB) return fmt::format("A and B take the same time: {}", formatDuration(timeA, unit));
    if (comparison.withinSpread)
        return fmt::format("no significant difference: {} against {}, and steps differ by {}", textB, textA,
                           formatDuration(*comparison.spread, unit));
    if (comparison.tooFewSteps)
        return fmt::format("no difference is claimed with fewer than {} measured steps per run: {} against {}",
                           fewestSteps, textB, textA);
    const double change = timeA > 0 ? static_cast<double>(timeB - timeA) / static_cast<double>(timeA) : 0;
    if (timeA == 0 || std::fabs(change) < 0.0005)
        return fmt::format("A and B take the same time to within 0.1 %: {} and {}", textA, textB);
    return fmt::format("B is {} {}: {} against {}", formatPercent(std::fabs(change)), change < 0 ? "faster" : "slower",
                       textB, textA);
}

} // namespace

std::string changedConditions(const Comparison& comparison)
{
    constexpr std::string_view conditions[] = {"perturb",      "speed",           "link_latency", "cluster",
                                               "memory_limit", "microbatch_size", "model",        "microbatches"};
    std::vector<std::string> words;
    for (const RunDifference& one : comparison.differences)
        if (!one.a.empty() && !one.b.empty() &&
            std::find(std::begin(conditions), std::end(conditions), one.key) != std::end(conditions))
            words.push_back(one.title);
    return list(words, words.size());
}

std::string headlineOf(const Comparison& comparison, const Run& a, const Run& b)
{
    const std::string changed = changedConditions(comparison), text = plainHeadline(comparison, a, b);
    const bool claims = comparison.sameUnits && comparison.shows() && comparison.stepTimeA != comparison.stepTimeB;
    return changed.empty() || !claims ? text : fmt::format("with another {}, {}", changed, text);
}

std::vector<std::string> whyOf(const Comparison& comparison, const Alignment& alignment, const Run& a, const Run& b)
{
    return Why(comparison, alignment, a, b).sentences();
}

} // namespace stagewright
