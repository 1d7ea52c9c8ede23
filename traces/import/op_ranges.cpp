#include "traces/import/op_ranges.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "schedules/model/kinds.h"
#include "traces/import/rank_work.h"
#include "traces/run/rank_places.h"

namespace stagewright {

namespace {

struct StepRange {
    Nanos start;
    Nanos end;
    std::int64_t number; // −1: not said
    std::uint32_t thread;
};

class Reader {
public:
    Reader(const std::vector<ForeignRank>& ranks, const LabelRules& rules, bool stepsOfAll)
        : m_ranks(ranks), m_stepsOfAll(stepsOfAll), m_meanings(ranks.size())
    {
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            m_meanings[r].resize(ranks[r].names.size());
            std::vector<bool> used(ranks[r].names.size(), false);
            for (const auto* spans : {&ranks[r].annotations, &ranks[r].deviceAnnotations})
                for (const ForeignSpan& span : *spans) used[span.name] = true;
            for (std::size_t name = 0; name < used.size(); ++name)
                if (used[name]) m_meanings[r][name] = rules.meaningOf(ranks[r].names[static_cast<std::uint32_t>(name)]);
        }
    }

    OpReading read()
    {
        OpReading out;
        out.ranks.resize(m_ranks.size());
        std::array<bool, labelDialectCount> found{};
        for (const auto& meanings : m_meanings)
            for (const auto& meaning : meanings)
                if (meaning && meaning->what == LabelMeaning::What::Op)
                    found[static_cast<std::size_t>(meaning->dialect)] = true;
        for (std::size_t d = 0; d < found.size() && !out.dialect; ++d)
            if (found[d]) out.dialect = static_cast<LabelDialect>(d);
        for (std::size_t r = 0; r < m_ranks.size(); ++r) collect(r, out);
        if (m_stepsOfAll) keepCommonSteps();
        useOldLetters(out);
        cutSteps(out);
        numberMicrobatches(out);
        return out;
    }

private:
    void collect(std::size_t r, OpReading& out)
    {
        std::vector<OpRange>& ops = out.ranks[r].ops;
        for (const bool device : {false, true}) {
            if (device && !ops.empty()) break; // the host's ranges say more
            for (const ForeignSpan& span : device ? m_ranks[r].deviceAnnotations : m_ranks[r].annotations) {
                const auto& meaning = m_meanings[r][span.name];
                if (!meaning || meaning->what != LabelMeaning::What::Op || meaning->dialect != out.dialect) continue;
                m_oldLetters = m_oldLetters || meaning->oldLetters;
                for (const Op& op : meaning->ops) {
                    OpRange range{span.start,
                                  span.end,
                                  op,
                                  span.thread,
                                  0,
                                  meaning->saysStage,
                                  meaning->saysMicrobatch,
                                  meaning->ops.size() > 1,
                                  device,
                                  meaning->chunk};
                    if (meaning->oldLetters) m_fullBackward.insert({r, ops.size()});
                    ops.push_back(range);
                }
            }
        }
        std::vector<std::size_t> order(ops.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return std::tuple(ops[a].start, -ops[a].end) < std::tuple(ops[b].start, -ops[b].end);
        });
        std::vector<OpRange> kept;
        std::set<std::size_t> full;
        std::map<std::uint32_t, Nanos> until; // by thread: end of the compute op that is open
        for (const std::size_t i : order) {
            const OpRange& range = ops[i];
            if (isCompute(range.op.kind)) {
                Nanos& end = until.try_emplace(range.thread, range.start).first->second;
                const bool second = range.paired && !kept.empty() && kept.back().paired &&
                                    kept.back().start == range.start && kept.back().end == range.end;
                if (range.end <= end && range.start < end && !second) {
                    ++out.nested;
                    continue;
                }
                end = std::max(end, range.end);
            }
            if (m_fullBackward.contains({r, i})) full.insert(kept.size());
            kept.push_back(range);
        }
        ops = std::move(kept);
        m_full.push_back(std::move(full));
        collectSteps(r);
    }

    void collectSteps(std::size_t r)
    {
        const auto marksIn = [&](const std::vector<ForeignSpan>& spans) {
            std::vector<StepRange> found;
            for (const ForeignSpan& span : spans)
                if (const auto& meaning = m_meanings[r][span.name];
                    meaning && meaning->what == LabelMeaning::What::Step)
                    found.push_back({span.start, span.end, meaning->step, span.thread});
            return found;
        };
        m_deviceSteps.push_back(marksIn(m_ranks[r].deviceAnnotations));
        std::vector<StepRange> steps = marksIn(m_ranks[r].annotations);
        if (steps.empty()) { // on streams alone: from the first stream's start to the last one's end
            std::map<std::int64_t, StepRange> whole;
            for (const StepRange& step : m_deviceSteps.back()) {
                if (step.number < 0) continue;
                StepRange& all = whole.try_emplace(step.number, step).first->second;
                all.start = std::min(all.start, step.start);
                all.end = std::max(all.end, step.end);
            }
            for (const auto& [number, step] : whole) steps.push_back(step);
            m_onDevice.push_back(!steps.empty());
        } else {
            m_onDevice.push_back(false);
        }
        if (std::any_of(steps.begin(), steps.end(), [](const StepRange& step) { return step.number >= 0; }))
            std::erase_if(steps, [](const StepRange& step) { return step.number < 0; });
        std::sort(steps.begin(), steps.end(), [](const StepRange& a, const StepRange& b) {
            return std::tie(a.start, a.end) < std::tie(b.start, b.end);
        });
        // One range for each number: the first for a name on several threads.
        std::set<std::int64_t> seen;
        std::erase_if(steps,
                      [&](const StepRange& step) { return step.number >= 0 && !seen.insert(step.number).second; });
        if (!steps.empty() && steps.front().number < 0)
            for (std::size_t i = 0; i < steps.size(); ++i) steps[i].number = static_cast<std::int64_t>(i);
        m_steps.push_back(std::move(steps));
    }

    void keepCommonSteps()
    {
        std::map<std::int64_t, std::size_t> ranksWith;
        std::size_t marked = 0;
        for (const auto& steps : m_steps) {
            marked += steps.empty() ? 0 : 1;
            for (const StepRange& step : steps) ++ranksWith[step.number];
        }
        for (auto* all : {&m_steps, &m_deviceSteps})
            for (auto& steps : *all)
                std::erase_if(steps, [&](const StepRange& step) {
                    const auto found = ranksWith.find(step.number);
                    return found != ranksWith.end() && found->second < marked;
                });
    }

    // Older files write B for the input gradient and BW for the full backward. Where zero-bubble's letters come without
    // W, B is the full one.
    void useOldLetters(OpReading& out)
    {
        if (out.dialect == LabelDialect::ZeroBubble) {
            const auto isWeight = [](const OpRange& range) { return makesWeightGradient(range.op.kind); };
            for (const RankOps& rank : out.ranks)
                if (std::any_of(rank.ops.begin(), rank.ops.end(), isWeight)) return;
            for (RankOps& rank : out.ranks)
                for (OpRange& range : rank.ops)
                    if (isInputGrad(range.op.kind)) range.op.kind = otherReturn(range.op.kind);
            return;
        }
        if (out.dialect != LabelDialect::PyTorch && out.dialect != LabelDialect::User) return;
        bool hasInput = false;
        bool hasWeight = false;
        for (const RankOps& rank : out.ranks)
            for (const OpRange& range : rank.ops) {
                hasInput = hasInput || isInputGrad(range.op.kind);
                hasWeight = hasWeight || isWeightGrad(range.op.kind);
            }
        if (!m_oldLetters && (!hasWeight || hasInput || out.dialect == LabelDialect::User)) return;
        for (std::size_t r = 0; r < out.ranks.size(); ++r)
            for (std::size_t i = 0; i < out.ranks[r].ops.size(); ++i)
                if (OpKind& kind = out.ranks[r].ops[i].op.kind; isFullBackward(kind) && !m_full[r].contains(i))
                    kind = otherReturn(kind);
        out.notes.emplace_back(
            "labels use PyTorch's older letters: B is read as the input gradient, BW as the full backward");
    }

    using Key = std::tuple<Op, int>; // an op and its chunk
    static Key keyOf(const OpRange& range) { return {range.op, range.chunk}; }

    bool useMarks(OpReading& out)
    {
        std::set<std::int64_t> numbers;
        std::size_t inside = 0;
        std::size_t all = 0;
        for (std::size_t r = 0; r < out.ranks.size(); ++r) {
            for (const StepRange& step : m_steps[r]) numbers.insert(step.number);
            std::set<std::tuple<std::int64_t, Key>> seen;
            for (OpRange& range : out.ranks[r].ops) {
                const StepRange* step = stepOf(r, range);
                range.step = step == nullptr ? -1 : static_cast<int>(step - m_steps[r].data());
                ++all;
                if (step == nullptr) continue;
                ++inside;
                const bool one = range.saysMicrobatch && (isCompute(range.op.kind) || isMessage(range.op.kind));
                // an op twice in a step: no such marks
                if (one && !seen.insert({step->number, keyOf(range)}).second) return false;
            }
        }
        if (numbers.empty() || inside * 2 < all) return false;
        std::map<std::int64_t, int> index;
        for (const std::int64_t number : numbers) index.emplace(number, static_cast<int>(index.size()));
        out.steps = static_cast<int>(index.size());
        out.markedSteps = true;
        for (std::size_t r = 0; r < out.ranks.size(); ++r) {
            auto& rank = out.ranks[r];
            rank.markedSteps = true;
            rank.stepsOnDevice = m_onDevice[r];
            for (const StepRange& step : m_steps[r]) rank.steps.push_back({step.start, step.end, index[step.number]});
            for (const StepRange& step : m_deviceSteps[r])
                if (const auto found = index.find(step.number); found != index.end())
                    rank.deviceSteps.push_back({step.start, step.end, found->second, step.thread});
            std::sort(rank.deviceSteps.begin(), rank.deviceSteps.end(), [](const StepTimes& a, const StepTimes& b) {
                return std::tie(a.thread, a.begin) < std::tie(b.thread, b.begin);
            });
            for (OpRange& range : rank.ops)
                if (range.step >= 0) range.step = index[m_steps[r][static_cast<std::size_t>(range.step)].number];
            for (const OpRange& range : rank.ops) out.outside += range.step < 0 && !isMessage(range.op.kind) ? 1 : 0;
            std::erase_if(rank.ops, [](const OpRange& range) { return range.step < 0; });
        }
        return true;
    }

    // The step that an op starts in. One that starts where a step ends is behind it, unless it takes no time.
    const StepRange* stepOf(std::size_t r, const OpRange& range) const
    {
        const auto& steps = m_steps[r];
        auto after = std::upper_bound(steps.begin(), steps.end(), range.start,
                                      [](Nanos at, const StepRange& step) { return at < step.start; });
        if (after == steps.begin()) return nullptr;
        --after;
        return range.start < after->end || range.end <= after->end ? &*after : nullptr;
    }

    // The n-th time an op comes it belongs to step n. A backward whose forward did not come is of a step that began
    // before.
    void cutByRepetition(OpReading& out)
    {
        for (RankOps& rank : out.ranks) {
            if (cutByOptimizer(rank)) {
                for (const OpRange& range : rank.ops) out.steps = std::max(out.steps, range.step + 1);
                markStepBegins(rank);
                continue;
            }
            std::map<Key, int> times;
            std::vector<OpRange> kept;
            for (OpRange range : rank.ops) {
                const bool one = range.saysMicrobatch && (isCompute(range.op.kind) || isMessage(range.op.kind));
                if (!one) {
                    range.step = kept.empty() ? 0 : kept.back().step;
                    kept.push_back(range);
                    continue;
                }
                Key key = keyOf(range);
                if (isOfBackward(range.op.kind)) {
                    Key forward = key;
                    std::get<0>(forward) = asForward(std::get<0>(forward));
                    const auto done = times.find(forward);
                    const auto before = times.find(key);
                    const bool stacked = range.op.count > 1 || range.op.half != 0 || range.op.slice >= 0;
                    if (!stacked &&
                        (done == times.end() ? 0 : done->second) <= (before == times.end() ? 0 : before->second)) {
                        ++out.outside;
                        continue;
                    }
                }
                range.step = times[key]++;
                out.steps = std::max(out.steps, range.step + 1);
                kept.push_back(range);
            }
            rank.ops = std::move(kept);
            markStepBegins(rank);
        }
        out.steps = std::max(out.steps, 1);
    }

    static void markStepBegins(RankOps& rank)
    {
        constexpr Nanos always = std::numeric_limits<Nanos>::max() / 2;
        for (const OpRange& range : rank.ops) {
            if (!rank.steps.empty() && range.step <= rank.steps.back().step) continue;
            if (!rank.steps.empty()) rank.steps.back().end = range.start - 1;
            rank.steps.push_back({rank.steps.empty() ? -always : range.start, always, range.step});
        }
        rank.stepsOnDevice = !rank.ops.empty() && rank.ops.front().device;
    }

    // Names without the microbatch don't repeat: a step ends with its optimizer. False: microbatches are named, or
    // nothing is an optimizer.
    static bool cutByOptimizer(RankOps& rank)
    {
        bool counted = false;
        bool optimizer = false;
        for (const OpRange& range : rank.ops) {
            counted = counted || (isCompute(range.op.kind) && !range.saysMicrobatch);
            optimizer = optimizer || isOptimizer(range.op.kind);
        }
        if (!counted || !optimizer) return false;
        int step = 0;
        bool any = false;
        bool ended = false;
        for (OpRange& range : rank.ops) {
            if (isCompute(range.op.kind)) {
                if (ended) ++step;
                ended = false;
                any = true;
            } else if (isOptimizer(range.op.kind)) {
                ended = any; // one before the first pass ends a step that began before the trace
            }
            range.step = step;
        }
        return true;
    }

    void cutSteps(OpReading& out)
    {
        if (useMarks(out)) return;
        out.markedSteps = false;
        out.steps = 0;
        cutByRepetition(out);
    }

    static void numberMicrobatches(OpReading& out)
    {
        for (RankOps& rank : out.ranks) {
            std::map<std::tuple<int, OpKind, int, int>, int> next;
            for (OpRange& range : rank.ops)
                if (!range.saysMicrobatch)
                    range.op.microbatch = next[{range.step, range.op.kind, range.op.stage, range.chunk}]++;
        }
    }

    const std::vector<ForeignRank>& m_ranks;
    bool m_stepsOfAll;
    std::vector<std::vector<std::optional<LabelMeaning>>> m_meanings; // by rank and name
    std::vector<std::vector<StepRange>> m_steps;
    std::vector<std::vector<StepRange>> m_deviceSteps;            // by rank: marks on its streams
    std::vector<bool> m_onDevice;                                 // by rank: m_steps are those of streams
    std::set<std::pair<std::size_t, std::size_t>> m_fullBackward; // rank, place while collecting
    std::vector<std::set<std::size_t>> m_full;                    // by rank: ops written BW
    bool m_oldLetters = false;
};

// The place of a rank in the group named as the pipeline's; −1: none.
int placeInPipeline(const ForeignRank& rank, std::vector<int>* members = nullptr)
{
    for (const auto& [group, purpose] : rank.groupPurpose) {
        const bool pipeline = dimensionOf(purpose) == ParallelDimension::Pipeline;
        const auto ranks = rank.groups.find(group);
        if (!pipeline || ranks == rank.groups.end()) continue;
        const auto found = std::find(ranks->second.begin(), ranks->second.end(), rank.rank);
        if (found == ranks->second.end()) continue;
        if (members != nullptr) *members = ranks->second;
        return static_cast<int>(found - ranks->second.begin());
    }
    return -1;
}

// Every rank runs its first forward while rank 0 runs its own, for more than half of the shorter of them. Stages can't:
// a stage waits for the one before it.
bool runTogether(const std::vector<RankOps>& ranks)
{
    const auto firstForward = [](const RankOps& rank) -> const OpRange* {
        for (const OpRange& range : rank.ops)
            if (isForward(range.op.kind) && range.step == 0) return &range;
        return nullptr;
    };
    const OpRange* first = firstForward(ranks.front());
    if (first == nullptr) return false;
    return std::all_of(ranks.begin(), ranks.end(), [&](const RankOps& rank) {
        const OpRange* own = firstForward(rank);
        if (own == nullptr) return false;
        const Nanos both = std::min(first->end, own->end) - std::max(first->start, own->start);
        return 2 * both > std::min(first->end - first->start, own->end - own->start);
    });
}

} // namespace

OpReading readOps(const std::vector<ForeignRank>& ranks, const LabelRules& rules, bool stepsOfAll)
{
    return Reader(ranks, rules, stepsOfAll).read();
}

std::vector<std::vector<std::size_t>> pipelinesOf(const std::vector<ForeignRank>& ranks, const OpReading& reading)
{
    std::vector<std::vector<std::size_t>> pipelines;
    if (reading.dialect) {
        std::map<std::vector<int>, std::vector<std::size_t>> named;
        for (std::size_t r = 0; r < ranks.size(); ++r)
            if (std::vector<int> members; placeInPipeline(ranks[r], &members) >= 0) named[members].push_back(r);
        std::size_t in = 0;
        for (const auto& [members, of] : named) in += of.size();
        if (in == ranks.size()) {
            for (auto& [members, of] : named) pipelines.push_back(of);
            return pipelines;
        }
    }
    std::map<std::tuple<int, int, int>, std::size_t> copies; // stage, microbatch, slice of forwards in step 0
    std::vector<std::size_t> unplaced;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        std::size_t copy = 0;
        bool any = false;
        for (const OpRange& range : reading.ranks[r].ops) {
            if (!isForward(range.op.kind) || range.step != 0 || !range.saysStage) continue;
            const std::size_t before = copies[{range.op.stage, range.op.microbatch, range.op.slice}]++;
            if (!any) copy = before;
            any = true;
        }
        if (!any) {
            unplaced.push_back(r);
            continue;
        }
        if (copy >= pipelines.size()) pipelines.resize(copy + 1);
        pipelines[copy].push_back(r);
    }
    if (pipelines.empty()) pipelines.emplace_back();
    for (const std::size_t r : unplaced) pipelines.front().push_back(r);
    std::sort(pipelines.front().begin(), pipelines.front().end());
    std::erase_if(pipelines, [](const auto& of) { return of.empty(); });
    return pipelines;
}

void inferStages(const std::vector<ForeignRank>& foreign, bool messages, OpReading& reading,
                 std::vector<std::string>& notes)
{
    const int ranks = static_cast<int>(reading.ranks.size());
    bool inferred = false;
    bool passes = false; // of them
    int chunks = 1;
    for (const RankOps& rank : reading.ranks)
        for (const OpRange& range : rank.ops) {
            inferred = inferred || !range.saysStage;
            passes = passes || (!range.saysStage && isCompute(range.op.kind));
            if (!range.saysStage) chunks = std::max(chunks, range.chunk + 1);
        }
    if (!inferred || ranks == 0) return;
    if (ranks > 1 && !messages && runTogether(reading.ranks)) {
        std::vector<RankOps> onDevice = reading.ranks; // hosts may run ahead of their devices
        for (std::size_t r = 0; r < onDevice.size(); ++r) (void)placeWork(foreign[r], onDevice[r], {});
        if (runTogether(onDevice)) {
            for (RankOps& rank : reading.ranks)
                for (OpRange& range : rank.ops) {
                    if (!range.saysStage) range.op.stage = static_cast<std::uint16_t>(std::max(0, range.chunk));
                    range.saysStage = true;
                }
            reading.copies = true;
            notes.emplace_back("the ranks run the same forwards at the same time and send each other nothing: they "
                               "hold copies of a model, not stages of a pipeline");
            return;
        }
    }
    const auto firstOfChunk = [&](std::size_t rank, int chunk) {
        Nanos first = std::numeric_limits<Nanos>::max();
        for (const OpRange& range : reading.ranks[rank].ops)
            if (isForward(range.op.kind) && range.chunk == chunk) first = std::min(first, range.start);
        return first;
    };
    const bool vShape =
        chunks > 1 && ranks > 1 && firstOfChunk(static_cast<std::size_t>(ranks) - 1, 1) < firstOfChunk(0, 1);
    for (int r = 0; r < ranks; ++r) {
        for (OpRange& range : reading.ranks[static_cast<std::size_t>(r)].ops) {
            if (range.saysStage) continue;
            const int chunk = std::max(0, range.chunk);
            const bool back = vShape && chunk % 2 == 1;
            range.op.stage = static_cast<std::uint16_t>(std::min(65'535, chunk * ranks + (back ? ranks - 1 - r : r)));
            range.saysStage = true;
        }
    }
    if (passes)
        notes.push_back(chunks > 1 ? fmt::format("stages inferred from chunks, placed in a {}", vShape ? "V" : "loop")
                                   : "stages inferred from the order of ranks");
    // Slices are named though there is but one.
    bool sliced = false;
    for (const RankOps& rank : reading.ranks)
        for (const OpRange& range : rank.ops) sliced = sliced || range.op.slice > 0;
    if (!sliced)
        for (RankOps& rank : reading.ranks)
            for (OpRange& range : rank.ops) range.op.slice = -1;
}

} // namespace stagewright
