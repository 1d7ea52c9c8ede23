// Layers as a run measured them: sums beside its ops, halves of full backwards, what is unknown.
#include <cmath>
#include <functional>

#include <QTest>

#include "schedules/layout/layout.h"
#include "schedules/library/registry.h"
#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"
#include "schedules/planner/problem.h"
#include "traces/fit/measured_layers.h"
#include "traces/fit/measured_step.h"
#include "traces/fit/recorded_jobs.h"
#include "traces/fit/recorded_lines.h"
#include "traces/run/simulated_run.h"

using namespace stagewright;

namespace {

using Part = LayerCosts::Part;

LayerCosts part(Part kind, Nanos forward, Nanos input, Nanos weight, Nanos full = 0)
{
    LayerCosts out;
    out.part = kind;
    out.duration[static_cast<std::size_t>(OpKind::Forward)] = forward;
    out.duration[static_cast<std::size_t>(OpKind::InputGrad)] = input;
    out.duration[static_cast<std::size_t>(OpKind::WeightGrad)] = weight;
    out.duration[static_cast<std::size_t>(OpKind::Backward)] = full;
    out.memory.weight = 2 * forward;
    out.memory.boundary = 7;
    return out;
}

// Two stages of one and two blocks.
Run measuredRun()
{
    Run run;
    run.info.name = "zb-h1";
    run.configuration = {{"stage_layers", "1,2"}};
    CostModel costs(2, CostSource::Fitted);
    costs.layers = {part(Part::PerOp, 5, 6, 7),       part(Part::Embedding, 10, 0, 20),
                    part(Part::Block, 100, 110, 120), part(Part::Block, 200, 210, 220),
                    part(Part::Block, 300, 310, 320), part(Part::Head, 50, 60, 70)};
    costs.links.all.latency = 3;
    const auto set = [&](int stage, Nanos forward, Nanos input, Nanos weight) {
        costs.setDuration(OpKind::Forward, stage, forward);
        costs.setDuration(OpKind::InputGrad, stage, input);
        costs.setDuration(OpKind::WeightGrad, stage, weight);
    };
    set(0, 115, 116, 147);
    set(1, 555, 586, 617);
    run.costs = costs;
    return run;
}

} // namespace

class TestMeasuredLayers : public QObject {
    Q_OBJECT

private slots:
    void sumsAreBesideTheOps()
    {
        Run run = measuredRun();
        const auto exact = measuredLayersOf(run);
        QVERIFY2(exact.has_value(), exact ? "" : exact.error().message.c_str());
        QCOMPARE(exact->problem.layers.size(), std::size_t{5});
        QVERIFY(exact->problem.layers.front().kind == ModelLayer::Kind::Embedding);
        QVERIFY(exact->problem.layers.back().kind == ModelLayer::Kind::Loss);
        QCOMPARE(exact->problem.layers[2].input, Nanos{210});
        QCOMPARE(exact->problem.layers[2].weights, Bytes{400});
        QCOMPARE(exact->problem.layers[2].boundary, Bytes{7});
        QCOMPARE(exact->problem.link.latency, Nanos{3});
        QCOMPARE(exact->problem.perOp.time(), Nanos{18});
        QCOMPARE(exact->largestError, 0.0);
        QVERIFY(exact->unknown.empty());
        const double whole = 115 + 116 + 147 + 555 + 586 + 617;
        QCOMPARE(exact->byLayers, (whole - 2 * 18) / whole);
        // the costs of the run's own stages are those of its layers
        const CostModel costs = partitionCosts(exact->problem, {0, 2, 5});
        for (const OpKind kind : {OpKind::Forward, OpKind::InputGrad, OpKind::WeightGrad})
            for (const int stage : {0, 1})
                QCOMPARE(costs.duration(kind, stage, -1), run.costs->duration(kind, stage, -1));

        run.costs->setDuration(OpKind::Forward, 0, 230); // twice what its layers take
        const auto off = measuredLayersOf(run);
        QCOMPARE(off->largestError, 0.5);
        QCOMPARE(off->meanError, 0.5 / 6);
    }

    void whatIsUnknownIsSaid()
    {
        Run run = measuredRun();
        run.configuration.clear();
        run.costs->links = {};
        run.costs->layers[2] = part(Part::Block, 100, 0, 0, 231);
        const auto some = measuredLayersOf(run);
        QVERIFY(some.has_value());
        QCOMPARE(some->problem.layers[1].input, Nanos{115});
        QCOMPARE(some->problem.layers[1].weight, Nanos{116});
        QCOMPARE(some->unknown.size(), std::size_t{3});
        QVERIFY(some->unknown[0].starts_with("of 1 layers only the full backward"));
        QVERIFY(some->unknown[1].find("messages") != std::string::npos);
        QVERIFY(some->unknown[2].find("are not compared") != std::string::npos);
        QCOMPARE(some->meanError, 0.0);
        const auto refused = [&](const std::function<void(CostModel&)>& change) {
            Run other = measuredRun();
            change(*other.costs);
            const auto none = measuredLayersOf(other);
            return none ? std::string() : none.error().message;
        };
        QCOMPARE(refused([](CostModel& costs) { costs.layers.clear(); }),
                 std::string("run zb-h1: what its layers take is unknown"));
        QCOMPARE(refused([](CostModel& costs) { costs.layers[3] = part(Part::Block, 0, 1, 1); }),
                 std::string("run zb-h1: the forward of layer 2 is unknown"));
        QCOMPARE(refused([](CostModel& costs) { costs.layers[5] = part(Part::Head, 1, 0, 0); }),
                 std::string("run zb-h1: the backward of layer 4 is unknown"));
    }

    // Each rank of a run with partial backward is a worker, as long as it works; the full backward is that of the
    // replica without a cut.
    void runsWithPartialBackwardAreJobs()
    {
        const Schedule whole = *overReplicas(*makeSchedule("1f1b", {2, 4, 1}), 2);
        const std::vector<int> firstStages{0, 1};
        const Schedule cut = *withoutBackwardBelow(whole, firstStages);
        auto run = simulatedRun(cut, CostModel::uniform(cut));
        QVERIFY2(run.has_value(), run ? "" : run.error().message.c_str());
        run->info.name = "spb";
        run->configuration.emplace_back("cut", "0,1");
        const auto job = recordedJobOf(*run);
        QVERIFY2(job.has_value(), job ? "" : job.error().message.c_str());
        const Nanos unit = run->timeline->timeUnit();
        // four microbatches a replica: F and B of 1 and 2, where there are backwards
        QCOMPARE(job->partial, (std::vector<Nanos>{12 * unit, 12 * unit, 4 * unit, 12 * unit}));
        QCOMPARE(job->full, std::vector<Nanos>(4, 12 * unit));
        const RecordedJob jobs[] = {*job, *job};
        const auto answer = solveProblem(jigsawProblem(jobs));
        QVERIFY2(answer.has_value(), answer ? "" : answer.error().message.c_str());
        QVERIFY(answer->fits);
        QVERIFY(takesRuns(programOf(jigsawProblem(jobs))));
        QVERIFY(answer->json.find(std::to_string(20 * unit / 1000)) != std::string::npos); // 80 units on four GPUs
        run->configuration.back().second = "0,1,1";
        QCOMPARE(recordedJobOf(*run).error().message, std::string("run spb: it has 3 cuts for 2 replicas"));
        run->timeline.reset();
        QCOMPARE(recordedJobOf(*run).error().message, std::string("run spb: it has no ops"));
    }

    // Lines that runs of replicas were simulated from come back; other runs are refused.
    void replicasAreCostLines()
    {
        const auto runOf = [](int samples) {
            const Schedule schedule = *overReplicas(*makeSchedule("bfs", {1, 2, 3}), 2);
            CostModel costs(3, CostSource::Fitted);
            for (int stage = 0; stage < 3; ++stage)
                for (int rank = 0; rank < 2; ++rank) {
                    costs.setDuration(OpKind::Forward, stage, rank, (rank + 1) * (100'000 * samples + 50'000));
                    costs.setDuration(OpKind::Backward, stage, rank, (rank + 1) * (300'000 * samples + 20'000));
                }
            for (StageMemory& stage : costs.memory) {
                stage.activation = stage.freedAtInput = 1'000'000LL * samples;
                stage.weight = stage.gradient = 2'000'000;
                stage.optimizer = 12'000'000;
            }
            auto run = simulatedRun(schedule, costs);
            run->info.name = "of " + std::to_string(samples);
            run->configuration.emplace_back("microbatch_size", std::to_string(samples));
            run->configuration.emplace_back("rank_memory", "64MB,32MB");
            return std::move(*run);
        };
        const std::vector<Run> runs{runOf(1), runOf(4)};
        const auto lines = cephaloProblem(runs);
        QVERIFY2(lines.has_value(), lines ? "" : lines.error().message.c_str());
        QCOMPARE(lines->words, std::string("the ranks of of 1, of 4"));
        const UnevenProblem problem = unevenProblem(lines->problem).value();
        QCOMPARE(problem.samples, 4);
        QCOMPARE(problem.least, 1);
        QVERIFY(!problem.recompute && std::abs(problem.state - 0.048) < 1e-12);
        for (std::size_t rank = 0; rank < 2; ++rank) {
            const UnevenDevice& one = problem.devices[rank];
            const auto slower = static_cast<double>(rank + 1);
            const double expected[] = {0.3 * slower, 0.15 * slower, 0.9 * slower, 0.06 * slower};
            const double found[] = {one.f1, one.f0, one.b1, one.b0};
            for (std::size_t i = 0; i < 4; ++i) QVERIFY(std::abs(found[i] - expected[i]) < 1e-9);
            QCOMPARE(one.cap, rank == 0 ? 0.064 : 0.032);
            QVERIFY(std::abs(one.kept - 0.003) < 1e-9); // three stages of a sample, all microbatches at once
            QCOMPARE(one.a1, 0.0);
        }
        const auto single = cephaloProblem({runs.data(), 1});
        QVERIFY(single && single->words.find("one size of microbatch") != std::string::npos);
        QCOMPARE(unevenProblem(single->problem)->devices[0].f0, 0.0);
        const auto refused = [](Run run, const std::function<void(Run&)>& change) {
            change(run);
            const auto none = cephaloProblem({&run, 1});
            return none ? std::string() : none.error().message;
        };
        QCOMPARE(refused(runs[0], [](Run& run) { run.configuration.pop_back(); }),
                 std::string("run of 1: what memory its ranks have is unknown"));
        QCOMPARE(refused(runs[0], [](Run& run) { run.configuration.clear(); }),
                 std::string("run of 1: what memory its ranks have is unknown"));
        QCOMPARE(refused(measuredRun(), [](Run&) {}), std::string("run zb-h1: it has no ops"));
    }

    // At the run's own microbatch a stage takes the sum of its measured layers, on any device; others follow the formulas.
    void constantsHaveTheLayersOfARun()
    {
        Run run = measuredRun();
        run.configuration.insert(run.configuration.end(),
                                 {{"model", "layers=3,hidden=64,heads=4,seq=32"}, {"microbatch_size", "2"}});
        const auto model = trainedModelOf(run);
        QVERIFY(model.has_value());
        QCOMPARE(model->vocabulary, 256);
        for (const char* name : {"2@a100", "2@h100"}) {
            const Cluster cluster = *parseCluster(name);
            const auto made = measuredConstants(run, *model, cluster, {});
            QVERIFY2(made.has_value(), made ? "" : made.error().message.c_str());
            const StepConstants& constants = made->constants;
            QCOMPARE(constants.layerFloor, 0.0);
            QVERIFY(made->words.find("3 layers, embedding and loss") != std::string::npos);
            QVERIFY(made->words.find("analytic: all-reduces") != std::string::npos);
            const Schedule schedule = *makeSchedule("zb-h1", {2, 4, 1});
            const auto costsOf = [&](int samples, int tensor) {
                Layout layout;
                layout.ranks = 2;
                layout.microbatches = 4;
                layout.samples = samples;
                for (int stage = 0; stage < 2; ++stage) {
                    LayoutStage& one = layout.stages.emplace_back();
                    one.tensor = tensor;
                    one.layers.assign(stage == 0 ? 1U : 2U, KeptActivations::All);
                    for (int device = 0; device < tensor; ++device) one.devices.push_back(stage * tensor + device);
                }
                return layoutCosts(schedule, layout, *model, cluster, constants);
            };
            const CostModel costs = costsOf(2, 1);
            for (const OpKind kind : {OpKind::Forward, OpKind::InputGrad, OpKind::WeightGrad})
                for (const int stage : {0, 1})
                    QVERIFY(std::llabs(costs.duration(kind, stage, -1) - run.costs->duration(kind, stage, -1)) <= 1);
            // without the 5 of each op twice as long with twice as many samples
            const CostModel twice = costsOf(4, 1);
            QVERIFY(std::llabs(twice.duration(OpKind::Forward, 1, -1) - (2 * 550 + 5)) <= 2);
            // the closed form has their mean
            Parallelism way;
            way.samples = 2;
            QVERIFY(std::abs(stepOf(*model, cluster, way, constants).compute * 1e9 -
                             (18 + 30 + 330 + 630 + 930 + 180)) < 2);
        }
        // bytes kept: unknown without memory, else the stage's, divided among its layers
        const auto words = [&] { return measuredConstants(run, *model, *parseCluster("2@a100"), {})->words; };
        QVERIFY(words().find("and bytes kept, which are unknown") != std::string::npos);
        run.costs->memory[0].activation = 9000;
        run.costs->memory[1].activation = 30000;
        Parallelism alone;
        alone.samples = 2;
        const auto kept = measuredConstants(run, *model, *parseCluster("2@a100"), {})->constants;
        for (const auto& [layer, bytes] : {std::pair(0, 9000.0), std::pair(1, 15000.0), std::pair(2, 15000.0)})
            QVERIFY(std::abs(layerFigures(*model, *parseCluster("2@a100"), alone, kept, layer).kept - bytes) < 1e-6);
        QVERIFY(words().find("; bytes kept ") != std::string::npos);
        run.costs->memory[1].activation = 0;
        QVERIFY(words().find("unknown: bytes kept of 2 of 3 layers") != std::string::npos);
        ModelPreset longer = *model;
        longer.layers = 5;
        const auto more = measuredConstants(run, longer, *parseCluster("2@a100"), {});
        QVERIFY(more->words.find("layers 3 to 4 count as the mean") != std::string::npos);
        QVERIFY(more->constants.measured.of(4) == more->constants.measured.mean);
        longer.hidden = 128;
        const auto other = measuredConstants(run, longer, *parseCluster("2@a100"), {});
        QVERIFY(!other.has_value());
        QVERIFY(other.error().message.find("the model hidden=128") != std::string::npos);
        run.configuration.pop_back();
        QVERIFY(!measuredConstants(run, *model, *parseCluster("2@a100"), {}).has_value());
    }
};

QTEST_APPLESS_MAIN(TestMeasuredLayers)
#include "tst_measured_layers.moc"
