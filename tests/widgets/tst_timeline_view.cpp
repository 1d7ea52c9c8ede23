// TimelineView: pixels at computed centres, both themes and three pixel ratios, mouse, keys, edit mode, live growth.
#include <QApplication>
#include <QPicture>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>

#include <functional>

#include "sample_timelines.h"
#include "widgets/compare/compare_overlay.h"
#include "widgets/edit/edit_overlay.h"
#include "widgets/hover_card.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/slice_painter.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestTimelineView : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void init();
    void cleanup();

    void paintsWhatIsThere_data();
    void paintsWhatIsThere();
    void criticalPathIsAnOutline();
    void compareShowsTheDifference();
    void emptyAndTiny();
    void vectorPaintersWork();
    void hitTestFindsEverySpan();
    void hoverTellsAndMarks();
    void idleTimeTellsItsCause();
    void clickSelects();
    void areaSnapsAndAggregates();
    void areaEdgesMove();
    void escapeCancelsThenDeselects();
    void middleDragZooms();
    void shiftDragPans();
    void wheel();
    void keysZoomAndWalk();
    void historyKeys();
    void doubleClickFits();
    void editDrags();
    void editNudges();
    void liveRunsKeepTheView();
    void draftsSettle();
    void statusIsHonest();
    void reachableByKeyboard();

private:
    QPointF centre(const std::string& op, int panel = 0) const;
    SpanRef ref(const std::string& op, int panel = 0) const;
    QImage grabbed() const { return m_view->grab().toImage(); }
    void drag(QPointF from, QPointF to, Qt::MouseButton button = Qt::LeftButton, Qt::KeyboardModifiers modifiers = {});

    std::unique_ptr<ViewState> m_state;
    std::unique_ptr<TimelineView> m_view;
};

void TestTimelineView::initTestCase()
{
    QCOMPARE(loadFonts(), QStringLiteral("Inter")); // without a font, pictures would pass as boxes
}

void TestTimelineView::init()
{
    m_state = std::make_unique<ViewState>();
    m_view = std::make_unique<TimelineView>(m_state.get());
    m_view->resize(1284, 340);
    m_view->setRun(samples::simulated("zb-h1"), {0, 0, QStringLiteral("ZB-H1")});
    m_view->show();
    QVERIFY(QTest::qWaitForWindowExposed(m_view.get()));
}

void TestTimelineView::cleanup()
{
    m_view.reset();
    m_state.reset();
}

SpanRef TestTimelineView::ref(const std::string& op, int panel) const
{
    return {panel, samples::spanOf(*m_view->panels()[static_cast<std::size_t>(panel)]->timeline, op)};
}

QPointF TestTimelineView::centre(const std::string& op, int panel) const
{
    const auto rect = m_view->rectOf(ref(op, panel));
    return rect ? rect->center() : QPointF(-1, -1);
}

void TestTimelineView::drag(QPointF from, QPointF to, Qt::MouseButton button, Qt::KeyboardModifiers modifiers)
{
    const auto send = [&](QEvent::Type type, QPointF at, Qt::MouseButton b, Qt::MouseButtons held) {
        QMouseEvent event(type, at, m_view->mapToGlobal(at), b, held, modifiers);
        QCoreApplication::sendEvent(m_view.get(), &event);
    };
    send(QEvent::MouseButtonPress, from, button, button);
    send(QEvent::MouseMove, from + (to - from) / 3, Qt::NoButton, button);
    send(QEvent::MouseMove, to, Qt::NoButton, button);
    send(QEvent::MouseButtonRelease, to, button, Qt::NoButton);
}

void TestTimelineView::paintsWhatIsThere_data()
{
    QTest::addColumn<double>("ratio");
    QTest::addColumn<bool>("dark");
    for (const double ratio : {1.0, 1.5, 2.0}) {
        for (const bool dark : {false, true}) QTest::addRow("%g %s", ratio, dark ? "dark" : "light") << ratio << dark;
    }
}

void TestTimelineView::paintsWhatIsThere()
{
    QFETCH(double, ratio);
    QFETCH(bool, dark);
    const Theme& theme = Theme::named(dark);
    m_state->setShows({.criticalPath = false});
    QImage image(static_cast<int>(1284 * ratio), static_cast<int>(340 * ratio), QImage::Format_RGB32);
    image.setDevicePixelRatio(ratio);
    image.fill(Qt::magenta);
    QPainter painter(&image);
    m_view->paintTo(painter, QRectF(0, 0, 1284, 340), theme);
    painter.end();
    const auto pixel = [&](double x, double y) {
        return image.pixelColor(static_cast<int>(x * ratio), static_cast<int>(y * ratio));
    };
    const Timeline& timeline = *m_view->panels()[0]->timeline;
    int slices = 0;
    for (SpanId id = 0; id < timeline.spans().size(); ++id) {
        const auto rect = m_view->rectOf({0, id});
        QVERIFY(rect);
        if (timeline.trackOf(id).lane != Lane::Compute) continue;
        // Off the label: a quarter up from the bottom.
        QCOMPARE(pixel(rect->center().x(), rect->bottom() - 8), theme.of(timeline.spans()[id].op.kind).fill);
        ++slices;
    }
    QCOMPARE(slices, 96);
    const auto transfer = m_view->rectOf({0, timeline.trackOf(0, Lane::Send)->begin});
    QVERIFY(transfer && transfer->height() < 10);
    QCOMPARE(pixel(transfer->center().x(), transfer->center().y()), theme.of(OpKind::SendF).fill);
    // The first idle time of rank 3 is hatched: fill and lines, nothing else, and a pill with its duration.
    const auto first = m_view->rectOf(ref("3F0"));
    int lines = 0;
    for (double x = gutterWidth + 4; x < gutterWidth + 40; x += 1 / ratio)
        lines += pixel(x, first->top() + 6) != theme.bubbleFill ? 1 : 0;
    QVERIFY(lines > 4 && lines < 36 * ratio);
    QCOMPARE(pixel((gutterWidth + first->left()) / 2, first->center().y() - 7.5), theme.pill);
    QCOMPARE(pixel(4, 334), theme.canvas);
    for (int x = 0; x < image.width(); x += 7) {
        for (int y = 0; y < image.height(); y += 7) QVERIFY(image.pixelColor(x, y) != QColor(Qt::magenta));
    }
}

void TestTimelineView::criticalPathIsAnOutline()
{
    const TimelinePanel& panel = *m_view->panels()[0];
    QVERIFY(!panel.critical.empty());
    const Theme& theme = Theme::light();
    const auto rect = m_view->rectOf({0, panel.critical[0]});
    QVERIFY(rect);
    QImage on = grabbed();
    QCOMPARE(on.pixelColor(static_cast<int>(rect->center().x()), static_cast<int>(rect->top() + 1)), theme.critical);
    const QColor fill = theme.of(panel.timeline->spans()[panel.critical[0]].op.kind).fill;
    QCOMPARE(on.pixelColor(static_cast<int>(rect->center().x()), static_cast<int>(rect->bottom() - 8)), fill);
    m_state->setShows({.criticalPath = false});
    QVERIFY(grabbed().pixelColor(static_cast<int>(rect->center().x()), static_cast<int>(rect->top() + 1)) !=
            theme.critical);
}

void TestTimelineView::compareShowsTheDifference()
{
    PanelOptions options{0, 0, QStringLiteral("1F1B")};
    const auto a = makePanel(samples::simulated("1f1b"), options);
    options.name = QStringLiteral("ZB-H1");
    const auto b = makePanel(samples::simulated("zb-h1"), options);
    QVERIFY(b->duration < a->duration);
    m_view->resize(1284, 500);
    CompareOverlay difference(nullptr);
    m_view->add(&difference);
    const auto probe = [&](int panel) {
        const Axis axis = m_view->scene().axis;
        const QRectF row = *m_view->rectOf({panel, 0});
        const double x = (axis.toX(a->duration) + axis.toX(b->duration)) / 2;
        const QImage image = grabbed();
        return image.pixelColor(static_cast<int>(x), static_cast<int>(row.top() + 4));
    };
    m_view->setPanels({a, b});
    QCOMPARE(m_view->rectOf({0, 0})->height(), 38.0);
    QColor colour = probe(1);
    QVERIFY2(colour.green() > colour.red(), qPrintable(colour.name())); // green: B is faster
    m_view->setPanels({b, a});
    colour = probe(0); // red, in the shorter one
    QVERIFY2(colour.red() > colour.green(), qPrintable(colour.name()));
    // Header bars carry badges: A grey, B in the accent colour.
    const auto row = m_view->rectOf({1, 0});
    const QImage image = grabbed();
    QCOMPARE(image.pixelColor(18, static_cast<int>(row->top() - 11 - panelHeaderHeight / 2)), Theme::light().accent);
    // The same microbatch is marked in both panels.
    m_state->setHovered(ref("1F3", 0), {3, 0});
    const auto other = m_view->rectOf(ref("1F3", 1));
    QCOMPARE(
        grabbed().pixelColor(static_cast<int>(other->center().x()), static_cast<int>(std::floor(other->top() - 0.5))),
        Theme::light().text);
}

void TestTimelineView::emptyAndTiny()
{
    m_view->setPanels({});
    QVERIFY(m_view->statusText().isEmpty());
    QVERIFY(!m_view->scene().spanAt({300, 60}).valid());
    for (const Qt::Key key :
         {Qt::Key_W, Qt::Key_F, Qt::Key_Period, Qt::Key_PageDown, Qt::Key_BracketLeft, Qt::Key_Home})
        QTest::keyClick(m_view.get(), key);
    drag({300, 60}, {500, 90});
    QCOMPARE(grabbed().pixelColor(600, 200), Theme::light().canvas);
    TimelineBuilder builder(Provenance::Imported, "wall", 1);
    m_view->setRun(*builder.build());
    QVERIFY(!grabbed().isNull());
    m_view->setRun(samples::written({{{0, 1}}})); // one nanosecond
    m_view->resize(60, 10);                       // narrower than the gutter
    QVERIFY(!grabbed().isNull());
    QVERIFY(!m_view->scene().spanAt({30, 5}).valid());
}

void TestTimelineView::vectorPaintersWork()
{
    QPicture picture;
    QPainter painter(&picture);
    m_view->paintTo(painter, QRectF(10, 10, 900, 300), Theme::light());
    painter.end();
    QVERIFY(picture.size() > 5000);
    QImage image(920, 320, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter onto(&image);
    onto.drawPicture(0, 0, picture);
    onto.end();
    int blue = 0;
    for (int x = 160; x < 900; x += 3)
        blue += image.pixelColor(x, 70) == Theme::light().of(OpKind::Forward).fill ? 1 : 0;
    QVERIFY(blue > 20);
}

void TestTimelineView::hitTestFindsEverySpan()
{
    const Timeline& timeline = *m_view->panels()[0]->timeline;
    for (SpanId id = 0; id < timeline.spans().size(); ++id) {
        const auto rect = m_view->rectOf({0, id});
        QVERIFY(rect);
        if (rect->width() < 1) continue;
        QCOMPARE(m_view->scene().spanAt(rect->center()), (SpanRef{0, id}));
    }
    QVERIFY(!m_view->scene().spanAt({gutterWidth + 5, m_view->rectOf(ref("3F0"))->center().y()}).valid()); // idle
    QVERIFY(!m_view->scene().spanAt({20, 60}).valid());                                                    // gutter
    QVERIFY(!m_view->scene().spanAt({400, 10}).valid());                                                   // ruler
}

void TestTimelineView::hoverTellsAndMarks()
{
    QTest::mouseMove(m_view.get(), centre("1I3").toPoint());
    QCOMPARE(m_state->hovered(), ref("1I3"));
    QCOMPARE(m_state->hoveredMicrobatch().microbatch, 3);
    QVERIFY(m_state->hoverTime());
    auto* card = m_view->window()->findChild<HoverCard*>();
    QVERIFY(card != nullptr && card->isVisible()); // at once: within the same event
    const CardText text = m_view->cardOf(ref("1I3"));
    QCOMPARE(text.title, QStringLiteral("Input gradient · microbatch 3 · rank 1"));
    QVERIFY(text.plain().contains(QStringLiteral("Duration: 10.0 ms")));
    QVERIFY(text.plain().contains(QStringLiteral("Idle before: ")));
    // Same microbatch on other ranks is outlined.
    const auto other = m_view->rectOf(ref("2F3"));
    QCOMPARE(
        grabbed().pixelColor(static_cast<int>(other->center().x()), static_cast<int>(std::floor(other->top() - 0.5))),
        Theme::light().text);
    QTest::mouseMove(m_view.get(), QPoint(20, 60));
    QVERIFY(!m_state->hoverTime() && !card->isVisible());
    // a pointer that rests while the picture moves under it has nothing to say of what it was over
    const auto moves = {std::function<void()>([this] {
                            const TimeRange seen = m_state->visible();
                            m_state->setVisible({seen.begin, seen.begin + seen.duration() / 2});
                        }),
                        std::function<void()>([this] { m_view->resize(m_view->size() - QSize(40, 0)); })};
    for (const auto& move : moves) {
        QTest::mouseMove(m_view.get(), QPoint(20, 60));
        QTest::mouseMove(m_view.get(), centre("1I3").toPoint());
        QVERIFY(card->isVisible() && m_state->hovered().valid());
        move();
        QVERIFY(!card->isVisible() && !m_state->hovered().valid());
        m_state->fitAll();
    }
}

void TestTimelineView::idleTimeTellsItsCause()
{
    const auto first = m_view->rectOf(ref("3F0"));
    QTest::mouseMove(m_view.get(), QPointF(gutterWidth + 20, first->center().y()).toPoint());
    QVERIFY(!m_state->hovered().valid());
    CauseCache causes;
    const CardText card = idleCard(*m_view->panels()[0], 3, 1'000'000, causes);
    QCOMPARE(card.title, QStringLiteral("Idle · rank 3"));
    QVERIFY(card.plain().contains(QStringLiteral("Cause: Warm-up")));
    QVERIFY(!card.note.isEmpty());
    QVERIFY(idleCard(*m_view->panels()[0], 0, 1'000'000, causes).empty()); // busy
    QVERIFY(idleCard(*m_view->panels()[0], 9, 0, causes).empty());
}

void TestTimelineView::clickSelects()
{
    QTest::mouseClick(m_view.get(), Qt::LeftButton, {}, centre("2F1").toPoint());
    QCOMPARE(m_state->selected(), ref("2F1"));
    // Arrow heads of what it needs (red) and unblocks (green).
    const QImage image = grabbed();
    const auto rect = m_view->rectOf(ref("2F1"));
    QCOMPARE(image.pixelColor(static_cast<int>(rect->left() - 3), static_cast<int>(rect->center().y())),
             Theme::light().critical);
    const auto next = m_view->rectOf(ref("3F1"));
    QCOMPARE(image.pixelColor(static_cast<int>(next->left() - 3), static_cast<int>(next->center().y())),
             Theme::light().better);
    QTest::mouseClick(m_view.get(), Qt::LeftButton, {},
                      QPoint(int(gutterWidth) + 5, int(m_view->rectOf(ref("3F0"))->center().y())));
    QVERIFY(!m_state->selected().valid());
}

void TestTimelineView::areaSnapsAndAggregates()
{
    QSignalSpy spy(&m_view->selection(), &SelectionOverlay::areaAggregated);
    const auto a = m_view->rectOf(ref("0F1")), b = m_view->rectOf(ref("1F2"));
    drag({a->left() + 3, a->center().y()}, {b->right() - 3, b->center().y()});
    QCOMPARE(m_state->areas().size(), std::size_t(1));
    const Timeline& timeline = *m_view->panels()[0]->timeline;
    QCOMPARE(m_state->areas()[0].range.begin, timeline.spans()[ref("0F1").span].start);
    QCOMPARE(m_state->areas()[0].range.end, timeline.spans()[ref("1F2").span].end);
    QCOMPARE(m_state->areas()[0].lastRow, 1);
    QVERIFY(spy.count() >= 1);
    const Aggregation sum = m_view->selection().aggregation();
    QCOMPARE(sum.rows, 2);
    QVERIFY(sum.countByKind[static_cast<std::size_t>(OpKind::Forward)] >= 5);
    const Nanos filled = sum.busy;
    QCOMPARE(sum.idle, 2 * m_state->areas()[0].range.duration() - filled);
    const auto c = m_view->rectOf(ref("3W7"));
    // adds
    drag({c->left() + 2, c->center().y()}, {c->right() - 2, c->center().y() + 2}, Qt::LeftButton, Qt::ControlModifier);
    QCOMPARE(m_state->areas().size(), std::size_t(2));
}

void TestTimelineView::areaEdgesMove()
{
    const auto a = m_view->rectOf(ref("0F1")), b = m_view->rectOf(ref("0F2")), c = m_view->rectOf(ref("0F3"));
    drag({a->left() + 2, a->center().y()}, {b->right() - 2, a->center().y()});
    const Nanos begin = m_state->areas()[0].range.begin;
    drag({b->right(), a->center().y()}, {c->right() - 2, a->center().y() + 30});
    QCOMPARE(m_state->areas().size(), std::size_t(1));
    QCOMPARE(m_state->areas()[0].range.begin, begin);
    QCOMPARE(m_state->areas()[0].range.end, m_view->panels()[0]->timeline->spans()[ref("0F3").span].end);
    QCOMPARE(m_state->areas()[0].lastRow, 0);
}

void TestTimelineView::escapeCancelsThenDeselects()
{
    m_state->select(ref("2F1"));
    QTest::mousePress(m_view.get(), Qt::LeftButton, {}, QPoint(400, 60));
    QTest::mouseMove(m_view.get(), QPoint(440, 70));
    QTest::mouseMove(m_view.get(), QPoint(500, 90));
    QCOMPARE(m_state->areas().size(), std::size_t(1));
    QTest::keyClick(m_view.get(), Qt::Key_Escape);
    QVERIFY(m_state->areas().empty());
    QTest::mouseRelease(m_view.get(), Qt::LeftButton, {}, QPoint(500, 90));
    m_state->select(ref("2F1"));
    QTest::keyClick(m_view.get(), Qt::Key_Escape);
    QVERIFY(!m_state->selected().valid());
}

void TestTimelineView::middleDragZooms()
{
    const Axis axis = m_view->scene().axis;
    drag({400, 60}, {700, 80}, Qt::MiddleButton);
    QVERIFY(std::abs(m_state->visible().begin - axis.toTime(400)) <= 1);
    QVERIFY(std::abs(m_state->visible().end - axis.toTime(700)) <= 1);
    QVERIFY(m_state->canGoBack());
}

void TestTimelineView::shiftDragPans()
{
    m_state->setVisible({50'000'000, 150'000'000});
    const Axis axis = m_view->scene().axis;
    const Nanos grabbedTime = axis.toTime(600);
    drag({600, 60}, {500, 60}, Qt::LeftButton, Qt::ShiftModifier);
    QVERIFY(std::abs(m_view->scene().axis.toX(grabbedTime) - 500) < 0.01);
    QVERIFY(std::abs(m_state->visible().duration() - Nanos(100'000'000)) < 100'000); // whole ns a pixel
}

void TestTimelineView::wheel()
{
    const auto turn = [&](QPointF at, QPoint angle, Qt::KeyboardModifiers modifiers) {
        QWheelEvent event(at, m_view->mapToGlobal(at), {}, angle, Qt::NoButton, modifiers, Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(m_view.get(), &event);
    };
    const Nanos under = m_view->scene().axis.toTime(700);
    const Nanos before = m_state->visible().duration();
    turn({700, 80}, {0, 120}, Qt::ControlModifier);
    QVERIFY(m_state->visible().duration() < before);
    QVERIFY(std::abs(m_view->scene().axis.toX(under) - 700) < 0.01); // at the pointer
    const TimeRange range = m_state->visible();
    turn({700, 80}, {0, -120}, Qt::ShiftModifier);
    QVERIFY(m_state->visible().begin > range.begin);
    QCOMPARE(m_view->scene().scroll, 0.0);
    m_view->resize(1284, 150);
    turn({700, 80}, {0, -120}, {});
    QVERIFY(m_view->scene().scroll > 0);
    turn({700, 80}, {0, 1200}, {});
    QCOMPARE(m_view->scene().scroll, 0.0);
}

void TestTimelineView::keysZoomAndWalk()
{
    const Nanos all = m_state->visible().duration();
    QTest::keyClick(m_view.get(), Qt::Key_W);
    QVERIFY(m_state->visible().duration() < all);
    const Nanos begin = m_state->visible().begin;
    QTest::keyClick(m_view.get(), Qt::Key_D);
    QVERIFY(m_state->visible().begin > begin);
    QTest::keyClick(m_view.get(), Qt::Key_Home);
    QVERIFY(m_state->isFitted());
    m_state->select(ref("1F0"));
    QTest::keyClick(m_view.get(), Qt::Key_Period);
    QCOMPARE(m_state->selected(), ref("1F1"));
    QTest::keyClick(m_view.get(), Qt::Key_Comma);
    QTest::keyClick(m_view.get(), Qt::Key_Comma); // stays on the first
    QCOMPARE(m_state->selected(), ref("1F0"));
    QTest::keyClick(m_view.get(), Qt::Key_PageDown);
    QCOMPARE(m_state->selected(), ref("2F0"));
    QTest::keyClick(m_view.get(), Qt::Key_PageUp);
    QCOMPARE(m_state->selected(), ref("1F0"));
    QTest::keyClick(m_view.get(), Qt::Key_BracketLeft);
    QCOMPARE(m_state->selected(), ref("0F0"));
    QTest::keyClick(m_view.get(), Qt::Key_BracketRight);
    QCOMPARE(m_state->selected(), ref("1F0"));
    QTest::keyClick(m_view.get(), Qt::Key_F);
    const auto rect = m_view->rectOf(ref("1F0"));
    QVERIFY(rect->width() > 900);
    QTest::keyClick(m_view.get(), Qt::Key_F);
    QVERIFY(m_state->isFitted());
}

void TestTimelineView::historyKeys()
{
    const TimeRange all = m_state->visible();
    m_state->setVisible({10'000'000, 20'000'000});
    QTest::keyClick(m_view.get(), Qt::Key_Backspace);
    QCOMPARE(m_state->visible(), all);
    QTest::keyClick(m_view.get(), Qt::Key_Right, Qt::AltModifier);
    QCOMPARE(m_state->visible(), (TimeRange{10'000'000, 20'000'000}));
    // A burst of keys is one entry, made when they rest.
    for (int i = 0; i < 3; ++i) QTest::keyClick(m_view.get(), Qt::Key_D);
    QTest::qWait(150);
    QTest::keyClick(m_view.get(), Qt::Key_Left, Qt::AltModifier);
    QCOMPARE(m_state->visible(), (TimeRange{10'000'000, 20'000'000}));
}

void TestTimelineView::doubleClickFits()
{
    QSignalSpy spy(&m_view->input(), &TimelineInput::spanActivated);
    QTest::mouseDClick(m_view.get(), Qt::LeftButton, {}, centre("2F1").toPoint());
    QCOMPARE(spy.count(), 1);
    QVERIFY(m_view->rectOf(ref("2F1"))->width() > 300);
}

void TestTimelineView::editDrags()
{
    EditOverlay edit(nullptr);
    m_view->add(&edit);
    edit.setMoves(true);
    QSignalSpy dragged(&edit, &EditOverlay::opDragged);
    QSignalSpy dropped(&edit, &EditOverlay::opDropped), cancelled(&edit, &EditOverlay::opDragCancelled);
    const SpanRef moved = ref("3W0");
    const int from = m_view->panels()[0]->positionOf(moved.span);
    const auto& order = m_view->panels()[0]->timeline->schedule()->order[3];
    QCOMPARE(toText(order[static_cast<std::size_t>(from)]), std::string("3W0"));
    // After the last op: all others count.
    const auto last = m_view->rectOf(ref("3W7"));
    drag(centre("3W0"), last->center() + QPointF(last->width(), 0));
    QCOMPARE(m_state->selected(), moved);
    QVERIFY(dragged.count() >= 1);
    QCOMPARE(dropped.count(), 1);
    QCOMPARE(dropped[0][1].toInt(), 3);
    QCOMPARE(dropped[0][2].toInt(), from);
    QCOMPARE(dropped[0][3].toInt(), 3);
    QCOMPARE(dropped[0][4].toInt(), static_cast<int>(order.size()) - 1);
    // Back to its own place: nothing happens.
    drag(centre("3W0"), centre("3W0") + QPointF(6, 0));
    QCOMPARE(dropped.count(), 1);
    QCOMPARE(cancelled.count(), 1);
    QVERIFY(m_state->areas().empty());
    // Feedback is painted: a ghost at the model's place, its frame coloured by validity.
    DragFeedback feedback;
    feedback.span = moved;
    feedback.toRank = 3;
    feedback.begin = 0;
    feedback.end = 20'000'000;
    feedback.valid = false;
    edit.setDrag(feedback);
    const double x = m_view->scene().axis.toX(10'000'000), y = m_view->rectOf(moved)->center().y();
    // W's fill over the hatch
    QVERIFY(grabbed().pixelColor(static_cast<int>(x), static_cast<int>(y + 12)).green() > 150);
    edit.setDrag(std::nullopt);
}

void TestTimelineView::editNudges()
{
    EditOverlay edit(nullptr);
    m_view->add(&edit);
    QSignalSpy nudged(&edit, &EditOverlay::opNudged);
    m_state->select(ref("3W0"));
    QTest::keyClick(m_view.get(), Qt::Key_Left, Qt::ControlModifier);
    QCOMPARE(nudged.count(), 0); // not in edit mode
    edit.setMoves(true);
    QTest::keyClick(m_view.get(), Qt::Key_Left, Qt::ControlModifier);
    QTest::keyClick(m_view.get(), Qt::Key_Right, Qt::ControlModifier);
    QCOMPARE(nudged.count(), 2);
    QCOMPARE(nudged[0][2].toInt(), m_view->panels()[0]->positionOf(ref("3W0").span));
    QCOMPARE(nudged[0][3].toInt(), -1);
    QCOMPARE(nudged[1][3].toInt(), 1);
}

void TestTimelineView::liveRunsKeepTheView()
{
    std::vector<samples::Piece> pieces;
    const auto grow = [&](int n) {
        while (static_cast<int>(pieces.size()) < n) {
            const Nanos t = static_cast<Nanos>(pieces.size()) * 1000;
            pieces.push_back({t, t + 900});
        }
        m_view->setRun(samples::written({pieces}));
    };
    m_view->setPanels({});
    grow(10);
    m_state->fitAll();
    grow(20);
    QVERIFY(m_state->isFitted()); // a fitted view follows
    m_state->setVisible({2000, 6000});
    m_state->select({0, 3});
    grow(100);
    QCOMPARE(m_state->visible(), (TimeRange{2000, 6000})); // a chosen one stays
    QCOMPARE(m_state->extent().end, Nanos(99'900));
    QCOMPARE(m_state->selected(), (SpanRef{0, 3}));
    pieces.clear();
    grow(2);
    QVERIFY(!m_state->selected().valid()); // gone
}

// Large views show a draft at once; the exact frame follows from another thread when input rests.
void TestTimelineView::draftsSettle()
{
    std::vector<samples::Piece> pieces;
    for (Nanos i = 0; i < 120'000; ++i)
        pieces.push_back({i * 100, i * 100 + 60, i % 2 == 0 ? OpKind::Forward : OpKind::WeightGrad});
    m_view->setRun(samples::written({pieces}));
    m_state->fitAll();
    const QImage draft = grabbed();
    QVERIFY(m_view->showsDraft());
    QTRY_VERIFY_WITH_TIMEOUT(!m_view->showsDraft(), 5000);
    const QImage exact = grabbed();
    QCOMPARE(exact.size(), draft.size());
    int same = 0, all = 0;
    for (int x = static_cast<int>(gutterWidth); x < 1200; x += 5) {
        for (int y = 40; y < 90; y += 2, ++all) same += exact.pixel(x, y) == draft.pixel(x, y) ? 1 : 0;
    }
    QVERIFY2(same > all * 9 / 10, qPrintable(QStringLiteral("%1 of %2").arg(same).arg(all)));
    m_view->setRun(samples::simulated("gpipe")); // a small one needs no draft
    grabbed();
    QVERIFY(!m_view->showsDraft());
}

void TestTimelineView::statusIsHonest()
{
    QVERIFY2(m_view->statusText().contains(QStringLiteral("4 ranks")), qPrintable(m_view->statusText()));
    QVERIFY(!m_view->statusText().contains(QStringLiteral("slices per px")));
    std::vector<samples::Piece> pieces;
    for (Nanos i = 0; i < 50'000; ++i) pieces.push_back({i * 100, i * 100 + 90});
    m_view->setRun(samples::written({pieces}));
    m_state->fitAll();
    const double density = 50'000 / (m_view->scene().axis.width / 1.012);
    QVERIFY2(m_view->statusText().contains(QStringLiteral("about %1 slices per px").arg(qRound(density))),
             qPrintable(m_view->statusText()));
}

void TestTimelineView::reachableByKeyboard()
{
    QVERIFY(m_view->focusPolicy() & Qt::TabFocus);
    QVERIFY(!m_view->accessibleName().isEmpty());
    QTest::keyClick(m_view.get(), Qt::Key_Period); // nothing selected: the first op in view
    QVERIFY(m_state->selected().valid());
    QSignalSpy spy(&m_view->input(), &TimelineInput::spanActivated);
    QTest::keyClick(m_view.get(), Qt::Key_Return);
    QCOMPARE(spy.count(), 1);
    Legend legend;
    legend.setPanels(m_view->panels());
    QVERIFY(legend.accessibleDescription().contains(QStringLiteral("Input gradient (I)")));
    QVERIFY(!legend.accessibleDescription().contains(QStringLiteral("Optimizer"))); // does not occur
    QCOMPARE(sliceLabel(makeOp(OpKind::InputGrad, 1, 3), 30), QStringLiteral("3"));
    QCOMPARE(sliceLabel(makeOp(OpKind::InputGrad, 1, 3), 100), QStringLiteral("I3"));
    QCOMPARE(sliceLabel(makeOp(OpKind::Optimizer, 1), 20), QStringLiteral("O"));
}

QTEST_MAIN(TestTimelineView)
#include "tst_timeline_view.moc"
