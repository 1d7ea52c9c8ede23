// The session over a fake CUPTI: order of calls, buffers, caps, losses, conflicts, detaching; and over the real CUPTI
// where there is no driver, loaded as the module.
#include <QTest>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "cupti_buffer.h"
#include "profiler/cupti/gpu_tracer.h"
#include "profiler/cupti/module/cupti_session.h"
#include "profiler/record/clock.h"

using namespace stagewright;
using namespace stagewright::cupti;
using stagewright::test::CuptiBuffer;

namespace {

// What a driver would do with the calls of a session.
struct Driver {
    std::vector<std::string> calls;
    CUpti_BuffersCallbackRequestFunc request = nullptr;
    CUpti_BuffersCallbackCompleteFunc complete = nullptr;
    CUpti_TimestampCallbackFunc timestamp = nullptr;
    std::vector<CUpti_ActivityKind> enabled;
    std::vector<CUpti_CallbackId> runtimeCalls, driverCalls; // recorded
    CUptiResult onSubscribe = CUPTI_SUCCESS;
    CUptiResult onEnable = CUPTI_SUCCESS;
    CUpti_ActivityKind failsAt = CUPTI_ACTIVITY_KIND_INVALID;
    CUptiResult onDisable = CUPTI_SUCCESS;
    std::uint32_t version = CUPTI_API_VERSION;
    std::atomic<std::size_t> dropped{0};
    bool keepsBuffers = false;
    int refused = 0;

    struct Buffer {
        std::uint8_t* bytes;
        std::size_t size;
        std::size_t used;
    };
    std::vector<Buffer> buffers; // filled, not yet given back

    CUptiResult record(std::vector<CUpti_CallbackId>& of, CUpti_CallbackId call, std::uint8_t on)
    {
        if (on != 0)
            of.push_back(call);
        else
            std::erase(of, call);
        return CUPTI_SUCCESS;
    }
    void deliver(CuptiBuffer& content)
    {
        std::uint8_t* bytes = nullptr;
        std::size_t size = 0;
        std::size_t most = 0;
        request(&bytes, &size, &most);
        if (bytes == nullptr) {
            ++refused;
            ++dropped;
            return;
        }
        if (reinterpret_cast<std::uintptr_t>(bytes) % 8 != 0 || size < content.size())
            qFatal("the buffer is not fit to use");
        std::memcpy(bytes, content.data(), content.size());
        buffers.push_back({bytes, size, content.size()});
    }
    void flush()
    {
        if (keepsBuffers) return;
        for (const Buffer& buffer : buffers) complete(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
        buffers.clear();
    }
};
Driver* driver = nullptr;

CuptiFunctions functions()
{
    CuptiFunctions f;
    f.getVersion = [](std::uint32_t* version) {
        *version = driver->version;
        return CUPTI_SUCCESS;
    };
    f.subscribe = [](CUpti_SubscriberHandle* handle, CUpti_CallbackFunc, void*) {
        driver->calls.push_back("subscribe");
        *handle = reinterpret_cast<CUpti_SubscriberHandle>(driver);
        return driver->onSubscribe;
    };
    f.unsubscribe = [](CUpti_SubscriberHandle) {
        driver->calls.push_back("unsubscribe");
        return CUPTI_SUCCESS;
    };
    f.registerTimestamp = [](CUpti_TimestampCallbackFunc function) {
        driver->calls.push_back("timestamp");
        driver->timestamp = function;
        return CUPTI_SUCCESS;
    };
    f.registerBuffers = [](CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
        driver->calls.push_back("buffers");
        driver->request = request;
        driver->complete = complete;
        return CUPTI_SUCCESS;
    };
    f.enable = [](CUpti_ActivityKind kind) {
        driver->calls.push_back("enable");
        if (kind == driver->failsAt) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
        if (driver->onEnable == CUPTI_SUCCESS) driver->enabled.push_back(kind);
        return driver->onEnable;
    };
    f.disable = [](CUpti_ActivityKind kind) {
        driver->calls.push_back("disable");
        std::erase(driver->enabled, kind);
        return driver->onDisable;
    };
    f.enableRuntime = [](CUpti_CallbackId call, std::uint8_t on) {
        return driver->record(driver->runtimeCalls, call, on);
    };
    f.enableDriver = [](CUpti_CallbackId call, std::uint8_t on) {
        return driver->record(driver->driverCalls, call, on);
    };
    f.enableEventTimes = [](std::uint8_t) { return CUPTI_SUCCESS; };
    f.flushAll = [](std::uint32_t) {
        driver->calls.push_back("flush");
        driver->flush();
        return CUPTI_SUCCESS;
    };
    f.droppedRecords = [](CUcontext, std::uint32_t, std::size_t* dropped) {
        *dropped = driver->dropped.exchange(0);
        return CUPTI_SUCCESS;
    };
    f.push = [](CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
        driver->calls.push_back("push " + std::to_string(kind) + " " + std::to_string(id));
        return CUPTI_SUCCESS;
    };
    f.pop = [](CUpti_ExternalCorrelationKind kind, std::uint64_t*) {
        driver->calls.push_back("pop " + std::to_string(kind));
        return CUPTI_SUCCESS;
    };
    return f;
}

bool has(const Driver& d, CUpti_ActivityKind kind)
{
    return std::find(d.enabled.begin(), d.enabled.end(), kind) != d.enabled.end();
}

std::size_t place(const Driver& d, const char* call)
{
    return static_cast<std::size_t>(std::find(d.calls.begin(), d.calls.end(), call) - d.calls.begin());
}

} // namespace

class TestCuptiSession : public QObject {
    Q_OBJECT

private slots:
    void init()
    {
        m_driver = std::make_unique<Driver>();
        driver = m_driver.get();
    }

    void enablesWhatIsNeededInTheRightOrder() // first: the clock is registered once in a process
    {
        CuptiSession session(functions());
        QVERIFY(session.start({}) == StartState::Started);
        QVERIFY(place(*driver, "timestamp") < place(*driver, "enable"));
        QVERIFY(place(*driver, "buffers") < place(*driver, "enable"));
        QVERIFY(has(*driver, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) &&
                has(*driver, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
        QVERIFY(!has(*driver, CUPTI_ACTIVITY_KIND_KERNEL)); // it serialises
        // All that the module, cuBLASLt and NCCL put work on a device with; no other call.
        for (const auto call :
             {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
              CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020,
              CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020})
            QVERIFY(std::ranges::count(driver->runtimeCalls, static_cast<CUpti_CallbackId>(call)) == 1);
        for (const auto call : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async})
            QVERIFY(std::ranges::count(driver->driverCalls, static_cast<CUpti_CallbackId>(call)) == 1);
        QVERIFY(std::ranges::count(
                    driver->runtimeCalls,
                    static_cast<CUpti_CallbackId>(CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020)) == 0);
        const std::int64_t before = monotonicNow();
        const auto now = static_cast<std::int64_t>(driver->timestamp());
        QVERIFY(now >= before && now <= monotonicNow());
        session.push(0, 5);
        session.push(2, 6);
        session.pop(2);
        QCOMPARE(driver->calls[driver->calls.size() - 3], std::string("push 3 5"));
        QCOMPARE(driver->calls[driver->calls.size() - 1], std::string("pop 5"));
        session.stop();
        QVERIFY(session.detached());
        QVERIFY(driver->enabled.empty() && driver->runtimeCalls.empty() && driver->driverCalls.empty());
        QVERIFY(session.start({}) == StartState::Started); // again, in the same process
        QCOMPARE(std::count(driver->calls.begin(), driver->calls.end(), "timestamp"), std::ptrdiff_t(1));
    }

    void takesWhatIsDeliveredInPieces()
    {
        CuptiSession session(functions());
        QVERIFY(session.start({}) == StartState::Started);
        CuptiBuffer first;
        CuptiBuffer second;
        first.externalId(1, 9).api(1, 10, 20, 3).kernel(1, 30, 40, "one");
        second.kernel(2, 50, 60, "two").kernel(3, 50, 60, "one");
        driver->deliver(first);
        driver->deliver(second);
        GpuTrace trace = session.take();
        QCOMPARE(trace.records.size(), std::size_t(5));
        QCOMPARE(trace.names.size(), std::size_t(3));
        QVERIFY(session.take().records.empty()); // each once
        driver->deliver(first);
        session.stop();
        QCOMPARE(session.take().records.size(), std::size_t(3)); // what the last flush brought
        QVERIFY(session.detached());
    }

    void buffersAreUsedAgain()
    {
        CuptiSession session(functions());
        SessionOptions options;
        options.bufferBytes = 4096;
        options.largestBytes = 3 * 4096;
        QVERIFY(session.start(options) == StartState::Started);
        CuptiBuffer content;
        content.kernel(1, 30, 40, "one");
        for (int i = 0; i < 50; ++i) {
            driver->deliver(content);
            QCOMPARE(session.take().records.size(), std::size_t(1));
        }
        QCOMPARE(driver->refused, 0);
    }

    void theCapTruncatesAndIsTold()
    {
        CuptiSession session(functions());
        SessionOptions options;
        options.bufferBytes = 4096;
        options.largestBytes = 3 * 4096;
        QVERIFY(session.start(options) == StartState::Started);
        CuptiBuffer content;
        content.kernel(1, 30, 40, "one");
        for (int i = 0; i < 5; ++i) driver->deliver(content);
        QCOMPARE(driver->refused, 2);
        const GpuTrace trace = session.take();
        QCOMPARE(trace.records.size(), std::size_t(3));
        QVERIFY(trace.truncated);
        QCOMPARE(trace.dropped, std::int64_t(2));
    }

    void anotherProfilerIsAConflict()
    {
        driver->onSubscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
        CuptiSession session(functions());
        QVERIFY(session.start({}) == StartState::Conflict);
        QVERIFY(driver->enabled.empty());
        QVERIFY(session.reason().find("39") != std::string::npos);
        QCOMPARE(place(*driver, "unsubscribe"), driver->calls.size()); // it is the other's
        driver->onSubscribe = CUPTI_SUCCESS;
        QVERIFY(session.start({}) == StartState::Started); // once it is gone
    }

    void whatFailsHalfWayLeavesNothingEnabled()
    {
        driver->failsAt = CUPTI_ACTIVITY_KIND_MEMSET;
        CuptiSession session(functions());
        QVERIFY(session.start({}) == StartState::Failed);
        QVERIFY(driver->enabled.empty());
        QVERIFY(place(*driver, "unsubscribe") < driver->calls.size());
        QVERIFY2(session.reason().find("administrator") != std::string::npos, session.reason().c_str());
        QVERIFY(!session.started());
    }

    void anotherVersionIsRefused()
    {
        driver->version = 120'000;
        CuptiSession session(functions());
        QVERIFY(session.start({}) == StartState::Failed);
        QVERIFY(session.reason().find("120000") != std::string::npos);
        QVERIFY(driver->calls.empty());
    }

    void twoAtOnceAreRefused()
    {
        CuptiSession one(functions());
        CuptiSession two(functions());
        QVERIFY(one.start({}) == StartState::Started);
        QVERIFY(two.start({}) == StartState::Failed);
        one.stop();
        QVERIFY(two.start({}) == StartState::Started);
    }

    void whatStaysBehindIsNotDetached()
    {
        CuptiSession session(functions());
        QVERIFY(session.start({}) == StartState::Started);
        CuptiBuffer content;
        content.kernel(1, 30, 40, "one");
        driver->keepsBuffers = true; // a buffer never comes back
        driver->deliver(content);
        session.stop();
        QVERIFY(!session.detached());
        driver->keepsBuffers = false;
        driver->flush(); // too late: it is still CUPTI's memory, nobody's records
    }

    void dumpsReplay()
    {
        CuptiSession session(functions());
        SessionOptions options;
        options.dump = true;
        QVERIFY(session.start(options) == StartState::Started);
        CuptiBuffer content;
        content.externalId(1, 9).kernel(1, 30, 40, "one");
        driver->deliver(content);
        const GpuTrace trace = session.take();
        session.stop();
        const auto module = GpuTracer::load();
        QVERIFY2(module, module ? "" : module.error().message.c_str());
        const auto replayed = (*module)->decodeDump(writeCuptiDump(session.dump()));
        QVERIFY2(replayed, replayed ? "" : replayed.error().message.c_str());
        QVERIFY(replayed->records == trace.records);
        QVERIFY(replayed->names == trace.names);
    }

    // Buffers come and go on CUPTI's threads while the trainer takes.
    void manyThreadsDeliver()
    {
        CuptiSession session(functions());
        SessionOptions options;
        options.bufferBytes = 4096;
        options.largestBytes = 1024 * 4096;
        QVERIFY(session.start(options) == StartState::Started);
        constexpr int threads = 4;
        constexpr int rounds = 200;
        std::vector<std::thread> workers;
        for (int t = 0; t < threads; ++t) {
            workers.emplace_back([t] {
                for (int i = 0; i < rounds; ++i) {
                    CuptiBuffer content;
                    const auto number = static_cast<std::uint32_t>(t * rounds + i + 1);
                    content.kernel(number, number, number + 5, number % 2 == 0 ? "even" : "odd");
                    std::uint8_t* bytes = nullptr;
                    std::size_t size = 0;
                    std::size_t most = 0;
                    driver->request(&bytes, &size, &most);
                    if (bytes == nullptr) qFatal("refused below the cap");
                    std::memcpy(bytes, content.data(), content.size());
                    driver->complete(nullptr, 0, bytes, size, content.size());
                }
            });
        }
        std::vector<bool> seen(threads * rounds + 1, false);
        std::size_t records = 0;
        const auto gather = [&](const GpuTrace& trace) {
            for (const GpuRecord& record : trace.records) {
                QVERIFY(!seen[record.correlation]);
                seen[record.correlation] = true;
                QCOMPARE(trace.names[record.name], std::string(record.correlation % 2 == 0 ? "even" : "odd"));
                ++records;
            }
        };
        for (int i = 0; i < 20; ++i) gather(session.take());
        for (std::thread& worker : workers) worker.join();
        gather(session.take());
        QCOMPARE(records, std::size_t(threads * rounds));
        session.stop();
        QVERIFY(session.detached());
    }

    void theModuleReportsAMissingDriver()
    {
        const auto tracer = GpuTracer::load();
        QVERIFY2(tracer, tracer ? "" : tracer.error().message.c_str());
        TraceFacts facts;
        const Result<void> started = (*tracer)->start({}, facts);
        if (started) {
            (*tracer)->stop(facts);
            QVERIFY(facts.detached);
            QSKIP("there is a driver here");
        }
        QVERIFY(facts.state == TraceState::Failed || facts.state == TraceState::Conflict);
        QCOMPARE(facts.cuptiVersion, CUPTI_API_VERSION);
        QVERIFY2(facts.reason.find("CUPTI") != std::string::npos, facts.reason.c_str());
        QVERIFY(facts.environment().front().second.starts_with("failed: "));
        qInfo("%s", started.error().message.c_str());
        GpuTracer::OpRange range(tracer->get(), {ExternalRole::Op, 1, 2, 3}); // does nothing, harms nothing
        QVERIFY((*tracer)->take().records.empty());
    }

    // A tool that listens sees the ranges as PyTorch names them: the listener writes them to a file.
    void aToolSeesTheRanges()
    {
        const auto tracer = GpuTracer::load();
        QVERIFY(tracer);
        for (const Op op : {makeOp(OpKind::Forward, 0, 1), makeOp(OpKind::InputGrad, 2, 0)}) {
            const std::string name = rangeName(op);
            const GpuTracer::OpRange outer(tracer->get(), {ExternalRole::Op, 0, 0, 0}, name.c_str());
            const GpuTracer::OpRange unnamed(tracer->get(), {ExternalRole::Send, 0, 0, 0, 4});
        }
        std::ifstream heard(qEnvironmentVariable("STAGEWRIGHT_NVTX_HEARD").toStdString());
        const std::string text{std::istreambuf_iterator<char>(heard), std::istreambuf_iterator<char>()};
        QCOMPARE(text, std::string("push PP:0F1\npop\npush PP:2I0\npop\n"));
    }

    void rangesAreNamedAsPyTorchNamesThem()
    {
        QCOMPARE(rangeName(makeOp(OpKind::Forward, 0, 1)), std::string("PP:0F1"));
        QCOMPARE(rangeName(makeOp(OpKind::WeightGrad, 3, 12)), std::string("PP:3W12"));
    }

private:
    std::unique_ptr<Driver> m_driver;
};

QTEST_GUILESS_MAIN(TestCuptiSession)
#include "tst_cupti_session.moc"
