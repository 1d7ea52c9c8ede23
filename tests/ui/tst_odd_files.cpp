// Empty, foreign, damaged and large files, and the memory budget, in the real window.
#include <QElapsedTimer>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QPushButton>

#include <sqlite3.h>

#include "app/ui/explain/budget_controller.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/heuristic/building_block.h"
#include "tests/ui/text_fit.h"
#include "tests/ui/window_fixture.h"
#include "widgets/library/block_editor.h"
#include "widgets/panel/side_panel.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestOddFiles : public QObject {
    Q_OBJECT

    std::unique_ptr<WindowFixture> m_fixture;

    template <typename Change>
    static void rewrite(const QString& path, Change change)
    {
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        QByteArray bytes = file.readAll();
        file.close();
        change(bytes);
        QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
        QCOMPARE(file.write(bytes), bytes.size());
    }
    // Everything is readable: its texts have the space they need.
    static void bannerIsWhole(MainWindow& window)
    {
        QVERIFY(window.workspace().banner()->isVisible());
        // it may still be laying itself out
        QTRY_COMPARE_WITH_TIMEOUT(clipped(window.workspace().banner()).join(QStringLiteral("; ")), QString(), 10000);
    }
    static int colourDistance(const QColor& a, const QColor& b)
    {
        return std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) + std::abs(a.blue() - b.blue());
    }

private slots:
    void init() { m_fixture = std::make_unique<WindowFixture>(); }
    void cleanup() { m_fixture.reset(); }

    void aFileWithoutRunsSaysSo()
    {
        const QString path = m_fixture->file("empty.stagewright", {});
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Empty);
        bool said = false;
        for (const auto* label : window.findChildren<QLabel*>())
            said = said ||
                   (label->isVisible() && label->text().contains(QStringLiteral("empty.stagewright holds no runs")));
        QVERIFY(said);
    }

    void aRunWithoutAStepSaysSo()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("nothing.stagewright"));
        {
            auto file = RunFile::open(path.toStdString(), OpenMode::Create);
            Run header;
            header.info.name = "cut short";
            header.info.ranks = 2;
            auto writer = (*file)->begin(header);
            QVERIFY(writer.has_value());
        }
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Empty);
        QVERIFY2(window.workspace().banner()->text().contains(QStringLiteral("no complete step")),
                 qPrintable(window.workspace().banner()->text()));
    }

    // A dropped building block opens in its editor, by its suffix or its first word; a faulty one is reported.
    void aBuildingBlockThatIsDroppedOpens()
    {
        const auto write = [&](const char* name, const QByteArray& text) {
            QFile file(m_fixture->dir.filePath(QLatin1String(name)));
            return file.open(QIODevice::WriteOnly) && file.write(text) == text.size() ? file.fileName() : QString();
        };
        const QByteArray block = QByteArray::fromStdString(toText(*blockOf("v-half", 3)));
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        const auto drop = [&](const QString& path) {
            QMimeData data;
            data.setUrls({QUrl::fromLocalFile(path)});
            QDragEnterEvent enter(QPoint(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
            QApplication::sendEvent(&window, &enter);
            QDropEvent event(QPointF(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
            QApplication::sendEvent(&window, &event);
        };
        for (const char* name : {"mine.block", "mine.txt"}) {
            drop(write(name, block));
            auto* editor = window.findChild<BlockEditor*>();
            QVERIFY2(editor != nullptr, qPrintable(window.workspace().banner()->text()));
            QCOMPARE(editor->block().devices.size(), std::size_t(3));
            QVERIFY(editor->valid());
            editor->reject();
            QTRY_VERIFY_WITH_TIMEOUT(window.findChild<BlockEditor*>() == nullptr, 10000);
        }
        drop(write("wrong.block", "block v-half devices=4\n0: X0=1\n"));
        QVERIFY(window.findChild<BlockEditor*>() == nullptr);
        QVERIFY2(window.workspace().banner()->text().contains(QStringLiteral("wrong.block")),
                 qPrintable(window.workspace().banner()->text()));
        // fields leave files to the window
        for (const auto* field : window.findChildren<QLineEdit*>(QStringLiteral("find")))
            QVERIFY(!field->acceptDrops());
    }

    void aTextFileIsRefused()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("letter.stagewright"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("Dear reader, this is not a run.\n");
        file.close();
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QTRY_VERIFY(!window.workspace().banner()->text().isEmpty());
        QVERIFY(window.workspace().banner()->text().contains(QStringLiteral("letter.stagewright")));
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Empty);
        QVERIFY(window.workspace().runs()->files().isEmpty());
    }

    // Opening it leaves the window unchanged, and the banner names the file, the fault and the remedy.
    void refusedFilesAreNamed_data()
    {
        QTest::addColumn<QByteArray>("change");
        QTest::addColumn<QString>("says");
        QTest::newRow("newer") << QByteArray("newer") << QStringLiteral("version 99");
        QTest::newRow("another program's") << QByteArray("foreign") << QStringLiteral("another program");
        QTest::newRow("empty") << QByteArray("empty") << QStringLiteral("0 bytes");
        QTest::newRow("cut") << QByteArray("cut") << QStringLiteral("damaged");
        QTest::newRow("header overwritten") << QByteArray("header") << QString();
    }
    void refusedFilesAreNamed()
    {
        QFETCH(QByteArray, change);
        QFETCH(QString, says);
        const QString sound = m_fixture->file("sound.stagewright", {"1f1b"});
        const QString path = m_fixture->file("odd.stagewright", {"gpipe"});
        rewrite(path, [&](QByteArray& bytes) {
            if (change == "newer") bytes.replace(60, 4, QByteArray("\0\0\0\x63", 4)); // user_version
            if (change == "foreign") bytes.replace(68, 4, "ABCD");                    // application_id
            if (change == "empty") bytes.clear();
            if (change == "cut") bytes.truncate(bytes.size() / 3);
            if (change == "header") bytes.replace(0, 16, QByteArray(16, 'x'));
        });
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({sound});
        QVERIFY(WindowFixture::settle(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().banner()->text().isEmpty(), 20000);
        QVERIFY(WindowFixture::settle(window));
        QVERIFY2(window.workspace().banner()->text().contains(QStringLiteral("odd.stagewright")) &&
                     window.workspace().banner()->text().contains(says),
                 qPrintable(window.workspace().banner()->text()));
        QCOMPARE(window.workspace().shown().ref().file, sound);
        // the list has its name and the fault, but no run
        for (const RunRef& ref : window.workspace().runs()->refs()) QCOMPARE(ref.file, sound);
        bannerIsWhole(window);
    }

    // Its content is shown; anything that needs writing says why it can't be done.
    void aFileThatCantBeWrittenIsRead()
    {
        const QString path = m_fixture->file("kept.stagewright", {"1f1b"});
        // a write version that SQLite treats as read-only for everyone
        rewrite(path, [](QByteArray& bytes) { bytes[18] = 3; });
        QFile::setPermissions(path, QFileDevice::ReadOwner);
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        QVERIFY2(window.workspace().banner()->text().isEmpty(), qPrintable(window.workspace().banner()->text()));
        window.workspace().viewState()->select({0, 3});
        window.workspace().actions()["keepNote"]->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().banner()->text().isEmpty(), 20000);
        QVERIFY2(window.workspace().banner()->text().contains(QStringLiteral("kept.stagewright")) &&
                     window.workspace().banner()->text().contains(QStringLiteral("writ")),
                 qPrintable(window.workspace().banner()->text()));
        bannerIsWhole(window);
        QVERIFY(WindowFixture::settle(window));
        window.workspace().feature<OrderEditing>()->enterEdit(); // a copy is edited, never the file
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Edit);
    }

    void whatIsMissingOfAFileIsTold()
    {
        // as a killed writer leaves it
        const auto forget = [](const QString& path) {
            rewrite(path, [](QByteArray& bytes) { bytes[18] = bytes[19] = 2; });
        };
        const QString empty = m_fixture->file("empty.stagewright", {});
        forget(empty);
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({empty});
        QVERIFY(WindowFixture::settle(window));
        QVERIFY2(window.workspace().banner()->text().contains(QStringLiteral("empty.stagewright-wal is not beside it")),
                 qPrintable(window.workspace().banner()->text()));
        QVERIFY(!window.workspace().banner()->isError());
        bannerIsWhole(window);
        const QString path = m_fixture->file("other.stagewright", {"1f1b"});
        {
            sqlite3* database = nullptr;
            QCOMPARE(sqlite3_open(qPrintable(path), &database), SQLITE_OK);
            QCOMPARE(sqlite3_exec(database, "CREATE TABLE mine(x)", nullptr, nullptr, nullptr), SQLITE_OK);
            sqlite3_close(database);
        }
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        QVERIFY2(window.workspace().banner()->text().contains(QStringLiteral(
                     "ther.stagewright: tables and indexes that Stagewright did not make are not read: mine")),
                 qPrintable(window.workspace().banner()->text()));
        window.workspace().banner()->clear();
        window.workspace().library()->reload(path); // said once
        QVERIFY(WindowFixture::settle(window));
        QVERIFY2(window.workspace().banner()->text().isEmpty(), qPrintable(window.workspace().banner()->text()));
    }

    // Another program replaces it: the loaded data stays, and reading it again reports the new content.
    void aFileThatBecomesUnreadableIsTold()
    {
        const QString path = m_fixture->file("fleeting.stagewright", {"1f1b", "gpipe"});
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        rewrite(path, [](QByteArray& bytes) { bytes = QByteArray(5000, 'y'); });
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().banner()->text().contains(QStringLiteral("changed by another program")), 20000);
        bannerIsWhole(window);
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        window.workspace().banner()->answerButton()->click();
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().banner()->text().contains(QStringLiteral("fleeting.stagewright")) &&
                !window.workspace().banner()->text().contains(QStringLiteral("changed by another")),
            20000);
        QVERIFY(WindowFixture::settle(window));
        (void)window.grab();
    }

    void oneOp()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("one.stagewright"));
        {
            auto file = RunFile::open(path.toStdString(), OpenMode::Create);
            Run run;
            TimelineBuilder builder(Provenance::Imported, "wall", 1);
            Span span;
            span.end = 1000;
            span.op = makeOp(OpKind::Forward, 0, 0);
            builder.addSpan(builder.addTrack(0, Lane::Compute), span);
            run.timeline = *builder.build();
            run.info.name = "one op";
            run.info.ranks = run.info.stages = run.info.steps = 1;
            QVERIFY((*file)->add(run).has_value());
        }
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        QVERIFY2(window.workspace().banner()->text().isEmpty(), qPrintable(window.workspace().banner()->text()));
        const auto rect = window.workspace().views().timeline->rectOf({0, 0});
        QVERIFY(rect.has_value());
        QVERIFY(rect->width() > 400); // it is the whole step
        QTest::mouseClick(window.workspace().views().timeline, Qt::LeftButton, {}, rect->center().toPoint());
        QCOMPARE(window.workspace().viewState()->selected().span, SpanId{0});
        const QImage image = window.workspace().views().timeline->grab().toImage();
        const QPoint probe =
            QPoint(static_cast<int>(rect->left()) + 30, static_cast<int>(rect->top()) + 8) * image.devicePixelRatio();
        QVERIFY2(colourDistance(image.pixelColor(probe), window.workspace().theme().of(OpKind::Forward).fill) < 40,
                 qPrintable(image.pixelColor(probe).name()));
        for (const ActionId id : {"fit", "fitSelection", "nextGap", "whatIf", "residuals", "loweredView", "allSteps"})
            if (window.workspace().actions()[id]->isEnabled()) {
                window.workspace().actions()[id]->trigger();
                QVERIFY(WindowFixture::settle(window));
            }
        (void)window.grab();
    }

    void damageIsTold()
    {
        const QString path = m_fixture->file("broken.stagewright", {"1f1b"}, 4, 16);
        QFile raw(path);
        QVERIFY(raw.open(QIODevice::ReadOnly));
        const QByteArray bytes = raw.readAll();
        raw.close();
        bool damaged = false;
        for (qsizetype place = bytes.size() - 200; place > 0 && !damaged; place -= 97) {
            QByteArray broken = bytes;
            broken[place] = static_cast<char>(broken[place] ^ 0x40);
            QVERIFY(raw.open(QIODevice::WriteOnly | QIODevice::Truncate));
            raw.write(broken);
            raw.close();
            auto opened = RunFile::open(path.toStdString(), OpenMode::Read);
            if (!opened) continue;
            auto run = (*opened)->read(1);
            damaged = run && run->info.damagedBlocks > 0 && !run->timeline->empty() && reportOf(*run).has_value();
        }
        QVERIFY(damaged);
        const QString sound = m_fixture->file("sound.stagewright", {"1f1b"});
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        QVERIFY2(window.workspace().banner()->text().contains(QStringLiteral("skipped")),
                 qPrintable(window.workspace().banner()->text()));
        window.workspace().feature<FileOpening>()->openFiles({sound});
        QVERIFY(WindowFixture::settle(window));
        QVERIFY(QTest::qWaitFor([&] { return window.workspace().shown().ref().file == sound; }, 10000));
        QVERIFY2(window.workspace().banner()->text().isEmpty(), qPrintable(window.workspace().banner()->text()));
    }

    void theBudgetIsCountedAndRemembered()
    {
        const QString path = m_fixture->file("demo.stagewright", {"1f1b"});
        auto memoryTime = [](MainWindow& window) {
            const auto& report = *window.workspace().views().timeline->panels().front()->bubbles;
            return report.byCause[static_cast<std::size_t>(IdleCause::Memory)];
        };
        {
            MainWindow window;
            QVERIFY(WindowFixture::show(window));
            window.workspace().feature<FileOpening>()->openFiles({path});
            QVERIFY(WindowFixture::settle(window));
            QVERIFY(!window.workspace().views().side->plainText().contains(QStringLiteral("Headroom")));
            QCOMPARE(memoryTime(window), Nanos{0});
            QVERIFY(
                !window.workspace().feature<BudgetController>()->setMemoryBudget(QStringLiteral("much")).has_value());
            QVERIFY(window.workspace().feature<BudgetController>()->setMemoryBudget(QStringLiteral("4 u")).has_value());
            QVERIFY(WindowFixture::settle(window));
            const QString text = window.workspace().views().side->plainText();
            QVERIFY2(text.contains(QStringLiteral("Budget per rank: 4 microbatches")) &&
                         text.contains(QStringLiteral("Headroom to budget: 0 microbatches")),
                     qPrintable(text));
            QVERIFY2(memoryTime(window) > 0, "idle time that only memory keeps from being filled");
            window.close();
        }
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        again.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(again));
        QVERIFY(again.workspace().views().side->plainText().contains(QStringLiteral("Headroom")));
        QVERIFY(again.workspace().feature<BudgetController>()->setMemoryBudget(QString()).has_value());
        QVERIFY(WindowFixture::settle(again));
        QVERIFY(!again.workspace().views().side->plainText().contains(QStringLiteral("Headroom")));
        QCOMPARE(memoryTime(again), Nanos{0});
    }

    void budgetsAreReadInTheirUnits()
    {
        MemoryBudget budget;
        const Units bytes;
        QVERIFY(budget.set(QStringLiteral("6 MiB"), bytes).has_value());
        QCOMPARE(*budget.of(bytes), Bytes{6} << 20);
        QCOMPARE(budget.text(bytes), QStringLiteral("6.00 MiB"));
        QVERIFY(budget.set(QStringLiteral("1.5gb"), bytes).has_value());
        QCOMPARE(*budget.of(bytes), Bytes{1'500'000'000});
        QVERIFY(budget.set(QStringLiteral("2"), bytes).has_value()); // MiB
        QCOMPARE(*budget.of(bytes), Bytes{2} << 20);
        for (const char* wrong : {"x", "-3 MiB", "0", "3 u", "1e9 MiB", "3 MiB extra"}) {
            const auto refused = budget.set(QString::fromLatin1(wrong), bytes);
            QVERIFY2(!refused.has_value() && !refused.error().remedy.empty(), wrong);
        }
        const Units units{rankShare, activationShare};
        QVERIFY(!budget.of(units).has_value()); // each kind has its own
        QVERIFY(budget.set(QStringLiteral("2.5 u"), units).has_value());
        QCOMPARE(*budget.of(units), activationShare * 5 / 2);
        QVERIFY(!budget.set(QStringLiteral("6 MiB"), units).has_value());
        QCOMPARE(budget.text(units), QStringLiteral("2.5 microbatches"));
        QVERIFY(budget.set(budget.text(units), units).has_value()); // as it is printed
    }

    void everyToolOnRunsThatTellLittle()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("little.stagewright"));
        {
            auto file = RunFile::open(path.toStdString(), OpenMode::Create);
            Run foreign; // no schedule, a backward without its forward
            TimelineBuilder builder(Provenance::Imported, "wall", 2);
            for (int rank = 0; rank < 2; ++rank) {
                Span span;
                span.start = rank * 500;
                span.end = span.start + 1000;
                span.op = makeOp(rank == 0 ? OpKind::Backward : OpKind::Forward, rank, 3);
                builder.addSpan(builder.addTrack(rank, Lane::Compute), span);
            }
            foreign.timeline = *builder.build();
            foreign.info.name = "foreign";
            foreign.info.provenance = Provenance::Imported;
            foreign.info.ranks = foreign.info.stages = 2;
            foreign.info.steps = 1;
            QVERIFY((*file)->add(foreign).has_value());
            QVERIFY((*file)->add(WindowFixture::simulated("1f1b", 1, 1)).has_value());
            QVERIFY((*file)->add(WindowFixture::simulated("dualpipe", 4, 8)).has_value());
        }
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        const auto tools = {"whatIf", "loweredView", "residuals"};
        for (const ActionId id : {"whatIf", "loweredView", "residuals", "nextGap", "slack"})
            QVERIFY(!window.workspace().actions()[id]->isEnabled()); // nothing is shown
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        for (const qint64 run : {1, 2, 3}) {
            window.workspace().shown().showRun({window.workspace().shown().ref().file, run});
            QVERIFY(WindowFixture::settle(window));
            for (const ActionId id : {"nextGap", "slack", "whatIf", "residuals", "loweredView"}) {
                if (window.workspace().actions()[id]->isEnabled()) window.workspace().actions()[id]->trigger();
                QVERIFY(WindowFixture::settle(window));
                QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
            }
            window.workspace().shown().setTool(Shown::Tool::None);
            window.workspace().actions()["slack"]->trigger();
            QVERIFY(WindowFixture::settle(window));
            QCOMPARE(window.workspace().views().timeline->panels().size(), std::size_t(1));
        }
        // Compare, edit and close override any pending request.
        const QString file = window.workspace().shown().ref().file;
        for (const ActionId id : tools) {
            window.workspace().shown().showRun({file, 3});
            QVERIFY(WindowFixture::settle(window));
            if (window.workspace().actions()[id]->isEnabled()) window.workspace().actions()[id]->trigger();
            window.workspace().feature<RunComparing>()->show({{file, 2}, {file, 3}});
            QVERIFY(WindowFixture::settle(window));
            QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Compare);
            QCOMPARE(window.workspace().views().timeline->panels().front()->timeline->ranks(), 1);
            QVERIFY(!window.workspace().actions()[id]->isEnabled());
            window.workspace().shown().showRun({file, 3});
            QVERIFY(WindowFixture::settle(window));
            if (window.workspace().actions()[id]->isEnabled()) window.workspace().actions()[id]->trigger();
            window.workspace().feature<OrderEditing>()->enterEdit();
            QVERIFY(WindowFixture::settle(window));
            QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Edit);
            QCOMPARE(window.workspace().views().timeline->panels().size(), std::size_t(1));
        }
        window.workspace().shown().showRun({file, 3});
        QVERIFY(WindowFixture::settle(window));
        window.workspace().actions()["whatIf"]->trigger();
        window.workspace().actions()["closeFile"]->trigger();
        QVERIFY(WindowFixture::finish(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Empty);
    }

    // A run too large to read and draw at once on one thread: the window stays responsive while it is read.
    void aLargeRunDoesNotHoldTheWindow()
    {
        // 192,000 spans and 180,000 transfers
        const QString path = m_fixture->file("large.stagewright", {"zb-h1"}, 16, 4000);
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        qint64 longest = 0;
        QElapsedTimer timer;
        window.workspace().feature<FileOpening>()->openFiles({path});
        timer.start();
        int turns = 0;
        while (!window.workspace().settled() && timer.elapsed() < 60000) {
            QElapsedTimer turn;
            turn.start();
            QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
            longest = std::max(longest, turn.elapsed());
            ++turns;
            QTest::qSleep(1);
        }
        QVERIFY(window.workspace().settled());
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        QVERIFY2(turns > 5, "the events of the window are served while a worker reads");
        qInfo("longest turn of the event loop: %lld ms", static_cast<long long>(longest));
    }
};

QTEST_MAIN(TestOddFiles)
#include "tst_odd_files.moc"
