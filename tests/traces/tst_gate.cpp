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

constexpr int steps = 40;

Run measuredRun(const char* clock, const Noise& noise, std::uint32_t seed, double slowRank = 1, double all = 1,
                int count = steps)
{
    std::mt19937 random(seed);
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
            simulatedTimeline(schedule, perturbed(schedule, costs, disturbance, 3 * rankShare, random())).value();
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

Result<Gate> judged(const std::vector<Run>& runs, double within = usualGate)
{
    std::vector<const Run*> all;
    std::vector<Comparison> comparisons;
    for (const Run& run : runs) all.push_back(&run);
    for (std::size_t i = 1; i < runs.size(); ++i) comparisons.push_back(compareRuns(runs[0], runs[i]).value());
    return gateOf(all, comparisons, within);
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
            const Noise& noise = kinds[pair % std::size(kinds)];
            const auto gate = judged({measuredRun("wall", noise, 2 * pair), measuredRun("wall", noise, 2 * pair + 1)});
            QVERIFY(gate.has_value());
            QVERIFY2(!gate->worse(), fmt::format("pair {}: {}", pair, gate->sentence()).c_str());
        }
    }

    void aSlowStageIsFoundAndNamed()
    {
        int found = 0, named = 0;
        for (std::uint32_t pair = 0; pair < 100; ++pair) {
            const Noise& noise = kinds[pair % std::size(kinds)];
            const auto gate =
                judged({measuredRun("wall", noise, 2 * pair), measuredRun("wall", noise, 2 * pair + 1, 1.05)});
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
        const auto gate = judged({measuredRun("wall", kinds[0], 1), measuredRun("wall", kinds[0], 2, 1, 1.08)});
        QVERIFY(gate->worse());
        QVERIFY(names(*gate, "every stage works longer by about as much"));
        QVERIFY(!names(*gate, "Work of stage 2"));
    }

    // Several runs before show what lies between runs: the judged one has to exceed them by more than that.
    void theNoiseBetweenRunsCounts()
    {
        std::vector<Run> runs;
        for (const double all : {1.0, 1.03, 0.99}) runs.push_back(measuredRun("wall", kinds[0], 7, 1, all));
        runs.push_back(measuredRun("wall", kinds[0], 8, 1, 1.06));
        QVERIFY(!judged(runs)->worse());
        QVERIFY(judged({runs[0], runs[3]})->worse());
        runs[3] = measuredRun("wall", kinds[0], 8, 1, 1.15);
        const Gate gate = judged(runs).value();
        QVERIFY(gate.worse());
        QVERIFY(std::abs(gate.figures[0].change - (1.15 / 1.03 - 1)) < 0.01);
    }

    void aFasterRunIsBetter()
    {
        const Gate gate = judged({measuredRun("wall", kinds[0], 1, 1.2), measuredRun("wall", kinds[0], 2)}).value();
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
        const Run few = measuredRun("wall", kinds[0], 1, 1, 1, 3);
        QVERIFY(judged({few, few}).error().message.find("measured steps") != std::string::npos);
        const Run other = measuredRun("virtual", kinds[0], 1);
        QVERIFY(judged({other, few}).error().message.find("was timed by") != std::string::npos);
    }

    // About as many of 10,000 pairs of one distribution are outside as the given probability says; limits contain the
    // true change.
    void theLimitsHoldWhatTheyPromise()
    {
        std::mt19937 random(3);
        std::normal_distribution<double> normal(100, 2);
        const auto draw = [&](double factor) {
            std::vector<double> values;
            for (int i = 0; i < 10; ++i) values.push_back(normal(random) * factor);
            return values;
        };
        int outside = 0, missed = 0;
        for (int i = 0; i < 10'000; ++i) {
            const auto same = seriesChange(draw(1), draw(1), 0.01);
            if (same->least > 0 || same->most < 0) ++outside;
            const auto more = seriesChange(draw(1), draw(1.1), 0.01);
            if (more->least > 0.1 || more->most < 0.1) ++missed;
        }
        QVERIFY2(outside > 50 && outside < 150, qPrintable(QString::number(outside)));
        QVERIFY2(missed < 200, qPrintable(QString::number(missed)));
        QVERIFY(!seriesChange({1, 2, 3}, {1, 2, 3, 4}, 0.01));
        QVERIFY(!seriesChange({0, 0, 0, 0}, {1, 2, 3, 4}, 0.01));
        // t for 1 : 20 and 1 : 1000, of the printed tables: 2.306 with 8 degrees of freedom, 3.460 with 27
        const std::vector<double> five{1, 2, 3, 4, 5};
        const auto change = seriesChange(five, five, 0.05); // variance of each mean 0.5
        QVERIFY(std::abs(change->most * 3 - 2.306) < 0.001);
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
