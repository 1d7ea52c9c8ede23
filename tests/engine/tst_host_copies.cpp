// OFFLOAD and RELOAD for real: every schedule trains to the same bits with its activations on the host meanwhile,
// copies are where the rules have them, less memory is enough, and what does not fit or is stopped ends in words.
#include <QTest>

#include <algorithm>
#include <map>
#include <thread>
#include <unordered_map>

#include "engine/saved/saved_training.h"
#include "process_training.h"
#include "schedules/library/variants.h"
#include "schedules/model/offload.h"
#include "schedules/model/recompute.h"
#include "schedules/timeline/host_memory.h"
#include "schedules/timeline/timeline_of.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

TrainingOptions tiny(int layers = 4, ClockMode clock = ClockMode::Virtual)
{
    TrainingOptions options = fakeOptions(clock);
    options.backend = "cpu";
    options.workload = test::gpt({layers, 16, 2, 8, 256});
    return options;
}

Schedule offloaded(const Schedule& schedule, const char* rule = "all")
{
    return withOffloads(schedule, parseOffload(rule).value());
}

struct Ran {
    std::vector<double> losses;
    std::vector<std::vector<float>> gradients;
    std::map<std::string, SavedTraining::Tensor> state;
    std::shared_ptr<const Timeline> last;
    std::vector<Bytes> peaks; // of activations
    std::string error;
};

Ran run(const Schedule& schedule, const TrainingOptions& options, int steps = 2)
{
    Ran out;
    auto training = trainingOf(schedule, options);
    if (!training) {
        out.error = training.error().message;
        return out;
    }
    (*training)->keepGradients(true);
    for (int i = 0; i < steps; ++i) {
        auto outcome = (*training)->step({});
        if (!outcome) {
            out.error = outcome.error().message;
            return out;
        }
        out.losses.push_back(outcome->loss);
        out.last = outcome->timeline;
    }
    out.gradients = (*training)->lastGradients();
    out.peaks = (*training)->peak(MemoryCategory::Activations);
    out.state = (*training)->saved().value().tensors;
    return out;
}

QString differenceOf(const Ran& plain, const Ran& moved)
{
    if (!plain.error.empty() || !moved.error.empty()) return QString::fromStdString(plain.error + moved.error);
    if (plain.losses != moved.losses) return "losses differ";
    if (plain.gradients != moved.gradients) return "gradients differ";
    for (const auto& [name, tensor] : plain.state)
        if (moved.state.at(name).numbers != tensor.numbers) return QString::fromStdString(name + " differs");
    return {};
}

int copiesIn(const Schedule& schedule)
{
    int copies = 0;
    for (const auto& list : schedule.order)
        for (const Op& op : list) copies += isCopy(op.kind) ? 1 : 0;
    return copies;
}

std::vector<Span> spansOn(const Timeline& timeline, int rank, Lane lane)
{
    const Track* track = timeline.trackOf(rank, lane);
    if (track == nullptr) return {};
    const auto spans = timeline.spansOf(*track);
    return {spans.begin(), spans.end()};
}

// "": each backward starts behind its RELOAD, this behind its OFFLOAD, this behind its forward; on one queue no two
// copies of a rank overlap.
QString orderOf(const Timeline& timeline, bool oneQueue)
{
    for (int rank = 0; rank < timeline.ranks(); ++rank) {
        std::unordered_map<Op, Span> forwards, outs, ins;
        std::vector<Span> copies;
        for (const Span& span : spansOn(timeline, rank, Lane::CopyOut)) outs[asForward(span.op)] = span;
        for (const Span& span : spansOn(timeline, rank, Lane::CopyIn)) ins[asForward(span.op)] = span;
        for (const auto* side : {&outs, &ins})
            for (const auto& [cell, span] : *side) copies.push_back(span);
        if (outs.size() != ins.size()) return QString("rank %1: not every offload is reloaded").arg(rank);
        for (const Span& span : spansOn(timeline, rank, Lane::Compute)) {
            if (isForward(span.op.kind)) forwards[span.op] = span;
            const auto in = ins.find(asForward(span.op));
            if (!isForward(span.op.kind) && isCompute(span.op.kind) && in != ins.end() && span.start < in->second.end)
                return QString("%1 starts before its reload has ended").arg(toText(span.op).c_str());
        }
        for (const auto& [cell, in] : ins) {
            if (in.start < outs.at(cell).end) return QString("%1 starts early").arg(toText(in.op).c_str());
            if (const auto forward = forwards.find(cell);
                forward != forwards.end() && outs.at(cell).start < forward->second.end)
                return QString("%1 starts before its forward has ended").arg(toText(outs.at(cell).op).c_str());
        }
        std::sort(copies.begin(), copies.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
        for (std::size_t i = 1; oneQueue && i < copies.size(); ++i)
            if (copies[i].start < copies[i - 1].end) return QString("rank %1: copies overlap").arg(rank);
    }
    return {};
}

Bytes onHost(const Timeline& timeline, int rank)
{
    double most = 0;
    for (const Counter& counter : timeline.counters())
        if (counter.rank == rank && counter.name == hostMemoryCounter)
            for (const CounterSample& sample : counter.samples) most = std::max(most, sample.value);
    return static_cast<Bytes>(most);
}

} // namespace

class TestHostCopies : public QObject {
    Q_OBJECT

private slots:
    void everySchedule_data()
    {
        QTest::addColumn<QString>("name");
        for (const ScheduleInfo& info : allSchedules())
            for (const std::string& name : variantsOf(info))
                QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
    void everySchedule()
    {
        QFETCH(QString, name);
        static int number = 0;
        const auto schedule = makeOnNearShape(name.toStdString(), {2, 4});
        QVERIFY(schedule);
        for (const char* rule : {"all", "all:ahead=0", "longest:ahead=2"}) {
            TrainingOptions options = tiny(std::max(4, schedule->stages));
            if (++number % 2 == 0) options.clock = ClockMode::Wall;
            options.links.copies.fullDuplex = number % 3 == 0;
            const Schedule moved = offloaded(*schedule, rule);
            const Ran with = run(moved, options);
            const QString differs = differenceOf(run(*schedule, options), with);
            QVERIFY2(differs.isEmpty(), qPrintable(QString(rule) + ": " + differs));
            const QString order = orderOf(*with.last, !options.links.copies.fullDuplex);
            QVERIFY2(order.isEmpty(), qPrintable(QString(rule) + ": " + order));
            int spans = 0;
            for (int rank = 0; rank < moved.ranks; ++rank)
                for (const Lane lane : {Lane::CopyOut, Lane::CopyIn})
                    spans += static_cast<int>(spansOn(*with.last, rank, lane).size());
            QCOMPARE(spans, copiesIn(moved));
        }
    }

    void recomputedInputsMove()
    {
        const Schedule plain = librarySchedule("1f1b", 4, 8);
        const Schedule recomputed = withRecompute(plain, std::vector<bool>(4, true));
        const Schedule moved = offloaded(recomputed);
        QVERIFY(copiesIn(moved) > 0);
        const QString differs = differenceOf(run(recomputed, tiny()), run(moved, tiny()));
        QVERIFY2(differs.isEmpty(), qPrintable(differs));
    }

    // What a rank holds, and what its host does, by the allocators' own counts.
    void lessMemoryIsEnough()
    {
        const Schedule plain = librarySchedule("gpipe", 1, 6);
        const Schedule moved = offloaded(plain, "all:ahead=0");
        for (const ClockMode clock : {ClockMode::Virtual, ClockMode::Wall}) {
            const Ran whole = run(plain, tiny(4, clock));
            const auto runs = [&](const Schedule& schedule, Bytes limit) {
                TrainingOptions options = tiny(4, clock);
                options.rankMemory = {limit};
                const Ran out = run(schedule, options);
                return out.error.empty() && out.losses == whole.losses;
            };
            Bytes least = 0, enough = Bytes{64} << 20; // of the plain lists
            while (enough - least > 1024) ((runs(plain, (least + enough) / 2) ? enough : least) = (least + enough) / 2);
            const Bytes activation = whole.peaks[0] / 6;
            QVERIFY2(runs(moved, enough - 2 * activation),
                     qPrintable(QString("%1 bytes").arg(enough - 2 * activation)));
            QVERIFY(!runs(plain, enough - 2 * activation)); // without copies it is not
        }
        const Ran with = run(moved, tiny());
        QVERIFY(onHost(*with.last, 0) > 0);
        TrainingOptions options = tiny();
        options.hostMemory = {onHost(*with.last, 0)};
        QVERIFY2(run(moved, options).error.empty(), run(moved, options).error.c_str());
        options.hostMemory = {1000};
        const std::string error = run(moved, options).error;
        QVERIFY2(error.find("OFFLOAD") != std::string::npos &&
                     error.find("over the limit of 1000") != std::string::npos,
                 error.c_str());
    }

    // Emulated: a copy takes as long as its bytes need at the given speed, on both clocks, and the backward waits.
    void slowCopiesTakeTheirTime()
    {
        for (const ClockMode clock : {ClockMode::Virtual, ClockMode::Wall}) {
            TrainingOptions options = tiny(4, clock);
            options.links.copies = {.outBytesPerSecond = 20e6, .inBytesPerSecond = 10e6, .latency = 100'000};
            const Schedule moved = offloaded(librarySchedule("1f1b", 2, 4), "all:ahead=0");
            const Ran with = run(moved, options);
            QVERIFY2(with.error.empty(), with.error.c_str());
            const QString order = orderOf(*with.last, true);
            QVERIFY2(order.isEmpty(), qPrintable(order));
            const auto outs = spansOn(*with.last, 0, Lane::CopyOut), ins = spansOn(*with.last, 0, Lane::CopyIn);
            QVERIFY(!outs.empty());
            for (const auto& [spans, out] : {std::pair(&outs, true), std::pair(&ins, false)})
                for (const Span& span : *spans) {
                    Bytes bytes = 0; // as the rank's memory changes
                    for (const MemoryEvent& event : with.last->memoryOf(0))
                        if (event.category == MemoryCategory::Activations && event.microbatch == span.op.microbatch &&
                            event.stage == span.op.stage && event.time == (out ? span.end : span.start))
                            bytes += std::abs(event.delta);
                    QVERIFY2(bytes > 0, toText(span.op).c_str());
                    QVERIFY(span.duration() >= options.links.copies.duration(out, bytes));
                }
        }
    }

    void aStopLeavesNothing()
    {
        TrainingOptions options = tiny(4, ClockMode::Wall);
        options.links.copies = {.outBytesPerSecond = 1e4, .inBytesPerSecond = 1e4};
        auto training = trainingOf(offloaded(librarySchedule("1f1b", 2, 4), "all:ahead=0"), options);
        QVERIFY(training);
        std::stop_source stop;
        std::thread later([&stop] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            stop.request_stop();
        });
        const auto outcome = (*training)->step(stop.get_token());
        later.join();
        QVERIFY(!outcome);
        QCOMPARE(outcome.error().code, ErrorCode::Cancelled);
    }

    void ofProcesses()
    {
        const Schedule plain = librarySchedule("1f1b", 4, 8);
        const Schedule moved = offloaded(plain);
        const TrainingOptions options = fakeOptions(ClockMode::Wall);
        std::vector<double> there, here;
        int spans = 0;
        const ProcessFaults faults = trainInProcesses(2, moved, options, {}, [&](Training& training) {
            for (int i = 0; i < 2; ++i)
                if (auto outcome = training.step({})) {
                    there.push_back(outcome->loss);
                    spans = static_cast<int>(spansOn(*outcome->timeline, 3, Lane::CopyIn).size()) +
                            static_cast<int>(spansOn(*outcome->timeline, 0, Lane::CopyIn).size());
                }
        });
        QVERIFY2(faults.leader.empty() && faults.served.empty(), faults.leader.c_str());
        auto alone = fakeTraining(plain, options);
        QVERIFY(alone);
        for (int i = 0; i < 2; ++i) here.push_back((*alone)->step({}).value().loss);
        QCOMPARE(there, here);
        QVERIFY(spans > 0);
    }

    void whatCantBeMoved()
    {
        Schedule cut = librarySchedule("1f1b", 1, 2);
        cut.order[0] = {makeForward(0, 0), makeForward(0, 1)};
        Op half = makeOp(OpKind::Offload, 0, 0);
        half.half = 1;
        Op back = makeOp(OpKind::Reload, 0, 0);
        back.half = 1;
        cut.order[0].insert(cut.order[0].begin() + 1, half);
        cut.order[0].insert(cut.order[0].end(), {back, makeBackward(0, 0), makeBackward(0, 1)});
        const Ran refused = run(cut, tiny(), 1);
        QVERIFY2(!refused.error.empty(), "an offload of half a forward is refused");
    }
};

QTEST_GUILESS_MAIN(TestHostCopies)
#include "tst_host_copies.moc"
