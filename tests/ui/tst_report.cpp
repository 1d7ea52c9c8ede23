// The one report of a run: every analysis of analyses.def is in text, JSON, SQL, window and HTML page, and every figure of the side panel is
// the one that report --json prints, for every sample run of tests/data.
#include <QDir>
#include <QDockWidget>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QListWidget>
#include <QProcess>

#include "app/ui/tables/tables_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/window_fixture.h"
#include "traces/export/html_report.h"
#include "widgets/device/figure_table.h"
#include "widgets/numbers.h"
#include "widgets/panel/side_panel.h"
#include "widgets/tables/tables_panel.h"

using namespace stagewright;

namespace {

QByteArray answerOf(const QStringList& words)
{
    QProcess process;
    process.start(QStringLiteral(STAGEWRIGHT_BINARY_DIR "/stagewright"), words);
    if (!process.waitForFinished(60000) || process.exitCode() != 0) qWarning("%s: %s", qPrintable(words.join(QLatin1Char(' '))), process.readAllStandardError().constData());
    return process.readAllStandardOutput();
}

QString textOf(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

// The value of a row "label: value" of the panel; empty: there is no such row.
QString rowOf(const QString& panel, const QString& label)
{
    for (const QString& line : panel.split(QLatin1Char('\n')))
        if (line.trimmed().startsWith(label + QStringLiteral(": "))) return line.trimmed().mid(label.size() + 2);
    return {};
}

} // namespace

class TestReport : public WindowTest {
    Q_OBJECT

    TablesPanel& panel() { return *m_window->workspace().feature<TablesController>()->panel(); }
    void openDock()
    {
        m_window->findChild<QAction*>(QStringLiteral("tables"))->trigger();
        QVERIFY(WindowFixture::settle(*m_window));
    }

private slots:
    void initTestCase() { QVERIFY2(WindowFixture::recordsWithBuiltProgram(), "the program stagewright is not built"); }

    void everyAnalysisIsEverywhere_data()
    {
        QTest::addColumn<bool>("traced"); // by PyTorch's profiler on GPUs, else simulated
        QTest::addColumn<int>("least");   // tables that are known
        QTest::newRow("simulated") << false << 7;
        QTest::newRow("traced") << true << 19;
    }
    void everyAnalysisIsEverywhere()
    {
        QFETCH(bool, traced);
        QFETCH(int, least);
        int tablesKnown = 0;
        const QString path = traced ? m_fixture->dir.filePath(QStringLiteral("traced.stagewright")) : m_fixture->file("all.stagewright", {"zb-h1"});
        if (traced) answerOf({QStringLiteral("import"), QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/traces/gpu_rank*.json"), QStringLiteral("-o"), path});
        QVERIFY(WindowFixture::open(*m_window, {path}));
        openDock();
        auto file = RunFile::open(path.toStdString(), OpenMode::Read);
        QVERIFY(file.has_value());
        const Run run = *(*file)->read(1);
        const QString page = QString::fromStdString(*htmlReport(run));
        const QString text = QString::fromUtf8(answerOf({QStringLiteral("report"), path, QStringLiteral("--table"), QStringLiteral("all")}));
        const QJsonObject json = QJsonDocument::fromJson(answerOf({QStringLiteral("report"), path, QStringLiteral("--table"), QStringLiteral("all"), QStringLiteral("--json")}))
                                     .object()[QStringLiteral("tables")]
                                     .toObject();
        QCOMPARE(panel().names()->count(), static_cast<int>(allAnalyses().size()));
        for (const AnalysisInfo* analysis : allAnalyses()) {
            const QString name = textOf(analysis->name), title = textOf(analysis->title);
            const ReportTable table = reportTable(*analysis, run, 0);
            const bool known = table.unknown.empty();
            tablesKnown += known ? 1 : 0;
            const QString unknown = QString::fromStdString(table.unknown);
            const QByteArray label = name.toUtf8();
            // text
            QVERIFY2(text.contains(title.mid(1)), label.constData()); // its first letter is lower case there
            QVERIFY2(known || text.contains(unknown), label.constData());
            // JSON
            const QJsonObject one = json[name].toObject();
            QCOMPARE(one[QStringLiteral("title")].toString(), title);
            QCOMPARE(one[QStringLiteral("columns")].toArray().size(), static_cast<int>(table.columns.size()));
            QCOMPARE(one[QStringLiteral("rows")].toArray().size(), static_cast<int>(table.rows.size()));
            QCOMPARE(one[QStringLiteral("unknown")].toString(), unknown);
            // SQL
            const auto rows = (*file)->query("SELECT * FROM " + reportFunction(*analysis) + "(1, 0)");
            QVERIFY2(rows.has_value(), label.constData());
            QCOMPARE(rows->rows.size(), table.rows.size());
            for (std::size_t i = 0; i < table.columns.size(); ++i) {
                QCOMPARE(rows->columns[i], table.columns[i].key);
                if (table.columns[i].kind != ColumnKind::Time || table.rows.empty()) continue;
                const auto* time = std::get_if<std::int64_t>(&table.rows.front()[i]);
                if (time == nullptr) continue; // unknown in this row
                const std::int64_t value = *time;
                QCOMPARE(rows->rows.front()[i], std::to_string(value));
                QCOMPARE(one[QStringLiteral("rows")].toArray().first().toObject()[QString::fromStdString(table.columns[i].key)].toInteger(), qint64(value));
            }
            // window
            panel().choose(name);
            QCOMPARE(panel().table() != nullptr, known);
            if (known)
                QCOMPARE(panel().table()->model()->rowCount(), static_cast<int>(table.rows.size()));
            else
                QVERIFY2(panel().lineText().contains(unknown.mid(1)), qPrintable(panel().lineText()));
            // page
            QVERIFY2(page.contains(QString::fromStdString("<summary>" + std::string(analysis->title))) || page.contains(unknown.isEmpty() ? title : unknown.left(20)), label.constData());
        }
        QVERIFY2(tablesKnown >= least, qPrintable(QString::number(tablesKnown)));
    }

    void aRowGoesToItsOp()
    {
        QVERIFY(WindowFixture::open(*m_window, {m_fixture->file("row.stagewright", {"1f1b"})}));
        openDock();
        QVERIFY(m_window->workspace().feature<TablesController>()->dock()->isVisible());
        panel().choose(QStringLiteral("critical_path"));
        FigureTable* table = panel().table();
        QVERIFY(table != nullptr && table->model()->rowCount() > 3);
        table->setCurrentIndex(table->model()->index(3, 0));
        const SpanRef selected = m_window->workspace().viewState()->selected();
        QVERIFY(selected.valid());
        const Timeline& timeline = *m_window->workspace().shown().view()->run->timeline;
        QCOMPARE(QString::fromStdString(timeline.nameOf(timeline.spans()[selected.span])), table->model()->index(3, 0).data().toString());
        m_window->findChild<QAction*>(QStringLiteral("tables"))->trigger();
        QVERIFY(!m_window->workspace().feature<TablesController>()->dock()->isVisible());
    }

    void theConsoleKnowsTheFunctions()
    {
        QVERIFY(WindowFixture::open(*m_window, {m_fixture->file("sql.stagewright", {"1f1b", "gpipe"})}));
        auto file = RunFile::open(m_window->workspace().shown().ref().file.toStdString(), OpenMode::Read);
        QVERIFY(file.has_value());
        const auto joined = (*file)->query("SELECT runs.name, b.rank FROM runs JOIN report_bubbles(runs.run) b");
        QVERIFY(joined && joined->rows.size() == 8);
        QVERIFY((*file)->query("SELECT * FROM report_bubbles(7)")->rows.empty());    // no such run
        QVERIFY((*file)->query("SELECT * FROM report_bubbles(1, 9)")->rows.empty()); // no such step
        QVERIFY((*file)->query("SELECT * FROM report_kernels(1)")->rows.empty());    // none of a simulated run
        const auto without = (*file)->query("SELECT * FROM report_bubbles");
        QVERIFY(!without && without.error().message.find("report_bubbles(1)") != std::string::npos);
    }

    void panelAndJsonAgree()
    {
        // every run file and trace of tests/data, each trace as the run it becomes
        const QString made = m_fixture->dir.filePath(QStringLiteral("samples.stagewright"));
        QStringList files{made};
        const QDir runs(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs"));
        for (const QString& name : runs.entryList({QStringLiteral("*.stagewright")}, QDir::Files)) {
            files << m_fixture->dir.filePath(name);
            QVERIFY(QFile::copy(runs.filePath(name), files.back()));
        }
        QVERIFY(files.size() >= 7);
        const QDir traces(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/traces"));
        answerOf({QStringLiteral("import"), traces.path(), QStringLiteral("-o"), made});
        answerOf({QStringLiteral("simulate"), QStringLiteral("-s"), QStringLiteral("1f1b"), QStringLiteral("--comm"), QStringLiteral("0.25"), QStringLiteral("-o"), made});
        QVERIFY(WindowFixture::open(*m_window, files));
        int compared = 0;
        for (const RunRef& ref : m_window->workspace().runs()->refs()) {
            m_window->workspace().shown().showRun(ref, -1);
            QVERIFY(WindowFixture::settle(*m_window));
            const auto view = m_window->workspace().shown().view();
            QVERIFY(view && view->ref == ref);
            const QString panel = m_window->workspace().views().side->plainText();
            const QJsonObject json = QJsonDocument::fromJson(answerOf({QStringLiteral("report"), ref.file, QString::number(ref.id), QStringLiteral("--json")})).object();
            QVERIFY2(!json.isEmpty(), qPrintable(ref.file));
            const Units units{view->run->timeline->timeUnit(), view->run->timeline->memoryUnit()};
            const auto time = [&](const QJsonValue& value) { return durationText(std::llround(value.toDouble() * static_cast<double>(units.time)), units); };
            const auto size = [&](const QJsonValue& value) { return bytesText(std::llround(value.toDouble() * static_cast<double>(units.memory)), units); };
            const QByteArray label = QStringLiteral("%1#%2\n%3").arg(ref.file).arg(ref.id).arg(panel).toUtf8();
            QCOMPARE(json[QStringLiteral("step")].toInt(), view->step);
            if (view->run->info.stages > 0) {
                QVERIFY2(rowOf(panel, QStringLiteral("Step time")) == time(json[QStringLiteral("makespan")]), label.constData());
                QCOMPARE(m_window->workspace().views().side->headline(), percentText(json[QStringLiteral("bubble_fraction")].toDouble()));
                for (const QJsonValue& of : json[QStringLiteral("by_rank")].toArray()) {
                    const QJsonObject rank = of.toObject();
                    const QString row = rowOf(panel, QStringLiteral("Rank %1").arg(rank[QStringLiteral("rank")].toInt()));
                    QVERIFY2(row.contains(percentText(rank[QStringLiteral("idle")].toDouble() / std::max(1e-9, json[QStringLiteral("makespan")].toDouble()), 0)), label.constData());
                }
                ++compared;
            }
            const QJsonArray peaks = json[QStringLiteral("peak_activation")].toArray();
            double most = 0;
            int fullest = -1;
            for (int r = 0; r < peaks.size(); ++r)
                if (peaks[r].toDouble() > most) most = peaks[fullest = r].toDouble();
            if (fullest >= 0) QVERIFY2(rowOf(panel, QStringLiteral("Peak activation (rank %1)").arg(fullest)) == size(most), label.constData());
            const QJsonObject overlap = json[QStringLiteral("overlap")].toObject();
            if (overlap[QStringLiteral("messages")].toInt() > 0) QCOMPARE(rowOf(panel, QStringLiteral("P2P transfers")), QString::number(overlap[QStringLiteral("messages")].toInt()));
            if (overlap[QStringLiteral("comm_time")].toDouble() > 0) {
                QVERIFY2(panel.contains(time(overlap[QStringLiteral("comm_time")])), label.constData());
                QVERIFY2(rowOf(panel, QStringLiteral("Hidden")).startsWith(time(overlap[QStringLiteral("hidden_time")])), label.constData());
                QVERIFY2(rowOf(panel, QStringLiteral("Exposed")) == time(overlap[QStringLiteral("exposed_time")]), label.constData());
            }
            // and all that the panel does not print
            const auto figures = view->figures->figures();
            for (const ReportFigure& figure : figures) {
                QJsonValue value = json;
                for (const QString& part : QString::fromStdString(figure.key).split(QLatin1Char('.'))) value = value.toObject()[part];
                if (figure.key == "weight_bytes" && units.memory != 1) continue; // microbatches have no weights
                QVERIFY2(value.isNull() == !figure.unknown.empty(), figure.key.c_str());
                if (value.isNull() || figure.kind == ColumnKind::Size) continue;
                const double wanted = figure.kind == ColumnKind::Time ? figure.value / static_cast<double>(units.time) : figure.value;
                QVERIFY2(std::abs(value.toDouble() - wanted) <= 1e-9 * std::max(1.0, std::abs(wanted)), figure.key.c_str());
            }
        }
        QVERIFY2(compared >= 12, qPrintable(QString::number(compared)));
    }
};

QTEST_MAIN(TestReport)
#include "tst_report.moc"
