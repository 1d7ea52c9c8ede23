// MemoryView: steps, peak, budget, ghost, what holds memory; pixels at computed places.
#include <functional>
#include <map>
#include <random>

#include <QApplication>
#include <QTest>

#include "sample_timelines.h"
#include "traces/report/run_report.h"
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
    void holdersSinceWhen();
    void hoverMarksTheHolder();
    void categoriesStack();
    void scalesAndViolations();
    void extremesAreExact();
    void countersAreCharted();
    void countersAloneHaveNoRanksBesideThem();
    void predictionIsDotted();
    void groupsAndPinsAreFollowed();
    void rangeFilters();
    void largeRunsComeLater();
    void sharesTheAxis();
    void nothingToShow();
    void unknownIsOneLine();

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
    m_panel = makePanel(samples::simulated("1f1b"), {0, 0, QStringLiteral("1F1B")});
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
    QCOMPARE(units,
             (std::vector<Bytes>{0, activationShare, 2 * activationShare, 3 * activationShare, 4 * activationShare}));
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
    const auto filled = [&](double x, double y) {
        return image.pixelColor(static_cast<int>(x * ratio), static_cast<int>(y * ratio)) == theme.memoryFill;
    };
    const auto& points = m_panel->ranks[1].activations.points;
    QVERIFY(points.size() > 8);
    Bytes before = 0;
    int checked = 0;
    for (const MemoryPoint& point : points) {
        const double x = axis.toX(point.time - m_panel->origin);
        if (point.inUse == before) continue; // one was freed as another arrived
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
    const auto other = makePanel(samples::simulated("gpipe"), {0, 0, QStringLiteral("GPipe")});
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
    for (int dx = -2; dx <= 2; ++dx)
        found = found || image.pixelColor(static_cast<int>(x) + dx, static_cast<int>(y)).lightness() < 230;
    QVERIFY(found);
}

void TestMemoryView::holdersAreNamed()
{
    const CardText card = m_view->cardAt(0, 45'000'000); // after four forwards on rank 0
    QVERIFY2(card.plain().contains(QStringLiteral("In use: 4.00 GiB")), qPrintable(card.plain()));
    QVERIFY2(card.note.contains(QStringLiteral("Stage 0 holds 4.00 GiB: microbatches 0, 1, 2, 3")),
             qPrintable(card.note));
    QVERIFY(m_view->cardAt(0, -5).empty());
    QVERIFY(m_view->cardAt(7, 5).empty());
    QTest::mouseMove(m_view.get(), m_view->plotRect(2).center().toPoint());
    QVERIFY(m_state->hoverTime());
}

namespace {

struct Change {
    Nanos time;
    Bytes delta;
    MemoryCategory category = MemoryCategory::Activations;
    int microbatch = 0;
    int stage = 0;
};

std::shared_ptr<const Timeline> withMemory(const std::vector<Change>& changes, Nanos duration = 1000,
                                           const std::function<void(TimelineBuilder&)>& more = {})
{
    TimelineBuilder builder(Provenance::Imported, "wall", 1);
    Span span;
    span.end = duration;
    span.op = makeOp(OpKind::Forward, 0, 0);
    builder.addSpan(builder.addTrack(0, Lane::Compute), span);
    for (const Change& change : changes) {
        MemoryEvent event;
        event.time = change.time;
        event.delta = change.delta;
        event.category = change.category;
        event.microbatch = change.microbatch;
        event.stage = static_cast<std::uint16_t>(change.stage);
        builder.addMemory(event);
    }
    if (more) more(builder);
    return *builder.build();
}

} // namespace

void TestMemoryView::holdersSinceWhen()
{
    const auto timeline = withMemory({{10, 100, MemoryCategory::Activations, 0},
                                      {20, 50, MemoryCategory::Activations, 1},
                                      {30, -100, MemoryCategory::Activations, 0},
                                      {40, 70, MemoryCategory::Activations, 0},
                                      {45, 5, MemoryCategory::Weights, -1},
                                      {50, -20, MemoryCategory::Activations, 1}});
    std::vector<bool> shown(memoryCategoryCount, false);
    shown[static_cast<std::size_t>(MemoryCategory::Activations)] = true;
    const Holdings holdings(*timeline, 0, shown);
    QVERIFY(holdings.at(9).empty());
    const auto at = holdings.at(60);
    QCOMPARE(at.size(), std::size_t(2)); // the oldest first; microbatch 0 came back at 40
    QCOMPARE(at[0].microbatch, 1);
    QCOMPARE(at[0].bytes, Bytes(30));
    QCOMPARE(at[0].since, Nanos(20));
    QCOMPARE(at[1].microbatch, 0);
    QCOMPARE(at[1].since, Nanos(40));
    const auto of = holdings.of(0, -1);
    QCOMPARE(of.size(), std::size_t(2));
    QCOMPARE(of[0].until, Nanos(30));
    QCOMPARE(of[1].since, Nanos(40));
    QVERIFY(holdings.of(0, 3).empty());
    // Against the analysis, at every moment of a real schedule.
    const Timeline& real = *m_panel->timeline;
    for (int rank = 0; rank < real.ranks(); ++rank) {
        const Holdings index(real, rank, shown);
        for (Nanos t = 0; t < real.end(); t += 3'333'333) {
            std::map<std::pair<int, int>, Bytes> expected;
            for (const Holder& one : holdersAt(real, rank, t)) expected[{one.stage, one.microbatch}] = one.bytes;
            std::map<std::pair<int, int>, Bytes> found;
            Nanos before = 0;
            for (const Holding& one : index.at(t)) {
                found[{one.stage, one.microbatch}] = one.bytes;
                QVERIFY(one.since >= before && one.since <= t);
                before = one.since;
            }
            QCOMPARE(found, expected);
        }
    }
}

// The bytes under the pointer belong to one holder: it is marked in the card, and its microbatch on the timeline.
void TestMemoryView::hoverMarksTheHolder()
{
    const Nanos t = 45'000'000; // rank 0 holds microbatches 0 to 3, a GiB each
    for (int microbatch = 0; microbatch < 4; ++microbatch) {
        const Bytes at = microbatch * gib + gib / 2;
        QCOMPARE(m_view->holderAt(0, t, at), (MicrobatchRef{microbatch, 0}));
        const CardText card = m_view->cardAt(0, t, at);
        QVERIFY2(card.note.contains(QStringLiteral("▶ microbatch %1, stage 0: 1.00 GiB since").arg(microbatch)),
                 qPrintable(card.note));
        QTest::mouseMove(m_view.get(), QPointF(m_view->axis().toX(t), m_view->yOf(0, at)).toPoint());
        QCOMPARE(m_state->hoveredMicrobatch(), (MicrobatchRef{microbatch, 0}));
    }
    QVERIFY(!m_view->holderAt(0, t, 5 * gib).valid());
    // And the other way: a hovered op marks where its microbatch holds memory, on the base line.
    m_state->setHovered({0, 0}, {2, 0});
    const QImage image = m_view->grab().toImage();
    const double y = m_view->plotRect(0).bottom() - 1;
    QCOMPARE(image.pixelColor(QPointF(m_view->axis().toX(40'000'000), y).toPoint()), Theme::light().text);
    QVERIFY(image.pixelColor(QPointF(m_view->axis().toX(5'000'000), y).toPoint()) != Theme::light().text);
}

void TestMemoryView::categoriesStack()
{
    using C = MemoryCategory;
    const auto panel = makePanel(withMemory({{0, 1000, C::Weights, -1},
                                             {100, 400, C::Activations, 0},
                                             {300, 200, C::Gradients, -1},
                                             {600, -400, C::Activations, 0}}));
    MemorySettings settings;
    settings.set(C::Weights, true);
    settings.set(C::Gradients, true);
    settings.set(C::Optimizer, true); // the run has none
    const auto rows = memoryRows({panel}, nullptr, settings);
    QCOMPARE(rows.size(), std::size_t(1));
    QCOMPARE(rows[0].layers.size(), std::size_t(3));
    QCOMPARE(rows[0].layers[0].category, C::Activations); // lowest, so that the budget can be read off
    QCOMPARE(rows[0].layers[1].category, C::Gradients);
    QCOMPARE(rows[0].layers[2].category, C::Weights);
    for (const auto& [time, activations, gradients, total] :
         {std::tuple{Nanos(50), 0, 0, 1000}, {150, 400, 400, 1400}, {400, 400, 600, 1600}, {700, 0, 200, 1200}}) {
        QCOMPARE(rows[0].layers[0].curve.at(time), Bytes(activations));
        QCOMPARE(rows[0].layers[1].curve.at(time), Bytes(gradients));
        QCOMPARE(rows[0].total().at(time), Bytes(total));
    }
    QCOMPARE(rows[0].total().peak, Bytes(1600));
    m_state->setExtent({0, panel->duration});
    m_state->fitAll();
    m_view->setPanels({panel});
    m_view->setSettings(settings);
    for (const Theme* theme : {&Theme::light(), &Theme::darkTheme()}) {
        for (const double ratio : {1.0, 1.5, 2.0}) {
            QImage image(static_cast<int>(1284 * ratio), static_cast<int>(500 * ratio), QImage::Format_RGB32);
            image.setDevicePixelRatio(ratio);
            QPainter painter(&image);
            m_view->paintTo(painter, QRectF(0, 0, 1284, 500), *theme);
            painter.end();
            const auto at = [&](Nanos t, Bytes bytes) {
                return image.pixelColor(static_cast<int>(m_view->axis().toX(t) * ratio),
                                        static_cast<int>(m_view->yOf(0, bytes) * ratio));
            };
            QCOMPARE(at(500, 150), colourOf(C::Activations, *theme).rgb());
            QCOMPARE(at(500, 500), colourOf(C::Gradients, *theme).rgb());
            QCOMPARE(at(520, 1450), colourOf(C::Weights, *theme).rgb());
        }
    }
    const QString card = m_view->cardAt(0, 400).plain();
    QVERIFY2(card.contains(QStringLiteral("Gradients: 200 B")) && card.contains(QStringLiteral("In use: 1.56 KiB")),
             qPrintable(card));
    MemorySettings alone = m_view->settings();
    alone.shown.assign(memoryCategoryCount, false);
    alone.set(C::Weights, true);
    m_view->setSettings(alone);
    QCOMPARE(m_view->category(), C::Weights);
    QVERIFY(m_view->cardAt(0, 400).plain().contains(QStringLiteral("In use: 1000 B")));
}

void TestMemoryView::scalesAndViolations()
{
    // 1F1B holds 4, 3, 2, 1 microbatches.
    const double shared = m_view->yOf(3, gib);
    MemorySettings settings = m_view->settings();
    settings.ownScale = true;
    m_view->setSettings(settings);
    QVERIFY(m_view->yOf(3, gib) < shared - 20); // rank 3 fills its chart
    settings.ownScale = false;
    m_view->setSettings(settings);
    m_view->setBudget(2 * gib + gib / 2);
    const auto over =
        curveOf(m_panel->ranks[0].activations, m_panel->origin, m_panel->duration).firstOver(2 * gib + gib / 2);
    QVERIFY(over && *over == 30'000'000); // the third forward's end
    QVERIFY(!curveOf(m_panel->ranks[3].activations, m_panel->origin, m_panel->duration).firstOver(2 * gib + gib / 2));
    const QImage image = m_view->grab().toImage();
    const QPointF flag(m_view->axis().toX(*over), m_view->yOf(0, 2 * gib + gib / 2) - 6);
    QCOMPARE(image.pixelColor(flag.toPoint()), Theme::light().critical);
    QVERIFY(m_view->accessibleDescription().contains(QStringLiteral("over budget from 30.0 ms")));
    QVERIFY(m_view->cardAt(0, 45'000'000).plain().contains(QStringLiteral("First exceeded at: 30.0 ms")));
}

// The index compared with reading every value, over random parts of random sequences.
void TestMemoryView::extremesAreExact()
{
    std::mt19937 random(7);
    for (const std::size_t count : {0U, 1U, 15U, 16U, 17U, 255U, 256U, 257U, 5000U}) {
        std::vector<double> values(count);
        for (double& value : values) value = static_cast<double>(random() % 1000);
        const auto get = [&](std::size_t i) { return values[i]; };
        ExtremeIndex index;
        index.build(count, get);
        for (int round = 0; round < 300; ++round) {
            std::size_t first = count > 0 ? random() % (count + 1) : 0, last = count > 0 ? random() % (count + 1) : 0;
            if (first > last) std::swap(first, last);
            Extremes expected;
            for (std::size_t i = first; i < last; ++i) expected.add(values[i]);
            const Extremes found = index.over(first, last, get);
            QCOMPARE(found.empty(), expected.empty());
            if (expected.empty()) continue;
            QCOMPARE(found.least, expected.least);
            QCOMPARE(found.most, expected.most);
        }
        for (const double limit : {-1.0, 500.0, 990.0, 998.0, 2000.0}) {
            const auto expected = static_cast<std::size_t>(
                std::find_if(values.begin(), values.end(), [&](double v) { return v > limit; }) - values.begin());
            QCOMPARE(index.firstAbove(limit, get), expected);
        }
    }
}

void TestMemoryView::countersAreCharted()
{
    const auto timeline = withMemory({{0, 10}}, 1'000'000, [](TimelineBuilder& builder) {
        const int link = builder.addCounter(-1, "link", "B/s");
        for (Nanos t = 0; t < 1'000'000; t += 10)
            builder.addSample(link, t, t == 500'000 ? 9e9 : 1e9 + static_cast<double>(t % 1000));
        const int load = builder.addCounter(0, "load", "%");
        builder.addSample(load, 100'000, 25);
        builder.addSample(load, 700'000, 75);
    });
    const auto panel = makePanel(timeline);
    m_state->setExtent({0, panel->duration});
    m_state->fitAll();
    m_view->setPanels({panel});
    QTRY_VERIFY_WITH_TIMEOUT(m_view->ready(), 20000);
    QCOMPARE(m_view->rowTitles(),
             (QStringList{QStringLiteral("Rank 0"), QStringLiteral("link"), QStringLiteral("load")}));
    QVERIFY2(m_view->counterCard(1, 600'000).plain().contains(QStringLiteral("Value: 1 GB/s")) ||
                 m_view->counterCard(1, 600'000).plain().contains(QStringLiteral("Value: 1.00 GB/s")),
             qPrintable(m_view->counterCard(1, 600'000).plain()));
    QVERIFY(m_view->counterCard(2, 50'000).plain().contains(QStringLiteral("Value: none yet")));
    QVERIFY(m_view->counterCard(2, 800'000).plain().contains(QStringLiteral("Value: 75 %")));
    // the one peak of 100,000 samples
    QVERIFY(m_view->counterCard(1, 600'000).plain().contains(QStringLiteral("9 GB/s")));
    const QImage image = m_view->grab().toImage();
    const double x = m_view->axis().toX(500'000), rowHeight = (m_view->height() - 36) / 3.0;
    bool found = false; // and it is drawn
    for (int dx = -2; dx <= 2; ++dx)
        found = found || image.pixelColor(static_cast<int>(x) + dx,
                                          static_cast<int>(28 + rowHeight + 14 + (rowHeight - 18) * 0.3)) !=
                             Theme::light().canvas;
    QVERIFY(found);
    MemorySettings settings;
    settings.counters = false;
    m_view->setSettings(settings);
    QTRY_COMPARE_WITH_TIMEOUT(m_view->rowTitles(), QStringList{QStringLiteral("Rank 0")}, 20000);
    QCOMPARE(counterText(0.5, QStringLiteral("%")), QStringLiteral("0.50 %"));
    QCOMPARE(counterUnit(4e11, QStringLiteral("B/s")).name, QStringLiteral("GB/s")); // the unit of the ticks
    QCOMPARE(counterUnit(4e11, QStringLiteral("B/s")).factor, 1e9);
    QCOMPARE(counterText(3 * 1073741824.0, QStringLiteral("bytes")), QStringLiteral("3.00 GiB"));
}

// Unknown memory has no chart, not one of zero; and a counter of one sample keeps its value.
void TestMemoryView::countersAloneHaveNoRanksBesideThem()
{
    const auto panel = makePanel(withMemory({}, 1'000'000, [](TimelineBuilder& builder) {
        builder.addSample(builder.addCounter(0, "depth", ""), 500'000, 3);
    }));
    m_state->setExtent({0, panel->duration});
    m_state->fitAll();
    m_view->setPanels({panel});
    QTRY_VERIFY_WITH_TIMEOUT(m_view->ready(), 20000);
    QCOMPARE(m_view->rowTitles(), QStringList{QStringLiteral("depth")});
    QVERIFY(m_view->known());
    const QImage image = m_view->grab().toImage();
    const double ratio = image.devicePixelRatio();
    const auto drawn = [&](Nanos time) {
        const int x = static_cast<int>(m_view->axis().toX(time) * ratio);
        for (int y = static_cast<int>(40 * ratio); y < image.height() - 20; ++y)
            if (const QColor at = image.pixelColor(x, y); at.blue() > at.red() + 40)
                return true; // lines of the grid: grey
        return false;
    };
    QVERIFY(drawn(800'000) && !drawn(300'000));
    // between two samples it is level: nothing is drawn half way up
    m_view->setPanels({makePanel(withMemory({}, 1'000'000, [](TimelineBuilder& builder) {
        const int depth = builder.addCounter(0, "depth", "");
        builder.addSample(depth, 100'000, 0);
        builder.addSample(depth, 900'000, 8);
    }))});
    QTRY_VERIFY_WITH_TIMEOUT(m_view->ready(), 20000);
    const QImage steps = m_view->grab().toImage();
    const auto heightAt = [&](Nanos time) {
        const int x = static_cast<int>(m_view->axis().toX(time) * ratio);
        for (int y = static_cast<int>(40 * ratio); y < steps.height() - 20; ++y)
            if (const QColor at = steps.pixelColor(x, y); at.blue() > at.red() + 40) return y;
        return -1;
    };
    QVERIFY(heightAt(200'000) > 0);
    QCOMPARE(heightAt(800'000), heightAt(200'000));
    QVERIFY(heightAt(950'000) < heightAt(200'000));
}

void TestMemoryView::predictionIsDotted()
{
    const auto predicted = makePanel(samples::simulated("gpipe"), {0, 0, QString()}); // holds all eight
    m_view->setPredicted(predicted);
    QVERIFY(m_view->yOf(0, 8 * gib) >= m_view->plotRect(0).top()); // it is inside the chart
    QVERIFY(m_view->cardAt(0, 70'000'000).plain().contains(QStringLiteral("Simulated: 7.00 GiB")));
    const QImage image = m_view->grab().toImage();
    int dark = 0;
    for (int x = 200; x < 1200; ++x)
        for (int dy = -1; dy <= 1; ++dy)
            dark += image.pixelColor(x, static_cast<int>(m_view->yOf(0, 8 * gib)) + dy).lightness() < 170 ? 1 : 0;
    QVERIFY(dark > 3);
    m_view->setPanels({m_panel});
    QVERIFY(!m_view->cardAt(0, 70'000'000).plain().contains(QStringLiteral("Simulated")));
}

void TestMemoryView::groupsAndPinsAreFollowed()
{
    RowSettings rows;
    rows.pinned = {2};
    m_state->setRows(rows);
    QCOMPARE(m_view->rowTitles().first(), QStringLiteral("Rank 2"));
    QCOMPARE(m_view->rowTitles().size(), 4);
    const auto big = makePanel(samples::simulated("1f1b", 80, 4), {0, 0, QString()});
    m_state->setRows({});
    m_state->setExtent({0, big->duration});
    m_view->setPanels({big});
    QCOMPARE(m_view->rowTitles().size(), 10);
    QVERIFY(m_view->accessibleDescription().contains(QStringLiteral("0–7 peak 4.00 GiB on rank")));
    rows = {};
    rows.expanded = {8};
    m_state->setRows(rows);
    QCOMPARE(m_view->rowTitles().size(), 17);
}

void TestMemoryView::rangeFilters()
{
    m_state->setAreas({{{0, 25'000'000}, 0, 3}}); // two forwards are done on rank 0
    QVERIFY2(m_view->accessibleDescription().contains(QStringLiteral("Rank 0 in range 2.00 GiB")),
             qPrintable(m_view->accessibleDescription()));
    const QImage image = m_view->grab().toImage();
    const double y = m_view->yOf(0, gib + gib / 2);
    // veiled
    QVERIFY(image.pixelColor(QPointF(m_view->axis().toX(70'000'000), y).toPoint()) != Theme::light().memoryFill);
    QCOMPARE(image.pixelColor(QPointF(m_view->axis().toX(23'000'000), y).toPoint()), Theme::light().memoryFill);
    m_state->clearSelection();
    QVERIFY(m_view->accessibleDescription().contains(QStringLiteral("Rank 0 peak 4.00 GiB")));
}

void TestMemoryView::largeRunsComeLater()
{
    std::vector<Change> changes;
    for (Nanos t = 0; t < 100'000; ++t)
        changes.push_back({t, t % 2 == 0 ? Bytes(1000 + t) : Bytes(-1000 - t + 1), MemoryCategory::Activations,
                           static_cast<int>(t / 2 % 8)});
    const auto panel = makePanel(withMemory(changes, 100'000));
    m_state->setExtent({0, panel->duration});
    m_state->fitAll();
    m_view->setPanels({panel});
    QVERIFY(!m_view->ready()); // made on a worker
    QVERIFY(!m_view->grab().isNull());
    m_view->setPanels({m_panel}); // the late answer is obsolete
    QVERIFY(m_view->ready());
    m_view->setPanels({panel});
    QTRY_VERIFY_WITH_TIMEOUT(m_view->ready(), 30000);
    QVERIFY(m_view->cardAt(0, 50'000).plain().contains(QStringLiteral("In use: 49.8 KiB")));
    QVERIFY(!m_view->grab().isNull());
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

// A trace without memory has no peak of 0 B: the pane says so in its heading's line, and takes no more room.
void TestMemoryView::unknownIsOneLine()
{
    QVERIFY(m_view->known());
    const int usual = m_view->sizeHint().height();
    const auto held = samples::simulated("1f1b");
    const Timeline& base = *held;
    TimelineBuilder builder(base.provenance(), "wall", base.ranks());
    for (const Track& track : base.tracks()) {
        const int own = builder.addTrack(track.rank, track.lane, track.name);
        for (const Span& span : base.spansOf(track)) builder.addSpan(own, span);
    }
    const auto bare = builder.build();
    QVERIFY(bare.has_value() && !(*bare)->hasMemory());
    m_view->setPanels({makePanel(*bare, {0, 0, QStringLiteral("1F1B")})});
    QVERIFY(!m_view->known());
    QVERIFY(!m_view->accessibleDescription().contains(QStringLiteral("peak")));
    QVERIFY(m_view->minimumSizeHint().height() < 40 && m_view->sizeHint().height() < usual);
    // What to do about it is read whole, on as many lines as a narrow view makes of it.
    RunReport report;
    report.noMemory = "the trace has no memory events: record with profile_memory=True and export JSON";
    PanelOptions options;
    options.report = &report;
    m_view->setPanels({makePanel(*bare, options)});
    const int line = m_view->maximumHeight();
    m_view->resize(470, line);
    QTRY_VERIFY(m_view->maximumHeight() > line);
    QVERIFY(m_view->maximumHeight() < 3 * line);
    QCOMPARE(m_view->minimumSizeHint().height(), m_view->maximumHeight());
    m_view->resize(1284, 500);
    QTRY_COMPARE(m_view->maximumHeight(), line);
    m_view->setPanels({m_panel});
    QVERIFY(m_view->known());
    QCOMPARE(m_view->sizeHint().height(), usual);
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
