// List execution: pairs, copies, counts, halves, links, deadlocks, figures.
#include <QtTest>

#include "mutated_schedules.h"
#include "random_schedules.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/library/variants.h"
#include "schedules/timeline/timeline_of.h"
#include "support/schedule_from_csv.h"

using namespace stagewright;
using stagewright::test::fromCsv;

namespace {

SimResult timed(const Schedule& schedule, const CostModel& costs)
{
    auto result = simulate(schedule, costs);
    if (!result) qFatal("%s", result.error().message.c_str());
    return *result;
}

// A second, plain implementation: sweeps over all ranks until nothing moves. Slow and obviously right.
struct Reference {
    std::vector<std::vector<Nanos>> start, end;
    bool finished = false;
};
Reference sweep(const Schedule& s, const CostModel& costs)
{
    Reference out;
    std::vector<std::size_t> head(s.order.size(), 0);
    std::vector<Nanos> clock(s.order.size(), 0);
    for (const auto& ops : s.order) {
        out.start.emplace_back(ops.size(), -1);
        out.end.emplace_back(ops.size(), -1);
    }
    auto arrival = [&](const Op& op, const Need& need, int rank) -> Nanos { // −1: not there
        const int stage = op.stage + static_cast<int>(need.side);
        if (stage < 0 || stage >= s.stages) return 0;
        for (std::size_t q = 0; q < s.order.size(); ++q)
            for (std::size_t i = 0; i < s.order[q].size(); ++i) {
                const Op& other = s.order[q][i];
                if (other.stage != stage || other.microbatch != op.microbatch) continue;
                if (other.kind != need.kind && other.kind != need.orKind) continue;
                if (out.end[q][i] < 0) return -1;
                const auto lower = static_cast<std::size_t>(std::min<int>(stage, op.stage));
                const Bytes bytes = need.side == StageSide::Own ? 0 : costs.memory[lower].boundary;
                return out.end[q][i] +
                       (need.side == StageSide::Own ? 0 : costs.links.delay(static_cast<int>(q), rank, bytes));
            }
        return -1;
    };
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t r = 0; r < s.order.size(); ++r) {
            if (head[r] == s.order[r].size()) continue;
            const int rank = static_cast<int>(r);
            const std::size_t count = s.isPaired(rank, head[r]) ? 2 : 1;
            Nanos begin = clock[r];
            Nanos length = 0;
            bool ready = true;
            for (std::size_t i = head[r]; i < head[r] + count; ++i) {
                const Op& op = s.order[r][i];
                for (const Need& need : ruleOf(op.kind).needs) {
                    if (need.ifThere) continue;
                    const Nanos at = arrival(op, need, rank);
                    ready = ready && at >= 0;
                    begin = std::max(begin, at);
                }
                length += costs.duration(op, rank);
            }
            if (!ready) continue;
            for (std::size_t i = head[r]; i < head[r] + count; ++i) {
                out.start[r][i] = begin;
                out.end[r][i] = begin + length;
            }
            head[r] += count;
            clock[r] = begin + length;
            moved = true;
        }
    }
    out.finished = true;
    for (std::size_t r = 0; r < head.size(); ++r) out.finished = out.finished && head[r] == s.order[r].size();
    return out;
}

CostModel randomCosts(const Schedule& s, unsigned seed)
{
    std::mt19937 random(seed);
    CostModel costs(s.stages, CostSource::Analytic);
    for (int stage = 0; stage < s.stages; ++stage) {
        for (OpKind kind : {OpKind::Forward, OpKind::Backward, OpKind::InputGrad, OpKind::WeightGrad})
            costs.setDuration(kind, stage, test::pick(random, 0, 1000));
        costs.memory[static_cast<std::size_t>(stage)].boundary = test::pick(random, 0, 5000);
        costs.memory[static_cast<std::size_t>(stage)].activation = test::pick(random, 0, 5000);
        costs.setDuration(OpKind::Forward, stage, test::pick(random, 0, s.ranks - 1), test::pick(random, 0, 1000));
    }
    costs.links.all = {test::pick(random, 0, 200), 1e10};
    costs.links.overrides[{0, s.ranks - 1}] = {test::pick(random, 0, 999), 0};
    return costs;
}

} // namespace

class TestSimulate : public QObject {
    Q_OBJECT
private slots:
    // Delays before a rank's first work and after its last are not part of its span.
    void spanLeavesOutDelaysAtTheEnds()
    {
        Schedule s = *makeSchedule("gpipe", {1, 2, 0});
        const CostModel costs = CostModel::uniform(s);
        const Nanos plain = simulate(s, costs)->span;
        s.order[0].insert(s.order[0].begin(), makeFiller(0, 1'000));
        s.order[0].push_back(makeFiller(0, 5'000));
        const auto delayed = simulate(s, costs);
        QVERIFY(delayed);
        QCOMPARE(delayed->span, plain);
        QCOMPARE(delayed->makespan, plain + 6'000);
    }
    void equalsThePlainSweep()
    {
        for (unsigned seed = 0; seed < 300; ++seed) {
            const Schedule s = test::randomSchedule(seed);
            const CostModel costs = randomCosts(s, seed);
            Channels apart;
            apart.apart = true; // the sweep's messages have their links to themselves
            const SimResult result = simulate(s, costs, apart).value();
            const Reference expected = sweep(s, costs);
            QVERIFY(expected.finished);
            for (int r = 0; r < s.ranks; ++r)
                for (std::size_t i = 0; i < s.order[static_cast<std::size_t>(r)].size(); ++i) {
                    QCOMPARE(result.start[result.indexOf(r, i)], expected.start[static_cast<std::size_t>(r)][i]);
                    QCOMPARE(result.end[result.indexOf(r, i)], expected.end[static_cast<std::size_t>(r)][i]);
                }
        }
    }
    // Any order at all: finishes exactly where the sweep does.
    void deadlocksWhereTheSweepDoes()
    {
        int deadlocks = 0;
        for (unsigned seed = 0; seed < 300; ++seed) {
            Schedule s = test::randomSchedule(seed, false, false);
            std::mt19937 random(seed);
            for (int k = 0; k < 1; ++k) {
                auto& row = s.order[random() % s.order.size()];
                if (row.size() > 1) std::swap(row[random() % row.size()], row[random() % row.size()]);
            }
            const CostModel costs = randomCosts(s, seed);
            const auto result = simulate(s, costs);
            const Reference expected = sweep(s, costs);
            QCOMPARE(result.has_value(), expected.finished);
            deadlocks += result ? 0 : 1;
            if (!result) QVERIFY(!result.error().message.empty());
        }
        QVERIFY(deadlocks > 20 && deadlocks < 280);
    }
    void pairIsOneInterval()
    {
        // As in DualPipeV: F of microbatch 1 and B of microbatch 0 start together when both inputs are ready.
        const Schedule s = fromCsv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n");
        QVERIFY(s.isPaired(0, 1));
        CostModel costs(2, CostSource::Analytic);
        for (int stage = 0; stage < 2; ++stage) {
            costs.setDuration(OpKind::Forward, stage, 10);
            costs.setDuration(OpKind::Backward, stage, 20);
        }
        const SimResult result = timed(s, costs);
        QCOMPARE(result.start[1], 40); // 1B0 ends at 10 + 10 + 20
        QCOMPARE(result.start[2], 40);
        QCOMPARE(result.end[1], 70);
        QCOMPARE(result.end[2], 70);
        QCOMPARE(result.makespan, 70 + 30 + 20); // 1F1, 1B1, 0B1
        const SimFigures figures = figuresOf(s, result);
        QCOMPARE(figures.busy, 120); // the pair counts once
        QCOMPARE(figures.bubbleFraction, 1.0 - 120.0 / 240.0);
    }
    void copiesOfStages()
    {
        // Two directions over two ranks: microbatch 0 down, microbatch 1 up.
        Schedule s;
        s.ranks = s.stages = 2;
        s.microbatches = 2;
        s.placement = Placement::bidirectional(2, 2);
        s.order = {{*parseOp("0F0"), *parseOp("1F1"), *parseOp("1B1"), *parseOp("0B0")},
                   {*parseOp("0F1"), *parseOp("1F0"), *parseOp("1B0"), *parseOp("0B1")}};
        CostModel costs = CostModel::uniform(s);
        costs.links.overrides[{0, 1}].latency = rankShare;
        const SimResult result = timed(s, costs);
        QCOMPARE(result.start[1], rankShare);         // 0F1 is on rank 1; that link is free
        QCOMPARE(result.start[4 + 1], 2 * rankShare); // 0F0 crosses from rank 0
        QCOMPARE(result.end[3], 7 * rankShare - 0);   // 1B0 2+1 … 5, free link back, 0B0 5 … 7
        QCOMPARE(result.end[4 + 3], 7 * rankShare);   // 1B1 2 … 4, link, 0B1 5 … 7
    }
    void countsSlicesHalves()
    {
        const Schedule s = fromCsv("0F0,0F1,0I0,0I1,0W0-1\n1F0-1,1B0h0,1B0h1,1B1\n");
        CostModel costs(2, CostSource::Analytic);
        for (int stage = 0; stage < 2; ++stage)
            for (auto [kind, d] : {std::pair{OpKind::Forward, 10},
                                   {OpKind::Backward, 20},
                                   {OpKind::InputGrad, 10},
                                   {OpKind::WeightGrad, 7}})
                costs.setDuration(kind, stage, d);
        costs.memory[0].activation = costs.memory[1].activation = 100;
        const SimResult result = timed(s, costs);
        QCOMPARE(result.start[5], 20); // needs both forwards
        QCOMPARE(result.end[5], 40);   // twice the duration
        QCOMPARE(result.end[6], 50);   // half a backward
        QCOMPARE(result.start[2], 60); // needs both halves
        QCOMPARE(result.end[4] - result.start[4], 14);
        QCOMPARE(result.peakActivation, (std::vector<Bytes>{200, 200}));

        const Schedule sliced = fromCsv("0F0.0,0F0.1,0B0.1,0B0.0\n1F0.0,1F0.1,1B0.1,1B0.0\n");
        CostModel one = costs;
        const SimResult slices = timed(sliced, one);
        QCOMPARE(slices.start[4], 10); // the first slice alone lets stage 1 begin
        QCOMPARE(slices.peakActivation, (std::vector<Bytes>{100, 100}));
    }
    void fillersDelay()
    {
        const Schedule s = fromCsv("0F0,0FILLER500,0B0\n");
        CostModel costs(1, CostSource::Analytic);
        costs.setDuration(OpKind::Forward, 0, 100);
        costs.setDuration(OpKind::Backward, 0, 200);
        const SimResult result = timed(s, costs);
        QCOMPARE(result.makespan, 800);
        QCOMPARE(figuresOf(s, result).busy, 300);
    }
    void recomputeHoldsTheBoundaryOnly()
    {
        const Schedule s = fromCsv("0F0,0F1,0R0,0B0,0R1,0B1\n");
        CostModel costs(1, CostSource::Analytic);
        costs.memory[0].activation = 100;
        costs.memory[0].boundary = 8;
        QCOMPARE(activationPeaks(s, costs), (std::vector<Bytes>{108}));
    }
    void inputGradMayAdd()
    {
        // A deferred W may keep more than I frees: a negative share adds at I.
        const Schedule s = fromCsv("0F0,0I0,0W0\n");
        CostModel costs(1, CostSource::Analytic);
        costs.memory[0].activation = 100;
        costs.memory[0].freedAtInput = -30;
        QCOMPARE(activationPeaks(s, costs), (std::vector<Bytes>{130}));
    }
    void linksByBytes()
    {
        Schedule s = *makeSchedule("gpipe", {2, 1, 0});
        CostModel costs(2, CostSource::Analytic);
        for (int stage = 0; stage < 2; ++stage) {
            costs.setDuration(OpKind::Forward, stage, 100);
            costs.setDuration(OpKind::Backward, stage, 200);
        }
        costs.memory[0].boundary = 1000;
        costs.memory[1].boundary = 555'555; // leaves the last stage: never sent
        costs.links.all = {10, 1e10};       // 1000 bytes take 100 ns
        const SimResult result = timed(s, costs);
        QCOMPARE(result.start[2], 210);
        QCOMPARE(result.start[1], 210 + 300 + 110);
    }
    void deadlockNamesTheCycle()
    {
        const Schedule s = fromCsv("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
        const auto result = simulate(s, CostModel::uniform(s));
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::Invalid);
        QCOMPARE(QString::fromStdString(result.error().message),
                 QString("deadlock of 2 ranks: rank 0 is at op 2 (0B0) and waits for 1B0, op 4 of rank 1; "
                         "rank 1 is at op 1 (1F1) and waits for 0F1, op 3 of rank 0"));
    }
    void blockedWithoutCycle()
    {
        Schedule s = fromCsv("0B0,0F0\n");
        auto result = simulate(s, CostModel::uniform(s));
        QVERIFY(!result);
        QVERIFY2(
            QString::fromStdString(result.error().message).contains("waits for 0F0, which is op 2 of the same rank"),
            result.error().message.c_str());
        s = fromCsv("0F0,0B0\n1B0\n");
        result = simulate(s, CostModel::uniform(s));
        QVERIFY(!result);
        QVERIFY2(QString::fromStdString(result.error().message)
                     .contains("waits for the forward of stage 1, which is not in the schedule"),
                 result.error().message.c_str());
    }
    void refusesWhatDoesNotFit()
    {
        const Schedule s = *makeSchedule("gpipe", {2, 2, 0});
        QVERIFY(!place(s, std::vector<Nanos>(7, 1), {}));
        QVERIFY(!place(s, std::vector<Nanos>(8, -1), {}));
        QVERIFY(place(s, std::vector<Nanos>(8, 0), {}).has_value());
        Schedule outside = s;
        outside.order[0][0].microbatch = 2;
        QVERIFY(!simulate(outside, CostModel::uniform(s)));
        outside = s;
        outside.order[1][0].stage = 2;
        QVERIFY(!simulate(outside, CostModel::uniform(s)));
        outside = s;
        outside.order.pop_back();
        QVERIFY(!simulate(outside, CostModel::uniform(s)));
        outside = s;
        outside.microbatches = 2'000'000'000; // no table of that size is made
        QVERIFY(!simulate(outside, CostModel::uniform(s)));
    }
    void relaxedEqualsStrictWhereTheOrderRuns()
    {
        for (const std::string& name : everyVariant()) {
            auto schedule = makeOnNearShape(name, Shape{4, 8, 0});
            if (!schedule) continue;
            CostModel::UnitCosts unit;
            unit.latency = 0.1;
            CostModel costs = CostModel::uniform(*schedule, unit);
            costs.launch.assign(static_cast<std::size_t>(schedule->ranks), rankShare / 10);
            const SimResult exact = timed(*schedule, costs);
            const SimResult relaxed = simulateRelaxed(*schedule, costs);
            QVERIFY2(relaxed.start == exact.start, name.c_str());
            QVERIFY2(relaxed.end == exact.end, name.c_str());
            QCOMPARE(relaxed.makespan, exact.makespan);
        }
    }
    // By hand: two ranks, one microbatch, the forward of stage 1 behind its backward. After 0F0 both ranks wait: rank 0
    // is the lower, 0B0 starts without 1B0; then 1B0 at 0 without 1F0, and 1F0 behind it.
    void relaxedStartsWhatWaitsForEver()
    {
        Schedule s = *makeSchedule("gpipe", {2, 1, 0});
        std::swap(s.order[1][0], s.order[1][1]);
        CostModel costs = CostModel::uniform(s);
        QVERIFY(!simulate(s, costs));
        const SimResult relaxed = simulateRelaxed(s, costs);
        const Nanos u = rankShare;
        QCOMPARE(relaxed.start, (std::vector<Nanos>{0, u, 0, 2 * u})); // 0F0 0B0 | 1B0 1F0
        QCOMPARE(relaxed.end, (std::vector<Nanos>{u, 3 * u, 2 * u, 3 * u}));
    }
    // Ops that the shape has no place for run where they are, and nothing waits for them.
    void relaxedTimesAnyState()
    {
        for (unsigned seed = 0; seed < 400; ++seed) {
            std::mt19937 random(seed);
            Schedule s = test::randomSchedule(seed);
            const CostModel costs = CostModel::uniform(s);
            for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes)
                test::damage(s, static_cast<test::Damage>(random() % test::damageKinds), random);
            const SimResult relaxed = simulateRelaxed(s, costs);
            QCOMPARE(relaxed.offsets.size(), s.order.size() + 1);
            QCOMPARE(relaxed.start.size(), s.opCount());
            for (std::size_t r = 0; r < s.order.size(); ++r) {
                Nanos clock = 0;
                for (std::size_t i = relaxed.offsets[r]; i < relaxed.offsets[r + 1]; ++i) {
                    if (runsApart(s.order[r][i - relaxed.offsets[r]].kind)) continue;
                    QVERIFY(relaxed.start[i] >= clock ||
                            (i > relaxed.offsets[r] && s.isPaired(static_cast<int>(r), i - 1 - relaxed.offsets[r])));
                    QVERIFY(relaxed.end[i] >= relaxed.start[i]);
                    clock = relaxed.end[i];
                }
            }
        }
    }
    // Four ranks in a row on two hosts in turn, messages of 10 ns: those of ranks 0 and 2 queue for the card of their
    // host.
    void messagesQueueForNetworkCards()
    {
        const Schedule s = fromCsv("0F0,0F1,0F2\n1F0,1F1,1F2\n2F0,2F1,2F2\n3F0,3F1,3F2\n");
        CostModel costs(4, CostSource::Analytic);
        for (int stage = 0; stage < 4; ++stage) {
            costs.setDuration(OpKind::Forward, stage, 1);
            costs.memory[static_cast<std::size_t>(stage)].boundary = 10;
        }
        costs.links.all = {0, 1e9};
        const auto starts = [&](const CostModel& of) {
            const SimResult result = timed(s, of);
            return std::vector<Nanos>(result.start.begin() + 9, result.start.end()); // of rank 3
        };
        QCOMPARE(starts(costs), (std::vector<Nanos>{33, 43, 53})); // a link between each two ranks
        costs.links.cards.hosts = {0, 1, 0, 1};
        costs.links.cards.link = {0, 1e9};
        QCOMPARE(starts(costs), (std::vector<Nanos>{41, 51, 61})); // 2 → 3 waits until 0 → 1 has sent its third
        const auto timeline = simulatedTimeline(s, costs);
        QVERIFY(timeline.has_value());
        std::map<std::string, std::vector<Nanos>> busy; // by card
        for (const Track& track : (*timeline)->tracks())
            if (track.lane == Lane::CardOut || track.lane == Lane::CardIn)
                for (const Span& span : (*timeline)->spansOf(track)) busy[track.name].push_back(span.start);
        QCOMPARE(busy.size(), 4U);
        QCOMPARE(busy["host 0 card 0 out"], (std::vector<Nanos>{1, 11, 21, 31, 41, 51}));
        QCOMPARE(busy["host 1 card 0 in"], busy["host 0 card 0 out"]);
        QCOMPARE(busy["host 1 card 0 out"], (std::vector<Nanos>{12, 22, 32}));
        costs.links.cards.perHost = 2; // each rank has its own
        QCOMPARE(starts(costs), (std::vector<Nanos>{33, 43, 53}));
        costs.links.cards.perHost = 1;
        costs.links.cards.fullDuplex = false; // a card sends or receives
        QCOMPARE(starts(costs), (std::vector<Nanos>{71, 81, 91}));
        costs.links.cards.link.latency = 5; // takes no card
        QCOMPARE(starts(costs), (std::vector<Nanos>{76, 86, 96}));
        Channels apart;
        apart.apart = true;
        costs.links.cards.link.latency = 0;
        QCOMPARE(simulate(s, costs, apart)->start[9], 33);
        costs.links.cards.hosts = {0, 0, 1, 1}; // only 1 → 2 leaves a host
        costs.links.all = {};
        QCOMPARE(starts(costs), (std::vector<Nanos>{13, 23, 33}));
    }
    // Whatever the order: cards carry one message at a time, nothing starts before what it needs is there, orders under
    // edit are timed alike.
    void cardsCarryOneMessageAtATime()
    {
        int queued = 0;
        for (unsigned seed = 0; seed < 400; ++seed) {
            const Schedule s = test::randomSchedule(seed, seed % 2 == 0, seed % 3 == 0);
            CostModel costs = randomCosts(s, seed);
            std::mt19937 random(seed);
            for (int rank = 0; rank < s.ranks; ++rank) costs.links.cards.hosts.push_back(test::pick(random, 0, 2));
            costs.links.cards.perHost = test::pick(random, 1, 2);
            costs.links.cards.link = {test::pick(random, 0, 300), 1e9};
            costs.links.cards.fullDuplex = seed % 4 != 0;
            const SimResult result = timed(s, costs);
            const SimResult relaxed = simulateRelaxed(s, costs);
            QCOMPARE(relaxed.start, result.start);
            const auto timeline = timelineOf(s, result, costs);
            QVERIFY(timeline.has_value());
            for (const Track& track : (*timeline)->tracks()) {
                if (track.lane != Lane::CardOut && track.lane != Lane::CardIn) continue;
                Nanos free = 0;
                std::set<std::pair<Nanos, std::string>> messages; // one that several need is there for each
                for (const Span& span : (*timeline)->spansOf(track)) {
                    if (!messages.emplace(span.start, toText(span.op)).second) continue;
                    QVERIFY2(span.start >= free, track.name.c_str());
                    free = span.end;
                }
                ++queued;
            }
            for (const Edge& edge : (*timeline)->edges())
                if (edge.kind == EdgeKind::Data) QVERIFY((*timeline)->spans()[edge.to].start >= edge.arrival);
        }
        QVERIFY(queued > 100);
    }
    void deterministic()
    {
        const Schedule s = *makeSchedule("interleaved-1f1b", {8, 32, 4});
        const CostModel costs = randomCosts(s, 7);
        const SimResult a = timed(s, costs);
        const SimResult b = timed(s, costs);
        QCOMPARE(a.start, b.start);
        QCOMPARE(a.end, b.end);
    }
};

QTEST_APPLESS_MAIN(TestSimulate)
#include "tst_simulate.moc"
