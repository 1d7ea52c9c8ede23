// Playback: the beats of a picture, the pace of the cursor, and what is drawn on either side of it.
#include <algorithm>
#include <set>

#include <QApplication>
#include <QPushButton>

#include "app/ui/playback/playback_bar.h"
#include "app/ui/playback/playback_controller.h"
#include "app/ui/playback/playback_overlay.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/timeline/timeline_view.h"
#include "window_fixture.h"

using namespace stagewright;

namespace {

std::shared_ptr<const Beats> beatsOfRun(const Run& run)
{
    PanelOptions options;
    options.step = 0;
    return makeBeats({makePanel(run.timeline, options)});
}

} // namespace

class TestPlayback : public QObject {
    Q_OBJECT
    WindowFixture m_fixture;

    std::unique_ptr<MainWindow> opened(const char* schedule)
    {
        auto window = std::make_unique<MainWindow>();
        window->workspace().feature<FileOpening>()->openFiles({m_fixture.file("runs.stagewright", {schedule})});
        if (!WindowFixture::show(*window) || !WindowFixture::settle(*window)) return nullptr;
        return window;
    }

private slots:
    void beats_are_the_begins_of_ops()
    {
        const Run run = WindowFixture::simulated("1f1b");
        const auto beats = beatsOfRun(run);
        std::set<Nanos> begins;
        for (const Span& span : run.timeline->spans())
            if (run.timeline->trackOf(static_cast<SpanId>(&span - run.timeline->spans().data())).lane == Lane::Compute)
                begins.insert(span.start);
        for (const Nanos begin : begins) { // each belongs to the beat just before it
            const int at = beats->at(begin);
            QVERIFY(at >= 0);
            QVERIFY(begin - beats->beats[static_cast<std::size_t>(at)].time <= rankShare / 50);
        }
        for (std::size_t i = 1; i < beats->beats.size(); ++i) QVERIFY(beats->beats[i].time > beats->beats[i - 1].time);
        QCOMPARE(beats->parcels.size(), std::size_t(48)); // a forward and a gradient over three borders, eight times
        for (const Parcel& parcel : beats->parcels) {
            QCOMPARE(parcel.arrival - parcel.sent, rankShare / 20);
            QVERIFY(parcel.consumed >= parcel.arrival);
            QCOMPARE(std::abs(parcel.from - parcel.to), 1);
        }
        QCOMPARE(beats->unit, rankShare);
        QCOMPARE(beats->at(beats->beats[3].time), 3);
        QCOMPARE(beats->at(beats->beats[3].time - 1), 2);
    }

    void a_pattern_that_goes_on_repeats()
    {
        const auto share = [](const Beats& beats) {
            return static_cast<double>(std::count_if(beats.beats.begin(), beats.beats.end(),
                                                     [](const Beat& beat) { return beat.repeats; })) /
                   static_cast<double>(beats.beats.size());
        };
        const auto many = beatsOfRun(WindowFixture::simulated("1f1b", 4, 32));
        QVERIFY(share(*many) > share(*beatsOfRun(WindowFixture::simulated("1f1b", 4, 8))));
        QVERIFY(!many->beats.front().repeats);
        QVERIFY(!many->beats.back().repeats);
    }

    void the_pace_follows_what_happens()
    {
        auto beats = std::make_shared<Beats>();
        beats->unit = 1000;
        beats->end = 100000;
        beats->beats.resize(3);
        beats->beats[0].isFirst = true;
        beats->beats[1].time = 10000;
        beats->beats[2].time = 20000;
        beats->beats[2].repeats = true;
        Player player;
        player.setBeats(beats);
        player.begin();
        player.advance(300); // at a third of 2 ns per millisecond
        QCOMPARE(player.cursor(), Nanos(200));
        player.seek(10000);
        player.advance(500);
        QCOMPARE(player.cursor(), Nanos(11000));
        player.setSpeed(3);
        player.advance(500);
        QCOMPARE(player.cursor(), Nanos(15000));
        player.setSpeed(1);
        player.seek(20000);
        player.advance(500);
        QCOMPARE(player.cursor(), Nanos(28000));
        // Reduced motion: the same beats in the same time, and nothing in between.
        player.setReducedMotion(true);
        player.seek(10000);
        player.advance(4000);
        QCOMPARE(player.cursor(), Nanos(10000));
        player.advance(1001);
        QCOMPARE(player.cursor(), Nanos(20000));
        QSignalSpy moved(&player, &Player::cursorMoved);
        player.advance(100000);
        QCOMPARE(player.cursor(), beats->end);
        QCOMPARE(moved.count(), 1);
    }

    void space_walks_and_the_future_is_outlines()
    {
        const auto window = opened("1f1b");
        QVERIFY(window);
        Player* player = window->workspace().feature<PlaybackController>()->player();
        QTest::keyClick(window->workspace().views().timeline, Qt::Key_Space);
        QTRY_VERIFY_WITH_TIMEOUT(player->active(), 20000);
        QVERIFY(window->workspace().feature<PlaybackController>()->bar()->isVisible());
        for (int i = 0; i < 20; ++i) QTest::keyClick(window->workspace().views().timeline, Qt::Key_Space);
        QCOMPARE(player->beat(), 20);
        QVERIFY(std::any_of(player->beats()->beats.begin(), player->beats()->beats.end(),
                            [](const Beat& beat) { return !beat.words.isEmpty(); }));
        QCOMPARE(window->workspace().feature<PlaybackController>()->bar()->words(), player->beats()->beats[20].words);
        QTest::keyClick(window->workspace().views().timeline, Qt::Key_Space, Qt::ShiftModifier);
        QCOMPARE(player->beat(), 19);

        const TimelinePanel& panel = *window->workspace().views().timeline->panels().front();
        const QImage image = window->workspace().views().timeline->grab().toImage();
        const double ratio = image.devicePixelRatio();
        int past = 0, ahead = 0;
        for (std::size_t i = 0; i < panel.ranks[0].compute.size(); ++i) {
            const Slice& slice = panel.ranks[0].compute.slices()[i];
            const auto rect = window->workspace().views().timeline->rectOf({0, panel.ranks[0].compute.spanOf(i)});
            QVERIFY(rect);
            const QRgb pixel = image.pixel((rect->topLeft() + QPointF(6, 6)).toPoint() * ratio);
            if (slice.end() <= player->cursor()) {
                QCOMPARE(QColor(pixel), window->workspace().theme().of(slice.opKind()).fill);
                ++past;
            } else if (slice.begin() > player->cursor() + panel.duration / 8) { // parcels are near the cursor
                QCOMPARE(QColor(pixel), window->workspace().theme().canvas);
                ++ahead;
            }
        }
        QVERIFY(past > 2);
        QVERIFY(ahead > 2);

        // One strip per tick, narrower than the view.
        player->nextBeat();
        const QRect strip = window->workspace().feature<PlaybackController>()->overlay()->lastStrip();
        QVERIFY(strip.width() > 0);
        QVERIFY(strip.width() < window->workspace().views().timeline->width() / 2);

        QTest::keyClick(window.get(), Qt::Key_Escape);
        QVERIFY(!player->active());
        QVERIFY(!window->workspace().feature<PlaybackController>()->bar()->isVisible());
    }

    void stacks_hold_what_the_rank_holds()
    {
        const auto window = opened("1f1b");
        QVERIFY(window);
        Player* player = window->workspace().feature<PlaybackController>()->player();
        window->workspace().actions()["nextBeat"]->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(player->active(), 20000);
        const TimelinePanel& panel = *window->workspace().views().timeline->panels().front();
        // four forwards are done, no gradient has returned yet
        player->seek(panel.ranks[0].compute.slices()[4].begin() - 1);
        QCOMPARE(window->workspace().feature<PlaybackController>()->memory()->stacks().at(0),
                 (std::vector<int>{0, 1, 2, 3}));
        player->seek(player->beats()->end);
        QVERIFY(window->workspace().feature<PlaybackController>()->memory()->stacks().at(0).empty());
    }

    void p_plays_and_stops()
    {
        const auto window = opened("gpipe");
        QVERIFY(window);
        Player* player = window->workspace().feature<PlaybackController>()->player();
        QTest::keyClick(window->workspace().views().timeline, Qt::Key_P);
        QTRY_VERIFY_WITH_TIMEOUT(player->playing(), 20000);
        QTRY_VERIFY_WITH_TIMEOUT(player->cursor() > 0, 20000);
        QTest::keyClick(window->workspace().views().timeline, Qt::Key_P);
        QVERIFY(!player->playing());
        QVERIFY(player->active());
        const int before = player->beat();
        QTest::keyClick(window->workspace().views().timeline, Qt::Key_N);
        QVERIFY(player->beat() > before);
        QVERIFY(player->beats()->beats[static_cast<std::size_t>(player->beat())].interesting);
        QTest::keyClick(window->workspace().views().timeline, Qt::Key_3);
        QCOMPARE(player->speed(), 3);
        QVERIFY(window->workspace().actions()["pace3"]->isChecked());
        player->setSpeed(4);
        player->play(true);
        player->seek(player->beats()->end - 1);
        QTRY_VERIFY_WITH_TIMEOUT(!player->playing(), 20000);
        QCOMPARE(player->cursor(), player->beats()->end);
    }

    void edits_keep_the_cursor_and_another_run_does_not()
    {
        const auto window = opened("1f1b");
        QVERIFY(window);
        window->workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY(WindowFixture::settle(*window));
        Player* player = window->workspace().feature<PlaybackController>()->player();
        window->workspace().actions()["nextBeat"]->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(player->active(), 20000);
        for (int i = 0; i < 9; ++i) player->nextBeat();
        const Nanos cursor = player->cursor();
        const auto before = player->beats();
        QVERIFY(window->workspace().feature<OrderEditing>()->editor().nudge({0, 3}, 1));
        QTRY_VERIFY_WITH_TIMEOUT(player->beats() && player->beats() != before, 20000);
        QVERIFY(player->active());
        QCOMPARE(player->cursor(), cursor);
        window->workspace().feature<OrderEditing>()->leaveEdit();
        QVERIFY(!player->active());
    }

    void walking_over_ops_takes_the_cursor_along()
    {
        const auto window = opened("1f1b");
        QVERIFY(window);
        Player* player = window->workspace().feature<PlaybackController>()->player();
        window->workspace().actions()["nextBeat"]->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(player->active(), 20000);
        const TimelinePanel& panel = *window->workspace().views().timeline->panels().front();
        window->workspace().viewState()->select({0, panel.ranks[1].compute.spanOf(2)});
        QCOMPARE(player->cursor(), panel.ranks[1].compute.slices()[2].begin());
        QTest::keyClick(window->workspace().views().timeline, Qt::Key_Period);
        QCOMPARE(player->cursor(), panel.ranks[1].compute.slices()[3].begin());
    }

    void less_motion_is_remembered()
    {
        {
            MainWindow window;
            window.workspace().actions()["reducedMotion"]->trigger();
            QVERIFY(window.workspace().feature<PlaybackController>()->player()->reducedMotion());
        }
        MainWindow again;
        QVERIFY(again.workspace().feature<PlaybackController>()->player()->reducedMotion());
        again.workspace().actions()["reducedMotion"]->trigger();
        QVERIFY(!again.workspace().feature<PlaybackController>()->player()->reducedMotion());
    }
};

QTEST_MAIN(TestPlayback)
#include "tst_playback.moc"
