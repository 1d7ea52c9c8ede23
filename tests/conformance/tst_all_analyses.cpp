// Every registered analysis and format on every sample timeline, simulated, random and empty: no error, the same twice,
// rows as wide as the columns.
#include <QtTest/QtTest>

#include <algorithm>
#include <set>

#include "sample_runs.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/format/format_registry.h"
#include "traces/report/tables.h"

using namespace stagewright;

class TestAllAnalyses : public QObject {
    Q_OBJECT

private:
    static void addSamples()
    {
        QTest::addColumn<Run>("run");
        for (const ScheduleInfo& info : allSchedules())
            for (const double latency : {0.0, 0.5})
                QTest::addRow("%s %g", std::string(info.name).c_str(), latency)
                    << samples::simulatedRun(std::string(info.name), 4, 8, latency);
        for (std::uint32_t seed = 0; seed < 3; ++seed) {
            Run run;
            run.timeline = samples::randomTimeline(seed, 3, 2, 200);
            QTest::addRow("random %u", seed) << run;
        }
        Run empty;
        empty.timeline = TimelineBuilder(Provenance::Imported, "", 2).build().value();
        QTest::addRow("empty") << empty;
        Run none;
        none.timeline = TimelineBuilder(Provenance::Imported, "", 0).build().value();
        QTest::addRow("no ranks") << none;
    }

private slots:
    void namesAreUnique()
    {
        std::set<std::string_view> names;
        for (const AnalysisInfo* info : allAnalyses()) {
            QVERIFY(names.insert(info->name).second);
            QCOMPARE(findAnalysis(info->name), info);
            const std::vector<TableColumn> columns = info->columns();
            QVERIFY(!info->title.empty() && !columns.empty());
            for (const std::string_view drawn : info->curves.columns)
                QVERIFY(info->curves.up.empty() ||
                        std::any_of(columns.begin(), columns.end(),
                                    [&](const TableColumn& column) { return column.key == drawn; }));
        }
        for (const FormatInfo* info : allFormats()) {
            QVERIFY(names.insert(info->name).second);
            QCOMPARE(findFormat(info->name), info);
            QVERIFY(!info->title.empty() && (info->folder || !info->suffixes.empty()));
            QCOMPARE(info->read != nullptr, !info->reads.empty());
            QCOMPARE(info->write != nullptr || info->drawn, !info->writes.empty());
            for (const std::string_view suffix : info->suffixes) QVERIFY(suffix.starts_with('.'));
        }
        QVERIFY(holdsOrder("mine.CSV") && !holdsOrder("trace.json") && !holdsOrder("csv"));
        QVERIFY(findAnalysis("none") == nullptr && findFormat("none") == nullptr);
        QVERIFY(names.size() >= 5);
    }

    void analyses_data() { addSamples(); }
    void analyses()
    {
        QFETCH(Run, run);
        for (const AnalysisInfo* info : allAnalyses()) {
            for (int step = 0; step <= run.timeline->steps(); ++step) { // the last does not exist
                const ReportTable table = reportTable(*info, StepContext(run, step));
                if (info->unknown(run).empty()) QVERIFY2(table.unknown.empty(), table.unknown.c_str());
                for (const auto& row : table.rows) QCOMPARE(row.size(), table.columns.size());
                if (!table.ops.empty()) QCOMPARE(table.ops.size(), table.rows.size());
                for (const TableColumn& column : table.columns) QVERIFY(!column.key.empty() && !column.title.empty());
                QVERIFY(table.rows == reportTable(*info, StepContext(run, step)).rows);
                if (run.schedule && step == 0 && table.unknown.empty()) QVERIFY(!table.rows.empty());
            }
        }
    }

    void formats_data() { addSamples(); }
    void formats()
    {
        QFETCH(Run, run);
        QTemporaryDir folder;
        for (const FormatInfo* info : allFormats()) {
            if (info->write == nullptr) continue; // one that is only read, or drawn
            const QString path =
                folder.filePath(QStringLiteral("run")) +
                (info->folder ? QString() : QString::fromStdString(std::string(info->suffixes.front())));
            ExportRequest request;
            request.run = &run;
            request.path = path.toStdString();
            const auto bytes = [&]() -> QByteArray {
                if (!info->write(request)) return {};
                QStringList files{path};
                if (info->folder) {
                    files.clear();
                    for (const QString& name : QDir(path).entryList(QDir::Files)) files << QDir(path).filePath(name);
                }
                QByteArray all;
                for (const QString& name : files) {
                    QFile file(name);
                    if (file.open(QIODevice::ReadOnly)) all += file.readAll();
                }
                if (info->folder)
                    QDir(path).removeRecursively();
                else
                    QFile::remove(path);
                return all;
            };
            const QByteArray first = bytes();
            // nothing to write, or what the format can't hold, is refused in words, and leaves nothing behind
            if (first.isEmpty()) {
                const auto refused = info->write(request);
                QVERIFY2((run.timeline->empty() || info->can) && !refused && !refused.error().message.empty(),
                         std::string(info->name).c_str());
                QVERIFY(!QFile::exists(path));
                continue;
            }
            QVERIFY(first == bytes());
        }
    }
};

QTEST_APPLESS_MAIN(TestAllAnalyses)
#include "tst_all_analyses.moc"
