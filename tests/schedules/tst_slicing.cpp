// Cutting sequences into slices: golden values, every way to cut short sequences, batches, the schedule made of a cut.
#include <QtTest>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "schedules/library/registry.h"
#include "schedules/model/slicing.h"

using namespace stagewright;

namespace {

// t(l, c) = 2 + l + l·c/8 + l(l+1)/16: a start, the tokens, and the pairs of tokens that attend to each other.
double sliceTime(int length, int before)
{
    const double l = length;
    return 2 + l + l * before / 8 + l * (l + 1) / 16;
}

double timeOf(const std::vector<int>& lengths, int stages, const std::function<double(int, int)>& time)
{
    double sum = 0;
    double most = 0;
    int before = 0;
    for (const int length : lengths) {
        const double t = time(length, before);
        sum += t;
        most = std::max(most, t);
        before += length;
    }
    return sum + (stages - 1) * most;
}

// The least time over all ways to cut.
double exhaustive(int tokens, int stages, const std::function<double(int, int)>& time)
{
    double best = std::numeric_limits<double>::max();
    for (int cuts = 0; cuts < 1 << (tokens - 1); ++cuts) {
        std::vector<int> lengths{1};
        for (int i = 0; i + 1 < tokens; ++i) {
            if (cuts >> i & 1)
                lengths.push_back(1);
            else
                ++lengths.back();
        }
        best = std::min(best, timeOf(lengths, stages, time));
    }
    return best;
}

} // namespace

class TestSlicing : public QObject {
    Q_OBJECT
private slots:
    // ../shared/specs/schedules.md, 3.13: a dynamic program of its own, in Python, at granularity 1; the best split
    // into equal slices next to it.
    void golden()
    {
        struct Row {
            int tokens, stages;
            double time;
            std::vector<int> lengths;
            double equal; // with this many slices
            int slices;
        };
        const Row rows[] = {
            {16, 2, 51.625, {6, 4, 3, 3}, 54.25, 4},
            {16, 4, 69.875, {4, 3, 2, 2, 2, 2, 1}, 72.625, 8},
            {16, 8, 96, {2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 100, 16},
            {32, 4, 156.75, {6, 4, 4, 3, 3, 2, 2, 2, 2, 2, 2}, 165.625, 16},
        };
        for (const Row& row : rows) {
            SliceTask task;
            task.tokens = row.tokens;
            task.stages = row.stages;
            const auto found = sliceSequence(task, sliceTime);
            QVERIFY(found);
            QVERIFY(std::abs(found->time - row.time) < 1e-9);
            QVERIFY(std::abs(timeOf(found->lengths, row.stages, sliceTime) - row.time) < 1e-9);
            QVERIFY(std::abs(timeOf(row.lengths, row.stages, sliceTime) - row.time) < 1e-9); // ties are possible
            double equal = std::numeric_limits<double>::max();
            int slices = 0;
            for (int n = 1; n <= row.tokens; ++n) {
                if (row.tokens % n != 0) continue;
                const double t =
                    timeOf(std::vector<int>(static_cast<std::size_t>(n), row.tokens / n), row.stages, sliceTime);
                if (t < equal) {
                    equal = t;
                    slices = n;
                }
            }
            QCOMPARE(equal, row.equal);
            QCOMPARE(slices, row.slices);
            QVERIFY(std::is_sorted(found->lengths.rbegin(), found->lengths.rend())); // never longer along the sequence
        }
    }
    void everyCut()
    {
        const auto steps = [](int length, int before) { return 1.0 + (length * 7 + before * 3) % 5 + length; };
        for (int tokens : {1, 2, 5, 9, 12})
            for (int stages : {1, 2, 3, 8}) {
                SliceTask task;
                task.tokens = tokens;
                task.stages = stages;
                QVERIFY(std::abs(sliceSequence(task, sliceTime)->time - exhaustive(tokens, stages, sliceTime)) < 1e-9);
                QVERIFY(std::abs(sliceSequence(task, steps)->time - exhaustive(tokens, stages, steps)) < 1e-9);
            }
    }
    // Sequences one after the other: only Σ t counts for each.
    void sequencesInTurn()
    {
        for (int sequences : {1, 2, 5}) {
            SliceTask task;
            task.tokens = 10;
            task.stages = 4;
            task.sequences = sequences;
            const auto found = sliceSequence(task, sliceTime);
            double best = std::numeric_limits<double>::max();
            for (int cuts = 0; cuts < 1 << 9; ++cuts) {
                std::vector<int> lengths{1};
                for (int i = 0; i < 9; ++i) cuts >> i & 1 ? lengths.push_back(1) : void(++lengths.back());
                const double once = timeOf(lengths, 1, sliceTime);
                best = std::min(best, sequences * once + timeOf(lengths, 4, sliceTime) - once);
            }
            QVERIFY(std::abs(found->time - best) < 1e-9);
        }
    }
    void granularity()
    {
        SliceTask task;
        task.tokens = 32;
        task.stages = 4;
        task.granularity = 8;
        const auto found = sliceSequence(task, sliceTime);
        QVERIFY(found);
        for (const int length : found->lengths) QCOMPARE(length % 8, 0);
        double best = std::numeric_limits<double>::max();
        for (const std::vector<int>& lengths :
             {std::vector<int>{32}, {8, 24}, {24, 8}, {16, 16}, {8, 8, 16}, {8, 16, 8}, {16, 8, 8}, {8, 8, 8, 8}})
            best = std::min(best, timeOf(lengths, 4, sliceTime));
        QVERIFY(std::abs(found->time - best) < 1e-9);
        task.granularity = 5;
        QVERIFY(!sliceSequence(task, sliceTime));
        QVERIFY(!sliceSequence(task, sliceTime).error().remedy.empty());
        task.granularity = 1;
        task.tokens = 0;
        QVERIFY(!sliceSequence(task, sliceTime));
        task.tokens = 4;
        QVERIFY(!sliceSequence(task, [](int, int) { return -1.0; }));
    }
    // Paper, section 4: the curve over equal slice counts is U-shaped, and the program beats its best point.
    void equalSlicesHaveAnOptimum()
    {
        SliceTask task;
        task.tokens = 128;
        task.stages = 48;
        const auto time = [](int length, int before) {
            return 4 + 0.25 * length + length * (before + length / 2.0) / 512;
        };
        std::vector<double> equal;
        for (int n = 1; n <= 128; n *= 2)
            equal.push_back(timeOf(std::vector<int>(static_cast<std::size_t>(n), 128 / n), 48, time));
        const auto least = std::min_element(equal.begin(), equal.end());
        QVERIFY(least != equal.begin() && least != equal.end() - 1);
        QVERIFY(std::is_sorted(std::make_reverse_iterator(least + 1), equal.rend()) &&
                std::is_sorted(least, equal.end()));
        const auto found = sliceSequence(task, time);
        QVERIFY(found->time < *least);
        QVERIFY(std::is_sorted(found->lengths.rbegin(), found->lengths.rend()));
    }
    // The schedule's slices are the program's with its default costs: those of the golden rows for one sequence.
    void ofTheSchedule()
    {
        QCOMPARE(makeSchedule("terapipe", {2, 1, 0})->sliceLengths, (std::vector<std::uint32_t>{6, 4, 3, 3}));
        const Schedule s = *makeSchedule("terapipe:tokens=32", {4, 1, 0});
        std::vector<int> lengths(s.sliceLengths.begin(), s.sliceLengths.end());
        QVERIFY(std::abs(timeOf(lengths, 4, sliceTime) - 156.75) < 1e-9);
        // One forward, one backward over slices: p − r − 2 + n forwards before the first backward and forward together.
        const Schedule f1b = *makeSchedule("terapipe:base=1f1b:slices=4", {4, 8, 0});
        for (int r = 0; r < 4; ++r) {
            const auto& ops = f1b.order[static_cast<std::size_t>(r)];
            const auto backward =
                std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::Backward; });
            QCOMPARE(backward - ops.begin(), std::ptrdiff_t{4 - r - 2 + 4 + 1});
            QCOMPARE(backward->slice, std::int16_t{3}); // from the last slice to the first
        }
    }
};

QTEST_APPLESS_MAIN(TestSlicing)
#include "tst_slicing.moc"
