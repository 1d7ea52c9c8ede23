#include "schedules/heuristic/improve.h"

#include <algorithm>
#include <cmath>

#include "schedules/heuristic/random.h"

namespace stagewright::planning {

namespace {

// What annealing compares: the objective, and a little of every rank's own end, so that plateaus have a slope.
double energy(const Pipeline& pipeline, const Timing& timing)
{
    double sum = 0;
    for (std::size_t r = 0; r < timing.end.size(); ++r) sum += static_cast<double>(timing.end[r] - pipeline.origin[r]);
    return static_cast<double>(timing.objective) + 0.1 * sum / static_cast<double>(timing.end.size());
}

bool canBeOther(const Pipeline& pipeline, int rank, Letter letter)
{
    return givesGradient(kindOf(letter)) && pipeline.usesFull(pipeline.stageOf(rank, chunkOf(letter)));
}

Letter otherWay(Letter letter)
{
    return letterOf(kindOf(letter) == PassKind::Backward ? PassKind::InputGrad : PassKind::Backward, chunkOf(letter));
}

} // namespace

Words withoutWeightGrads(const Words& words)
{
    Words out = words;
    for (Word& word : out) std::erase_if(word, [](Letter letter) { return kindOf(letter) == PassKind::WeightGrad; });
    return out;
}

Found improve(const Pipeline& pipeline, const Found& start, const ImproveLimits& limits)
{
    Found best = start;
    if (!start.feasible() || start.objective <= limits.enough) return best;
    constexpr FillRule rules[] = {{2, false}, {0, false}, {0, true}, {0.6, false}};
    WordRunner runner(pipeline);
    Random random(limits.seed);
    Words words = withoutWeightGrads(start.words);
    std::size_t rule = 0;
    double current = HUGE_VAL;
    for (std::size_t k = 0; k < std::size(rules); ++k)
        if (const Timing& timing = runner.fill(words, rules[k]);
            timing.feasible && energy(pipeline, timing) < current) {
            current = energy(pipeline, timing);
            rule = k;
        }
    Nanos unit = 0; // a typical pass: the scale of the temperature
    for (int r = 0; r < pipeline.ranks; ++r) unit += pipeline.work(r) / pipeline.microbatches;
    const double scale = static_cast<double>(unit) / (3.0 * pipeline.stages());
    std::vector<WordRunner::Place> path; // of the order gone on from; empty: not known
    bool pathKnown = false;
    for (std::int64_t attempt = 0; attempt < limits.tries; ++attempt) {
        if (attempt % 64 == 0 && limits.stop && limits.stop()) break;
        const double temperature = 0.3 * scale * (1 - static_cast<double>(attempt % 4096) / 4096.0);
        if (!pathKnown) {
            if (runner.fill(words, rules[rule]).feasible) runner.criticalPath(path);
            pathKnown = true;
        }
        std::size_t rank = random.below(words.size());
        std::size_t from = random.below(words[rank].size());
        if (!path.empty() && random.below(4) != 0) {
            const WordRunner::Place place = path[random.below(path.size())];
            rank = static_cast<std::size_t>(place.rank);
            from = static_cast<std::size_t>(place.letter);
        }
        Word& word = words[rank];
        const std::size_t reach = 1 + random.below(random.below(4) == 0 ? 8 : 2);
        const std::size_t to =
            random.below(2) == 0 ? (from > reach ? from - reach : 0) : std::min(from + reach, word.size() - 1);
        const std::size_t tryRule = random.below(16) == 0 ? random.below(std::size(rules)) : rule;
        const bool other = canBeOther(pipeline, static_cast<int>(rank), word[from]) && random.below(3) == 0;
        if (!other && word[from] == word[to] && tryRule == rule) continue;
        auto move = [&](std::size_t a, std::size_t b) {
            const auto begin = word.begin();
            if (other)
                word[from] = otherWay(word[from]);
            else if (a < b)
                std::rotate(begin + static_cast<std::ptrdiff_t>(a), begin + static_cast<std::ptrdiff_t>(a) + 1,
                            begin + static_cast<std::ptrdiff_t>(b) + 1);
            else
                std::rotate(begin + static_cast<std::ptrdiff_t>(b), begin + static_cast<std::ptrdiff_t>(a),
                            begin + static_cast<std::ptrdiff_t>(a) + 1);
        };
        move(from, to);
        const Timing& timing = runner.fill(words, rules[tryRule]);
        const double next = timing.feasible ? energy(pipeline, timing) : HUGE_VAL;
        if (next <= current ||
            (timing.feasible && random.unit() < std::exp((current - next) / std::max(temperature, 1.0)))) {
            pathKnown = next == current;
            current = next;
            rule = tryRule;
            Found found{{}, timing.objective, timing.makespan};
            if (timing.feasible && found.betterThan(best)) {
                found.words = runner.filled();
                best = std::move(found);
                if (best.objective <= limits.enough) break;
            }
        } else {
            move(to, from);
        }
    }
    return best;
}

} // namespace stagewright::planning
