#include "widgets/record/record_setup.h"

#include <algorithm>

#include <QCoreApplication>
#include <QFileInfo>
#include <QLocale>
#include <QRegularExpression>

#include <fmt/format.h>

#include "schedules/base/small_file.h"
#include "schedules/base/text.h"
#include "schedules/layout/cluster.h"
#include "schedules/library/registry.h"
#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"
#include "schedules/text/link_text.h"
#include "widgets/library/schedule_groups.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"

namespace stagewright {
namespace {

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
    QStringList words{u"record"_s};
    for (const std::string& word : optionsOf(applying(setup))) words << QString::fromStdString(word);
    return words << u"-o"_s << output;
}

QString quoted(const QString& argument)
{
    static const QRegularExpression plain(u"^[A-Za-z0-9_./,=:+-]+$"_s);
    if (plain.match(argument).hasMatch()) return argument;
    QString inner = argument;
    inner.replace(u'\'', "'\\''"_L1);
    return u'\'' + inner + u'\'';
}

QString listed(QStringList names)
{
    if (names.size() < 2) return names.join(QString());
    const QString last = names.takeLast();
    return u"%1 and %2"_s.arg(names.join(", "_L1), last);
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
        return fault("model_file", u"your model is given as FILE:FUNCTION, such as decoder.py:build, not “%1”"_s.arg(
                                       words(s.modelFile)));
    if (!s.modelFile.empty() && !readable(s.modelFile.substr(0, colon)))
        return fault("model_file",
                     u"%1 can't be read; choose a Python file"_s.arg(words(s.modelFile.substr(0, colon))));
    if (s.host.empty() && s.python.find('/') != std::string::npos &&
        !QFileInfo(QString::fromStdString(s.python)).isExecutable())
        return fault("python", u"%1 is not a program; name a Python interpreter"_s.arg(words(s.python)));
    static const QRegularExpression option(u"^[a-z]([a-z-]*[a-z])?(=[^[:cntrl:]]*)?$"_s);
    for (const std::string& one : s.slurm)
        if (!option.match(QString::fromStdString(one)).hasMatch())
            return fault("slurm", u"“%1” is not a long option of sbatch; write for example nodes=2 time=1:00:00"_s.arg(
                                      words(one)));
    for (const std::string& name : s.schedules)
        if (namesFile(name) && !readable(name))
            return fault("scheduleFile", u"%1 can't be read; choose a schedule CSV"_s.arg(words(name)));
    if (s.data.empty()) return std::nullopt;
    if (!readable(s.data)) return fault("data", u"%1 can't be read; choose a text file"_s.arg(words(s.data)));
    if (const auto size = QFileInfo(QString::fromStdString(s.data)).size(); size < 1024)
        return fault("data", u"%1 has %2 bytes; at least 1,024 are needed"_s.arg(words(s.data)).arg(size));
    return std::nullopt;
}

std::optional<SetupFault> modelFault(const ModelNumbers& model)
{
    if (model.heads < 1 || model.hidden % model.heads != 0)
        return fault("heads",
                     u"hidden %1 is not a multiple of %2 heads; use %3"_s.arg(model.hidden)
                         .arg(model.heads)
                         .arg(model.heads < 1 ? model.hidden : (model.hidden / model.heads + 1) * model.heads));
    if (model.sequence < 2)
        return fault("sequence", u"a sequence needs at least 2 tokens, not %1"_s.arg(model.sequence));
    return std::nullopt;
}

std::optional<SetupFault> scheduleFault(const Setup& s, int layers)
{
    if (const auto link = parseLink(s.link); !s.link.empty() && !link) return faultOf(link.error(), u"link"_s);
    if (!s.cluster.empty()) {
        const auto cluster = namedCluster(s.cluster, [](const std::string& path) { return readSmallFile(path); });
        if (!cluster) return faultOf(cluster.error(), u"cluster"_s);
        if (!s.link.empty()) return fault("cluster", u"a cluster has the links; leave one of both out"_s);
        if (s.ranks * std::max(1, s.replicas) > cluster->devices)
            return fault("cluster",
                         u"%1 ranks on %2 devices; name a larger cluster"_s.arg(s.ranks * std::max(1, s.replicas))
                             .arg(cluster->devices));
    }
    if (s.schedules.empty()) return fault("schedule", u"choose at least one schedule"_s);
    for (const std::string& name : s.schedules) {
        if (namesFile(name)) continue;
        const auto made = readSchedule(name, s, {});
        if (!made) return faultOf(made.error(), u"schedule"_s);
        if (ownModel(s) && made->stages > layers)
            return fault("layers",
                         u"%1 has %2 stages but the model has only %3 layers; use at least %2 layers"_s.arg(words(name))
                             .arg(made->stages)
                             .arg(layers));
        if (const auto good = recomputed(*made, s, {}); !good) return faultOf(good.error(), u"recompute"_s);
        if (const auto good = choosePerturbation(s.perturb, made->ranks * std::max(1, s.replicas)); !good)
            return faultOf(good.error(), u"perturb"_s);
        if (const auto good = checkReplicas(*made, s, SharedBy::Training, layers); !good)
            return faultOf(good.error(), u"replicas"_s);
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
        return fault("replicas", u"PyTorch's pipelining trains one replica here; choose 1, or Stagewright's engine"_s);
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
    return wordsOf(setup, output) << u"--progress"_s << u"jsonl"_s << u"--stdin-control"_s << u"--json"_s;
}

QString commandLine(const Setup& setup, const QString& output)
{
    QString text = u"stagewright"_s;
    for (const QString& word : wordsOf(setup, output)) {
        static const QStringList lines{u"--model"_s, u"--engine"_s, u"--host"_s};
        const bool newLine = lines.contains(word);
        text += (newLine ? u" \\\n    "_s : u" "_s) + quoted(word);
    }
    return text;
}

QString conditionsOf(const Setup& setup)
{
    const Setup s = applying(setup), usual;
    QStringList parts;
    for (const auto& [key, name] : {std::pair("perturb", u"disturbance"_s),
                                    {"speed", u"speeds"_s},
                                    {"link", u"link"_s},
                                    {"cluster", u"cluster"_s},
                                    {"sends", u"sends"_s},
                                    {"lower", u"messages inserted"_s},
                                    {"channels", u"channels"_s},
                                    {"memory_limit", u"memory cap"_s},
                                    {"rank_memory", u"memory of a rank"_s},
                                    {"recompute_layers", u"recomputed layers"_s}}) {
        const SetupKey& of = *findSetupKey(key);
        if (const std::string value = textOf(s, of); value != textOf(usual, of)) parts << name + u' ' + words(value);
    }
    if (s.comm >= 0) parts << u"latency %1"_s.arg(s.comm);
    return parts.join(u", "_s);
}

QString inWords(const Setup& setup)
{
    const Setup s = applying(setup);
    const ModelNumbers model = ModelNumbers::of(s);
    QStringList names;
    for (const std::string& name : s.schedules) {
        const auto info = findSchedule(name);
        names << (info ? words((*info)->title).section(" ("_L1, 0, 0)
                       : QFileInfo(QString::fromStdString(name)).fileName());
    }
    const QLocale locale = QLocale::c();
    // Weights of the blocks and the two embeddings; the run's own count is exact.
    const double parameters = 12.0 * model.layers * model.hidden * model.hidden + 2.0 * 256 * model.hidden +
                              double(model.sequence) * model.hidden;
    QString text =
        ofLibrary(s)
            ? u"Trains %1 on %2 × %3."_s.arg(listed(names), countText(s.ranks, u"1 rank"_s, u"%L1 ranks"_s),
                                             countText(s.microbatches, u"1 microbatch"_s, u"%L1 microbatches"_s))
            : u"Trains the schedule in %1."_s.arg(listed(names));
    text += u' ';
    if (s.torch() && !s.modelFile.empty())
        text += u"Your model, from %1."_s.arg(words(s.modelFile));
    else
        text += u"Model: %1, hidden %2, %3, %4 tokens, about %5 million weights."_s
                    .arg(countText(model.layers, u"1 layer"_s, u"%1 layers"_s))
                    .arg(model.hidden)
                    .arg(countText(model.heads, u"1 head"_s, u"%1 heads"_s))
                    .arg(model.sequence)
                    .arg(locale.toString(parameters / 1e6, 'f', parameters < 1e7 ? 2 : 0));
    if (s.replicas > 1) {
        text += u' ' + u"%1 replicas of the pipeline train it together"_s.arg(s.replicas);
        text += shares(s) ? u" and share its %1."_s.arg(
                                s.shard.starts_with("weights")     ? u"weights, gradients and optimizer state"_s
                                : s.shard.starts_with("gradients") ? u"gradients and optimizer state"_s
                                                                   : u"optimizer state"_s)
                          : u"; each has all of its state."_s;
        if (s.shard.ends_with(":by=layer"))
            text += u' ' + u"Each owns whole layers."_s;
        else if (s.shard.find(":shares=") != std::string::npos)
            text += u' ' + u"Their parts: %1."_s.arg(listed(words(s.shard).section(u'=', 1).split(u',')));
        if (!s.replicaBatch.empty())
            text += u' ' + u"Their microbatches: %1."_s.arg(listed(words(s.replicaBatch).split(u',')));
        if (!s.cut.empty())
            text += u' ' +
                    u"Partial backward: they go back to layers %1. That is not "
                    "synchronous training; the distance from it is measured."_s.arg(listed(words(s.cut).split(u',')));
    }
    if (s.torch()) {
        text += u' ' + (s.backend.empty() ? u"Under PyTorch's pipelining, over gloo, one process a rank."_s
                                          : u"Under PyTorch's pipelining, over NCCL, one process and GPU a rank."_s);
    } else if (!s.backend.empty()) {
        text += u' ';
        text +=
            s.devices.empty() ? u"On all usable GPUs"_s : u"On GPU %1"_s.arg(words(textOf(s, *findSetupKey("device"))));
        text += s.precision.empty() || s.precision == "bf16" ? u", bf16 with fp32 master weights"_s
                                                             : u", %1"_s.arg(words(s.precision));
        text += u'.';
    } else if (s.precision == "bf16") {
        text += u' ' + u"On the processor, bf16 with fp32 master weights."_s;
    }
    text += u' ';
    text +=
        s.torch()
            ? u"%1 warm-up and %2 measured steps per schedule, one schedule after the other; each "
              "run comes with its plan."_s.arg(s.warmup)
                  .arg(s.steps)
            : u"%1 warm-up and %2 measured steps per schedule, same seed and data, taken in turn."_s.arg(s.warmup).arg(
                  s.steps);
    if (const QString under = conditionsOf(s); !under.isEmpty()) text += u' ' + u"Conditions: %1."_s.arg(under);
    if (!s.torch() && s.processes) text += u' ' + u"Every rank is a process."_s;
    if (!s.slurm.empty())
        text += u' ' + (s.host.empty() ? u"In this computer's Slurm queue."_s
                                       : u"In the Slurm queue of %1."_s.arg(words(s.host)));
    else if (!s.host.empty())
        text += u' ' + u"On %1."_s.arg(words(s.host));
    if (s.elsewhere()) text += u' ' + u"It goes on there if this window or the connection ends."_s;
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
    // how a run keeps it, and the key that sets it
    constexpr std::pair<std::string_view, std::string_view> same[] = {{"model", "model"},
                                                                      {"microbatch_size", "microbatch_size"},
                                                                      {"shard", "shard"},
                                                                      {"gather", "gather"},
                                                                      {"reduce", "reduce"},
                                                                      {"cut", "cut"},
                                                                      {"replica_batch", "replica_batch"},
                                                                      {"seed", "seed"},
                                                                      {"sharing", "sharing"},
                                                                      {"stage_layers", "stage_layers"},
                                                                      {"backend", "backend"},
                                                                      {"perturb", "perturb"},
                                                                      {"memory_limit", "memory_limit"},
                                                                      {"rank_memory", "rank_memory"},
                                                                      {"recomputed_layers", "recompute_layers"},
                                                                      {"sends", "sends"},
                                                                      {"receives", "receives"},
                                                                      {"lowering", "lower"},
                                                                      {"channels", "channels"},
                                                                      {"cluster", "cluster"}};
    for (const auto& [key, value] : run.configuration) {
        const auto known =
            std::find_if(std::begin(same), std::end(same), [&key = key](const auto& one) { return one.first == key; });
        if (known != std::end(same))
            static_cast<void>(setKey(s, *findSetupKey(known->second), value)); // what another version wrote is left out
        else if (key == "speed")
            s.speed = value.substr(0, value.find(' ')); // "1,0.5 (emulated)"
        else if (key == "clip_norm")
            s.clip = numberOf(value).value_or(0); // "none"
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
        static const QRegularExpression link(u"^([0-9]+) ns(?:, ([0-9.e+]+) bytes/s)?"_s);
        if (const auto match = link.match(text); key == "link" && match.hasMatch())
            s.link = fmt::format("{}ns{}", match.captured(1).toStdString(),
                                 match.captured(2).isEmpty() ? std::string()
                                                             : "," + match.captured(2).toStdString() + "B/s");
        static const QRegularExpression optimizer(u"^(adamw|sgd|kfac)"_s);
        if (const auto match = optimizer.match(text); key == "optimizer" && match.hasMatch()) {
            s.optimizer = match.captured(1).toStdString();
            static const QRegularExpression refresh(u"refreshed every ([0-9]+) steps"_s);
            if (const auto found = refresh.match(text); found.hasMatch() && found.captured(1) != u"1"_s)
                s.optimizer += ":refresh=" + found.captured(1).toStdString();
            for (const auto& [name, place] : {std::pair("learning rate", &Setup::learningRate),
                                              {"momentum", &Setup::momentum},
                                              {"weight decay", &Setup::weightDecay}}) {
                const QRegularExpression number(u"%1 ([0-9.e+-]+)"_s.arg(QLatin1StringView(name)));
                if (const auto found = number.match(text); found.hasMatch()) s.*place = found.captured(1).toDouble();
            }
        }
    }
    if (!s.cluster.empty()) s.link.clear(); // they are its own
    s.model = ModelNumbers::of(s).text();
    if (s.backend == "cpu") s.backend.clear();
    if (s.gather == "batch") s.gather.clear();
    if (s.reduce == "late") s.reduce.clear();
    return s;
}

} // namespace stagewright
