#include "profiler/record/virtual_clock.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "profiler/record/step_record.h"
#include "schedules/execute/place_buckets.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"
#include "schedules/model/shard_rules.h"
#include "schedules/step/step_arrivals.h"

namespace stagewright {

namespace {

// What an op takes on the virtual clock: at least 1 ns, so that ends on a rank stay distinct.
Nanos durationOf(const RecordedOp& op)
{
    if (isDelay(op.op.kind)) return op.op.delay;
    if (ruleOf(op.op.kind).timedBy == TimedBy::Nothing) return 0;
    if (op.arrived >= 0) return std::max<Nanos>(1, std::max<Nanos>(0, op.cpu) + op.taken);
    return std::max<Nanos>(1, op.cpu >= 0 ? op.cpu : op.end - op.begin);
}

// Message bytes by stage: of the activations that leave it, or of the gradient that comes back, which are equal. A
// microbatch that goes in parts counts as their sum.
std::vector<Bytes> boundariesOf(const StepRecord& record)
{
    std::vector<Bytes> bytes(static_cast<std::size_t>(record.schedule->compute().stages), 0);
    std::map<std::tuple<std::uint16_t, bool, std::int32_t>, Bytes> whole; // by consumer, direction and microbatch
    for (const RecordedMessage& message : record.messages) {
        const MessageKey& key = message.key;
        const std::size_t stage = key.gradient ? key.stage : static_cast<std::size_t>(key.stage) - 1;
        const Bytes sum = whole[{key.stage, key.gradient, key.microbatch}] += message.bytes;
        bytes[stage] = std::max(bytes[stage], sum);
    }
    return bytes;
}

// Where ranks share state and step behind a barrier nobody does before all gradients are known: the lists' ends, from
// their first optimizer op on, are placed behind that.
Result<void> placeEnds(StepRecord& record, const Links& links)
{
    Schedule ends = record.schedule->compute();
    ends.paired.clear();
    Nanos met = record.begin;
    std::vector<RecordedOp*> ops;
    std::vector<Nanos> durations;
    for (std::size_t rank = 0; rank < record.ops.size(); ++rank) {
        std::vector<Op>& row = ends.order[rank];
        row.clear();
        for (RecordedOp& op : record.ops[rank]) {
            if (op.position < 0) continue;
            if (row.empty() && !isOptimizer(op.op.kind)) {
                met = std::max(met, op.end);
                continue;
            }
            row.push_back(op.op);
            ops.push_back(&op);
            durations.push_back(durationOf(op));
        }
    }
    STAGEWRIGHT_TRY(const SimResult placed, place(ends, durations, links));
    for (std::size_t i = 0; i < ops.size(); ++i) {
        ops[i]->begin = met + placed.start[i];
        ops[i]->end = met + placed.end[i];
    }
    return {};
}

} // namespace

Result<void> placeOnVirtualClock(StepRecord& record, const Links& links, Nanos begin,
                                 const RunPerturbation& perturbation, std::span<const int> gradientBuckets,
                                 const Channels& channels)
{
    if (perturbation.changesDurations())
        for (std::size_t rank = 0; rank < record.ops.size(); ++rank)
            for (RecordedOp& op : record.ops[rank])
                if (isCompute(op.op.kind))
                    op.cpu = std::llround(static_cast<double>(durationOf(op)) *
                                          perturbation.factorOf(static_cast<int>(rank), record.step, op.op));
    const std::vector<Nanos>& launch = perturbation.launch;
    const Schedule& schedule = record.schedule->compute();
    std::vector<Nanos> durations;
    durations.reserve(schedule.opCount());
    for (const std::vector<RecordedOp>& ops : record.ops) {
        for (const RecordedOp& op : ops) {
            if (op.position >= 0) durations.push_back(durationOf(op));
        }
    }
    const std::vector<Bytes> boundaries = boundariesOf(record);
    addLaunch(schedule, launch, durations);
    const bool shared = sharesState(schedule);
    Links lanes = links;
    if (shared) lanes.collectives = ResourceUse::Beside;
    Result<SimResult> placed = placeBuckets(*record.schedule, durations, lanes, gradientBuckets, boundaries, channels);
    if (!placed) return tl::unexpected(std::move(placed.error()).with("virtual clock"));
    takeLaunch(schedule, launch, *placed);

    record.clock = "virtual";
    record.begin = begin;
    Nanos last = begin;
    for (std::size_t rank = 0; rank < record.ops.size(); ++rank) {
        for (RecordedOp& op : record.ops[rank]) {
            if (op.position < 0) continue;
            const std::size_t at = placed->indexOf(static_cast<int>(rank), static_cast<std::size_t>(op.position));
            if (!isDelay(op.op.kind) && !(shared && isCollective(op.op.kind))) op.cpu = durationOf(op);
            op.begin = begin + placed->start[at];
            op.end = begin + placed->end[at];
        }
    }
    if (shared && !stepsOnArrival(schedule)) STAGEWRIGHT_CHECK(placeEnds(record, lanes));
    for (std::vector<RecordedOp>& ops : record.ops)
        for (RecordedOp& op : ops) {
            if (op.position < 0) continue; // placed below
            if (op.arrived >= 0) op.arrived = op.takeBegin = op.takeEnd = op.end;
            last = std::max(last, op.end);
        }
    for (const StateWork phase : {StateWork::Reduce, StateWork::Step}) { // each behind a barrier
        const Nanos start = last;
        for (std::vector<RecordedOp>& ops : record.ops) {
            Nanos at = start;
            for (RecordedOp& op : ops) {
                if (op.position >= 0 || ruleOf(op.op.kind).state != phase) continue;
                op.cpu = durationOf(op);
                op.begin = at;
                at = op.end = at + op.cpu;
            }
            last = std::max(last, at);
        }
    }
    const StepRules rules{links, channels, boundaries};
    const StepArrivals arrivals(schedule, record.schedule->index(), rules, placed->end);
    for (RecordedMessage& message : record.messages) {
        const std::vector<RecordedOp>& to = record.ops[static_cast<std::size_t>(message.toRank)];
        const RecordedOp& from = record.ops[static_cast<std::size_t>(message.fromRank)][message.fromOp];
        message.sent = from.end;
        const auto idOf = [&](int rank, std::size_t op) {
            return static_cast<std::uint32_t>(placed->indexOf(
                rank, static_cast<std::size_t>(record.ops[static_cast<std::size_t>(rank)][op].position)));
        };
        message.arrival = message.available =
            begin + arrivals
                        .between(idOf(message.fromRank, message.fromOp), idOf(message.toRank, message.toOp),
                                 to[message.toOp].op, message.toRank, from.op.stage)
                        .arrival;
        const Nanos idleFrom = message.toOp == 0 ? begin : to[message.toOp - 1].end;
        message.waitBegin = message.available > idleFrom ? idleFrom : -1;
        message.takeBegin = message.takeEnd = to[message.toOp].begin;
    }
    return {};
}

} // namespace stagewright
