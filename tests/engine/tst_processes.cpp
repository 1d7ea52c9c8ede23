// Ranks in several processes do what threads do, bit for bit, and end as they do; the processes are threads over memory
// here (tests/cli/processes.sh starts real ones).
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "engine/training/flight_page.h"
#include "engine/transport/bytes.h"
#include "process_training.h"
#include "schedules/timeline/timeline_of.h"
#include "support/memory_processes.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

struct Trained {
    std::vector<double> losses;
    std::vector<std::vector<float>> gradients;
    std::vector<float> weights; // of all stages and copies
    std::vector<std::vector<Bytes>> peaks;
    std::vector<Bytes> left; // by category, what a rank holds after the steps
    bool orderKept = true;
    std::string error;
    std::optional<Deadlock> stall;
    double seconds = 0;
};

Trained train(Training& training, int steps)
{
    Trained out;
    training.keepGradients(true);
    const Nanos begin = monotonicNow();
    for (int step = 0; step < steps; ++step) {
        auto outcome = training.step({});
        if (!outcome) {
            out.error = outcome.error().message;
            out.stall = training.stall();
            break;
        }
        out.losses.push_back(outcome->loss);
        const auto ran = scheduleOf(*outcome->timeline, step);
        out.orderKept = out.orderKept && ran && *ran == training.schedule();
        out.left.assign(memoryCategoryCount, 0);
        for (int rank = 0; rank < training.schedule().ranks; ++rank)
            for (const MemoryEvent& event : outcome->timeline->memoryOf(rank))
                out.left[static_cast<std::size_t>(event.category)] += event.delta;
    }
    out.seconds = static_cast<double>(monotonicNow() - begin) * 1e-9;
    if (!out.error.empty()) return out;
    out.gradients = training.lastGradients();
    for (const MemoryCategory category :
         {MemoryCategory::Activations, MemoryCategory::Weights, MemoryCategory::Communication})
        out.peaks.push_back(training.peak(category));
    for (int stage = 0; stage < training.schedule().stages; ++stage)
        for (std::size_t copy = 0; copy < training.schedule().placement.copiesOf(stage).size(); ++copy)
            for (const ParameterView& parameter : training.parameters(stage, static_cast<int>(copy)))
                out.weights.insert(out.weights.end(), parameter.value.begin(), parameter.value.end());
    return out;
}

// In so many processes; the error of each that had one.
Trained trainInProcesses(int processes, const Schedule& schedule, int steps, const FakeOptions& fake = {},
                         const TrainingOptions& options = fakeOptions(ClockMode::Wall),
                         std::vector<std::string>* served = nullptr)
{
    Trained out;
    ProcessFaults faults =
        trainInProcesses(processes, schedule, options, fake, [&](Training& training) { out = train(training, steps); });
    if (!faults.leader.empty()) out.error = std::move(faults.leader);
    if (served) *served = std::move(faults.served);
    return out;
}

} // namespace

class TestProcesses : public QObject {
    Q_OBJECT

private slots:
    void bytesThatAreMissing()
    {
        ByteWriter writer;
        writer.put(7);
        writer.text("rank");
        const std::vector<double> numbers{1, 2, 3};
        writer.list(std::span<const double>(numbers));
        const std::vector<std::byte> bytes = writer.take();
        for (std::size_t length = 0; length <= bytes.size(); ++length) {
            ByteReader reader{std::span<const std::byte>(bytes).first(length)};
            const int number = reader.get<int>();
            const std::string text = reader.text();
            const std::vector<double> read = reader.list<double>();
            QCOMPARE(reader.good(), length == bytes.size());
            if (!reader.good()) continue;
            QCOMPARE(number, 7);
            QCOMPARE(text, std::string("rank"));
            QVERIFY(read == numbers);
        }
        ByteWriter huge; // a length that no memory holds
        huge.put<std::uint64_t>(1ULL << 62);
        const auto hugeBytes = huge.take();
        ByteReader reader(hugeBytes);
        QVERIFY(reader.list<double>().empty());
        QVERIFY(!reader.good());
    }

    // Whatever the way there and back take, the other's clock is within the band; with one quick trip among slow ones
    // the band is narrow.
    void clocks()
    {
        const Nanos ahead = 1'000'000'123;
        std::vector<PingPong> trips;
        for (int i = 0; i < 50; ++i) {
            const Nanos there = 2'000 + 977 * (i * 7 % 13);
            const Nanos back = 1'500 + 1'409 * (i * 5 % 11);
            const Nanos sent = 10'000'000 + i * 100'000;
            trips.push_back({sent, sent + there + ahead, sent + there + back});
            const ClockOffset clock = clockOffsetOf(trips);
            QVERIFY(std::abs(clock.offset + ahead) <= clock.band);
        }
        const Nanos quickest = 1'750; // half of the quickest trip
        QVERIFY(clockOffsetOf(trips).band <= quickest);
        QVERIFY(clockOffsetOf(std::span(trips).first(1)).band >= clockOffsetOf(trips).band);
    }

    void jobsMeet()
    {
        std::atomic<int> met = 0;
        inMemoryProcesses(3, [&](const std::shared_ptr<ProcessJob>& job) {
            met += job->count();
            QVERIFY(job->oneHost());
            QVERIFY(job->sharesClock(1)); // and so needs no offset
            QCOMPARE(job->clockOf(1).band, Nanos(0));
            if (job->index() == 0)
                for (int other = 1; other < 3; ++other) // and yet measured
                    QVERIFY(std::abs(job->measuredClock(other).offset) <= job->measuredClock(other).band);
            QVERIFY(!job->hasEnded(1));
            const auto first = job->reserveTags(10);
            QVERIFY(first && *first == *job->reserveTags(0) - 10);
            QVERIFY(!job->reserveTags(1LL << 40));
        });
        QCOMPARE(met.load(), 9);
    }

    // Who sleeps is woken by a message, and finds it although it is not there at the first look.
    void wokenAtOnce()
    {
        std::vector<Nanos> delays;
        std::vector<Nanos> sent;
        inMemoryProcesses(
            2,
            [&](const std::shared_ptr<ProcessJob>& job) {
                const int tag = *job->reserveTags(1);
                for (int i = 0; i < 31; ++i) {
                    if (job->index() == 1) {
                        std::this_thread::sleep_for(std::chrono::milliseconds(5)); // then the other sleeps
                        ByteWriter now;
                        now.put(monotonicNow());
                        job->say(0, tag, now.take());
                        continue;
                    }
                    std::optional<std::vector<std::byte>> heard;
                    QVERIFY(job->await([&] { return (heard = job->hear(1, tag)).has_value(); }, [] { return false; },
                                       10'000'000'000));
                    sent.push_back(ByteReader(*heard).get<Nanos>());
                    delays.push_back(monotonicNow() - sent.back());
                }
            },
            true);
        QCOMPARE(delays.size(), std::size_t(31));
        std::nth_element(delays.begin(), delays.begin() + 15, delays.end());
        std::adjacent_difference(sent.begin(), sent.end(), sent.begin());
        std::nth_element(sent.begin() + 1, sent.begin() + 16, sent.end());
        // long before the next
        QVERIFY2(delays[15] < sent[16],
                 qPrintable(QStringLiteral("heard after %1 ns, sent every %2 ns").arg(delays[15]).arg(sent[16])));
    }

    void versionsDiffer()
    {
        auto net = std::make_shared<MemoryProcesses::Net>();
        std::string said;
        std::thread other(
            [&] { static_cast<void>(ProcessJob::meet(std::make_unique<MemoryProcesses>(net, 1, 2), "2")); });
        auto job = ProcessJob::meet(std::make_unique<MemoryProcesses>(net, 0, 2), "1");
        other.join();
        QVERIFY(!job);
        QCOMPARE(job.error().code, ErrorCode::Unavailable);
        QVERIFY2(job.error().message.find("stagewright 1") != std::string::npos &&
                     job.error().message.find("is 2") != std::string::npos,
                 job.error().message.c_str());
    }

    void equalsThreads_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("processes");
        QTest::addColumn<int>("clock");
        const char* names[] = {"1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "chimera", "pipedream", "dualpipe"};
        for (const char* name : names)
            for (const int processes : {2, 4})
                for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual})
                    QTest::addRow("%s, %d processes, %s", name, processes, toText(clock).data())
                        << QString(name) << 4 << processes << static_cast<int>(clock);
        QTest::addRow("1f1b, 3 processes") << QString("1f1b") << 3 << 3 << static_cast<int>(ClockMode::Wall);
        QTest::addRow("1f1b, 1 process") << QString("1f1b") << 2 << 1 << static_cast<int>(ClockMode::Wall);
    }
    void equalsThreads()
    {
        QFETCH(QString, name);
        QFETCH(int, ranks);
        QFETCH(int, processes);
        QFETCH(int, clock);
        const Schedule schedule = librarySchedule(name.toStdString(), ranks, 8);
        const TrainingOptions options = fakeOptions(static_cast<ClockMode>(clock));
        auto threads = fakeTraining(schedule, options);
        QVERIFY2(threads, threads ? "" : threads.error().message.c_str());
        const Trained expected = train(**threads, 3);
        const Trained found = trainInProcesses(processes, schedule, 3, {}, options);
        QCOMPARE(found.error, std::string());
        QCOMPARE(found.losses.size(), std::size_t(3));
        QVERIFY(found.losses == expected.losses);
        QVERIFY(found.gradients == expected.gradients && !found.gradients.front().empty());
        QVERIFY(found.weights == expected.weights && !found.weights.empty());
        QVERIFY(found.orderKept);
        QVERIFY(found.left == expected.left); // no message's memory slips into another step
        QVERIFY(found.peaks[0] == expected.peaks[0]);
        QVERIFY(found.peaks[1] == expected.peaks[1]);
    }

    // Under rendezvous too, and an order that waits for itself is explained from the records of all processes.
    void rendezvous_data()
    {
        QTest::addColumn<QString>("rule");
        QTest::addColumn<int>("channels");
        for (const char* rule : {"just-in-time", "rank-parity", "grouped", "eager-post:2"})
            for (const int channels : {0, 1, 2})
                QTest::addRow("%s, %d channels", rule, channels) << QString(rule) << channels;
    }
    void rendezvous()
    {
        QFETCH(QString, rule);
        QFETCH(int, channels);
        const Schedule schedule = librarySchedule("zb-h1", 4, 8);
        TrainingOptions options = fakeOptions(ClockMode::Wall);
        auto threads = fakeTraining(schedule, options);
        QVERIFY(threads);
        const Trained expected = train(**threads, 2);
        options.lowering = *parseLowering(rule.toStdString());
        options.channels.sends = SendMode::Rendezvous;
        options.channels.receives = receivesOf(options.lowering.rule);
        options.channels.perDirection = channels;
        if (channels > 0) options.links.all.latency = 200'000;
        options.timeoutSeconds = 2;
        const auto predicted = explainDeadlock(*lower(schedule, options.lowering), options.channels);
        QVERIFY(predicted);
        const Trained found = trainInProcesses(4, schedule, 2, {}, options);
        if (predicted->hung()) {
            QVERIFY2(found.error.find("no progress for 2") != std::string::npos, found.error.c_str());
            QVERIFY(found.stall && found.stall->cycle == predicted->cycle);
            return;
        }
        QCOMPARE(found.error, std::string());
        QVERIFY(found.losses == expected.losses && found.gradients == expected.gradients &&
                found.weights == expected.weights);
        QVERIFY(found.orderKept);
    }

    // With links a message does not arrive before its time; where so many may be under way at once, the others wait for
    // a channel; and a sender that waits for its receiver waits for the whole way.
    void links_data()
    {
        QTest::addColumn<bool>("met");
        QTest::addColumn<int>("channels");
        for (const bool met : {false, true})
            for (const int channels : {0, 1, 2})
                QTest::addRow("%s, %d channels", met ? "rendezvous" : "buffered", channels) << met << channels;
    }
    void links()
    {
        QFETCH(bool, met);
        QFETCH(int, channels);
        constexpr Nanos latency = 20'000'000;
        const Schedule schedule = librarySchedule("gpipe", 2, 4);
        TrainingOptions options = fakeOptions(ClockMode::Wall);
        options.links.all.latency = latency;
        options.channels.perDirection = channels;
        if (met) {
            options.lowering = *parseLowering("eager-post:4");
            options.channels.sends = SendMode::Rendezvous;
            options.channels.receives = receivesOf(options.lowering.rule);
        }
        inMemoryProcesses(2, [&](const std::shared_ptr<ProcessJob>& job) {
            TrainingOptions own = options;
            own.job = job;
            std::vector<std::unique_ptr<Training>> trainings;
            auto training = fakeTraining(schedule, own);
            QVERIFY2(training, training ? "" : training.error().message.c_str());
            trainings.push_back(std::move(*training));
            if (job->index() != 0) {
                QVERIFY(serveTrainings(trainings, *job));
                return;
            }
            for (int step = 0; step < 2; ++step) { // the second finds the channels as the first one left them
                auto outcome = trainings.front()->step({});
                QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
                const Timeline& timeline = *outcome->timeline;
                int transfers = 0;
                Nanos firstEnd = -1;
                std::vector<Nanos> taken; // forwards of the second rank
                for (const Edge& edge : timeline.edges()) {
                    const Span& from = timeline.spans()[edge.from];
                    const Span& to = timeline.spans()[edge.to];
                    if (edge.kind != EdgeKind::Data || from.op.stage == to.op.stage) continue;
                    ++transfers;
                    QVERIFY(to.start - from.end >= latency);
                    if (from.op.kind != OpKind::Forward) continue;
                    taken.push_back(to.start);
                    if (firstEnd < 0 || from.end < firstEnd) firstEnd = from.end;
                }
                QCOMPARE(transfers, 8);
                std::sort(taken.begin(), taken.end());
                const bool oneByOne = met || channels == 1; // a sender that waits has one under way
                for (std::size_t i = 0; i < taken.size(); ++i) {
                    const auto turns = static_cast<Nanos>(oneByOne ? i + 1 : channels == 2 ? i / 2 + 1 : 1);
                    QVERIFY2(taken[i] - firstEnd >= turns * latency,
                             QByteArray::number(static_cast<double>(taken[i] - firstEnd) * 1e-6));
                }
            }
        });
    }

    void anErrorElsewhere()
    {
        FakeOptions fake;
        fake.hook = [](OpKind kind, int stage, int microbatch) {
            if (kind == OpKind::Forward && stage == 2 && microbatch == 3) throw std::runtime_error("no luck");
        };
        std::vector<std::string> served;
        const Trained out =
            trainInProcesses(4, librarySchedule("1f1b", 4, 8), 2, fake, fakeOptions(ClockMode::Wall), &served);
        QVERIFY2(out.error.find("rank 2") != std::string::npos && out.error.find("no luck") != std::string::npos,
                 out.error.c_str());
        QCOMPARE(served.size(), std::size_t(3));
        for (const std::string& error : served) QVERIFY2(error.find("no luck") != std::string::npos, error.c_str());
        QVERIFY(out.seconds < 5);
    }

    void aHangElsewhere()
    {
        Door door;
        FakeOptions fake;
        fake.hook = [&](OpKind kind, int stage, int microbatch) {
            if (kind == OpKind::Forward && stage == 1 && microbatch == 2) door.pass();
        };
        TrainingOptions options = fakeOptions(ClockMode::Wall);
        options.timeoutSeconds = 1;
        std::thread opener([&] { // the hanging process could not end else
            door.awaitSomeone();
            QTest::qWait(0);
            std::this_thread::sleep_for(std::chrono::milliseconds(3500));
            door.open();
        });
        const Trained out = trainInProcesses(2, librarySchedule("1f1b", 2, 4), 2, fake, options);
        opener.join();
        QVERIFY2(out.error.find("no progress for 1 s") != std::string::npos, out.error.c_str());
        QVERIFY2(out.error.find("rank 1") != std::string::npos, out.error.c_str());
    }

    // What a killed process was doing is in its files: the newest entries of the training that wrote last; damaged
    // files are passed over.
    void flightPages()
    {
        QTemporaryDir folder;
        const std::string path = folder.path().toStdString();
        QVERIFY(!readFlights(path));
        QVERIFY(!FlightPage::create(path + "/nowhere", {"x", 1, 0, 1, true}));
        FlightEntry entry;
        entry.op = makeOp(OpKind::RecvF, 1, 3);
        entry.peer = 0;
        {
            auto old = FlightPage::create(path, {"gpipe", 1, 0, 2, true});
            auto page = FlightPage::create(path, {"zb-h1", 2, 1, 3, false});
            QVERIFY(old && page && !FlightPage::create(path, {"zb-h1", 2, 1, 3, false}));
            old->add(0, entry);
            for (std::uint64_t i = 0; i < 300; ++i) {
                entry.sequence = static_cast<std::uint32_t>(i);
                page->add(i, entry);
                if (i < 299) page->finish(i);
            }
            const auto left = readFlights(path);
            QVERIFY(left && left->schedule == "zb-h1" && left->ranks == 3 && !left->leader);
            QVERIFY(!left->records[0].present && left->records[1].present && !left->records[2].present);
            QCOMPARE(left->records[1].forgotten, std::uint64_t(44));
            QCOMPARE(left->records[1].entries.size(), std::size_t(256));
            QCOMPARE(left->records[1].entries.front().sequence, 44U);
            const Deadlock found = explainStall(left->records, MessageMatching::ByOp);
            QCOMPARE(found.blocked.size(), std::size_t(1));
            QVERIFY(found.blocked.front().sentence.find(
                        "rank 1 waits to receive 1RECV_F3 (message 299) from rank 0, whose record is missing") == 0);
            page->stay();
        }
        QVERIFY(readFlights(path) && readFlights(path)->schedule == "zb-h1"); // the other one is gone
        const auto file = std::filesystem::directory_iterator(path)->path();
        const auto whole = std::filesystem::file_size(file);
        std::filesystem::resize_file(file, whole / 2);
        QVERIFY(!readFlights(path));
        std::filesystem::resize_file(file, whole);
        QVERIFY(readFlights(path));
        // its rank
        std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(12).write("\xff\xff\xff\x7f", 4);
        QVERIFY(!readFlights(path));
    }

    // A process that ends well, and the one that leads, leave nothing; others leave theirs where they were stopped.
    void flightsLeft()
    {
        QTemporaryDir folder;
        qputenv(flightFolderVariable, folder.path().toUtf8());
        const Schedule schedule = librarySchedule("1f1b", 4, 8);
        const Trained good = trainInProcesses(4, schedule, 1);
        QCOMPARE(good.error, std::string());
        QVERIFY(!readFlights(folder.path().toStdString()));
        FakeOptions fake;
        fake.hook = [](OpKind kind, int stage, int microbatch) {
            if (kind == OpKind::Forward && stage == 2 && microbatch == 3) throw std::runtime_error("no luck");
        };
        QVERIFY(!trainInProcesses(4, schedule, 2, fake).error.empty());
        qunsetenv(flightFolderVariable);
        const auto left = readFlights(folder.path().toStdString());
        QVERIFY(left && !left->leader && left->ranks == 4);
        QVERIFY(!left->records[0].present && left->records[2].present && left->records[3].present);
        QVERIFY(left->records[2].entries.back().op == makeOp(OpKind::Forward, 2, 3) &&
                !left->records[2].entries.back().done);
    }

    void refusals()
    {
        const Schedule schedule = librarySchedule("1f1b", 2, 4);
        TrainingOptions options = fakeOptions(ClockMode::Wall);
        QVERIFY(trainInProcesses(3, schedule, 1, {}, options)
                    .error.find("2 ranks can't be spread evenly over 3 processes") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestProcesses)
#include "tst_processes.moc"
