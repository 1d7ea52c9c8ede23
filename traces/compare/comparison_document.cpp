#include "traces/compare/comparison_document.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "traces/compare/device_tables.h"
#include "traces/report/run_document.h"
#include "traces/run/run_facts.h"

namespace stagewright::document {

namespace {

char letter(std::size_t run) { return static_cast<char>('A' + run); }

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

std::vector<std::string> named(std::vector<std::string> lines, char b)
{
    for (std::string& line : lines) line = named(std::move(line), b);
    return lines;
}

std::string lineOf(const Run& run)
{
    const RunInfo& info = run.info;
    std::string line = info.name + ", " + counted(info.ranks, "rank");
    if (info.stages != 0) line += " × " + counted(info.microbatches, "microbatch");
    line += fmt::format(", {}, {}", toText(info.provenance), clockText(run));
    const std::string size = configured(run, "microbatch_size");
    for (const std::string& more :
         {trainedBy(run), configured(run, "model"), size.empty() ? size : "microbatch size " + size})
        if (!more.empty()) line += ", " + more;
    return line;
}

ColumnKind kindOf(const MetricDelta& metric)
{
    return metric.unit == "ns"         ? ColumnKind::Time
           : metric.unit == "bytes"    ? ColumnKind::Size
           : metric.unit == "fraction" ? ColumnKind::Share
                                       : ColumnKind::Real;
}

Column figureColumn(std::string key, std::string title, ColumnKind kind = ColumnKind::Real)
{
    return TableColumn{std::move(key), std::move(title), kind};
}

Column changeColumn(std::string key, std::string title, ColumnKind kind = ColumnKind::Real)
{
    return Column({std::move(key), std::move(title), kind}, Sign::Change);
}

bool lessIsBetter(const std::string& key)
{
    return key.find("hidden") == std::string::npos && key.find("busy_fraction") == std::string::npos;
}

// The sections of A and one other run. Times in JSON are in the pair's unit of time, and again in whole nanoseconds
// where that is the unit; null where the units differ.
class Pair {
public:
    Pair(const Comparison& comparison, const Units& units, char letter, std::string place = {})
        : m_c(comparison), m_letter(letter), m_place(std::move(place)), m_units(units),
          m_known(comparison.unknown.empty())
    {
    }

    void addTo(Document& document, const Run& a, const Run& b, std::size_t ops)
    {
        m_document = &document;
        facts(a, b);
        document.sections.push_back(differences());
        const bool split = m_known && m_c.sameUnits;
        document.sections.push_back(change(split));
        ledger(split);
        ladder(split);
        Section& why = m_document->add("Why");
        why.add(Sentences{in("why"), m_c.why, true}).shown = false;
        why.add(Sentences{{}, named(m_c.why, m_letter)});
        opTables(split, ops);
        devices();
    }

    Section differences() const
    {
        Section section{"Different setups"};
        const auto orUnknown = [](const std::string& value) { return value.empty() ? std::string("unknown") : value; };
        Table table{in("differences.#"),
                    {unshown("key"), figureColumn("title", {}, ColumnKind::Text), unshown("a"), unshown("b"),
                     figureColumn({}, "A", ColumnKind::Text),
                     figureColumn({}, std::string(1, m_letter), ColumnKind::Text)}};
        for (const RunDifference& one : m_c.differences)
            table.rows.push_back(
                {{one.key, one.title, textCell(one.a), textCell(one.b), orUnknown(one.a), orUnknown(one.b)},
                 Tone::Warn});
        section.add(std::move(table));
        return section;
    }

    Section change(bool known) const
    {
        Section section{"Where the time went (summed over ranks)"};
        section.fact(in("change"), std::string());
        if (!known) return section;
        const ChangeSplit& change = m_c.change;
        put(section, "change.whole_step_delta", change.stepDelta);
        put(section, "change.makespan_delta", change.makespanDelta);
        put(section, "change.busy_delta", change.busyDelta);
        put(section, "change.apart_delta", change.apartDelta);
        put(section, "change.unexplained", change.unexplained);
        Table table{in("change.idle_delta_by_cause"),
                    {TableColumn{}, figureColumn({}, {}, ColumnKind::Text), changeColumn("*", {}, ColumnKind::Time)}};
        table.columns[0].shown = false;
        const auto row = [&table](TableCell key, std::string title, Nanos time) -> Row& {
            Row& added = table.rows.emplace_back(Row{{std::move(key), std::move(title), time}});
            added.tone = time < 0 ? Tone::Good : Tone::Bad;
            added.shown = time != 0;
            return added;
        };
        row({}, "busy", change.busyDelta);
        row({}, "apart (optimizer)", change.apartDelta);
        for (std::size_t c = 0; c < idleCauseCount; ++c) {
            const auto cause = static_cast<IdleCause>(c);
            row(std::string(toText(cause)), fmt::format("idle: {}", titleOf(cause)), change.idleDelta[c]).meaning =
                meaningOf(cause);
        }
        row({}, "not comparable (different number of ranks)", change.unexplained);
        const Nanos all = change.makespanDelta * static_cast<Nanos>(m_c.reportB.bubbles.ranks.size());
        Row& sum = row({},
                       fmt::format("ranks × change of the ops' time ({})",
                                   textOf(table.columns[2], {}, change.makespanDelta, m_units)),
                       all);
        sum.tone = Tone::Strong;
        sum.shown = true;
        section.add(std::move(table));
        return section;
    }

private:
    std::string in(const std::string& key) const { return m_place + key; }
    TableCell time(Nanos of, bool known = true) const { return numberCell(of, known && m_c.sameUnits); }
    TableCell nanos(Nanos of, bool known = true) const
    {
        return numberCell(of, known && m_c.sameUnits && !m_units.shares());
    }
    void put(Section& section, const std::string& key, Nanos of) const
    {
        const auto value = static_cast<double>(of);
        section.fact(in(key), ColumnKind::Time, value);
        section.fact(in(key + "_ns"), ColumnKind::Count, m_units.shares() ? std::nullopt : std::optional(value));
    }

    void runFacts(Section& section, const Run& run, int step, const std::string& place)
    {
        addInfo(section, run.info, true, place);
        section.fact(place + "step", ColumnKind::Count, step);
        section.fact(place + "step_number", ColumnKind::Count, stepNumber(step));
        section.fact(place + "time_unit", run.timeline->timeUnit() != 1 ? "rank_share" : "ns");
        for (const char* key : {"model", "microbatch_size"}) section.fact(place + key, configured(run, key));
        section.fact(place + "link_latency", linkLatencyText(run));
    }

    void facts(const Run& a, const Run& b)
    {
        Section& section = m_document->add();
        section.shown = false;
        runFacts(section, a, m_c.stepA, in("a."));
        runFacts(section, b, m_c.stepB, in("b."));
        section.fact(in("time_unit"), m_c.sameUnits ? m_units.timeName() : std::string());
        section.fact(in("headline"), m_c.headline);
        const bool spread = m_c.spread && m_c.sameUnits && !m_units.shares();
        section.fact(in("spread_ns"), ColumnKind::Count,
                     spread ? std::optional(static_cast<double>(*m_c.spread)) : std::nullopt);
        section.fact(in("within_spread"), ColumnKind::Truth,
                     m_c.spread ? std::optional<double>(m_c.withinSpread) : std::nullopt);
        section.fact(in("unknown"), m_c.unknown);
        Table metrics = dataTable(in("metrics.#"), "key title unit a:real b:real delta:real");
        for (const MetricDelta& metric : m_c.metrics) {
            std::string key = metric.key, unit = metric.unit;
            double size = 1;
            const auto inUnits = [&](std::string_view suffix, const char* name, double of) {
                if (const std::size_t at = key.find(suffix); at != std::string::npos) key.erase(at, suffix.size());
                unit = name;
                size = of;
            };
            if (unit == "ns" && m_c.sameUnits && m_units.shares())
                inUnits("_ns", "rank_share", static_cast<double>(m_units.time));
            if (unit == "bytes" && m_units.memory != 1)
                inUnits("_bytes", "activation_share", static_cast<double>(m_units.memory));
            metrics.rows.push_back(
                {{key, metric.title, unit, metric.a / size, metric.b / size, metric.delta() / size}});
        }
        section.add(std::move(metrics));
        Table notCompared = dataTable(in("not_compared"), "- *");
        for (const UnknownMetric& one : m_c.unknownMetrics) notCompared.add({one.key, one.why});
        section.add(std::move(notCompared));
    }

    void ledger(bool known)
    {
        const PathLedger &a = m_c.ledgerA, &b = m_c.ledgerB;
        Section& section =
            m_document->add(fmt::format("The critical path by class (bottleneck: rank {} in A, rank {} in {})",
                                        a.bottleneck, b.bottleneck, m_letter));
        section.fact(in("ledger"), std::string());
        section.shown = known;
        if (!known) return;
        for (const auto& [name, one] : {std::pair("a", &a), std::pair("b", &b)}) {
            const std::string place = in(fmt::format("ledger.{}.", name));
            section.fact(place + "bottleneck_rank", ColumnKind::Whole,
                         one->bottleneck >= 0 ? std::optional<double>(one->bottleneck) : std::nullopt);
            section.fact(place + "wires", ColumnKind::Count, one->wires);
            section.fact(place + "ops", ColumnKind::Count, static_cast<double>(one->path.size()));
            section.fact(place + "makespan", ColumnKind::Time, static_cast<double>(one->makespan));
        }
        Table table{in("ledger"),
                    {TableColumn{}, figureColumn({}, {}, ColumnKind::Text),
                     figureColumn("a.by_class.*", "A", ColumnKind::Time),
                     figureColumn("b.by_class.*", std::string(1, m_letter), ColumnKind::Time),
                     changeColumn("delta_by_class.*", fmt::format("{} − A", m_letter), ColumnKind::Time)}};
        table.columns[0].shown = false;
        for (std::size_t i = 0; i < pathClassCount; ++i) {
            const auto part = static_cast<PathClass>(i);
            Row row{{std::string(toText(part)), std::string(titleOf(part)), a.byClass[i], b.byClass[i],
                     b.byClass[i] - a.byClass[i]}};
            row.shown = a.byClass[i] != 0 || b.byClass[i] != 0;
            row.meaning = meaningOf(part);
            table.rows.push_back(std::move(row));
        }
        table.rows.push_back(
            {{TableCell(), std::string("makespan"), a.makespan, b.makespan, b.makespan - a.makespan}, Tone::Strong});
        section.add(std::move(table));
    }

    void ladder(bool shown)
    {
        Section& section = m_document->add("One change at a time, simulated");
        section.shown = shown;
        section.fact(in("no_ladder"), m_c.noLadder);
        if (m_c.ladder.empty() && !m_c.noLadder.empty()) section.say("none: " + m_c.noLadder);
        Table table{in("ladder.#"),
                    {unshown("kind"), unshown("title"), figureColumn({}, {}, ColumnKind::Text),
                     figureColumn("makespan", "time", ColumnKind::Time), unshown("change", ColumnKind::Time),
                     changeColumn({}, "change", ColumnKind::Time),
                     figureColumn("peak_activation", "largest peak", ColumnKind::Size)}};
        table.shown = !m_c.ladder.empty();
        if (m_c.ladder.empty()) table.unknown = "there is none";
        for (const LadderRung& rung : m_c.ladder)
            table.rows.push_back(
                {{std::string(toText(rung.kind)), rung.title, named(rung.title, m_letter), time(rung.makespan),
                  time(rung.change), numberCell(rung.change, rung.kind != RungKind::Start), cellOf(rung.peak)}});
        section.add(std::move(table));
    }

    void opTables(bool shown, std::size_t most)
    {
        Table all = dataTable(
            in("ops.#"),
            "op rank in_a:truth in_b:truth start_delta:time start_delta_ns start_spread:time start_beyond_noise:truth "
            "duration_delta:time duration_delta_ns duration_spread:time duration_beyond_noise:truth "
            "durations_a.steps durations_a.median_ns durations_a.mad_ns durations_a.min_ns durations_a.q1_ns "
            "durations_a.q3_ns durations_a.max_ns durations_b.steps durations_b.median_ns durations_b.mad_ns "
            "durations_b.min_ns durations_b.q1_ns durations_b.q3_ns durations_b.max_ns");
        Table moved{{},
                    {figureColumn({}, "op", ColumnKind::Text), figureColumn({}, "rank", ColumnKind::Whole),
                     changeColumn({}, "start", ColumnKind::Time), figureColumn({}, "beyond noise", ColumnKind::Text),
                     changeColumn({}, "duration", ColumnKind::Time),
                     figureColumn({}, "beyond noise", ColumnKind::Text)}};
        std::size_t count = 0;
        for (const OpDelta& op : m_c.ops) {
            const bool both = op.inBoth();
            TableRow cells{toText(op.op), std::int64_t(op.rank), std::int64_t(op.a != noSpan),
                           std::int64_t(op.b != noSpan)};
            for (const auto& [delta, verdict] :
                 {std::pair(op.startDelta, &op.start), std::pair(op.durationDelta, &op.duration)}) {
                cells.push_back(time(delta, both));
                cells.push_back(nanos(delta, both));
                cells.push_back(time(verdict->spread.value_or(0), both && verdict->spread));
                cells.push_back(numberCell(verdict->shows, both && m_c.sameUnits && verdict->spread));
            }
            const bool steps = m_c.sameUnits && !m_units.shares();
            for (const auto& history : {m_c.historyA, m_c.historyB}) {
                const StepSample sample = steps && history ? history->duration(op.op, op.rank) : StepSample{};
                for (const Nanos value : {static_cast<Nanos>(sample.count), sample.median, sample.mad, sample.least,
                                          sample.low, sample.high, sample.most})
                    cells.push_back(numberCell(value, sample.count > 0));
            }
            all.rows.push_back({std::move(cells)});
            if (!both || (op.startDelta == 0 && op.durationDelta == 0) || count++ >= most) continue;
            const auto noise = [](const NoiseVerdict& verdict, Nanos of) {
                return std::string(of == 0 ? "" : !verdict.spread ? "unknown" : verdict.shows ? "yes" : "no");
            };
            moved.add({toText(op.op), std::int64_t(op.rank), op.startDelta, noise(op.start, op.startDelta),
                       op.durationDelta, noise(op.duration, op.durationDelta)});
        }
        Section& section = m_document->add(fmt::format("Ops that moved most ({} of {})", std::min(most, count), count));
        section.shown = shown;
        section.add(std::move(all));
        section.add(std::move(moved));
    }

    // Traces without ops can't be compared op by op, so their devices are: what they did.
    void devices()
    {
        if (!m_c.devices) return m_document->add().fact(in("devices"), std::string());
        const DeviceChanges& changes = *m_c.devices;
        Section& facts = m_document->add("Why");
        facts.add(Sentences{in("devices.why"), changes.why, true}).shown = false;
        facts.add(Sentences{{}, named(changes.why, m_letter)});
        Table figures = dataTable(in("devices.figures.*"), "- a b noise_ns");
        for (const DeviceFigure& one : changes.figures)
            figures.add({one.key, cellOf(one.a), cellOf(one.b), cellOf(one.noise)});
        facts.add(std::move(figures));
        Table kernels =
            dataTable(in("devices.kernels.#"),
                      "name lane bytes shape_a shape_b calls_a calls_b total_a_ns total_b_ns matched most_changed.rank "
                      "most_changed.call most_changed.calls most_changed.a_ns most_changed.b_ns");
        for (const KernelChange& one : changes.kernels) {
            const MatchedCall call = one.most.value_or(MatchedCall{});
            const bool most = one.most.has_value();
            kernels.rows.push_back(
                {{one.name, std::string(toText(one.lane)), cellOf(one.bytes), textCell(one.shapeA),
                  textCell(one.shapeB), one.callsA, one.callsB, one.totalA, one.totalB,
                  std::string(one.byOrder      ? "order"
                              : one.inBoth()   ? "name"
                              : one.callsA > 0 ? "only_a"
                                               : "only_b"),
                  numberCell(call.rank, most), numberCell(call.place, most), numberCell(call.calls, most),
                  numberCell(call.a, most), numberCell(call.b, most)}});
        }
        facts.add(std::move(kernels));
        for (Section& one : deviceSections(changes, m_letter)) m_document->sections.push_back(std::move(one));
    }

    const Comparison& m_c;
    char m_letter;
    std::string m_place;
    Units m_units;
    bool m_known; // steps can be compared
    Document* m_document = nullptr;
};

} // namespace

} // namespace stagewright::document

namespace stagewright {

document::Table metricsTable(std::span<const Comparison* const> comparisons, std::size_t firstOther)
{
    using namespace document;
    Table table{{}, {unshown("key"), figureColumn({}, {}, ColumnKind::Text), figureColumn({}, "A")}};
    for (std::size_t i = 0; i < comparisons.size(); ++i)
        table.columns.push_back(figureColumn({}, std::string(1, document::letter(firstOther + i))));
    for (std::size_t i = 0; i < comparisons.size(); ++i)
        table.columns.push_back(changeColumn({}, fmt::format("{} − A", document::letter(firstOther + i))));
    std::vector<std::unordered_map<std::string_view, const MetricDelta*>> byKey(comparisons.size());
    for (std::size_t i = 0; i < comparisons.size(); ++i)
        for (const MetricDelta& metric : comparisons[i]->metrics) byKey[i].try_emplace(metric.key, &metric);
    std::unordered_set<std::string_view> keys; // of any of them, in the order they come
    for (const Comparison* one : comparisons)
        for (const MetricDelta& metric : one->metrics) {
            if (!keys.insert(metric.key).second) continue;
            Row row{{metric.key, metric.title, metric.a}, Tone::Plain, kindOf(metric)};
            std::vector<TableCell> changes;
            std::vector<Tone> tones;
            bool any = false;
            for (std::size_t i = 0; i < comparisons.size(); ++i) {
                const auto found = byKey[i].find(metric.key);
                const MetricDelta* at = found == byKey[i].end() ? nullptr : found->second;
                any = any || (at && (at->a != 0 || at->b != 0));
                row.cells.push_back(at ? TableCell(at->b) : TableCell(std::string("·")));
                changes.push_back(at ? TableCell(at->delta()) : TableCell());
                const bool shows = at && at->delta() != 0 && (comparisons[i]->shows() || metric.unit == "bytes");
                tones.push_back(!shows                                                 ? Tone::Plain
                                : (at->delta() < 0) == document::lessIsBetter(at->key) ? Tone::Good
                                                                                       : Tone::Bad);
            }
            row.cells.insert(row.cells.end(), changes.begin(), changes.end());
            if (comparisons.size() == 1) row.tone = tones.front();
            row.tones.assign(row.cells.size() - tones.size(), Tone::Plain);
            row.tones.insert(row.tones.end(), tones.begin(), tones.end());
            if (any) table.rows.push_back(std::move(row));
        }
    return table;
}

document::Section differencesSection(const Comparison& comparison, const Units& units, char b)
{
    return document::Pair(comparison, units, b).differences();
}

document::Section changeSection(const Comparison& comparison, const Units& units, char b)
{
    return document::Pair(comparison, units, b).change(comparison.unknown.empty() && comparison.sameUnits);
}

std::string namedFor(const std::string& text, char b) { return document::named(text, b); }

document::Document comparisonDocument(std::span<const Run* const> runs, std::span<const Comparison> comparisons,
                                      std::size_t ops)
{
    using namespace document;
    const bool oneTable =
        std::all_of(comparisons.begin(), comparisons.end(), [](const Comparison& c) { return c.sameUnits; });
    const bool memory = std::all_of(runs.begin(), runs.end(), [&](const Run* run) {
        return run->timeline->memoryUnit() == runs[0]->timeline->memoryUnit();
    });
    Document out;
    out.units.time = runs[0]->timeline->timeUnit();
    if (memory) out.units.memory = runs[0]->timeline->memoryUnit();
    Section& head = out.add();
    for (std::size_t i = 0; i < runs.size(); ++i)
        head.say(fmt::format("{}  {}", document::letter(i), lineOf(*runs[i])));
    Section& headlines = out.add();
    for (std::size_t i = 0; i < comparisons.size(); ++i)
        headlines.say(named(comparisons[i].headline, document::letter(i + 1)), Tone::Strong);
    std::vector<const Comparison*> all;
    for (const Comparison& one : comparisons) all.push_back(&one);
    if (oneTable) out.add().add(metricsTable(all, 1));
    for (std::size_t i = 0; i < comparisons.size(); ++i) {
        const Comparison& one = comparisons[i];
        const char b = document::letter(i + 1);
        Section& section = out.add(comparisons.size() > 1 ? fmt::format("{} against A", b) : "");
        if (oneTable && comparisons.size() > 1) section.say(named(one.headline, b));
        if (!oneTable) section.add(metricsTable({&all[i], 1}, i + 1));
        for (const UnknownMetric& metric : one.unknownMetrics)
            section.say(named(fmt::format("{} is not compared: {}", metric.title, metric.why), b));
        if (!one.unknown.empty() && one.devices) section.say("steps and bubbles are not compared: " + one.unknown);
        document::Pair(one, {runs[0]->timeline->timeUnit(), runs[0]->timeline->memoryUnit()}, b,
                       i == 0 ? "" : fmt::format("more.{}.", i - 1))
            .addTo(out, *runs[0], *runs[i + 1], ops);
    }
    if (comparisons.size() == 1) out.add().add(listOf("more", ColumnKind::Text, {}));
    return out;
}

} // namespace stagewright
