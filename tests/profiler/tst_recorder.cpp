// What ranks record becomes a timeline: spans, waits, messages, memory at op ends; and damaged records are refused.
#include <QTest>

#include <algorithm>
#include <map>
#include <thread>

#include "profiler/recorder.h"
#include "schedules/library/registry.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

std::shared_ptr<const CheckedSchedule> twoRanks(int microbatches = 1)
{
    Shape shape;
    shape.ranks = 2;
    shape.microbatches = microbatches;
    return *CheckedSchedule::of(*makeSchedule("gpipe", shape));
}

void work() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

void op(RankRecorder& rank, OpKind kind, int stage, int position, Bytes activations = 0)
{
    const Op what = makeOp(kind, stage, 0);
    rank.opBegin(what, position);
    rank.memoryChanged(MemoryCategory::Activations, static_cast<std::uint16_t>(stage), 0, activations + 50);
    work();
    rank.memoryChanged(MemoryCategory::Activations, static_cast<std::uint16_t>(stage), 0, -50);
    rank.opEnd(what, position);
}

void receive(RankRecorder& rank, const MessageKey& key, bool waited)
{
    if (waited) rank.waitBegin(key);
    work();
    rank.receiveBegin(key);
    rank.memoryChanged(MemoryCategory::Communication, key.stage, key.microbatch, 64);
    rank.receiveEnd(key, 64);
}

void released(RankRecorder& rank, const MessageKey& key)
{
    rank.releaseBegin();
    rank.memoryChanged(MemoryCategory::Communication, key.stage, key.microbatch, -64);
    rank.releaseEnd(key);
}

// One step of gpipe on two ranks, one microbatch, as the rank loop would record it.
void tellStep(Recorder& recorder)
{
    const MessageKey down{0, 1, false};
    const MessageKey up{0, 0, true};
    recorder.beginStep();
    recorder.rank(0).stepBegin();
    recorder.rank(1).stepBegin();
    const Op forward = makeOp(OpKind::Forward, 0, 0);
    recorder.rank(0).opBegin(forward, 0);
    recorder.rank(0).memoryChanged(MemoryCategory::Activations, 0, 0, 1000);
    recorder.rank(0).memoryChanged(MemoryCategory::Communication, 0, 0, 64);
    recorder.rank(0).memoryChanged(MemoryCategory::Workspace, 0, 0, 300);
    recorder.rank(0).memoryChanged(MemoryCategory::Workspace, 0, 0, 200);
    recorder.rank(0).memoryChanged(MemoryCategory::Workspace, 0, 0, -500);
    recorder.rank(0).opEnd(forward, 0);
    recorder.rank(0).sent(down, monotonicNow());
    receive(recorder.rank(1), down, true);
    op(recorder.rank(1), OpKind::Forward, 1, 0, 500);
    op(recorder.rank(1), OpKind::Backward, 1, 1, -500);
    recorder.rank(1).sent(up, monotonicNow() + 100'000);
    receive(recorder.rank(0), up, true);
    released(recorder.rank(0), down);
    op(recorder.rank(0), OpKind::Backward, 0, 1, -1000);
    released(recorder.rank(1), up);
    for (int r = 0; r < 2; ++r) {
        for (const OpKind kind : {OpKind::ReduceGrad, OpKind::Optimizer}) {
            recorder.rank(r).opBegin(makeOp(kind, r), -1);
            recorder.rank(r).opEnd(makeOp(kind, r), -1);
        }
    }
}

const Span& spanOf(const Timeline& timeline, int rank, Lane lane, std::size_t i)
{
    return timeline.spansOf(*timeline.trackOf(rank, lane))[i];
}

} // namespace

class TestRecorder : public QObject {
    Q_OBJECT

private slots:
    // A backward's gradients are there before its activations are gone: within the op the timeline reaches what the
    // rank held at once.
    void memoryInsideAnOp()
    {
        const auto schedule = twoRanks();
        Recorder recorder(schedule, {});
        recorder.beginStep();
        for (int r = 0; r < 2; ++r) {
            RankRecorder& rank = recorder.rank(r);
            rank.stepBegin();
            const Op forward = makeOp(OpKind::Forward, r, 0), backward = makeOp(OpKind::Backward, r, 0);
            if (r == 1) receive(rank, {0, 1, false}, true);
            rank.opBegin(forward, 0);
            rank.memoryChanged(MemoryCategory::Activations, static_cast<std::uint16_t>(r), 0, 1000);
            rank.opEnd(forward, 0);
            if (r == 0) {
                rank.sent({0, 1, false}, monotonicNow());
                receive(rank, {0, 0, true}, true);
            }
            rank.opBegin(backward, 1);
            rank.memoryChanged(MemoryCategory::Gradients, static_cast<std::uint16_t>(r), -1, 400);
            rank.memoryChanged(MemoryCategory::Workspace, static_cast<std::uint16_t>(r), -1, 50);
            rank.memoryChanged(MemoryCategory::Workspace, static_cast<std::uint16_t>(r), -1, -50);
            rank.memoryChanged(MemoryCategory::Activations, static_cast<std::uint16_t>(r), 0, -1000);
            rank.opEnd(backward, 1);
            if (r == 1) rank.sent({0, 0, true}, monotonicNow());
            for (const OpKind kind : {OpKind::ReduceGrad, OpKind::Optimizer}) {
                rank.opBegin(makeOp(kind, r), -1);
                rank.opEnd(makeOp(kind, r), -1);
            }
        }
        auto step = recorder.finishStep();
        QVERIFY2(step, step ? "" : step.error().message.c_str());
        for (int r = 0; r < 2; ++r) {
            std::map<Nanos, Bytes> changes;
            Bytes activations = 0, peakOfActivations = 0;
            for (const MemoryEvent& event : step->timeline->memoryOf(r)) {
                if (event.category == MemoryCategory::Communication) continue;
                changes[event.time] += event.delta;
                if (event.category == MemoryCategory::Activations)
                    peakOfActivations = std::max(peakOfActivations, activations += event.delta);
            }
            Bytes held = 0, most = 0;
            for (const auto& [time, delta] : changes) most = std::max(most, held += delta);
            QCOMPARE(most, Bytes{1450});
            QCOMPARE(held, Bytes{400});
            QCOMPARE(peakOfActivations, Bytes{1000});
        }
    }

    void aStepBecomesATimeline()
    {
        auto schedule = twoRanks();
        Recorder recorder(schedule, {});
        const Nanos before = monotonicNow();
        tellStep(recorder);
        const Nanos elapsed = monotonicNow() - before;
        auto step = recorder.finishStep();
        QVERIFY2(step, step ? "" : step.error().message.c_str());
        const Timeline& timeline = *step->timeline;
        QCOMPARE(timeline.clock(), std::string("wall"));
        QCOMPARE(timeline.schedule().get(), &schedule->compute());
        auto ran = scheduleOf(timeline, 0);
        QVERIFY(ran && *ran == schedule->compute());
        QVERIFY(timeline.begin() >= 0);
        QVERIFY(timeline.end() <= elapsed); // both from the step's start

        QCOMPARE(timeline.spansOf(*timeline.trackOf(0, Lane::Compute)).size(), std::size_t(4));
        QCOMPARE(spanOf(timeline, 0, Lane::Compute, 0).op, makeOp(OpKind::Forward, 0, 0));
        QCOMPARE(timeline.nameOf(spanOf(timeline, 0, Lane::Compute, 2)), std::string("gradient norm"));
        QCOMPARE(spanOf(timeline, 0, Lane::Compute, 3).op, makeOp(OpKind::Optimizer, 0));

        // The wait ends where the copy starts; the link delayed the gradient by 0.1 ms.
        const Span& wait = spanOf(timeline, 1, Lane::Wait, 0);
        const Span& copy = spanOf(timeline, 1, Lane::Receive, 0);
        QCOMPARE(wait.op, makeOp(OpKind::RecvF, 1, 0));
        QVERIFY(wait.duration() >= 200'000);
        QCOMPARE(wait.end, copy.start);
        QVERIFY(copy.end <= spanOf(timeline, 1, Lane::Compute, 0).start);
        const Span& gradient = spanOf(timeline, 1, Lane::Send, 0);
        QCOMPARE(gradient.op, makeOp(OpKind::SendB, 1, 0));
        QVERIFY(gradient.duration() >= 100'000);
        QCOMPARE(gradient.start, spanOf(timeline, 1, Lane::Compute, 1).end);

        for (const Edge& edge : timeline.edges()) {
            if (timeline.spans()[edge.to].op == makeOp(OpKind::Forward, 1, 0)) QCOMPARE(edge.arrival, copy.end);
        }
        // Sleeping is not CPU time.
        for (SpanId id = 0; id < timeline.spans().size(); ++id) {
            if (timeline.spans()[id].op.kind != OpKind::Backward) continue;
            QVERIFY(timeline.cpuTime(id) >= 0);
            QVERIFY(timeline.cpuTime(id) < timeline.spans()[id].duration());
        }
        QVERIFY(step->contention > 0.3);
        QVERIFY(step->contention < 1.0);
    }

    void memoryIsAttachedToOps()
    {
        Recorder recorder(twoRanks(), {});
        recorder.rank(0).memoryChanged(MemoryCategory::Weights, 0, -1, 4096);
        tellStep(recorder);
        QCOMPARE(recorder.rank(0).activationPeak(), Bytes(1000));
        QCOMPARE(recorder.rank(1).activationPeak(), Bytes(500));
        auto step = recorder.finishStep();
        QVERIFY(step);
        const Timeline& timeline = *step->timeline;
        const Span& forward = spanOf(timeline, 0, Lane::Compute, 0);
        const Span& backward = spanOf(timeline, 0, Lane::Compute, 1);
        struct Expected {
            Nanos time;
            MemoryCategory category;
            Bytes delta;
        };
        const std::vector<Expected> expected{
            {0, MemoryCategory::Weights, 4096},
            {forward.start, MemoryCategory::Workspace, 500},
            {forward.end, MemoryCategory::Activations, 1000},
            {forward.end, MemoryCategory::Communication, 64},
            {forward.end, MemoryCategory::Workspace, -500},
            {spanOf(timeline, 1, Lane::Receive, 0).end, MemoryCategory::Communication,
             -64},                                               // the receiver has its copy
            {backward.start, MemoryCategory::Communication, 64}, // the gradient received
            {backward.end, MemoryCategory::Activations, -1000},
            // Held at once with the workspace, and before the backward with the message that was not free yet.
            {forward.start, MemoryCategory::Activations, 1000},
            {forward.end, MemoryCategory::Activations, -1000},
            {forward.start, MemoryCategory::Communication, 64},
            {forward.end, MemoryCategory::Communication, -64},
            {backward.start, MemoryCategory::Communication, 64},
            {backward.end, MemoryCategory::Communication, -64},
        };
        const auto events = timeline.memoryOf(0);
        QCOMPARE(events.size(), expected.size());
        for (const Expected& e : expected) {
            const bool found = std::any_of(events.begin(), events.end(), [&e](const MemoryEvent& event) {
                return event.time == e.time && event.category == e.category && event.delta == e.delta;
            });
            QVERIFY2(found, qPrintable(QString("%1 bytes at %2").arg(e.delta).arg(e.time)));
        }
    }

    void stepsFollowOneAnother()
    {
        Recorder recorder(twoRanks(), {});
        Nanos end = 0;
        for (int i = 0; i < 3; ++i) {
            tellStep(recorder);
            auto step = recorder.finishStep();
            QVERIFY(step);
            QCOMPARE(step->step, i);
            QVERIFY(step->timeline->begin() >= end);
            end = step->timeline->end();
            QCOMPARE(step->timeline->spans().front().step, i);
        }
        QCOMPARE(recorder.steps(), 3);
    }

    void aStoppedStepIsNoTimeline()
    {
        Recorder recorder(twoRanks(), {});
        recorder.beginStep();
        recorder.rank(0).stepBegin();
        recorder.rank(0).opBegin(makeOp(OpKind::Forward, 0, 0), 0);
        recorder.rank(0).opEnd(makeOp(OpKind::Forward, 0, 0), 0);
        auto step = recorder.finishStep();
        QVERIFY(!step);
        QVERIFY2(step.error().message.find("rank 0: recorded 1 of 2 ops") != std::string::npos,
                 step.error().message.c_str());
        recorder.beginStep();
        recorder.rank(1).opBegin(makeOp(OpKind::Backward, 1, 0), 1); // out of order
        QVERIFY(!recorder.finishStep());
        recorder.dropStep();
        tellStep(recorder);
        QVERIFY(recorder.finishStep());
    }

    void unknownMessagesAreRefused()
    {
        for (const MessageKey& key : {MessageKey{0, 7, false}, MessageKey{-3, 1, false}, MessageKey{0, 0, false}}) {
            Recorder recorder(twoRanks(), {});
            tellStep(recorder);
            recorder.rank(1).sent(key, 0);
            auto step = recorder.finishStep();
            QVERIFY(!step);
            QVERIFY(step.error().message.find("does not have") != std::string::npos);
        }
    }

    // More events than were expected, and more memory holders in one op than the fast table has.
    void nothingIsLost()
    {
        RankRecorder rank(1);
        const int ops = 5000;
        for (int i = 0; i < ops; ++i) {
            const Op what = makeOp(OpKind::Forward, 0, i);
            rank.opBegin(what, i);
            rank.memoryChanged(MemoryCategory::Activations, 0, i, 8);
            rank.opEnd(what, i);
        }
        const std::vector<RecordedEvent> events = rank.take();
        QCOMPARE(events.size(), std::size_t(3 * ops));
        Bytes sum = 0;
        for (const RecordedEvent& event : events) {
            if (event.kind == EventKind::MemoryAtEnd) sum += event.value;
        }
        QCOMPARE(sum, Bytes(8 * ops));
        QVERIFY(rank.take().empty());

        rank.opBegin(makeOp(OpKind::WeightGrad, 0, 0), 0);
        for (int repeat = 0; repeat < 2; ++repeat) {
            for (int i = 0; i < 100; ++i) rank.memoryChanged(MemoryCategory::Activations, 0, i, -8);
        }
        rank.opEnd(makeOp(OpKind::WeightGrad, 0, 0), 0);
        std::map<int, Bytes> byMicrobatch;
        for (const RecordedEvent& event : rank.take()) {
            if (event.kind == EventKind::MemoryAtEnd) byMicrobatch[event.microbatch] += event.value;
        }
        QCOMPARE(byMicrobatch.size(), std::size_t(100));
        for (const auto& [microbatch, bytes] : byMicrobatch) QCOMPARE(bytes, Bytes(-16));
    }

    // A copied message is not the op's CPU time; without the CPU clock it is unknown.
    void cpuTimeIsTheOpsOwn()
    {
        const auto burn = [](Nanos cpu) {
            const Nanos until = threadCpuNow() + cpu;
            while (threadCpuNow() < until) {
            }
        };
        for (const bool threadCpu : {true, false}) {
            RankRecorder rank(16, threadCpu);
            rank.stepBegin();
            burn(2'000'000);
            rank.receiveBegin({0, 1, false});
            burn(2'000'000);
            rank.receiveEnd({0, 1, false}, 4);
            std::vector<Nanos> around{threadCpuNow()}; // an op takes no more than what lies around it
            rank.opBegin(makeOp(OpKind::Forward, 1, 0), 0);
            burn(500'000);
            rank.opEnd(makeOp(OpKind::Forward, 1, 0), 0);
            around.push_back(threadCpuNow());
            rank.opBegin(makeOp(OpKind::Backward, 1, 0), 1);
            burn(700'000);
            rank.opEnd(makeOp(OpKind::Backward, 1, 0), 1);
            around.push_back(threadCpuNow());
            constexpr Nanos own = 1'000'000; // what two readings may be apart; the message took 2 ms
            std::vector<Nanos> cpu;
            for (const RecordedEvent& event : rank.take()) {
                if (event.kind == EventKind::OpBegin || event.kind == EventKind::OpEnd) cpu.push_back(event.value);
            }
            QCOMPARE(cpu.size(), std::size_t(4));
            if (threadCpu) {
                QVERIFY(cpu[1] - cpu[0] >= 500'000 && cpu[1] - cpu[0] <= around[1] - around[0] + own);
                QVERIFY(cpu[3] - cpu[2] >= 700'000 && cpu[3] - cpu[2] <= around[2] - around[1] + own);
            } else {
                QCOMPARE(cpu, std::vector<Nanos>(4, -1));
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestRecorder)
#include "tst_recorder.moc"
