#include "profiler/cupti/trace_facts.h"

#include <vector>

#include <fmt/format.h>

#include "schedules/base/median.h"

namespace stagewright {

namespace {

std::string plural(std::int64_t count, std::string_view one, std::string_view many)
{
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

} // namespace

void TraceFacts::add(const GpuTrace& trace, const DeviceStep& step)
{
    ++steps;
    counts += step.counts;
    dropped += trace.dropped;
    damagedBuffers += trace.damagedBuffers;
    unknownRecords += trace.unknownRecords;
    truncated = truncated || trace.truncated;
    overhead += step.overhead;
}

void TraceFacts::setCost(std::span<const Nanos> traced, std::span<const Nanos> untraced)
{
    if (traced.empty() || untraced.empty()) return;
    tracedStep = lowerMedian(std::vector<Nanos>(traced.begin(), traced.end()));
    untracedStep = lowerMedian(std::vector<Nanos>(untraced.begin(), untraced.end()));
}

double TraceFacts::cost() const
{
    if (tracedStep <= 0 || untracedStep <= 0) return 0;
    return static_cast<double>(tracedStep) / static_cast<double>(untracedStep) - 1;
}

bool TraceFacts::whole() const
{
    return state == TraceState::Attached && dropped == 0 && damagedBuffers == 0 && !truncated &&
           counts.unstamped == 0 && counts.reversed == 0 && counts.offClock == 0 && counts.launchesWithout == 0 &&
           counts.halfMessages == 0 && counts.unowned == 0 && counts.opsWithout == 0;
}

std::vector<std::pair<std::string, std::string>> TraceFacts::environment() const
{
    std::vector<std::pair<std::string, std::string>> pairs;
    switch (state) {
    case TraceState::Off: return {{"gpu_trace", "off"}};
    case TraceState::Conflict: return {{"gpu_trace", "another profiler is attached"}};
    case TraceState::Failed: return {{"gpu_trace", "failed: " + reason}};
    case TraceState::Attached: break;
    }
    pairs.emplace_back("gpu_trace", whole() ? "whole" : "incomplete");
    if (cuptiVersion > 0) pairs.emplace_back("gpu_trace_cupti", std::to_string(cuptiVersion));
    pairs.emplace_back("gpu_trace_records", std::to_string(counts.work));
    pairs.emplace_back("gpu_trace_detached", detached ? "yes" : "no");
    const auto add = [&pairs](const char* key, std::int64_t value) {
        if (value != 0) pairs.emplace_back(std::string("gpu_trace_") + key, std::to_string(value));
    };
    add("dropped", dropped);
    add("damaged_buffers", damagedBuffers);
    add("unknown_records", unknownRecords);
    add("truncated", truncated ? 1 : 0);
    add("unstamped", counts.unstamped);
    add("reversed", counts.reversed);
    add("off_clock", counts.offClock);
    add("clamped", counts.clamped);
    add("early", counts.early);
    add("repeated", counts.repeated);
    add("ambiguous", counts.ambiguous);
    add("foreign_ids", counts.foreignIds);
    add("unowned", counts.unowned);
    add("launches_without_work", counts.launchesWithout);
    add("ops_without_work", counts.opsWithout);
    add("half_messages", counts.halfMessages);
    add("overlapping_ops", counts.overlapping);
    add("overhead_ns", overhead);
    add("traced_step_ns", tracedStep);
    add("untraced_step_ns", untracedStep);
    if (tracedStep > 0) pairs.emplace_back("gpu_trace_cost", fmt::format("{:.2f} %", 100 * cost()));
    return pairs;
}

std::vector<std::string> TraceFacts::warnings() const
{
    switch (state) {
    case TraceState::Off: return {};
    case TraceState::Conflict:
        return {"another profiler (nsys, ncu, a PyTorch profiler) is attached to this process, and CUPTI serves one at "
                "a time: ops are "
                "timed by their launches on the CPU, kernels are not shown; record without it"};
    case TraceState::Failed: return {"kernels are not recorded: " + reason};
    case TraceState::Attached: break;
    }
    std::vector<std::string> lines;
    if (truncated)
        lines.push_back("the GPU trace ends before the run: the cap on its buffers was reached; record fewer steps");
    if (dropped > 0)
        lines.push_back(fmt::format(
            "{} of the GPU trace were dropped by CUPTI for lack of buffers: ops may seem shorter than they were",
            plural(dropped, "record", "records")));
    if (damagedBuffers > 0)
        lines.push_back(fmt::format("{} of the GPU trace could not be read to the end",
                                    plural(damagedBuffers, "buffer", "buffers")));
    if (counts.unstamped > 0)
        lines.push_back(fmt::format("{} came without times and {} skipped",
                                    plural(counts.unstamped, "kernel or copy", "kernels and copies"),
                                    counts.unstamped == 1 ? "is" : "are"));
    if (const std::int64_t wrong = counts.reversed + counts.offClock; wrong > 0)
        lines.push_back(fmt::format("{} came with impossible times and {} skipped",
                                    plural(wrong, "kernel or copy", "kernels and copies"), wrong == 1 ? "is" : "are"));
    if (counts.launchesWithout > 0)
        lines.push_back(fmt::format("for {}, the kernel or copy was never delivered",
                                    plural(counts.launchesWithout, "launch", "launches")));
    if (counts.unowned > 0)
        lines.push_back(fmt::format("{} belong to no op or message: figures by op leave them out",
                                    plural(counts.unowned, "kernel or copy", "kernels and copies")));
    if (counts.opsWithout > 0)
        lines.push_back(fmt::format("{} show no work on the GPU: they are timed by their launches on the CPU",
                                    plural(counts.opsWithout, "op", "ops")));
    if (counts.halfMessages > 0)
        lines.push_back(fmt::format("for {}, one end is missing: its wait is counted as transfer",
                                    plural(counts.halfMessages, "message", "messages")));
    if (counts.early > 0)
        lines.push_back(fmt::format(
            "{} seem to start more than 1 µs before their launch: the clocks of GPU and CPU have drifted apart",
            plural(counts.early, "kernel or copy", "kernels and copies")));
    if (cost() > 0.03) lines.push_back(fmt::format("tracing makes a step {:.1f} % longer", 100 * cost()));
    if (!detached) lines.push_back("tracing could not be switched off: later steps of this process are slower too");
    return lines;
}

} // namespace stagewright
