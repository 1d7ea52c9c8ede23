// Timelines of any size: lanes built from blocks equal those of the whole run, details of a step fit them, a panned
// frame has the same pixels as a fresh one.
#include <random>

#include <QTemporaryDir>
#include <QTest>

#include "recorded_runs.h"
#include "widgets/timeline/frame_pan.h"
#include "widgets/timeline/frame_worker.h"
#include "widgets/timeline/lane_raster.h"
#include "widgets/timeline/run_panel.h"
#include "widgets/timeline/timeline_painter.h"

using namespace stagewright;

namespace {

bool same(const Slice& a, const Slice& b)
{
    return a.begin() == b.begin() && a.end() == b.end() && a.kind == b.kind && a.upper == b.upper &&
           a.lower == b.lower && a.tint == b.tint && a.microbatch == b.microbatch && a.discarded == b.discarded;
}

QString differenceOf(const LaneData& a, const LaneData& b)
{
    if (a.size() != b.size()) return QStringLiteral("%1 and %2 slices").arg(a.size()).arg(b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!same(a.slices()[i], b.slices()[i])) return QStringLiteral("slice %1").arg(i);
    if (a.pyramid().levels().size() != b.pyramid().levels().size()) return QStringLiteral("levels");
    for (std::size_t l = 0; l < a.pyramid().levels().size(); ++l) {
        const auto &p = a.pyramid().levels()[l], &q = b.pyramid().levels()[l];
        if (p.shift != q.shift || p.buckets.size() != q.buckets.size()) return QStringLiteral("level %1").arg(l);
        for (std::size_t i = 0; i < p.buckets.size(); ++i)
            if (p.buckets[i].share != q.buckets[i].share || p.buckets[i].mask != q.buckets[i].mask)
                return QStringLiteral("bucket %1 of level %2").arg(i).arg(l);
    }
    return {};
}

// Ops of about `pitch` ns on several lanes, with gaps, transfers under them and kinds at random.
std::shared_ptr<const TimelinePanel> randomPanel(int lanes, int perLane, Nanos pitch, std::uint32_t seed)
{
    std::mt19937 random(seed);
    TimelineBuilder builder(Provenance::Simulated, "model", lanes);
    for (int rank = 0; rank < lanes; ++rank) {
        const int compute = builder.addTrack(rank, Lane::Compute), send = builder.addTrack(rank, Lane::Send);
        Nanos t = static_cast<Nanos>(random() % 1000);
        for (int i = 0; i < perLane; ++i) {
            Span span;
            t += random() % 5 == 0 ? static_cast<Nanos>(random() % static_cast<std::uint32_t>(4 * pitch)) : 0;
            span.start = t;
            t += pitch / 2 + static_cast<Nanos>(random() % static_cast<std::uint32_t>(pitch));
            span.end = t;
            const OpKind kinds[] = {OpKind::Forward, OpKind::InputGrad, OpKind::WeightGrad, OpKind::Recompute,
                                    OpKind::Optimizer};
            span.op = makeOp(kinds[random() % (i % 40 == 0 ? 5 : 3)], rank, i % 64);
            builder.addSpan(compute, span);
            if (random() % 3 == 0) {
                span.op = makeOp(OpKind::SendF, rank, i % 64);
                span.start = t - pitch / 4;
                span.end = t + pitch / 3;
                builder.addSpan(send, span);
            }
        }
    }
    PanelOptions options;
    options.causes = false;
    return makePanel(builder.build().value(), options);
}

TimelineScene sceneOf(const std::shared_ptr<const TimelinePanel>& panel, double rowHeight, TimeRange range)
{
    TimelineScene scene;
    scene.panels = {panel};
    scene.size = {900, 420};
    scene.rows = layoutRows({static_cast<int>(panel->ranks.size())}, rowMetrics(rowHeight, rowHeight > 8), false);
    scene.axis = axisIn(QRectF(QPointF(0, 0), scene.size), range);
    return scene;
}

} // namespace

class TestTimelineScale : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;

private slots:
    void lanesOfBlocksAreThoseOfTheWholeRun_data();
    void lanesOfBlocksAreThoseOfTheWholeRun();
    void lateSlicesFindTheirPlace();
    void copiesShareUntilTheyGrow();
    void theOverviewIsTheBusyShare();
    void pansMovePixels_data();
    void pansMovePixels();
    void pansKeepWholePixels();
    void thinRowsAreTheSameByEveryPainter();
    void framesCostPixelsNotSlices();
    void draftsAreHitExactly();
};

void TestTimelineScale::lanesOfBlocksAreThoseOfTheWholeRun_data()
{
    QTest::addColumn<QString>("schedule");
    QTest::addColumn<int>("steps");
    QTest::newRow("zb-h1") << "zb-h1" << 12;
    QTest::newRow("chunks") << "interleaved-1f1b" << 5;
    QTest::newRow("pairs and copies") << "dualpipe" << 4;
}

void TestTimelineScale::lanesOfBlocksAreThoseOfTheWholeRun()
{
    QFETCH(QString, schedule);
    QFETCH(int, steps);
    const std::string path =
        m_folder.filePath(QString::fromLatin1(QTest::currentDataTag()) + QStringLiteral(".stagewright")).toStdString();
    samples::RecordedShape shape{4, 16, steps, schedule.toStdString(), 0.05, true};
    QVERIFY(samples::recordRun(path, shape).has_value());
    const auto file = RunFile::open(path, OpenMode::Read).value();
    const auto content = file->content(1).value();
    const auto bounds = file->steps(1).value();
    RunPanelBuilder builder(content, bounds, QStringLiteral("run"));
    QVERIFY(file->streamSpans(1,
                              [&](const RunFile::SpanBlock& block) {
                                  builder.add(block);
                                  return true;
                              })
                .has_value());
    QVERIFY(file->streamMemory(1,
                               [&](std::span<const MemoryEvent> events) {
                                   builder.addMemory(events);
                                   return true;
                               })
                .has_value());
    const auto lanes = builder.build();

    const Run whole = file->read(1).value();
    const auto expected = makePanel(whole.timeline);
    QCOMPARE(lanes->origin, expected->origin);
    QCOMPARE(lanes->duration, expected->duration);
    QCOMPARE(lanes->ranks.size(), expected->ranks.size());
    QCOMPARE(lanes->sliceCount, expected->sliceCount);
    QCOMPARE(lanes->kinds, expected->kinds);
    QCOMPARE(lanes->hasTints, expected->hasTints);
    QCOMPARE(lanes->hasPairs, expected->hasPairs);
    QCOMPARE(lanes->peak, expected->peak);
    QVERIFY(std::abs(lanes->bubbleFraction - expected->bubbleFraction) < 1e-9);
    for (std::size_t rank = 0; rank < lanes->ranks.size(); ++rank) {
        const PanelRank &a = lanes->ranks[rank], &b = expected->ranks[rank];
        QCOMPARE(differenceOf(a.compute, b.compute), QString());
        QCOMPARE(a.communication.size(), b.communication.size());
        for (std::size_t i = 0; i < a.communication.size(); ++i)
            QCOMPARE(differenceOf(a.communication[i], b.communication[i]), QString());
        QCOMPARE(a.subtitle, b.subtitle);
        QCOMPARE(a.busyFraction, b.busyFraction);
        QCOMPARE(a.activations.peak, b.activations.peak);
        QCOMPARE(a.activations.peakTime, b.activations.peakTime);
        QVERIFY(a.compute.spanOf(0) == noSpan);
    }
    // The details of a step: every one of its slices is the span it was.
    for (const int step : {0, steps - 1, steps / 2}) {
        const Run one = file->readStep(1, step).value();
        PanelOptions options;
        options.step = step;
        const auto stepPanel = makePanel(one.timeline, options);
        const auto detailed = withDetails(*lanes, *stepPanel);
        QCOMPARE(detailed->detailStep, step);
        std::size_t ids = 0;
        const auto check = [&](const LaneData& lane) {
            for (std::size_t i = 0; i < lane.size(); ++i) {
                const SpanId id = lane.spanOf(i);
                if (id == noSpan) continue;
                ++ids;
                const Span& span = one.timeline->spans()[id];
                QCOMPARE(lane.drawn(i).begin, span.start - detailed->origin);
                QCOMPARE(lane.slices()[i].opKind(), span.op.kind);
                QCOMPARE(lane.slices()[i].microbatchOr(-1), span.op.microbatch);
                QCOMPARE(lane.sliceOf(id), i);
                QCOMPARE(detailed->stepNumberAt(lane.drawn(i).begin), step);
            }
        };
        for (const PanelRank& rank : detailed->ranks) {
            check(rank.compute);
            for (const LaneData& lane : rank.communication) check(lane);
        }
        QCOMPARE(ids, one.timeline->spans().size());
    }
}

void TestTimelineScale::lateSlicesFindTheirPlace()
{
    std::mt19937 random(4);
    std::vector<Span> spans;
    Nanos t = 0;
    for (int i = 0; i < 500; ++i) {
        Span span;
        span.start = t += static_cast<Nanos>(random() % 50);
        span.end = t += 10 + static_cast<Nanos>(random() % 90);
        span.op = makeOp(i % 3 == 0 ? OpKind::Forward : OpKind::Backward, 0, i);
        spans.push_back(span);
        if (i % 7 == 0) { // a pair
            span.op = makeOp(OpKind::WeightGrad, 0, i);
            spans.push_back(span);
        }
    }
    LaneData ordered, late;
    for (std::size_t i = 0; i < spans.size(); ++i) ordered.append(spans[i], static_cast<SpanId>(i), 0);
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.start / 3000 % 2 < b.start / 3000 % 2; });
    for (const Span& span : spans) late.appendLoose(span, 0);
    ordered.buildPyramid();
    late.buildPyramid();
    QCOMPARE(differenceOf(late, ordered), QString());
}

void TestTimelineScale::copiesShareUntilTheyGrow()
{
    LaneData lane;
    Span span;
    for (int i = 0; i < 100; ++i) {
        span.start = i * 100;
        span.end = span.start + 60;
        lane.append(span, static_cast<SpanId>(i), 0);
    }
    lane.buildPyramid();
    LaneData copy = lane;
    QCOMPARE(copy.slices().data(), lane.slices().data());
    copy.setIds(40, {7, noSpan, 9});
    QCOMPARE(copy.slices().data(), lane.slices().data()); // ids are its own
    QCOMPARE(lane.spanOf(40), SpanId{40});
    QCOMPARE(copy.spanOf(40), SpanId{7});
    QCOMPARE(copy.spanOf(41), noSpan);
    QCOMPARE(copy.spanOf(43), noSpan);
    QCOMPARE(copy.sliceOf(9), std::size_t{42});
    QCOMPARE(copy.sliceOf(8), copy.size());
    span.start = 10'000;
    span.end = 10'050;
    LaneData grown = lane;
    grown.append(span, 100, 0);
    grown.buildPyramid();
    QCOMPARE(lane.size(), std::size_t{100});
    QCOMPARE(grown.size(), std::size_t{101});
    QCOMPARE(grown.spanOf(100), SpanId{100});
}

void TestTimelineScale::theOverviewIsTheBusyShare()
{
    const std::string path = m_folder.filePath(QStringLiteral("overview.stagewright")).toStdString();
    QVERIFY(samples::recordRun(path, {4, 32, 60}).has_value());
    const auto file = RunFile::open(path, OpenMode::Read).value();
    const auto content = file->content(1).value();
    const auto overview = overviewPanel(content, file->steps(1).value(),
                                        file->overview(1, overviewBuckets(content), Lane::Compute).value(), {});
    const auto exact = makePanel(file->read(1).value().timeline);
    QVERIFY(overview->overview);
    QCOMPARE(overview->duration, exact->duration);
    QCOMPARE(overview->steps.size(), std::size_t{60});
    LaneColumns a, b;
    const Axis axis{{0, exact->duration}, 0, 60};
    for (std::size_t rank = 0; rank < exact->ranks.size(); ++rank) {
        QVERIFY(overview->ranks[rank].compute.isOverview());
        QVERIFY(std::abs(overview->ranks[rank].busyFraction - exact->ranks[rank].busyFraction) < 0.01);
        RasterOptions options;
        rasterLane(overview->ranks[rank].compute, axis, options, a);
        options.sumsOnly = true;
        rasterLane(exact->ranks[rank].compute, axis, options, b);
        QCOMPARE(a.shares.size(), b.sums.size());
        for (std::size_t c = 0; c < b.sums.size(); ++c) {
            double coarse = 0, fine = 0;
            for (const double share : columnShares(a, c)) coarse += share;
            for (const double share : columnShares(b, c)) fine += share;
            QVERIFY2(std::abs(coarse - fine) < 0.2,
                     qPrintable(QStringLiteral("column %1: %2 and %3").arg(c).arg(coarse).arg(fine)));
        }
    }
}

void TestTimelineScale::pansMovePixels_data()
{
    QTest::addColumn<double>("rowHeight");
    QTest::addColumn<int>("perPixel"); // ns
    QTest::addColumn<bool>("draft");
    QTest::addColumn<double>("ratio");
    for (const double ratio : {1.0, 2.0})
        for (const bool draft : {false, true})
            for (const double rowHeight : {48.0, 20.0, 5.0})
                for (const int perPixel : {1200, 9001, 60'000, 700'001})
                    QTest::addRow("rows of %g px, %d ns a px, %s, ratio %g", rowHeight, perPixel,
                                  draft ? "draft" : "exact", ratio)
                        << rowHeight << perPixel << draft << ratio;
}

void TestTimelineScale::pansMovePixels()
{
    QFETCH(double, rowHeight);
    QFETCH(int, perPixel);
    QFETCH(bool, draft);
    QFETCH(double, ratio);
    static const auto panel = randomPanel(12, 6000, 100'000, 11);
    const double axisWidth = 900 - gutterWidth - rightMargin;
    const Nanos duration = static_cast<Nanos>(perPixel) * static_cast<Nanos>(axisWidth * ratio);
    const Nanos begin = panel->duration / 3;
    TimelineScene scene = sceneOf(panel, rowHeight, {begin, begin + duration});
    const Detail detail = draft ? Detail::Draft : Detail::Exact;
    TimelineCanvas canvas{frameImage(scene, Theme::light(), ratio, detail), detail, scene.axis};
    int moved = 0;
    for (const int by : {16, -16, 1, 40, -3, -70, 16, 7}) {
        TimeRange& range = scene.axis.range;
        range = {range.begin + by * perPixel, range.end + by * perPixel};
        const bool panned = panFrame(canvas, scene, Theme::light(), ratio);
        const QImage fresh = frameImage(scene, Theme::light(), ratio, detail);
        if (!panned) {
            canvas = {fresh, detail, scene.axis};
            continue;
        }
        ++moved;
        QCOMPARE(canvas.image.size(), fresh.size());
        for (int y = 0; y < fresh.height(); ++y)
            for (int x = 0; x < fresh.width(); ++x)
                if (canvas.image.pixel(x, y) != fresh.pixel(x, y))
                    QFAIL(qPrintable(
                        QStringLiteral("pan by %1, pixel %2, %3: %4 moved, %5 fresh")
                            .arg(by)
                            .arg(x)
                            .arg(y)
                            .arg(QColor(canvas.image.pixel(x, y)).name(), QColor(fresh.pixel(x, y)).name())));
    }
    // zoomed in, wide slices make moving useless
    if (perPixel >= 9001) QVERIFY2(moved >= 6, qPrintable(QString::number(moved)));
}

// Rows without room for an outline are written as pixel rectangles; a painter without pixels draws the same picture.
void TestTimelineScale::thinRowsAreTheSameByEveryPainter()
{
    const auto panel = randomPanel(40, 3000, 100'000, 5);
    for (const double ratio : {1.0, 2.0}) {
        TimelineScene scene = sceneOf(panel, 5, {panel->duration / 3, panel->duration / 3 + 8'000'000});
        const QImage written = frameImage(scene, Theme::light(), ratio, Detail::Exact);
        QImage drawn(written.size(), QImage::Format_RGB32);
        drawn.setDevicePixelRatio(ratio);
        QPainter painter(&drawn);
        paintFrame(painter, scene, Theme::light(), Detail::Exact);
        painter.end();
        int differ = 0, coloured = 0;
        const auto area = QRectF(scene.axis.left + 1, rulerHeight + 1, scene.axis.width - 2, 200);
        for (int y = static_cast<int>(area.top() * ratio); y < area.bottom() * ratio; ++y)
            for (int x = static_cast<int>(area.left() * ratio); x < area.right() * ratio; ++x) {
                differ += written.pixel(x, y) != drawn.pixel(x, y) ? 1 : 0;
                coloured += written.pixel(x, y) != Theme::light().canvas.rgb() &&
                                    written.pixel(x, y) != Theme::light().bubbleFill.rgb()
                                ? 1
                                : 0;
            }
        const double pixels = area.width() * area.height() * ratio * ratio;
        QVERIFY2(coloured > pixels / 4, qPrintable(QStringLiteral("%1 of %2").arg(coloured).arg(pixels)));
        // edges on half pixels
        QVERIFY2(differ < pixels / 200, qPrintable(QStringLiteral("%1 of %2 differ").arg(differ).arg(pixels)));
    }
}

void TestTimelineScale::pansKeepWholePixels()
{
    const double axisWidth = 732;
    TimeRange range{1'234'567, 1'234'567 + 98'765'432};
    const TimeRange first = pannedBy(range, 16, axisWidth, 1);
    QCOMPARE(first.duration() % 732, Nanos{0});
    QVERIFY(std::abs(static_cast<double>(first.duration()) / static_cast<double>(range.duration()) - 1) < 1e-3);
    const TimeRange second = pannedBy(first, -16, axisWidth, 1);
    QCOMPARE(second.duration(), first.duration());
    QCOMPARE(second.begin, first.begin - 16 * (first.duration() / 732));
    const TimeRange close{0, 7320}; // ten ns per pixel: unchanged
    QCOMPARE(pannedBy(close, 5, axisWidth, 1).duration(), close.duration());
    QCOMPARE(pannedBy(close, 5, axisWidth, 1).begin, Nanos{50});
}

namespace {

// `lanes` × `perLane` ops of 100 µs with a gap behind every fourth.
std::shared_ptr<const TimelinePanel> evenPanel(int lanes, int perLane)
{
    auto panel = std::make_shared<TimelinePanel>();
    TimelineBuilder builder(Provenance::Simulated, "model", lanes);
    panel->timeline = builder.build().value();
    for (int r = 0; r < lanes; ++r) {
        PanelRank rank;
        rank.rank = r;
        rank.compute.reserve(static_cast<std::size_t>(perLane));
        Span span;
        for (int i = 0; i < perLane; ++i) {
            span.start = i * Nanos(100'000);
            span.end = span.start + (i % 4 == 3 ? 30'000 : 100'000);
            span.op = makeOp(i % 2 == 0 ? OpKind::Forward : OpKind::Backward, r, i % 64);
            rank.compute.appendLoose(span, 0);
        }
        rank.compute.buildPyramid();
        panel->ranks.push_back(std::move(rank));
    }
    panel->duration = perLane * Nanos(100'000);
    return panel;
}

} // namespace

// Ten million slices against a hundred thousand in as many rows: a draft frame is painted from a few buckets a column.
void TestTimelineScale::framesCostPixelsNotSlices()
{
    for (const int perLane : {12'500, 1'250'000}) {
        const auto panel = evenPanel(8, perLane);
        const TimelineScene scene = sceneOf(panel, 40, {0, panel->duration});
        QVERIFY(!frameImage(scene, Theme::light(), 1, Detail::Draft).isNull());
        RasterOptions options;
        options.detail = Detail::Draft;
        LaneColumns columns;
        std::size_t read = 0;
        for (const PanelRank& rank : panel->ranks) {
            rasterLane(rank.compute, scene.axis, options, columns);
            read += columns.read;
        }
        const auto most = static_cast<std::size_t>(20 * scene.axis.width) * panel->ranks.size();
        QVERIFY2(read > 0 && read <= most, qPrintable(QStringLiteral("%1 of at most %2").arg(read).arg(most)));
    }
}

// The pointer finds a slice, however coarse the picture.
void TestTimelineScale::draftsAreHitExactly()
{
    TimelineBuilder builder(Provenance::Simulated, "model", 1);
    const int track = builder.addTrack(0, Lane::Compute);
    Span span;
    for (int i = 0; i < 50'000; ++i) {
        span.start = i * Nanos(1000);
        span.end = span.start + 900;
        span.op = makeOp(OpKind::Forward, 0, i);
        builder.addSpan(track, span);
    }
    PanelOptions options;
    options.causes = false;
    const auto panel = makePanel(builder.build().value(), options);
    const TimelineScene scene = sceneOf(panel, 40, {0, panel->duration});
    for (const double x : {200.0, 333.25, 700.5}) {
        const Nanos time = scene.axis.toTime(x);
        const SpanRef ref = scene.spanAt({x, scene.rowTop(0) + 10});
        QVERIFY(ref.valid());
        const Span& found = panel->timeline->spans()[ref.span];
        QVERIFY(std::abs(found.start + 450 - time) <= 1000);
    }
}

QTEST_MAIN(TestTimelineScale)
#include "tst_timeline_scale.moc"
