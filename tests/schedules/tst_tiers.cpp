// Memory on two tiers and work that can wait, against stored cases: replays under a cap, chunks, optimizer buckets,
// owners of layers, filled gaps; and against rules that hold for any input.
#include <algorithm>
#include <random>

#include <QtTest/QtTest>
#include <nlohmann/json.hpp>

#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/planner/problem.h"
#include "schedules/tiers/chunks.h"
#include "schedules/tiers/fill_gaps.h"
#include "schedules/tiers/residency.h"
#include "tier_cases.h"

using namespace stagewright;
using stagewright::testing::tierCases;

namespace {

using Json = nlohmann::json;

// What solve answers; null where it refuses.
Json answerOf(const char* program, const Json& input)
{
    const auto answer = solveProblem(Json{{"program", program}, {"input", input}}.dump());
    if (!answer) qWarning() << answer.error().message.c_str();
    return answer ? Json::parse(answer->json) : Json();
}

// Each expected member is found with its value.
bool holds(const Json& found, const Json& expected)
{
    for (const auto& [key, value] : expected.items())
        if (!found.contains(key) || found[key] != value) {
            qWarning() << key.c_str() << (found.contains(key) ? found[key] : Json()).dump().c_str() << "expected"
                       << value.dump().c_str();
            return false;
        }
    return true;
}

std::vector<BusyOp> busyOf(const Schedule& schedule, const SimResult& result, int rank)
{
    std::vector<BusyOp> out;
    for (std::size_t i = 0; i < schedule.order[static_cast<std::size_t>(rank)].size(); ++i) {
        const std::size_t id = result.indexOf(rank, i);
        const bool forward = schedule.order[static_cast<std::size_t>(rank)][i].kind == OpKind::Forward;
        out.push_back({result.start[id], result.end[id], forward ? BusyOp::Kind::Forward : BusyOp::Kind::Backward});
    }
    return out;
}

std::int64_t fewestLoads(const Accesses& accesses, int cap, std::size_t moment, std::vector<int> resident)
{
    // Trying every set of victims.
    if (moment == accesses.use.size()) return 0;
    const auto& use = accesses.use[moment];
    std::vector<int> free;
    std::int64_t misses = 0;
    for (const int piece : use) misses += std::find(resident.begin(), resident.end(), piece) == resident.end();
    for (const int piece : resident)
        if (std::find(use.begin(), use.end(), piece) == use.end()) free.push_back(piece);
    const auto leave = std::max<std::int64_t>(static_cast<std::int64_t>(resident.size()) + misses - cap, 0);
    std::int64_t best = 1'000'000;
    for (unsigned set = 0; set < 1U << free.size(); ++set) {
        if (__builtin_popcount(set) != leave) continue;
        std::vector<int> next = use;
        for (std::size_t i = 0; i < free.size(); ++i)
            if (!(set >> i & 1)) next.push_back(free[i]);
        best = std::min(best, misses + fewestLoads(accesses, cap, moment + 1, next));
    }
    return best;
}

} // namespace

class TestTiers : public QObject {
    Q_OBJECT

private slots:
    void replays()
    {
        const Json cases = tierCases("tier_replay.json");
        if (cases.empty()) QSKIP("no such cases in STAGEWRIGHT_CASES");
        for (const Json& one : cases)
            for (const auto& [cap, expected] : one["results"].items()) {
                Json input{{"use", one["use"]}, {"caps", Json::array({expected.value("cap", Json(std::stoi(cap)))})}};
                if (one.contains("write")) input["write"] = one["write"];
                const Json found = answerOf("residency", input).at("by_cap").at(0);
                for (const char* policy : {"belady", "lru", "fifo"})
                    QVERIFY2(holds(found[policy], expected[policy]), one["name"].dump().c_str());
                QCOMPARE(found["belady"]["loads"], expected["optimum_loads"]);
            }
    }

    void fewestLoadsByTheKnownFuture()
    {
        std::mt19937 random(7);
        const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        for (int round = 0; round < 200; ++round) {
            Accesses accesses;
            for (int moment = 0; moment < 9; ++moment) {
                std::vector<int> use{pick(0, 4)};
                if (const int other = pick(0, 4); pick(0, 1) != 0 && other != use[0]) use.push_back(other);
                accesses.use.push_back(use);
            }
            const auto trace = AccessTrace::of(accesses);
            QVERIFY(trace);
            for (int cap = trace->widest(); cap <= 4; ++cap) {
                const int caps[] = {cap};
                const auto belady = trace->replay(caps, Eviction::Belady, false);
                QCOMPARE(belady->loads, fewestLoads(accesses, cap, 0, {}));
                for (const Eviction other : {Eviction::LeastRecent, Eviction::FirstIn})
                    QVERIFY(trace->replay(caps, other, false)->loads >= belady->loads);
            }
        }
    }

    void chunks()
    {
        const Json cases = tierCases("chunks.json");
        if (cases.empty()) QSKIP("no such cases in STAGEWRIGHT_CASES");
        for (const Json& one : cases) {
            const auto kind = one["kind"].get<std::string>();
            if (kind == "pack") {
                const Json found = answerOf("chunks", one);
                if (one["result"].is_null()) {
                    QVERIFY(found["result"].is_null());
                    continue;
                }
                QCOMPARE(found["result"], one["result"]["chunks"]);
                for (const char* key : {"count", "elements", "waste"}) QCOMPARE(found[key], one["result"][key]);
            } else if (kind == "step") {
                const Json found = answerOf("chunks", one);
                for (auto& [policy, expected] : one["result"].items()) {
                    Json figures = expected;
                    QCOMPARE(found["budget_chunks"], figures["budget_chunks"]);
                    figures.erase("budget_chunks");
                    QVERIFY(holds(found["result"][policy], figures));
                }
                QCOMPARE(found["lowest_cap_in_chunks"], one["lowest_cap_in_chunks"]);
            } else if (kind == "pipeline") {
                Json passes = Json::array();
                for (const QString& op : QString::fromStdString(one["list"].get<std::string>()).split(' '))
                    passes.push_back(op.contains('F') ? "F" : "B");
                for (const auto& [cap, expected] : one["by_cap"].items()) {
                    const Json found = answerOf("chunks", {{"kind", "passes"},
                                                           {"passes", passes},
                                                           {"layers", one["layers"]},
                                                           {"caps", {std::stoi(cap)}}});
                    for (const auto& [policy, figures] : expected.items())
                        QVERIFY(holds(found["by_cap"][0][policy], figures));
                }
            } else if (kind == "optimizer chunks on the device") {
                Json input = one;
                input["kind"] = "optimizer";
                QCOMPARE(answerOf("chunks", input)["result"], one["result"]);
            }
        }
    }

    void buckets()
    {
        const Json cases = tierCases("optimizer_buckets.json");
        if (cases.empty()) QSKIP("no such cases in STAGEWRIGHT_CASES");
        for (const Json& one : cases) {
            if (one["kind"] == "memory") {
                QVERIFY(holds(answerOf("buckets", one), one["result"]));
                continue;
            }
            for (const auto& [way, expected] : one["result"].items()) {
                Json input = one;
                input["full_duplex"] = way.starts_with("full");
                input["buffers"] = std::stoi(way.substr(way.find(',') + 2));
                QVERIFY2(holds(answerOf("buckets", input), expected), way.c_str());
            }
            for (const auto& [key, rows] : one.items()) {
                if (!key.starts_with("behind_all_reduce")) continue;
                for (const auto& [count, expected] : rows.items()) {
                    Json input = one;
                    input["all_reduce"] = {{"buckets", std::stoi(count)}, {"latency", 100}, {"per_element", 8}};
                    QCOMPARE(answerOf("buckets", input)["time"], expected["time"]);
                }
            }
        }
    }

    void owners()
    {
        const Json cases = tierCases("owners.json");
        if (cases.empty()) QSKIP("no such cases in STAGEWRIGHT_CASES");
        Json layers;
        for (const Json& one : cases) {
            Json input = one;
            if (one.contains("layers (in, out)")) {
                if (one["layers (in, out)"].is_array()) layers = one["layers (in, out)"];
                input["layers"] = layers;
            }
            const Json found = answerOf("owners", input);
            QVERIFY(holds(found, one["result"]));
            if (one.contains("volumes")) QVERIFY(holds(found["volumes"], one["volumes"]));
        }
    }

    void filledGaps()
    {
        const Json cases = tierCases("bubble_filler.json");
        if (cases.empty()) QSKIP("no such cases in STAGEWRIGHT_CASES");
        for (const Json& one : cases) {
            const auto schedule = makeSchedule(one["schedule"].get<std::string>(),
                                               {one["ranks"].get<int>(), one["microbatches"].get<int>()});
            QVERIFY(schedule);
            CostModel costs = CostModel::uniform(*schedule);
            costs.timeUnit = 1;
            for (int stage = 0; stage < schedule->stages; ++stage) {
                costs.setDuration(OpKind::Forward, stage, one["F"].get<Nanos>());
                costs.setDuration(OpKind::Backward, stage, one["B"].get<Nanos>());
            }
            const auto result = simulate(*schedule, costs);
            QCOMPARE(result->makespan, one["step"].get<Nanos>());
            for (const auto& [rule, ranks] : one["results"].items())
                for (int rank = 0; rank < schedule->ranks; ++rank) {
                    Json busy = Json::array();
                    for (const BusyOp& op : busyOf(*schedule, *result, rank))
                        busy.push_back({op.start, op.end, op.kind == BusyOp::Kind::Forward ? "F" : "B"});
                    Json found = answerOf(
                        "fill", {{"busy", busy}, {"step", one["step"]}, {"work", one["work"]}, {"rule", rule}});
                    Json expected = ranks[static_cast<std::size_t>(rank)];
                    const auto unplaced = static_cast<std::int64_t>(found["unplaced"].size());
                    QCOMPARE(unplaced, expected["unplaced"].get<std::int64_t>());
                    if (expected["placed"].is_number()) // pieces, those without a place among them
                        QCOMPARE(static_cast<std::int64_t>(found["placed"].size()) + unplaced,
                                 expected["placed"].get<std::int64_t>());
                    else {
                        const auto sorted = [](std::vector<Json> pieces) {
                            std::sort(pieces.begin(), pieces.end());
                            return pieces;
                        };
                        QCOMPARE(sorted(found["placed"]), sorted(expected["placed"]));
                    }
                    expected.erase("placed");
                    expected.erase("unplaced");
                    QVERIFY2(holds(found, expected), (one["name"].get<std::string>() + " " + rule).c_str());
                }
        }
    }

    // Pieces lie in gaps, don't overlap, and come behind what they need; the rest of a gap has a reason.
    void fillingKeepsItsRules()
    {
        std::mt19937 random(3);
        const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        for (int round = 0; round < 300; ++round) {
            std::vector<BusyOp> busy;
            Nanos at = 0;
            for (int i = 0; i < 8; ++i) {
                at += pick(0, 3) * 25;
                const Nanos end = at + pick(1, 4) * 20;
                busy.push_back({at, end, i % 2 == 0 ? BusyOp::Kind::Forward : BusyOp::Kind::Backward});
                at = end;
            }
            const Nanos step = at + pick(0, 80);
            const std::vector<FillerWork> works{{"A", FillerWork::After::Forwards, 4, pick(1, 30), {}},
                                                {"G", FillerWork::After::Backwards, 4, pick(1, 30), {}},
                                                {"I", FillerWork::After::Works, pick(1, 3), pick(1, 60), {0, 1}}};
            const auto filled = fillGaps(busy, step, works, false);
            QVERIFY(filled);
            std::vector<std::pair<Nanos, Nanos>> taken;
            for (int s = 0; s < filled->steps; ++s)
                for (const BusyOp& op : busy) taken.emplace_back(s * step + op.start, s * step + op.end);
            Nanos factors = 0;
            for (const PlacedPiece& piece : filled->placed) {
                const Nanos start = piece.step * step + piece.start, end = piece.step * step + piece.end;
                taken.emplace_back(start, end);
                QVERIFY(piece.end < step || busy.empty());
                if (piece.work < 2) {
                    factors = std::max(factors, end);
                    QVERIFY(start >= busy[static_cast<std::size_t>(piece.item * 2 + piece.work)].end);
                } else {
                    QVERIFY(start >= factors);
                }
            }
            std::sort(taken.begin(), taken.end());
            for (std::size_t i = 1; i < taken.size(); ++i) QVERIFY(taken[i].first >= taken[i - 1].second);
            QCOMPARE(filled->placed.size() + filled->unplaced.size(), static_cast<std::size_t>(8 + works[2].items));
            QVERIFY(!filled->unplaced.empty() || filled->steps >= filled->leastSteps);
            for (const IdleRest& rest : filled->idle) {
                QVERIFY(rest.start < rest.end);
                if (rest.why == IdleRest::Why::TooShort) QVERIFY(rest.missing > 0);
            }
        }
    }

    void wordsForWrongInput_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("says");
        QTest::newRow("cap") << R"({"program":"residency","input":{"use":[[0],[1]],"caps":[[1,1,1]]}})"
                             << "moments";
        QTest::newRow("write") << R"({"program":"residency","input":{"use":[[0]],"write":[[1]]}})"
                               << "does not use";
        QTest::newRow("piece") << R"({"program":"residency","input":{"use":[[-1]]}})"
                               << "0 to 1000000";
        QTest::newRow("kind") << R"({"program":"chunks","input":{"kind":"x"}})"
                              << "kind is 'x'";
        QTest::newRow("layout")
            << R"({"program":"buckets","input":{"kind":"memory","parameters":1,"bucket":1,"layout":"y"}})"
            << "layout is 'y'";
        QTest::newRow("members") << R"({"program":"owners","input":{"cost":[1],"members":0}})"
                                 << "members";
        QTest::newRow("overlap") << R"({"program":"fill","input":{"busy":[[0,5,"F"],[4,6,"B"]],"step":9,"work":[]}})"
                                 << "overlaps";
        QTest::newRow("needs")
            << R"({"program":"fill","input":{"busy":[],"step":9,"work":[{"name":"I","kind":"after","dur":1,"needs":["A"]}]}})"
            << "no work before it has that name";
    }
    void wordsForWrongInput()
    {
        QFETCH(QString, text);
        QFETCH(QString, says);
        const auto answer = solveProblem(text.toStdString());
        QVERIFY(!answer);
        QVERIFY2(answer.error().message.find(says.toStdString()) != std::string::npos, answer.error().message.c_str());
    }
};

QTEST_APPLESS_MAIN(TestTiers)
#include "tst_tiers.moc"
