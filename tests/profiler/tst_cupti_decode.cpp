// Decoding with the real cuptiActivityGetNextRecord on buffers filled by hand, and the dump of such buffers. No driver
// is needed.
#include <QTest>

#include <fstream>

#include "cupti_buffer.h"
#include "profiler/cupti/module/cupti_decode.h"

using namespace stagewright;
using namespace stagewright::cupti;
using stagewright::test::CuptiBuffer;

namespace {

// One record of every kind that is read.
CuptiBuffer everyKind()
{
    CuptiBuffer buffer;
    buffer.externalId(41, 0x8000000000000005u, 1);
    buffer.api(41, 1'000, 1'500, 77);
    buffer.kernel(41, 2'000, 5'000, "_Z4gemmPf");
    buffer.copy(42, 3'000, 3'600, 4'096);
    CUpti_ActivityMemcpyPtoP4 peer;
    std::memset(&peer, 0, sizeof peer);
    peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    peer.bytes = 99;
    peer.start = 10;
    peer.end = 20;
    peer.correlationId = 43;
    buffer.add(peer);
    CUpti_ActivityMemset4 memset;
    std::memset(&memset, 0, sizeof memset);
    memset.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    memset.bytes = 64;
    memset.start = 30;
    memset.end = 31;
    memset.correlationId = 44;
    buffer.add(memset);
    CUpti_ActivitySynchronization2 sync;
    std::memset(&sync, 0, sizeof sync);
    sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    sync.start = 50;
    sync.end = 60;
    sync.contextId = 2;
    sync.streamId = 7;
    sync.returnValue = 1;
    buffer.add(sync);
    CUpti_ActivityOverhead3 overhead;
    std::memset(&overhead, 0, sizeof overhead);
    overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    overhead.objectId.pt.threadId = 77;
    overhead.start = 70;
    overhead.end = 90;
    buffer.add(overhead);
    CUpti_ActivityContext3 context;
    std::memset(&context, 0, sizeof context);
    context.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
    context.contextId = 2;
    context.deviceId = 1;
    context.isGreenContext = 1;
    context.numMultiprocessors = 32;
    buffer.add(context);
    CUpti_ActivityStream stream;
    std::memset(&stream, 0, sizeof stream);
    stream.kind = CUPTI_ACTIVITY_KIND_STREAM;
    stream.contextId = 2;
    stream.streamId = 7;
    buffer.add(stream);
    CUpti_ActivityCudaEvent2 event;
    std::memset(&event, 0, sizeof event);
    event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    event.streamId = 7;
    event.deviceTimestamp = 1234;
    buffer.add(event);
    buffer.api(45, 100, 120, 78, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
    return buffer;
}

} // namespace

class TestCuptiDecode : public QObject {
    Q_OBJECT

private slots:
    void readsEveryKind()
    {
        CuptiBuffer buffer = everyKind();
        GpuTrace trace;
        decodeBuffer(buffer.data(), buffer.size(), trace);
        QCOMPARE(trace.records.size(), std::size_t(12));
        QCOMPARE(trace.damagedBuffers + trace.unknownRecords, std::int64_t(0));
        const auto of = [&trace](GpuRecordKind kind) {
            for (const GpuRecord& record : trace.records)
                if (record.kind == kind) return record;
            return GpuRecord{};
        };
        const GpuRecord id = of(GpuRecordKind::ExternalId);
        QVERIFY(id.correlation == 41 && id.value == 0x8000000000000005u &&
                id.detail == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1);
        const GpuRecord api = of(GpuRecordKind::RuntimeApi);
        QVERIFY(api.start == 1'000 && api.end == 1'500 && api.stream == 77 && api.flags == GpuLaunches);
        QVERIFY(trace.records.back().flags == 0); // a synchronization launches nothing
        const GpuRecord kernel = of(GpuRecordKind::Kernel);
        QVERIFY(kernel.start == 2'000 && kernel.end == 5'000 && kernel.device == 1 && kernel.context == 2 &&
                kernel.stream == 7);
        QVERIFY(kernel.grid[0] == 132 && kernel.grid[1] == 2 && kernel.block[0] == 256 && kernel.registers == 168);
        QVERIFY(kernel.sharedBytes == 201'024 && kernel.graphNode == 9);
        QCOMPARE(trace.names[kernel.name], std::string("_Z4gemmPf"));
        const GpuRecord copy = of(GpuRecordKind::Copy);
        QVERIFY(copy.value == 4'096 && copy.correlation == 42 && workName(trace, copy) == "copy within the device");
        QVERIFY(of(GpuRecordKind::PeerCopy).value == 99 && of(GpuRecordKind::Memset).value == 64);
        const GpuRecord sync = of(GpuRecordKind::Synchronization);
        QVERIFY(sync.detail == 3 && sync.flags == GpuFailed && sync.stream == 7);
        const GpuRecord overhead = of(GpuRecordKind::Overhead);
        QVERIFY(overhead.stream == 77 && trace.names[overhead.name] == "tracing: buffer flush");
        const GpuRecord context = of(GpuRecordKind::Context);
        QVERIFY(context.flags == GpuGreenContext && context.value == 32);
        QCOMPARE(of(GpuRecordKind::Event).value, std::uint64_t(1234));
    }

    // cuBLASLt asks for memsets of no bytes, which leave no other record: they are not missed.
    void aMemsetNeedNotHaveWork()
    {
        CuptiBuffer buffer;
        buffer.api(1, 10, 20, 7, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020)
            .api(2, 30, 40, 7, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020);
        GpuTrace trace;
        decodeBuffer(buffer.data(), buffer.size(), trace);
        QCOMPARE(trace.records.size(), std::size_t(2));
        QVERIFY(trace.records[0].flags == 0 && trace.records[0].isApi() && trace.records[1].flags == GpuLaunches);
    }

    void cuptiTakesTheSameBytesARecord()
    {
        CuptiBuffer buffer = everyKind();
        CUpti_Activity* record = nullptr;
        std::size_t at = 0;
        while (cuptiActivityGetNextRecord(buffer.data(), buffer.size(), &record) == CUPTI_SUCCESS) {
            QCOMPARE(static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(record) - buffer.data()), at);
            at += recordBytes(record->kind);
        }
        QCOMPARE(at, buffer.size());
    }

    void emptyAndDamagedBuffersAreCounted()
    {
        GpuTrace trace;
        CuptiBuffer buffer = everyKind();
        decodeBuffer(buffer.data(), 0, trace);
        QVERIFY(trace.records.empty() && trace.damagedBuffers == 0);
        CUpti_Activity invalid;
        std::memset(&invalid, 0, sizeof invalid);
        buffer.add(invalid); // the rest is of no kind
        buffer.bytes().resize((buffer.size() + 64) / 8 * 8);
        decodeBuffer(buffer.data(), buffer.size(), trace);
        QCOMPARE(trace.records.size(), std::size_t(12));
        QCOMPARE(trace.damagedBuffers, std::int64_t(1));
    }

    void aDumpReplaysTheBuffer()
    {
        CuptiBuffer buffer = everyKind();
        buffer.kernel(50, 6'000, 7'000, "_Z4gemmPf").kernel(51, 8'000, 9'000, "").kernel(52, 8'500, 9'000, "gemm");
        GpuTrace expected;
        decodeBuffer(buffer.data(), buffer.size(), expected);
        CuptiDump dump;
        QCOMPARE(dumpBuffer(buffer.data(), buffer.size(), dump), buffer.size());
        QCOMPARE(dump.strings, std::string("\0_Z4gemmPf\0gemm\0", 16)); // each once
        const std::string bytes = writeCuptiDump(dump);
        const auto read = readCuptiDump(bytes);
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        QVERIFY(*read == dump);
        const auto trace = decodeDump(*read);
        QVERIFY2(trace, trace ? "" : trace.error().message.c_str());
        QVERIFY(trace->records == expected.records);
        QVERIFY(trace->names == expected.names);
    }

    void aDumpHoldsNoAddress()
    {
        CuptiBuffer one;
        CuptiBuffer other;
        const std::string name = "kernel";
        const std::string same = "kernel";
        one.kernel(1, 2, 3, name.c_str());
        other.kernel(1, 2, 3, same.c_str());
        CuptiDump first;
        CuptiDump second;
        dumpBuffer(one.data(), one.size(), first);
        dumpBuffer(other.data(), other.size(), second);
        QVERIFY(writeCuptiDump(first) == writeCuptiDump(second));
    }

    void anotherVersionIsRefused()
    {
        CuptiDump dump;
        dump.cuptiVersion = 120'000;
        const auto trace = decodeDump(dump);
        QVERIFY(!trace);
        QVERIFY(trace.error().message.find("120000") != std::string::npos &&
                trace.error().message.find("130001") != std::string::npos);
        QVERIFY(!trace.error().remedy.empty());
        QVERIFY(checkVersion(headerVersion));
        QVERIFY(!checkVersion(headerVersion + 1));
    }

    void whatDoesNotFitIsRefused()
    {
        CuptiBuffer buffer = everyKind();
        CuptiDump whole;
        dumpBuffer(buffer.data(), buffer.size(), whole);
        const std::string bytes = writeCuptiDump(whole);
        for (std::size_t size = 0; size < bytes.size(); ++size)
            QVERIFY(!readCuptiDump(std::string_view(bytes).substr(0, size)));
        QVERIFY(!readCuptiDump(bytes + "x"));
        CuptiDump cut = whole;
        cut.buffers[0].resize(cut.buffers[0].size() - 8);
        QVERIFY(!decodeDump(cut));
        CuptiDump name = whole;
        name.strings.assign(1, '\0'); // the kernel's name is gone
        const auto refused = decodeDump(name);
        QVERIFY(!refused);
        QVERIFY(refused.error().message.find("strings") != std::string::npos);
    }

    // Kept so that the dump reader's fuzz target and the replay have an input; rewritten with --write-corpus.
    void theCorpusIsOfThisVersion()
    {
        CuptiBuffer buffer = everyKind();
        CuptiDump dump;
        dumpBuffer(buffer.data(), buffer.size(), dump);
        const std::string path = STAGEWRIGHT_SOURCE_DIR "/tests/data/cupti/every_kind.cuptidump";
        if (qEnvironmentVariableIsSet("STAGEWRIGHT_WRITE_CORPUS"))
            std::ofstream(path, std::ios::binary) << writeCuptiDump(dump);
        std::ifstream file(path, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        const auto read = readCuptiDump(bytes);
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        if (read->cuptiVersion != headerVersion) QSKIP("the corpus is of another CUPTI");
        QVERIFY(*read == dump);
    }
};

QTEST_GUILESS_MAIN(TestCuptiDecode)
#include "tst_cupti_decode.moc"
