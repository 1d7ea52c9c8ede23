// Attention on the matrix units, its very bodies over emulated blocks: against attention in fp64, bit equality in any
// order of threads, and faults that would make a kernel wrong on a GPU are found.
#include <QTest>

#include <cmath>
#include <random>

#include "tests/support/emulated_flash.h"

using namespace stagewright::cuda;
using namespace stagewright::fake;

namespace {

constexpr std::uint16_t poison = 0x7fc0; // NaN
constexpr float floatPoison = -12345.0F;

double widened(std::uint16_t x) { return static_cast<double>(Bf16::load(&x, 0)); }

// Bytes that begin at 16 of them.
class Elements {
public:
    explicit Elements(std::size_t count) : m_pieces((count + 7) / 8), m_count(count) {}
    std::uint16_t* data() { return reinterpret_cast<std::uint16_t*>(m_pieces.data()); }
    const std::uint16_t* data() const { return reinterpret_cast<const std::uint16_t*>(m_pieces.data()); }
    std::uint16_t& operator[](std::size_t i) { return data()[i]; }
    std::uint16_t operator[](std::size_t i) const { return data()[i]; }
    std::size_t size() const { return m_count; }

private:
    struct alignas(16) Piece {
        std::uint16_t numbers[8];
    };
    std::vector<Piece> m_pieces;
    std::size_t m_count;
};

struct Shape {
    int batch, heads, tokens, width, gap; // gap: numbers between value and the next row's query
    bool addKeys;
};

// Query, key and value side by side in one matrix, as the layers have them, and their gradients in another.
struct Attention {
    Shape shape;
    std::size_t hidden, stride, rows;
    Elements inputs, gradients, out, outGrad, past;
    std::vector<float> sums, inner;

    explicit Attention(const Shape& s)
        : shape(s), hidden(static_cast<std::size_t>(s.heads * s.width)),
          stride(3 * hidden + static_cast<std::size_t>(s.gap)), rows(static_cast<std::size_t>(s.batch * s.tokens)),
          inputs(rows * stride), gradients(rows * stride), out(rows * hidden), outGrad(rows * hidden),
          past(rows * stride), sums(rows * static_cast<std::size_t>(s.heads), floatPoison),
          inner(rows * static_cast<std::size_t>(s.heads), floatPoison)
    {
        std::mt19937 random(static_cast<unsigned>(s.tokens * 1000 + s.width));
        const auto fill = [&](Elements& e, float to) {
            for (std::size_t i = 0; i < e.size(); ++i)
                Bf16::store(e.data(), i, to * (static_cast<float>(random() >> 8) / 8388608.0F - 1));
        };
        fill(inputs, 2);
        fill(outGrad, 1);
        fill(past, 1);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = poison;
        for (std::size_t i = 0; i < gradients.size(); ++i)
            gradients[i] = s.addKeys && i % stride >= hidden ? past[i] : poison;
        for (std::size_t r = 0; r < rows; ++r) // what lies between rows is nobody's
            for (std::size_t i = 3 * hidden; i < stride; ++i)
                inputs[r * stride + i] = gradients[r * stride + i] = poison;
    }
    StagewrightFlash flash()
    {
        StagewrightFlash f{};
        f.batch = shape.batch;
        f.heads = shape.heads;
        f.tokens = shape.tokens;
        f.width = shape.width;
        f.addKeys = shape.addKeys ? 1 : 0;
        f.stride = static_cast<std::int64_t>(stride);
        f.query = inputs.data();
        f.key = inputs.data() + hidden;
        f.value = inputs.data() + 2 * hidden;
        f.out = out.data();
        f.sums = sums.data();
        f.outGrad = outGrad.data();
        f.queryGrad = gradients.data();
        f.keyGrad = gradients.data() + hidden;
        f.valueGrad = gradients.data() + 2 * hidden;
        f.inner = inner.data();
        return f;
    }
};

// Largest distance from the reference, as a share of the reference's largest number; NaN counts as far.
struct Distance {
    double error = 0, most = 0;
    void add(double is, double should)
    {
        error = std::isfinite(is) ? std::max(error, std::abs(is - should)) : INFINITY;
        most = std::max(most, std::abs(should));
    }
    double share() const { return error / most; }
};

struct Distances {
    Distance out, sums, query, key, value;
};

// All in fp64, of the bf16 inputs; the backward of the reference's own probabilities.
Distances compare(const Attention& a)
{
    Distances d;
    const Shape& s = a.shape;
    const auto tokens = static_cast<std::size_t>(s.tokens);
    const auto width = static_cast<std::size_t>(s.width);
    const double scale = 1 / std::sqrt(static_cast<double>(s.width));
    for (std::size_t sample = 0; sample < static_cast<std::size_t>(s.batch); ++sample) {
        for (std::size_t head = 0; head < static_cast<std::size_t>(s.heads); ++head) {
            const auto in = [&](std::size_t part, std::size_t r, std::size_t i) {
                return widened(a.inputs[(sample * tokens + r) * a.stride + part * a.hidden + head * width + i]);
            };
            const auto denseAt = [&](std::size_t r, std::size_t i) {
                return (sample * tokens + r) * a.hidden + head * width + i;
            };
            std::vector<double> query(tokens * width), key(tokens * width), value(tokens * width);
            for (std::size_t r = 0; r < tokens; ++r) {
                std::vector<double> p(r + 1), made(width);
                double most = -INFINITY, total = 0, inner = 0;
                for (std::size_t j = 0; j <= r; ++j) {
                    for (std::size_t i = 0; i < width; ++i) p[j] += in(0, r, i) * in(1, j, i) * scale;
                    most = std::max(most, p[j]);
                }
                for (double& x : p) total += x = std::exp(x - most);
                for (std::size_t j = 0; j <= r; ++j) {
                    p[j] /= total;
                    for (std::size_t i = 0; i < width; ++i) made[i] += p[j] * in(2, j, i);
                }
                d.sums.add(
                    static_cast<double>(a.sums[(sample * static_cast<std::size_t>(s.heads) + head) * tokens + r]),
                    most + std::log(total));
                for (std::size_t i = 0; i < width; ++i) {
                    d.out.add(widened(a.out[denseAt(r, i)]), made[i]);
                    inner += made[i] * widened(a.outGrad[denseAt(r, i)]);
                }
                for (std::size_t j = 0; j <= r; ++j) {
                    double slope = 0;
                    for (std::size_t i = 0; i < width; ++i) slope += widened(a.outGrad[denseAt(r, i)]) * in(2, j, i);
                    slope = p[j] * (slope - inner) * scale;
                    for (std::size_t i = 0; i < width; ++i) {
                        query[r * width + i] += slope * in(1, j, i);
                        key[j * width + i] += slope * in(0, r, i);
                        value[j * width + i] += p[j] * widened(a.outGrad[denseAt(r, i)]);
                    }
                }
            }
            for (std::size_t r = 0; r < tokens; ++r) {
                for (std::size_t i = 0; i < width; ++i) {
                    const std::size_t at = (sample * tokens + r) * a.stride + head * width + i;
                    const auto was = [&](std::size_t part) {
                        return s.addKeys ? widened(a.past[at + part * a.hidden]) : 0;
                    };
                    d.query.add(widened(a.gradients[at]), query[r * width + i]);
                    d.key.add(widened(a.gradients[at + a.hidden]), key[r * width + i] + was(1));
                    d.value.add(widened(a.gradients[at + 2 * a.hidden]), value[r * width + i] + was(2));
                }
            }
        }
    }
    return d;
}

bool sameBits(const Elements& a, const Elements& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 2) == 0;
}

QString faultOf(const std::function<void()>& run)
{
    try {
        run();
    } catch (const KernelFault& fault) {
        return QString::fromStdString(fault.what());
    }
    return "no fault";
}

} // namespace

class TestFlashTiles : public QObject {
    Q_OBJECT

private slots:
    void isAttention_data()
    {
        QTest::addColumn<Shape>("shape");
        QTest::addColumn<MatrixSums>("sums");
        QTest::addColumn<FlashBy>("by");
        const auto add = [](const Shape& s, MatrixSums sums = MatrixSums::Nearest) {
            for (const FlashBy by : {FlashBy::Warps, FlashBy::Groups})
                QTest::addRow("%s, %d samples, %d heads of %d, %d tokens, gap %d%s%s",
                              by == FlashBy::Groups ? "groups" : "warps", s.batch, s.heads, s.width, s.tokens, s.gap,
                              s.addKeys ? ", added" : "", sums == MatrixSums::CutOff ? ", sums cut off" : "")
                    << s << sums << by;
        };
        for (const int tokens : {1, 15, 16, 17, 63, 64, 65, 130})
            for (const int width : {64, 128}) add({1, 1, tokens, width, 0, false});
        for (const int width : {8, 16, 32, 48, 72, 80, 96, 112, 120}) add({1, 2, 33, width, 8, true});
        add({2, 3, 40, 16, 24, false});
        add({2, 2, 70, 64, 0, true});
        add({2, 2, 70, 128, 8, true});
        for (const int width : {64, 128}) add({1, 1, 200, width, 0, true}, MatrixSums::CutOff);
    }
    void isAttention()
    {
        QFETCH(Shape, shape);
        QFETCH(MatrixSums, sums);
        QFETCH(FlashBy, by);
        Attention a(shape);
        const StagewrightFlash f = a.flash();
        QVERIFY(fitsTiles(f));
        FlashWatch watch;
        watch.before = [sums](EmulatedKernel& kernel) { kernel.matrixSums = sums; };
        watch.after = [](EmulatedKernel& kernel) { QCOMPARE(kernel.bankConflicts(), 0); };
        emulateFlash(f, watch, by);
        emulateFlashBackward(f, watch, by);
        const Distances d = compare(a);
        // Probabilities and gradients of scores are rounded to bf16 (2^-9) before a GEMM, results once more.
        QVERIFY2(d.sums.error < 2e-4, qPrintable(QString::number(d.sums.error)));
        for (const auto& [name, distance] : {std::pair("out", d.out), std::pair("query", d.query),
                                             std::pair("key", d.key), std::pair("value", d.value)})
            QVERIFY2(distance.error <= 8e-3 * distance.most || distance.error < 1e-6,
                     qPrintable(QString("%1: %2 of %3").arg(name).arg(distance.error).arg(distance.most)));
        for (std::size_t r = 0; r < a.rows; ++r)
            for (std::size_t i = 3 * a.hidden; i < a.stride; ++i) QCOMPARE(a.gradients[r * a.stride + i], poison);
    }

    // From run to run, and whatever the order in which threads come to run.
    void givesTheSameBits()
    {
        for (const auto& [width, by] : {std::pair(64, FlashBy::Warps), std::pair(128, FlashBy::Warps),
                                        std::pair(64, FlashBy::Groups), std::pair(128, FlashBy::Groups)}) {
            const Shape shape{2, 2, 130, width, 8, true};
            Attention first(shape), second(shape);
            emulateFlash(first.flash(), {}, by);
            emulateFlashBackward(first.flash(), {}, by);
            FlashWatch watch;
            watch.before = [](EmulatedKernel& kernel) { kernel.newestFirst = true; };
            emulateFlash(second.flash(), watch, by);
            emulateFlashBackward(second.flash(), watch, by);
            QVERIFY(sameBits(first.out, second.out));
            QVERIFY(sameBits(first.gradients, second.gradients));
            QCOMPARE(first.sums, second.sums);
        }
    }

    // Every barrier of the kernels is needed, and so is every wait: without any one of them the emulation finds what
    // goes wrong.
    void missesNoBarrier()
    {
        for (const auto& [width, by] : {std::pair(64, FlashBy::Warps), std::pair(128, FlashBy::Warps),
                                        std::pair(64, FlashBy::Groups), std::pair(128, FlashBy::Groups)}) {
            const Shape shape{1, 1, 200, width, 0, false};
            Attention a(shape);
            emulateFlash(a.flash(), {}, by);
            int barriers = 0, waits = 0;
            FlashWatch count;
            count.after = [&](EmulatedKernel& kernel) {
                barriers = std::max(barriers, kernel.barriersOfLastBlock());
                waits = std::max(waits, kernel.waitsOfLastBlock());
            };
            const auto without = [&](auto member, int number, auto run) {
                FlashWatch watch;
                watch.before = [&](EmulatedKernel& kernel) { kernel.*member = number; };
                return faultOf([&] { run(a.flash(), watch, by); });
            };
            for (const auto& run : {emulateFlash, emulateFlashBackward}) {
                barriers = waits = 0;
                run(a.flash(), count, by);
                QVERIFY(barriers >= 4);
                for (int i = 0; i < barriers; ++i) {
                    const QString fault = without(&EmulatedKernel::ignoredBarrier, i, run);
                    QVERIFY2(fault.contains("with no barrier between"),
                             qPrintable(QString("barrier %1: %2").arg(i).arg(fault)));
                }
                for (int i = 0; i < waits; ++i) {
                    const QString fault = without(&EmulatedKernel::ignoredWait, i, run);
                    QVERIFY2(fault.contains("waited for") || fault.contains("with no barrier between"),
                             qPrintable(QString("wait %1: %2").arg(i).arg(fault)));
                }
            }
        }
    }

    void sumsAreCutOff()
    {
        const auto sum = [](float gemm, MatrixSums sums) {
            float a[16][16] = {}, b[16][8] = {}, c[16][8] = {};
            a[3][5] = gemm;
            b[5][7] = 1;
            c[3][7] = 1;
            multiplyTile(a, b, c, sums);
            return c[3][7];
        };
        QCOMPARE(sum(0x1.8p-24F, MatrixSums::Nearest), 1 + 0x1p-23F);
        QCOMPARE(sum(0x1.8p-24F, MatrixSums::CutOff), 1.0F);
        QCOMPARE(sum(-0x1.8p-24F, MatrixSums::CutOff), 1.0F);
        QCOMPARE(sum(0x1p-23F, MatrixSums::CutOff), 1 + 0x1p-23F);
        QVERIFY(std::isnan(sum(NAN, MatrixSums::CutOff)));
    }

    // Sixteen rows of 128 bytes, once as they lie and once with their pieces exchanged.
    void seesBankConflicts()
    {
        const auto conflicts = [](auto place) {
            EmulatedKernel kernel({});
            kernel.run(32, 2048, [&](const EmulatedThread& t) {
                const float zero = 0;
                for (int i = t.thread(); i < 512; i += 32) t.storeShared(static_cast<std::uint32_t>(i * 4), &zero, 4);
                t.barrier();
                t.loadMatrices(place(t.thread() % 16, t.thread() / 16));
            });
            return kernel.bankConflicts();
        };
        QCOMPARE(conflicts([](int row, int piece) { return static_cast<std::uint32_t>(row * 128 + piece * 16); }), 4);
        QCOMPARE(conflicts([](int row, int piece) { return pieceAt<64>(0, row, piece); }), 0);
    }

    void findsWhatIsWrong_data()
    {
        using Body = std::function<void(const EmulatedThread&, float*)>;
        QTest::addColumn<Body>("body");
        QTest::addColumn<QString>("fault");
        const auto add = [](const char* name, const char* fault, Body body) {
            QTest::newRow(name) << std::move(body) << fault;
        };
        const auto put = [](const EmulatedThread& t, std::uint32_t at) {
            const float x = static_cast<float>(t.thread());
            t.storeShared(at, &x, 4);
        };
        const auto number = [](const EmulatedThread& t) { return static_cast<std::uint32_t>(t.thread()); };
        add("right", "no fault", [=](const EmulatedThread& t, float* memory) {
            put(t, number(t) * 4);
            t.barrier();
            t.storeFloat(memory + t.thread(), t.sharedFloat((number(t) + 1) % 64 * 4) + t.shuffleXor(1.0F, 3));
        });
        add("read without a barrier",
            "thread 31: reads byte 120 of shared memory, which thread 30 wrote with no barrier between",
            [=](const EmulatedThread& t, float*) {
                put(t, number(t) * 4);
                t.shuffleXor(1.0F, 1); // warps order nothing
                t.sharedFloat((number(t) ^ 1) * 4);
            });
        add("written over without a barrier",
            "writes byte 0 of shared memory, which other threads read with no barrier between",
            [=](const EmulatedThread& t, float*) {
                if (t.thread() == 0) put(t, 0);
                t.barrier();
                t.sharedFloat(0);
                t.shuffleXor(1.0F, 1);
                if (t.thread() == 40) put(t, 0);
            });
        add("two write", "which thread 0 wrote with no barrier between",
            [=](const EmulatedThread& t, float*) { put(t, 16); });
        add("read before anything is there", "reads byte 8 of shared memory, which nothing was written to",
            [](const EmulatedThread& t, float*) { t.sharedFloat(8); });
        add("outside of shared memory", "byte 1024 of shared memory; the launch has 1024",
            [=](const EmulatedThread& t, float*) { put(t, 1024); });
        add("copy not waited for", "thread 63: byte 252 of shared memory: a copy to it has not been waited for",
            [=](const EmulatedThread& t, float* memory) {
                t.copy4(number(t) * 4, memory + t.thread(), true);
                t.commitCopies();
                t.barrier();
                t.sharedFloat(number(t) * 4);
            });
        add("copy of a later group", "a copy to it has not been waited for",
            [=](const EmulatedThread& t, float* memory) {
                t.commitCopies();
                t.copy4(number(t) * 4, memory + t.thread(), true); // of no group
                t.waitCopies();
                t.sharedFloat(number(t) * 4);
            });
        add("copy waited for by its thread alone", "which thread 30 wrote with no barrier between",
            [=](const EmulatedThread& t, float* memory) {
                t.copy4(number(t) * 4, memory + t.thread(), true);
                t.commitCopies();
                t.waitCopies();
                t.shuffleXor(1.0F, 1);
                t.sharedFloat((number(t) ^ 1) * 4);
            });
        add("copy never waited for", "ends before its copies", [=](const EmulatedThread& t, float* memory) {
            t.copy4(number(t) * 4, memory, true);
            t.commitCopies();
        });
        add("copy of what nobody gave", "reads memory that the kernel was not given",
            [=](const EmulatedThread& t, float* memory) { t.copy4(number(t) * 4, memory + 64 + t.thread(), true); });
        add("device memory beyond", "writes memory that the kernel was not given",
            [](const EmulatedThread& t, float* memory) { t.storeFloat(memory + 1 + t.thread(), 0); });
        add("two write to the device", "writes what thread 0 of block 0 writes in the same launch",
            [](const EmulatedThread& t, float* memory) { t.storeFloat(memory + t.thread() / 2, 0); });
        add("read what another writes", "reads what thread 0 of block 0 writes in the same launch",
            [](const EmulatedThread& t, float* memory) {
                t.storeFloat(memory + t.thread(), 0);
                if (t.thread() == 5) t.loadFloat(memory);
            });
        add("missed barrier", "no thread can go on; thread 0 waits at a barrier; thread 7 has ended",
            [](const EmulatedThread& t, float*) {
                if (t.thread() != 7) t.barrier();
            });
        add("missed shuffle", "no thread can go on; thread 0 waits at a shuffle; thread 31 has ended",
            [](const EmulatedThread& t, float*) {
                if (t.thread() != 31) t.shuffleXor(1.0F, 1);
            });
        add("lanes of a warp apart", "thread 1: is at a shuffle, other lanes of its warp at a GEMM",
            [](const EmulatedThread& t, float*) {
                float sums[4] = {};
                if (t.thread() % 2 == 0)
                    t.multiplyAdd(sums, Quad{}, 0, 0);
                else
                    t.shuffleXor(1.0F, 1);
            });
        add("a matrix's row in the middle", "a matrix's row starts at byte 8 of shared memory, no multiple of 16",
            [=](const EmulatedThread& t, float*) {
                put(t, number(t) * 4);
                t.barrier();
                t.loadMatrices(8);
            });
    }
    void findsWhatIsWrong()
    {
        using Body = std::function<void(const EmulatedThread&, float*)>;
        QFETCH(Body, body);
        QFETCH(QString, fault);
        std::vector<float> memory(64);
        const auto run = [&](const Body& one) {
            return faultOf([&] {
                EmulatedKernel kernel({{memory.data(), memory.size() * sizeof(float), true}});
                kernel.run(64, 1024, [&](const EmulatedThread& t) { one(t, memory.data()); });
            });
        };
        QVERIFY2(run(body).contains(fault), qPrintable(run(body)));
        // of an earlier kernel nothing is left
        QCOMPARE(run([](const EmulatedThread& t, float*) { t.barrier(); }), "no fault");
    }
};

QTEST_GUILESS_MAIN(TestFlashTiles)
#include "tst_flash_tiles.moc"
