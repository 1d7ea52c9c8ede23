// Text as people type it: parts, numbers, near names.
#include <QtTest/QtTest>

#include <random>

#include "schedules/base/shown_text.h"
#include "schedules/base/text.h"

using namespace stagewright;

namespace {

using Parts = std::vector<std::string_view>;

} // namespace

class TestText : public QObject {
    Q_OBJECT

private slots:
    void blanksAtBothEndsAreTrimmed()
    {
        QVERIFY(trimmed(" \t a b\r\n") == "a b");
        QVERIFY(trimmed(" \n").empty());
    }

    void partsAreSplit()
    {
        QVERIFY((split("a,,b", ",") == Parts{"a", "", "b"}));
        QVERIFY((split("", ",") == Parts{""}));
        QVERIFY((split("a,b+c", ",+") == Parts{"a", "b", "c"}));
        QVERIFY((itemsOf("a,b,") == Parts{"a", "b"}));
        QVERIFY((itemsOf("a,,") == Parts{"a", ""}));
        QVERIFY(itemsOf("").empty());
        QVERIFY((wordsOf("  block  a=1\r") == Parts{"block", "a=1"}));
    }

    void keysAndValuesArePaired()
    {
        const auto [key, value] = keyValueOf("costs=F=1");
        QVERIFY(key == "costs" && value == "F=1");
        QVERIFY(!keyValueOf("costs").value);
        QVERIFY(keyValueOf("costs=").value == "");
        QVERIFY(keyValueOf("2:1.5", ':').key == "2");
    }

    void numbersAreTheWholeText()
    {
        QVERIFY(wholeOf<int>("-12") == -12);
        for (const char* wrong : {"", " 1", "1 ", "+1", "1x", "1.0", "99999999999"})
            QVERIFY2(!wholeOf<int>(wrong), wrong);
        QVERIFY(wholeOf<std::int64_t>("99999999999") == 99999999999);
        QVERIFY(!wholeOf<std::uint64_t>("-1"));
        QVERIFY(numberOf("1e-3") == 1e-3);
        for (const char* wrong : {"", "inf", "nan", "1e999", "1,5", "0x1", "1.2.3"}) QVERIFY2(!numberOf(wrong), wrong);
        int kept = 7;
        QVERIFY(!readNumber("7x", kept) && kept == 7);
    }

    void quantitiesKeepTheirUnit()
    {
        const auto quantity = quantityOf("64 MB");
        QVERIFY(quantity && quantity->value == 64 && quantity->unit == " MB");
        QVERIFY(!quantityOf("MB"));
    }

    void rangesAndLists()
    {
        const auto range = rangeOf("1-3");
        QVERIFY(range && range->first == 1 && range->last == 3);
        QVERIFY(rangeOf("2") && rangeOf("2")->last == 2);
        QVERIFY(!wholePairOf("2") && !rangeOf("1-") && !rangeOf("-") && !rangeOf("1-2-3"));
        QVERIFY(wholesOf("3,2,1") == (std::vector<int>{3, 2, 1}));
        QVERIFY(wholesOf("")->empty());
        QVERIFY(!wholesOf("3,x"));
        QCOMPARE(listed({}), std::string());
        QCOMPARE(listed({"a", "b", "c"}), std::string("a, b and c"));
    }

    void controlCharactersAreShownAsEscapes()
    {
        QCOMPARE(shownText("a\tb\nc"), std::string("a\tb\nc"));
        QCOMPARE(shownText("\x1b[2J\r\x7f"), std::string("\\x1b[2J\\x0d\\x7f"));
        QCOMPARE(shownText("\xc2\x9b"
                           "31m\xc2\x85"),
                 std::string("\\u009b31m\\u0085")); // C1, as UTF-8
        QCOMPARE(shownText("\x9b"
                           "31m \xff \xe2\x82"),
                 std::string("\\x9b31m \\xff \\xe2\\x82")); // C1 as a byte; no UTF-8
        QCOMPARE(shownText("\xe2\x80\xae"
                           "cba"),
                 std::string("\\u202ecba")); // right to left
        // longer than need be; half a pair
        QCOMPARE(shownText("\xc0\x9b \xed\xa0\x80"), std::string("\\xc0\\x9b \\xed\\xa0\\x80"));
        const std::string good = "Größe µs → 4× 模型 \xf0\x9f\x90\x8c";
        QCOMPARE(shownText(good), good);
        const std::string coloured = colourCode("31") + "red\x1b[32m" + colourCode("0") + "\x1b[1m";
        QCOMPARE(forTerminal(coloured, true), std::string("\x1b[31mred\\x1b[32m\x1b[0m\\x1b[1m"));
        QCOMPARE(forTerminal(coloured, false), std::string("red\\x1b[32m\\x1b[1m"));
        std::mt19937 random(7); // whatever the bytes, nothing that steers is left
        for (int turn = 0; turn < 20000; ++turn) {
            std::string bytes(random() % 24, ' ');
            for (char& c : bytes) c = static_cast<char>(random() % 3 == 0 ? 0xC0 + random() % 0x40 : random());
            const std::string shown = forTerminal(bytes, true);
            QVERIFY(QString::fromStdString(shown).toStdString() == shown); // UTF-8
            for (const char32_t c : QString::fromStdString(shown).toUcs4())
                QVERIFY(c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f) || c >= 0xa0);
        }
    }

    void nearNamesAreFound()
    {
        QCOMPARE(editDistance("kitten", "sitting"), std::size_t{3});
        QCOMPARE(editDistance("", "abc"), std::size_t{3});
        const std::vector<std::string> names{"simulate", "sweep", "schedules"};
        QCOMPARE(nearestName("simulat", names), std::string("simulate"));
        QCOMPARE(nearestName("sched", names), std::string("schedules"));
        QCOMPARE(nearestName("bogus", names), std::string());
    }
};

QTEST_APPLESS_MAIN(TestText)
#include "tst_text.moc"
