// SQL on run files, and the first view of a run.
#include <QtTest/QtTest>

#include <cmath>

#include "run_folder.h"
#include "sample_runs.h"
#include "traces/store/run_file.h"

using namespace stagewright;

class TestRunQueries : public QObject, RunFolder {
    Q_OBJECT

private slots:
    void sqlSeesEverything()
    {
        auto file = fresh();
        const Run run = samples::simulatedRun("zb-h1", 4, 8, 0.25);
        VERIFY_RESULT(file->add(run));
        const Run other = samples::randomRun(5);
        VERIFY_RESULT(file->add(other));
        const auto number = [&](const std::string& sql) {
            const auto table = file->query(sql);
            return table ? QString::fromStdString(table->rows[0][0]).toLongLong() : -1;
        };
        QCOMPARE(number("SELECT count(*) FROM spans WHERE run=1"), qint64(run.timeline->spans().size()));
        QCOMPARE(number("SELECT count(*) FROM spans WHERE run=2"), qint64(other.timeline->spans().size()));
        QCOMPARE(number("SELECT count(*) FROM spans"),
                 qint64(run.timeline->spans().size() + other.timeline->spans().size()));
        QCOMPARE(number("SELECT count(*) FROM edges WHERE run=1"), qint64(run.timeline->edges().size()));
        QCOMPARE(number("SELECT count(*) FROM memory WHERE run=1"), qint64(run.timeline->memory().size()));
        QCOMPARE(number("SELECT sum(delta_bytes) FROM memory WHERE run=1 AND rank=0 AND category='activations'"),
                 qint64(0));
        Nanos busy = 0;
        for (const Span& span : run.timeline->spansOf(*run.timeline->trackOf(2, Lane::Compute)))
            busy += span.duration();
        QCOMPARE(number("SELECT sum(duration_ns) FROM spans WHERE run=1 AND rank=2 AND lane='compute'"), qint64(busy));
        QCOMPARE(number("SELECT start_ns FROM spans WHERE run=1 AND name='3I2'"),
                 qint64(run.timeline
                            ->spans()[run.timeline->trackOf(3, Lane::Compute)->begin +
                                      [&] {
                                          SpanId place = 0;
                                          for (const Span& s :
                                               run.timeline->spansOf(*run.timeline->trackOf(3, Lane::Compute))) {
                                              if (toText(s.op) == "3I2") break;
                                              ++place;
                                          }
                                          return place;
                                      }()]
                            .start));
        QCOMPARE(number("SELECT count(*) FROM edges e JOIN spans a ON a.run=e.run AND a.span=e.from_span "
                        "JOIN spans b ON b.run=e.run AND b.span=e.to_span WHERE e.run=1 AND a.end_ns <= b.start_ns"),
                 qint64(run.timeline->edges().size()));
        QCOMPARE(number("SELECT count(*) FROM runs"), qint64(2));
        QCOMPARE(number("SELECT count(*) FROM steps WHERE run=1"), qint64(1));
        QCOMPARE(number("SELECT count(*) FROM metrics WHERE run=2 AND name='loss'"), qint64(4));
        const auto limited = file->query("SELECT * FROM spans", 10);
        VERIFY_RESULT(limited);
        QCOMPARE(limited->rows.size(), std::size_t{10});
        QVERIFY(limited->truncated);
        QCOMPARE(limited->columns.front(), std::string("run"));
        QCOMPARE(limited->columns[10], std::string("name"));
    }

    // A kernel under no op, and a recorded op: what the first doesn't have is NULL, not 0 or F.
    void unknownIsNull()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 1);
        Span kernel;
        kernel.end = 10;
        kernel.label = builder.intern("gemm") & 0xffffffu;
        builder.addSpan(builder.addTrack(0, Lane::Kernel, "rank 0 stream 7"), kernel);
        MemoryEvent event;
        event.delta = 64;
        event.category = MemoryCategory::Workspace;
        builder.addMemory(event);
        Run run;
        run.info.name = "kernels";
        run.timeline = builder.build().value();
        auto file = fresh();
        VERIFY_RESULT(file->add(run));
        VERIFY_RESULT(file->add(samples::simulatedRun("1f1b", 2, 4)));
        const auto first = [&](const std::string& sql) {
            const auto table = file->query(sql);
            QStringList cells;
            if (table && !table->rows.empty())
                for (const std::string& cell : table->rows[0]) cells << QString::fromStdString(cell);
            return cells.join(QLatin1Char(' '));
        };
        QCOMPARE(first("SELECT stages IS NULL, microbatches IS NULL FROM runs WHERE run=1"), QStringLiteral("1 1"));
        QCOMPARE(first("SELECT kind IS NULL, stage IS NULL, microbatch IS NULL, name FROM spans WHERE run=1"),
                 QStringLiteral("1 1 1 gemm"));
        QCOMPARE(first("SELECT stage IS NULL, delta_bytes FROM memory WHERE run=1"), QStringLiteral("1 64"));
        QCOMPARE(first("SELECT stages, microbatches FROM runs WHERE run=2"), QStringLiteral("2 4"));
        QCOMPARE(first("SELECT count(*) FROM spans WHERE run=2 AND (kind IS NULL OR stage IS NULL)"),
                 QStringLiteral("0"));
        QCOMPARE(first("SELECT count(*) FROM memory WHERE run=2 AND stage IS NULL"), QStringLiteral("0"));
    }

    void sqlOnlyReads_data()
    {
        QTest::addColumn<QString>("sql");
        for (const char* sql :
             {"DELETE FROM run", "UPDATE run SET name='x'", "INSERT INTO run_text VALUES(1,'a',1,'b','c')",
              "CREATE TABLE t(x)", "DROP TABLE run", "ATTACH 'other.db' AS o", "PRAGMA user_version=7", "VACUUM",
              "BEGIN", "SELECT 1; DELETE FROM run", "", "SELECT nothing FROM nowhere", "SELECT load_extension('x')",
              "INSERT INTO spans(run) VALUES(1)", "VACUUM INTO 'copy.db'"})
            QTest::addRow("%s", sql) << sql;
    }
    void sqlOnlyReads()
    {
        QFETCH(QString, sql);
        auto file = fresh();
        VERIFY_RESULT(file->add(samples::simulatedRun("1f1b", 2, 2)));
        const auto table = file->query(sql.toStdString());
        QVERIFY(!table.has_value());
        QCOMPARE(table.error().code, ErrorCode::Usage);
        QVERIFY(!table.error().remedy.empty());
        QCOMPARE(file->runs()->size(), std::size_t{1});
        VERIFY_RESULT(file->rename(1, "writing works again"));
    }

    void aQueryCanBeStopped()
    {
        auto file = fresh();
        VERIFY_RESULT(file->add(samples::simulatedRun("1f1b", 2, 2)));
        std::stop_source stop;
        stop.request_stop();
        Progress progress;
        progress.stop = stop.get_token();
        const auto table = file->query(
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT count(*) FROM n", 1, progress);
        QVERIFY(!table.has_value());
        QCOMPARE(table.error().code, ErrorCode::Cancelled);
    }

    // A report within it reads a run, which stops with the query.
    void aReportInAQueryCanBeStopped()
    {
        auto file = fresh();
        VERIFY_RESULT(file->add(samples::simulatedRun("1f1b", 4, 64)));
        std::stop_source stop;
        int reports = 0;
        Progress progress;
        progress.stop = stop.get_token();
        progress.report = [&](std::string_view, std::int64_t, std::int64_t) {
            ++reports;
            stop.request_stop();
        };
        const auto table = file->query("SELECT * FROM report_bubbles(1)", 100, progress);
        QVERIFY(!table.has_value());
        QCOMPARE(table.error().code, ErrorCode::Cancelled);
        QCOMPARE(reports, 1);
        VERIFY_RESULT(file->query("SELECT * FROM report_bubbles(1)"));
    }

    void theFirstViewIsTheSpans_data()
    {
        QTest::addColumn<std::uint32_t>("seed");
        QTest::addColumn<int>("buckets");
        for (const int buckets : {1, 7, 100, 3000})
            for (std::uint32_t seed = 0; seed < 4; ++seed) QTest::addRow("%u, %d", seed, buckets) << seed << buckets;
    }
    void theFirstViewIsTheSpans()
    {
        QFETCH(std::uint32_t, seed);
        QFETCH(int, buckets);
        auto file = fresh();
        const auto timeline = samples::randomTimeline(seed, 2, 3, 5000);
        Run run;
        run.timeline = timeline;
        VERIFY_RESULT(file->add(run));
        const auto view = file->overview(1, buckets);
        VERIFY_RESULT(view);
        QCOMPARE(view->tracks.size(), timeline->tracks().size());
        QVERIFY(view->begin <= timeline->begin());
        QCOMPARE(view->end, timeline->end());
        for (std::size_t t = 0; t < view->tracks.size(); ++t) {
            QCOMPARE(view->tracks[t].name, timeline->tracks()[t].name);
            const auto& busy = view->busyByTrack[t];
            QVERIFY(busy.size() >= std::size_t(buckets));
            std::vector<double> expected(busy.size(), 0.0);
            for (const Span& span : timeline->spansOf(timeline->tracks()[t])) {
                if (span.op.kind == OpKind::Filler) continue;
                for (Nanos from = span.start; from < span.end;) {
                    const Nanos bucket = (from - view->begin) / view->bucketWidth;
                    const Nanos until = std::min(span.end, view->begin + (bucket + 1) * view->bucketWidth);
                    expected[static_cast<std::size_t>(bucket)] += static_cast<double>(until - from);
                    from = until;
                }
            }
            for (std::size_t i = 0; i < busy.size(); ++i) {
                const double share = std::min(1.0, expected[i] / static_cast<double>(view->bucketWidth));
                QVERIFY2(std::abs(share - static_cast<double>(busy[i])) < 1e-5,
                         qPrintable(
                             QString("track %1 bucket %2: %3, not %4").arg(t).arg(i).arg(double(busy[i])).arg(share)));
            }
        }
    }
};

QTEST_APPLESS_MAIN(TestRunQueries)
#include "tst_run_queries.moc"
