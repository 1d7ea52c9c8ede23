#include "schedules/survey/partial.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/model/analytic_costs.h"
#include "schedules/model/partial_backward.h"
#include "schedules/survey/state.h"

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

CutQuestion CutQuestion::of(const SurveyQuestion& question)
{
    return {question.text("model"), question.text("device"), question.whole("replicas"), question.text("cuts")};
}

std::string CutQuestion::setup() const
{
    return fmt::format("Computed: {} on {}, {} replicas.", model, device, replicas);
}

std::string meanBackward(const CutAnswer& answer, const CutQuestion& question)
{
    if (answer.rows.empty()) return {};
    const int n = question.replicas;
    const std::string formula = fmt::format("(N+1)/(2N) = {}/{} = {}", n + 1, 2 * n, formatPercent(answer.evenMean));
    if (!question.cuts.empty())
        return fmt::format("Mean backward: {}; with even cuts {}", formatPercent(answer.mean), formula);
    return std::abs(answer.mean - answer.evenMean) < 5e-4
               ? "Mean backward: " + formula
               : fmt::format("Mean backward: {}, cuts at whole layers; {}", formatPercent(answer.mean), formula);
}

SurveyTable contributorTable(const CutAnswer& answer, const CutQuestion& question)
{
    SurveyTable table{
        "layers",
        fmt::format("Contributors by layer: {}, {} replicas", question.model, question.replicas),
        {{"layer", "Layer", ColumnKind::Text},
         {"contributors", "Contributors", ColumnKind::Count, "Replicas that send its gradient."},
         {"replicas", "Replicas", ColumnKind::Text},
         {"batch_share", "Share of the batch", ColumnKind::Share, "Over which its gradient is the mean."}},
        {}};
    for (const CutLayer& layer : answer.rows) {
        std::vector<std::string> replicas;
        for (const int replica : layer.contributors) replicas.push_back(std::to_string(replica));
        table.rows.push_back({layer.name, static_cast<std::int64_t>(layer.contributors.size()), joined(replicas),
                              static_cast<double>(layer.contributors.size()) / question.replicas});
    }
    table.sentence = meanBackward(answer, question) + ". Not synchronous training.";
    return table;
}

namespace {

std::vector<SurveyField> partialFields()
{
    return {modelField(),
            deviceField(),
            replicasField(),
            {.name = "cuts",
             .title = "Cuts",
             .help = "The first layer that each replica goes back to, such as 0,8,16,24; one must be 0. Empty: replica "
                     "k of N goes back through (N − k)/N of the layers.",
             .kind = FieldKind::Text,
             .none = "spread evenly"}};
}

SurveyTable replicaTable(const CutAnswer& answer)
{
    SurveyTable table{"replicas",
                      "Backward by replica",
                      {{"replica", "Replica", ColumnKind::Whole},
                       {"cut", "Cut", ColumnKind::Whole, "The first layer that it goes back to."},
                       {"back_share", "Share of the layers", ColumnKind::Share},
                       {"forward_ns", "Forward", ColumnKind::Time, "Of a microbatch through all layers."},
                       {"backward_ns", "Backward", ColumnKind::Time, "Of a microbatch down to the cut."}},
                      {}};
    for (std::size_t k = 0; k < answer.replicas.size(); ++k) {
        const CutReplica& at = answer.replicas[k];
        table.rows.push_back({static_cast<std::int64_t>(k), std::int64_t{at.cut}, at.back, at.forward, at.backward});
    }
    return table;
}

std::string layerText(const CutLayer& layer, const CutQuestion& question)
{
    const std::string title = layer.name == "head"               ? "The head"
                              : numberOf(layer.name).has_value() ? "Layer " + layer.name
                                                                 : "The embedding";
    std::vector<std::string> ranges; // neighbours as one
    for (std::size_t i = 0; i < layer.contributors.size();) {
        std::size_t last = i;
        while (last + 1 < layer.contributors.size() && layer.contributors[last + 1] == layer.contributors[last] + 1)
            ++last;
        ranges.push_back(last == i ? std::to_string(layer.contributors[i])
                                   : fmt::format("{}{}{}", layer.contributors[i], last > i + 1 ? " to " : ", ",
                                                 layer.contributors[last]));
        i = last + 1;
    }
    const std::size_t count = layer.contributors.size();
    return fmt::format("{}: {} of {} replicas send gradients ({} {}). Its gradient is the mean over {} of the batch.",
                       title, count, question.replicas, count == 1 ? "replica" : "replicas", joined(ranges),
                       formatPercent(static_cast<double>(count) / question.replicas));
}

Result<SurveyAnswer> partialAnswer(const SurveyQuestion& asked, const Progress&)
{
    const CutQuestion question = CutQuestion::of(asked);
    const CutAnswer answer = cutSurvey(question);
    if (!answer.error.empty()) return fail(ErrorCode::Usage, answer.error);
    return SurveyAnswer{.setup = question.setup(),
                        .tables = {contributorTable(answer, question), replicaTable(answer)},
                        .units = {},
                        .plot = partialPlot(answer, question)};
}

} // namespace

Plot partialPlot(const CutAnswer& answer, const CutQuestion& question)
{
    Plot counts{{}, "Replicas that send gradients", {}};
    counts.nothing = answer.error;
    counts.saysChoice = true;
    if (answer.rows.empty()) return counts;
    counts.title = meanBackward(answer, question) + ". Not synchronous training.";
    counts.across.hidden = true;
    counts.share = 0.45;
    counts.up.most = static_cast<double>(answer.replicas.size());
    Plot replicas{"Layer", "Replica; at the right, backward of a microbatch", {}};
    replicas.up.downwards = true;
    PlotSeries bars{"", {}, PlotMark::Bars, PlotInk{PlotHue::Communication}},
        back{"goes back, sends its gradient", {}, PlotMark::Boxes, PlotInk{PlotHue::Backward}},
        cuts{"the cut", {}, PlotMark::Boxes, PlotInk{PlotHue::Critical}},
        only{"forward only", {}, PlotMark::Boxes, PlotInk{PlotHue::Forward, 0.22F}};
    for (std::size_t i = 0; i < answer.rows.size(); ++i) {
        const auto x = static_cast<double>(i);
        bars.points.push_back({x, static_cast<double>(answer.rows[i].contributors.size())});
        replicas.across.names.push_back(answer.rows[i].name);
        counts.items.push_back(PlotItem::band(x - 0.5, x + 0.5, layerText(answer.rows[i], question),
                                              static_cast<int>(i), static_cast<int>(i)));
    }
    counts.across.names = replicas.across.names;
    const double end = static_cast<double>(answer.rows.size()) - 0.5;
    for (std::size_t k = 0; k < answer.replicas.size(); ++k) {
        const CutReplica& at = answer.replicas[k];
        const auto first = std::find_if(answer.rows.begin(), answer.rows.end(),
                                        [&](const CutLayer& row) { return row.layer >= at.cut; });
        const double cut = static_cast<double>(first - answer.rows.begin()) - 0.5, y = static_cast<double>(k);
        const auto box = [&](PlotSeries& series, double from, double to) {
            PlotPoint point{from, y - 0.46};
            point.toX = to;
            point.toY = y + 0.46;
            series.points.push_back(std::move(point));
        };
        box(only, -0.5, cut);
        box(back, cut, end);
        box(cuts, cut, cut);
        replicas.up.names.push_back(fmt::format("replica {}", k));
        replicas.up.notes.push_back(
            fmt::format("{} · {}", formatPercent(at.back), formatDuration(at.forward + at.backward)));
    }
    counts.series = {std::move(bars)};
    replicas.series = {std::move(only), std::move(back), std::move(cuts)};
    counts.below.push_back(std::move(replicas));
    return counts;
}

namespace surveys {
extern const SurveyInfo partial;
const SurveyInfo partial{"partial", "Partial backward",
                         "replicas that go back only to a layer of their own (SPB): who sends gradients of which layer",
                         partialFields, partialAnswer};
} // namespace surveys

} // namespace stagewright
