// The kernels' bodies on the lanes that a GPU gives them: warps and blocks of emulated threads against one lane, in
// either order of threads the same bits; and that every barrier of the sums is needed.
#include <QTest>

#include <cmath>
#include <random>

#include "engine/cuda/column_sums.h"
#include "engine/cuda/lanes.h"
#include "tests/support/emulated_block.h"

using namespace stagewright::cuda;
using namespace stagewright::fake;

namespace {

enum class Way {
    OneLane,
    Warp,
    Block,
    BlockBackwards,
};
constexpr int blockThreads = 256;

// The body on such lanes, as one row's kernel runs it.
template <typename Body>
void on(Way way, Body&& body)
{
    if (way == Way::OneLane) {
        body(OneLane{});
        return;
    }
    EmulatedKernel kernel({});
    kernel.newestFirst = way == Way::BlockBackwards;
    if (way == Way::Warp)
        kernel.run(32, 0, [&](const EmulatedThread& t) { body(WarpLanes<EmulatedThread>{t}); });
    else
        kernel.run(blockThreads, 0,
                   [&](const EmulatedThread& t) { body(BlockLanes<EmulatedThread, blockThreads>{t}); });
}

// Numbers of a kernel, in elements; what it made of them.
template <typename E>
struct Numbers {
    using Stored = typename E::Stored;
    std::vector<Stored> all;

    explicit Numbers(std::size_t count, unsigned seed = 0, float from = -1, float to = 1) : all(count)
    {
        std::mt19937 random(seed);
        for (std::size_t i = 0; seed != 0 && i < count; ++i)
            E::store(all.data(), i, from + (to - from) * static_cast<float>(random() >> 8) / 16777216.0F);
    }
    Stored* data() { return all.data(); }
};
using Results = std::vector<double>;
template <typename Stored>
void keep(Results& results, const std::vector<Stored>& made)
{
    for (std::size_t i = 0; i < made.size(); ++i) {
        if constexpr (std::is_same_v<Stored, std::uint16_t>)
            results.push_back(static_cast<double>(Bf16::load(made.data(), i)));
        else
            results.push_back(static_cast<double>(made[i]));
    }
}

template <typename E>
Results norms(Way way, int width)
{
    constexpr int rows = 3;
    const std::size_t count = rows * static_cast<std::size_t>(width);
    const auto one = static_cast<std::size_t>(width);
    Numbers<E> x(count, 1), bias(one, 2), gamma(one, 3), beta(one, 4), normal(count), out(count), outGrad(count, 5),
        residual(count, 6), inputGrad(count);
    std::vector<float> deviation(rows);
    StagewrightNorm n{};
    n.rows = rows;
    n.width = width;
    n.x = x.data();
    n.bias = bias.data();
    n.gamma = gamma.data();
    n.beta = beta.data();
    n.normal = normal.data();
    n.deviation = deviation.data();
    n.out = out.data();
    n.outGrad = outGrad.data();
    n.residual = residual.data();
    n.inputGrad = inputGrad.data();
    const int lanesOf = way == Way::OneLane ? 1 : way == Way::Warp ? 32 : blockThreads;
    for (std::size_t r = 0; r < rows; ++r) {
        byHeld<E>(way != Way::OneLane && normInPieces<E>(n), width, lanesOf, [&](auto held) {
            on(way, [&](const auto& lanes) { normRow<E, decltype(held)::value>(lanes, n, r); });
        });
        byHeld<E>(way != Way::OneLane && normBackwardInPieces<E>(n), width, lanesOf, [&](auto held) {
            on(way, [&](const auto& lanes) { normBackwardRow<E, decltype(held)::value>(lanes, n, r); });
        });
    }
    Results results;
    keep(results, x.all);
    keep(results, normal.all);
    keep(results, out.all);
    keep(results, deviation);
    keep(results, inputGrad.all);
    return results;
}

template <typename E>
Results softmaxes(Way way, int width)
{
    constexpr int blocks = 2, rows = 2;
    StagewrightSoftmax s{};
    s.blocks = blocks;
    s.rows = rows;
    s.columns = width + 1;
    s.past = width - 1;
    s.blockStride = rows * s.columns + 3;
    Numbers<E> scores(static_cast<std::size_t>(blocks * s.blockStride), 1, -4, 4), gradient(scores.all.size(), 2);
    s.scores = scores.data();
    s.gradient = gradient.data();
    for (int block = 0; block < blocks; ++block) {
        for (int r = 0; r < rows; ++r) {
            on(way, [&](const auto& lanes) { softmaxRow<E>(lanes, s, block, r); });
            on(way, [&](const auto& lanes) { softmaxBackwardRow<E>(lanes, s, block, r); });
        }
    }
    Results results;
    keep(results, scores.all);
    keep(results, gradient.all);
    return results;
}

template <typename E>
Results losses(Way way, int width)
{
    constexpr int rows = 3;
    Numbers<E> logits(rows * static_cast<std::size_t>(width), 1, -4, 4);
    std::vector<float> rowLoss(rows);
    double loss = 0;
    for (int r = 0; r < rows; ++r)
        on(way, [&](const auto& lanes) {
            crossEntropyRow<E>(lanes, width, logits.data(), r * (width - 1) / 2, rowLoss.data(),
                               static_cast<std::size_t>(r));
        });
    on(way, [&](const auto& lanes) { meanLoss(lanes, rows, rowLoss.data(), &loss); });
    Results results{loss};
    keep(results, logits.all);
    keep(results, rowLoss);
    return results;
}

// Sums of columns by blocks, and of parts of the rows in a second launch, against one column after the other.
template <typename Rows>
void sumOn(Way way, const Rows& of, int rows)
{
    if (way == Way::OneLane) {
        sumColumns(of, rows);
        return;
    }
    const int parts = columnParts<Rows>(rows, of.width);
    std::vector<float> partial(partFloats<Rows>(rows, of.width), NAN);
    EmulatedKernel kernel({});
    kernel.newestFirst = way == Way::BlockBackwards;
    for (int part = 0; part < parts; ++part)
        for (int tile = 0; tile < (of.width + columnTile - 1) / columnTile; ++tile)
            kernel.run(columnThreads, 0, [&](const EmulatedThread& t) {
                sumColumnsBlock(t, of, rows, tile, part, parts, parts == 1 ? nullptr : partial.data());
            });
    for (int column = 0; parts > 1 && column < of.width; ++column) addColumnParts(of, parts, partial.data(), column);
}

template <typename E>
Results embeddings(Way way, int width)
{
    constexpr int batch = 2, tokens = 45, vocabulary = 4;
    Numbers<E> outGrad(static_cast<std::size_t>(batch * tokens * width), 1);
    Numbers<Fp32> token(static_cast<std::size_t>(vocabulary * width), 2),
        position(static_cast<std::size_t>((tokens + 1) * width), 3);
    Numbers<E> tokenTable(token.all.size(), 4), positionTable(position.all.size(), 5), out(outGrad.all.size());
    std::vector<std::uint8_t> all(batch * tokens + 1, 2); // none is 3
    std::uint8_t* const bytes = all.data() + width % 2;   // at 16 bytes or not
    bytes[1] = bytes[89] = 0;
    bytes[40] = 1;
    StagewrightEmbedding e{};
    e.tokenTable = tokenTable.data();
    e.positionTable = positionTable.data();
    e.out = out.data();
    e.batch = batch;
    e.tokens = tokens;
    e.past = 1;
    e.width = width;
    e.vocabulary = vocabulary;
    e.bytes = bytes;
    e.outGrad = outGrad.data();
    e.tokenGrad = token.data();
    e.positionGrad = position.data();
    for (int i = 0; i < vocabulary; ++i) sumOn(way, TokenRows<E>{e, i}, batch * tokens);
    const std::vector<float> made = token.all;
    for (const int none : {3, 257, 0x102}) { // not in the text; 0x102 has a byte that is
        StagewrightEmbedding beyond = e;
        beyond.tokenGrad = token.data() - static_cast<std::ptrdiff_t>(none - 3) * width; // the last row
        sumOn(way, TokenRows<E>{beyond, none}, batch * tokens);
    }
    if (made != token.all) return {NAN};
    const bool pieces = way != Way::OneLane && positionGradsInPieces<E>(e);
    for (std::size_t i = 0; i < static_cast<std::size_t>(tokens * width); i += pieces ? E::wide : 1)
        pieces ? positionGradAt<E, E::wide>(e, i) : positionGradAt<E, 1>(e, i);
    for (int r = 0; r < batch * tokens; ++r)
        on(way, [&](const auto& lanes) {
            way != Way::OneLane&& embedsInPieces<E>(e) ? embedRow<E, E::wide>(lanes, e, r)
                                                       : embedRow<E, 1>(lanes, e, r);
        });
    Results results;
    keep(results, token.all);
    keep(results, position.all);
    keep(results, out.all);
    return results;
}

Results squareSums(Way way, int width)
{
    const auto count = static_cast<std::size_t>(width);
    Numbers<Fp32> x(count, 1), y(7, 2);
    const StagewrightTensor tensors[] = {{count, nullptr, x.data(), nullptr, nullptr, nullptr},
                                         {6, nullptr, y.data() + 1, nullptr, nullptr, nullptr}};
    if (way == Way::OneLane)
        return {2 * ownSquares(OneLane{}, count, x.data()) + ownSquares(OneLane{}, 6, y.data() + 1)};
    std::vector<double> partial(STAGEWRIGHT_PARTIALS, -1);
    double sum = 0.5;
    for (int part = 0; part < STAGEWRIGHT_PARTIALS; ++part) {
        on(way, [&](const auto& lanes) { squaresPart(lanes, tensors, 2, false, partial.data(), part); });
        on(way, [&](const auto& lanes) { squaresPart(lanes, tensors, 1, true, partial.data(), part); });
    }
    on(way, [&](const auto& lanes) { addPartials(lanes, partial.data(), &sum); });
    return {sum};
}

// Steps of all kinds, and a sum, on numbers that begin at 16 bytes or (one lane) just behind: in pieces of four, or one
// by one.
template <typename E>
Results steps(Way way, int width)
{
    const auto count = static_cast<std::size_t>(width);
    const std::size_t off = way == Way::OneLane ? 1 : 0;
    const StagewrightStep s{3e-3F, 0.9F, 0.95F, 1.5F, 2.0F, 1e-8F, 0.1F, 0.5F, 0.8F, 6e-3F};
    Results results;
    for (const int kind : {STAGEWRIGHT_ADAMW, STAGEWRIGHT_UNDO_ADAMW, STAGEWRIGHT_SGD, STAGEWRIGHT_UNDO_SGD,
                           STAGEWRIGHT_PREDICT, STAGEWRIGHT_SCALE}) {
        for (const int moments : {0, 1, 2}) {
            if (moments < 2 && (kind == STAGEWRIGHT_ADAMW || kind == STAGEWRIGHT_UNDO_ADAMW)) continue;
            if (moments < 1 && kind == STAGEWRIGHT_PREDICT) continue;
            std::vector<std::vector<float>> all;
            for (unsigned i = 0; i < 4; ++i) {
                all.emplace_back(count + 2, -7.0F); // what lies behind is not to be touched
                std::copy_n(Numbers<Fp32>(count, i + 1, i == 3 ? 0 : -1).all.begin(), width,
                            all[i].begin() + static_cast<std::ptrdiff_t>(off));
            }
            Numbers<E> used(count + 2);
            const StagewrightTensor t{count,
                                      all[0].data() + off,
                                      kind == STAGEWRIGHT_SCALE ? nullptr : all[1].data() + off,
                                      moments > 0 ? all[2].data() + off : nullptr,
                                      moments > 1 ? all[3].data() + off : nullptr,
                                      used.data() + off};
            for (std::size_t i = 0; i < count; i += numbersOfThread) stepFour<E>(kind, s, t, i);
            if (t.gradient)
                for (std::size_t i = 0; i < count; i += numbersOfThread) addFour(t, i);
            for (std::vector<float>& numbers : all) {
                results.push_back(off == 1 ? numbers.back() == -7 && numbers.front() == -7
                                           : numbers.back() == -7 && numbers[count] == -7);
                numbers.erase(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(off));
                numbers.resize(count);
                keep(results, numbers);
            }
            used.all.erase(used.all.begin(), used.all.begin() + static_cast<std::ptrdiff_t>(off));
            used.all.resize(count);
            keep(results, used.all);
        }
    }
    return results;
}

template <typename E>
Results streamed(Way way, int width)
{
    constexpr int tokens = 5;
    StagewrightFlash f{};
    f.batch = 1;
    f.heads = 2;
    f.tokens = tokens;
    f.width = width;
    f.stride = 6 * width + 1;
    f.addKeys = 1;
    const std::size_t count = static_cast<std::size_t>(f.stride) * tokens;
    const std::size_t hidden = 2 * static_cast<std::size_t>(width);
    Numbers<E> in(count, 1), gradients(count, 2), out(hidden * tokens), outGrad(hidden * tokens, 3);
    std::vector<float> sums(2 * tokens), inner(2 * tokens);
    f.query = in.data();
    f.key = in.data() + hidden;
    f.value = in.data() + 2 * hidden;
    f.out = out.data();
    f.outGrad = outGrad.data();
    f.sums = sums.data();
    f.inner = inner.data();
    f.queryGrad = gradients.data();
    f.keyGrad = gradients.data() + hidden;
    f.valueGrad = gradients.data() + 2 * hidden;
    const auto each = [&](auto&& row) {
        for (int head = 0; head < 2; ++head)
            for (int r = 0; r < tokens; ++r) {
                if (way == Way::OneLane)
                    row(OneLane{}, head, r);
                else
                    EmulatedKernel({}).run(
                        32, 0, [&](const EmulatedThread& t) { row(WarpLanes<EmulatedThread>{t}, head, r); });
            }
    };
    each([&](const auto& lanes, int head, int r) { flashRow<E>(lanes, f, 0, head, r); });
    each([&](const auto& lanes, int head, int r) { flashInnerRow<E>(lanes, f, 0, head, r); });
    each([&](const auto& lanes, int head, int r) { flashQueryRow<E>(lanes, f, 0, head, r); });
    each([&](const auto& lanes, int head, int r) { flashKeyRow<E>(lanes, f, 0, head, r); });
    Results results;
    keep(results, out.all);
    keep(results, sums);
    keep(results, inner);
    keep(results, gradients.all);
    return results;
}

template <typename E, int rows>
Results columns(Way way, int width)
{
    const std::size_t count = rows * static_cast<std::size_t>(width);
    Numbers<E> x(count, 1), normal(count, 2), residual(count, 3), inputGrad(count, 4);
    const auto one = static_cast<std::size_t>(width);
    std::vector<float> gamma(one), beta(one), ofResidual(one), ofInput(one), sums(one);
    StagewrightNorm n{};
    n.rows = rows;
    n.width = width;
    n.outGrad = x.data();
    n.normal = normal.data();
    n.residual = residual.data();
    n.inputGrad = inputGrad.data();
    n.gammaSum = gamma.data();
    n.betaSum = beta.data();
    n.residualSum = ofResidual.data();
    n.inputSum = ofInput.data();
    sumOn(way, NormRows<E>{n}, rows);
    sumOn(way, PlainRows<E>{x.data(), width, sums.data()}, rows);
    Results results;
    for (const auto* made : {&gamma, &beta, &ofResidual, &ofInput, &sums}) keep(results, *made);
    return results;
}

template <typename E, int rows>
Results gelus(Way way, int width)
{
    const std::size_t count = rows * static_cast<std::size_t>(width);
    Numbers<E> hidden(count, 1, -5, 5), gradient(count, 2);
    std::vector<float> sums(static_cast<std::size_t>(width));
    sumOn(way, GeluRows<E>{hidden.data(), gradient.data(), width, sums.data()}, rows);
    Results results;
    keep(results, hidden.all);
    keep(results, gradient.all);
    keep(results, sums);
    return results;
}

// Elements one by one against pieces of 16 bytes.
template <typename E>
Results pieces(Way way, int width)
{
    constexpr int rows = 3;
    const std::size_t count = rows * static_cast<std::size_t>(width);
    const auto one = static_cast<std::size_t>(width);
    Numbers<E> normal(count, 1), gamma(one, 2), beta(one, 3), out(count);
    StagewrightNorm n{};
    n.rows = rows;
    n.width = width;
    n.normal = normal.data();
    n.gamma = gamma.data();
    n.beta = beta.data();
    n.out = out.data();
    const bool wide = way != Way::OneLane && scaleShiftsInPieces<E>(n);
    for (std::size_t r = 0; r < rows; ++r)
        on(way, [&](const auto& lanes) {
            wide ? scaleShiftRow<E, E::wide>(lanes, n, r) : scaleShiftRow<E, 1>(lanes, n, r);
        });
    Results results;
    keep(results, out.all);
    return results;
}

using Kernel = Results (*)(Way, int);

} // namespace

class TestLanes : public QObject {
    Q_OBJECT

private slots:
    void agreeWithOneLane_data()
    {
        QTest::addColumn<Kernel>("kernel");
        QTest::addColumn<int>("width");
        QTest::addColumn<double>("allowed");
        const auto add = [](const char* name, Kernel kernel, double allowed, std::initializer_list<int> widths) {
            for (const int width : widths) QTest::addRow("%s, %d", name, width) << kernel << width << allowed;
        };
        constexpr double fp32 = 2e-5, bf16 = 8e-3; // of a result's size: a rounding of bf16 that falls the other way
        add("norms fp32", norms<Fp32>, fp32, {1, 31, 256, 700, 1400});
        add("norms bf16", norms<Bf16>, bf16, {33, 296, 1504});
        add("softmax fp32", softmaxes<Fp32>, fp32, {1, 40, 256, 700});
        add("softmax bf16", softmaxes<Bf16>, bf16, {33, 300});
        add("losses fp32", losses<Fp32>, fp32, {2, 96, 256, 700});
        add("losses bf16", losses<Bf16>, bf16, {33, 300});
        add("embeddings fp32", embeddings<Fp32>, fp32, {1, 40, 130});
        add("embeddings bf16", embeddings<Bf16>, fp32, {33, 72});
        add("square sums", squareSums, 1e-12, {1, 255, 5000});
        add("steps fp32", steps<Fp32>, 0, {1, 4, 39});
        add("steps bf16", steps<Bf16>, 0, {3, 8, 39});
        add("streamed attention fp32", streamed<Fp32>, fp32, {8, 33, 128});
        add("streamed attention bf16", streamed<Bf16>, bf16, {12, 128});
        add("columns fp32", columns<Fp32, 37>, fp32, {1, 32, 45, 132});
        add("columns bf16", columns<Bf16, 37>, fp32, {33, 72});
        add("columns in parts fp32", columns<Fp32, 195>, fp32, {33, 68});
        add("columns in parts bf16", columns<Bf16, 195>, fp32, {33, 72});
        add("gelus fp32", gelus<Fp32, 71>, fp32, {1, 33, 68});
        add("gelus bf16", gelus<Bf16, 71>, fp32, {33, 72});
        add("gelus in parts fp32", gelus<Fp32, 195>, fp32, {68});
        add("gelus in parts bf16", gelus<Bf16, 195>, fp32, {33, 136});
        add("pieces fp32", pieces<Fp32>, 0, {31, 64});
        add("pieces bf16", pieces<Bf16>, 0, {31, 64});
    }
    void agreeWithOneLane()
    {
        QFETCH(Kernel, kernel);
        QFETCH(int, width);
        QFETCH(double, allowed);
        const Results one = kernel(Way::OneLane, width);
        for (const Way way : {Way::Warp, Way::Block}) {
            const Results many = kernel(way, width);
            QCOMPARE(many.size(), one.size());
            for (std::size_t i = 0; i < one.size(); ++i)
                QVERIFY2(std::abs(many[i] - one[i]) <= allowed * std::max(1.0, std::abs(one[i])),
                         qPrintable(QString("%1: %2, not %3").arg(i).arg(many[i]).arg(one[i])));
        }
        QCOMPARE(kernel(Way::BlockBackwards, width), kernel(Way::Block, width));
    }

    void sumsNeedTheirBarriers()
    {
        const auto run = [](int ignored) {
            EmulatedKernel kernel({});
            kernel.ignoredBarrier = ignored;
            double total = 0;
            try {
                kernel.run(blockThreads, 0, [&](const EmulatedThread& t) {
                    const BlockLanes<EmulatedThread, blockThreads> lanes{t};
                    const float sum = lanes.sum(1.0F);
                    const float most = lanes.largest(static_cast<float>(t.thread()));
                    const double all = lanes.sum(static_cast<double>(sum + most));
                    float both[2] = {1, 2};
                    lanes.sumBoth(both);
                    if (t.thread() == 0) total = both[0] == blockThreads && both[1] == 2 * blockThreads ? all : -1;
                });
            } catch (const KernelFault& fault) {
                return QString(fault.what());
            }
            return QString::number(total);
        };
        QCOMPARE(run(-1), QString::number(blockThreads * (2.0 * blockThreads - 1)));
        for (int barrier = 0; barrier < 4; ++barrier)
            QVERIFY2(run(barrier).contains("with no barrier between"), qPrintable(run(barrier)));
    }
    void sumsOfColumnsNeedTheirBarrier()
    {
        Numbers<Fp32> x(40 * 8, 1);
        std::vector<float> sums(8);
        EmulatedKernel kernel({});
        kernel.ignoredBarrier = 0;
        QVERIFY_THROWS_EXCEPTION(KernelFault, kernel.run(columnThreads, 0, [&](const EmulatedThread& t) {
            sumColumnsBlock(t, PlainRows<Fp32>{x.data(), 8, sums.data()}, 40, 0, 0, 1, nullptr);
        }));
    }
    // Against the definition, in double; and its slope against differences of it.
    void geluIsTheTanhForm()
    {
        const auto gelu = [](double x) {
            return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        };
        for (double x = -9; x <= 9; x += 0.0625) {
            const GeluPoint point = geluAt<Fp32>(static_cast<float>(x));
            QVERIFY2(std::abs(static_cast<double>(point.value) - gelu(x)) <= 1e-6 * std::max(1.0, std::abs(x)),
                     qPrintable(QString::number(x)));
            QVERIFY2(std::abs(static_cast<double>(point.slope) - (gelu(x + 1e-4) - gelu(x - 1e-4)) / 2e-4) <= 2e-6,
                     qPrintable(QString::number(x)));
            QCOMPARE(geluOf<Fp32>(static_cast<float>(x)), point.value);
        }
    }
    // Parts fill a GPU where the columns alone do not, and depend on nothing but the shape.
    void partsOfRows()
    {
        using Norm = NormRows<Fp32>;
        using Gelu = GeluRows<Fp32>;
        QCOMPARE(columnParts<Norm>(63, 2048), 1);
        QCOMPARE(columnParts<Norm>(16384, 2048), 8);
        QCOMPARE(columnParts<Norm>(256, 2048), 4);
        QCOMPARE(columnParts<Norm>(16384, 64), 256);
        QCOMPARE(columnParts<Norm>(16384, 64 * 264), 1);
        QCOMPARE(columnParts<Gelu>(2048, 8192), 4);
        QCOMPARE(columnParts<Gelu>(2048, 65536), 1);
        QCOMPARE(partFloats<Norm>(256, 2048), std::size_t{4 * 4 * 2048});
        QCOMPARE(partFloats<PlainRows<Fp32>>(63, 2048), std::size_t{0});
    }
};

QTEST_GUILESS_MAIN(TestLanes)
#include "tst_lanes.moc"
