// A step too large for one timeline (by injected limits): what is in view is read once it is little enough, and is then
// as good as the whole.
#include <QtTest>

#include <QStatusBar>

#include "app/ui/runs/run_lanes.h"
#include "app/ui/workspace/banner.h"
#include "traces/report/range_report.h"
#include "window_fixture.h"

using namespace stagewright;

class TestExcerpts : public QObject {
    Q_OBJECT

private:
    std::unique_ptr<WindowFixture> m_fixture;
    std::unique_ptr<MainWindow> m_window;
    QString m_path;
    std::unique_ptr<Run> m_whole;

    Workspace& workspace() const { return m_window->workspace(); }
    const TimelinePanel& panel() const { return *workspace().views().timeline->panels().front(); }
    bool settle() const { return WindowFixture::settle(*m_window, 60000); }
    bool hasExcerpt() const { return workspace().shown().view() && workspace().shown().view()->excerpt.has_value(); }
    QPoint pointOf(int rank, Nanos time) const
    {
        const auto rect = workspace().views().timeline->scene().rowRect(0, rank);
        return {static_cast<int>(workspace().views().timeline->scene().axis.toX(time)),
                static_cast<int>(rect->top() + 6)};
    }
    // The middle of an op of the rank that is in view, by the whole run.
    Nanos opAt(int rank, Nanos from) const
    {
        const Track& track = *m_whole->timeline->trackOf(rank, Lane::Compute);
        for (const Span& span : m_whole->timeline->spansOf(track))
            if (span.start - panel().origin >= from) return (span.start + span.end) / 2 - panel().origin;
        return -1;
    }
    void zoom(Nanos begin, Nanos end) const { workspace().viewState()->setVisible({begin, end}); }

private slots:
    void initTestCase()
    {
        m_fixture = std::make_unique<WindowFixture>();
        m_path = RunLibrary::normalised(m_fixture->file("vast.stagewright", {"1f1b"}, 4, 500));
        m_whole = std::make_unique<Run>(RunFile::open(m_path.toStdString(), OpenMode::Read).value()->read(1).value());
        QVERIFY(m_whole->timeline->spans().size() > 6000);
    }
    void cleanup() { m_window.reset(); }
    void cleanupTestCase() { qunsetenv("STAGEWRIGHT_LARGE_RUN"); }

    void whatIsInViewIsRead_data()
    {
        QTest::addColumn<QByteArray>("limits");
        QTest::addColumn<bool>("lanes");
        QTest::newRow("every op drawn") << QByteArray("1000,2000,1000000,1500") << true;
        QTest::newRow("overview alone") << QByteArray("1000,2000,0,1500") << false;
    }
    void whatIsInViewIsRead()
    {
        QFETCH(const QByteArray, limits);
        QFETCH(const bool, lanes);
        qputenv("STAGEWRIGHT_LARGE_RUN", limits);
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::show(*m_window));
        workspace().feature<FileOpening>()->openFiles({m_path});
        QVERIFY(settle());
        QCOMPARE(workspace().shown().mode(), Shown::Mode::Run);
        QVERIFY(panel().isPart());
        QCOMPARE(panel().overview, !lanes);
        QVERIFY(!hasExcerpt());
        QVERIFY2(workspace().banner()->text().contains(QStringLiteral("zoom in")),
                 qPrintable(workspace().banner()->text()));
        QVERIFY(workspace().shown().captions().status.contains(QStringLiteral("zoom in")));
        const Actions& actions = workspace().actions();
        QVERIFY(!actions["nextGap"]->isEnabled());

        // A click with everything in view: the part around it where every op is drawn, else the reason why not.
        const Nanos middle = panel().duration / 2;
        QTest::mouseClick(workspace().views().timeline, Qt::LeftButton, {}, pointOf(1, opAt(1, middle)));
        QVERIFY(settle());
        QCOMPARE(hasExcerpt(), lanes);
        QCOMPARE(workspace().viewState()->selected().valid(), lanes);
        if (!lanes)
            QVERIFY2(
                m_window->statusBar()->currentMessage().contains(QStringLiteral("Zoom in to at most 1,500 to select")),
                qPrintable(m_window->statusBar()->currentMessage()));
        if (lanes) {
            const Span& span = panel().timeline->spans()[workspace().viewState()->selected().span];
            // ops are about a pixel wide
            const auto pixels = static_cast<Nanos>(3 * workspace().views().timeline->scene().axis.nanosPerPixel());
            QVERIFY(span.start - panel().origin <= opAt(1, middle) + pixels &&
                    span.end - panel().origin >= opAt(1, middle) - pixels);
        }

        // Zoomed in: its figures are those of the whole run cut to the same range.
        const Nanos begin = panel().duration / 3, end = begin + panel().duration / 12;
        zoom(begin, end);
        QVERIFY(QTest::qWaitFor(
            [&] { return hasExcerpt() && workspace().shown().view()->excerpt->begin == begin + panel().origin; },
            30000));
        QVERIFY(settle());
        const auto view = workspace().shown().view();
        QVERIFY(view->run->timeline->spans().size() < m_whole->timeline->spans().size() / 3);
        QVERIFY(panel().isPart() && !panel().overview);
        QCOMPARE(panel().duration, m_whole->timeline->end() - m_whole->timeline->begin());
        const RunReport expected =
            reportIn(*reportOf(*m_whole, {.step = 0}), *m_whole->timeline, view->excerpt->begin, view->excerpt->end);
        const RunReport& got = *view->figures;
        QCOMPARE(got.spans, expected.spans);
        QCOMPARE(got.bubbles.busy, expected.bubbles.busy);
        QCOMPARE(got.bubbles.idle, expected.bubbles.idle);
        QVERIFY(got.bubbles.byCause == expected.bubbles.byCause);
        for (std::size_t rank = 0; rank < 4; ++rank) {
            QCOMPARE(got.bubbles.ranks[rank].busy, expected.bubbles.ranks[rank].busy);
            QVERIFY(got.memory[rank].peak == expected.memory[rank].peak);
        }
        QVERIFY(workspace().shown().captions().status.contains(QStringLiteral("details and figures of")));

        // A click, a card, arrows, the next gap.
        const Nanos time = opAt(2, begin + (end - begin) / 2);
        QTest::mouseClick(workspace().views().timeline, Qt::LeftButton, {}, pointOf(2, time));
        QVERIFY(settle());
        const SpanRef selected = workspace().viewState()->selected();
        QVERIFY(selected.valid());
        const Span span = panel().timeline->spans()[selected.span];
        QVERIFY(span.start - panel().origin <= time && span.end - panel().origin >= time);
        QVERIFY(!workspace().views().timeline->cardOf(selected).rows.empty());
        QVERIFY(!panel().timeline->edgesInto(selected.span).empty());
        for (const ActionId id : {"nextGap", "slack"}) QVERIFY(actions[id]->isEnabled());
        for (const ActionId id : {"editMode", "whatIf", "loweredView", "residuals", "exportReport"})
            QVERIFY2(!actions[id]->isEnabled(), qPrintable(actions[id]->text()));
        QVERIFY(!workspace().views().timeline->grab().isNull());

        // Moved a little: another part, the same op selected.
        zoom(begin + (end - begin) / 8, end + (end - begin) / 8);
        QVERIFY(QTest::qWaitFor(
            [&] {
                return workspace().shown().view()->excerpt &&
                       workspace().shown().view()->excerpt->begin == begin + (end - begin) / 8 + panel().origin;
            },
            30000));
        QVERIFY(settle());
        QVERIFY(workspace().viewState()->selected().valid());
        QCOMPARE(panel().timeline->spans()[workspace().viewState()->selected().span].start, span.start);

        // The gap before an op, with its cause, by the key.
        workspace().views().timeline->setFocus();
        actions["nextGap"]->trigger();
        QVERIFY(settle());
        QVERIFY(panel().bubbles.has_value() && !panel().bubbles->gaps.empty());

        // Zoomed out again: the overview has everything, drawn lanes keep what was read.
        zoom(0, panel().duration);
        QVERIFY(QTest::qWaitFor([&] { return lanes || !hasExcerpt(); }, 30000));
        QVERIFY(settle());
        QCOMPARE(panel().overview, !lanes);
        QVERIFY(!workspace().views().timeline->grab().isNull());
    }

    void anEmptyPartIsSaid()
    {
        qputenv("STAGEWRIGHT_LARGE_RUN", "1000,2000,0,1500");
        const auto large = openLargeRun({m_path, 1});
        QVERIFY(large.has_value());
        QVERIFY(!(*large)->detailed() && !(*large)->keepsLanes());
        QCOMPARE((*large)->spansIn((*large)->content.begin, (*large)->content.end),
                 static_cast<qint64>(m_whole->timeline->spans().size()));
        TimelinePanel base;
        base.origin = (*large)->content.begin;
        base.duration = (*large)->content.end - (*large)->content.begin;
        const auto empty = readExcerptView(**large, base, (*large)->content.end + 1'000'000,
                                           (*large)->content.end + 2'000'000, {}, {});
        QVERIFY(!empty && empty.error().code == ErrorCode::Invalid && !empty.error().remedy.empty());
        std::stop_source stop;
        stop.request_stop();
        Progress progress;
        progress.stop = stop.get_token();
        const auto cancelled =
            readExcerptView(**large, base, (*large)->content.begin, (*large)->content.end, {}, progress);
        QVERIFY(!cancelled && cancelled.error().code == ErrorCode::Cancelled);
    }
};

QTEST_MAIN(TestExcerpts)
#include "tst_excerpts.moc"
