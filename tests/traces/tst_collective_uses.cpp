// Gathers and reductions of a step: hidden, exposed and outside add up with the causes; counts and bytes of a rank;
// slow replicas named; runs of replicas that share the batch out differently aligned replica by replica; a recording's
// costs with the sizes of its weights.
#include <QtTest/QtTest>

#include "sample_runs.h"
#include "schedules/library/registry.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/collective_uses.h"
#include "traces/analysis/slow_replicas.h"
#include "traces/analysis/step_context.h"
#include "traces/compare/alignment.h"
#include "traces/fit/fit_costs.h"
#include "traces/report/run_report.h"
#include "traces/run/simulated_run.h"

using namespace stagewright;

namespace {

struct Job {
    Schedule schedule;
    CostModel costs;
};

// Unit costs, a gather takes 0.5 units and a reduction 1; 4 replicas of which one is simulated.
Job sharded(const char* name, GatherRule gather, ReduceRule reduce)
{
    ShardRules rules;
    rules.gather = gather;
    rules.reduce = reduce;
    Job job{addShardOps(makeSchedule(name, Shape(4, 8)).value(), ShardLevel::Weights, rules).value(), {}};
    job.costs = CostModel::uniform(job.schedule);
    job.costs.sharding.level = ShardLevel::Weights;
    job.costs.replicas = 4;
    job.costs.links.collectives = ResourceUse::Beside;
    for (int stage = 0; stage < job.schedule.stages; ++stage) {
        job.costs.setDuration(OpKind::Unshard, stage, rankShare / 2);
        job.costs.setDuration(OpKind::ReduceGrad, stage, rankShare);
        job.costs.memory[static_cast<std::size_t>(stage)].weight =
            job.costs.memory[static_cast<std::size_t>(stage)].gradient = 4000;
    }
    return job;
}

// Three pipelines with so many microbatches each; the ops of replica r take times[r] as long.
std::shared_ptr<const Timeline> uneven(const std::vector<int>& microbatches, const std::vector<double>& times)
{
    std::vector<Schedule> each;
    for (const int m : microbatches) {
        ShardRules rules;
        each.push_back(addShardOps(makeSchedule("1f1b", Shape(2, m)).value(), ShardLevel::None, rules).value());
    }
    const Schedule whole = overReplicas(each).value();
    CostModel costs = CostModel::uniform(whole);
    costs.links.collectives = ResourceUse::Beside;
    for (int rank = 0; rank < whole.ranks; ++rank)
        for (const int stage : whole.placement.stagesOf(rank))
            for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
                if (times[static_cast<std::size_t>(whole.replicaOf(rank))] != 1)
                    costs.scaleOnRank(kind, stage, rank, whole.placement,
                                      times[static_cast<std::size_t>(whole.replicaOf(rank))]);
    return simulatedTimeline(whole, costs).value();
}

} // namespace

class TestCollectiveUses : public QObject {
    Q_OBJECT
private slots:
    void parts()
    {
        for (const GatherRule gather : {GatherRule::Batch, GatherRule::Microbatch})
            for (const ReduceRule reduce : {ReduceRule::Late, ReduceRule::Overlapped}) {
                const Job job = sharded("1f1b", gather, reduce);
                const auto timeline = simulatedTimeline(job.schedule, job.costs).value();
                const auto report = analyseBubbles(*timeline, 0);
                QVERIFY(report);
                const CollectiveUses uses = collectiveUses(*timeline, *report);
                QCOMPARE(uses.uses.size(), std::size_t{gather == GatherRule::Batch ? 8U : 68U});
                Nanos awaited = 0, drawn = 0, exposed = 0;
                for (const CollectiveUse& use : uses.uses) {
                    const Span& span = timeline->spans()[use.span];
                    QVERIFY(use.hidden >= 0 && use.outside >= 0 && use.hidden + use.outside <= span.duration());
                    QCOMPARE(uses.of(use.span), &use);
                    awaited += use.awaited;
                    exposed += use.exposed();
                }
                // every wait has its gather
                QCOMPARE(awaited, report->byCause[static_cast<std::size_t>(IdleCause::Collective)]);
                QVERIFY(awaited > 0);
                for (const ExposedPart& part : uses.exposed) {
                    const Span& span = timeline->spans()[part.span];
                    QVERIFY(part.begin >= span.start && part.end <= span.end && part.begin < part.end);
                    drawn += part.end - part.begin;
                }
                QVERIFY(drawn <= exposed);
            }
    }

    // One definition of what is exposed: the table, the figures of the report and what the timeline hatches.
    void exposureIsOneFigure()
    {
        for (const ReduceRule reduce : {ReduceRule::Late, ReduceRule::Overlapped}) {
            const Job job = sharded("1f1b", GatherRule::Batch, reduce);
            const Run run = simulatedRun(job.schedule, job.costs).value();
            const auto report = reportOf(run);
            QVERIFY(report);
            Nanos exposed = 0, awaited = 0, outside = 0, hatched = 0;
            for (const CollectiveUse& use : report->collectiveUses.uses) {
                exposed += use.exposed();
                awaited += use.awaited;
                outside += use.outside;
            }
            for (const ExposedPart& part : report->collectiveUses.exposed) hatched += part.end - part.begin;
            QVERIFY(exposed > 0 && exposed == awaited + outside && hatched <= exposed && hatched > 0);
            const auto figures = report->figures();
            const auto figure = [&](const char* key) {
                return static_cast<Nanos>(document::findFigure(figures, key)->value);
            };
            QCOMPARE(figure("sharing.exposed_time"), exposed);
            QCOMPARE(figure("sharing.awaited_time"), awaited);
            QCOMPARE(figure("sharing.outside_time"), outside);
            const StepContext context(run, 0);
            const AnalysisInfo* info = findAnalysis("collectives");
            const std::vector<TableColumn> columns = info->columns();
            const auto rows = info->rows(context);
            const auto sum = [&](std::string_view key) {
                const auto at = std::find_if(columns.begin(), columns.end(),
                                             [&](const TableColumn& column) { return column.key == key; }) -
                                columns.begin();
                Nanos all = 0;
                for (const TableRow& row : rows->rows) all += std::get<std::int64_t>(row[static_cast<std::size_t>(at)]);
                return all;
            };
            QCOMPARE(sum("exposed_ns"), exposed);
            QCOMPARE(sum("awaited_ns"), awaited);
            QCOMPARE(sum("outside_ns"), outside);
        }
    }

    void lateReductionsLieOutside()
    {
        const Job job = sharded("1f1b", GatherRule::Batch, ReduceRule::Late);
        const auto timeline = simulatedTimeline(job.schedule, job.costs).value();
        const auto report = analyseBubbles(*timeline, 0);
        Nanos reductions = 0, gathers = 0;
        for (const CollectiveUse& use : collectiveUses(*timeline, *report).uses)
            (timeline->trackOf(use.span).lane == Lane::Reduce ? reductions : gathers) += use.outside;
        QCOMPARE(reductions, rankShare);      // rank 0's, behind the last op of all; the other ranks' end before
        QCOMPARE(gathers, 4 * rankShare / 2); // before the first op
    }

    // A replica at half the speed: the other waits for it, and for collectives only while its lane has one.
    void waitsForALateReplica()
    {
        for (const ReduceRule reduce : {ReduceRule::Late, ReduceRule::Overlapped}) {
            ShardRules rules;
            rules.reduce = reduce;
            const Schedule one =
                addShardOps(makeSchedule("bfs", Shape(2, 4, 2)).value(), ShardLevel::Weights, rules).value();
            const Schedule both = overReplicas(one, 2).value();
            CostModel costs = CostModel::uniform(both);
            costs.links.collectives = ResourceUse::Beside;
            for (int stage = 0; stage < both.stages; ++stage)
                for (const OpKind kind : {OpKind::Unshard, OpKind::ReduceGrad})
                    costs.setDuration(kind, stage, rankShare / 10);
            for (const int rank : {2, 3})
                for (const int stage : both.placement.stagesOf(rank))
                    for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
                        costs.scaleOnRank(kind, stage, rank, both.placement, 2);
            const auto timeline = simulatedTimeline(both, costs).value();
            const auto report = analyseBubbles(*timeline, 0);
            QVERIFY(report);
            Nanos waited = 0;
            for (const Gap& gap : report->gaps) {
                if (gap.cause == IdleCause::PeerWait) waited += gap.end - gap.start;
                if (gap.cause != IdleCause::Collective) continue;
                const Span& span = timeline->spans()[gap.blamed];
                QVERIFY(span.start <= gap.start && gap.end <= span.end);
                QCOMPARE(timeline->trackOf(gap.blamed).rank, gap.rank);
            }
            QVERIFY(waited > report->byCause[static_cast<std::size_t>(IdleCause::Collective)]);
            for (const CollectiveUse& use : collectiveUses(*timeline, *report).uses)
                QVERIFY(use.exposed() <= timeline->spans()[use.span].duration());
        }
    }

    void countsAndBytes()
    {
        const Job job = sharded("1f1b", GatherRule::Microbatch, ReduceRule::Overlapped);
        const Run run = simulatedRun(job.schedule, job.costs).value();
        const auto report = reportOf(run);
        QVERIFY(report);
        const auto volumes = collectiveVolumes(job.schedule, job.costs);
        QCOMPARE(report->collectives.size(), std::size_t{4});
        for (std::size_t rank = 0; rank < 4; ++rank) {
            QCOMPARE(report->collectives[rank].gathers, 16);
            QCOMPARE(report->collectives[rank].reductions, 1);
            QCOMPARE(report->collectives[rank].gathered, std::optional(volumes[rank].gathered));
            QCOMPARE(*report->collectives[rank].gathered, 16 * 3000); // three of four quarters, each time
            QCOMPARE(*report->collectives[rank].reduced, 3000);
        }
        int found = 0;
        for (const document::Figure& figure : report->figures())
            if (figure.key == "sharing.gathers") found += static_cast<int>(figure.value);
        QCOMPARE(found, 16);
        const auto plain = reportOf(simulatedRun(makeSchedule("1f1b", Shape(4, 8)).value(),
                                                 CostModel::uniform(makeSchedule("1f1b", Shape(4, 8)).value()))
                                        .value());
        QVERIFY(plain->collectives.empty() && plain->collectiveUses.uses.empty());
        for (const document::Figure& figure : plain->figures()) QVERIFY(!figure.key.starts_with("sharing"));
    }

    void slowReplicas()
    {
        QCOMPARE(slowReplicaSentence(*uneven({4, 4, 4}, {1, 1, 1}), 0), std::string());
        QCOMPARE(slowReplicaSentence(*uneven({4, 4, 4}, {1, 1.5, 1}), 0),
                 std::string("replica 1 takes 1.50× as long as the median replica for the same ops and is the last to "
                             "finish 2 of 2 stages"));
        const std::string two = slowReplicaSentence(*uneven({4, 4, 4, 4, 4}, {1, 1.2, 1, 2, 1}), 0);
        QVERIFY2(two.starts_with("replicas 1, 3 take 1.20 to 2.00× as long"), two.c_str());
        QCOMPARE(slowReplicaSentence(*simulatedTimeline(makeSchedule("1f1b", Shape(4, 8)).value(),
                                                        CostModel::uniform(makeSchedule("1f1b", Shape(4, 8)).value()))
                                          .value(),
                                     0),
                 std::string());
    }

    void alignedByReplica()
    {
        const auto a = uneven({3, 5}, {1, 1}), b = uneven({5, 3}, {1, 1});
        const Alignment both(*a, 0, *b, 0);
        // replicas with 3 of 5 microbatches have them in common: F and B on two ranks each
        QCOMPARE(both.onlyInA(), std::size_t{2 * 2 * 2});
        QCOMPARE(both.onlyInB(), std::size_t{2 * 2 * 2});
        for (const OpDelta& op : both.ops()) {
            if (!op.inBoth()) continue;
            QCOMPARE(b->trackOf(op.b).rank, op.rank);
            const int firstA = op.rank < 2 ? 0 : 3, firstB = op.rank < 2 ? 0 : 5;
            QCOMPARE(b->spans()[op.b].op.microbatch - firstB, op.op.microbatch - firstA);
        }
        const auto one = simulatedTimeline(makeSchedule("1f1b", Shape(2, 3)).value(),
                                           CostModel::uniform(makeSchedule("1f1b", Shape(2, 3)).value()))
                             .value();
        QCOMPARE(Alignment(*one, 0, *a, 0).onlyInA(), std::size_t{0}); // the first replica's
        QCOMPARE(Alignment(*one, 0, *a, 0).onlyInB(), std::size_t{2 * 2 * 5});
    }

    void weightsOfARecording()
    {
        Job job = sharded("1f1b", GatherRule::Batch, ReduceRule::Late);
        Run run = simulatedRun(job.schedule, job.costs).value();
        run.info.provenance = Provenance::Measured;
        run.configuration.emplace_back("optimizer", "adamw, learning rate 0.001");
        const CostModel whole = costsOf(run).value();
        QCOMPARE(whole.memory.front().weight, Bytes{4000}); // stored
        for (StageMemory& memory : run.costs->memory) memory.weight = memory.gradient = memory.optimizer = 0;
        const CostModel completed = costsOf(run).value();
        QCOMPARE(completed.memory.front().weight, Bytes{1000}); // what the rank held, here a quarter
        QCOMPARE(completed.memory.front().gradient, Bytes{1000});
        QCOMPARE(completed.memory.front().optimizer, Bytes{2000});
    }
};

QTEST_GUILESS_MAIN(TestCollectiveUses)
#include "tst_collective_uses.moc"
