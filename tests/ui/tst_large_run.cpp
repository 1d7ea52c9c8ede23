// A run of a few million spans: read in parts, step by step, every step on one axis, with damage and a truncated file.
#include <QtTest>

#include <QComboBox>
#include <QLabel>
#include <QProgressBar>
#include <QSet>

#include <filesystem>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/exchange/exchange_controller.h"
#include "app/ui/explain/steps_controller.h"
#include "app/ui/runs/run_lanes.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "recorded_runs.h"
#include "widgets/export/format_dialog.h"
#include "widgets/timeline/timeline_view.h"
#include "window_fixture.h"

using namespace stagewright;

class TestLargeRun : public QObject {
    Q_OBJECT

private:
    std::unique_ptr<WindowFixture> m_fixture;
    std::unique_ptr<MainWindow> m_window;
    QString m_path;
    qint64 m_spans = 0;
    int m_steps = 0;
    inline static const samples::RecordedShape shape{16, 32, 900, "zb-h1", 0.05, true};

    const TimelinePanel& panel() const { return *m_window->workspace().views().timeline->panels().front(); }
    RunRef ref() const { return {m_path, 1}; }
    bool settle() { return WindowFixture::settle(*m_window, 120000); }
    // The middle of a slice of a step on the axis of every step.
    std::pair<Nanos, std::size_t> opOfStep(int rank, int step) const
    {
        const auto& bounds = panel().steps;
        const auto at =
            std::find_if(bounds.begin(), bounds.end(), [&](const PanelStep& one) { return one.step == step; });
        const LaneData& lane = panel().ranks[static_cast<std::size_t>(rank)].compute;
        const std::size_t slice = lane.firstBeginningAt(at->begin) + 3;
        return {(lane.slices()[slice].begin() + lane.slices()[slice].end()) / 2, slice};
    }

private slots:
    void initTestCase()
    {
        m_fixture = std::make_unique<WindowFixture>();
        m_path = RunLibrary::normalised(m_fixture->dir.filePath(QStringLiteral("large.stagewright")));
        samples::RecordedShape large = shape;
        const auto one =
            samples::Recording(m_fixture->dir.filePath(QStringLiteral("probe.stagewright")).toStdString(), large)
                .spansPerStep();
        large.steps = static_cast<int>(wholeRunSpans * 3 / 2 / one);
        m_steps = large.steps;
        const auto made = samples::recordRun(m_path.toStdString(), large);
        QVERIFY(made.has_value());
        m_spans = *made;
        QVERIFY(m_spans > wholeRunSpans);
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::show(*m_window));
    }
    void cleanupTestCase() { m_window.reset(); }

    void itOpensAtItsMedianStep()
    {
        m_window->workspace().feature<FileOpening>()->openFiles({m_path});
        QVERIFY(settle());
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
        QCOMPARE(m_window->workspace().shown().mode(), Shown::Mode::Run);
        QCOMPARE(static_cast<qint64>(panel().timeline->spans().size()), m_spans / m_steps); // only this step
        QVERIFY(!panel().isPart());
        auto* steps = m_window->findChild<QComboBox*>(QString(), Qt::FindChildrenRecursively);
        for (auto* box : m_window->findChildren<QComboBox*>())
            if (box->accessibleName() == QStringLiteral("Step")) steps = box;
        QCOMPARE(steps->count(), m_steps + 3); // a separator, all of them, a choice
        QVERIFY(steps->currentText().contains(QStringLiteral("median")));
    }

    void stepsAreReadOneByOne()
    {
        for (const int step : {5, 6, m_steps - 1}) {
            m_window->workspace().shown().showRun(ref(), step);
            QVERIFY(settle());
            QCOMPARE(panel().step, step);
            QCOMPARE(static_cast<qint64>(panel().timeline->spans().size()), m_spans / m_steps);
            QCOMPARE(panel().timeline->spans().front().step, step);
        }
        m_window->workspace().actions()["previousStep"]->trigger();
        QVERIFY(settle());
        QCOMPARE(panel().step, m_steps - 2);
    }

    void everyStepIsAnOverviewThenExact()
    {
        m_window->workspace().actions()["allSteps"]->trigger();
        QVERIFY(QTest::qWaitFor([&] { return panel().isPart(); }, 120000));
        QVERIFY(panel().overview); // ready before the slices are
        const std::vector<double> coarse = [&] {
            std::vector<double> busy;
            for (const PanelRank& rank : panel().ranks) busy.push_back(rank.busyFraction);
            return busy;
        }();
        QVERIFY(m_window->workspace().views().timeline->statusText().contains(QStringLiteral("overview")));
        const QImage first = m_window->workspace().views().timeline->grab().toImage();
        QVERIFY(QTest::qWaitFor([&] { return !panel().overview; }, 120000));
        QVERIFY(settle());
        QCOMPARE(panel().sliceCount, m_spans);
        QCOMPARE(static_cast<int>(panel().steps.size()), m_steps);
        for (std::size_t rank = 0; rank < coarse.size(); ++rank)
            QVERIFY(std::abs(coarse[rank] - panel().ranks[rank].busyFraction) < 0.01);
        QVERIFY(!m_window->workspace().views().timeline->statusText().contains(QStringLiteral("overview")));
        QVERIFY(QTest::qWaitFor([&] { return !m_window->workspace().views().timeline->showsDraft(); }, 60000));
        // The overview looks like the exact picture: most pixels of the rows are equal.
        const QImage second = m_window->workspace().views().timeline->grab().toImage();
        QCOMPARE(first.size(), second.size());
        int alike = 0, all = 0;
        for (int y = 40; y < first.height() - 4; y += 3)
            for (int x = 160; x < first.width() - 20; x += 3) {
                const QColor a = first.pixelColor(x, y), b = second.pixelColor(x, y);
                ++all;
                alike +=
                    std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) + std::abs(a.blue() - b.blue()) < 120
                        ? 1
                        : 0;
            }
        QVERIFY2(alike > all * 3 / 4, qPrintable(QStringLiteral("%1 of %2 pixels").arg(alike).arg(all)));
        // The chart of the memory keeps its peak.
        const auto step = RunFile::open(m_path.toStdString(), OpenMode::Read).value()->readStep(1, 3).value();
        for (int rank = 0; rank < 16; ++rank)
            QCOMPARE(panel().ranks[static_cast<std::size_t>(rank)].activations.peak,
                     memorySeries(*step.timeline, rank, 3).peak);
    }

    void detailsComeWithAClick()
    {
        const int other = panel().detailStep == 40 ? 41 : 40;
        const auto [time, slice] = opOfStep(2, other);
        QCOMPARE(panel().ranks[2].compute.spanOf(slice), noSpan);
        m_window->workspace().viewState()->setVisible({time - 20'000'000, time + 20'000'000});
        const auto rect = m_window->workspace().views().timeline->scene().rowRect(0, 2);
        QVERIFY(rect.has_value());
        const Axis axis = m_window->workspace().views().timeline->scene().axis;
        const QPoint at(static_cast<int>(axis.toX(time)), static_cast<int>(rect->top() + 6));
        QVERIFY(!m_window->workspace().views().timeline->scene().spanAt(at).valid());
        QTest::mouseClick(m_window->workspace().views().timeline, Qt::LeftButton, {}, at);
        QVERIFY(QTest::qWaitFor([&] { return panel().detailStep == other; }, 120000));
        QVERIFY(settle());
        const SpanRef selected = m_window->workspace().viewState()->selected();
        QVERIFY(selected.valid());
        const Span& span = panel().timeline->spans()[selected.span];
        QCOMPARE(span.step, other);
        QVERIFY(span.start - panel().origin <= time && span.end - panel().origin >= time);
        QVERIFY(!m_window->workspace().views().timeline->cardOf(selected).rows.empty());
        QVERIFY(m_window->workspace().views().timeline->rectOf(selected).has_value());
        QVERIFY(m_window->workspace().views().timeline->rectOf(selected)->contains(at));
    }

    void walkingOnCrossesSteps()
    {
        const int step = panel().detailStep;
        const LaneData lane = panel().ranks[1].compute;
        m_window->workspace().viewState()->select({0, lane.spanOf(lane.idsEnd() - 1)});
        m_window->workspace().views().timeline->setFocus();
        QTest::keyClick(m_window->workspace().views().timeline, Qt::Key_Period);
        QVERIFY(QTest::qWaitFor([&] { return panel().detailStep == step + 1; }, 120000));
        QVERIFY(settle());
        QVERIFY(m_window->workspace().viewState()->selected().valid());
    }

    void opsAreFound()
    {
        m_window->workspace().feature<OpFinding>()->find(QStringLiteral("mb:7 stage:3 W"));
        QVERIFY(settle());
        const SpanRef selected = m_window->workspace().viewState()->selected();
        QVERIFY(selected.valid());
        QCOMPARE(panel().timeline->spans()[selected.span].op.microbatch, 7);
        // again: no other in this step, so in the next one; and back
        const int step = panel().detailStep;
        m_window->workspace().feature<OpFinding>()->find(QStringLiteral("mb:7 stage:3 W"));
        QVERIFY(QTest::qWaitFor(
            [&] { return panel().detailStep == step + 1 && m_window->workspace().viewState()->selected().valid(); },
            120000));
        QVERIFY(settle());
        m_window->workspace().feature<OpFinding>()->find(QStringLiteral("mb:7 stage:3 W"), true);
        QVERIFY(QTest::qWaitFor(
            [&] { return panel().detailStep == step && m_window->workspace().viewState()->selected().valid(); },
            120000));
        QVERIFY(settle());
        QCOMPARE(panel().timeline->spans()[m_window->workspace().viewState()->selected().span].op.microbatch, 7);
        m_window->workspace().feature<OpFinding>()->find(QStringLiteral("mb:777"));
        QVERIFY(settle());
        QCOMPARE(panel().detailStep, step);
    }

    void readingCanBeCancelled()
    {
        m_window->workspace().shown().showRun(ref(), 2);
        QVERIFY(settle());
        m_window->workspace().library()->reload(m_path);
        QVERIFY(settle());
        m_window->workspace().library()->close(m_path); // and what was read of it
        m_window->workspace().feature<FileOpening>()->openFiles({m_path});
        QVERIFY(settle());
        m_window->workspace().shown().showSteps(ref(), {});
        QVERIFY(QTest::qWaitFor([&] { return m_window->workspace().library()->readsEveryStep(); }, 120000));
        m_window->workspace().feature<StepsController>()->cancel();
        QVERIFY(settle());
        QVERIFY(!panel().overview);
        QVERIFY(!panel().isPart());
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
    }

    void itComparesByItsMedianStep()
    {
        const QString small = m_fixture->file("small.stagewright", {"1f1b"}, 16, 32);
        m_window->workspace().library()->open(small);
        QVERIFY(settle());
        m_window->workspace().feature<RunComparing>()->show({ref(), {RunLibrary::normalised(small), 1}});
        QVERIFY(settle());
        QCOMPARE(m_window->workspace().shown().mode(), Shown::Mode::Compare);
        QVERIFY(m_window->workspace().shown().comparison() != nullptr);
    }

    void twoLargeRunsCompareByAnyStep()
    {
        const QString other = RunLibrary::normalised(m_fixture->dir.filePath(QStringLiteral("other.stagewright")));
        samples::RecordedShape slower = shape;
        slower.schedule = "1f1b";
        slower.memory = false;
        slower.steps = m_steps + 30; // it has fewer spans per step
        QVERIFY(samples::recordRun(other.toStdString(), slower).has_value());
        m_window->workspace().feature<FileOpening>()->openFiles({m_path, other});
        QVERIFY(settle());
        QVERIFY(m_window->workspace().runs()->info({other, 1})->spanCount > wholeRunSpans);
        m_window->workspace().feature<RunComparing>()->show({ref(), {other, 1}});
        QVERIFY(settle());
        QCOMPARE(m_window->workspace().shown().mode(), Shown::Mode::Compare);
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
        QCOMPARE(m_window->workspace().views().timeline->panels().size(), std::size_t(2));
        // a step of each, with its spans
        for (const auto& one : m_window->workspace().views().timeline->panels()) QVERIFY(!one->isPart());
        for (const int step : {3, m_steps - 1}) {
            m_window->workspace().feature<CompareController>()->setStep(step);
            QVERIFY(settle());
            QCOMPARE(m_window->workspace().shown().mode(), Shown::Mode::Compare);
            for (const auto& one : m_window->workspace().views().timeline->panels()) QCOMPARE(one->step, step);
        }
        QVERIFY(!m_window->workspace().feature<CompareController>()->panel()->findChildren<QLabel*>().isEmpty());
        m_window->workspace().feature<FileOpening>()->closeFile(other);
        QVERIFY(settle());
    }

    // A step with too many ops to analyse: drawn in full, and a sentence says what is missing.
    void stepsBeyondDetailAreDrawnAndSaySo()
    {
        const QString path = RunLibrary::normalised(m_fixture->dir.filePath(QStringLiteral("vast.stagewright")));
        samples::RecordedShape vast{64, 5000, 1, "zb-h1", 0.05, false};
        const auto made = samples::recordRun(path.toStdString(), vast);
        QVERIFY(made.has_value());
        QVERIFY(*made > detailedSpans);
        const QString small = m_fixture->file("beside.stagewright", {"1f1b"}, 4, 8);
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window, 240000));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        QVERIFY2(window.workspace().banner()->text().contains(QStringLiteral("zoom in or click")),
                 qPrintable(window.workspace().banner()->text()));
        const TimelinePanel& drawn = *window.workspace().views().timeline->panels().front();
        QVERIFY(drawn.isPart());
        QCOMPARE(static_cast<int>(drawn.ranks.size()), vast.ranks);
        for (const ActionId id : {"nextGap", "slack", "whatIf", "loweredView", "residuals", "editMode"})
            QVERIFY2(!window.workspace().actions()[id]->isEnabled(),
                     qPrintable(window.workspace().actions()[id]->text()));
        // the order is known whole
        FormatDialog* formats = window.workspace().feature<ExchangeController>()->openDialog();
        QVERIFY(formats != nullptr && !formats->formats().empty());
        for (const FormatInfo* format : formats->formats()) QVERIFY(format->order);
        formats->reject();
        // Busy time is ink; the op under the pointer is unknown until a click reads the part around it.
        const auto row = window.workspace().views().timeline->scene().rowRect(0, 0);
        QVERIFY(row.has_value());
        QVERIFY(QTest::qWaitFor([&] { return !window.workspace().views().timeline->showsDraft(); }, 60000));
        QSet<QRgb> colours;
        const QImage image = window.workspace().views().timeline->grab().toImage();
        for (int x = static_cast<int>(row->left()); x < row->right(); x += 3)
            colours << image.pixel(x, static_cast<int>(row->center().y()));
        QVERIFY(colours.size() > 2);
        const QPoint middle = row->center().toPoint();
        QVERIFY(!window.workspace().views().timeline->scene().spanAt(middle).valid());
        QTest::mouseClick(window.workspace().views().timeline, Qt::LeftButton, {}, middle);
        QVERIFY(WindowFixture::settle(window, 240000));
        QVERIFY(window.workspace().shown().view()->excerpt.has_value());
        QVERIFY(window.workspace().viewState()->selected().valid());
        // It can't be compared either, and says so.
        window.workspace().banner()->clear();
        window.workspace().library()->open(small);
        QVERIFY(WindowFixture::settle(window, 60000));
        window.workspace().feature<RunComparing>()->show({{path, 1}, {RunLibrary::normalised(small), 1}});
        QVERIFY(WindowFixture::settle(window, 240000));
        QVERIFY(window.workspace().shown().mode() != Shown::Mode::Compare);
        QVERIFY(!window.workspace().banner()->text().isEmpty());
        window.workspace().shown().showRun({RunLibrary::normalised(small), 1});
        QVERIFY(WindowFixture::settle(window, 60000));
        QVERIFY(window.workspace().actions()["editMode"]->isEnabled());
    }

    void aCutFileIsTold()
    {
        m_window->workspace().shown().showRun(ref(), 9);
        QVERIFY(settle());
        std::filesystem::resize_file(m_path.toStdString(), std::filesystem::file_size(m_path.toStdString()) / 4);
        m_window->workspace().shown().showRun(ref(), m_steps / 2 + 3); // not read before
        QVERIFY(settle());
        m_window->workspace().shown().showSteps(ref(), {});
        QVERIFY(settle());
        QVERIFY(!m_window->workspace().banner()->text().isEmpty());
        QVERIFY(!m_window->workspace().views().timeline->panels().empty());
        (void)m_window->workspace().views().timeline->grab();
    }
};

QTEST_MAIN(TestLargeRun)
#include "tst_large_run.moc"
