// K-FAC: against stored cases and plain loops in double, the same bits under every schedule, owners among replicas, and
// what it can't do in words.
#include <QTest>

#include <cmath>

#include <nlohmann/json.hpp>

#include "../schedules/tier_cases.h"
#include "engine/check/check.h"
#include "engine/cpu/openblas.h"
#include "engine/layers/parameters.h"
#include "engine_rig.h"
#include "schedules/base/hashing.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;
using namespace stagewright::layers;
using stagewright::testing::tierCases;

namespace {

using Json = nlohmann::json;
using Matrix = std::vector<std::vector<double>>;

Matrix matrixOf(const Json& json) { return json.get<Matrix>(); }

std::vector<double> flat(const Matrix& matrix)
{
    std::vector<double> out;
    for (const auto& row : matrix) out.insert(out.end(), row.begin(), row.end());
    return out;
}

// mᵀm / rows
Matrix meanSquare(const Matrix& m)
{
    Matrix out(m[0].size(), std::vector<double>(m[0].size(), 0));
    for (const auto& row : m)
        for (std::size_t i = 0; i < row.size(); ++i)
            for (std::size_t k = 0; k < row.size(); ++k) out[i][k] += row[i] * row[k] / static_cast<double>(m.size());
    return out;
}

Matrix times(const Matrix& a, const Matrix& b)
{
    Matrix out(a.size(), std::vector<double>(b[0].size(), 0));
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j < b.size(); ++j)
            for (std::size_t k = 0; k < b[0].size(); ++k) out[i][k] += a[i][j] * b[j][k];
    return out;
}

// By elimination.
Matrix inverse(Matrix m)
{
    const std::size_t n = m.size();
    Matrix out(n, std::vector<double>(n, 0));
    for (std::size_t i = 0; i < n; ++i) out[i][i] = 1;
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t pivot = i;
        for (std::size_t r = i; r < n; ++r)
            if (std::abs(m[r][i]) > std::abs(m[pivot][i])) pivot = r;
        std::swap(m[i], m[pivot]);
        std::swap(out[i], out[pivot]);
        const double by = m[i][i];
        for (std::size_t k = 0; k < n; ++k) m[i][k] /= by, out[i][k] /= by;
        for (std::size_t r = 0; r < n; ++r) {
            const double factor = r == i ? 0 : m[r][i];
            for (std::size_t k = 0; k < n; ++k) m[r][k] -= factor * m[i][k], out[r][k] -= factor * out[i][k];
        }
    }
    return out;
}

Matrix damped(Matrix m, double by)
{
    for (std::size_t i = 0; i < m.size(); ++i) m[i][i] += by;
    return m;
}

double meanTrace(const Matrix& m)
{
    double sum = 0;
    for (std::size_t i = 0; i < m.size(); ++i) sum += m[i][i];
    return sum / static_cast<double>(m.size());
}

bool near(std::span<const double> a, std::span<const double> b, double within)
{
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!(std::abs(a[i] - b[i]) <= within * std::max(1.0, std::abs(b[i])))) return false;
    return true;
}

// Eighths from −1 to 1, which floats have exactly.
Matrix noise(std::size_t rows, std::size_t columns, std::uint64_t seed, double scale = 1)
{
    Matrix out(rows, std::vector<double>(columns));
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t k = 0; k < columns; ++k)
            out[i][k] = scale * (static_cast<double>(mixBits(seed + i * columns + k) % 17) - 8) / 8;
    return out;
}

TrainingOptions kfac(int refresh = 1)
{
    TrainingOptions options = fakeOptions(ClockMode::Virtual);
    options.backend = "cpu";
    options.workload = test::gpt({4, 16, 2, 8, 256});
    options.optimizer.kind = OptimizerKind::Kfac;
    options.optimizer.learningRate = 0.1;
    options.optimizer.warmupSteps = 2;
    options.optimizer.refresh = refresh;
    return options;
}

std::vector<double> lossesOf(const Schedule& schedule, const TrainingOptions& options, int steps)
{
    std::vector<double> out;
    auto training = trainingOf(schedule, options);
    if (!training) qFatal("%s", training.error().message.c_str());
    for (int i = 0; i < steps; ++i) {
        const auto outcome = (*training)->step({});
        if (!outcome) qFatal("%s", outcome.error().message.c_str());
        out.push_back(outcome->loss);
    }
    return out;
}

Schedule replicated(int replicas, ShardLevel level)
{
    return addShardOps(overReplicas(librarySchedule("1f1b", 2, 4), replicas).value(), level, {}).value();
}

QString refusalOf(const Schedule& schedule, const TrainingOptions& options)
{
    const auto training = trainingOf(schedule, options);
    return training ? QString() : QString::fromStdString(training.error().message);
}

} // namespace

class TestKfac : public QObject {
    Q_OBJECT
private slots:
    void initTestCase()
    {
        if (cpu::openBlasDense() == nullptr) QSKIP("OpenBLAS with LAPACK is not here");
    }

    void storedCases()
    {
        int tried = 0;
        for (const Json& one : tierCases("kfac.json")) {
            ++tried;
            const Json& expected = one["result"];
            const Matrix gradient = matrixOf(one["grad"]);
            const int outputs = static_cast<int>(gradient.size()), width = static_cast<int>(gradient[0].size());
            std::vector<double> state(KroneckerFactors::stateSize(width - 1, outputs));
            KroneckerFactors factors(width - 1, outputs, state);
            for (const Json& batch : one["batches"])
                factors.average(flat(meanSquare(matrixOf(batch["a"]))), flat(meanSquare(matrixOf(batch["g"]))),
                                one["decay"].get<double>());
            QVERIFY(near(factors.a(), flat(matrixOf(expected["A"])), 1e-12));
            QVERIFY(near(factors.g(), flat(matrixOf(expected["G"])), 1e-12));
            QVERIFY(std::abs(factors.pi() - expected["pi"].get<double>()) < 1e-12);
            QVERIFY(factors.invert(one["damping"].get<double>(), *cpu::openBlasDense()));
            const std::vector<double> from = flat(gradient);
            std::vector<double> update(from.size()), scratch(from.size());
            factors.precondition(from, update, scratch, *cpu::openBlasDense());
            QVERIFY(near(update, flat(matrixOf(expected["update"])), 1e-10));
            const double clip = clipOf(from, update, one["lr"].get<double>(), one["kl_clip"].get<double>());
            QVERIFY(std::abs(clip - expected["nu"].get<double>()) < 1e-10);
        }
        if (tried == 0) QSKIP("no such cases in STAGEWRIGHT_CASES");
    }

    // Three steps of a linear layer and of a tensor that has no factors, the second without a refresh.
    void againstPlainLoops()
    {
        constexpr std::size_t inputs = 5, outputs = 3, rows = 12;
        OptimizerConfig config;
        config.kind = OptimizerKind::Kfac;
        config.learningRate = 0.2;
        config.warmupSteps = 0;
        config.weightDecay = 0.1;
        config.momentum = 0.5;
        config.refresh = 2;
        Allocator allocator;
        const auto backend = std::move(*makeBackend("cpu"));
        const auto math = backend->makeMath({}, allocator).value();
        ParameterSet set(0, 3, config, allocator, *math);
        Parameter& weight = set.addNormal("layer.weight", {static_cast<int>(outputs), static_cast<int>(inputs)}, 0.3F);
        Parameter& bias = set.addConstant("layer.bias", {static_cast<int>(outputs)}, 0.1F);
        Parameter& gamma = set.addConstant("norm.gamma", {4}, 1.0F);
        QVERIFY(weight.factors == nullptr);
        set.addProduct(weight, bias);
        QVERIFY(weight.factors != nullptr);
        Matrix a = damped(Matrix(inputs + 1, std::vector<double>(inputs + 1, 0)), 1);
        Matrix g = damped(Matrix(outputs, std::vector<double>(outputs, 0)), 1);
        Matrix inverseA = a, inverseG = g;
        std::vector<double> values(weight.value.span().begin(), weight.value.span().end()), velocity(values.size(), 0);
        std::vector<double> biases(outputs, static_cast<double>(0.1F)), biasVelocity(outputs, 0);
        double plain = 1, plainVelocity = 0;
        const float scale = 0.5F;
        for (int step = 1; step <= 3; ++step) {
            const auto seed = static_cast<std::uint64_t>(step) * 1000;
            const Matrix x = noise(rows, inputs, seed), own = noise(rows, outputs, seed + 500);
            set.zeroGradients();
            Matrix gradient(outputs, std::vector<double>(inputs + 1, 0));
            for (std::size_t half = 0; half < 2; ++half) { // two weight gradients of half the rows
                std::vector<float> xs, gs;
                for (std::size_t r = half * rows / 2; r < (half + 1) * rows / 2; ++r) {
                    for (const double value : x[r]) xs.push_back(static_cast<float>(value));
                    for (std::size_t o = 0; o < outputs; ++o) {
                        gs.push_back(static_cast<float>(own[r][o] / rows)); // of the mean
                        for (std::size_t i = 0; i <= inputs; ++i)
                            gradient[o][i] += own[r][o] / rows * (i < inputs ? x[r][i] : 1);
                    }
                }
                if (weight.factors->wanted) weight.factors->add(*math, rows / 2, rows, {gs.data()}, {xs.data()});
            }
            QCOMPARE(weight.factors->empty(), step == 2);
            for (std::size_t o = 0; o < outputs; ++o) {
                for (std::size_t i = 0; i < inputs; ++i)
                    weight.gradient.span()[o * inputs + i] = static_cast<float>(gradient[o][i]);
                bias.gradient.span()[o] = static_cast<float>(gradient[o][inputs]);
            }
            for (float& one : gamma.gradient.span()) one = 0.25F;
            set.step(config, step, scale);

            if (step != 2) {
                Matrix ones = x;
                for (auto& row : ones) row.push_back(1);
                const Matrix newA = meanSquare(ones), newG = meanSquare(own);
                for (std::size_t i = 0; i < a.size(); ++i)
                    for (std::size_t k = 0; k < a.size(); ++k) a[i][k] = 0.95 * a[i][k] + 0.05 * newA[i][k];
                for (std::size_t i = 0; i < g.size(); ++i)
                    for (std::size_t k = 0; k < g.size(); ++k) g[i][k] = 0.95 * g[i][k] + 0.05 * newG[i][k];
                const double pi = std::sqrt(meanTrace(a) / meanTrace(g)), root = std::sqrt(config.damping);
                inverseA = inverse(damped(a, root * pi));
                inverseG = inverse(damped(g, root / pi));
            }
            for (auto& row : gradient)
                for (double& one : row) one *= scale;
            const Matrix update = times(times(inverseG, gradient), inverseA);
            double sum = 0;
            for (std::size_t o = 0; o < outputs; ++o)
                for (std::size_t i = 0; i <= inputs; ++i)
                    sum += config.learningRate * config.learningRate * update[o][i] * gradient[o][i];
            const double clip = std::min(1.0, std::sqrt(config.klClip / std::abs(sum)));
            QVERIFY(clip < 1);
            for (std::size_t o = 0; o < outputs; ++o) {
                for (std::size_t i = 0; i < inputs; ++i) {
                    double& value = values[o * inputs + i];
                    double& speed = velocity[o * inputs + i];
                    speed = config.momentum * speed + clip * update[o][i] + config.weightDecay * value;
                    value -= config.learningRate * speed;
                }
                biasVelocity[o] = config.momentum * biasVelocity[o] + clip * update[o][inputs];
                biases[o] -= config.learningRate * biasVelocity[o];
            }
            plainVelocity = config.momentum * plainVelocity + 0.25 * scale;
            plain -= config.learningRate * plainVelocity;
        }
        const auto isNear = [](std::span<const float> found, const std::vector<double>& expected) {
            return near(std::vector<double>(found.begin(), found.end()), expected, 1e-5);
        };
        QVERIFY(isNear(weight.value.span(), values));
        QVERIFY(isNear(bias.value.span(), biases));
        QVERIFY(isNear(gamma.value.span(), std::vector<double>(4, plain)));
    }

    // Bit for bit the one-rank replay's weights and losses, whatever the order.
    void equalsTheReplay_data()
    {
        QTest::addColumn<QString>("name");
        for (const char* name : {"gpipe", "1f1b", "interleaved", "zbv", "bfs", "eager-1f1b"})
            QTest::newRow(name) << name;
    }
    void equalsTheReplay()
    {
        QFETCH(QString, name);
        for (const int refresh : {1, 3}) {
            const auto result = checkOf(librarySchedule(name.toStdString(), 2, 4), kfac(refresh), 4, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->passed && result->gradientsEqual && result->lossesEqual && result->repeatEqual,
                     result->note.c_str());
        }
    }

    // Its factors are of products, so the division into stages is not seen.
    void stagesAreNotSeen()
    {
        const std::vector<double> one = lossesOf(librarySchedule("gpipe", 1, 4), kfac(), 5);
        QVERIFY(lossesOf(librarySchedule("gpipe", 2, 4), kfac(), 5) == one);
        QVERIFY(lossesOf(librarySchedule("gpipe", 4, 4), kfac(), 5) == one);
        QVERIFY(lossesOf(librarySchedule("gpipe", 1, 4), kfac(2), 5) != one);
        QVERIFY(one.back() < one.front());
        TrainingOptions sgd = kfac();
        sgd.optimizer.kind = OptimizerKind::Sgd;
        QVERIFY(lossesOf(librarySchedule("gpipe", 1, 4), sgd, 5) != one);
    }

    // Owners have the factors of their own samples: what is sharded beside the optimizer changes nothing, and copies of
    // a stage stay equal.
    void ownersAmongReplicas()
    {
        std::vector<double> first;
        for (const ShardLevel level : {ShardLevel::Optimizer, ShardLevel::Gradients, ShardLevel::Weights}) {
            TrainingOptions options = kfac();
            options.sharding = {level, ShardBy::Layer, {}, 0};
            const Schedule schedule = replicated(2, level);
            const std::vector<double> losses = lossesOf(schedule, options, 5);
            QVERIFY(lossesOf(schedule, options, 5) == losses);
            if (first.empty()) first = losses;
            QVERIFY(losses == first);
            QVERIFY(losses.back() < losses.front());
        }
        TrainingOptions alone = kfac();
        alone.microbatchSize = 4;
        QVERIFY(lossesOf(librarySchedule("1f1b", 2, 4), alone, 5) != first); // factors of all samples
    }

    // An owner holds the factors of its layers alone.
    void factorsAreCounted()
    {
        const auto held = [](const Schedule& schedule, TrainingOptions options) {
            auto training = trainingOf(schedule, options).value();
            if (!training->step({})) qFatal("no step");
            const std::vector<Bytes> peaks = training->peak(MemoryCategory::Optimizer);
            return std::accumulate(peaks.begin(), peaks.end(), Bytes{0});
        };
        const Bytes h = 16;
        Bytes factors = 0;
        for (const auto& [in, out] : {std::pair(h, 3 * h), {h, h}, {h, 4 * h}, {4 * h, h}})
            factors += 16 * ((in + 1) * (in + 1) + out * out) + 4 * (in * in + 2 * in + out * out);
        QCOMPARE(held(librarySchedule("gpipe", 2, 4), kfac()), 4 * factors);
        TrainingOptions options = kfac();
        options.sharding = {ShardLevel::Optimizer, ShardBy::Layer, {}, 0};
        QCOMPARE(held(replicated(2, ShardLevel::Optimizer), options), 4 * factors);
    }

    void whatItCannotDo()
    {
        TrainingOptions options = kfac();
        QVERIFY(refusalOf(librarySchedule("zb-h1", 2, 4), options).isEmpty() ||
                refusalOf(librarySchedule("zb-h1", 2, 4), options).contains("optimizer ops"));
        QVERIFY(refusalOf(librarySchedule("chimera", 2, 4), options).contains("copies of a stage"));
        QVERIFY(refusalOf(librarySchedule("pipedream", 2, 4), options).contains("the weights of"));
        options.sharding = {ShardLevel::Optimizer, ShardBy::Even, {}, 0};
        QVERIFY(refusalOf(replicated(2, ShardLevel::Optimizer), options).contains("one owner"));
        options.sharding = {};
        QVERIFY(refusalOf(replicated(2, ShardLevel::None), options).contains("one owner"));
        options.sharding = {ShardLevel::Optimizer, ShardBy::Layer, {}, 0};
        const auto checked = checkOf(replicated(2, ShardLevel::Optimizer), options, 2, {});
        QVERIFY(!checked && checked.error().message.find("own samples") != std::string::npos);
        options = kfac();
        options.device.precision = Precision::Bf16;
        const QString narrow = refusalOf(librarySchedule("gpipe", 2, 4), options);
        QVERIFY2(narrow.contains("LAPACK") || narrow.contains("bf16"), qPrintable(narrow));
    }
};

QTEST_APPLESS_MAIN(TestKfac)
#include "tst_kfac.moc"
