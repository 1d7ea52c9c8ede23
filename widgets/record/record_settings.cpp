#include "widgets/record/record_settings.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QLocale>
#include <QRegularExpression>

#include "schedules/library/registry.h"
#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"
#include "schedules/model/state_sharding.h"
#include "widgets/numbers.h"

namespace stagewright {
namespace {

struct SettingText {
    Q_DECLARE_TR_FUNCTIONS(RecordSettings)
};

QString modelText(const RecordSettings& s)
{
    return QStringLiteral("layers=%1,hidden=%2,heads=%3,seq=%4")
        .arg(s.layers)
        .arg(s.hidden)
        .arg(s.heads)
        .arg(s.sequence);
}

QStringList slurmOptions(const RecordSettings& s)
{
    const QStringList options = s.slurm.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    return options.isEmpty() ? QStringList{QStringLiteral("nodes=1")} : options;
}

// Engine and place.
QStringList placeArguments(const RecordSettings& s)
{
    QStringList args;
    if (s.torch()) {
        args << QStringLiteral("--engine") << s.engine;
        if (!s.python.isEmpty()) args << QStringLiteral("--python") << s.python;
        if (!s.modelFile.isEmpty()) args << QStringLiteral("--model-file") << s.modelFile;
    } else if (s.processes) {
        args << QStringLiteral("--processes");
    }
    if (!s.host.isEmpty()) args << QStringLiteral("--host") << s.host;
    if (s.queue)
        for (const QString& option : slurmOptions(s)) args << QStringLiteral("--slurm") << option;
    return args;
}

QStringList commonArguments(const RecordSettings& s, const QString& output)
{
    if (!s.arguments.isEmpty())
        return QStringList{QStringLiteral("record")} << s.arguments << QStringLiteral("-o") << output;
    QStringList args{QStringLiteral("record")};
    if (!s.scheduleFile.isEmpty() && !s.baselineFile.isEmpty()) args << QStringLiteral("--schedule") << s.baselineFile;
    args << QStringLiteral("--schedule")
         << (s.scheduleFile.isEmpty() ? s.schedules.join(QLatin1Char(',')) : s.scheduleFile);
    auto add = [&](const char* name, const QString& value) { args << QLatin1String(name) << value; };
    if (s.scheduleFile.isEmpty()) {
        add("--ranks", QString::number(s.ranks));
        add("--microbatches", QString::number(s.microbatches));
        if (s.chunks > 0) add("--chunks", QString::number(s.chunks));
    }
    if (s.replicas > 1) {
        add("--replicas", QString::number(s.replicas));
        if (s.sharded()) add("--shard", s.shardText());
        if (s.shard == QLatin1String("weights") && !s.gather.isEmpty()) add("--gather", s.gather);
        if (!s.reduce.isEmpty()) add("--reduce", s.reduce);
        if (!s.replicaBatch.isEmpty()) add("--replica-batch", s.replicaBatch);
        if (!s.cut.isEmpty()) add("--cut", s.cut);
    }
    const bool ownModel = !s.torch() || s.modelFile.isEmpty();
    if (ownModel) add("--model", modelText(s));
    add("--microbatch-size", QString::number(s.microbatchSize));
    add("--steps", QString::number(s.steps));
    add("--warmup", QString::number(s.warmup));
    args << placeArguments(s);
    if (s.torch()) {
        if (!s.backend.isEmpty()) add("--backend", s.backend);
    } else if (!s.backend.isEmpty()) {
        add("--backend", s.backend);
        if (!s.devices.isEmpty()) add("--device", s.devices);
        if (!s.precision.isEmpty()) add("--precision", s.precision);
        if (!s.sharing.isEmpty()) add("--sharing", s.sharing);
        if (!s.transport.isEmpty()) add("--transport", s.transport);
    } else {
        // fp32 is the default, tf32 is for GPUs
        if (s.precision == QLatin1String("bf16")) add("--precision", s.precision);
        if (!s.clock.isEmpty()) add("--clock", s.clock);
    }
    if (!s.link.isEmpty() && !s.torch()) add("--link", s.link);
    if (!s.optimizer.isEmpty()) add("--optimizer", s.optimizer);
    if (!s.learningRate.isEmpty()) add("--lr", s.learningRate);
    if (!s.stageLayers.isEmpty() && ownModel) add("--stage-layers", s.stageLayers);
    add("--seed", QString::number(s.seed));
    if (!s.dataFile.isEmpty() && ownModel) add("--data", s.dataFile);
    add("-o", output);
    return args;
}

QString quoted(const QString& argument)
{
    static const QRegularExpression plain(QStringLiteral("^[A-Za-z0-9_./,=:+-]+$"));
    if (plain.match(argument).hasMatch()) return argument;
    QString inner = argument;
    inner.replace(QLatin1Char('\''), QLatin1String("'\\''"));
    return QLatin1Char('\'') + inner + QLatin1Char('\'');
}

QString listed(QStringList names)
{
    if (names.size() < 2) return names.join(QString());
    const QString last = names.takeLast();
    return SettingText::tr("%1 and %2").arg(names.join(QLatin1String(", ")), last);
}

std::optional<SettingsFault> fault(const char* field, const QString& message)
{
    return SettingsFault{QString::fromLatin1(field), message};
}

std::optional<SettingsFault> scheduleFault(const RecordSettings& s)
{
    if (!s.scheduleFile.isEmpty()) {
        if (!QFileInfo(s.scheduleFile).isReadable())
            return fault("scheduleFile",
                         SettingText::tr("%1 can't be read; choose a schedule CSV").arg(s.scheduleFile));
        return std::nullopt;
    }
    if (s.schedules.isEmpty()) return fault("schedules", SettingText::tr("choose at least one schedule"));
    for (const QString& name : s.schedules) {
        auto made = makeSchedule(name.toStdString(), Shape{s.ranks, s.microbatches, s.chunks});
        if (!made) {
            QString text = QString::fromStdString(made.error().message);
            if (!made.error().remedy.empty()) text += QLatin1String("; ") + QString::fromStdString(made.error().remedy);
            return fault("schedules", text);
        }
        const bool ownModel = !s.torch() || s.modelFile.isEmpty();
        if (ownModel && made->stages > s.layers)
            return fault("layers",
                         SettingText::tr("%1 has %2 stages but the model has only %3 layers; use at least %2 layers")
                             .arg(name)
                             .arg(made->stages)
                             .arg(s.layers));
    }
    return std::nullopt;
}

} // namespace

namespace {

// Engine and place.
std::optional<SettingsFault> placeFault(const RecordSettings& s)
{
    if (s.torch() && !s.modelFile.isEmpty()) {
        const QString file = s.modelFile.section(QLatin1Char(':'), 0, -2);
        if (file.isEmpty() || s.modelFile.endsWith(QLatin1Char(':')))
            return fault("modelFile",
                         SettingText::tr("your model is given as FILE:FUNCTION, such as decoder.py:build, not “%1”")
                             .arg(s.modelFile));
        if (!QFileInfo(file).isFile())
            return fault("modelFile", SettingText::tr("%1 can't be read; choose a Python file").arg(file));
    }
    if (s.torch() && s.host.isEmpty() && !s.python.isEmpty() && s.python.contains(QLatin1Char('/')) &&
        !QFileInfo(s.python).isExecutable())
        return fault("python", SettingText::tr("%1 is not a program; name a Python interpreter").arg(s.python));
    static const QRegularExpression option(QStringLiteral("^[a-z]([a-z-]*[a-z])?(=[^[:cntrl:]]*)?$"));
    if (s.queue)
        for (const QString& one : slurmOptions(s))
            if (!option.match(one).hasMatch())
                return fault("slurm", SettingText::tr(
                                          "“%1” is not a long option of sbatch; write for example nodes=2 time=1:00:00")
                                          .arg(one));
    return std::nullopt;
}

} // namespace

QString RecordSettings::shardText() const
{
    if (owners.isEmpty()) return shard;
    return shard +
           (owners == QLatin1String("layer") ? QStringLiteral(":by=layer") : QStringLiteral(":shares=") + owners);
}

namespace {

QString faultText(const Error& error)
{
    return QString::fromStdString(error.message + (error.remedy.empty() ? "" : "; " + error.remedy));
}

std::optional<SettingsFault> replicaFault(const RecordSettings& s)
{
    if (s.replicas < 1)
        return fault("replicas", SettingText::tr("at least one replica is needed, not %1").arg(s.replicas));
    if (s.replicas == 1) return std::nullopt;
    if (s.torch())
        return fault(
            "replicas",
            SettingText::tr("PyTorch's pipelining trains one replica here; choose 1, or Stagewright's engine"));
    if (s.sharded()) {
        const auto sharding = parseSharding(s.shardText().toStdString());
        if (!sharding) return fault("owners", faultText(sharding.error()));
        if (const auto members = checkMembers(*sharding, s.replicas); !members)
            return fault("owners", faultText(members.error()));
    }
    if (!s.replicaBatch.isEmpty())
        if (const auto batches = parseReplicaBatches(s.replicaBatch.toStdString(), s.replicas); !batches)
            return fault("replicaBatch", faultText(batches.error()));
    if (!s.cut.isEmpty()) {
        if (const auto cuts = parseCuts(s.cut.toStdString(), s.replicas, s.layers); !cuts)
            return fault("cut", faultText(cuts.error()));
        if (s.shard == QLatin1String("gradients") || s.shard == QLatin1String("weights"))
            return fault("cut", SettingText::tr("replicas that go back to different layers can't share gradients or "
                                                "weights; share nothing, or the optimizer state"));
    }
    return std::nullopt;
}

} // namespace

std::optional<SettingsFault> firstFault(const RecordSettings& s)
{
    if (auto found = placeFault(s)) return found;
    if (s.ranks < 1) return fault("ranks", SettingText::tr("at least one rank is needed, not %1").arg(s.ranks));
    if (s.microbatches < 1)
        return fault("microbatches", SettingText::tr("at least one microbatch is needed, not %1").arg(s.microbatches));
    if (s.steps < 1)
        return fault("steps", SettingText::tr("at least one measured step is needed, not %1").arg(s.steps));
    if (s.warmup < 0) return fault("warmup", SettingText::tr("warm-up steps can't be negative"));
    if (s.heads < 1 || s.hidden % s.heads != 0)
        return fault("heads", SettingText::tr("hidden %1 is not a multiple of %2 heads; use %3")
                                  .arg(s.hidden)
                                  .arg(s.heads)
                                  .arg(s.heads < 1 ? s.hidden : (s.hidden / s.heads + 1) * s.heads));
    if (s.sequence < 2)
        return fault("sequence", SettingText::tr("a sequence needs at least 2 tokens, not %1").arg(s.sequence));
    static const QRegularExpression numbers(QStringLiteral("^([0-9]{1,4}(,[0-9]{1,4})*)?$"));
    if (!s.backend.isEmpty() && !numbers.match(s.devices).hasMatch())
        return fault("devices", SettingText::tr("GPUs are given by number, such as 0,1, not “%1”").arg(s.devices));
    if (auto found = replicaFault(s)) return found;
    if (auto found = scheduleFault(s)) return found;
    if (!s.dataFile.isEmpty()) {
        const QFileInfo info(s.dataFile);
        if (!info.isReadable() || !info.isFile())
            return fault("dataFile", SettingText::tr("%1 can't be read; choose a text file").arg(s.dataFile));
        if (info.size() < 1024)
            return fault(
                "dataFile",
                SettingText::tr("%1 has %2 bytes; at least 1,024 are needed").arg(s.dataFile).arg(info.size()));
    }
    return std::nullopt;
}

QStringList recordArguments(const RecordSettings& settings, const QString& output)
{
    return commonArguments(settings, output) << QStringLiteral("--progress") << QStringLiteral("jsonl")
                                             << QStringLiteral("--stdin-control") << QStringLiteral("--json");
}

QString commandLine(const RecordSettings& settings, const QString& output)
{
    QString text = QStringLiteral("stagewright");
    for (const QString& argument : commonArguments(settings, output)) {
        static const QStringList lines{QStringLiteral("--model"), QStringLiteral("--steps"), QStringLiteral("--engine"),
                                       QStringLiteral("--host")};
        const bool newLine = lines.contains(argument);
        text += (newLine ? QStringLiteral(" \\\n    ") : QStringLiteral(" ")) + quoted(argument);
    }
    return text;
}

QString inWords(const RecordSettings& s)
{
    QStringList names;
    if (s.scheduleFile.isEmpty()) {
        for (const QString& name : s.schedules) {
            auto info = findSchedule(name.toStdString());
            const auto title =
                info ? QString::fromUtf8((*info)->title.data(), static_cast<int>((*info)->title.size())) : name;
            names << title.section(QLatin1String(" ("), 0, 0);
        }
    } else {
        names << QFileInfo(s.scheduleFile).fileName();
    }
    const QLocale locale = QLocale::c();
    // Weights of the blocks and the two embeddings; the run's own count is exact.
    const double parameters =
        12.0 * s.layers * s.hidden * s.hidden + 2.0 * 256 * s.hidden + double(s.sequence) * s.hidden;
    QString text =
        s.scheduleFile.isEmpty()
            ? SettingText::tr("Trains %1 on %2 × %3.")
                  .arg(listed(names), countText(s.ranks, SettingText::tr("1 rank"), SettingText::tr("%L1 ranks")),
                       countText(s.microbatches, SettingText::tr("1 microbatch"), SettingText::tr("%L1 microbatches")))
            : SettingText::tr("Trains the schedule in %1.").arg(listed(names));
    text += QLatin1Char(' ');
    if (s.torch() && !s.modelFile.isEmpty())
        text += SettingText::tr("Your model, from %1.").arg(s.modelFile);
    else
        text += SettingText::tr("Model: %1, hidden %2, %3, %4 tokens, about %5 million weights.")
                    .arg(countText(s.layers, SettingText::tr("1 layer"), SettingText::tr("%1 layers")))
                    .arg(s.hidden)
                    .arg(countText(s.heads, SettingText::tr("1 head"), SettingText::tr("%1 heads")))
                    .arg(s.sequence)
                    .arg(locale.toString(parameters / 1e6, 'f', parameters < 1e7 ? 2 : 0));
    if (s.replicas > 1) {
        text += QLatin1Char(' ') + SettingText::tr("%1 replicas of the pipeline train it together").arg(s.replicas);
        text += s.sharded() ? SettingText::tr(" and share its %1.")
                                  .arg(s.shard == QLatin1String("weights")
                                           ? SettingText::tr("weights, gradients and optimizer state")
                                       : s.shard == QLatin1String("gradients")
                                           ? SettingText::tr("gradients and optimizer state")
                                           : SettingText::tr("optimizer state"))
                            : SettingText::tr("; each has all of its state.");
        if (s.sharded() && s.owners == QLatin1String("layer"))
            text += QLatin1Char(' ') + SettingText::tr("Each owns whole layers.");
        else if (s.sharded() && !s.owners.isEmpty())
            text +=
                QLatin1Char(' ') + SettingText::tr("Their parts: %1.").arg(listed(s.owners.split(QLatin1Char(','))));
        if (!s.replicaBatch.isEmpty())
            text += QLatin1Char(' ') +
                    SettingText::tr("Their microbatches: %1.").arg(listed(s.replicaBatch.split(QLatin1Char(','))));
        if (!s.cut.isEmpty())
            text += QLatin1Char(' ') + SettingText::tr("Partial backward: they go back to layers %1. That is not "
                                                       "synchronous training; the distance from it is measured.")
                                           .arg(listed(s.cut.split(QLatin1Char(','))));
    }
    if (s.torch()) {
        text += QLatin1Char(' ') +
                (s.backend.isEmpty()
                     ? SettingText::tr("Under PyTorch's pipelining, over gloo, one process a rank.")
                     : SettingText::tr("Under PyTorch's pipelining, over NCCL, one process and GPU a rank."));
    } else if (!s.backend.isEmpty()) {
        text += QLatin1Char(' ');
        text +=
            s.devices.isEmpty() ? SettingText::tr("On all usable GPUs") : SettingText::tr("On GPU %1").arg(s.devices);
        text += s.precision.isEmpty() || s.precision == QLatin1String("bf16")
                    ? SettingText::tr(", bf16 with fp32 master weights")
                    : SettingText::tr(", %1").arg(s.precision);
        text += QLatin1Char('.');
    } else if (s.precision == QLatin1String("bf16")) {
        text += QLatin1Char(' ') + SettingText::tr("On the processor, bf16 with fp32 master weights.");
    }
    text += QLatin1Char(' ');
    text += s.torch()
                ? SettingText::tr("%1 warm-up and %2 measured steps per schedule, one schedule after the other; each "
                                  "run comes with its plan.")
                      .arg(s.warmup)
                      .arg(s.steps)
                : SettingText::tr("%1 warm-up and %2 measured steps per schedule, same seed and data, taken in turn.")
                      .arg(s.warmup)
                      .arg(s.steps);
    if (!s.torch() && s.processes) text += QLatin1Char(' ') + SettingText::tr("Every rank is a process.");
    if (s.queue)
        text += QLatin1Char(' ') + (s.host.isEmpty() ? SettingText::tr("In this computer's Slurm queue.")
                                                     : SettingText::tr("In the Slurm queue of %1.").arg(s.host));
    else if (!s.host.isEmpty())
        text += QLatin1Char(' ') + SettingText::tr("On %1.").arg(s.host);
    if (s.elsewhere())
        text += QLatin1Char(' ') + SettingText::tr("It goes on there if this window or the connection ends.");
    return text;
}

RecordSettings settingsOf(const Run& run)
{
    RecordSettings s;
    s.schedules = {QString::fromStdString(run.info.scheduleName)};
    s.replicas = run.schedule ? std::max(1, run.schedule->replicas) : 1;
    s.ranks = run.info.ranks / s.replicas; // of one pipeline
    s.microbatches = run.info.microbatches / s.replicas;
    s.chunks = s.ranks > 0 ? run.info.stages / s.ranks : 0;
    s.warmup = run.info.warmupSteps;
    s.steps = std::max(1, run.info.steps - run.info.warmupSteps);
    s.chunks = std::max(0, s.chunks);
    if (run.info.clock == "wall" || run.info.clock == "virtual") s.clock = QString::fromStdString(run.info.clock);
    for (const auto& [rawKey, rawValue] : run.configuration) {
        QString key = QString::fromStdString(rawKey).toLower();
        key.replace(QLatin1Char('-'), QLatin1Char('_'));
        const QString value = QString::fromStdString(rawValue);
        if (key == QLatin1String("model")) {
            for (const QString& part : value.split(QLatin1Char(','))) {
                const QString name = part.section(QLatin1Char('='), 0, 0).trimmed();
                bool ok = false;
                const int parsed = part.section(QLatin1Char('='), 1).trimmed().toInt(&ok);
                if (!ok) continue;
                if (name == QLatin1String("layers")) s.layers = parsed;
                if (name == QLatin1String("hidden")) s.hidden = parsed;
                if (name == QLatin1String("heads")) s.heads = parsed;
                if (name == QLatin1String("seq") || name == QLatin1String("sequence")) s.sequence = parsed;
            }
        } else if (key == QLatin1String("microbatch_size")) {
            bool ok = false;
            const int parsed = value.toInt(&ok);
            if (ok) s.microbatchSize = parsed;
        } else if (key == QLatin1String("shard")) {
            if (const auto sharding = parseSharding(value.toStdString());
                sharding && sharding->level != ShardLevel::None) {
                s.shard = value.section(QLatin1Char(':'), 0, 0);
                const QString owners = value.section(QLatin1Char(':'), 1);
                s.owners =
                    sharding->by == ShardBy::Layer ? QStringLiteral("layer") : owners.section(QLatin1Char('='), 1);
            }
        } else if (key == QLatin1String("gather")) {
            s.gather = value == QLatin1String("batch") ? QString() : value;
        } else if (key == QLatin1String("reduce")) {
            s.reduce = value == QLatin1String("late") ? QString() : value;
        } else if (key == QLatin1String("replica_batch")) {
            s.replicaBatch = value;
        } else if (key == QLatin1String("cut")) {
            s.cut = value;
        } else if (key == QLatin1String("seed")) {
            bool ok = false;
            const quint64 parsed = value.toULongLong(&ok);
            if (ok) s.seed = parsed;
        } else if (key == QLatin1String("data")) {
            if (QFileInfo(value).isAbsolute() && QFileInfo(value).isFile()) s.dataFile = value;
        } else if (key == QLatin1String("link")) {
            static const QRegularExpression pattern(QStringLiteral("^([0-9]+) ns(?:, ([0-9.e+]+) bytes/s)?"));
            const auto match = pattern.match(value);
            if (!match.hasMatch()) continue;
            s.link = match.captured(1) + QStringLiteral("ns");
            if (!match.captured(2).isEmpty()) s.link += QLatin1Char(',') + match.captured(2) + QStringLiteral("B/s");
        } else if (key == QLatin1String("optimizer")) {
            static const QRegularExpression pattern(QStringLiteral("^(adamw|sgd)(?:.*learning rate ([0-9.e+-]+))?"));
            const auto match = pattern.match(value);
            s.optimizer = match.captured(1);
            s.learningRate = match.captured(2);
        } else if (key == QLatin1String("stage_layers")) {
            s.stageLayers = value;
        } else if (key == QLatin1String("backend")) {
            s.backend = value == QLatin1String("cpu") ? QString() : value;
        } else if (key == QLatin1String("precision")) {
            s.precision = value == QLatin1String("default") ? QString() : value;
        } else if (key == QLatin1String("sharing")) {
            s.sharing = value;
        } else if (key == QLatin1String("gpu_transport")) {
            s.transport = value == QLatin1String("nccl") ? value : QString();
        } else if (key == QLatin1String("transport")) {
            s.processes = value == QLatin1String("mpi");
        } else if (key == QLatin1String("engine")) {
            s.engine = value == QLatin1String("torch") ? value : QString();
        }
    }
    return s;
}

} // namespace stagewright
