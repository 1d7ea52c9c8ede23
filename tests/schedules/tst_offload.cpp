// Activations on the host: lists with copies against stored cases, the rules that place copies, plans under a cap
// against trying everything, and every registered schedule.
#include <map>

#include <QtTest/QtTest>
#include <nlohmann/json.hpp>

#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "schedules/model/offload.h"
#include "schedules/model/recompute.h"
#include "schedules/plan/offload_plan.h"
#include "schedules/text/cost_json.h"
#include "schedules/text/csv.h"
#include "schedules/text/link_text.h"
#include "schedules/timeline/timeline_of.h"
#include "tier_cases.h"

using namespace stagewright;
using stagewright::testing::tierCases;

namespace {

using Json = nlohmann::json;

Schedule listsOf(const Json& lists)
{
    std::string csv;
    for (const Json& row : lists) {
        QString text = QString::fromStdString(row.get<std::string>());
        csv += text.replace(' ', ',').toStdString() + "\n";
    }
    return readScheduleCsv(csv, {}, "case").value();
}

CostModel costsOf(const Schedule& schedule, const Json& one)
{
    CostModel costs = CostModel::uniform(schedule);
    costs.timeUnit = 1;
    costs.links.all.latency = one.value("latency", 0);
    costs.links.copies.fullDuplex = !one["half_duplex"].get<bool>();
    for (int stage = 0; stage < schedule.stages; ++stage) {
        costs.setDuration(OpKind::Forward, stage, one["F"].get<Nanos>());
        costs.setDuration(OpKind::Backward, stage, one["B"].get<Nanos>());
        for (const OpKind kind : {OpKind::Offload, OpKind::Reload})
            costs.setDuration(kind, stage, one["copy"].get<Nanos>());
        costs.memory[static_cast<std::size_t>(stage)].activation = 1;
    }
    return costs;
}

} // namespace

class TestOffload : public QObject {
    Q_OBJECT

private slots:
    void timesAndPeaks()
    {
        int tried = 0;
        for (const Json& one : tierCases("activation_offload.json")) {
            if (!one.contains("times")) continue;
            ++tried;
            const Schedule schedule = listsOf(one["lists"]);
            QVERIFY2(validate(schedule).valid(), one.dump().c_str());
            const auto result = simulate(schedule, costsOf(schedule, one));
            QVERIFY(result);
            for (std::size_t r = 0; one["times"].is_object() && r < schedule.order.size(); ++r)
                for (std::size_t i = 0; i < schedule.order[r].size(); ++i) {
                    const std::size_t id = result->indexOf(static_cast<int>(r), i);
                    const std::string op = toText(schedule.order[r][i]);
                    QVERIFY2(one["times"].contains(op), op.c_str());
                    QCOMPARE(result->start[id], one["times"][op][0].get<Nanos>());
                    QCOMPARE(result->end[id], one["times"][op][1].get<Nanos>());
                }
            QCOMPARE(result->makespan, one["makespan"].get<Nanos>());
            QCOMPARE(result->peakActivation, one["device_peak"].get<std::vector<Bytes>>());
            if (!result->peakOnHost.empty()) QCOMPARE(result->peakOnHost, one["host_peak"].get<std::vector<Bytes>>());
        }
        if (tried == 0) QSKIP("no such cases in STAGEWRIGHT_CASES");
    }

    // The rules make the lists of the cases whose name says so.
    void rulesMakeTheLists()
    {
        int tried = 0;
        for (const Json& one : tierCases("activation_offload.json")) {
            const auto name = QString::fromStdString(one["what"].get<std::string>());
            const QRegularExpressionMatch all = QRegularExpression("^all, reload (\\d+) compute ops ahead").match(name);
            if (!all.hasMatch()) continue;
            ++tried;
            const Schedule schedule = makeSchedule(one["schedule"].get<std::string>(),
                                                   {one["ranks"].get<int>(), one["microbatches"].get<int>()})
                                          .value();
            const auto rule = parseOffload("all:ahead=" + all.captured(1).toStdString());
            QVERIFY(rule);
            QCOMPARE(withOffloads(schedule, *rule).order, listsOf(one["lists"]).order);
        }
        if (tried == 0) QSKIP("no such cases in STAGEWRIGHT_CASES");
    }

    void plansAreTheShortest()
    {
        int tried = 0, asShort = 0;
        for (const Json& one : tierCases("activation_offload.json")) {
            if (!one.contains("cap")) continue;
            ++tried;
            const Schedule schedule = makeSchedule(one["schedule"].get<std::string>(),
                                                   {one["ranks"].get<int>(), one["microbatches"].get<int>()})
                                          .value();
            const CostModel costs = costsOf(schedule, one);
            const std::vector<Bytes> caps(schedule.order.size(), one["cap"].get<Bytes>());
            const auto plan = planOffloads(schedule, costs, caps);
            if (!plan) {
                QVERIFY(one["result"].is_null());
                QVERIFY2(plan.error().message.find("over its cap") != std::string::npos, plan.error().message.c_str());
                continue;
            }
            // The cases reload in the order of the backwards; another order may fit where that one does not.
            QVERIFY(plan->all);
            QCOMPARE(plan->bound, simulate(schedule, costs)->makespan);
            QVERIFY(plan->makespan >= plan->bound);
            if (!one["result"].is_null()) QVERIFY(plan->makespan <= one["result"]["makespan"].get<Nanos>());
            if (!one["result"].is_null()) ++asShort;
            const auto result = simulate(plan->schedule, costs);
            QVERIFY(result && result->makespan == plan->makespan);
            for (const Bytes peak : result->peakActivation) QVERIFY(peak <= caps.front());
            // the search that can't try all is as good here
            OffloadOptions few;
            few.most = 4'000'000;
            const auto searched = planOffloads(schedule, costs, caps, few);
            QVERIFY(searched && searched->makespan >= plan->makespan);
            // with recomputation it is never longer, and fits too
            CostModel recomputes = costs;
            for (int stage = 0; stage < schedule.stages; ++stage)
                for (int rank = 0; rank < schedule.ranks; ++rank)
                    recomputes.setDuration(OpKind::Recompute, stage, rank, costs.forward(stage, rank));
            few.recompute = true;
            few.most = 20'000'000;
            const auto both = planOffloads(schedule, recomputes, caps, few);
            QVERIFY(both && both->makespan <= plan->makespan && both->makespan >= both->bound);
            const auto combined = simulate(both->schedule, recomputes);
            QVERIFY(combined && combined->makespan == both->makespan);
            for (const Bytes peak : combined->peakActivation) QVERIFY(peak <= caps.front());
        }
        QVERIFY(tried == 0 || asShort > 0);
        if (tried == 0) QSKIP("no such cases in STAGEWRIGHT_CASES");
    }

    // Where copies are slow a stage is recomputed, where they are fast none is.
    void recomputationBesideOffloads()
    {
        const Schedule schedule = makeSchedule("1f1b", {4, 8}).value();
        const auto costsWith = [&](double copy) {
            CostModel::UnitCosts units;
            units.copy = copy;
            return CostModel::uniform(withRecompute(schedule, std::vector<bool>(4, true)), units);
        };
        OffloadOptions options;
        options.most = 4'000'000;
        options.recompute = true;
        const auto stagesOf = [](const OffloadPlan& plan) {
            return std::count(plan.recomputed.begin(), plan.recomputed.end(), true);
        };
        const CostModel fast = costsWith(0.01), slow = costsWith(4);
        const std::vector<Bytes> caps(4, 3 * fast.memory.front().activation);
        const auto copied = planOffloads(schedule, fast, caps, options);
        QVERIFY2(copied, copied ? "" : copied.error().message.c_str());
        QCOMPARE(stagesOf(*copied), 0);
        QVERIFY(copied->offloads > 0);
        QCOMPARE(copied->makespan, copied->bound);
        const auto recomputed = planOffloads(schedule, slow, caps, options);
        QVERIFY(recomputed && stagesOf(*recomputed) > 0);
        options.recompute = false;
        const auto alone = planOffloads(schedule, slow, caps, options);
        QVERIFY(!alone || alone->makespan > recomputed->makespan);
        QVERIFY(parseOffload("cap=3:recompute")->recompute && !parseOffload("cap=3")->recompute);
        QVERIFY(!parseOffload("all:recompute") && !parseOffload("cap=3:ahead=1"));
    }

    void everySchedule()
    {
        for (const ScheduleInfo& info : allSchedules()) {
            const auto made = makeSchedule(std::string(info.name), {4, 8});
            if (!made) continue;
            const CostModel plain = CostModel::uniform(*made);
            const auto before = simulate(*made, plain);
            QVERIFY(before);
            for (const char* text : {"all", "longest", "all:ahead=0", "all:ahead=3"}) {
                const Schedule moved = withOffloads(*made, *parseOffload(text));
                QVERIFY2(validate(moved).valid(), std::string(info.name).c_str());
                for (std::size_t r = 0; r < moved.order.size(); ++r) {
                    auto rest = moved.order[r];
                    std::erase_if(rest, [](const Op& op) { return isCopy(op.kind); });
                    QCOMPARE(rest, made->order[r]);
                }
                // copies that take no time: as fast, and no rank holds more
                const auto free = simulate(moved, plain);
                QVERIFY(free);
                QCOMPARE(free->makespan, before->makespan);
                CostModel slow = plain;
                for (int stage = 0; stage < made->stages; ++stage)
                    for (const OpKind kind : {OpKind::Offload, OpKind::Reload})
                        slow.setDuration(kind, stage, rankShare / 3);
                const auto timed = simulate(moved, slow);
                QVERIFY(timed && timed->makespan >= before->makespan);
                // what a timeline holds is what was counted
                const auto timeline = timelineOf(moved, *timed, slow).value();
                for (int rank = 0; rank < moved.ranks; ++rank) {
                    Bytes held = 0, peak = 0;
                    Nanos at = -1;
                    for (const MemoryEvent& event : timeline->memoryOf(rank)) {
                        if (event.category != MemoryCategory::Activations) continue;
                        if (event.time != at) peak = std::max(peak, held);
                        at = event.time;
                        held += event.delta;
                    }
                    QCOMPARE(held, Bytes{0});
                    QVERIFY(peak <= timed->peakActivation[static_cast<std::size_t>(rank)]);
                }
            }
        }
    }

    void whatIsWrong()
    {
        const auto faultOf = [](const char* csv) {
            const auto schedule = readScheduleCsv(csv, {}, "case");
            if (!schedule) return QString::fromStdString(schedule.error().message);
            const Validation found = validate(*schedule);
            return QString::fromStdString(found.faults.empty() ? "" : found.faults.front().message);
        };
        QCOMPARE(faultOf("0F0,0OFFLOAD0,0F1,0RELOAD0,0B0,0B1\n"), QString());
        QVERIFY(faultOf("0F0,0OFFLOAD0,0F1,0B0,0B1\n").contains("an offload without the reload"));
        QVERIFY(faultOf("0F0,0F1,0RELOAD0,0B0,0B1\n").contains("a reload without its offload"));
        QVERIFY(faultOf("0F0,0OFFLOAD0,0F1,0B0,0RELOAD0,0B1\n").contains("full backward before reload"));
        QVERIFY(faultOf("0F0,0F1,0RELOAD0,0OFFLOAD0,0B0,0B1\n").contains("reload before offload"));
        QVERIFY(faultOf("0F0,0OFFLOAD0,0OFFLOAD0,0F1,0RELOAD0,0B0,0B1\n").contains("a second offload"));
        for (const char* bad :
             {"", "some", "cap", "cap=", "all:ahead", "all:ahead=-1", "none:ahead=1", "all:all=1", "all=2"})
            QVERIFY2(!parseOffload(bad), bad);
    }

    void costsOfCopies()
    {
        const Copies both = parseCopies("15GB/s").value();
        QCOMPARE(both.duration(true, 15'000), Nanos{1000});
        const Copies apart = parseCopies("out=10GB/s,in=20GB/s,latency=2us,duplex=full").value();
        QCOMPARE(apart.duration(true, 10'000), Nanos{3000});
        QCOMPARE(apart.duration(false, 20'000), Nanos{3000});
        QVERIFY(apart.fullDuplex);
        QVERIFY(parseCopies("duplex=full")->fullDuplex && !parseCopies("duplex=full")->known());
        for (const char* bad : {"", "15", "out=10GB/s", "15GB/s,duplex=none", "0B/s", "speed=1GB/s"})
            QVERIFY2(!parseCopies(bad), bad);
        CostModel costs = CostModel::uniform(makeSchedule("1f1b", {2, 4}).value());
        costs.links.copies = apart;
        const auto read = readCostsJson(writeCostsJson(costs));
        QVERIFY(read && *read == costs);
        costs.memory[0].activation = 10'000;
        QCOMPARE(costs.duration(makeOp(OpKind::Offload, 0, 1), 0), Nanos{3000});
    }
};

QTEST_APPLESS_MAIN(TestOffload)
#include "tst_offload.moc"
