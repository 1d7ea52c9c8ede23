// Plans against the tables of what the authors' generators reach: at the row's own peaks, rank by rank, no plan is
// longer. Where a plan is shorter, both figures are in the row. Unit costs F = I = W = 1, no latency.
// Sources: ../shared/specs/schedules.md, sections 7 and 8. Ours of a row: stagewright plan -p P -m M --chunks V
// --memory-limit PEAKS
#include <QtTest>

#include <cmath>

#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/plan/plan.h"

using namespace stagewright;

namespace {

struct Row {
    const char* name;
    int p, m, chunks;
    double makespan, span;       // reference
    double ownMakespan, ownSpan; // the plan's, at the reference's peaks
    std::vector<double> peaks;   // by rank; one value: of all
};

double planned(const Row& row, Objective objective, bool& optimal)
{
    Schedule shape;
    shape.ranks = row.p;
    shape.stages = row.p * row.chunks;
    PlanRequest request;
    request.ranks = row.p;
    request.microbatches = row.m;
    request.chunks = row.chunks;
    request.costs = CostModel::uniform(shape);
    request.objective = objective;
    request.tries = 200'000; // ends by itself, so that every machine finds the same
    request.seconds = 120;
    for (int r = 0; r < row.p; ++r)
        request.caps.push_back(std::llround(
            (row.peaks.size() == 1 ? row.peaks[0] : row.peaks[static_cast<std::size_t>(r)]) * activationShare));
    const auto found = plan(request);
    if (!found) qFatal("%s: %s", row.name, found.error().message.c_str());
    if (!validate(found->schedule).valid()) qFatal("%s: the plan is not valid", row.name);
    const auto result = simulate(found->schedule, request.costs);
    for (std::size_t r = 0; r < request.caps.size(); ++r)
        if (result->peakActivation[r] > request.caps[r]) qFatal("%s: above the cap", row.name);
    optimal = found->optimal;
    return static_cast<double>(objective == Objective::Makespan ? result->makespan : result->span) / rankShare;
}

// clang-format off
const Row referenceRows[] = {
    // section 7: a simulator of its own, in Python; fixed orders and blocks as they are
    {"GPipe", 2, 2, 1, 9, 9, 7, 7, {2}},
    {"GPipe", 2, 4, 1, 15, 15, 13, 12, {4}},
    {"GPipe", 2, 8, 1, 27, 27, 25, 24, {8}},
    {"GPipe", 4, 4, 1, 21, 21, 15, 15, {4}},
    {"GPipe", 4, 8, 1, 33, 33, 27, 24, {8}},
    {"GPipe", 4, 16, 1, 57, 57, 51, 48, {16}},
    {"1F1B", 2, 2, 1, 9, 9, 8, 8, {2, 1}},
    {"1F1B", 2, 4, 1, 15, 15, 14, 14, {2, 1}},
    {"1F1B", 2, 8, 1, 27, 27, 26, 26, {2, 1}},
    {"1F1B", 4, 4, 1, 21, 21, 18, 18, {4, 3, 2, 1}},
    {"1F1B", 4, 8, 1, 33, 33, 30, 30, {4, 3, 2, 1}},
    {"1F1B", 4, 16, 1, 57, 57, 54, 54, {4, 3, 2, 1}},
    {"eager-1F1B", 2, 2, 1, 9, 9, 8, 8, {2, 1}},
    {"eager-1F1B", 2, 4, 1, 15, 15, 14, 14, {3, 1}},
    {"eager-1F1B", 2, 8, 1, 27, 27, 26, 26, {3, 1}},
    {"eager-1F1B", 4, 4, 1, 21, 21, 18, 18, {4, 4, 3, 1}},
    {"eager-1F1B", 4, 8, 1, 33, 33, 30, 30, {7, 5, 3, 1}},
    {"eager-1F1B", 4, 16, 1, 57, 57, 54, 54, {7, 5, 3, 1}},
    {"ZB-H1", 2, 2, 1, 7, 7, 7, 7, {2}},
    {"ZB-H1", 2, 4, 1, 13, 13, 13, 13, {2}},
    {"ZB-H1", 2, 8, 1, 25, 25, 25, 25, {2}},
    {"ZB-H1", 4, 4, 1, 15, 15, 15, 15, {4}},
    {"ZB-H1", 4, 8, 1, 27, 27, 27, 27, {4}},
    {"ZB-H1", 4, 16, 1, 51, 51, 51, 51, {4}},
    {"ZB-H2", 2, 2, 1, 7, 7, 7, 7, {2}},
    {"ZB-H2", 2, 4, 1, 13, 12, 13, 12, {3}},
    {"ZB-H2", 2, 8, 1, 25, 24, 25, 24, {3}},
    {"ZB-H2", 4, 4, 1, 16, 15, 15, 15, {4}},
    {"ZB-H2", 4, 8, 1, 27, 24, 27, 24, {7}},
    {"ZB-H2", 4, 16, 1, 51, 48, 51, 48, {7}},
    {"ZBV", 2, 2, 2, 7, 7, 6.5, 6.5, {1.5, 2}},
    {"ZBV", 2, 4, 2, 12.5, 12, 12.5, 12, {2}},
    {"ZBV", 2, 8, 2, 24.5, 24, 24.5, 24, {2}},
    {"ZBV", 4, 4, 2, 15, 15, 13.5, 13.5, {2.5, 3, 3.5, 4}},
    {"ZBV", 4, 8, 2, 25.5, 24, 25.5, 24, {4}},
    {"ZBV", 4, 16, 2, 49.5, 48, 49.5, 48, {4}},
    {"V-Min raw block", 2, 2, 2, 7.5, 7.5, 7.5, 7.5, {1, 2}},
    {"V-Min raw block", 2, 4, 2, 13.5, 13.5, 13.5, 13.5, {1, 2}},
    {"V-Min raw block", 2, 8, 2, 25.5, 25.5, 25.5, 25.5, {1, 2}},
    {"V-Min raw block", 4, 4, 2, 17.5, 17.5, 17.5, 17.5, {2}},
    {"V-Min raw block", 4, 8, 2, 29.5, 29.5, 29.5, 29.5, {2}},
    {"V-Min raw block", 4, 16, 2, 53.5, 53.5, 53.5, 53.5, {2}},
    {"V-Half raw block", 2, 2, 2, 8.5, 8.5, 6.5, 6.5, {1.5, 2}},
    {"V-Half raw block", 2, 4, 2, 14.5, 14.5, 12.5, 12, {2}},
    {"V-Half raw block", 2, 8, 2, 26.5, 26.5, 24.5, 24, {2}},
    {"V-Half raw block", 4, 4, 2, 18, 18, 14.5, 14.5, {2.5, 3, 3, 3}},
    {"V-Half raw block", 4, 8, 2, 30, 30, 26.5, 26.5, {3}},
    {"V-Half raw block", 4, 16, 2, 54, 54, 50.5, 50.5, {3}},
    {"DualPipeV", 2, 4, 2, 13, 13, 12.5, 12, {2.5}},
    {"DualPipeV", 2, 8, 2, 25, 25, 24.5, 24, {2.5}},
    {"DualPipeV", 4, 8, 2, 27, 27, 25.5, 24, {4.5}},
    {"DualPipeV", 4, 16, 2, 51, 51, 49.5, 48, {4.5}},
    {"DualPipeV serial F,B", 2, 4, 2, 12.5, 12.5, 12.5, 12, {2.5}},
    {"DualPipeV serial F,B", 2, 8, 2, 24.5, 24.5, 24.5, 24, {2.5}},
    {"DualPipeV serial F,B", 4, 8, 2, 25.5, 25.5, 25.5, 24, {4.5}},
    {"DualPipeV serial F,B", 4, 16, 2, 49.5, 49.5, 49.5, 48, {4.5}},
    {"2BP-GPipe", 2, 2, 1, 8, 8, 7, 7, {2}},
    {"2BP-GPipe", 2, 4, 1, 14, 14, 13, 12, {4}},
    {"2BP-GPipe", 2, 8, 1, 26, 26, 25, 24, {8}},
    {"2BP-GPipe", 4, 4, 1, 18, 18, 15, 15, {4}},
    {"2BP-GPipe", 4, 8, 1, 30, 30, 27, 24, {8}},
    {"2BP-GPipe", 4, 16, 1, 54, 54, 51, 48, {16}},
    {"2BP-1F1B all-W-last", 2, 2, 1, 8, 8, 7, 7, {2}},
    {"2BP-1F1B all-W-last", 2, 4, 1, 14, 14, 13, 12, {4}},
    {"2BP-1F1B all-W-last", 2, 8, 1, 26, 26, 25, 24, {8}},
    {"2BP-1F1B all-W-last", 4, 4, 1, 18, 18, 15, 15, {4}},
    {"2BP-1F1B all-W-last", 4, 8, 1, 30, 30, 27, 24, {8}},
    {"2BP-1F1B all-W-last", 4, 16, 1, 54, 54, 51, 48, {16}},
    {"2BP-1F1B W-in-cooldown", 2, 2, 1, 7, 7, 7, 7, {2}},
    {"2BP-1F1B W-in-cooldown", 2, 4, 1, 13, 13, 13, 12, {4}},
    {"2BP-1F1B W-in-cooldown", 2, 8, 1, 25, 25, 25, 24, {8}},
    {"2BP-1F1B W-in-cooldown", 4, 4, 1, 15, 15, 15, 15, {4}},
    {"2BP-1F1B W-in-cooldown", 4, 8, 1, 27, 27, 27, 24, {8}},
    {"2BP-1F1B W-in-cooldown", 4, 16, 1, 51, 51, 51, 48, {16}},
    // section 8: the authors' generators, executed
    {"1F1B-V", 2, 2, 2, 8, 8, 6.5, 6.5, {1.5, 2}},
    {"1F1B-V", 2, 4, 2, 14, 14, 12.5, 12, {2}},
    {"1F1B-V", 2, 8, 2, 26, 26, 24.5, 24, {2}},
    {"1F1B-V", 4, 4, 2, 19.5, 19.5, 14.5, 14.5, {2.5, 3, 3, 3}},
    {"1F1B-V", 4, 8, 2, 31.5, 31.5, 26.5, 26.5, {3}},
    {"1F1B-V", 4, 16, 2, 55.5, 55.5, 50.5, 50.5, {3}},
    {"V-half greedy", 2, 2, 2, 7.5, 7.5, 6.5, 6.5, {1.5, 2}},
    {"V-half greedy", 2, 4, 2, 12.5, 12.5, 12.5, 12, {2}},
    {"V-half greedy", 2, 8, 2, 24.5, 24.5, 24.5, 24, {2}},
    {"V-half greedy", 4, 4, 2, 17, 17, 14.5, 14.5, {2.5, 3, 3, 3}},
    {"V-half greedy", 4, 8, 2, 26.5, 26.5, 26.5, 26.5, {3}},
    {"V-half greedy", 4, 16, 2, 50.5, 50.5, 50.5, 50.5, {3}},
    {"V-min greedy", 2, 2, 2, 7.5, 7.5, 6.5, 6.5, {1.5, 2}},
    {"V-min greedy", 2, 4, 2, 13.5, 13.5, 12.5, 12.5, {1.5, 2}},
    {"V-min greedy", 2, 8, 2, 25.5, 25.5, 24.5, 24.5, {1.5, 2}},
    {"V-min greedy", 4, 4, 2, 17.5, 17.5, 17.5, 17.5, {2}},
    {"V-min greedy", 4, 8, 2, 29.5, 29.5, 29.5, 29.5, {2}},
    {"V-min greedy", 4, 16, 2, 53.5, 53.5, 53.5, 53.5, {2}},
    {"ZB-auto limit 1.5p", 2, 2, 1, 7, 7, 7, 7, {2}},
    {"ZB-auto limit 1.5p", 2, 4, 1, 13, 12, 13, 12, {3}},
    {"ZB-auto limit 1.5p", 2, 8, 1, 25, 24, 25, 24, {3}},
    {"ZB-auto limit 1.5p", 4, 4, 1, 15, 15, 15, 15, {4}},
    {"ZB-auto limit 1.5p", 4, 8, 1, 27, 25, 27, 25, {6}},
    {"ZB-auto limit 1.5p", 4, 16, 1, 51, 49, 51, 49, {6}},
    {"ZB-auto limit 2p", 2, 2, 1, 7, 7, 7, 7, {2}},
    {"ZB-auto limit 2p", 2, 4, 1, 13, 12, 13, 12, {4}},
    {"ZB-auto limit 2p", 2, 8, 1, 25, 24, 25, 24, {4}},
    {"ZB-auto limit 2p", 4, 4, 1, 15, 15, 15, 15, {4}},
    {"ZB-auto limit 2p", 4, 8, 1, 27, 24, 27, 24, {8}},
    {"ZB-auto limit 2p", 4, 16, 1, 51, 48, 51, 48, {8}},
    {"ZB-auto limit p", 2, 2, 1, 7, 7, 7, 7, {2}},
    {"ZB-auto limit p", 2, 4, 1, 13, 13, 13, 13, {2}},
    {"ZB-auto limit p", 2, 8, 1, 25, 25, 25, 25, {2}},
    {"ZB-auto limit p", 4, 4, 1, 15, 15, 15, 15, {4}},
    {"ZB-auto limit p", 4, 8, 1, 27, 27, 27, 27, {4}},
    {"ZB-auto limit p", 4, 16, 1, 51, 51, 51, 51, {4}},
    {"ZBV heur heuristic", 2, 2, 2, 6.5, 6.5, 6.5, 6.5, {2}},
    {"ZBV heur heuristic", 2, 4, 2, 12.5, 12, 12.5, 12, {2}},
    {"ZBV heur heuristic", 2, 8, 2, 24.5, 24, 24.5, 24, {2}},
    {"ZBV heur heuristic", 4, 4, 2, 13.5, 13.5, 13.5, 13.5, {4}},
    {"ZBV heur heuristic", 4, 8, 2, 25.5, 24, 25.5, 24, {4}},
    {"ZBV heur heuristic", 4, 16, 2, 49.5, 48, 49.5, 48, {4}},
};
// clang-format on

} // namespace

class TestPlanRows : public QObject {
    Q_OBJECT
private slots:
    void neverLonger_data()
    {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < std::size(referenceRows); ++i)
            QTest::addRow("%s, p=%d, m=%d", referenceRows[i].name, referenceRows[i].p, referenceRows[i].m)
                << static_cast<int>(i);
    }
    void neverLonger()
    {
        QFETCH(int, index);
        const Row& row = referenceRows[static_cast<std::size_t>(index)];
        QVERIFY(row.ownMakespan <= row.makespan && row.ownSpan <= row.span);
        bool optimal = false;
        QCOMPARE(planned(row, Objective::Makespan, optimal), row.ownMakespan);
        QVERIFY(optimal);
        QCOMPARE(planned(row, Objective::Span, optimal), row.ownSpan);
        QVERIFY(optimal);
    }
};

QTEST_APPLESS_MAIN(TestPlanRows)
#include "tst_plan_rows.moc"
