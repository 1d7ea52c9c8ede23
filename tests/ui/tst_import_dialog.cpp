// Other tools' traces in the window: the dialog's preview, storing all or nothing, drops, the plan beside the measured
// run, and exporting again. Our own writer makes the traces; tests of recorded traces (STAGEWRIGHT_SHARED) are skipped
// where those are absent.
#include <QDropEvent>
#include <QFileDialog>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QProcess>
#include <QPushButton>
#include <QStatusBar>
#include <QTreeWidget>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/edit/plan_controller.h"
#include "app/ui/exchange/exchange_controller.h"
#include "app/ui/exchange/import_controller.h"
#include "app/ui/program/command_line.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/messages/lower.h"
#include "schedules/model/kinds.h"
#include "schedules/text/csv.h"
#include "schedules/text/diff.h"
#include "schedules/text/pytorch.h"
#include "tests/ui/text_fit.h"
#include "tests/ui/window_fixture.h"
#include "traces/export/kineto_writer.h"
#include "traces/export/perfetto.h"
#include "traces/format/format_registry.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/export/format_dialog.h"
#include "widgets/import/import_reading.h"

using namespace stagewright;

namespace {

QByteArray bytesOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

bool writeBytes(const QString& path, const QByteArray& bytes)
{
    QFile file(path);
    return file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size();
}

} // namespace

class TestImportDialog : public WindowTest {
    Q_OBJECT

    // A folder of traces, rank0.pt.trace.json and so on, of a simulated run.
    QString traces(const char* schedule, const char* name, int ranks = 4, int microbatches = 8)
    {
        const QString folder = m_fixture->dir.filePath(QString::fromLatin1(name));
        // without latency, which their messages don't record
        const Schedule order = *makeSchedule(schedule, Shape{ranks, microbatches, 0});
        const auto written = writeKinetoFolder(*simulatedRun(order, CostModel::uniform(order)), folder.toStdString());
        return written ? folder : QString();
    }
    QStringList filesIn(const QString& folder) const
    {
        QStringList files;
        for (const QString& name : QDir(folder).entryList(QDir::Files, QDir::Name))
            files << QDir(folder).filePath(name);
        return files;
    }
    ImportDialog* dialog() const { return m_window->workspace().feature<ImportController>()->dialog(); }
    ImportDialog* preview(const QStringList& words)
    {
        ImportDialog* opened = m_window->workspace().feature<ImportController>()->open(words);
        return QTest::qWaitFor([&] { return opened->settled(); }, 60000) ? opened : nullptr;
    }
    FormatDialog* openFormats()
    {
        m_window->workspace().actions()["exportRun"]->trigger();
        return m_window->findChild<FormatDialog*>(QStringLiteral("exportRun"));
    }
    bool settle()
    {
        return QTest::qWaitFor([&] { return m_window->workspace().settled() && dialog() == nullptr; }, 60000);
    }
    // No partial file is left beside the requested one.
    QStringList remains() const
    {
        return QDir(m_fixture->dir.path())
            .entryList({QStringLiteral("*.part*")}, QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot);
    }
    void drop(const QStringList& paths)
    {
        QMimeData data;
        QList<QUrl> urls;
        for (const QString& path : paths) urls << QUrl::fromLocalFile(path);
        data.setUrls(urls);
        QDragEnterEvent enter(QPoint(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent event(QPointF(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &event);
    }
    static QString fixture(const char* path)
    {
        const QString folder =
            qEnvironmentVariable("STAGEWRIGHT_SHARED") + QStringLiteral("/fixtures/") + QLatin1String(path);
        return QFileInfo::exists(folder) ? folder : QString();
    }

private slots:
    // From the menu's key to the run on screen, without the mouse.
    void aFolderOfRanksBecomesARun()
    {
        const QString folder = traces("1f1b", "job");
        QVERIFY(!folder.isEmpty());
        QTest::keyClick(m_window.get(), Qt::Key_I, Qt::ControlModifier);
        QVERIFY(dialog() != nullptr);
        auto* words = dialog()->findChild<QPlainTextEdit*>(QStringLiteral("traces"));
        QTRY_VERIFY(words->hasFocus());
        QTest::keyClicks(words, folder);
        QTRY_VERIFY_WITH_TIMEOUT(dialog()->settled() && dialog()->reading(), 60000);
        QCOMPARE(dialog()->runs()->topLevelItemCount(), 1);
        const QString details = dialog()->detailsText();
        for (const char* said :
             {"PyTorch profiler (Kineto), 4 files", "4 ranks, 1 step, 4 stages, 8 microbatches",
              "identical to the library's", "64, named by PyTorch", "48 pairs of send and receive", "agree"})
            QVERIFY2(details.contains(QString::fromUtf8(said)),
                     qPrintable(QLatin1String(said) + QStringLiteral(" is not in:\n") + details));
        const QString target = m_fixture->dir.filePath(QStringLiteral("job.stagewright"));
        QCOMPARE(dialog()->target(), target); // beside the folder
        QVERIFY(!QFileInfo::exists(target));
        QTest::keyClick(dialog(), Qt::Key_I, Qt::AltModifier);
        QVERIFY(settle());
        QVERIFY(QFileInfo::exists(target));
        QCOMPARE(m_window->workspace().shown().mode(), Shown::Mode::Run);
        QCOMPARE(m_window->workspace().shown().ref().file, target);
        const Run& run = *m_window->workspace().shown().view()->run;
        QCOMPARE(run.info.provenance, Provenance::Imported);
        QCOMPARE(run.info.scheduleName, std::string("1f1b"));
        QVERIFY(diffSchedules(withoutCommunication(*run.schedule), *makeSchedule("1f1b", Shape{4, 8, 0})).same());
        QVERIFY(m_window->workspace().feature<FileOpening>()->recentFiles().contains(target));
        QCOMPARE(remains(), QStringList());

        // The offer that follows: the plan beside it, with the first deviating op selected and reported.
        QVERIFY2(m_window->workspace().banner()->text().contains(QStringLiteral(" as 1F1B, 4 ranks")),
                 qPrintable(m_window->workspace().banner()->text()));
        QPushButton* offer = m_window->workspace().banner()->answerButton();
        QVERIFY(offer->isVisible());
        QCOMPARE(offer->text(), QStringLiteral("Compare with the plan"));
        offer->setFocus();
        QTest::keyClick(offer, Qt::Key_Space);
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().shown().mode(), Shown::Mode::Compare, 60000);
        QVERIFY(settle());
        QCOMPARE(m_window->workspace().feature<CompareController>()->shown().size(), std::size_t(2));
        QCOMPARE(m_window->workspace().shown().view()->run->info.provenance, Provenance::Simulated);
        QCOMPARE(m_window->workspace().shown().other()->ref.file, target);
        // with its own costs nothing deviates
        QVERIFY2(m_window->workspace().banner()->text().contains(QStringLiteral("No op starts or ends more than 2 %")),
                 qPrintable(m_window->workspace().banner()->text()));
    }

    // An op that took longer than its like: found, selected, reported with its effect.
    void theFirstOpThatDeviatesIsChosen()
    {
        // GPipe of two ranks and four microbatches, µs: forwards 100, backwards 200, messages 5; 1F2 takes 800.
        const Schedule schedule = *makeSchedule("gpipe", Shape{2, 4, 0});
        std::map<std::string, double> begins, ends;
        const QString folder = m_fixture->dir.filePath(QStringLiteral("slow"));
        QVERIFY(QDir().mkpath(folder));
        QByteArray texts[2];
        std::size_t next[2] = {0, 0};
        double free[2] = {0, 0};
        for (bool more = true; more;) {
            more = false;
            for (int rank = 0; rank < 2; ++rank) {
                const auto& ops = schedule.order[static_cast<std::size_t>(rank)];
                if (next[rank] == ops.size()) continue;
                const Op op = ops[next[rank]];
                Op needed = op; // what it waits for
                needed.stage = 1 - rank;
                const bool waits = op.kind == OpKind::Forward ? rank == 1 : rank == 0;
                if (waits && !ends.contains(toText(needed))) continue;
                const double begin = std::max(free[rank], waits ? ends[toText(needed)] + 5 : 0.0);
                const double takes = toText(op) == "1F2" ? 800 : op.kind == OpKind::Forward ? 100 : 200;
                free[rank] = ends[toText(op)] = begin + takes;
                texts[rank] +=
                    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"PP:" + QByteArray::fromStdString(toText(op)) +
                    "\",\"pid\":1,\"tid\":1,\"ts\":" + QByteArray::number(begin, 'f', 1) +
                    ",\"dur\":" + QByteArray::number(takes, 'f', 1) + "},\n";
                ++next[rank];
                more = true;
            }
        }
        for (int rank = 0; rank < 2; ++rank)
            QVERIFY(writeBytes(folder + QStringLiteral("/slow_rank%1.json").arg(rank),
                               "{\"distributedInfo\":{\"rank\":" + QByteArray::number(rank) +
                                   ",\"world_size\":2},\"traceEvents\":[\n" + texts[rank] +
                                   "{\"ph\":\"i\",\"name\":\"end\",\"ts\":9000}]}\n"));
        ImportDialog* opened = preview({folder});
        QVERIFY(opened != nullptr && opened->reading());
        QVERIFY2(opened->detailsText().contains(QStringLiteral("GPipe")), qPrintable(opened->detailsText()));
        opened->findChild<QPushButton*>(QStringLiteral("primary"))->click();
        QVERIFY(settle());
        const RunRef measured = m_window->workspace().shown().ref();
        m_window->workspace().banner()->clear();
        QAction* action = m_window->workspace().actions()["comparePlan"];
        QVERIFY(action->isEnabled());
        m_window->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
        QTest::keyClick(m_window.get(), Qt::Key_P, Qt::ControlModifier | Qt::AltModifier);
        QVERIFY(settle());
        QVERIFY2(m_window->workspace().shown().mode() == Shown::Mode::Compare,
                 qPrintable(m_window->workspace().banner()->text()));
        QCOMPARE(m_window->workspace().shown().other()->ref, measured);
        const auto& deviation = m_window->workspace().feature<PlanController>()->deviation();
        QVERIFY(deviation.has_value());
        QCOMPARE(QString::fromStdString(toText(deviation->op.op)), QStringLiteral("1F2"));
        QCOMPARE(m_window->workspace().viewState()->selected(), (SpanRef{1, deviation->op.b}));
        QVERIFY2(m_window->workspace().banner()->text().contains(QStringLiteral("1F2 on rank 1 ends 705.0")) &&
                     m_window->workspace().banner()->text().contains(QStringLiteral("it took 800")),
                 qPrintable(m_window->workspace().banner()->text()));
        QVERIFY(!action->isEnabled());
        // the plan has no plan
        m_window->workspace().shown().showRun(m_window->workspace().feature<CompareController>()->shown().front()->ref);
        QVERIFY(settle());
        QVERIFY(!action->isEnabled());
    }

    void severalJobsAreSeveralRuns()
    {
        const QString one = traces("gpipe", "a"), other = traces("zb-h1", "b", 2, 4);
        ImportDialog* opened = preview({one, other});
        QVERIFY(opened != nullptr && opened->reading());
        QCOMPARE(opened->runs()->topLevelItemCount(), 2);
        QCOMPARE(opened->chosen().size(), std::size_t(2));
        opened->runs()->setCurrentItem(opened->runs()->topLevelItem(1));
        QVERIFY2(opened->detailsText().contains(QStringLiteral("2 ranks, 1 step, 2 stages, 4 microbatches")),
                 qPrintable(opened->detailsText()));
        opened->runs()->topLevelItem(0)->setCheckState(0, Qt::Unchecked);
        QCOMPARE(opened->chosen(), (std::vector<std::size_t>{1}));
        auto* import = opened->findChild<QPushButton*>(QStringLiteral("primary"));
        QVERIFY(import->isEnabled());
        opened->runs()->topLevelItem(1)->setCheckState(0, Qt::Unchecked);
        QVERIFY(!import->isEnabled()); // nothing to store
        opened->runs()->topLevelItem(1)->setCheckState(0, Qt::Checked);
        opened->setTarget(m_fixture->dir.filePath(QStringLiteral("two")));
        import->click();
        QVERIFY(settle());
        QCOMPARE(m_window->workspace().shown().ref().file, m_fixture->dir.filePath(QStringLiteral("two.stagewright")));
        QCOMPARE(m_window->workspace().runs()->refs().size(), std::size_t(1));
        QCOMPARE(m_window->workspace().shown().view()->run->info.ranks, 2);
    }

    // Its runs stay; the new one is shown.
    void aFileThatIsThereKeepsItsRuns()
    {
        const QString path = m_fixture->file("there.stagewright", {"1f1b", "zb-h1"});
        m_window->workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(settle());
        ImportDialog* opened = preview({traces("gpipe", "a")});
        QVERIFY(opened != nullptr);
        opened->setTarget(path);
        bool noted = false;
        for (const QLabel* label : opened->findChildren<QLabel*>())
            noted = noted || label->text().contains(QStringLiteral("the runs are added to it"));
        QVERIFY(noted);
        opened->findChild<QPushButton*>(QStringLiteral("primary"))->click();
        QVERIFY(settle());
        QCOMPARE(m_window->workspace().runs()->refs().size(), std::size_t(3));
        QCOMPARE(m_window->workspace().shown().ref(), (RunRef{path, 3}));
        QCOMPARE(remains(), QStringList());
    }

    // No partial file, whatever goes wrong; the dialog stays open with the reason.
    void whatFailsLeavesNothing()
    {
        ImportDialog* opened = preview({traces("gpipe", "a")});
        QVERIFY(opened != nullptr && opened->reading());
        auto* import = opened->findChild<QPushButton*>(QStringLiteral("primary"));
        const QString letter = m_fixture->dir.filePath(QStringLiteral("letter.stagewright"));
        QVERIFY(writeBytes(letter, "Dear reader, this is not a run.\n"));
        opened->setTarget(letter);
        import->click();
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && !opened->faultText().isEmpty(), 30000);
        QVERIFY2(opened->faultText().contains(QStringLiteral("letter.stagewright")), qPrintable(opened->faultText()));
        QCOMPARE(bytesOf(letter), QByteArray("Dear reader, this is not a run.\n"));
        const QString nowhere = m_fixture->dir.filePath(QStringLiteral("no/such/folder/a.stagewright"));
        opened->setTarget(nowhere);
        import->click();
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && opened->faultText().contains(QStringLiteral("can't be written")),
                                 30000);
        QVERIFY(!QFileInfo::exists(m_fixture->dir.filePath(QStringLiteral("no"))));
        QVERIFY(opened->isVisible());
        // Return tries again; it writes nothing into a field.
        QTRY_VERIFY(opened->focusWidget() == import);
        QVERIFY(writeBytes(m_fixture->dir.filePath(QStringLiteral("no")), "a file"));
        QTest::keyClick(opened->focusWidget(), Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && opened->focusWidget() == import, 30000);
        QCOMPARE(opened->findChild<QPlainTextEdit*>(QStringLiteral("traces"))->toPlainText().count(QLatin1Char('\n')),
                 qsizetype(0));
        QVERIFY(QFile::remove(m_fixture->dir.filePath(QStringLiteral("no"))));

        // Cancelled during storing, from the storing code itself.
        const QString target = m_fixture->dir.filePath(QStringLiteral("never.stagewright"));
        std::stop_source stopped;
        Progress progress;
        progress.stop = stopped.get_token();
        progress.report = [&stopped](std::string_view what, std::int64_t, std::int64_t) {
            if (what == "storing spans") stopped.request_stop();
        };
        const auto stored = storeImported(*opened->reading(), opened->chosen(), target, progress);
        QVERIFY(stopped.stop_requested() && !stored && stored.error().code == ErrorCode::Cancelled);
        opened->reject();
        QVERIFY(settle());
        QVERIFY(!QFileInfo::exists(target));
        QCOMPARE(remains(), QStringList());
        QCOMPARE(m_window->workspace().shown().mode(), Shown::Mode::Empty);
    }

    // The window may close, or the request change, while traces are read.
    void readingIsCancelled()
    {
        const QString folder = traces("1f1b", "many", 8, 64);
        m_window->workspace().feature<ImportController>()->open({folder});
        QVERIFY(!dialog()->settled());
        auto* stop = dialog()->findChild<QPushButton*>(QStringLiteral("stop"));
        QVERIFY(stop->isVisible());
        stop->click();
        QVERIFY(dialog()->settled());
        QVERIFY(!dialog()->reading());
        QVERIFY(!dialog()->findChild<QPushButton*>(QStringLiteral("primary"))->isEnabled());
        QThreadPool::globalInstance()->waitForDone();
        QCoreApplication::sendPostedEvents(); // a late answer changes nothing
        QVERIFY(!dialog()->reading());
        QVERIFY(stop->isVisible()); // reads again now
        stop->click();
        QTRY_VERIFY_WITH_TIMEOUT(dialog()->settled() && dialog()->reading(), 60000);
        QVERIFY(!stop->isVisible());
        dialog()->setTraces({folder + QStringLiteral("/rank*.json")});
        dialog()->setTraces({folder});
        QTest::keyClick(dialog(), Qt::Key_Escape);
        QTRY_VERIFY(dialog() == nullptr);
        m_window->workspace().feature<ImportController>()->open({folder});
        m_window.reset();
    }

    void rulesAreTheUsers()
    {
        const QString folder = m_fixture->dir.filePath(QStringLiteral("own"));
        QVERIFY(QDir().mkpath(folder));
        for (int rank = 0; rank < 2; ++rank) {
            QByteArray text =
                "{\"distributedInfo\":{\"rank\":" + QByteArray::number(rank) + ",\"world_size\":2},\"traceEvents\":[\n";
            for (int i = 0; i < 2; ++i) {
                const QByteArray of = " s" + QByteArray::number(rank) + " m" + QByteArray::number(i + 1);
                text += "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"fwd" + of +
                        "\",\"pid\":1,\"tid\":1,\"ts\":" + QByteArray::number(rank * 100 + i * 100) + ",\"dur\":80},\n";
                text += "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"bwd" + of +
                        "\",\"pid\":1,\"tid\":1,\"ts\":" + QByteArray::number(500 - rank * 100 + i * 200) +
                        ",\"dur\":90},\n";
            }
            QVERIFY(writeBytes(folder + QStringLiteral("/own_rank%1.json").arg(rank),
                               text + "{\"ph\":\"i\",\"name\":\"end\",\"ts\":2000}]}\n"));
        }
        const QString good = m_fixture->dir.filePath(QStringLiteral("names.txt")),
                      bad = m_fixture->dir.filePath(QStringLiteral("bad.txt"));
        QVERIFY(writeBytes(good, "# ours\nF fwd s{stage} m{microbatch-1}\nB bwd s{stage} m{microbatch-1}\n"));
        QVERIFY(writeBytes(bad, "# ours\nF fwd {stge}\n"));
        ImportDialog* opened = preview({folder});
        QVERIFY(opened != nullptr && opened->reading());
        QVERIFY2(opened->detailsText().contains(QStringLiteral(
                     "Ranges: bwd s0 m1 (4), fwd s0 m1 (4). Import, then Analyse › Make a pipeline of ranges")),
                 qPrintable(opened->detailsText()));
        opened->setRulesFile(bad);
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && !opened->faultText().isEmpty(), 30000);
        QVERIFY2(opened->faultText().contains(QStringLiteral("line 2")) &&
                     opened->faultText().contains(QStringLiteral("stge")),
                 qPrintable(opened->faultText()));
        QVERIFY(!opened->reading());
        opened->setRulesFile(m_fixture->dir.filePath(QStringLiteral("missing.txt")));
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && opened->faultText().contains(QStringLiteral("missing.txt")),
                                 30000);
        opened->setRulesFile(good);
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && opened->reading(), 30000);
        QCOMPARE(opened->faultText(), QString());
        QVERIFY2(opened->detailsText().contains(QStringLiteral("GPipe")), qPrintable(opened->detailsText()));
        opened->findChild<QPushButton*>(QStringLiteral("primary"))->click();
        QVERIFY(settle());
        QCOMPARE(m_window->workspace().shown().view()->run->info.scheduleName, std::string("gpipe"));
        // they are restored the next time
        m_window->workspace().feature<ImportController>()->open();
        QCOMPARE(dialog()->question().rulesFile, good);
        QVERIFY(dialog()->question().words.isEmpty());
        dialog()->reject();
    }

    // Unreadable files are named; the rest is read.
    void whatIsNotReadIsTold()
    {
        const QString folder = traces("1f1b", "job");
        QVERIFY(writeBytes(folder + QStringLiteral("/readme.txt"), "no trace\n"));
        const QString cut = folder + QStringLiteral("/rank3.pt.trace.json");
        const QByteArray whole = bytesOf(cut);
        QVERIFY(writeBytes(cut, whole.left(whole.size() * 2 / 3)));
        ImportDialog* opened = preview({folder});
        QVERIFY(opened != nullptr && opened->reading());
        const QString details = opened->detailsText();
        QVERIFY2(details.contains(QStringLiteral("readme.txt: unknown trace format")), qPrintable(details));
        QVERIFY2(details.contains(QStringLiteral("rank3.pt.trace.json: ")), qPrintable(details)); // it ends early
        opened->setTraces({m_fixture->dir.filePath(QStringLiteral("nowhere.json"))});
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled(), 30000);
        QVERIFY2(opened->faultText().contains(QStringLiteral("nowhere.json")), qPrintable(opened->faultText()));
        QVERIFY(!opened->findChild<QPushButton*>(QStringLiteral("primary"))->isEnabled());
        // Return reads again: the file may be there by now.
        QTRY_VERIFY(opened->focusWidget() == opened->findChild<QPushButton*>(QStringLiteral("stop")));
        QVERIFY(QFile::copy(folder + QStringLiteral("/rank0.pt.trace.json"),
                            m_fixture->dir.filePath(QStringLiteral("nowhere.json"))));
        QTest::keyClick(opened->focusWidget(), Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && opened->reading(), 30000);
    }

    // How many events were skipped is said once, in one form.
    void damageIsSaidOnce()
    {
        QJsonArray events;
        for (int i = 0; i < 1300; ++i) {
            QJsonObject event{{"ph", "X"}, {"name", "load"}, {"pid", 0}, {"tid", 1}, {"ts", 10 * i}, {"dur", 5}};
            if (i % 13 != 0) event[QStringLiteral("dur")] = QStringLiteral("long");
            events << event;
        }
        const QString path = m_fixture->dir.filePath(QStringLiteral("damaged.json"));
        QVERIFY(writeBytes(path, QJsonDocument(QJsonObject{{"traceEvents", events}}).toJson()));
        ImportDialog* opened = preview({path});
        QVERIFY(opened != nullptr && opened->reading());
        const QString details = opened->detailsText();
        QVERIFY2(details.contains(QStringLiteral("1,200 of 1,300")), qPrintable(details));
        QVERIFY2(!details.contains(QStringLiteral("1200")), qPrintable(details));
    }

    // A custom order: the nearest library schedule and where it differs.
    void anOrderOfItsOwnNamesTheNearest()
    {
        Schedule schedule = *makeSchedule("1f1b", Shape{4, 8, 0});
        auto& ops = schedule.order[0];
        std::swap(ops[1], ops[2]); // two forwards swapped
        const auto run = simulatedRun(schedule, CostModel::uniform(schedule));
        QVERIFY(run.has_value());
        const QString folder = m_fixture->dir.filePath(QStringLiteral("own"));
        QVERIFY(writeKinetoFolder(*run, folder.toStdString()).has_value());
        ImportDialog* opened = preview({folder});
        QVERIFY(opened != nullptr && opened->reading());
        const QString details = opened->detailsText();
        QVERIFY2(details.contains(QStringLiteral("not a library schedule; ")) &&
                     details.contains(QStringLiteral("here, ")),
                 qPrintable(details));
    }

    void dropsAreImported()
    {
        const QString folder = traces("1f1b", "job");
        const QStringList files = filesIn(folder);
        QCOMPARE(files.size(), 4);
        drop(files); // the ranks of one job
        QVERIFY(dialog() != nullptr);
        QTRY_VERIFY_WITH_TIMEOUT(dialog()->settled(), 60000);
        QCOMPARE(dialog()->question().words, files);
        QCOMPARE(dialog()->runs()->topLevelItemCount(), 1);
        QCOMPARE(QFileInfo(dialog()->target()).absolutePath(), folder); // beside the files
        dialog()->reject();
        QTRY_VERIFY(dialog() == nullptr);
        drop({folder});
        QVERIFY(dialog() != nullptr);
        dialog()->reject();
        QTRY_VERIFY(dialog() == nullptr);

        // a run file opens as usual
        const QString runs = m_fixture->file("runs.stagewright", {"zb-h1"});
        drop({runs});
        QVERIFY(dialog() == nullptr);
        QVERIFY(settle());
        QCOMPARE(m_window->workspace().shown().ref().file, runs);

        // a schedule may be stored as a run, or opened to be edited
        const QString csv = m_fixture->dir.filePath(QStringLiteral("order.csv"));
        QVERIFY(writeBytes(csv, QByteArray::fromStdString(*writeScheduleCsv(*makeSchedule("gpipe", Shape{2, 4, 0})))));
        drop({csv});
        QVERIFY(dialog() != nullptr);
        QTRY_VERIFY_WITH_TIMEOUT(dialog()->settled() && dialog()->reading(), 30000);
        QVERIFY2(dialog()->detailsText().contains(QStringLiteral("simulated with unit costs")),
                 qPrintable(dialog()->detailsText()));
        QPushButton* open = nullptr;
        for (auto* button : dialog()->findChildren<QPushButton*>())
            if (button->text().contains(QStringLiteral("without storing"))) open = button;
        QVERIFY(open != nullptr && open->isVisible());
        open->click();
        QVERIFY(settle());
        QVERIFY(m_window->workspace().library()->isSimulated(m_window->workspace().shown().ref().file));
        QCOMPARE(m_window->workspace().shown().view()->run->info.scheduleName, std::string("gpipe"));
        // opened by name, traces are imported, too
        m_window->workspace().feature<FileOpening>()->openFiles({files.front()});
        QVERIFY(dialog() != nullptr);
    }

    // Every suffix of a format that is read is opened, imported when dropped, offered by both dialogs and in the help.
    void everyFormatThatIsReadIsOffered()
    {
        m_window->workspace().actions()["importTraces"]->trigger();
        QVERIFY(dialog() != nullptr);
        for (auto* button : dialog()->findChildren<QPushButton*>())
            if (button->text() == QStringLiteral("&Files…")) button->click();
        auto* chooser = dialog()->findChild<QFileDialog*>(QStringLiteral("chooseTraces"));
        QVERIFY(chooser != nullptr);
        const QString offered = chooser->nameFilters().join(QLatin1Char(' '));
        chooser->reject();
        for (const FormatInfo* format : allFormats()) {
            if (format->read == nullptr) continue;
            for (const std::string_view suffix : format->suffixes) {
                const QString name = QString::fromUtf8(suffix.data(), static_cast<qsizetype>(suffix.size()));
                QVERIFY2(isTrace(QStringLiteral("a") + name) != format->order, qPrintable(name));
                QVERIFY2(readPatterns().contains(QLatin1Char('*') + name), qPrintable(name));
                QVERIFY2(offered.contains(QLatin1Char('*') + name), qPrintable(offered));
                QVERIFY2(helpText().contains(name), qPrintable(name + QLatin1Char('\n') + helpText()));
            }
        }
        QVERIFY(isTrace(QStringLiteral("JOB.TAR")) && !isTrace(QStringLiteral("a.stagewright")));
        dialog()->reject();
        QTRY_VERIFY(dialog() == nullptr);
        // the first page names the tools
        QString page;
        for (const QLabel* label : m_window->findChildren<QLabel*>()) page += label->text() + QLatin1Char('\n');
        for (const char* tool : {"Kineto", "Perfetto", "Nsight Systems", "Chrome"})
            QVERIFY2(page.contains(QLatin1String(tool)), tool);
        // and a Perfetto trace that is dropped is read
        const QString path = m_fixture->dir.filePath(QStringLiteral("rank0.pftrace"));
        QVERIFY(writePerfettoFile(WindowFixture::simulated("1f1b"), path.toStdString()));
        drop({path});
        QVERIFY(dialog() != nullptr);
        QTRY_VERIFY_WITH_TIMEOUT(dialog()->settled() && dialog()->reading(), 60000);
        QCOMPARE(dialog()->reading()->result.runs.size(), std::size_t{1});
        // what was given to the dialog is imported by Return
        dialog()->setTarget(m_fixture->dir.filePath(QStringLiteral("given.stagewright")));
        QTRY_VERIFY_WITH_TIMEOUT(dialog()->settled() && dialog()->reading(), 60000);
        QTRY_VERIFY(dialog()->focusWidget() == dialog()->findChild<QPushButton*>(QStringLiteral("primary")));
        QTest::keyClick(dialog()->focusWidget(), Qt::Key_Return);
        QVERIFY(settle());
        QCOMPARE(m_window->workspace().runs()->refs().size(), std::size_t{1});
    }

    // The card under the pointer and the panel count a span's start from the same moment: of the step, as on the axis.
    void startsAreThoseOfTheAxis()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("steps.json"));
        QJsonArray events;
        for (int rank = 0; rank < 2; ++rank) {
            events << QJsonObject{{"ph", "M"},
                                  {"name", "process_name"},
                                  {"pid", rank},
                                  {"args", QJsonObject{{"name", QStringLiteral("rank %1").arg(rank)}}}};
            for (int step = 0; step < 3; ++step) {
                const int start = 1000 * step + 50 * rank;
                for (const auto& [name, at, duration] :
                     {std::tuple{QStringLiteral("ProfilerStep#%1").arg(step), start, 800},
                      {QStringLiteral("load"), start + 200, 100}})
                    events << QJsonObject{{"ph", "X"}, {"name", name}, {"pid", rank},
                                          {"tid", 1},  {"ts", at},     {"dur", duration}};
            }
        }
        QVERIFY(writeBytes(path, QJsonDocument(QJsonObject{{"traceEvents", events}}).toJson()));
        ImportDialog* opened = preview({path});
        QVERIFY(opened != nullptr && opened->reading());
        opened->setTarget(m_fixture->dir.filePath(QStringLiteral("steps.stagewright")));
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && opened->reading(), 60000);
        opened->findChild<QPushButton*>(QStringLiteral("primary"))->click();
        QVERIFY(settle());
        // what was read is said by its own name, with the way on as a button
        const Banner* banner = m_window->workspace().banner();
        QVERIFY2(banner->text().startsWith(QStringLiteral("Imported steps without a schedule")),
                 qPrintable(banner->text()));
        QCOMPARE(m_window->workspace().banner()->answerButton()->text(), QStringLiteral("Make a pipeline of ranges"));
        m_window->workspace().shown().showRun(m_window->workspace().shown().ref(), 2);
        QVERIFY(settle());
        const Timeline& timeline = *m_window->workspace().shown().view()->run->timeline;
        SpanId load = noSpan;
        for (SpanId id = 0; id < timeline.spans().size(); ++id)
            if (timeline.spans()[id].step == 2 && timeline.nameOf(timeline.spans()[id]) == "load" &&
                timeline.trackOf(id).rank == 1)
                load = id;
        QVERIFY(load != noSpan);
        m_window->workspace().viewState()->select({0, load});
        QVERIFY(settle());
        const auto& panel = *m_window->workspace().views().timeline->panels().front();
        QCOMPARE(panel.toAxis(timeline.spans()[load].start), Nanos(50'000)); // rank 0 starts the step, with its load
        const QString said = m_window->workspace().views().side->selection()->plainText();
        QVERIFY2(said.contains(QStringLiteral("Start: 50.0 µs")), qPrintable(said));
    }

    void everyFieldHasANameAndRoom()
    {
        for (const ThemeChoice theme : {ThemeChoice::Light, ThemeChoice::Dark}) {
            MainWindow window;
            Appearance::choose(theme);
            QVERIFY(WindowFixture::show(window, {1280, 720}));
            const QString folder = m_fixture->dir.filePath(QStringLiteral("named%1").arg(static_cast<int>(theme)));
            QVERIFY(writeKinetoFolder(WindowFixture::simulated("zb-h1"), folder.toStdString()).has_value());
            QVERIFY(writeBytes(folder + QStringLiteral("/readme.txt"), "no trace\n"));
            ImportDialog* opened = window.workspace().feature<ImportController>()->open({folder});
            QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && opened->reading(), 60000);
            QTest::qWait(80); // laid out
            (void)QTest::qWaitFor([&] { return clipped(opened).isEmpty(); }, 10000);
            QVERIFY2(clipped(opened).isEmpty(), qPrintable(clipped(opened).join(QLatin1Char('\n'))));
            QVERIFY2(opened->width() <= 1280 && opened->height() <= 720,
                     qPrintable(QStringLiteral("%1 × %2").arg(opened->width()).arg(opened->height())));
            if (const QString pictures = qEnvironmentVariable("STAGEWRIGHT_PICTURES"); !pictures.isEmpty())
                opened->grab().save(
                    QStringLiteral("%1/import_%2.png")
                        .arg(pictures, theme == ThemeChoice::Dark ? QStringLiteral("dark") : QStringLiteral("light")));
            // Tab reaches every field, and each has a name.
            QSet<QWidget*> reached;
            opened->findChild<QPlainTextEdit*>()->setFocus();
            for (int i = 0; i < 24; ++i) {
                QWidget* focus = QApplication::focusWidget();
                QVERIFY(focus != nullptr);
                QVERIFY2(!focus->accessibleName().isEmpty() || qobject_cast<QAbstractButton*>(focus),
                         focus->metaObject()->className());
                QVERIFY2(!focus->toolTip().isEmpty() ||
                             focus == opened->findChild<QScrollArea*>(QStringLiteral("details")),
                         qPrintable(described(focus)));
                reached << focus;
                QTest::keyClick(focus, Qt::Key_Tab);
            }
            for (const char* name : {"traces", "rules", "target", "boxed", "primary"})
                QVERIFY2(reached.contains(opened->findChild<QWidget*>(QLatin1String(name))), name);
            opened->reject();
        }
    }

    // Every format the window writes; what PyTorch can't express is reported with the nearest schedule that it can.
    void whatIsShownIsExported()
    {
        m_window->workspace().feature<FileOpening>()->openFiles(
            {m_fixture->file("runs.stagewright", {"zbv", "dualpipe"})});
        QVERIFY(settle());
        const auto write = [&](const char* format, const char* name, const TextPairs& options = {}) {
            const QString path = m_fixture->dir.filePath(QString::fromLatin1(name));
            m_window->workspace().feature<ExchangeController>()->write(*findFormat(format), path, options);
            return settle() ? path : QString();
        };
        QVERIFY(bytesOf(write("perfetto", "a.pftrace")).size() > 1000);
        QVERIFY(bytesOf(write("chrome", "a.json")).startsWith('{'));
        QCOMPARE(filesIn(write("kineto", "kineto")).size(), 4);
        QVERIFY(bytesOf(write("spans", "spans.csv")).startsWith("step,rank"));
        QVERIFY(bytesOf(write("html", "a.html")).contains("<html"));
        const QByteArray ops = bytesOf(write("csv", "ops.csv", {{"pytorch", ""}})),
                         messages = bytesOf(write("csv", "messages.csv", {{"pytorch", ""}, {"lower", "pytorch"}}));
        const auto forms = pytorchForms(*makeSchedule("zbv", Shape{4, 8, 0}));
        QVERIFY(forms.has_value());
        QCOMPARE(ops.toStdString(), forms->computeOnly);
        QCOMPARE(messages.toStdString(), forms->withMessages);
        QVERIFY(diffSchedules(*readScheduleCsv(ops.toStdString()), *makeSchedule("zbv", Shape{4, 8, 0})).same());
        QCOMPARE(QDir(write("torchtitan", "titan")).entryList(QDir::Files, QDir::Name),
                 (QStringList{"README.md", "run.sh", "schedule.csv", "schedule_comms.csv", "settings.toml",
                              "stagewright_job.py"}));
        QVERIFY(bytesOf(write("csv", "own.csv")).size() > 100);
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
        QVERIFY(m_window->statusBar()->currentMessage().contains(QStringLiteral("4 ranks")));

        // a folder that is not empty is left as it is
        write("kineto", "titan");
        QVERIFY2(m_window->workspace().banner()->text().contains(QStringLiteral("not empty")),
                 qPrintable(m_window->workspace().banner()->text()));
        QCOMPARE(filesIn(m_fixture->dir.filePath(QStringLiteral("titan"))).size(), 6);

        // refused before a file name is requested
        m_window->workspace().shown().showRun(m_window->workspace().runs()->refs()[1]);
        QVERIFY(settle());
        FormatDialog* dialog = openFormats();
        QVERIFY(dialog != nullptr);
        const auto refuses = [&](const char* format, const char* flag) {
            dialog->choose(*findFormat(format));
            if (*flag != 0) dialog->setOption(flag, {});
            dialog->findChild<QPushButton*>(QStringLiteral("primary"))->click();
            return QTest::qWaitFor([&] { return m_window->workspace().settled() && !dialog->faultText().isEmpty(); },
                                   60000)
                       ? dialog->faultText()
                       : QString();
        };
        for (const QString& why : {refuses("csv", "pytorch"), refuses("torchtitan", "")}) {
            QVERIFY2(why.contains(QStringLiteral("has copies on ranks")) &&
                         why.contains(QStringLiteral("earest it can run: dualpipev")),
                     qPrintable(why));
            QVERIFY(m_window->findChild<QFileDialog*>(QStringLiteral("exportTo")) == nullptr);
        }
        dialog->choose(*findFormat("csv"));
        dialog->setOption("lower", QStringLiteral("sideways"));
        dialog->findChild<QPushButton*>(QStringLiteral("primary"))->click();
        QVERIFY2(dialog->faultText().contains(QStringLiteral("sideways")), qPrintable(dialog->faultText()));
        dialog->reject();
        m_window->workspace().banner()->clear();
        QVERIFY(bytesOf(write("csv", "dualpipe.csv")).size() > 100); // ours holds it
    }

    // The dialog has every format that is written without being drawn, the command line those and the drawn ones, each
    // with its options: both read the same descriptors, so that a new line in formats.def is all it takes.
    void everyDescriptorIsInDialogAndCommandLine()
    {
        m_window->workspace().feature<FileOpening>()->openFiles({m_fixture->file("runs.stagewright", {"1f1b"})});
        QVERIFY(settle());
        QProcess help;
        help.start(QStringLiteral(STAGEWRIGHT_BINARY_DIR "/stagewright"),
                   {QStringLiteral("export"), QStringLiteral("--help")});
        QVERIFY2(help.waitForFinished(60000) && help.exitCode() == 0, qPrintable(help.errorString()));
        const QString said = QString::fromUtf8(help.readAllStandardOutput()).simplified();
        FormatDialog* dialog = openFormats();
        QVERIFY(dialog != nullptr);
        const auto offered = dialog->formats();
        for (const FormatInfo* format : allFormats()) {
            const QString name = QString::fromStdString(std::string(format->name));
            const bool written = format->write != nullptr;
            QVERIFY2((std::find(offered.begin(), offered.end(), format) != offered.end()) == written, qPrintable(name));
            QVERIFY2(said.contains(name + QStringLiteral(": ") +
                                   QString::fromStdString(std::string(format->writes)).simplified()) ==
                         (written || format->drawn),
                     qPrintable(name + QLatin1Char('\n') + said));
            for (const FormatOption& option : format->options)
                QVERIFY2(said.contains(QStringLiteral("--") + QString::fromStdString(std::string(option.name))),
                         qPrintable(name));
            if (!written) continue;
            dialog->choose(*format);
            QCOMPARE(&dialog->format(), format);
            QStringList options;
            for (const FormatOption& option : format->options) {
                options << QString::fromStdString(std::string(option.name));
                dialog->setOption(option.name, QStringLiteral("some value"));
            }
            options.sort();
            QCOMPARE(dialog->optionNames(), options);
            QCOMPARE(dialog->options().size(), format->options.size());
        }
        dialog->choose(*findFormat("csv"));
        QTest::qWait(50); // laid out
        if (const QString pictures = qEnvironmentVariable("STAGEWRIGHT_PICTURES"); !pictures.isEmpty())
            dialog->grab().save(pictures + QStringLiteral("/formats.png"));
        QVERIFY(clipped(dialog).isEmpty());
        dialog->reject();
    }

    // A format is chosen, then a place.
    void exportsAskForAPlace()
    {
        m_window->workspace().feature<FileOpening>()->openFiles({m_fixture->file("runs.stagewright", {"1f1b"})});
        QVERIFY(settle());
        const auto placed = [&](const char* name) {
            QFileDialog* place = nullptr;
            if (!QTest::qWaitFor(
                    [&] { return (place = m_window->findChild<QFileDialog*>(QStringLiteral("exportTo"))) != nullptr; },
                    30000))
                return QString();
            const QString path = m_fixture->dir.filePath(QString::fromLatin1(name));
            emit place->fileSelected(path);
            place->close();
            delete place;
            return settle() ? path : QString();
        };
        const auto ask = [&](const char* format, const TextPairs& options, const char* name) {
            FormatDialog* dialog = openFormats();
            if (dialog == nullptr) return QString();
            dialog->choose(*findFormat(format));
            for (const auto& [option, value] : options) dialog->setOption(option, QString::fromStdString(value));
            dialog->findChild<QPushButton*>(QStringLiteral("primary"))->click();
            return placed(name);
        };
        QVERIFY(!bytesOf(ask("csv", {{"pytorch", ""}}, "a") + QStringLiteral(".csv")).contains("SEND_F"));
        QVERIFY(bytesOf(ask("csv", {{"pytorch", ""}, {"lower", "pytorch"}}, "b.csv")).contains("SEND_F"));
        QVERIFY(bytesOf(ask("perfetto", {}, "c") + QStringLiteral(".pftrace")).size() > 1000);
        QVERIFY(bytesOf(ask("chrome", {}, "d") + QStringLiteral(".json")).startsWith('{'));
        QCOMPARE(filesIn(ask("kineto", {}, "e")).size(), 4);
        QCOMPARE(filesIn(ask("torchtitan", {}, "f")).size(), 6);
        // the edited order, and then it counts as saved
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY(settle());
        QVERIFY(m_window->workspace().feature<OrderEditing>()->editor().move({1, 5}, 6));
        QVERIFY(m_window->workspace().feature<OrderEditing>()->editor().changed());
        const Schedule edited = m_window->workspace().feature<OrderEditing>()->editor().schedule();
        m_window->workspace().actions()["saveCopy"]->trigger();
        const auto read = readScheduleCsv(bytesOf(placed("edited.csv")).toStdString());
        QVERIFY(read.has_value());
        QVERIFY(diffSchedules(*read, edited).same());
        QCOMPARE(filesIn(ask("torchtitan", {}, "g")).size(), 6); // of the edited order, too
        QVERIFY(diffSchedules(
                    *readScheduleCsv(bytesOf(m_fixture->dir.filePath(QStringLiteral("g/schedule.csv"))).toStdString()),
                    edited)
                    .same());
    }

    void recordedTracesAreRead()
    {
        const QString torch = fixture("kineto/torch26_gloo_pp4"), dlrm = fixture("kineto/dlrm_8rank"),
                      nsys = fixture("nsys_sqlite/mfu_2gpu_before.sqlite");
        if (torch.isEmpty() || dlrm.isEmpty() || nsys.isEmpty())
            QSKIP("STAGEWRIGHT_SHARED names no folder with the recorded traces");
        ImportDialog* opened = preview({torch});
        QVERIFY(opened != nullptr && opened->reading());
        QCOMPARE(opened->runs()->topLevelItemCount(), 3);
        QStringList schedules;
        for (int i = 0; i < 3; ++i) schedules << opened->runs()->topLevelItem(i)->text(3);
        QVERIFY2(schedules[0].startsWith(QStringLiteral("1F1B")) && schedules[1].startsWith(QStringLiteral("GPipe")) &&
                     schedules[2].startsWith(QStringLiteral("Interleaved")),
                 qPrintable(schedules.join(QLatin1Char(','))));
        for (const char* said : {"PyTorch profiler (Kineto), 4 files", "pairs of send and receive", "±"})
            QVERIFY2(opened->detailsText().contains(QString::fromUtf8(said)), qPrintable(opened->detailsText()));
        opened->setTraces({dlrm});
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && opened->reading(), 60000);
        QCOMPARE(opened->runs()->topLevelItemCount(), 1);
        QVERIFY2(opened->detailsText().contains(QStringLiteral("over two or more ranks")),
                 qPrintable(opened->detailsText()));
        opened->setTraces({nsys});
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && opened->reading(), 60000);
        QVERIFY2(opened->detailsText().contains(QStringLiteral("Nsight Systems, one file")),
                 qPrintable(opened->detailsText()));
        // one of a pipeline, stored: its plan beside it
        opened->setTraces({torch});
        opened->setTarget(m_fixture->dir.filePath(QStringLiteral("torch.stagewright")));
        QTRY_VERIFY_WITH_TIMEOUT(opened->settled() && opened->reading(), 60000);
        opened->findChild<QPushButton*>(QStringLiteral("primary"))->click();
        QVERIFY(settle());
        QCOMPARE(m_window->workspace().runs()->refs().size(), std::size_t(3));
        m_window->workspace().banner()->answerButton()->click();
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().shown().mode(), Shown::Mode::Compare, 60000);
        QVERIFY(settle());
        QVERIFY(m_window->workspace().feature<PlanController>()->deviation().has_value());
        QVERIFY(m_window->workspace().viewState()->selected().valid());
        QVERIFY2(m_window->workspace().banner()->text().startsWith(QStringLiteral("First deviation from the plan: ")),
                 qPrintable(m_window->workspace().banner()->text()));
    }
};

QTEST_MAIN(TestImportDialog)
#include "tst_import_dialog.moc"
