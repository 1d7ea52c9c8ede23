// Correlation of GPU records with ops: synthetic records of a real schedule's step, in any order, with halves missing,
// stamps zero, ids wrapped and doubled.
#include <QTest>

#include <algorithm>
#include <random>

#include "profiler/cupti/correlate.h"
#include "profiler/cupti/device_times.h"
#include "profiler/cupti/external_id.h"
#include "profiler/cupti/trace_facts.h"
#include "profiler/record/step_timeline.h"
#include "profiler/recorder.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"

using namespace stagewright;

namespace {

constexpr Nanos origin = 500'000'000'000; // of the record, on CLOCK_MONOTONIC
constexpr Nanos unit = 100'000;           // an op on the device
constexpr Nanos launchTime = 2'000;       // an op on the CPU

// One step of 1F1B as two devices might have run it: each op is two kernels with a gap of 1 µs between them;
// activations go by copies, gradients by NCCL kernels, whose receiver is posted 5 µs before the sender.
struct Recording {
    StepRecord record;
    GpuTrace trace;
    std::vector<std::vector<DeviceInterval>> expected; // of ops
    std::vector<DeviceInterval> sends;
    std::uint32_t correlation = 0xfffffff0u; // wraps on the way

    void api(Nanos start, std::uint32_t thread, bool launches = true)
    {
        GpuRecord record_;
        record_.kind = GpuRecordKind::RuntimeApi;
        record_.start = origin + start;
        record_.end = origin + start + 300;
        record_.correlation = correlation;
        record_.stream = thread;
        record_.flags = launches ? GpuLaunches : 0;
        trace.records.push_back(record_);
    }
    void id(std::uint64_t value, std::uint32_t stack = 3)
    {
        GpuRecord record_;
        record_.kind = GpuRecordKind::ExternalId;
        record_.value = value;
        record_.correlation = correlation;
        record_.detail = stack;
        trace.records.push_back(record_);
    }
    void work(GpuRecordKind kind, Nanos start, Nanos end, std::uint32_t stream, const char* name = "")
    {
        GpuRecord record_;
        record_.kind = kind;
        record_.start = origin + start;
        record_.end = origin + end;
        record_.correlation = correlation;
        record_.context = 1;
        record_.stream = stream;
        record_.detail = 8;
        record_.name = GpuNames(trace.names).intern(name);
        trace.records.push_back(record_);
    }
};

Recording recorded(int step = 7)
{
    Recording r;
    const Schedule schedule = *makeSchedule("1f1b", Shape(2, 4));
    r.record.schedule = *CheckedSchedule::of(schedule);
    r.record.step = step;
    r.record.begin = 1'000;
    r.record.ops.resize(2);
    r.record.memory.resize(2);
    r.expected.resize(2);
    const MessageNumbers numbers = *MessageNumbers::of(*r.record.schedule);

    CostModel costs;
    const std::vector<Nanos> durations(schedule.opCount(), unit);
    const SimResult placed = *place(schedule, durations, Links{}, std::vector<Bytes>(2, 0));
    for (int rank = 0; rank < 2; ++rank) {
        const auto row = static_cast<std::size_t>(rank);
        const auto stream = static_cast<std::uint32_t>(20 + rank);
        for (std::size_t i = 0; i < schedule.order[row].size(); ++i) {
            const Op op = schedule.order[row][i];
            const Nanos cpu = 1'000 + static_cast<Nanos>(i) * launchTime;
            r.record.ops[row].push_back({op, static_cast<std::int32_t>(i), cpu, cpu + launchTime, 1'500});
            const Nanos begin = 50'000 + placed.start[placed.indexOf(rank, i)] * 2;
            const std::uint64_t id = pack({ExternalRole::Op, step, rank, static_cast<int>(i)});
            for (int piece = 0; piece < 2; ++piece) {
                ++r.correlation;
                r.id(id);
                r.api(cpu + 100 + piece * 500, 900 + stream);
                r.work(GpuRecordKind::Kernel, begin + piece * (unit / 2 + 1'000),
                       begin + unit / 2 + piece * (unit / 2 + 1'000), stream,
                       piece == 0 ? "_Z4gemmILi128EEvPKfPf" : "_Z4geluPKfPf");
            }
            r.expected[row].push_back({begin, begin + unit + 1'000});
        }
        ++r.correlation;
        r.id(pack({ExternalRole::Optimizer, step, rank, rank}));
        r.api(40'000, 900 + stream);
        r.work(GpuRecordKind::Kernel, 9'000'000, 9'010'000, stream, "adamw");
        r.record.ops[row].push_back({makeOp(OpKind::Optimizer, rank), -1, 40'000, 41'000, 900});
        r.expected[row].push_back({9'000'000, 9'010'000});
    }
    for (int j = 0; j < 4; ++j) {
        for (const bool gradient : {false, true}) {
            RecordedMessage message;
            message.key = {j, static_cast<std::uint16_t>(gradient ? 0 : 1), gradient};
            message.fromRank = gradient ? 1 : 0;
            message.toRank = gradient ? 0 : 1;
            const auto place = [&](int rank, OpKind kind) {
                const auto& order = schedule.order[static_cast<std::size_t>(rank)];
                return static_cast<std::size_t>(std::find(order.begin(), order.end(), makeOp(kind, rank, j)) -
                                                order.begin());
            };
            message.fromOp = place(message.fromRank, gradient ? OpKind::Backward : OpKind::Forward);
            message.toOp = place(message.toRank, gradient ? OpKind::Backward : OpKind::Forward);
            message.sent = message.available = message.takeBegin = message.takeEnd = 30'000;
            const Nanos produced = r.expected[static_cast<std::size_t>(message.fromRank)][message.fromOp].end;
            const std::uint64_t number = numbers(message.key);
            ++r.correlation;
            const std::uint64_t around =
                pack({ExternalRole::Op, step, message.fromRank, static_cast<int>(message.fromOp)});
            r.id(around);
            r.id(pack({ExternalRole::Send, step, 0, 0, number}), 4);
            r.api(20'000 + j, 920u + static_cast<std::uint32_t>(message.fromRank));
            if (!gradient) {
                r.work(GpuRecordKind::Copy, produced + 500, produced + 3'500, 30);
                r.sends.push_back({produced + 500, produced + 3'500});
            } else {
                const char* name = "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE";
                r.work(GpuRecordKind::Kernel, produced + 6'000, produced + 9'000, 31, name);
                r.sends.push_back({produced + 6'000, produced + 9'000});
                ++r.correlation;
                r.id(pack({ExternalRole::Receive, step, 0, 0, number}), 5);
                r.api(20'000 + j, 920u + static_cast<std::uint32_t>(message.toRank));
                r.work(GpuRecordKind::Kernel, produced + 1'000, produced + 9'200, 32, name);
            }
            r.record.messages.push_back(message);
        }
    }
    return r;
}

DeviceStep correlated(const Recording& r)
{
    const auto device = correlate(r.trace, r.record, origin);
    if (!device) qFatal("%s", device.error().message.c_str());
    return *device;
}

std::int64_t trouble(GpuTraceCounts counts)
{
    counts.work = 0;
    return counts.clamped + counts.early + counts.unstamped + counts.reversed + counts.offClock + counts.repeated +
           counts.ambiguous + counts.foreignIds + counts.unowned + counts.launchesWithout + counts.opsWithout +
           counts.halfMessages + counts.overlapping;
}

} // namespace

class TestCorrelate : public QObject {
    Q_OBJECT

private slots:
    void idsKeepWhatTheyCarry()
    {
        std::mt19937_64 random(1);
        for (int i = 0; i < 10'000; ++i) {
            ExternalId id;
            id.role = static_cast<ExternalRole>(1 + random() % 6);
            id.step = static_cast<int>(random() % ExternalId::steps);
            if (id.isMessage()) {
                id.message = random() % ExternalId::messages;
            } else {
                id.rank = static_cast<int>(random() % ExternalId::ranks);
                id.position = static_cast<int>(random() % ExternalId::positions);
            }
            QVERIFY(unpackExternalId(pack(id)) == id);
            id.step += ExternalId::steps; // wraps
            QVERIFY(unpackExternalId(pack(id))->step == id.step - ExternalId::steps);
        }
        QVERIFY(!unpackExternalId(0));
        QVERIFY(!unpackExternalId(12345));             // another tool's
        QVERIFY(!unpackExternalId(~std::uint64_t{0})); // no such role
    }

    void joinsKernelsToOps()
    {
        const Recording r = recorded();
        const DeviceStep device = correlated(r);
        QCOMPARE(trouble(device.counts), 0);
        QCOMPARE(device.counts.work, std::int64_t(2 * 16 + 2 + 4 + 8));
        for (std::size_t rank = 0; rank < 2; ++rank) {
            for (std::size_t i = 0; i < r.expected[rank].size(); ++i) {
                const DeviceOp& op = device.ops[rank][i];
                QVERIFY(op.interval == r.expected[rank][i]);
                const bool listed = r.record.ops[rank][i].position >= 0;
                QCOMPARE(op.pieces, listed ? 2 : 1);
                QCOMPARE(op.gaps(), listed ? Nanos(1'000) : Nanos(0));
                QCOMPARE(op.launched, listed ? r.record.ops[rank][i].begin + 100 : Nanos(40'000));
            }
        }
    }

    void splitsWaitFromTransferByBothEnds()
    {
        const Recording r = recorded();
        const DeviceStep device = correlated(r);
        for (std::size_t i = 0; i < r.record.messages.size(); ++i) {
            const DeviceMessage& message = device.messages[i];
            QVERIFY(message.send == r.sends[i]);
            QCOMPARE(message.sendWait, Nanos(0));
            QCOMPARE(message.transferBegin, r.sends[i].begin);
            QCOMPARE(message.receiveWait, r.record.messages[i].key.gradient ? Nanos(5'000) : Nanos(0));
        }
    }

    void aSenderThatComesFirstWaits()
    {
        Recording r = recorded();
        for (GpuRecord& record : r.trace.records)
            if (record.isWork() && record.stream == 31) record.start -= 5'700; // 700 ns before the receiver
        const DeviceStep device = correlated(r);
        for (std::size_t i = 0; i < r.record.messages.size(); ++i) {
            if (!r.record.messages[i].key.gradient) continue;
            QCOMPARE(device.messages[i].sendWait, Nanos(700));
            QCOMPARE(device.messages[i].receiveWait, Nanos(0));
        }
    }

    void aMessageThatIsBufferedBetweenMakesNobodyWait()
    {
        Recording r = recorded();
        for (GpuRecord& record : r.trace.records) {
            if (!record.isWork() || record.stream != 32) continue;
            record.start += 20'000;
            record.end += 20'000;
        }
        const DeviceStep device = correlated(r);
        for (std::size_t i = 0; i < r.record.messages.size(); ++i) {
            QCOMPARE(device.messages[i].sendWait + device.messages[i].receiveWait, Nanos(0));
            QCOMPARE(device.messages[i].transferBegin, r.sends[i].begin);
        }
    }

    void orderOfDeliveryDoesNotMatter()
    {
        Recording r = recorded();
        const DeviceStep expected = correlated(r);
        std::mt19937 random(3);
        for (int round = 0; round < 60; ++round) {
            std::shuffle(r.trace.records.begin(), r.trace.records.end(), random);
            if (round % 3 == 0) { // names are numbered in the order of arrival
                GpuTrace other;
                append(other, GpuTrace{{}, {"", "another", "_Z4geluPKfPf"}});
                append(other, r.trace);
                QVERIFY(*correlate(other, r.record, origin) == expected);
            }
            QVERIFY(correlated(r) == expected);
        }
    }

    // Whatever is lost, doubled or damaged, every record is either joined or counted, and intervals only shrink.
    void lossesAreCounted()
    {
        const Recording whole = recorded();
        const DeviceStep full = correlated(whole);
        std::mt19937 random(5);
        for (int round = 0; round < 300; ++round) {
            Recording r = whole;
            std::int64_t unstamped = 0;
            std::int64_t reversed = 0;
            std::int64_t offClock = 0;
            std::int64_t repeated = 0;
            std::vector<GpuRecord> kept;
            for (const GpuRecord& original : whole.trace.records) {
                GpuRecord record = original;
                switch (random() % 24) {
                case 0: // lost; a launch that loses its message's id alone would count as its op's
                    if (record.kind == GpuRecordKind::ExternalId && unpackExternalId(record.value)->isMessage()) break;
                    continue;
                case 1:
                    kept.push_back(record); // delivered twice
                    ++repeated;
                    break;
                case 2:
                    if (!record.isWork()) break;
                    (random() % 2 == 0 ? record.start : record.end) = 0;
                    ++unstamped;
                    break;
                case 3:
                    if (!record.isWork()) break;
                    std::swap(record.start, record.end);
                    ++reversed;
                    break;
                case 4:
                    if (!record.isWork()) break;
                    record.start += 100'000'000'000'000; // as seen where the clock is registered twice
                    record.end += 100'000'000'000'000;
                    ++offClock;
                    break;
                default: break;
                }
                kept.push_back(record);
            }
            std::shuffle(kept.begin(), kept.end(), random);
            r.trace.records = kept;
            const DeviceStep device = correlated(r);
            QCOMPARE(device.counts.unstamped, unstamped);
            QCOMPARE(device.counts.reversed, reversed);
            QCOMPARE(device.counts.repeated, repeated);
            QVERIFY(device.counts.offClock <= offClock); // without its id it is nobody's
            const auto works = std::count_if(kept.begin(), kept.end(), [](const GpuRecord& g) { return g.isWork(); });
            QVERIFY(device.counts.work + device.counts.unowned + unstamped + reversed + offClock <= works);
            for (std::size_t rank = 0; rank < 2; ++rank) {
                for (std::size_t i = 0; i < full.ops[rank].size(); ++i) {
                    const DeviceOp& op = device.ops[rank][i];
                    if (op.pieces == 0) continue;
                    QVERIFY(op.interval.begin >= full.ops[rank][i].interval.begin);
                    QVERIFY(op.interval.end <= full.ops[rank][i].interval.end);
                    QVERIFY(op.gaps() >= 0);
                }
            }
            DeviceStep placed = device;
            placeOnDevice(r.record, placed);
            const auto timeline = timelineOf(r.record);
            QVERIFY2(timeline, timeline ? "" : timeline.error().message.c_str());
        }
    }

    void missingIdsLeaveTheirWorkToNobody()
    {
        Recording r = recorded();
        std::erase_if(r.trace.records, [](const GpuRecord& record) {
            return record.kind == GpuRecordKind::ExternalId &&
                   unpackExternalId(record.value)->role == ExternalRole::Op &&
                   unpackExternalId(record.value)->position == 0 && record.detail == 3;
        });
        const DeviceStep device = correlated(r);
        QCOMPARE(device.counts.opsWithout, std::int64_t(2));
        QVERIFY(device.counts.unowned == 4);
        for (const DeviceWork& work : device.work) QVERIFY(work.rank >= 0); // known from their stream
    }

    void otherStepsAndToolsArePassedOver()
    {
        Recording r = recorded(ExternalId::steps + 3); // wrapped
        const DeviceStep expected = correlated(r);
        QCOMPARE(trouble(expected.counts), 0);
        // Another step that uses the same correlations long after, and another tool's ids.
        Recording other = recorded(4);
        for (GpuRecord& record : other.trace.records) {
            if (record.start != 0) record.start += 5'000'000'000'000;
            if (record.end != 0) record.end += 5'000'000'000'000;
        }
        const std::size_t works =
            static_cast<std::size_t>(std::count_if(other.trace.records.begin(), other.trace.records.end(),
                                                   [](const GpuRecord& record) { return record.isWork(); }));
        append(r.trace, other.trace);
        ++r.correlation;
        r.id(4711);
        DeviceStep device = correlated(r);
        QCOMPARE(device.counts.foreignIds, std::int64_t(1));
        QCOMPARE(device.counts.offClock, static_cast<std::int64_t>(works));
        device.counts.foreignIds = device.counts.offClock = 0;
        QVERIFY(device == expected);
    }

    void twoIdsOfOneLaunchAreToldAndTheLowerCounts()
    {
        Recording r = recorded();
        std::vector<GpuRecord> more;
        for (const GpuRecord& record : r.trace.records) {
            if (record.kind != GpuRecordKind::ExternalId || unpackExternalId(record.value)->role != ExternalRole::Op)
                continue;
            GpuRecord other = record;
            other.value = pack({ExternalRole::Op, 7, 1, 7});
            if (other.value > record.value) more.push_back(other);
        }
        const DeviceStep expected = correlated(r);
        r.trace.records.insert(r.trace.records.begin(), more.begin(), more.end());
        DeviceStep device = correlated(r);
        QCOMPARE(device.counts.ambiguous, static_cast<std::int64_t>(more.size()));
        device.counts.ambiguous = 0;
        QVERIFY(device == expected);
    }

    void startsBeforeTheLaunchAreClampedOrCounted()
    {
        Recording r = recorded();
        int changed = 0;
        for (GpuRecord& record : r.trace.records) {
            if (!record.isApi() || record.stream > 921 || changed == 2) continue;
            const auto work = std::find_if(r.trace.records.begin(), r.trace.records.end(), [&](const GpuRecord& other) {
                return other.isWork() && other.correlation == record.correlation;
            });
            record.start = work->start + (changed == 0 ? 999 : 1'000);
            ++changed;
        }
        const DeviceStep device = correlated(r);
        QCOMPARE(device.counts.clamped, std::int64_t(1));
        QCOMPARE(device.counts.early, std::int64_t(1));
        QVERIFY(device.ops[0][0].interval.begin == r.expected[0][0].begin + 999);
    }

    void theTimelineShowsTheDevice()
    {
        Recording r = recorded();
        DeviceStep device = correlated(r);
        placeOnDevice(r.record, device);
        QCOMPARE(device.counts.overlapping, std::int64_t(0));
        const auto built = timelineOf(r.record);
        QVERIFY2(built, built ? "" : built.error().message.c_str());
        const Timeline& timeline = **built;
        for (int rank = 0; rank < 2; ++rank) {
            const auto ops = timeline.spansOf(*timeline.trackOf(rank, Lane::Compute));
            QCOMPARE(ops.size(), r.expected[static_cast<std::size_t>(rank)].size());
            for (std::size_t i = 0; i < ops.size(); ++i) {
                QCOMPARE(ops[i].start, r.expected[static_cast<std::size_t>(rank)][i].begin);
                QCOMPARE(ops[i].end, r.expected[static_cast<std::size_t>(rank)][i].end);
            }
        }
        QVERIFY(!timeline.hasCpuTime()); // of launching: not the op's
        int launches = 0;
        int collectives = 0;
        for (const Edge& edge : timeline.edges()) {
            if (edge.kind != EdgeKind::Launch) continue;
            ++launches;
            const Track& track = timeline.trackOf(edge.to);
            QCOMPARE(track.rank, timeline.trackOf(edge.from).rank);
            QVERIFY(isDeviceLane(track.lane));
            collectives += track.name.ends_with("collective") ? 1 : 0;
        }
        QCOMPARE(launches, 2 * 16 + 2 + 4 + 8);
        QCOMPARE(collectives, 8);
        const auto kernels = timeline.spansOf(*timeline.trackOf(0, Lane::Kernel));
        QVERIFY(std::any_of(kernels.begin(), kernels.end(),
                            [&](const Span& span) { return timeline.nameOf(span) == "gemm<128>"; }));
    }

    void theRecorderTakesATrace_data()
    {
        QTest::addColumn<bool>("virtualClock");
        QTest::newRow("wall") << false;
        QTest::newRow("virtual") << true;
    }
    void theRecorderTakesATrace()
    {
        QFETCH(bool, virtualClock);
        const auto schedule = *CheckedSchedule::of(*makeSchedule("gpipe", Shape(1, 3)));
        RecorderOptions options;
        options.virtualClock = virtualClock;
        Recorder recorder(schedule, options);
        Recording r;
        TraceFacts facts;
        facts.state = TraceState::Attached;
        for (int step = 0; step < 2; ++step) {
            r.trace = {};
            recorder.beginStep();
            recorder.rank(0).stepBegin();
            const std::vector<Op>& order = schedule->compute().order[0];
            Nanos device = monotonicNow() + 1'000'000;
            for (std::size_t i = 0; i < order.size(); ++i) {
                recorder.rank(0).opBegin(order[i], static_cast<std::int32_t>(i));
                ++r.correlation;
                r.id(pack({ExternalRole::Op, step, 0, static_cast<int>(i)}));
                r.api(monotonicNow() - origin, 5);
                const Nanos length = 10'000 * static_cast<Nanos>(i + 1);
                r.work(GpuRecordKind::Kernel, device - origin, device - origin + length, 20, "gemm");
                device += length + 3'000;
                recorder.rank(0).opEnd(order[i], static_cast<std::int32_t>(i));
            }
            const auto finished = recorder.finishStep(&r.trace, &facts);
            QVERIFY2(finished, finished ? "" : finished.error().message.c_str());
            const Timeline& timeline = *finished->timeline;
            const auto ops = timeline.spansOf(*timeline.trackOf(0, Lane::Compute));
            const auto kernels = timeline.spansOf(*timeline.trackOf(0, Lane::Kernel));
            QCOMPARE(ops.size(), order.size());
            QCOMPARE(kernels.size(), order.size());
            for (std::size_t i = 0; i < ops.size(); ++i) {
                QCOMPARE(ops[i].duration(), 10'000 * static_cast<Nanos>(i + 1));
                QCOMPARE(kernels[i].start, ops[i].start); // on either clock
                QCOMPARE(kernels[i].end, ops[i].end);
                if (i > 0) QCOMPARE(ops[i].start - ops[i - 1].end, virtualClock ? Nanos(0) : Nanos(3'000));
            }
        }
        QCOMPARE(facts.steps, std::int64_t(2));
        QVERIFY(facts.whole());
    }

    void opsWithoutWorkStayInOrder()
    {
        Recording r = recorded();
        r.trace.records.clear();
        DeviceStep device = correlated(r);
        QCOMPARE(device.counts.opsWithout, std::int64_t(16));
        placeOnDevice(r.record, device);
        QVERIFY(timelineOf(r.record));
        QCOMPARE(r.record.ops[0][3].end - r.record.ops[0][3].begin, launchTime); // by their launches on the CPU
    }

    void namesAreReadable()
    {
        QCOMPARE(readableKernelName("_ZN3foo4gemmILi128EEEvPKfPf"), std::string("foo::gemm<128>"));
        QCOMPARE(readableKernelName("void (anonymous namespace)::scale<float>(float*, int)"),
                 std::string("(anonymous namespace)::scale<float>"));
        QCOMPARE(readableKernelName("sm90_xmma_gemm_bf16"), std::string("sm90_xmma_gemm_bf16"));
        QCOMPARE(readableKernelName(std::string(400, 'k')).size(), std::size_t(120));
        QCOMPARE(readableKernelName("_Zbroken"), std::string("_Zbroken"));
        QVERIFY(collectiveOf("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)") ==
                Collective::AllReduce);
        QVERIFY(collectiveOf("_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE") == Collective::SendRecv);
        QVERIFY(collectiveOf("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL") == Collective::ReduceScatter);
        QVERIFY(collectiveOf("all_reduce_of_mine") == Collective::None);
    }

    // Two norms of one stage after the list, and work of a rank that belongs to no op.
    void opsBesideTheListAreToldApart()
    {
        Recording r = recorded();
        const int step = r.record.step;
        for (int n = 0; n < 2; ++n) {
            ++r.correlation;
            r.id(pack({ExternalRole::Norm, step, 1, besidePosition(1, n)}));
            r.api(42'000 + n * 1'000, 921);
            r.work(GpuRecordKind::Kernel, 9'100'000 + n * 20'000, 9'110'000 + n * 20'000, 21, "squares");
            r.record.ops[1].push_back({makeOp(OpKind::ReduceGrad, 1), -1, 42'000 + n * 1'000, 42'900 + n * 1'000, 900});
        }
        ++r.correlation;
        r.id(pack({ExternalRole::Other, step, 1, 0}));
        r.api(46'000, 921);
        r.work(GpuRecordKind::Copy, 9'200'000, 9'201'000, 21);
        ++r.correlation; // made ready before the step began
        r.id(pack({ExternalRole::Other, step, 0, 0}));
        r.api(-10'000, 920);
        r.work(GpuRecordKind::Memset, -9'000, -8'000, 20);
        const DeviceStep device = correlated(r);
        QCOMPARE(trouble(device.counts), std::int64_t(0));
        const std::size_t first = r.record.ops[1].size() - 2;
        QCOMPARE(device.ops[1][first].interval, (DeviceInterval{9'100'000, 9'110'000}));
        QCOMPARE(device.ops[1][first + 1].interval, (DeviceInterval{9'120'000, 9'130'000}));
        const auto others = std::count_if(device.work.begin(), device.work.end(),
                                          [](const DeviceWork& work) { return work.op < 0 && work.message < 0; });
        QCOMPARE(others, std::ptrdiff_t(1));
        const auto other = std::find_if(device.work.begin(), device.work.end(),
                                        [](const DeviceWork& work) { return work.op < 0 && work.message < 0; });
        QVERIFY(other->rank == 1 && other->begin == 9'200'000 && other->lane == Lane::Copy);
    }

    // Both ends of a message requested by one thread, in a group: each kernel carries both ids, and its device
    // identifies its end.
    void groupsOfOneThreadAreTakenApart()
    {
        Recording r = recorded();
        for (GpuRecord& record : r.trace.records) // rank 1 on device 1
            if (record.isWork() && record.stream == 21) record.device = 1;
        const RecordedMessage& message = r.record.messages[1]; // a gradient, from rank 1 to rank 0
        const std::uint64_t number = (*MessageNumbers::of(*r.record.schedule))(message.key);
        std::erase_if(r.trace.records, [&](const GpuRecord& record) {
            const auto id = record.kind == GpuRecordKind::ExternalId ? unpackExternalId(record.value) : std::nullopt;
            return id && id->isMessage() && id->message == number;
        });
        const char* name = "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE";
        for (const std::uint32_t device : {1u, 0u}) {
            ++r.correlation;
            r.id(pack({ExternalRole::Send, r.record.step, 0, 0, number}), 4);
            r.id(pack({ExternalRole::Receive, r.record.step, 0, 0, number}), 5);
            r.api(25'000, 920);
            r.work(GpuRecordKind::Kernel, 5'000'000 + device * 2'000, 5'009'000 + device * 100, 40 + device, name);
            r.trace.records.back().device = device;
        }
        const DeviceStep device = correlated(r);
        QCOMPARE(device.messages[1].send, (DeviceInterval{5'002'000, 5'009'100}));
        QCOMPARE(device.messages[1].receive, (DeviceInterval{5'000'000, 5'009'000}));
        QCOMPARE(device.messages[1].receiveWait, Nanos(2'000));
        QCOMPARE(device.messages[1].sendWait, Nanos(0));
        for (const DeviceWork& work : device.work) {
            if (work.begin == 5'002'000) QCOMPARE(work.rank, 1);
            if (work.begin == 5'000'000) QCOMPARE(work.rank, 0);
        }
    }

    void factsSayWhatIsMissing()
    {
        TraceFacts facts;
        QVERIFY(facts.warnings().empty());
        facts.state = TraceState::Attached;
        facts.detached = true;
        const Recording r = recorded();
        facts.add(r.trace, correlated(r));
        QVERIFY(facts.whole());
        QVERIFY(facts.warnings().empty());
        facts.setCost(std::vector<Nanos>{110, 104, 103}, std::vector<Nanos>{101, 99, 100});
        QCOMPARE(facts.tracedStep, Nanos(104));
        QCOMPARE(facts.untracedStep, Nanos(100));
        QVERIFY(facts.warnings().size() == 1); // 4 %
        GpuTrace lost = r.trace;
        lost.dropped = 12;
        lost.truncated = true;
        facts.add(lost, correlated(r));
        QVERIFY(!facts.whole());
        QCOMPARE(facts.warnings().size(), std::size_t(3));
        const auto pairs = facts.environment();
        const auto has = [&pairs](const char* key, const char* value) {
            return std::find(pairs.begin(), pairs.end(), std::pair<std::string, std::string>(key, value)) !=
                   pairs.end();
        };
        QVERIFY(has("gpu_trace", "incomplete") && has("gpu_trace_dropped", "12") &&
                has("gpu_trace_untraced_step_ns", "100"));
        facts.state = TraceState::Conflict;
        QVERIFY(facts.warnings().front().starts_with("another profiler"));
    }
};

QTEST_GUILESS_MAIN(TestCorrelate)
#include "tst_correlate.moc"
