#include "widgets/record/record_setup.h"

#include <algorithm>

#include <QCoreApplication>
#include <QFileInfo>
#include <QLocale>
#include <QRegularExpression>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"
#include "schedules/text/link_text.h"
#include "widgets/library/schedule_groups.h"
#include "widgets/numbers.h"

namespace stagewright {
namespace {

struct SetupText {
    Q_DECLARE_TR_FUNCTIONS(RecordSetup)
};

std::optional<SetupFault> fault(const char* field, const QString& message)
{
    return SetupFault{QString::fromLatin1(field), message};
}

// Whether a schedule is of the library; a file has its own shape.
bool ofLibrary(const Setup& setup) { return !std::all_of(setup.schedules.begin(), setup.schedules.end(), namesFile); }

bool ownModel(const Setup& setup) { return !setup.torch() || setup.modelFile.empty(); }

bool shares(const Setup& setup) { return setup.replicas > 1 && setup.shard != "none"; }

QStringList wordsOf(const Setup& setup, const QString& output)
{
    QStringList words{QStringLiteral("record")};
    for (const std::string& word : optionsOf(applying(setup))) words << QString::fromStdString(word);
    return words << QStringLiteral("-o") << output;
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
    return SetupText::tr("%1 and %2").arg(names.join(QLatin1String(", ")), last);
}

// Files that are read here, and the forms of what other programs read.
std::optional<SetupFault> fileFault(const Setup& s)
{
    const auto readable = [](const std::string& path) {
        const QFileInfo info(QString::fromStdString(path));
        return info.isReadable() && info.isFile();
    };
    const auto colon = s.modelFile.rfind(':');
    if (!s.modelFile.empty() && (colon == std::string::npos || colon == 0 || colon + 1 == s.modelFile.size()))
        return fault("model_file",
                     SetupText::tr("your model is given as FILE:FUNCTION, such as decoder.py:build, not “%1”")
                         .arg(words(s.modelFile)));
    if (!s.modelFile.empty() && !readable(s.modelFile.substr(0, colon)))
        return fault("model_file",
                     SetupText::tr("%1 can't be read; choose a Python file").arg(words(s.modelFile.substr(0, colon))));
    if (s.host.empty() && s.python.find('/') != std::string::npos &&
        !QFileInfo(QString::fromStdString(s.python)).isExecutable())
        return fault("python", SetupText::tr("%1 is not a program; name a Python interpreter").arg(words(s.python)));
    static const QRegularExpression option(QStringLiteral("^[a-z]([a-z-]*[a-z])?(=[^[:cntrl:]]*)?$"));
    for (const std::string& one : s.slurm)
        if (!option.match(QString::fromStdString(one)).hasMatch())
            return fault("slurm",
                         SetupText::tr("“%1” is not a long option of sbatch; write for example nodes=2 time=1:00:00")
                             .arg(words(one)));
    for (const std::string& name : s.schedules)
        if (namesFile(name) && !readable(name))
            return fault("scheduleFile", SetupText::tr("%1 can't be read; choose a schedule CSV").arg(words(name)));
    if (s.data.empty()) return std::nullopt;
    if (!readable(s.data))
        return fault("data", SetupText::tr("%1 can't be read; choose a text file").arg(words(s.data)));
    if (const auto size = QFileInfo(QString::fromStdString(s.data)).size(); size < 1024)
        return fault("data", SetupText::tr("%1 has %2 bytes; at least 1,024 are needed").arg(words(s.data)).arg(size));
    return std::nullopt;
}

std::optional<SetupFault> modelFault(const ModelNumbers& model)
{
    if (model.heads < 1 || model.hidden % model.heads != 0)
        return fault("heads",
                     SetupText::tr("hidden %1 is not a multiple of %2 heads; use %3")
                         .arg(model.hidden)
                         .arg(model.heads)
                         .arg(model.heads < 1 ? model.hidden : (model.hidden / model.heads + 1) * model.heads));
    if (model.sequence < 2)
        return fault("sequence", SetupText::tr("a sequence needs at least 2 tokens, not %1").arg(model.sequence));
    return std::nullopt;
}

std::optional<SetupFault> scheduleFault(const Setup& s, int layers)
{
    if (const auto link = parseLink(s.link); !s.link.empty() && !link)
        return faultOf(link.error(), QStringLiteral("link"));
    if (s.schedules.empty()) return fault("schedule", SetupText::tr("choose at least one schedule"));
    for (const std::string& name : s.schedules) {
        if (namesFile(name)) continue;
        const auto made = readSchedule(name, s, {});
        if (!made) return faultOf(made.error(), QStringLiteral("schedule"));
        if (ownModel(s) && made->stages > layers)
            return fault("layers",
                         SetupText::tr("%1 has %2 stages but the model has only %3 layers; use at least %2 layers")
                             .arg(words(name))
                             .arg(made->stages)
                             .arg(layers));
        if (const auto good = recomputed(*made, s, {}); !good)
            return faultOf(good.error(), QStringLiteral("recompute"));
        if (const auto good = checkReplicas(*made, s, SharedBy::Training, layers); !good)
            return faultOf(good.error(), QStringLiteral("replicas"));
    }
    return std::nullopt;
}

} // namespace

ModelNumbers ModelNumbers::of(const Setup& setup)
{
    ModelNumbers out;
    for (const std::string_view part : split(setup.model, ",")) {
        const auto [rawName, value] = keyValueOf(part);
        const std::string_view name = trimmed(rawName);
        for (const auto& [known, field] : {std::pair<std::string_view, int*>("layers", &out.layers),
                                           {"hidden", &out.hidden},
                                           {"heads", &out.heads},
                                           {"seq", &out.sequence},
                                           {"sequence", &out.sequence},
                                           {"vocab", &out.vocabulary}})
            if (name == known && value) readNumber(trimmed(*value), *field);
    }
    return out;
}

std::string ModelNumbers::text() const
{
    return fmt::format("layers={},hidden={},heads={},seq={}{}", layers, hidden, heads, sequence,
                       vocabulary > 0 ? fmt::format(",vocab={}", vocabulary) : "");
}

Setup usualRecording()
{
    Setup setup;
    setup.schedules = {"1f1b", "zb-h1"};
    setup.model = ModelNumbers().text();
    setup.steps = 8;
    return setup;
}

Setup applying(const Setup& setup)
{
    Setup s = honoured(setup);
    const Setup usual;
    if (!ofLibrary(s)) {
        s.ranks = usual.ranks;
        s.microbatches = usual.microbatches;
        s.chunks = usual.chunks;
    }
    if (s.replicas < 2) {
        s.shard = usual.shard;
        s.reduce.clear();
        s.replicaBatch.clear();
        s.cut.clear();
    }
    if (!s.shard.starts_with("weights")) s.gather.clear();
    if (s.backend.empty()) {
        s.devices.clear();
        s.sharing.clear();
        s.transport.clear();
        if (s.precision != "bf16") s.precision.clear(); // fp32 is the default, tf32 is for GPUs
    } else {
        s.clock = usual.clock; // sharing decides
    }
    return s;
}

std::optional<SetupFault> firstFault(const Setup& setup)
{
    if (setup.torch() && setup.replicas > 1)
        return fault("replicas",
                     SetupText::tr("PyTorch's pipelining trains one replica here; choose 1, or Stagewright's engine"));
    const Setup s = applying(setup);
    if (auto found = fileFault(s)) return found;
    for (const SetupKey& key : setupKeys()) {
        Setup again;
        if (const auto good = setKey(again, key, textOf(s, key)); !good)
            return faultOf(good.error(), QString::fromStdString(key.name()));
    }
    const ModelNumbers model = ModelNumbers::of(s);
    if (ownModel(s))
        if (auto found = modelFault(model)) return found;
    return scheduleFault(s, model.layers);
}

SetupFault faultOf(const Error& error, const QString& field)
{
    const std::string option = error.message.substr(0, error.message.find_first_of(" :"));
    const SetupKey* key = findSetupKey(option);
    std::string text = error.message;
    if (key != nullptr && text.substr(option.size()).starts_with(": ")) text.erase(0, option.size() + 2);
    if (!error.remedy.empty()) text += "; " + error.remedy;
    return {key != nullptr ? QString::fromStdString(key->name()) : field, QString::fromStdString(text)};
}

QStringList recordArguments(const Setup& setup, const QString& output)
{
    return wordsOf(setup, output) << QStringLiteral("--progress") << QStringLiteral("jsonl")
                                  << QStringLiteral("--stdin-control") << QStringLiteral("--json");
}

QString commandLine(const Setup& setup, const QString& output)
{
    QString text = QStringLiteral("stagewright");
    for (const QString& word : wordsOf(setup, output)) {
        static const QStringList lines{QStringLiteral("--model"), QStringLiteral("--engine"), QStringLiteral("--host")};
        const bool newLine = lines.contains(word);
        text += (newLine ? QStringLiteral(" \\\n    ") : QStringLiteral(" ")) + quoted(word);
    }
    return text;
}

QString inWords(const Setup& setup)
{
    const Setup s = applying(setup);
    const ModelNumbers model = ModelNumbers::of(s);
    QStringList names;
    for (const std::string& name : s.schedules) {
        const auto info = findSchedule(name);
        names << (info ? words((*info)->title).section(QLatin1String(" ("), 0, 0)
                       : QFileInfo(QString::fromStdString(name)).fileName());
    }
    const QLocale locale = QLocale::c();
    // Weights of the blocks and the two embeddings; the run's own count is exact.
    const double parameters = 12.0 * model.layers * model.hidden * model.hidden + 2.0 * 256 * model.hidden +
                              double(model.sequence) * model.hidden;
    QString text =
        ofLibrary(s)
            ? SetupText::tr("Trains %1 on %2 × %3.")
                  .arg(listed(names), countText(s.ranks, SetupText::tr("1 rank"), SetupText::tr("%L1 ranks")),
                       countText(s.microbatches, SetupText::tr("1 microbatch"), SetupText::tr("%L1 microbatches")))
            : SetupText::tr("Trains the schedule in %1.").arg(listed(names));
    text += QLatin1Char(' ');
    if (s.torch() && !s.modelFile.empty())
        text += SetupText::tr("Your model, from %1.").arg(words(s.modelFile));
    else
        text += SetupText::tr("Model: %1, hidden %2, %3, %4 tokens, about %5 million weights.")
                    .arg(countText(model.layers, SetupText::tr("1 layer"), SetupText::tr("%1 layers")))
                    .arg(model.hidden)
                    .arg(countText(model.heads, SetupText::tr("1 head"), SetupText::tr("%1 heads")))
                    .arg(model.sequence)
                    .arg(locale.toString(parameters / 1e6, 'f', parameters < 1e7 ? 2 : 0));
    if (s.replicas > 1) {
        text += QLatin1Char(' ') + SetupText::tr("%1 replicas of the pipeline train it together").arg(s.replicas);
        text += shares(s)
                    ? SetupText::tr(" and share its %1.")
                          .arg(s.shard.starts_with("weights") ? SetupText::tr("weights, gradients and optimizer state")
                               : s.shard.starts_with("gradients") ? SetupText::tr("gradients and optimizer state")
                                                                  : SetupText::tr("optimizer state"))
                    : SetupText::tr("; each has all of its state.");
        if (s.shard.ends_with(":by=layer"))
            text += QLatin1Char(' ') + SetupText::tr("Each owns whole layers.");
        else if (s.shard.find(":shares=") != std::string::npos)
            text += QLatin1Char(' ') +
                    SetupText::tr("Their parts: %1.")
                        .arg(listed(words(s.shard).section(QLatin1Char('='), 1).split(QLatin1Char(','))));
        if (!s.replicaBatch.empty())
            text += QLatin1Char(' ') +
                    SetupText::tr("Their microbatches: %1.").arg(listed(words(s.replicaBatch).split(QLatin1Char(','))));
        if (!s.cut.empty())
            text += QLatin1Char(' ') + SetupText::tr("Partial backward: they go back to layers %1. That is not "
                                                     "synchronous training; the distance from it is measured.")
                                           .arg(listed(words(s.cut).split(QLatin1Char(','))));
    }
    if (s.torch()) {
        text +=
            QLatin1Char(' ') +
            (s.backend.empty() ? SetupText::tr("Under PyTorch's pipelining, over gloo, one process a rank.")
                               : SetupText::tr("Under PyTorch's pipelining, over NCCL, one process and GPU a rank."));
    } else if (!s.backend.empty()) {
        text += QLatin1Char(' ');
        text += s.devices.empty() ? SetupText::tr("On all usable GPUs")
                                  : SetupText::tr("On GPU %1").arg(words(textOf(s, *findSetupKey("device"))));
        text += s.precision.empty() || s.precision == "bf16" ? SetupText::tr(", bf16 with fp32 master weights")
                                                             : SetupText::tr(", %1").arg(words(s.precision));
        text += QLatin1Char('.');
    } else if (s.precision == "bf16") {
        text += QLatin1Char(' ') + SetupText::tr("On the processor, bf16 with fp32 master weights.");
    }
    text += QLatin1Char(' ');
    text += s.torch()
                ? SetupText::tr("%1 warm-up and %2 measured steps per schedule, one schedule after the other; each "
                                "run comes with its plan.")
                      .arg(s.warmup)
                      .arg(s.steps)
                : SetupText::tr("%1 warm-up and %2 measured steps per schedule, same seed and data, taken in turn.")
                      .arg(s.warmup)
                      .arg(s.steps);
    if (!s.torch() && s.processes) text += QLatin1Char(' ') + SetupText::tr("Every rank is a process.");
    if (!s.slurm.empty())
        text += QLatin1Char(' ') + (s.host.empty() ? SetupText::tr("In this computer's Slurm queue.")
                                                   : SetupText::tr("In the Slurm queue of %1.").arg(words(s.host)));
    else if (!s.host.empty())
        text += QLatin1Char(' ') + SetupText::tr("On %1.").arg(words(s.host));
    if (s.elsewhere())
        text += QLatin1Char(' ') + SetupText::tr("It goes on there if this window or the connection ends.");
    return text;
}

Setup setupOf(const Run& run)
{
    Setup s = usualRecording();
    s.schedules = {run.info.scheduleName};
    s.replicas = run.schedule ? std::max(1, run.schedule->replicas) : 1;
    s.ranks = run.info.ranks / s.replicas; // of one pipeline
    s.microbatches = run.info.microbatches / s.replicas;
    s.chunks = s.ranks > 0 ? std::max(0, run.info.stages / s.ranks) : 0;
    s.warmup = run.info.warmupSteps;
    s.steps = std::max(1, run.info.steps - run.info.warmupSteps);
    if (run.info.clock == "wall" || run.info.clock == "virtual") s.clock = run.info.clock;
    constexpr std::string_view same[] = {"model",  "microbatch_size", "shard", "gather",  "reduce",
                                         "cut",    "replica_batch",   "seed",  "sharing", "stage_layers",
                                         "backend"};
    for (const auto& [key, value] : run.configuration) {
        if (std::find(std::begin(same), std::end(same), key) != std::end(same))
            static_cast<void>(setKey(s, *findSetupKey(key), value)); // what another version wrote is left out
        else if (key == "precision" && value != "default")
            s.precision = value;
        else if (key == "gpu_transport" && value == "nccl")
            s.transport = value;
        else if (key == "transport")
            s.processes = value == "mpi";
        else if (key == "engine" && value == "torch")
            s.engine = value;
        else if (const QFileInfo file(QString::fromStdString(value));
                 key == "data" && file.isAbsolute() && file.isFile())
            s.data = value;
        const QString text = QString::fromStdString(value);
        static const QRegularExpression link(QStringLiteral("^([0-9]+) ns(?:, ([0-9.e+]+) bytes/s)?"));
        if (const auto match = link.match(text); key == "link" && match.hasMatch())
            s.link = fmt::format("{}ns{}", match.captured(1).toStdString(),
                                 match.captured(2).isEmpty() ? std::string()
                                                             : "," + match.captured(2).toStdString() + "B/s");
        static const QRegularExpression rate(QStringLiteral("^(adamw|sgd)(?:.*learning rate ([0-9.e+-]+))?"));
        if (const auto match = rate.match(text); key == "optimizer" && match.hasMatch()) {
            s.optimizer = match.captured(1).toStdString();
            if (!match.captured(2).isEmpty()) s.learningRate = match.captured(2).toDouble();
        }
    }
    s.model = ModelNumbers::of(s).text();
    if (s.backend == "cpu") s.backend.clear();
    if (s.gather == "batch") s.gather.clear();
    if (s.reduce == "late") s.reduce.clear();
    return s;
}

} // namespace stagewright
