// Runs without ops: kernels in the colour of their class, a bar of what each rank's devices do, named ranges by name,
// lanes by stream; nothing says "stage 0". The palette: classes far enough apart for every kind of colour vision,
// labels readable.
#include <QPicture>
#include <QtTest>

#include "traces/analysis/collective_groups.h"
#include "traces/analysis/kernel_class.h"
#include "traces/import/import.h"
#include "traces/store/run_file.h"
#include "widgets/panel/op_query.h"
#include "widgets/readable.h"
#include "widgets/timeline/aggregate_table.h"
#include "widgets/timeline/device_bar.h"
#include "widgets/timeline/lane_painter.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/rank_busy.h"
#include "widgets/timeline/run_panel.h"
#include "widgets/timeline/span_card.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

namespace {

constexpr Nanos us = 1'000;

struct Sample {
    std::shared_ptr<const Timeline> timeline;
    SpanId of(const char* name) const
    {
        for (SpanId id = 0; id < timeline->spans().size(); ++id)
            if (timeline->nameOf(timeline->spans()[id]) == name) return id;
        return noSpan;
    }
};

// Rank 0: a stream with a product and a norm, one with a collective that the product hides in part, copies, nested
// ranges. Rank 1: a product.
Sample sample()
{
    TimelineBuilder builder(Provenance::Imported, "wall", 2);
    const auto add = [&](int rank, Lane lane, const char* track, const char* name, Nanos begin, Nanos end) {
        Span span;
        span.start = begin * us;
        span.end = end * us;
        span.label = builder.intern(name) & 0xffffffu;
        return builder.addSpan(builder.addTrack(rank, lane, track), span);
    };
    const SpanId range = add(0, Lane::Other, "rank 0 thread 11", "forward 3", 0, 900);
    add(0, Lane::Other, "rank 0 thread 11", "layer 1", 100, 500);
    const SpanId product = add(0, Lane::Kernel, "rank 0 stream 7", "void cutlass::gemm_bf16<128>(int)", 100, 400);
    add(0, Lane::Kernel, "rank 0 stream 7", "rms_norm", 400, 500);
    add(0, Lane::Kernel, "rank 0 stream 20", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 300, 800);
    add(0, Lane::Copy, "rank 0 stream 7", "Memset (Device)", 700, 1000);
    add(1, Lane::Kernel, "rank 1 stream 7", "void cutlass::gemm_bf16<128>(int)", 0, 1000);
    builder.addEdge(range, product, EdgeKind::Launch, 60 * us);
    return {builder.build().value()};
}

// CIEDE2000 between two colours as seen with full colour vision (0) or without one kind of cones (Machado 2009): 1
// long, 2 medium, 3 short.
struct Lab {
    double l, a, b;
};
double linear(double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); }
Lab labOf(const QColor& colour, int vision)
{
    static constexpr double matrices[4][3][3] = {
        {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
        {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
        {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
        {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};
    const double rgb[3] = {linear(colour.redF()), linear(colour.greenF()), linear(colour.blueF())};
    double seen[3];
    for (int i = 0; i < 3; ++i)
        seen[i] = std::clamp(matrices[vision][i][0] * rgb[0] + matrices[vision][i][1] * rgb[1] +
                                 matrices[vision][i][2] * rgb[2],
                             0.0, 1.0);
    const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
    const double x = f((0.4124564 * seen[0] + 0.3575761 * seen[1] + 0.1804375 * seen[2]) / 0.95047),
                 y = f(0.2126729 * seen[0] + 0.7151522 * seen[1] + 0.0721750 * seen[2]),
                 z = f((0.0193339 * seen[0] + 0.1191920 * seen[1] + 0.9503041 * seen[2]) / 1.08883);
    return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}
double distance(const Lab& p, const Lab& q)
{
    const auto rad = [](double degrees) { return degrees * M_PI / 180; };
    const double mean = (std::hypot(p.a, p.b) + std::hypot(q.a, q.b)) / 2, m7 = std::pow(mean, 7);
    const double g = 0.5 * (1 - std::sqrt(m7 / (m7 + std::pow(25.0, 7))));
    const double a1 = (1 + g) * p.a, a2 = (1 + g) * q.a, c1 = std::hypot(a1, p.b), c2 = std::hypot(a2, q.b);
    const auto hue = [](double b, double a) {
        const double h = std::atan2(b, a) * 180 / M_PI;
        return h < 0 ? h + 360 : h;
    };
    const double h1 = c1 > 0 ? hue(p.b, a1) : 0, h2 = c2 > 0 ? hue(q.b, a2) : 0;
    double dh = c1 * c2 == 0 ? 0 : h2 - h1;
    dh += dh > 180 ? -360 : dh < -180 ? 360 : 0;
    const double dl = q.l - p.l, dc = c2 - c1, bigH = 2 * std::sqrt(c1 * c2) * std::sin(rad(dh / 2));
    const double l = (p.l + q.l) / 2, c = (c1 + c2) / 2;
    const double h = c1 * c2 == 0               ? h1 + h2
                     : std::abs(h1 - h2) <= 180 ? (h1 + h2) / 2
                     : h1 + h2 < 360            ? (h1 + h2 + 360) / 2
                                                : (h1 + h2 - 360) / 2;
    const double t = 1 - 0.17 * std::cos(rad(h - 30)) + 0.24 * std::cos(rad(2 * h)) + 0.32 * std::cos(rad(3 * h + 6)) -
                     0.2 * std::cos(rad(4 * h - 63));
    const double sl = 1 + 0.015 * (l - 50) * (l - 50) / std::sqrt(20 + (l - 50) * (l - 50)), sc = 1 + 0.045 * c,
                 sh = 1 + 0.015 * c * t;
    const double rt = -2 * std::sqrt(std::pow(c, 7) / (std::pow(c, 7) + std::pow(25.0, 7))) *
                      std::sin(rad(60 * std::exp(-std::pow((h - 275) / 25, 2))));
    return std::sqrt(std::pow(dl / sl, 2) + std::pow(dc / sc, 2) + std::pow(bigH / sh, 2) + rt * dc / sc * bigH / sh);
}

const std::vector<const Theme*>& themes()
{
    static const std::vector<const Theme*> all{&Theme::light(), &Theme::darkTheme(), &Theme::highContrastTheme()};
    return all;
}

struct LanesView {
    ViewState state;
    TimelineView view{&state};
    explicit LanesView(const Sample& sample)
    {
        view.resize(1200, 400);
        view.setRun(sample.timeline);
    }
    const TimelinePanel& panel() const { return *view.panels()[0]; }
    QImage painted(const Theme& theme)
    {
        QImage image(1200, 400, QImage::Format_RGB32);
        QPainter painter(&image);
        view.paintTo(painter, QRectF(0, 0, 1200, 400), theme);
        return image;
    }
};

} // namespace

class TestDeviceLanes : public QObject {
    Q_OBJECT

private slots:
    void lanesByStreamAndThread()
    {
        const Sample run = sample();
        LanesView shown(run);
        QVERIFY(shown.panel().noOps && !shown.panel().hasOps());
        const PanelRank& rank = shown.panel().ranks[0];
        QStringList lanes;
        for (const PanelLane& lane : rank.lanes) lanes << laneTitle({0, lane.lane, lane.track});
        // in the order of numbers; ranges nest
        QCOMPARE(lanes, (QStringList{"stream 7", "stream 20", "stream 7, copies", "thread 11", "thread 11"}));
        // in a narrow gutter names stay distinct
        QPicture picture;
        QPainter painter(&picture);
        shown.view.paintTo(painter, QRectF(0, 0, 500, 400), Theme::light());
        painter.end();
        const auto says = [&](const QString& text) { // as a picture keeps it: two bytes a letter, the higher first
            QByteArray letters;
            for (const QChar letter : text) letters.append(char(letter.unicode() >> 8)).append(char(letter.unicode()));
            return QByteArray(picture.data(), picture.size()).contains(letters);
        };
        QVERIFY(says(QStringLiteral("7, copies")) && !says(QStringLiteral("…copies")));
        QVERIFY(rank.lanes[0].data.look() == LaneLook::Classes && rank.lanes[3].data.look() == LaneLook::Ranges);
        const RowPlace& place = shown.view.scene().rows.rows[0];
        QVERIFY(place.device && place.lanePitch >= 14 && place.lanes == 5); // names fit
        QCOMPARE(*rank.deviceBusy, 0.9);                                    // from 100 to 1000 µs of 1000
        // as rows and groups print it, not the 0 of ops that the trace has not
        QCOMPARE(busyOf(shown.panel(), rank), 0.9);
        PanelRank unknown = rank;
        unknown.deviceBusy.reset();
        QCOMPARE(busyText(busyOf(shown.panel(), unknown)), QStringLiteral("–"));
    }

    // A click on a stream's triangle folds it to a thin line in which its work can still be found; again: opens it.
    void streamsFoldByTheirTriangles()
    {
        const Sample run = sample();
        LanesView shown(run);
        shown.view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
        const auto place = [&]() -> const RowPlace& { return shown.view.scene().rows.rows[0]; };
        const double open = place().bottom();
        const auto press = [&](int lane) {
            const RowPlace& row = place();
            const double y =
                shown.view.scene().rowTop(0) + row.lanesTop() - row.top + row.laneTop(lane) + row.laneHeight(lane) / 2;
            QTest::mouseClick(&shown.view, Qt::LeftButton, {}, QPoint(12, static_cast<int>(y)));
        };
        press(3); // the thread, of two lanes
        QCOMPARE(shown.state.rows().thinStreams.size(), std::size_t(1));
        QVERIFY(place().thin(3) && place().thin(4) && !place().thin(2));
        QCOMPARE(place().laneTop(3), place().laneTop(4)); // over each other
        QCOMPARE(place().bottom(), open - 2 * place().lanePitch + RowPlace::foldedLane);
        QVERIFY(shown.state.rows().collapsed.empty());
        const PanelRank& rank = shown.panel().ranks[0];
        for (const std::size_t lane : {std::size_t(3), std::size_t(4)}) {
            const SpanId span = rank.lanes[lane].data.spanOf(0);
            const auto rect = shown.view.rectOf({0, span});
            QVERIFY(rect && rect->height() >= 4 && rect->height() <= RowPlace::foldedLane);
            QVERIFY(shown.view.scene().spanAt(rect->center()).valid());
        }
        QVERIFY(shown.painted(Theme::light()) != shown.painted(Theme::darkTheme()));
        press(3);
        QVERIFY(shown.state.rows().thinStreams.empty());
        QCOMPARE(place().bottom(), open);
    }

    // Two GPUs of a process that take turns: each is busy half of the time, and so is the rank, whose row says what its
    // figure is.
    void gpusHaveTheirOwnShare()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 2);
        const auto add = [&](int rank, const char* track, Lane lane, Nanos begin, Nanos end) {
            Span span;
            span.start = begin * us;
            span.end = end * us;
            span.label = builder.intern("gemm") & 0xffffffu;
            builder.addSpan(builder.addTrack(rank, lane, track), span);
        };
        for (int i = 0; i < 10; ++i)
            add(0, i % 2 == 0 ? "rank 0 GPU 0 stream 7" : "rank 0 GPU 1 stream 7", Lane::Kernel, 100 * i,
                100 * i + 100);
        add(0, "rank 0 GPU 1 stream 9", Lane::Kernel, 100, 150); // beside another of its GPU
        add(0, "rank 0 GPU 0 stream 7", Lane::Copy, 0, 50);
        add(1, "rank 1 stream 7", Lane::Kernel, 0, 250);
        const Sample run{builder.build().value()};
        LanesView shown(run);
        const PanelRank& rank = shown.panel().ranks[0];
        QCOMPARE(rank.gpus.size(), std::size_t{2});
        for (const PanelRank::Gpu& one : rank.gpus) QCOMPARE(one.busy, 0.5);
        QCOMPARE(*rank.deviceBusy, 0.5);
        QCOMPARE(rank.subtitle, QStringLiteral("mean of 2 GPUs"));
        QStringList shares;
        for (std::size_t lane = 0; lane < rank.lanes.size(); ++lane) {
            const auto busy = gpuBusyAt(rank, lane);
            shares << laneTitle({0, rank.lanes[lane].lane, rank.lanes[lane].track}) +
                          (busy ? QStringLiteral(" ") + busyText(*busy, 0) : QString());
        }
        QCOMPARE(shares.filter(QStringLiteral("%")), (QStringList{"GPU 0 stream 7 50 %", "GPU 1 stream 7 50 %"}));
        QString card;
        for (const auto& [title, value] : deviceCard(shown.panel(), 0, 10 * us, TimeOrigin::Run).rows)
            card += title + QLatin1Char(' ') + value + QLatin1Char(';');
        QVERIFY2(card.contains("Busy, mean 50.0 %;GPU 0 busy 50.0 %;GPU 1 busy 50.0 %;"), qPrintable(card));
        const AggregateTable table =
            aggregateTable(shown.view.panels(), {{{0, 500 * us}, 0, 1}}, nullptr, AggregateBy::Rank);
        QCOMPARE(table.rankTime, 3 * 500 * us); // of three GPUs
        Nanos idle = 0;
        for (const AggregateLine& line : table.lines) idle += line.what == AggregateLine::What::Idle ? line.total : 0;
        QCOMPARE(idle, (200 + 300 + 250) * us);
        const PanelRank& other = shown.panel().ranks[1];
        QVERIFY(other.gpus.empty() && other.subtitle.isEmpty());
        QCOMPARE(*other.deviceBusy, 0.25);
        QVERIFY(!shown.painted(Theme::light()).isNull());
    }

    void barShowsWhatComputesFirst()
    {
        const LanesView shown(sample());
        const LaneData& bar = shown.panel().ranks[0].device;
        std::vector<std::tuple<Nanos, Nanos, KernelClass>> pieces;
        for (const Slice& slice : bar.slices())
            pieces.emplace_back(slice.begin() / us, slice.end() / us, static_cast<KernelClass>(slice.kind));
        using K = KernelClass;
        QVERIFY((pieces == std::vector<std::tuple<Nanos, Nanos, KernelClass>>{{100, 400, K::MatrixProduct},
                                                                              {400, 500, K::Normalisation},
                                                                              {500, 800, K::Collective},
                                                                              {800, 1000, K::Fill}}));
    }

    void slicesHaveTheColourOfTheirClass()
    {
        const Sample run = sample();
        LanesView shown(run);
        for (const Theme* theme : themes()) {
            const QImage image = shown.painted(*theme);
            const auto at = [&](const char* name) {
                const QRectF rect = shown.view.rectOf({0, run.of(name)}).value_or(QRectF());
                return image.pixelColor(static_cast<int>(rect.left() + 3), static_cast<int>(rect.center().y()));
            };
            QCOMPARE(at("void cutlass::gemm_bf16<128>(int)"), theme->of(KernelClass::MatrixProduct).fill);
            QCOMPARE(at("rms_norm"), theme->of(KernelClass::Normalisation).fill);
            QCOMPARE(at("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"), theme->of(KernelClass::Collective).fill);
            QCOMPARE(at("Memset (Device)"), theme->of(KernelClass::Fill).fill);
            QCOMPARE(at("layer 1"), theme->ranges[rangeInkOf("layer 1")].fill);
            const RowPlace& bar = shown.view.scene().rows.rows[0];
            const double y = rulerHeight + bar.top + bar.height / 2;
            QCOMPARE(image.pixelColor(static_cast<int>(shown.view.scene().axis.toX(650 * us)), static_cast<int>(y)),
                     theme->of(KernelClass::Collective).fill);
            // idle
            QCOMPARE(image.pixelColor(static_cast<int>(shown.view.scene().axis.toX(50 * us)), static_cast<int>(y)),
                     theme->track);
        }
        QVERIFY(rangeInkOf("layer 1") == rangeInkOf("layer 23"));
    }

    void cardsSayWhatItIs()
    {
        const Sample run = sample();
        LanesView shown(run);
        const QString kernel = shown.view.cardOf({0, run.of("void cutlass::gemm_bf16<128>(int)")}).plain();
        for (const char* part : {"gemm_bf16 · rank 0", "Class: Matrix product", "Stream: stream 7",
                                 "Launched by: forward 3", "Launch delay: 40"})
            QVERIFY2(kernel.contains(QString::fromUtf8(part)), qPrintable(kernel));
        const QString range = shown.view.cardOf({0, run.of("layer 1")}).plain();
        QVERIFY2(range.contains(QStringLiteral("On: thread 11")), qPrintable(range));
        for (const SpanId id : {run.of("rms_norm"), run.of("layer 1"), run.of("Memset (Device)")}) {
            const QString text = shown.view.cardOf({0, id}).plain();
            QVERIFY2(!text.contains(QStringLiteral("stage")) && !text.contains(QStringLiteral("Forward")),
                     qPrintable(text));
            QVERIFY(!lookOfWork(*run.timeline, true, id).isOp);
        }
        QVERIFY(shown.view.cardOf({0, run.of("Memset (Device)")}).swatch == Theme::light().of(KernelClass::Fill).fill);
        const QString devices = deviceCard(shown.panel(), 0, 350 * us).plain();
        QVERIFY2(devices.contains(QStringLiteral("stream 7: gemm_bf16")) &&
                     devices.contains(QStringLiteral("stream 20: ncclDevKernel_AllReduce")),
                 qPrintable(devices));
        QVERIFY(deviceCard(shown.panel(), 0, 50 * us).plain().contains(QStringLiteral("Nothing runs")));
    }

    // Grid, block and inputs of a launch, each where it is known.
    void cardsHaveTheShapeOfTheLaunch()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 1);
        const std::string list = "[" + std::string(60, '7') + "]";
        const int track = builder.addTrack(0, Lane::Kernel, "rank 0 stream 7");
        Nanos at = 0;
        for (const std::string& shape : {std::string("grid 8×2×1, block 128×1×1, inputs [[64,512],[512]]"),
                                         std::string("grid 4×1×1, block 64×1×1"), "inputs " + list, std::string()}) {
            Span kernel;
            kernel.start = at * us;
            kernel.end = (at += 100) * us;
            kernel.label = builder.intern("gemm", shape) & 0xffffffu;
            builder.addSpan(track, kernel);
        }
        LanesView shown({builder.build().value()});
        const auto rows = [&](SpanId id) {
            QStringList out;
            for (const auto& [name, value] : shown.view.cardOf({0, id}).rows)
                if (name == QStringLiteral("Grid") || name == QStringLiteral("Block") ||
                    name == QStringLiteral("Inputs"))
                    out << name + QStringLiteral(": ") + value;
            return out;
        };
        QCOMPARE(rows(0), (QStringList{"Grid: 8×2×1", "Block: 128×1×1", "Inputs: [[64,512],[512]]"}));
        QCOMPARE(rows(1), (QStringList{"Grid: 4×1×1", "Block: 64×1×1"}));
        // a card stays narrow
        QCOMPARE(rows(2), (QStringList{"Inputs: " + QString::fromStdString(list).left(47) + "…"}));
        QCOMPARE(rows(3), QStringList());
    }

    void shapesOfRealTraces_data()
    {
        QTest::addColumn<QString>("files");
        QTest::addColumn<QString>("kernel");
        QTest::addColumn<QStringList>("facts");
        QTest::newRow("PyTorch") << "kineto/dlrm_8rank"
                                 << "permute_2D_lengths_kernel"
                                 << QStringList{"Grid: 2×1×1", "Block: 256×1×1",
                                                "Launched by: ## all2all_data:recat_values ##"};
        QTest::newRow("Nsight Systems") << "nsys_sqlite/mfu_2gpu_before.sqlite"
                                        << "CUDAFunctor_add<float>" << QStringList{"Grid: 46800×1×1", "Block: 128×1×1"};
    }
    void shapesOfRealTraces()
    {
        QFETCH(QString, files);
        QFETCH(QString, kernel);
        QFETCH(QStringList, facts);
        const QString path = qEnvironmentVariable("STAGEWRIGHT_SHARED") + QStringLiteral("/fixtures/") + files;
        if (!QFileInfo::exists(path)) QSKIP("no recorded traces: set STAGEWRIGHT_SHARED");
        const auto imported = importTraces({path.toStdString()}, {});
        QVERIFY(imported.has_value());
        const Sample run{imported->runs.front().run.timeline};
        LanesView shown(run);
        SpanId id = noSpan;
        for (SpanId i = 0; i < run.timeline->spans().size() && id == noSpan; ++i)
            if (run.timeline->nameOf(run.timeline->spans()[i]).find(kernel.toStdString()) != std::string::npos) id = i;
        QVERIFY(id != noSpan);
        const QString card = shown.view.cardOf({0, id}).plain();
        for (const QString& fact : facts) QVERIFY2(card.contains(fact), qPrintable(card));
        QVERIFY2(!card.contains(QStringLiteral("Inputs")), qPrintable(card)); // neither trace has them with its kernels
    }

    // A kernel's name is one long word, which ends within its card.
    void longNamesAreWrapped()
    {
        CardText card;
        card.title = QStringLiteral("gemm");
        card.note = QStringLiteral("at::native::vectorized_elementwise_kernel<4,at::native::CUDAFunctor_add<float>,std:"
                                   ":array<char*,3>>(int,float)");
        const QSizeF size = cardSize(card);
        QImage image(700, 300, QImage::Format_RGB32);
        image.fill(Qt::white);
        QPainter painter(&image);
        paintCard(painter, QRectF(QPointF(0, 0), size), card, Theme::light());
        painter.end();
        int ink = 0; // in the margin at the right and beyond
        for (int y = 20; y < static_cast<int>(size.height()) - 12; ++y)
            for (int x = static_cast<int>(size.width()) - 18; x < static_cast<int>(size.width()) - 8; ++x)
                ink += image.pixelColor(x, y).lightness() < 128 ? 1 : 0;
        QCOMPARE(ink, 0);
        QVERIFY(size.height() > cardSize({card.title, {}, {}, QStringLiteral("at::native")}).height() + 20);
        QVERIFY(card.plain().contains(card.note)); // copied without the places to break
    }

    void selectedAreaByClassAndName()
    {
        const Sample run = sample();
        const std::vector<std::shared_ptr<const TimelinePanel>> panels{makePanel(run.timeline)};
        const AreaSelection area{{200 * us, 700 * us}, 0, 0}; // of rank 0
        QCOMPARE(slicesIn(panels, {area}), std::int64_t(4));  // an estimate: of every rank
        const AggregateTable classes = aggregateTable(panels, {area}, nullptr, AggregateBy::Kind);
        QStringList lines;
        for (const AggregateLine& line : classes.lines)
            lines << QStringLiteral("%1 × %2: %3").arg(line.count).arg(line.name).arg(line.total / us);
        // trimmed; something always runs
        QCOMPARE(lines, (QStringList{"1 × Matrix product: 200", "1 × Normalisation: 100", "1 × Collective: 400"}));
        QCOMPARE(classes.kernels, std::int64_t(3));
        QVERIFY(classes.lines[0].of == KernelClass::MatrixProduct && !classes.lines[0].kind);
        const AggregateTable names = aggregateTable(panels, {{{0, 1000 * us}, 0, 1}}, nullptr, AggregateBy::Name);
        lines.clear();
        for (const AggregateLine& line : names.lines)
            lines << QStringLiteral("%1 × %2: %3").arg(line.count).arg(line.name).arg(line.total / us);
        QCOMPARE(lines,
                 (QStringList{"2 × gemm_bf16: 1300", "1 × rms_norm: 100",
                              "1 × ncclDevKernel_AllReduce_Sum_f32_RING_LL: 500", "1 × Memset: 300", "1 × Idle: 100"}));
        QVERIFY(names.lines[0].of == KernelClass::MatrixProduct);
        // unknown here
        for (const AggregateBy by : {AggregateBy::Stage, AggregateBy::Microbatch, AggregateBy::StageAndKind})
            QCOMPARE(aggregateTable(panels, {area}, nullptr, by).lines[0].name, QStringLiteral("Matrix product"));
        QCOMPARE(aggregateTable(panels, {area}, nullptr, AggregateBy::RankAndKind).lines[0].name,
                 QStringLiteral("Rank 0 · Matrix product"));
    }

    // A run with ops: kernels in the colour of their op, or by class where that is chosen; in a selected area they are
    // beside the ops, by name.
    void kernelsOfOps()
    {
        TimelineBuilder builder(Provenance::Measured, "wall", 1);
        Span op;
        op.end = 100 * us;
        op.op = makeOp(OpKind::Forward, 0, 0);
        const SpanId forward = builder.addSpan(builder.addTrack(0, Lane::Compute), op);
        for (int i = 0; i < 3; ++i) {
            Span kernel;
            kernel.start = (10 + 30 * i) * us;
            kernel.end = kernel.start + (i + 1) * 5 * us;
            kernel.label = builder.intern(i < 2 ? "gemm_bf16" : "rms_norm") & 0xffffffu;
            builder.addEdge(forward, builder.addSpan(builder.addTrack(0, Lane::Kernel, "rank 0 stream 7"), kernel),
                            EdgeKind::Launch, kernel.start);
        }
        const auto timeline = builder.build().value();
        PanelOptions options;
        const auto plain = makePanel(timeline, options);
        QVERIFY(!plain->byClass && plain->ranks[0].lanes[0].data.look() == LaneLook::Ops);
        QCOMPARE(plain->ranks[0].lanes[0].data.slices()[2].opKind(), OpKind::Forward);
        QCOMPARE(plain->classes, 0u);
        options.kernelsByClass = true;
        const auto classed = makePanel(timeline, options);
        QVERIFY(classed->byClass && !classed->noOps && classed->hasOps());
        QVERIFY(classed->ranks[0].lanes[0].data.look() == LaneLook::Classes);
        QCOMPARE(static_cast<KernelClass>(classed->ranks[0].lanes[0].data.slices()[2].kind),
                 KernelClass::Normalisation);
        QVERIFY((classed->classes >> static_cast<unsigned>(KernelClass::MatrixProduct) & 1u) != 0);
        QCOMPARE(classed->ranks[0].compute.look(), LaneLook::Ops);
        CauseCache causes;
        QCOMPARE(spanCard(*classed, 3, Theme::light(), causes, TimeOrigin::Step).swatch,
                 Theme::light().of(KernelClass::Normalisation).fill);
        for (const auto& panel : {plain, classed}) {
            const AggregateTable table = aggregateTable({panel}, {{{0, 100 * us}, 0, 0}}, nullptr, AggregateBy::Name);
            QStringList lines;
            for (const AggregateLine& line : table.lines)
                lines << QStringLiteral("%1 × %2: %3").arg(line.count).arg(line.name).arg(line.total / us);
            QCOMPARE(lines, (QStringList{"1 × Forward: 100", "2 × gemm_bf16: 15", "1 × rms_norm: 15"}));
            QVERIFY(table.lines[1].what == AggregateLine::What::Work);
            QCOMPARE(table.lines[1].spread(), Nanos(2500));
        }
        QCOMPARE(aggregateTable({plain}, {{{0, 100 * us}, 0, 0}}, nullptr, AggregateBy::Kind).lines.size(),
                 std::size_t(1));
    }

    // Runs too large for one timeline: the same lanes from blocks of the file, and the spans of a step in each of them.
    void lanesFromBlocks()
    {
        const Sample sampled = sample();
        QTemporaryDir folder;
        const auto file =
            RunFile::open(folder.filePath(QStringLiteral("runs.stagewright")).toStdString(), OpenMode::Create).value();
        Run run;
        run.info.name = "gpu";
        run.info.ranks = 2;
        run.info.steps = 1;
        run.info.clock = "wall";
        run.info.provenance = Provenance::Imported;
        run.timeline = sampled.timeline;
        const auto id = file->add(run);
        QVERIFY2(id, id ? "" : id.error().message.c_str());
        const auto content = file->content(*id).value();
        RunPanelBuilder builder(content, file->steps(*id).value(), QStringLiteral("run"));
        QVERIFY(file->streamSpans(*id,
                                  [&](const RunFile::SpanBlock& block) {
                                      builder.add(block);
                                      return true;
                                  })
                    .has_value());
        const auto lanes = builder.build();
        const auto whole = makePanel(sampled.timeline);
        QVERIFY(lanes->noOps && !lanes->hasOps());
        QCOMPARE(lanes->classes, whole->classes);
        PanelOptions options;
        options.step = 0;
        const auto detailed = withDetails(*lanes, *makePanel(file->readStep(*id, 0).value().timeline, options));
        QCOMPARE(detailed->ranks[0].lanes.size(), whole->ranks[0].lanes.size());
        for (const PanelLane& lane : whole->ranks[0].lanes) {
            const auto& slice = lane.data.slices().front();
            const auto same = std::find_if(detailed->ranks[0].lanes.begin(), detailed->ranks[0].lanes.end(),
                                           [&](const PanelLane& one) {
                                               return one.lane == lane.lane && one.track == lane.track &&
                                                      one.data.slices().front().begin() == slice.begin();
                                           });
            QVERIFY(same != detailed->ranks[0].lanes.end());
            QVERIFY(same->data.look() == lane.data.look());
            QCOMPARE(static_cast<unsigned>(same->data.slices().front().kind), static_cast<unsigned>(slice.kind));
            const SpanId span = same->data.spanOf(0);
            QVERIFY(span != noSpan);
            QCOMPARE(detailed->timeline->nameOf(detailed->timeline->spans()[span]),
                     sampled.timeline->nameOf(sampled.timeline->spans()[lane.data.spanOf(0)]));
        }
    }

    void searchedByName()
    {
        const Sample run = sample();
        const auto found = [&](const char* query) {
            return findSpans(*run.timeline, parseOpQuery(QLatin1String(query)), 0).size();
        };
        QCOMPARE(found("gemm"), std::size_t(2));
        QCOMPARE(found("gemm rank:1"), std::size_t(1));
        QCOMPARE(found("lane:kernel >250us"), std::size_t(3));
        QCOMPARE(found("layer"), std::size_t(1));
        // nothing here is an op
        for (const char* ofOps : {"F", "stage:0", "0F0", "B"}) QCOMPARE(found(ofOps), std::size_t(0));
    }

    void legendNamesWhatOccurs()
    {
        Legend legend;
        legend.setPanels(LanesView(sample()).view.panels());
        QCOMPARE(
            legend.accessibleDescription(),
            QStringLiteral("Matrix product, Normalisation, Collective, Fill, Pale: ranges, a colour for each name"));
    }

    void classesDiffer()
    {
        for (const Theme* theme : themes()) {
            for (int vision = 0; vision < 4; ++vision)
                for (std::size_t i = 0; i < kernelClassCount; ++i)
                    for (std::size_t j = 0; j < i; ++j) {
                        const double apart =
                            distance(labOf(theme->classes[i].fill, vision), labOf(theme->classes[j].fill, vision));
                        QVERIFY2(apart >= 10,
                                 qPrintable(
                                     QStringLiteral("%1 and %2, vision %3: %4")
                                         .arg(QString::fromStdString(std::string(titleOf(static_cast<KernelClass>(i)))),
                                              QString::fromStdString(std::string(titleOf(static_cast<KernelClass>(j)))))
                                         .arg(vision)
                                         .arg(apart)));
                    }
            for (const Fill& fill : theme->classes)
                QVERIFY2(contrast(fill.fill, fill.label) >= 4.5, qPrintable(fill.fill.name()));
            for (const Fill& fill : theme->ranges)
                QVERIFY2(contrast(fill.fill, fill.label) >= 4.5, qPrintable(fill.fill.name()));
            if (theme->highContrast)
                for (const Fill& fill : theme->classes)
                    QVERIFY2(contrast(fill.fill, theme->canvas) >= 3, qPrintable(fill.fill.name()));
        }
    }

    // Ranks enter at 10, 40 and 60 µs and all end at 100: two wait 50 and 20 µs for the third, which transfers for 40.
    void collectivesSayWhoWaits()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 3);
        std::vector<SpanId> ids;
        for (const Nanos entered : {10'000, 40'000, 60'000}) {
            const int rank = static_cast<int>(ids.size());
            Span span;
            span.start = entered;
            span.end = 100'000;
            span.label = builder.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL") & 0xffffffu;
            ids.push_back(builder.addSpan(builder.addTrack(rank, Lane::Kernel, "stream 7"), span));
        }
        for (const SpanId other : {ids[0], ids[1]}) builder.addEdge(ids[2], other, EdgeKind::Transfer, 60'000);
        const auto timeline = builder.build().value();
        const auto said = [&](int rank) {
            QStringList rows;
            for (const FactRow& fact : collectiveFacts(*timeline, timeline->trackOf(rank, Lane::Kernel)->begin, {}))
                rows << fact.title + QStringLiteral(": ") + fact.text;
            return rows.join(QStringLiteral("; "));
        };
        QCOMPARE(said(0), QStringLiteral("Waits for: rank 2, 50.0 µs; Transfers for: 40.0 µs"));
        QCOMPARE(said(1), QStringLiteral("Waits for: rank 2, 20.0 µs; Transfers for: 40.0 µs"));
        QCOMPARE(said(2), QStringLiteral("Others wait: 70.0 µs; Transfers for: 40.0 µs"));
        // The same as over all spans.
        const CollectiveGroups groups(*timeline);
        for (int rank = 0; rank < 3; ++rank) {
            const SpanId id = timeline->trackOf(rank, Lane::Kernel)->begin;
            const auto one = collectivePartsOf(*timeline, id), all = groups.of(id);
            QVERIFY(one && all && one->waiting == all->waiting && one->transfer == all->transfer);
            QCOMPARE(one->ranks, all->ranks);
        }
    }
};

QTEST_MAIN(TestDeviceLanes)
#include "tst_device_lanes.moc"
