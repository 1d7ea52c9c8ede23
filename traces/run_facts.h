// What a run was made with, in words: what report and runs print beside the shape, and what tells two runs apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/run.h"

namespace stagewright {

struct RunFact {
    std::string key;   // "model", "microbatch_size", "link_latency" … as in the configuration
    std::string title; // "model"
    std::string value; // "" where the run does not say
};

// Unit of time, ranks, stages, microbatches, model, microbatch size, clock, link latency, and the settings that change times (backend,
// transport, sends, channels, data, perturbation, recomputed layers, optimizer). In this order, each once, unknown ones empty.
std::vector<RunFact> factsOf(const Run& run);
std::string configured(const Run& run, std::string_view key); // a value of the configuration, "" where there is none
// What a rank's activations were to stay within (record or simulate --memory-limit), in the run's unit of memory.
std::optional<Bytes> memoryCapOf(const Run& run);
// As the run was asked for, else of its costs: "0.5 units", "12.0 µs", "10.0 µs to 1.00 ms" where links differ, "none"; "" where
// neither tells.
std::string linkLatencyText(const Run& run);
// Links that were emulated apart from the others: "0→1 1.00 ms, 1→0 1.00 ms"; "": none.
std::string emulatedLinksText(const Run& run);
// Share of the ops' time off the processor, the median over the measured steps; nothing where it was not measured.
std::optional<double> contentionOf(const Run& run);

} // namespace stagewright
