#include "app/cli/text/run_text.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "app/cli/text/lever_text.h"
#include "app/cli/text/table.h"
#include "schedules/base/step_number.h"
#include "schedules/base/text.h"
#include "schedules/model/memory_category.h"
#include "traces/analysis/gap_explainer.h"
#include "traces/analysis/roofline.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

using Align = Table::Align;

std::string rowTitle(const ReportFigure& figure) // "step time"
{
    return lowered(figure.title.substr(0, 1)) + figure.title.substr(1);
}

std::string peaksText(const ReportFigure& figure, const Units& units)
{
    if (figure.byRank.size() > 8) return "at most " + units.memoryText(std::llround(figure.value));
    std::vector<std::string> texts;
    for (const double rank : figure.byRank) texts.push_back(units.memoryText(std::llround(rank)));
    return joined(texts, "  ");
}

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

} // namespace

std::string headlineText(const Run& run, const RunReport& figures, bool colour)
{
    const BubbleReport& bubbles = figures.bubbles;
    std::string text =
        tinted(run.info.name, Tint::Bold, colour) +
        (run.info.stages == 0
             ? fmt::format("  {}\n", plural(run.info.ranks, "rank"))
             : fmt::format("  {} × {}{}\n", plural(run.info.ranks, "rank"), plural(run.info.microbatches, "microbatch"),
                           run.info.stages != run.info.ranks ? fmt::format(", {}", plural(run.info.stages, "stage"))
                                                             : ""));
    text += fmt::format("{}, {}", toText(run.info.provenance), clockText(run));
    if (run.info.steps > 1)
        text += fmt::format("; step {} of {}{}", stepNumber(figures.step), run.info.steps,
                            figures.step == run.representativeStep() ? " (median time)" : "");
    text += "\n";
    if (const std::string place = trainedBy(run); !place.empty()) text += place + "\n";
    std::string made; // what else the figures depend on
    if (const std::string model = configured(run, "model"); !model.empty()) made += "model " + model;
    if (const std::string size = configured(run, "microbatch_size"); !size.empty())
        made += (made.empty() ? "" : "; ") + fmt::format("microbatch size {}", size);
    if (const std::string latency = linkLatencyText(run); !latency.empty())
        made += (made.empty() ? "" : "; ") + fmt::format("link latency {}", latency);
    std::string disturbed;
    if (const std::string links = emulatedLinksText(run); !links.empty()) disturbed += "emulated links " + links;
    if (const std::string perturb = configured(run, "perturb"); !perturb.empty())
        disturbed += (disturbed.empty() ? "" : "; ") + fmt::format("disturbance {}", perturb);
    if (!disturbed.empty()) made += (made.empty() ? "" : "\n") + disturbed;
    text += made.empty() ? "\n" : made + "\n\n";
    Table table({{"", Align::Left}, {"", Align::Left}, {"", Align::Left}});
    const auto over = [&figures](const char* key, const char* of) {
        const FigureSample* sample = figures.overSteps.find(key);
        return sample ? sampleText(*sample, of, figures.units) : std::string();
    };
    const auto all = figures.figures();
    UnknownReasons reasons;
    const auto row = [&](const char* key, const char* of, Tint tint = Tint::None) {
        const ReportFigure& figure = *findFigure(all, key);
        table.add({rowTitle(figure), figureText(figure, figures.units),
                   figure.unknown.empty() ? over(key, of) : reasons.of(figure)},
                  tint);
    };
    row("whole_step", "ns");
    if (const auto profiler = profilerTimesOf(run))
        table.add({"without the profiler", formatDuration(profiler->without),
                   fmt::format("median of {}; the traced ones took {} by the same clock, {}",
                               plural(profiler->steps, "step"), formatDuration(profiler->with),
                               formatChange(
                                   static_cast<double>(profiler->with) / static_cast<double>(profiler->without) - 1))});
    if (bubbles.outside() > 0) row("makespan", "ns");
    if (bubbles.span != bubbles.makespan()) row("span", "ns");
    row("bubble_fraction", "fraction", Tint::Bold);
    const ReportFigure& peak = *findFigure(all, "peak_activation");
    const std::string sample = over("peak_activation", "bytes");
    table.add({rowTitle(peak) + (figures.units.memory != 1 ? " (microbatches, by rank)" : " by rank"),
               peak.unknown.empty() ? peaksText(peak, figures.units) : figureText(peak, figures.units),
               !peak.unknown.empty() ? reasons.of(peak)
               : sample.empty()      ? sample
                                     : "the fullest rank: " + sample});
    if (figures.memoryCap) table.add({"memory cap of a rank", figures.units.memoryText(*figures.memoryCap)});
    if (const auto contention = contentionOf(run))
        table.add({"contention", fmt::format("{} of the ops' time off the processor", formatPercent(*contention))});
    if (const Metric* loss = run.metric("loss"); loss && !loss->values.empty())
        table.add({"loss", fmt::format("{:.3f} → {:.3f} nats over {}", loss->values.front(), loss->values.back(),
                                       plural(static_cast<long long>(loss->values.size()), "step"))});
    if (std::string blas = blasText(run, figures.step); !blas.empty()) table.add({"BLAS", std::move(blas)});
    if (std::string processes = processesText(run); !processes.empty()) table.add({"processes", std::move(processes)});
    if (std::string weights = weightsText(run); !weights.empty()) table.add({"weights", std::move(weights)});
    return text + table.text(colour);
}

std::string idleText(const RunReport& figures, bool colour)
{
    const BubbleReport& bubbles = figures.bubbles;
    const std::size_t ranks = bubbles.ranks.size();
    const bool byRank = ranks <= 8;
    std::vector<Table::Column> columns{
        {"idle by cause", Align::Left}, {"total", Align::Right}, {"share", Align::Right}};
    if (figures.levers) columns.push_back({"step without", Align::Right});
    if (byRank)
        for (std::size_t r = 0; r < ranks; ++r) columns.push_back({fmt::format("rank {}", r), Align::Right});
    Table table(std::move(columns));
    const Nanos window = bubbles.makespan() * static_cast<Nanos>(ranks);
    const auto share = [&](Nanos time) {
        return formatPercent(window > 0 ? static_cast<double>(time) / static_cast<double>(window) : 0);
    };
    for (const IdleCause cause : causesByGain(bubbles.byCause, figures.levers ? &*figures.levers : nullptr)) {
        const auto c = static_cast<std::size_t>(cause);
        std::vector<std::string> cells{std::string(titleOf(cause)), figures.units.timeText(bubbles.byCause[c]),
                                       share(bubbles.byCause[c])};
        if (figures.levers) {
            const auto gain = figures.levers->gainOf(cause);
            cells.push_back(!gain ? "·" : *gain == 0 ? "=" : figures.units.timeText(-*gain));
        }
        if (byRank)
            for (const RankBubbles& rank : bubbles.ranks)
                cells.push_back(rank.byCause[c] ? figures.units.timeText(rank.byCause[c]) : "·");
        table.add(std::move(cells));
    }
    const auto totals = [&](const std::string& title, Nanos total, auto of, Tint tint) {
        std::vector<std::string> cells{title, figures.units.timeText(total), share(total)};
        if (figures.levers) cells.emplace_back();
        if (byRank)
            for (const RankBubbles& rank : bubbles.ranks) cells.push_back(figures.units.timeText(of(rank)));
        table.add(std::move(cells), tint);
    };
    totals(
        "idle", bubbles.idle, [](const RankBubbles& rank) { return rank.idle; }, Tint::Bold);
    totals(
        "busy", bubbles.busy, [](const RankBubbles& rank) { return rank.busy; }, Tint::None);
    const Nanos apart = window - bubbles.busy - bubbles.idle;
    if (apart != 0)
        totals(
            "apart (optimizer)", apart, [](const RankBubbles& rank) { return rank.apart; }, Tint::None);
    std::string text = table.text(colour);
    for (const std::string& sentence : figures.sentences()) text += sentence + "\n";
    return text;
}

std::string holdersText(const std::vector<Holder>& holders)
{
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

std::string memoryText(const RunReport& figures, bool colour)
{
    if (figures.memory.empty()) return {};
    const bool bytes = figures.units.memory == 1;
    std::vector<Table::Column> columns{{"memory", Align::Left}, {"activations", Align::Right}};
    std::vector<MemoryCategory> others;
    for (const MemoryTraits& one : memoryTraits)
        if (one.category != MemoryCategory::Activations &&
            (!one.ofSharedState || figures.largestPeak(one.category) > 0))
            others.push_back(one.category);
    if (bytes)
        for (const MemoryCategory category : others) columns.push_back({std::string(toText(category)), Align::Right});
    columns.push_back({"held at the peak by stage: microbatches", Align::Left});
    Table table(std::move(columns));
    for (std::size_t r = 0; r < figures.memory.size(); ++r) {
        const int rank = static_cast<int>(r);
        std::vector<std::string> cells{fmt::format("rank {}", r), figures.units.memoryText(figures.peak(rank))};
        if (bytes)
            for (const MemoryCategory category : others)
                cells.push_back(figures.units.memoryText(figures.peak(rank, category)));
        cells.push_back(holdersText(figures.memory[r].holders));
        table.add(std::move(cells));
    }
    return table.text(colour);
}

namespace {

// One line for all ranks: the figures of the rank with the most. Empty where nothing is gathered or reduced.
std::string collectivesText(const std::vector<ReportFigure>& figures, const Units& units)
{
    const ReportFigure* gathers = findFigure(figures, "sharing.gathers");
    if (gathers == nullptr || !gathers->unknown.empty()) return {};
    const auto part = [&](const ReportFigure& count, const char* what, std::string_view key) {
        const ReportFigure& received = *findFigure(figures, key);
        return plural(std::llround(count.value), what) +
               (received.value > 0 ? fmt::format(" ({} received)", figureText(received, units)) : "");
    };
    return fmt::format("of a rank in a step: {}, {}\n", part(*gathers, "gather", "sharing.gathered_bytes"),
                       part(*findFigure(figures, "sharing.reductions"), "reduction", "sharing.reduced_bytes"));
}

} // namespace

std::string overlapText(const RunReport& report)
{
    const auto figures = report.figures();
    const std::string shared = collectivesText(figures, report.units);
    const ReportFigure &time = *findFigure(figures, "overlap.comm_time"),
                       &hidden = *findFigure(figures, "overlap.hidden_time");
    const std::string title = rowTitle(time);
    if (!time.unknown.empty()) return fmt::format("{}  unknown: {}\n", title, time.unknown) + shared;
    const auto messages = static_cast<long long>(findFigure(figures, "overlap.messages")->value);
    if (messages == 0) return title + "  none between ranks\n" + shared;
    if (time.value == 0) return fmt::format("{}  {}, taking no time\n", title, plural(messages, "message")) + shared;
    const auto text = [&](const ReportFigure& figure) { return figureText(figure, report.units); };
    return fmt::format("{}  {} in {}: {} hidden ({}), {} exposed\n", title, text(time), plural(messages, "message"),
                       text(hidden), formatPercent(hidden.value / time.value),
                       text(*findFigure(figures, "overlap.exposed_time"))) +
           shared;
}

std::string criticalPathText(const Run& run, const RunReport& figures)
{
    const Timeline& timeline = *run.timeline;
    const auto& path = figures.criticalPath;
    if (path.empty()) return {};
    std::string text;
    std::size_t width = 0;
    Nanos waits = 0;
    for (const CriticalLink& link : path) waits += link.waitBefore;
    for (std::size_t i = 0; i < path.size();) {
        std::size_t last = i; // ops of one rank in a row
        while (last + 1 < path.size() && !path[last + 1].crossesRank) ++last;
        const Span& first = timeline.spans()[path[i].span];
        std::string part = timeline.nameOf(first);
        if (last > i)
            part += fmt::format("{}{}", last > i + 1 ? "…" : " ", timeline.nameOf(timeline.spans()[path[last].span]));
        part = fmt::format("r{} {}", timeline.trackOf(path[i].span).rank, part);
        if (last > i + 1) part += fmt::format(" ({} ops)", last - i + 1);
        const std::string joint = text.empty() ? "  " : " → ";
        if (width + displayWidth(part) > 96) {
            text += " →\n  ";
            width = 0;
        } else {
            text += joint;
        }
        text += part;
        width += displayWidth(part) + 3;
        i = last + 1;
    }
    return fmt::format("critical path  {}, {} of it waiting for transfer and launch\n{}\n",
                       plural(static_cast<long long>(path.size()), "op"), formatDuration(waits, figures.units.time),
                       text);
}

std::string largestGapsText(const StepContext& context, const RunReport& figures, std::size_t count)
{
    std::vector<Gap> gaps = figures.bubbles.gaps;
    const std::size_t shown = std::min(count, gaps.size());
    std::stable_sort(gaps.begin(), gaps.end(),
                     [](const Gap& a, const Gap& b) { return a.end - a.start > b.end - b.start; });
    if (shown == 0) return {};
    const GapExplainer explainer(context);
    std::string text;
    for (std::size_t i = 0; i < shown; ++i) text += "  " + explainer.explain(gaps[i]).sentence + "\n";
    return text;
}

std::string metricText(double value, const std::string& unit, bool withSign, const Units& units)
{
    const char* plus = withSign && value > 0 ? "+" : "";
    if (unit == "ns") return fmt::format("{}{}", plus, units.timeText(std::llround(value)));
    if (unit == "bytes") return fmt::format("{}{}", plus, units.memoryText(std::llround(value)));
    if (unit == "fraction") {
        if (withSign) return withTrueMinus(fmt::format("{:+.1f} points", 100 * value));
        return formatPercent(value);
    }
    return fmt::format("{}{}{}{}", plus, shortNumber(value, 4), unit.empty() ? "" : " ", unit);
}

} // namespace stagewright
