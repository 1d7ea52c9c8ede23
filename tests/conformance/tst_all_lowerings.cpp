// Every schedule of the registry with its variants, lowered by every rule: valid, placed, the compute order back again;
// and under every semantics either ends or is said to need buffers, by all parts of the program alike.
#include <QtTest>

#include <climits>
#include <map>
#include <numeric>

#include "schedules/check/validate.h"
#include "schedules/execute/buffering.h"
#include "schedules/execute/deadlock.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/library/variants.h"
#include "schedules/messages/messages.h"
#include "schedules/text/csv.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/bubbles.h"

using namespace stagewright;

namespace {

constexpr std::array<const char*, 8> everyRule{"just-in-time", "pytorch",     "eager-post", "eager-post:1",
                                               "eager-post:3", "rank-parity", "grouped",    "batched"};

std::vector<Channels> everySemantics()
{
    std::vector<Channels> out;
    for (const int perDirection : {0, 1, 2}) {
        out.push_back({SendMode::Buffered, perDirection, ReceiveMode::Blocking});
        for (const ReceiveMode receives : {ReceiveMode::Blocking, ReceiveMode::Posted})
            out.push_back({SendMode::Rendezvous, perDirection, receives});
    }
    return out;
}

CostModel costsOf(const Schedule& schedule)
{
    CostModel::UnitCosts units;
    units.forward = 2;
    units.weightGrad = 0.5;
    units.latency = 0.7;
    return CostModel::uniform(schedule, units);
}

std::vector<Shape> shapesOf(const ScheduleInfo& info)
{
    std::vector<Shape> out{{2, 4}, {3, 5}, {4, 8}};
    if (!info.searches) out.push_back({8, 16});
    if (info.fixedChunks == 0) out.push_back({4, 8, 3});
    return out;
}

// The most messages in transit at once from one rank to another.
int underWay(const SimResult& result)
{
    const auto rankOf = [&](std::uint32_t op) {
        return std::upper_bound(result.offsets.begin(), result.offsets.end(), op) - result.offsets.begin() - 1;
    };
    std::map<std::pair<std::ptrdiff_t, std::ptrdiff_t>, std::vector<std::pair<Nanos, int>>> changes;
    for (const MessageTimes& message : result.messages) {
        auto& of = changes[{rankOf(message.send), rankOf(message.receive)}];
        of.emplace_back(message.begin, 1);
        of.emplace_back(message.arrival, -1);
    }
    int most = 0;
    for (auto& [ranks, list] : changes) {
        std::sort(list.begin(), list.end()); // an arrival before a start at the same time
        int now = 0;
        for (const auto& [time, change] : list) most = std::max(most, now += change);
    }
    return most;
}

Nanos apartOf(const BubbleReport& report)
{
    return std::accumulate(report.ranks.begin(), report.ranks.end(), Nanos{0},
                           [](Nanos sum, const RankBubbles& rank) { return sum + rank.apart; });
}

} // namespace

class TestAllLowerings : public QObject {
    Q_OBJECT
    Nanos peerWait = 0; // over all of them
    Nanos headOfLine = 0;

private slots:
    void everyVariant_data()
    {
        QTest::addColumn<QString>("name");
        for (const ScheduleInfo& info : allSchedules())
            for (const std::string& name : variantsOf(info))
                QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
    void everyVariant()
    {
        QFETCH(QString, name);
        const ScheduleInfo& info = **findSchedule(name.section(':', 0, 0).toStdString());
        int made = 0;
        for (const Shape& shape : shapesOf(info)) {
            const auto schedule = makeOnNearShape(name.toStdString(), shape);
            if (!schedule) continue;
            ++made;
            const auto label = [&](const std::string& rest) {
                return QStringLiteral("%1 p=%2 m=%3 %4")
                    .arg(name)
                    .arg(schedule->ranks)
                    .arg(schedule->microbatches)
                    .arg(QString::fromStdString(rest))
                    .toUtf8();
            };
            const CostModel costs = costsOf(*schedule);
            const auto plain = simulate(*schedule, costs);
            QVERIFY(plain);
            for (const char* text : everyRule) {
                const Lowering lowering = *parseLowering(text);
                const auto lowered = lower(*schedule, lowering);
                QVERIFY2(lowered, label(text));
                QCOMPARE(isLowered(*lowered), schedule->ranks > 1);
                QVERIFY2(withoutCommunication(*lowered) == *schedule, label(text));
                const auto csv = writeScheduleCsv(*lowered);
                QVERIFY2(csv && *readScheduleCsv(*csv) == *lowered, label(text));
                for (const Channels& channels : everySemantics()) {
                    const bool buffered = channels.sends == SendMode::Buffered;
                    const std::string what = std::string(text) + (buffered ? " buffered" : " rendezvous") +
                                             " channels=" + std::to_string(channels.perDirection) +
                                             (channels.blockingReceives() ? "" : " posted");
                    const Validation validation = validate(*lowered, channels);
                    const auto result = simulate(*lowered, costs, channels);
                    const auto deadlock = explainDeadlock(*lowered, channels);
                    QVERIFY(deadlock);
                    QVERIFY2(validation.valid() == result.has_value() && deadlock->hung() != result.has_value(),
                             label(what));
                    if (!result) {
                        QVERIFY2(!buffered, label(what)); // with buffers all end
                        QVERIFY2(deadlock->worksIfBuffered && deadlock->cycle.size() > 1, label(what));
                        QVERIFY2(validation.faults.size() == 1 && validation.faults[0].kind == FaultKind::Deadlock,
                                 label(what));
                        QVERIFY2(deadlock->fixed.has_value() && validate(*deadlock->fixed, channels).valid(),
                                 label(what));
                        // only messages move
                        QVERIFY2(withoutCommunication(*deadlock->fixed) == *schedule, label(what));
                        continue;
                    }
                    QVERIFY2(result->makespan >= plain->makespan, label(what));
                    if (buffered && channels.perDirection == 0) QCOMPARE(result->makespan, plain->makespan);
                    QVERIFY2(underWay(*result) <= (channels.perDirection > 0 ? channels.perDirection : INT_MAX),
                             label(what));
                    const auto timeline = timelineOf(*lowered, *result, costs);
                    QVERIFY2(timeline && *scheduleOf(**timeline, 0) == *schedule, label(what));
                    const auto bubbles = analyseBubbles(**timeline, 0);
                    QVERIFY2(bubbles, label(what));
                    QVERIFY2(std::accumulate(bubbles->byCause.begin(), bubbles->byCause.end(), Nanos{0}) ==
                                 bubbles->idle,
                             label(what));
                    QCOMPARE(bubbles->idle, schedule->ranks * bubbles->makespan() - bubbles->busy - apartOf(*bubbles));
                    peerWait += bubbles->byCause[std::size_t(IdleCause::PeerWait)];
                    headOfLine += bubbles->byCause[std::size_t(IdleCause::HeadOfLine)];
                    if (buffered && !schedule->placement.hasCopies()) // whose reductions wait for each other
                        QCOMPARE(bubbles->byCause[std::size_t(IdleCause::PeerWait)], Nanos{0});
                }
            }
            // What the schedule's page states.
            for (const int perDirection : {0, 1, 2}) {
                const auto outcomes = outcomesWithoutBuffers(*schedule, perDirection);
                QVERIFY(outcomes && outcomes->size() == 6);
                for (const RuleOutcome& outcome : *outcomes)
                    QVERIFY2(outcome.ends() == validate(*lower(*schedule, outcome.lowering), outcome.channels).valid(),
                             label("page"));
                QVERIFY2((*outcomes)[1].ends(), label("pytorch without buffers"));
                QVERIFY2((*outcomes)[5].ends(), label("batched without buffers"));
            }
        }
        QVERIFY(made > 0);
    }
    void messageCauses()
    {
        QVERIFY(peerWait > 0);
        QVERIFY(headOfLine > 0);
    }
};

QTEST_APPLESS_MAIN(TestAllLowerings)
#include "tst_all_lowerings.moc"
