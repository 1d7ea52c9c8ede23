#include "schedules/survey/preview.h"

#include "schedules/execute/simulate.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright {
namespace {

constexpr std::size_t mostDrawn = 600'000; // ops

// Every parameter of the schedule with its value from the name, which was accepted before.
std::vector<std::pair<std::string, std::string>> parametersOf(const ScheduleInfo& info, std::string_view name)
{
    std::vector<std::pair<std::string, std::string>> out;
    for (const ScheduleParameter& parameter : info.parameters) {
        out.emplace_back(parameter.name, parameter.fallback);
        const std::string key = ":" + out.back().first + "=";
        const std::size_t at = name.find(key);
        if (at == std::string_view::npos) continue;
        const std::size_t from = at + key.size();
        out.back().second = name.substr(from, name.find(':', from) - from);
    }
    return out;
}

} // namespace

Shape withCosts(Shape shape, const CostModel::UnitCosts& costs)
{
    shape.costs.forward = costs.forward;
    shape.costs.inputGrad = costs.inputGrad;
    shape.costs.weightGrad = costs.weightGrad;
    shape.costs.latency = costs.latency;
    return shape;
}

std::optional<Shape> nearestShape(const std::string& name, const Shape& shape, const Progress& progress)
{
    const auto works = [&](int ranks, int microbatches, int chunks) -> std::optional<Shape> {
        if (ranks < 1 || microbatches < 1 || progress.cancelled()) return std::nullopt;
        Shape tried = shape;
        tried.ranks = ranks;
        tried.microbatches = microbatches;
        tried.chunks = chunks;
        if (!makeSchedule(name, tried)) return std::nullopt;
        return tried;
    };
    for (int away = 0; away <= 16; ++away) {
        for (const int ranks : {shape.ranks + away, shape.ranks - away}) {
            if (away == 0 && ranks != shape.ranks) continue;
            for (const int chunks : {shape.chunks, 0}) {
                for (int step = 0; step <= 64; ++step)
                    for (const int microbatches : {shape.microbatches + step, shape.microbatches - step})
                        if (auto found = works(ranks, microbatches, chunks)) return found;
                if (shape.chunks == 0) break;
            }
            if (away == 0) break;
        }
    }
    return std::nullopt;
}

PreviewFigures previewFigures(const PreviewRequest& request, const Progress& progress)
{
    PreviewFigures out;
    const Shape shape = withCosts(request.shape, request.costs);
    auto schedule = makeSchedule(request.name, shape);
    if (!schedule) {
        out.fault = schedule.error();
        if (scheduleInfoOf(request.name)) out.nearest = nearestShape(request.name, shape, progress);
        return out;
    }
    if (progress.cancelled()) return out;
    const CostModel costs = CostModel::uniform(*schedule, request.costs);
    auto result = simulate(*schedule, costs);
    if (!result) {
        out.fault = result.error();
        return out;
    }
    const SimFigures figures = figuresOf(*schedule, *result);
    out.ops = schedule->opCount();
    out.stages = schedule->stages;
    out.weights = schedule->weights;
    out.makespan = result->makespan;
    out.span = result->span;
    out.bubbleFraction = figures.bubbleFraction;
    out.bubbleRateSpan = figures.bubbleRateSpan;
    out.peaks = result->peakActivation;
    const auto info = scheduleInfoOf(request.name);
    if (info && (*info)->closedForm != nullptr && request.costs.latency == 0) {
        Shape given = shape;
        if (given.chunks == 0 || (*info)->fixedChunks > 0)
            given.chunks = (*info)->fixedChunks > 0 ? (*info)->fixedChunks : (*info)->defaultChunks;
        given.parameters = parametersOf(**info, request.name);
        out.closed =
            (*info)->closedForm(given, request.costs.forward, request.costs.inputGrad, request.costs.weightGrad);
    }
    if (out.ops > mostDrawn || progress.cancelled()) return out;
    auto timeline = timelineOf(*schedule, *result, costs);
    if (!timeline) return out;
    out.timeline = *timeline;
    return out;
}

} // namespace stagewright
