// Planners of other systems: their optima against stored cases and against trying everything; files that hold none.
#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include <QtTest/QtTest>
#include <nlohmann/json.hpp>

#include "schedules/planner/inter_operator.h"
#include "schedules/planner/job_packing.h"
#include "schedules/planner/layer_strategies.h"
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
const std::set<std::string> which{"plan", "split", "samples", "picks", "shares", "strategies", "places", "proven"};

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
        for (const char* begin : {"alpa", "layer", "merak", "cephalo", "comet", "jigsaw"})
            for (const QString& name : casesFolder().entryList({QString(begin) + "_*.json"}))
                QTest::newRow(qPrintable(name)) << casesFolder().filePath(name);
    }
    void storedCases()
    {
        QFETCH(QString, file);
        QFile in(file);
        QVERIFY(in.open(QIODevice::ReadOnly));
        const std::string text = in.readAll().toStdString();
        const auto answer = solveProblem(text);
        QVERIFY2(answer.has_value(), answer ? "" : answer.error().message.c_str());
        const std::string difference = differenceOf(Json::parse(text).at("answer"), Json::parse(answer->json), "");
        QVERIFY2(difference.empty(), difference.c_str());
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
        }
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
};

QTEST_APPLESS_MAIN(TestPlanners)
#include "tst_planners.moc"
