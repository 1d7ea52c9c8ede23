// bf16 on the CPU: its GEMMs against sums in double, its kernels and layers against fp32, its memory, what refuses
// it, and every form of schedule with the bits of its one-rank replay.
#include <QTest>

#include <bit>
#include <cmath>
#include <random>

#include "engine/check/backend_check.h"
#include "engine/check/check.h"
#include "engine/check/kernel_check.h"
#include "engine/cpu/gemm.h"
#include "engine/cpu/kernels.h"
#include "engine/workload/gpt/corpus.h"
#include "engine/workload/gpt/stage_memory.h"
#include "schedules/library/registry.h"
#include "support/of_schedule.h"
#include "support/workloads.h"

using namespace stagewright;
using namespace stagewright::cpu;

namespace {

using layers::BFloat16;

float valueOf(BFloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

std::vector<BFloat16> randomElements(std::size_t count, std::mt19937& random)
{
    std::uniform_int_distribution<int> in(-256, 256);
    std::vector<BFloat16> out(count);
    for (BFloat16& x : out)
        x.bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(in(random)) / 256) >> 16);
    return out;
}

DeviceOptions bf16Options()
{
    DeviceOptions options;
    options.precision = Precision::Bf16;
    return options;
}

ModelConfig smallModel()
{
    ModelConfig model;
    model.layers = 4;
    model.hidden = 32;
    model.heads = 2;
    model.sequence = 24;
    return model;
}

Schedule scheduleNamed(std::string_view name)
{
    Shape shape;
    shape.ranks = 2;
    shape.microbatches = 4;
    return *makeSchedule(name, shape);
}

} // namespace

class TestBf16 : public QObject {
    Q_OBJECT

private slots:
    void initTestCase()
    {
        if (const auto gemm = bf16Gemm(); !gemm) {
            QVERIFY(!gemm.error().remedy.empty());
            QSKIP(qPrintable(QString::fromStdString(gemm.error().message)));
        }
    }

    void gemmEqualsSumsInDouble()
    {
        std::mt19937 random(3);
        const Bf16Gemm& gemm = **bf16Gemm();
        for (const bool transposeA : {false, true})
            for (const bool transposeB : {false, true})
                for (const auto& [rows, columns, depth] :
                     {std::tuple(1, 1, 1), std::tuple(7, 5, 3), std::tuple(33, 96, 64), std::tuple(128, 64, 200)})
                    for (const float beta : {0.0F, 1.0F}) {
                        constexpr int gap = 3; // elements between the end of a row and the next
                        const int aStride = (transposeA ? rows : depth) + gap;
                        const int bStride = (transposeB ? depth : columns) + gap;
                        const auto a =
                            randomElements(static_cast<std::size_t>(aStride * (transposeA ? depth : rows)), random);
                        const auto b =
                            randomElements(static_cast<std::size_t>(bStride * (transposeB ? columns : depth)), random);
                        std::vector<float> c(static_cast<std::size_t>(rows * (columns + gap)), 0.25F);
                        gemm.multiply(transposeA, transposeB, rows, columns, depth, 0.5F, {a.data(), aStride},
                                      {b.data(), bStride}, beta, c.data(), columns + gap);
                        for (int i = 0; i < rows; ++i)
                            for (int j = 0; j < columns + gap; ++j) {
                                const float got = c[static_cast<std::size_t>(i * (columns + gap) + j)];
                                if (j >= columns) { // between rows nothing is written
                                    QCOMPARE(got, 0.25F);
                                    continue;
                                }
                                double sum = 0;
                                for (int k = 0; k < depth; ++k)
                                    sum += static_cast<double>(valueOf(a[static_cast<std::size_t>(
                                               transposeA ? k * aStride + i : i * aStride + k)])) *
                                           static_cast<double>(valueOf(b[static_cast<std::size_t>(
                                               transposeB ? j * bStride + k : k * bStride + j)]));
                                const double wanted = 0.5 * sum + static_cast<double>(beta) * 0.25;
                                QVERIFY(std::abs(wanted - static_cast<double>(got)) <= 1e-5 * std::sqrt(depth));
                            }
                    }
    }

    // Halves go to the even neighbour; infinities and NaN stay what they are.
    void rounding()
    {
        const auto rounded = [](float x) {
            BFloat16 out{};
            kernels().bf16.storeRows(1, 1, &x, nullptr, &out, 1);
            return out.bits;
        };
        QCOMPARE(rounded(1.0F), std::uint16_t{0x3f80});
        QCOMPARE(rounded(std::bit_cast<float>(0x3f808000U)), std::uint16_t{0x3f80}); // half, to the even one
        QCOMPARE(rounded(std::bit_cast<float>(0x3f818000U)), std::uint16_t{0x3f82});
        QCOMPARE(rounded(std::bit_cast<float>(0x3f808001U)), std::uint16_t{0x3f81});
        QCOMPARE(rounded(std::bit_cast<float>(0xbf80ffffU)), std::uint16_t{0xbf81});
        QCOMPARE(rounded(std::bit_cast<float>(0x7f7fffffU)), std::uint16_t{0x7f80}); // beyond the largest
        QCOMPARE(rounded(std::bit_cast<float>(0xff800000U)), std::uint16_t{0xff80});
        for (const std::uint32_t nan : {0x7fffffffU, 0x7f800001U, 0xffffffffU})
            QVERIFY(std::isnan(valueOf(BFloat16{rounded(std::bit_cast<float>(nan))})));
    }

    void everyKernelIsNearFp32()
    {
        const auto compared = compareKernels("cpu", {}, Precision::Bf16);
        QVERIFY2(compared, compared ? "" : compared.error().message.c_str());
        QVERIFY(compared->size() >= 10);
        double largest = 0;
        for (const KernelComparison& one : *compared) {
            QVERIFY2(one.passed, qPrintable(QString("%1: %2").arg(QString::fromStdString(one.kernel)).arg(one.error)));
            largest = std::max(largest, one.error);
        }
        QVERIFY(largest > 1e-4);                                      // it is not fp32 that was compared
        QVERIFY(compareKernels("cpu", {}, Precision::Fp32)->empty()); // which is the reference
    }

    void tenStepsAreNearFp32()
    {
        TrainingOptions options;
        options.backend = "cpu";
        options.workload = test::gpt(smallModel());
        options.device = bf16Options();
        const auto compared = compareWithCpu(options, 2, 10, {});
        QVERIFY2(compared, compared ? "" : compared.error().message.c_str());
        QCOMPARE(compared->gradientTolerance, bf16GradientTolerance(4));
        QVERIFY2(compared->passed, qPrintable(QString("gradients %1 (%2), losses %3")
                                                  .arg(compared->gradientError)
                                                  .arg(QString::fromStdString(compared->farthestTensor))
                                                  .arg(compared->lossError)));
        QVERIFY(compared->gradientError > 1e-4 && compared->lossError > 0);
    }

    // Slices, halves, copies of a stage, several W in one: the same bits as on one rank, twice.
    void schedulesEqualTheirReplay_data()
    {
        QTest::addColumn<QString>("name");
        for (const char* name :
             {"1f1b", "zb-h1", "zbv", "terapipe", "dualpipe", "2bp-1f1b", "chimera:join=halving", "gpipe"})
            QTest::newRow(name) << name;
    }
    void schedulesEqualTheirReplay()
    {
        QFETCH(QString, name);
        TrainingOptions options;
        options.backend = "cpu";
        options.workload = test::gpt(smallModel());
        options.workload = options.workload->withLayers(8);
        options.microbatchSize = 2;
        options.device = bf16Options();
        const auto result = test::checkOf(scheduleNamed(name.toStdString()), options, 2, {});
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QVERIFY2(result->passed, result->note.c_str());
        QVERIFY(result->gradientsEqual && result->lossesEqual && result->repeatEqual);
    }

    void memoryIsPredicted_data()
    {
        QTest::addColumn<int>("hidden");
        QTest::addColumn<int>("sequence");
        QTest::addColumn<std::vector<int>>("layers");
        for (const auto& [hidden, sequence] :
             {std::pair(12, 9), std::pair(32, 150), std::pair(160, 70), std::pair(704, 6)})
            for (const auto& [cut, layers] :
                 {std::pair("whole", std::vector<int>{3}), std::pair("two", std::vector<int>{1, 2}),
                  std::pair("ends alone", std::vector<int>{0, 3, 0})})
                QTest::addRow("hidden %d, %d tokens, %s", hidden, sequence, cut) << hidden << sequence << layers;
    }
    void memoryIsPredicted()
    {
        QFETCH(int, hidden);
        QFETCH(int, sequence);
        QFETCH(std::vector<int>, layers);
        constexpr int batch = 3;
        ModelConfig model;
        model.layers = 3;
        model.hidden = hidden;
        model.heads = 2;
        model.sequence = sequence;
        const auto backend = *makeBackend("cpu", bf16Options());
        const StageLayout layout = traitsOf("cpu").layout(Precision::Bf16);
        QCOMPARE(backend->capabilities().layout.elementBytes, layout.elementBytes);
        const std::vector<std::uint8_t> bytes(static_cast<std::size_t>(batch * sequence), 7);
        const std::vector<StageSlice> slices = *slicesOf(*test::gpt(model), static_cast<int>(layers.size()), layers);
        for (const StageSlice& slice : slices) {
            const StageMemory predicted = stageMemoryOf(model, slice, batch, {}, layout);
            Allocator allocator;
            const auto stage = *makeStage(*test::gpt(model), *backend, {slice, batch, 1, {}}, allocator);
            stage->setLossScale(1.0F);
            QCOMPARE(allocator.inUse(MemoryCategory::Weights), predicted.weight);
            QCOMPARE(allocator.inUse(MemoryCategory::Gradients), predicted.gradient);
            QCOMPARE(allocator.inUse(MemoryCategory::Optimizer), predicted.optimizer);
            const auto message = [&] {
                const auto floats =
                    static_cast<std::size_t>(batch * sequence * hidden * layout.elementBytes) / sizeof(float);
                Buffer buffer = allocator.take(floats, {MemoryCategory::Communication, 0, 0});
                std::fill(buffer.span().begin(), buffer.span().end(), 0.0F);
                return buffer;
            };
            allocator.resetPeaks();
            stage->forward(0, slice.first ? Buffer() : message(), slice.first ? bytes : std::vector<std::uint8_t>(),
                           slice.last ? bytes : std::vector<std::uint8_t>());
            QCOMPARE(allocator.inUse(MemoryCategory::Activations), predicted.activation);
            stage->inputGrad(0, slice.last ? Buffer() : message());
            QCOMPARE(allocator.inUse(MemoryCategory::Activations), predicted.activation - predicted.freedAtInput);
            stage->weightGrad(0);
            QCOMPARE(allocator.inUse(MemoryCategory::Activations), Bytes{0});
            QCOMPARE(allocator.peak(MemoryCategory::Workspace), predicted.workspace);
            QCOMPARE(allocator.peak(MemoryCategory::Communication), predicted.boundary);
        }
    }

    void halfTheMessagesAndActivations()
    {
        const StageSlice slice{1, 1, 2, false, false};
        const ModelConfig model = smallModel();
        const StageMemory wide = stageMemoryOf(model, slice, 2, {}, traitsOf("cpu").layout(Precision::Fp32));
        const StageMemory bf16 = stageMemoryOf(model, slice, 2, {}, traitsOf("cpu").layout(Precision::Bf16));
        QCOMPARE(bf16.boundary * 2, wide.boundary);
        QVERIFY(bf16.activation < 0.52 * static_cast<double>(wide.activation)); // deviations stay fp32
        QCOMPARE(bf16.gradient, wide.gradient);
        QCOMPARE(bf16.optimizer, wide.optimizer);
    }

    void refusals()
    {
        DeviceOptions options = bf16Options();
        options.blas = "openblas";
        QCOMPARE(makeBackend("cpu", options).error().code, ErrorCode::Usage);
        options.blas = "onednn";
        QVERIFY(makeBackend("cpu", options));
        options.precision = Precision::Tf32;
        QCOMPARE(makeBackend("cpu", options).error().code, ErrorCode::Usage);
        const auto backend = *makeBackend("cpu", bf16Options());
        ModelConfig odd = smallModel();
        odd.hidden = 33;
        odd.heads = 3;
        Allocator allocator;
        const auto stage = makeStage(*test::gpt(odd), *backend, {{0, 0, 4, true, true}, 1, 1, {}}, allocator);
        QVERIFY(!stage);
        QVERIFY2(stage.error().message.find("must be even") != std::string::npos, stage.error().message.c_str());
    }
};

QTEST_GUILESS_MAIN(TestBf16)
#include "tst_bf16.moc"
