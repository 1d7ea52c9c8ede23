#include "schedules/planner/uneven_devices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr double slack = 1e-9; // relative, of sums of decimal numbers

std::vector<UnevenPlan::Pick> picksOf(int samples)
{
    if (samples == 0) return {{0, 0}};
    std::vector<UnevenPlan::Pick> out;
    for (int m = 1; m <= samples; ++m)
        if (samples % m == 0) out.push_back({m, samples / m});
    return out;
}

bool fits(const UnevenDevice& device, UnevenPlan::Pick pick, double state)
{
    return unevenMemory(device, pick) + state <= device.cap * (1 + slack);
}

class Search {
public:
    Search(const UnevenProblem& problem, const Progress& progress) : m_problem(problem), m_progress(progress)
    {
        for (int samples = 0; samples <= problem.samples; ++samples) m_picks.push_back(picksOf(samples));
        for (const UnevenDevice& device : problem.devices) {
            const auto same = std::find(m_kinds.begin(), m_kinds.end(), device);
            m_kindOf.push_back(static_cast<std::size_t>(same - m_kinds.begin()));
            if (same == m_kinds.end()) m_kinds.push_back(device);
        }
    }

    // Not slower than `most`, which a plan is known to reach.
    std::optional<UnevenPlan> best(double most) const
    {
        std::vector<double> times{0};
        for (const UnevenDevice& device : m_kinds)
            for (const auto& picks : m_picks)
                for (const auto pick : picks)
                    if (const double time = unevenTime(m_problem, device, pick); time <= most) times.push_back(time);
        std::sort(times.begin(), times.end());
        times.erase(std::unique(times.begin(), times.end()), times.end());
        const auto least =
            std::partition_point(times.begin(), times.end(), [this](double time) { return !within(time); });
        return least == times.end() ? std::nullopt : within(*least);
    }

    std::optional<double> room() const
    {
        const double most = roomiest(std::numeric_limits<double>::infinity()).room;
        return std::isfinite(most) ? std::optional(most) : std::nullopt;
    }

private:
    // A number of samples with the microbatches that leave most room for the state.
    struct Way {
        std::size_t samples;
        UnevenPlan::Pick pick;
        double room;
    };

    // Room that is left for the state: what counts is the sum over devices, or over all minus activations.
    double room(const UnevenDevice& device, UnevenPlan::Pick pick) const
    {
        const double used = unevenMemory(device, pick);
        return m_problem.fraction > 0 ? m_problem.fraction * device.cap - used : std::max(0.0, device.cap - used);
    }

    std::vector<Way> waysWithin(double most, const UnevenDevice& device) const
    {
        std::vector<Way> out;
        for (auto n = static_cast<std::size_t>(m_problem.least); n < m_picks.size(); ++n) {
            std::optional<Way> own;
            for (const auto pick : m_picks[n]) {
                if (unevenTime(m_problem, device, pick) > most * (1 + slack) || !fits(device, pick, 0)) continue;
                if (const double left = room(device, pick); !own || left > own->room) own = Way{n, pick, left};
            }
            if (own) out.push_back(*own);
        }
        return out;
    }

    // Divisions of all samples within a time that leave most room for the state.
    struct Roomiest {
        double room = -std::numeric_limits<double>::infinity(); // so: there is none
        std::vector<std::vector<Way>> ways;                     // by kind
        std::vector<std::vector<const Way*>> picked;            // by device and samples of those up to it
    };
    Roomiest roomiest(double most) const
    {
        constexpr double none = -std::numeric_limits<double>::infinity();
        const auto samples = static_cast<std::size_t>(m_problem.samples);
        Roomiest out;
        for (const UnevenDevice& device : m_kinds) out.ways.push_back(waysWithin(most, device));
        std::size_t taken = 0;
        for (const std::size_t kind : m_kindOf) taken += out.ways[kind].empty() ? 0 : out.ways[kind].back().samples;
        if (taken < samples) return out;
        std::vector<double> rooms(samples + 1, none);
        rooms[0] = 0;
        for (const std::size_t kind : m_kindOf) {
            std::vector<double> next(samples + 1, none);
            std::vector<const Way*> choice(samples + 1, nullptr);
            for (const Way& way : out.ways[kind])
                for (std::size_t all = way.samples; all <= samples; ++all)
                    if (const double sum = rooms[all - way.samples] + way.room; sum > next[all])
                        next[all] = sum, choice[all] = &way;
            rooms = std::move(next);
            out.picked.push_back(std::move(choice));
        }
        out.room = rooms[samples];
        return out;
    }

    std::optional<UnevenPlan> within(double most) const
    {
        if (m_progress.cancelled()) return std::nullopt;
        const Roomiest found = roomiest(most);
        if (!std::isfinite(found.room) || found.room < m_problem.state * (1 - slack)) return std::nullopt;
        const auto& picked = found.picked;
        const auto samples = static_cast<std::size_t>(m_problem.samples);
        UnevenPlan plan;
        for (std::size_t device = picked.size(), left = samples; device-- > 0;) {
            const Way& way = *picked[device][left];
            plan.picks.insert(plan.picks.begin(), way.pick);
            left -= way.samples;
            plan.time = std::max(plan.time, unevenTime(m_problem, m_problem.devices[device], way.pick));
        }
        for (std::size_t kind = 0; kind < m_kinds.size(); ++kind) orderAlike(plan.picks, kind);
        plan.shares = sharesOf(plan.picks);
        return plan;
    }

    // Where devices are alike, those before take more.
    void orderAlike(std::vector<UnevenPlan::Pick>& picks, std::size_t kind) const
    {
        std::vector<UnevenPlan::Pick> own;
        for (std::size_t i = 0; i < picks.size(); ++i)
            if (m_kindOf[i] == kind) own.push_back(picks[i]);
        std::stable_sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.all() > b.all(); });
        for (std::size_t i = 0, next = 0; i < picks.size(); ++i)
            if (m_kindOf[i] == kind) picks[i] = own[next++];
    }

    std::vector<double> sharesOf(const std::vector<UnevenPlan::Pick>& picks) const
    {
        const std::size_t n = picks.size();
        std::vector<double> out(n, m_problem.state > 0 ? 0 : 1 / static_cast<double>(n));
        double left = m_problem.state;
        std::vector<bool> full(n, false);
        while (left > slack * m_problem.state && m_problem.state > 0) {
            const auto open = static_cast<double>(std::count(full.begin(), full.end(), false));
            if (open == 0) break;
            const double each = left / open;
            for (std::size_t i = 0; i < n; ++i) {
                if (full[i]) continue;
                const UnevenDevice& device = m_problem.devices[i];
                const double most = device.cap - unevenMemory(device, picks[i]) - out[i] * m_problem.state;
                const double more = std::clamp(each, 0.0, std::max(0.0, most));
                full[i] = more < each;
                out[i] += more / m_problem.state;
                left -= more;
            }
        }
        return out;
    }

    const UnevenProblem& m_problem;
    const Progress& m_progress;
    std::vector<std::vector<UnevenPlan::Pick>> m_picks; // by samples
    std::vector<UnevenDevice> m_kinds;                  // devices that differ
    std::vector<std::size_t> m_kindOf;                  // by device
};

// Samples and state in proportion to the weights, each device's microbatches the fastest that fit, or where none does
// those that need least.
UnevenPlan inProportion(const UnevenProblem& problem, const std::vector<double>& weights)
{
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const std::vector<int> samples = dividedBy(weights, problem.samples, problem.least);
    UnevenPlan out;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const UnevenDevice& device = problem.devices[i];
        const double share = weights[i] / sum;
        std::optional<UnevenPlan::Pick> best;
        const auto better = [&](UnevenPlan::Pick a, UnevenPlan::Pick b) {
            const bool fitting = fits(device, a, share * problem.state);
            if (fitting != fits(device, b, share * problem.state)) return fitting;
            if (!fitting && unevenMemory(device, a) != unevenMemory(device, b))
                return unevenMemory(device, a) < unevenMemory(device, b);
            return unevenTime(problem, device, a) < unevenTime(problem, device, b);
        };
        for (const auto pick : picksOf(samples[i]))
            if (!best || better(pick, *best)) best = pick;
        out.fits = out.fits && fits(device, *best, share * problem.state);
        out.time = std::max(out.time, unevenTime(problem, device, *best));
        out.picks.push_back(*best);
        out.shares.push_back(share);
    }
    return out;
}

} // namespace

double unevenTime(const UnevenProblem& problem, const UnevenDevice& device, UnevenPlan::Pick pick)
{
    if (pick.count == 0) return 0;
    const double forward = device.f1 * pick.samples + device.f0, backward = device.b1 * pick.samples + device.b0;
    return pick.count * ((problem.recompute ? 2 : 1) * forward + backward) + problem.gap * (pick.count - 1);
}

double unevenMemory(const UnevenDevice& device, UnevenPlan::Pick pick)
{
    return pick.count == 0 ? 0 : device.a1 * pick.samples + device.a0 + device.kept * pick.all();
}

std::vector<double> unevenSpeeds(const UnevenProblem& problem)
{
    std::vector<double> out;
    for (const UnevenDevice& device : problem.devices)
        out.push_back(1 / ((problem.recompute ? 2 : 1) * device.f1 + device.b1));
    return out;
}

std::vector<int> dividedBy(const std::vector<double>& weights, int total, int least)
{
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<int> out;
    std::vector<std::pair<double, std::size_t>> rest; // of the exact part, and whose
    int left = total;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const double exact = total * weights[i] / all;
        out.push_back(std::max(least, static_cast<int>(std::floor(exact + slack))));
        rest.emplace_back(exact - out.back(), i);
        left -= out.back();
    }
    std::stable_sort(rest.begin(), rest.end(), [](const auto& a, const auto& b) { return a.first > b.first + 1e-12; });
    for (std::size_t k = 0; left > 0; ++k, --left) ++out[rest[k % rest.size()].second];
    for (; left < 0; ++left) --*std::max_element(out.begin(), out.end()); // what `least` gave too many
    return out;
}

Result<UnevenAnswer> planUneven(const UnevenProblem& problem, const Progress& progress)
{
    const auto wrong = [](std::string what) { return fail(ErrorCode::Usage, std::move(what), "see docs/planners.md"); };
    if (problem.samples < 1 || problem.samples > 4096 || problem.devices.empty() || problem.devices.size() > 1024)
        return wrong("samples are 1 to 4096, devices 1 to 1024");
    const auto devices = static_cast<int>(problem.devices.size());
    if (problem.least < 0 || problem.least > problem.samples / devices)
        return wrong(
            fmt::format("{} samples for {} devices: each needs at least {}", problem.samples, devices, problem.least));
    for (const UnevenDevice& device : problem.devices) {
        for (const double number : {device.f1, device.f0, device.b1, device.b0, device.a1, device.a0, device.cap,
                                    device.kept, problem.state, problem.gap})
            if (!(number >= 0) || number > 1e15) return wrong("costs, sizes and caps are 0 or more");
        if (device.f1 + device.b1 <= 0) return wrong("f1 + b1 is above 0 on each device");
    }
    UnevenAnswer out;
    out.even = inProportion(problem, std::vector<double>(problem.devices.size(), 1));
    out.speed = inProportion(problem, unevenSpeeds(problem));
    double most = std::numeric_limits<double>::infinity();
    if (problem.fraction <= 0)
        for (const UnevenPlan* plan : {&out.even, &out.speed})
            if (plan->fits) most = std::min(most, plan->time);
    const Search search(problem, progress);
    out.best = search.best(most);
    if (!out.best && !progress.cancelled()) out.room = search.room();
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "interrupted");
    return out;
}

} // namespace stagewright
