#include "schedules/planner/cluster_study.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr double passes = 4;        // forward, again, and twice as much backward
constexpr double reductions = 6;    // of a layer with full recomputation
constexpr double shardedBytes = 14; // of a parameter: gradients and the optimizer's state

ClusterSplit splitOf(const ClusterStudy& study, std::int64_t model)
{
    const double h = study.hidden, s = study.sequence, width = s * h, m = static_cast<double>(model);
    const double scores = 5 * study.heads * s / h;
    const double parameters = 12 * h * h * study.layers;
    ClusterSplit out;
    out.model = model;
    out.data = study.devices / model;
    const double d = static_cast<double>(out.data), samples = static_cast<double>(study.batch) / d; // of a replica
    out.bytes = 2 * parameters / m + shardedBytes * parameters / (m * d) + 2 * width * study.layers +
                width * (10 + (24 + scores) / m);
    out.fits = out.bytes <= study.capacity + study.expansion;
    const double above = std::max(0.0, out.bytes - study.capacity);
    const double bandwidth = above > 0 && study.expansion > 0
                                 ? out.bytes / (study.capacity / study.bandwidth + above / study.expansionBandwidth)
                                 : study.bandwidth;
    const double operations = width * (24 * h + 4 * s) / m / (study.peak * study.efficiency);
    const double traffic = (24 * h * h + width * (34 + scores)) / m / bandwidth;
    out.compute = passes * study.layers * samples * std::max(operations, traffic);
    const double inHost = std::min(m, static_cast<double>(study.perHost)), hosts = m / inHost;
    const double message = 2 * width;
    out.modelNetwork = reductions * study.layers * samples *
                       (2 * (inHost - 1) / inHost * message / study.inside +
                        2 * (hosts - 1) / hosts * message / (inHost * study.between));
    out.dataNetwork = 2 * (d - 1) / d * 2 * parameters / m / study.between;
    out.limit = out.modelNetwork + out.dataNetwork > out.compute ? ClusterSplit::Limit::Network
                : traffic > operations                           ? ClusterSplit::Limit::Memory
                                                                 : ClusterSplit::Limit::Compute;
    return out;
}

} // namespace

Result<ClusterAnswer> studyCluster(const ClusterStudy& study)
{
    const auto wrong = [](std::string what) { return fail(ErrorCode::Usage, std::move(what), "see docs/planners.md"); };
    for (const double number : {study.hidden, study.layers, study.heads, study.sequence, study.peak, study.efficiency,
                                study.capacity, study.bandwidth, study.inside, study.between})
        if (!(number > 0) || number > 1e18) return wrong("sizes and rates are above 0");
    if (study.devices < 1 || study.batch < 1 || study.perHost < 1)
        return wrong("devices, batch and per_host are 1 or more");
    if (study.expansion < 0 || (study.expansion > 0 && !(study.expansionBandwidth > 0)))
        return wrong("expansion is [bytes, bytes per second]");
    ClusterAnswer out;
    for (const std::int64_t model : study.splits) {
        if (model < 1 || study.devices % model != 0)
            return wrong(fmt::format("a split of {} does not divide {} devices", model, study.devices));
        out.rows.push_back(splitOf(study, model));
    }
    const ClusterSplit* best = nullptr;
    for (const ClusterSplit& row : out.rows)
        if (row.fits && (best == nullptr || row.step() < best->step())) best = &row;
    if (best != nullptr) out.best = best->model;
    return out;
}

} // namespace stagewright
