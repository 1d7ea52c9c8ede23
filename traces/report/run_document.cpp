#include "traces/report/run_document.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/model/memory_category.h"
#include "traces/analysis/gap_explainer.h"
#include "traces/analysis/host_memory.h"
#include "traces/analysis/roofline.h"
#include "traces/run/note_text.h"
#include "traces/run/run_facts.h"

namespace stagewright::document {

namespace {

constexpr std::size_t mostByRank = 8; // columns of ranks

std::string environmentFact(const Run& run, std::string_view key)
{
    for (const auto& [name, value] : run.environment)
        if (name == key) return value;
    return {};
}

// The BLAS of a CPU, its speed against the machine's best, and what the ops reach with it.
std::string blasText(const Run& run, int step)
{
    const auto rate = [&run](std::string_view key) {
        return std::strtod(environmentFact(run, key).c_str(), nullptr) * 1e-9;
    };
    std::string text = environmentFact(run, "products");
    const double own = rate("products_flops");
    const double best = rate("products_best_flops");
    if (text.empty() || own <= 0 || best <= 0) return text;
    text += fmt::format(": {:.0f} GFLOP/s a core with this model, {} of the machine's best", own,
                        formatPercent(own / best));
    const auto kinds = rooflineOf(StepContext(run, step));
    double flops = 0;
    Nanos time = 0;
    for (const RooflineRow& row : kinds ? *kinds : std::vector<RooflineRow>()) {
        flops += row.flops;
        time += row.time;
    }
    if (flops > 0 && time > 0) text += fmt::format("; ops reach {:.0f} GFLOP/s", flops / static_cast<double>(time));
    return text;
}

// Where ranks were processes: on which hosts, and how well their clocks are known.
std::string processesText(const Run& run)
{
    const std::string count = environmentFact(run, "processes");
    if (count.empty()) return {};
    std::vector<std::string> hosts;
    const std::string byRank = environmentFact(run, "hosts");
    for (const std::string_view host : split(byRank, ","))
        if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.emplace_back(host);
    Nanos band = wholeOf<Nanos>(environmentFact(run, "clock_band_ns")).value_or(0);
    if (const Metric* bands = run.metric("clock_band_ns")) // of each step
        for (const double one : bands->values) band = std::max(band, static_cast<Nanos>(one));
    return fmt::format("{} on {}; {}", count, joined(hosts, ", "),
                       band == 0 ? "one clock" : fmt::format("clocks agree within {}", formatDuration(band)));
}

// What chose how ranks communicate: an interface, variables of NCCL, gloo and MPI.
std::string networkText(const Run& run)
{
    std::vector<std::string> parts;
    if (const std::string interface = environmentFact(run, "interface"); !interface.empty())
        parts.push_back("interface " + interface);
    for (const auto& [name, value] : run.environment)
        if (name.starts_with("NCCL_") || name.starts_with("GLOO_") || name.starts_with("UCX_") ||
            name.starts_with("OMPI_MCA_"))
            parts.push_back(fmt::format("{}={}", name, value));
    return joined(parts, ", ");
}

std::string peaksText(const Figure& figure, const Units& units)
{
    if (figure.byRank.size() > mostByRank) return "at most " + units.memoryText(std::llround(figure.value));
    std::vector<std::string> texts;
    for (const double rank : figure.byRank) texts.push_back(units.memoryText(std::llround(rank)));
    return joined(texts, "  ");
}

Figure wordsFigure(std::string title, std::string words) // of people only
{
    Figure out{{}, std::move(title), ColumnKind::Count};
    out.words = std::move(words);
    return out;
}

// The run, its shape and step, what else the figures depend on.
void addHead(Document& document, const Run& run, const RunReport& report)
{
    const RunInfo& info = run.info;
    document.title = info.name;
    document.subtitle = counted(info.ranks, "rank");
    if (info.stages != 0) document.subtitle += " × " + counted(info.microbatches, "microbatch");
    if (info.stages != 0 && info.stages != info.ranks) document.subtitle += ", " + counted(info.stages, "stage");
    Section& head = document.add();
    std::string made = fmt::format("{}, {}", toText(info.provenance), clockText(run));
    if (info.steps > 1)
        made += fmt::format("; step {} of {}{}", stepNumber(report.step), info.steps,
                            report.step == run.representativeStep() ? " (median time)" : "");
    head.say(made);
    head.say(trainedBy(run));
    const std::string latency = linkLatencyText(run), links = emulatedLinksText(run);
    const auto listed = [&](std::initializer_list<std::pair<const char*, std::string>> parts) {
        std::string line;
        for (const auto& [what, value] : parts)
            if (!value.empty()) line += fmt::format("{}{} {}", line.empty() ? "" : "; ", what, value);
        head.say(std::move(line));
    };
    listed({{"model", configured(run, "model")},
            {"microbatch size", configured(run, "microbatch_size")},
            {"link latency", latency}});
    listed({{"emulated links", links}, {"disturbance", configured(run, "perturb")}});

    const auto count = [&head](const char* place, std::optional<double> value) {
        head.fact(place, ColumnKind::Count, value);
    };
    const auto positive = [](int value) { return value > 0 ? std::optional<double>(value) : std::nullopt; };
    head.fact("schedule", info.scheduleName);
    head.fact("provenance", std::string(toText(info.provenance)));
    head.add(Sentences{"clock", {info.clock}}).shown = false; // "" where it is not known
    count("run", info.id > 0 ? std::optional(static_cast<double>(info.id)) : std::nullopt);
    head.add(Sentences{"name", {info.name}}).shown = false;
    head.fact("state", std::string(toText(info.state)));
    count("damaged_blocks", info.damagedBlocks);
    count("ranks", info.ranks);
    count("stages", positive(info.stages));
    count("microbatches", positive(info.microbatches));
    head.fact("model", configured(run, "model"));
    head.fact("microbatch_size", configured(run, "microbatch_size"));
    const bool oneLink = run.costs && run.costs->links.overrides.empty() && !linksUnknown(run);
    head.fact("link_latency", ColumnKind::Time,
              oneLink ? std::optional(static_cast<double>(run.costs->links.all.latency)) : std::nullopt);
    count("steps", info.steps);
    count("warmup_steps", info.warmupSteps);
    count("step", report.step);
    count("step_number", stepNumber(report.step));
    head.fact("time_unit", report.units.timeName());
}

// All figures, of which people are shown the first ones; communication has a section of its own.
void addFigures(Document& document, const Run& run, const RunReport& report, std::vector<Figure> figures)
{
    const Units& units = report.units;
    const BubbleReport& bubbles = report.bubbles;
    Section& section = document.add();
    const auto show = [&](std::string_view key) -> Figure& { return section.add(*findFigure(figures, key)); };
    show("whole_step");
    if (const auto profiler = profilerTimesOf(run)) {
        Figure& without = section.add(Figure{{}, "Without the profiler", ColumnKind::Time});
        without.value = static_cast<double>(profiler->without);
        without.words = formatDuration(profiler->without);
        without.note =
            fmt::format("median of {}; the traced ones took {} by the same clock, {}", counted(profiler->steps, "step"),
                        formatDuration(profiler->with),
                        formatChange(static_cast<double>(profiler->with) / static_cast<double>(profiler->without) - 1));
        if (profiler->profiling > 0)
            without.note += fmt::format("; beside each, the profiler took {} more and writing its trace {}",
                                        formatDuration(profiler->profiling), formatDuration(profiler->writing));
    }
    show("makespan").shown = bubbles.outside() > 0;
    show("span").shown = bubbles.span != bubbles.makespan();
    show("bubble_fraction").tone = Tone::Strong;
    Figure& peak = show("peak_activation");
    peak.title += units.memory != 1 ? " (microbatches, by rank)" : " by rank";
    peak.words = peaksText(peak, units);
    if (const auto host = run.timeline ? hostPeakByRank(*run.timeline, report.step) : std::vector<Bytes>();
        !host.empty()) {
        Figure& there = section.add(Figure{"peak_on_host", "Peak on the host", ColumnKind::Size});
        there.value = static_cast<double>(*std::max_element(host.begin(), host.end()));
        there.byRank.assign(host.begin(), host.end());
    }
    Figure& cap = section.add(Figure{"memory_cap", "Memory cap of a rank", ColumnKind::Size});
    cap.shown = report.memoryCap.has_value();
    cap.value = report.memoryCap ? static_cast<double>(*report.memoryCap) : std::nan("");
    cap.words = units.memoryText(report.memoryCap);
    for (Figure& figure : trainingFigures(run, report.step)) section.add(std::move(figure));
    for (auto& [title, words] : std::initializer_list<std::pair<const char*, std::string>>{
             {"BLAS", blasText(run, report.step)}, {"Processes", processesText(run)}, {"Network", networkText(run)}})
        if (!words.empty()) section.add(wordsFigure(title, words));

    for (Figure& figure : figures) {
        const bool above = std::any_of(section.elements.begin(), section.elements.end(), [&](const Element& one) {
            const auto* other = std::get_if<Figure>(&one);
            return other != nullptr && other->key == figure.key;
        });
        if (above || figure.key.starts_with("overlap.") || figure.key.starts_with("sharing.")) continue;
        figure.shown = false;
        if (figure.key == "weight_bytes" && units.memory != 1) figure.value = std::nan(""), figure.byRank.clear();
        section.add(figure);
    }
    // a rank share has no nanoseconds, and activations in microbatches no bytes
    for (const auto& [key, as, has] :
         {std::tuple("whole_step", "whole_step_ns", !units.shares()),
          std::tuple("makespan", "makespan_ns", !units.shares()), std::tuple("span", "span_ns", !units.shares()),
          std::tuple("peak_activation", "peak_activation_bytes", units.memory == 1)}) {
        Figure figure = *findFigure(figures, key);
        if (!has) figure.value = std::nan(""), figure.byRank.clear();
        figure.key = as;
        figure.shown = false;
        section.add(std::move(figure));
    }
}

void addMetrics(Section& section, const Run& run)
{
    for (const char* name : {"loss", "step_time_ns", "wall_time_ns", "contention"}) {
        const Metric* metric = run.metric(name);
        std::vector<TableCell> values;
        for (const double value : metric != nullptr ? metric->values : std::vector<double>())
            values.push_back(metric->unit == "ns" ? TableCell(static_cast<std::int64_t>(std::llround(value)))
                                                  : TableCell(value));
        Table& list = section.add(listOf(name, ColumnKind::Real, std::move(values)));
        if (metric == nullptr) list.unknown = "the run does not have it";
    }
}

// By rank: idle time by cause, activations and who holds them at the peak.
void addRanks(Section& section, const Run& run, const RunReport& report)
{
    const BubbleReport& bubbles = report.bubbles;
    const Schedule* schedule = run.schedule.get();
    Table ranks = dataTable("by_rank.#", "rank replica pipeline_rank busy:time apart:time idle:time");
    ranks.unknown = report.noOps;
    for (std::size_t c = 0; c < idleCauseCount; ++c)
        ranks.columns.push_back(
            unshown(fmt::format("idle_by_cause.{}", toText(static_cast<IdleCause>(c))), ColumnKind::Time));
    ranks.columns.push_back(unshown("peak_activation", ColumnKind::Size));
    ranks.columns.push_back(unshown("held_by"));
    for (std::size_t r = 0; r < bubbles.ranks.size(); ++r) {
        const RankBubbles& rank = bubbles.ranks[r];
        const auto own = static_cast<int>(r);
        TableRow cells{std::int64_t(own),
                       std::int64_t(schedule ? schedule->replicaOf(own) : 0),
                       std::int64_t(schedule ? schedule->pipelineRankOf(own) : own),
                       rank.busy,
                       rank.apart,
                       rank.idle};
        for (std::size_t c = 0; c < idleCauseCount; ++c)
            cells.push_back(numberCell(rank.byCause[c], bubbles.knows(static_cast<IdleCause>(c))));
        cells.push_back(report.memory.empty() ? TableCell() : TableCell(report.memory[r].activations()));
        cells.emplace_back();
        ranks.add(std::move(cells));
    }
    section.add(std::move(ranks));
    for (std::size_t r = 0; report.noOps.empty() && !report.memory.empty() && r < bubbles.ranks.size(); ++r) {
        Table holders = dataTable(fmt::format("by_rank.{}.held_by.#", r), "stage microbatch amount:size");
        for (const Holder& holder : report.memory[r].holders)
            holders.add({std::int64_t(holder.stage), std::int64_t(holder.microbatch), holder.bytes});
        section.add(std::move(holders));
    }
}

void addIdle(Document& document, const RunReport& report, bool titled)
{
    const BubbleReport& bubbles = report.bubbles;
    const bool byRank = bubbles.ranks.size() <= mostByRank;
    Section& section = document.add(titled ? "Bubbles" : "");
    Table table{{},
                {TableColumn{{}, "idle by cause"}, TableColumn{{}, "total", ColumnKind::Time},
                 TableColumn{{}, "share", ColumnKind::Share}}};
    if (report.levers) table.columns.push_back(Column({{}, "step without", ColumnKind::Time}, Sign::Change));
    for (std::size_t r = 0; byRank && r < bubbles.ranks.size(); ++r)
        table.columns.push_back(TableColumn{{}, fmt::format("rank {}", r), ColumnKind::Time});
    const Nanos window = bubbles.makespan() * static_cast<Nanos>(bubbles.ranks.size());
    const auto row = [&](std::string title, Nanos total, std::optional<Nanos> gain, auto of, Tone tone) -> Row& {
        TableRow cells{std::move(title), total,
                       window > 0 ? static_cast<double>(total) / static_cast<double>(window) : 0.0};
        if (report.levers) cells.push_back(gain ? TableCell(-*gain) : TableCell());
        for (std::size_t r = 0; byRank && r < bubbles.ranks.size(); ++r) {
            const Nanos time = of(bubbles.ranks[r]);
            cells.push_back(time == 0 ? TableCell(std::string("·")) : TableCell(time));
        }
        return table.add(std::move(cells), tone);
    };
    for (const IdleCause cause : causesByGain(bubbles.byCause, report.levers ? &*report.levers : nullptr)) {
        const auto c = static_cast<std::size_t>(cause);
        const auto gain = report.levers ? report.levers->gainOf(cause) : std::nullopt;
        row(
            std::string(titleOf(cause)), bubbles.byCause[c], gain,
            [c](const RankBubbles& rank) { return rank.byCause[c]; }, Tone::Plain)
            .meaning = meaningOf(cause);
    }
    row(
        "idle", bubbles.idle, {}, [](const RankBubbles& rank) { return rank.idle; }, Tone::Strong);
    row(
        "busy", bubbles.busy, {}, [](const RankBubbles& rank) { return rank.busy; }, Tone::Plain);
    if (const Nanos apart = window - bubbles.busy - bubbles.idle; apart != 0)
        row(
            "apart (optimizer)", apart, {}, [](const RankBubbles& rank) { return rank.apart; }, Tone::Plain);
    section.add(std::move(table)).shown = report.noOps.empty() && !bubbles.partial;
    if (report.noOps.empty()) section.add(Sentences{{}, report.sentences()});
}

std::string holdersText(const std::vector<Holder>& holders, bool stagesKnown) // "stage 0: 0–3; stage 4: 1"
{
    const bool ofOps =
        std::any_of(holders.begin(), holders.end(), [](const Holder& one) { return one.microbatch >= 0; });
    if (!ofOps && !stagesKnown && !holders.empty()) return "unknown";
    std::map<int, std::vector<int>> byStage;
    for (const Holder& holder : holders) byStage[holder.stage].push_back(holder.microbatch);
    std::string text;
    for (auto& [stage, microbatches] : byStage) {
        std::sort(microbatches.begin(), microbatches.end());
        const auto first =
            std::find_if(microbatches.begin(), microbatches.end(), [](int microbatch) { return microbatch >= 0; });
        std::rotate(microbatches.begin(), first, microbatches.end());
        std::string list;
        for (std::size_t i = 0; i < microbatches.size();) {
            std::size_t last = i;
            const bool numbered = microbatches[i] >= 0; // what is held for no microbatch starts no range
            while (numbered && last + 1 < microbatches.size() && microbatches[last + 1] == microbatches[last] + 1)
                ++last;
            const std::string one = numbered ? std::to_string(microbatches[i]) : "no microbatch";
            list += (list.empty() ? "" : ", ") + (last > i ? fmt::format("{}–{}", one, microbatches[last]) : one);
            i = last + 1;
        }
        text += fmt::format("{}stage {}: {}", text.empty() ? "" : "; ", stage, list);
    }
    return text.empty() ? "nobody" : text;
}

void addMemory(Document& document, const RunReport& report)
{
    Table table{{}, {TableColumn{{}, "memory"}, TableColumn{{}, "activations", ColumnKind::Size}}};
    std::vector<MemoryCategory> others;
    for (const MemoryTraits& one : memoryTraits)
        if (report.units.memory == 1 && one.category != MemoryCategory::Activations &&
            (!one.ofSharedState || report.largestPeak(one.category) > 0)) {
            others.push_back(one.category);
            table.columns.push_back(TableColumn{{}, std::string(toText(one.category)), ColumnKind::Size});
        }
    table.columns.push_back(TableColumn{{}, "held at the peak by stage: microbatches"});
    for (std::size_t r = 0; r < report.memory.size(); ++r) {
        const int rank = static_cast<int>(r);
        TableRow cells{fmt::format("rank {}", r), report.peak(rank)};
        for (const MemoryCategory category : others) cells.emplace_back(report.peak(rank, category));
        cells.emplace_back(holdersText(report.memory[r].holders, report.noOps.empty()));
        table.add(std::move(cells));
    }
    document.add("Memory at its peak").add(std::move(table));
}

void addCriticalPath(Document& document, const Run& run, const RunReport& report, bool shown)
{
    const auto& path = report.criticalPath;
    Section& section = document.add("Critical path");
    std::vector<TableCell> ops;
    for (const CriticalLink& link : path) ops.emplace_back(toText(run.timeline->spans()[link.span].op));
    const std::string unknown =
        report.noOps.empty() && report.bubbles.partial ? report.bubbles.noArrivals : report.noOps;
    section.add(listOf("critical_path", ColumnKind::Text, std::move(ops))).unknown = unknown;
    if (path.empty() || !shown || !unknown.empty()) return;
    const Timeline& timeline = *run.timeline;
    Nanos waits = 0;
    for (const CriticalLink& link : path) waits += link.waitBefore;
    std::string text = "  "; // lines of at most 96 characters or so
    std::size_t width = 0;
    for (std::size_t i = 0; i < path.size();) {
        std::size_t last = i; // ops of one rank in a row
        while (last + 1 < path.size() && !path[last + 1].crossesRank) ++last;
        std::string part =
            fmt::format("r{} {}", timeline.trackOf(path[i].span).rank, timeline.nameOf(timeline.spans()[path[i].span]));
        if (last > i)
            part += fmt::format("{}{}", last > i + 1 ? "…" : " ", timeline.nameOf(timeline.spans()[path[last].span]));
        if (last > i + 1) part += fmt::format(" ({} ops)", last - i + 1);
        const auto length = static_cast<std::size_t>(std::count_if(
            part.begin(), part.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
        if (width + length > 96) {
            text += " →\n  ";
            width = 0;
        } else if (i > 0) {
            text += " → ";
        }
        text += part;
        width += length + 3;
        i = last + 1;
    }
    section.say(fmt::format("{}, {} of it waiting for transfer and launch\n{}",
                            counted(static_cast<long long>(path.size()), "op"),
                            formatDuration(waits, report.units.time), text));
}

} // namespace

} // namespace stagewright::document

namespace stagewright {

// What a window does about a lever.
static std::string actionOf(const Lever& lever)
{
    if (!lever.makespan) return {};
    if (lever.kind == LeverKind::Rank) return "marks the ops of this rank";
    if (lever.kind == LeverKind::Stages && !lever.layers.empty()) return "opens the record dialog with these layers";
    if (lever.kind == LeverKind::Order) return "opens this order as an edit, with the original outlined";
    if (lever.kind == LeverKind::Cap) return "opens the planner";
    return whatIfOf(lever).empty() ? std::string() : "shows the step without it, beside this one";
}

document::Section leversSection(const RunReport& report)
{
    using namespace document;
    Section section{"What would help"};
    for (const char* key : {"levers", "levers_baseline", "gain_by_cause", "over_steps"})
        section.fact(key, std::string());
    if (!report.levers) return section;
    const LeverTable& levers = *report.levers;
    const bool shown = report.noOps.empty();
    if (!levers.simulated && shown) section.say("not simulated, " + levers.reason);
    Table table{"levers.#",
                {unshown("lever"), TableColumn{"title", {}}, TableColumn{"makespan", "step", ColumnKind::Time},
                 unshown("gain", ColumnKind::Time), Column({{}, "gain", ColumnKind::Time}, Sign::Change),
                 Column({{}, {}, ColumnKind::Share}, Sign::Relative),
                 TableColumn{"peak_activation", "largest peak", ColumnKind::Size}, unshown("step", ColumnKind::Count),
                 unshown("step_number", ColumnKind::Count), TableColumn{"reason", {}}}};
    table.columns.back().sparse = true;
    table.shown = levers.simulated && shown;
    bool any = false;
    for (const Lever& lever : levers.shown()) {
        const bool known = lever.makespan.has_value();
        const Nanos before = known ? *lever.makespan + lever.gain : 0;
        const bool gains = known && lever.gain != 0 && before > 0;
        any = any || (known && lever.gain > 0 && !levers.ofOtherStep(lever));
        table
            .add({lever.name, lever.title, cellOf(lever.makespan), numberCell(lever.gain, known),
                  numberCell(-lever.gain, known),
                  gains ? TableCell(-static_cast<double>(lever.gain) / static_cast<double>(before)) : TableCell(),
                  cellOf(lever.peak), numberCell(lever.step, lever.step >= 0),
                  numberCell(stepNumber(lever.step), lever.step >= 0), known ? TableCell() : TableCell(lever.reason)},
                 known && lever.gain > 0 ? Tone::Good : Tone::Plain)
            .action = actionOf(lever);
    }
    section.add(std::move(table));
    if (levers.simulated && shown && !any) section.say("none of these makes the step shorter");
    if (levers.simulated && shown)
        section.say(fmt::format(
            "each is simulated with the run's costs; with these, the unchanged step takes {}{}{}",
            formatDuration(*levers.simulated, report.units.time),
            levers.behind > 0
                ? fmt::format(", its ops {}", formatDuration(*levers.simulated - levers.behind, report.units.time))
                : "",
            levers.measured > 0 && (!report.simulated || *levers.simulated != levers.measured)
                ? fmt::format(" ({}: {}, {})", report.simulated ? "in the run" : "measured",
                              formatDuration(levers.measured, report.units.time), formatChange(levers.error()))
                : ""));
    if (levers.together && shown) {
        const LeverTable::Together& both = *levers.together;
        const auto title = [&levers](const std::string& name) {
            const auto lever = std::find_if(levers.levers.begin(), levers.levers.end(),
                                            [&](const Lever& one) { return one.name == name; });
            return lever->title.substr(0, lever->title.find(" ("));
        };
        const auto time = [&report](Nanos nanos) { return formatDuration(std::llabs(nanos), report.units.time); };
        section.say(fmt::format("{}, and {}: both at once shorten the step by {}, {}", title(both.first),
                                title(both.second), time(both.gain),
                                both.shared > 0 ? "as each gain contains the " + time(both.shared) + " that they share"
                                : both.shared < 0 ? time(both.shared) + " more than their sum"
                                                  : "the sum of their gains"));
    }
    const auto known = [&](ColumnKind kind, const char* key, double value) {
        section.fact(key, kind, levers.simulated ? std::optional(value) : std::nullopt);
    };
    known(ColumnKind::Time, "levers_baseline.makespan", static_cast<double>(levers.simulated.value_or(0)));
    known(ColumnKind::Time, "levers_baseline.measured", static_cast<double>(levers.measured));
    known(ColumnKind::Share, "levers_baseline.error", levers.simulated ? levers.error() : 0);
    section.fact("levers_baseline.reason", levers.simulated ? std::string() : levers.reason);
    for (std::size_t c = 0; c < idleCauseCount; ++c) {
        const auto gain = levers.gainOf(static_cast<IdleCause>(c));
        section.fact(fmt::format("gain_by_cause.{}", toText(static_cast<IdleCause>(c))), ColumnKind::Time,
                     gain ? std::optional(static_cast<double>(*gain)) : std::nullopt);
    }
    Table samples = dataTable("over_steps.*", "- median:real low:real high:real steps");
    if (report.overSteps.figures.empty()) samples.unknown = "fewer than two measured steps";
    for (const auto& [key, sample] : report.overSteps.figures) {
        const ColumnKind kind = kindOfSample(key);
        const auto cell = [kind](double value) {
            return kind == ColumnKind::Share ? TableCell(value)
                                             : TableCell(static_cast<std::int64_t>(std::llround(value)));
        };
        samples.rows.push_back(
            {{key, cell(sample.median), cell(sample.low), cell(sample.high), std::int64_t(sample.steps)},
             Tone::Plain,
             kind});
    }
    section.add(std::move(samples));
    return section;
}

std::vector<document::Figure> trainingFigures(const Run& run, int step)
{
    using namespace document;
    std::vector<Figure> out;
    const auto add = [&out](const char* title, ColumnKind kind, double value, std::string words) -> Figure& {
        Figure& figure = out.emplace_back(Figure{{}, title, kind, value});
        figure.words = std::move(words);
        return figure;
    };
    const auto ofStep = [step](const Metric& metric) {
        const auto at = static_cast<std::size_t>(std::max(step, 0));
        return at < metric.values.size() ? std::optional(metric.values[at]) : std::nullopt;
    };
    if (const auto contention = contentionOf(run)) {
        Figure& figure = add("Contention", ColumnKind::Share, *contention,
                             fmt::format("{} of the ops' time off the processor", formatPercent(*contention)));
        figure.meaning = "1 − processor time ÷ wall-clock time of the busy ops: time taken by other work on this "
                         "computer; the median of the measured steps";
        if (const auto one = ofStep(*run.metric("contention")); one && run.info.steps > 1)
            figure.note = formatPercent(*one) + " in this step";
    }
    if (const Metric* loss = run.metric("loss"); loss && !loss->values.empty()) {
        Figure& figure = add("Loss", ColumnKind::Real, loss->values.back(),
                             fmt::format("{:.3f} → {:.3f} {} over {}", loss->values.front(), loss->values.back(),
                                         loss->unit.empty() ? "nats" : loss->unit,
                                         counted(static_cast<long long>(loss->values.size()), "step")));
        figure.meaning = "mean cross-entropy per token, of the first and the last step";
        if (const auto one = ofStep(*loss); one && run.info.steps > 1)
            figure.note = fmt::format("{:.4f} in this step", *one);
    }
    if (std::string weights = weightsText(run); !weights.empty()) {
        Figure& figure = out.emplace_back(wordsFigure("Weights", std::move(weights)));
        figure.meaning = "this schedule's training results differ from synchronous training";
        const Metric* deviation = run.metric("deviation");
        figure.note = deviation != nullptr && !deviation->values.empty()
                          ? fmt::format("deviation {:.2e}", deviation->values.back())
                          : "deviation not measured";
    }
    return out;
}

} // namespace stagewright

namespace stagewright::document {

namespace {

// Why what is null is unknown, by its place.
void addUnknown(Document& document, const RunReport& report, const RunInfo& info)
{
    Table table = dataTable("unknown", "- *");
    const auto add = [&table](std::string key, std::string why) { table.add({std::move(key), std::move(why)}); };
    for (const Figure& figure : report.figures())
        if (!figure.unknown.empty()) add(figure.key, figure.unknown);
    if (!report.noOps.empty())
        for (const char* key : {"by_rank", "critical_path"}) add(key, report.noOps);
    const std::string why = report.noOps.empty() ? "the run has no schedule" : report.noOps;
    if (info.stages <= 0) add("stages", why);
    if (info.microbatches <= 0) add("microbatches", why);
    document.sections.back().add(std::move(table));
}

Section gapsSection(const StepContext& context, const RunReport& report, std::size_t explained, bool data)
{
    const Timeline& timeline = context.timeline();
    const auto& gaps = report.bubbles.gaps;
    std::vector<std::size_t> longest(gaps.size());
    std::iota(longest.begin(), longest.end(), std::size_t{0});
    std::stable_sort(longest.begin(), longest.end(), [&](std::size_t a, std::size_t b) {
        return gaps[a].end - gaps[a].start > gaps[b].end - gaps[b].start;
    });
    longest.resize(report.bubbles.partial ? 0 : std::min(longest.size(), explained));
    const GapExplainer explainer(context);
    const auto name = [&](SpanId span) {
        return span == noSpan ? TableCell() : TableCell(timeline.nameOf(timeline.spans()[span]));
    };
    Table table = dataTable("gaps.#", "rank start_ns end_ns cause before blamed ready_op sentence chain "
                                      "experiment.change experiment.makespan_before_ns experiment.makespan_after_ns");
    if (data) table.rows.reserve(gaps.size());
    for (std::size_t i = 0; data && i < gaps.size(); ++i) {
        const Gap& gap = gaps[i];
        TableRow cells{std::int64_t(gap.rank),
                       gap.start,
                       gap.end,
                       report.bubbles.partial ? TableCell() : TableCell(std::string(toText(gap.cause))),
                       name(gap.next),
                       name(gap.blamed),
                       gap.hasReadyOp ? TableCell(toText(gap.readyOp)) : TableCell(),
                       {},
                       {},
                       {},
                       {},
                       {}};
        table.add(std::move(cells));
    }
    Section section{"Largest gaps"};
    std::vector<Table> chains;
    for (const std::size_t i : longest) {
        GapExplanation explanation = explainer.explain(gaps[i]);
        section.say("  " + explanation.sentence);
        if (!data) continue;
        TableRow& cells = table.rows[i].cells;
        cells[7] = std::move(explanation.sentence);
        if (const auto& experiment = explanation.experiment)
            cells[9] = experiment->change, cells[10] = experiment->before, cells[11] = experiment->after;
        Table& chain = chains.emplace_back(dataTable(fmt::format("gaps.{}.chain.#", i), "op rank why"));
        for (const GapLink& link : explanation.chain)
            chain.add({name(link.span), std::int64_t(timeline.trackOf(link.span).rank), link.why});
    }
    section.add(std::move(table));
    for (Table& chain : chains) section.add(std::move(chain));
    return section;
}

} // namespace

} // namespace stagewright::document

namespace stagewright {

document::Section communicationSection(const RunReport& report, const std::vector<document::Figure>& figures)
{
    using namespace document;
    Section section{"Communication"};
    const Figure &time = *findFigure(figures, "overlap.comm_time"),
                 &messages = *findFigure(figures, "overlap.messages");
    const bool none = messages.unknown.empty() && messages.value == 0;
    if (none && report.noOps.empty()) section.say("none between ranks");
    for (Figure figure : figures) {
        const bool sharing = figure.key.starts_with("sharing.");
        if (!sharing && !figure.key.starts_with("overlap.")) continue;
        figure.shown = report.noOps.empty() && (sharing ? figure.unknown.empty() && figure.value > 0
                                                        : !none && (figure.key == time.key || time.unknown.empty()));
        if (figure.key == "overlap.hidden_time" && time.value > 0)
            figure.note = formatPercent(figure.value / time.value);
        if (sharing && !figure.byRank.empty()) figure.note = "of a rank in a step";
        section.add(std::move(figure));
    }
    if (report.collectives.empty()) section.fact("sharing", std::string());
    return section;
}

document::Section notesSection(const std::vector<Note>& notes, Nanos timeUnit)
{
    using namespace document;
    Table table{"notes.#",
                {unshown("note"), TableColumn{{}, {}}, TableColumn{"text", {}}, TableColumn{{}, {}}, unshown("anchor"),
                 unshown("step"), unshown("step_number"), unshown("rank"), unshown("last_rank"), unshown("op"),
                 unshown("begin_ns"), unshown("end_ns"), unshown("from_run")}};
    table.columns[3].sparse = true;
    for (const Note& note : notes) {
        const bool onOp = note.anchor == NoteAnchor::Op;
        table.add({note.id, placeText(note, timeUnit) + ":", note.text,
                   textCell(note.fromRun != 0 ? fmt::format("(from run {})", note.fromRun) : ""),
                   std::string(toText(note.anchor)), std::int64_t(note.step), std::int64_t(stepNumber(note.step)),
                   numberCell(note.rank, note.rank >= 0), numberCell(note.lastRank, !onOp && note.rank >= 0),
                   onOp ? TableCell(note.op) : TableCell(), numberCell(note.begin, !onOp), numberCell(note.end, !onOp),
                   numberCell(note.fromRun, note.fromRun != 0)});
    }
    Section section{"Notes"};
    section.add(std::move(table));
    return section;
}

void addInfo(document::Section& section, const RunInfo& info, bool read, const std::string& place)
{
    using namespace document;
    const auto count = [&](const char* key, double value) { section.fact(place + key, ColumnKind::Count, value); };
    const auto known = [&](const char* key, double value, bool has) {
        section.fact(place + key, ColumnKind::Count, has ? std::optional(value) : std::nullopt);
    };
    const auto text = [&](const char* key, std::string value) {
        section.add(Sentences{place + key, {std::move(value)}}).shown = false; // "" where it is empty
    };
    count("run", static_cast<double>(info.id));
    text("name", info.name);
    section.fact(place + "schedule", info.scheduleName);
    text("note", info.note);
    count("created_unix_ms", static_cast<double>(info.createdUnixMs));
    text("state", std::string(toText(info.state)));
    text("provenance", std::string(toText(info.provenance)));
    text("clock", info.clock);
    count("ranks", info.ranks);
    known("stages", info.stages, info.stages > 0);
    known("microbatches", info.microbatches, info.microbatches > 0);
    count("steps", info.steps);
    count("warmup_steps", info.warmupSteps);
    count("spans", static_cast<double>(info.spanCount));
    known("damaged_blocks", info.damagedBlocks, read);
}

void addConditions(document::Section& section, const Run& run)
{
    using namespace document;
    const auto profiler = profilerTimesOf(run);
    const auto time = [&](Nanos ProfilerTimes::*of) {
        return profiler ? std::optional(static_cast<double>((*profiler).*of)) : std::nullopt;
    };
    section.fact("step_time_without_profiler_ns", ColumnKind::Count, time(&ProfilerTimes::without));
    section.fact("step_time_with_profiler_ns", ColumnKind::Count, time(&ProfilerTimes::with));
    section.fact("perturb", configured(run, "perturb"));
    section.fact("emulated_links", emulatedLinksText(run));
    section.fact("contention_median", ColumnKind::Share, contentionOf(run));
}

document::Document runDocument(const Run& run, const RunReport& report, const RunDocumentOptions& options)
{
    using namespace document;
    const std::vector<Figure> figures = report.figures();
    Document document;
    document.units = report.units;
    addHead(document, run, report);
    addFigures(document, run, report, figures);
    document.sections.push_back(leversSection(report));
    Section& state = document.add();
    if (run.info.state != RunState::Complete)
        state.say(
            fmt::format("this run is {}: its {} are complete", toText(run.info.state), counted(run.info.steps, "step")),
            Tone::Warn);
    if (!run.info.note.empty()) state.say("note: " + run.info.note);
    if (options.notes != nullptr) document.sections.push_back(notesSection(*options.notes, report.units.time));
    if (report.noOps.empty()) document.add(options.titles ? "Timeline" : "").add(Marks{});
    addIdle(document, report, options.titles);
    if (options.context != nullptr)
        document.sections.push_back(gapsSection(*options.context, report, options.explained, options.data));
    if (options.memory) addMemory(document, report);
    document.sections.push_back(communicationSection(report, figures));
    document.sections.back().shown = options.communication;
    addCriticalPath(document, run, report, options.criticalPath);

    Section& facts = document.add();
    if (options.data) addMetrics(facts, run);
    if (options.data) addRanks(facts, run, report);
    facts.fact("hung", ColumnKind::Truth, 0);
    facts.add(listOf("cycle", ColumnKind::Text, {}));
    facts.add(listOf("victims", ColumnKind::Whole, {}));
    const std::optional<int> straggler = stragglerRank(report.bubbles);
    facts.fact("straggler_rank", ColumnKind::Whole, straggler ? std::optional<double>(*straggler) : std::nullopt);
    facts.fact("gradient_error", std::string());
    const Metric* deviation = run.metric("deviation");
    facts.fact("deviation", ColumnKind::Real,
               deviation && !deviation->values.empty() ? std::optional(deviation->values.back()) : std::nullopt);
    facts.fact("straggler_sentence", stragglerSentence(report.bubbles, report.units.time));
    facts.fact("slow_replicas", report.slowReplicas);
    addConditions(facts, run);
    addUnknown(document, report, run.info);
    return document;
}

} // namespace stagewright
