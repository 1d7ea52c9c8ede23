// Setup: every key through its text and through options, and what a random one comes to after that.
#include <QtTest>

#include <random>

#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"
#include "tests/support/random_setups.h"

using namespace stagewright;

namespace {

// A text that the key takes and that is not its default.
std::string anotherText(const SetupKey& key)
{
    if (key.flag()) return "yes";
    const std::string usual = textOf(Setup(), key);
    for (const char* text : {"2",       "0.5",  "1",    "0",        "serial", "rendezvous", "pytorch", "posted",
                             "virtual", "sgd",  "fp32", "openblas", "queues", "copies",     "torch",   "one",
                             "all",     "srun", "A=1",  "15GB/s",   "hint",   "kfac",       "4@a100"})
        if (text != usual && (!key.check || key.check(text).empty())) {
            Setup setup;
            if (setKey(setup, key, text) && textOf(setup, key) == text) return text;
        }
    return {};
}

} // namespace

class TestSetup : public QObject {
    Q_OBJECT

private slots:
    void everyKeyComesBack()
    {
        for (const SetupKey& key : setupKeys()) {
            const std::string name = key.name();
            QCOMPARE(findSetupKey(name), &key);
            QCOMPARE(findSetupKey(key.option()), &key);
            QVERIFY2(!key.help.empty() && key.users != 0, name.c_str());
            const std::string text = anotherText(key);
            QVERIFY2(!text.empty(), name.c_str());
            Setup setup;
            QVERIFY2(setKey(setup, key, text).has_value(), name.c_str());
            QCOMPARE(textOf(setup, key), text);
            QVERIFY2(!(setup == Setup()), name.c_str());
            const auto words = optionsOf(setup);
            QCOMPARE(words.front(), key.option());
            QCOMPARE(words.size(), key.flag() ? std::size_t(1) : std::size_t(2));
            const auto back = withOptions({}, words);
            QVERIFY2(back.has_value(), back ? "" : back.error().message.c_str());
            QVERIFY2(*back == setup, name.c_str());
            QVERIFY(back->names(key.option()));
            QVERIFY2(setKey(setup, key, textOf(Setup(), key)).has_value(), name.c_str()); // the default is taken
            QVERIFY2(setup == Setup(), name.c_str());
        }
    }

    // Every member is in the table: of two setups with the same texts nothing else differs.
    void everyMemberHasARow()
    {
        std::size_t bytes = sizeof(Setup::given) + sizeof(Setup::costsText);
        for (const SetupKey& key : setupKeys())
            bytes += std::visit([](auto place) { return sizeof(std::declval<Setup>().*place); }, key.place);
        // what is left are holes: at most 8 bytes at each change of type
        QVERIFY2(sizeof(Setup) - bytes < 8 * 20, qPrintable(QString::number(sizeof(Setup) - bytes)));
        QVERIFY(sizeof(Setup) >= bytes);
    }

    void errorsNameKeyValueAndRemedy_data()
    {
        QTest::addColumn<QStringList>("words");
        QTest::addColumn<QString>("message");
        QTest::newRow("range") << QStringList{"--ranks", "0"} << "--ranks takes a whole number from 1 to 4096, not '0'";
        QTest::newRow("choice")
            << QStringList{"--sends", "bufered"}
            << "--sends takes one of buffered and rendezvous, not 'bufered'; did you mean buffered?";
        QTest::newRow("item") << QStringList{"--stage-layers", "1,x"}
                              << "--stage-layers takes a whole number from 0 to 65536, not 'x'";
        QTest::newRow("unknown") << QStringList{"--rank", "2"} << "'--rank' is not an option with its value";
        QTest::newRow("no value") << QStringList{"--ranks"} << "'--ranks' is not an option with its value";
    }
    void errorsNameKeyValueAndRemedy()
    {
        QFETCH(QStringList, words);
        QFETCH(QString, message);
        std::vector<std::string> given;
        for (const QString& word : words) given.push_back(word.toStdString());
        const auto read = withOptions({}, given);
        QVERIFY(!read);
        QCOMPARE(QString::fromStdString(read.error().message), message);
        QVERIFY(!read.error().remedy.empty());
    }

    void enginesRefuseWhatTheyCantHonour()
    {
        auto setup = withOptions({}, {"--engine", "torch", "--replicas", "2", "--clock", "wall"});
        QVERIFY(setup.has_value());
        const auto refused = engineHonours(*setup);
        QVERIFY(!refused);
        QCOMPARE(QString::fromStdString(refused.error().message),
                 QStringLiteral("--engine torch can't honour --replicas: its pipelining trains one pipeline"));
        const Setup left = honoured(*setup);
        QCOMPARE(left.replicas, 1);
        QCOMPARE(left.clock, std::string("wall")); // only virtual is refused
        setup->engine = "own";
        QVERIFY(engineHonours(*setup).has_value());
        QVERIFY(honoured(*setup) == *setup);
    }

    // The same lists, channels and costs after a round trip; those that can't be made have the same error.
    void randomSetupsComeBackWhole()
    {
        std::mt19937 random(7);
        int made = 0;
        for (int i = 0; i < 400; ++i) {
            const Setup setup = randomSetup(random);
            const auto back = withOptions({}, optionsOf(setup));
            QVERIFY(back.has_value() && *back == setup);
            const auto a = prepare(setup.schedules.front(), setup, {});
            const auto b = prepare(back->schedules.front(), *back, {});
            QCOMPARE(a.has_value(), b.has_value());
            if (!a) {
                QCOMPARE(a.error().message, b.error().message);
                continue;
            }
            ++made;
            QVERIFY(a->lists.schedule == b->lists.schedule);
            QVERIFY(a->lists.channels == b->lists.channels && a->lists.lowering == b->lists.lowering);
            QVERIFY(a->costs == b->costs);
            if (!a->validation.valid() || setup.comm < 0 || !setup.costs.empty() || !setup.perturb.empty() ||
                !setup.speed.empty())
                continue;
            // half a forward of latency is that of a rank, whatever its number of stages
            QCOMPARE(a->costs.links.all.latency,
                     std::llround(setup.comm * static_cast<double>(forwardUnit(a->lists.schedule, a->costs))));
        }
        QVERIFY2(made > 200, qPrintable(QString::number(made)));
    }
};

QTEST_GUILESS_MAIN(TestSetup)
#include "tst_setup.moc"
