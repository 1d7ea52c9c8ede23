// The verdict for CI: no alarm between runs of one distribution, an alarm where a stage is 5 % slower, and its cause.
#include <cmath>
#include <random>

#include <QtTest/QtTest>

#include "sample_runs.h"
#include <fmt/format.h>

#include "schedules/execute/perturb.h"
#include "traces/compare/gate.h"

using namespace stagewright;

namespace {

// How the steps of a run scatter: ops by themselves, steps as a whole, a drift that each step hands on to the next, and
// steps that something else on the machine makes slow.
struct Noise {
    double ops = 0, steps = 0, drift = 0, spikes = 0;
};

constexpr int steps = 96;

// machine: seed of what steps have in common, which runs that take turns share; own: of each op's noise.
Run measuredRun(const char* clock, const Noise& noise, std::uint32_t machine, std::uint32_t own, double slowRank = 1,
                double all = 1, int count = steps)
{
    std::mt19937 random(machine), ops(own);
    std::normal_distribution<double> normal;
    const Schedule schedule = samples::schedule("1f1b", 4, 8);
    const CostModel costs = samples::unitCosts(schedule);
    Run run = samples::simulatedRun("1f1b", 4, 8);
    TimelineBuilder builder(Provenance::Measured, clock, 4);
    for (int rank = 0; rank < 4; ++rank) builder.addTrack(rank, Lane::Compute);
    Metric times{"step_time_ns", "ns", {}};
    Nanos at = 0;
    double drift = 0;
    for (int step = 0; step < count; ++step) {
        drift = 0.9 * drift + noise.drift * normal(random);
        double factor = all * std::exp(noise.steps * normal(random) + drift);
        if (noise.spikes > 0 && random() % 10 == 0) factor *= 1 + noise.spikes;
        Perturbation disturbance;
        disturbance.jitter = noise.ops;
        if (slowRank != 1) disturbance.ranks = {{2, slowRank}};
        const auto one =
            simulatedTimeline(schedule, perturbed(schedule, costs, disturbance, 3 * rankShare, ops())).value();
        Nanos end = 0;
        for (const Track& track : one->tracks())
            for (SpanId id = track.begin; id < track.end; ++id) {
                Span span = one->spans()[id];
                span.step = step;
                span.start = at + std::llround(static_cast<double>(span.start) * factor);
                span.end = at + std::llround(static_cast<double>(span.end) * factor);
                end = std::max(end, span.end);
                if (track.lane == Lane::Compute) builder.addSpan(track.rank, span);
            }
        times.values.push_back(static_cast<double>(end - at));
        at = end + 1000;
    }
    builder.setSchedule(std::make_shared<const Schedule>(schedule));
    run.timeline = builder.build().value();
    run.metrics = {times};
    run.info.steps = count;
    run.info.clock = clock;
    return run;
}

Result<Gate> judged(const std::vector<Run>& runs, double within = usualGate, std::size_t news = 1)
{
    std::vector<const Run*> all;
    std::vector<Comparison> comparisons;
    for (const Run& run : runs) all.push_back(&run);
    for (std::size_t i = 1; i < runs.size(); ++i) comparisons.push_back(compareRuns(runs[0], runs[i]).value());
    return gateOf(all, comparisons, within, news);
}

// Two runs that took turns: what the machine did in a step is nearly the same for both.
std::vector<Run> inTurn(const Noise& noise, std::uint32_t seed, double slowRank = 1, double all = 1, int count = steps)
{
    std::vector<Run> runs{measuredRun("wall", noise, seed, 2 * seed, 1, 1, count),
                          measuredRun("wall", noise, seed, 2 * seed + 1, slowRank, all, count)};
    for (Run& run : runs) run.environment.emplace_back("in_turn", "1.2");
    return runs;
}

bool names(const Gate& gate, const std::string& words)
{
    return std::any_of(gate.causes.begin(), gate.causes.end(),
                       [&](const std::string& cause) { return cause.find(words) != std::string::npos; });
}

const Noise kinds[] = {{0.02}, {0.05, 0.01}, {0.02, 0.005, 0.002}, {0.02, 0.01, 0, 0.5}};

} // namespace

class TestGate : public QObject {
    Q_OBJECT

private slots:
    void equalRunsGiveNoAlarm()
    {
        for (std::uint32_t pair = 0; pair < 200; ++pair) {
            const auto gate = judged(inTurn(kinds[pair % std::size(kinds)], pair));
            QVERIFY(gate.has_value());
            QVERIFY2(!gate->worse(), fmt::format("pair {}: {}", pair, gate->sentence()).c_str());
        }
    }

    void aSlowStageIsFoundAndNamed()
    {
        int found = 0, named = 0;
        for (std::uint32_t pair = 0; pair < 100; ++pair) {
            const auto gate = judged(inTurn(kinds[pair % std::size(kinds)], pair, 1.05));
            QVERIFY(gate.has_value());
            if (gate->worse()) ++found;
            if (names(*gate, "Work of stage 2 (rank 2)")) ++named;
        }
        QVERIFY2(found >= 95, qPrintable(QString::number(found)));
        QVERIFY2(named >= 95, qPrintable(QString::number(named)));
    }

    // A machine that is slower as a whole is not said to be a stage.
    void aSlowMachineIsNoStage()
    {
        const auto gate = judged(inTurn(kinds[0], 1, 1, 1.08));
        QVERIFY(gate->worse());
        QVERIFY(names(*gate, "every stage works longer by about as much"));
        QVERIFY(!names(*gate, "Work of stage 2"));
    }

    // Runs that were recorded one by one differ by the machine's state: only several of them show by how much.
    void theNoiseBetweenRunsCounts()
    {
        std::mt19937 random(5);
        std::normal_distribution<double> normal(0, 0.02);
        std::uint32_t seed = 0;
        const auto group = [&](int before, int news, double slower) {
            std::vector<Run> runs;
            for (int i = 0; i < before + news; ++i, ++seed)
                runs.push_back(
                    measuredRun("wall", kinds[0], seed, seed, i < before ? 1 : slower, std::exp(normal(random)), 12));
            return runs;
        };
        int alarms = 0, found = 0;
        for (int i = 0; i < 50; ++i) {
            const Gate same = judged(group(6, 6, 1), usualGate, 6).value();
            alarms += same.worse() ? 1 : 0;
            found += judged(group(6, 6, 1.25), usualGate, 6)->worse() ? 1 : 0;
            QVERIFY(same.figures[0].shows > 0.03 && same.figures[0].shows < 0.3);
            QCOMPARE(same.doubts.empty(), same.figures[0].shows <= 0.05);
        }
        QCOMPARE(alarms, 0);
        QVERIFY2(found >= 48, qPrintable(QString::number(found)));

        const auto few = judged(group(1, 1, 1.5));
        QVERIFY(few.error().message.find("recorded one by one") != std::string::npos);
        QVERIFY(few.error().remedy.find("record both in turn") != std::string::npos);
        QVERIFY(!judged(group(2, 1, 1.5)).has_value());
        const Gate weak =
            judged(group(3, 1, 1.05)).value(); // two degrees of freedom: a verdict that says how weak it is
        QVERIFY(!weak.worse());
        QVERIFY(weak.figures[0].shows > 0.2);
        QVERIFY(!weak.doubts.empty());
    }

    // Runs of two recordings that each took turns with something else are not a pair.
    void turnsOfOneRecordingCount()
    {
        auto runs = inTurn(kinds[0], 1);
        runs[1].environment = {{"in_turn", "3.4"}};
        QVERIFY(!judged(runs).has_value());
    }

    void aFasterRunIsBetter()
    {
        auto runs = inTurn(kinds[0], 1, 1.2);
        std::swap(runs[0], runs[1]);
        const Gate gate = judged(runs).value();
        QVERIFY(!gate.worse());
        QCOMPARE(gate.figures.front().verdict, GateFigure::Verdict::Better);
        QVERIFY(gate.causes.empty());
    }

    // Simulations have no noise: any change beyond `within` is one, and none below it.
    void simulationsAreCertain()
    {
        const Run plain = samples::simulatedRun("1f1b", 4, 8), other = samples::simulatedRun("gpipe", 4, 8);
        const Gate same = judged({plain, plain}).value();
        QVERIFY(!same.worse());
        QCOMPARE(*same.figures.front().most, 0.0);
        const Gate gate = judged({plain, other}).value(); // as long, with twice the activations
        QCOMPARE(gate.figures.front().verdict, GateFigure::Verdict::Same);
        QVERIFY(gate.worse());
        QVERIFY(gate.sentence().find("Peak activation") != std::string::npos);
        const Run slower = samples::simulatedRun("1f1b", 4, 8, 0.5);
        QVERIFY(judged({plain, slower})->figures.front().verdict == GateFigure::Verdict::Worse);
        QVERIFY(judged({plain, slower}, 1)->figures.front().verdict == GateFigure::Verdict::Same);
    }

    void whatCannotBeJudgedIsAnError()
    {
        const auto few = judged(inTurn(kinds[0], 1, 1, 1, 3));
        QVERIFY(few.error().message.find("12 measured steps") != std::string::npos);
        const Run other = measuredRun("virtual", kinds[0], 1, 1);
        QVERIFY(judged({other, inTurn(kinds[0], 1)[0]}).error().message.find("was timed by") != std::string::npos);
    }

    // About as many of 4,000 pairs of one distribution are outside as the given probability says; limits contain the
    // true change.
    void theLimitsHoldWhatTheyPromise()
    {
        std::mt19937 random(3);
        std::normal_distribution<double> normal(0, 0.02);
        const auto draw = [&](int count, double factor) {
            std::vector<double> values;
            for (int i = 0; i < count; ++i) values.push_back(100 * factor * std::exp(normal(random)));
            return values;
        };
        for (const bool turns : {true, false}) {
            const auto change = [&](double factor) {
                return turns ? changeInTurn(draw(160, 1), draw(160, factor), 0.01)
                             : changeOfRuns(draw(5, 1), draw(5, factor), 0.01);
            };
            constexpr int pairs = 4'000;
            int outside = 0, missed = 0, shown = 0;
            double shows = 0;
            for (int i = 0; i < pairs; ++i) {
                const auto same = change(1), more = change(1.1);
                outside += same->least > 0 || same->most < 0 ? 1 : 0;
                missed += more->least > 0.1 || more->most < 0.1 ? 1 : 0;
                shows += same->shows / pairs;
            }
            for (int i = 0; i < pairs; ++i) shown += change(1 + shows)->least > 0 ? 1 : 0;
            QVERIFY2(outside > 12 && outside < 80, qPrintable(QString::number(outside)));
            QVERIFY2(missed < 80, qPrintable(QString::number(missed)));
            // 95 of 100, less what the noise, an estimate itself, differs from pair to pair
            QVERIFY2(shown > 3'500, qPrintable(QString::number(shown)));
        }
        QVERIFY(!changeInTurn({1, 2, 3}, {1, 2, 3}, 0.01));
        QVERIFY(!changeInTurn(std::vector<double>(20, 0), std::vector<double>(20, 1), 0.01));
        QVERIFY(!changeOfRuns({1, 2}, {1}, 0.01));
        // t for 1 : 20 with 8 degrees of freedom of the printed tables: 2.306; the standard error of these is 1
        const std::vector<double> five{std::exp(1.0), std::exp(2.0), std::exp(3.0), std::exp(4.0), std::exp(5.0)};
        QVERIFY(std::abs(std::log1p(changeOfRuns(five, five, 0.05)->most) - 2.306) < 0.001);
        // Half of the steps doubled in both, and one in ten of the second by something else: the change is none.
        std::vector<double> a, b;
        for (int i = 0; i < 200; ++i) {
            a.push_back(i % 2 == 0 ? 200 : 100);
            b.push_back(i % 10 == 3 ? 900 : a.back());
        }
        QCOMPARE(changeInTurn(a, b, 0.01)->change, 0.0);
    }

    void junitNamesFiguresAndCauses()
    {
        const Run plain = samples::simulatedRun("1f1b", 4, 8);
        Run other = samples::simulatedRun("gpipe", 4, 8);
        other.info.name = "a <b> & \"c\"";
        const std::string text = gateJunit(judged({plain, other}).value(), other);
        QVERIFY(text.find("a &lt;b&gt; &amp; &quot;c&quot;") != std::string::npos);
        QXmlStreamReader reader(QString::fromStdString(text));
        int cases = 0, failures = 0, said = -1;
        while (!reader.atEnd()) {
            if (reader.readNext() != QXmlStreamReader::StartElement) continue;
            if (reader.name() == u"testsuite") said = reader.attributes().value("failures").toInt();
            if (reader.name() == u"testcase") ++cases;
            if (reader.name() == u"failure") ++failures;
        }
        QVERIFY2(!reader.hasError(), qPrintable(reader.errorString()));
        QVERIFY(cases >= 10);
        QCOMPARE(failures, said);
        QVERIFY(failures >= 1);
    }
};

QTEST_APPLESS_MAIN(TestGate)
#include "tst_gate.moc"
