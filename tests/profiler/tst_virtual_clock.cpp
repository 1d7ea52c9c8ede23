// The virtual clock places a step exactly as place() does with each op's CPU time; norms and optimizers follow behind
// barriers.
#include <QTest>

#include "profiler/record/step_record.h"
#include "profiler/record/step_timeline.h"
#include "profiler/record/virtual_clock.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"

using namespace stagewright;

namespace {

// A step of a schedule as it might have run on one busy core: one op after another, wall time far from CPU time.
StepRecord serialStep(const Schedule& schedule)
{
    StepRecord record;
    record.schedule = *CheckedSchedule::of(schedule);
    record.step = 3;
    record.ops.resize(schedule.order.size());
    record.memory.resize(schedule.order.size());
    Nanos at = 1'000'000;
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        for (std::size_t i = 0; i < schedule.order[rank].size(); ++i) {
            RecordedOp op;
            op.op = schedule.order[rank][i];
            op.position = static_cast<std::int32_t>(i);
            op.begin = at;
            op.end = at += 50'000'000;
            op.cpu = 1000 + static_cast<Nanos>(100 * rank + i);
            record.ops[rank].push_back(op);
        }
        for (const OpKind kind : {OpKind::ReduceGrad, OpKind::Optimizer}) {
            RecordedOp op;
            op.op = makeOp(kind, static_cast<int>(rank));
            op.begin = at;
            op.end = at += 10;
            op.cpu = kind == OpKind::Optimizer ? 500 : 70 + static_cast<Nanos>(rank);
            record.ops[rank].push_back(op);
        }
        MemoryChange change;
        change.when = MemoryChange::When::OpEnd;
        change.op = 1;
        change.delta = 9;
        record.memory[rank].push_back(change);
    }
    for (int rank = 0; rank + 1 < schedule.ranks; ++rank) {
        RecordedMessage message;
        message.key = {0, static_cast<std::uint16_t>(rank + 1), false};
        message.fromRank = rank;
        message.toRank = rank + 1;
        message.bytes = 4000;
        message.released = -4000;
        message.sent = message.available = message.takeBegin = message.takeEnd = 5;
        record.messages.push_back(message);
    }
    return record;
}

} // namespace

class TestVirtualClock : public QObject {
    Q_OBJECT

private slots:
    void placesByCpuTime()
    {
        Shape shape;
        shape.ranks = 3;
        shape.microbatches = 4;
        const Schedule schedule = *makeSchedule("1f1b", shape);
        StepRecord record = serialStep(schedule);
        std::vector<Nanos> durations;
        for (const auto& ops : record.ops) {
            for (const RecordedOp& op : ops) {
                if (op.position >= 0) durations.push_back(op.cpu);
            }
        }
        Links links;
        links.all = {250, 1e9}; // 4,000 bytes: 4 µs
        const std::vector<Bytes> boundaries{4000, 4000, 0};
        const SimResult placed = *place(schedule, durations, links, boundaries);

        const Nanos begin = 7'000'000;
        QVERIFY(placeOnVirtualClock(record, links, begin));
        QCOMPARE(record.clock, std::string("virtual"));
        for (std::size_t rank = 0; rank < record.ops.size(); ++rank) {
            for (std::size_t i = 0; i < schedule.order[rank].size(); ++i) {
                const std::size_t at = placed.indexOf(static_cast<int>(rank), i);
                QCOMPARE(record.ops[rank][i].begin, begin + placed.start[at]);
                QCOMPARE(record.ops[rank][i].end, begin + placed.end[at]);
            }
            const RecordedOp& norm = record.ops[rank][schedule.order[rank].size()];
            const RecordedOp& optimizer = record.ops[rank].back();
            QCOMPARE(norm.begin, begin + placed.makespan);
            QCOMPARE(norm.end, norm.begin + 70 + static_cast<Nanos>(rank));
            QCOMPARE(optimizer.begin, begin + placed.makespan + 72); // after the longest norm
            QCOMPARE(optimizer.end, optimizer.begin + 500);
        }
        QCOMPARE(record.end(), begin + placed.makespan + 572);
        for (const RecordedMessage& message : record.messages) {
            const auto from = static_cast<std::size_t>(message.fromRank);
            QCOMPARE(message.sent, record.ops[from][0].end);
            QCOMPARE(message.arrival, message.sent + 4250);
            QCOMPARE(message.waitBegin, begin); // the first op waits from the step's begin
            QCOMPARE(message.takeEnd, record.ops[from + 1][0].begin);
        }

        auto timeline = timelineOf(record);
        QVERIFY2(timeline, timeline ? "" : timeline.error().message.c_str());
        QCOMPARE((*timeline)->clock(), std::string("virtual"));
        QCOMPARE((*timeline)->end(), record.end());
        for (int rank = 0; rank < 3; ++rank) {
            const MemoryEvent& event = (*timeline)->memoryOf(rank).back();
            if (rank == 2) QCOMPARE(event.time, record.ops[2][1].end);
            for (const Span& span : (*timeline)->spans()) QCOMPARE(span.step, 3);
        }
        // The sender's copy goes where the receiver's op starts.
        const auto first = (*timeline)->memoryOf(0);
        QVERIFY(std::any_of(first.begin(), first.end(), [&](const MemoryEvent& e) {
            return e.delta == -4000 && e.time == record.ops[1][0].begin && e.category == MemoryCategory::Communication;
        }));
    }

    void fillersLastAsLongAsTheySay()
    {
        Shape shape;
        shape.ranks = 2;
        shape.microbatches = 1;
        Schedule schedule = *makeSchedule("gpipe", shape);
        schedule.order[1].insert(schedule.order[1].begin() + 1, makeFiller(1, 12345));
        StepRecord record = serialStep(schedule);
        QVERIFY(placeOnVirtualClock(record, {}, 0));
        QCOMPARE(record.ops[1][1].end - record.ops[1][1].begin, Nanos(12345));
        QCOMPARE(record.ops[1][2].begin, record.ops[1][1].end);
    }

    // Ranks that share state step behind a barrier, unless their lists step on arrival: then ops behind an optimizer last
    // as long as they did.
    void opsBehindAnOptimizerKeepTheirTimes()
    {
        for (const ReduceRule reduce : {ReduceRule::Late, ReduceRule::Stepped}) {
            const Schedule plain = overReplicas(*makeSchedule("bfs", {2, 4, 3}), 2).value();
            const Schedule schedule = addShardOps(plain, ShardLevel::Optimizer, {GatherRule::Batch, 0, reduce}).value();
            QVERIFY(sharesState(schedule));
            QCOMPARE(stepsOnArrival(schedule), reduce == ReduceRule::Stepped);
            StepRecord record = serialStep(schedule);
            record.messages.clear();
            QVERIFY(placeOnVirtualClock(record, {}, 0));
            Nanos gradients = 0;
            Nanos stepped = record.ops[0].back().end;
            for (const auto& ops : record.ops)
                for (const RecordedOp& op : ops) {
                    if (op.position < 0 || isRelease(op.op.kind)) continue;
                    QVERIFY2(op.end > op.begin, toText(op.op).c_str());
                    if (isOptimizer(op.op.kind)) stepped = std::min(stepped, op.begin);
                    if (isCompute(op.op.kind)) gradients = std::max(gradients, op.end);
                }
            QCOMPARE(stepped < gradients, reduce == ReduceRule::Stepped);
        }
    }

    void unknownCpuTimeFallsBackToTheStamps()
    {
        Shape shape;
        shape.ranks = 1;
        shape.microbatches = 1;
        StepRecord record = serialStep(*makeSchedule("gpipe", shape));
        for (RecordedOp& op : record.ops[0]) op.cpu = -1;
        QCOMPARE(record.contention(), 0.0);
        QVERIFY(placeOnVirtualClock(record, {}, 0));
        QCOMPARE(record.ops[0][0].end, Nanos(50'000'000));
    }
};

QTEST_GUILESS_MAIN(TestVirtualClock)
#include "tst_virtual_clock.moc"
