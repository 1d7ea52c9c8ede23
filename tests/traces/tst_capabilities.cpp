// One run that has everything a trace can have, and the same without one capability at a time: exactly the figures,
// tables and sentences that need it are unknown, each with its reason, in the report, in comparisons and in what would
// help.
#include <QTest>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "sample_runs.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/gap_explainer.h"
#include "traces/analysis/levers.h"
#include "traces/analysis/links.h"
#include "traces/analysis/work_bytes.h"
#include "traces/compare/compare.h"
#include "traces/report/run_report.h"
#include "traces/report/tables.h"
#include "traces/run/run_facts.h"
#include "traces/step/step_ops.h"

using namespace stagewright;
using samples::us;

namespace {

enum class Without {
    Nothing,
    Ops,      // no range is named like one
    Messages, // no sends and receives; inputs count as there once they were made
    Memory,
    MemoryUses, // only that it was allocated
    CpuTime,
    Launches, // when kernels were launched
    Kernels,  // and copies
    Bytes,    // of copies and communication
    Ranges,
};

// Two stages, two microbatches, GPipe by the wall clock: a message takes 3 µs and its receiver 1 µs more to start;
// every op runs a kernel.
Run runWithout(Without what)
{
    const auto has = [what](Without one) { return what != one; };
    const bool ops = has(Without::Ops), kernels = has(Without::Kernels);
    Run run;
    run.schedule = std::make_shared<const Schedule>(samples::schedule("gpipe", 2, 2));
    TimelineBuilder builder(Provenance::Imported, "wall", 2);
    struct Made {
        SpanId span;
        Nanos end;
    };
    std::map<std::string, Made> made;
    std::map<std::string, int> counters; // by track
    std::array<Nanos, 2> free{};
    const auto kernel = [&](int rank, const char* stream, Nanos start, Nanos end, const char* name, SpanId by,
                            Bytes bytes) {
        if (!kernels) return;
        const bool copy = std::string_view(name) == "Memcpy HtoD";
        const std::string track = "rank " + std::to_string(rank) + " " + stream;
        Span span;
        span.start = start;
        span.end = end;
        span.label = builder.intern(name) & 0xffffffu;
        const SpanId id = builder.addSpan(builder.addTrack(rank, copy ? Lane::Copy : Lane::Kernel, track), span);
        const bool launched = has(Without::Launches);
        if (by != noSpan)
            builder.addEdge(by, id, EdgeKind::Launch, launched ? start - us / 2 : start);
        else if (launched)
            builder.addEdge(id, id, EdgeKind::Launch, start - us / 2);
        if (bytes == 0 || !has(Without::Bytes)) return;
        const auto [counter, added] = counters.try_emplace(track, 0);
        if (added)
            counter->second = builder.addCounter(rank, workBytesCounter(track, copy ? Lane::Copy : Lane::Kernel),
                                                 std::string(workBytesUnit));
        builder.addSample(counter->second, start, static_cast<double>(bytes));
    };
    const auto op = [&](int rank, const char* text, Nanos duration, const char* needs) {
        const bool remote = needs != nullptr && needs[0] - '0' != rank;
        const Nanos produced = needs != nullptr ? made.at(needs).end : 0;
        const Nanos arrival = remote ? produced + 3 * us : produced;
        Span span;
        span.op = parseOp(text).value();
        span.start = std::max(free[static_cast<std::size_t>(rank)], arrival) + us;
        span.end = span.start + duration;
        if (remote) kernel(rank, "stream 20", produced, arrival, "ncclDevKernel_SendRecv", noSpan, 4096);
        SpanId id = noSpan;
        if (ops) {
            id =
                builder.addSpan(builder.addTrack(rank, Lane::Compute), span, has(Without::CpuTime) ? duration / 2 : -1);
            if (needs != nullptr)
                builder.addEdge(made.at(needs).span, id, EdgeKind::Data, has(Without::Messages) ? arrival : produced);
        }
        if (has(Without::Ranges)) {
            Span range = span;
            range.op = {};
            range.op.microbatch = -1;
            range.label = builder.intern("layer") & 0xffffffu;
            const SpanId named = builder.addSpan(
                builder.addTrack(rank, Lane::Other, "rank " + std::to_string(rank) + " thread 1"), range);
            if (!ops) id = named;
        }
        kernel(rank, "stream 7", span.start, span.end, "ampere_sgemm_128x64_nn", id, 0);
        kernel(rank, "copies", span.start - us, span.start - us / 2, "Memcpy HtoD", noSpan, 2048);
        if (has(Without::Memory)) {
            MemoryEvent event;
            event.rank = static_cast<std::uint16_t>(rank);
            event.stage = static_cast<std::uint16_t>(rank);
            event.microbatch = span.op.microbatch;
            const bool uses = what != Without::MemoryUses;
            event.category = uses ? MemoryCategory::Activations : MemoryCategory::Workspace;
            event.time = span.end;
            event.delta = span.op.kind == OpKind::Forward ? 1024 : -1024;
            builder.addMemory(event);
            if (uses && made.size() < 2) { // a rank's first op: its weights
                event.category = MemoryCategory::Weights;
                event.delta = 512;
                event.microbatch = -1;
                builder.addMemory(event);
            }
        }
        free[static_cast<std::size_t>(rank)] = span.end;
        made[text] = {id, span.end};
    };
    op(0, "0F0", 10 * us, nullptr);
    op(1, "1F0", 10 * us, "0F0");
    op(0, "0F1", 10 * us, nullptr);
    op(1, "1F1", 10 * us, "0F1");
    op(1, "1B0", 20 * us, "1F0");
    op(0, "0B0", 20 * us, "1B0");
    op(1, "1B1", 20 * us, "1F1");
    op(0, "0B1", 20 * us, "1B1");
    run.timeline = builder.build().value();
    if (!ops) run.schedule = nullptr;
    run.info.name = "run";
    run.info.provenance = Provenance::Imported;
    run.info.clock = "wall";
    run.info.ranks = 2;
    run.info.steps = run.timeline->steps();
    run.configuration.emplace_back("format", "kineto");
    return run;
}

std::set<std::string> unknownFigures(const Run& run)
{
    std::set<std::string> out;
    const auto report = reportOf(run);
    if (!report) return {report.error().message};
    for (const document::Figure& figure : report->figures())
        if (!figure.unknown.empty()) out.insert(figure.key);
    return out;
}

std::set<std::string> unknownTables(const Run& run)
{
    std::set<std::string> out;
    for (const AnalysisInfo* analysis : allAnalyses())
        if (!reportTable(*analysis, StepContext(run, 0)).unknown.empty()) out.insert(std::string(analysis->name));
    return out;
}

// Beyond what is unknown of the whole run.
std::set<std::string> beyond(const std::set<std::string>& all, const std::set<std::string>& whole)
{
    std::set<std::string> out;
    std::set_difference(all.begin(), all.end(), whole.begin(), whole.end(), std::inserter(out, out.end()));
    return out;
}

QString text(const std::set<std::string>& names)
{
    QStringList out;
    for (const std::string& name : names) out << QString::fromStdString(name);
    return out.join(QLatin1Char(' '));
}

std::vector<std::string> gapSentences(const Run& run)
{
    std::vector<std::string> out;
    const auto report = analyseBubbles(*run.timeline, 0);
    if (!report) return out;
    const StepContext context(*run.timeline, 0);
    const GapExplainer explainer(context);
    for (const Gap& gap : report->gaps) out.push_back(explainer.explain(gap).sentence);
    return out;
}

bool anySays(const std::vector<std::string>& sentences, const char* words)
{
    return std::any_of(sentences.begin(), sentences.end(),
                       [words](const std::string& sentence) { return sentence.find(words) != std::string::npos; });
}

const QString overlapFigures =
    QStringLiteral("overlap.comm_time overlap.exposed_time overlap.hidden_time overlap.messages");

} // namespace

class TestCapabilities : public QObject {
    Q_OBJECT
private slots:
    void figuresAndTables_data()
    {
        QTest::addColumn<int>("without");
        QTest::addColumn<QString>("figures"); // unknown beyond those of the whole run
        QTest::addColumn<QString>("tables");
        QTest::addColumn<QString>("reason"); // of each figure
        const auto row = [](const char* name, Without without, const QString& figures, const char* tables,
                            const char* reason) {
            QTest::newRow(name) << static_cast<int>(without) << figures << QString::fromLatin1(tables)
                                << QString::fromLatin1(reason);
        };
        row("messages", Without::Messages,
            QStringLiteral("idle_by_cause.head_of_line idle_by_cause.peer_wait idle_by_cause.transfer ") +
                overlapFigures,
            "links overlap", "does not say when messages between ranks arrived");
        row("memory", Without::Memory, QStringLiteral("peak_activation weight_bytes"), "memory",
            "the trace has no memory events: record with profile_memory=True");
        row("processor time", Without::CpuTime, QStringLiteral("busy_by_cause.contention"), "", "on the processor");
        row("launch times", Without::Launches, QString(), "", "");
        row("kernels", Without::Kernels, QString(),
            "copies device_idle device_steps device_time exposed_communication kernel_classes kernels launch_gaps", "");
        row("bytes", Without::Bytes, QString(), "", "");
        row("ranges", Without::Ranges, QString(), "", "");
    }
    void figuresAndTables()
    {
        QFETCH(int, without);
        QFETCH(QString, figures);
        QFETCH(QString, tables);
        QFETCH(QString, reason);
        const Run whole = runWithout(Without::Nothing), run = runWithout(static_cast<Without>(without));
        QCOMPARE(text(beyond(unknownFigures(run), unknownFigures(whole))), figures);
        QCOMPARE(text(beyond(unknownTables(run), unknownTables(whole))), tables);
        const auto whyNot = unknownFigures(whole);
        const auto report = reportOf(run).value();
        for (const document::Figure& figure : report.figures())
            if (!figure.unknown.empty() && !whyNot.contains(figure.key))
                QVERIFY2(QString::fromStdString(figure.unknown).contains(reason), figure.unknown.c_str());
    }

    // What is known of a run with everything is nothing that another lacks.
    void aWholeRun()
    {
        const Run run = runWithout(Without::Nothing);
        QCOMPARE(text(unknownFigures(run)), QString());
        const auto report = reportOf(run, {.levers = true}).value();
        QCOMPARE(report.overlap.messages, std::int64_t(4));
        QCOMPARE(report.overlap.commTime, 12 * us);
        QVERIFY(report.linkLatency() == 3 * us);
        for (const Lever& lever : report.levers->levers)
            if (lever.makespan) QVERIFY(lever.peak && *lever.peak > 0);
        QVERIFY(anySays(gapSentences(run), "later") && !anySays(gapSentences(run), "does not say"));
    }

    // Ops are what most is about; devices are known without them.
    void withoutOps()
    {
        const Run run = runWithout(Without::Ops);
        const auto report = reportOf(run, {.levers = true}).value();
        for (const document::Figure& figure : report.figures())
            QVERIFY2(figure.kind == ColumnKind::Size || !figure.unknown.empty(), figure.key.c_str());
        QVERIFY(report.sentences().empty() && !report.levers->simulated && gapSentences(run).empty());
        QVERIFY(!unknownTables(run).contains("device_time"));
    }

    void withoutMessages()
    {
        const Run run = runWithout(Without::Messages);
        const auto report = reportOf(run, {.levers = true}).value();
        QVERIFY(!report.linkLatency());
        QCOMPARE(linkLatencyText(run), std::string());
        QCOMPARE(report.sentences().size(), std::size_t(1)); // what all other sentences presume
        QVERIFY(report.sentences().front().starts_with("the trace does not say when messages between ranks arrived"));
        bool links = false;
        for (const Lever& lever : report.levers->levers) {
            links = links || lever.kind == LeverKind::Links;
            if (lever.kind == LeverKind::Links || lever.kind == LeverKind::Launch)
                QVERIFY(!lever.makespan && !lever.reason.empty());
            QVERIFY(lever.kind != LeverKind::Link && lever.kind != LeverKind::LaunchRank);
        }
        QVERIFY(links);
        const auto sentences = gapSentences(run);
        QVERIFY(anySays(sentences, "after its last input was made: the trace does not say when it arrived"));
        QVERIFY(!anySays(sentences, "still in transit"));
        QVERIFY(!reportOf(run, {.levers = true})->levers->gainOf(IdleCause::Launch));
        QVERIFY(analyseLinks(StepContext(*run.timeline, 0)).empty());
    }

    // A wall clock is not enough: messages that were seen are known, however short.
    void messagesThatTakeNoTime()
    {
        QVERIFY(whyNoArrivals(*samples::simulated("1f1b", 2, 4)).empty()); // the model's clock
        for (const bool seen : {false, true}) {
            TimelineBuilder builder(Provenance::Imported, "wall", 2);
            Span span;
            span.end = us;
            span.op = parseOp("0F0").value();
            const SpanId first = builder.addSpan(builder.addTrack(0, Lane::Compute), span);
            span.op = parseOp("1F0").value();
            span.start = us;
            span.end = 2 * us;
            const SpanId second = builder.addSpan(builder.addTrack(1, Lane::Compute), span);
            builder.addEdge(first, second, EdgeKind::Data, us);
            span.end = span.start;
            if (seen) {
                const SpanId send = builder.addSpan(builder.addTrack(0, Lane::Send), span);
                builder.addEdge(send, builder.addSpan(builder.addTrack(1, Lane::Receive), span), EdgeKind::Transfer,
                                us);
            }
            QCOMPARE(whyNoArrivals(**builder.build()).empty(), seen);
        }
    }

    void withoutMemory()
    {
        const Run run = runWithout(Without::Memory);
        const auto report = reportOf(run, {.levers = true}).value();
        QVERIFY(report.levers->simulated);
        for (const Lever& lever : report.levers->levers) QVERIFY2(!lever.peak, lever.name.c_str());
        const auto comparison = compareRuns(run, run).value();
        for (const LadderRung& rung : comparison.ladder) QVERIFY2(!rung.peak, rung.title.c_str());
    }

    void withoutUsesOfMemory()
    {
        const Run run = runWithout(Without::MemoryUses);
        const ReportTable table = reportTable(*findAnalysis("memory"), StepContext(run, 0));
        QVERIFY(table.unknown.empty());
        QVERIFY(table.rows[0][static_cast<std::size_t>(MemoryCategory::Workspace) + 1] != TableCell());
    }

    void withoutLaunchTimes()
    {
        for (const RankDeviceIdle& rank : analyseDeviceIdle(*runWithout(Without::Launches).timeline, 0))
            QVERIFY(rank.of(DeviceState::Launch) == 0 && rank.of(DeviceState::Queued) == 0 &&
                    rank.of(DeviceState::Unknown) > 0);
        for (const RankDeviceIdle& rank : analyseDeviceIdle(*runWithout(Without::Nothing).timeline, 0))
            QCOMPARE(rank.of(DeviceState::Unknown), Nanos(0));
    }

    void withoutBytes()
    {
        const Run run = runWithout(Without::Bytes);
        for (const char* name : {"copies", "exposed_communication"}) {
            const ReportTable table = reportTable(*findAnalysis(name), StepContext(run, 0));
            QVERIFY(!table.rows.empty());
            for (std::size_t c = 0; c < table.columns.size(); ++c)
                if (table.columns[c].key == "bytes" || table.columns[c].key == "size" ||
                    table.columns[c].key == "gigabytes_per_second")
                    for (const auto& row : table.rows) QVERIFY2(row[c] == TableCell(), name);
        }
    }

    // What only one of two runs has is named with the reason, and not compared with 0.
    void comparison()
    {
        const auto keysOf = [](const Comparison& comparison) {
            std::set<std::string> keys;
            for (const UnknownMetric& one : comparison.unknownMetrics) keys.insert(one.key);
            return text(keys);
        };
        const auto compared = [](Without a, Without b) { return compareRuns(runWithout(a), runWithout(b)).value(); };
        QCOMPARE(keysOf(compared(Without::Nothing, Without::Nothing)), QString());
        QCOMPARE(keysOf(compared(Without::Nothing, Without::Messages)),
                 QStringLiteral("comm_ns idle_ns.launch idle_ns.transfer"));
        QCOMPARE(keysOf(compared(Without::CpuTime, Without::Nothing)), QStringLiteral("contention_ns"));
        const Comparison memory = compared(Without::Memory, Without::Nothing);
        QCOMPARE(keysOf(memory), QStringLiteral("peak_activation_bytes"));
        QCOMPARE(memory.unknownMetrics.front().why,
                 std::string("run A: the trace has no memory events: record with profile_memory=True"));
        for (const MetricDelta& metric : memory.metrics) QVERIFY2(!metric.key.starts_with("peak_"), metric.key.c_str());
    }
};

QTEST_APPLESS_MAIN(TestCapabilities)
#include "tst_capabilities.moc"
