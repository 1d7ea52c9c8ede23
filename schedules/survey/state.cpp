#include "schedules/survey/state.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/model/analytic_costs.h"
#include "schedules/model/memory_ink.h"
#include "schedules/survey/explore_question.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright {

namespace {

// The fullest rank and what it holds then.
void fillHeld(StateCell& cell, const Timeline& timeline)
{
    Bytes most = -1;
    for (int rank = 0; rank < timeline.ranks(); ++rank) {
        StateBytes now{};
        Bytes sum = 0;
        const auto events = timeline.memoryOf(rank);
        for (std::size_t i = 0; i < events.size(); ++i) {
            now[static_cast<std::size_t>(events[i].category)] += events[i].delta;
            sum += events[i].delta;
            // after all changes of a moment
            if (i + 1 < events.size() && events[i + 1].time == events[i].time) continue;
            if (sum <= most) continue;
            most = sum;
            cell.rank = rank;
            cell.held = now;
        }
    }
}

Result<StateCell> simulated(const StateQuestion& question, const std::string& name, ShardLevel level)
{
    auto schedule = makeSchedule(name, Shape{question.ranks, question.microbatches, question.chunks});
    if (!schedule) return tl::unexpected(std::move(schedule.error()));
    if (question.replicas > 1 || schedule->placement.hasCopies()) {
        schedule = addShardOps(*schedule, level, question.rules);
        if (!schedule) return tl::unexpected(std::move(schedule.error()));
    }
    STAGEWRIGHT_TRY(auto analytic, parseAnalyticCosts(question.model + "@" + question.device));
    STAGEWRIGHT_TRY(auto costs, analyticCosts(*schedule, analytic));
    costs.sharding.level = level;
    costs.replicas = question.replicas;
    costs.links.collectives = ResourceUse::Beside;
    CollectiveCosts collectives = question.collectives;
    collectives.within = costs.links.all;
    setCollectiveTimes(costs, *schedule, collectives);
    STAGEWRIGHT_TRY(const auto timeline, simulatedTimeline(*schedule, costs));
    StateCell cell;
    cell.step = timeline->end() - timeline->begin();
    fillHeld(cell, *timeline);
    const auto volumes = collectiveVolumes(*schedule, costs);
    if (static_cast<std::size_t>(cell.rank) < volumes.size()) {
        cell.gathered = static_cast<double>(volumes[static_cast<std::size_t>(cell.rank)].gathered);
        cell.reduced = static_cast<double>(volumes[static_cast<std::size_t>(cell.rank)].reduced);
    }
    return cell;
}

} // namespace

double StateQuestion::capacity() const
{
    if (memory > 0) return memory;
    for (const DevicePreset& preset : devicePresets())
        if (preset.name == device) return preset.memory;
    return 0;
}

StateQuestion StateQuestion::of(const SurveyQuestion& question)
{
    StateQuestion out;
    out.ranks = question.whole("ranks");
    out.microbatches = question.whole("microbatches");
    out.chunks = question.whole("chunks");
    out.model = question.text("model");
    out.device = question.text("device");
    out.replicas = question.whole("replicas");
    out.rules.gather = question.text("gather") == "batch" ? GatherRule::Batch : GatherRule::Microbatch;
    out.rules.prefetch = question.whole("prefetch");
    out.rules.reduce = *parseReduce(question.text("reduce"));
    out.collectives.perHost = question.whole("per-host");
    if (out.collectives.perHost > 0) out.collectives.algorithm = CollectiveAlgorithm::TwoLevel;
    const double between = question.real("between") * 1e9;
    for (const DevicePreset& preset : devicePresets())
        if (preset.name == out.device)
            out.collectives.between = {preset.linkLatency, between > 0 ? between : preset.linkBytesPerSecond};
    out.memory = question.real("memory") * 1e9;
    return out;
}

std::string StateQuestion::setup() const
{
    return fmt::format("Simulated: {} on {}, {} replicas of {} ranks.", model, device, replicas, ranks);
}

bool StateCell::over(const StateQuestion& question) const
{
    return question.capacity() > 0 && static_cast<double>(peak()) > question.capacity();
}

Bytes StateCell::peak() const { return std::accumulate(held.begin(), held.end(), Bytes{0}); }

StateCell stateCell(const StateQuestion& question, const std::string& schedule, ShardLevel level)
{
    StateCell out;
    if (auto cell = simulated(question, schedule, level))
        out = std::move(*cell);
    else
        out.error = cell.error().message + (cell.error().remedy.empty() ? "" : "; " + cell.error().remedy);
    out.done = true;
    return out;
}

std::vector<StateRow> stateSurvey(const StateQuestion& question, const std::vector<std::string>& schedules,
                                  const Progress& progress)
{
    std::vector<StateRow> rows;
    for (const std::string& name : schedules) {
        rows.push_back({name, {}});
        for (std::size_t level = 0; level < rows.back().cells.size() && !progress.stop.stop_requested(); ++level)
            rows.back().cells[level] = stateCell(question, name, static_cast<ShardLevel>(level));
        progress.tell("schedules", static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(schedules.size()));
    }
    return rows;
}

std::vector<std::string> stateSchedules()
{
    std::vector<std::string> names = exploredSchedules();
    std::erase_if(names, [](const std::string& name) { return searches(name); });
    return names;
}

std::string zeroTitle(std::size_t level)
{
    constexpr std::array titles{"nothing shared", "ZeRO 1: optimizer", "ZeRO 2: + gradients", "ZeRO 3: + weights"};
    return titles[level];
}

SurveyTable stateTable(const std::vector<StateRow>& rows, const StateQuestion& question)
{
    SurveyTable table{"stages",
                      fmt::format("Memory and step time by what replicas share: {} on {}, {} replicas of {} ranks",
                                  question.model, question.device, question.replicas, question.ranks),
                      {{"schedule", "Schedule", ColumnKind::Text},
                       {"shared", "Shared", ColumnKind::Text, "What replicas divide among them."},
                       {"step_ns", "Step time", ColumnKind::Time, "With gathers, reductions and the optimizer."},
                       {"memory_bytes", "Memory", ColumnKind::Size, "Of the fullest rank when it holds most."},
                       {"fits", "Fits", ColumnKind::Text},
                       {"rank", "Fullest rank", ColumnKind::Whole}},
                      {}};
    for (const MemoryCategory category : stackedCategories) {
        std::string key(traitsOf(category).text);
        std::replace(key.begin(), key.end(), ' ', '_');
        table.columns.push_back({key + "_bytes", std::string(traitsOf(category).title), ColumnKind::Size});
    }
    table.columns.push_back({"gathers_bytes", "In gathers", ColumnKind::Size, "Received by that rank in a step."});
    table.columns.push_back(
        {"reductions_bytes", "In reductions", ColumnKind::Size, "Received by that rank in a step."});
    table.columns.push_back({"note", "Note", ColumnKind::Text, "Why it can't be simulated."});
    for (const StateRow& row : rows)
        for (std::size_t level = 0; level < row.cells.size(); ++level) {
            const StateCell& cell = row.cells[level];
            if (!cell.done) continue;
            TableRow cells{row.schedule, zeroTitle(level)};
            if (cell.good()) {
                cells.emplace_back(cell.step);
                cells.emplace_back(cell.peak());
                cells.emplace_back(std::string(cell.over(question) ? "no" : "yes"));
                cells.emplace_back(std::int64_t{cell.rank});
                for (const MemoryCategory category : stackedCategories)
                    cells.emplace_back(cell.held[static_cast<std::size_t>(category)]);
                cells.emplace_back(static_cast<Bytes>(cell.gathered));
                cells.emplace_back(static_cast<Bytes>(cell.reduced));
            }
            cells.resize(table.columns.size() - 1);
            cells.emplace_back(cell.error);
            table.rows.push_back(std::move(cells));
        }
    if (question.capacity() > 0)
        table.sentence = fmt::format("A rank has {}.", formatBytes(static_cast<Bytes>(question.capacity())));
    return table;
}

SurveyField modelField()
{
    SurveyField field{.name = "model",
                      .title = "Model",
                      .help = "Sizes and times are computed from the model's shape: 2 bytes of weight, 2 of gradient "
                              "and 12 of optimizer state per parameter.",
                      .kind = FieldKind::Choice,
                      .fallback = StateQuestion().model};
    for (const ModelPreset& preset : modelPresets())
        field.choices.push_back({std::string(preset.name), std::string(preset.name)});
    return field;
}

SurveyField deviceField()
{
    SurveyField field{.name = "device",
                      .title = "Device",
                      .help = "Peak arithmetic, memory and links of each rank.",
                      .kind = FieldKind::Choice,
                      .fallback = StateQuestion().device};
    for (const DevicePreset& preset : devicePresets())
        field.choices.push_back({std::string(preset.name), std::string(preset.title)});
    return field;
}

SurveyField replicasField()
{
    return {.name = "replicas",
            .title = "Replicas",
            .help = "Pipelines side by side that train one model.",
            .fallback = std::to_string(StateQuestion().replicas),
            .least = 1,
            .most = 1024,
            .doubling = true};
}

namespace {

std::vector<SurveyField> stateFields()
{
    return {
        fieldOf(ExploreParameter::Ranks),
        fieldOf(ExploreParameter::Microbatches),
        fieldOf(ExploreParameter::Chunks),
        modelField(),
        deviceField(),
        replicasField(),
        {.name = "gather",
         .title = "Gather",
         .help = "When sharded weights are gathered for an op.",
         .kind = FieldKind::Choice,
         .fallback = "batch",
         .choices = {{"batch", "once a batch"}, {"microbatch", "for each microbatch"}}},
        {.name = "prefetch",
         .title = "Gathers ahead",
         .help = "How many stages, or ops, ahead a gather is issued.",
         .fallback = "0",
         .most = 8,
         .none = "none ahead"},
        {.name = "reduce",
         .title = "Reduce",
         .help = "When gradients are summed over the replicas: at the end of the batch, when a stage has its last "
                 "gradient, or after each microbatch. \"Then update\" starts a stage's optimizer as soon as its sums "
                 "have arrived.",
         .kind = FieldKind::Choice,
         .fallback = "overlapped",
         .choices = {{"late", "at the end"},
                     {"overlapped", "stage by stage"},
                     {"microbatch", "each microbatch"},
                     {"stepped", "stage by stage, then update"}}},
        {.name = "per-host",
         .title = "Replicas on a host",
         .help = "How many ranks that share a stage are on one host: gathers and reductions then go within hosts and "
                 "between them.",
         .fallback = "0",
         .most = 64,
         .none = "all"},
        {.name = "between",
         .title = "Between hosts",
         .help = "Bandwidth of a host's link to the others.",
         .kind = FieldKind::Real,
         .fallback = "0",
         .most = 1000,
         .unit = "GB/s",
         .none = "as within"},
        {.name = "memory",
         .title = "Memory of a rank",
         .help = "Cells that need more are hatched.",
         .kind = FieldKind::Real,
         .fallback = "0",
         .most = 4096,
         .unit = "GB",
         .none = "the device's"},
        schedulesField({}, "all that do not search"),
    };
}

constexpr double mostAbove = 3; // a limit more than so many times the bars is named, not drawn

// The bars of 1F1B, or else of the first schedule that can be simulated, and the grid below them.
Plot statePlot(const std::vector<StateRow>& rows, const StateQuestion& question)
{
    const auto good = [](const StateRow& row) {
        return std::any_of(row.cells.begin(), row.cells.end(), [](const StateCell& cell) { return cell.good(); });
    };
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const StateRow& one) { return one.schedule == "1f1b" && good(one); });
    if (row == rows.end()) row = std::find_if(rows.begin(), rows.end(), good);
    if (row == rows.end()) return {};
    Plot plot = stateBars(*row, question);
    return stateWhole(std::move(plot), stateGrid(rows, question));
}

Result<SurveyAnswer> stateAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    const StateQuestion question = StateQuestion::of(asked);
    STAGEWRIGHT_TRY(const auto schedules, schedulesAsked(asked, stateSchedules()));
    const std::vector<StateRow> rows = stateSurvey(question, schedules, progress);
    return SurveyAnswer{.setup = question.setup(),
                        .tables = {stateTable(rows, question)},
                        .units = {},
                        .plot = statePlot(rows, question),
                        .complete = !progress.cancelled()};
}

} // namespace

// What a level holds against the one before, the largest change first: "against ZeRO 1: gathered weights +0.3 GiB,
// gradients −0.1 GiB"; "": nothing that is known.
static std::string againstBefore(const StateRow& row, std::size_t level)
{
    if (level == 0 || !row.cells[level].good() || !row.cells[level - 1].good()) return {};
    const auto changeOf = [&](MemoryCategory category) {
        const auto at = static_cast<std::size_t>(category);
        return row.cells[level].held[at] - row.cells[level - 1].held[at];
    };
    std::vector<MemoryCategory> changed;
    for (const MemoryCategory category : stackedCategories)
        if (changeOf(category) != 0) changed.push_back(category);
    std::stable_sort(changed.begin(), changed.end(), [&](MemoryCategory a, MemoryCategory b) {
        return std::llabs(changeOf(a)) > std::llabs(changeOf(b));
    });
    std::vector<std::string> parts;
    for (const MemoryCategory category : changed) {
        const Bytes change = changeOf(category);
        parts.push_back(fmt::format("{} {}{}", lowered(traitsOf(category).title), change > 0 ? "+" : "−",
                                    formatBytes(std::llabs(change))));
    }
    const std::string before = zeroTitle(level - 1);
    return fmt::format("against {}: {}", before.substr(0, before.find(':')),
                       parts.empty() ? "the same" : joined(parts));
}

std::string whyMoreIsHeld(const StateRow& row, const StateQuestion& question)
{
    std::vector<std::string> more;
    for (std::size_t level = 1; level < row.cells.size(); ++level)
        if (row.cells[level].good() && row.cells[level - 1].good() &&
            row.cells[level].peak() > row.cells[level - 1].peak()) {
            const std::string title = zeroTitle(level);
            more.push_back(
                fmt::format("{} holds more {}", title.substr(0, title.find(':')), againstBefore(row, level)));
        }
    if (more.empty()) return {};
    std::string text = joined(more, "; ");
    text += ". The peak is while a stage's gradients still accumulate whole over the microbatches and its weights are "
            "gathered whole";
    if (question.rules.reduce != ReduceRule::Microbatch)
        text += "; reducing after each microbatch shares gradients sooner";
    return text + ".";
}

std::string stateText(const StateRow& row, std::size_t level, const StateQuestion& question)
{
    const StateCell& cell = row.cells[level];
    const std::string name = fmt::format("{}, {}", shownTitle(row.schedule), zeroTitle(level));
    if (!cell.done) return name;
    if (!cell.good()) return fmt::format("{}: {}", name, cell.error);
    std::string text = fmt::format("{}: a step takes {}; rank {} holds {}", name, formatDuration(cell.step), cell.rank,
                                   formatBytes(cell.peak()));
    std::vector<std::string> parts;
    for (const MemoryCategory category : stackedCategories)
        if (const Bytes bytes = cell.held[static_cast<std::size_t>(category)]; bytes > 0)
            parts.push_back(lowered(traitsOf(category).title) + " " + formatBytes(bytes));
    if (!parts.empty()) text += ": " + joined(parts);
    if (const std::string change = againstBefore(row, level); !change.empty()) text += "; " + change;
    text += fmt::format(". It receives {} in gathers and {} in reductions a step.",
                        formatBytes(static_cast<Bytes>(cell.gathered)), formatBytes(static_cast<Bytes>(cell.reduced)));
    if (cell.over(question))
        text += fmt::format(" A rank has {}: it does not fit.", formatBytes(static_cast<Bytes>(question.capacity())));
    return text;
}

Plot stateBars(const StateRow& row, const StateQuestion& question)
{
    Plot plot;
    plot.title = "Memory of the fullest rank: " + shownTitle(row.schedule);
    plot.up.scale = PlotScale::Bytes;
    plot.legend = PlotLegend::Right;
    plot.nothing = "simulating…";
    const double capacity = question.capacity();
    double most = 0;
    PlotSeries totals{"", {}, PlotMark::Bars}, over{"", {}, PlotMark::Levels, PlotInk{PlotHue::Critical}};
    over.hatched = true;
    for (std::size_t level = 0; level < row.cells.size(); ++level) {
        const StateCell& cell = row.cells[level];
        const auto x = static_cast<double>(level);
        plot.across.names.push_back(zeroTitle(level) + (cell.done && !cell.good() ? " (none)" : ""));
        plot.items.push_back(
            PlotItem::band(x - 0.5, x + 0.5, stateText(row, level, question), static_cast<int>(level)));
        if (!cell.good()) continue;
        most = std::max(most, static_cast<double>(cell.peak()));
        totals.points.push_back({x, 0, formatBytes(cell.peak())});
        if (cell.over(question)) over.points.push_back({x, capacity});
    }
    for (const MemoryCategory category : stackedCategories) {
        PlotSeries bars{std::string(traitsOf(category).title), {}, PlotMark::Bars, inkOf(category)};
        for (std::size_t level = 0; level < row.cells.size(); ++level)
            if (const Bytes bytes = row.cells[level].held[static_cast<std::size_t>(category)];
                row.cells[level].good() && bytes > 0)
                bars.points.push_back({static_cast<double>(level), static_cast<double>(bytes), formatBytes(bytes)});
        if (!bars.points.empty()) plot.series.push_back(std::move(bars));
    }
    if (most <= 0) return plot;
    plot.series.push_back(std::move(totals));
    plot.series.push_back(std::move(over));
    const std::string has = formatBytes(static_cast<Bytes>(capacity));
    if (capacity > mostAbove * most) // too far above the bars to be drawn
        plot.title += fmt::format(" (a rank has {})", has);
    else if (capacity > 0)
        plot.rules.push_back({capacity, false, "a rank has " + has});
    return plot;
}

Plot stateWhole(Plot bars, Plot grid)
{
    const double high = 60 + 17 * static_cast<double>(grid.up.names.size()); // its rows can be read
    bars.share = 230;
    grid.share = high;
    bars.tall = std::max(1.0, (bars.share + high) / 560);
    bars.below = {std::move(grid)};
    return bars;
}

Plot stateGrid(const std::vector<StateRow>& rows, const StateQuestion& question)
{
    Plot plot{{}, "Step time · memory", {}};
    plot.legend = PlotLegend::None;
    plot.nothing = "simulating…";
    plot.across.aboveArea = plot.up.downwards = true;
    for (std::size_t level = 0; level < 4; ++level) plot.across.names.push_back(zeroTitle(level));
    Nanos least = std::numeric_limits<Nanos>::max(), most = 0;
    for (const StateRow& row : rows)
        for (const StateCell& cell : row.cells)
            if (cell.good() && !cell.over(question)) {
                least = std::min(least, cell.step);
                most = std::max(most, cell.step);
            }
    PlotSeries fits{"fits", {}, PlotMark::Cells},
        over{"does not fit", {}, PlotMark::Cells, PlotInk{PlotHue::IdleHatch}},
        none{"", {}, PlotMark::Cells, PlotInk{PlotHue::Idle}};
    over.hatched = true;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        plot.up.names.push_back(shownTitle(rows[r].schedule));
        for (std::size_t level = 0; level < rows[r].cells.size(); ++level) {
            const StateCell& cell = rows[r].cells[level];
            PlotPoint point{static_cast<double>(level), static_cast<double>(r), cell.done ? "–" : "…"};
            plot.items.push_back(PlotItem::cell(static_cast<int>(level), static_cast<int>(r),
                                                stateText(rows[r], level, question), static_cast<int>(4 * r + level)));
            if (cell.good()) {
                const std::string time = formatDuration(cell.step);
                point.name = fmt::format("{} · {}\n{}", time, formatBytes(cell.peak()), time);
            }
            if (cell.good() && !cell.over(question)) {
                const double part = static_cast<double>(cell.step - least) / static_cast<double>(most - least);
                point.ink = PlotInk{PlotHue::Accent, static_cast<float>(most > least ? 0.08 + 0.5 * part : 0.2)};
                fits.points.push_back(std::move(point));
                continue;
            }
            if (cell.good()) over.points.push_back(point);
            if (cell.good()) point.name.clear();
            none.points.push_back(std::move(point));
        }
    }
    plot.series = {std::move(none), std::move(fits), std::move(over)};
    return plot;
}

namespace surveys {
extern const SurveyInfo state;
const SurveyInfo state{"state", "ZeRO stages",
                       "what replicas that share weights, gradients and optimizer state need and take", stateFields,
                       stateAnswer};
} // namespace surveys

} // namespace stagewright
