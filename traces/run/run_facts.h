// The setup of a run as text: printed by report and runs beside the shape, and compared between runs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/run/run.h"

namespace stagewright {

struct RunFact {
    std::string key;   // "model", "microbatch_size", "link_latency" … as in the configuration
    std::string title; // "model"
    std::string value; // "" if unknown
};

// Unit of time, ranks, stages, microbatches, model, microbatch size, clock, link latency, engine, host, and the settings that change
// times (backend, transport, sends, receives, lowering, channels, data, replicas and what they share, perturbation,
// memory cap, recomputed layers, optimizer). What a run of ours was not asked for is "none", what an imported one does not say is
// unknown. In this order, each once, unknown ones empty.
std::vector<RunFact> factsOf(const Run& run);
std::string configured(const Run& run, std::string_view key); // a value of the configuration, "" if there is none
// "only 1 of the pipeline's 4 ranks is in the run", where the configuration of an imported run says so; "": all are, or
// it is not known. Timeline::missingRanks() has it.
std::string partOfPipeline(const TextPairs& configuration, int ranks);
// By replica: samples of its microbatches against each other's, from the costs or the configuration; empty: all alike.
std::vector<double> replicaSizes(const Run& run);
// Where and by what a measured or imported run was trained: "PyTorch 2.6.0", "ranks in 4 processes on a, b; clocks agree
// within 3.2 µs", "on node1", with "; " between them. "": by this program's own engine in one process, or not known.
std::string trainedBy(const Run& run);
// The limit of a rank's activations (record or simulate --memory-limit), in the run's unit of memory.
std::optional<Bytes> memoryCapOf(const Run& run);
// The same by rank, where ranks have different ones; else empty.
std::vector<Bytes> rankCapsOf(const Run& run);
// What the configuration keeps of limits by rank, "memory_limit_bytes": one where all are the same.
std::string memoryLimitText(std::span<const Bytes> byRank);
// Whether the costs have links without delay because the run they were fitted from says nothing of its messages
// (whyNoArrivals()): by the wall clock none takes no time.
bool linksUnknown(const Run& run);
// As requested for the run, else from its costs: "0.5 units", "12.0 µs", "10.0 µs to 1.00 ms" if links differ, "none";
// "" if unknown.
std::string linkLatencyText(const Run& run);
// The link that a recorded run was asked to emulate; nothing: none, or not known.
std::optional<Link> askedLink(const Run& run);
// Links that were emulated separately: "0→1 1.00 ms, 1→0 1.00 ms"; "": none.
std::string emulatedLinksText(const Run& run);
// A relative distance as a share with three digits, however small: "25.0 %", "1.04 %", "0.0000312 %".
std::string distanceText(double distance);
// How long a step takes without the profiler that traced the run, and with it: medians by the clock of the rank of the
// last stage, optimizer included. Nothing: not measured, or no profiler traced it.
struct ProfilerTimes {
    Nanos without = 0;
    Nanos with = 0;
    int steps = 0; // without
    // Beside a traced step, mean; 0: not measured.
    Nanos profiling = 0; // the profiler's own work
    Nanos writing = 0;   // of its trace
};
std::optional<ProfilerTimes> profilerTimesOf(const Run& run);
// For the run's configuration; profilerTimesOf() reads it.
TextPairs profilerFacts(const ProfilerTimes& times);
// Share of the ops' time off the processor, the median over the measured steps; empty if it was not measured.
std::optional<double> contentionOf(const Run& run);

} // namespace stagewright
