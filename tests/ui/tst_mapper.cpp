// The dock that makes a pipeline of named ranges: names, what they mean, live matches, the rule file, and the import
// with it.
#include <QComboBox>
#include <QDockWidget>
#include <QPushButton>

#include "app/ui/exchange/import_controller.h"
#include "app/ui/mapper/mapper_controller.h"
#include "app/ui/mapper/mapper_panel.h"
#include "tests/ui/window_fixture.h"
#include "traces/import/import.h"
#include "widgets/document/figure_table.h"
#include "widgets/import/import_dialog.h"

using namespace stagewright;

class TestMapper : public WindowTest {
    Q_OBJECT

    MapperController& mapper() { return *m_window->workspace().feature<MapperController>(); }
    MapperPanel& panel() { return *mapper().panel(); }
    bool settle() { return WindowFixture::settle(*m_window); }

    // 1F1B of four microbatches on two ranks with names of its own, twice; ranges "misc" mean nothing.
    QString folderOfTraces()
    {
        const QString folder = m_fixture->dir.filePath(QStringLiteral("traces"));
        QDir().mkpath(folder);
        const char* orders[] = {"F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"};
        const std::map<std::string, int> starts[] = {
            {{"F0", 0}, {"F1", 10}, {"B0", 30}, {"F2", 40}, {"B1", 50}, {"F3", 60}, {"B2", 70}, {"B3", 90}},
            {{"F0", 10}, {"B0", 20}, {"F1", 30}, {"B1", 40}, {"F2", 50}, {"B2", 60}, {"F3", 70}, {"B3", 80}}};
        for (int rank = 0; rank < 2; ++rank) {
            QString text =
                QStringLiteral(
                    "{\"schemaVersion\":1,\"distributedInfo\":{\"rank\":%1,\"world_size\":2},\"traceEvents\":[")
                    .arg(rank);
            for (int step = 0; step < 2; ++step)
                for (const QString& op : QString::fromLatin1(orders[rank]).split(QLatin1Char(' '))) {
                    const int start = 1000 + step * 200 + starts[rank].at(op.toStdString());
                    for (const QString& name :
                         {QStringLiteral("%1 no %2 of part %3")
                              .arg(op.startsWith(QLatin1Char('F')) ? QStringLiteral("go") : QStringLiteral("return"),
                                   op.mid(1))
                              .arg(rank),
                          QStringLiteral("misc")})
                        text += QStringLiteral("{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"%1\",\"pid\":1,"
                                               "\"tid\":1,\"ts\":%2,\"dur\":%3},")
                                    .arg(name)
                                    .arg(start)
                                    .arg(name == QLatin1String("misc") ? 2 : 8);
                }
            text += QStringLiteral(
                "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":1000,\"dur\":1}]}");
            QFile file(folder + QStringLiteral("/rank%1.json").arg(rank));
            if (!file.open(QIODevice::WriteOnly)) return {};
            file.write(text.toUtf8());
        }
        return folder;
    }

    void openImported(const QString& folder)
    {
        const auto imported = importTraces({folder.toStdString()}, {});
        QVERIFY(imported && imported->runs.size() == 1);
        QCOMPARE(imported->runs[0].ops, std::int64_t{0});
        const QString path = m_fixture->dir.filePath(QStringLiteral("plain.stagewright"));
        {
            auto file = RunFile::open(path.toStdString(), OpenMode::Create);
            QVERIFY(file.has_value() && (*file)->add(imported->runs[0].run).has_value());
        }
        QVERIFY(WindowFixture::open(*m_window, {path}));
    }

private slots:
    void aPipelineOfRanges()
    {
        const QString folder = folderOfTraces();
        openImported(folder);
        for (QAction* action : m_window->findChildren<QAction*>())
            if (action->objectName() == QLatin1String("mapper")) action->trigger();
        QVERIFY(settle());
        QVERIFY(mapper().dock()->isVisible());
        QCOMPARE(panel().names()->model()->rowCount(), 3);
        QVERIFY(!panel().applyButton()->isEnabled());
        // a range clicked in the timeline chooses its name
        const auto& timeline = *m_window->workspace().views().timeline->panels().front()->timeline;
        SpanId range = noSpan;
        for (SpanId id = 0; id < timeline.spans().size() && range == noSpan; ++id)
            if (timeline.nameOf(timeline.spans()[id]) == "go no 2 of part 0") range = id;
        QVERIFY(range != noSpan);
        m_window->workspace().viewState()->select({0, range});
        QVERIFY(panel().row() >= 0);
        QCOMPARE(panel().numberBoxes().size(), std::size_t{2});
        panel().setMeaning(QStringLiteral("F"));
        panel().setNumber(0, NumberMeaning::Microbatch);
        panel().setNumber(1, NumberMeaning::Stage);
        QVERIFY(settle());
        QVERIFY2(panel().rules().contains(QStringLiteral("F        go no {microbatch} of part {stage}")),
                 qPrintable(panel().rules()));
        QVERIFY2(panel().answerText().contains(QStringLiteral("16 ranges on 2 ranks")),
                 qPrintable(panel().answerText()));
        // without backwards
        QVERIFY2(panel().answerText().contains(QStringLiteral("o schedule")), qPrintable(panel().answerText()));
        // the other one, first wrong, then right
        QVERIFY(panel().chooseName("return no 0 of part 1"));
        panel().setMeaning(QStringLiteral("B"));
        panel().setNumber(0, NumberMeaning::Any);
        panel().setNumber(1, NumberMeaning::Stage);
        QVERIFY(settle());
        panel().setNumber(0, NumberMeaning::Microbatch);
        QVERIFY(settle());
        QCOMPARE(panel().rules().count(QStringLiteral("return")), 1);
        QVERIFY2(panel().answerText().startsWith(QStringLiteral("1F1B: 2 ranks, 2 stages, 4 microbatches, 2 steps")),
                 qPrintable(panel().answerText()));
        QVERIFY2(panel().answerText().contains(QStringLiteral("Every range has its counterpart.")),
                 qPrintable(panel().answerText()));
        QVERIFY(panel().applyButton()->isEnabled());
        // a meaning taken back
        panel().setMeaning(QString());
        QVERIFY(settle());
        QVERIFY(!panel().rules().contains(QStringLiteral("return")));
        panel().setMeaning(QStringLiteral("B"));
        QVERIFY(settle());
        // a wrong line is named
        const QString good = panel().rules();
        panel().setRules(good + QStringLiteral("FF x\n"));
        QVERIFY(settle());
        QVERIFY2(panel().answerText().contains(QStringLiteral("ine 3")), qPrintable(panel().answerText()));
        QVERIFY(!panel().applyButton()->isEnabled());
        panel().setRules(good);
        QVERIFY(settle());
        // kept as a file, and the traces imported with it
        const QString rules = m_fixture->dir.filePath(QStringLiteral("mine.rules"));
        QVERIFY(mapper().saveRules(rules));
        panel().setRules({});
        QVERIFY(mapper().openRules(rules));
        QCOMPARE(panel().rules(), good);
        QVERIFY(settle());
        mapper().importWith(rules);
        ImportDialog* dialog = m_window->workspace().feature<ImportController>()->dialog();
        QVERIFY(dialog != nullptr);
        QTRY_VERIFY(dialog->settled() && dialog->reading());
        QCOMPARE(dialog->question().rulesFile, rules);
        QCOMPARE(dialog->reading()->result.runs.size(), std::size_t{1});
        QCOMPARE(dialog->reading()->result.runs[0].recognised, std::string("1f1b"));
        QCOMPARE(dialog->reading()->result.runs[0].run.timeline->steps(), 2);
        dialog->reject();
        QVERIFY(!mapper().openRules(m_fixture->dir.filePath(QStringLiteral("absent.rules"))));
        QVERIFY(!mapper().saveRules(m_fixture->dir.filePath(QStringLiteral("no/such/folder.rules"))));
    }

    // A run without ranges says what to do; another run brings its own names.
    void nothingToMap()
    {
        QVERIFY(WindowFixture::open(*m_window, {m_fixture->file("sim.stagewright", {"1f1b"})}));
        for (QAction* action : m_window->findChildren<QAction*>())
            if (action->objectName() == QLatin1String("mapper")) action->trigger();
        QVERIFY(settle());
        QCOMPARE(panel().names()->model()->rowCount(), 0);
        QVERIFY(!panel().applyButton()->isEnabled());
        bool said = false;
        for (const QLabel* label : panel().findChildren<QLabel*>())
            said = said || label->text().contains(QStringLiteral("no named ranges"));
        QVERIFY(said);
    }
};

QTEST_MAIN(TestMapper)
#include "tst_mapper.moc"
