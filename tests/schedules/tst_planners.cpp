// Planners of other systems: their optima against stored cases and against trying everything; files that hold none.
#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include <QtTest/QtTest>
#include <nlohmann/json.hpp>

#include "schedules/planner/integer_program.h"
#include "schedules/planner/inter_operator.h"
#include "schedules/planner/intra_operator.h"
#include "schedules/planner/job_packing.h"
#include "schedules/planner/layer_strategies.h"
#include "schedules/planner/mesh_resharding.h"
#include "schedules/planner/model_cuts.h"
#include "schedules/planner/problem.h"

using namespace stagewright;

namespace {

using Json = nlohmann::json;

QDir casesFolder()
{
    const QString other = qEnvironmentVariable("STAGEWRIGHT_CASES");
    QDir folder(other.isEmpty() ? QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/planners") : other);
    if (!other.isEmpty() && folder.exists("planners")) folder.cd("planners");
    return folder;
}

// Of several plans that are as good either may be found; what is left out of a comparison says only which.
const std::set<std::string> which{"plan",       "split",  "samples", "picks", "shares",
                                  "strategies", "places", "proven",  "pick"};

std::string differenceOf(const Json& expected, const Json& found, const std::string& at)
{
    if (expected.is_object() && found.is_object()) {
        for (const auto& [key, value] : expected.items()) {
            if (which.contains(key)) continue;
            if (!found.contains(key)) return at + "/" + key + " is missing";
            if (auto inner = differenceOf(value, found[key], at + "/" + key); !inner.empty()) return inner;
        }
        return {};
    }
    if (expected.is_number() && found.is_number())
        return std::abs(expected.get<double>() - found.get<double>()) <= 1e-6 * (1 + std::abs(expected.get<double>()))
                   ? std::string()
                   : at + ": " + found.dump() + ", expected " + expected.dump();
    return expected == found ? std::string() : at + ": " + found.dump() + ", expected " + expected.dump();
}

} // namespace

class TestPlanners : public QObject {
    Q_OBJECT

private slots:
    void storedCases_data()
    {
        QTest::addColumn<QString>("file");
        for (const char* begin : {"alpa", "layer", "merak", "cephalo", "comet", "jigsaw", "intra", "mlp", "reshard"})
            for (const QString& name : casesFolder().entryList({QString(begin) + "_*.json"}))
                QTest::newRow(qPrintable(name)) << casesFolder().filePath(name);
    }
    void storedCases()
    {
        QFETCH(QString, file);
        QFile in(file);
        QVERIFY(in.open(QIODevice::ReadOnly));
        Json problem = Json::parse(in.readAll().toStdString());
        // cases whose answer is another program's
        if (problem.at("program").is_null()) problem["program"] = "intra_ilp";
        const auto answer = solveProblem(problem.dump());
        if (!answer && answer.error().code == ErrorCode::Unavailable) QSKIP(answer.error().message.c_str());
        QVERIFY2(answer.has_value(), answer ? "" : answer.error().message.c_str());
        const Json found = Json::parse(answer->json);
        const std::string difference = differenceOf(problem.at("answer"), found, "");
        QVERIFY2(difference.empty(), difference.c_str());
        QVERIFY(found.value("proven", true));
    }

    // A plan has the time that is said of it.
    void plansAreWorthWhatIsSaid()
    {
        for (const QString& name : casesFolder().entryList({"alpa_*.json"})) {
            QFile in(casesFolder().filePath(name));
            QVERIFY(in.open(QIODevice::ReadOnly));
            const auto text = in.readAll().toStdString();
            const auto input = Json::parse(text).at("input");
            const auto answer = Json::parse(solveProblem(text)->json);
            if (answer.at("latency").is_null()) continue;
            std::int64_t sum = 0, slowest = 0, next = 0, devices = 0;
            for (const auto& stage : answer.at("plan"))
                for (const auto& option : input.at("stages"))
                    if (std::equal(stage.begin(), stage.end(), option.begin())) {
                        QCOMPARE(stage[0].get<std::int64_t>(), next);
                        next = stage[1].get<std::int64_t>() + 1;
                        const auto& mesh = input.at("submeshes")[stage[2].get<std::size_t>()];
                        devices += mesh[0].get<std::int64_t>() * mesh[1].get<std::int64_t>();
                        sum += option[4].get<std::int64_t>();
                        slowest = std::max(slowest, option[4].get<std::int64_t>());
                    }
            QCOMPARE(next, input.at("layers").get<std::int64_t>());
            QCOMPARE(devices, input.at("hosts").get<std::int64_t>() * input.at("per_host").get<std::int64_t>());
            QCOMPARE(sum + (input.at("microbatches").get<std::int64_t>() - 1) * slowest,
                     answer.at("latency").get<std::int64_t>());
        }
    }

    // A plan of resharding holds each card for one task at a time, covers the tensor, and ends when it says.
    void reshardingsHoldEachCardOnce()
    {
        std::mt19937 random(13);
        const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        int proven = 0;
        for (int round = 0; round < 60; ++round) {
            ReshardingProblem problem;
            problem.shape = {pick(1, 3) * 12, pick(1, 2) * 12};
            problem.from = {pick(1, 3), pick(1, 3)};
            problem.to = {pick(1, 3), pick(1, 3)};
            for (auto* layout : {&problem.fromLayout, &problem.toLayout}) {
                layout->resize(2);
                for (const int axis : {0, 1})
                    if (pick(0, 2) > 0) (*layout)[static_cast<std::size_t>(pick(0, 1))].push_back(axis);
            }
            const auto plan = planResharding(problem);
            QVERIFY2(plan.has_value(), plan ? "" : plan.error().message.c_str());
            QCOMPARE(plan->placed.size(), plan->tasks.size());
            std::vector<std::int64_t> out(3, 0), in(3, 0);
            std::int64_t end = 0, elements = 0;
            std::set<int> seen;
            for (const PlacedTask& one : plan->placed) {
                const UnitTask& task = plan->tasks[static_cast<std::size_t>(one.task)];
                QVERIFY(seen.insert(one.task).second);
                QVERIFY(std::find(task.senders.begin(), task.senders.end(), one.sender) != task.senders.end());
                QCOMPARE(one.end - one.start, task.elements);
                auto& sender = out[static_cast<std::size_t>(one.sender)];
                QVERIFY(one.start >= sender);
                sender = one.end;
                for (const int host : task.receivers) {
                    QVERIFY(one.start >= in[static_cast<std::size_t>(host)]);
                    in[static_cast<std::size_t>(host)] = one.end;
                }
                end = std::max(end, one.end);
                elements += task.elements;
            }
            QCOMPARE(end, plan->best);
            QCOMPARE(elements, plan->elements);
            QVERIFY(plan->best <= plan->balanced);
            QVERIFY(plan->best * plan->bound.denominator >= plan->bound.numerator);
            proven += plan->proven ? 1 : 0;
        }
        QVERIFY(proven > 50);
    }

    // The order of few tasks against trying every order and sender.
    void reshardingsAgainstTryingEverything()
    {
        std::mt19937 random(17);
        const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        int tried = 0;
        while (tried < 25) {
            ReshardingProblem problem;
            problem.shape = {60};
            problem.from = {pick(1, 3), pick(1, 2)};
            problem.to = {pick(1, 3), pick(1, 2)};
            problem.fromLayout = {pick(0, 1) > 0 ? std::vector<int>{0} : std::vector<int>{1}};
            problem.toLayout = {pick(0, 1) > 0 ? std::vector<int>{0} : std::vector<int>{0, 1}};
            const auto plan = planResharding(problem);
            QVERIFY(plan.has_value());
            if (plan->tasks.size() > 5) continue;
            ++tried;
            std::int64_t best = std::int64_t(1) << 40;
            std::vector<std::int64_t> out(3, 0), in(3, 0);
            std::vector<bool> done(plan->tasks.size(), false);
            const std::function<void(std::size_t, std::int64_t)> all = [&](std::size_t count, std::int64_t end) {
                if (count == done.size()) {
                    best = std::min(best, end);
                    return;
                }
                for (std::size_t i = 0; i < done.size(); ++i)
                    for (const int sender : done[i] ? std::vector<int>() : plan->tasks[i].senders) {
                        const auto savedOut = out, savedIn = in;
                        std::int64_t start = out[static_cast<std::size_t>(sender)];
                        for (const int host : plan->tasks[i].receivers)
                            start = std::max(start, in[static_cast<std::size_t>(host)]);
                        const std::int64_t ends = start + plan->tasks[i].elements;
                        out[static_cast<std::size_t>(sender)] = ends;
                        for (const int host : plan->tasks[i].receivers) in[static_cast<std::size_t>(host)] = ends;
                        done[i] = true;
                        all(count + 1, std::max(end, ends));
                        done[i] = false;
                        out = savedOut, in = savedIn;
                    }
            };
            all(0, 0);
            QVERIFY(plan->proven);
            QCOMPARE(plan->best, best);
        }
    }

    // Random graphs, with and without memory rows, against trying everything.
    void operatorsAgainstTryingEverything()
    {
        std::mt19937 random(19);
        const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        int without = 0, limited = 0;
        for (int round = 0; round < 120; ++round) {
            IntraOperatorProblem problem;
            const int count = pick(1, 6);
            for (int op = 0; op < count; ++op) {
                problem.cost.emplace_back();
                for (int s = pick(1, 3); s > 0; --s) problem.cost.back().push_back(pick(0, 20));
            }
            for (int a = 0; a < count; ++a)
                for (int b = 0; b < count; ++b) {
                    if (a == b || pick(0, 2) > 0) continue;
                    IntraOperatorProblem::Edge edge{a, b, {}};
                    for (std::size_t i = problem.cost[static_cast<std::size_t>(a)].size() *
                                         problem.cost[static_cast<std::size_t>(b)].size();
                         i > 0; --i)
                        edge.cost.push_back(pick(0, 9) == 0 ? std::numeric_limits<double>::infinity() : pick(0, 20));
                    problem.edges.push_back(std::move(edge));
                }
            if (round % 2 == 1) {
                problem.cap = pick(5, 40);
                for (int row = pick(1, 3); row > 0; --row) {
                    problem.rows.emplace_back();
                    for (int op = 0; op < count; ++op) {
                        std::vector<double> sizes;
                        for (std::size_t s = 0; s < problem.cost[static_cast<std::size_t>(op)].size(); ++s)
                            sizes.push_back(pick(0, 12));
                        if (pick(0, 3) > 0) problem.rows.back().memory.emplace_back(op, std::move(sizes));
                    }
                }
            }
            double best = std::numeric_limits<double>::infinity();
            std::vector<int> chosen(static_cast<std::size_t>(count), 0);
            const std::function<void(std::size_t)> all = [&](std::size_t op) {
                if (op == chosen.size()) {
                    for (const auto& row : problem.rows) {
                        double sum = 0;
                        for (const auto& [other, sizes] : row.memory)
                            sum += sizes[static_cast<std::size_t>(chosen[static_cast<std::size_t>(other)])];
                        if (sum > problem.cap) return;
                    }
                    best = std::min(best, costOf(problem, chosen));
                    return;
                }
                for (std::size_t s = 0; s < problem.cost[op].size(); ++s) {
                    chosen[op] = static_cast<int>(s);
                    all(op + 1);
                }
            };
            all(0);
            const auto plan = planIntraOperator(problem);
            QVERIFY2(plan.has_value(), plan ? "" : plan.error().message.c_str());
            QCOMPARE(plan->has_value(), std::isfinite(best));
            if (!*plan) {
                ++without;
                continue;
            }
            QCOMPARE((*plan)->cost, best);
            QCOMPARE(costOf(problem, (*plan)->pick), best);
            QVERIFY((*plan)->proven && (*plan)->bound <= best);
            limited += (*plan)->method == "search" ? 1 : 0;
        }
        QVERIFY(without > 0 && limited > 0);
    }

    // Beyond the own search CBC answers; without it the answer says so.
    void largeMemoryProblemsWantCbc()
    {
        QFile in(casesFolder().filePath("intra_alpa_mlp12_cap30.json"));
        if (!in.open(QIODevice::ReadOnly)) QSKIP("these cases have no such problem");
        const Json input = Json::parse(in.readAll().toStdString()).at("input");
        IntraOperatorProblem problem;
        problem.cost = input.at("cost").get<std::vector<std::vector<double>>>();
        for (const auto& edge : input.at("edges"))
            problem.edges.push_back({edge[0], edge[1], edge[2].get<std::vector<double>>()});
        problem.cap = input.at("memory").at("cap");
        for (const auto& row : input.at("memory").at("rows")) {
            problem.rows.emplace_back();
            for (const auto& one : row)
                problem.rows.back().memory.emplace_back(one[0], one[1].get<std::vector<double>>());
        }
        const auto alone = planIntraOperator(problem, {}, false);
        if (alone) {
            QVERIFY(*alone);
            QVERIFY(!(*alone)->proven);
        } else {
            QCOMPARE(alone.error().code, ErrorCode::Unavailable);
            QVERIFY(alone.error().remedy.find("coinor-libcbc3") != std::string::npos);
        }
        if (!hasIntegerSolver()) QSKIP("COIN-OR CBC is not installed");
        const auto with = planIntraOperator(problem);
        QVERIFY(with && *with && (*with)->proven);
        QVERIFY((*with)->method.starts_with("CBC"));
        QVERIFY(!alone || (*alone)->cost >= (*with)->cost);
    }

    // Random problems against trying everything.
    void stagesAgainstTryingEverything()
    {
        std::mt19937 random(3);
        const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        for (int round = 0; round < 200; ++round) {
            InterOperatorProblem problem;
            problem.layers = pick(1, 4);
            problem.hosts = pick(1, 2);
            problem.perHost = 2;
            problem.microbatches = pick(1, 5);
            problem.submeshes = {{1, 1}, {1, 2}};
            if (problem.hosts == 2) problem.submeshes.push_back({2, 2});
            for (int first = 0; first < problem.layers; ++first)
                for (int last = first; last < problem.layers; ++last)
                    for (int mesh = 0; mesh < static_cast<int>(problem.submeshes.size()); ++mesh)
                        if (pick(0, 4) > 0) problem.options.push_back({first, last, mesh, 0, pick(1, 9), pick(-1, 4)});
            std::int64_t best = -1, plans = 0;
            std::vector<const StageOption*> chosen;
            const std::function<void(int, int)> all = [&](int layer, int devices) {
                if (layer == problem.layers) {
                    if (devices != 0) return;
                    std::int64_t sum = 0, slowest = 0;
                    for (std::size_t i = 0; i < chosen.size(); ++i) {
                        if (chosen[i]->successors < static_cast<std::int64_t>(chosen.size() - 1 - i)) return;
                        sum += chosen[i]->time;
                        slowest = std::max(slowest, chosen[i]->time);
                    }
                    const std::int64_t time = sum + (problem.microbatches - 1) * slowest;
                    if (best < 0 || time < best) best = time, plans = 0;
                    if (time == best) ++plans;
                    return;
                }
                for (const auto& option : problem.options) {
                    const int needs = problem.submeshes[static_cast<std::size_t>(option.submesh)].devices();
                    if (option.first != layer || needs > devices) continue;
                    chosen.push_back(&option);
                    all(option.last + 1, devices - needs);
                    chosen.pop_back();
                }
            };
            all(0, problem.hosts * problem.perHost);
            const auto plan = planInterOperator(problem);
            QVERIFY(plan.has_value());
            QCOMPARE(*plan ? (*plan)->time : -1, best);
            if (*plan) QCOMPARE((*plan)->plans, plans);
        }
    }

    void strategiesAgainstTryingEverything()
    {
        std::mt19937 random(5);
        const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        for (int round = 0; round < 200; ++round) {
            LayerStrategyProblem problem;
            const int layers = pick(1, 5), strategies = pick(1, 3);
            const auto row = [&](int most) {
                std::vector<std::int64_t> out;
                for (int s = 0; s < strategies; ++s) out.push_back(pick(0, most));
                return out;
            };
            for (int layer = 0; layer < layers; ++layer) {
                problem.time.push_back(row(6));
                problem.memory.push_back(row(6));
            }
            for (int s = 0; s < strategies; ++s) problem.change.push_back(row(2));
            problem.budget = pick(0, 5 * layers);
            std::int64_t best = -1, memory = 0, choices = 0;
            int all = 1;
            for (int layer = 0; layer < layers; ++layer) all *= strategies;
            for (int code = 0; code < all; ++code) {
                std::int64_t time = 0, held = 0;
                for (int layer = 0, rest = code, before = -1; layer < layers; ++layer, rest /= strategies) {
                    const auto s = static_cast<std::size_t>(rest % strategies), at = static_cast<std::size_t>(layer);
                    time +=
                        problem.time[at][s] + (before < 0 ? 0 : problem.change[static_cast<std::size_t>(before)][s]);
                    held += problem.memory[at][s];
                    before = static_cast<int>(s);
                }
                if (held > problem.budget) continue;
                if (best < 0 || time < best) best = time, memory = held, choices = 0;
                if (time == best) memory = std::min(memory, held), ++choices;
            }
            const auto plan = chooseStrategies(problem);
            QVERIFY(plan.has_value());
            QCOMPARE(plan->has_value(), best >= 0);
            if (!*plan) continue;
            QCOMPARE((*plan)->time, best);
            QCOMPARE((*plan)->memory, memory);
            QCOMPARE((*plan)->choices, choices);
        }
    }

    void packingAgainstTryingEverything()
    {
        std::mt19937 random(7);
        const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        for (int round = 0; round < 100; ++round) {
            PackingProblem problem{pick(1, 3), {}};
            for (int job = pick(1, 3); job > 0; --job) {
                problem.jobs.emplace_back();
                for (int worker = pick(1, problem.gpus); worker > 0; --worker)
                    problem.jobs.back().push_back(pick(1, 9));
            }
            std::vector<std::pair<std::size_t, std::int64_t>> workers;
            for (std::size_t job = 0; job < problem.jobs.size(); ++job)
                for (const auto time : problem.jobs[job]) workers.emplace_back(job, time);
            std::int64_t best = 1 << 20;
            std::vector<std::int64_t> loads(static_cast<std::size_t>(problem.gpus), 0);
            std::set<std::pair<std::size_t, std::size_t>> used;
            const std::function<void(std::size_t)> all = [&](std::size_t index) {
                if (index == workers.size()) {
                    best = std::min(best, *std::max_element(loads.begin(), loads.end()));
                    return;
                }
                for (std::size_t gpu = 0; gpu < loads.size(); ++gpu) {
                    if (!used.emplace(workers[index].first, gpu).second) continue;
                    loads[gpu] += workers[index].second;
                    all(index + 1);
                    loads[gpu] -= workers[index].second;
                    used.erase({workers[index].first, gpu});
                }
            };
            all(0);
            const auto packing = packJobs(problem);
            QVERIFY(packing.has_value());
            QCOMPARE(packing->packed, best);
            QVERIFY(packing->proven);
            QVERIFY(packing->fifo >= packing->packed);
        }
    }

    void jobsAreServedAsTheyCome()
    {
        // 0: 3 on GPU 0, 1 on GPU 1; 1: 2 on GPU 1, its other worker not there, so on GPU 0; together 3 + 4 and 1 + 2
        QCOMPARE(packJobs({2, {{3, 1}, {2, 4}}})->fifo, 7);
        QCOMPARE(packJobs({2, {{3, 1}, {2, 4}}})->packed, 5);
    }

    void partsAreDividedBest()
    {
        const std::vector<std::int64_t> costs{3, 1, 4, 1, 5, 9, 2, 6};
        QCOMPARE(divide(costs, 1)->largest, 31);
        QCOMPARE(divide(costs, 8)->largest, 9);
        QVERIFY(!divide(costs, 9));
        QVERIFY(!divide({}, 1));
        const std::vector<int> cuts{2};
        QCOMPARE(divide(costs, 2, cuts)->bounds, (std::vector<int>{0, 2, 8}));
        QVERIFY(!divide(costs, 3, cuts));
    }

    // An output with more than five users is carried along.
    void carriedOutputsDoNotCount()
    {
        std::vector<GraphNode> nodes{{"mask", 1, {}}};
        for (int i = 0; i < 6; ++i)
            nodes.push_back({"n" + std::to_string(i), 1, {"mask", i == 0 ? "ids" : "n" + std::to_string(i - 1)}});
        QCOMPARE(legalCuts(nodes), (std::vector<int>{1, 2, 3, 4, 5, 6}));
        nodes.pop_back(); // five users: two outputs cross
        QCOMPARE(legalCuts(nodes), (std::vector<int>{1}));
    }

    void wrongProblemsAreNamed_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("word");
        const auto row = [](const char* text, const char* word) { QTest::newRow(word) << text << word; };
        row("", "it is not a problem");
        row("[1]", "an object with program and input");
        row(R"({"program": "x", "input": {}})", "there is no planner 'x'");
        row(R"({"program": "merak", "input": {}})", "kind is missing");
        row(R"({"program": "merak", "input": {"kind": "tea"}})", "kind is 'tea'");
        row(R"({"program": "jigsaw", "input": {"gpus": 1, "jobs": [[1, 2]]}})", "2 workers for 1 GPUs");
        row(R"({"program": "jigsaw", "input": {"gpus": "x", "jobs": [[1]]}})", "gpus is of another type");
        row(R"({"program": "layerwise", "input": {"time": [[1]], "memory": [[1, 2]], "change": [[0]], "budget": 1}})",
            "2 numbers for 1 strategies");
        row(R"({"program": "alpa_inter", "input": {"layers": 1, "hosts": 1, "per_host": 1, "microbatches": 1, "submeshes": [[1]], "stages": []}})",
            "a submesh is");
        row(R"({"program": "alpa_inter", "input": {"layers": 1, "hosts": 1, "per_host": 1, "microbatches": 1, "submeshes": [[2, 1]], "stages": []}})",
            "is not in the cluster");
        const auto reshard = [&](const char* from, const char* layout, const char* word) {
            row(QString(R"({"program": "reshard", "input": {"shape": [8, 8], "src": %1, "dst": [1, 2], )"
                        R"("src_layout": %2, "dst_layout": [[], []]}})")
                    .arg(from, layout)
                    .toUtf8()
                    .constData(),
                word);
        };
        reshard("[1]", "[[], []]", "src is [hosts, devices of each]");
        reshard("[99, 1]", "[[], []]", "src has 99 hosts");
        reshard("[2, 2]", "[[0]]", "src_layout has 1 lists for 2 dimensions");
        reshard("[2, 2]", "[[0], [0]]", "axis 0 cuts twice");
        reshard("[2, 2]", "[[2], []]", "there is no axis 2");
        row(R"({"program": "intra_ilp", "input": {"cost": [[1, 2], [3]], "edges": [[0, 1, [1]]]}})",
            "1 costs for 2 pairs");
        row(R"({"program": "intra_ilp", "input": {"cost": [[1, 2], []], "edges": []}})", "operator 1 has 0 strategies");
        row(R"({"program": "intra_ilp", "input": {"cost": [[1]], "edges": [[0, 3, [1]]]}})", "edge 0 → 3");
        row(R"({"program": "intra_ilp", "input": {"cost": [[1]], "edges": [], "memory": {"rows": []}}})",
            "memory: cap is missing");
        row(R"({"program": "intra_ilp", "input": {"cost": [[1]], "edges": [], "memory": {"cap": 1, "rows": [[[0, [-1]]]]}}})",
            "is not 0 to");
        row(R"({"program": "mlp_sharding", "input": {"b": 0, "h": 1, "f": 1, "n": 1, "alpha": 0, "beta": 1}})",
            "are 1 to 10^9, not 0");
        row(R"({"program": "cephalo", "input": {"batch": 4, "state": 1, "gpus": [{"f1": 1}]}})",
            "GPU 1: f0 is missing");
        row(R"({"program": "cephalo", "input": {"batch": 4, "state": -1, "gpus": [{"f1": 1, "f0": 0, "b1": 1, "b0": 0, "a1": 1, "a0": 1, "cap": 9}]}})",
            "0 or more");
    }
    void wrongProblemsAreNamed()
    {
        QFETCH(QString, text);
        QFETCH(QString, word);
        const auto answer = solveProblem(text.toStdString());
        QVERIFY(!answer.has_value());
        QVERIFY2(answer.error().message.find(word.toStdString()) != std::string::npos, answer.error().message.c_str());
        QVERIFY(!answer.error().remedy.empty());
    }

    // Members that are missing or of another type, in every stored case: an error or an answer, never an end.
    void damagedProblemsEndInWords()
    {
        std::mt19937 random(11);
        int errors = 0;
        for (const QString& name : casesFolder().entryList({"*.json"})) {
            QFile in(casesFolder().filePath(name));
            QVERIFY(in.open(QIODevice::ReadOnly));
            const Json whole = Json::parse(in.readAll().toStdString());
            if (whole.dump().size() > 20'000) continue; // its kind is among the others
            for (const auto& [key, value] : whole.at("input").items())
                for (const Json& other : {Json(nullptr), Json(-1), Json("x"), Json::array(), Json::object(),
                                          Json(1e300), Json({Json({1})})}) {
                    Json damaged = whole;
                    damaged["input"][key] = other;
                    const auto answer = solveProblem(damaged.dump());
                    errors += answer ? 0 : 1;
                }
        }
        QVERIFY(errors > 100);
    }

    // Every example has a plan and a picture, whose numbers move as sliders do; what can't be drawn says why.
    void examplesHavePictures()
    {
        for (const PlannerInfo& one : allExamples()) {
            const std::string name(one.program);
            const auto problem = exampleProblem(one.program);
            QVERIFY2(problem.has_value(), name.c_str());
            QCOMPARE(exampleLike(*problem), name);
            QCOMPARE(programOf(*problem), name.substr(0, name.find(':')));
            const auto answer = solveProblem(*problem);
            QVERIFY2(answer.has_value() && answer->fits, name.c_str());
            QVERIFY2(!answer->picture.plot.empty() && !answer->picture.sentence.empty(), name.c_str());
            QVERIFY2(!answer->picture.plot.items.empty(), name.c_str());
            for (const ProblemNumber& number : numbersOf(*problem)) {
                const auto other = withNumber(*problem, number.key, number.value * 2);
                QVERIFY2(other.has_value(), name.c_str());
                const auto before = numbersOf(*problem), now = numbersOf(*other);
                QCOMPARE(now.size(), before.size());
                for (std::size_t i = 0; i < now.size(); ++i)
                    QCOMPARE(now[i].value, before[i].key == number.key ? number.value * 2 : before[i].value);
                const auto moved = solveProblem(*other);
                QVERIFY2(moved.has_value() || !moved.error().message.empty(), name.c_str());
            }
            QVERIFY(!withNumber(*problem, "nothing", 1).has_value());
        }
        QVERIFY(!exampleProblem("none").has_value());
        QVERIFY(numbersOf("{").empty() && programOf("[1]").empty());
    }
    // The picture of COMET's question follows its numbers: with a faster network the map's middle is another step.
    void clusterMapsFollowTheirNumbers()
    {
        const std::string problem = *exampleProblem("comet");
        const auto middleOf = [](const std::string& of) {
            const auto answer = solveProblem(of);
            if (!answer) qFatal("%s", answer.error().message.c_str());
            const Plot& map = answer->picture.plot.below.front();
            return map.items[map.items.size() / 2].text;
        };
        QVERIFY(middleOf(problem).find("144.6") != std::string::npos ||
                middleOf(problem).find("144.5") != std::string::npos);
        const std::string faster = *withNumber(problem, "between", 125e9);
        QVERIFY(middleOf(problem) != middleOf(faster));
        // where prices are left out there is no plot of them
        Json plain = Json::parse(problem);
        plain["input"].erase("prices");
        QCOMPARE(solveProblem(plain.dump())->picture.plot.below.size(), 1U);
        QCOMPARE(solveProblem(problem)->picture.plot.below.size(), 2U);
    }
    // Damaged problems end in words: members left out, of other types, of other sizes, negative, huge.
    void changedExamplesEndInWords()
    {
        std::mt19937 random(5);
        const std::vector<Json> odd{nullptr,
                                    true,
                                    -1,
                                    0,
                                    1,
                                    3,
                                    1e300,
                                    -2.5,
                                    std::int64_t{1} << 62,
                                    "x",
                                    Json::array(),
                                    Json::object(),
                                    Json::array({1, 2}),
                                    Json::array({Json::array({-1, 7, 1 << 30})})};
        int answered = 0, refused = 0;
        for (const PlannerInfo& one : allExamples()) {
            const Json whole = Json::parse(*exampleProblem(one.program));
            for (int round = 0; round < 150; ++round) {
                Json damaged = whole;
                for (int changes = 1 + static_cast<int>(random() % 2); changes > 0; --changes) {
                    Json* at = &damaged["input"];
                    for (int depth = static_cast<int>(random() % 4); depth >= 0 && at->is_structured() && !at->empty();
                         --depth) {
                        auto next = at->begin();
                        std::advance(next, static_cast<std::ptrdiff_t>(random() % at->size()));
                        at = &*next;
                    }
                    *at = odd[random() % odd.size()];
                }
                std::stop_source stop;
                Progress progress;
                progress.stop = stop.get_token();
                progress.report = [&](std::string_view, std::int64_t done, std::int64_t) {
                    if (done > 2000) stop.request_stop();
                };
                const auto answer = solveProblem(damaged.dump(), progress);
                (answer ? answered : refused) += 1;
                QVERIFY2(answer || (!answer.error().message.empty()), damaged.dump().substr(0, 400).c_str());
            }
        }
        QVERIFY(answered > 100 && refused > 300);
    }
};

QTEST_APPLESS_MAIN(TestPlanners)
#include "tst_planners.moc"
