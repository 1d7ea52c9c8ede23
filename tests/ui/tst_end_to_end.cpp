// The whole loop in the real window with the real recorder as its child: record, edit by mouse, run, compare.
#include <QSignalSpy>

#include "schedules/timeline/timeline_of.h"
#include "tests/ui/window_fixture.h"
#include "widgets/record/record_dialog.h"

using namespace stagewright;

class TestEndToEnd : public QObject {
    Q_OBJECT

private slots:
    void initTestCase()
    {
        QVERIFY2(WindowFixture::recordsWithBuiltProgram(), "the program stagewright is not built");
    }

    void recordEditRunCompare()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(WindowFixture::show(window));

        // Record, through the dialog.
        const QString path = fixture.dir.filePath(QStringLiteral("loop.stagewright"));
        RecordDialog* dialog = window.openRecordDialog();
        dialog->setSettings(WindowFixture::tinyRecording());
        dialog->setTargets({}, path);
        QVERIFY2(dialog->faultText().isEmpty(), qPrintable(dialog->faultText()));
        QSignalSpy ended(window.recording(), &RecordProcess::finished);
        dialog->accept();
        QVERIFY(window.recording()->running());
        QVERIFY(ended.wait(60000));
        QVERIFY2(window.recording()->state() == RecordProcess::State::Finished, qPrintable(window.recording()->errorMessage()));
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() == MainWindow::Mode::Run && window.settled(), 20000);
        QCOMPARE(window.runs()->refs().size(), std::size_t(1));
        QCOMPARE(window.runs()->info(window.shownRef())->provenance, Provenance::Measured);
        QVERIFY(window.sidePanel()->plainText().contains(QStringLiteral("Loss of this step")));

        // Edit by mouse: a weight gradient to after the op that follows it.
        window.enterEdit();
        QTest::qWait(50); // the panels lay themselves out
        ScheduleEditor& editor = *window.editor();
        const auto row = editor.schedule().order[0];
        int w = 0;
        while (w < static_cast<int>(row.size()) && row[static_cast<std::size_t>(w)].kind != OpKind::WeightGrad)
            ++w;
        QVERIFY(w + 1 < static_cast<int>(row.size()));
        const auto target = window.timelineView()->rectOf({0, editor.spanAt({0, w + 1})});
        QVERIFY(target.has_value());
        WindowFixture::drag(window.timelineView(), WindowFixture::centre(window, {0, editor.spanAt({0, w})}),
                            QPoint(static_cast<int>(target->right()) - 1, static_cast<int>(target->center().y())));
        QVERIFY(editor.changed());
        QVERIFY2(editor.valid(), editor.valid() ? "" : editor.validation().faults.front().message.c_str());
        const Schedule edited = editor.schedule();

        // Run it; it is compared with the original, in the same file.
        window.actions()[ActionId::RunEdited]->trigger();
        QVERIFY2(window.recording()->running(), qPrintable(window.bannerText()));
        QVERIFY(ended.wait(60000));
        QVERIFY2(window.recording()->state() == RecordProcess::State::Finished, qPrintable(window.recording()->errorMessage()));
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() == MainWindow::Mode::Compare && window.settled(), 20000);
        QVERIFY2(window.bannerText().isEmpty(), qPrintable(window.bannerText()));
        // The prediction is between them, in memory only.
        std::vector<RunRef> refs;
        for (const RunRef& ref : window.runs()->refs())
            if (ref.file == path) refs.push_back(ref);
        QCOMPARE(refs.size(), std::size_t(2));
        QCOMPARE(window.runs()->info(refs[1])->name, window.runs()->info(refs[0])->name + " (edited)");
        const auto panels = window.timelineView()->panels();
        QCOMPARE(panels.size(), std::size_t(3));
        QVERIFY(panels[1]->timeline->provenance() == Provenance::Simulated);
        auto predicted = scheduleOf(*panels[1]->timeline, panels[1]->step);
        QVERIFY(predicted.has_value() && predicted->order == edited.order);
        QVERIFY2(window.comparePanel()->plainText().contains(QRegularExpression(QStringLiteral("Predicted .+ \\(B\\), measured .+ \\(C\\)"))), qPrintable(window.comparePanel()->plainText()));
        // What ran is what was drawn, op by op.
        auto ran = scheduleOf(*panels[2]->timeline, panels[2]->step);
        QVERIFY(ran.has_value());
        QVERIFY(ran->order == edited.order);
        // Same seed, same data: the loss of the first step is the same to the bit.
        const auto before = window.library()->cachedRun(refs[0]);
        const auto after = window.library()->cachedRun(refs[1]);
        QVERIFY(before && after && before->metric("loss") && after->metric("loss"));
        QCOMPARE(after->metric("loss")->values.front(), before->metric("loss")->values.front());
        QVERIFY(!window.comparePanel()->plainText().isEmpty());
    }

    void cancellingKeepsCompleteSteps()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        RecordSettings settings = WindowFixture::tinyRecording();
        settings.steps = 100000;
        const QString path = fixture.dir.filePath(QStringLiteral("long.stagewright"));
        QSignalSpy ended(window.recording(), &RecordProcess::finished);
        window.startRecording(settings, path, true);
        QTRY_VERIFY_WITH_TIMEOUT(window.recording()->done() >= 3, 60000);
        // Live: the timeline shows a step while the child continues.
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() == MainWindow::Mode::Run, 30000);
        QVERIFY(window.recording()->running());
        window.actions()[ActionId::CancelRecording]->trigger();
        QVERIFY(ended.wait(30000));
        QCOMPARE(window.recording()->state(), RecordProcess::State::Cancelled);
        QTRY_VERIFY_WITH_TIMEOUT(window.settled() && window.mode() == MainWindow::Mode::Run, 20000);
        QVERIFY(window.bannerText().contains(QStringLiteral("kept")));
        QVERIFY(window.runs()->info(window.shownRef())->steps >= 3);
    }
};

QTEST_MAIN(TestEndToEnd)
#include "tst_end_to_end.moc"
