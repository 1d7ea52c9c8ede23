// Timelines: the builder's order, indexes and refusals; schedules to timelines and back.
#include <QtTest>

#include <map>

#include "random_schedules.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "schedules/text/csv.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

Span spanOf(Nanos start, Nanos end, const char* op, int step = 0)
{
    Span span;
    span.start = start;
    span.end = end;
    span.op = *parseOp(op);
    span.step = step;
    return span;
}

CostModel randomCosts(const Schedule& s, unsigned seed, bool zeros)
{
    std::mt19937 random(seed);
    CostModel costs(s.stages, CostSource::Analytic);
    for (int stage = 0; stage < s.stages; ++stage) {
        for (OpKind kind : {OpKind::Forward, OpKind::Backward, OpKind::InputGrad, OpKind::WeightGrad})
            costs.setDuration(kind, stage, test::pick(random, zeros ? 0 : 1, 3));
        costs.memory[static_cast<std::size_t>(stage)] = {
            test::pick(random, 0, 50), test::pick(random, -9, 9), 0, 64, 7, 8, 9};
    }
    costs.links.all = {test::pick(random, 0, 3), 1e11};
    return costs;
}

} // namespace

class TestTimeline : public QObject {
    Q_OBJECT
private slots:
    void sortsWhatComesInAnyOrder()
    {
        TimelineBuilder builder(Provenance::Measured, "wall", 2);
        const int second = builder.addTrack(1, Lane::Compute);
        const int send = builder.addTrack(0, Lane::Send);
        const int first = builder.addTrack(0, Lane::Compute);
        QCOMPARE(builder.addTrack(1, Lane::Compute), second); // the same again
        const SpanId b = builder.addSpan(second, spanOf(30, 40, "1B0"), 9);
        const SpanId f = builder.addSpan(second, spanOf(20, 30, "1F0"));
        const SpanId s = builder.addSpan(send, spanOf(10, 20, "0SEND_F0"), 1);
        const SpanId a = builder.addSpan(first, spanOf(0, 10, "0F0"), 8);
        builder.addEdge(f, b, EdgeKind::Data, 30);
        builder.addEdge(a, f, EdgeKind::Data, 20);
        builder.addEdge(s, f, EdgeKind::Transfer, 20);
        builder.addMemory({40, -5, 0, 0, 1, 1, MemoryCategory::Activations});
        builder.addMemory({30, 5, 0, 0, 1, 1, MemoryCategory::Activations});
        builder.addMemory({10, 3, 0, 0, 0, 0, MemoryCategory::Activations});
        const int counter = builder.addCounter(-1, "loss", "");
        builder.addSample(counter, 9, 2.0);
        builder.addSample(counter, 3, 1.0);
        const auto timeline = *builder.build();

        QCOMPARE(timeline->ranks(), 2);
        QCOMPARE(timeline->steps(), 1);
        QCOMPARE(timeline->begin(), 0);
        QCOMPARE(timeline->end(), 40);
        QStringList tracks;
        for (const Track& track : timeline->tracks()) tracks << QString::fromStdString(track.name);
        QCOMPARE(tracks, (QStringList{"rank 0", "rank 0 send", "rank 1"}));
        QStringList ops;
        for (const Span& span : timeline->spans()) ops << QString::fromStdString(timeline->nameOf(span));
        QCOMPARE(ops, (QStringList{"0F0", "0SEND_F0", "1F0", "1B0"}));
        QVERIFY(timeline->hasCpuTime());
        QCOMPARE(timeline->cpuTime(0), 8);
        QCOMPARE(timeline->cpuTime(2), -1);
        QCOMPARE(timeline->cpuTime(3), 9);
        QCOMPARE(timeline->edgesInto(2).size(), std::size_t{2});
        QCOMPARE(timeline->edgesInto(2)[0], (Edge{0, 2, EdgeKind::Data, 20}));
        QCOMPARE(timeline->edgesInto(2)[1], (Edge{1, 2, EdgeKind::Transfer, 20}));
        QCOMPARE(timeline->edgesFrom(2).size(), std::size_t{1});
        QCOMPARE(timeline->edgesFrom(2)[0].to, SpanId{3});
        QVERIFY(timeline->edgesFrom(3).empty());
        QVERIFY(timeline->edgesInto(0).empty());
        QCOMPARE(timeline->memoryOf(1).size(), std::size_t{2});
        QCOMPARE(timeline->memoryOf(1)[0].time, 30);
        QCOMPARE(timeline->memoryOf(0).size(), std::size_t{1});
        QVERIFY(timeline->memoryOf(7).empty());
        QCOMPARE(timeline->counters()[0].samples[0].time, 3);
        QCOMPARE(&timeline->trackOf(SpanId{1}), timeline->trackOf(0, Lane::Send));
        QCOMPARE(&timeline->trackOf(SpanId{3}), timeline->trackOf(1, Lane::Compute));
        QVERIFY(timeline->trackOf(1, Lane::Send) == nullptr);
    }
    void orderOfArrivalDoesNotMatter()
    {
        // Spans with distinct times, added in any order, give the same timeline.
        const Schedule s = *makeSchedule("zb-h1", {4, 8, 0});
        const auto expected = *simulatedTimeline(s, CostModel::uniform(s));
        std::vector<SpanId> ids(expected->spans().size());
        for (SpanId id = 0; id < ids.size(); ++id) ids[id] = id;
        std::mt19937 random(3);
        std::shuffle(ids.begin(), ids.end(), random);
        TimelineBuilder builder(Provenance::Simulated, "model", 4);
        std::vector<SpanId> provisional(ids.size());
        for (SpanId id : ids) {
            const Track& track = expected->trackOf(id);
            provisional[id] =
                builder.addSpan(builder.addTrack(track.rank, track.lane, track.name), expected->spans()[id]);
        }
        for (const Edge& edge : expected->edges())
            builder.addEdge(provisional[edge.from], provisional[edge.to], edge.kind, edge.arrival);
        const auto shuffled = *builder.build();
        for (SpanId id = 0; id < ids.size(); ++id) QCOMPARE(shuffled->spans()[id].op, expected->spans()[id].op);
        QVERIFY(std::ranges::equal(shuffled->edges(), expected->edges()));
    }
    void stepsAndTheirRanges()
    {
        TimelineBuilder builder(Provenance::Measured, "wall", 1);
        const int track = builder.addTrack(0, Lane::Compute);
        builder.addSpan(track, spanOf(0, 10, "0F0", 0));
        builder.addSpan(track, spanOf(10, 20, "0F0", 1)); // work of step 1 before the end of step 0
        builder.addSpan(track, spanOf(20, 30, "0B0", 0));
        builder.addSpan(track, spanOf(30, 40, "0B0", 1));
        builder.addSpan(track, spanOf(50, 60, "0F0", 3));
        const auto timeline = *builder.build();
        QCOMPARE(timeline->steps(), 4);
        const Track& only = timeline->tracks()[0];
        QCOMPARE(timeline->stepRange(only, 0), (std::pair<SpanId, SpanId>{0, 3}));
        QCOMPARE(timeline->stepRange(only, 1), (std::pair<SpanId, SpanId>{1, 4}));
        QCOMPARE(timeline->stepRange(only, 3), (std::pair<SpanId, SpanId>{4, 5}));
        const auto none = timeline->stepRange(only, 2);
        QCOMPARE(none.first, none.second);
        QCOMPARE(timeline->stepMarks().size(), std::size_t{3});
        QCOMPARE(timeline->stepMarks()[1].begin, 10);
        QCOMPARE(timeline->stepMarks()[1].end, 40);
        // Each step on its own, without the work of the other.
        QCOMPARE(QString::fromStdString(toText(*scheduleOf(*timeline, 1))), QString("0F0 0B0\n"));
        QVERIFY(!scheduleOf(*timeline, 2));
        QVERIFY(!scheduleOf(*timeline, 4));
        QVERIFY(!scheduleOf(*timeline, -1));
    }
    void refusals_data()
    {
        QTest::addColumn<int>("which");
        QTest::addColumn<QString>("says");
        QTest::newRow("backwards") << 0 << "goes from 10 to 5 ns";
        QTest::newRow("rank") << 1 << "of rank 2, but ranks are 0 to 0";
        QTest::newRow("overlap") << 2 << "'rank 0': 0B0 from 9 to 20 ns overlaps 0F0 from 0 to 10 ns";
        QTest::newRow("edge") << 3 << "an edge from span 0 to 5, but there are 1";
        QTest::newRow("memory") << 4 << "a memory event of rank 1";
        QTest::newRow("step") << 5 << "in step -1";
    }
    void refusals()
    {
        QFETCH(int, which);
        QFETCH(QString, says);
        TimelineBuilder builder(Provenance::Measured, "wall", 1);
        const int track = builder.addTrack(which == 1 ? 2 : 0, Lane::Compute);
        builder.addSpan(track, which == 0 ? spanOf(10, 5, "0F0") : spanOf(0, 10, "0F0", which == 5 ? -2 : 0));
        if (which == 2) builder.addSpan(track, spanOf(9, 20, "0B0"));
        if (which == 3) builder.addEdge(0, 5, EdgeKind::Data, 0);
        if (which == 4) builder.addMemory({0, 1, -1, 0, 1, 0, MemoryCategory::Weights});
        const auto timeline = builder.build();
        QVERIFY(!timeline);
        QVERIFY2(QString::fromStdString(timeline.error().message).contains(says), timeline.error().message.c_str());
        // The builder is empty and usable again.
        builder.addSpan(builder.addTrack(0, Lane::Compute), spanOf(0, 1, "0F0"));
        QVERIFY(builder.build().has_value());
    }
    void overlapsAreFineElsewhere()
    {
        TimelineBuilder builder(Provenance::Measured, "wall", 1);
        const int send = builder.addTrack(0, Lane::Send);
        builder.addSpan(send, spanOf(0, 10, "0SEND_F0"));
        builder.addSpan(send, spanOf(5, 20, "0SEND_F1"));
        builder.addSpan(send, spanOf(10, 12, "0SEND_F2"));
        builder.addSpan(send, spanOf(11, 12, "0SEND_F3"));
        const auto timeline = *builder.build();
        QCOMPARE(sublanes(timeline->spans()), (std::vector<std::uint16_t>{0, 1, 0, 2}));
        QVERIFY(sublanes({}).empty());
    }
    void emptyTimeline()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 3);
        const auto timeline = *builder.build();
        QVERIFY(timeline->empty() && !timeline->hasCpuTime() && !timeline->hasEdges() && !timeline->hasMemory());
        QCOMPARE(timeline->steps(), 0);
        QCOMPARE(timeline->end(), 0);
        QVERIFY(timeline->memoryOf(2).empty());
    }
    void labels()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 1);
        const int track = builder.addTrack(0, Lane::Kernel);
        Span span = spanOf(0, 1, "0F0");
        span.label = builder.intern("gemm") & 0xffffffu;
        QCOMPARE(builder.intern("gemm"), std::uint32_t(span.label));
        builder.addSpan(track, span);
        builder.addSpan(track, spanOf(1, 2, "0F1"));
        const auto timeline = *builder.build();
        QCOMPARE(timeline->nameOf(timeline->spans()[0]), std::string("gemm"));
        QCOMPARE(timeline->nameOf(timeline->spans()[1]), std::string("0F1"));
        // Labels keep their text where timelines with other labels are joined.
        TimelineBuilder joined(Provenance::Imported, "wall", 1);
        (void)joined.intern("other");
        joined.append(*timeline);
        const auto both = *joined.build();
        QCOMPARE(both->nameOf(both->spans()[0]), std::string("gemm"));
        QCOMPARE(both->nameOf(both->spans()[1]), std::string("0F1"));
    }
    void appendJoinsSteps()
    {
        auto step = [](int number, Nanos from, bool cpu) {
            TimelineBuilder builder(Provenance::Measured, "wall", 2);
            const int a = builder.addTrack(0, Lane::Compute);
            const int b = builder.addTrack(1, Lane::Compute);
            const SpanId f = builder.addSpan(a, spanOf(from, from + 10, "0F0", number), cpu ? 7 : -1);
            const SpanId g = builder.addSpan(b, spanOf(from + 10, from + 20, "1F0", number), cpu ? 8 : -1);
            builder.addEdge(f, g, EdgeKind::Data, from + 10);
            builder.addMemory({from + 10, 4, 0, number, 0, 0, MemoryCategory::Activations});
            builder.addSample(builder.addCounter(-1, "loss", "nats"), from, number);
            return *builder.build();
        };
        TimelineBuilder run(Provenance::Measured, "wall", 2);
        run.append(*step(0, 0, false));
        run.append(*step(1, 100, true));
        run.append(*step(2, 200, false));
        const auto timeline = *run.build();
        QCOMPARE(timeline->steps(), 3);
        QCOMPARE(timeline->spans().size(), std::size_t{6});
        QCOMPARE(timeline->tracks().size(), std::size_t{2});
        QCOMPARE(timeline->spansOf(timeline->tracks()[1])[2].start, 210);
        QCOMPARE(timeline->cpuTime(0), -1);
        QCOMPARE(timeline->cpuTime(1), 7);
        QCOMPARE(timeline->cpuTime(4), 8);
        QCOMPARE(timeline->edges().size(), std::size_t{3});
        for (const Edge& edge : timeline->edges()) {
            QCOMPARE(timeline->spans()[edge.from].step, timeline->spans()[edge.to].step);
            QCOMPARE(edge.arrival, timeline->spans()[edge.to].start);
        }
        QCOMPARE(timeline->memoryOf(0).size(), std::size_t{3});
        QCOMPARE(timeline->counters().size(), std::size_t{1});
        QCOMPARE(timeline->counters()[0].samples.size(), std::size_t{3});
        QCOMPARE(timeline->stepMarks().size(), std::size_t{6});
        QCOMPARE(timeline->stepMarks()[3].rank, 1);
        QCOMPARE(timeline->stepMarks()[3].step, 1);
    }

    void pictureOfASimulation()
    {
        const Schedule s = *makeSchedule("1f1b", {2, 2, 0});
        CostModel costs = CostModel::uniform(s);
        costs.links.all.latency = rankShare / 2;
        costs.memory[0].weight = 11;
        costs.memory[1].optimizer = 22;
        const SimResult result = *simulate(s, costs);
        const auto timeline = *timelineOf(s, result, costs);
        QCOMPARE(timeline->provenance(), Provenance::Simulated);
        QCOMPARE(timeline->clock(), std::string("model"));
        QCOMPARE(timeline->timeUnit(), rankShare);
        QCOMPARE(*timeline->schedule(), s);
        QCOMPARE(timeline->end(), result.makespan);
        // Two transfers each way, from the producer's end to the arrival.
        const Track* sends = timeline->trackOf(0, Lane::Send);
        QVERIFY(sends && timeline->trackOf(1, Lane::Send));
        QCOMPARE(timeline->spansOf(*sends).size(), std::size_t{2});
        const Span& transfer = timeline->spansOf(*sends)[0];
        QCOMPARE(toText(transfer.op), std::string("0SEND_F0"));
        QCOMPARE(transfer.start, rankShare);
        QCOMPARE(transfer.duration(), rankShare / 2);
        QCOMPARE(toText(timeline->spansOf(*timeline->trackOf(1, Lane::Send))[0].op), std::string("1SEND_B0"));
        // 1F0 takes 0F0's message; 1B0 takes 1F0's activation on the spot.
        const SpanId forward = timeline->trackOf(1, Lane::Compute)->begin;
        QCOMPARE(timeline->edgesInto(forward).size(), std::size_t{1});
        QCOMPARE(timeline->edgesInto(forward)[0].arrival, 3 * rankShare / 2);
        QCOMPARE(timeline->edgesInto(forward)[0].from, timeline->trackOf(0, Lane::Compute)->begin);
        // The last stage's backward needs only its own forward, which is ready at once.
        const auto into = timeline->edgesInto(forward + 1);
        QCOMPARE(into.size(), std::size_t{1});
        QCOMPARE(into[0].from, forward);
        QCOMPARE(into[0].arrival, timeline->spans()[forward].end);
        // Memory: what lasts first, then one event per F and B.
        const auto memory = timeline->memoryOf(0);
        QCOMPARE(memory.size(), std::size_t{5});
        QCOMPARE(memory[0].category, MemoryCategory::Weights);
        QCOMPARE(memory[0].delta, 11);
        QCOMPARE(memory[0].microbatch, -1);
        QCOMPARE(memory[1].delta, activationShare);
        QCOMPARE(memory[1].time, rankShare);
        QCOMPARE(timeline->memoryOf(1)[0].category, MemoryCategory::Optimizer);
    }
    void noTransfersWhereLinksAreFree()
    {
        const Schedule s = *makeSchedule("gpipe", {4, 4, 0});
        const auto timeline = *simulatedTimeline(s, CostModel::uniform(s));
        QCOMPARE(timeline->tracks().size(), std::size_t{4});
        QCOMPARE(timeline->spans().size(), s.opCount());
    }
    // Law 1, also with zero durations, fillers, pairs and copies; and what the timeline says agrees with the
    // simulation.
    void scheduleComesBack()
    {
        for (unsigned seed = 0; seed < 300; ++seed) {
            const Schedule s = test::randomSchedule(seed);
            const CostModel costs = randomCosts(s, seed, false);
            const SimResult result = *simulate(s, costs);
            const auto built = timelineOf(s, result, costs);
            QVERIFY2(built.has_value(), built ? "" : built.error().message.c_str());
            const Timeline& timeline = **built;
            const auto back = scheduleOf(timeline, 0);
            QVERIFY2(back.has_value(), back ? "" : back.error().message.c_str());
            if (*back != s)
                qWarning() << seed << QString::fromStdString(toText(s)) << QString::fromStdString(toText(*back));
            QCOMPARE(*back, s);
            for (const Edge& edge : timeline.edges()) {
                QVERIFY(timeline.spans()[edge.from].end <= edge.arrival);
                QVERIFY(edge.arrival <= timeline.spans()[edge.to].start);
            }
            // Activations: running sums per rank end at zero and peak where the simulation says.
            for (int r = 0; r < s.ranks; ++r) {
                std::map<Nanos, Bytes> byTime;
                for (const MemoryEvent& event : timeline.memoryOf(r))
                    if (event.category == MemoryCategory::Activations) byTime[event.time] += event.delta;
                Bytes held = 0;
                Bytes peak = 0;
                for (const auto& [time, delta] : byTime) peak = std::max(peak, held += delta);
                QCOMPARE(held, 0);
                QCOMPARE(peak, result.peakActivation[static_cast<std::size_t>(r)]);
            }
        }
    }
    void zeroDurationsKeepTheOrder()
    {
        for (unsigned seed = 0; seed < 200; ++seed) {
            const Schedule s = test::randomSchedule(seed, true, false);
            const auto built = simulatedTimeline(s, randomCosts(s, seed, true));
            QVERIFY2(built.has_value(), built ? "" : built.error().message.c_str());
            QCOMPARE(*scheduleOf(**built, 0), s);
        }
    }
    void discardedWorkIsLeftOut()
    {
        TimelineBuilder builder(Provenance::Measured, "wall", 1);
        const int track = builder.addTrack(0, Lane::Compute);
        Span lost = spanOf(0, 10, "0F0");
        lost.flags = SpanDiscarded;
        builder.addSpan(track, lost);
        builder.addSpan(track, spanOf(10, 20, "0F0"));
        builder.addSpan(track, spanOf(20, 30, "0B0"));
        builder.addSpan(track, spanOf(30, 40, "0OPT"));
        QCOMPARE(QString::fromStdString(toText(*scheduleOf(**builder.build(), 0))), QString("0F0 0B0\n"));
    }
    // Optimizer and reduction ops are part of the order only where the schedule has them.
    void opsOfAStageComeBack()
    {
        const Schedule s = *readScheduleCsv("# weights=stashed\n0F0,0F1,0B0,0OPT,0B1,0OPT\n");
        const auto timeline = simulatedTimeline(s, CostModel::uniform(s));
        QVERIFY(timeline);
        QCOMPARE(*scheduleOf(**timeline, 0), s);
    }
    void pairsRunOneAfterTheOther()
    {
        // An engine may run the members in turn; the schedule it realises says that they were issued together.
        const Schedule s = *readScheduleCsv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
        TimelineBuilder builder(Provenance::Measured, "wall", 1);
        const int track = builder.addTrack(0, Lane::Compute);
        Nanos at = 0;
        for (const Op& op : s.order[0]) {
            Span span;
            span.start = at;
            span.end = at += 10;
            span.op = op;
            builder.addSpan(track, span);
        }
        builder.setSchedule(std::make_shared<const Schedule>(s));
        QCOMPARE(*scheduleOf(**builder.build(), 0), s);
    }
};

QTEST_APPLESS_MAIN(TestTimeline)
#include "tst_timeline.moc"
