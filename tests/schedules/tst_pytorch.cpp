// What PyTorch can run: both CSV forms of its own files and of the library, reasons if it can't, the nearest that it
// can run.
#include <QtTest/QtTest>

#include "schedules/check/validate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/messages/messages.h"
#include "schedules/text/csv.h"
#include "schedules/text/pytorch.h"

using namespace stagewright;

namespace {

std::string fileText(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
}

CsvOptions strict()
{
    CsvOptions options;
    options.pytorch = true;
    return options;
}

} // namespace

class TestPyTorch : public QObject {
    Q_OBJECT

private slots:
    void everyTorchFileIsReadAndWrittenAgain()
    {
        const QString shared = qEnvironmentVariable("STAGEWRIGHT_SHARED") + "/fixtures/torch_csv/";
        QStringList files = QDir(shared).entryList({"*.csv"});
        if (files.isEmpty()) QSKIP("PyTorch's CSV files are not there (set STAGEWRIGHT_SHARED)");
        for (const QString& file : QDir(shared + "upstream").entryList({"*.csv"})) files << "upstream/" + file;
        int computeOnly = 0;
        int withMessages = 0;
        for (const QString& file : files) {
            const std::string text = fileText(shared + file);
            const auto schedule = readScheduleCsv(text, strict());
            QVERIFY2(schedule.has_value(), qPrintable(file));
            const auto again = writeScheduleCsv(*schedule, strict());
            QVERIFY2(again.has_value(), qPrintable(file));
            QVERIFY2(*readScheduleCsv(*again, strict()) == *schedule, qPrintable(file));
            const auto forms = pytorchForms(*schedule);
            QVERIFY2(forms.has_value(),
                     qPrintable(file + ": " + QString::fromStdString(forms ? "" : forms.error().message)));
            const Schedule compute = withoutCommunication(*schedule);
            QVERIFY2(*readScheduleCsv(forms->computeOnly, strict()) == compute, qPrintable(file));
            const auto lowered = readScheduleCsv(forms->withMessages, strict());
            QVERIFY2(lowered.has_value() && withoutCommunication(*lowered) == compute, qPrintable(file));
            QVERIFY2(validate(*lowered).valid(), qPrintable(file));
            // The output equals that of PyTorch's own lowering, except for the file written by another version of it.
            if (file.contains("_comms") && !file.contains("upstream"))
                QVERIFY2(*lowered == *schedule, qPrintable(file));
            ++(file.contains("_comms") ? withMessages : computeOnly);
        }
        QVERIFY(computeOnly > 20);
        QVERIFY(withMessages > 20);
    }

    void theLibraryIsExpressedOrRefused()
    {
        int written = 0;
        int refused = 0;
        for (const ScheduleInfo& info : allSchedules()) {
            if (info.searches) continue;
            const auto schedule = makeSchedule(info.name, Shape{4, 8});
            if (!schedule) continue;
            const auto forms = pytorchForms(*schedule);
            if (forms) {
                QVERIFY2(*readScheduleCsv(forms->computeOnly, strict()) == withoutCommunication(*schedule),
                         info.name.data());
                QVERIFY2(!isLowered(*readScheduleCsv(forms->computeOnly)), info.name.data());
                ++written;
                continue;
            }
            ++refused;
            QCOMPARE(forms.error().code, ErrorCode::Invalid);
            QVERIFY2(forms.error().remedy.find("the nearest it can run") != std::string::npos,
                     forms.error().remedy.c_str());
            const auto nearest = nearestForPyTorch(*schedule);
            QVERIFY2(nearest.has_value(), info.name.data());
            QVERIFY2(pytorchForms(nearest->schedule).has_value(), info.name.data());
            QCOMPARE(nearest->schedule.ranks, schedule->ranks);
            QCOMPARE(nearest->schedule.microbatches, schedule->microbatches);
        }
        QVERIFY2(written >= 8, qPrintable(QString::number(written)));
        QVERIFY2(refused >= 4, qPrintable(QString::number(refused)));
    }

    void reasonsNameWhatIsInTheWay_data()
    {
        QTest::addColumn<QString>("csv");
        QTest::addColumn<QString>("reason");
        QTest::newRow("copies") << "0F0,1F1,1B1,0B0\n1F0,0F1,0B1,1B0\n"
                                << "stage 0 has copies on ranks 0 and 1";
        QTest::newRow("recompute") << "0F0,0R0,0B0\n1F0,1B0\n"
                                   << "rank 0, op 2 (0R0): recompute";
        QTest::newRow("delay") << "0F0,0FILLER500,0B0\n1F0,1B0\n"
                               << "delay is not an op";
        QTest::newRow("slice") << "0F0.0,0F0.1,0B0.1,0B0.0\n"
                               << "a sequence slice is unknown to PyTorch";
        QTest::newRow("several microbatches") << "0F0,0F1,0I0,0I1,0W0-1\n"
                                              << "one op over several microbatches";
        QTest::newRow("weights") << "# weights=stashed\n0F0,0B0,0OPT\n"
                                 << "optimizer";
    }

    void reasonsNameWhatIsInTheWay()
    {
        QFETCH(QString, csv);
        QFETCH(QString, reason);
        const auto schedule = readScheduleCsv(csv.toStdString());
        QVERIFY(schedule.has_value());
        const auto obstacle = pytorchObstacle(*schedule);
        QVERIFY(obstacle.has_value());
        QVERIFY2(obstacle->find(reason.toStdString()) != std::string::npos, obstacle->c_str());
        QVERIFY(!pytorchForms(*schedule).has_value());
    }

    void recomputeIsLeftOut()
    {
        const auto plain = makeSchedule("1f1b", Shape{4, 8});
        const auto recomputed = readScheduleCsv("0F0,0R0,0B0\n1F0,1R0,1B0\n");
        const auto nearest = nearestForPyTorch(*recomputed);
        QVERIFY(nearest.has_value());
        QVERIFY2(nearest->sentence.find("without recompute ops; PyTorch recomputes through activation checkpointing") !=
                     std::string::npos,
                 nearest->sentence.c_str());
        QCOMPARE(nearest->schedule, *readScheduleCsv("0F0,0B0\n1F0,1B0\n"));
        QVERIFY(!pytorchObstacle(*plain).has_value());
    }

    void dualPipeBecomesDualPipeV()
    {
        const auto nearest = nearestForPyTorch(*makeSchedule("dualpipe", Shape{4, 8}));
        QVERIFY(nearest.has_value());
        QVERIFY2(nearest->name == "dualpipev", nearest->sentence.c_str());
    }

    void torchTitanBuildsLoopAndV()
    {
        const auto of = [](const char* name, int chunks = 0) {
            return torchTitanSchedule(*makeSchedule(name, Shape{4, 8, chunks}));
        };
        QCOMPARE(*of("1f1b"), std::string("PipelineScheduleSingle"));
        QCOMPARE(*of("interleaved-1f1b", 2), std::string("PipelineScheduleMulti"));
        QCOMPARE(*of("zbv"), std::string("ZBVZeroBubble"));
        const auto zigzag = of("hanayo:waves=2");
        QVERIFY(!zigzag.has_value());
        QVERIFY2(zigzag.error().message.find("TorchTitan builds") != std::string::npos, zigzag.error().message.c_str());
        const auto turned = torchTitanSchedule(*readScheduleCsv("1F0,1B0\n0F0,0B0\n"));
        QVERIFY2(
            !turned &&
                turned.error().message ==
                    "stage 0 is on rank 1; TorchTitan builds stage s on rank s mod 2, or two stages per rank as a V",
            "");
        QVERIFY(!torchTitanSchedule(*readScheduleCsv("0F0,0B0\n1F0,2F0,2B0,1B0\n")).has_value());
    }
};

QTEST_APPLESS_MAIN(TestPyTorch)
#include "tst_pytorch.moc"
