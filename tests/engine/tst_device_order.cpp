// The device that the tests of the CUDA path run on: it does what is requested in the order that lanes and marks give,
// as late as they allow, and finds what they do not put in order.
#include <QTest>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "engine/cuda/ceilings.h"
#include "engine/cuda/device_links.h"
#include "engine/cuda/device_memory.h"
#include "engine/cuda/gemm_rules.h"
#include "engine/cuda/module.h"

using namespace stagewright;
using namespace stagewright::cuda;

class TestDeviceOrder : public QObject {
    Q_OBJECT

    const StagewrightCudaTable* m_table = nullptr;
    std::unique_ptr<DeviceMemory> queue() const
    {
        return std::make_unique<DeviceMemory>(*m_table, StagewrightQueueRequest{}, std::make_shared<DeviceOrigins>());
    }

private slots:
    void initTestCase()
    {
        const auto module = loadModule(STAGEWRIGHT_FAKE_CUDA);
        QVERIFY2(module, module ? "" : module.error().message.c_str());
        m_table = module->table;
    }

    void copiesAreOrderedByMarks()
    {
        const auto one = queue();
        const auto two = queue();
        Allocator first(*one);
        Allocator second(*two);
        const std::vector<float> values = {1, 2, 3, 4};
        const Buffer sent = first.take(4, {});
        one->upload(sent.data(), values.data(), 16);
        const Buffer received = second.take(4, {});
        const Mark read = two->copyFrom(received.data(), sent.data(), 16, one->mark(), {});
        one->await(read);
        one->clear(sent.data(), 16); // after the copy, though nobody has waited for either
        std::vector<float> got(4);
        two->download(got.data(), received.data(), 16);
        QCOMPARE(got, values);
        one->download(got.data(), sent.data(), 16);
        QCOMPARE(got, std::vector<float>(4, 0.0F));
    }

    void missingMarksAreFound()
    {
        const auto one = queue();
        const auto two = queue();
        Allocator first(*one);
        Allocator second(*two);
        const Buffer sent = first.take(4, {});
        const Buffer received = second.take(4, {});
        one->clear(sent.data(), 16);
        try {
            two->copyFrom(received.data(), sent.data(), 16, nullptr, {}); // does not wait for the clearing
            QFAIL("a race was not found");
        } catch (const std::runtime_error& e) {
            QCOMPARE(QString(e.what()),
                     QString("race: copy reads what clear writes on another queue, and no mark puts them in order"));
        }
        one->finish(); // who waited on the host has seen it
        const Mark read = two->copyFrom(received.data(), sent.data(), 16, nullptr, {});
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, one->clear(sent.data(), 8)); // the copy may not be done
        one->await(read);
        one->clear(sent.data(), 16);
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, one->clear(sent.data() + 100, 16)); // not taken
    }

    // As cuBLASLt, the copies and the launches of a GPU: what they would not take fails here as well.
    void whatAGpuRefusesIsRefused()
    {
        const auto one = queue();
        Allocator memory(*one);
        const Buffer block = memory.take(4096, {});
        StagewrightGemm p{};
        p.kind = STAGEWRIGHT_A_BT;
        p.rows = p.columns = p.depth = 8;
        p.aStride = p.bStride = p.cStride = 8;
        p.alpha = 1.0F;
        p.batches = 1;
        p.a = p.b = block.data();
        p.c = block.data() + 64;
        QCOMPARE(m_table->multiply(one->queue(), &p), 0);
        const auto refused = [&](const StagewrightGemm& wrong, const char* why) {
            const bool failed = m_table->multiply(one->queue(), &wrong) != 0;
            return failed && QString(m_table->lastError()).contains(why);
        };
        StagewrightGemm wrong = p;
        wrong.bStride = 7;
        QVERIFY(refused(wrong, "rows of B are 8 long and begin 7 apart"));
        wrong = p;
        wrong.c = reinterpret_cast<char*>(block.data()) + 2;
        QVERIFY(refused(wrong, "not aligned to its elements"));
        wrong = p;
        wrong.rows = 0;
        QVERIFY(refused(wrong, "nothing to compute"));
        wrong = p;
        wrong.finish = STAGEWRIGHT_BIAS;
        wrong.bias = block.data();
        wrong.beta = 1.0F;
        QVERIFY(refused(wrong, "an end is for one GEMM"));
        const StagewrightTensor nothing{0, block.data(), block.data(), nullptr, nullptr, nullptr};
        QVERIFY(m_table->add(one->queue(), &nothing, 1) != 0);
        QVERIFY(QString(m_table->lastError()).contains("sum: a launch of 0 x 1 x 1 blocks"));
        QCOMPARE(m_table->add(one->queue(), nullptr, 0), 0);
        StagewrightSoftmax s{};
        s.blocks = 65536;
        s.rows = s.columns = 1;
        s.scores = block.data();
        QVERIFY(m_table->softmax(one->queue(), &s) != 0);
        QVERIFY(m_table->copyRows(one->queue(), STAGEWRIGHT_COMPUTE, block.data(), 16, block.data() + 512, 8, 16, 2) !=
                0);
    }

    // The epilogues that cuBLASLt fuses: aligned, with a leading dimension that it accepts, GELU in bf16 only.
    void endsAreFusedWhereTheyMayBe()
    {
        alignas(16) static float place[8];
        StagewrightGemm p{};
        p.columns = 64;
        p.batches = 1;
        QVERIFY(endIsFused(p, false, false));
        p.finish = STAGEWRIGHT_BIAS;
        p.bias = place;
        QVERIFY(endIsFused(p, false, false) && endIsFused(p, true, false));
        p.bias = place + 1;
        QVERIFY(!endIsFused(p, false, false));
        p.bias = place;
        p.finish = STAGEWRIGHT_GELU;
        p.aux = place + 4;
        QVERIFY(!endIsFused(p, false, false) && endIsFused(p, false, true) && endIsFused(p, true, false));
        p.columns = 68;
        QVERIFY(!endIsFused(p, true, false));
        p.columns = 64;
        p.aux = place + 2;
        QVERIFY(!endIsFused(p, true, false));
    }

    // A block that goes back to the allocator and is taken again keeps its history: only the same queue may use it at
    // once.
    void blocksKeepTheirHistory()
    {
        const auto one = queue();
        const auto two = queue();
        Allocator first(*one);
        Allocator second(*two);
        Buffer sent = first.take(64, {});
        one->clear(sent.data(), 256);
        const Buffer received = second.take(64, {});
        const Mark read = two->copyFrom(received.data(), sent.data(), 256, one->mark(), {});
        sent.reset();
        const Buffer again = first.take(64, {});
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, one->clear(again.data(), 256));
        one->await(read);
        one->clear(again.data(), 256);
    }

    // A message goes over while its receiver computes: it waits for the message and for the block's last use, not for
    // what was requested since.
    void copiesWaitForTheirDataAlone()
    {
        const auto one = queue();
        const auto two = queue();
        Allocator first(*one);
        Allocator second(*two);
        const std::vector<float> values = {1, 2, 3, 4};
        const Buffer sent = first.take(4, {});
        one->upload(sent.data(), values.data(), 16);
        Buffer used = second.take(4, {});
        const float* block = used.data();
        two->clear(used.data(), 16); // the last use
        used.reset();
        const Mark passed = two->mark();
        const Buffer other = second.take(1024, {});
        two->clear(other.data(), 4096); // requested since: under way
        BlockUse before;
        const Buffer received = second.takeForCopy(4, {}, before);
        QCOMPARE(received.data(), block);
        QVERIFY(before.used);
        one->await(two->copyFrom(received.data(), sent.data(), 16, one->mark(), before));
        one->clear(sent.data(), 16);
        std::vector<float> got(4);
        one->download(got.data(), sent.data(), 16); // so the copy was done
        QCOMPARE(received.span()[3], 4.0F);
        QVERIFY(std::isnan(other.span()[0])); // and the receiver's work was not
        two->finish();
        QCOMPARE(other.span()[0], 0.0F);
        QCOMPARE(received.span()[0], 1.0F);
    }

    // Without a mark since the block's last use there is one now; a block that was never used waits for nothing.
    void blocksForCopiesAreFree()
    {
        const auto one = queue();
        const auto two = queue();
        Allocator first(*one);
        Allocator second(*two);
        const std::vector<float> values = {1, 2, 3, 4};
        const Buffer sent = first.take(4, {});
        one->upload(sent.data(), values.data(), 16);
        for (int round = 0; round < 200; ++round) { // more marks than are kept
            BlockUse before;
            Buffer received = second.takeForCopy(4, {}, before);
            QCOMPARE(before.used, round > 0);
            one->await(two->copyFrom(received.data(), sent.data(), 16, one->mark(), before));
            two->clear(received.data(), 16);
            if (round % 3 == 0) (void)two->mark();
        }
        Buffer old = second.take(64, {});
        two->clear(old.data(), 256);
        old.reset();
        for (int i = 0; i < 100; ++i) (void)two->mark();
        BlockUse before;
        const Buffer received = second.takeForCopy(64, {}, before);
        const Buffer more = first.take(64, {});
        one->clear(more.data(), 256);
        // throws where nothing puts it behind the clearing
        two->copyFrom(received.data(), more.data(), 256, one->mark(), before);
        Buffer again = second.take(64, {});
        two->clear(again.data(), 256);
        again.reset();
        const Buffer reused = second.takeForCopy(64, {}, before);
        // as if it were new
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, two->copyFrom(reused.data(), more.data(), 256, one->mark(), {}));
        two->copyFrom(reused.data(), more.data(), 256, one->mark(), before);
    }

    // What was sent is read by its receiver for as long as that takes: the sender waits when it uses the block again,
    // not before.
    void sentBlocksAreAwaitedAtReuse()
    {
        const auto one = queue();
        const auto two = queue();
        Allocator first(*one);
        Allocator second(*two);
        const std::vector<float> values = {1, 2, 3, 4};
        Buffer sent = first.take(4, {});
        const float* block = sent.data();
        one->upload(sent.data(), values.data(), 16);
        const Buffer received = second.take(4, {});
        sent.readUntil(two->copyFrom(received.data(), sent.data(), 16, one->mark(), {}));
        sent.reset();
        const Buffer other = first.take(1024, {});
        one->clear(other.data(), 4096);
        std::vector<float> got(1024);
        one->download(got.data(), other.data(), 4096);
        QVERIFY(std::isnan(received.span()[0])); // the copy is not done: nobody has waited for it
        const Buffer again = first.take(4, {});
        QCOMPARE(again.data(), block);
        one->clear(again.data(), 16);
        one->finish();
        QCOMPARE(received.span()[3], 4.0F);
        QCOMPARE(again.span()[3], 0.0F);
        // A block that nobody reads is taken first.
        Buffer read = first.take(64, {});
        Buffer unread = first.take(64, {});
        const float* free = unread.data();
        one->clear(read.data(), 256);
        const Buffer copy = second.take(64, {});
        read.readUntil(two->copyFrom(copy.data(), read.data(), 256, one->mark(), {}));
        unread.reset();
        read.reset();
        QCOMPARE(first.take(64, {}).data(), free);
        // A part of a block waits at once.
        Buffer whole = first.take(32, {});
        one->clear(whole.data(), 128);
        Buffer front = whole.splitOff(16);
        const Buffer half = second.take(16, {});
        front.readUntil(two->copyFrom(half.data(), front.data(), 64, one->mark(), {}));
        one->clear(front.data(), 64);
    }

    // A view belongs to a block that goes on living: its owner says when it must have been read.
    void viewsAreReadBeforeTheyChange()
    {
        const auto one = queue();
        const auto two = queue();
        Allocator first(*one);
        Allocator second(*two);
        const std::vector<float> values = {1, 2, 3, 4};
        const Buffer whole = first.take(4, {});
        one->upload(whole.data(), values.data(), 16);
        const Buffer received = second.take(2, {});
        Buffer view = whole.window(1, 2);
        view.readUntil(two->copyFrom(received.data(), view.data(), 8, one->mark(), {}));
        view.reset();
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, one->clear(whole.data(), 16));
        first.awaitReaders();
        one->clear(whole.data(), 16);
        one->finish();
        QCOMPARE(received.span()[0], 2.0F);
        QCOMPARE(whole.span()[0], 0.0F);
    }

    // Marks live as long as something needs them, and their queue as long as they do: the fake ends the program where
    // one is dropped later.
    void originsOutliveTheMemoryThatMadeThem()
    {
        const auto origins = std::make_shared<DeviceOrigins>();
        Mark left;
        {
            DeviceMemory first(*m_table, StagewrightQueueRequest{}, origins);
            left = first.mark();
        }
        const Nanos start = monotonicNow();
        DeviceMemory second(*m_table, StagewrightQueueRequest{}, origins);
        second.await(left);
        Allocator memory(second);
        const Buffer block = memory.take(4, {});
        second.clear(block.data(), 16);
        const std::int64_t stamp = second.clock()->stamp();
        second.finish();
        const Nanos time = second.clock()->timeOf(stamp);
        QVERIFY(time >= start && time <= monotonicNow() + 1'000'000);
    }

    // Messages by NCCL: the connection's lanes are put in order with both queues, and nothing else is.
    void messagesBetweenDevicesAreOrdered()
    {
        const auto links = std::make_shared<DeviceLinks>(*m_table);
        const auto on = [&](int device) {
            StagewrightQueueRequest request{};
            request.device = device;
            return std::make_unique<DeviceMemory>(*m_table, request, std::make_shared<DeviceOrigins>(), links);
        };
        const auto one = on(0);
        const auto two = on(1);
        Allocator first(*one);
        Allocator second(*two);
        const std::vector<float> values = {1, 2, 3, 4};
        const Buffer sent = first.take(4, {});
        const Buffer received = second.take(4, {});
        for (int round = 0; round < 3; ++round) {
            one->upload(sent.data(), values.data(), 16);
            const Mark read = two->copyFrom(received.data(), sent.data(), 16, one->mark(), {});
            QVERIFY_THROWS_EXCEPTION(std::runtime_error, one->clear(sent.data(), 16)); // it may not have been sent
            one->await(read);
            one->clear(sent.data(), 16);
            std::vector<float> got(4);
            two->download(got.data(), received.data(), 16);
            QCOMPARE(got, values);
        }
        one->upload(sent.data(), values.data(), 16);
        one->interrupt();
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, two->copyFrom(received.data(), sent.data(), 16, one->mark(), {}));
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, two->finish());
    }

    void sumsOverDevices()
    {
        const auto links = std::make_shared<DeviceLinks>(*m_table);
        std::vector<std::unique_ptr<DeviceMemory>> memories;
        std::vector<std::unique_ptr<Allocator>> allocators;
        std::vector<StagewrightQueue*> queues;
        std::vector<Buffer> in;
        std::vector<Buffer> out;
        std::vector<const float*> from;
        std::vector<float*> to;
        for (int device = 0; device < 2; ++device) {
            StagewrightQueueRequest request{};
            request.device = device;
            memories.push_back(std::make_unique<DeviceMemory>(*m_table, request, std::make_shared<DeviceOrigins>()));
            allocators.push_back(std::make_unique<Allocator>(*memories.back()));
            queues.push_back(memories.back()->queue());
            in.push_back(allocators.back()->take(4, {}));
            out.push_back(allocators.back()->take(8, {}));
            from.push_back(in.back().data());
            to.push_back(out.back().data());
            const std::vector<float> values(4, 1.0F + static_cast<float>(device));
            memories.back()->upload(in.back().data(), values.data(), 16);
            memories.back()->clear(out.back().data(), 32);
        }
        StagewrightCommunicator* communicator = nullptr;
        QCOMPARE(m_table->openCommunicator(queues.data(), 2, &communicator), 0);
        // no mark orders it behind the uploads
        QCOMPARE(m_table->collect(communicator, STAGEWRIGHT_ALL_REDUCE, from.data(), to.data(), 4), 1);
        for (int end = 0; end < 2; ++end) {
            memories[static_cast<std::size_t>(end)]->finish();
        }
        const auto result = [&](int kind, std::size_t count, int end) {
            if (m_table->collect(communicator, kind, from.data(), to.data(), count) != 0)
                qFatal("%s", m_table->lastError());
            for (int each = 0; each < 2; ++each) {
                StagewrightMark* mark = nullptr;
                if (m_table->communicatorMark(communicator, each, &mark) != 0) qFatal("%s", m_table->lastError());
                if (m_table->await(queues[static_cast<std::size_t>(each)], STAGEWRIGHT_COMPUTE, mark) != 0)
                    qFatal("%s", m_table->lastError());
                m_table->dropMark(mark);
            }
            std::vector<float> got(8);
            memories[static_cast<std::size_t>(end)]->download(got.data(), to[static_cast<std::size_t>(end)], 32);
            for (const auto& memory : memories) memory->finish();
            return got;
        };
        QCOMPARE(result(STAGEWRIGHT_ALL_REDUCE, 4, 1), (std::vector<float>{3, 3, 3, 3, 0, 0, 0, 0}));
        QCOMPARE(result(STAGEWRIGHT_ALL_GATHER, 4, 0), (std::vector<float>{1, 1, 1, 1, 2, 2, 2, 2}));
        QCOMPARE(result(STAGEWRIGHT_REDUCE_SCATTER, 2, 1), (std::vector<float>{3, 3, 1, 1, 2, 2, 2, 2}));
        m_table->closeCommunicator(communicator);
    }

    // The fake device: a nanosecond for every 16 bytes and a microsecond per piece of work.
    void ceilingsAreMeasuredOnce()
    {
        StagewrightQueueRequest request{};
        const auto first = ceilingsOf(*m_table, request);
        QVERIFY2(first, first ? "" : first.error().message.c_str());
        QVERIFY(first->copyBytes > 0 && first->copyBytes <= 2 * 16e9); // each of both blocks counts
        const double widest = 8192;
        QVERIFY(first->matrixFlops > 0 &&
                first->matrixFlops <= 2 * widest * widest * widest * 1e9 / (3 * widest * widest * 4 / 16));
        const auto again = ceilingsOf(*m_table, request);
        QVERIFY(again->copyBytes == first->copyBytes && again->matrixFlops == first->matrixFlops);
    }

    // A GPU loads the code of its first GEMM when it is first called, which takes longer than any GEMM.
    void codeThatLoadsLateEndsNoCeiling()
    {
        static std::vector<std::int32_t> widths;
        StagewrightCudaTable late = *m_table;
        // nothing is multiplied: the first call loads its code, wide GEMMs take long
        late.multiply = [](StagewrightQueue*, const StagewrightGemm* gemm) {
            if (widths.empty())
                std::this_thread::sleep_for(std::chrono::milliseconds(250));
            else if (gemm->rows > widths.front())
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
            widths.push_back(gemm->rows);
            return 0;
        };
        StagewrightQueueRequest request{};
        request.parts = 2; // not yet measured in this program
        const auto ceilings = ceilingsOf(late, request);
        QVERIFY2(ceilings, ceilings ? "" : ceilings.error().message.c_str());
        QVERIFY(widths.back() > widths.front());
    }

    void timesRiseInOrder()
    {
        const auto one = queue();
        Allocator memory(*one);
        const Buffer block = memory.take(1024, {});
        DeviceClock* clock = one->clock();
        QVERIFY(clock);
        const std::int64_t begin = clock->stamp();
        one->clear(block.data(), 4096);
        const std::int64_t end = clock->stamp();
        one->finish();
        QVERIFY(clock->timeOf(end) - clock->timeOf(begin) >= Nanos{1000 + 4096 / 16});
        clock->forget();
    }
};

QTEST_GUILESS_MAIN(TestDeviceOrder)
#include "tst_device_order.moc"
