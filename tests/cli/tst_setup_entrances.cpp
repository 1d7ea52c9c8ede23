// A setup means the same through the command line and a lesson as by itself: random ones.
#include <QFile>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <random>

#include "app/cli/call.h"
#include "app/cli/session.h"
#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"
#include "tests/support/random_setups.h"
#include "traces/lessons/settings.h"
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

    void theDocsNameEveryKey()
    {
        QFile file(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/docs/cli.md"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QString text = QString::fromUtf8(file.readAll());
        for (const SetupKey& key : setupKeys()) {
            const QString option = QString::fromStdString(key.option());
            QVERIFY2(text.contains(QRegularExpression(option + QStringLiteral("([^a-z-]|$)"))), qPrintable(option));
        }
    }

    // And through the words of a lesson's settings, but for the keys that a canvas has none for.
    void aLessonShowsWhatIsPrepared()
    {
        std::mt19937 random(5);
        int made = 0;
        for (int i = 0; i < 200; ++i) {
            Setup setup = randomSetup(random);
            const Setup usual;
            setup.steps = usual.steps;
            setup.seed = usual.seed;
            setup.overlap = usual.overlap;
            setup.channels = usual.channels;
            setup.receives.clear();
            setup.speed.clear();
            setup.replicaBatch.clear();
            setup.comm = std::max(setup.comm, 0.0);
            setup.reduce = setup.reduce.substr(0, setup.reduce.find(':'));
            if (setup.costs.starts_with("analytic")) setup.costs.clear();
            std::erase_if(setup.perturb,
                          [](const std::string& part) { return part.find("link") && part.find("launch"); });
            const std::string name = setup.schedules.front();
            setup.schedules.clear();
            lessons::Settings own;
            static_cast<Setup&>(own) = setup;
            own.costs = unitCostsText(own.units()); // without those of 1
            const std::string words = lessons::changesOf(own);
            const auto settings = lessons::withSettings({}, words);
            QVERIFY2(settings.has_value(), settings ? "" : settings.error().message.c_str());
            QVERIFY2(*settings == own, words.c_str());
            const auto prepared = prepare(name, setup, {});
            const auto schedule = lessons::makeFor(name, *settings);
            const auto lists = schedule ? lessons::passedThrough(*schedule, *settings) : schedule;
            if (!prepared || !prepared->validation.valid()) {
                if (!prepared) QVERIFY2(!lists, words.c_str());
                if (!prepared) QCOMPARE(lists.error().message, prepared.error().message);
                continue;
            }
            QVERIFY2(lists.has_value(), lists ? "" : (words + ": " + lists.error().message).c_str());
            QVERIFY2(lists->order == prepared->lists.schedule.order && lists->paired == prepared->lists.schedule.paired,
                     words.c_str());
            QVERIFY2(lessons::channelsOf(*settings) == prepared->lists.channels, words.c_str());
            const auto costs = lessons::costsFor(*lists, *settings);
            QVERIFY2(costs && *costs == prepared->costs, words.c_str());
            ++made;
        }
        QVERIFY2(made > 100, qPrintable(QString::number(made)));
    }
};

QTEST_GUILESS_MAIN(TestSetupEntrances)
#include "tst_setup_entrances.moc"
