#include "app/launch/torch_import.h"

#include <chrono>

#include <fmt/format.h>

#include "engine/device/machine.h"
#include "schedules/messages/lower.h"
#include "traces/import/import.h"

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
            if (want != got) return fmt::format("rank {}, op {}: {} ran, and the schedule has {}", rank, i, got, want);
        }
    }
    return "";
}

} // namespace

Result<TorchImport> importTorchJob(const TorchJob& job, const TorchRunEnd& end, const std::string& folder, const Progress& progress)
{
    auto imported = importTraces({folder + "/traces"}, {}, progress);
    if (!imported) return tl::unexpected(std::move(imported.error()));
    if (!imported->refused.empty()) return tl::unexpected(std::move(imported->refused.front().error));
    if (imported->runs.size() != 1)
        return fail(ErrorCode::Failed, fmt::format("folder {}: its traces are {} runs, and one was expected", folder + "/traces", imported->runs.size()));
    TorchImport out;
    ImportedRun& one = imported->runs.front();
    out.run = std::move(one.run);
    Run& run = out.run;
    run.info.name = job.schedule.name;
    run.info.scheduleName = job.schedule.name;
    run.info.createdUnixMs = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    run.info.state = end.stopped ? RunState::Interrupted : RunState::Complete;

    const Schedule sent = withoutCommunication(job.schedule);
    if (!run.schedule) {
        out.warning = fmt::format("{}: the order that ran could not be read from the traces: {}", job.schedule.name, one.notRebuilt);
    } else if (const std::string difference = differenceOf(sent, *run.schedule); !difference.empty()) {
        out.warning = fmt::format("{}: PyTorch ran another order: {}", job.schedule.name, difference);
    } else if (run.schedule->name != job.schedule.name) {
        Schedule named = *run.schedule;
        named.name = job.schedule.name;
        run.schedule = std::make_shared<const Schedule>(std::move(named));
    }

    TextPairs configuration = configurationOf(job);
    for (auto& fact : run.configuration)
        if (fact.first != "schedule") configuration.push_back(std::move(fact));
    run.configuration = std::move(configuration);
    TextPairs environment = {{"engine", "PyTorch " + end.torch}, {"python", end.python}, {"device", end.device}, {"job", folder}};
    for (auto& fact : machineFacts()) environment.push_back(std::move(fact));
    for (auto& fact : run.environment) environment.push_back(std::move(fact));
    run.environment = std::move(environment);

    Metric loss{"loss", "nats", {}};
    for (int step = 0; step < run.info.steps; ++step) {
        const auto at = static_cast<std::size_t>(job.warmup + step);
        if (at < end.losses.size()) loss.values.push_back(end.losses[at]);
    }
    if (!loss.values.empty()) run.metrics.push_back(std::move(loss));
    return out;
}

} // namespace stagewright
