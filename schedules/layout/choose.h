// Every way to divide a model over a cluster: t divides the heads and the width and is 8 or less, p the layers, v the
// layers of a stage, d = devices ÷ (t p) the samples of a step, b the samples of a replica and is 16 or less; more chunks
// than one need p > 1 and microbatches in whole groups of p. Nothing and everything is recomputed without sequence
// parallelism, selectively with it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/layout/layout.h"
#include "schedules/layout/parallelism.h"

namespace stagewright {

struct LayoutQuestion {
    ModelPreset model;
    Cluster cluster;
    int samples = 1; // of a step
    int zero = 1;    // −1: each of 0 to 3, and sequence parallelism or not
    StepConstants constants;
    // What is pinned; 0 and none: free.
    int tensor = 0, pipeline = 0, chunks = 0, replicas = 0, microbatch = 0;
    std::optional<KeptActivations> kept;
    std::optional<bool> sequence;
};

struct LayoutCandidate {
    Parallelism way;
    StepParts step;
    MemoryParts memory;
    bool fits = false;
};

struct LayoutAnswer {
    std::vector<LayoutCandidate> candidates; // those that fit by their step, then the others by their memory
    std::size_t fitting = 0;
    std::span<const LayoutCandidate> good() const { return {candidates.data(), fitting}; }
};

// Pins what "t=8,p=4,recompute=full,sp=yes" names; Usage: what can't be pinned.
Result<void> pin(std::string_view text, LayoutQuestion& question);
std::string pinsOf(const Parallelism& way); // "t=8,p=4,v=2,d=2,b=1,recompute=full"

// Usage: no way divides them, with the reason.
Result<LayoutAnswer> chooseLayout(const LayoutQuestion& question);

// Why this way is slower than the best one: the part of its step that costs most more, in words; "" of the best itself.
std::string whyItLoses(const LayoutCandidate& candidate, const LayoutCandidate& best);

// The first ways under the library's schedule with which each step is shortest, none where none fits. Stopping leaves
// the rest none.
std::vector<std::optional<LayoutStep>>
simulateWays(const LayoutQuestion& question, std::span<const LayoutCandidate> ways, const Progress& progress = {});

// Whose constants they are, and what to do where that is another device: "constants of Megatron-DeepSpeed on A100s; …".
std::string wordsOf(const StepConstants& constants, const Cluster& cluster);

// What of embedding and head counts, in words.
std::string wordsOfEmbeddings(const ModelPreset& model);

// A way in a question's answer: what replicas share and sequence parallelism only where they are free.
std::string toText(const LayoutQuestion& question, const Parallelism& way);

// The command that trains it here under a schedule; "": it can't, with the reason in whyNot.
std::string trainingCommand(const ModelPreset& model, const Layout& layout, std::string_view schedule,
                            std::string& whyNot);

// Megatron-LM's arguments of a way.
std::string megatronArguments(const ModelPreset& model, const Parallelism& way);

// The best way of the fewest devices that is faster than all of them, of the halves of the cluster; nothing: none is.
std::optional<LayoutCandidate> fewerDevices(const LayoutQuestion& question, const LayoutCandidate& best);

} // namespace stagewright
