// Costs by layer: measured on one number of stages, they are those of every other.
#include <QtTest/QtTest>

#include <random>

#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/model/layer_costs.h"
#include "schedules/text/cost_json.h"

using namespace stagewright;

namespace {

constexpr auto forward = static_cast<std::size_t>(OpKind::Forward);
constexpr auto inputGrad = static_cast<std::size_t>(OpKind::InputGrad);
constexpr auto weightGrad = static_cast<std::size_t>(OpKind::WeightGrad);

LayerCosts partOf(LayerCosts::Part part, Nanos time, Bytes bytes)
{
    LayerCosts out;
    out.part = part;
    out.duration[forward] = time;
    out.duration[inputGrad] = part == LayerCosts::Part::Embedding ? 0 : time + 7;
    out.duration[weightGrad] = time / 2;
    out.memory = {bytes, bytes / 4, bytes / 10, 64, 3 * bytes, 3 * bytes, 6 * bytes};
    return out;
}

std::vector<LayerCosts> modelOf(int blocks, std::uint32_t seed)
{
    std::mt19937 random(seed);
    const auto time = [&] { return static_cast<Nanos>(1000 + random() % 5000); };
    std::vector<LayerCosts> parts{partOf(LayerCosts::Part::Embedding, time(), 100)};
    for (int k = 0; k < blocks; ++k) parts.push_back(partOf(LayerCosts::Part::Block, time(), 1000));
    parts.push_back(partOf(LayerCosts::Part::Head, time(), 300));
    return parts;
}

// What a run with these blocks by stage measures, 50 ns per op in addition to its parts; split backwards or full ones.
CostModel measuredOn(const Schedule& schedule, const std::vector<LayerCosts>& parts, const std::vector<int>& blocks,
                     bool split)
{
    CostModel costs(schedule.stages, CostSource::Fitted);
    costs.origin = "fitted";
    std::size_t at = 0;
    for (int stage = 0; stage < schedule.stages; ++stage) {
        std::array<Nanos, 3> sum{50, 50, 50};
        StageMemory& memory = costs.memory[static_cast<std::size_t>(stage)];
        const int count = blocks[static_cast<std::size_t>(stage)] + (stage == 0) + (stage + 1 == schedule.stages);
        for (int k = 0; k < count; ++k, ++at) {
            sum[0] += parts[at].duration[forward];
            sum[1] += parts[at].duration[inputGrad];
            sum[2] += parts[at].duration[weightGrad];
            memory.activation += parts[at].memory.activation;
            memory.freedAtInput += parts[at].memory.freedAtInput;
            memory.weight += parts[at].memory.weight;
        }
        costs.setDuration(OpKind::Forward, stage, sum[0]);
        costs.setDuration(OpKind::Optimizer, stage, 2 * memory.weight);
        if (split) {
            costs.setDuration(OpKind::InputGrad, stage, sum[1]);
            costs.setDuration(OpKind::WeightGrad, stage, sum[2]);
        } else {
            costs.setDuration(OpKind::Backward, stage, sum[1] + sum[2] - 50);
        }
    }
    return costs;
}

} // namespace

class TestLayerCosts : public QObject {
    Q_OBJECT

private slots:
    void otherStagesAreMeasuredAlike_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("ranks");
        for (const char* name : {"1f1b", "zb-h1", "zbv", "interleaved-1f1b", "chimera"})
            for (const int ranks : {2, 4}) QTest::addRow("%s %d", name, ranks) << name << ranks;
    }
    void otherStagesAreMeasuredAlike()
    {
        QFETCH(QString, name);
        QFETCH(int, ranks);
        for (const bool split : {false, true}) {
            const auto parts = modelOf(12, 3);
            const Schedule measured = makeSchedule("1f1b", {3, 4}).value();
            const std::vector<int> blocks{5, 4, 3};
            CostModel costs = measuredOn(measured, parts, blocks, split);
            costs.jitter = 0.1;
            costs.launch = {5, 9, 7};
            setLayers(costs, parts, blocks);
            QCOMPARE(costs.layers.size(), parts.size() + 1);
            QCOMPARE(costs.layers[0].duration[forward], Nanos{50});
            QVERIFY(costsByLayer(costs, measured, blocks)->duration(OpKind::Forward, 1, 0) ==
                    costs.duration(OpKind::Forward, 1, 0));

            const Schedule other = makeSchedule(name.toStdString(), {ranks, 8}).value();
            const std::vector<int> there = balancedBlocks(parts, other.stages);
            QCOMPARE(static_cast<int>(there.size()), other.stages);
            const CostModel predicted = costsByLayer(costs, other).value();
            const CostModel expected = measuredOn(other, parts, there, split);
            for (int stage = 0; stage < other.stages; ++stage) {
                for (const OpKind kind : {OpKind::Forward, OpKind::Optimizer})
                    QCOMPARE(predicted.duration(kind, stage, 0), expected.duration(kind, stage, 0));
                if (split)
                    QCOMPARE(predicted.duration(OpKind::InputGrad, stage, 0),
                             expected.duration(OpKind::InputGrad, stage, 0));
                else
                    QCOMPARE(predicted.duration(OpKind::Backward, stage, 0),
                             expected.duration(OpKind::Backward, stage, 0));
                QCOMPARE(predicted.memory[static_cast<std::size_t>(stage)].activation,
                         expected.memory[static_cast<std::size_t>(stage)].activation);
                QCOMPARE(predicted.memory[static_cast<std::size_t>(stage)].freedAtInput,
                         expected.memory[static_cast<std::size_t>(stage)].freedAtInput);
            }
            QCOMPARE(predicted.launch, std::vector<Nanos>(static_cast<std::size_t>(ranks), 7));
            QCOMPARE(predicted.jitter, 0.1);
            QVERIFY(readCostsJson(writeCostsJson(predicted)).value() == predicted);
        }
    }

    // None of the contiguous splits has a shorter longest stage.
    void theBalancedSplitIsBest()
    {
        for (std::uint32_t seed = 0; seed < 20; ++seed) {
            const auto parts = modelOf(7, seed);
            const auto longest = [&](const std::vector<int>& blocks) {
                const Schedule schedule = makeSchedule("1f1b", {3, 3}).value();
                const CostModel costs = measuredOn(schedule, parts, blocks, false);
                Nanos most = 0;
                for (int stage = 0; stage < 3; ++stage)
                    most = std::max(most, costs.duration(OpKind::Forward, stage, 0) +
                                              costs.duration(OpKind::Backward, stage, 0));
                return most;
            };
            Nanos best = std::numeric_limits<Nanos>::max();
            for (int first = 0; first <= 6; ++first)
                for (int middle = 1; first + middle <= 7; ++middle)
                    best = std::min(best, longest({first, middle, 7 - first - middle}));
            QCOMPARE(longest(balancedBlocks(parts, 3)), best);
        }
        QVERIFY(balancedBlocks(modelOf(3, 1), 6).empty());
        // As many as a run may have: in much less than a second each.
        for (const int stages : {2048, 4096})
            QCOMPARE(balancedBlocks(modelOf(4096, 1), stages).size(), static_cast<std::size_t>(stages));
        QCOMPARE(balancedBlocks(modelOf(3, 1), 5), (std::vector<int>{0, 1, 1, 1, 0}));
    }

    void whatIsMissingIsSaid()
    {
        const Schedule schedule = makeSchedule("1f1b", {4, 4}).value();
        CostModel costs(2, CostSource::Fitted);
        QCOMPARE(costsByLayer(costs, schedule).error().code, ErrorCode::Usage);
        auto parts = modelOf(4, 1);
        parts[2].duration[forward] = 0;
        setLayers(costs, parts, std::vector<int>{2, 2});
        QVERIFY(costs.layers.empty());
        setLayers(costs, modelOf(4, 1), std::vector<int>{2, 3});
        QVERIFY(costs.layers.empty());
        setLayers(costs, modelOf(4, 1), std::vector<int>{2, 2});
        const auto wrong = costsByLayer(costs, schedule, std::vector<int>{1, 1, 1, 2});
        QVERIFY(!wrong);
        QVERIFY(QString::fromStdString(wrong.error().message).contains("4 layers for 4 stages, given 1,1,1,2"));
    }
};

QTEST_APPLESS_MAIN(TestLayerCosts)
#include "tst_layer_costs.moc"
