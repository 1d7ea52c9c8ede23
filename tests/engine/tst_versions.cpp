// Weight versions: stored, used, predicted; and the optimizer's step rolled back.
#include <QtTest>

#include "engine_rig.h"

using namespace stagewright;
using test::Rig;
using test::sameBits;

namespace {

const ModelConfig small{.layers = 2, .hidden = 16, .heads = 2, .sequence = 8, .vocabulary = 31};

std::vector<float> values(Rig& rig)
{
    std::vector<float> all;
    for (const ParameterView& view : rig.parameters()) all.insert(all.end(), view.value.begin(), view.value.end());
    return all;
}

void backward(Rig& rig, int microbatch)
{
    rig.inputGrads(microbatch);
    rig.weightGrads(microbatch);
}

void trainStep(Rig& rig, const OptimizerConfig& config, int step, float scale = 1.0F)
{
    rig.zeroGradients();
    rig.forward(step, 0);
    backward(rig, 0);
    for (auto& stage : rig.stages) stage->optimizerStep(config, step, scale);
}

void eachOptimizer()
{
    QTest::addColumn<int>("kind");
    QTest::addColumn<double>("momentum");
    QTest::newRow("adamw") << static_cast<int>(OptimizerKind::AdamW) << 0.0;
    QTest::newRow("sgd") << static_cast<int>(OptimizerKind::Sgd) << 0.0;
    QTest::newRow("sgd with momentum") << static_cast<int>(OptimizerKind::Sgd) << 0.9;
}

OptimizerConfig optimizerOf(int kind, double momentum)
{
    OptimizerConfig config;
    config.kind = static_cast<OptimizerKind>(kind);
    config.momentum = momentum;
    config.warmupSteps = 4;
    return config;
}

} // namespace

class TestVersions : public QObject {
    Q_OBJECT
private slots:
    // F, I and W of a stored version after the current weights have moved on: the bits of before.
    void storedVersionsCompute()
    {
        Rig rig(small, 2, 2);
        rig.forward(0, 0);
        backward(rig, 0);
        const std::vector<float> expected = rig.gradients();
        const double loss = rig.stages[1]->loss(0);
        for (auto& stage : rig.stages) {
            stage->keepVersion(3);
            stage->optimizerStep({}, 1, 1.0F);
        }
        const auto again = [&](int version) {
            for (auto& stage : rig.stages) stage->useVersion(version);
            rig.zeroGradients();
            const double its = rig.forward(0, 0);
            backward(rig, 0);
            return its;
        };
        QCOMPARE(again(3), loss);
        QVERIFY(sameBits(rig.gradients(), expected));
        QVERIFY(again(-1) != loss);
        QVERIFY(!sameBits(rig.gradients(), expected));
        QCOMPARE(again(3), loss);
        // The step goes to the current weights, whatever is in use; keeping again overwrites.
        const std::vector<float> before = values(rig);
        for (auto& stage : rig.stages) stage->optimizerStep({}, 2, 1.0F);
        QVERIFY(!sameBits(values(rig), before));
        QCOMPARE(again(3), loss);
        for (auto& stage : rig.stages) stage->keepVersion(3);
        const double stored = again(3);
        QVERIFY(stored != loss);
        QCOMPARE(again(-1), stored);
        for (auto& stage : rig.stages) stage->dropVersion(3);
    }

    void storedVersionsAreCounted()
    {
        Rig rig(small, 2, 1);
        StageModel& stage = *rig.stages[0];
        const Bytes one = rig.inUse(MemoryCategory::Weights);
        stage.keepVersion(0);
        stage.keepVersion(7);
        stage.keepVersion(7);
        QCOMPARE(rig.inUse(MemoryCategory::Weights), 3 * one);
        stage.dropVersion(0);
        QCOMPARE(rig.inUse(MemoryCategory::Weights), 2 * one);
        stage.keepPredicted(8, {}, 0, 2.0);
        QCOMPARE(rig.inUse(MemoryCategory::Weights), 3 * one);
        stage.dropVersion(7);
        stage.dropVersion(8);
        QCOMPARE(rig.inUse(MemoryCategory::Weights), one);
    }

    void predictedWeights_data() { eachOptimizer(); }
    void predictedWeights()
    {
        QFETCH(int, kind);
        QFETCH(double, momentum);
        const OptimizerConfig config = optimizerOf(kind, momentum);
        Rig rig(small, 2, 1, config);
        StageModel& stage = *rig.stages[0];
        const auto used = [&](int version) { // what the layers compute with, seen through the weights themselves
            stage.useVersion(version);
            const double loss = rig.forward(99, 0);
            stage.dropMicrobatches();
            stage.useVersion(-1);
            return loss;
        };
        stage.keepPredicted(1, config, 0, 3.0); // no step yet: nothing to predict from
        QCOMPARE(used(1), used(-1));

        const std::vector<float> start = values(rig);
        std::vector<double> mean(start.size()), square(start.size()), expected(start.size());
        const double updates = 2.5;
        std::vector<float> current = start;
        for (int step = 1; step <= 3; ++step) {
            trainStep(rig, config, step, 0.5F);
            const std::vector<float> gradients = rig.gradients();
            const double rate = config.learningRate * std::min(1.0, step / 4.0);
            std::size_t i = 0;
            for (const ParameterView& view : rig.parameters()) {
                const double decay = view.shape.size() > 1 ? config.weightDecay : 0.0;
                for (std::size_t k = 0; k < view.value.size(); ++k, ++i) {
                    const double grad = static_cast<double>(gradients[i]) * 0.5;
                    double direction = 0;
                    if (config.kind == OptimizerKind::AdamW) {
                        mean[i] = config.beta1 * mean[i] + (1 - config.beta1) * grad;
                        square[i] = config.beta2 * square[i] + (1 - config.beta2) * grad * grad;
                        direction = mean[i] / (1 - std::pow(config.beta1, step)) /
                                    (std::sqrt(square[i] / (1 - std::pow(config.beta2, step))) + config.epsilon);
                    } else {
                        mean[i] = momentum * mean[i] + grad + decay * static_cast<double>(current[i]);
                        direction = mean[i];
                    }
                    expected[i] = static_cast<double>(view.value[k]) - rate * updates * direction;
                }
            }
            current = values(rig);
        }
        stage.keepPredicted(1, config, 3, updates);
        const double predicted = used(1);
        QVERIFY(predicted != used(-1));
        // The same weights, put in place by hand.
        std::size_t i = 0;
        for (ParameterView& view : rig.parameters())
            for (float& value : view.value) value = static_cast<float>(expected[i++]);
        QVERIFY2(std::abs(used(-1) - predicted) < 1e-6,
                 qPrintable(QString("%1, expected %2").arg(predicted, 0, 'g', 9).arg(used(-1), 0, 'g', 9)));
        stage.keepPredicted(1, config, 3, 0.0); // no update: the current weights
        QCOMPARE(used(1), used(-1));
    }

    // With a constant gradient, plain descent goes where the prediction says.
    void predictionOfConstantGradients()
    {
        OptimizerConfig config{.kind = OptimizerKind::Sgd, .warmupSteps = 0, .weightDecay = 0.0};
        Rig rig(small, 2, 1, config);
        StageModel& stage = *rig.stages[0];
        stage.keepPredicted(0, config, 0, 1.0);
        trainStep(rig, config, 1);
        stage.keepPredicted(0, config, 1, 3.0);
        for (int step = 2; step <= 4; ++step) stage.optimizerStep(config, step, 1.0F); // the same gradients again
        const double there = rig.forward(5, 0);
        stage.dropMicrobatches();
        stage.useVersion(0);
        QVERIFY(std::abs(rig.forward(5, 0) - there) < 1e-6);
        stage.dropMicrobatches();
        // Nothing was kept for a stage that is asked too late.
        Rig late(small, 2, 1, config);
        trainStep(late, config, 1);
        QVERIFY_EXCEPTION_THROWN(late.stages[0]->keepPredicted(0, config, 1, 1.0), std::logic_error);
        QVERIFY_EXCEPTION_THROWN(late.stages[0]->useVersion(0), std::logic_error);
    }

    void undoneSteps_data() { eachOptimizer(); }
    void undoneSteps()
    {
        QFETCH(int, kind);
        QFETCH(double, momentum);
        const OptimizerConfig config = optimizerOf(kind, momentum);
        const float scale = 0.3F;
        for (const int steps : {1, 2, 6}) {
            Rig rig(small, 2, 1, config), plain(small, 2, 1, config);
            for (int step = 1; step < steps; ++step) {
                trainStep(rig, config, step);
                trainStep(plain, config, step);
            }
            const std::vector<float> before = values(rig);
            trainStep(rig, config, steps, scale);
            QVERIFY(!sameBits(values(rig), before));
            rig.stages[0]->undoOptimizerStep(config, steps, scale);
            double apart = test::distance(values(rig), before);
            QVERIFY2(apart < 1e-6, qPrintable(QString("weights after %1 steps: %2").arg(steps).arg(apart)));
            // The moments came back too: the step redone at another scale, and one more, go where they should.
            rig.stages[0]->optimizerStep(config, steps, 0.1F);
            trainStep(plain, config, steps, 0.1F);
            for (Rig* one : {&rig, &plain}) trainStep(*one, config, steps + 1);
            apart = test::distance(values(rig), values(plain));
            QVERIFY2(apart < 1e-5, qPrintable(QString("redone after %1 steps: %2").arg(steps).arg(apart)));
        }
    }

    void misuseIsNamed()
    {
        Rig rig(small, 2, 1);
        StageModel& stage = *rig.stages[0];
        QVERIFY_EXCEPTION_THROWN(stage.keepVersion(-2), std::invalid_argument);
        try {
            stage.useVersion(4);
            QFAIL("a version that was never kept");
        } catch (const std::logic_error& e) {
            QCOMPARE(e.what(), "stage 0: weight version 4 is to be used, but it is not kept");
        }
        QVERIFY_EXCEPTION_THROWN(stage.dropVersion(4), std::logic_error);
        stage.keepVersion(4);
        stage.useVersion(4);
        QVERIFY_EXCEPTION_THROWN(stage.dropVersion(4), std::logic_error);
        stage.useVersion(-1);
        stage.dropVersion(4);
        QVERIFY_EXCEPTION_THROWN(stage.useVersion(4), std::logic_error);
        OptimizerConfig other;
        other.kind = OptimizerKind::Sgd;
        QVERIFY_EXCEPTION_THROWN(stage.undoOptimizerStep(other, 1, 1.0F), std::invalid_argument);
        QVERIFY_EXCEPTION_THROWN(stage.keepPredicted(0, other, 1, 1.0), std::invalid_argument);
    }
};

QTEST_APPLESS_MAIN(TestVersions)
#include "tst_versions.moc"
