#include "schedules/heuristic/zero_bubble.h"

#include <algorithm>

namespace stagewright::planning {

namespace {

constexpr int smallShape = 5000; // ranks × microbatches up to which list scheduling is tried by all rules

// Microbatches that a rank may hold in full.
int holdable(const Pipeline& pipeline, int rank)
{
    const Bytes each = pipeline.change(PassKind::Forward, rank);
    const Bytes cap = pipeline.cap[static_cast<std::size_t>(rank)];
    if (each <= 0 || cap / each >= pipeline.microbatches) return pipeline.microbatches;
    return static_cast<int>(cap / each);
}

std::vector<int> warmupOf(const Pipeline& pipeline, bool overshoot, bool falling)
{
    std::vector<int> out;
    for (int r = 0; r < pipeline.ranks; ++r) {
        const Nanos wait = pipeline.turn(r) - pipeline.head(r);
        const Nanos each = std::max<Nanos>(pipeline.time(PassKind::Forward, r), 1);
        const Nanos free = overshoot ? (wait + each - 1) / each : wait / each;
        int count = static_cast<int>(std::min<Nanos>(free, pipeline.microbatches));
        count = std::min(count, holdable(pipeline, r));
        if (falling && r > 0) count = std::min(count, out.back() - 1);
        out.push_back(std::max(count, 1));
    }
    return out;
}

// Full backwards for all I's of stages that have them.
Words withFull(const Pipeline& pipeline, Words words)
{
    for (int r = 0; r < pipeline.ranks; ++r)
        for (Letter& letter : words[static_cast<std::size_t>(r)])
            if (kindOf(letter) == PassKind::InputGrad && pipeline.usesFull(pipeline.stageOf(r, chunkOf(letter))))
                letter = letterOf(PassKind::Backward, chunkOf(letter));
    return words;
}

} // namespace

Words alternatingWords(const Pipeline& pipeline, const std::vector<int>& warmup)
{
    constexpr Letter forward = letterOf(PassKind::Forward, 0);
    constexpr Letter inputGrad = letterOf(PassKind::InputGrad, 0);
    Words out;
    for (int r = 0; r < pipeline.ranks; ++r) {
        const int count = std::clamp(warmup[static_cast<std::size_t>(r)], 1, pipeline.microbatches);
        Word& word = out.emplace_back(static_cast<std::size_t>(count), forward);
        for (int j = 0; j < pipeline.microbatches; ++j) {
            word.push_back(inputGrad);
            if (count + j < pipeline.microbatches) word.push_back(forward);
        }
    }
    return out;
}

Found zeroBubble(const Pipeline& pipeline)
{
    WordRunner runner(pipeline);
    Found best;
    const bool anyFull = std::find(pipeline.full.begin(), pipeline.full.end(), 1) != pipeline.full.end();
    std::vector<std::vector<int>> tried;
    auto attemptWords = [&](const Words& words) {
        for (const FillRule rule : {FillRule{2, false}, FillRule{0, false}, FillRule{0, true}}) {
            const Timing& timing = runner.fill(words, rule);
            if (!timing.feasible) continue;
            Found found{{}, timing.objective, timing.makespan};
            if (!found.betterThan(best)) continue;
            found.words = runner.filled();
            best = std::move(found);
        }
    };
    auto attempt = [&](const std::vector<int>& warmup) {
        if (std::find(tried.begin(), tried.end(), warmup) != tried.end()) return;
        tried.push_back(warmup);
        const Words words = alternatingWords(pipeline, warmup);
        attemptWords(words);
        if (anyFull) attemptWords(withFull(pipeline, words));
    };
    for (const bool overshoot : {false, true})
        for (const bool falling : {true, false}) attempt(warmupOf(pipeline, overshoot, falling));
    std::vector<int> h1;
    std::vector<int> h2;
    for (int r = 0; r < pipeline.ranks; ++r) {
        h1.push_back(pipeline.ranks - r);
        h2.push_back(2 * (pipeline.ranks - r) - 1);
    }
    attempt(h1);
    attempt(h2);
    // Below p microbatches the alternation makes every microbatch wait for the neighbours' turns; list scheduling does
    // not.
    const bool small = pipeline.ranks * pipeline.microbatches <= smallShape;
    for (const FillRule fill : {FillRule{0, false}, FillRule{0, true}})
        for (const bool overshoot : {false, true})
            for (const bool falling : {true, false})
                for (const double patience : {0.0, 0.3})
                    for (const bool full : {false, true}) {
                        if ((!small && (falling || patience > 0)) || (full && !anyFull)) continue;
                        Found found = greedy(pipeline, {fill, overshoot, falling, false, patience, true, full});
                        if (found.feasible() && found.betterThan(best)) best = std::move(found);
                    }
    return best;
}

} // namespace stagewright::planning
