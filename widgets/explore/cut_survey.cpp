#include "widgets/explore/cut_survey.h"

#include <algorithm>
#include <numeric>

#include "schedules/library/registry.h"
#include "schedules/model/analytic_costs.h"
#include "schedules/model/partial_backward.h"

namespace stagewright {

namespace {

// A stage for each layer, the embedding in the first and the head in the last.
Result<CostModel> costsByLayer(AnalyticCosts analytic)
{
    const int layers = analytic.model.layers;
    STAGEWRIGHT_TRY(const auto schedule, makeSchedule("bfs", Shape(1, 1, layers)));
    analytic.layers.assign(static_cast<std::size_t>(layers), 1);
    return analyticCosts(schedule, analytic);
}

} // namespace

std::vector<int> evenCuts(int replicas, int layers)
{
    std::vector<int> out;
    out.reserve(static_cast<std::size_t>(std::max(0, replicas)));
    for (int k = 0; k < replicas; ++k)
        out.push_back(static_cast<int>(static_cast<std::int64_t>(k) * layers / replicas));
    return out;
}

CutAnswer cutSurvey(const CutQuestion& question)
{
    CutAnswer out;
    const auto failed = [&](const Error& error) {
        out.error = error.message + (error.remedy.empty() ? "" : "; " + error.remedy);
        return out;
    };
    const auto analytic = parseAnalyticCosts(question.model + "@" + question.device);
    if (!analytic) return failed(analytic.error());
    const int layers = analytic->model.layers;
    std::vector<int> cuts = evenCuts(question.replicas, layers);
    if (!question.cuts.empty()) {
        auto read = parseCuts(question.cuts, question.replicas, layers);
        if (!read) return failed(read.error());
        cuts = std::move(*read);
    }
    const auto costs = costsByLayer(*analytic);
    if (!costs) return failed(costs.error());
    out.layers = layers;
    const auto n = static_cast<double>(question.replicas);
    out.evenMean = (n + 1) / (2 * n);
    // every layer takes as long, the last stage the head's besides: what a cut behind the last layer still goes back
    // through
    const Nanos head = layers > 1 ? costs->backward(layers - 1, 0) - costs->backward(layers - 2, 0) : 0;
    for (const int cut : cuts) {
        CutReplica replica{cut, static_cast<double>(layers - cut) / layers, 0, cut == layers ? head : 0};
        for (int layer = 0; layer < layers; ++layer) {
            replica.forward += costs->forward(layer, 0);
            if (layer >= cut) replica.backward += costs->backward(layer, 0);
        }
        out.replicas.push_back(replica);
    }
    out.mean = std::accumulate(out.replicas.begin(), out.replicas.end(), 0.0,
                               [](double sum, const CutReplica& replica) { return sum + replica.back; }) /
               n;
    const auto add = [&](std::string name, int layer) {
        CutLayer row{std::move(name), layer, {}};
        for (std::size_t k = 0; k < cuts.size(); ++k)
            if (cuts[k] <= layer) row.contributors.push_back(static_cast<int>(k));
        out.rows.push_back(std::move(row));
    };
    add("embedding", 0);
    for (int layer = 0; layer < layers; ++layer) add(std::to_string(layer), layer);
    add("head", layers);
    return out;
}

} // namespace stagewright
