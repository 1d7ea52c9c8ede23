// The default model on the built-in text with the default optimizer really learns: a third of the default steps, one
// rank.
#include <QtTest>

#include <cmath>

#include "engine_rig.h"

using namespace stagewright;
using test::Rig;

class TestDefaultTraining : public QObject {
    Q_OBJECT
private slots:
    void lossFalls()
    {
        const OptimizerConfig optimizer;
        Rig rig(ModelConfig{}, 4, 1, optimizer);
        StageModel& stage = *rig.stages[0];
        const int microbatches = 8;
        stage.setLossScale(1.0F / microbatches);
        double first = 0, loss = 0;
        for (int step = 0; step < 100; ++step) {
            stage.zeroGradients();
            loss = 0;
            for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
                loss += rig.forward(step, microbatch) / microbatches;
                rig.inputGrads(microbatch);
                rig.weightGrads(microbatch);
            }
            if (step == 0) first = loss;
            const double norm = std::sqrt(stage.gradientSquareSum());
            stage.optimizerStep(optimizer, step + 1,
                                norm > optimizer.clipNorm ? static_cast<float>(optimizer.clipNorm / norm) : 1.0F);
        }
        QVERIFY2(std::abs(first - std::log(256.0)) < 0.2, qPrintable(QString::number(first)));
        QVERIFY2(loss < 2.7, qPrintable(QString::number(loss)));
    }
};

QTEST_APPLESS_MAIN(TestDefaultTraining)
#include "tst_default_training.moc"
