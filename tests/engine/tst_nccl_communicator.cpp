// NCCL's communicators over a fake NCCL: what is grouped, in which order, from which thread; errors at once and later;
// calls that make no progress; aborting.
#include <QTest>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/cuda/module/nccl_communicator.h"

using namespace stagewright::cuda::module;
using namespace std::chrono_literals;

struct ncclComm {
    int end = 0;
    bool gone = false;
};

namespace {

// What NCCL would see.
struct Library {
    std::mutex mutex;
    std::vector<std::string> calls;
    std::array<ncclComm, 16> comms;
    std::size_t made = 0;
    std::thread::id grouping; // the thread between groupStart and groupEnd
    bool interleaved = false;
    std::atomic<int> inProgress = 0;  // so many questions are answered so
    std::size_t awaited = 0;          // and all while fewer ends have been made
    int asked = 0;                    // so many of those
    std::latch waited{1};             // open when one asks again
    ncclResult_t later = ncclSuccess; // the state then
    ncclResult_t onSend = ncclSuccess;
    ncclResult_t onReceive = ncclSuccess;

    void called(std::string what)
    {
        const std::lock_guard lock(mutex);
        if (grouping != std::thread::id() && grouping != std::this_thread::get_id()) interleaved = true;
        calls.push_back(std::move(what));
    }
    std::vector<std::string> taken()
    {
        const std::lock_guard lock(mutex);
        return std::exchange(calls, {});
    }
};
Library* library = nullptr;
thread_local int currentDevice = -1;

std::string number(auto value) { return std::to_string(value); }

NcclFunctions functions()
{
    NcclFunctions f;
    f.version = [](int* version) {
        *version = 22800;
        return ncclSuccess;
    };
    f.uniqueId = [](ncclUniqueId*) { return ncclSuccess; };
    f.init = [](ncclComm_t* comm, int ranks, ncclUniqueId, int rank, ncclConfig_t* config) {
        library->called("init " + number(rank) + " of " + number(ranks) + " on " + number(currentDevice));
        if (config->blocking != 0) return ncclInvalidArgument;
        const std::lock_guard lock(library->mutex);
        *comm = &library->comms[library->made++];
        (*comm)->end = rank;
        return ncclInProgress;
    };
    f.state = [](ncclComm_t comm, ncclResult_t* state) {
        if (comm->gone) return ncclInvalidArgument;
        const std::lock_guard lock(library->mutex);
        *state = library->inProgress > 0 || library->made < library->awaited ? ncclInProgress : library->later;
        if (library->made < library->awaited && ++library->asked == 2) library->waited.count_down();
        if (library->inProgress > 0) --library->inProgress;
        return ncclSuccess;
    };
    f.abort = [](ncclComm_t comm) {
        library->called("abort " + number(comm->end));
        comm->gone = true;
        return ncclSuccess;
    };
    f.destroy = [](ncclComm_t comm) {
        library->called("destroy " + number(comm->end));
        comm->gone = true;
        return ncclSuccess;
    };
    f.errorString = [](ncclResult_t result) {
        return result == ncclRemoteError ? "remote error" : result == ncclSystemError ? "system error" : "error";
    };
    f.groupStart = [] {
        library->called("group");
        const std::lock_guard lock(library->mutex);
        library->grouping = std::this_thread::get_id();
        return ncclSuccess;
    };
    f.groupEnd = [] {
        library->called("end");
        const std::lock_guard lock(library->mutex);
        library->grouping = {};
        return ncclInProgress;
    };
    f.send = [](const void*, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm, cudaStream_t) {
        library->called("send " + number(count) + " " + number(comm->end) + ">" + number(peer) + " on " +
                        number(currentDevice));
        return library->onSend;
    };
    f.receive = [](void*, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm, cudaStream_t) {
        library->called("receive " + number(count) + " " + number(comm->end) + "<" + number(peer) + " on " +
                        number(currentDevice));
        return library->onReceive;
    };
    f.allReduce = [](const void*, void*, std::size_t count, ncclDataType_t, ncclRedOp_t, ncclComm_t comm,
                     cudaStream_t) {
        library->called("all-reduce " + number(count) + " at " + number(comm->end));
        return ncclSuccess;
    };
    f.reduceScatter = [](const void*, void*, std::size_t count, ncclDataType_t, ncclRedOp_t, ncclComm_t comm,
                         cudaStream_t) {
        library->called("reduce-scatter " + number(count) + " at " + number(comm->end));
        return ncclSuccess;
    };
    f.allGather = [](const void*, void*, std::size_t count, ncclDataType_t, ncclComm_t comm, cudaStream_t) {
        library->called("all-gather " + number(count) + " at " + number(comm->end));
        return ncclSuccess;
    };
    return f;
}

int enter(int device)
{
    currentDevice = device;
    return 0;
}

using Calls = std::vector<std::string>;

} // namespace

class TestNcclCommunicator : public QObject {
    Q_OBJECT

    NcclFunctions m_functions = functions();

private slots:
    void init() { library = new Library; }
    void cleanup()
    {
        QVERIFY(!library->interleaved);
        delete std::exchange(library, nullptr);
    }

    void endsAreOpenedInOneGroup()
    {
        {
            NcclCommunicator communicator(m_functions, enter);
            QCOMPARE(communicator.open({{3, nullptr}, {1, nullptr}}), 0);
            QCOMPARE(library->taken(), (Calls{"group", "init 0 of 2 on 3", "init 1 of 2 on 1", "end"}));
        }
        QCOMPARE(library->taken(), (Calls{"destroy 0", "destroy 1"}));
    }

    // A send is never without its receive.
    void messagesAreGrouped()
    {
        NcclCommunicator communicator(m_functions, enter);
        QCOMPARE(communicator.open({{0, nullptr}, {1, nullptr}}), 0);
        (void)library->taken();
        QCOMPARE(communicator.transfer(0, this, 1, this, 64), 0);
        QCOMPARE(library->taken(), (Calls{"group", "send 64 0>1 on 0", "receive 64 1<0 on 1", "end"}));
        QCOMPARE(communicator.transfer(1, this, 0, this, 8), 0);
        QCOMPARE(library->taken(), (Calls{"group", "receive 8 0<1 on 0", "send 8 1>0 on 1", "end"}));
    }

    void collectivesAreGroupedOverAllEnds()
    {
        NcclCommunicator communicator(m_functions, enter);
        QCOMPARE(communicator.open({{0, nullptr}, {1, nullptr}, {2, nullptr}}), 0);
        (void)library->taken();
        const std::vector<const float*> from(3);
        const std::vector<float*> to(3);
        QCOMPARE(communicator.allReduce(from, to, 5), 0);
        QCOMPARE(library->taken(),
                 (Calls{"group", "all-reduce 5 at 0", "all-reduce 5 at 1", "all-reduce 5 at 2", "end"}));
        QCOMPARE(communicator.reduceScatter(from, to, 2), 0);
        QCOMPARE(library->taken(),
                 (Calls{"group", "reduce-scatter 2 at 0", "reduce-scatter 2 at 1", "reduce-scatter 2 at 2", "end"}));
        QCOMPARE(communicator.allGather(from, to, 2), 0);
        QCOMPARE(library->taken(),
                 (Calls{"group", "all-gather 2 at 0", "all-gather 2 at 1", "all-gather 2 at 2", "end"}));
    }

    // One end of a communicator whose others are in other processes: only its own side is posted, in the caller's order.
    void anEndOfOthers()
    {
        {
            NcclCommunicator communicator(m_functions, enter);
            QCOMPARE(communicator.join({2, nullptr}, {}, 1, 3), 0);
            QCOMPARE(communicator.settle(), 0);
            QCOMPARE(library->taken(), (Calls{"init 1 of 3 on 2"}));
            QCOMPARE(communicator.post({{true, 0, this, 64}, {false, 2, this, 8}, {true, 2, this, 4}}), 0);
            QCOMPARE(library->taken(),
                     (Calls{"group", "send 64 1>0 on 2", "receive 8 1<2 on 2", "send 4 1>2 on 2", "end"}));
            QCOMPARE(communicator.poll(), 0);
        }
        QCOMPARE(library->taken(), (Calls{"destroy 1"}));
    }

    // Ends of one process join on their own threads, and none holds what another needs.
    void endsJoinSideBySide()
    {
        library->awaited = 3;
        std::atomic<int> failed = 0;
        std::vector<std::thread> threads;
        for (int number = 0; number < 3; ++number)
            threads.emplace_back([&, number] {
                NcclCommunicator communicator(m_functions, enter, 20s);
                failed += communicator.join({number, nullptr}, {}, number, 3);
                failed += communicator.settle();
            });
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(failed.load(), 0);
    }

    void abortingEndsJoining()
    {
        NcclCommunicator communicator(m_functions, enter);
        library->awaited = 2;
        QCOMPARE(communicator.join({0, nullptr}, {}, 0, 2), 0);
        std::atomic<int> result = -1;
        std::thread joins([&] { result = communicator.settle(); });
        library->waited.wait();
        QCOMPARE(result.load(), -1);
        communicator.abort();
        joins.join();
        QCOMPARE(result.load(), 1);
        QCOMPARE(communicator.error(), std::string("joining the connection between devices: aborted"));
        QCOMPARE(communicator.post({{true, 1, this, 4}}), 1);
        QCOMPARE(library->taken(), (Calls{"init 0 of 2 on 0", "abort 0"}));
    }

    void aFailedPostAborts()
    {
        NcclCommunicator communicator(m_functions, enter);
        QCOMPARE(communicator.join({0, nullptr}, {}, 0, 2), 0);
        library->onSend = ncclSystemError;
        (void)library->taken();
        QCOMPARE(communicator.post({{true, 1, this, 4}, {false, 1, this, 4}}), 1);
        QCOMPARE(communicator.error(), std::string("messages between devices: NCCL: system error"));
        QCOMPARE(library->taken(), (Calls{"group", "send 4 0>1 on 0", "end", "abort 0"}));
    }

    void withoutTheLibraryNothingIsJoined()
    {
        NcclFunctions none;
        none.missing = "NCCL can't be loaded: not there";
        ncclUniqueId id;
        std::string error;
        QCOMPARE(newId(none, &id, &error), 1);
        QCOMPARE(error, none.missing);
        NcclCommunicator communicator(none, enter);
        QCOMPARE(communicator.join({0, nullptr}, {}, 0, 2), 1);
        QCOMPARE(communicator.error(), none.missing);
        QCOMPARE(communicator.settle(), 1);
    }

    void oneRankADevice()
    {
        NcclCommunicator communicator(m_functions, enter);
        QCOMPARE(communicator.open({{1, nullptr}, {1, nullptr}}), 1);
        QCOMPARE(communicator.error(), std::string("NCCL serves one rank per device, but device 1 has two"));
        QVERIFY(library->taken().empty());
    }

    void withoutTheLibrary()
    {
        NcclFunctions none;
        none.missing = "NCCL can't be loaded: not there";
        NcclCommunicator communicator(none, enter);
        QCOMPARE(communicator.open({{0, nullptr}, {1, nullptr}}), 1);
        QCOMPARE(communicator.error(), none.missing);
        QCOMPARE(communicator.transfer(0, this, 1, this, 1), 1); // of no use, and says so
    }

    // Two ranks that both send and receive: whoever comes first, groups are whole and come in one order on all devices.
    void threadsDoNotInterleave()
    {
        NcclCommunicator right(m_functions, enter);
        NcclCommunicator left(m_functions, enter);
        QCOMPARE(right.open({{0, nullptr}, {1, nullptr}}), 0);
        QCOMPARE(left.open({{1, nullptr}, {0, nullptr}}), 0);
        (void)library->taken();
        constexpr int messages = 200;
        std::atomic<int> failed = 0;
        const auto many = [&](NcclCommunicator& communicator) {
            for (int i = 0; i < messages; ++i) failed += communicator.transfer(0, this, 1, this, 4);
        };
        std::thread one([&] { many(right); });
        std::thread two([&] { many(left); });
        one.join();
        two.join();
        QCOMPARE(failed.load(), 0);
        const Calls calls = library->taken();
        QCOMPARE(calls.size(), std::size_t(2 * messages * 4));
        for (std::size_t i = 0; i < calls.size(); i += 4) {
            QCOMPARE(calls[i], std::string("group"));
            QVERIFY(calls[i + 1].starts_with("send 4 0>1") && calls[i + 2].starts_with("receive 4 1<0"));
            QCOMPARE(calls[i + 3], std::string("end"));
        }
    }

    void callsUnderWayAreWaitedFor()
    {
        NcclCommunicator communicator(m_functions, enter);
        library->inProgress = 5;
        QCOMPARE(communicator.open({{0, nullptr}, {1, nullptr}}), 0);
        QCOMPARE(library->inProgress.load(), 0);
    }

    void noProgressIsAnError()
    {
        NcclCommunicator communicator(m_functions, enter, 1ms);
        QCOMPARE(communicator.open({{0, nullptr}, {1, nullptr}}), 0);
        (void)library->taken();
        library->inProgress = 1 << 30;
        QCOMPARE(communicator.transfer(0, this, 1, this, 4), 1);
        QVERIFY(communicator.error().starts_with("a message between devices: NCCL made no progress for"));
        const Calls calls = library->taken();
        // the other end would wait forever
        QCOMPARE(Calls(calls.end() - 2, calls.end()), (Calls{"abort 0", "abort 1"}));
    }

    void aFailedEndAbortsBoth_data()
    {
        QTest::addColumn<bool>("sender");
        QTest::newRow("send") << true;
        QTest::newRow("receive") << false;
    }
    void aFailedEndAbortsBoth()
    {
        QFETCH(bool, sender);
        NcclCommunicator communicator(m_functions, enter);
        QCOMPARE(communicator.open({{0, nullptr}, {1, nullptr}}), 0);
        (void)library->taken();
        (sender ? library->onSend : library->onReceive) = ncclSystemError;
        QCOMPARE(communicator.transfer(0, this, 1, this, 4), 1);
        QCOMPARE(communicator.error(), std::string("a message between devices: NCCL: system error"));
        const Calls calls = library->taken();
        QVERIFY(std::find(calls.begin(), calls.end(), "end") != calls.end()); // the group is closed all the same
        QCOMPARE(Calls(calls.end() - 2, calls.end()), (Calls{"abort 0", "abort 1"}));
        library->onSend = library->onReceive = ncclSuccess;
        QCOMPARE(communicator.transfer(0, this, 1, this, 4), 1);
        QVERIFY(library->taken().empty());
    }

    void laterErrorsAreFoundByPolling()
    {
        NcclCommunicator communicator(m_functions, enter);
        QCOMPARE(communicator.open({{0, nullptr}, {1, nullptr}}), 0);
        QCOMPARE(communicator.transfer(0, this, 1, this, 4), 0);
        QCOMPARE(communicator.poll(), 0);
        (void)library->taken();
        library->later = ncclRemoteError;
        QCOMPARE(communicator.poll(), 1);
        QCOMPARE(communicator.error(), std::string("the connection between devices: NCCL: remote error"));
        QCOMPARE(library->taken(), (Calls{"abort 0", "abort 1"}));
        QCOMPARE(communicator.poll(), 1);
        QVERIFY(library->taken().empty()); // once
    }

    void abortingEndsACallUnderWay()
    {
        NcclCommunicator communicator(m_functions, enter);
        QCOMPARE(communicator.open({{0, nullptr}, {1, nullptr}}), 0);
        library->inProgress = 1 << 30;
        std::atomic<int> result = -1;
        std::thread sender([&] { result = communicator.transfer(0, this, 1, this, 4); });
        QTRY_VERIFY_WITH_TIMEOUT(library->inProgress < (1 << 30), 60'000);
        communicator.abort();
        sender.join();
        QCOMPARE(result.load(), 1);
        QCOMPARE(communicator.error(), std::string("a message between devices: aborted"));
        QCOMPARE(communicator.transfer(0, this, 1, this, 4), 1);
        QCOMPARE(communicator.poll(), 1);
        communicator.abort(); // again: nothing
        const Calls calls = library->taken();
        QCOMPARE(std::count(calls.begin(), calls.end(), "abort 0"), 1);
    }

    void abortedCommunicatorsAreNotDestroyed()
    {
        {
            NcclCommunicator communicator(m_functions, enter);
            QCOMPARE(communicator.open({{0, nullptr}, {1, nullptr}}), 0);
            communicator.abort();
            (void)library->taken();
        }
        QVERIFY(library->taken().empty());
    }
};

QTEST_GUILESS_MAIN(TestNcclCommunicator)
#include "tst_nccl_communicator.moc"
