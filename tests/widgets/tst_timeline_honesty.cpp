// The rules of honesty of the drawing: what the eye reads must be what happened.
#include <algorithm>
#include <cmath>
#include <random>

#include <QTest>

#include "sample_timelines.h"
#include "schedules/library/registry.h"
#include "traces/run/simulated_run.h"
#include "widgets/timeline/lane_raster.h"
#include "widgets/timeline/span_card.h"
#include "widgets/timeline/timeline_panel.h"

using namespace stagewright;
using samples::Piece;

namespace {

constexpr int width = 800;
constexpr int height = 40;
const std::array<QRgb, paintCount> colours{qRgb(10, 0, 0), qRgb(20, 0, 0), qRgb(30, 0, 0),
                                           qRgb(40, 0, 0), qRgb(50, 0, 0), qRgb(60, 0, 0)};

LaneData laneOf(const std::vector<Piece>& pieces)
{
    LaneData lane;
    SpanId id = 0;
    for (const Piece& piece : pieces) {
        Span span;
        span.start = piece.begin;
        span.end = piece.end;
        span.op = makeOp(piece.kind, 0, piece.microbatch);
        lane.append(span, id++, 0);
    }
    lane.buildPyramid();
    return lane;
}

struct Picture {
    LaneColumns columns;
    QImage image;
    int ink(int column) const // painted pixels of a column
    {
        int count = 0;
        for (int y = 4; y < 4 + height; ++y) count += qAlpha(image.pixel(column, y)) > 0 ? 1 : 0;
        return count;
    }
    double allInk() const
    {
        double sum = 0;
        for (int c = 0; c < width; ++c) sum += ink(c);
        return sum / height; // in columns
    }
};

// Everything narrow enough to be drawn in device pixels: wideMin is out of reach.
Picture pictureOf(const LaneData& lane, const TimeRange& range, Detail detail = Detail::Exact, int rowHeight = height)
{
    Picture picture;
    RasterOptions options;
    options.wideMin = 1e9;
    options.detail = detail;
    options.tail = range.end;
    rasterLane(lane, Axis{range, 0, width}, options, picture.columns);
    picture.image = QImage(width, height + 8, QImage::Format_ARGB32_Premultiplied);
    picture.image.fill(Qt::transparent);
    paintColumns(picture.image, picture.image.rect(), 4, rowHeight, 8, picture.columns, colours, qRgb(200, 200, 200));
    return picture;
}

} // namespace

class TestTimelineHonesty : public QObject {
    Q_OBJECT

private slots:
    // An order that can't run to its end is busy for no known share of a time that it does not have.
    void anOrderThatHangsHasNoBusyShare()
    {
        const Schedule schedule = *makeSchedule("1f1b", Shape{4, 8, 0});
        const Run run = *simulatedRun(schedule, CostModel::uniform(schedule));
        PanelOptions options;
        const auto whole = makePanel(run.timeline, options);
        options.hangs = true;
        const auto hanging = makePanel(run.timeline, options);
        QCOMPARE(whole->ranks.size(), std::size_t{4});
        for (std::size_t rank = 0; rank < whole->ranks.size(); ++rank) {
            QVERIFY(whole->ranks[rank].busyFraction > 0.5);
            QVERIFY(std::isnan(hanging->ranks[rank].busyFraction));
        }
    }

    // Where ranks of the pipeline are missing no op is on the critical path, and no idle time has a cause.
    void missingRanksAreSaid()
    {
        const Schedule schedule = *makeSchedule("1f1b", Shape{4, 8, 0});
        const Run run = *simulatedRun(schedule, CostModel::uniform(schedule));
        TimelineBuilder builder(Provenance::Imported, "wall", 4);
        builder.append(*run.timeline);
        builder.setUnits(run.timeline->timeUnit(), run.timeline->memoryUnit());
        builder.setMissingRanks("only 4 of the pipeline's 8 ranks are in the run");
        const auto part = *builder.build();
        CauseCache causes;
        QVERIFY(!makePanel(run.timeline, {})->critical.empty());
        const auto panel = makePanel(part, {});
        QVERIFY(panel->critical.empty());
        const QString card = idleCard(*panel, 3, 1'000'000, causes).plain();
        QVERIFY2(card.contains(QStringLiteral("Cause: Unknown")), qPrintable(card));
        QVERIFY2(card.contains(QStringLiteral("only 4 of the pipeline's 8 ranks")), qPrintable(card));
    }
    void inkIsProportional_data();
    void inkIsProportional();
    void twoPixelBubblesOwnAColumn_data();
    void twoPixelBubblesOwnAColumn();
    void workWithoutGapsHasNone();
    void anOpAloneIsAPixel();
    void kindsStackInOrder();
    void rareKindsGetATick();
    void thinRowsShowUtilisation();
    void draftsComeNear();
    void gapsAreListed();
    void costDoesNotFollowSlices();
};

void TestTimelineHonesty::inkIsProportional_data()
{
    QTest::addColumn<double>("mean"); // slice length in pixels
    QTest::addColumn<double>("busy");
    for (const double mean : {0.02, 0.2, 0.9, 1.7, 3.0, 12.0}) {
        for (const double busy : {0.3, 0.7, 0.95}) QTest::addRow("%g px, %g busy", mean, busy) << mean << busy;
    }
}

void TestTimelineHonesty::inkIsProportional()
{
    QFETCH(double, mean);
    QFETCH(double, busy);
    std::mt19937 random(5);
    const double perPixel = 100'000;
    std::uniform_real_distribution<double> any(0.2, 1.8);
    std::vector<Piece> pieces;
    Nanos t = 0, filled = 0;
    const Nanos end = static_cast<Nanos>(width * perPixel);
    while (t < end) {
        const Nanos length = std::max<Nanos>(1, static_cast<Nanos>(mean * perPixel * any(random)));
        const Nanos gap = static_cast<Nanos>(mean * perPixel * (1 - busy) / busy * any(random));
        const Nanos stop = std::min(end, t + length);
        pieces.push_back({t, stop, random() % 2 == 0 ? OpKind::Forward : OpKind::WeightGrad});
        filled += stop - t;
        t += length + gap;
    }
    const LaneData lane = laneOf(pieces);
    const double expected = static_cast<double>(filled) / perPixel;
    const double painted = pictureOf(lane, {0, end}).allInk();
    // 3 % of the row: rounding to whole pixels, and single ops widened to a pixel.
    QVERIFY2(std::abs(painted - expected) <= 0.03 * width,
             qPrintable(QStringLiteral("%1 columns for %2").arg(painted).arg(expected)));
}

void TestTimelineHonesty::twoPixelBubblesOwnAColumn_data()
{
    QTest::addColumn<double>("slice"); // px
    for (const double slice : {0.05, 0.4, 1.3, 1.9, 2.4, 4.8, 30.0}) QTest::addRow("slices of %g px", slice) << slice;
}

void TestTimelineHonesty::twoPixelBubblesOwnAColumn()
{
    QFETCH(double, slice);
    const double perPixel = 10'000;
    std::mt19937 random(9);
    for (int trial = 0; trial < 60; ++trial) {
        // Dense work, a bubble of exactly two pixels at any phase, dense work.
        const Nanos gapBegin = static_cast<Nanos>((300 + static_cast<double>(random() % 1000) / 1000) * perPixel);
        const Nanos gapEnd = gapBegin + static_cast<Nanos>(2 * perPixel);
        std::vector<Piece> pieces;
        const auto fill = [&](Nanos from, Nanos to) {
            for (Nanos t = from; t < to;) {
                const Nanos stop = std::min(to, t + std::max<Nanos>(1, static_cast<Nanos>(slice * perPixel)));
                pieces.push_back({t, stop, OpKind::Backward});
                t = stop;
            }
        };
        fill(0, gapBegin);
        fill(gapEnd, static_cast<Nanos>(width * perPixel));
        const Picture picture = pictureOf(laneOf(pieces), {0, static_cast<Nanos>(width * perPixel)});
        bool found = false;
        for (int c = 299; c <= 304; ++c) found = found || picture.ink(c) == 0;
        QVERIFY2(found, qPrintable(QStringLiteral("bubble at %1 ns").arg(gapBegin)));
    }
}

// Narrow ops beside wider ones, without a moment between them: no column seems partly idle.
void TestTimelineHonesty::workWithoutGapsHasNone()
{
    const double perPixel = 10'000;
    for (const double forward : {0.6, 1.23, 1.9}) {
        std::vector<Piece> pieces;
        Nanos t = 0;
        while (t < static_cast<Nanos>((width + 9) * perPixel))
            for (const auto& [kind, units] : {std::pair{OpKind::Forward, 1.0}, {OpKind::Backward, 2.0}}) {
                const Nanos stop = t + static_cast<Nanos>(forward * units * perPixel);
                pieces.push_back({t, stop, kind});
                t = stop;
            }
        const Picture picture = pictureOf(laneOf(pieces), {0, static_cast<Nanos>(width * perPixel)});
        int least = height;
        for (int c = 8; c + 1 < width; ++c) least = std::min(least, picture.ink(c));
        QVERIFY2(least >= height - 1, qPrintable(QStringLiteral("%1 px: %2").arg(forward).arg(least)));
    }
}

void TestTimelineHonesty::anOpAloneIsAPixel()
{
    const Nanos perPixel = 1000;
    const LaneData lane = laneOf({{100'300, 100'310}, {400'000, 402'000, OpKind::WeightGrad}});
    const Picture picture = pictureOf(lane, {0, width * perPixel});
    QCOMPARE(picture.columns.spans.size(), std::size_t(2));
    // 0.01 px: widened to one column, at two thirds of the height because it covers idle time
    QVERIFY(picture.columns.spans[0].low);
    QCOMPARE(picture.ink(99), 0);
    QCOMPARE(picture.ink(100), height - height / 3);
    QCOMPARE(picture.ink(101), 0);
    // two whole pixels: full height
    QCOMPARE(picture.ink(400), height);
    QCOMPARE(picture.ink(401), height);
    QCOMPARE(picture.ink(402), 0);
}

void TestTimelineHonesty::kindsStackInOrder()
{
    std::vector<Piece> pieces; // every column: half F, a quarter W, a quarter idle; F and W interleaved
    for (Nanos t = 0; t < width * 1000; t += 100) {
        pieces.push_back({t, t + 25, OpKind::WeightGrad});
        pieces.push_back({t + 25, t + 75, OpKind::Forward});
    }
    const Picture picture = pictureOf(laneOf(pieces), {0, width * 1000});
    QVERIFY(picture.columns.aggregated);
    const int x = 123;
    QCOMPARE(picture.ink(x), height * 3 / 4);
    for (int y = 0; y < height; ++y) {
        const QRgb pixel = picture.image.pixel(x, 4 + height - 1 - y);
        if (y < height / 2) {
            QCOMPARE(pixel, colours[0]);
        } else if (y < height * 3 / 4) {
            QCOMPARE(pixel, colours[2]);
        } else {
            QCOMPARE(qAlpha(pixel), 0);
        }
    }
}

void TestTimelineHonesty::rareKindsGetATick()
{
    std::vector<Piece> pieces;
    for (Nanos t = 0; t < width * 1000; t += 100) pieces.push_back({t, t + 100, OpKind::Forward});
    pieces[5 * 10 + 3] = {5 * 1000 + 300, 5 * 1000 + 301, OpKind::Optimizer, -1};
    const Picture picture = pictureOf(laneOf(pieces), {0, width * 1000});
    QCOMPARE(picture.image.pixel(5, 1), colours[static_cast<std::size_t>(Paint::Optimizer)]);
    QCOMPARE(qAlpha(picture.image.pixel(6, 1)), 0);
}

void TestTimelineHonesty::thinRowsShowUtilisation()
{
    const auto shade = [](Nanos busy) {
        std::vector<Piece> pieces;
        for (Nanos t = 0; t < width * 1000; t += 100) pieces.push_back({t, t + busy, OpKind::Forward});
        const Picture picture = pictureOf(laneOf(pieces), {0, width * 1000}, Detail::Exact, 3);
        return qRed(picture.image.pixel(50, 5)); // from idle (200) down to the kind's colour (10)
    };
    const int low = shade(20), middle = shade(50), high = shade(100);
    QVERIFY(low > middle && middle > high);
    QVERIFY(std::abs(middle - 105) <= 2);
    QCOMPARE(high, 10);
}

void TestTimelineHonesty::draftsComeNear()
{
    std::mt19937 random(4);
    std::vector<Piece> pieces;
    Nanos t = 0;
    for (int i = 0; i < 200'000; ++i) {
        const Nanos length = 10 + static_cast<Nanos>(random() % 200);
        const OpKind kind = std::array{OpKind::Forward, OpKind::InputGrad, OpKind::WeightGrad}[random() % 3];
        pieces.push_back({t, t + length, kind, i % 32});
        t += length + static_cast<Nanos>(random() % 100) + (i % 5000 == 0 ? 40'000 : 0);
    }
    const LaneData lane = laneOf(pieces);
    const Picture exact = pictureOf(lane, {0, t}), draft = pictureOf(lane, {0, t}, Detail::Draft);
    QVERIFY(draft.columns.aggregated);
    QVERIFY(std::abs(exact.allInk() - draft.allInk()) < 0.01 * width);
    for (int c = 0; c < width; ++c) QVERIFY(std::abs(exact.ink(c) - draft.ink(c)) <= height / 4);
}

void TestTimelineHonesty::gapsAreListed()
{
    const LaneData lane = laneOf({{100'000, 200'000}, {260'000, 300'000}});
    LaneColumns columns;
    RasterOptions options;
    options.gapMin = 58;
    options.tail = 400'000;
    rasterLane(lane, Axis{{0, width * 1000}, 0, width}, options, columns);
    QCOMPARE(columns.gaps.size(), std::size_t(3)); // before the first, between, after the last up to the extent
    QCOMPARE(columns.gaps[0].duration, Nanos(100'000));
    QCOMPARE(columns.gaps[1].duration, Nanos(60'000));
    QCOMPARE(columns.gaps[2].duration, Nanos(100'000));
    QCOMPARE(columns.wide.size(), std::size_t(2));
    rasterLane(lane, Axis{{230'000, 240'000}, 0, width}, options, columns); // wholly within a gap
    QCOMPARE(columns.gaps.size(), std::size_t(1));
    QCOMPARE(columns.gaps[0].duration, Nanos(60'000));
}

// A draft frame costs columns, not slices: it reads no more of 100 times the slices.
void TestTimelineHonesty::costDoesNotFollowSlices()
{
    const auto read = [](int slices) {
        std::vector<Piece> pieces;
        pieces.reserve(static_cast<std::size_t>(slices));
        for (int i = 0; i < slices; ++i) pieces.push_back({i * 100, i * 100 + 80, OpKind::Forward});
        const Picture picture = pictureOf(laneOf(pieces), {0, slices * Nanos(100)}, Detail::Draft);
        return picture.columns.aggregated ? picture.columns.read : 0;
    };
    const std::size_t few = read(5'000), many = read(500'000);
    QVERIFY(few > 0 && many > 0);
    QVERIFY2(few <= 20 * width && many <= 20 * width,
             qPrintable(QStringLiteral("%1 and %2 for %3 columns").arg(few).arg(many).arg(width)));
}

QTEST_APPLESS_MAIN(TestTimelineHonesty)
#include "tst_timeline_honesty.moc"
