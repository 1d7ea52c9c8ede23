// Every registered analysis and format on every sample timeline, simulated, random and empty: no error, the same twice,
// rows as wide as the columns.
#include <QtTest/QtTest>

#include <fstream>
#include <iterator>
#include <set>

#include "sample_runs.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/formats/format_registry.h"

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
            QVERIFY(!info->title.empty() && !info->needs.empty());
        }
        for (const FormatInfo* info : allFormats()) {
            QVERIFY(names.insert(info->name).second);
            QCOMPARE(findFormat(info->name), info);
            QVERIFY(info->suffix.starts_with('.'));
        }
        QVERIFY(findAnalysis("none") == nullptr && findFormat("none") == nullptr);
        QVERIFY(names.size() >= 5);
    }

    void analyses_data() { addSamples(); }
    void analyses()
    {
        QFETCH(Run, run);
        for (const AnalysisInfo* info : allAnalyses()) {
            for (int step = 0; step <= run.timeline->steps(); ++step) { // the last does not exist
                const auto table = info->run(*run.timeline, step);
                QVERIFY(table.has_value());
                for (const auto& row : table->rows) QCOMPARE(row.size(), table->columns.size());
                for (const AnalysisColumn& column : table->columns) QVERIFY(!column.key.empty() && !column.title.empty());
                QVERIFY(table->rows == info->run(*run.timeline, step)->rows);
                if (run.schedule && step == 0 && info->applies(*run.timeline)) QVERIFY(!table->rows.empty());
            }
        }
    }

    void formats_data() { addSamples(); }
    void formats()
    {
        QFETCH(Run, run);
        QTemporaryDir folder;
        for (const FormatInfo* info : allFormats()) {
            if (info->write == nullptr) continue; // one that is only read
            const std::string path = folder.filePath("run").toStdString() + std::string(info->suffix);
            const auto bytes = [&]() -> std::string {
                if (!info->write(run, path, {})) return {};
                std::ifstream in(path, std::ios::binary);
                return {std::istreambuf_iterator<char>(in), {}};
            };
            const std::string first = bytes();
            if (first.empty()) { // an empty run is refused with a message, and leaves nothing behind
                const auto refused = info->write(run, path, {});
                QVERIFY2(run.timeline->empty() && !refused && !refused.error().message.empty(), std::string(info->name).c_str());
                QVERIFY(!QFile::exists(QString::fromStdString(path)));
                continue;
            }
            QVERIFY(first == bytes());
        }
    }
};

QTEST_APPLESS_MAIN(TestAllAnalyses)
#include "tst_all_analyses.moc"
