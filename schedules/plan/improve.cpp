#include "schedules/plan/improve.h"

#include <algorithm>
#include <cmath>

namespace stagewright::planning {

namespace {

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
class Random
{
public:
    explicit Random(std::uint64_t seed) : m_state(seed) {}
    std::uint64_t next()
    {
        m_state += 0x9e3779b97f4a7c15U;
        std::uint64_t z = m_state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
    double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

private:
    std::uint64_t m_state;
};

// What annealing compares: the objective, and a little of every rank's own end, so that plateaus have a slope.
double energy(const Pipeline& pipeline, const Timing& timing)
{
    double sum = 0;
    for (std::size_t r = 0; r < timing.end.size(); ++r)
        sum += static_cast<double>(timing.end[r] - pipeline.origin[r]);
    return static_cast<double>(timing.objective) + 0.1 * sum / static_cast<double>(timing.end.size());
}

} // namespace

Words withoutWeightGrads(const Words& words)
{
    Words out = words;
    for (Word& word : out)
        std::erase_if(word, [](Letter letter) { return kindOf(letter) == PassKind::WeightGrad; });
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
        if (const Timing& timing = runner.fill(words, rules[k]); timing.feasible && energy(pipeline, timing) < current) {
            current = energy(pipeline, timing);
            rule = k;
        }
    Nanos unit = 0; // a typical pass: the scale of the temperature
    for (int r = 0; r < pipeline.ranks; ++r)
        unit += pipeline.work(r) / pipeline.microbatches;
    const double scale = static_cast<double>(unit) / (3.0 * pipeline.stages());
    for (std::int64_t attempt = 0; attempt < limits.tries; ++attempt) {
        if (attempt % 64 == 0 && limits.stop && limits.stop()) break;
        const double temperature = 0.3 * scale * (1 - static_cast<double>(attempt % 4096) / 4096.0);
        Word& word = words[random.below(words.size())];
        const std::size_t from = random.below(word.size());
        const std::size_t reach = 1 + random.below(random.below(4) == 0 ? 8 : 2);
        const std::size_t to = random.below(2) == 0 ? (from > reach ? from - reach : 0) : std::min(from + reach, word.size() - 1);
        const std::size_t tryRule = random.below(16) == 0 ? random.below(std::size(rules)) : rule;
        auto move = [&](std::size_t a, std::size_t b) {
            const auto begin = word.begin();
            if (a < b)
                std::rotate(begin + static_cast<std::ptrdiff_t>(a), begin + static_cast<std::ptrdiff_t>(a) + 1,
                            begin + static_cast<std::ptrdiff_t>(b) + 1);
            else
                std::rotate(begin + static_cast<std::ptrdiff_t>(b), begin + static_cast<std::ptrdiff_t>(a),
                            begin + static_cast<std::ptrdiff_t>(a) + 1);
        };
        if (word[from] == word[to] && tryRule == rule) continue;
        move(from, to);
        const Timing& timing = runner.fill(words, rules[tryRule]);
        const double next = timing.feasible ? energy(pipeline, timing) : HUGE_VAL;
        if (next <= current || (timing.feasible && random.unit() < std::exp((current - next) / std::max(temperature, 1.0)))) {
            current = next;
            rule = tryRule;
            Found found{{}, timing.objective, timing.makespan};
            if (found.betterThan(best)) {
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
