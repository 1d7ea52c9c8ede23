#include "schedules/setup/keys.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "schedules/base/text.h"
#include "schedules/execute/ready_order.h"
#include "schedules/layout/cluster.h"
#include "schedules/messages/lower.h"
#include "schedules/model/offload.h"
#include "schedules/plan/fill_plan.h"
#include "schedules/text/link_text.h"

namespace stagewright {

namespace {

constexpr unsigned lists = SetupShape | SetupSimulate | SetupCheck | SetupRecord;
constexpr unsigned costs = SetupSimulate | SetupPlan;
constexpr unsigned runs = SetupSimulate | SetupCheck | SetupRecord;
constexpr unsigned trains = SetupCheck | SetupRecord;
constexpr unsigned replicas = runs | SetupPlan | SetupSweep;
constexpr unsigned devices = trains | SetupKernels;

constexpr std::string_view noLinks = "PyTorch's links can't be emulated";
constexpr std::string_view ownTransport = "PyTorch's own transport sends the messages";
constexpr std::string_view noFactors = "PyTorch has no K-FAC";
constexpr std::string_view ownCheckpoints =
    "PyTorch recomputes through activation checkpointing, in a model of your own";
constexpr std::string_view onePipeline = "its pipelining trains one pipeline";
constexpr std::string_view noCopies = "activations of PyTorch's ranks stay where they are";
constexpr std::string_view ownSaves = "PyTorch's job saves and loads its own state";
constexpr std::string_view undisturbed = "PyTorch's ranks can't be disturbed";
constexpr std::string_view inItsConfig = "set it in the job's configuration";

std::string chunksFault(const std::string& text)
{
    const bool good = text == "auto" || wholeNumber(1, 64)(text).empty();
    return good ? std::string() : fmt::format("takes auto or a whole number from 1 to 64, not '{}'", text);
}

std::string channelFault(const std::string& text)
{
    Channels channels;
    return readLimit(text, channels) ? std::string() : fmt::format("'{}' is not a limit: {}", text, limitForms);
}

std::string ruleFault(const std::string& text)
{
    const auto rule = parseLowering(text);
    return rule ? std::string() : fmt::format("{}; {}", rule.error().message, rule.error().remedy);
}

std::string launcherFault(const std::string& text)
{
    const bool named = oneOf({"mpirun", "mpiexec", "srun", "flux", "jsrun", "torchrun"})(text).empty();
    const bool more = (text.starts_with("srun:") && text.size() > 5) ||
                      (text.starts_with("flux:") && text.size() > 5) ||
                      (text.starts_with("custom:") && text.size() > 7);
    return named || more ? std::string()
                         : fmt::format("takes mpirun, mpiexec, srun, srun:MPI, flux, flux:PMI, torchrun, jsrun or "
                                       "custom:WORDS, not '{}'",
                                       text);
}

std::string offloadFault(const std::string& text)
{
    const auto rule = parseOffload(text);
    return rule ? std::string() : fmt::format("{}; {}", rule.error().message, rule.error().remedy);
}

std::string fillFault(const std::string& text)
{
    const auto rule = parseFill(text);
    return rule ? std::string() : fmt::format("{}; {}", rule.error().message, rule.error().remedy);
}

std::string optimizerFault(const std::string& text)
{
    const auto choice = parseOptimizer(text);
    return choice ? std::string() : fmt::format("{}; {}", choice.error().message, choice.error().remedy);
}

std::string orderFault(const std::string& text)
{
    const auto order = parseReadyOrder(text);
    return order ? std::string() : fmt::format("{}; {}", order.error().message, order.error().remedy);
}

std::string copiesFault(const std::string& text)
{
    const auto copies = parseCopies(text);
    return copies ? std::string() : fmt::format("{}; {}", copies.error().message, copies.error().remedy);
}

std::string variableFault(const std::string& text)
{
    const std::string_view name = keyValueOf(text).key;
    const bool good = text.size() > name.size() && !name.empty() && !isDigit(name.front()) &&
                      std::all_of(name.begin(), name.end(), [](char c) {
                          return c == '_' || isDigit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
                      });
    return good ? std::string() : fmt::format("takes NAME=VALUE, not '{}'", text);
}

std::string interfaceFault(const std::string& text)
{
    const bool good = std::none_of(text.begin(), text.end(), [](char c) { return isBlank(c) || c == '/'; });
    return good ? std::string() : fmt::format("takes the name of a network interface, not '{}'", text);
}

const ValueCheck anything;

std::vector<SetupKey> allKeys()
{
    using S = Setup;
    return {
        {"-s,--schedule", &S::schedules, runs | SetupLesson | SetupReadsFile, "NAME|FILE.csv",
         "A schedule, by name or from a CSV [1f1b]"},
        {"-p,--ranks", &S::ranks, lists | SetupLesson, "P", "Ranks (devices) of the pipeline [4]",
         wholeNumber(1, 4096)},
        {"-m,--microbatches", &S::microbatches, lists | SetupLesson, "M", "Microbatches of a step [8]",
         wholeNumber(1, 1'000'000)},
        {"--chunks", &S::chunks, lists | SetupLesson, "V", "Stages per rank; auto: schedule default [auto]",
         chunksFault, "", "", "auto"},
        {"--overlap", &S::overlap, lists, "atomic|serial",
         "An overlapped pair: atomic, one interval that needs the inputs of both; serial, one op after the other "
         "[atomic]",
         oneOf({"atomic", "serial"})},
        {"--steps", &S::steps, trains | SetupLesson, "N",
         "Measured steps [300; 8 for several schedules or under PyTorch]", wholeNumber(1, 100'000'000)},
        {"--warmup", &S::warmup, SetupRecord | SetupLesson, "N",
         "Steps before the measured ones, excluded from the figures [1]", wholeNumber(0, 1'000'000), "",
         "its profiler traces the last step"},
        {"--keep-warmup", &S::keepWarmup, SetupRecord, "", "Also keep runs stopped before their first measured step",
         anything, "PyTorch's warm-up steps are not traced"},
        {"--checkpoint-every", &S::checkpointEvery, SetupRecord, "N",
         "Save what the next step starts from every N steps, warm-up included, as FILE.stepN.safetensors beside the "
         "run file, while training goes on [never]",
         wholeNumber(1, 100'000'000), ownSaves, "", "never"},
        {"--keep,--keep-checkpoints", &S::keepCheckpoints, SetupRecord, "K", "Newest checkpoints to keep [2]",
         wholeNumber(1, 1'000'000), ownSaves},
        {"--resume", &S::resume, SetupRecord | SetupReadsFile, "FILE",
         "Go on from a checkpoint, also under another schedule, with other ranks, replicas or sharding; --steps and "
         "--warmup count from there",
         anything, ownSaves},
        {"--model", &S::model, trains | SetupLesson, "KEY=N,…",
         "The model; vocab makes the head heavier [layers=8,hidden=128,heads=4,seq=128,vocab=256]", anything, "",
         inItsConfig},
        {"--microbatch-size", &S::microbatchSize, devices | SetupLesson, "B", "Samples per microbatch [4]",
         wholeNumber(1, 65'536), "", inItsConfig},
        {"--costs", &S::costs, costs, "F=1,I=1,W=1|FILE.json|analytic:MODEL@DEVICE",
         "In units (1: the forward of a rank), B defaults to I+W [F=1,I=1,W=1]; or a file of costs; or from a model "
         "and a device (analytic:gpt-6.2b@a100:b=1:efficiency=0.5; 'stagewright devices --presets' lists both)"},
        {"--costs-from", &S::costsFrom, costs | SetupSweep, "FILE#RUN", "Costs fitted from a recorded run", anything,
         "", "", "", "--costs"},
        {"--free-at-input", &S::freeAtInput, costs, "A",
         "Share of an activation that I frees; W frees the rest; below 0: I adds what W needs [0]", realNumber(-1, 1)},
        {"--keep", &S::keep, costs | SetupLesson, "A",
         "Share of an activation that a recomputed stage keeps: its input; unit costs only [0]", realNumber(0, 1)},
        {"--input-share", &S::inputShare, costs, "A",
         "Share of a measured full backward that is I, where only B was measured [from its layers, another run or the "
         "model's shape]",
         realNumber(0, 1)},
        {"--stage-layers", &S::stageLayers, runs | SetupPlan | SetupLesson, "N,N…",
         "Layers of each stage, such as 4,4,3,1: costs in proportion to them", wholeNumber(0, 65'536), "", inItsConfig},
        {"--layout", &S::layout, runs | SetupPlan, "TEXT",
         "The same as Megatron-LM writes it, such as 'Ett|(tt|)*6L': sets the layers of each stage and --chunks",
         anything, "", inItsConfig, "", "--stage-layers"},
        {"--clock", &S::clock, SetupRecord | SetupLesson, "CLOCK",
         "wall; virtual: projected for as many devices as ranks; auto: wall if there are enough cores [auto]",
         oneOf({"auto", "wall", "virtual"}), "PyTorch's ranks run on the wall clock", "", "", "", "virtual"},
        {"--comm", &S::comm, runs | SetupPlan | SetupLesson, "C",
         "Latency between ranks, in units: 1 is the forward of a rank", realNumber(0, 1e6), noLinks},
        {"--link", &S::link, runs | SetupPlan | SetupSweep, "LATENCY[,BANDWIDTH]",
         "Link between ranks, such as 50us,10GB/s", anything, noLinks, "", "", "--comm"},
        {"--cluster", &S::cluster, runs | SetupReadsFile, clusterForm,
         "A device of this cluster for each rank: links and network cards, such as 16@a100; costs with times only. "
         "Where ranks train, links are emulated, and messages do not wait for each other's cards",
         anything, noLinks, "", "", "--link"},
        {"--copies", &S::copies, SetupSimulate | SetupRecord, "SPEED[,KEY=VALUE]",
         "Copies between a rank and its host (OFFLOAD, RELOAD): 15GB/s, or out=15GB/s,in=12GB/s; latency=10us; "
         "duplex=full, where both ways are apart [half]",
         copiesFault, noCopies},
        {"--sends", &S::sends, runs | SetupChannels | SetupLesson, "MODE",
         "buffered: a send never waits; rendezvous: it waits for its receive [buffered]",
         oneOf({"buffered", "rendezvous"}), ownTransport},
        {"--channels", &S::channels, runs | SetupChannels, "N|one|shared",
         "Messages in flight at once from one rank to another: N; shared: any number, which share a link's "
         "bandwidth; 0: any number, each with the whole bandwidth; one: sends and receives of a rank one after "
         "the other, in the order of its list [shared]",
         channelFault, ownTransport},
        {"--lower", &S::lower, runs | SetupChannels | SetupMessages | SetupLesson, "RULE",
         "Insert sends and receives: just-in-time, pytorch[:collectives], eager-post[:N ops ahead], "
         "rank-parity, grouped, batched",
         ruleFault, "", "TorchTitan inserts the messages by PyTorch's rule"},
        {"--receives", &S::receives, runs | SetupChannels, "MODE",
         "Under rendezvous: blocking: the rank waits at a receive; posted: the op that needs the message waits "
         "[as the rule says]",
         oneOf({"blocking", "posted"}), "PyTorch's own transport receives the messages"},
        {"--perturb", &S::perturb, replicas | SetupLesson, "WHAT=WHERE:X",
         "Disturb it: rank=2:1.25 slows a rank, link=1-2:1.0 a link, launch=3:0.2 delays each op of a rank "
         "(forward times), jitter=0.05 varies each op's time, transient=2@3:4 slows a rank in step 3, secret=7 "
         "picks one of the first three and hides it",
         anything, undisturbed},
        {"--seed", &S::seed, runs | SetupSweep | SetupLesson, "N", "Seed of --perturb jitter=… [1]",
         wholeNumber(0, std::numeric_limits<std::int64_t>::max()), "", inItsConfig},
        {"--memory-limit", &S::memoryLimit, runs | SetupLesson, "X|SIZE|P%[,…]",
         "Activations a rank may hold: 4, 64MB, or 60% of holding every microbatch, once or for each rank of a "
         "pipeline; an order that needs more is refused, naming rank and op",
         anything, "", "TorchTitan's memory depends on its own model"},
        {"--rank-memory", &S::rankMemory, trains, "SIZE[,SIZE…]",
         "Everything a rank may hold, or one size for each rank or replica; emulated by counting: an "
         "allocation beyond it ends the training and names rank and op",
         anything, "PyTorch's memory can't be limited so"},
        {"--host-memory", &S::hostMemory, SetupRecord, "SIZE[,SIZE…]",
         "What OFFLOADs of each rank may hold on its host, or one size for each rank or replica; counted as "
         "--rank-memory is [any]",
         anything, noCopies},
        {"--recompute", &S::recompute, runs | SetupSweep | SetupLesson, "all|none|0-2",
         "Stages that keep only their input and recompute before the backward [none]", anything, ownCheckpoints},
        {"--offload", &S::offload, SetupSimulate | SetupRecord | SetupLesson, "all|longest|cap=M",
         "Move activations to the host behind their forward and back before their backward: all of them, those of the "
         "stages that hold them longest (also :ahead=N, compute ops before the backward [1]), or what a cap asks for, "
         "such as cap=3 (microbatches of a rank) or cap=26MiB; cap=3:recompute may also recompute stages [none]",
         offloadFault, noCopies},
        {"--order", &S::order, SetupSimulate | SetupRecord, "list|arrival|hint[:limit=L,rule=R]",
         "How ranks choose their next op: as listed; arrival, what came first (forwards and backwards of one stage a "
         "rank; also rule=forward_first or backward_first); hint, the list, but past an op that still waits. limit: "
         "microbatches that a rank may hold. Where ranks train they choose in every step, and the run's schedule is "
         "what ran in its median step [list]",
         orderFault, "PyTorch's ranks follow their lists"},
        {"--fill", &S::fill, SetupSimulate | SetupRecord, "kfac[:pieces=K|:cyclic|:apart|:step=N]",
         "Fill gaps with work that can wait: K-FAC's factors and their inversion in K pieces [2], over as many steps "
         "as they take; cyclic: in gaps before their inputs, too, as of the cycle before; apart: at the end of the "
         "same "
         "steps instead, to compare with; N: the step that simulate shows [1]. record measures how long the pieces "
         "take, and trains with --optimizer kfac",
         fillFault, "PyTorch has no K-FAC"},
        {"--cycle", &S::cycle, SetupRecord, "",
         "The schedules are one training's: step n runs schedule n mod k of k lists that differ in work that can wait",
         anything, "PyTorch has no K-FAC"},
        {"--hoist", &S::hoist, runs | SetupLesson, "",
         "Recompute as soon as the rank is free, not when the gradient arrives", anything, ownCheckpoints},
        {"--replicas", &S::replicas, replicas | SetupLesson, "N", "Pipelines side by side that train one model [1]",
         wholeNumber(1, 4096), onePipeline},
        {"--shard", &S::shard, replicas | SetupLesson, "WHAT",
         "What replicas share instead of each having all of it: none, optimizer, gradients, weights (ZeRO 0 to "
         "3; each includes the one before), with :by=layer or :shares=3/5,2/5 [none]",
         anything, onePipeline},
        {"--gather", &S::gather, replicas | SetupLesson, "microbatch|batch[:prefetch=K]",
         "Sharded weights: for each microbatch, or batch: while the next K + 1 stages of a rank need them; "
         ":prefetch=K [batch]",
         anything, onePipeline},
        {"--reduce", &S::reduce, replicas | SetupLesson, "WHEN[:bucket=SIZE]",
         "Gradients: late (at the end), overlapped (after a stage's last one), microbatch (after each), "
         "stepped (overlapped, and OPT once they have arrived, without a barrier); :bucket=SIZE [late]",
         anything, onePipeline},
        {"--collectives", &S::collectives, replicas, "HOW",
         "How ranks gather and reduce over --link: ring, tree, two-level; :per-host=N of a stage's ranks, "
         ":between=LATENCY,BANDWIDTH of hosts [--link], :shared with messages [ring]"},
        {"--replica-batch", &S::replicaBatch, replicas | SetupLesson, "M[xB],M[xB]",
         "Microbatches of each replica, or with their samples, 3x2,5x1; simulated costs in units are of one "
         "sample, analytic ones of their b",
         anything, onePipeline},
        {"--speed", &S::speed, replicas, "X,X", "Speed of each replica, or of each rank; 0.5 takes twice as long",
         anything, undisturbed},
        {"--cut", &S::cut, replicas | SetupLesson, "LAYER,LAYER",
         "Partial backward: the layer that each replica goes back to; one of them 0, the number of layers for the head "
         "only. A layer's gradient is then the mean over the replicas that reach it. simulate and plan count stages, "
         "or layers by --stage-layers"},
        {"--recompute-layers", &S::recomputeLayers, trains, "A-B",
         "Layers to recompute; the others keep their activations [all]", anything, ownCheckpoints},
        {"--optimizer", &S::optimizer, trains | SetupLesson, "NAME[:KEY=X]",
         "adamw, sgd, or kfac: sgd whose gradients of linear layers are preconditioned, also kfac:refresh=N (steps), "
         "damping=0.001, decay=0.95, clip=0.001 [adamw]",
         optimizerFault, noFactors, inItsConfig, "", "", "kfac"},
        {"--lr", &S::learningRate, trains | SetupLesson, "X", "Learning rate [0.003]", realNumber(0, 1000), "",
         inItsConfig},
        {"--momentum", &S::momentum, trains, "X", "Momentum of sgd [0]", realNumber(0, 0.9999), "", inItsConfig},
        {"--weight-decay", &S::weightDecay, trains, "X", "Weight decay of matrices [0.1]", realNumber(0, 1000), "",
         inItsConfig},
        {"--clip", &S::clip, trains, "X", "Largest global gradient norm; 0: none [1]", realNumber(0, 1e9), "",
         inItsConfig},
        {"--data", &S::data, SetupRecord | SetupReadsFile, "FILE",
         "A file to train on; its bytes are the tokens [built-in text]", anything, "", inItsConfig},
        {"--backend", &S::backend, devices, "NAME", "Device to train on [cpu]", anything, "", inItsConfig},
        {"--device", &S::devices, devices, "N,…",
         "GPUs to train on, by their number in 'stagewright devices'; ranks take them in turn [all]",
         wholeNumber(0, 4096), "rank r uses GPU r; CUDA_VISIBLE_DEVICES chooses them"},
        {"--precision", &S::precision, devices, "NAME",
         "fp32, tf32 (GPUs only) or bf16 with fp32 master weights, on the processor by oneDNN [bf16 on GPUs, "
         "else fp32]",
         oneOf({"fp32", "tf32", "bf16"}), "the model trains in fp32 under PyTorch"},
        {"--products,--blas", &S::blas, devices, "NAME",
         "BLAS of the processor: openblas or onednn [the faster one, measured once]", oneOf({"openblas", "onednn"}),
         "PyTorch chooses its own BLAS"},
        {"--sharing", &S::sharing, trains, "HOW",
         "How ranks share a GPU: queues side by side, partitions of its multiprocessors, or serialised, one op "
         "at a time, placed by the virtual clock [queues where each rank has its own GPU, else serialised]",
         oneOf({"queues", "partitions", "serialised"}), "every rank has its own process and GPU"},
        {"--transport", &S::transport, trains | SetupLesson, "HOW",
         "How messages travel between GPUs: copies of the driver (between processes MPI), or nccl, where each "
         "rank has its own GPU [copies]",
         oneOf({"copies", "nccl"}), "PyTorch uses gloo or NCCL, as --backend says"},
        {"--processes", &S::processes, SetupRecord, "",
         "Run ranks as processes that mpirun or another --launcher starts, instead of threads", anything,
         "every rank is a process anyway"},
        {"--ranks-per-process", &S::ranksPerProcess, SetupRecord, "N",
         "Ranks that share a process, with --processes or under mpirun [1]", wholeNumber(1, 4096),
         "every rank is a process of its own"},
        {"--launcher", &S::launcher, SetupRecord, "NAME",
         "What starts the processes: mpirun; mpiexec, of MPICH and its kin; srun, or srun:MPI for its kind of MPI "
         "(pmix, "
         "pmi2); flux, or flux:PMI; jsrun; torchrun, in scripts for PyTorch; custom:'WORDS', with {n} for their number "
         "[mpirun; in a queue that queue's own]",
         launcherFault, "", "its run.sh starts torchrun"},
        {"--container", &S::container, SetupRecord, "IMAGE",
         "Run the ranks in a container: FILE.sif or docker://NAME by Apptainer; any other image in Slurm, by enroot "
         "and "
         "pyxis",
         anything, "", "its run.sh starts the ranks"},
        {"--env", &S::env, SetupRecord | SetupItemsApart, "NAME=VALUE",
         "A variable of the ranks' environment, such as NCCL_DEBUG=INFO; repeat it", variableFault},
        {"--interface", &S::interface, SetupRecord, "NAME",
         "Network interface between the nodes, for NCCL, gloo and Open MPI (NCCL_SOCKET_IFNAME …) [they choose]",
         interfaceFault},
        {"--engine", &S::engine, SetupRecord, "NAME",
         "own; torch: PyTorch's pipelining, one process a rank; torchtitan: a TorchTitan job of yours [own]",
         oneOf({"own", "torch", "torchtitan"})},
        {"--config", &S::config, SetupRecord | SetupReadsFile, "FILE",
         "The job's configuration, for --engine torchtitan: MODULE:FUNCTION, or a TOML file for a TorchTitan before "
         "2026"},
        {"--python", &S::python, SetupRecord, "FILE",
         "Interpreter with PyTorch, for --engine torch [$VIRTUAL_ENV/bin/python3, else python3 on PATH]"},
        {"--job", &S::job, SetupRecord | SetupStaysHere, "FOLDER",
         "A new folder for the steps as a stream, events (with --progress jsonl) and a file 'stop' that ends it; under "
         "PyTorch for its job, logs and traces [beside the run file]"},
        {"--model-file", &S::modelFile, SetupRecord | SetupReadsFile, "FILE:FUNCTION",
         "Your own PyTorch model: a Python file and the function in it that gives modules, example and loss", anything,
         "", inItsConfig},
        {"--host", &S::host, devices | SetupStaysHere, "NAME", "Record on this host; see 'stagewright hosts'"},
        {"--slurm", &S::slurm, SetupRecord | SetupItemsApart | SetupStaysHere, "KEY=VALUE",
         "Record in Slurm's queue, there or here; any long option of sbatch: nodes=2, gpus-per-node=8, "
         "partition=NAME; repeat it"},
        {"--srun", &S::srun, SetupRecord | SetupItemsApart, "KEY=VALUE",
         "In Slurm's queue, any long option of srun for the ranks: container-image=FILE, container-mounts=A:B, "
         "mpi=pmi2; repeat it",
         anything, "", "its run.sh starts the ranks"},
        {"--script-only", &S::scriptOnly, SetupRecord | SetupStaysHere, "",
         "With --slurm: print the batch script instead of submitting it"},
        {"--detach", &S::detach, SetupRecord | SetupStaysHere, "",
         "With --host or --slurm: start it and return; 'stagewright hosts attach' follows it"},
        {"--no-trace", &S::noTrace, SetupRecord, "", "Don't trace GPU kernels and copies with CUPTI", anything,
         "the run is made from PyTorch's traces"},
        {"--trace-steps", &S::traceSteps, SetupRecord, "N",
         "With --engine torch: of the measured steps its profiler traces the last N [all]", wholeNumber(1, 100'000'000),
         "", "its profiler traces the last step", "all"},
        {"--keep-trace", &S::keepTrace, SetupRecord | SetupWritesFile, "FILE",
         "Also keep CUPTI's raw records of the GPUs, to read them on a computer without a GPU", anything,
         "the job folder keeps PyTorch's traces"},
        {"--timeout", &S::timeout, SetupRecord | SetupLesson, "S",
         "Give up after this long without progress, in seconds [120]", realNumber(0.1, 1e6)},
    };
}

template <typename Value>
constexpr bool isList = false;
template <typename Item>
constexpr bool isList<std::vector<Item>> = true;

std::string wordOf(const std::string& value) { return value; }
std::string wordOf(bool value) { return value ? "yes" : "no"; }
template <typename Number>
std::string wordOf(Number value)
{
    return fmt::format("{}", value);
}

void read(std::string_view text, std::string& value) { value = text; }
void read(std::string_view text, bool& value) { value = text == "yes"; }
template <typename Number>
void read(std::string_view text, Number& value)
{
    if constexpr (std::is_same_v<Number, double>)
        value = numberOf(text).value_or(value);
    else
        value = wholeOf<Number>(text).value_or(value);
}

} // namespace

std::string SetupKey::option() const { return std::string(options.substr(options.rfind("--"))); }

std::string SetupKey::name() const
{
    std::string name = option().substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

Result<OptimizerChoice> parseOptimizer(std::string_view text)
{
    OptimizerChoice out;
    const std::vector<std::string_view> parts = split(text, ":");
    bool good = false;
    for (const std::string_view name : {"adamw", "sgd", "kfac"})
        if (!parts.empty() && parts.front() == name) out.name = name, good = parts.size() == 1 || name == "kfac";
    for (std::size_t i = 1; good && i < parts.size(); ++i) {
        const auto [key, value] = keyValueOf(parts[i]);
        const double number = value ? numberOf(*value).value_or(-1) : -1;
        const auto whole = value ? wholeOf<int>(*value) : std::nullopt;
        if (key == "refresh" && whole && *whole >= 1)
            out.refresh = *whole;
        else if (key == "damping" && number > 0)
            out.damping = number;
        else if (key == "decay" && number >= 0 && number < 1)
            out.decay = number;
        else if (key == "clip" && number >= 0)
            out.clip = number;
        else
            good = false;
    }
    if (good) return out;
    return fail(ErrorCode::Usage, fmt::format("takes adamw, sgd or kfac, not '{}'", text),
                "kfac also with :refresh=N, :damping=0.001, :decay=0.95, :clip=0.001 (0: none)");
}

const std::vector<SetupKey>& setupKeys()
{
    static const std::vector<SetupKey> keys = allKeys();
    return keys;
}

const SetupKey* findSetupKey(std::string_view name)
{
    const auto& keys = setupKeys();
    const auto found = std::find_if(keys.begin(), keys.end(),
                                    [name](const SetupKey& key) { return key.option() == name || key.name() == name; });
    return found == keys.end() ? nullptr : &*found;
}

std::vector<std::string> itemsOf(const Setup& setup, const SetupKey& key)
{
    std::vector<std::string> items;
    std::visit(
        [&](auto place) {
            const auto& value = setup.*place;
            if constexpr (isList<std::decay_t<decltype(value)>>)
                for (const auto& item : value) items.push_back(wordOf(item));
            else
                items.push_back(wordOf(value));
        },
        key.place);
    if (!key.zero.empty() && items.front() == "0") items.front() = key.zero;
    return items;
}

std::string textOf(const Setup& setup, const SetupKey& key)
{
    return joined(itemsOf(setup, key), key.commas() ? "," : " ");
}

Result<void> setKey(Setup& setup, const SetupKey& key, std::string_view text)
{
    const auto wrong = [&](const std::string& fault) {
        return fail(ErrorCode::Usage, fmt::format("{} {}", key.option(), fault), fmt::format("write {}", key.form));
    };
    if (key.flag() && text != "yes" && text != "no") return wrong(fmt::format("takes yes or no, not '{}'", text));
    return std::visit(
        [&](auto place) -> Result<void> {
            auto& value = setup.*place;
            if constexpr (isList<std::decay_t<decltype(value)>>) {
                std::decay_t<decltype(value)> items;
                for (const std::string_view item : key.commas() ? stagewright::itemsOf(text) : wordsOf(text)) {
                    if (key.check)
                        if (const std::string fault = key.check(std::string(item)); !fault.empty()) return wrong(fault);
                    read(item, items.emplace_back());
                }
                value = std::move(items);
            } else if (!key.zero.empty() && text == key.zero) {
                value = {};
            } else {
                if (key.check && text != wordOf(Setup().*place)) // the default may lie out of what is typed
                    if (const std::string fault = key.check(std::string(text)); !fault.empty()) return wrong(fault);
                read(text, value);
            }
            return {};
        },
        key.place);
}

std::vector<std::string> optionsOf(const Setup& setup, const Setup& from)
{
    std::vector<std::string> words;
    for (const SetupKey& key : setupKeys()) {
        const std::string text = textOf(setup, key);
        if (text == textOf(from, key)) continue;
        if (key.flag())
            words.push_back(key.option());
        else
            for (const std::string& value : key.commas() ? std::vector{text} : itemsOf(setup, key))
                words.insert(words.end(), {key.option(), value});
    }
    return words;
}

Result<Setup> withOptions(Setup setup, const std::vector<std::string>& words)
{
    for (std::size_t i = 0; i < words.size(); ++i) {
        const SetupKey* key = findSetupKey(words[i]);
        if (key == nullptr || (!key->flag() && i + 1 == words.size()))
            return fail(ErrorCode::Usage, fmt::format("'{}' is not an option with its value", words[i]),
                        "write --ranks 4");
        const bool more = !key->commas() && setup.names(key->option());
        std::string value = key->flag() ? "yes" : words[++i];
        STAGEWRIGHT_CHECK(setKey(setup, *key, more ? textOf(setup, *key) + " " + value : value));
        setup.given[key->option()] = std::move(value);
    }
    return setup;
}

bool operator==(const Setup& a, const Setup& b) { return optionsOf(a, b).empty(); }

namespace {

// Why the setup's engine can't honour what it says of a key; "": it can, or the key says nothing.
std::string_view whyNot(const Setup& setup, const SetupKey& key)
{
    if (setup.titan() && !key.whyNotTitan.empty()) return key.whyNotTitan;
    if (!setup.torch() && !setup.titan()) return {};
    const std::string value = textOf(setup, key);
    const std::string_view name = std::string_view(value).substr(0, value.find(':'));
    return key.only.empty() || name == key.only ? key.whyNotTorch : std::string_view();
}

constexpr const char* ofTorch[] = {"--python", "--model-file", "--trace-steps"};
constexpr const char* ofOwnModel[] = {"--model", "--data", "--stage-layers", "--layout"};

} // namespace

Result<void> engineHonours(const Setup& setup)
{
    if (setup.names("--config") != setup.titan())
        return setup.titan() ? fail(ErrorCode::Usage, "--engine torchtitan needs the job's configuration",
                                    "name it with --config: MODULE:FUNCTION, or a TOML file")
                             : fail(ErrorCode::Usage,
                                    fmt::format("--config belongs to TorchTitan, and the engine is {}", setup.engine),
                                    "add --engine torchtitan");
    if (!setup.torch() && !setup.titan())
        for (const char* option : ofTorch)
            if (setup.names(option))
                return fail(ErrorCode::Usage,
                            fmt::format("{} belongs to PyTorch, and the engine is {}", option, setup.engine),
                            "add --engine torch");
    for (const SetupKey& key : setupKeys()) {
        const std::string option = key.option();
        const std::string_view why = whyNot(setup, key);
        if (why.empty() || !setup.names(option)) continue;
        return fail(ErrorCode::Usage,
                    fmt::format("--engine {} can't honour {}{}: {}", setup.engine, option,
                                key.only.empty() ? "" : fmt::format(" {}", key.only), why),
                    fmt::format("leave out {}, or use --engine own", option));
    }
    for (const char* option : ofOwnModel)
        if (!setup.modelFile.empty() && setup.names(option))
            return fail(ErrorCode::Usage, fmt::format("{} and --model-file can't be combined", option),
                        "the file's function makes the model and its data");
    return {};
}

Setup honoured(const Setup& setup)
{
    Setup out = setup;
    const Setup usual;
    const auto drop = [&](const SetupKey& key) {
        std::visit([&](auto place) { out.*place = usual.*place; }, key.place);
    };
    for (const SetupKey& key : setupKeys())
        if (!whyNot(setup, key).empty()) drop(key);
    if (!setup.torch() && !setup.titan())
        for (const char* option : ofTorch) drop(*findSetupKey(option));
    else if (!setup.modelFile.empty())
        for (const char* option : ofOwnModel) drop(*findSetupKey(option));
    return out;
}

} // namespace stagewright
