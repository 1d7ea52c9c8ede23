// RunReport: everything said of one step of a run, or of a range of it, analysed once. Text, JSON, panels, pages,
// lessons and budgets render it and compute nothing of their own. docs/numbers.md has the formulas.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/quantity.h"
#include "schedules/base/result.h"
#include "traces/analysis/collective_uses.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/levers.h"
#include "traces/analysis/step_context.h"
#include "traces/analysis/step_sample.h"
#include "traces/report/baseline.h"
#include "traces/report/document/document.h"
#include "traces/report/tables.h"
#include "traces/run/run.h"

namespace stagewright {

struct RunReport {
    int step = 0; // the one the figures are of
    Units units;
    // why nothing is known of ops, bubbles and messages: a clause, lower case; empty: the step has ops
    std::string noOps;
    std::shared_ptr<const Schedule> schedule; // stored, or read off the timeline; null: neither is there
    std::optional<CostModel> costs;           // stored or fitted; nothing: neither can be had
    BubbleReport bubbles;
    OverlapReport overlap;
    std::vector<RankCollectives> collectives; // by rank; empty: the step gathers and reduces nothing
    CollectiveUses collectiveUses;            // of those beside compute
    std::string slowReplicas;                 // a sentence; empty: no replica holds up the others
    std::vector<CriticalLink> criticalPath;
    std::vector<RankMemory> memory; // by rank; empty where the timeline has none
    std::string noMemory;           // why it has none: a clause, lower case; empty: it has some
    std::optional<Bytes> memoryCap; // of a rank's activations, given or the run's own
    std::size_t spans = 0;          // of the step
    bool cpuTime = false;           // the run says how long its ops were on the processor
    bool simulated = false;         // nothing of it was measured
    // of a step without ops: what its devices did, the tables of that part (ReportPart::Device); empty: it has no kernels
    std::vector<ReportTable> devices;
    std::optional<LeverTable> levers; // what would help; nothing: not asked for, or of a range
    // figures over the measured steps; empty: fewer than two, not asked for, or of a range
    StepSamples overSteps;
    std::optional<Baseline> baseline; // nothing: not asked for, there is none, or of a range

    Bytes peak(int rank, MemoryCategory category = MemoryCategory::Activations) const
    {
        return memory[static_cast<std::size_t>(rank)].peak[static_cast<std::size_t>(category)];
    }
    // By rank; empty where there is no memory.
    std::vector<Bytes> peaks(MemoryCategory category = MemoryCategory::Activations) const;
    Bytes
    largestPeak(MemoryCategory category = MemoryCategory::Activations) const; // over ranks, 0 where there is no memory
    std::optional<Nanos> linkLatency() const;      // of the costs, where all links have the same
    std::vector<document::Figure> figures() const; // in the order of `report --json`
    std::vector<std::string> sentences() const;    // the straggler and slow replicas, if there are any

private:
    void addCollectives(std::vector<document::Figure>& figures) const;
};

// What a figure is, a clause; "": its title says it.
std::string_view meaningOfFigure(std::string_view key);
ColumnKind kindOfSample(std::string_view key); // of a figure over the measured steps

struct ReportOptions {
    int step = -1; // −1: the representative one
    // of a rank's activations, else the run's own; idle time that only more memory would fill is of cause Memory
    std::optional<Bytes> memoryCap = {};
    bool ownCap = true; // false: no cap unless one is given
    // what would help, and figures over the measured steps; simulates the step some twenty times
    bool levers = false;
    bool baseline = false;
    std::stop_token stop = {};
    bool withoutSteps = false; // a run without a complete step gives a report of nothing, not an error
};

// The context of the step that is asked for, for its report and its tables. Usage: the run has no such step. Invalid: no timeline,
// or no complete step.
Result<std::shared_ptr<const StepContext>> contextOf(const Run& run, const ReportOptions& options = {});
// On any thread. Cancelled: stop.
Result<RunReport> reportOf(const StepContext& context, const ReportOptions& options = {});
Result<RunReport> reportOf(const Run& run, const ReportOptions& options = {}); // of contextOf()

// The schedule a run ran: stored, or read off the timeline's representative step. Invalid: neither.
Result<Schedule> scheduleOfRun(const Run& run);

// How the ranks of a GPU recording by the wall clock shared devices (record --sharing), which is what its timeline can
// show.
struct DeviceShare {
    enum class How {
        None, // a device each, or not by the wall clock
        Interleaved,
        Partitions,
    };
    How how = How::None;
    int devices = 0; // that the ranks are interleaved on
};
DeviceShare deviceShareOf(const Run& run);
// "virtual clock: projected for 4 devices", "wall clock", "model time: F=1, I=1, W=1"
std::string clockText(const Run& run);

} // namespace stagewright
