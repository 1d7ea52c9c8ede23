#include "schedules/planner/job_packing.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr std::int64_t mostNodes = 20'000'000;

class Packer {
public:
    Packer(int gpus, const std::vector<std::vector<std::int64_t>>& jobs, const Progress& progress)
        : m_gpus(gpus), m_progress(progress), m_loads(static_cast<std::size_t>(gpus), 0)
    {
        for (std::size_t job = 0; job < jobs.size(); ++job) {
            for (std::size_t worker = 0; worker < jobs[job].size(); ++worker) {
                m_workers.push_back({jobs[job][worker], job, worker});
                m_left += jobs[job][worker];
                m_longest = std::max(m_longest, jobs[job][worker]);
            }
            m_used.emplace_back(static_cast<std::size_t>(gpus), false);
            m_places.emplace_back(jobs[job].size(), 0);
        }
        std::stable_sort(m_workers.begin(), m_workers.end(),
                         [](const Worker& a, const Worker& b) { return a.time > b.time; });
        m_bound = std::max(m_longest, (m_left + gpus - 1) / gpus);
    }

    void run() { place(0); }
    std::int64_t best() const { return m_best; }
    bool proven() const { return m_best == m_bound || !m_cut; }
    const std::vector<std::vector<int>>& places() const { return m_bestPlaces; }

private:
    struct Worker {
        std::int64_t time;
        std::size_t job, worker;
    };

    void place(std::size_t index)
    {
        if (m_best == m_bound) return;
        if (++m_nodes > mostNodes || (m_nodes % 4096 == 0 && m_progress.cancelled())) {
            m_cut = true;
            return;
        }
        if (index == m_workers.size()) {
            m_best = *std::max_element(m_loads.begin(), m_loads.end());
            m_bestPlaces = m_places;
            return;
        }
        const Worker& worker = m_workers[index];
        std::vector<int> order(static_cast<std::size_t>(m_gpus));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return m_loads[a] < m_loads[b]; });
        for (std::size_t i = 0; i < order.size(); ++i) {
            const auto gpu = static_cast<std::size_t>(order[i]);
            if (m_used[worker.job][gpu] || m_loads[gpu] + worker.time >= m_best) continue;
            if (i > 0 && alike(gpu, static_cast<std::size_t>(order[i - 1]))) continue;
            m_loads[gpu] += worker.time;
            m_used[worker.job][gpu] = true;
            m_places[worker.job][worker.worker] = static_cast<int>(gpu);
            place(index + 1);
            m_loads[gpu] -= worker.time;
            m_used[worker.job][gpu] = false;
            if (m_cut) return;
        }
    }

    // With as much load and workers of the same jobs: one of them is enough.
    bool alike(std::size_t a, std::size_t b) const
    {
        return m_loads[a] == m_loads[b] &&
               std::all_of(m_used.begin(), m_used.end(), [&](const auto& job) { return job[a] == job[b]; });
    }

    int m_gpus;
    const Progress& m_progress;
    std::vector<Worker> m_workers;
    std::vector<std::int64_t> m_loads;
    std::vector<std::vector<bool>> m_used; // by job and GPU
    std::vector<std::vector<int>> m_places, m_bestPlaces;
    std::int64_t m_left = 0, m_longest = 0, m_bound = 0, m_nodes = 0;
    std::int64_t m_best = std::numeric_limits<std::int64_t>::max();
    bool m_cut = false;
};

// The fullest GPU where workers are placed as they come.
std::int64_t firstComeFirstServed(const PackingProblem& problem)
{
    std::vector<std::int64_t> loads(static_cast<std::size_t>(problem.gpus), 0);
    for (const auto& job : problem.jobs) {
        std::vector<bool> used(loads.size(), false);
        for (const std::int64_t time : job) {
            std::size_t emptiest = loads.size();
            for (std::size_t gpu = 0; gpu < loads.size(); ++gpu)
                if (!used[gpu] && (emptiest == loads.size() || loads[gpu] < loads[emptiest])) emptiest = gpu;
            used[emptiest] = true;
            loads[emptiest] += time;
        }
    }
    return *std::max_element(loads.begin(), loads.end());
}

} // namespace

Result<Packing> packJobs(const PackingProblem& problem, const Progress& progress)
{
    const auto wrong = [](std::string what) { return fail(ErrorCode::Usage, std::move(what), "see docs/planners.md"); };
    if (problem.gpus < 1 || problem.gpus > 4096 || problem.jobs.empty()) return wrong("a job and a GPU are needed");
    Packing out;
    std::int64_t longest = 0;
    std::vector<std::vector<std::int64_t>> gang;
    for (const auto& job : problem.jobs) {
        if (job.empty() || job.size() > static_cast<std::size_t>(problem.gpus))
            return wrong(fmt::format("a job has {} workers for {} GPUs", job.size(), problem.gpus));
        for (const std::int64_t time : job)
            if (time < 1 || time > (1LL << 48)) return wrong("iterations are whole numbers of 1 or more");
        out.work = std::accumulate(job.begin(), job.end(), out.work);
        const auto most = *std::max_element(job.begin(), job.end());
        longest = std::max(longest, most);
        gang.emplace_back(job.size(), most);
    }
    Packer together(problem.gpus, gang, progress), apart(problem.gpus, problem.jobs, progress);
    together.run();
    apart.run();
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "interrupted");
    out.fifo = firstComeFirstServed(problem);
    out.gang = together.best();
    out.packed = apart.best();
    out.proven = together.proven() && apart.proven();
    out.places = apart.places();
    if (out.work <= longest * problem.gpus) {
        out.rotatedNumerator = longest;
    } else {
        const std::int64_t common = std::gcd(out.work, static_cast<std::int64_t>(problem.gpus));
        out.rotatedNumerator = out.work / common;
        out.rotatedDenominator = problem.gpus / common;
    }
    return out;
}

} // namespace stagewright
