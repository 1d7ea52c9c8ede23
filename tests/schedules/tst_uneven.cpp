// Uneven ranks: the planner divides batch and state so that what fits is fast, and says why nothing does.
#include <QtTest/QtTest>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

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
    for (const MixedRank& rank : division.ranks) out.push_back(rank.pick.all());
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
    void partsSum()
    {
        QCOMPARE(dividedBy({3, 2, 1}, 12, 1), (std::vector<int>{6, 4, 2}));
        QCOMPARE(dividedBy({1, 1, 1}, 8, 1), (std::vector<int>{3, 3, 2}));
        QCOMPARE(dividedBy({100, 1, 1}, 4, 1), (std::vector<int>{2, 1, 1}));
    }

    void listsAreReadOrExplained()
    {
        const auto speeds = parseMixedSpeeds("3, 2,0.5,2xl4,h100").value();
        QCOMPARE(speeds.size(), std::size_t{6});
        QCOMPARE(speeds[2], (MixedSpeed{0.5, {}}));
        QCOMPARE(speeds[4], (MixedSpeed{1, "l4"}));
        QCOMPARE(speeds[5], (MixedSpeed{1, "h100"}));
        QCOMPARE(parseMixedSpeeds("32x3,32x1")->size(), std::size_t{64});
        for (const char* wrong : {"fast", "0", "0x3", "9999x1", "x", "3x", "2x2x1"})
            QCOMPARE(parseMixedSpeeds(std::string("3,") + wrong).error().message,
                     std::string("speeds: '") + wrong + "' is neither a speed nor a device");
        QCOMPARE(parseMixedSpeeds("3").error().message, std::string("speeds: 1 given, 2 to 256 ranks can share"));
        QCOMPARE(parseMixedMemory("2x24,8", 3).value(),
                 (std::vector<Bytes>{24'000'000'000, 24'000'000'000, 8'000'000'000}));
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
        MixedQuestion question = mixedCluster();
        question.launch = 0;
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
        QVERIFY(tight.divisions[decoupled].ranks[0].pick.all() < 12);
        QVERIFY(tight.divisions[decoupled].step > less.divisions[decoupled].step);
        question.memory = {20'000'000'000};
        const MixedAnswer none = mixedSurvey(question);
        QVERIFY(!none.divisions[decoupled].good());
        QVERIFY(none.divisions[decoupled].error.find("all ranks have 55.9 GiB") != std::string::npos);
        question.batch = 2;
        QVERIFY(mixedSurvey(question).error.find("2 samples for 3 ranks") != std::string::npos);
    }

    // What each pass takes besides its samples is shared by larger microbatches, as far as there is memory.
    void largerMicrobatchesShareTheLaunch()
    {
        MixedQuestion question = mixedCluster();
        question.launch = 0;
        const MixedDivision free = mixedSurvey(question).divisions[decoupled];
        question.launch = 5'000'000;
        const MixedDivision launched = mixedSurvey(question).divisions[decoupled];
        QVERIFY(free.fits() && launched.fits());
        for (const MixedRank& rank : free.ranks) QCOMPARE(rank.pick.samples, 1); // which needs least memory
        for (const MixedRank& rank : launched.ranks) QVERIFY(rank.pick.samples > 1);
        const int layers = 30, passes = 3; // F, R, B
        QVERIFY(launched.step < free.step + layers * passes * 3 * question.launch);
        QVERIFY(launched.step > free.step + layers * passes * question.launch / 2);
    }

    void manyRanksAndDevicesAreDivided()
    {
        MixedQuestion question;
        question.speeds = parseMixedSpeeds("32x3,16x2,16x1").value();
        question.memory = parseMixedMemory("32x40,32x60", 64).value();
        question.batch = 512;
        const MixedAnswer answer = mixedSurvey(question);
        const MixedDivision& best = answer.divisions[decoupled];
        QVERIFY(best.fits());
        const std::vector<int> samples = samplesOf(best);
        QCOMPARE(samples.size(), std::size_t{64});
        QCOMPARE(std::accumulate(samples.begin(), samples.end(), 0), 512);
        QVERIFY(std::is_sorted(samples.begin(), samples.begin() + 32, std::greater<int>()));
        QVERIFY(best.step <= answer.divisions[bySpeed].step && 2 * best.step < answer.divisions[even].step);
        QVERIFY(unevenPlot(answer, question).items.size() < 24); // those alike are one
        MixedQuestion mixed;
        mixed.speeds = parseMixedSpeeds("a100,h100,l4").value();
        const MixedAnswer devices = mixedSurvey(mixed);
        QCOMPARE(devices.divisions[even].ranks[2].memory, Bytes(24'000'000'000));
        QVERIFY(devices.speedShares[1] > 3 * devices.speedShares[0] &&
                devices.speedShares[0] > 2 * devices.speedShares[2]);
    }

    // The authors' stored example from its lines alone.
    void linesAreWhatTheySay()
    {
        const auto asked = SurveyQuestion::read(**findSurvey("uneven"), {{"lines", "authors"}}).value();
        const MixedQuestion question = MixedQuestion::of(asked).value();
        const MixedAnswer answer = mixedSurvey(question);
        QCOMPARE(answer.divisions[decoupled].step, Nanos(342'296'848));
        QCOMPARE(samplesOf(answer.divisions[decoupled]), (std::vector<int>{13, 12, 34, 5}));
        QCOMPARE(answer.divisions[even].step, Nanos(958'807'270));
        for (const MixedRank& rank : answer.divisions[decoupled].ranks) QCOMPARE(rank.share, 0.25);
        const auto wrong = [](const char* lines) {
            return MixedQuestion::of(SurveyQuestion::read(**findSurvey("uneven"), {{"lines", lines}}).value())
                .error()
                .message;
        };
        QCOMPARE(wrong(R"({"program": "jigsaw", "input": {}})"),
                 std::string("lines: it is a problem of jigsaw, not of cephalo"));
        QVERIFY(wrong("nowhere.json").starts_with("lines: "));
        // numbers of any size end in words, too
        const auto large = MixedQuestion::of(
            SurveyQuestion::read(
                **findSurvey("uneven"),
                {{"lines",
                  R"({"program": "cephalo", "input": {"batch": 4096, "state": 1e15, "gap": 1e15, "gpus": [{"f1": 1e15, "f0": 1e15, "b1": 1e15, "b0": 1e15, "a1": 1e15, "a0": 1e15, "kept": 1e15, "cap": 1e15}]}})"}})
                .value());
        QVERIFY(large.has_value());
        const MixedAnswer most = mixedSurvey(*large);
        QVERIFY(most.divisions[decoupled].error.find("no division fits") == 0);
        QVERIFY(most.divisions[even].step > 0 && most.divisions[even].ranks[0].peak > 0);
        QVERIFY(!unevenTable(most, *large).sentence.empty() && !unevenPlot(most, *large).items.empty());
        // runs are read elsewhere
        const auto runs =
            MixedQuestion::of(SurveyQuestion::read(**findSurvey("uneven"), {{"lines", "a.stagewright#1"}}).value());
        QVERIFY(runs && !mixedSurvey(*runs).error.empty());
    }

    // The planner against trying everything: what samples keep, and the least of each device, included.
    void planIsTheBestOfAll()
    {
        std::mt19937 random(7);
        const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        int fitting = 0;
        for (int round = 0; round < 150; ++round) {
            UnevenProblem problem;
            problem.samples = pick(3, 9);
            problem.least = pick(0, 1);
            problem.gap = pick(0, 2);
            problem.recompute = pick(0, 1) > 0;
            problem.state = pick(0, 40);
            for (int i = 0; i < 3; ++i)
                problem.devices.push_back({double(pick(1, 4)), double(pick(0, 3)), double(pick(1, 6)),
                                           double(pick(0, 3)), double(pick(0, 4)), double(pick(0, 3)),
                                           double(pick(5, 30)), double(pick(0, 2))});
            if (pick(0, 2) == 0) problem.devices[1] = problem.devices[0];
            double best = std::numeric_limits<double>::infinity();
            const std::function<void(std::size_t, int, double, double)> tryAll = [&](std::size_t device, int left,
                                                                                     double slowest, double room) {
                if (device == problem.devices.size()) {
                    if (left == 0 && room >= problem.state - 1e-9) best = std::min(best, slowest);
                    return;
                }
                const UnevenDevice& one = problem.devices[device];
                for (int n = problem.least; n <= left; ++n)
                    for (int m = n == 0 ? 0 : 1; m <= n; ++m) {
                        if (n > 0 && n % m != 0) continue;
                        const UnevenPlan::Pick way{m, n == 0 ? 0 : n / m};
                        const double held = n == 0 ? 0 : one.a1 * m + one.a0 + one.kept * n;
                        if (held > one.cap) continue;
                        tryAll(device + 1, left - n, std::max(slowest, unevenTime(problem, one, way)),
                               room + one.cap - held);
                    }
            };
            tryAll(0, problem.samples, 0, 0);
            const auto answer = planUneven(problem);
            QVERIFY(answer.has_value());
            QCOMPARE(answer->best.has_value(), std::isfinite(best));
            double mostRoom = -1;
            const std::function<void(std::size_t, int, double)> roomOf = [&](std::size_t device, int left,
                                                                             double room) {
                if (device == problem.devices.size()) {
                    if (left == 0) mostRoom = std::max(mostRoom, room);
                    return;
                }
                const UnevenDevice& one = problem.devices[device];
                for (int n = problem.least; n <= left; ++n) {
                    const double held = n == 0 ? 0 : one.a1 + one.a0 + one.kept * n; // microbatches of one need least
                    if (held <= one.cap) roomOf(device + 1, left - n, room + one.cap - held);
                }
            };
            if (!answer->best) {
                roomOf(0, problem.samples, 0);
                QCOMPARE(answer->room.has_value(), mostRoom >= 0);
                if (answer->room) QVERIFY(std::abs(*answer->room - mostRoom) < 1e-9 && mostRoom < problem.state);
                continue;
            }
            ++fitting;
            QVERIFY(std::abs(answer->best->time - best) < 1e-9);
            double state = 0;
            for (std::size_t i = 0; i < 3; ++i) {
                const double own = answer->best->shares[i] * problem.state;
                state += own;
                QVERIFY(answer->best->picks[i].all() >= problem.least);
                QVERIFY(unevenMemory(problem.devices[i], answer->best->picks[i]) + own <=
                        problem.devices[i].cap + 1e-6);
            }
            QVERIFY(std::abs(state - problem.state) < 1e-6);
        }
        QVERIFY(fitting > 50);
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
