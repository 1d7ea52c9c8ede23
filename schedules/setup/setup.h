// Setup: what to run, as one value. Each member but the last two is a row of the table of keys (setup/keys.h), which
// says how it is written, what it takes and who sets it; schedules/setup/prepare.h makes of it what is simulated
// or trained.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stagewright {

struct Setup {
    // The schedule, and what its ranks do.
    std::vector<std::string> schedules; // names of the library, or files; empty: as the verb says
    int ranks = 4;                      // of one pipeline
    int microbatches = 8;
    int chunks = 0; // stages of a rank; 0: the schedule's default
    std::string overlap = "atomic";
    std::string recompute = "none";
    std::string offload; // "": none; as parseOffload() reads it
    std::string order;   // "": as listed; as parseReadyOrder() reads it
    std::string fill;    // "": none; as parseFill() reads it
    bool hoist = false;
    bool cycle = false;
    // What a simulation's ops cost.
    std::string costs;     // "F=1,I=1,W=1", FILE.json, analytic:MODEL@DEVICE; empty: one unit each
    std::string costsFrom; // FILE#RUN
    double freeAtInput = 0;
    double keep = 0;
    double inputShare = -1; // < 0: from other runs or the model
    // Links and messages.
    double comm = -1;    // latency in forwards of a rank; < 0: not given
    std::string link;    // "LATENCY,BANDWIDTH"
    std::string cluster; // as namedCluster() reads it: a device for each rank
    std::string copies;  // "SPEED[,latency=…][,duplex=full]"
    std::string sends = "buffered";
    std::string channels = "shared";
    std::string lower;    // empty: no rule
    std::string receives; // empty: as the rule says
    // Replicas, and what they share; empty texts: the default.
    int replicas = 1;
    std::string shard = "none";
    std::string gather, reduce, collectives;
    std::string replicaBatch, speed, cut;
    std::vector<std::string> perturb; // parts of schedules/execute/perturb.h
    // What is trained, and on what. Numbers below 0: the engine's default.
    std::string model;
    int microbatchSize = 4;
    std::vector<int> stageLayers; // empty: balanced by cost
    std::string layout;           // Megatron-LM's, until withLayout(); then empty
    std::string data;             // empty: built-in text
    std::int64_t seed = 1;
    int steps = 0; // 0: as the verb says
    int warmup = 1;
    bool keepWarmup = false;
    int checkpointEvery = 0; // steps; 0: never
    int keepCheckpoints = 2;
    std::string resume; // a checkpoint; "": from the start
    std::string optimizer = "adamw";
    double learningRate = -1, momentum = -1, weightDecay = -1, clip = -1;
    std::string recomputeLayers; // empty: all
    std::string memoryLimit, rankMemory, hostMemory;
    std::string backend;      // empty: as the verb says
    std::vector<int> devices; // empty: all
    std::string precision, blas, sharing, transport;
    std::string clock = "auto";
    double timeout = 120; // seconds
    bool noTrace = false;
    int traceSteps = 0; // the last ones; 0: all that are measured
    std::string keepTrace;
    // The engine, and where it works.
    std::string engine = "own";
    std::string config, python, job, modelFile;
    bool processes = false;
    int ranksPerProcess = 1;
    std::string host;
    std::vector<std::string> slurm; // KEY=VALUE, each an option of sbatch
    std::vector<std::string> srun;  // of srun, likewise
    std::string launcher;           // of processes; "": mpirun, in Slurm's queue srun
    std::string container;          // image that the ranks run in; "": none
    std::vector<std::string> env;   // NAME=VALUE, of the ranks' environment
    std::string interface;          // of the network between nodes; "": as the libraries choose
    bool scriptOnly = false;
    bool detach = false;

    // What was named on a command line, by its long option: its last value as typed, "true" of a flag.
    std::map<std::string, std::string> given;
    std::string costsText; // read in place of the file in `costs`, where it is not empty

    bool names(const std::string& option) const { return given.contains(option); }
    bool torch() const { return engine == "torch"; }
    bool titan() const { return engine == "torchtitan"; }
    bool elsewhere() const { return !host.empty() || !slurm.empty() || scriptOnly; }
    // Anything of replicas.
    bool sharesState() const
    {
        return replicas > 1 || shard != "none" || !gather.empty() || !reduce.empty() || !collectives.empty() ||
               !replicaBatch.empty() || !speed.empty() || !cut.empty();
    }
};

} // namespace stagewright
