// What a stage takes on a CUDA device, predicted and counted: on the fake device, in every layout.
#include <QTest>

#include "engine/cuda/cuda_traits.h"
#include "engine/device/backend.h"
#include "engine/workload/gpt/corpus.h"
#include "engine/workload/gpt/stage_memory.h"
#include "support/workloads.h"

using namespace stagewright;

class TestDeviceMemory : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { qputenv("STAGEWRIGHT_CUDA_MODULE", STAGEWRIGHT_FAKE_CUDA); }

    void streamsWhereItPays()
    {
        qunsetenv("STAGEWRIGHT_CUDA_FLASH_FROM");
        QCOMPARE(cuda::streamFrom(2, 64), 256); // on the matrix units
        QCOMPARE(cuda::streamFrom(4, 64), 4096);
        QCOMPARE(cuda::streamFrom(2, 60), 4096);
        QCOMPARE(cuda::streamFrom(2, 136), std::numeric_limits<int>::max());
        qputenv("STAGEWRIGHT_CUDA_FLASH_FROM", "7");
        QCOMPARE(cuda::streamFrom(4, 60), 7);
    }

    void memoryIsForetold_data()
    {
        QTest::addColumn<int>("precision");
        QTest::addColumn<int>("streamFrom");
        QTest::addColumn<int>("headWidth");
        QTest::addColumn<std::vector<int>>("layers");
        for (const auto& [name, precision] : {std::pair("fp32", Precision::Fp32), std::pair("bf16", Precision::Bf16)}) {
            for (const auto& [from, headWidth] : {std::pair(1, 12), std::pair(1, 16), std::pair(4096, 12)}) {
                for (const auto& [cut, layers] :
                     {std::pair("whole", std::vector<int>{3}), std::pair("two", std::vector<int>{1, 2}),
                      std::pair("ends alone", std::vector<int>{0, 3, 0})})
                    QTest::addRow("%s, %s, heads of %d, %s", name, from == 1 ? "streamed" : "squares", headWidth, cut)
                        << static_cast<int>(precision) << from << headWidth << layers;
            }
        }
    }
    void memoryIsForetold()
    {
        QFETCH(int, precision);
        QFETCH(int, streamFrom);
        QFETCH(int, headWidth);
        QFETCH(std::vector<int>, layers);
        qputenv("STAGEWRIGHT_CUDA_FLASH_FROM", QByteArray::number(streamFrom));
        ModelConfig model;
        model.layers = 3;
        model.hidden = 2 * headWidth;
        model.heads = 2;
        model.sequence = 10;
        constexpr int batch = 3;
        const auto backend = *makeBackend("cuda", {{}, static_cast<Precision>(precision), {}});
        const OptimizerConfig optimizer{};
        const StageLayout layout = traitsOf("cuda").layout(static_cast<Precision>(precision));
        const std::vector<std::uint8_t> bytes(static_cast<std::size_t>(batch * model.sequence), 7);
        const std::vector<StageSlice> slices = *slicesOf(*test::gpt(model), static_cast<int>(layers.size()), layers);
        for (const StageSlice& slice : slices) {
            const StageMemory predicted = stageMemoryOf(model, slice, batch, optimizer, layout);
            const auto memory = *backend->openMemory(0, 1, 1);
            Allocator allocator(*memory);
            {
                const auto stage = *makeStage(*test::gpt(model), *backend, {slice, batch, 1, optimizer}, allocator);
                stage->setLossScale(1.0F);
                stage->zeroGradients();
                QCOMPARE(allocator.inUse(MemoryCategory::Weights), predicted.weight);
                QCOMPARE(allocator.inUse(MemoryCategory::Gradients), predicted.gradient);
                QCOMPARE(allocator.inUse(MemoryCategory::Optimizer), predicted.optimizer);
                const auto message = [&] {
                    const auto floats =
                        static_cast<std::size_t>(batch * model.sequence * model.hidden * layout.elementBytes) /
                        sizeof(float);
                    Buffer buffer = allocator.take(floats, {MemoryCategory::Communication, 0, 0});
                    memory->clear(buffer.data(), buffer.size() * sizeof(float));
                    return buffer;
                };
                for (int j = 0; j < 2; ++j) { // what lasts is there from the first on
                    allocator.resetPeaks();
                    Part part;
                    part.microbatch = j;
                    Buffer out = stage->forward(part, slice.first ? Buffer() : message(),
                                                slice.first ? bytes : std::vector<std::uint8_t>(),
                                                slice.last ? bytes : std::vector<std::uint8_t>());
                    out.reset();
                    QCOMPARE(allocator.inUse(MemoryCategory::Activations), predicted.activation);
                    Buffer grad = stage->inputGrad(part, slice.last ? Buffer() : message());
                    grad.reset();
                    QCOMPARE(allocator.inUse(MemoryCategory::Activations),
                             predicted.activation - predicted.freedAtInput);
                    stage->weightGrad(part);
                    QCOMPARE(allocator.inUse(MemoryCategory::Activations), Bytes{0});
                    if (j > 0) QCOMPARE(allocator.peak(MemoryCategory::Workspace), predicted.workspace);
                    QCOMPARE(allocator.peak(MemoryCategory::Communication), predicted.boundary);
                }
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestDeviceMemory)
#include "tst_device_memory.moc"
