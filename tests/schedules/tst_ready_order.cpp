// Orders that ranks find while they run: by arrival against stored cases, and a list that only ranks what is ready.
#include <algorithm>
#include <map>

#include <QtTest/QtTest>
#include <nlohmann/json.hpp>

#include "schedules/check/validate.h"
#include "schedules/execute/ready_order.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "schedules/model/recompute.h"
#include "schedules/setup/prepare.h"
#include "tier_cases.h"

using namespace stagewright;
using stagewright::testing::tierCases;

namespace {

using Json = nlohmann::json;

std::string textOf(const std::vector<Op>& list)
{
    std::string out;
    for (const Op& op : list) out += (out.empty() ? "" : " ") + toText(op);
    return out;
}

CostModel unevenCosts(const Schedule& schedule, std::uint64_t seed, double sigma)
{
    CostModel costs = CostModel::uniform(schedule);
    costs.jitter = sigma;
    costs.jitterSeed = seed;
    return costs;
}

} // namespace

class TestReadyOrder : public QObject {
    Q_OBJECT

private slots:
    void byArrival()
    {
        int tried = 0;
        for (const Json& one : tierCases("arrival_order.json")) {
            if (!one.contains("durations")) continue;
            ++tried;
            const auto schedule = makeSchedule("1f1b", {one["ranks"].get<int>(), one["microbatches"].get<int>()});
            CostModel costs = CostModel::uniform(*schedule);
            costs.timeUnit = 1;
            costs.source = CostSource::Fitted; // microbatches of other durations have one size
            costs.links.all.latency = one["latency"].get<Nanos>();
            for (int stage = 0; stage < schedule->stages; ++stage)
                for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) {
                    const auto key = std::to_string(stage) + (kind == OpKind::Forward ? "F" : "B");
                    for (int mb = 0; mb < schedule->microbatches; ++mb)
                        costs.setMicrobatchDuration(kind, stage, mb,
                                                    one["durations"][key][static_cast<std::size_t>(mb)].get<Nanos>());
                    for (StageMemory& memory : costs.memory) memory.activation = 1;
                }
            QCOMPARE(simulate(*schedule, costs)->makespan, one["1f1b"]["makespan"].get<Nanos>());
            for (const auto& [rule, expected] : one["arrival"].items()) {
                const auto order =
                    parseReadyOrder("arrival:limit=" + std::to_string(one["limit"].get<int>()) + ",rule=" + rule);
                const auto found = orderByReadiness(*schedule, costs, *order);
                QVERIFY2(found, found ? "" : found.error().message.c_str());
                for (std::size_t r = 0; r < found->order.size(); ++r)
                    QCOMPARE(textOf(found->order[r]), expected["lists"][r].get<std::string>());
                const auto result = simulate(*found, costs);
                QCOMPARE(result->makespan, expected["makespan"].get<Nanos>());
                QCOMPARE(result->peakActivation, expected["peaks"].get<std::vector<Bytes>>());
            }
        }
        if (tried == 0) QSKIP("no such cases in STAGEWRIGHT_CASES");
    }

    // Every schedule keeps the same ops, valid, no more memory than the list's, and each kind of a stage in its order.
    void hintsKeepTheirPromises()
    {
        int tried = 0;
        for (const ScheduleInfo& info : allSchedules()) {
            const auto made = makeSchedule(info.name, {4, 8});
            if (!made) continue;
            for (const bool recompute : {false, true}) {
                const Schedule schedule =
                    recompute ? withRecompute(serialised(*made),
                                              std::vector<bool>(static_cast<std::size_t>(made->stages), true), false)
                              : *made;
                const CostModel costs = unevenCosts(schedule, 5, 0.6);
                const auto found = orderByReadiness(schedule, costs, {.by = ReadyOrder::By::Hint});
                if (!found) {
                    QVERIFY2(found.error().code == ErrorCode::Usage, found.error().message.c_str());
                    continue;
                }
                ++tried;
                const auto valid = validate(*found).toResult();
                QVERIFY2(valid, valid ? "" : (schedule.name + ": " + valid.error().message).c_str());
                const auto before = activationPeaks(schedule, costs), after = activationPeaks(*found, costs);
                for (std::size_t r = 0; r < before.size(); ++r) {
                    QVERIFY2(after[r] <= before[r], std::string(info.name).c_str());
                    auto left = schedule.order[r], right = found->order[r];
                    const auto byKind = [](const Op& a, const Op& b) {
                        return std::pair(a.kind, a.stage) < std::pair(b.kind, b.stage);
                    };
                    std::stable_sort(left.begin(), left.end(), byKind);
                    std::stable_sort(right.begin(), right.end(), byKind);
                    QCOMPARE(textOf(right), textOf(left));
                }
            }
        }
        QVERIFY(tried > 20);
    }

    void nothingWaitsNothingMoves()
    {
        for (const char* name : {"1f1b", "zb-h1", "gpipe", "interleaved-1f1b"}) {
            const auto schedule = makeSchedule(name, {4, 8});
            const auto found = orderByReadiness(*schedule, CostModel::uniform(*schedule), {.by = ReadyOrder::By::Hint});
            QVERIFY(simulate(*found, CostModel::uniform(*schedule))->makespan <=
                    simulate(*schedule, CostModel::uniform(*schedule))->makespan);
        }
    }

    // At equal memory: mean over seeds at jitter 0.3.
    void hintsDoNotLose_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<double>("most");
        for (const auto& [name, most] : {std::pair("1f1b", 1.0),
                                         {"zb-h1", 1.0},
                                         {"zbv", 1.0},
                                         {"interleaved-1f1b", 1.01},
                                         {"eager-1f1b", 1.01},
                                         {"gpipe", 1.01},
                                         {"zb-h2", 1.0},
                                         {"v-half", 0.99}})
            for (const auto& [ranks, microbatches] : {std::pair(4, 16), {8, 16}})
                QTest::addRow("%s %d", name, ranks) << name << ranks << microbatches << most;
    }
    void hintsDoNotLose()
    {
        QFETCH(QString, name);
        QFETCH(int, ranks);
        QFETCH(int, microbatches);
        QFETCH(double, most);
        const auto schedule = makeSchedule(name.toStdString(), {ranks, microbatches});
        QVERIFY(schedule);
        double list = 0, hint = 0;
        for (std::uint64_t seed = 0; seed < 200; ++seed) {
            const CostModel costs = unevenCosts(*schedule, seed, 0.3);
            const auto found = orderByReadiness(*schedule, costs, {.by = ReadyOrder::By::Hint});
            list += static_cast<double>(simulate(*schedule, costs)->makespan);
            hint += static_cast<double>(simulate(*found, costs)->makespan);
        }
        QVERIFY2(hint <= most * list, std::to_string(hint / list).c_str());
        qInfo("%s: %.4f", qPrintable(name), hint / list);
    }

    void moreMemoryHelps()
    {
        const auto schedule = makeSchedule("1f1b", {4, 16});
        double list = 0, hint = 0;
        for (std::uint64_t seed = 0; seed < 100; ++seed) {
            const CostModel costs = unevenCosts(*schedule, seed, 0.3);
            const auto found = orderByReadiness(*schedule, costs, {.by = ReadyOrder::By::Hint, .limit = 6});
            list += static_cast<double>(simulate(*schedule, costs)->makespan);
            hint += static_cast<double>(simulate(*found, costs)->makespan);
            for (const Bytes peak : activationPeaks(*found, costs)) QVERIFY(peak <= 6 * costs.memory[0].activation);
        }
        QVERIFY2(hint < 0.95 * list, std::to_string(hint / list).c_str());
    }

    void texts()
    {
        for (const char* text : {"list", "arrival", "hint", "hint:limit=6", "arrival:limit=8,rule=forward_first",
                                 "arrival:rule=backward_first"})
            QCOMPARE(toText(*parseReadyOrder(text)), std::string(text));
        for (const char* text : {"", "soon", "hint:limit=0", "hint:limit=x", "hint:rule=arrival", "list:limit=2",
                                 "arrival:rule=last", "arrival:limit"})
            QVERIFY2(!parseReadyOrder(text), text);
    }

    void otherListsAreRefused()
    {
        const auto refuses = [](const char* name, const char* order, const char* word) {
            const auto schedule = makeSchedule(name, {4, 8});
            const auto found = orderByReadiness(*schedule, CostModel::uniform(*schedule), *parseReadyOrder(order));
            return !found && found.error().message.find(word) != std::string::npos;
        };
        QVERIFY(refuses("zb-h1", "arrival", "forward and a backward"));
        QVERIFY(refuses("interleaved-1f1b", "arrival", "several stages"));
        QVERIFY(refuses("dualpipe", "arrival", "rank of its stage"));
    }
};

QTEST_APPLESS_MAIN(TestReadyOrder)
#include "tst_ready_order.moc"
