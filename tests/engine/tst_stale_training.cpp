// Asynchronous schedules: which weights every op computes with, against the rule; the training against the one-rank
// model of the rule; the deviation from synchronous training.
#include <QTest>

#include <cmath>
#include <map>

#include "engine/check/check.h"
#include "engine/check/stale_model.h"
#include "engine/training/step_rules.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

// 1F1B of p ranks with an optimizer op after every B, or one at the end.
Schedule pipeline(int ranks, int microbatches, WeightRule rule)
{
    Schedule schedule = librarySchedule("1f1b", ranks, microbatches);
    schedule.name = std::string(toText(rule));
    schedule.weights = rule;
    for (int rank = 0; rank < ranks; ++rank) {
        std::vector<Op> list;
        for (const Op& op : schedule.order[static_cast<std::size_t>(rank)]) {
            list.push_back(op);
            if (op.kind == OpKind::Backward && rule != WeightRule::TwoVersions)
                list.push_back(makeOp(OpKind::Optimizer, rank));
        }
        if (rule == WeightRule::TwoVersions) list.push_back(makeOp(OpKind::Optimizer, rank));
        schedule.order[static_cast<std::size_t>(rank)] = std::move(list);
    }
    return schedule;
}

// What the probe saw: weights in units of updates (every update takes 1 away), by stage and op.
struct Seen {
    std::map<std::pair<int, int>, double> forward, backward, newest; // (stage, running number of the microbatch)
};

// One weight per stage with a constant gradient of 1 under SGD with rate 1: a weight of −n has seen n updates.
class ProbeStage final : public StageModel {
public:
    ProbeStage(const StageSlice& slice, Allocator& allocator, Seen& seen)
        : m_slice(slice), m_allocator(allocator), m_seen(seen)
    {
    }
    const StageSlice& slice() const override { return m_slice; }
    Buffer forward(const Part&, Buffer, std::span<const std::uint8_t>, std::span<const std::uint8_t>) override
    {
        m_seen.forward[{m_slice.stage, m_forwards++}] = used();
        return message(!m_slice.last);
    }
    Buffer forwardForRecompute(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                               std::span<const std::uint8_t> targets) override
    {
        return forward(part, std::move(input), tokens, targets);
    }
    void recompute(const Part&) override {}
    Buffer inputGrad(const Part&, Buffer) override
    {
        m_seen.newest[{m_slice.stage, m_backwards}] = m_values[-1];
        m_seen.backward[{m_slice.stage, m_backwards++}] = used();
        return message(!m_slice.first);
    }
    void weightGrad(const Part&) override {}
    void weightGradOver(std::span<const Part>) override {}
    void setSlices(std::span<const int>) override {}
    void setRecomputedLayers(int, int) override {}
    void setBackwardFrom(int) override {}
    double loss(const Part&) const override { return 1; }
    void setLossScale(float) override {}
    void zeroGradients() override {}
    double gradientSquareSum() const override { return 1; }
    void optimizerStep(const OptimizerConfig& config, int, float) override { m_values[-1] -= config.learningRate; }
    void undoOptimizerStep(const OptimizerConfig& config, int, float) override { m_values[-1] += config.learningRate; }
    void keepVersion(int version) override { m_values[version] = m_values[-1]; }
    void useVersion(int version) override { m_used = version; }
    void dropVersion(int version) override { QVERIFY(version != m_used && m_values.erase(version) == 1); }
    void keepPredicted(int version, const OptimizerConfig& config, int step, double updates) override
    {
        m_values[version] = m_values[-1] - (step > 0 ? config.learningRate * updates : 0.0);
    }
    std::vector<ParameterView> parameters() override { return {}; }
    void saveState(int, const StateSink&) override {}
    void loadState(int, const StateSource&) override {}
    std::vector<Buffer*> keptBuffers(const Part&) override { return {}; }
    void dropMicrobatches() override {}
    std::size_t versions() const { return m_values.size(); }

private:
    double used() const { return m_values.at(m_used); }
    Buffer message(bool goesOn)
    {
        return goesOn ? m_allocator.take(1, {MemoryCategory::Communication, 0, 0}) : Buffer();
    }
    StageSlice m_slice;
    Allocator& m_allocator;
    Seen& m_seen;
    std::map<int, double> m_values{{-1, 0.0}};
    int m_used = -1;
    int m_forwards = 0;
    int m_backwards = 0;
};

class ProbeWorkload final : public Gpt {
public:
    ProbeWorkload(const ModelConfig& config, std::vector<Seen>& seen) : Gpt(config), m_seen(seen) {}
    std::unique_ptr<StageModel> makeStage(const StageSpec& stage, Allocator& allocator,
                                          std::unique_ptr<layers::LayerMath>) const override
    {
        return std::make_unique<ProbeStage>(stage.slice, allocator,
                                            m_seen[static_cast<std::size_t>(stage.slice.stage)]);
    }

private:
    std::vector<Seen>& m_seen;
};

constexpr int ranks = 4;
constexpr int microbatches = 7;
constexpr int steps = 3;

// By stage, what the ops of `steps` steps computed with.
std::vector<Seen> probe(WeightRule rule, int p = ranks)
{
    std::vector<Seen> seen(static_cast<std::size_t>(p));
    TrainingOptions options = fakeOptions();
    options.optimizer = {OptimizerKind::Sgd, 1.0};
    options.workload = std::make_shared<const ProbeWorkload>(ModelConfig{16, 16, 2, 8, 256}, seen);
    auto training = trainingOf(pipeline(p, microbatches, rule), options, std::make_unique<BareBackend>());
    if (!training) qFatal("%s", training.error().message.c_str());
    for (int step = 0; step < steps; ++step) {
        const auto outcome = (*training)->step({});
        if (!outcome) qFatal("%s", outcome.error().message.c_str());
    }
    return seen;
}

} // namespace

class TestStaleTraining : public QObject {
    Q_OBJECT

private slots:
    // PipeDream: on stage r the gradient of a microbatch is p − 1 − r updates old once the pipeline is full; B computes
    // with the weights that its F used.
    void stashedLag()
    {
        const std::vector<Seen> seen = probe(WeightRule::Stashed);
        for (int stage = 0; stage < ranks; ++stage) {
            const Seen& of = seen[static_cast<std::size_t>(stage)];
            for (int n = 0; n < steps * microbatches; ++n) {
                const int j = n % microbatches;
                const int lag = std::min(j, ranks - 1 - stage);
                QCOMPARE(of.forward.at({stage, n}), static_cast<double>(lag - n));
                QCOMPARE(of.backward.at({stage, n}), of.forward.at({stage, n}));
                QCOMPARE(of.newest.at({stage, n}), static_cast<double>(-n));
            }
        }
        const auto between = updatesBetween(pipeline(ranks, microbatches, WeightRule::Stashed));
        for (int stage = 0; stage < ranks; ++stage) {
            for (int j = 0; j < microbatches; ++j)
                QCOMPARE(between[static_cast<std::size_t>(stage)][static_cast<std::size_t>(j)],
                         std::min(j, ranks - 1 - stage));
        }
    }

    // 2BW: one update late on every stage, all microbatches of a step alike.
    void twoVersionsLag()
    {
        const std::vector<Seen> seen = probe(WeightRule::TwoVersions);
        for (int stage = 0; stage < ranks; ++stage) {
            for (int n = 0; n < steps * microbatches; ++n) {
                const double expected = -std::max(0, n / microbatches - 1);
                QCOMPARE(seen[static_cast<std::size_t>(stage)].forward.at({stage, n}), expected);
                QCOMPARE(seen[static_cast<std::size_t>(stage)].backward.at({stage, n}), expected);
            }
        }
    }

    // PipeOptim: with a constant gradient under SGD the prediction is exact as soon as there is an update to look at.
    void predictionIsExact()
    {
        for (const int p : {2, ranks}) {
            const std::vector<Seen> seen = probe(WeightRule::Predicted, p);
            for (int stage = 0; stage < p; ++stage) {
                const Seen& of = seen[static_cast<std::size_t>(stage)];
                for (int n = 0; n < steps * microbatches; ++n) {
                    QCOMPARE(of.backward.at({stage, n}), static_cast<double>(-n)); // the newest
                    const bool blind = n <= p - 1 - stage;                         // in flight before the first update
                    QCOMPARE(of.forward.at({stage, n}), blind ? 0.0 : of.backward.at({stage, n}));
                }
            }
        }
    }

    void equalsTheModelOfTheRule_data()
    {
        QTest::addColumn<int>("rule");
        QTest::addColumn<int>("optimizer");
        for (const WeightRule rule : {WeightRule::Stashed, WeightRule::TwoVersions, WeightRule::Predicted}) {
            QTest::addRow("%s sgd", toText(rule).data()) << static_cast<int>(rule) << 0;
            QTest::addRow("%s momentum", toText(rule).data()) << static_cast<int>(rule) << 1;
            QTest::addRow("%s adamw", toText(rule).data()) << static_cast<int>(rule) << 2;
        }
    }

    void equalsTheModelOfTheRule()
    {
        QFETCH(int, rule);
        QFETCH(int, optimizer);
        TrainingOptions options;
        options.workload = test::gpt({4, 8, 2, 6, 256});
        options.microbatchSize = 2;
        options.optimizer.kind = optimizer == 2 ? OptimizerKind::AdamW : OptimizerKind::Sgd;
        options.optimizer.momentum = optimizer == 1 ? 0.9 : 0;
        options.optimizer.learningRate = optimizer == 2 ? 3e-3 : 0.05;
        const Schedule schedule = pipeline(ranks, microbatches, static_cast<WeightRule>(rule));
        for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
            options.clock = clock;
            const auto result = checkOf(schedule, options, 3, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->passed, result->note.c_str());
            QVERIFY(result->deviation > 0);
            if (static_cast<WeightRule>(rule) != WeightRule::Predicted) QCOMPARE(result->gradientError, 0.0);
        }
    }

    // On one rank nothing is stale but two versions.
    void oneRankDoesNotDeviate()
    {
        TrainingOptions options;
        options.workload = test::gpt({2, 8, 2, 6, 256});
        options.clock = ClockMode::Virtual;
        for (const WeightRule rule : {WeightRule::Stashed, WeightRule::Predicted, WeightRule::TwoVersions}) {
            const auto result = checkOf(pipeline(1, 4, rule), options, 3, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->passed, result->note.c_str());
            QCOMPARE(result->deviation > 0, rule == WeightRule::TwoVersions);
        }
    }

    // Stage r of p holds p − r versions of its weights under Stashed, two under the other rules (the last one of
    // Predicted one).
    void weightBytes()
    {
        TrainingOptions options;
        options.workload = test::gpt({4, 8, 2, 6, 256});
        options.microbatchSize = 2;
        options.clock = ClockMode::Virtual;
        const auto bytesOf = [&](const Schedule& schedule) {
            auto training = trainingOf(schedule, options);
            for (int step = 0; step < 2; ++step) {
                if (!training || !(*training)->step({})) return std::vector<Bytes>();
            }
            return (*training)->peak(MemoryCategory::Weights);
        };
        const std::vector<Bytes> one = bytesOf(librarySchedule("1f1b", ranks, microbatches));
        const std::vector<Bytes> stashed = bytesOf(pipeline(ranks, microbatches, WeightRule::Stashed));
        const std::vector<Bytes> two = bytesOf(pipeline(ranks, microbatches, WeightRule::TwoVersions));
        const std::vector<Bytes> predicted = bytesOf(pipeline(ranks, microbatches, WeightRule::Predicted));
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            QCOMPARE(stashed[rank], static_cast<Bytes>(ranks - rank) * one[rank]);
            QCOMPARE(two[rank], 2 * one[rank]);
            QCOMPARE(predicted[rank], (rank + 1 < ranks ? 2 : 1) * one[rank]);
        }
    }

    void refuses()
    {
        Schedule none = librarySchedule("1f1b", 2, 4);
        none.weights = WeightRule::Stashed;
        auto refused = fakeTraining(none, fakeOptions());
        QVERIFY(!refused);
        Schedule once = pipeline(2, 4, WeightRule::TwoVersions);
        once.weights = WeightRule::Predicted;
        refused = fakeTraining(once, fakeOptions());
        QVERIFY(!refused);
        QVERIFY2(refused.error().message.find("optimizer op after each microbatch") != std::string::npos,
                 refused.error().message.c_str());
    }
};

QTEST_GUILESS_MAIN(TestStaleTraining)
#include "tst_stale_training.moc"
