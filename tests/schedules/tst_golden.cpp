// Numbers that others published or that follow from closed forms. Every table names its source; those without one are
// from ../shared/specs/schedules.md, section 7, where the generator of each row is named. Ours: stagewright simulate -s
// NAME -p P -m M --comm C
#include <QtTest>

#include <array>
#include <cmath>

#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"

using namespace stagewright;

namespace {

struct Outcome {
    double makespan;
    double span;
    SimFigures figures;
    std::vector<double> peaks;
};

Outcome outcome(const char* name, const Shape& shape, const CostModel::UnitCosts& units = {})
{
    const auto schedule = makeSchedule(name, shape);
    if (!schedule) qFatal("%s", schedule.error().message.c_str());
    const auto result = simulate(*schedule, CostModel::uniform(*schedule, units));
    if (!result) qFatal("%s", result.error().message.c_str());
    Outcome out;
    out.makespan = static_cast<double>(result->makespan) / rankShare;
    out.span = static_cast<double>(result->span) / rankShare;
    out.figures = figuresOf(*schedule, *result);
    for (Bytes peak : result->peakActivation) out.peaks.push_back(static_cast<double>(peak) / activationShare);
    return out;
}

CostModel::UnitCosts withLatency(double latency)
{
    CostModel::UnitCosts units;
    units.latency = latency;
    return units;
}

} // namespace

class TestGolden : public QObject {
    Q_OBJECT
private slots:
    // The orders spelled out for p = 2, m = 4. u: the copy of a stage on the other rank (the up direction), where the
    // file lists microbatches by direction; (a;b) is an overlapped pair.
    void literalOrders_data()
    {
        QTest::addColumn<QString>("rank0");
        QTest::addColumn<QString>("rank1");
        const auto add = [](const char* name, const char* rank0, const char* rank1) {
            QTest::newRow(name) << rank0 << rank1;
        };
        add("gpipe", "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3", "1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3");
        add("1f1b", "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3");
        add("eager-1f1b", "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3");
        add("interleaved-1f1b", "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3",
            "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
        add("zb-h1", "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0F3 0I2 0W2 0I3 0W3",
            "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1F3 1I3 1W2 1W3");
        add("zb-h2", "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3",
            "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3");
        add("zbv", "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3",
            "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3");
        add("chimera", "0F0 1F0u 1B0u 0B0 0F1 1F1u 1B1u 0B1", "0F0u 1F0 1B0 0B0u 0F1u 1F1 1B1 0B1u");
        add("dualpipe", "0F0 1F0u 0F1 1B0u (1F1u;0B0) 1B1u 0I1 0W1", "0F0u 1F0 0F1u 1B0 (1F1;0B0u) 1B1 0I1u 0W1u");
        add("dualpipev", "0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1) (3F2;0B0) 3B2 (3F3;0B1) 3B3 0I2 0W2 0I3 0W3",
            "1F0 2F0 1F1 2F1 1F2 2B0 (2F2;1B0) (1F3;2B1) (2F3;1B1) 2B2 1B2 2I3 1I3 2W3 1W3");
    }
    void literalOrders()
    {
        QFETCH(QString, rank0);
        QFETCH(QString, rank1);
        const Schedule s = *makeSchedule(QTest::currentDataTag(), {2, 4, 0});
        const bool twoWays = s.placement.hasCopies();
        QStringList rows;
        for (int r = 0; r < 2; ++r) {
            QStringList cells;
            const auto& ops = s.order[static_cast<std::size_t>(r)];
            for (std::size_t i = 0; i < ops.size(); ++i) {
                Op op = ops[i];
                // The second half of the microbatches goes up; the list counts from 0 in each direction.
                const bool up = twoWays && op.microbatch >= 2;
                if (up) op.microbatch -= 2;
                QString cell = QString::fromStdString(toText(op)) + (up ? "u" : "");
                if (i > 0 && s.isPaired(r, i - 1))
                    cells.back() = "(" + cells.back() + ";" + cell + ")";
                else
                    cells << cell;
            }
            rows << cells.join(' ');
        }
        QCOMPARE(rows[0], rank0);
        QCOMPARE(rows[1], rank1);
    }
    // Groups that do not have the size of the pipeline (PyTorch's relaxed rule).
    void interleavedWithOtherGroups()
    {
        QCOMPARE(outcome("interleaved-1f1b", {3, 4, 2}).makespan, 15.0);
        const Outcome ten = outcome("interleaved-1f1b", {4, 10, 2});
        QCOMPARE(ten.makespan, 34.5);
        QCOMPARE(ten.peaks, (std::vector<double>{6, 5, 4, 3}));
    }
    // GPipe with latency c per hop, F = 1, B = 2: 3(m+p−1) + 2(p−1)c.
    void latencyOfGpipe()
    {
        for (int p : {2, 3, 4, 8})
            for (int m : {1, 4, 7, 16})
                for (double c : {0.25, 0.5, 1.0, 2.0})
                    QCOMPARE(outcome("gpipe", {p, m, 1}, withLatency(c)).makespan,
                             3.0 * (m + p - 1) + 2.0 * (p - 1) * c);
    }
    // 1F1B, p | m: 3(m+p−1) + c(2(p−1)m/p + 2(p−2)): the latency is paid once per p microbatches.
    void latencyOf1F1B()
    {
        for (int p : {2, 3, 4, 8})
            for (int k : {1, 2, 3, 5})
                for (double c : {0.25, 0.5, 1.0}) {
                    const int m = p * k;
                    const double expected = 3.0 * (m + p - 1) + c * (2.0 * (p - 1) * k + 2.0 * (p - 2));
                    QVERIFY(std::abs(outcome("1f1b", {p, m, 1}, withLatency(c)).makespan - expected) < 1e-6);
                }
    }
    // eager-1F1B pays the latency at both ends only, while c ≤ 1.5 F.
    void latencyOfEager1F1B()
    {
        for (int p : {2, 3, 4, 8})
            for (int m : {2 * p, 3 * p + 1, 5 * p})
                for (double c : {0.25, 0.5, 1.0, 1.5})
                    QCOMPARE(outcome("eager-1f1b", {p, m, 1}, withLatency(c)).makespan,
                             3.0 * (m + p - 1) + 2.0 * (p - 1) * c);
    }
    // Reference simulator, p = 4, m = 8, F = I = W = 1: makespan (and span where it differs) at c per cross-rank edge.
    void latencyTable()
    {
        struct Row {
            const char* name;
            std::array<double, 5> makespans; // at c = 0, 0.25, 0.5, 1, 2
            std::array<double, 5> spans;     // 0: not given
        };
        const Row rows[] = {
            {"gpipe", {33, 34.5, 36, 39, 45}, {}},
            {"1f1b", {33, 37, 41, 49, 65}, {}},
            {"eager-1f1b", {33, 34.5, 36, 39, 48}, {}},
            {"interleaved-1f1b", {28.5, 32, 35.5, 46, 70}, {}},
            {"bfs", {28.5, 30, 31.5, 36.5, 50.5}, {}},
            {"chimera", {30, 32.75, 35.5, 41, 54}, {}},
            {"zb-h1", {27, 30, 33, 41, 57}, {}},
            {"zb-h2", {27, 27.75, 28.5, 30, 42}, {24, 25.5, 27, 0, 0}},
            {"zbv", {25.5, 28.75, 32.5, 41.5, 63.5}, {24, 28, 0, 0, 0}},
            {"dualpipe", {26, 28.25, 30.5, 35, 45}, {}},
            {"dualpipev", {27, 32, 37.5, 48.5, 70.5}, {}},
        };
        const double cs[] = {0, 0.25, 0.5, 1, 2};
        for (const Row& row : rows)
            for (std::size_t i = 0; i < 5; ++i) {
                const Outcome got = outcome(row.name, {4, 8, 0}, withLatency(cs[i]));
                const QByteArray label =
                    QString("%1 c=%2: %3 / %4").arg(row.name).arg(cs[i]).arg(got.makespan).arg(got.span).toUtf8();
                QVERIFY2(got.makespan == row.makespans[i], label);
                if (row.spans[i] > 0) QVERIFY2(got.span == row.spans[i], label);
            }
    }
    // Zero-bubble memory model in which I frees everything: ZB-H1 peaks at p − r, as 1F1B does.
    void peaksWhereInputGradFrees()
    {
        CostModel::UnitCosts units;
        units.freedAtInput = 1;
        for (int p : {2, 4, 8}) {
            const auto peaks = outcome("zb-h1", {p, 3 * p, 1}, units).peaks;
            for (int r = 0; r < p; ++r) QCOMPARE(peaks[static_cast<std::size_t>(r)], double(p - r));
        }
        // Half of it: what the open microbatches hold in full, plus half of each W that waits. From counting F, I, W.
        units.freedAtInput = 0.5;
        const auto half = outcome("zb-h1", {4, 8, 1}, units).peaks;
        for (int r = 0; r < 4; ++r) QCOMPARE(half[static_cast<std::size_t>(r)], (4 - r) + 0.5 * r);
    }
};

QTEST_APPLESS_MAIN(TestGolden)
#include "tst_golden.moc"
