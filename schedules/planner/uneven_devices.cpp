#include "schedules/planner/uneven_devices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr double slack = 1e-9; // relative, of sums of decimal numbers

double activationsOf(const UnevenDevice& device, UnevenPlan::Pick pick)
{
    return pick.count == 0 ? 0 : device.a1 * pick.samples + device.a0;
}

std::vector<UnevenPlan::Pick> picksOf(int samples)
{
    if (samples == 0) return {{0, 0}};
    std::vector<UnevenPlan::Pick> out;
    for (int m = 1; m <= samples; ++m)
        if (samples % m == 0) out.push_back({m, samples / m});
    return out;
}

// The fastest way to take so many samples with this part of the state; nothing: none fits.
std::optional<double> fastest(const UnevenProblem& problem, const UnevenDevice& device, int samples, double state)
{
    std::optional<double> out;
    for (const auto pick : picksOf(samples))
        if (activationsOf(device, pick) + state <= device.cap * (1 + slack))
            if (const double time = unevenTime(problem, device, pick); !out || time < *out) out = time;
    return out;
}

class Search {
public:
    explicit Search(const UnevenProblem& problem) : m_problem(problem) {}

    std::optional<UnevenPlan> best()
    {
        std::vector<double> times{0};
        for (const UnevenDevice& device : m_problem.devices)
            for (int samples = 1; samples <= m_problem.samples; ++samples)
                for (const auto pick : picksOf(samples)) times.push_back(unevenTime(m_problem, device, pick));
        std::sort(times.begin(), times.end());
        times.erase(std::unique(times.begin(), times.end()), times.end());
        const auto fits = [this](double time) { return within(time).has_value(); };
        const auto least = std::partition_point(times.begin(), times.end(), [&](double time) { return !fits(time); });
        return least == times.end() ? std::nullopt : within(*least);
    }

private:
    // Room that is left for the state: what counts is the sum over devices, or over all minus activations.
    double room(const UnevenDevice& device, UnevenPlan::Pick pick) const
    {
        const double used = activationsOf(device, pick);
        return m_problem.fraction > 0 ? m_problem.fraction * device.cap - used : std::max(0.0, device.cap - used);
    }

    std::optional<UnevenPlan> within(double most) const
    {
        constexpr double none = -std::numeric_limits<double>::infinity();
        const auto samples = static_cast<std::size_t>(m_problem.samples);
        std::vector<std::vector<double>> rooms{std::vector<double>(samples + 1, none)};
        rooms[0][0] = 0;
        std::vector<std::vector<UnevenPlan::Pick>> picked;
        for (const UnevenDevice& device : m_problem.devices) {
            std::vector<UnevenPlan::Pick> own(samples + 1); // the one that leaves most room, by samples
            std::vector<double> ownRoom(samples + 1, none);
            for (std::size_t n = 0; n <= samples; ++n)
                for (const auto pick : picksOf(static_cast<int>(n))) {
                    if (unevenTime(m_problem, device, pick) > most * (1 + slack)) continue;
                    if (activationsOf(device, pick) > device.cap * (1 + slack)) continue;
                    if (const double left = room(device, pick); left > ownRoom[n]) ownRoom[n] = left, own[n] = pick;
                }
            std::vector<double> next(samples + 1, none);
            std::vector<UnevenPlan::Pick> choice(samples + 1);
            for (std::size_t all = 0; all <= samples; ++all)
                for (std::size_t n = 0; n <= all; ++n)
                    if (const double sum = rooms.back()[all - n] + ownRoom[n]; sum > next[all])
                        next[all] = sum, choice[all] = own[n];
            rooms.push_back(std::move(next));
            picked.push_back(std::move(choice));
        }
        if (!(rooms.back()[samples] >= m_problem.state * (1 - slack))) return std::nullopt;
        UnevenPlan plan;
        for (std::size_t device = picked.size(), left = samples; device-- > 0;) {
            const auto pick = picked[device][left];
            plan.picks.insert(plan.picks.begin(), pick);
            left -= static_cast<std::size_t>(pick.samples) * static_cast<std::size_t>(pick.count);
            plan.time = std::max(plan.time, unevenTime(m_problem, m_problem.devices[device], pick));
        }
        plan.shares = sharesOf(plan.picks);
        return plan;
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
                const double most = device.cap - activationsOf(device, picks[i]) - out[i] * m_problem.state;
                const double more = std::clamp(each, 0.0, std::max(0.0, most));
                full[i] = more < each;
                out[i] += more / m_problem.state;
                left -= more;
            }
        }
        return out;
    }

    const UnevenProblem& m_problem;
};

// Everything in proportion to the weights; what is left of samples goes to the first.
std::optional<double> inProportion(const UnevenProblem& problem, const std::vector<double>& weights)
{
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<int> samples;
    std::vector<std::pair<double, std::size_t>> rests;
    int left = problem.samples;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const double exact = problem.samples * weights[i] / sum;
        samples.push_back(static_cast<int>(std::floor(exact + slack)));
        rests.emplace_back(-(exact - samples.back()), i);
        left -= samples.back();
    }
    std::stable_sort(rests.begin(), rests.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first - 1e-12; });
    for (std::size_t i = 0; left > 0; ++i, --left) ++samples[rests[i % rests.size()].second];
    double slowest = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const auto time = fastest(problem, problem.devices[i], samples[i], problem.state * weights[i] / sum);
        if (!time) return std::nullopt;
        slowest = std::max(slowest, *time);
    }
    return slowest;
}

} // namespace

double unevenTime(const UnevenProblem& problem, const UnevenDevice& device, UnevenPlan::Pick pick)
{
    if (pick.count == 0) return 0;
    const double forward = device.f1 * pick.samples + device.f0, backward = device.b1 * pick.samples + device.b0;
    return pick.count * ((problem.recompute ? 2 : 1) * forward + backward) + problem.gap * (pick.count - 1);
}

Result<UnevenAnswer> planUneven(const UnevenProblem& problem)
{
    const auto wrong = [](std::string what) { return fail(ErrorCode::Usage, std::move(what), "see docs/planners.md"); };
    if (problem.samples < 1 || problem.samples > 4096 || problem.devices.empty() || problem.devices.size() > 1024)
        return wrong("samples are 1 to 4096, devices 1 to 1024");
    std::vector<double> speeds;
    for (const UnevenDevice& device : problem.devices) {
        for (const double number :
             {device.f1, device.f0, device.b1, device.b0, device.a1, device.a0, device.cap, problem.state, problem.gap})
            if (!(number >= 0) || number > 1e15) return wrong("costs, sizes and caps are 0 or more");
        if (device.f1 + device.b1 <= 0) return wrong("f1 + b1 is above 0 on each device");
        speeds.push_back(1 / ((problem.recompute ? 2 : 1) * device.f1 + device.b1));
    }
    UnevenAnswer out;
    out.best = Search(problem).best();
    out.even = inProportion(problem, std::vector<double>(problem.devices.size(), 1));
    out.speed = inProportion(problem, speeds);
    return out;
}

} // namespace stagewright
