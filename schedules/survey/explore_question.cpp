#include "schedules/survey/explore_question.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/library/variants.h"
#include "schedules/plan/plan.h"

namespace stagewright {

namespace {

constexpr int mostSearched = 4096; // ranks × microbatches

std::string number(double value) { return withTrueMinus(fmt::format("{:.4g}", value)); }

SurveyField numberField(std::string name, std::string title, std::string help, double fallback, double least,
                        double most, double step)
{
    return {.name = std::move(name),
            .title = std::move(title),
            .help = std::move(help),
            .kind = step == 1 ? FieldKind::Whole : FieldKind::Real,
            .fallback = textOf(fallback),
            .least = least,
            .most = most,
            .step = step};
}

std::vector<SurveyField> fieldsOfParameters()
{
    const ExploreQuestion start;
    std::vector<SurveyField> fields{
        numberField("ranks", "Ranks, p", "Devices in the pipeline.", start.ranks, 2, 1024, 1),
        numberField("microbatches", "Microbatches, m", "Microbatches per step.", start.microbatches, 1, 1024, 1),
        numberField("chunks", "Chunks",
                    "Stages per rank, for schedules that allow a choice; auto: the schedule's default.", start.chunks,
                    0, 8, 1),
        numberField("forward", "Forward, F", "Forward of one microbatch over all stages of a rank, in units.",
                    start.forward, 0.1, 4, 0.05),
        numberField("input-grad", "Input gradient, I", "The same for the input gradient. A full backward takes I + W.",
                    start.inputGrad, 0.1, 4, 0.05),
        numberField("weight-grad", "Weight gradient, W", "The same for the weight gradient.", start.weightGrad, 0.1, 4,
                    0.05),
        numberField("latency", "Link latency",
                    "From the end of an op to the arrival of its message on another rank, in units.", start.latency, 0,
                    2, 0.05),
        numberField("cap", "Memory cap",
                    "Activations a rank may hold, in units of one microbatch on 1/p of the model. Schedules that take "
                    "a cap keep to it; others are grey where they exceed it.",
                    start.cap, 0, 4096, 0.5)};
    const auto at = [&fields](ExploreParameter parameter) -> SurveyField& {
        return fields[static_cast<std::size_t>(parameter)];
    };
    at(ExploreParameter::Ranks).slide = at(ExploreParameter::Cap).slide = 64;
    at(ExploreParameter::Microbatches).slide = 256;
    at(ExploreParameter::Chunks).none = "auto";
    at(ExploreParameter::Cap).none = "none";
    return fields;
}

} // namespace

namespace {

struct ParameterPlace {
    int ExploreQuestion::*whole = nullptr;
    double ExploreQuestion::*real = nullptr;
};
using Asked = ExploreQuestion;
constexpr ParameterPlace places[] = {
    {.whole = &Asked::ranks},    {.whole = &Asked::microbatches}, {.whole = &Asked::chunks}, {.real = &Asked::forward},
    {.real = &Asked::inputGrad}, {.real = &Asked::weightGrad},    {.real = &Asked::latency}, {.real = &Asked::cap}};
static_assert(std::size(places) == exploreParameterCount);

} // namespace

double ExploreQuestion::value(ExploreParameter parameter) const
{
    const ParameterPlace& place = places[static_cast<std::size_t>(parameter)];
    return place.whole != nullptr ? this->*place.whole : this->*place.real;
}

ExploreQuestion ExploreQuestion::with(ExploreParameter parameter, double value) const
{
    ExploreQuestion changed = *this;
    const ParameterPlace& place = places[static_cast<std::size_t>(parameter)];
    if (place.whole != nullptr)
        changed.*place.whole = static_cast<int>(std::lround(value));
    else
        changed.*place.real = value;
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

Setup ExploreQuestion::point(const std::string& schedule) const
{
    Setup out;
    out.schedules = {schedule};
    out.ranks = ranks;
    out.microbatches = microbatches;
    out.chunks = chunksTaken(schedule, chunks);
    out.costs = unitCostsText({units()});
    out.comm = latency / forward;
    if (cap > 0) out.memoryLimit = fmt::format("{}", cap);
    return out;
}

ExploreQuestion ExploreQuestion::of(const SurveyQuestion& question)
{
    ExploreQuestion out;
    for (int i = 0; i < exploreParameterCount; ++i) {
        const auto parameter = static_cast<ExploreParameter>(i);
        if (question.values().contains(fieldOf(parameter).name))
            out = out.with(parameter, question.real(fieldOf(parameter).name));
    }
    return out;
}

std::string ExploreQuestion::text() const
{
    return fmt::format("p={}, m={}, {}, F={} I={} W={}, latency {}, {}", ranks, microbatches,
                       chunks > 0 ? fmt::format("chunks {}", chunks) : "default chunks", number(forward),
                       number(inputGrad), number(weightGrad), number(latency),
                       cap > 0 ? "cap " + number(cap) : "no cap");
}

std::vector<SurveyField> parameterFields() { return fieldsOfParameters(); }

const SurveyField& fieldOf(ExploreParameter parameter)
{
    static const std::vector<SurveyField> fields = fieldsOfParameters();
    return fields[static_cast<std::size_t>(parameter)];
}

std::optional<ExploreParameter> parameterOf(std::string_view field)
{
    for (int i = 0; i < exploreParameterCount; ++i)
        if (const auto parameter = static_cast<ExploreParameter>(i); fieldOf(parameter).name == field) return parameter;
    return {};
}

std::string valueText(ExploreParameter parameter, double value)
{
    const std::string& none = fieldOf(parameter).none;
    return value == 0 && !none.empty() ? none : number(value);
}

std::vector<double> valuesAround(const ExploreQuestion& question, ExploreParameter parameter, int count)
{
    const SurveyField& range = fieldOf(parameter);
    const double now = question.value(parameter);
    double from = range.least;
    double to = range.slide > 0 ? range.slide : range.most;
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
    double grid = range.step;
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

std::string titleOf(ExploreMeasure measure)
{
    switch (measure) {
    case ExploreMeasure::StepTime: return "Step time, units";
    case ExploreMeasure::Bubble: return "Bubble, of ranks × step time";
    case ExploreMeasure::SpanBubble: return "Bubble within a rank's span";
    }
    return {};
}

std::string measureText(double value, ExploreMeasure measure)
{
    return measure == ExploreMeasure::StepTime ? fixedNumber(value, value < 100 ? 2 : 1) : formatPercent(value);
}

SurveyField measureField()
{
    return {.name = "measure",
            .title = "What the plots show",
            .help = "What the plots show: step time, or the idle share by one of its definitions.",
            .kind = FieldKind::Choice,
            .fallback = "step",
            .choices = {{"step", titleOf(ExploreMeasure::StepTime)},
                        {"bubble", titleOf(ExploreMeasure::Bubble)},
                        {"span-bubble", titleOf(ExploreMeasure::SpanBubble)}}};
}

ExploreMeasure measureAsked(const SurveyQuestion& question)
{
    const std::string& asked = question.text("measure");
    return asked == "step"     ? ExploreMeasure::StepTime
           : asked == "bubble" ? ExploreMeasure::Bubble
                               : ExploreMeasure::SpanBubble;
}

std::string overCap(const SweepRow& row, const ExploreQuestion& question)
{
    if (question.cap <= 0 || !row.good()) return {};
    for (std::size_t rank = 0; rank < row.peaks.size(); ++rank)
        if (const double held = row.memoryValue(row.peaks[rank]); held > question.cap + 1e-9)
            return fmt::format("rank {} holds {}, the cap is {}", rank, fixedNumber(held, 1),
                               fixedNumber(question.cap, 1));
    return {};
}

std::string noteOf(const SweepRow& row, const ExploreQuestion& question)
{
    if (!row.done) return "…";
    if (!row.error.empty()) return row.error;
    std::vector<std::string> words;
    if (std::string over = overCap(row, question); !over.empty()) words.push_back(std::move(over));
    if (!row.synchronous) words.emplace_back("stale weights");
    if (row.copies) words.emplace_back("weights held twice");
    bool unused = false;
    chunksTaken(row.schedule(), question.chunks, &unused);
    if (unused) words.emplace_back("fixed number of chunks");
    return joined(words, "; ");
}

SweepSource exploreSource()
{
    return [](const Setup& point) -> Result<SweepCase> {
        if (point.ranks * point.microbatches > mostSearched && searches(point.schedules.front()))
            return fail(ErrorCode::Usage,
                        fmt::format("its search takes too long above {} ranks × microbatches", mostSearched));
        return preparedCase(point);
    };
}

SurveyField schedulesField(std::string fallback, std::string none)
{
    return {.name = "schedules",
            .title = "Schedules",
            .help = "Schedules of the library by name, such as 1f1b,zbv.",
            .kind = FieldKind::Text,
            .fallback = std::move(fallback),
            .none = std::move(none)};
}

SurveyField parameterField(std::string name, std::string title, std::string fallback)
{
    SurveyField field{.name = std::move(name),
                      .title = std::move(title),
                      .help = "A parameter that varies around its value.",
                      .kind = FieldKind::Choice,
                      .fallback = std::move(fallback)};
    for (const SurveyField& one : fieldsOfParameters()) field.choices.push_back({one.name, one.title});
    return field;
}

TableColumn parameterColumn(ExploreParameter parameter)
{
    const SurveyField& field = fieldOf(parameter);
    std::string key = field.name;
    std::replace(key.begin(), key.end(), '-', '_');
    return {std::move(key), field.title, field.kind == FieldKind::Whole ? ColumnKind::Whole : ColumnKind::Real,
            field.help};
}

TableCell parameterCell(ExploreParameter parameter, double value)
{
    return fieldOf(parameter).kind == FieldKind::Whole ? TableCell(std::int64_t{std::llround(value)})
                                                       : TableCell(value);
}

Result<std::vector<std::string>> schedulesAsked(const SurveyQuestion& question, std::vector<std::string> fallback)
{
    const std::string& asked = question.text("schedules");
    if (asked.empty() && fallback.empty())
        return fail(ErrorCode::Usage, "schedules: none are given", "name some, such as 1f1b,zb-h1");
    if (asked.empty()) return fallback;
    std::vector<std::string> out;
    for (const std::string_view name : itemsOf(asked)) {
        if (auto known = scheduleInfoOf(trimmed(name)); !known)
            return tl::unexpected(std::move(known.error()).with("schedules"));
        out.emplace_back(trimmed(name));
    }
    return out;
}

std::vector<TableColumn> figureColumns()
{
    return {
        {"whole_step", "Step time", ColumnKind::Time,
         "From the first start to the last end of F, B, I, W over all ranks, in units."},
        {"bubble_fraction", "Bubble", ColumnKind::Share, "Idle time / (ranks × step time)."},
        {"bubble_rate_span", "In span", ColumnKind::Share,
         "1 − busy time / span, for the rank with the longest span from its first to its last op."},
        {"peak_activation", "Peak", ColumnKind::Size,
         "Largest activation peak of any rank, in activations of one microbatch on 1/p of the model."},
        {"stages", "Stages", ColumnKind::Count, "Model stages over all ranks."},
        {"note", "Note", ColumnKind::Text, "Why a schedule is impossible or over the cap, and what else it changes."}};
}

void addFigures(TableRow& cells, const SweepRow& row, const ExploreQuestion& question)
{
    if (row.good()) {
        cells.emplace_back(row.step);
        cells.emplace_back(row.bubbleFraction);
        cells.emplace_back(row.bubbleRateSpan);
        cells.emplace_back(row.peaks.empty() ? TableCell() : TableCell(row.peak()));
        cells.emplace_back(std::int64_t{row.stages});
    } else {
        cells.resize(cells.size() + 5);
    }
    cells.emplace_back(noteOf(row, question));
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
