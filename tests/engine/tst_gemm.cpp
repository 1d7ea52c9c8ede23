// GEMMs: every library against sums in double, from several threads, the same bits twice; and which one is
// chosen.
#include <QtTest>

#include <cstring>
#include <random>
#include <thread>

#include "engine/cpu/gemm.h"
#include "engine/device/backend.h"
#include "support/workloads.h"

using namespace stagewright;
using namespace stagewright::cpu;

namespace {

std::vector<float> randomFloats(std::size_t count, std::mt19937& random)
{
    std::uniform_real_distribution<float> in(-1, 1);
    std::vector<float> out(count);
    for (float& x : out) x = in(random);
    return out;
}

struct Problem {
    bool transposeA, transposeB;
    int rows, columns, depth, gap; // gap: floats between the end of a row and the next
    float alpha, beta;
};

std::vector<float> solved(const Gemm& gemm, const Problem& p, const std::vector<float>& a, const std::vector<float>& b,
                          std::vector<float> c)
{
    gemm.multiply(p.transposeA, p.transposeB, p.rows, p.columns, p.depth, p.alpha,
                  {a.data(), (p.transposeA ? p.rows : p.depth) + p.gap},
                  {b.data(), (p.transposeB ? p.depth : p.columns) + p.gap}, p.beta, c.data(), p.columns + p.gap);
    return c;
}

ModelConfig modelOf(int hidden) { return {.hidden = hidden, .sequence = 16}; }

MathUse useOf(int hidden) { return test::gpt(modelOf(hidden))->mathUse(1); }

} // namespace

class TestGemm : public QObject {
    Q_OBJECT
private slots:
    void equalSumsInDouble()
    {
        std::mt19937 random(3);
        for (const Gemm* gemm : allGemms())
            for (const int form : {0, 1, 2})
                for (const auto& [rows, columns, depth] :
                     {std::tuple(1, 1, 1), std::tuple(7, 5, 3), std::tuple(33, 96, 64), std::tuple(128, 64, 200)})
                    for (const float beta : {0.0F, 1.0F}) {
                        const Problem p{form == 2, form == 1, rows, columns, depth, form, 0.5F, beta};
                        const auto size = [&](int r, int c) {
                            return static_cast<std::size_t>(r) * static_cast<std::size_t>(c + p.gap);
                        };
                        const auto a = randomFloats(p.transposeA ? size(depth, rows) : size(rows, depth), random);
                        const auto b = randomFloats(p.transposeB ? size(columns, depth) : size(depth, columns), random);
                        const auto before = randomFloats(size(rows, columns), random);
                        const auto after = solved(*gemm, p, a, b, before);
                        for (int i = 0; i < rows; ++i)
                            for (int j = 0; j < columns + p.gap; ++j) {
                                const auto at =
                                    static_cast<std::size_t>(i) * static_cast<std::size_t>(columns + p.gap) +
                                    static_cast<std::size_t>(j);
                                if (j >= columns) { // between rows nothing is written
                                    QCOMPARE(after[at], before[at]);
                                    continue;
                                }
                                double sum = 0;
                                for (int k = 0; k < depth; ++k) {
                                    const std::size_t left = p.transposeA
                                                                 ? static_cast<std::size_t>(k * (rows + p.gap) + i)
                                                                 : static_cast<std::size_t>(i * (depth + p.gap) + k);
                                    const std::size_t right = p.transposeB
                                                                  ? static_cast<std::size_t>(j * (depth + p.gap) + k)
                                                                  : static_cast<std::size_t>(k * (columns + p.gap) + j);
                                    sum += static_cast<double>(a[left]) * static_cast<double>(b[right]);
                                }
                                const double wanted =
                                    0.5 * sum + static_cast<double>(beta) * static_cast<double>(before[at]);
                                QVERIFY2(std::abs(wanted - static_cast<double>(after[at])) <= 1e-5 * std::sqrt(depth),
                                         std::string(gemm->name()).c_str());
                            }
                    }
    }
    // Ranks multiply side by side: the same bits as alone, whatever the neighbours do and wherever the matrices are.
    void sameBitsFromEveryThread()
    {
        std::mt19937 random(5);
        const Problem p{false, true, 64, 192, 64, 0, 1.0F, 0.0F};
        const auto a = randomFloats(64 * 64, random);
        const auto b = randomFloats(192 * 64, random);
        const std::vector<float> c(64 * 192, 0.0F);
        for (const Gemm* gemm : allGemms()) {
            const auto alone = solved(*gemm, p, a, b, c);
            std::atomic<int> different = 0;
            std::vector<std::thread> threads;
            for (int t = 0; t < 4; ++t)
                threads.emplace_back([&, t] {
                    std::vector<float> moved(a.size() + static_cast<std::size_t>(t)); // another alignment
                    std::copy(a.begin(), a.end(), moved.begin() + t);
                    for (int i = 0; i < 50; ++i) {
                        std::vector<float> own = c;
                        gemm->multiply(false, true, 64, 192, 64, 1.0F, {moved.data() + t, 64}, {b.data(), 64}, 0.0F,
                                       own.data(), 192);
                        if (std::memcmp(own.data(), alone.data(), alone.size() * sizeof(float)) != 0) ++different;
                    }
                });
            for (std::thread& thread : threads) thread.join();
            QVERIFY2(different == 0, std::string(gemm->name()).c_str());
        }
    }
    void aNameChooses()
    {
        QCOMPARE(std::string((*gemmNamed("openblas"))->name()), std::string("openblas"));
        QCOMPARE(gemmNamed("mkl").error().code, ErrorCode::Usage);
        if (allGemms().size() == 1) QCOMPARE(gemmNamed("onednn").error().code, ErrorCode::Unavailable);
        DeviceOptions options;
        options.blas = "mkl";
        QCOMPARE(makeBackend("cpu", options).error().code, ErrorCode::Usage);
        const auto choice = chooseGemm("openblas", useOf(32));
        QCOMPARE(std::string(choice->gemm->name()), std::string("openblas"));
        QCOMPARE(choice->reason, std::string("asked for"));
    }
    void theCoreTypeOfOpenBlasChoosesIt()
    {
        qputenv("OPENBLAS_CORETYPE", "Haswell");
        const auto choice = chooseGemm("", useOf(40));
        qunsetenv("OPENBLAS_CORETYPE");
        QCOMPARE(std::string(choice->gemm->name()), std::string("openblas"));
    }
    void whatIsMeasuredIsKept()
    {
        if (allGemms().size() < 2) QSKIP("oneDNN (libdnnl2) is not installed: there is nothing to choose from");
        QTemporaryDir cache;
        const QByteArray table = qgetenv("STAGEWRIGHT_PRODUCTS");
        qunsetenv("STAGEWRIGHT_PRODUCTS");
        qputenv("XDG_CACHE_HOME", cache.path().toUtf8());
        const auto first = chooseGemm("", useOf(64));
        const auto again = chooseGemm("", useOf(64));
        const auto other = chooseGemm("", useOf(128));
        QVERIFY2(first->reason.starts_with("measured: "), first->reason.c_str());
        QCOMPARE(again->gemm, first->gemm);
        QFile file(cache.filePath("stagewright/products"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QStringList lines = QString::fromUtf8(file.readAll()).split('\n', Qt::SkipEmptyParts);
        QCOMPARE(lines.size(), 2);
        QVERIFY(lines[0].contains(QStringLiteral("hidden 64, 16 tokens\t") +
                                  QString::fromUtf8(first->gemm->name().data())));
        QVERIFY(lines[1].endsWith(QString::fromStdString(other->reason)));
        // What is kept counts: the line of another shape, written by hand, chooses the slower one.
        QString line = lines[0];
        line.replace("hidden 64", "hidden 96");
        const QString slower = first->gemm->name() == "onednn" ? "openblas" : "onednn";
        line = line.section('\t', 0, 0) + '\t' + slower + "\tby hand\n";
        file.close();
        QVERIFY(file.open(QIODevice::Append));
        file.write(line.toUtf8());
        file.close();
        const auto kept = chooseGemm("", useOf(96));
        QCOMPARE(QString::fromUtf8(kept->gemm->name().data()), slower);
        QCOMPARE(kept->reason, std::string("by hand"));
        qputenv("STAGEWRIGHT_PRODUCTS", table);
        qunsetenv("XDG_CACHE_HOME");
    }
    // The fastest of all that is kept, in fp32 and in bf16, and what another choice reaches of it.
    void theMachinesBestIsKnown()
    {
        if (allGemms().size() < 2) QSKIP("oneDNN (libdnnl2) is not installed: there is nothing to choose from");
        QTemporaryDir cache;
        const QByteArray table = qgetenv("STAGEWRIGHT_PRODUCTS");
        const auto back = qScopeGuard([&] {
            qputenv("STAGEWRIGHT_PRODUCTS", table);
            qunsetenv("XDG_CACHE_HOME");
        });
        qputenv("XDG_CACHE_HOME", cache.path().toUtf8());
        qputenv("STAGEWRIGHT_PRODUCTS", "table");
        QVERIFY(!fastestGemm(false));
        QCOMPARE(chooseGemm("", useOf(48))->gflops, 0.0); // nothing was measured
        qunsetenv("STAGEWRIGHT_PRODUCTS");
        const auto first = chooseGemm("", useOf(80));
        const auto other = chooseGemm("", useOf(160));
        QVERIFY(first->gflops > 0 && other->gflops > 0);
        const auto fastest = fastestGemm(false);
        QVERIFY(fastest);
        QVERIFY(std::abs(fastest->gflops - std::max(first->gflops, other->gflops)) <= 0.5); // kept as whole GFLOP/s
        QVERIFY2(fastest->shape == "hidden 80, 16 tokens" || fastest->shape == "hidden 160, 16 tokens",
                 fastest->shape.c_str());
        const auto asked = chooseGemm(first->gemm->name() == "onednn" ? "openblas" : "onednn", useOf(80));
        QVERIFY(asked->gflops > 0 && asked->gflops <= first->gflops + 0.5);
        QVERIFY(!fastestGemm(true)); // bf16 is measured apart
        const auto bf16 = bf16Gemm();
        if (!bf16) return;
        const double speed = bf16Speed(**bf16, useOf(80));
        QVERIFY(speed > 0);
        QVERIFY(std::abs(fastestGemm(true)->gflops - speed) <= 0.5);
        QVERIFY(std::abs(bf16Speed(**bf16, useOf(80)) - speed) <= 0.5); // what is kept
        QCOMPARE(fastestGemm(false)->gflops, fastest->gflops);
    }
    void theBackendSaysWhatItChose()
    {
        qputenv("STAGEWRIGHT_PRODUCTS", "table");
        auto backend = makeBackend("cpu");
        QVERIFY(backend);
        auto has = [&](const std::string& key) {
            for (const auto& [name, value] : (*backend)->environment())
                if (name == key) return true;
            return false;
        };
        QVERIFY(!has("products"));
        Allocator allocator;
        StageSlice slice;
        slice.layerCount = 1;
        QVERIFY(makeStage(*test::gpt(modelOf(32)), **backend, {slice, 1, 1, {}}, allocator));
        QVERIFY(has("products"));
        QVERIFY(has("products_chosen"));
    }
};

QTEST_APPLESS_MAIN(TestGemm)
#include "tst_gemm.moc"
