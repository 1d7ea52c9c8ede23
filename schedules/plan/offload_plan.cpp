#include "schedules/plan/offload_plan.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "schedules/execute/simulate.h"
#include "schedules/heuristic/random.h"
#include "schedules/model/recompute.h"

namespace stagewright {

namespace {

constexpr std::int64_t mostExhaustive = 50'000; // choices
constexpr int mostStages = 6;                   // every set of which is tried

// How good a choice is: less is better.
struct Worth {
    Bytes over = 0; // of all ranks, beyond their caps
    Nanos makespan = 0;
    int offloads = 0;
    auto operator<=>(const Worth&) const = default;
};

class OffloadSearch {
public:
    OffloadSearch(const Schedule& schedule, const CostModel& costs, const std::vector<Bytes>& caps,
                  const OffloadOptions& options)
        : m_schedule(schedule), m_costs(costs), m_caps(caps), m_options(options), m_all(offloadableOf(schedule)),
          m_most(std::max<std::int64_t>(200, options.most / static_cast<std::int64_t>(schedule.opCount() + 1)))
    {
    }

    Result<OffloadPlan> run()
    {
        std::vector<int> choice(m_all.size(), -1);
        STAGEWRIGHT_CHECK(tried(choice));
        const Nanos bound = m_best.makespan;
        std::int64_t choices = 1;
        for (const Offloadable& one : m_all)
            choices = std::min(mostExhaustive + 1, choices * (one.between + 2)); // −1 … between
        const bool every = choices <= std::min(mostExhaustive, m_most);
        if (every)
            enumerate(choice);
        else
            improve();
        if (m_best.over > 0) return tl::unexpected(tooMuch(every));
        OffloadPlan plan;
        plan.schedule = withOffloads(m_schedule, m_all, m_choice);
        plan.makespan = m_best.makespan;
        plan.bound = bound;
        plan.offloads = m_best.offloads;
        plan.trials = m_trials;
        plan.all = every && !stopped();
        return plan;
    }

private:
    bool stopped() const { return m_options.stopped && m_options.stopped(); }

    // Whether it is the best so far.
    Result<bool> tried(const std::vector<int>& choice)
    {
        ++m_trials;
        STAGEWRIGHT_TRY(const auto result, simulate(withOffloads(m_schedule, m_all, choice), m_costs));
        Worth worth{0, result.makespan,
                    static_cast<int>(std::count_if(choice.begin(), choice.end(), [](int one) { return one >= 0; }))};
        for (std::size_t r = 0; r < result.peakActivation.size(); ++r)
            worth.over += std::max<Bytes>(0, result.peakActivation[r] - m_caps[r]);
        m_last = worth;
        if (m_found && worth >= m_best) return false;
        m_found = true;
        m_best = worth;
        m_choice = choice;
        m_peaks = result.peakActivation;
        return true;
    }

    void enumerate(std::vector<int> choice)
    {
        while (!stopped()) {
            std::size_t at = 0;
            while (at < choice.size() && choice[at] == m_all[at].between) choice[at++] = -1;
            if (at == choice.size()) return;
            ++choice[at];
            static_cast<void>(tried(choice));
        }
    }

    void improve()
    {
        for (int ahead = 0; ahead <= 3; ++ahead) static_cast<void>(tried(std::vector<int>(m_all.size(), ahead)));
        planning::Random random(m_options.seed);
        std::vector<int> choice = m_choice;
        Worth now = m_best;
        while (m_trials < m_most && !stopped()) {
            std::vector<int> other = choice;
            const std::size_t changes = 1 + random.below(3) / 2;
            for (std::size_t k = 0; k < changes; ++k) {
                const std::size_t at = random.below(other.size());
                switch (random.below(3)) {
                case 0: other[at] = other[at] < 0 ? static_cast<int>(random.below(3)) : -1; break;
                case 1: other[at] = std::min(other[at] + 1, m_all[at].between); break;
                default: other[at] = std::max(other[at] - 1, -1); break;
                }
            }
            static_cast<void>(tried(other));
            // Sideways too, and now and then back to the best.
            if (m_last <= now || random.below(200) == 0) choice = std::move(other), now = m_last;
            if (random.below(500) == 0) choice = m_choice, now = m_best;
        }
    }

    Error tooMuch(bool every) const
    {
        std::size_t worst = 0;
        const auto over = [&](std::size_t r) { return m_peaks[r] - m_caps[r]; };
        for (std::size_t r = 1; r < m_peaks.size(); ++r)
            if (over(r) > over(worst)) worst = r;
        const double unit = static_cast<double>(m_costs.memoryUnit);
        return Error{
            ErrorCode::Invalid,
            fmt::format("{}: rank {} holds {:.6g} of activations at least, {:.6g} over its cap",
                        every ? "no offloading fits" : fmt::format("none of {} ways to offload fits", m_trials), worst,
                        static_cast<double>(m_peaks[worst]) / unit, static_cast<double>(over(worst)) / unit),
            "raise the cap, make copies faster, or recompute"};
    }

    const Schedule& m_schedule;
    const CostModel& m_costs;
    const std::vector<Bytes>& m_caps;
    const OffloadOptions& m_options;
    std::vector<Offloadable> m_all;
    std::int64_t m_most;
    std::int64_t m_trials = 0;
    bool m_found = false;
    Worth m_best, m_last;
    std::vector<int> m_choice;
    std::vector<Bytes> m_peaks;
};

// Which stages may be recomputed: none first.
std::vector<std::vector<bool>> stageSets(int stages)
{
    std::vector<std::vector<bool>> sets;
    const auto n = static_cast<std::size_t>(stages);
    if (stages <= mostStages) {
        for (unsigned bits = 0; bits < 1U << n; ++bits) {
            std::vector<bool>& set = sets.emplace_back(n);
            for (std::size_t s = 0; s < n; ++s) set[s] = (bits >> s & 1U) != 0;
        }
        return sets;
    }
    for (std::size_t s = 0; s <= n; ++s) { // the first ones: from none to all
        sets.emplace_back(n);
        std::fill_n(sets.back().begin(), s, true);
    }
    for (std::size_t s = 1; s < n; ++s) { // the last ones
        sets.emplace_back(n);
        std::fill(sets.back().begin() + static_cast<std::ptrdiff_t>(s), sets.back().end(), true);
    }
    for (std::size_t s = 1; s + 1 < n; ++s) sets.emplace_back(n)[s] = true;
    return sets;
}

} // namespace

Result<OffloadPlan> planOffloads(const Schedule& schedule, const CostModel& costs, const std::vector<Bytes>& caps,
                                 const OffloadOptions& options)
{
    if (caps.size() != schedule.order.size())
        return fail(ErrorCode::Usage, fmt::format("{} caps for {} ranks", caps.size(), schedule.order.size()));
    if (!options.recompute) return OffloadSearch(schedule, costs, caps, options).run();
    const auto sets = stageSets(schedule.stages);
    OffloadOptions each = options;
    each.recompute = false;
    std::optional<Result<OffloadPlan>> best;
    std::int64_t trials = 0;
    bool all = true;
    for (const std::vector<bool>& set : sets) { // the first has none, and as much time as without recomputation
        const bool none = std::find(set.begin(), set.end(), true) == set.end();
        each.most = none ? options.most : options.most / static_cast<std::int64_t>(sets.size());
        const Schedule lists = none ? schedule : withRecompute(schedule, set);
        Result<OffloadPlan> plan = OffloadSearch(lists, costs, caps, each).run();
        if (plan) {
            plan->recomputed = set;
            trials += plan->trials;
            all = all && plan->all;
        }
        const auto stages = [](const OffloadPlan& of) {
            return std::count(of.recomputed.begin(), of.recomputed.end(), true);
        };
        const auto worth = [&](const OffloadPlan& of) { return std::tuple(of.makespan, of.offloads, stages(of)); };
        if (!best || (plan && (!*best || worth(*plan) < worth(**best)))) best = std::move(plan);
        if (options.stopped && options.stopped()) break;
    }
    if (!*best) return std::move(*best);
    STAGEWRIGHT_TRY(const auto plain, simulate(schedule, costs)); // recomputation only adds work
    (*best)->bound = plain.makespan;
    (*best)->trials = trials;
    (*best)->all = all && schedule.stages <= mostStages;
    return std::move(*best);
}

} // namespace stagewright
