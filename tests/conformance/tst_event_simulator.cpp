// simulate() against a simulator that shares no code with it: start and end of every op and the peaks, for every
// schedule of the registry and every variant, unequal costs by stage and rank, links with latency and bandwidth, launch
// delays, recomputation, pairs.
#include <QtTest>

#include <random>

#include <fmt/format.h>

#include "event_simulator.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/variants.h"
#include "schedules/model/recompute.h"

using namespace stagewright;
using stagewright::testing::EventSimulator;

namespace {

// Every number differs: durations by kind, stage and rank, memory by stage, some links.
CostModel costsFor(const Schedule& schedule, std::uint32_t seed)
{
    std::mt19937 engine(seed);
    auto between = [&](int least, int most) {
        return least + static_cast<int>(engine() % static_cast<std::uint32_t>(most - least + 1));
    };
    CostModel costs(schedule.stages, CostSource::Fitted);
    for (int s = 0; s < schedule.stages; ++s) {
        for (const auto& [kind, least] : {std::pair{OpKind::Forward, 800},
                                          {OpKind::InputGrad, 900},
                                          {OpKind::WeightGrad, 600},
                                          {OpKind::Backward, 1700},
                                          {OpKind::Recompute, 750},
                                          {OpKind::Optimizer, 90},
                                          {OpKind::ReduceGrad, 120}}) {
            costs.setDuration(kind, s, between(least, 2 * least));
            for (int r = 0; r < schedule.ranks; ++r)
                if (between(0, 2) == 0) costs.setDuration(kind, s, r, between(least / 2, 2 * least));
        }
        StageMemory& memory = costs.memory[static_cast<std::size_t>(s)];
        memory.activation = between(1000, 3000);
        memory.freedAtInput = between(-400, 900);
        memory.boundary = between(100, 900);
    }
    costs.links.all.latency = between(0, 400);
    if (between(0, 1) == 0) costs.links.all.bytesPerSecond = 1e9 * between(1, 4) / 3;
    for (int k = 0; k < schedule.ranks; ++k)
        costs.links.overrides[{between(0, schedule.ranks - 1), between(0, schedule.ranks - 1)}] =
            Link{between(0, 900), 1e9 * between(0, 3)};
    if (between(0, 2) == 0)
        for (int r = 0; r < schedule.ranks; ++r) costs.launch.push_back(between(0, 200));
    costs.sliceStarts = sliceStartsOf(schedule);
    return costs;
}

bool whole(const Schedule& schedule)
{
    for (const auto& ops : schedule.order)
        for (const Op& op : ops)
            if (op.slice >= 0 || op.half > 0) return false;
    return true;
}

// "" or the first op whose times differ.
std::string difference(const Schedule& schedule, const CostModel& costs)
{
    const auto result = simulate(schedule, costs);
    if (!result) return "not simulated: " + result.error().message;
    const EventSimulator own(schedule, costs);
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i) {
            const std::size_t id = result->indexOf(static_cast<int>(r), i);
            const auto& times = own.times[r][i];
            if (times.start != result->start[id] || times.end != result->end[id])
                return fmt::format("rank {}, op {} ({}): {} to {} by simulate(), {} to {} by events", r, i,
                                   toText(schedule.order[r][i]), result->start[id], result->end[id], times.start,
                                   times.end);
        }
    if (whole(schedule) && own.peaks != result->peakActivation) return "peaks differ";
    return {};
}

} // namespace

class TestEventSimulator : public QObject {
    Q_OBJECT
private slots:
    void everyScheduleAndVariant_data()
    {
        QTest::addColumn<int>("index");
        int index = 0;
        for (const ScheduleInfo& info : allSchedules()) QTest::addRow("%s", std::string(info.name).c_str()) << index++;
    }
    void everyScheduleAndVariant()
    {
        QFETCH(int, index);
        const ScheduleInfo& info = allSchedules()[static_cast<std::size_t>(index)];
        int compared = 0;
        std::uint32_t seed = static_cast<std::uint32_t>(1000 * index + 1);
        for (const std::string& name : variantsOf(info))
            for (const auto& [p, m] : {std::pair{2, 4}, {3, 7}, {4, 8}}) {
                const auto made = makeOnNearShape(name, {p, m});
                if (!made) continue;
                std::vector<bool> some(static_cast<std::size_t>(made->stages));
                for (std::size_t s = 0; s < some.size(); ++s) some[s] = s % 3 != 1;
                const std::vector<std::pair<std::string, Schedule>> forms{
                    {"", *made},
                    {" serialised", serialised(*made)},
                    {" recomputed", withRecompute(*made, std::vector<bool>(some.size(), true))},
                    {" partly recomputed", withRecompute(*made, some)},
                    {" recomputed early", withRecompute(*made, some, true)},
                };
                for (const auto& [what, schedule] : forms)
                    for (int round = 0; round < 2; ++round) {
                        const CostModel costs = costsFor(schedule, seed++);
                        const std::string found = difference(schedule, costs);
                        QVERIFY2(found.empty(),
                                 fmt::format("{} p={} m={}{}: {}", name, made->ranks, made->microbatches, what, found)
                                     .c_str());
                        ++compared;
                    }
            }
        QVERIFY(compared >= 20);
    }
    // What is proven here by hand: the test can fail.
    void knownTimes()
    {
        Schedule schedule = *makeSchedule("1f1b", {2, 2});
        CostModel costs(2, CostSource::Fitted);
        for (int s = 0; s < 2; ++s) {
            costs.setDuration(OpKind::Forward, s, 10);
            costs.setDuration(OpKind::Backward, s, 20);
        }
        costs.links.all.latency = 3;
        const EventSimulator own(schedule, costs);
        // rank 0: F0 F1 B0 B1, rank 1: F0 B0 F1 B1
        QCOMPARE(own.times[1][0].start, 13);
        QCOMPARE(own.times[1][1].end, 43);
        QCOMPARE(own.times[0][2].start, 46);
        QCOMPARE(own.times[1][3].end, 73);
        QCOMPARE(own.times[0][3].end, 96);
    }
};

QTEST_APPLESS_MAIN(TestEventSimulator)
#include "tst_event_simulator.moc"
