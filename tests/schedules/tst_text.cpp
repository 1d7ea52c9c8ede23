// Text as people type it: parts, numbers, near names.
#include <QtTest/QtTest>

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
        for (const char* wrong : {"", " 1", "1 ", "+1", "1x", "1.0", "99999999999"}) QVERIFY2(!wholeOf<int>(wrong), wrong);
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
