// The one report of a run: every analysis of analyses.def is in text, JSON, SQL, window and HTML page, and every figure
// of the side panel is the one that report --json prints, for every sample run of tests/data.
#include <QDir>
#include <QDockWidget>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QListWidget>
#include <QProcess>
#include <QSet>

#include "app/ui/tables/tables_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/window_fixture.h"
#include "traces/export/html_report.h"
#include "traces/report/run_document.h"
#include "widgets/document/figure_table.h"
#include "widgets/numbers.h"
#include "widgets/panel/side_panel.h"
#include "widgets/tables/tables_panel.h"

using namespace stagewright;

namespace {

QByteArray answerOf(const QStringList& words)
{
    QProcess process;
    process.start(QStringLiteral(STAGEWRIGHT_BINARY_DIR "/stagewright"), words);
    if (!process.waitForFinished(60000) || process.exitCode() != 0)
        qWarning("%s: %s", qPrintable(words.join(QLatin1Char(' '))), process.readAllStandardError().constData());
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

constexpr const char* kernelsAlone = R"json({"traceEvents":[
{"ph":"X","cat":"kernel","name":"ampere_sgemm_128x64_tn","pid":0,"tid":7,"ts":1000,"dur":100,"args":{"device":0,"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL","pid":0,"tid":20,"ts":1050,"dur":150,"args":{"device":0,"stream":20,"correlation":2}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":7,"ts":1300,"dur":40,"args":{"device":0,"stream":7,"bytes":4096,"correlation":3}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":990,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":9,"tid":9,"ts":1290,"dur":5,"args":{"correlation":3}},
{"ph":"X","cat":"kernel","name":"ampere_sgemm_128x64_tn","pid":0,"tid":7,"ts":1350,"dur":100,"args":{"device":0,"stream":7,"correlation":4}}]})json";

// The figures of `report --json` as the panel should print them, by the keys of its rows.
class JsonTexts {
public:
    JsonTexts(QJsonObject json, const Units& units, const RunRef& ref)
        : m_json(std::move(json)), m_units(units), m_ref(ref)
    {
    }

    QString of(const QString& key)
    {
        const QStringList parts = key.split(QLatin1Char('.'));
        const QString& group = parts.front();
        if (group == QStringLiteral("by_rank")) {
            const QJsonObject rank = m_json[group].toArray()[parts[1].toInt()].toObject();
            return percentText(rank[QStringLiteral("idle")].toDouble() /
                                   std::max(1e-9, m_json[QStringLiteral("makespan")].toDouble()),
                               0);
        }
        if (group.startsWith(QStringLiteral("device_"))) return tableSum(group, parts[1]);
        QJsonValue value = m_json;
        for (const QString& part : parts) value = value[part];
        return valueText(key, value);
    }

private:
    QString time(double value) const
    {
        return durationText(std::llround(value * static_cast<double>(m_units.time)), m_units);
    }
    QString valueText(const QString& key, const QJsonValue& value) const
    {
        if (value.isNull() || value.isUndefined()) return QStringLiteral("–");
        if (key.startsWith(QStringLiteral("bubble_"))) return percentText(value.toDouble());
        if (key.contains(QStringLiteral("peak_")) || key.endsWith(QStringLiteral("bytes"))) { // by rank: the largest
            double most = value.toDouble();
            for (const QJsonValue& rank : value.toArray()) most = std::max(most, rank.toDouble());
            return bytesText(std::llround(most * static_cast<double>(m_units.memory)), m_units);
        }
        if (key.endsWith(QStringLiteral("messages")) || key.endsWith(QStringLiteral("gathers")) ||
            key.endsWith(QStringLiteral("reductions")))
            return QString::number(value.toInteger());
        return time(value.toDouble());
    }
    QString tableSum(const QString& table, const QString& column)
    {
        if (!m_tables.contains(table))
            m_tables[table] =
                QJsonDocument::fromJson(answerOf({QStringLiteral("report"), m_ref.file, QString::number(m_ref.id),
                                                  QStringLiteral("--table"), table, QStringLiteral("--json")}))
                    .object()[QStringLiteral("tables")][table];
        qint64 sum = 0;
        for (const QJsonValue& row : m_tables[table][QStringLiteral("rows")].toArray()) sum += row[column].toInteger();
        return time(static_cast<double>(sum));
    }

    QJsonObject m_json;
    QHash<QString, QJsonValue> m_tables;
    Units m_units;
    RunRef m_ref;
};

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
        const QString path = traced ? m_fixture->dir.filePath(QStringLiteral("traced.stagewright"))
                                    : m_fixture->file("all.stagewright", {"zb-h1"});
        if (traced)
            answerOf({QStringLiteral("import"),
                      QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/traces/gpu_rank*.json"), QStringLiteral("-o"),
                      path});
        QVERIFY(WindowFixture::open(*m_window, {path}));
        openDock();
        auto file = RunFile::open(path.toStdString(), OpenMode::Read);
        QVERIFY(file.has_value());
        const Run run = *(*file)->read(1);
        const QString page = QString::fromStdString(*htmlReport(run));
        const QString text = QString::fromUtf8(
            answerOf({QStringLiteral("report"), path, QStringLiteral("--table"), QStringLiteral("all")}));
        const QJsonObject json =
            QJsonDocument::fromJson(answerOf({QStringLiteral("report"), path, QStringLiteral("--table"),
                                              QStringLiteral("all"), QStringLiteral("--json")}))
                .object()[QStringLiteral("tables")]
                .toObject();
        for (const AnalysisInfo* analysis : allAnalyses()) {
            const QString name = textOf(analysis->name), title = textOf(analysis->title);
            const ReportTable table = reportTable(*analysis, StepContext(run, 0));
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
                QCOMPARE(one[QStringLiteral("rows")]
                             .toArray()
                             .first()
                             .toObject()[QString::fromStdString(table.columns[i].key)]
                             .toInteger(),
                         qint64(value));
            }
            // window
            panel().choose(name);
            QCOMPARE(panel().table() != nullptr, known);
            if (known)
                QCOMPARE(panel().table()->model()->rowCount(), static_cast<int>(table.rows.size()));
            else
                QVERIFY2(panel().lineText().contains(unknown.mid(1)), qPrintable(panel().lineText()));
            // page
            QVERIFY2(page.contains(QString::fromStdString("<summary>" + std::string(analysis->title))) ||
                         page.contains(unknown.isEmpty() ? title : unknown.left(20)),
                     label.constData());
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
        QCOMPARE(QString::fromStdString(timeline.nameOf(timeline.spans()[selected.span])),
                 table->model()->index(3, 0).data().toString());
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
        answerOf({QStringLiteral("simulate"), QStringLiteral("-s"), QStringLiteral("1f1b"), QStringLiteral("--comm"),
                  QStringLiteral("0.25"), QStringLiteral("-o"), made});
        // and one of kernels alone, whose ops are not known
        const QString kernels = m_fixture->dir.filePath(QStringLiteral("kernels.json"));
        QFile trace(kernels);
        QVERIFY(trace.open(QFile::WriteOnly) && trace.write(kernelsAlone) > 0);
        trace.close();
        answerOf({QStringLiteral("import"), kernels, QStringLiteral("-o"), made});
        QVERIFY(WindowFixture::open(*m_window, files));
        int compared = 0, training = 0, levers = 0, samples = 0;
        QSet<QString> keys;
        for (const RunRef& ref : m_window->workspace().runs()->refs()) {
            m_window->workspace().shown().showRun(ref, -1);
            QVERIFY(WindowFixture::settle(*m_window));
            const auto view = m_window->workspace().shown().view();
            QVERIFY(view && view->ref == ref);
            const QString panel = m_window->workspace().views().side->plainText();
            const QJsonObject json =
                QJsonDocument::fromJson(
                    answerOf({QStringLiteral("report"), ref.file, QString::number(ref.id), QStringLiteral("--json")}))
                    .object();
            QVERIFY2(!json.isEmpty(), qPrintable(ref.file));
            const Units units{view->run->timeline->timeUnit(), view->run->timeline->memoryUnit()};
            const QByteArray label = QStringLiteral("%1#%2\n%3").arg(ref.file).arg(ref.id).arg(panel).toUtf8();
            QCOMPARE(json[QStringLiteral("step")].toInt(), view->step);
            JsonTexts texts(json, units, ref);
            int inPanel = 0;
            for (const auto& [key, value] : m_window->workspace().views().side->figures()) {
                // the ratio is a heading
                QVERIFY2(panel.contains(QString(value).replace(QChar::Nbsp, QLatin1Char(' '))) ||
                             key == QStringLiteral("bubble_fraction"),
                         qPrintable(key));
                const QString expected = texts.of(key);
                QVERIFY2(value == expected, (key.toUtf8() + ": the panel has " + value.toUtf8() + ", the JSON " +
                                             expected.toUtf8() + "\n" + label)
                                                .constData());
                keys.insert(key.section(QLatin1Char('.'), 0, 0));
                ++inPanel;
            }
            // what has no key: training, and what would help
            const QString printed =
                QString::fromUtf8(answerOf({QStringLiteral("report"), ref.file, QString::number(ref.id),
                                            QStringLiteral("--gaps"), QStringLiteral("0")}));
            for (const document::Figure& figure : trainingFigures(*view->run, view->step)) {
                const QString words = QString::fromStdString(figure.words);
                QVERIFY2(panel.contains(words) && printed.contains(words), label.constData());
                ++training;
            }
            if (view->figures->levers && view->figures->noOps.empty())
                for (const Lever& lever : view->figures->levers->shown())
                    if (lever.makespan && lever.gain > 0 && levers++ % 3 == 0)
                        QVERIFY2(printed.contains(QString::fromStdString(lever.title)), lever.title.c_str());
            for (const document::Figure& figure : view->figures->figures())
                if (figure.key == "whole_step" && !figure.note.empty()) {
                    QVERIFY2(panel.contains(QString::fromStdString(figure.note).mid(1)), label.constData());
                    ++samples;
                }
            // what is unknown in the JSON is unknown here, in a sentence with its reason
            const QJsonObject unknown = json[QStringLiteral("unknown")].toObject();
            if (const QString why = unknown[QStringLiteral("peak_activation")].toString(); !why.isEmpty()) {
                QVERIFY2(rowOf(panel, QStringLiteral("Peak activation")).isEmpty(), label.constData());
                QVERIFY2(panel.contains(QStringLiteral("Activations are unknown: ") + why), label.constData());
            }
            if (view->run->info.stages > 0) {
                QCOMPARE(m_window->workspace().views().side->headline(), texts.of(QStringLiteral("bubble_fraction")));
                QVERIFY2(inPanel >= 3 + view->run->info.ranks, label.constData());
                ++compared;
            }
            // and all that the panel does not print
            const auto figures = view->figures->figures();
            for (const document::Figure& figure : figures) {
                QJsonValue value = json;
                for (const QString& part : QString::fromStdString(figure.key).split(QLatin1Char('.')))
                    value = value.toObject()[part];
                if (figure.key == "weight_bytes" && units.memory != 1) continue; // microbatches have no weights
                QVERIFY2(value.isNull() == !figure.unknown.empty(), figure.key.c_str());
                if (value.isNull() || figure.kind == ColumnKind::Size) continue;
                const double wanted =
                    figure.kind == ColumnKind::Time ? figure.value / static_cast<double>(units.time) : figure.value;
                QVERIFY2(std::abs(value.toDouble() - wanted) <= 1e-9 * std::max(1.0, std::abs(wanted)),
                         figure.key.c_str());
            }
        }
        QVERIFY2(training > 0 && levers > 0 && samples > 0,
                 qPrintable(QStringLiteral("%1 %2 %3").arg(training).arg(levers).arg(samples)));
        QVERIFY2(compared >= 12, qPrintable(QString::number(compared)));
        for (const char* key : {"makespan", "bubble_fraction", "by_rank", "idle_by_cause", "peak_activation",
                                "weight_bytes", "overlap", "sharing", "link_latency", "device_time"})
            QVERIFY2(keys.contains(QString::fromLatin1(key)), key);
    }
};

QTEST_MAIN(TestReport)
#include "tst_report.moc"
