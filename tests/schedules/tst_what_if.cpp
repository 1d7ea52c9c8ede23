// What-if questions against simulations of the changed thing, and costs derived from a model and a device.
#include <QtTest/QtTest>

#include "schedules/execute/perturb.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/analytic_costs.h"
#include "schedules/model/shard_rules.h"
#include "schedules/plan/what_if.h"

using namespace stagewright;

namespace {

double after(const Schedule& schedule, const CostModel& costs, const char* text)
{
    const auto base = WhatIf::create(schedule, costs).value();
    return static_cast<double>(base.answer(parseWhatIf(text).value()).value().makespanAfter) / rankShare;
}

CostModel unit(const Schedule& schedule, double forward, double input, double weight, double latency = 0)
{
    CostModel::UnitCosts costs;
    costs.forward = forward;
    costs.inputGrad = input;
    costs.weightGrad = weight;
    costs.latency = latency;
    return CostModel::uniform(schedule, costs);
}

double makespan(const Schedule& schedule, const CostModel& costs)
{
    return static_cast<double>(simulate(schedule, costs).value().makespan) / rankShare;
}

} // namespace

class TestWhatIf : public QObject {
    Q_OBJECT

private slots:
    void textRoundTrip()
    {
        for (const char* text : {"F*0.5",
                                 "B@stage2*0.8",
                                 "W@rank1*2",
                                 "stage0*0",
                                 "rank3*1.25",
                                 "link*0",
                                 "link1-2*2",
                                 "launch*0",
                                 "jitter*0",
                                 "m=16",
                                 "m+8",
                                 "lower=pytorch",
                                 "sends=rendezvous",
                                 "sends=buffered",
                                 "receives=posted",
                                 "receives=blocking",
                                 "channels=1",
                                 "channels=0",
                                 "channels=one",
                                 "channels=shared",
                                 "UNSHARD*2",
                                 "REDUCE_GRAD@stage1*0.5",
                                 "OPT*0"}) {
            const auto read = parseWhatIf(text).value();
            QCOMPARE(read.size(), std::size_t{1});
            QCOMPARE(toText(read.front()), std::string(text));
        }
        QCOMPARE(parseWhatIf("F*0.5,link*0,m=16").value().size(), std::size_t{3});
        for (const char* text :
             {"", "F", "F*", "F*x", "F*-1", "G*2", "stage*2", "link1*2", "link1-*2", "m=0", "m+", "F@2*3", "F*1,,",
              "F*nan", "lower=x", "sends=x", "receives=x", "channels=-1", "channels=two"})
            QVERIFY2(!parseWhatIf(text), text);
    }

    void answersAreSimulations()
    {
        const Schedule schedule = makeSchedule("1f1b", {4, 8}).value();
        const CostModel costs = unit(schedule, 1, 1, 1, 0.125);
        QCOMPARE(after(schedule, costs, "F*0.5"), makespan(schedule, unit(schedule, 0.5, 1, 1, 0.125)));
        QCOMPARE(after(schedule, costs, "rank2*1.25"), 39.25);
        QCOMPARE(after(schedule, costs, "stage2*1.25"), 39.25);
        QCOMPARE(after(schedule, costs, "F@rank2*1.25,B@stage2*1.25"), 39.25);
        QCOMPARE(after(schedule, costs, "link1-2*8"), 41.75);
        QCOMPARE(after(schedule, costs, "link*0"), 33.0);
        QCOMPARE(after(schedule, costs, "link*0,m=16"), 57.0);
        QCOMPARE(after(schedule, costs, "link*0,m+8"), 57.0);
        const CostModel late =
            perturbed(schedule, unit(schedule, 1, 1, 1), parsePerturbation("launch=3:0.5", 4).value(), rankShare);
        QVERIFY(makespan(schedule, late) > 33);
        QCOMPARE(after(schedule, late, "launch*0"), 33.0);
        const CostModel shaken =
            perturbed(schedule, unit(schedule, 1, 1, 1), parsePerturbation("jitter=0.2", 4).value(), rankShare);
        QVERIFY(makespan(schedule, shaken) != 33);
        QCOMPARE(after(schedule, shaken, "jitter*0"), 33.0);
    }

    void howMessagesTravel()
    {
        const Schedule schedule = makeSchedule("gpipe", {4, 8}).value();
        const CostModel costs = unit(schedule, 1, 1, 1, 1.5);
        const double buffered = after(schedule, costs, "lower=just-in-time");
        QCOMPARE(buffered, makespan(schedule, costs));
        const Schedule lowered = lower(schedule, {}).value();
        const Channels strict{SendMode::Rendezvous, 0, ReceiveMode::Blocking};
        const double stands = static_cast<double>(simulate(lowered, costs, strict).value().makespan) / rankShare;
        QVERIFY(stands > buffered);
        QCOMPARE(after(schedule, costs, "sends=rendezvous"), stands);
        QCOMPARE(after(lowered, costs, "sends=rendezvous"), stands);
        QVERIFY(after(schedule, costs, "channels=1,link*4") > after(schedule, costs, "link*4"));
        // A schedule that could not complete is an error, not a time.
        const Schedule steady = makeSchedule("1f1b", {4, 8}).value();
        const auto base = WhatIf::create(steady, unit(steady, 1, 1, 1)).value();
        const auto hung = base.answer(parseWhatIf("sends=rendezvous").value());
        QVERIFY(!hung);
        QCOMPARE(hung.error().code, ErrorCode::Invalid);
    }

    // A run's own messages are what a change is compared with: receives as they were, other microbatches lowered by its
    // rule.
    void keepsHowMessagesTravelled()
    {
        const Lowering pytorch = *parseLowering("pytorch");
        const Schedule schedule = makeSchedule("interleaved-1f1b", {2, 4, 2}).value();
        const Channels strict{SendMode::Rendezvous, 0, ReceiveMode::Blocking};
        const auto base =
            WhatIf::create(lower(schedule, pytorch).value(), unit(schedule, 1, 1, 1), strict, pytorch).value();
        const auto time = [&](const char* text) {
            const auto answer = base.answer(parseWhatIf(text).value()).value();
            if (answer.makespanBefore != 20 * rankShare) throw std::runtime_error("its own figure is another");
            return static_cast<double>(answer.makespanAfter) / rankShare;
        };
        QCOMPARE(time("sends=buffered"), 13.5);
        QCOMPARE(time("receives=posted"), 13.5);
        QCOMPARE(time("F*1"), 20.0);
        const Schedule longer = lower(makeSchedule("interleaved-1f1b", {2, 8, 2}).value(), pytorch).value();
        QCOMPARE(time("m=8"),
                 static_cast<double>(simulate(longer, unit(longer, 1, 1, 1), strict).value().makespan) / rankShare);
        // Compute-only, with the rule: the same.
        QCOMPARE(
            WhatIf::create(schedule, unit(schedule, 1, 1, 1), strict, pytorch).value().answer({}).value().makespanAfter,
            20 * rankShare);
        // One communication stream a rank.
        const Schedule eight = makeSchedule("interleaved-1f1b", {8, 8, 2}).value();
        QCOMPARE(after(eight, unit(eight, 1, 1, 1), "lower=pytorch,channels=one"), 60.0);
    }

    // Gathers and reductions use links too, and are ops of their own.
    void collectivesChange()
    {
        ShardRules rules;
        rules.gather = GatherRule::Microbatch;
        const Schedule schedule = addShardOps(makeSchedule("1f1b", {4, 8}).value(), ShardLevel::Weights, rules).value();
        CostModel costs = unit(schedule, 1, 1, 1, 0.5);
        costs.links.collectives = ResourceUse::Beside;
        for (int stage = 0; stage < 4; ++stage) {
            costs.setDuration(OpKind::Unshard, stage, 5 * rankShare);
            costs.setDuration(OpKind::ReduceGrad, stage, 7 * rankShare);
        }
        const double now = after(schedule, costs, "F*1");
        QVERIFY(after(schedule, costs, "UNSHARD*2") > now);
        CostModel free = unit(schedule, 1, 1, 1);
        free.links.collectives = ResourceUse::Beside;
        QCOMPARE(after(schedule, costs, "link*0"), makespan(schedule, free));
        QCOMPARE(after(schedule, costs, "link*0"),
                 after(schedule, costs, "UNSHARD*0,REDUCE_GRAD*0,link0-1*0,link1-2*0,link2-3*0"));
        const auto none = WhatIf::create(makeSchedule("1f1b", {4, 8}).value(),
                                         CostModel::uniform(makeSchedule("1f1b", {4, 8}).value()))
                              .value()
                              .answer(parseWhatIf("UNSHARD*2").value());
        QVERIFY(!none && none.error().message.find("no op of the schedule matches") != std::string::npos);
    }

    void slowRankAndStageTogether()
    {
        const Schedule schedule = makeSchedule("1f1b", {4, 8}).value();
        const CostModel slow =
            perturbed(schedule, unit(schedule, 1, 1, 1), parsePerturbation("rank=2:2", 4).value(), rankShare);
        QCOMPARE(after(schedule, slow, "rank2*0.5"), 33.0);
        QCOMPARE(after(schedule, slow, "stage2*0.5"), 33.0);
    }

    void whatIsNotThereIsAnError()
    {
        const Schedule schedule = makeSchedule("1f1b", {4, 8}).value();
        const auto base = WhatIf::create(schedule, CostModel::uniform(schedule)).value();
        for (const char* text : {"stage4*2", "rank4*2", "link3-4*2"})
            QVERIFY2(!base.answer(parseWhatIf(text).value()), text);
        Schedule own = schedule;
        own.name = "mine.csv";
        std::swap(own.order[0][4], own.order[0][5]);
        const auto other = WhatIf::create(own, CostModel::uniform(own)).value();
        const auto answer = other.answer(parseWhatIf("m=16").value());
        QVERIFY(!answer);
        QCOMPARE(answer.error().code, ErrorCode::Usage);
        QVERIFY(other.answer(parseWhatIf("F*2").value()).has_value());
    }

    // Qi et al. 2024, table 9: profiled on A100, milliseconds. Three layers of 2304 and four of 4096 per stage.
    void analyticForwardsAreNearPublishedOnes()
    {
        const Schedule schedule = makeSchedule("1f1b", {8, 24}).value();
        struct Published {
            const char* text;
            double forward;
            double backward; // input and weight gradient
        };
        for (const Published& row : {Published{"gpt-1.5b@a100:attention=full", 18.522, 27.423},
                                     Published{"gpt-6.2b@a100:attention=full", 29.718, 49.371}}) {
            const CostModel costs = analyticCosts(schedule, parseAnalyticCosts(row.text).value()).value();
            const double forward = static_cast<double>(costs.duration(OpKind::Forward, 3, 3)) / 1e6;
            const double backward = static_cast<double>(costs.duration(OpKind::Backward, 3, 3)) / 1e6;
            QVERIFY2(std::abs(forward / row.forward - 1) < 0.15, qPrintable(QString::number(forward)));
            QVERIFY2(std::abs(backward / row.backward - 1) < 0.35, qPrintable(QString::number(backward)));
            QCOMPARE(costs.source, CostSource::Analytic);
        }
    }

    void analyticFormulas()
    {
        const Schedule schedule = makeSchedule("zb-h1", {8, 8}).value();
        const AnalyticCosts read = parseAnalyticCosts("gpt-1.5b@a100:b=6:efficiency=0.5").value();
        const CostModel costs = analyticCosts(schedule, read).value();
        const double s = 1024, b = 6, h = 2304;
        const double flops = 3 * s * b * h * (24 * h + 4 * s);
        QCOMPARE(costs.duration(OpKind::Forward, 3, 3), static_cast<Nanos>(std::llround(flops / 156e12 * 1e9)));
        QCOMPARE(costs.memory[3].activation, static_cast<Bytes>(3 * 34 * s * b * h));
        // until W
        QCOMPARE(costs.memory[3].activation - costs.memory[3].freedAtInput, static_cast<Bytes>(3 * 32 * s * b * h));
        QCOMPARE(costs.memory[3].boundary, static_cast<Bytes>(2 * s * b * h));
        QCOMPARE(costs.memory[3].weight, static_cast<Bytes>(2 * 3 * (12 * h * h + 13 * h)));
        QCOMPARE(costs.duration(OpKind::InputGrad, 3, 3) + costs.duration(OpKind::WeightGrad, 3, 3),
                 costs.duration(OpKind::Backward, 3, 3));
        // two layers and the head
        QVERIFY(costs.duration(OpKind::Forward, 7, 7) > costs.duration(OpKind::Forward, 0, 0));
        // parameters without the embedding, as the papers' names count them with it
        for (const ModelPreset& model : modelPresets())
            if (model.name == "gpt-6.2b") QVERIFY(std::abs(model.parameters() / 6.25e9 - 1) < 0.01);
        QVERIFY(simulate(schedule, costs).has_value());
    }

    void analyticNamesAreChecked()
    {
        for (const char* text : {"", "gpt-1.5b", "gpt-1.5b@", "nobody@a100", "gpt-1.5b@nothing", "gpt-1.5b@a100:b=0",
                                 "gpt-1.5b@a100:efficiency=2", "gpt-1.5b@a100:x=1", "gpt-1.5b@a100:attention=half"})
            QVERIFY2(!parseAnalyticCosts(text), text);
        const auto unknown = parseAnalyticCosts("nobody@a100");
        QVERIFY(unknown.error().remedy.find("gpt-6.2b") != std::string::npos);
        const Schedule deep = makeSchedule("1f1b", {16, 16}).value();
        QVERIFY(!analyticCosts(deep, parseAnalyticCosts("gpt-1.5b@a100").value()));
        AnalyticCosts given = parseAnalyticCosts("gpt-1.5b@a100").value();
        const Schedule two = makeSchedule("1f1b", {2, 4}).value();
        given.layers = {10, 12};
        const CostModel costs = analyticCosts(two, given).value();
        QVERIFY(costs.duration(OpKind::Forward, 1, 1) > costs.duration(OpKind::Forward, 0, 0));
        given.layers = {10, 10};
        QVERIFY(!analyticCosts(two, given));
    }
};

QTEST_APPLESS_MAIN(TestWhatIf)
#include "tst_what_if.moc"
