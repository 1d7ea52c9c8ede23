#include "schedules/heuristic/pipeline.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stagewright::planning {

namespace {

constexpr PassKind passKinds[] = {PassKind::Forward, PassKind::InputGrad, PassKind::WeightGrad, PassKind::Backward};

Placement placementOf(const Pipeline& pipeline)
{
    return pipeline.chunks == 1 ? Placement::loop(pipeline.ranks, pipeline.ranks) : Placement::vShape(pipeline.ranks);
}

OpKind opKindOf(PassKind kind)
{
    constexpr OpKind kinds[] = {OpKind::Forward, OpKind::InputGrad, OpKind::WeightGrad, OpKind::Backward};
    return kinds[static_cast<std::size_t>(kind)];
}

// The least of each stage's microbatches, and each one's own.
void setOwn(Pipeline& pipeline, const Schedule& shape, const CostModel& costs)
{
    for (int s = 0; s < pipeline.stages(); ++s) {
        const auto stage = static_cast<std::size_t>(s);
        const int rank = pipeline.rankOf(s);
        const Nanos launch =
            static_cast<std::size_t>(rank) < costs.launch.size() ? costs.launch[static_cast<std::size_t>(rank)] : 0;
        OwnPass least[passKindCount];
        Bytes freed = 0;
        Bytes boundary = 0;
        for (int j = 0; j < pipeline.microbatches; ++j) {
            const StageMemory memory = costs.memoryOf(shape, s, j);
            const auto timeOf = [&](OpKind kind) { return costs.duration(makeOp(kind, s, j), rank) + launch; };
            OwnPass of[passKindCount] = {{timeOf(OpKind::Forward), memory.activation},
                                         {timeOf(OpKind::InputGrad), -memory.freedAtInput},
                                         {timeOf(OpKind::WeightGrad), memory.freedAtInput - memory.activation},
                                         {timeOf(OpKind::Backward), -memory.activation}};
            if (costs.duration(makeOp(OpKind::Backward, s, j), rank) == 0)
                of[3].duration = of[1].duration + of[2].duration;
            const bool smaller = j == 0 || memory.activation < least[0].delta;
            for (std::size_t kind = 0; kind < passKindCount; ++kind) {
                pipeline.own[kind].push_back(of[kind]);
                least[kind].duration = j == 0 ? of[kind].duration : std::min(least[kind].duration, of[kind].duration);
                // of one microbatch: what it holds in between is in proportion
                if (smaller) least[kind].delta = of[kind].delta;
            }
            if (smaller) freed = memory.freedAtInput;
            boundary = j == 0 ? memory.boundary : std::min(boundary, memory.boundary);
            const bool full = of[3].duration < of[1].duration + of[2].duration || freed < 0;
            if (full) pipeline.full[stage] = 1;
        }
        for (std::size_t kind = 0; kind < passKindCount; ++kind) {
            pipeline.duration[kind][stage] = least[kind].duration;
            pipeline.delta[kind][stage] = least[kind].delta;
        }
        if (s + 1 == pipeline.stages()) continue;
        pipeline.fromBelow[stage + 1] = costs.links.delay(rank, pipeline.rankOf(s + 1), boundary);
        pipeline.fromAbove[stage] = costs.links.delay(pipeline.rankOf(s + 1), rank, boundary);
    }
}

void setOrigins(Pipeline& pipeline, const CostModel& costs, Objective objective)
{
    pipeline.origin.assign(static_cast<std::size_t>(pipeline.ranks), 0);
    if (objective == Objective::Makespan) return;
    // A rank's first op is its first stage's F of microbatch 0: all that could come before it needs it.
    for (int r = 0; r < pipeline.ranks; ++r)
        pipeline.origin[static_cast<std::size_t>(r)] =
            pipeline.head(r) +
            (static_cast<std::size_t>(r) < costs.launch.size() ? costs.launch[static_cast<std::size_t>(r)] : 0);
}

} // namespace

Nanos Pipeline::work(int rank) const
{
    Nanos sum = 0;
    for (int c = 0; c < chunks; ++c) sum += time(PassKind::Forward, stageOf(rank, c)) + backTime(stageOf(rank, c));
    return sum * microbatches;
}

Nanos Pipeline::backTime(int stage) const
{
    const Nanos apart = time(PassKind::InputGrad, stage) + time(PassKind::WeightGrad, stage);
    return usesFull(stage) ? std::min(apart, time(PassKind::Backward, stage)) : apart;
}

Nanos Pipeline::gradientTime(int stage) const
{
    const Nanos input = time(PassKind::InputGrad, stage);
    return usesFull(stage) ? std::min(input, time(PassKind::Backward, stage)) : input;
}

Nanos Pipeline::head(int stage) const
{
    Nanos at = 0;
    for (int s = 0; s < stage; ++s) at += time(PassKind::Forward, s) + fromBelow[static_cast<std::size_t>(s) + 1];
    return at;
}

Nanos Pipeline::turn(int stage) const
{
    Nanos at = head(stages() - 1) + time(PassKind::Forward, stages() - 1);
    for (int s = stages() - 1; s > stage; --s) at += gradientTime(s) + fromAbove[static_cast<std::size_t>(s) - 1];
    return at;
}

Result<Pipeline> pipelineOf(int ranks, int chunks, int microbatches, const CostModel& costs,
                            const std::vector<Bytes>& caps, Objective objective)
{
    if (ranks < 1 || microbatches < 1)
        return fail(ErrorCode::Usage, fmt::format("plan: {} ranks, {} microbatches; at least one of each is needed",
                                                  ranks, microbatches));
    if (chunks != 1 && chunks != 2)
        return fail(ErrorCode::Usage,
                    fmt::format("plan: {} chunks; the planner knows 1, and 2 in V placement", chunks));
    if (costs.stages() != ranks * chunks)
        return fail(ErrorCode::Usage,
                    fmt::format("plan: the costs are of {} stages, {} ranks with {} chunks have {}", costs.stages(),
                                ranks, chunks, ranks * chunks),
                    "give costs of as many stages");
    if (!caps.empty() && caps.size() != static_cast<std::size_t>(ranks))
        return fail(ErrorCode::Usage, fmt::format("plan: {} memory caps for {} ranks", caps.size(), ranks),
                    "give one, or one for each rank");
    if (costs.hasMicrobatchDurations() && objective == Objective::Span)
        return fail(ErrorCode::Usage, "plan: spans are not planned for microbatches that differ in time",
                    "plan the makespan, or remove 'microbatches' from the costs");
    Pipeline out;
    out.ranks = ranks;
    out.chunks = chunks;
    out.microbatches = microbatches;
    for (int s = 0; s < ranks * chunks; ++s) {
        const int rank = out.rankOf(s);
        const StageMemory& memory = costs.memory[static_cast<std::size_t>(s)];
        const Nanos launch =
            static_cast<std::size_t>(rank) < costs.launch.size() ? costs.launch[static_cast<std::size_t>(rank)] : 0;
        for (PassKind kind : passKinds)
            out.duration[static_cast<std::size_t>(kind)].push_back(costs.duration(opKindOf(kind), s, rank) + launch);
        out.delta[0].push_back(memory.activation);
        out.delta[1].push_back(-memory.freedAtInput);
        out.delta[2].push_back(memory.freedAtInput - memory.activation);
        out.delta[3].push_back(-memory.activation);
        const Nanos apart = out.duration[1].back() + out.duration[2].back();
        Nanos& backward = out.duration[3].back();
        if (backward == launch) backward = apart;
        out.full.push_back(backward < apart || memory.freedAtInput < 0 ? 1 : 0);
        out.fromBelow.push_back(s == 0 ? 0
                                       : costs.links.delay(out.rankOf(s - 1), rank,
                                                           costs.memory[static_cast<std::size_t>(s) - 1].boundary));
        out.fromAbove.push_back(s + 1 == ranks * chunks ? 0
                                                        : costs.links.delay(out.rankOf(s + 1), rank, memory.boundary));
    }
    out.cap = caps.empty() ? std::vector<Bytes>(static_cast<std::size_t>(ranks), Pipeline::unlimited) : caps;
    if (costs.hasMicrobatchDurations()) {
        Schedule shape;
        shape.ranks = ranks;
        shape.stages = ranks * chunks;
        shape.microbatches = microbatches;
        shape.placement = placementOf(out);
        setOwn(out, shape, costs);
    }
    setOrigins(out, costs, objective);
    return out;
}

Pipeline evenPipeline(int ranks, int chunks, int microbatches, const GeneratorCosts& costs, double cap,
                      Objective objective)
{
    Pipeline out;
    out.ranks = ranks;
    out.chunks = chunks;
    out.microbatches = microbatches;
    const auto stages = static_cast<std::size_t>(ranks * chunks);
    const double units[] = {costs.forward, costs.inputGrad, costs.weightGrad};
    for (std::size_t k = 0; k < 3; ++k) out.duration[k].assign(stages, std::llround(units[k] * rankShare / chunks));
    out.duration[3].assign(stages, out.duration[1].front() + out.duration[2].front());
    out.full.assign(stages, 0);
    const Nanos latency = std::llround(costs.latency * rankShare);
    for (int s = 0; s < ranks * chunks; ++s) {
        out.fromBelow.push_back(s == 0 || out.rankOf(s - 1) == out.rankOf(s) ? 0 : latency);
        out.fromAbove.push_back(s + 1 == ranks * chunks || out.rankOf(s + 1) == out.rankOf(s) ? 0 : latency);
    }
    const Bytes activation = activationShare / chunks;
    const Bytes freed = std::llround(costs.freedAtInput * static_cast<double>(activation));
    out.delta[0].assign(stages, activation);
    out.delta[1].assign(stages, -freed);
    out.delta[2].assign(stages, freed - activation);
    out.delta[3].assign(stages, -activation);
    const Bytes limit =
        cap <= 0 || cap > 1e9 ? Pipeline::unlimited : static_cast<Bytes>(std::floor(cap * activationShare));
    out.cap.assign(static_cast<std::size_t>(ranks), limit);
    setOrigins(out, {}, objective);
    return out;
}

Schedule scheduleOf(const Pipeline& pipeline, const Words& words, std::string name)
{
    Schedule out;
    out.name = std::move(name);
    out.ranks = pipeline.ranks;
    out.stages = pipeline.stages();
    out.microbatches = pipeline.microbatches;
    out.placement = placementOf(pipeline);
    for (int r = 0; r < pipeline.ranks; ++r) {
        int forwards[2] = {};
        int gradients[2] = {};
        std::vector<int> apart[2]; // microbatches that went back by I, by chunk
        std::size_t weights[2] = {};
        auto& ops = out.order.emplace_back();
        for (Letter letter : words[static_cast<std::size_t>(r)]) {
            const int chunk = chunkOf(letter);
            int microbatch = 0;
            switch (kindOf(letter)) {
            case PassKind::Forward: microbatch = forwards[chunk]++; break;
            case PassKind::InputGrad: apart[chunk].push_back(gradients[chunk]); [[fallthrough]];
            case PassKind::Backward: microbatch = gradients[chunk]++; break;
            case PassKind::WeightGrad: microbatch = apart[chunk][weights[chunk]++]; break;
            }
            ops.push_back(makeOp(opKindOf(kindOf(letter)), pipeline.stageOf(r, chunk), microbatch));
        }
    }
    return out;
}

std::optional<Words> wordsOf(const Pipeline& pipeline, const Schedule& schedule)
{
    if (schedule.ranks != pipeline.ranks || schedule.stages != pipeline.stages() ||
        schedule.microbatches != pipeline.microbatches)
        return {};
    Words out;
    for (int r = 0; r < pipeline.ranks; ++r) {
        const auto rank = static_cast<std::size_t>(r);
        if (rank < schedule.paired.size() && !schedule.paired[rank].empty()) return {};
        int forwards[2] = {};
        int gradients[2] = {};
        std::vector<int> apart[2];
        std::size_t weights[2] = {};
        Word& word = out.emplace_back();
        for (const Op& op : schedule.order[rank]) {
            if (op.stage >= pipeline.stages() || pipeline.rankOf(op.stage) != r || op.count != 1 || op.slice >= 0 ||
                op.half != 0)
                return {};
            const int chunk = pipeline.chunkOfStage(op.stage);
            int expected = -1;
            switch (op.kind) {
            case OpKind::Forward: expected = forwards[chunk]++; break;
            case OpKind::InputGrad: apart[chunk].push_back(gradients[chunk]); [[fallthrough]];
            case OpKind::Backward: expected = gradients[chunk]++; break;
            case OpKind::WeightGrad:
                if (weights[chunk] < apart[chunk].size()) expected = apart[chunk][weights[chunk]++];
                break;
            default: break;
            }
            if (op.microbatch != expected) return {};
            for (PassKind kind : passKinds) {
                if (opKindOf(kind) != op.kind) continue;
                if (kind == PassKind::Backward && !pipeline.usesFull(op.stage)) {
                    word.push_back(letterOf(PassKind::InputGrad, chunk));
                    kind = PassKind::WeightGrad;
                }
                word.push_back(letterOf(kind, chunk));
                break;
            }
        }
    }
    return out;
}

Bytes leastMemory(const Pipeline& pipeline, int rank)
{
    Bytes peak = 0;
    for (int j = 0; j < (pipeline.alike() ? 1 : pipeline.microbatches); ++j) {
        Bytes held = 0;
        const auto add = [&](PassKind kind, int chunk) {
            const int stage = pipeline.stageOf(rank, chunk);
            held += pipeline.alike() ? pipeline.change(kind, stage) : pipeline.ownPass(kind, stage, j).delta;
            peak = std::max(peak, held);
        };
        for (int c = 0; c < pipeline.chunks; ++c) add(PassKind::Forward, c);
        for (int c = pipeline.chunks - 1; c >= 0; --c) {
            if (pipeline.usesFull(pipeline.stageOf(rank, c))) { // never holds more than I and W do
                add(PassKind::Backward, c);
                continue;
            }
            add(PassKind::InputGrad, c);
            add(PassKind::WeightGrad, c);
        }
    }
    return peak;
}

} // namespace stagewright::planning
