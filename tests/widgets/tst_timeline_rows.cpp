// Rows of the timeline: groups, pinned and folded ranks, sub-lanes, several steps, and the table of a selected area.
#include <QApplication>
#include <QSignalSpy>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QTest>

#include <functional>

#include "sample_timelines.h"
#include "widgets/table_copy.h"
#include "widgets/timeline/aggregation_panel.h"
#include "widgets/timeline/duration_bars.h"
#include "widgets/timeline/lane_painter.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;
using samples::Piece;

namespace {

// Rank r is busy for (r % 10 + 1) × 10 % of the 10,000 ns.
std::shared_ptr<const Timeline> manyRanks(int ranks)
{
    std::vector<std::vector<Piece>> pieces(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) {
        pieces[static_cast<std::size_t>(r)].push_back({0, 1000 * (r % 10 + 1), OpKind::Forward, r % 7});
        pieces[static_cast<std::size_t>(r)].push_back({10'000, 10'001, OpKind::WeightGrad, 0});
    }
    return samples::written(pieces);
}

// A forward with kernels under it, each launched by it and all overlapping; a copy, and a kernel that names no op.
std::shared_ptr<const Timeline> withKernels(int kernels)
{
    TimelineBuilder builder(Provenance::Imported, "wall", 2);
    std::vector<SpanId> ops;
    for (int rank = 0; rank < 2; ++rank) {
        Span op;
        op.start = 0;
        op.end = 100'000;
        op.op = makeOp(OpKind::InputGrad, rank, 3);
        ops.push_back(builder.addSpan(builder.addTrack(rank, Lane::Compute), op));
    }
    const int track = builder.addTrack(0, Lane::Kernel);
    for (int i = 0; i < kernels; ++i) {
        Span kernel;
        kernel.start = 10'000 + i * 100;
        kernel.end = 90'000 - i * 100;
        kernel.label = builder.intern("void gemm_" + std::to_string(i) + "<float, 128>(int, float*)");
        builder.addEdge(ops[0], builder.addSpan(track, kernel), EdgeKind::Launch, kernel.start);
    }
    Span copy;
    copy.start = 95'000;
    copy.end = 99'000;
    copy.label = builder.intern("memcpy");
    builder.addSpan(builder.addTrack(0, Lane::Copy), copy);
    Span wait;
    wait.start = 5'000;
    wait.end = 9'000;
    wait.op = makeOp(OpKind::RecvF, 0, 3);
    builder.addSpan(builder.addTrack(0, Lane::Wait), wait);
    return *builder.build();
}

// Three steps of 1 µs, 0.2 µs apart, beginning at 5 µs.
std::shared_ptr<const Timeline> threeSteps()
{
    TimelineBuilder builder(Provenance::Imported, "wall", 2);
    for (int rank = 0; rank < 2; ++rank) {
        const int track = builder.addTrack(rank, Lane::Compute);
        for (int step = 0; step < 3; ++step) {
            Span span;
            span.start = 5000 + step * 1200;
            span.end = span.start + 1000;
            span.step = step;
            span.op = makeOp(OpKind::Forward, rank, 0);
            builder.addSpan(track, span);
        }
    }
    return *builder.build();
}

} // namespace

class TestTimelineRows : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void init();
    void cleanup();
    void groupsByCount_data();
    void groupsByCount();
    void groupsByStageAndBusyTime();
    void groupsByHostAndDimension();
    void everyRankHasOneRowAndPosition();
    void groupColumnsAreTheMean();
    void thousandRanksAreReadable();
    void groupsOpenInPlace();
    void pinnedRanksStay_data();
    void pinnedRanksStay();
    void foldedRanksAreThin();
    void tracksHideByRank();
    void kernelsStandUnderTheirOp();
    void fiftyKernelsNeverOverlap_data();
    void fiftyKernelsNeverOverlap();
    void namesAreBrief();
    void areasOutliveFolding();
    void gutterByKeysAndMouse();
    void menusAsk();
    void stepsOnOneAxis();
    void timesAsChosen();
    void tableAddsUp();
    void durationsAreExact();
    void tableSortsAndCopies();
    void emptyAndTiny();

private:
    void setRows(const std::function<void(RowSettings&)>& change);
    int rowOfRank(int rank) const { return m_view->scene().rows.rowOf(0, rank); }
    QImage painted(double ratio, const Theme& theme) const;

    std::unique_ptr<ViewState> m_state;
    std::unique_ptr<TimelineView> m_view;
};

void TestTimelineRows::initTestCase() { QCOMPARE(loadFonts(), QStringLiteral("Inter")); }

void TestTimelineRows::init()
{
    m_state = std::make_unique<ViewState>();
    m_view = std::make_unique<TimelineView>(m_state.get());
    m_view->resize(1284, 400);
    m_view->show();
    QVERIFY(QTest::qWaitForWindowExposed(m_view.get()));
}

void TestTimelineRows::cleanup()
{
    setTimeUnit(TimeUnit::Automatic);
    m_view.reset();
    m_state.reset();
}

void TestTimelineRows::setRows(const std::function<void(RowSettings&)>& change)
{
    RowSettings rows = m_state->rows();
    change(rows);
    m_state->setRows(rows);
}

QImage TestTimelineRows::painted(double ratio, const Theme& theme) const
{
    QImage image((QSizeF(m_view->size()) * ratio).toSize(), QImage::Format_RGB32);
    image.setDevicePixelRatio(ratio);
    QPainter painter(&image);
    m_view->paintTo(painter, QRectF(m_view->rect()), theme);
    return image;
}

void TestTimelineRows::groupsByCount_data()
{
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("groups");
    QTest::addColumn<int>("size");
    QTest::newRow("few") << 64 << 0 << 0;
    QTest::newRow("65") << 65 << 9 << 8; // the last rank is alone: no group of one
    QTest::newRow("256") << 256 << 32 << 8;
    QTest::newRow("1024") << 1024 << 32 << 32;
    QTest::newRow("4000") << 4000 << 32 << 128;
}

void TestTimelineRows::groupsByCount()
{
    QFETCH(int, ranks);
    QFETCH(int, groups);
    QFETCH(int, size);
    const RowPlan plan = planRows({makePanel(manyRanks(ranks))}, {});
    QCOMPARE(static_cast<int>(plan.groups[0].size()) + (ranks == 65 ? 1 : 0), groups);
    if (groups == 0) {
        QCOMPARE(static_cast<int>(plan.items.size()), ranks);
        return;
    }
    QCOMPARE(static_cast<int>(plan.groups[0][0].ranks.size()), size);
    QCOMPARE(plan.groups[0][1].title, QStringLiteral("%1–%2").arg(size).arg(2 * size - 1));
    QCOMPARE(static_cast<int>(plan.items.size()), groups);
}

void TestTimelineRows::groupsByStageAndBusyTime()
{
    // Four stages, each run by three ranks.
    TimelineBuilder builder(Provenance::Imported, "wall", 12);
    for (int rank = 0; rank < 12; ++rank) {
        Span span;
        span.end = rank == 7 ? 400 : 1000; // one idles more than the others
        span.op = makeOp(OpKind::Forward, rank % 4, 0);
        builder.addSpan(builder.addTrack(rank, Lane::Compute), span);
    }
    const auto panel = makePanel(*builder.build());
    RowSettings rows;
    rows.grouping = Grouping::Stage;
    const RowPlan byStage = planRows({panel}, rows);
    QCOMPARE(byStage.groups[0].size(), std::size_t(4));
    QCOMPARE(byStage.groups[0][1].ranks, (std::vector<int>{1, 5, 9}));
    QCOMPARE(byStage.groups[0][1].title, QStringLiteral("stage 1"));
    rows.grouping = Grouping::Busy;
    const RowPlan byBusy = planRows({panel}, rows);
    QCOMPARE(byBusy.groups[0].size(), std::size_t(1)); // the idle one is alone and first
    QCOMPARE(byBusy.items[0].kind, RowKind::Rank);
    QCOMPARE(byBusy.items[0].rankIndex, 7);
    QCOMPARE(byBusy.groups[0][0].ranks.size(), std::size_t(11));
}

// Eight ranks on two hosts; those of one pipeline stage are on both.
void TestTimelineRows::groupsByHostAndDimension()
{
    const auto timeline = manyRanks(8);
    PanelOptions options;
    options.places.resize(8);
    for (int rank = 0; rank < 8; ++rank) {
        RankPlace& place = options.places[static_cast<std::size_t>(rank)];
        place.host = rank < 4 ? "gpu-01" : "gpu-02";
        place.place[static_cast<std::size_t>(ParallelDimension::Pipeline)] = rank % 4;
        if (rank != 7) place.place[static_cast<std::size_t>(ParallelDimension::Data)] = rank / 4;
    }
    const auto panel = makePanel(timeline, options);
    RowSettings rows;
    rows.grouping = Grouping::Host;
    const RowPlan byHost = planRows({panel}, rows);
    QCOMPARE(byHost.groups[0].size(), std::size_t(2));
    QCOMPARE(byHost.groups[0][1].title, QStringLiteral("gpu-02"));
    QCOMPARE(byHost.groups[0][1].ranks, (std::vector<int>{4, 5, 6, 7}));
    rows.grouping = Grouping::Pipeline;
    const RowPlan byPipeline = planRows({panel}, rows);
    QCOMPARE(byPipeline.groups[0].size(), std::size_t(4));
    QCOMPARE(byPipeline.groups[0][3].title, QStringLiteral("pipeline 3"));
    QCOMPARE(byPipeline.groups[0][3].ranks, (std::vector<int>{3, 7}));
    rows.grouping = Grouping::Data;
    const RowPlan byData = planRows({panel}, rows); // the rank of unknown place is last, alone
    QCOMPARE(byData.groups[0].size(), std::size_t(2));
    QCOMPARE(byData.items.back().kind, RowKind::Rank);
    QCOMPARE(byData.items.back().rankIndex, 7);
    for (const Grouping unknown : {Grouping::Tensor, Grouping::Expert, Grouping::Context}) {
        QVERIFY(!canGroup(*panel, unknown));
        rows.grouping = unknown;
        QCOMPARE(planRows({panel}, rows).items.size(), std::size_t(8));
    }
    QVERIFY(canGroup(*panel, Grouping::Host) && !canGroup(*makePanel(timeline), Grouping::Host));
}

void TestTimelineRows::everyRankHasOneRowAndPosition()
{
    const auto panel = makePanel(manyRanks(200));
    for (const Grouping grouping : {Grouping::Automatic, Grouping::None, Grouping::Count, Grouping::Stage,
                                    Grouping::Busy, Grouping::Host, Grouping::Tensor}) {
        RowSettings rows;
        rows.grouping = grouping;
        rows.pinned = {3, 150};
        rows.expanded = {8};
        const RowPlan plan = planRows({panel, panel}, rows);
        QCOMPARE(plan.pinned, 4); // of each panel
        std::vector<int> positions;
        for (std::size_t p = 0; p < 2; ++p) {
            for (int rank = 0; rank < 200; ++rank) {
                const int item = plan.itemOf[p][static_cast<std::size_t>(rank)];
                QVERIFY(item >= 0 && item < static_cast<int>(plan.items.size()));
                QCOMPARE(plan.items[static_cast<std::size_t>(item)].panel, static_cast<int>(p));
                QCOMPARE(item < plan.pinned, rank == 3 || rank == 150);
                const int position = plan.positionOf[p][static_cast<std::size_t>(rank)];
                QCOMPARE(plan.rankAt[static_cast<std::size_t>(position)], std::pair(static_cast<int>(p), rank));
                QVERIFY(plan.items[static_cast<std::size_t>(item)].firstPosition <= position &&
                        plan.items[static_cast<std::size_t>(item)].lastPosition >= position);
                positions.push_back(position);
            }
        }
        std::sort(positions.begin(), positions.end());
        for (std::size_t i = 0; i < positions.size(); ++i) QCOMPARE(positions[i], static_cast<int>(i));
    }
}

// In every column: the ranks' busy time ÷ ranks; minimum and maximum over them.
void TestTimelineRows::groupColumnsAreTheMean()
{
    const auto panel = makePanel(manyRanks(10));
    RankGroup group;
    for (int rank = 0; rank < 10; ++rank) group.ranks.push_back(rank);
    GroupColumns columns;
    groupColumns(*panel, group, Axis{{0, 10'000}, 0, 100}, Detail::Exact, columns);
    QCOMPARE(columns.mean.shares.size(), std::size_t(100));
    for (std::size_t c = 0; c < 100; ++c) {
        const std::size_t working = 10 - c / 10; // of the ten ranks
        const double share = static_cast<double>(columns.mean.shares[c][0]);
        QVERIFY2(std::abs(share - static_cast<double>(working) / 10) < 1e-4,
                 qPrintable(QStringLiteral("column %1: %2").arg(c).arg(share)));
        QVERIFY(std::abs(static_cast<double>(columns.most[c]) - 1) < 0.01);
        QVERIFY(std::abs(static_cast<double>(columns.least[c]) - (c < 10 ? 1 : 0)) < 0.01);
    }
}

void TestTimelineRows::thousandRanksAreReadable()
{
    m_view->resize(1284, 900);
    m_view->setRun(manyRanks(1024));
    QCOMPARE(m_view->scene().rows.rows.size(), std::size_t(32));
    QVERIFY(m_view->scene().contentHeight() <= 900); // all in view at once
    QVERIFY(m_view->statusText().contains(QStringLiteral("1024 ranks")));
    for (const Theme* theme : {&Theme::light(), &Theme::darkTheme()}) {
        for (const double ratio : {1.0, 1.5, 2.0}) {
            const QImage image = painted(ratio, *theme);
            const RowPlace& row = m_view->scene().rows.rows[5];
            const double y = rulerHeight + row.top;
            const auto pixel = [&](Nanos t, double at) {
                return image.pixelColor(static_cast<int>(m_view->scene().axis.toX(t) * ratio),
                                        static_cast<int>((y + at) * ratio));
            };
            QCOMPARE(pixel(500, row.height - 2), theme->of(OpKind::Forward).fill); // at the start all work
            QCOMPARE(pixel(500, 2), theme->of(OpKind::Forward).fill);
            QCOMPARE(pixel(9500, row.height - 1.2), theme->of(OpKind::Forward).fill); // at the end 10 % of them
            QVERIFY(pixel(9500, 4) != theme->of(OpKind::Forward).fill);
        }
    }
    // The other look marks the busiest rank at the top everywhere.
    setRows([](RowSettings& rows) { rows.look = GroupLook::Range; });
    QVERIFY(painted(1, Theme::light()) != QImage());
}

void TestTimelineRows::groupsOpenInPlace()
{
    m_view->setRun(manyRanks(1024));
    QSignalSpy laidOut(m_view.get(), &TimelineView::rowsLaidOut);
    const double before = m_view->scene().rows.rows[2].top;
    toggleGroup(*m_state, m_view->scene(), 2);
    QCOMPARE(laidOut.count(), 1);
    QCOMPARE(m_view->scene().rows.rows.size(), std::size_t(64));
    QCOMPARE(m_view->scene().rows.rows[2].top, before); // it stays where it was
    QCOMPARE(m_view->scene().rows.rows[3].kind, RowKind::Rank);
    QCOMPARE(m_view->scene().rows.rows[3].rankIndex, 64);
    // An op in a folded group comes into view by opening it.
    const SpanRef ref{0, samples::spanOf(*m_view->panels()[0]->timeline, "500F3")};
    QVERIFY(ref.span != noSpan);
    QCOMPARE(m_view->scene().rows.rows[static_cast<std::size_t>(rowOfRank(500))].kind, RowKind::Group);
    m_view->selection().show(ref);
    QCOMPARE(m_view->scene().rows.rows[static_cast<std::size_t>(rowOfRank(500))].kind, RowKind::Rank);
    const auto rect = m_view->rectOf(ref);
    QVERIFY(rect && QRectF(m_view->rect()).contains(rect->center()));
    QCOMPARE(m_view->scene().spanAt(QPointF(rect->left() + 5, rect->center().y())), ref);
}

void TestTimelineRows::pinnedRanksStay_data()
{
    QTest::addColumn<double>("ratio");
    QTest::addColumn<bool>("dark");
    for (const double ratio : {1.0, 1.5, 2.0}) {
        for (const bool dark : {false, true}) QTest::addRow("%g %s", ratio, dark ? "dark" : "light") << ratio << dark;
    }
}

void TestTimelineRows::pinnedRanksStay()
{
    QFETCH(double, ratio);
    QFETCH(bool, dark);
    const Theme& theme = Theme::named(dark);
    m_view->setRun(manyRanks(40));
    setRows([](RowSettings& rows) { rows.pinned = {9}; });
    QCOMPARE(m_view->scene().rows.pinned, 1);
    const SpanRef pinned{0, samples::spanOf(*m_view->panels()[0]->timeline, "9F2")};
    const auto before = m_view->rectOf(pinned);
    QVERIFY(before);
    for (const double scroll : {0.0, 300.0, 1e6}) {
        m_view->setScrollTop(scroll);
        QCOMPARE(m_view->rectOf(pinned), before);
        const QImage image = painted(ratio, theme);
        const QPointF probe(m_view->scene().axis.toX(9500),
                            before->top() + 6); // where only rank 9 (and 19, 29 …) works
        QCOMPARE(image.pixelColor((probe * ratio).toPoint()), theme.of(OpKind::Forward).fill);
        QCOMPARE(m_view->scene().spanAt(probe), pinned);
        // Scrolling rows don't show through above the line.
        QCOMPARE(
            image.pixelColor((QPointF(m_view->scene().axis.toX(9500), before->bottom() + 6) * ratio).toPoint()).rgb() ==
                theme.of(OpKind::Forward).fill.rgb(),
            false);
    }
    // The other ranks keep their order, and the last one can be scrolled to.
    m_view->setScrollTop(1e6);
    const SpanRef last{0, samples::spanOf(*m_view->panels()[0]->timeline, "39F4")};
    const auto lastRect = m_view->rectOf(last);
    QVERIFY(lastRect && lastRect->bottom() < m_view->height() && lastRect->top() > before->bottom());
}

void TestTimelineRows::foldedRanksAreThin()
{
    m_view->setRun(samples::simulated("1f1b"));
    const double whole = m_view->scene().rows.height;
    setRows([](RowSettings& rows) { rows.collapsed = {1}; });
    const RowPlace& row = m_view->scene().rows.rows[1];
    QCOMPARE(row.kind, RowKind::Collapsed);
    QVERIFY(row.height < 8 && row.track == 0);
    QVERIFY(m_view->scene().rows.height < whole - 40);
    const SpanRef ref{0, samples::spanOf(*m_view->panels()[0]->timeline, "1F2")};
    const auto rect = m_view->rectOf(ref);
    QVERIFY(rect);
    QCOMPARE(m_view->scene().spanAt(rect->center()), ref);
    const QImage image = painted(1, Theme::light());
    QCOMPARE(image.pixelColor(rect->center().toPoint()), Theme::light().of(OpKind::Forward).fill);
}

void TestTimelineRows::tracksHideByRank()
{
    m_view->setRun(samples::simulated("1f1b"));
    QVERIFY(m_view->scene().rows.rows[2].track > 0);
    setRows([](RowSettings& rows) { rows.trackless = {2}; });
    QCOMPARE(m_view->scene().rows.rows[2].track, 0.0);
    QVERIFY(m_view->scene().rows.rows[1].track > 0);
    m_state->setShows({.communication = false});
    QCOMPARE(m_view->scene().rows.rows[1].track, 0.0);
}

void TestTimelineRows::kernelsStandUnderTheirOp()
{
    m_view->setRun(withKernels(3));
    const auto& panel = *m_view->panels()[0];
    QCOMPARE(panel.ranks[0].lanes.size(), std::size_t(5)); // three kernels, a copy, a wait
    QCOMPARE(panel.ranks[0].workLanes(), 4);
    QCOMPARE(m_view->scene().rows.rows[0].lanes, 4); // waits are idle time: shown on request
    QCOMPARE(m_view->scene().rows.rows[1].lanes, 0);
    const Slice& kernel = panel.ranks[0].lanes[0].data.slices()[0];
    QCOMPARE(kernel.opKind(), OpKind::InputGrad); // of the op that launched it
    QCOMPARE(kernel.microbatchOr(-1), 3);
    const SpanRef ref{0, panel.ranks[0].lanes[1].data.spanOf(0)};
    const auto rect = m_view->rectOf(ref);
    const auto op = m_view->rectOf({0, panel.ranks[0].compute.spanOf(0)});
    QVERIFY(rect && op && rect->top() > op->bottom() && rect->left() >= op->left() && rect->right() <= op->right());
    QCOMPARE(m_view->scene().spanAt(rect->center()), ref);
    QVERIFY2(m_view->cardOf(ref).plain().contains(QStringLiteral("Launched by: 0I3")),
             qPrintable(m_view->cardOf(ref).plain()));
    setRows([](RowSettings& rows) { rows.waits = true; });
    QCOMPARE(m_view->scene().rows.rows[0].lanes, 5);
    setRows([](RowSettings& rows) { rows.lanes = false; });
    QCOMPARE(m_view->scene().rows.rows[0].lanes, 1);
    QCOMPARE(m_view->scene().rows.rows[0].firstLane, 4);
    QVERIFY(!m_view->rectOf(ref));
}

void TestTimelineRows::fiftyKernelsNeverOverlap_data() { pinnedRanksStay_data(); }

void TestTimelineRows::fiftyKernelsNeverOverlap()
{
    QFETCH(double, ratio);
    QFETCH(bool, dark);
    const Theme& theme = Theme::named(dark);
    m_view->resize(1284, 500);
    m_view->setRun(withKernels(50));
    const auto& rank = m_view->panels()[0]->ranks[0];
    QCOMPARE(m_view->scene().rows.rows[0].lanes, 51);
    const QImage image = painted(ratio, theme);
    std::vector<QRectF> rects;
    for (const PanelLane& lane : rank.lanes) {
        if (lane.lane != Lane::Kernel) continue;
        const SpanRef ref{0, lane.data.spanOf(0)};
        const auto rect = m_view->rectOf(ref);
        QVERIFY(rect);
        for (const QRectF& other : rects) QVERIFY(!rect->intersects(other));
        rects.push_back(*rect);
        QCOMPARE(m_view->scene().spanAt(rect->center()), ref);
        QCOMPARE(image.pixelColor(static_cast<int>(rect->center().x() * ratio),
                                  static_cast<int>(rect->center().y() * ratio)),
                 theme.of(OpKind::InputGrad).fill);
    }
    QCOMPARE(rects.size(), std::size_t(50));
    QVERIFY(m_view->scene().rows.rows[1].top >= m_view->scene().rows.rows[0].bottom());
}

void TestTimelineRows::namesAreBrief()
{
    const auto timeline = withKernels(1);
    const auto track = std::find_if(timeline->tracks().begin(), timeline->tracks().end(),
                                    [](const Track& one) { return one.lane == Lane::Kernel; });
    QVERIFY(track != timeline->tracks().end());
    QCOMPARE(nameOfWork(*timeline, track->begin),
             QString::fromStdString(briefKernelName(timeline->nameOf(timeline->spans()[track->begin]))));
}

void TestTimelineRows::areasOutliveFolding()
{
    m_view->setRun(manyRanks(1024));
    toggleGroup(*m_state, m_view->scene(), 0);
    m_state->setAreas({{{0, 5000}, 3, 5}}); // ranks 3, 4, 5
    const Aggregation open = m_view->selection().aggregation();
    QCOMPARE(open.rows, 3);
    QCOMPARE(open.busy, Nanos(4000 + 5000 + 5000));
    toggleGroup(*m_state, m_view->scene(), 0);
    QCOMPARE(m_state->areas().size(), std::size_t(1));
    QCOMPARE(m_view->selection().aggregation().busy, open.busy);
    QCOMPARE(m_view->rowCursor().chosenRanks(), (std::vector<int>{3, 4, 5}));
    setRows([](RowSettings& rows) { rows.pinned = {4}; });
    QCOMPARE(m_view->selection().aggregation().busy, open.busy);
    setRows([](RowSettings& rows) { rows.grouping = Grouping::Busy; }); // other ranks would be under it
    QVERIFY(m_state->areas().empty());
}

void TestTimelineRows::gutterByKeysAndMouse()
{
    m_view->setRun(manyRanks(1024));
    m_view->setFocus();
    QCOMPARE(m_view->rowCursor().row(), -1);
    m_view->rowCursor().move(1);
    QCOMPARE(m_view->rowCursor().row(), 0);
    m_view->rowCursor().move(1);
    m_view->rowCursor().move(-5);
    QCOMPARE(m_view->rowCursor().row(), 0);
    QVERIFY2(rowText(m_view->scene(), 0).contains(QStringLiteral("Ranks 0–31")) &&
                 rowText(m_view->scene(), 0).contains(QStringLiteral("folded")),
             qPrintable(rowText(m_view->scene(), 0)));
    QCOMPARE(m_view->rowCursor().chosenRanks().size(), std::size_t(32));
    QTest::mouseClick(m_view.get(), Qt::LeftButton, {},
                      QPoint(40, static_cast<int>(rulerHeight + m_view->scene().rows.rows[1].top + 5)));
    QCOMPARE(m_view->scene().rows.rows.size(), std::size_t(63 + 1)); // the second group is open
    QCOMPARE(m_view->rowCursor().row(), 1);
    QVERIFY(rowText(m_view->scene(), 1).contains(QStringLiteral("open")));
    // A double click on a rank's gutter folds it, another opens it again.
    const int row = rowOfRank(33);
    const QPoint at(40,
                    static_cast<int>(rulerHeight + m_view->scene().rows.rows[static_cast<std::size_t>(row)].top + 3));
    QTest::mouseDClick(m_view.get(), Qt::LeftButton, {}, at);
    QCOMPARE(m_state->rows().collapsed, std::set<int>{33});
    QTest::mouseDClick(m_view.get(), Qt::LeftButton, {}, at);
    QVERIFY(m_state->rows().collapsed.empty());
    // So does one click on its triangle.
    const QPoint triangle(8, at.y());
    QTest::mouseMove(m_view.get(), triangle);
    QTest::mouseClick(m_view.get(), Qt::LeftButton, {}, triangle);
    QCOMPARE(m_state->rows().collapsed, std::set<int>{33});
    QTest::mouseClick(m_view.get(), Qt::LeftButton, {}, triangle);
    QVERIFY(m_state->rows().collapsed.empty());
}

void TestTimelineRows::menusAsk()
{
    m_view->setRun(samples::simulated("1f1b"));
    QSignalSpy rows(&m_view->input(), &TimelineInput::rowMenuAsked),
        gaps(&m_view->input(), &TimelineInput::gapMenuAsked), ops(&m_view->input(), &TimelineInput::contextMenuAsked);
    const auto ask = [&](QPoint at) {
        QContextMenuEvent event(QContextMenuEvent::Mouse, at, m_view->mapToGlobal(at));
        QCoreApplication::sendEvent(m_view.get(), &event);
    };
    const int y = static_cast<int>(rulerHeight + m_view->scene().rows.rows[1].top + 20);
    ask({30, y});
    QCOMPARE(rows.count(), 1);
    QCOMPARE(m_view->rowCursor().row(), 1);
    ask({static_cast<int>(m_view->scene().axis.toX(2'000'000)), y}); // rank 1 waits for its first op
    QCOMPARE(gaps.count(), 1);
    QCOMPARE(gaps[0][2].toInt(), 1);
    ask({static_cast<int>(m_view->scene().axis.toX(15'000'000)), y});
    QCOMPARE(ops.count(), 1);
    QVERIFY(ops[0][1].value<SpanRef>().valid());
}

void TestTimelineRows::stepsOnOneAxis()
{
    const auto timeline = threeSteps();
    PanelOptions all;
    const auto panel = makePanel(timeline, all);
    QCOMPARE(panel->steps.size(), std::size_t(3));
    QCOMPARE(panel->steps[1].begin, Nanos(1200));
    QCOMPARE(panel->duration, Nanos(3400));
    QCOMPARE(panel->shownTime(1300, TimeOrigin::Step), Nanos(100)); // from the start of step 2
    QCOMPARE(panel->shownTime(1300, TimeOrigin::Run), Nanos(1300));
    QCOMPARE(panel->ranks[0].compute.size(), std::size_t(3));
    PanelOptions part;
    part.firstStep = 1;
    part.lastStep = 2;
    const auto two = makePanel(timeline, part);
    QCOMPARE(two->steps.size(), std::size_t(2));
    QCOMPARE(two->ranks[1].compute.size(), std::size_t(2));
    QCOMPARE(two->ranks[1].compute.slices()[0].begin(), Nanos(0));
    QCOMPARE(two->duration, Nanos(2200));
    QCOMPARE(two->shownTime(0, TimeOrigin::Run), Nanos(1200));
    // Lines at the starts of the steps, at every ratio.
    m_view->setPanels({panel});
    for (const double ratio : {1.0, 1.5, 2.0}) {
        const QImage image = painted(ratio, Theme::light());
        for (const PanelStep& step : panel->steps) {
            const double x = std::round(m_view->scene().axis.toX(step.begin) * ratio) + 0.5;
            QCOMPARE(image.pixelColor(static_cast<int>(x), static_cast<int>((m_view->height() - 20) * ratio)),
                     Theme::light().secondary);
        }
    }
    // A single step has no line.
    m_view->setRun(timeline, {1, 0, QString()});
    const QImage image = painted(1, Theme::light());
    QVERIFY(image.pixelColor(static_cast<int>(m_view->scene().axis.toX(0)), m_view->height() - 20) !=
            Theme::light().secondary);
}

void TestTimelineRows::timesAsChosen()
{
    const auto timeline = threeSteps();
    m_view->setRun(timeline, {1, 0, QString()});
    const SpanRef ref{0, 1}; // the second op of rank 0
    QVERIFY(m_view->cardOf(ref).plain().contains(QStringLiteral("Start: 0 ns")));
    m_state->setTimeOrigin(TimeOrigin::Run);
    QVERIFY2(m_view->cardOf(ref).plain().contains(QStringLiteral("Start: 1.2")),
             qPrintable(m_view->cardOf(ref).plain()));
    setTimeUnit(TimeUnit::Nanoseconds);
    QVERIFY2(m_view->cardOf(ref).plain().contains(QStringLiteral("Start: 1200 ns")),
             qPrintable(m_view->cardOf(ref).plain()));
    QCOMPARE(durationText(1'234'567), QStringLiteral("1234567 ns"));
    setTimeUnit(TimeUnit::Seconds);
    QCOMPARE(durationText(1'234'567'890), QStringLiteral("1.23 s"));
    QCOMPARE(durationText(12'000), QStringLiteral("0.0000120 s"));
    QVERIFY(durationText(0).endsWith(QStringLiteral(" s")));
    // unit-cost work keeps its own
    QCOMPARE(durationText(3 * rankShare, Units{rankShare, 1}), QStringLiteral("3 units"));
}

// Ops (without transfers) and idle time of any area add up to ranks × range; grouping changes the rows, not the sums.
void TestTimelineRows::tableAddsUp()
{
    const auto panel = makePanel(samples::simulated("zb-h1"), {0, 0, QString()});
    const std::vector<AreaSelection> areas{{{15'000'000, 77'000'000}, 1, 3}};
    std::optional<Nanos> ops;
    for (const AggregateBy by : {AggregateBy::Kind, AggregateBy::Stage, AggregateBy::Microbatch, AggregateBy::Rank,
                                 AggregateBy::StageAndKind, AggregateBy::RankAndKind}) {
        const AggregateTable table = aggregateTable({panel}, areas, nullptr, by);
        QCOMPARE(table.ranks, 3);
        QCOMPARE(table.rankTime, Nanos(3 * 62'000'000));
        Nanos working = 0, idle = 0;
        std::int64_t count = 0;
        double share = 0;
        for (const AggregateLine& line : table.lines) {
            const DurationSpread& of = line.durations;
            QVERIFY(of.least <= line.mean() && line.mean() <= of.most && line.count > 0 && !line.name.isEmpty());
            std::int64_t bars = 0;
            for (const std::int64_t bar : of.bars) bars += bar;
            QCOMPARE(bars, line.count);
            QVERIFY(of.bars.front() > 0 && of.bars.back() > 0);
            QCOMPARE(of.begin(0), static_cast<double>(of.least));
            QCOMPARE(of.begin(of.bars.size()), static_cast<double>(of.most));
            QVERIFY(of.least <= of.median && of.median <= of.percentile95 && of.percentile95 <= of.most);
            QVERIFY(line.spread() <= of.most - of.least);
            if (line.what == AggregateLine::What::Ops) working += line.total, count += line.count;
            if (line.what == AggregateLine::What::Idle) idle += line.total;
            if (line.what != AggregateLine::What::Transfers) share += line.share;
        }
        QCOMPARE(working + idle, table.rankTime);
        QCOMPARE(count, table.ops);
        QVERIFY(std::abs(share - 1) < 1e-9);
        if (ops) QCOMPARE(working, *ops);
        ops = working;
    }
    const Aggregation sum = aggregate({panel}, areas);
    const AggregateTable table = aggregateTable({panel}, areas, nullptr, AggregateBy::Kind);
    for (const AggregateLine& line : table.lines) {
        if (line.what == AggregateLine::What::Ops)
            QCOMPARE(line.total, sum.timeByKind[static_cast<std::size_t>(*line.kind)]);
        if (line.what == AggregateLine::What::Idle) QCOMPARE(line.total, sum.idle);
    }
    // An op cut by the range counts in part.
    const AggregateTable cut = aggregateTable({panel}, {{{0, 4'000'000}, 0, 0}}, nullptr, AggregateBy::Kind);
    QCOMPARE(cut.lines[0].total, Nanos(4'000'000));
    QCOMPARE(cut.lines[0].durations.most, Nanos(4'000'000));
    QVERIFY(aggregateTable({panel}, {}, nullptr, AggregateBy::Kind).lines.empty());
}

// Figures are of the durations themselves, and the bars lie on the axis below them.
void TestTimelineRows::durationsAreExact()
{
    const DurationSpread few = DurationSpread::of({40, 10, 30, 20});
    QCOMPARE(few.median, Nanos(20)); // the lower of the two in the middle, as in reports
    QCOMPARE(few.percentile95, Nanos(40));
    QCOMPARE(few.bars, (std::vector<std::int64_t>{1, 1, 2})); // from 10, 20 and 30 on
    std::vector<Nanos> many;
    for (Nanos i = 1; i <= 100; ++i) many.push_back(1000 + i);
    const DurationSpread hundred = DurationSpread::of(many);
    QCOMPARE(hundred.median, Nanos(1050));
    QCOMPARE(hundred.percentile95, Nanos(1095));
    QCOMPARE(hundred.bars.size(), std::size_t{15});
    for (std::size_t bar = 0; bar < hundred.bars.size(); ++bar) { // each counts what lies between its ends
        const double begin = hundred.begin(bar), end = hundred.begin(bar + 1);
        const bool last = bar + 1 == hundred.bars.size();
        QCOMPARE(hundred.bars[bar], std::count_if(many.begin(), many.end(), [&](Nanos one) {
                     const auto at = static_cast<double>(one);
                     return at >= begin - 1e-6 && (last ? at <= end : at < end - 1e-6);
                 }));
    }
    const DurationSpread alike = DurationSpread::of({7, 7, 7});
    QCOMPARE(alike.bars, std::vector<std::int64_t>{3});
    QCOMPARE(alike.percentile95, Nanos(7));
    QVERIFY(DurationSpread::of({}).bars.empty());
    // painted over the whole width: the last bar ends where the longest duration is written
    AggregateLine line;
    line.name = QStringLiteral("ops");
    line.count = 4;
    line.durations = few;
    DurationBars bars;
    bars.resize(300, 140);
    bars.setLine(&line, {});
    QCOMPARE(bars.accessibleDescription(), QStringLiteral("median 20 ns, 95 %: at most 40 ns"));
    const QImage picture = bars.grab().toImage();
    const auto inked = [&](int x) {
        const int y = static_cast<int>((140 - 24) * picture.devicePixelRatio());
        const QColor at = picture.pixelColor(static_cast<int>(x * picture.devicePixelRatio()), y);
        return at == Theme::light().accent || at == Theme::light().bubbleHatch || at.lightness() < 200;
    };
    QVERIFY(inked(12) && inked(286)); // the first and the last of them
}

void TestTimelineRows::tableSortsAndCopies()
{
    AggregationPanel panel;
    panel.resize(800, 200);
    const auto shown = makePanel(samples::simulated("zb-h1"), {0, 0, QString()});
    panel.setAreas({shown}, {{{0, shown->duration}, 0, 3}}, nullptr);
    QVERIFY(panel.ready());
    QVERIFY(panel.isVisibleTo(nullptr));
    auto* model = panel.view()->model();
    QVERIFY(model->rowCount() >= 4);
    panel.view()->sortByColumn(2, Qt::DescendingOrder); // by total
    for (int row = 1; row < model->rowCount(); ++row)
        QVERIFY(model->index(row - 1, 2).data(Qt::UserRole).toLongLong() >=
                model->index(row, 2).data(Qt::UserRole).toLongLong());
    for (int column = 0; column < model->columnCount(); ++column)
        QVERIFY(!model->headerData(column, Qt::Horizontal, Qt::ToolTipRole).toString().isEmpty());
    const QString csv = toText(tableOf(*panel.view()), TableFormat::Csv);
    QVERIFY2(csv.startsWith(QStringLiteral("What,Count,Total,Mean,Spread,Shortest,Longest,Share\n")), qPrintable(csv));
    QVERIFY(csv.contains(QStringLiteral("Idle,")));
    QVERIFY(panel.bars()->isVisibleTo(&panel));
    panel.resize(400, 200); // the figures are worth more than the bars
    QVERIFY(!panel.bars()->isVisibleTo(&panel));
    panel.setBy(AggregateBy::Rank);
    QVERIFY(toText(tableOf(*panel.view()), TableFormat::Markdown).contains(QStringLiteral("| Rank 2 |")));
    QVERIFY(!panel.view()->accessibleName().isEmpty());
    QVERIFY(!panel.grab().isNull());
    panel.setAreas({shown}, {}, nullptr);
    QVERIFY(!panel.isVisibleTo(nullptr));
}

void TestTimelineRows::emptyAndTiny()
{
    setRows([](RowSettings& rows) {
        rows.pinned = {0, 5};
        rows.collapsed = {1, 9};
        rows.waits = true;
    });
    m_view->setPanels({});
    QVERIFY(!m_view->grab().isNull());
    m_view->rowCursor().move(1);
    QCOMPARE(m_view->rowCursor().row(), -1);
    QVERIFY(m_view->rowCursor().chosenRanks().empty());
    m_view->setRun(samples::written({}));
    QVERIFY(!m_view->grab().isNull());
    m_view->setRun(samples::written({{{0, 1}}})); // one op of a nanosecond
    QCOMPARE(m_view->scene().rows.pinned, 1);
    QVERIFY(!m_view->grab().isNull());
    m_view->resize(420, 140);
    m_view->setRun(manyRanks(1024));
    QVERIFY(!m_view->grab().isNull());
}

QTEST_MAIN(TestTimelineRows)
#include "tst_timeline_rows.moc"
