// Time to pixels and back, ruler steps, rows, hatch lines, lanes, the pyramid, aggregation. No window.
#include <random>

#include <QTest>

#include "sample_timelines.h"
#include "widgets/timeline/aggregation.h"
#include "widgets/timeline/geometry.h"
#include "widgets/timeline/timeline_panel.h"

using namespace stagewright;
using samples::Piece;

class TestTimelineGeometry : public QObject {
    Q_OBJECT

private slots:
    void roundTrip();
    void degenerateAxes();
    void zoomKeepsTheAnchor();
    void rulerStepsAre125();
    void rows();
    void hatchStaysInside();
    void slicesPack();
    void lanesKeepIds();
    void laneSearch();
    void pyramidSumsAreExact();
    void pyramidGrowsLikeItIsBuilt();
    void panelOfOneStep();
    void panelOfNothing();
    void positions();
    void aggregationTrims();
};

void TestTimelineGeometry::roundTrip()
{
    std::mt19937_64 random(7);
    for (int i = 0; i < 2000; ++i) {
        const Nanos begin = static_cast<Nanos>(random() % 1'000'000'000'000) - 500'000'000'000;
        const Nanos duration = 10 + static_cast<Nanos>(random() % 1'000'000'000'000);
        const Axis axis{{begin, begin + duration}, 152, 100 + static_cast<double>(random() % 3000)};
        const double x = 152 + static_cast<double>(random() % 10000) / 10000 * axis.width;
        QVERIFY(std::abs(axis.toX(axis.toTime(x)) - x) <= 0.5001 / axis.nanosPerPixel() + 1e-6);
        const Nanos t = begin + static_cast<Nanos>(random() % static_cast<std::uint64_t>(duration));
        QVERIFY(std::abs(axis.toTime(axis.toX(t)) - t) <=
                std::max<Nanos>(1, static_cast<Nanos>(axis.nanosPerPixel() * 1e-6)));
    }
    const Axis axis{{1000, 2000}, 10, 500};
    QCOMPARE(axis.toX(1000), 10.0);
    QCOMPARE(axis.toX(2000), 510.0);
    QCOMPARE(axis.toX(0), -490.0); // unclamped
}

void TestTimelineGeometry::degenerateAxes()
{
    for (const Axis& axis : {Axis{{5, 5}, 20, 100}, Axis{{5, 90}, 20, 0}, Axis{{90, 5}, 20, 100}}) {
        QVERIFY(axis.degenerate());
        QCOMPARE(axis.toX(77), 20.0);
        QCOMPARE(axis.toTime(60), axis.range.begin);
        QCOMPARE(axis.nanosPerPixel(), 0.0);
        QVERIFY(rulerTicks(axis, 50).empty());
    }
    QVERIFY(axisIn(QRectF(0, 0, 40, 40), {0, 10}).degenerate()); // narrower than the gutter
}

void TestTimelineGeometry::zoomKeepsTheAnchor()
{
    const TimeRange range{1000, 9000};
    for (const double factor : {0.5, 0.8, 1.25, 3.0}) {
        const TimeRange next = zoomed(range, factor, 3000);
        const double before = 2000.0 / 8000,
                     after = static_cast<double>(3000 - next.begin) / static_cast<double>(next.duration());
        QVERIFY(std::abs(before - after) < 1e-3);
        QVERIFY(std::abs(static_cast<double>(next.duration()) - 8000 * factor) <= 1);
    }
    QCOMPARE(zoomed({100, 120}, 0.01, 110).duration(), Nanos(10));
    QCOMPARE(panned({0, 1000}, 0.1), (TimeRange{100, 1100}));
}

void TestTimelineGeometry::rulerStepsAre125()
{
    for (Nanos duration = 20; duration < 100'000'000'000'000; duration = duration * 17 / 10) {
        const Axis axis{{duration / 3, duration / 3 + duration}, 0, 1100};
        Nanos lead = rulerStep(axis, 52);
        QVERIFY(static_cast<double>(lead) / axis.nanosPerPixel() >= 51.99 || lead == 1);
        QVERIFY(static_cast<double>(lead) / axis.nanosPerPixel() <= 52 * 2.5 + 60 || lead == 1);
        while (lead % 10 == 0) lead /= 10;
        QVERIFY2(lead == 1 || lead == 2 || lead == 5, qPrintable(QString::number(lead)));
        Nanos before = axis.range.begin - 1;
        for (const RulerTick& tick : rulerTicks(axis, 52)) {
            QVERIFY(tick.time > before && tick.time <= axis.range.end);
            if (tick.major) QCOMPARE(tick.time % rulerStep(axis, 52), Nanos(0));
            before = tick.time;
        }
    }
    const Axis units{{0, 30 * rankShare}, 0, 900};
    QCOMPARE(rulerStep(units, 52, rankShare), 2 * rankShare);
}

void TestTimelineGeometry::rows()
{
    const RowLayout layout = layoutRows({4, 4}, rowMetrics(38, false), true);
    QCOMPARE(layout.rows.size(), std::size_t(8));
    QCOMPARE(layout.rows[1].top - layout.rows[0].top, 47.0);
    QCOMPARE(layout.rows[4].panel, 1);
    QCOMPARE(layout.rowOf(1, 0), 4);
    QCOMPARE(layout.rowOf(1, 4), -1);
    QVERIFY(layout.rows[4].top >= layout.panels[1].headerTop + panelHeaderHeight);
    for (int i = 0; i < 8; ++i) {
        const double top = layout.rows[static_cast<std::size_t>(i)].top;
        QCOMPARE(layout.rowAt(top), i);
        QCOMPARE(layout.rowAt(top + 37.9), i);
        QCOMPARE(layout.rowAt(top + 38.1), -1);
        QCOMPARE(layout.nearestRow(top + 40), i);
    }
    QCOMPARE(layout.rowAt(layout.panels[1].headerTop + 3), -1);
    QCOMPARE(layout.nearestRow(-50), 0);
    QCOMPARE(layout.nearestRow(1e6), 7);
    QCOMPARE(layoutRows(std::vector<int>{}, rowMetrics(48, true), false).nearestRow(5), -1);
    QCOMPARE(rowMetrics(48, true).track, 9.0);
    QCOMPARE(rowMetrics(10, true).track, 0.0);
    QCOMPARE(rowMetrics(2, true).gap, 0.0);
}

void TestTimelineGeometry::hatchStaysInside()
{
    QVERIFY(hatchLines(QRectF(0, 0, 0, 10), {0, 0}).empty());
    const QRectF rect(33.5, 12, 71.25, 48);
    const auto lines = hatchLines(rect, {5, 5});
    QVERIFY(lines.size() > 15);
    for (const QLineF& line : lines) {
        for (const QPointF& p : {line.p1(), line.p2()}) {
            QVERIFY(p.x() >= rect.left() - 1e-9 && p.x() <= rect.right() + 1e-9 && p.y() >= rect.top() - 1e-9 &&
                    p.y() <= rect.bottom() + 1e-9);
        }
        QVERIFY(std::abs(line.dx() + line.dy()) < 1e-9); // 45°
        const double offset = std::remainder(line.x1() + line.y1() - 10, 6.0);
        QVERIFY(std::abs(offset) < 1e-9); // on the grid of the anchor
    }
}

void TestTimelineGeometry::slicesPack()
{
    Span span;
    span.start = Nanos(1) << 50;
    span.end = span.start + (Nanos(1) << 43);
    span.op = makeOp(OpKind::Filler, 3, -1);
    span.flags = SpanDiscarded;
    LaneData lane;
    lane.append(span, 9, 0);
    const Slice& slice = lane.slices().front();
    QCOMPARE(slice.begin(), span.start);
    QCOMPARE(slice.end(), span.end);
    QCOMPARE(slice.opKind(), OpKind::Filler);
    QCOMPARE(slice.microbatchOr(-1), -1);
    QVERIFY(slice.discarded != 0);
    span.end = span.start + (Nanos(1) << 45); // too long for the field: clamped, not wrapped
    LaneData longLane;
    longLane.append(span, 9, 0);
    QCOMPARE(longLane.end() - longLane.begin(), (Nanos(1) << 44) - 1);
}

void TestTimelineGeometry::lanesKeepIds()
{
    LaneData lane;
    Span span;
    const std::vector<SpanId> ids{10, 11, 12, 20, 21};
    for (std::size_t i = 0; i < ids.size(); ++i) {
        span.start = static_cast<Nanos>(100 * i);
        span.end = span.start + 150; // overlaps the next: cut at its start
        lane.append(span, ids[i], 0);
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
        QCOMPARE(lane.spanOf(i), ids[i]);
        QCOMPARE(lane.sliceOf(ids[i]), i);
        if (i + 1 < ids.size()) QVERIFY(lane.slices()[i].end() <= lane.slices()[i + 1].begin());
    }
    QCOMPARE(lane.sliceOf(15), lane.size());
    QCOMPARE(lane.spanOf(99), noSpan);
}

void TestTimelineGeometry::laneSearch()
{
    const auto timeline = samples::written({{{0, 10}, {10, 20}, {50, 60}}});
    const auto panel = makePanel(timeline);
    const LaneData& lane = panel->ranks[0].compute;
    QCOMPARE(lane.firstEndingAfter(-5), std::size_t(0));
    QCOMPARE(lane.firstEndingAfter(10), std::size_t(1));
    QCOMPARE(lane.firstEndingAfter(30), std::size_t(2));
    QCOMPARE(lane.firstEndingAfter(60), std::size_t(3));
    QCOMPARE(lane.firstBeginningAt(10), std::size_t(1));
    QCOMPARE(lane.firstBeginningAt(11), std::size_t(2));
    QCOMPARE(lane.firstBeginningAt(51), std::size_t(3));
}

static LaneData randomLane(std::size_t slices, unsigned seed)
{
    std::mt19937 random(seed);
    LaneData lane;
    lane.reserve(slices);
    Nanos t = 0;
    for (std::size_t i = 0; i < slices; ++i) {
        Span span;
        t += random() % 3 == 0 ? static_cast<Nanos>(random() % 5000) : 0;
        span.start = t;
        t += 1 + static_cast<Nanos>(random() % 3000);
        span.end = t;
        span.op = makeOp(
            std::array{OpKind::Forward, OpKind::Backward, OpKind::WeightGrad, OpKind::Optimizer}[random() % 4], 0, 1);
        lane.append(span, static_cast<SpanId>(i), 0);
    }
    return lane;
}

void TestTimelineGeometry::pyramidSumsAreExact()
{
    LaneData lane = randomLane(20000, 3);
    lane.buildPyramid();
    QVERIFY(lane.memoryUse() <= 28 * lane.size() + 4096);
    const auto& levels = lane.pyramid().levels();
    QVERIFY(levels.size() >= 5);
    QCOMPARE(levels.back().buckets.size(), std::size_t(1));
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const Pyramid::Level& level = levels[i];
        if (i > 0) QCOMPARE(level.shift, levels[i - 1].shift + 2);
        std::vector<std::array<double, 4>> expected(level.buckets.size(), std::array<double, 4>{});
        std::vector<std::uint32_t> counts(level.buckets.size(), 0);
        for (const Slice& slice : lane.slices()) {
            ++counts[static_cast<std::size_t>((slice.begin() >> level.shift) - level.first)];
            const auto share = std::min<std::size_t>(static_cast<std::size_t>(paintOf(slice.opKind())), 3);
            for (Nanos t = slice.begin(); t < slice.end();) {
                const Nanos next = std::min(slice.end(), ((t >> level.shift) + 1) << level.shift);
                expected[static_cast<std::size_t>((t >> level.shift) - level.first)][share] +=
                    static_cast<double>(next - t);
                t = next;
            }
        }
        for (std::size_t b = 0; b < level.buckets.size(); ++b) {
            QCOMPARE(level.buckets[b].count, static_cast<std::uint16_t>(std::min(counts[b], 65535u)));
            for (std::size_t k = 0; k < 4; ++k) {
                const double share = expected[b][k] / static_cast<double>(level.width()) * 255;
                const double off = std::abs(level.buckets[b].share[k] - share);
                QVERIFY2(off <= 0.5001 || (share > 0 && share < 1 && level.buckets[b].share[k] == 1),
                         qPrintable(QString::number(off)));
            }
        }
    }
    QVERIFY(lane.pyramid().levelFor(0.5) == nullptr);
    QCOMPARE(lane.pyramid().levelFor(1e18), &levels.back());
}

void TestTimelineGeometry::pyramidGrowsLikeItIsBuilt()
{
    const LaneData whole = randomLane(5000, 11);
    Pyramid built, grown;
    built.build(whole.slices());
    const std::span<const Slice> all(whole.slices());
    for (std::size_t n = 1500; n <= all.size(); n += 500) grown.extend(all.first(n));
    QCOMPARE(grown.levels().size(), built.levels().size());
    for (std::size_t i = 0; i < built.levels().size(); ++i) {
        const auto& a = built.levels()[i];
        const auto& b = grown.levels()[i];
        QCOMPARE(b.shift, a.shift);
        QCOMPARE(b.buckets.size(), a.buckets.size());
        QVERIFY(std::memcmp(a.buckets.data(), b.buckets.data(), a.buckets.size() * sizeof(PaintBucket)) == 0);
    }
}

void TestTimelineGeometry::panelOfOneStep()
{
    const auto timeline = samples::simulated("zb-h1");
    QVERIFY(timeline);
    const auto panel = makePanel(timeline, {0, 0, QStringLiteral("ZB-H1")});
    QCOMPARE(panel->ranks.size(), std::size_t(4));
    QCOMPARE(panel->ranks[0].compute.size(), std::size_t(24));
    QVERIFY(!panel->ranks[0].communication.empty());
    QVERIFY(panel->bubbles.has_value());
    QCOMPARE(panel->bubbleFraction, panel->bubbles->bubbleFraction);
    QVERIFY(!panel->critical.empty() && std::is_sorted(panel->critical.begin(), panel->critical.end()));
    QCOMPARE(panel->peak, 4 * samples::gib);
    QCOMPARE(panel->ranks[2].subtitle, QStringLiteral("stage 2"));
    for (std::size_t i = 0; i < panel->ranks.size(); ++i) {
        const double busy =
            static_cast<double>(panel->bubbles->ranks[i].busy) / static_cast<double>(panel->bubbles->makespan());
        QVERIFY(std::abs(panel->ranks[i].busyFraction - busy) < 1e-12);
    }
}

void TestTimelineGeometry::panelOfNothing()
{
    TimelineBuilder builder(Provenance::Imported, "wall", 2);
    const auto timeline = builder.build();
    QVERIFY(timeline);
    const auto panel = makePanel(*timeline);
    QCOMPARE(panel->ranks.size(), std::size_t(2));
    QCOMPARE(panel->duration, Nanos(0));
    QCOMPARE(panel->sliceCount, 0);
    QCOMPARE(panel->positionOf(0), -1);
}

void TestTimelineGeometry::positions()
{
    const auto timeline = samples::simulated("1f1b");
    const auto panel = makePanel(timeline);
    QVERIFY(timeline->schedule());
    const auto& order = timeline->schedule()->order;
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
        for (std::size_t i = 0; i < order[rank].size(); ++i) {
            const SpanId id = samples::spanOf(*timeline, toText(order[rank][i]));
            QCOMPARE(panel->positionOf(id), static_cast<int>(i));
        }
    }
}

void TestTimelineGeometry::aggregationTrims()
{
    const auto timeline = samples::written(
        {{{0, 100}, {100, 150, OpKind::WeightGrad}, {300, 400, OpKind::Optimizer, -1}}, {{50, 250, OpKind::Backward}}});
    const auto panel = makePanel(timeline);
    const Aggregation sum = aggregate({panel}, {{{50, 350}, 0, 1}});
    QCOMPARE(sum.rows, 2);
    QCOMPARE(sum.count, 4);
    QCOMPARE(sum.timeByKind[static_cast<std::size_t>(OpKind::Forward)], Nanos(50));
    QCOMPARE(sum.timeByKind[static_cast<std::size_t>(OpKind::WeightGrad)], Nanos(50));
    QCOMPARE(sum.timeByKind[static_cast<std::size_t>(OpKind::Optimizer)], Nanos(50));
    QCOMPARE(sum.timeByKind[static_cast<std::size_t>(OpKind::Backward)], Nanos(200));
    QCOMPARE(sum.busy, Nanos(300));
    QCOMPARE(sum.idle, Nanos(600 - 350));
    const Aggregation beyond = aggregate({panel}, {{{350, 900}, 0, 0}}); // past the end nothing is idle
    QCOMPARE(beyond.idle, Nanos(0));
    QVERIFY(aggregate({panel}, {}).empty());
}

QTEST_APPLESS_MAIN(TestTimelineGeometry)
#include "tst_timeline_geometry.moc"
