// Megatron-LM: its layout string, read and written, and the orders that it runs.
#include <map>
#include <numeric>
#include <random>

#include <QtTest/QtTest>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "schedules/library/registry.h"
#include "schedules/text/csv.h"
#include "schedules/text/megatron.h"

using namespace stagewright;

namespace {

std::string holds(const MegatronLayout::Stage& stage)
{
    return (stage.embedding ? "E" : "") + std::string(static_cast<std::size_t>(stage.layers), 't') +
           std::string(static_cast<std::size_t>(stage.predictions), 'm') + (stage.loss ? "L" : "");
}

// A word of the message of each refusal.
const std::map<std::string, std::string> words{{"stages", "stages can't be divided"},
                                               {"character", "is not one of"},
                                               {"order", "comes after multi-token"},
                                               {"first", "(E) has to be first"},
                                               {"mtp_together", "is in stages"}};

} // namespace

class TestMegatron : public QObject {
    Q_OBJECT

private slots:
    void layoutsAreRead()
    {
        QFile file(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/layouts/layout.json"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const auto cases = nlohmann::json::parse(file.readAll().toStdString()).at("cases");
        QVERIFY(cases.size() > 10);
        for (const auto& one : cases) {
            const auto& in = one.at("input");
            const auto& expected = one.at("expected");
            const auto text = in.at("layout").get<std::string>();
            const auto layout = readMegatronLayout(text, in.at("pp"));
            if (expected.contains("refused")) {
                const auto why = expected.at("refused").get<std::string>();
                if (why == "layers") { // which the model has to say
                    QVERIFY2(layout.has_value(), text.c_str());
                    const auto layers = layout->layers();
                    QCOMPARE(std::accumulate(layers.begin(), layers.end(), 0), expected.at("layers").get<int>());
                    QVERIFY(expected.at("layers") != in.at("layers"));
                    continue;
                }
                QVERIFY2(!layout.has_value(), text.c_str());
                QVERIFY2(layout.error().message.find(words.at(why)) != std::string::npos,
                         layout.error().message.c_str());
                QVERIFY(!layout.error().remedy.empty());
                continue;
            }
            QVERIFY2(layout.has_value(), layout ? "" : layout.error().message.c_str());
            QCOMPARE(layout->chunks(), expected.at("chunks_per_rank").get<int>());
            QCOMPARE(layout->stages.size(), expected.at("stages").size());
            for (std::size_t k = 0; k < layout->stages.size(); ++k)
                QCOMPARE(holds(layout->stages[k]), expected.at("stages")[k].at("holds").get<std::string>());
        }
    }

    // The example of Megatron-LM's own help.
    void itsOwnExample()
    {
        const auto layout = readMegatronLayout("Et*3|(tt|)*29,m|L", 16);
        QVERIFY(layout.has_value());
        QCOMPARE(layout->stages.size(), 32U);
        QCOMPARE(holds(layout->stages[0]), "Ettt");
        for (std::size_t k = 1; k < 30; ++k) QCOMPARE(holds(layout->stages[k]), "tt");
        QCOMPARE(holds(layout->stages[30]), "m"); // rank 14, its second chunk
        QCOMPARE(holds(layout->stages[31]), "L");
    }

    void otherRefusals_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("word");
        QTest::newRow("nothing") << "|"
                                 << "(E) has to be first";
        QTest::newRow("two embeddings") << "E|EL"
                                        << "(E) has to be first";
        QTest::newRow("no loss") << "Et|t"
                                 << "(L) has to be last";
        QTest::newRow("two losses") << "EtL|tL"
                                    << "(L) has to be last";
        QTest::newRow("layer behind the loss") << "Et|Lt"
                                               << "(L) has to be last";
        QTest::newRow("prediction too early") << "Et|m||L"
                                              << "not the last one of its rank";
        QTest::newRow("lower case") << "et|tL"
                                    << "'e' is not one of";
        QTest::newRow("a group without a number") << "E(t|)L"
                                                  << "'(' is not one of";
        QTest::newRow("an empty group") << "E()*2|L"
                                        << "'(' is not one of";
        QTest::newRow("a factor without anything") << "*2Et|L"
                                                   << "'*' is not one of";
        QTest::newRow("too many") << "E(t|)*999999999L"
                                  << "characters when";
        QTest::newRow("far too many") << "Et*99999999999999999999999|L"
                                      << "characters when";
        QTest::newRow("many of many") << "E(t*1000000|)*1000000L"
                                      << "characters when";
    }
    void otherRefusals()
    {
        QFETCH(QString, text);
        QFETCH(QString, word);
        const auto layout = readMegatronLayout(text.toStdString(), 2);
        QVERIFY(!layout.has_value());
        QVERIFY2(QString::fromStdString(layout.error().message).contains(word), layout.error().message.c_str());
        QVERIFY(!layout.error().remedy.empty());
    }

    void whatIsWrittenIsRead()
    {
        std::mt19937 random(5);
        for (int round = 0; round < 2000; ++round) {
            const int ranks = 1 + static_cast<int>(random() % 6), chunks = 1 + static_cast<int>(random() % 4);
            const int kinds = 1 + static_cast<int>(random() % 4);
            std::vector<int> layers;
            for (int k = 0; k < ranks * chunks; ++k)
                layers.push_back(static_cast<int>(random() % static_cast<unsigned>(kinds)) * (kinds > 2 ? 3 : 1));
            const std::string text = megatronLayout(layers);
            const auto layout = readMegatronLayout(text, ranks);
            QVERIFY2(layout.has_value(), text.c_str());
            QCOMPARE(layout->layers(), layers);
            QCOMPARE(layout->chunks(), chunks);
        }
        QCOMPARE(megatronLayout({3, 2, 2, 2, 1}), "Ettt|(tt|)*3tL");
        QCOMPARE(megatronLayout({2, 12, 12, 0}), "Ett|t*12|t*12|L");
        QCOMPARE(megatronLayout({4}), "Et*4L");
    }

    // Every pair of group and batch that Megatron-LM accepts, and no other.
    void groupsAreIts()
    {
        for (const int p : {2, 3, 4})
            for (const int v : {2, 3})
                for (int m = 1; m <= 3 * p; ++m)
                    for (int group = 1; group <= m; ++group) {
                        Shape shape{p, m, v};
                        const auto schedule = makeSchedule(fmt::format("interleaved-1f1b:group={}", group), shape);
                        if (!schedule) continue; // it would wait for itself
                        const bool accepted = group >= p && (m % group == 0 || m % group >= p);
                        const auto order = megatronOrder(*schedule);
                        const auto what = fmt::format("p={} v={} m={} group={}: {}", p, v, m, group,
                                                      order ? "accepted" : order.error().message);
                        if (accepted) {
                            QVERIFY2(order.has_value(), what.c_str());
                            QCOMPARE(order->chunks, v);
                            // another group of the same order will do
                            const auto again =
                                makeSchedule(fmt::format("interleaved-1f1b:group={}", order->group), shape);
                            QVERIFY(again.has_value());
                            QVERIFY2(again->order == schedule->order, what.c_str());
                        } else if (!order) {
                            QVERIFY(!order.error().remedy.empty());
                        }
                    }
    }

    void otherOrdersAreRefused()
    {
        QCOMPARE(megatronOrder(*makeSchedule("1f1b", Shape{4, 8, 0}))->chunks, 1);
        for (const char* name : {"gpipe", "zb-h1", "zbv", "dualpipe", "bfs", "hanayo"}) {
            const auto order = megatronOrder(*makeSchedule(name, Shape{4, 8, 0}));
            QVERIFY2(!order.has_value(), name);
            QVERIFY2(order.error().message.find(name) != std::string::npos, order.error().message.c_str());
            QVERIFY(order.error().remedy.find("1f1b") != std::string::npos);
        }
        // one op moved
        Schedule other = *makeSchedule("1f1b", Shape{4, 8, 0});
        std::swap(other.order[0][0], other.order[0][1]);
        QVERIFY(!megatronOrder(other).has_value());
    }
};

QTEST_APPLESS_MAIN(TestMegatron)
#include "tst_megatron.moc"
