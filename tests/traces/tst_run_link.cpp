// Links to places in runs: what is written is read again, and what can't be one ends in words.
#include <random>

#include <QtTest/QtTest>

#include "traces/run/run_link.h"

using namespace stagewright;

class TestRunLink : public QObject {
    Q_OBJECT

private slots:
    void asWritten()
    {
        RunLink link;
        link.file = "/home/me/a b#1%.stagewright";
        link.run = "zb-h1 (2)";
        link.step = 9;
        link.op = "3B1";
        link.range = {-1200, 5300};
        QCOMPARE(toText(link), std::string("stagewright:/home/me/a%20b%231%25.stagewright"
                                           "#run=zb-h1%20%282%29&step=9&op=3B1&range=-1200-5300"));
        QVERIFY(parseRunLink(toText(link)).value() == link);
        QCOMPARE(parseRunLink("stagewright:job.stagewright")->file, std::string("job.stagewright"));
        QCOMPARE(parseRunLink("stagewright:///tmp/x.stagewright#run=2")->file, std::string("/tmp/x.stagewright"));
        QCOMPARE(*parseRunLink("stagewright:x#range=-9--3")->range, (std::pair<Nanos, Nanos>(-9, -3)));
    }

    void everyTextComesBack()
    {
        std::mt19937 random(5);
        const auto text = [&] {
            std::string out;
            for (std::size_t i = 1 + random() % 12; i > 0; --i) out += static_cast<char>(1 + random() % 255);
            return out;
        };
        for (int i = 0; i < 2'000; ++i) {
            RunLink link;
            link.file = "/" + text();
            link.run = text();
            link.op = random() % 2 == 0 ? text() : "";
            link.step = static_cast<int>(random() % 3);
            if (random() % 2 == 0) link.range = {Nanos(random()) - 1'000'000'000, Nanos(random()) + 4'000'000'000};
            const auto read = parseRunLink(toText(link));
            QVERIFY(read.has_value());
            QVERIFY(*read == link);
        }
    }

    void whatIsNoLink_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("why");
        const auto row = [](const char* text, const char* why) { QTest::newRow(text) << text << why; };
        row("http://x", "does not start with stagewright:");
        row("stagewright:", "names no file");
        row("stagewright:#run=1", "names no file");
        row("stagewright:x%4", "not followed by two digits");
        row("stagewright:x%zz", "not followed by two digits");
        row("stagewright:x%00", "not followed by two digits");
        row("stagewright:x#run", "run has no value");
        row("stagewright:x#run=1&run=2", "run is there twice");
        row("stagewright:x#step=0", "not a number from 1");
        row("stagewright:x#step=9e9", "not a number from 1");
        row("stagewright:x#step=99999999999", "not a number from 1");
        row("stagewright:x#range=5", "not FROM-TO");
        row("stagewright:x#range=5-5", "not FROM-TO");
        row("stagewright:x#range=5-99999999999999999999", "not FROM-TO");
        row("stagewright:x#colour=red", "'colour' is not known");
    }

    void whatIsNoLink()
    {
        QFETCH(QString, text);
        QFETCH(QString, why);
        const auto read = parseRunLink(text.toStdString());
        QVERIFY(!read.has_value());
        QCOMPARE(read.error().code, ErrorCode::Usage);
        QVERIFY2(QString::fromStdString(read.error().message).contains(why), read.error().message.c_str());
        QVERIFY(!read.error().remedy.empty());
    }
};

QTEST_APPLESS_MAIN(TestRunLink)
#include "tst_run_link.moc"
