// The engine's loss and every gradient against the model in double precision, written from docs/model.md without the
// engine's code.
#include <QtTest>

#include <cmath>

#include "engine/check/double_check.h"
#include "engine/workload/gpt/double_model.h"
#include "engine_rig.h"
#include "schedules/base/hashing.h"

using namespace stagewright;
using test::Rig;

class TestDoubleModel : public QObject {
    Q_OBJECT
private slots:
    void lossAndGradients_data()
    {
        QTest::addColumn<int>("layers");
        QTest::addColumn<int>("stages");
        QTest::addColumn<int>("sequence");
        QTest::addColumn<bool>("apart"); // weights away from their small start
        QTest::newRow("as drawn, one stage") << 1 << 1 << 9 << false;
        QTest::newRow("as drawn, three stages") << 3 << 3 << 16 << false;
        QTest::newRow("far from the start, two stages") << 2 << 2 << 9 << true;
        QTest::newRow("a longer sequence") << 2 << 1 << 40 << true;
    }
    void lossAndGradients()
    {
        QFETCH(int, layers);
        QFETCH(int, stages);
        QFETCH(int, sequence);
        QFETCH(bool, apart);
        Rig rig(ModelConfig{.layers = layers, .hidden = 24, .heads = 3, .sequence = sequence, .vocabulary = 256}, 2,
                stages);
        DoubleModel model;
        model.layers = layers;
        model.hidden = 24;
        model.heads = 3;
        model.sequence = sequence;
        model.vocabulary = 256;
        model.batch = 2;
        for (ParameterView& view : rig.parameters()) {
            for (std::size_t i = 0; apart && i < view.value.size(); ++i)
                view.value[i] = view.value[i] * (view.name.ends_with("gamma") ? 1.0F : 6.0F) +
                                1e-4F * (static_cast<float>(mixBits(i) % 1000) - 500.0F);
            model.parameters[view.name].assign(view.value.begin(), view.value.end());
        }
        const double loss = rig.forward(0, 0);
        rig.inputGrads(0);
        rig.weightGrads(0);
        const double expected = model.run(rig.tokens, rig.targets);
        QVERIFY2(std::abs(loss - expected) <= 1e-5 * expected,
                 qPrintable(QString("%1 against %2").arg(loss, 0, 'g', 10).arg(expected, 0, 'g', 10)));
        int compared = 0;
        for (const ParameterView& view : rig.parameters()) {
            const auto& own = model.gradients.at(view.name);
            QCOMPARE(own.size(), view.gradient.size());
            double square = 0;
            double difference = 0;
            for (std::size_t i = 0; i < own.size(); ++i) {
                square += own[i] * own[i];
                difference += (view.gradient[i] - own[i]) * (view.gradient[i] - own[i]);
            }
            QVERIFY2(square > 0 && std::sqrt(difference / square) <= 1e-4,
                     qPrintable(QString("%1: %2 relative")
                                    .arg(QString::fromStdString(view.name))
                                    .arg(std::sqrt(difference / square))));
            ++compared;
        }
        QCOMPARE(compared, 12 * layers + 5);
    }

    void comparison_data()
    {
        QTest::addColumn<QString>("config");
        QTest::addColumn<QString>("compared");
        QTest::newRow("small, whole") << "layers=2,hidden=32,heads=2,seq=16"
                                      << "2 layers of 32, sequence 16";
        QTest::newRow("large, cut") << "layers=24,hidden=2048,heads=16,seq=512"
                                    << "3 layers of 128, sequence 16";
    }
    void comparison()
    {
        QFETCH(QString, config);
        QFETCH(QString, compared);
        TrainingOptions options;
        options.workload = *parseWorkload(config.toStdString());
        options.microbatchSize = 2;
        const auto result = compareWithDouble(options);
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QCOMPARE(QString::fromStdString(result->model), compared);
        QVERIFY2(result->passed,
                 qPrintable(QString("gradients %1, loss %2").arg(result->gradientError).arg(result->lossError)));
        QVERIFY(result->gradientError > 0 && !result->farthestTensor.empty());
    }
};

QTEST_APPLESS_MAIN(TestDoubleModel)
#include "tst_double_model.moc"
