// CostModel: how long ops take, what links cost, how much memory things need, and where the numbers came from.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/model/schedule.h"
#include "schedules/model/state_sharding.h"

namespace stagewright {

enum class CostSource {
    Uniform,
    Analytic,
    Fitted,
};

// A directed link between two ranks. A message of b bytes takes its bandwidth for b / bytesPerSecond, which messages
// share (schedules/messages/channels.h), and arrives the latency later; it occupies neither rank meanwhile. Same rank:
// free.
struct Link {
    Nanos latency = 0;
    double bytesPerSecond = 0; // 0: infinite
    bool operator==(const Link&) const = default;
};

// A message on its link.
struct Transit {
    Nanos delay = 0;    // from its start until it is there
    Nanos occupied = 0; // so long it takes the bandwidth: the delay without the latency
    bool operator==(const Transit&) const = default;
};

// Copies between a rank's device and its host: what OFFLOAD and RELOAD take where costs have no duration for them.
struct Copies {
    double outBytesPerSecond = 0; // 0: copies take no time, as far as is known
    double inBytesPerSecond = 0;
    Nanos latency = 0;
    bool fullDuplex = false; // else the ways out and in are one, and copies queue on it in the order of the list
    bool known() const { return outBytesPerSecond > 0 && inBytesPerSecond > 0; }
    Nanos duration(bool out, Bytes bytes) const; // rounded once
    bool operator==(const Copies&) const = default;
};

// Network cards of hosts. A message between ranks of two hosts takes a card of the one out and a card of the other in,
// both for as long as its bytes take, and queues for them with the messages of all ranks that share them, in the order
// in which they can leave. What waits for the one card keeps the other.
struct Cards {
    std::vector<int> hosts;    // by rank; empty: there are none, and a message takes the link of its two ranks alone
    int perHost = 1;           // a host's ranks take its cards in turn
    Link link;                 // through one card, instead of Links::all
    bool fullDuplex = true;    // else a card sends or receives
    int hostOf(int rank) const // −1: unknown
    {
        return rank >= 0 && rank < static_cast<int>(hosts.size()) ? hosts[static_cast<std::size_t>(rank)] : -1;
    }
    bool between(int from, int to) const { return hostOf(from) >= 0 && hostOf(to) >= 0 && hostOf(from) != hostOf(to); }
    struct Place {
        int first = 0; // rank of its host
        int card = 0;  // of its host
    };
    std::vector<Place> places() const; // by rank
    bool operator==(const Cards&) const = default;
};

struct Links {
    Link all;
    std::map<std::pair<int, int>, Link> overrides; // (from rank, to rank)
    ResourceUse collectives = ResourceUse::Compute;
    Copies copies = {};
    Cards cards = {};

    // What ops of this kind queue for on their rank.
    Resource queueOf(OpKind kind) const
    {
        return isReload(kind) && !copies.fullDuplex ? Resource::CopyOut : ruleOf(kind).resource;
    }

    // How ops of this kind run.
    ResourceUse useOf(OpKind kind) const
    {
        const Resource resource = ruleOf(kind).resource;
        return resource == Resource::Collective ? collectives : stagewright::useOf(resource);
    }
    Link of(int fromRank, int toRank) const;
    Nanos delay(int fromRank, int toRank, Bytes bytes) const; // rounded once, to the nearest ns
    Transit transit(int fromRank, int toRank, Bytes bytes) const;
    bool haveBandwidth() const; // any of them
    bool operator==(const Links&) const = default;
};

// Bytes (or activationShare units) of one stage.
struct StageMemory {
    Bytes activation = 0; // one microbatch, from F's end until B's end (or W's)
    // the part of it that I frees; W frees the rest. May be negative: I then adds the stash for W
    Bytes freedAtInput = 0;
    Bytes workspace = 0; // largest temporary of one op
    Bytes boundary = 0;  // message to the next stage, and of its gradient coming back
    Bytes weight = 0;
    Bytes gradient = 0;
    Bytes optimizer = 0;
    bool operator==(const StageMemory&) const = default;
};
// bucket: of at most so many bytes gradients are reduced at a time; 0: all at once.
Bytes shareOf(const StageMemory& memory, MemoryShare share, Bytes bucket = 0);

// What one part of the model costs, of a whole microbatch. An op of a stage takes what its parts take, and once PerOp.
struct LayerCosts {
    enum class Part : std::uint8_t {
        PerOp,
        Embedding,
        Block,
        Head,
    };
    Part part = Part::Block;
    std::array<Nanos, opKindRoom> duration{}; // 0: the part has no such op, or none was measured
    Nanos forward() const { return duration[static_cast<std::size_t>(OpKind::Forward)]; }
    StageMemory memory; // boundary and workspace: of a stage that ends with the part
    bool operator==(const LayerCosts&) const = default;
};

class CostModel {
public:
    // Units of one full rank share: a chunk op costs 1/chunks of it. B defaults to I + W.
    struct UnitCosts {
        double forward = 1;
        double inputGrad = 1;
        double weightGrad = 1;
        double backward = -1; // < 0: inputGrad + weightGrad
        double optimizer = 0;
        double latency = 0;      // per cross-rank edge
        double freedAtInput = 0; // fraction of an activation that I frees, 0 … 1
        double copy = 0;         // an OFFLOAD or RELOAD of one activation
        double factorA = 0;      // K-FAC's factors of a microbatch's inputs, and of its gradients
        double factorG = 0;
        double invert = 0; // all pieces of an inversion together
        int pieces = 1;    // of it
    };
    static CostModel uniform(const Schedule& schedule, const UnitCosts& costs);
    static CostModel uniform(const Schedule& schedule) { return uniform(schedule, UnitCosts()); }

    CostModel() = default;
    CostModel(int stages, CostSource source);

    // A filler's duration is its own delay; kinds without an entry cost 0. count and half scale: count × d, d / 2; a
    // sequence slice takes its part by sliceStarts. Without jitter, and as if the op were in no pair (durationsOf has
    // both).
    Nanos duration(const Op& op, int rank) const;
    Nanos duration(OpKind kind, int stage, int rank) const;
    Nanos forward(int stage, int rank) const { return duration(OpKind::Forward, stage, rank); }
    Nanos backward(int stage, int rank) const { return duration(OpKind::Backward, stage, rank); } // a full one
    Nanos gather(int stage, int rank) const { return duration(OpKind::Unshard, stage, rank); }
    Nanos reduction(int stage, int rank) const { return duration(OpKind::ReduceGrad, stage, rank); }
    void setGather(int stage, Nanos nanos) { setDuration(OpKind::Unshard, stage, nanos); }
    void setReduction(int stage, Nanos nanos) { setDuration(OpKind::ReduceGrad, stage, nanos); }
    void setDuration(OpKind kind, int stage, Nanos duration);            // on every rank
    void setPasses(int stage, Nanos forward, Nanos input, Nanos weight); // F and R, I, W, and B of both
    void setDuration(OpKind kind, int stage, int rank, Nanos duration);  // on one rank (stage copies, slow devices)
    bool hasRankDurations() const { return !m_onRank.empty(); }

    // Microbatches that differ in time from the stage's others; for stage copies the microbatch determines the rank.
    void setMicrobatchDuration(OpKind kind, int stage, int microbatch, Nanos duration);
    bool hasMicrobatchDurations() const { return !m_ofMicrobatch.empty(); }
    void clearMicrobatchDurations() { m_ofMicrobatch.clear(); }
    // by microbatch, −1: as the others; empty: all alike
    std::span<const Nanos> microbatchDurations(OpKind kind, int stage) const;
    // The microbatch's size ÷ that of the stage's others, of which `memory` is: its forward's time ÷ theirs. 1 where
    // costs are fitted: a measured difference in time need not be one in size.
    double relativeSize(int stage, int microbatch, int rank) const;
    bool hasRelativeSizes() const { return source != CostSource::Fitted && hasMicrobatchDurations(); }

    // The one interval of two whole ops issued together (not of a recomputation and its backward, which follow each
    // other); −1: not known, they take the sum of both. The order of the two does not matter. Rank −1: on every rank.
    Nanos pairDuration(const Op& a, const Op& b, int rank) const;
    void setPairDuration(OpKind a, int stageA, OpKind b, int stageB, int rank, Nanos duration);
    bool hasPairDurations() const { return !m_ofPair.empty(); }
    void clearPairDurations() { m_ofPair.clear(); }

    // Every duration of these ops times the factor: by stage, on ranks, of microbatches and their share of pairs.
    // Rounded once.
    void scale(OpKind kind, int stage, double factor);
    void scaleOnRank(OpKind kind, int stage, int rank, const Placement& placement, double factor);

    int stages() const { return static_cast<int>(memory.size()); }
    bool knowsActivations() const; // some stage's size: else simulated peaks mean nothing

    Links links;
    std::vector<Nanos> launch; // by rank: how long after it could a compute op starts; empty: at once
    // σ of the logarithm of what each compute op takes, around its duration: every op takes jitterFactor() times as
    // long, drawn from the seed (schedules/execute/jitter.h). 0: as long as its duration.
    double jitter = 0;
    std::uint64_t jitterSeed = 0;
    std::vector<StageMemory> memory; // by stage: of the whole stage, however its state is sharded
    StateSharding sharding;          // among the ranks that hold a stage
    int replicas = 1;                // that the schedule stands for: 1 unless it is one of several that are alike
    // By replica of the schedule: samples of its microbatches ÷ those that `memory` is of; its ranks' durations have it
    // already. Empty: 1.
    std::vector<double> sizes;
    Bytes sized(Bytes bytes, int replica) const; // of a microbatch there, rounded once
    // The memory of one microbatch, with activations and messages at its own size (sizes, relativeSize()).
    StageMemory memoryOf(const Schedule& schedule, int stage, int microbatch) const;
    // in the model's order, PerOp first; empty: not known (schedules/model/layer_costs.h)
    std::vector<LayerCosts> layers;
    // Where each sequence slice starts, in relative lengths, and their sum last (sliceStartsOf); empty: an op of a
    // slice lasts as long as a whole one.
    std::vector<std::int64_t> sliceStarts;
    CostSource source = CostSource::Uniform;
    std::string origin;   // words: "F=1, I=1, W=1", "fitted from demo.stagewright#3"
    Nanos timeUnit = 1;   // ns per printed unit: rankShare for unit costs, 1 for measured ones
    Bytes memoryUnit = 1; // bytes per printed unit: activationShare for unit costs

    bool operator==(const CostModel&) const = default;

private:
    friend std::string writeCostsJson(const CostModel& costs);
    friend Result<CostModel> readCostsJson(const std::string& text);

    std::array<std::vector<Nanos>, opKindRoom> m_byStage;
    std::map<std::tuple<OpKind, int, int>, Nanos> m_onRank;
    std::map<std::pair<OpKind, int>, std::vector<Nanos>> m_ofMicrobatch; // by microbatch; −1: as the others
    struct PairKey {                                                     // a before b
        OpKind a = OpKind::Forward;
        int stageA = 0;
        OpKind b = OpKind::Forward;
        int stageB = 0;
        int rank = -1;
        auto operator<=>(const PairKey&) const = default;
    };
    static PairKey pairKey(OpKind a, int stageA, OpKind b, int stageB, int rank);
    void scalePairs(OpKind kind, int stage, int rank, double factor);
    std::map<PairKey, Nanos> m_ofPair;
};

std::int64_t scaled(std::int64_t value, double factor); // a time or a size, rounded
// The forward of a microbatch over the stages of a rank, the mean over ranks: the unit of latencies that are given in
// forwards.
Nanos forwardUnit(const Schedule& schedule, const CostModel& costs);

} // namespace stagewright
