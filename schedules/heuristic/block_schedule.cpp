// A schedule from a block: repeat, fill in the W's, squeeze, reorder. Deleting surplus microbatches is not needed: the
// order of m microbatches is the order of more of them without the surplus.
#include "schedules/heuristic/block_schedule.h"

#include <algorithm>
#include <limits>

#include "schedules/heuristic/building_block.h"
#include "schedules/heuristic/improve.h"

namespace stagewright {

namespace {

using namespace planning;

constexpr int smallShape = 128; // ranks × microbatches up to which the order is searched besides
constexpr int tries = 4000;

// The order of the repeated block on one device.
Word repeated(const Block& block, const BlockDevice& device, int microbatches)
{
    struct Placed {
        int slot;
        Letter letter;
        bool operator<(const Placed& other) const
        {
            return slot != other.slot ? slot < other.slot : letter < other.letter;
        }
    };
    std::vector<Placed> placed;
    std::vector<Placed> waiting; // W's without a slot, by the slot of their I
    for (int j = 0; j < microbatches; ++j)
        for (int c = 0; c < block.chunks; ++c) {
            const auto chunk = static_cast<std::size_t>(c);
            const int shift = j * block.interval;
            placed.push_back({device.forward[chunk] + shift, letterOf(PassKind::Forward, c)});
            placed.push_back({device.inputGrad[chunk] + shift, letterOf(PassKind::InputGrad, c)});
            const Letter weight = letterOf(PassKind::WeightGrad, c);
            if (device.weightGrad[chunk] == notPlaced)
                waiting.push_back({device.inputGrad[chunk] + shift, weight});
            else
                placed.push_back({device.weightGrad[chunk] + shift, weight});
        }
    std::sort(placed.begin(), placed.end());
    std::sort(waiting.begin(), waiting.end());
    std::vector<Placed> filled;
    std::size_t next = 0; // first placed pass not before `slot`
    int slot = 0;
    for (const Placed& weight : waiting) {
        slot = std::max(slot, weight.slot + 1);
        for (;; ++slot) {
            while (next < placed.size() && placed[next].slot < slot) ++next;
            if (next == placed.size() || placed[next].slot != slot) break;
        }
        filled.push_back({slot++, weight.letter});
    }
    placed.insert(placed.end(), filled.begin(), filled.end());
    std::sort(placed.begin(), placed.end());
    Word word;
    for (const Placed& pass : placed) word.push_back(pass.letter);
    return word;
}

Found reordered(Pipeline& pipeline, const Words& words, const Block& block)
{
    WordRunner runner(pipeline);
    Found best;
    if (const Timing& timing = runner.time(words); timing.feasible) {
        best = {words, timing.objective, timing.makespan};
        std::fill(pipeline.cap.begin(), pipeline.cap.end(), *std::max_element(timing.peak.begin(), timing.peak.end()));
    }
    const Words core = withoutWeightGrads(words);
    for (const FillRule rule : {FillRule{2, false}, FillRule{0, true}}) {
        if (const Timing& timing = runner.fill(core, rule); timing.feasible) {
            Found found{{}, timing.objective, timing.makespan};
            if (found.betterThan(best)) {
                found.words = runner.filled();
                best = std::move(found);
            }
        }
        Found found = greedyFrom(pipeline, core, rule);
        if (found.feasible() && found.betterThan(best)) best = std::move(found);
    }
    if (!best.feasible() || pipeline.ranks * pipeline.microbatches > smallShape) return best;
    ImproveLimits limits;
    limits.tries = tries;
    if (block.chunks == 2) { // no order is known to be better at this memory
        Nanos pass = std::numeric_limits<Nanos>::max();
        for (const auto& duration : pipeline.duration) pass = std::min(pass, duration.front());
        const Bytes half = std::max<Bytes>(pipeline.change(PassKind::Forward, 0), 1);
        const int peak = static_cast<int>(std::min<Bytes>(pipeline.cap.front() / half, Bytes{2} * pipeline.ranks));
        const Nanos slots =
            Nanos{6} * pipeline.microbatches + std::max(searchedBubble(pipeline.ranks, peak), pipeline.ranks - 1);
        limits.enough = slots * pass;
    }
    return improve(pipeline, best, limits);
}

} // namespace

Result<Schedule> scheduleOf(const Block& block, int microbatches, const BlockOptions& options)
{
    STAGEWRIGHT_CHECK(checkBlock(block));
    if (microbatches < 1)
        return fail(ErrorCode::Usage, "block " + block.name + ": 0 microbatches; at least one is needed");
    const int ranks = static_cast<int>(block.devices.size());
    Pipeline pipeline = evenPipeline(ranks, block.chunks, microbatches, options.costs, 0, Objective::Makespan);
    Words words;
    for (const BlockDevice& device : block.devices) words.push_back(repeated(block, device, microbatches));
    if (!options.reorder) return scheduleOf(pipeline, words, block.name);
    const Found found = reordered(pipeline, words, block);
    return scheduleOf(pipeline, found.feasible() ? found.words : words, block.name);
}

} // namespace stagewright
