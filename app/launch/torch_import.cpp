#include "app/launch/torch_import.h"

#include <chrono>

#include <fmt/format.h>

#include "engine/device/machine.h"
#include "schedules/base/median.h"
#include "schedules/base/op_number.h"
#include "schedules/messages/lower.h"
#include "traces/import/import.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

// Where two orders first differ; "" where they don't. Names are not compared.
std::string differenceOf(const Schedule& sent, const Schedule& ran)
{
    if (sent.ranks != ran.ranks) return fmt::format("{} ranks ran, and the schedule has {}", ran.ranks, sent.ranks);
    for (std::size_t rank = 0; rank < sent.order.size(); ++rank) {
        const auto& wanted = sent.order[rank];
        const auto& found = ran.order[rank];
        for (std::size_t i = 0; i < std::max(wanted.size(), found.size()); ++i) {
            const std::string want = i < wanted.size() ? toText(wanted[i]) : "nothing";
            const std::string got = i < found.size() ? toText(found[i]) : "nothing";
            if (want != got)
                return fmt::format("rank {}, op {}: {} ran, and the schedule has {}", rank, opNumber(i), got, want);
        }
    }
    return "";
}

// The one run of the traces, under the schedule's name; a warning where another order ran. A job that was stopped may
// have ended before each rank had traced its last step.
Result<TorchImport> importOne(const std::string& traces, const Schedule& schedule, bool stopped,
                              const Progress& progress)
{
    ImportOptions options;
    options.stepsOfAllRanks = stopped;
    STAGEWRIGHT_TRY(auto imported, importTraces({traces}, options, progress));
    if (!imported.refused.empty()) return tl::unexpected(std::move(imported.refused.front().error));
    if (imported.runs.size() != 1)
        return fail(ErrorCode::Failed, fmt::format("folder {}: its traces are {} runs, and one was expected", traces,
                                                   imported.runs.size()));
    TorchImport out;
    ImportedRun& one = imported.runs.front();
    out.run = std::move(one.run);
    Run& run = out.run;
    run.info.name = schedule.name;
    run.info.scheduleName = schedule.name;
    run.info.createdUnixMs =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    run.info.state = stopped ? RunState::Interrupted : RunState::Complete;

    const Schedule sent = withoutCommunication(schedule);
    if (!run.schedule) {
        out.warning =
            fmt::format("{}: the order that ran could not be read from the traces: {}", schedule.name, one.notRebuilt);
    } else if (const std::string difference = differenceOf(sent, *run.schedule); !difference.empty()) {
        out.warning = fmt::format("{}: PyTorch ran another order: {}", schedule.name, difference);
    } else if (run.schedule->name != schedule.name) {
        Schedule named = *run.schedule;
        named.name = schedule.name;
        run.schedule = std::make_shared<const Schedule>(std::move(named));
    }
    return out;
}

// Times of steps from `first` on, before `last`, as they were said.
std::vector<Nanos> timesOf(const TorchRunEnd& end, int first, int last)
{
    std::vector<Nanos> times;
    for (auto step = static_cast<std::size_t>(first);
         step < end.stepTimes.size() && step < static_cast<std::size_t>(last); ++step)
        if (end.stepTimes[step] > 0) times.push_back(end.stepTimes[step]);
    return times;
}

// In front of what the traces say.
void describe(Run& run, TextPairs configuration, TextPairs environment)
{
    for (auto& fact : run.configuration)
        if (fact.first != "schedule") configuration.push_back(std::move(fact));
    run.configuration = std::move(configuration);
    for (auto& fact : machineFacts()) environment.push_back(std::move(fact));
    for (auto& fact : run.environment) environment.push_back(std::move(fact));
    run.environment = std::move(environment);
}

} // namespace

Result<TorchImport> importTorchJob(const TorchJob& job, const TorchRunEnd& end, const std::string& folder,
                                   const Progress& progress)
{
    auto out = importOne(folder + "/traces", job.schedule, end.stopped.has_value(), progress);
    if (!out) return out;
    Run& run = out->run;
    TextPairs configuration = configurationOf(job);
    const int last = job.warmup + job.steps, first = last - job.tracedSteps;
    auto with = timesOf(end, first, last), without = timesOf(end, job.warmup, first);
    for (const Nanos time : timesOf(end, last, last + job.stepsWithoutProfiler)) without.push_back(time);
    if (!with.empty() && !without.empty()) {
        const auto steps = static_cast<int>(without.size()), traced = static_cast<int>(with.size());
        for (auto& fact : profilerFacts({lowerMedian(std::move(without)), lowerMedian(std::move(with)), steps,
                                         end.profiling / traced, end.writing / traced}))
            configuration.push_back(std::move(fact));
    }
    TextPairs environment{
        {"engine", "PyTorch " + end.torch}, {"python", end.python}, {"device", end.device}, {"job", folder}};
    if (!end.interface.empty()) environment.emplace_back("interface", end.interface);
    describe(run, std::move(configuration), std::move(environment));
    Metric loss{"loss", "nats", {}};
    for (int step = 0; step < run.info.steps; ++step) {
        const auto at = static_cast<std::size_t>(first + step);
        if (at < end.losses.size()) loss.values.push_back(end.losses[at]);
    }
    if (!loss.values.empty()) run.metrics.push_back(std::move(loss));
    return out;
}

Result<TorchImport> importTitanJob(const Schedule& schedule, const TitanRun& titan, const TitanRunEnd& end,
                                   const Progress& progress)
{
    auto out = importOne(end.traces, schedule, end.stopped.has_value(), progress);
    if (!out) return out;
    TextPairs configuration{{"schedule", schedule.name},
                            {"ranks", std::to_string(schedule.ranks)},
                            {"stages", std::to_string(schedule.stages)},
                            {"microbatches", std::to_string(schedule.microbatches)},
                            {"engine", "torchtitan"},
                            {"config", titan.config},
                            {"unprofiled_steps", std::to_string(end.steps - out->run.info.steps)}};
    describe(out->run, std::move(configuration),
             {{"engine", "TorchTitan with PyTorch " + titan.torch}, {"python", titan.python}, {"job", titan.folder}});
    Metric loss{"loss", "nats", {}}; // of the last steps, which are traced
    for (int step = end.steps - out->run.info.steps; step < end.steps; ++step)
        if (step >= 0 && static_cast<std::size_t>(step) < end.losses.size())
            loss.values.push_back(end.losses[static_cast<std::size_t>(step)]);
    if (static_cast<int>(loss.values.size()) == out->run.info.steps) out->run.metrics.push_back(std::move(loss));
    return out;
}

} // namespace stagewright
