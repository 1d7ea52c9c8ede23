#include "widgets/explore/explore_question.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>

#include "schedules/library/registry.h"
#include "schedules/library/variants.h"
#include "schedules/plan/plan.h"
#include "widgets/numbers.h"

namespace stagewright {

namespace {

struct QuestionText {
    Q_DECLARE_TR_FUNCTIONS(Explorer)
};

QString number(double value) { return withTrueMinus(QString::number(value, 'g', 4)); }

} // namespace

double ExploreQuestion::value(ExploreParameter parameter) const
{
    switch (parameter) {
    case ExploreParameter::Ranks: return ranks;
    case ExploreParameter::Microbatches: return microbatches;
    case ExploreParameter::Chunks: return chunks;
    case ExploreParameter::Forward: return forward;
    case ExploreParameter::InputGrad: return inputGrad;
    case ExploreParameter::WeightGrad: return weightGrad;
    case ExploreParameter::Latency: return latency;
    case ExploreParameter::Cap: return cap;
    }
    return 0;
}

ExploreQuestion ExploreQuestion::with(ExploreParameter parameter, double value) const
{
    ExploreQuestion changed = *this;
    const int whole = static_cast<int>(std::lround(value));
    switch (parameter) {
    case ExploreParameter::Ranks: changed.ranks = whole; break;
    case ExploreParameter::Microbatches: changed.microbatches = whole; break;
    case ExploreParameter::Chunks: changed.chunks = whole; break;
    case ExploreParameter::Forward: changed.forward = value; break;
    case ExploreParameter::InputGrad: changed.inputGrad = value; break;
    case ExploreParameter::WeightGrad: changed.weightGrad = value; break;
    case ExploreParameter::Latency: changed.latency = value; break;
    case ExploreParameter::Cap: changed.cap = value; break;
    }
    return changed;
}

CostModel::UnitCosts ExploreQuestion::units() const
{
    CostModel::UnitCosts units;
    units.forward = forward;
    units.inputGrad = inputGrad;
    units.weightGrad = weightGrad;
    units.latency = latency;
    return units;
}

SweepPoint ExploreQuestion::point(const std::string& schedule) const
{
    Shape shape(ranks, microbatches, chunksTaken(schedule, chunks));
    shape.costs.memoryLimit = cap;
    return unitPoint(schedule, shape, units());
}

QString ExploreQuestion::text() const
{
    return QuestionText::tr("p=%1, m=%2, %3, F=%4 I=%5 W=%6, latency %7, %8")
        .arg(ranks)
        .arg(microbatches)
        .arg(chunks > 0 ? QuestionText::tr("chunks %1").arg(chunks) : QuestionText::tr("default chunks"))
        .arg(number(forward), number(inputGrad), number(weightGrad), number(latency),
             cap > 0 ? QuestionText::tr("cap %1").arg(number(cap)) : QuestionText::tr("no cap"));
}

ExploreRange rangeOf(ExploreParameter parameter)
{
    switch (parameter) {
    case ExploreParameter::Ranks: return {2, 64, 1, true};
    case ExploreParameter::Microbatches: return {1, 256, 1, true};
    case ExploreParameter::Chunks: return {0, 8, 1, true};
    case ExploreParameter::Forward:
    case ExploreParameter::InputGrad:
    case ExploreParameter::WeightGrad: return {0.1, 4, 0.05, false};
    case ExploreParameter::Latency: return {0, 2, 0.05, false};
    case ExploreParameter::Cap: return {0, 64, 0.5, false};
    }
    return {};
}

QString titleOf(ExploreParameter parameter)
{
    switch (parameter) {
    case ExploreParameter::Ranks: return QuestionText::tr("Ranks, p");
    case ExploreParameter::Microbatches: return QuestionText::tr("Microbatches, m");
    case ExploreParameter::Chunks: return QuestionText::tr("Chunks");
    case ExploreParameter::Forward: return QuestionText::tr("Forward, F");
    case ExploreParameter::InputGrad: return QuestionText::tr("Input gradient, I");
    case ExploreParameter::WeightGrad: return QuestionText::tr("Weight gradient, W");
    case ExploreParameter::Latency: return QuestionText::tr("Link latency");
    case ExploreParameter::Cap: return QuestionText::tr("Memory cap");
    }
    return {};
}

QString meaningOf(ExploreParameter parameter)
{
    switch (parameter) {
    case ExploreParameter::Ranks: return QuestionText::tr("Devices in the pipeline.");
    case ExploreParameter::Microbatches: return QuestionText::tr("Microbatches per step.");
    case ExploreParameter::Chunks:
        return QuestionText::tr("Stages per rank, for schedules that allow a choice; auto: the schedule's default.");
    case ExploreParameter::Forward:
        return QuestionText::tr("Forward of one microbatch over all stages of a rank, in units.");
    case ExploreParameter::InputGrad:
        return QuestionText::tr("The same for the input gradient. A full backward takes I + W.");
    case ExploreParameter::WeightGrad: return QuestionText::tr("The same for the weight gradient.");
    case ExploreParameter::Latency:
        return QuestionText::tr("From the end of an op to the arrival of its message on another rank, in units.");
    case ExploreParameter::Cap:
        return QuestionText::tr("Activations a rank may hold, in units of one microbatch on 1/p of the model. "
                                "Schedules that take a cap keep to it; others are grey where they exceed it.");
    }
    return {};
}

QString valueText(ExploreParameter parameter, double value)
{
    if (parameter == ExploreParameter::Chunks && value == 0) return QuestionText::tr("auto");
    if (parameter == ExploreParameter::Cap && value == 0) return QuestionText::tr("none");
    return number(value);
}

std::vector<double> valuesAround(const ExploreQuestion& question, ExploreParameter parameter, int count)
{
    const ExploreRange range = rangeOf(parameter);
    const double now = question.value(parameter);
    double from = range.least;
    double to = range.most;
    if (parameter == ExploreParameter::Ranks) to = std::max(16.0, std::min(64.0, 2 * now));
    if (parameter == ExploreParameter::Microbatches) to = std::max({16.0, 2 * now, 2.0 * question.ranks});
    if (parameter == ExploreParameter::Chunks) from = 1;
    if (parameter == ExploreParameter::Cap) {
        from = 1;
        to = std::max({2.0 * question.ranks, 1.25 * now, 4.0});
    }
    if (parameter == ExploreParameter::Forward || parameter == ExploreParameter::InputGrad ||
        parameter == ExploreParameter::WeightGrad) {
        from = 0.2;
        to = std::max(2.0, now * 1.5);
    }
    if (parameter == ExploreParameter::Latency) to = std::max(1.0, now * 1.5);
    double grid = range.whole ? 1 : range.step;
    // bidirectional schedules take even numbers
    if (parameter == ExploreParameter::Ranks) grid = 2;
    // several take multiples of the ranks
    if (parameter == ExploreParameter::Microbatches) from = grid = question.ranks;
    const double step = std::max(grid, std::ceil((to - from) / std::max(1, count - 1) / grid - 1e-9) * grid);
    std::vector<double> values;
    for (double value = from; value <= to + 1e-9; value += step) values.push_back(value);
    const bool none = now == 0 && (parameter == ExploreParameter::Cap || parameter == ExploreParameter::Chunks);
    const auto near = std::lower_bound(values.begin(), values.end(), now - 1e-9);
    if (!none && (near == values.end() || std::abs(*near - now) > 1e-9)) values.insert(near, now);
    return values;
}

std::vector<std::string> exploredSchedules()
{
    std::vector<std::string> names;
    for (const ScheduleInfo& info : allSchedules())
        for (const std::string& name : variantsOf(info)) names.push_back(name);
    return names;
}

bool searches(const std::string& schedule)
{
    const auto info = scheduleInfoOf(schedule);
    return info && (*info)->searches;
}

double measureOf(const SweepRow& row, ExploreMeasure measure)
{
    switch (measure) {
    case ExploreMeasure::StepTime: return row.timeValue(row.step);
    case ExploreMeasure::Bubble: return row.bubbleFraction;
    case ExploreMeasure::SpanBubble: return row.bubbleRateSpan;
    }
    return 0;
}

QString titleOf(ExploreMeasure measure)
{
    switch (measure) {
    case ExploreMeasure::StepTime: return QuestionText::tr("Step time, units");
    case ExploreMeasure::Bubble: return QuestionText::tr("Bubble, of ranks × step time");
    case ExploreMeasure::SpanBubble: return QuestionText::tr("Bubble within a rank's span");
    }
    return {};
}

QString measureText(double value, ExploreMeasure measure)
{
    return measure == ExploreMeasure::StepTime ? fixed(value, value < 100 ? 2 : 1) : percentText(value);
}

QString overCap(const SweepRow& row, const ExploreQuestion& question)
{
    if (question.cap <= 0 || !row.good()) return {};
    for (std::size_t rank = 0; rank < row.peaks.size(); ++rank)
        if (const double held = row.memoryValue(row.peaks[rank]); held > question.cap + 1e-9)
            return QuestionText::tr("rank %1 holds %2, the cap is %3")
                .arg(rank)
                .arg(fixed(held, 1), fixed(question.cap, 1));
    return {};
}

std::vector<ExploreBound> boundsOf(const ExploreQuestion& question, const Progress& progress)
{
    std::vector<ExploreBound> bounds;
    if (question.ranks * question.microbatches > 1024) return bounds;
    for (const int chunks : {1, 2}) {
        PlanRequest request;
        request.ranks = question.ranks;
        request.microbatches = question.microbatches;
        request.chunks = chunks;
        request.seconds = 0;
        Shape shape(question.ranks, question.microbatches, chunks);
        const auto schedule = makeSchedule(chunks == 1 ? "1f1b" : "zbv", shape);
        if (!schedule) continue;
        request.costs = CostModel::uniform(*schedule, question.units());
        std::vector<double> caps;
        for (double cap = 1; cap < 2 * question.ranks; cap = std::max(cap + 1, std::floor(cap * 1.35)))
            caps.push_back(cap);
        caps.push_back(2.0 * question.ranks);
        double least = 1e300;
        for (const double cap : caps) {
            if (progress.cancelled()) return bounds;
            request.caps.assign(static_cast<std::size_t>(question.ranks),
                                static_cast<Bytes>(std::llround(cap * static_cast<double>(activationShare))));
            const auto best = plan(request);
            if (!best) continue; // less than one microbatch needs
            const double bound = static_cast<double>(best->bound) / static_cast<double>(rankShare);
            least = std::min(least, bound);
            bounds.push_back({chunks, cap, least, best->provenBy});
        }
    }
    return bounds;
}

double workBound(const ExploreQuestion& question)
{
    return question.microbatches * (question.forward + question.inputGrad + question.weightGrad);
}

} // namespace stagewright
