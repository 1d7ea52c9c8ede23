// What the papers print about their schedules: bubble rates, closed forms, tables. Orders and makespans of reference
// generators are in tst_golden and tst_golden_rows, the searched schedules in tst_plan_zero_bubble and
// tst_building_block.
#include <QtTest>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/model/recompute.h"

using namespace stagewright;

namespace {

Nanos nanos(double milliseconds) { return static_cast<Nanos>(std::llround(milliseconds * 1e6)); }

// Times by kind in milliseconds, the same on every stage; B is I and W.
CostModel costsOf(const Schedule& s, double forward, double inputGrad, double weightGrad, double latency)
{
    CostModel costs(s.stages, CostSource::Fitted);
    for (int stage = 0; stage < s.stages; ++stage) {
        costs.setDuration(OpKind::Forward, stage, nanos(forward));
        costs.setDuration(OpKind::InputGrad, stage, nanos(inputGrad));
        costs.setDuration(OpKind::WeightGrad, stage, nanos(weightGrad));
        costs.setDuration(OpKind::Backward, stage, nanos(inputGrad) + nanos(weightGrad));
    }
    costs.links.all.latency = nanos(latency);
    return costs;
}

struct Outcome {
    double makespan; // in rank shares
    double span;
    std::vector<double> peaks;
};

Outcome outcome(const Schedule& s, double forward = 1, double inputGrad = 1, double weightGrad = 1,
                double freedAtInput = 0)
{
    CostModel::UnitCosts units;
    units.forward = forward;
    units.inputGrad = inputGrad;
    units.weightGrad = weightGrad;
    units.freedAtInput = freedAtInput;
    const auto result = simulate(s, CostModel::uniform(s, units));
    if (!result) qFatal("%s", result.error().message.c_str());
    Outcome out{static_cast<double>(result->makespan) / rankShare, static_cast<double>(result->span) / rankShare, {}};
    for (const Bytes peak : result->peakActivation) out.peaks.push_back(static_cast<double>(peak) / activationShare);
    return out;
}
Outcome outcome(const std::string& name, const Shape& shape) { return outcome(*makeSchedule(name, shape)); }

std::string numbered(const char* text, int number) { return text + std::to_string(number); }

bool fourDigits(double got, double printed) { return std::abs(got - printed) <= 0.5001e-4; }

} // namespace

class TestPapers : public QObject {
    Q_OBJECT
private slots:
    // Zero Bubble, arXiv 2401.10241v1: profiled times of Table 9 (ms), bubble rates of Table 5. Rate: 1 − m·T / longest
    // span.
    void zeroBubbleRates()
    {
        struct Row {
            int m, v;
            double f, b, w, c, f1b, interleaved, zbh1, zbh2;
        };
        const Row rows[] = {
            {24, 3, 18.522, 18.086, 9.337, 0.601, .2431, .1055, .1585, .1083},
            {32, 3, 18.513, 18.086, 9.331, 0.626, .1985, .0818, .1242, .0837},
            {64, 3, 18.546, 18.097, 9.321, 0.762, .1240, .0443, .0674, .0444},
            {24, 4, 29.718, 29.444, 19.927, 0.527, .2347, .0808, .1323, .0698},
            {32, 4, 29.802, 29.428, 19.530, 0.577, .1898, .0628, .1045, .0559},
            {64, 4, 29.935, 29.621, 19.388, 0.535, .1091, .0320, .0554, .0294},
        };
        constexpr int p = 8;
        for (const Row& row : rows) {
            for (const auto& [name, printed] : {std::pair{"1f1b", row.f1b}, {"zb-h1", row.zbh1}, {"zb-h2", row.zbh2}}) {
                const Schedule s = *makeSchedule(name, {p, row.m, 1});
                const double rate = figuresOf(s, *simulate(s, costsOf(s, row.f, row.b, row.w, row.c))).bubbleRateSpan;
                QVERIFY2(fourDigits(rate, printed), qPrintable(QString("%1 m=%2: %3").arg(name).arg(row.m).arg(rate)));
            }
            const double t = row.f + row.b + row.w;
            // 1F1B: m·T + (p−1)·T + c·(2(p−1)·m/p + 2(p−1) − 2), p | m.
            const double cost = (row.m + p - 1) * t + row.c * (2.0 * (p - 1) / p * row.m + 2 * (p - 1) - 2);
            QVERIFY(fourDigits(1 - row.m * t / cost, row.f1b));

            // 1F1B-I with one chunk per layer. The printed cost is m·T + (p−1)·T/v + (2(pv−1) − p)·c; Megatron's order
            // with the latency on every hop costs p·c more.
            const double printed = row.m * t + (p - 1) * t / row.v + (2 * (p * row.v - 1) - p) * row.c;
            QVERIFY(fourDigits(1 - row.m * t / printed, row.interleaved));
            const Schedule s = *makeSchedule("interleaved-1f1b", {p, row.m, row.v});
            const auto result = simulate(s, costsOf(s, row.f / row.v, row.b / row.v, row.w / row.v, row.c));
            const double simulated = static_cast<double>(result->makespan) / 1e6;
            QVERIFY2(std::abs(simulated - (printed + p * row.c)) < 0.01,
                     qPrintable(QString::number(simulated - printed)));
            QVERIFY(fourDigits(1 - row.m * t / (simulated - p * row.c), row.interleaved));
        }
    }
    // Same paper, Table 2: bubbles of 1F1B, H1 and H2 in the span, and activations where I frees all but what W needs
    // (M_W of M_B).
    void zeroBubbleTable2()
    {
        for (int p : {2, 4, 8})
            for (int m : {2 * p, 4 * p})
                for (const auto& [f, i, w] : {std::tuple{1.0, 1.0, 1.0}, {2.0, 2.0, 1.0}, {4.0, 4.0, 3.0}}) {
                    const double ideal = m * (f + i + w);
                    QCOMPARE(outcome(*makeSchedule("1f1b", {p, m}), f, i, w).span - ideal, (p - 1) * (f + i + w));
                    QCOMPARE(outcome(*makeSchedule("zb-h1", {p, m}), f, i, w).span - ideal, (p - 1) * (f + i - w));
                    QCOMPARE(outcome(*makeSchedule("zb-h2", {p, m}), f, i, w).span - ideal, (p - 1) * (f + i - 2 * w));
                    for (const double context : {0.0, 0.25, 1.0}) { // M_W
                        const auto h1 = outcome(*makeSchedule("zb-h1", {p, m}), f, i, w, 1 - context).peaks;
                        const auto h2 = outcome(*makeSchedule("zb-h2", {p, m}), f, i, w, 1 - context).peaks;
                        for (int r = 0; r < p; ++r) {
                            QCOMPARE(h1[static_cast<std::size_t>(r)], p - r + r * context);
                            QCOMPARE(h2[static_cast<std::size_t>(r)], 2 * (p - r) - 1 + 2 * r * context);
                        }
                    }
                }
    }
    // ZBV where I frees everything peaks at p on all ranks, as without.
    void zbvPeaks()
    {
        for (int p : {2, 4, 8})
            for (const double peak : outcome(*makeSchedule("zbv", {p, 3 * p}), 1, 1, 1, 1).peaks) QVERIFY(peak <= p);
    }
    // Chimera, arXiv 2107.06925, Table 3: 2f directions, N = D: D/f − 2 idle slots at F = B; activations from D −
    // D/(2f) + 1 to D; 2f copies of each stage. Figure 8: the down pipelines are rotated by D/f ranks, the ups their
    // mirrors.
    void chimeraPairs()
    {
        for (const auto& [d, f] :
             {std::pair{4, 1}, {4, 2}, {8, 1}, {8, 2}, {8, 4}, {16, 1}, {16, 2}, {16, 4}, {16, 8}, {12, 3}}) {
            const Schedule s = *makeSchedule(numbered("chimera:f=", f), {d, d});
            const Outcome got = outcome(s, 2, 1, 1); // B = F
            QCOMPARE(got.makespan / 2 - 2 * d, double(d / f - 2));
            QCOMPARE(*std::min_element(got.peaks.begin(), got.peaks.end()), double(d - d / (2 * f) + 1));
            QCOMPARE(*std::max_element(got.peaks.begin(), got.peaks.end()), double(d));
            const int each = d / (2 * f); // microbatches of a pipeline
            for (int stage = 0; stage < d; ++stage)
                for (int j = 0; j < d; ++j) {
                    const int pipeline = j / each;
                    const int down = (stage + pipeline % f * (d / f)) % d;
                    QCOMPARE(s.placement.rankOf(stage, j), pipeline < f ? down : d - 1 - down);
                }
        }
    }
    // The three ways to join units at B = 2F, f = 1: makespans and peaks to meet, from list scheduling of both
    // directions.
    void chimeraJoins()
    {
        struct Row {
            int d, n;
            double direct, doubling;
            std::vector<double> peaks; // doubling
        };
        const Row rows[] = {
            {4, 8, 30, 28, {6, 8, 8, 6}},
            {4, 16, 58, 52, {6, 8, 8, 6}},
            {4, 32, 114, 100, {6, 8, 8, 6}},
            {6, 12, 48, 44, {8, 10, 12, 12, 10, 8}},
            {6, 24, 92, 80, {8, 10, 12, 12, 10, 8}},
            {6, 48, 180, 152, {8, 10, 12, 12, 10, 8}},
        };
        for (const Row& row : rows) {
            QCOMPARE(outcome("chimera", {row.d, row.n}).makespan, row.direct);
            const Outcome doubling = outcome("chimera:join=doubling", {row.d, row.n});
            QCOMPARE(doubling.makespan, row.doubling);
            QCOMPARE(doubling.peaks, row.peaks);
            // Halving has the same shape at half the scale: D − 2 idle in all, direct's peaks.
            const Outcome halving = outcome("chimera:join=halving", {row.d, row.n});
            QCOMPARE(halving.makespan, 3.0 * row.n + row.d - 2);
            QCOMPARE(halving.peaks, outcome("chimera", {row.d, row.n}).peaks);
        }
        // One unit: D forwards and 2D − 2 backwards on the critical path (section 3.4), B = 2F.
        for (int d : {2, 4, 8, 16}) QCOMPARE(outcome("chimera", {d, d}).makespan, d + 2.0 * (2 * d - 2));
        // Any number of microbatches that divides: valid, and no memory beyond.
        for (int d : {2, 4, 6, 8, 12})
            for (int f = 1; f <= d / 2; ++f)
                for (int n : {1, 2, 3, 5})
                    for (const char* join : {"direct", "doubling", "halving"}) {
                        if (d / 2 % f != 0) continue;
                        const Schedule s = *makeSchedule(numbered("chimera:f=", f) + ":join=" + join, {d, 4 * f * n});
                        QVERIFY(validate(s).valid());
                        const auto peaks = outcome(s).peaks;
                        QVERIFY(*std::max_element(peaks.begin(), peaks.end()) <=
                                (join == std::string("doubling") ? 2 : 1) * d);
                    }
    }
    // sync: a REDUCE_GRAD for each copy of a stage after its last backward; eager-opt only where idle slots follow.
    void chimeraSync()
    {
        const auto reductions = [](const Schedule& s) {
            int count = 0;
            for (const auto& ops : s.order)
                count += static_cast<int>(
                    std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::ReduceGrad; }));
            return count;
        };
        for (const char* join : {"direct", "doubling", "halving"}) {
            const std::string name = std::string("chimera:join=") + join;
            QCOMPARE(reductions(*makeSchedule(name, {8, 16})), 0);
            QCOMPARE(reductions(*makeSchedule(name + ":sync=eager", {8, 16})), 16);
            const int few = reductions(*makeSchedule(name + ":sync=eager-opt", {8, 16}));
            QVERIFY(few > 0 && few < 16);
        }
    }
    // 2BP, arXiv 2405.18047: its four schedules at F = p1 = p2, fused and in two parts; the authors' code, run.
    void twoBp()
    {
        for (int p : {2, 3, 4, 8, 16}) {
            QCOMPARE(outcome("gpipe", {p, 1}).makespan, 3.0 * p);
            QCOMPARE(outcome("2bp-gpipe", {p, 1}).makespan, 2.0 * p + 1);
            QCOMPARE(outcome("gpipe", {p, p}).makespan, 6.0 * p - 3);
            QCOMPARE(outcome("2bp-gpipe", {p, p}).makespan, 5.0 * p - 2);
            QCOMPARE(outcome("1f1b", {p, p}).makespan, 6.0 * p - 3);
            QCOMPARE(outcome("2bp-1f1b", {p, p}).makespan, 4.0 * p - 1);
            QCOMPARE(outcome("1f1b", {p, 2 * p}).makespan, 9.0 * p - 3);
            QCOMPARE(outcome("2bp-1f1b", {p, 2 * p}).makespan, 7.0 * p - 1);
            QCOMPARE(outcome("2bp-1f1b:w=last", {p, p}).makespan, 5.0 * p - 2);
            QCOMPARE(outcome("2bp-1f1b:w=last", {p, 2 * p}).makespan, 8.0 * p - 2);
        }
        // Every step of the cool-down, p − r of them, is followed by one p2 of the oldest; one concatenated p2 does the
        // rest.
        const Schedule s = *makeSchedule("2bp-1f1b", {4, 8});
        for (int r = 0; r < 4; ++r) {
            const auto& ops = s.order[static_cast<std::size_t>(r)];
            std::vector<Op> weights;
            std::copy_if(ops.begin(), ops.end(), std::back_inserter(weights),
                         [](const Op& op) { return op.kind == OpKind::WeightGrad; });
            QCOMPARE(weights.size(), static_cast<std::size_t>(4 - r + 1));
            for (int i = 0; i < 4 - r; ++i)
                QCOMPARE(weights[static_cast<std::size_t>(i)], makeOp(OpKind::WeightGrad, r, i));
            QCOMPARE(static_cast<int>(weights.back().count), 8 - (4 - r));
        }
    }
    // Hanayo, arXiv 2308.15762: bubble at most (2P−2)/(3PW+P−1), m = P, B = 2F, no communication. For four waves the
    // order made here is up to 0.002 above it; a list of our own greedy runs next to it, met exactly.
    void hanayoWaves()
    {
        for (int p : {2, 3, 4, 5, 6, 8, 12, 16})
            for (int w : {1, 2, 3, 4}) {
                const double bubble = 1 - 3 * p / outcome(numbered("hanayo:waves=", w), {p, p}).makespan;
                QVERIFY2(bubble <= (2.0 * p - 2) / (3 * p * w + p - 1) + (w == 4 ? 0.002 : 0),
                         qPrintable(QString("p=%1 W=%2: %3").arg(p).arg(w).arg(bubble)));
            }
        for (const auto& [p, w, bubble] :
             {std::tuple{4, 1, .333}, {4, 2, .213}, {4, 4, .119}, {8, 1, .368}, {8, 2, .238}, {8, 4, .135}})
            QVERIFY(std::abs(1 - 3 * p / outcome(numbered("hanayo:waves=", w), {p, p}).makespan - bubble) < 0.5e-3);
        for (int p : {2, 4, 8})
            for (int m : {p, 2 * p, 4 * p})
                for (const double peak : outcome("hanayo", {p, m}).peaks) QVERIFY(peak <= p);
    }
    // DualPipe, arXiv 2412.19437, and its code: the published figures (p = 8, m = 20 and, in a V, p = 4, m = 10) have
    // 66 columns with 6 idle ones per rank. Peak p + 1 microbatches, p + ½ in a V.
    void dualPipe()
    {
        QCOMPARE(outcome("dualpipe", {8, 20}).makespan, 66.0);
        QCOMPARE(2 * outcome("dualpipev", {4, 10}).makespan, 66.0);
        for (int p : {2, 4, 6, 8, 12})
            for (int m : {2 * p, 2 * p + 2, 4 * p}) {
                const Outcome got = outcome("dualpipe", {p, m});
                QCOMPARE(got.makespan, 3.0 * m + 2 * (p / 2 - 1));
                for (const double peak : got.peaks) QCOMPARE(peak, p + 1.0);
                for (const double peak : outcome("dualpipev", {p, m}).peaks) QCOMPARE(peak, p + 0.5);
            }
        // Serial pairs halve the bubble at unit costs.
        QCOMPARE(outcome(serialised(*makeSchedule("dualpipe", {4, 8}))).makespan, 25.0);
    }
    // Merak, arXiv 2206.04959, as its code places recomputation: rows for p = 4, m = 6.
    void merak()
    {
        QCOMPARE(QString::fromStdString(toText(*makeSchedule("merak:variant=pre", {4, 6}))),
                 QString("0F0 0F1 0F2 0F3 0R0 0B0 0F4 0R1 0B1 0F5 0R2 0B2 0B3 0B4 0B5\n"
                         "1F0 1F1 1F2 1R0 1B0 1F3 1R1 1B1 1F4 1R2 1B2 1F5 1R3 1B3 1B4 1B5\n"
                         "2F0 2F1 2B0 2F2 2R1 2B1 2F3 2R2 2B2 2F4 2R3 2B3 2F5 2R4 2B4 2R5 2B5\n"
                         "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5\n"));
        // Full: rank p−2 runs F2 before B0 and keeps its first two, rank p−3 its first.
        QCOMPARE(QString::fromStdString(toText(*makeSchedule("merak", {4, 6}))),
                 QString("0F0 0F1 0F2 0F3 0R0 0B0 0F4 0R1 0B1 0F5 0R2 0B2 0B3 0B4 0B5\n"
                         "1F0 1F1 1F2 1B0 1F3 1R1 1B1 1F4 1R2 1B2 1F5 1R3 1B3 1B4 1B5\n"
                         "2F0 2F1 2F2 2B0 2B1 2F3 2R2 2B2 2F4 2R3 2B3 2F5 2R4 2B4 2R5 2B5\n"
                         "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5\n"));
        // Shorter than 1F1B with every activation recomputed when its gradient arrives; the full variant is the
        // shortest.
        for (int p : {3, 4, 6, 8})
            for (int m : {p, 2 * p, 4 * p}) {
                const Schedule base = *makeSchedule("1f1b", {p, m});
                const auto timed = [](const Schedule& s) {
                    CostModel costs = CostModel::uniform(s);
                    for (int stage = 0; stage < s.stages; ++stage)
                        costs.setDuration(OpKind::Recompute, stage, rankShare);
                    return static_cast<double>(simulate(s, costs)->makespan) / rankShare;
                };
                const double recomputed =
                    timed(withRecompute(base, std::vector<bool>(static_cast<std::size_t>(p), true)));
                const double pre = timed(*makeSchedule("merak:variant=pre", {p, m}));
                const double full = timed(*makeSchedule("merak", {p, m}));
                QVERIFY2(pre < recomputed && full <= pre,
                         qPrintable(QString("p=%1 m=%2: %3 %4 %5").arg(p).arg(m).arg(recomputed).arg(pre).arg(full)));
            }
    }
    // Asynchronous schedules. PipeDream (arXiv 1806.03377) and PipeOptim (2312.00839): an update after each backward,
    // of which p − 1 − r fall between a forward on rank r and its backward. 2BW (2006.09503): one per step, after
    // everything.
    void updatesBetween()
    {
        for (int p : {1, 2, 4, 7})
            for (int m : {p, 3 * p}) {
                for (const char* name : {"pipedream", "pipeoptim"}) {
                    const Schedule s = *makeSchedule(name, {p, m});
                    for (int r = 0; r < p; ++r) {
                        const auto& ops = s.order[static_cast<std::size_t>(r)];
                        for (int j = p - 1 - r; j < m; ++j) { // behind the warm-up
                            const auto forward = std::find(ops.begin(), ops.end(), makeOp(OpKind::Forward, r, j));
                            const auto backward = std::find(forward, ops.end(), makeOp(OpKind::Backward, r, j));
                            QVERIFY(backward != ops.end() && (backward + 1)->kind == OpKind::Optimizer);
                            QCOMPARE(std::count_if(forward, backward,
                                                   [](const Op& op) { return op.kind == OpKind::Optimizer; }),
                                     p - 1 - r);
                        }
                    }
                }
                const Schedule s = *makeSchedule("pipedream-2bw", {p, m});
                for (const auto& ops : s.order) {
                    QCOMPARE(std::count_if(ops.begin(), ops.end(),
                                           [](const Op& op) { return op.kind == OpKind::Optimizer; }),
                             1);
                    QVERIFY(ops.back().kind == OpKind::Optimizer);
                }
            }
    }
};

QTEST_APPLESS_MAIN(TestPapers)
#include "tst_papers.moc"
