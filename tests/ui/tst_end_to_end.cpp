// The whole loop in the real window with the real recorder as its child: record, edit by mouse, run, compare.
#include <QSignalSpy>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/timeline/timeline_of.h"
#include "tests/ui/window_fixture.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/panel/side_panel.h"
#include "widgets/record/record_dialog.h"
#include "widgets/record/record_process.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestEndToEnd : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { QVERIFY2(WindowFixture::recordsWithBuiltProgram(), "the program stagewright is not built"); }

    void recordEditRunCompare()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(WindowFixture::show(window));

        // Record, through the dialog.
        const QString path = fixture.dir.filePath(QStringLiteral("loop.stagewright"));
        RecordDialog* dialog = window.workspace().feature<Recording>()->openRecordDialog();
        dialog->setSetup(WindowFixture::tinyRecording());
        dialog->setTargets({}, path);
        QVERIFY2(dialog->faultText().isEmpty(), qPrintable(dialog->faultText()));
        QSignalSpy ended(window.workspace().feature<Recording>()->process(), &RecordProcess::finished);
        dialog->accept();
        QVERIFY(window.workspace().feature<Recording>()->process()->running());
        QVERIFY(ended.wait(60000));
        QVERIFY2(window.workspace().feature<Recording>()->process()->state() == RecordProcess::State::Finished,
                 qPrintable(window.workspace().feature<Recording>()->process()->errorMessage()));
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().shown().mode() == Shown::Mode::Run && window.workspace().settled(),
                                 20000);
        QCOMPARE(window.workspace().runs()->refs().size(), std::size_t(1));
        QCOMPARE(window.workspace().runs()->info(window.workspace().shown().ref())->provenance, Provenance::Measured);
        QVERIFY(window.workspace().views().side->plainText().contains(QStringLiteral("in this step")));

        // Edit by mouse: a weight gradient to after the op that follows it.
        window.workspace().feature<OrderEditing>()->enterEdit();
        QTest::qWait(50); // the panels lay themselves out
        ScheduleEditor& editor = window.workspace().feature<OrderEditing>()->editor();
        const auto row = editor.schedule().order[0];
        int w = 0;
        while (w < static_cast<int>(row.size()) && row[static_cast<std::size_t>(w)].kind != OpKind::WeightGrad) ++w;
        QVERIFY(w + 1 < static_cast<int>(row.size()));
        const auto target = window.workspace().views().timeline->rectOf({0, editor.spanAt({0, w + 1})});
        QVERIFY(target.has_value());
        WindowFixture::drag(window.workspace().views().timeline,
                            WindowFixture::centre(window, {0, editor.spanAt({0, w})}),
                            QPoint(static_cast<int>(target->right()) - 1, static_cast<int>(target->center().y())));
        QVERIFY(editor.changed());
        QVERIFY2(editor.valid(), editor.valid() ? "" : editor.validation().faults.front().message.c_str());
        const Schedule edited = editor.schedule();

        // Run it; it is compared with the original, in the same file.
        window.workspace().actions()["runEdited"]->trigger();
        QVERIFY2(window.workspace().feature<Recording>()->process()->running(),
                 qPrintable(window.workspace().banner()->text()));
        QVERIFY(ended.wait(60000));
        QVERIFY2(window.workspace().feature<Recording>()->process()->state() == RecordProcess::State::Finished,
                 qPrintable(window.workspace().feature<Recording>()->process()->errorMessage()));
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().shown().mode() == Shown::Mode::Compare && window.workspace().settled(), 20000);
        QVERIFY2(window.workspace().banner()->text().isEmpty(), qPrintable(window.workspace().banner()->text()));
        // The prediction is between them, in memory only.
        std::vector<RunRef> refs;
        for (const RunRef& ref : window.workspace().runs()->refs())
            if (ref.file == path) refs.push_back(ref);
        QCOMPARE(refs.size(), std::size_t(2));
        QCOMPARE(window.workspace().runs()->info(refs[1])->name,
                 window.workspace().runs()->info(refs[0])->name + " (edited)");
        const auto panels = window.workspace().views().timeline->panels();
        QCOMPARE(panels.size(), std::size_t(3));
        QVERIFY(panels[1]->timeline->provenance() == Provenance::Simulated);
        auto predicted = scheduleOf(*panels[1]->timeline, panels[1]->step);
        QVERIFY(predicted.has_value() && predicted->order == edited.order);
        QVERIFY2(window.workspace().feature<CompareController>()->panel()->plainText().contains(
                     QRegularExpression(QStringLiteral("Predicted .+ \\(B\\), measured .+ \\(C\\)"))),
                 qPrintable(window.workspace().feature<CompareController>()->panel()->plainText()));
        // What ran is what was drawn, op by op.
        auto ran = scheduleOf(*panels[2]->timeline, panels[2]->step);
        QVERIFY(ran.has_value());
        QVERIFY(ran->order == edited.order);
        // Same seed, same data: the loss of the first step is the same to the bit.
        const auto before = window.workspace().library()->cachedRun(refs[0]);
        const auto after = window.workspace().library()->cachedRun(refs[1]);
        QVERIFY(before && after && before->metric("loss") && after->metric("loss"));
        QCOMPARE(after->metric("loss")->values.front(), before->metric("loss")->values.front());
        QVERIFY(!window.workspace().feature<CompareController>()->panel()->plainText().isEmpty());
    }

    void cancellingKeepsCompleteSteps()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        Setup settings = WindowFixture::tinyRecording();
        settings.steps = 100000;
        const QString path = fixture.dir.filePath(QStringLiteral("long.stagewright"));
        QSignalSpy ended(window.workspace().feature<Recording>()->process(), &RecordProcess::finished);
        window.workspace().feature<Recording>()->startRecording(settings, path, true);
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().feature<Recording>()->process()->done() >= 3, 60000);
        // Live: the timeline shows a step while the child continues.
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().shown().mode() == Shown::Mode::Run, 30000);
        QVERIFY(window.workspace().feature<Recording>()->process()->running());
        window.workspace().actions()["cancelRecording"]->trigger();
        QVERIFY(ended.wait(30000));
        QCOMPARE(window.workspace().feature<Recording>()->process()->state(), RecordProcess::State::Cancelled);
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().settled() && window.workspace().shown().mode() == Shown::Mode::Run,
                                 20000);
        QVERIFY(window.workspace().banner()->text().contains(QStringLiteral("kept")));
        QVERIFY(window.workspace().runs()->info(window.workspace().shown().ref())->steps >= 3);
    }
};

QTEST_MAIN(TestEndToEnd)
#include "tst_end_to_end.moc"
