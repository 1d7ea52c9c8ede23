// Uneven ranks: the planner divides batch and state so that what fits is fast, and says why nothing does.
#include <QtTest/QtTest>

#include <cmath>
#include <numeric>

#include "schedules/survey/uneven.h"

using namespace stagewright;

namespace {

constexpr std::size_t even = static_cast<std::size_t>(MixedRule::Even),
                      bySpeed = static_cast<std::size_t>(MixedRule::BySpeed),
                      decoupled = static_cast<std::size_t>(MixedRule::Decoupled);

MixedQuestion mixedCluster()
{
    MixedQuestion question;
    question.memory = {40'000'000'000, 48'000'000'000, 64'000'000'000};
    return question;
}

std::vector<int> samplesOf(const MixedDivision& division)
{
    std::vector<int> out;
    for (const MixedRank& rank : division.ranks) out.push_back(rank.samples);
    return out;
}

double sharesOf(const MixedDivision& division)
{
    return std::accumulate(division.ranks.begin(), division.ranks.end(), 0.0,
                           [](double sum, const MixedRank& rank) { return sum + rank.share; });
}

} // namespace

class TestUneven : public QObject {
    Q_OBJECT

private slots:
    void partsSumAndRespectLimits()
    {
        QCOMPARE(dividedBy({3, 2, 1}, 12, 1), (std::vector<int>{6, 4, 2}));
        QCOMPARE(dividedBy({1, 1, 1}, 8, 1), (std::vector<int>{3, 3, 2}));
        QCOMPARE(dividedBy({100, 1, 1}, 4, 1), (std::vector<int>{2, 1, 1}));
        QCOMPARE(levelled({100, 100, 100}, 90), (std::vector<std::int64_t>{30, 30, 30}));
        QCOMPARE(levelled({100, 10, 100}, 90), (std::vector<std::int64_t>{40, 10, 40})); // only the overflow is moved
        QCOMPARE(levelled({10, 20, 30}, 60), (std::vector<std::int64_t>{10, 20, 30}));
        QVERIFY(levelled({10, 20, 29}, 60).empty());
    }

    void listsAreReadOrExplained()
    {
        QCOMPARE(parseMixedSpeeds("3, 2,0.5").value(), (std::vector<double>{3, 2, 0.5}));
        QCOMPARE(parseMixedSpeeds("3,fast,1").error().message, std::string("speeds: 'fast' is not a speed"));
        QCOMPARE(parseMixedSpeeds("3,0").error().message, std::string("speeds: '0' is not a speed"));
        QCOMPARE(parseMixedSpeeds("3").error().message, std::string("speeds: 1 given, 2 to 16 ranks can share"));
        QVERIFY(parseMixedMemory("", 3).value().empty());
        QCOMPARE(parseMixedMemory("24", 3).value(), (std::vector<Bytes>{24'000'000'000}));
        QCOMPARE(parseMixedMemory("24,16,8.5", 3).value().back(), Bytes(8'500'000'000));
        QCOMPARE(parseMixedMemory("24,16", 3).error().message, std::string("memory: 2 sizes for 3 ranks"));
        QVERIFY(!parseMixedMemory("24,16", 3).error().remedy.empty());
        QCOMPARE(parseMixedMemory("24,,8", 3).error().message, std::string("memory: '' is not a size in GB"));
    }

    // Even fits and is slow, both by speed is fast and over the fast rank's memory, decoupled is fast and fits.
    void decoupledIsFastAndFits()
    {
        const MixedQuestion question = mixedCluster();
        const MixedAnswer answer = mixedSurvey(question);
        QVERIFY(answer.error.empty());
        for (const MixedDivision& division : answer.divisions) {
            QVERIFY(division.good());
            const std::vector<int> samples = samplesOf(division);
            QCOMPARE(std::accumulate(samples.begin(), samples.end(), 0), question.batch);
            QVERIFY(std::abs(sharesOf(division) - 1) < 1e-9);
            for (const MixedRank& rank : division.ranks) {
                QCOMPARE(rank.over(), rank.share > rank.limit);
                QVERIFY(rank.compute > 0 && rank.compute <= division.step);
            }
        }
        QCOMPARE(samplesOf(answer.divisions[even]), (std::vector<int>{8, 8, 8}));
        QCOMPARE(samplesOf(answer.divisions[bySpeed]), (std::vector<int>{12, 8, 4}));
        QCOMPARE(samplesOf(answer.divisions[decoupled]), (std::vector<int>{12, 8, 4}));
        QVERIFY(answer.divisions[even].fits());
        QVERIFY(!answer.divisions[bySpeed].fits());
        QVERIFY(answer.divisions[bySpeed].ranks[0].over());
        QVERIFY(answer.divisions[decoupled].fits());
        QVERIFY(answer.divisions[decoupled].step < answer.divisions[even].step * 6 / 10);
        // compute follows samples and speed
        const MixedRank &fast = answer.divisions[even].ranks[0], &slow = answer.divisions[even].ranks[2];
        QVERIFY(std::abs(static_cast<double>(slow.compute) / static_cast<double>(fast.compute) - 3) < 1e-3);
    }

    void memoryMovesTheStateThenTheBatch()
    {
        MixedQuestion question = mixedCluster();
        question.memory = {24'000'000'000, 80'000'000'000, 80'000'000'000};
        const MixedAnswer less = mixedSurvey(question);
        QVERIFY(less.divisions[decoupled].fits());
        QCOMPARE(samplesOf(less.divisions[decoupled]), (std::vector<int>{12, 8, 4}));
        QVERIFY(less.divisions[decoupled].ranks[0].share < 0.25);
        // the overflow is levelled
        QVERIFY(std::abs(less.divisions[decoupled].ranks[1].share - less.divisions[decoupled].ranks[2].share) < 1e-5);
        QVERIFY(!less.divisions[even].fits());
        question.recompute = false; // activations of 12 samples are too many now
        question.memory = {12'000'000'000, 200'000'000'000, 200'000'000'000};
        const MixedAnswer tight = mixedSurvey(question);
        QVERIFY(tight.divisions[decoupled].fits());
        QVERIFY(tight.divisions[decoupled].ranks[0].samples < 12);
        QVERIFY(tight.divisions[decoupled].step > less.divisions[decoupled].step);
        question.memory = {20'000'000'000};
        const MixedAnswer none = mixedSurvey(question);
        QVERIFY(!none.divisions[decoupled].good());
        QVERIFY(none.divisions[decoupled].error.find("all ranks have 55.9 GiB") != std::string::npos);
        question.batch = 2;
        QVERIFY(mixedSurvey(question).error.find("2 samples for 3 ranks") != std::string::npos);
    }

    void slowLinkTakesLonger()
    {
        MixedQuestion question = mixedCluster();
        const Nanos fast = mixedSurvey(question).divisions[decoupled].step;
        question.bytesPerSecond = 1e9;
        QVERIFY(mixedSurvey(question).divisions[decoupled].step > 2 * fast);
    }
};

QTEST_APPLESS_MAIN(TestUneven)
#include "tst_uneven.moc"
