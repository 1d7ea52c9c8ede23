#include "schedules/plan/stretch.h"

#include <algorithm>

namespace stagewright::planning {

namespace {

struct Timed {
    Nanos at = 0;
    int order = 0; // of the letter in its word: for passes at the same time
    Letter letter = 0;
};

} // namespace

Pipeline withMicrobatches(const Pipeline& pipeline, int microbatches)
{
    Pipeline out = pipeline;
    out.microbatches = microbatches;
    for (auto& own : out.own) own.clear(); // of any of them
    return out;
}

Words stretched(const Pipeline& few, const Words& words, const std::vector<std::vector<Nanos>>& starts,
                int microbatches, int first, int period)
{
    const int copies = (microbatches - few.microbatches) / period;
    // How long a period takes: from one forward of rank 0 to the one a period later.
    Nanos length = 0;
    Nanos begin = 0;
    int count = 0;
    for (std::size_t at = 0; at < words[0].size(); ++at) {
        if (words[0][at] != letterOf(PassKind::Forward, 0)) continue;
        if (count == first) begin = starts[0][at];
        if (count == first + period) length = starts[0][at] - begin;
        ++count;
    }
    Words out;
    std::vector<Timed> timed;
    for (std::size_t r = 0; r < words.size(); ++r) {
        timed.clear();
        int done[4] = {};
        for (std::size_t at = 0; at < words[r].size(); ++at) {
            const Letter letter = words[r][at];
            const PassKind kind = kindOf(letter);
            if (kind == PassKind::WeightGrad) continue;
            const int microbatch = done[(kind == PassKind::Forward ? 0 : 2) + chunkOf(letter)]++;
            const int least = microbatch < first + period ? 0 : copies;
            const int most = microbatch < first ? 0 : copies;
            for (int k = least; k <= most; ++k)
                timed.push_back({starts[r][at] + k * length, static_cast<int>(at), letter});
        }
        std::stable_sort(timed.begin(), timed.end(),
                         [](const Timed& a, const Timed& b) { return a.at != b.at ? a.at < b.at : a.order < b.order; });
        Word& word = out.emplace_back();
        for (const Timed& pass : timed) word.push_back(pass.letter);
    }
    return out;
}

Stretched bestStretch(const Pipeline& few, const Words& words, const Pipeline& many)
{
    constexpr FillRule rules[] = {{2, false}, {0, false}, {0, true}, {0.6, false}};
    Stretched best;
    WordRunner small(few);
    if (!small.time(words).feasible) return best;
    const auto starts = small.starts();
    WordRunner runner(many);
    const int missing = many.microbatches - few.microbatches;
    for (int period = 1; period <= std::min(6, few.microbatches / 2); ++period) {
        if (missing % period != 0) continue;
        const int last = few.microbatches - period - 1;
        for (int first = few.microbatches / 4; first <= last; ++first) {
            const Words longer = stretched(few, words, starts, many.microbatches, first, period);
            for (const FillRule& rule : rules) {
                ++best.tries;
                const Timing& timing = runner.fill(longer, rule);
                if (!timing.feasible || (!best.words.empty() && timing.objective >= best.objective)) continue;
                best.objective = timing.objective;
                best.makespan = timing.makespan;
                best.words = runner.filled();
            }
        }
    }
    return best;
}

} // namespace stagewright::planning
