// A training that goes on from a checkpoint is the uninterrupted one bit for bit, whatever schedule, ranks, replicas or
// sharding run it, where gradients are; another training is refused.
#include <QTest>

#include <QFile>
#include <QTemporaryDir>

#include "engine/saved/saved_training.h"
#include "process_training.h"
#include "schedules/library/variants.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

TrainingOptions tiny(int layers = 4)
{
    TrainingOptions options = fakeOptions(ClockMode::Virtual);
    options.backend = "cpu";
    options.workload = test::gpt({layers, 16, 2, 8, 256});
    return options;
}

struct Ran {
    std::vector<double> losses;
    SavedTraining saved; // behind them
    std::string error;
};

Ran run(const Schedule& schedule, const TrainingOptions& options, int steps)
{
    Ran out;
    auto training = trainingOf(schedule, options);
    if (!training) return {{}, {}, training.error().message};
    for (int i = 0; i < steps; ++i) {
        auto outcome = (*training)->step({});
        if (!outcome) return {{}, {}, outcome.error().message};
        out.losses.push_back(outcome->loss);
    }
    auto saved = (*training)->saved();
    if (!saved) return {{}, {}, saved.error().message};
    out.saved = std::move(*saved);
    return out;
}

class Folder {
public:
    std::shared_ptr<const SavedFile> file(const SavedTraining& saved)
    {
        const QString name = m_folder.filePath(QString::number(++m_files) + ".safetensors");
        QFile file(name);
        if (!file.open(QIODevice::WriteOnly)) qFatal("no file");
        if (!saved.write([&file](std::string_view bytes) {
                return file.write(bytes.data(), static_cast<qint64>(bytes.size())) == static_cast<qint64>(bytes.size());
            }))
            qFatal("not written");
        file.close();
        auto opened = SavedFile::open(name.toStdString());
        if (!opened) qFatal("%s", opened.error().message.c_str());
        return std::make_shared<const SavedFile>(std::move(*opened));
    }

private:
    QTemporaryDir m_folder;
    int m_files = 0;
};

TrainingOptions from(TrainingOptions options, std::shared_ptr<const SavedFile> file)
{
    options.resume = std::move(file);
    return options;
}

// "": alike bit for bit
QString differenceOf(const SavedTraining& a, const SavedTraining& b)
{
    if (a.tensors.size() != b.tensors.size())
        return QString("%1 and %2 tensors").arg(a.tensors.size()).arg(b.tensors.size());
    for (const auto& [name, tensor] : a.tensors) {
        const auto found = b.tensors.find(name);
        if (found == b.tensors.end()) return QString("no %1").arg(name.c_str());
        if (found->second.shape != tensor.shape || found->second.numbers != tensor.numbers)
            return QString("%1 differs").arg(name.c_str());
    }
    return {};
}

QString goesOn(const Ran& whole, const Ran& rest)
{
    if (!rest.error.empty()) return QString::fromStdString(rest.error);
    for (std::size_t i = 0; i < rest.losses.size(); ++i)
        if (rest.losses[i] != whole.losses[whole.losses.size() - rest.losses.size() + i])
            return QString("loss %1 is %2 and not %3")
                .arg(i)
                .arg(rest.losses[i], 0, 'g', 17)
                .arg(whole.losses[whole.losses.size() - rest.losses.size() + i], 0, 'g', 17);
    return differenceOf(whole.saved, rest.saved);
}

} // namespace

class TestResume : public QObject {
    Q_OBJECT

private slots:
    void everySchedule_data()
    {
        QTest::addColumn<QString>("name");
        for (const ScheduleInfo& info : allSchedules())
            for (const std::string& name : variantsOf(info))
                QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
    void everySchedule()
    {
        QFETCH(QString, name);
        static int number = 0;
        const auto schedule = makeOnNearShape(name.toStdString(), {2, 4});
        QVERIFY(schedule);
        TrainingOptions options = tiny(std::max(4, schedule->stages));
        if (number % 3 != 0) options.optimizer.kind = OptimizerKind::Sgd;
        if (number % 3 == 2) options.optimizer.momentum = 0.9;
        ++number;
        const Ran whole = run(*schedule, options, 5);
        QVERIFY2(whole.error.empty(), whole.error.c_str());
        const Ran first = run(*schedule, options, 2);
        Folder folder;
        const auto file = folder.file(first.saved);
        QCOMPARE(file->step(), 2);
        const Ran rest = run(*schedule, from(options, file), 3);
        const QString differs = goesOn(whole, rest);
        QVERIFY2(differs.isEmpty(), qPrintable(differs));
        QCOMPARE(*rest.saved.fact("step"), std::string("5"));
        // what was loaded is what was saved, before any step
        const Ran none = run(*schedule, from(options, file), 0);
        QVERIFY2(differenceOf(first.saved, none.saved).isEmpty(), qPrintable(differenceOf(first.saved, none.saved)));
        QVERIFY(!differenceOf(first.saved, rest.saved).isEmpty()); // a comparison that can fail
    }

    // Their gradients are summed in the order of microbatches, too.
    void underOtherSchedulesAndRanks()
    {
        const Ran whole = run(librarySchedule("1f1b", 4, 4), tiny(), 4);
        Folder folder;
        const auto file = folder.file(run(librarySchedule("1f1b", 4, 4), tiny(), 2).saved);
        for (const auto& [name, ranks] : {std::pair("gpipe", 1), std::pair("gpipe", 2), std::pair("zb-h1", 4),
                                          std::pair("1f1b", 2), std::pair("zbv", 2)}) {
            const Ran rest = run(librarySchedule(name, ranks, 4), from(tiny(), file), 2);
            QVERIFY2(goesOn(whole, rest).isEmpty(), qPrintable(QString(name) + ": " + goesOn(whole, rest)));
        }
    }

    // State in pieces comes together and is cut again.
    void underOtherSharding()
    {
        Folder folder;
        TrainingOptions options = tiny();
        const auto with = [&options](ShardLevel level, ShardBy by) {
            TrainingOptions out = options;
            out.sharding.level = level;
            out.sharding.by = by;
            return out;
        };
        const auto lists = [](ShardLevel level) {
            const auto replicas = overReplicas(librarySchedule("1f1b", 2, 4), 2);
            return addShardOps(*replicas, level, {GatherRule::Batch, 0, ReduceRule::Overlapped}).value();
        };
        constexpr ShardLevel levels[] = {ShardLevel::None, ShardLevel::Optimizer, ShardLevel::Gradients,
                                         ShardLevel::Weights};
        const Ran whole = run(lists(ShardLevel::None), with(ShardLevel::None, ShardBy::Even), 4);
        QVERIFY2(whole.error.empty(), whole.error.c_str());
        for (const ShardLevel was : levels) {
            const auto file = folder.file(run(lists(was), with(was, ShardBy::Even), 2).saved);
            for (const ShardLevel is : levels) {
                const ShardBy by = is == ShardLevel::None ? ShardBy::Even : ShardBy::Layer;
                const QString differs = goesOn(whole, run(lists(is), from(with(is, by), file), 2));
                QVERIFY2(differs.isEmpty(),
                         qPrintable(QString("%1 to %2: %3").arg(int(was)).arg(int(is)).arg(differs)));
            }
        }
        // one pipeline of as many samples: the same but for the order of sums
        const auto file =
            folder.file(run(lists(ShardLevel::Weights), with(ShardLevel::Weights, ShardBy::Even), 2).saved);
        const Ran alone = run(librarySchedule("1f1b", 2, 8), from(options, file), 2);
        QVERIFY2(alone.error.empty(), alone.error.c_str());
        for (std::size_t i = 0; i < 2; ++i) QVERIFY(std::abs(alone.losses[i] - whole.losses[2 + i]) < 1e-4);
    }

    void betweenThreadsAndProcesses()
    {
        const Schedule schedule = librarySchedule("1f1b", 4, 4);
        TrainingOptions options = fakeOptions(ClockMode::Wall);
        const auto fakeRun = [&](const TrainingOptions& some, int steps) {
            Ran out;
            auto training = fakeTraining(schedule, some);
            if (!training) qFatal("%s", training.error().message.c_str());
            for (int i = 0; i < steps; ++i) out.losses.push_back((*training)->step({}).value().loss);
            out.saved = (*training)->saved().value();
            return out;
        };
        const Ran whole = fakeRun(options, 4);
        Folder folder;
        const auto file = folder.file(fakeRun(options, 2).saved);
        Ran rest;
        const ProcessFaults faults = trainInProcesses(2, schedule, from(options, file), {}, [&](Training& training) {
            for (int i = 0; i < 2; ++i) {
                auto outcome = training.step({});
                if (outcome) rest.losses.push_back(outcome->loss);
            }
            auto saved = training.saved();
            if (saved) rest.saved = std::move(*saved);
        });
        QVERIFY2(faults.leader.empty() && faults.served.empty(), faults.leader.c_str());
        QCOMPARE(rest.losses.size(), std::size_t{2});
        QVERIFY2(goesOn(whole, rest).isEmpty(), qPrintable(goesOn(whole, rest)));
    }

    void refusesAnotherTraining()
    {
        const Schedule schedule = librarySchedule("1f1b", 2, 4);
        Folder folder;
        const Ran first = run(schedule, tiny(), 1);
        const auto file = folder.file(first.saved);
        const auto refused = [&](const TrainingOptions& options, const char* what, const Schedule& lists) {
            const auto training = trainingOf(lists, from(options, file));
            QVERIFY2(!training, what);
            QCOMPARE(training.error().code, ErrorCode::Usage);
            QVERIFY2(training.error().message.find(what) != std::string::npos, training.error().message.c_str());
            QVERIFY2(training.error().remedy.find("--resume") != std::string::npos, training.error().remedy.c_str());
        };
        refused(tiny(5), "model", schedule);
        TrainingOptions other = tiny();
        other.seed = 2;
        refused(other, "seed", schedule);
        other = tiny();
        other.optimizer.learningRate = 0.1;
        refused(other, "optimizer", schedule);
        other = tiny();
        other.optimizer.clipNorm = 0;
        refused(other, "clip_norm", schedule);
        other = tiny();
        other.microbatchSize = 4;
        refused(other, "samples_per_step", schedule);
        refused(tiny(), "samples_per_step", librarySchedule("1f1b", 2, 6));
        refused(tiny(), "weights", librarySchedule("pipedream-2bw", 2, 4));
        QTemporaryDir data;
        QFile text(data.filePath("data.txt"));
        QVERIFY(text.open(QIODevice::WriteOnly));
        for (int i = 0; i < 1000; ++i) text.write("\1\2\3");
        text.close();
        other = tiny();
        auto fed = other.workload->withData(text.fileName().toStdString());
        QVERIFY2(fed, fed ? "" : fed.error().message.c_str());
        other.workload = *fed;
        refused(other, "data", schedule);
    }

    // A file that lacks a tensor, or has one of another shape, ends the training before its first step.
    void refusesPartsOfAFile()
    {
        const Schedule schedule = librarySchedule("1f1b", 2, 4);
        Folder folder;
        const Ran first = run(schedule, tiny(), 1);
        SavedTraining cut = first.saved;
        cut.tensors.erase("moment2.head.weight");
        const auto without = trainingOf(schedule, from(tiny(), folder.file(cut)));
        QVERIFY(!without);
        QVERIFY2(without.error().message.find("head.weight") != std::string::npos, without.error().message.c_str());
        cut = first.saved;
        cut.tensors.at("head.weight").shape = {16, 32};
        const auto turned = trainingOf(schedule, from(tiny(), folder.file(cut)));
        QVERIFY(!turned);
        QVERIFY2(turned.error().message.find("16 × 32") != std::string::npos, turned.error().message.c_str());
    }
};

QTEST_GUILESS_MAIN(TestResume)
#include "tst_resume.moc"
