#include "schedules/model/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "schedules/model/kinds.h"

namespace stagewright {

Bytes shareOf(const StageMemory& memory, MemoryShare share, Bytes bucket)
{
    switch (share) {
    case MemoryShare::Activation: return memory.activation;
    case MemoryShare::Recomputed: return memory.activation - memory.boundary;
    case MemoryShare::InputPart: return memory.freedAtInput;
    case MemoryShare::Remainder: return memory.activation - memory.freedAtInput;
    case MemoryShare::Workspace: return memory.workspace;
    case MemoryShare::Weight: return memory.weight;
    case MemoryShare::Gradient: return memory.gradient;
    case MemoryShare::Bucket: break;
    }
    return bucket > 0 ? std::min(bucket, memory.gradient) : memory.gradient;
}

Nanos Links::delay(int fromRank, int toRank, Bytes bytes) const { return transit(fromRank, toRank, bytes).delay; }

Nanos Copies::duration(bool out, Bytes bytes) const
{
    const double speed = out ? outBytesPerSecond : inBytesPerSecond;
    return speed > 0 ? latency + std::llround(static_cast<double>(bytes) / speed * 1e9) : 0;
}

std::vector<Cards::Place> Cards::places() const
{
    std::map<int, std::pair<int, int>> known; // by host: its first rank, how many it has
    std::vector<Place> out;
    for (const int host : hosts) {
        auto& [first, count] = known.try_emplace(host, static_cast<int>(out.size()), 0).first->second;
        out.push_back({first, count++ % std::max(1, perHost)});
    }
    return out;
}

bool Links::haveBandwidth() const
{
    return all.bytesPerSecond > 0 || (!cards.hosts.empty() && cards.link.bytesPerSecond > 0) ||
           std::any_of(overrides.begin(), overrides.end(),
                       [](const auto& link) { return link.second.bytesPerSecond > 0; });
}

Link Links::of(int fromRank, int toRank) const
{
    if (fromRank == toRank) return {};
    if (!overrides.empty())
        if (const auto found = overrides.find({fromRank, toRank}); found != overrides.end()) return found->second;
    return cards.between(fromRank, toRank) ? cards.link : all;
}

Transit Links::transit(int fromRank, int toRank, Bytes bytes) const
{
    const Link link = of(fromRank, toRank);
    const Nanos occupied = link.bytesPerSecond <= 0 || bytes == 0
                               ? 0
                               : std::llround(static_cast<double>(bytes) / link.bytesPerSecond * 1e9);
    return {link.latency + occupied, occupied};
}

CostModel::CostModel(int stages, CostSource from) : memory(static_cast<std::size_t>(std::max(stages, 0))), source(from)
{
}

CostModel CostModel::uniform(const Schedule& schedule, const UnitCosts& costs)
{
    CostModel model(schedule.stages, CostSource::Uniform);
    model.timeUnit = rankShare;
    model.memoryUnit = activationShare;
    // A stage is ranks / stages of one rank's share, also where a stage has several copies.
    const double part = schedule.stages > 0 ? static_cast<double>(schedule.pipelineRanks()) / schedule.stages : 1.0;
    auto nanos = [part](double units) { return static_cast<Nanos>(std::llround(units * part * rankShare)); };
    const Nanos inputGrad = nanos(costs.inputGrad);
    const Nanos weightGrad = nanos(costs.weightGrad);
    for (int s = 0; s < schedule.stages; ++s) {
        model.setDuration(OpKind::Forward, s, nanos(costs.forward));
        model.setDuration(OpKind::InputGrad, s, inputGrad);
        model.setDuration(OpKind::WeightGrad, s, weightGrad);
        model.setDuration(OpKind::Backward, s, costs.backward < 0 ? inputGrad + weightGrad : nanos(costs.backward));
        model.setDuration(OpKind::Recompute, s, nanos(costs.forward));
        model.setDuration(OpKind::Optimizer, s, nanos(costs.optimizer));
        if (costs.copy > 0)
            for (const OpKind kind : {OpKind::Offload, OpKind::Reload}) model.setDuration(kind, s, nanos(costs.copy));
        const auto sometimes = [&](OpKind kind, double units) {
            if (units > 0) model.setDuration(kind, s, nanos(units));
        };
        sometimes(OpKind::FactorA, costs.factorA);
        sometimes(OpKind::FactorG, costs.factorG);
        sometimes(OpKind::Invert, costs.invert / std::max(1, costs.pieces));
        StageMemory& memory = model.memory[static_cast<std::size_t>(s)];
        memory.activation = std::llround(part * activationShare);
        memory.freedAtInput = std::llround(costs.freedAtInput * static_cast<double>(memory.activation));
    }
    model.sliceStarts = sliceStartsOf(schedule);
    model.links.all.latency = std::llround(costs.latency * rankShare);
    model.origin = fmt::format("F={}, I={}, W={}", costs.forward, costs.inputGrad, costs.weightGrad);
    if (costs.backward >= 0) model.origin += fmt::format(", B={}", costs.backward);
    if (costs.optimizer > 0) model.origin += fmt::format(", OPT={}", costs.optimizer);
    if (costs.copy > 0) model.origin += fmt::format(", copy={}", costs.copy);
    if (costs.factorA > 0) model.origin += fmt::format(", A={}", costs.factorA);
    if (costs.factorG > 0) model.origin += fmt::format(", G={}", costs.factorG);
    if (costs.invert > 0) model.origin += fmt::format(", INVERT={}", costs.invert);
    if (costs.latency > 0) model.origin += fmt::format(", latency={}", costs.latency);
    if (costs.freedAtInput > 0) model.origin += fmt::format(", freed at I={}", costs.freedAtInput);
    return model;
}

Nanos CostModel::duration(const Op& op, int rank) const
{
    if (isDelay(op.kind)) return op.delay;
    if (isInPieces(op.kind)) return duration(op.kind, op.stage, rank);
    Nanos whole = 0;
    if (const auto own = m_ofMicrobatch.find({op.kind, op.stage}); own != m_ofMicrobatch.end() && op.microbatch >= 0) {
        const Nanos usual = duration(op.kind, op.stage, rank);
        for (int k = 0; k < op.count; ++k) {
            const auto at = static_cast<std::size_t>(op.microbatch) + static_cast<std::size_t>(k);
            const Nanos one = at < own->second.size() && own->second[at] >= 0 ? own->second[at] : usual;
            whole += op.slice >= 0 ? shareOfSlice(one, sliceStarts, op.slice) : one;
        }
    } else {
        whole = duration(op.kind, op.stage, rank);
        if (op.slice >= 0) whole = shareOfSlice(whole, sliceStarts, op.slice);
        if (!isCollective(op.kind)) whole *= op.count; // one message however many microbatches it is of
    }
    if (op.half == 0) return whole;
    return op.half == 1 ? whole / 2 : whole - whole / 2; // both halves together take the whole
}

Nanos CostModel::duration(OpKind kind, int stage, int rank) const
{
    if (!m_onRank.empty()) {
        if (auto found = m_onRank.find({kind, stage, rank}); found != m_onRank.end()) return found->second;
    }
    const auto& byStage = m_byStage[static_cast<std::size_t>(kind)];
    const auto index = static_cast<std::size_t>(stage);
    if (index < byStage.size() && byStage[index] > 0) return byStage[index];
    return isCopy(kind) && index < memory.size() ? links.copies.duration(isOffload(kind), memory[index].activation) : 0;
}

void CostModel::setPasses(int stage, Nanos forward, Nanos input, Nanos weight)
{
    setDuration(OpKind::Forward, stage, forward);
    setDuration(OpKind::Recompute, stage, forward);
    setDuration(OpKind::InputGrad, stage, input);
    setDuration(OpKind::WeightGrad, stage, weight);
    setDuration(OpKind::Backward, stage, input + weight);
}

void CostModel::setDuration(OpKind kind, int stage, Nanos duration)
{
    auto& byStage = m_byStage[static_cast<std::size_t>(kind)];
    const auto index = static_cast<std::size_t>(stage);
    if (byStage.size() <= index) byStage.resize(std::max(index + 1, memory.size()), 0);
    byStage[index] = duration;
}

void CostModel::setDuration(OpKind kind, int stage, int rank, Nanos duration)
{
    m_onRank[{kind, stage, rank}] = duration;
}

void CostModel::setMicrobatchDuration(OpKind kind, int stage, int microbatch, Nanos duration)
{
    auto& own = m_ofMicrobatch[{kind, stage}];
    const auto index = static_cast<std::size_t>(microbatch);
    if (own.size() <= index) own.resize(index + 1, -1);
    own[index] = duration;
}

std::span<const Nanos> CostModel::microbatchDurations(OpKind kind, int stage) const
{
    const auto own = m_ofMicrobatch.find({kind, stage});
    return own == m_ofMicrobatch.end() ? std::span<const Nanos>() : std::span<const Nanos>(own->second);
}

double CostModel::relativeSize(int stage, int microbatch, int rank) const
{
    if (!hasRelativeSizes() || microbatch < 0) return 1;
    const auto own = microbatchDurations(OpKind::Forward, stage);
    const auto at = static_cast<std::size_t>(microbatch);
    const Nanos usual = duration(OpKind::Forward, stage, rank);
    return at < own.size() && own[at] >= 0 && usual > 0 ? static_cast<double>(own[at]) / static_cast<double>(usual) : 1;
}

CostModel::PairKey CostModel::pairKey(OpKind a, int stageA, OpKind b, int stageB, int rank)
{
    if (std::pair(b, stageB) < std::pair(a, stageA)) return {b, stageB, a, stageA, rank};
    return {a, stageA, b, stageB, rank};
}

Nanos CostModel::pairDuration(const Op& a, const Op& b, int rank) const
{
    const auto whole = [](const Op& op) { return op.count == 1 && op.half == 0 && op.slice < 0; };
    if (m_ofPair.empty() || !whole(a) || !whole(b)) return -1;
    for (const int on : {rank, -1})
        if (const auto found = m_ofPair.find(pairKey(a.kind, a.stage, b.kind, b.stage, on)); found != m_ofPair.end())
            return found->second;
    return -1;
}

void CostModel::setPairDuration(OpKind a, int stageA, OpKind b, int stageB, int rank, Nanos duration)
{
    m_ofPair[pairKey(a, stageA, b, stageB, rank)] = duration;
}

std::int64_t scaled(std::int64_t value, double factor) { return std::llround(static_cast<double>(value) * factor); }

// A pair takes longer by what its one op takes longer, in proportion. rank −1: on every rank.
void CostModel::scalePairs(OpKind kind, int stage, int rank, double factor)
{
    const auto factorOf = [&](const PairKey& key, int on) {
        const auto a = static_cast<double>(duration(key.a, key.stageA, on));
        const auto b = static_cast<double>(duration(key.b, key.stageB, on));
        const double more = (key.a == kind && key.stageA == stage ? a * (factor - 1) : 0) +
                            (key.b == kind && key.stageB == stage ? b * (factor - 1) : 0);
        return a + b > 0 ? 1 + more / (a + b) : 1.0;
    };
    std::map<PairKey, Nanos> own; // of the rank, where there was one of every rank
    for (auto& [key, pair] : m_ofPair) {
        if (!(key.a == kind && key.stageA == stage) && !(key.b == kind && key.stageB == stage)) continue;
        if (rank < 0 || key.rank == rank) {
            pair = scaled(pair, factorOf(key, key.rank));
        } else if (key.rank < 0) {
            PairKey here = key;
            here.rank = rank;
            if (!m_ofPair.contains(here)) own[here] = scaled(pair, factorOf(key, rank));
        }
    }
    m_ofPair.merge(own);
}

void CostModel::scale(OpKind kind, int stage, double factor)
{
    scalePairs(kind, stage, -1, factor);
    auto& byStage = m_byStage[static_cast<std::size_t>(kind)];
    if (static_cast<std::size_t>(stage) < byStage.size())
        byStage[static_cast<std::size_t>(stage)] = scaled(byStage[static_cast<std::size_t>(stage)], factor);
    for (auto at = m_onRank.lower_bound({kind, stage, std::numeric_limits<int>::min()});
         at != m_onRank.end() && std::get<0>(at->first) == kind && std::get<1>(at->first) == stage; ++at)
        at->second = scaled(at->second, factor);
    if (const auto own = m_ofMicrobatch.find({kind, stage}); own != m_ofMicrobatch.end())
        for (Nanos& duration : own->second)
            if (duration >= 0) duration = scaled(duration, factor);
}

bool CostModel::knowsActivations() const
{
    return std::any_of(memory.begin(), memory.end(), [](const StageMemory& stage) { return stage.activation != 0; });
}

void CostModel::scaleOnRank(OpKind kind, int stage, int rank, const Placement& placement, double factor)
{
    scalePairs(kind, stage, rank, factor);
    if (const Nanos own = duration(kind, stage, rank); own > 0) setDuration(kind, stage, rank, scaled(own, factor));
    const auto own = m_ofMicrobatch.find({kind, stage});
    if (own == m_ofMicrobatch.end()) return;
    for (std::size_t microbatch = 0; microbatch < own->second.size(); ++microbatch)
        if (Nanos& duration = own->second[microbatch];
            duration >= 0 && placement.rankOf(stage, static_cast<int>(microbatch)) == rank)
            duration = scaled(duration, factor);
}

StageMemory CostModel::memoryOf(const Schedule& schedule, int stage, int microbatch) const
{
    StageMemory out = memory[static_cast<std::size_t>(stage)];
    const int rank = schedule.placement.rankOf(stage, microbatch);
    const double size = relativeSize(stage, microbatch, rank);
    for (Bytes* bytes : {&out.activation, &out.freedAtInput, &out.boundary}) {
        *bytes = sized(*bytes, schedule.replicaOf(rank));
        if (size != 1) *bytes = scaled(*bytes, size);
    }
    return out;
}

Bytes CostModel::sized(Bytes bytes, int replica) const
{
    const auto at = static_cast<std::size_t>(replica);
    return at < sizes.size() && sizes[at] != 1 ? std::llround(static_cast<double>(bytes) * sizes[at]) : bytes;
}

Nanos forwardUnit(const Schedule& schedule, const CostModel& costs)
{
    double total = 0;
    for (int rank = 0; rank < schedule.ranks; ++rank)
        for (const int stage : schedule.placement.stagesOf(rank))
            total +=
                static_cast<double>(costs.duration(OpKind::Forward, stage, rank)) /
                static_cast<double>(std::max<std::size_t>(schedule.placement.copiesOf(stage).size() /
                                                              static_cast<std::size_t>(std::max(1, schedule.replicas)),
                                                          1));
    return schedule.ranks > 0 ? std::llround(total / schedule.ranks) : 0;
}

} // namespace stagewright
