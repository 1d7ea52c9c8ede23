// RecordSettings: the values of the record dialog, checked, and as arguments of `stagewright record`.
#pragma once

#include <QString>
#include <QStringList>
#include <optional>

#include "traces/run/run.h"

namespace stagewright {

struct RecordSettings {
    QStringList schedules{QStringLiteral("1f1b"), QStringLiteral("zb-h1")}; // library names, or one CSV file
    QString scheduleFile;                                                   // not empty: record this CSV instead
    // not empty: record this one too, first and alternating with it
    QString baselineFile;
    int ranks = 4;
    int microbatches = 8;
    int chunks = 0;       // 0: schedule default
    int replicas = 1;     // pipelines side by side; the following six say nothing of one
    QString shard;        // "", "optimizer", "gradients", "weights"; empty: nothing
    QString owners;       // "", "layer" or shares such as "3/5,2/5"; empty: equal pieces
    QString gather;       // of sharded weights: "", "microbatch", "batch:prefetch=1"; empty: batch
    QString reduce;       // "", "overlapped", "microbatch", "stepped"; empty: late
    QString replicaBatch; // microbatches of each: "3,5"; empty: alike
    QString cut;          // the layer that each goes back to: "0,4"; empty: all to layer 0
    int layers = 8;
    int hidden = 128;
    int heads = 4;
    int sequence = 128;
    int microbatchSize = 4;
    int steps = 8;
    int warmup = 1;
    QString backend;   // TrainingBackend::name; empty: the processor
    QString devices;   // of cuda: "0,1"; empty: all
    QString precision; // "", "fp32", "tf32" (GPUs only), "bf16"; empty: the device's default
    // of cuda: "", "queues", "partitions", "serialised", which also sets the clock; empty: automatic
    QString sharing;
    QString transport;    // of cuda: "", "copies", "nccl"; empty: copies
    QString clock;        // of the processor: "", "wall", "virtual"; empty: automatic
    QString link;         // "LATENCY[,BANDWIDTH]" as in --link; empty: none
    QString optimizer;    // "", "adamw", "sgd"; empty: the default
    QString learningRate; // empty: the default
    QString stageLayers;  // "3,2,2,1"; empty: balanced by cost
    quint64 seed = 1;
    QString dataFile; // empty: the built-in text
    // "", "torch"; empty: the own engine. Under PyTorch clock, link, precision and how GPUs are shared don't apply
    QString engine;
    QString python;         // of PyTorch: an interpreter, where it runs; empty: the one found there
    QString modelFile;      // of PyTorch: "FILE:FUNCTION" instead of the model; empty: the own engine's
    bool processes = false; // of the own engine: each rank is a process
    QString host;           // a name of `stagewright hosts`; empty: this computer
    bool queue = false;     // in Slurm's queue, there or here
    QString slurm;          // options of sbatch: "nodes=2 gpus-per-node=8"; empty: nodes=1
    QStringList arguments;  // not empty: arguments of `stagewright record` instead of all the above

    bool sharded() const { return replicas > 1 && !shard.isEmpty() && shard != QLatin1String("none"); }
    QString shardText() const; // as in --shard: "weights:by=layer"
    bool torch() const { return engine == QLatin1String("torch"); }
    bool elsewhere() const { return !host.isEmpty() || queue; } // a job that goes on without this program
    bool operator==(const RecordSettings&) const = default;
};

struct SettingsFault {
    QString field;   // member name, so that a form can point at it
    QString message; // with the remedy
};

// The first invalid setting, or nullopt. Checks each schedule's constraints in the library.
std::optional<SettingsFault> firstFault(const RecordSettings& settings);

// Arguments after the program name, writing to `output`, with machine-readable progress and standard-input control.
QStringList recordArguments(const RecordSettings& settings, const QString& output);
// The same as a line to paste into a terminal (without the progress options).
QString commandLine(const RecordSettings& settings, const QString& output);
// In words: "Trains 1F1B and ZB-H1 on 4 ranks × 8 microbatches, a model of …, 1 warm-up and 8 measured steps each".
QString inWords(const RecordSettings& settings);

// The settings a run was recorded with, to run an edited schedule the same way; unknown keys leave the defaults.
RecordSettings settingsOf(const Run& run);

} // namespace stagewright
