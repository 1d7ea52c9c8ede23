// MemoryView: steps, peak, budget, ghost, who holds it; pixels at computed places.
#include <QApplication>
#include <QTest>

#include "sample_timelines.h"
#include "widgets/memory/memory_view.h"

using namespace stagewright;
using samples::gib;

class TestMemoryView : public QObject {
    Q_OBJECT

private slots:
    void init();
    void cleanup();
    void curveFollowsTheEvents();
    void ticksAreNice();
    void stepsAreNotSmoothed_data();
    void stepsAreNotSmoothed();
    void peakAndBudgetAreDrawn();
    void ghostInCompare();
    void crowdedCurvesKeepTheirExtremes();
    void holdersAreNamed();
    void sharesTheAxis();
    void nothingToShow();

private:
    std::unique_ptr<ViewState> m_state;
    std::unique_ptr<MemoryView> m_view;
    std::shared_ptr<const TimelinePanel> m_panel;
};

void TestMemoryView::init()
{
    QCOMPARE(loadFonts(), QStringLiteral("Inter"));
    m_state = std::make_unique<ViewState>();
    m_view = std::make_unique<MemoryView>(m_state.get());
    m_view->resize(1284, 500);
    m_panel = makePanel(samples::simulated("1f1b"), {0, QStringLiteral("1F1B")});
    m_state->setExtent({0, m_panel->duration});
    m_state->fitAll();
    m_view->setPanels({m_panel});
    m_view->show();
    QVERIFY(QTest::qWaitForWindowExposed(m_view.get()));
}

void TestMemoryView::cleanup()
{
    m_view.reset();
    m_state.reset();
}

void TestMemoryView::curveFollowsTheEvents()
{
    const MemoryCurve curve = curveOf(m_panel->ranks[0].activations, m_panel->origin, m_panel->duration);
    QCOMPARE(curve.peak, 4 * gib); // 1F1B: rank 0 holds p microbatches
    QCOMPARE(curve.at(-1), Bytes(0));
    QCOMPARE(curve.at(9'999'999), Bytes(0));
    QCOMPARE(curve.at(10'000'000), gib);
    QCOMPARE(curve.at(curve.peakTime), curve.peak);
    QCOMPARE(curve.at(m_panel->duration), Bytes(0));
    QCOMPARE(MemoryCurve{}.at(5), Bytes(0));
}

void TestMemoryView::ticksAreNice()
{
    QCOMPARE(memoryTicks(7 * gib, 100, 22, {}), (std::vector<Bytes>{0, 2 * gib, 4 * gib, 6 * gib}));
    QCOMPARE(memoryTicks(0, 100, 22, {}), std::vector<Bytes>{0});
    const auto units = memoryTicks(4 * activationShare, 100, 22, Units{1, activationShare});
    QCOMPARE(units, (std::vector<Bytes>{0, activationShare, 2 * activationShare, 3 * activationShare, 4 * activationShare}));
    for (Bytes top = 10; top < (Bytes(1) << 45); top *= 3) {
        const auto ticks = memoryTicks(top, 100, 20, {});
        QVERIFY(ticks.size() >= 2 && ticks.size() <= 6 && ticks.back() <= top);
    }
}

void TestMemoryView::stepsAreNotSmoothed_data()
{
    QTest::addColumn<double>("ratio");
    QTest::addColumn<bool>("dark");
    for (const double ratio : {1.0, 1.5, 2.0}) {
        for (const bool dark : {false, true}) QTest::addRow("%g %s", ratio, dark ? "dark" : "light") << ratio << dark;
    }
}

// Just before a step the area ends at the old value, just after at the new one.
void TestMemoryView::stepsAreNotSmoothed()
{
    QFETCH(double, ratio);
    QFETCH(bool, dark);
    const Theme& theme = Theme::named(dark);
    QImage image(static_cast<int>(1284 * ratio), static_cast<int>(500 * ratio), QImage::Format_RGB32);
    image.setDevicePixelRatio(ratio);
    QPainter painter(&image);
    m_view->paintTo(painter, QRectF(0, 0, 1284, 500), theme);
    painter.end();
    const Axis axis = m_view->axis();
    const auto filled = [&](double x, double y) { return image.pixelColor(static_cast<int>(x * ratio), static_cast<int>(y * ratio)) == theme.memoryFill; };
    const auto& points = m_panel->ranks[1].activations.points;
    QVERIFY(points.size() > 8);
    Bytes before = 0;
    int checked = 0;
    for (const MemoryPoint& point : points) {
        const double x = axis.toX(point.time - m_panel->origin);
        if (point.inUse == before) continue; // one left as another came
        const Bytes high = std::max(before, point.inUse), low = std::min(before, point.inUse);
        const double y = m_view->yOf(1, (high + low) / 2 + gib / 8); // between the two, off the grid lines
        const bool rises = point.inUse > before;
        QCOMPARE(filled(x - 4, y), !rises);
        QCOMPARE(filled(x + 4, y), rises);
        before = point.inUse;
        ++checked;
    }
    QVERIFY(checked > 8);
}

void TestMemoryView::peakAndBudgetAreDrawn()
{
    m_view->setBudget(5 * gib);
    const QImage image = m_view->grab().toImage();
    const Theme& theme = Theme::light();
    for (int rank = 0; rank < 4; ++rank) {
        const MemorySeries& series = m_panel->ranks[static_cast<std::size_t>(rank)].activations;
        const QPointF peak(m_view->axis().toX(series.peakTime - m_panel->origin), m_view->yOf(rank, series.peak));
        QCOMPARE(image.pixelColor(peak.toPoint()), theme.memoryLine);
        QCOMPARE(image.pixelColor((peak + QPointF(0, -2)).toPoint()), theme.memoryLine); // a dot, not only the line
        const double y = m_view->yOf(rank, 5 * gib);
        int red = 0;
        for (int x = 200; x < 1200; ++x) {
            const QColor c = image.pixelColor(x, static_cast<int>(y));
            red += c.red() > 200 && c.blue() < 190 ? 1 : 0;
        }
        QVERIFY2(red > 400 && red < 900, qPrintable(QString::number(red))); // dashed
    }
    // A far larger budget would flatten every curve: it is named instead.
    const double before = m_view->yOf(0, gib);
    m_view->setBudget(800 * gib);
    QVERIFY(m_view->yOf(0, gib) <= before);
}

void TestMemoryView::ghostInCompare()
{
    const auto other = makePanel(samples::simulated("gpipe"), {0, QStringLiteral("GPipe")});
    m_state->setExtent({0, std::max(other->duration, m_panel->duration)});
    m_view->setPanels({other, m_panel}); // solid: the last; ghost: GPipe, which holds all eight
    const QRectF plot = m_view->plotRect(0);
    QVERIFY(m_view->yOf(0, 8 * gib) >= plot.top()); // one scale for both
    const QImage image = m_view->grab().toImage();
    int ghost = 0;
    const int y = static_cast<int>(m_view->yOf(0, 8 * gib));
    for (int x = 200; x < 1200; ++x) {
        for (int dy = -1; dy <= 1; ++dy) ghost += image.pixelColor(x, y + dy).lightness() < 170 ? 1 : 0;
    }
    QVERIFY(ghost > 3);
    QVERIFY(m_view->cardAt(0, 60'000'000).plain().contains(QStringLiteral("In use in A: ")));
}

void TestMemoryView::crowdedCurvesKeepTheirExtremes()
{
    TimelineBuilder builder(Provenance::Imported, "wall", 1);
    const int track = builder.addTrack(0, Lane::Compute);
    Span span;
    span.end = 1'000'000;
    span.op = makeOp(OpKind::Forward, 0, 0);
    builder.addSpan(track, span);
    const auto event = [&](Nanos time, Bytes delta) {
        MemoryEvent e;
        e.time = time;
        e.delta = delta;
        e.microbatch = 0;
        builder.addMemory(e);
    };
    for (Nanos t = 0; t < 1'000'000; t += 100) { // 10,000 pulses; one of them far higher
        const Bytes size = t == 500'000 ? 1'000'000 : 1000;
        event(t, size);
        event(t + 50, -size);
    }
    const auto panel = makePanel(*builder.build());
    m_state->setExtent({0, panel->duration});
    m_state->fitAll();
    m_view->setPanels({panel});
    QImage image(1284, 200, QImage::Format_RGB32);
    QPainter painter(&image);
    m_view->paintTo(painter, QRectF(0, 0, 1284, 200), Theme::light());
    painter.end();
    m_view->resize(1284, 200);
    const double x = m_view->axis().toX(500'000);
    const double y = m_view->yOf(0, 600'000); // well under the pulse, far above the rest
    bool found = false;
    for (int dx = -2; dx <= 2; ++dx) found = found || image.pixelColor(static_cast<int>(x) + dx, static_cast<int>(y)).lightness() < 230;
    QVERIFY(found);
}

void TestMemoryView::holdersAreNamed()
{
    const CardText card = m_view->cardAt(0, 45'000'000); // after four forwards on rank 0
    QVERIFY2(card.plain().contains(QStringLiteral("In use: 4.00 GiB")), qPrintable(card.plain()));
    QVERIFY2(card.note.contains(QStringLiteral("Stage 0 holds 4.00 GiB: microbatches 0, 1, 2, 3")), qPrintable(card.note));
    QVERIFY(m_view->cardAt(0, -5).empty());
    QVERIFY(m_view->cardAt(7, 5).empty());
    QTest::mouseMove(m_view.get(), m_view->plotRect(2).center().toPoint());
    QVERIFY(m_state->hoverTime());
}

void TestMemoryView::sharesTheAxis()
{
    m_state->setVisible({20'000'000, 60'000'000});
    QCOMPARE(m_view->axis().range, m_state->visible());
    QTest::keyClick(m_view.get(), Qt::Key_W);
    QVERIFY(m_state->visible().duration() < 40'000'000);
    QVERIFY(m_view->focusPolicy() & Qt::TabFocus);
    QVERIFY(m_view->accessibleDescription().contains(QStringLiteral("Rank 0 peak 4.00 GiB")));
}

void TestMemoryView::nothingToShow()
{
    m_view->setPanels({});
    QVERIFY(!m_view->grab().isNull());
    QVERIFY(m_view->plotRect(0).isEmpty());
    QTest::mouseMove(m_view.get(), QPoint(500, 200));
    m_view->setPanels({makePanel(samples::written({{{0, 100}}}))}); // no memory events
    QVERIFY(!m_view->grab().isNull());
}

QTEST_MAIN(TestMemoryView)
#include "tst_memory_view.moc"
