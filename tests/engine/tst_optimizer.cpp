// Optimizers against plain loops in double; the vectorised loops of each instruction set against plain loops.
#include <QtTest>

#include <cmath>
#include <numbers>

#include "engine/cpu/kernels.h"
#include "engine_rig.h"
#include "schedules/base/hashing.h"

using namespace stagewright;
using test::Rig;

namespace {

const ModelConfig small{.layers = 1, .hidden = 16, .heads = 2, .sequence = 8, .vocabulary = 31};

float noise(std::size_t i)
{
    return static_cast<float>(mixBits(i) >> 40) / static_cast<float>(1 << 23) - 1.0F; // −1 … 1
}

std::vector<float> noisy(std::size_t count, float scale = 1)
{
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = scale * noise(i + count);
    return out;
}

} // namespace

class TestOptimizer : public QObject {
    Q_OBJECT
private slots:
    void againstPlainLoop_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<double>("momentum");
        QTest::newRow("adamw") << static_cast<int>(OptimizerKind::AdamW) << 0.0;
        QTest::newRow("sgd") << static_cast<int>(OptimizerKind::Sgd) << 0.0;
        QTest::newRow("sgd with momentum") << static_cast<int>(OptimizerKind::Sgd) << 0.9;
    }
    void againstPlainLoop()
    {
        QFETCH(int, kind);
        QFETCH(double, momentum);
        OptimizerConfig config;
        config.kind = static_cast<OptimizerKind>(kind);
        config.momentum = momentum;
        config.warmupSteps = 3;
        Rig rig(small, 2, 1, config);
        const float scale = 0.5F;
        std::vector<std::vector<double>> values, firsts, seconds;
        for (const ParameterView& view : rig.parameters()) {
            values.emplace_back(view.value.begin(), view.value.end());
            firsts.emplace_back(view.value.size());
            seconds.emplace_back(view.value.size());
        }
        for (int step = 1; step <= 5; ++step) {
            rig.stages[0]->zeroGradients();
            rig.forward(step, 0);
            rig.inputGrads(0);
            rig.weightGrads(0);
            const auto views = rig.parameters();
            const double rate = config.learningRate * std::min(1.0, step / 3.0);
            for (std::size_t p = 0; p < views.size(); ++p) {
                const double decay = views[p].shape.size() == 2 ? config.weightDecay : 0;
                for (std::size_t i = 0; i < views[p].value.size(); ++i) {
                    double& value = values[p][i];
                    double& first = firsts[p][i];
                    double& second = seconds[p][i];
                    double grad = static_cast<double>(views[p].gradient[i]) * scale;
                    if (config.kind == OptimizerKind::AdamW) {
                        first = config.beta1 * first + (1 - config.beta1) * grad;
                        second = config.beta2 * second + (1 - config.beta2) * grad * grad;
                        const double mean = first / (1 - std::pow(config.beta1, step));
                        const double square = second / (1 - std::pow(config.beta2, step));
                        value -= rate * decay * value;
                        value -= rate * mean / (std::sqrt(square) + config.epsilon);
                    } else {
                        grad += decay * value;
                        first = momentum * first + grad;
                        value -= rate * first;
                    }
                }
            }
            rig.stages[0]->optimizerStep(config, step, scale);
        }
        const auto views = rig.parameters();
        for (std::size_t p = 0; p < views.size(); ++p)
            for (std::size_t i = 0; i < views[p].value.size(); ++i)
                QVERIFY2(std::abs(views[p].value[i] - values[p][i]) < 2e-5,
                         qPrintable(QString("%1[%2]: %3, expected %4")
                                        .arg(QString::fromStdString(views[p].name))
                                        .arg(i)
                                        .arg(views[p].value[i])
                                        .arg(values[p][i])));
        OptimizerConfig other = config;
        other.kind = config.kind == OptimizerKind::AdamW ? OptimizerKind::Sgd : OptimizerKind::AdamW;
        QVERIFY_EXCEPTION_THROWN(rig.stages[0]->optimizerStep(other, 6, 1.0F), std::invalid_argument);
    }

    void squareSumIsDouble()
    {
        Rig rig(small, 2, 1);
        double expected = 0;
        std::size_t count = 0;
        for (const ParameterView& view : rig.parameters())
            for (float& g : view.gradient) {
                g = noise(++count) * 1e20F; // its square overflows fp32
                expected += static_cast<double>(g) * g;
            }
        const double sum = rig.stages[0]->gradientSquareSum();
        QVERIFY(std::abs(sum - expected) < 1e-12 * expected);
        rig.stages[0]->zeroGradients();
        QCOMPARE(rig.stages[0]->gradientSquareSum(), 0.0);
    }

    void kernels_data()
    {
        QTest::addColumn<QString>("set");
        QTest::newRow("baseline") << "baseline";
        QTest::newRow("avx2") << "avx2";
        QTest::newRow("avx512") << "avx512";
    }
    void kernels()
    {
        QFETCH(QString, set);
        const cpu::Kernels* k = set == "baseline" ? cpu::baselineKernels()
                                : set == "avx2"   ? cpu::avx2Kernels()
                                                  : cpu::avx512Kernels();
        if (!k) QSKIP("not built for this processor family");
        if (QString::fromUtf8(cpu::kernels().name) != set && set == "avx512") QSKIP("this processor has no AVX-512");
        if (cpu::kernels().name == std::string_view("baseline") && set == "avx2") QSKIP("this processor has no AVX2");
        QCOMPARE(QString::fromUtf8(k->name), set);

        const int rows = 5, width = 37; // no multiple of any vector
        const auto size = static_cast<std::size_t>(rows * width);
        const std::vector<float> bias = noisy(width, 0.2F), zero(width, 0.0F);
        std::vector<float> x = noisy(size, 6.0F), out(size), grad(size, 1.0F), sums(width, 99.0F);
        k->gelu(rows, width, x.data(), bias.data(), out.data());
        const std::vector<float> before = x;
        k->geluBackward(rows, width, x.data(), bias.data(), grad.data(), sums.data());
        std::vector<double> expectedSums(width);
        for (std::size_t i = 0; i < size; ++i) {
            const double v = static_cast<double>(before[i]) + bias[i % width];
            const double c = std::sqrt(2.0 / std::numbers::pi);
            const double t = std::tanh(c * (v + 0.044715 * v * v * v));
            const double slope = 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * c * (1 + 3 * 0.044715 * v * v);
            QVERIFY(std::abs(out[i] - 0.5 * v * (1 + t)) < 2e-6);
            QCOMPARE(x[i], out[i]);
            QVERIFY(std::abs(grad[i] - slope) < 4e-6);
            expectedSums[i % width] += slope;
        }
        for (std::size_t i = 0; i < expectedSums.size(); ++i) QVERIFY(std::abs(sums[i] - expectedSums[i]) < 2e-5);

        std::vector<float> scores = noisy(size, 30.0F);
        const std::vector<float> raw = scores;
        k->causalSoftmax(4, rows, width, scores.data());
        for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
            double sum = 0, most = -1e9;
            for (std::size_t i = 0; i <= row + 4; ++i) most = std::max(most, static_cast<double>(raw[row * width + i]));
            for (std::size_t i = 0; i <= row + 4; ++i) sum += std::exp(raw[row * width + i] - most);
            for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i) {
                const double expected = i <= row + 4 ? std::exp(raw[row * width + i] - most) / sum : 0.0;
                QVERIFY(std::abs(scores[row * width + i] - expected) < 1e-6);
            }
        }

        std::vector<float> logits = noisy(size, 200.0F); // far beyond the clamp of the exponential
        const std::vector<float> rawLogits = logits;
        const std::vector<std::uint8_t> targets = {0, 36, 7, 20, 21};
        double expectedLoss = 0;
        for (std::size_t row = 0; row < targets.size(); ++row) {
            double sum = 0, most = -1e9;
            for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i)
                most = std::max(most, static_cast<double>(rawLogits[row * width + i]));
            for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i)
                sum += std::exp(rawLogits[row * width + i] - most);
            expectedLoss += std::log(sum) + most - rawLogits[row * width + targets[row]];
        }
        const double loss = k->crossEntropy(rows, width, logits.data(), targets.data());
        QVERIFY(std::abs(loss - expectedLoss) < 1e-5 * expectedLoss);

        std::vector<float> columns(width, 1.0F);
        k->addColumnSums(rows, width, before.data(), columns.data());
        for (std::size_t i = 0; i < columns.size(); ++i) {
            double sum = 1;
            for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) sum += before[row * width + i];
            QVERIFY(std::abs(columns[i] - sum) < 1e-5);
        }
    }

    // A step rolled back, and the weights it predicts, in each instruction set.
    void stepsBackAndAhead_data() { kernels_data(); }
    void stepsBackAndAhead()
    {
        QFETCH(QString, set);
        const cpu::Kernels* k = set == "baseline" ? cpu::baselineKernels()
                                : set == "avx2"   ? cpu::avx2Kernels()
                                                  : cpu::avx512Kernels();
        if (!k) QSKIP("not built for this processor family");
        const std::string_view best = cpu::kernels().name;
        if (best != "avx512" && set == "avx512") QSKIP("this processor has no AVX-512");
        if (best == "baseline" && set == "avx2") QSKIP("this processor has no AVX2");
        const std::size_t count = 1003;
        const std::vector<float> value = noisy(count, 0.3F), gradient = noisy(count + 1, 2.0F);
        const std::vector<float> mean = noisy(count + 2, 0.1F);
        std::vector<float> square = noisy(count + 3, 0.1F);
        for (float& v : square) v = v * v;
        square[7] = 0; // where rounding may end below zero

        cpu::AdamWStep step{.learningRate = 3e-3F,
                            .beta1 = 0.9F,
                            .beta2 = 0.95F,
                            .correction1 = 1.9F,
                            .correction2 = 2.9F,
                            .epsilon = 1e-8F,
                            .weightDecay = 0.1F,
                            .gradientScale = 0.25F};
        std::vector<float> w = value, m = mean, v = square, out(count);
        k->adamW(count, w.data(), gradient.data(), m.data(), v.data(), step);
        k->predict(count, w.data(), m.data(), v.data(), 0.01F, step, out.data());
        for (std::size_t i = 0; i < count; ++i) {
            const double direction =
                static_cast<double>(m[i]) * 1.9F / (std::sqrt(static_cast<double>(v[i]) * 2.9F) + 1e-8);
            QVERIFY(std::abs(out[i] - (w[i] - static_cast<double>(0.01F) * direction)) < 1e-6);
        }
        k->undoAdamW(count, w.data(), gradient.data(), m.data(), v.data(), step);
        for (std::size_t i = 0; i < count; ++i) {
            QVERIFY(std::abs(w[i] - value[i]) < 1e-6);
            QVERIFY(std::abs(m[i] - mean[i]) < 1e-6);
            QVERIFY(v[i] >= 0 && std::abs(v[i] - square[i]) < 1e-6);
        }

        w = value;
        m = mean;
        k->sgd(count, w.data(), gradient.data(), m.data(), 0.1F, 0.9F, 0.1F, 0.25F);
        k->predict(count, w.data(), m.data(), nullptr, 0.2F, step, out.data());
        for (std::size_t i = 0; i < count; ++i)
            QVERIFY(std::abs(out[i] - (w[i] - static_cast<double>(0.2F) * m[i])) < 1e-6);
        k->undoSgd(count, w.data(), gradient.data(), m.data(), 0.1F, 0.9F, 0.1F, 0.25F);
        for (std::size_t i = 0; i < count; ++i) {
            QVERIFY(std::abs(w[i] - value[i]) < 1e-6);
            QVERIFY(std::abs(m[i] - mean[i]) < 1e-6);
        }
        k->sgd(count, w.data(), gradient.data(), nullptr, 0.1F, 0.0F, 0.1F, 0.25F);
        k->undoSgd(count, w.data(), gradient.data(), nullptr, 0.1F, 0.0F, 0.1F, 0.25F);
        for (std::size_t i = 0; i < count; ++i) QVERIFY(std::abs(w[i] - value[i]) < 1e-6);
    }

    void nanPassesTheKernels()
    {
        const cpu::Kernels& k = cpu::kernels();
        const float nan = std::numeric_limits<float>::quiet_NaN();
        for (const int at : {0, 3, 31}) {
            std::vector<float> x = noisy(32), zero(32, 0.0F), out(32);
            x[static_cast<std::size_t>(at)] = nan;
            k.gelu(1, 32, x.data(), zero.data(), out.data());
            QVERIFY(std::isnan(out[static_cast<std::size_t>(at)]));
            std::vector<float> scores = x;
            k.causalSoftmax(31, 1, 32, scores.data());
            for (const float p : scores) QVERIFY(std::isnan(p));
            const std::uint8_t target = 5;
            QVERIFY(std::isnan(k.crossEntropy(1, 32, x.data(), &target)));
        }
    }
};

QTEST_APPLESS_MAIN(TestOptimizer)
#include "tst_optimizer.moc"
