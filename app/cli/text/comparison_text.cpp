#include "app/cli/text/comparison_text.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <unordered_map>

#include <fmt/core.h>

#include "app/cli/text/document_text.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/table.h"
#include "traces/compare/device_tables.h"
#include "traces/report/run_report.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

using Align = Table::Align;

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


char letter(std::size_t run) { return static_cast<char>('A' + run); }

std::string heading(const std::string& text, bool colour) { return "\n" + tinted(text, Tint::Bold, colour) + "\n"; }

Units unitsOf(const Run& run) { return {run.timeline->timeUnit(), run.timeline->memoryUnit()}; }

// The sentences and titles name A and B; further runs are C and D.
std::string named(std::string text, char b)
{
    if (b == 'B') return text;
    const auto wordPart = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == 'B' && (i == 0 || !wordPart(text[i - 1])) && (i + 1 == text.size() || !wordPart(text[i + 1])))
            text[i] = b;
    return text;
}

std::string signedTime(Nanos time, const Units& units)
{
    return time == 0 ? std::string("=") : fmt::format("{}{}", time > 0 ? "+" : "", units.timeText(time));
}

std::string headText(std::span<const Run> runs)
{
    std::string text;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const RunInfo& info = runs[i].info;
        const std::string shape = info.stages == 0 ? plural(info.ranks, "rank")
                                                   : fmt::format("{} × {}", plural(info.ranks, "rank"),
                                                                 plural(info.microbatches, "microbatch"));
        text +=
            fmt::format("{}  {}, {}, {}, {}", letter(i), info.name, shape, toText(info.provenance), clockText(runs[i]));
        if (const std::string place = trainedBy(runs[i]); !place.empty()) text += fmt::format(", {}", place);
        if (const std::string model = configured(runs[i], "model"); !model.empty()) text += fmt::format(", {}", model);
        if (const std::string size = configured(runs[i], "microbatch_size"); !size.empty())
            text += fmt::format(", microbatch size {}", size);
        text += "\n";
    }
    return text + "\n";
}

// One table over all runs; their figures need one unit.
std::string metricsText(std::span<const Run> runs, std::span<const Comparison> comparisons, std::size_t firstOther,
                        bool colour)
{
    std::vector<Table::Column> columns{{"", Align::Left}, {"A", Align::Right}};
    for (std::size_t i = 0; i < comparisons.size(); ++i)
        columns.push_back({std::string(1, letter(firstOther + i)), Align::Right});
    for (std::size_t i = 0; i < comparisons.size(); ++i)
        columns.push_back({fmt::format("{} − A", letter(firstOther + i)), Align::Right});
    Table table(std::move(columns));
    std::vector<const MetricDelta*> rows; // of any of them, in the order they come
    std::set<std::string_view> keys;
    std::vector<std::unordered_map<std::string_view, const MetricDelta*>> byKey(comparisons.size());
    for (std::size_t i = 0; i < comparisons.size(); ++i)
        for (const MetricDelta& metric : comparisons[i].metrics) {
            byKey[i].try_emplace(metric.key, &metric);
            if (keys.insert(metric.key).second) rows.push_back(&metric);
        }
    const bool memory = std::all_of(runs.begin(), runs.end(), [&](const Run& run) {
        return run.timeline->memoryUnit() == runs[0].timeline->memoryUnit();
    });
    const Units units = comparisons.front().sameUnits && memory ? unitsOf(runs[0]) : Units{};
    for (const MetricDelta* row : rows) {
        std::vector<const MetricDelta*> found;
        for (const auto& metrics : byKey) {
            const auto at = metrics.find(row->key);
            found.push_back(at == metrics.end() ? nullptr : at->second);
        }
        if (std::all_of(found.begin(), found.end(),
                        [](const MetricDelta* m) { return m == nullptr || (m->a == 0 && m->b == 0); }))
            continue;
        std::vector<std::string> cells{row->title, metricText(row->a, row->unit, false, units)};
        for (const MetricDelta* metric : found)
            cells.push_back(metric ? metricText(metric->b, metric->unit, false, units) : "·");
        for (const MetricDelta* metric : found)
            cells.push_back(!metric                ? "·"
                            : metric->delta() == 0 ? "="
                                                   : metricText(metric->delta(), metric->unit, true, units));
        table.add(std::move(cells));
    }
    return table.text(colour);
}

std::string differencesText(const Comparison& comparison, char b, bool colour)
{
    if (comparison.differences.empty()) return {};
    Table table({{"", Align::Left}, {"A"}, {std::string(1, b)}});
    const auto orUnknown = [](const std::string& value) { return value.empty() ? std::string("unknown") : value; };
    for (const RunDifference& one : comparison.differences)
        table.add({one.title, orUnknown(one.a), orUnknown(one.b)}, Tint::Warn);
    return heading("different setups", colour) + table.text(colour, 2);
}

std::string splitText(const Comparison& comparison, const Units& units, bool colour)
{
    const ChangeSplit& change = comparison.change;
    const auto delta = [&](Nanos time) { return signedTime(time, units); };
    Table split({{"", Align::Left}, {"", Align::Right}});
    if (change.busyDelta != 0) split.add({"busy", delta(change.busyDelta)});
    if (change.apartDelta != 0) split.add({"apart (optimizer)", delta(change.apartDelta)});
    for (std::size_t c = 0; c < idleCauseCount; ++c)
        if (change.idleDelta[c] != 0)
            split.add({fmt::format("idle: {}", titleOf(static_cast<IdleCause>(c))), delta(change.idleDelta[c])});
    if (change.unexplained != 0) split.add({"not comparable (different number of ranks)", delta(change.unexplained)});
    split.add({fmt::format("ranks × change of the ops' time ({})", delta(change.makespanDelta)),
               delta(change.makespanDelta * static_cast<Nanos>(comparison.reportB.bubbles.ranks.size()))},
              Tint::Bold);
    return heading("where the time went (summed over ranks)", colour) + split.text(colour, 2);
}

std::string ledgerText(const Comparison& comparison, char b, const Units& units, bool colour)
{
    Table table({{"", Align::Left},
                 {"A", Align::Right},
                 {std::string(1, b), Align::Right},
                 {fmt::format("{} − A", b), Align::Right}});
    for (std::size_t i = 0; i < pathClassCount; ++i) {
        const Nanos x = comparison.ledgerA.byClass[i];
        const Nanos y = comparison.ledgerB.byClass[i];
        if (x == 0 && y == 0) continue;
        table.add({std::string(titleOf(static_cast<PathClass>(i))), units.timeText(x), units.timeText(y),
                   signedTime(y - x, units)});
    }
    table.add({"makespan", units.timeText(comparison.ledgerA.makespan), units.timeText(comparison.ledgerB.makespan),
               signedTime(comparison.ledgerB.makespan - comparison.ledgerA.makespan, units)},
              Tint::Bold);
    return heading(fmt::format("the critical path by class (bottleneck: rank {} in A, rank {} in {})",
                               comparison.ledgerA.bottleneck, comparison.ledgerB.bottleneck, b),
                   colour) +
           table.text(colour, 2);
}

std::string ladderText(const Comparison& comparison, char b, const Units& units, bool colour)
{
    const std::string title = heading("one change at a time, simulated", colour);
    if (comparison.ladder.empty())
        return comparison.noLadder.empty() ? std::string() : title + fmt::format("  none: {}\n", comparison.noLadder);
    Table table({{"", Align::Left}, {"time", Align::Right}, {"change", Align::Right}, {"largest peak", Align::Right}});
    for (const LadderRung& rung : comparison.ladder)
        table.add({named(rung.title, b), units.timeText(rung.makespan),
                   rung.kind == RungKind::Start ? "" : signedTime(rung.change, units), units.memoryText(rung.peak)});
    return title + table.text(colour, 2);
}

std::string opsText(const Comparison& comparison, std::size_t ops, const Units& units, bool colour)
{
    const auto noise = [](const NoiseVerdict& verdict, Nanos change) {
        return change == 0 ? "" : !verdict.spread ? "unknown" : verdict.shows ? "yes" : "no";
    };
    Table moved({{"op", Align::Left},
                 {"rank", Align::Right},
                 {"start", Align::Right},
                 {"beyond noise"},
                 {"duration", Align::Right},
                 {"beyond noise"}});
    std::size_t shown = 0;
    std::size_t count = 0;
    for (const OpDelta& op : comparison.ops) {
        if (!op.inBoth() || (op.startDelta == 0 && op.durationDelta == 0)) continue;
        ++count;
        if (shown++ < ops)
            moved.add({toText(op.op), std::to_string(op.rank), signedTime(op.startDelta, units),
                       noise(op.start, op.startDelta), signedTime(op.durationDelta, units),
                       noise(op.duration, op.durationDelta)});
    }
    if (moved.empty()) return {};
    return heading(fmt::format("ops that moved most ({} of {})", std::min(ops, count), count), colour) +
           moved.text(colour, 2);
}

// Traces without ops can't be compared op by op, so their devices are: what they did.
std::string devicesText(const DeviceChanges& devices, char b, bool colour)
{
    std::string text = devices.why.empty() ? std::string() : heading("why", colour);
    for (const std::string& sentence : devices.why) text += "  " + named(sentence, b) + "\n";
    for (const DeviceTable& one : deviceTables(devices, b)) {
        std::vector<Table::Column> columns;
        for (const DeviceTable::Column& column : one.columns)
            columns.push_back(
                {one.content == DeviceTable::Content::Figures && columns.empty() ? std::string() : column.title,
                 column.figure ? Align::Right : Align::Left});
        Table table(std::move(columns));
        for (const DeviceTable::Row& row : one.rows) {
            std::vector<std::string> cells = row.cells;
            for (std::size_t i = 0; i < cells.size(); ++i)
                if (row.kernel != nullptr && !one.columns[i].figure) cells[i] = shortened(cells[i]);
            table.add(std::move(cells));
        }
        text += heading(one.title, colour) + table.text(colour, 2);
    }
    return text;
}

std::string pairText(const Run& a, const Run& b, const Comparison& comparison, char name, std::size_t ops, bool colour)
{
    if (!comparison.unknown.empty())
        return (comparison.devices ? fmt::format("steps and bubbles are not compared: {}\n", comparison.unknown)
                                   : std::string()) +
               differencesText(comparison, name, colour) +
               (comparison.devices ? devicesText(*comparison.devices, name, colour) : std::string());
    const bool memory = a.timeline->memoryUnit() == b.timeline->memoryUnit();
    const Units units{a.timeline->timeUnit(), memory ? a.timeline->memoryUnit() : 1};
    std::string text = differencesText(comparison, name, colour);
    if (comparison.sameUnits) {
        text += splitText(comparison, units, colour);
        text += ledgerText(comparison, name, units, colour);
        text += ladderText(comparison, name, units, colour);
    }
    if (!comparison.why.empty()) {
        text += heading("why", colour);
        for (const std::string& sentence : comparison.why) text += "  " + named(sentence, name) + "\n";
    }
    if (comparison.sameUnits) text += opsText(comparison, ops, units, colour);
    return text;
}

} // namespace

std::string comparisonText(std::span<const Run> runs, std::span<const Comparison> comparisons, std::size_t ops,
                           bool colour)
{
    std::string text = headText(runs);
    for (std::size_t i = 0; i < comparisons.size(); ++i)
        text += tinted(named(comparisons[i].headline, letter(i + 1)), Tint::Bold, colour) + "\n";
    text += "\n";
    const bool oneTable =
        std::all_of(comparisons.begin(), comparisons.end(), [](const Comparison& c) { return c.sameUnits; });
    const bool metrics =
        std::any_of(comparisons.begin(), comparisons.end(), [](const Comparison& c) { return !c.metrics.empty(); });
    if (oneTable && metrics) text += metricsText(runs, comparisons, 1, colour);
    for (std::size_t i = 0; i < comparisons.size(); ++i) {
        if (comparisons.size() > 1) text += heading(fmt::format("{} against A", letter(i + 1)), colour);
        if (!oneTable) text += metricsText(runs, comparisons.subspan(i, 1), i + 1, colour);
        for (const UnknownMetric& one : comparisons[i].unknownMetrics)
            text += named(fmt::format("{} is not compared: {}\n", one.title, one.why), letter(i + 1));
        text += pairText(runs[0], runs[i + 1], comparisons[i], letter(i + 1), ops, colour);
    }
    return text;
}

} // namespace stagewright
