// placeOnDevice: a step's ops and messages on the device's times.
#include "profiler/cupti/device_times.h"

#include <algorithm>

#include "profiler/cupti/correlate.h"

namespace stagewright {

namespace {

// Ops of a rank in their order. Two ops issued together that ran at the same time share one interval.
void placeOps(std::vector<RecordedOp>& ops, const std::vector<DeviceOp>& device, const Schedule& schedule, int rank,
              Nanos stepBegin, GpuTraceCounts& counts)
{
    Nanos last = stepBegin;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        RecordedOp& op = ops[i];
        const Nanos launching = op.end - op.begin; // on the CPU
        op.cpu = -1;
        const DeviceInterval at = device[i].interval;
        const bool pair =
            op.position >= 0 && schedule.isPaired(rank, static_cast<std::size_t>(op.position)) && i + 1 < ops.size();
        if (pair && at.known() && device[i + 1].interval.known()) {
            const DeviceInterval with = device[i + 1].interval;
            if (at.begin < with.end && with.begin < at.end) {
                counts.overlapping += std::min(at.begin, with.begin) < last ? 1 : 0;
                op.begin = std::max(last, std::min(at.begin, with.begin));
                op.end = last = std::max({op.begin, at.end, with.end});
                RecordedOp& other = ops[++i];
                other.begin = op.begin;
                other.end = op.end;
                other.cpu = -1;
                continue;
            }
        }
        if (at.known()) {
            counts.overlapping += at.begin < last && at.end > at.begin ? 1 : 0;
            op.begin = std::max(last, at.begin);
            op.end = std::max(op.begin, at.end);
        } else { // no longer than until the next op that is known
            Nanos room = launching;
            for (std::size_t next = i + 1; next < ops.size(); ++next) {
                if (!device[next].interval.known()) continue;
                room = std::clamp<Nanos>(device[next].interval.begin - std::max(last, op.begin), 0, launching);
                op.begin = std::min(op.begin, std::max(last, device[next].interval.begin - room));
                break;
            }
            op.begin = std::max(last, op.begin);
            op.end = op.begin + room;
        }
        last = op.end;
    }
}

void placeMessage(RecordedMessage& message, const DeviceMessage& device, const StepRecord& step)
{
    const std::vector<RecordedOp>& from = step.ops[static_cast<std::size_t>(message.fromRank)];
    const std::vector<RecordedOp>& to = step.ops[static_cast<std::size_t>(message.toRank)];
    const Nanos idleFrom = message.toOp == 0 ? step.begin : to[message.toOp - 1].end;
    const Nanos consumed = to[message.toOp].begin;
    // a stream of its own waits for the other end, not the rank: no time on lane Wait at the sender
    if (device.known()) {
        message.sendPosted = message.sent = device.send.begin;
        message.receivePosted = device.receive.begin;
        message.available = device.send.end;
        message.takeBegin = device.transferBegin;
        message.takeEnd = message.arrival = std::max(device.receive.end, device.transferBegin);
    } else { // handed over without a copy
        message.sendPosted = message.receivePosted = -1;
        message.sent = message.available = message.arrival = from[message.fromOp].end;
        message.takeBegin = message.takeEnd = std::max(consumed, message.available);
    }
    message.waitBegin =
        message.arrival > idleFrom && message.takeBegin > idleFrom && consumed > idleFrom ? idleFrom : -1;
}

} // namespace

void placeOnDevice(StepRecord& step, DeviceStep& device)
{
    for (std::size_t rank = 0; rank < step.ops.size(); ++rank)
        placeOps(step.ops[rank], device.ops[rank], step.schedule->compute(), static_cast<int>(rank), step.begin,
                 device.counts);
    for (std::size_t i = 0; i < step.messages.size(); ++i) placeMessage(step.messages[i], device.messages[i], step);
    for (const DeviceWork& work : device.work) {
        if (work.rank < 0) continue;
        RecordedWork one;
        one.rank = work.rank;
        one.op = work.op;
        if (work.op < 0 && work.message >= 0) { // the producer's or the consumer's: of the rank it ran on
            const RecordedMessage& message = step.messages[static_cast<std::size_t>(work.message)];
            one.op = static_cast<std::int32_t>(message.fromRank == work.rank ? message.fromOp : message.toOp);
        }
        one.lane = work.lane;
        one.collective = work.collective;
        one.begin = work.begin;
        one.end = work.end;
        one.launched = work.launched;
        if (step.workNames.empty() || step.workNames.back() != work.name) step.workNames.push_back(work.name);
        one.name = static_cast<std::uint32_t>(step.workNames.size() - 1);
        step.work.push_back(one);
    }
}

} // namespace stagewright
