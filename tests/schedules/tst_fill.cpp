// Gaps filled with work that can wait, as ops of schedules: against stored cases, PipeFisher's profiles, and rules that
// hold for every registered schedule.
#include <algorithm>

#include <QtTest/QtTest>
#include <nlohmann/json.hpp>

#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "schedules/model/profiles.h"
#include "schedules/plan/fill_plan.h"
#include "schedules/setup/prepare.h"
#include "schedules/text/csv.h"
#include "tier_cases.h"

using namespace stagewright;
using stagewright::testing::tierCases;

namespace {

using Json = nlohmann::json;

CostModel filledCosts(const Schedule& schedule, double factor, double invert, int pieces)
{
    CostModel::UnitCosts units;
    units.factorA = units.factorG = factor;
    units.invert = invert;
    units.pieces = pieces;
    return CostModel::uniform(schedule, units);
}

std::vector<Op> withoutFillers(std::vector<Op> ops)
{
    std::erase_if(ops, [](const Op& op) { return fillsGaps(op.kind); });
    return ops;
}

} // namespace

class TestFill : public QObject {
    Q_OBJECT

private slots:
    // Ops where the cases have their pieces, at their times; the step is as long as without them.
    void storedCases()
    {
        int tried = 0;
        for (const Json& one : tierCases("bubble_filler.json")) {
            const int ranks = one["ranks"].get<int>(), microbatches = one["microbatches"].get<int>();
            const Schedule schedule = makeSchedule(one["schedule"].get<std::string>(), {ranks, microbatches}).value();
            int pieces = 0;
            std::vector<Nanos> inversions;
            for (const Json& work : one["work"])
                if (work["kind"] == "after") inversions.push_back(work["dur"].get<Nanos>()), ++pieces;
            // pieces of one length are ops of one cost
            const auto [least, most] = std::minmax_element(inversions.begin(), inversions.end());
            if (*most - *least > 1 || pieces % 2 != 0) continue;
            ++tried;
            CostModel costs = CostModel::uniform(schedule);
            costs.timeUnit = 1;
            for (int stage = 0; stage < schedule.stages; ++stage) {
                costs.setDuration(OpKind::Forward, stage, one["F"].get<Nanos>());
                costs.setDuration(OpKind::Backward, stage, one["B"].get<Nanos>());
                costs.setDuration(OpKind::FactorA, stage, one["work"][0]["dur"].get<Nanos>());
                costs.setDuration(OpKind::FactorG, stage, one["work"][1]["dur"].get<Nanos>());
                costs.setDuration(OpKind::Invert, stage, *most);
            }
            for (const auto& [rule, results] : one["results"].items()) {
                const auto cycle = fillSchedule(schedule, costs, {true, pieces, rule == "cyclic", 1});
                QVERIFY2(cycle, cycle ? "" : cycle.error().message.c_str());
                QCOMPARE(cycle->makespan, one["step"].get<Nanos>());
                std::vector<Nanos> lost(static_cast<std::size_t>(ranks), 0);
                for (const FillPiece& piece : cycle->unplaced) ++lost[static_cast<std::size_t>(piece.rank)];
                for (std::size_t rank = 0; rank < results.size(); ++rank) {
                    QCOMPARE(cycle->rankSteps[rank], results[rank]["steps"].get<int>());
                    QCOMPARE(cycle->leastSteps[rank], results[rank]["lower_bound_steps"].get<int>());
                    QCOMPARE(lost[rank], results[rank]["unplaced"].get<Nanos>());
                }
                for (int step = 0; step < cycle->steps; ++step) {
                    const Schedule& filled = cycle->schedules[static_cast<std::size_t>(step)];
                    const auto result = simulate(filled, costs);
                    QVERIFY(result);
                    for (const FillPiece& piece : cycle->placed) {
                        if (piece.step != step) continue;
                        const auto& ops = filled.order[static_cast<std::size_t>(piece.rank)];
                        const auto at = std::find(ops.begin(), ops.end(), piece.op);
                        QVERIFY(at != ops.end());
                        const std::size_t id = result->indexOf(piece.rank, static_cast<std::size_t>(at - ops.begin()));
                        QCOMPARE(result->start[id], piece.start);
                        QCOMPARE(result->end[id], piece.end);
                    }
                    if (cycle->unplaced.empty())
                        QCOMPARE(*std::max_element(result->end.begin(), result->end.end()), cycle->makespan);
                }
            }
        }
        if (tried == 0) QSKIP("no such cases in STAGEWRIGHT_CASES");
    }

    // 301.4 ms idle and 474.7 ms of work on each rank, as the profile of BERT-Large on P100 says.
    void profiles()
    {
        const Schedule schedule = makeSchedule("1f1b", {8, 8}).value();
        const auto fill = [&](const char* text, int pieces, bool cyclic) {
            const CostModel costs = profiledCosts(schedule, text, pieces).value();
            return fillSchedule(schedule, costs, {true, pieces, cyclic, 1}).value();
        };
        const FilledCycle large = fill("bert-large@p100", 12, true);
        QCOMPARE(large.steps, 2);
        QCOMPARE(large.idle / 8, Nanos{7 * (16'100'000 + 26'953'000)});
        QVERIFY(std::abs(static_cast<double>(large.work) / 8 / 1e6 - 474.7) < 0.05);
        QVERIFY(std::abs(static_cast<double>(large.idle) / 8 / 1e6 - 301.4) < 0.05);
        QCOMPARE(fill("bert-large@p100:b=32", 12, false).rankSteps, (std::vector<int>{2, 3, 3, 3, 3, 3, 3, 2}));
        QCOMPARE(fill("bert-large@p100", 2, true).rankSteps, (std::vector<int>{3, 3, 3, 3, 3, 2, 2, 2}));
        const FilledCycle base = fill("bert-base@p100", 12, true);
        QVERIFY(std::abs(static_cast<double>(base.idle) / 8 / 1e6 - 183.4) < 0.05);
        QVERIFY(std::abs(static_cast<double>(base.work) / 8 / 1e6 - 276.0) < 0.1);
        // no gap holds a whole inversion of small batches
        const FilledCycle small = fill("bert-large@p100:b=8", 2, false);
        QCOMPARE(small.unplaced.size(), std::size_t{16});
        const std::string says = unplacedSentence(small, small.unplaced.front(), 1);
        QVERIFY2(says.find("longer than every gap") != std::string::npos, says.c_str());
        const auto result = simulate(small.schedules.back(), profiledCosts(schedule, "bert-large@p100:b=8", 2).value());
        QVERIFY(figuresOf(small.schedules.back(), *result).step > small.makespan);
        for (const char* bad : {"", "bert", "bert-large@p100:b=9", "bert-large@p100:x=8"})
            QVERIFY2(!profiledCosts(schedule, bad, 2), bad);
    }

    void everySchedule()
    {
        for (const ScheduleInfo& info : allSchedules()) {
            const auto made = makeSchedule(std::string(info.name), {4, 8});
            if (!made) continue;
            const CostModel costs = filledCosts(*made, 0.1, 0.6, 4);
            for (const bool cyclic : {false, true}) {
                const auto cycle = fillSchedule(*made, costs, {true, 4, cyclic, 1});
                QVERIFY2(cycle, std::string(info.name).c_str());
                QCOMPARE(cycle->schedules.size(), static_cast<std::size_t>(cycle->steps));
                std::map<std::pair<int, Op>, int> seen; // by rank and op: how often in the cycle
                for (const Schedule& filled : cycle->schedules) {
                    QVERIFY2(validate(filled).valid(), std::string(info.name).c_str());
                    const auto result = simulate(filled, costs);
                    QVERIFY(result);
                    if (cycle->unplaced.empty())
                        QCOMPARE(*std::max_element(result->end.begin(), result->end.end()), cycle->makespan);
                    for (std::size_t r = 0; r < filled.order.size(); ++r) {
                        QCOMPARE(withoutFillers(filled.order[r]), made->order[r]);
                        for (const Op& op : filled.order[r])
                            if (fillsGaps(op.kind)) ++seen[{static_cast<int>(r), op}];
                    }
                    QCOMPARE(readScheduleCsv(writeScheduleCsv(filled).value(), {}, "filled").value().order,
                             filled.order);
                }
                std::size_t expected = 0; // A for each forward, G for each backward, four pieces a stage and rank
                for (int rank = 0; rank < made->ranks; ++rank) {
                    for (const Op& op : made->order[static_cast<std::size_t>(rank)])
                        expected += isForward(op.kind) || isReturn(op.kind) ? 1U : 0U;
                    expected += 4 * made->placement.stagesOf(rank).size();
                }
                QCOMPARE(seen.size(), expected);
                for (const auto& [op, times] : seen) QCOMPARE(times, 1);
                for (const FilledGap& gap : cycle->gaps) {
                    QVERIFY(gap.rest >= 0 && gap.rest <= gap.end - gap.start);
                    QVERIFY(!describe(*cycle, gap, costs.timeUnit).empty());
                }
            }
        }
    }

    // Strict: over the cycle each piece comes behind what it needs on its rank.
    void needsAreBehind()
    {
        const Schedule schedule = makeSchedule("1f1b", {4, 6}).value();
        const auto cycle = fillSchedule(schedule, filledCosts(schedule, 0.3, 1.5, 6), {true, 6, false, 1}).value();
        for (int rank = 0; rank < 4; ++rank) {
            std::vector<Op> all;
            for (const Schedule& filled : cycle.schedules)
                for (const Op& op : filled.order[static_cast<std::size_t>(rank)]) all.push_back(op);
            const auto placeOf = [&](OpKind kind, int number) {
                return std::find_if(all.begin(), all.end(), [&](const Op& op) {
                    return op.kind == kind && (isInPieces(kind) ? op.slice : op.microbatch) == number;
                });
            };
            for (int j = 0; j < 6; ++j) {
                QVERIFY(placeOf(OpKind::Forward, j) < placeOf(OpKind::FactorA, j));
                QVERIFY(placeOf(OpKind::Backward, j) < placeOf(OpKind::FactorG, j));
                for (int piece = 0; piece < 6; ++piece)
                    QVERIFY(placeOf(piece < 3 ? OpKind::FactorA : OpKind::FactorG, j) < placeOf(OpKind::Invert, piece));
            }
        }
    }

    void throughTheSetup()
    {
        Setup setup;
        setup.ranks = 8;
        setup.microbatches = 8;
        setup.costs = "pipefisher:bert-large@p100";
        setup.fill = "kfac:pieces=12:cyclic:step=2";
        const auto prepared = prepare("1f1b", setup, {});
        QVERIFY2(prepared, prepared ? "" : prepared.error().message.c_str());
        QVERIFY(prepared->fill && prepared->validation.valid());
        QCOMPARE(prepared->lists.schedule.order, prepared->fill->schedules[1].order);
        setup.fill = "kfac:pieces=12:cyclic:step=3";
        QVERIFY(!prepare("1f1b", setup, {}));
        setup.fill = "kfac";
        setup.costs = "F=1,B=2";
        const auto none = prepare("1f1b", setup, {});
        QVERIFY(!none && none.error().message.find("takes no time") != std::string::npos);
        setup.costs = "F=1,B=2,FACTOR_A=0.2,FACTOR_G=0.2,INVERT=1";
        const auto units = prepare("1f1b", setup, {});
        QVERIFY(units && units->costs.duration(makePiece(OpKind::Invert, 0, 1), 0) == rankShare / 2);
    }

    void textOfPieces()
    {
        QCOMPARE(toText(makePiece(OpKind::Invert, 3, 11)), std::string("3INVERT.11"));
        QVERIFY(parseOp("3INVERT.11") == makePiece(OpKind::Invert, 3, 11));
        for (const char* bad : {"0INVERT", "0INVERT3", "0INVERT.", "0INVERT.40000", "0FACTOR_A", "0FACTOR_A.1"})
            QVERIFY2(!parseOp(bad), bad);
        const auto faultOf = [](const char* csv) {
            const Validation found = validate(readScheduleCsv(csv, {}, "case").value());
            return QString::fromStdString(found.faults.empty() ? "" : found.faults.front().message);
        };
        QCOMPARE(faultOf("0F0,0B0,0FACTOR_A0,0INVERT.0\n1F0,1B0\n"), QString());
        QVERIFY(faultOf("0F0,0B0,1INVERT.0\n1F0,1B0\n").contains("stage 1 is on rank 1"));
        QVERIFY(faultOf("0F0,0B0,1FACTOR_G0\n1F0,1B0\n").contains("stage 1 is on rank 1"));
    }

    void rulesInWords()
    {
        const FillRule rule = parseFill("kfac:pieces=3:cyclic:step=2").value();
        QVERIFY(rule.any && rule.pieces == 3 && rule.cyclic && rule.step == 2);
        QVERIFY(!parseFill("none")->any);
        for (const char* bad : {"", "save", "kfac:", "kfac:pieces", "kfac:pieces=0", "kfac:cyclic=1", "none:cyclic"})
            QVERIFY2(!parseFill(bad), bad);
    }
};

QTEST_APPLESS_MAIN(TestFill)
#include "tst_fill.moc"
