// A setup means the same through the command line as by itself: random ones, simulated by the program.
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <random>

#include "app/cli/call.h"
#include "app/cli/session.h"
#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"
#include "tests/support/random_setups.h"
#include "traces/run/simulated_run.h"
#include "traces/store/run_file.h"

using namespace stagewright;

class TestSetupEntrances : public QObject {
    Q_OBJECT

private slots:
    void theCommandLineRunsWhatIsPrepared()
    {
        QTemporaryDir folder;
        const std::string file = folder.filePath("run.stagewright").toStdString();
        std::mt19937 random(11);
        int made = 0;
        for (int i = 0; i < 100; ++i) {
            Setup setup = randomSetup(random);
            setup.steps = 0; // of trainings
            std::vector<std::string> words{"stagewright", "simulate", "--json", "-o", file};
            for (const std::string& word : optionsOf(setup)) words.push_back(word);
            std::vector<char*> pointers;
            for (std::string& word : words) pointers.push_back(word.data());
            Session session;
            const auto call = readCall(static_cast<int>(pointers.size()), pointers.data(), session);
            QVERIFY2(call.has_value(), call ? "" : call.error().message.c_str());
            session.silent = true;
            session.json = false;
            const auto code = call->run(session);
            const auto prepared = prepare(setup.schedules.front(), setup, {});
            if (!prepared || !prepared->validation.valid()) {
                QVERIFY(!code);
                if (!prepared) QCOMPARE(code.error().message, prepared.error().message);
                continue;
            }
            QVERIFY2(code.has_value(), code ? "" : code.error().message.c_str());
            const auto stored = RunFile::open(file, OpenMode::Read);
            QVERIFY(stored.has_value());
            const auto run = (*stored)->read(1);
            QVERIFY2(run.has_value(), run ? "" : run.error().message.c_str());
            const auto expected = simulatedRun(prepared->lists.schedule, prepared->costs, prepared->lists.channels,
                                               prepared->lists.lowering);
            QVERIFY(expected.has_value());
            QVERIFY(*run->schedule == *expected->schedule);
            QVERIFY(*run->costs == *expected->costs);
            for (const auto& fact : expected->configuration)
                QVERIFY2(std::find(run->configuration.begin(), run->configuration.end(), fact) !=
                             run->configuration.end(),
                         fact.first.c_str());
            std::filesystem::remove(file);
            ++made;
        }
        QVERIFY2(made > 40, qPrintable(QString::number(made)));
    }
};

QTEST_GUILESS_MAIN(TestSetupEntrances)
#include "tst_setup_entrances.moc"
