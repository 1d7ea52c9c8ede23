// What an explanation marks on the timeline: gaps tinted, the chain drawn to the root, ops faded by their slack.
#include <QtTest>

#include "painted_timeline.h"
#include "widgets/gaps/gaps_overlay.h"

using namespace stagewright;

namespace {

constexpr Nanos ms = 1'000'000;

std::shared_ptr<const Timeline> twoRanks()
{
    return samples::written({{{0, 10 * ms}, {40 * ms, 50 * ms, OpKind::Backward}},
                             {{10 * ms, 20 * ms}, {20 * ms, 40 * ms, OpKind::Backward}}});
}

int ofColour(const QImage& image, const QColor& colour)
{
    int count = 0;
    for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) count += image.pixelColor(x, y) == colour ? 1 : 0;
    return count;
}

const auto themes = {&Theme::light(), &Theme::darkTheme()};

} // namespace

class TestTimelineNotes : public QObject {
    Q_OBJECT
private slots:
    void marksGapsAndNothingElse()
    {
        samples::PaintedTimeline shown(twoRanks());
        GapsOverlay marks(nullptr);
        shown.view.add(&marks);
        const QRectF before = shown.rectOf(0), after = shown.rectOf(1);
        const QPoint inGap(static_cast<int>((before.right() + after.left()) / 2), static_cast<int>(before.top() + 8));
        for (const Theme* theme : themes) {
            marks.set(nullptr);
            const QImage plain = shown.painted(*theme);
            auto notes = std::make_shared<TimelineNotes>();
            notes->gaps = {{0, {10 * ms, 40 * ms}}};
            marks.set(notes);
            const QImage marked = shown.painted(*theme);
            QVERIFY(plain.pixelColor(inGap) != marked.pixelColor(inGap));
            QCOMPARE(plain.pixelColor(before.center().toPoint()), marked.pixelColor(before.center().toPoint()));
            const QRectF other = shown.rectOf(2);
            QCOMPARE(plain.copy(0, static_cast<int>(other.top()), 1000, 20),
                     marked.copy(0, static_cast<int>(other.top()), 1000, 20));
            // A hundred thousand gaps under a pixel each tint what they cover, once.
            notes = std::make_shared<TimelineNotes>();
            for (Nanos i = 0; i < 100'000; ++i)
                notes->gaps.push_back({0, {10 * ms + i * 300, 10 * ms + i * 300 + 200}});
            marks.set(notes);
            QVERIFY(shown.painted(*theme).pixelColor(inGap) != plain.pixelColor(inGap));
        }
    }

    void drawsTheChainToTheRoot()
    {
        samples::PaintedTimeline shown(twoRanks());
        GapsOverlay marks(nullptr);
        shown.view.add(&marks);
        shown.state.setShows({.criticalPath = false});
        for (const Theme* theme : themes) {
            auto notes = std::make_shared<TimelineNotes>();
            notes->selected = GapNote{0, {10 * ms, 40 * ms}};
            notes->chain = {3, 2, 0};
            marks.set(nullptr);
            const int red = ofColour(shown.painted(*theme), theme->critical);
            marks.set(notes);
            const QImage marked = shown.painted(*theme);
            QVERIFY(ofColour(marked, theme->critical) > red + 100);
            notes = std::make_shared<TimelineNotes>(*notes); // for a long chain the root, not the last arrow
            for (int i = 0; i < 400; ++i) notes->chain.insert(notes->chain.begin(), {3, 2});
            marks.set(notes);
            const QRectF start = shown.rectOf(0);
            QCOMPARE(shown.painted(*theme).pixelColor(static_cast<int>(start.center().x()),
                                                      static_cast<int>(start.top()) - 1),
                     theme->critical);
            // The root is outlined, and the arrow from it ends at the op that waited for it.
            const QRectF root = shown.rectOf(0), second = shown.rectOf(2);
            QCOMPARE(marked.pixelColor(static_cast<int>(root.center().x()), static_cast<int>(root.top()) - 1),
                     theme->critical);
            QCOMPARE(marked.pixelColor(static_cast<int>(second.left()) - 3, static_cast<int>(second.center().y())),
                     theme->critical);
        }
    }

    void opsFadeWithTheirSlack()
    {
        samples::PaintedTimeline shown(twoRanks());
        GapsOverlay marks(nullptr);
        shown.view.add(&marks);
        for (const Theme* theme : themes) {
            auto notes = std::make_shared<TimelineNotes>();
            notes->slack = std::make_shared<const std::vector<Nanos>>(std::vector<Nanos>{0, 5 * ms, 10 * ms, -1});
            notes->mostSlack = 10 * ms;
            marks.set(nullptr);
            const QImage plain = shown.painted(*theme);
            marks.set(notes);
            const QImage faded = shown.painted(*theme);
            const auto distance = [&](const QImage& image, SpanId span) {
                const QRectF rect = shown.rectOf(span);
                const QColor c = image.pixelColor(static_cast<int>(rect.left() + rect.width() / 5),
                                                  static_cast<int>(rect.center().y()));
                return std::abs(c.red() - theme->canvas.red()) + std::abs(c.green() - theme->canvas.green()) +
                       std::abs(c.blue() - theme->canvas.blue());
            };
            QCOMPARE(distance(faded, 0), distance(plain, 0));
            QCOMPARE(distance(faded, 3), distance(plain, 3));
            QVERIFY(distance(faded, 1) < distance(plain, 1));
            QVERIFY(distance(faded, 2) < distance(plain, 2));
        }
    }

    void aClickOnIdleTimeIsTold()
    {
        samples::PaintedTimeline shown(twoRanks());
        QSignalSpy idle(&shown.view.selection(), &SelectionOverlay::idleClicked);
        const QRectF before = shown.rectOf(0), after = shown.rectOf(1);
        QTest::mouseClick(&shown.view, Qt::LeftButton, {},
                          QPointF((before.right() + after.left()) / 2, before.center().y()).toPoint());
        QCOMPARE(idle.count(), 1);
        QCOMPARE(idle.front().at(1).toInt(), 0);
        QVERIFY(std::abs(idle.front().at(2).value<Nanos>() - 25 * ms) < ms);
        QTest::mouseClick(&shown.view, Qt::LeftButton, {}, before.center().toPoint());
        QCOMPARE(idle.count(), 1);
    }
};

QTEST_MAIN(TestTimelineNotes)
#include "tst_timeline_notes.moc"
