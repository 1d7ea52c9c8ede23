#include "app/cli/verbs/recording_elsewhere.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/commands.h"
#include "app/cli/options/run_access.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "app/launch/hosts/job_folder.h"
#include "app/launch/shell_words.h"
#include "engine/device/traits.h"
#include "schedules/base/foreign_json.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "traces/store/add_runs.h"
#include "traces/store/run_environment.h"
#include "traces/store/run_file.h"

namespace stagewright {

namespace {

ErrorCode errorCodeOf(int exitCode)
{
    for (const ErrorCode code : {ErrorCode::Invalid, ErrorCode::Usage, ErrorCode::Unreadable, ErrorCode::Unavailable,
                                 ErrorCode::Failed, ErrorCode::Cancelled})
        if (exitCodeOf(code) == exitCode) return code;
    return ErrorCode::Failed;
}

std::int64_t millisecondsNow()
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

// Processes under srun: with --processes, or where several nodes or tasks are asked for; else 0.
Result<int> tasksOf(const RecordSettings& settings, const std::vector<SlurmOption>& slurm, const Setup& setup,
                    bool queued)
{
    if (!queued) return 0;
    int tasks = 0;
    bool several = setup.processes || !setup.launcher.empty();
    for (const auto& [key, value] : slurm) {
        const int number = wholeOf<int>(value).value_or(0);
        if (key == "ntasks") tasks = number;
        if (key == "ntasks" || key == "nodes" || key == "ntasks-per-node") several = several || number > 1;
    }
    if (!several) return 0;
    auto ranks = ranksOfEach(settings);
    if (!ranks) return ranks;
    if (tasks == 0) tasks = *ranks / std::max(1, setup.ranksPerProcess);
    if (tasks < 1 || *ranks % tasks != 0)
        return fail(ErrorCode::Usage, fmt::format("{} ranks can't be spread evenly over {} processes", *ranks, tasks),
                    "choose another -p, ntasks or --ranks-per-process");
    return tasks;
}

Result<JobOrder> orderOf(const RecordSettings& settings, const Setup& setup, const std::vector<TypedOption>& typed)
{
    JobOrder order;
    STAGEWRIGHT_TRY(auto slurm, slurmOptions(setup));
    const bool queued = !slurm.empty();
    // PyTorch's ranks are started from within, by srun where there are several nodes.
    STAGEWRIGHT_TRY(auto tasks, setup.torch() ? Result<int>(0) : tasksOf(settings, slurm, setup, queued));
    std::vector<std::string> leftOut;
    if (tasks > 0) leftOut = {"--processes", "--ranks-per-process"}; // srun starts them
    if (!setup.torch()) {
        STAGEWRIGHT_TRY(order.srun, srunOptions(setup));
        order.container = setup.container;
        order.gpus = traitsOf(setup.backend).hasDevices;
        if (queued) order.launcher = setup.launcher;
        leftOut.insert(leftOut.end(), {"--srun", "--container"});
        if (queued) leftOut.emplace_back("--launcher");
    }
    STAGEWRIGHT_TRY(auto call, travelCall("record", typed, leftOut));
    order.slurm = std::move(slurm);
    order.tasks = tasks;
    order.arguments = std::move(call.arguments);
    order.files = std::move(call.files);
    if (tasks > 0)
        order.arguments.push_back(
            fmt::format("--ranks-per-process={}", settings.schedules.front()->compute().ranks / tasks));
    for (const char* word : {"--progress=jsonl", "--job={job}"}) order.arguments.emplace_back(word);
    order.arguments.push_back(fmt::format("--output={{job}}/{}", jobfile::run));
    HostJob& job = order.job;
    job.host = setup.host;
    job.id = newJobId(setup.host.empty() ? "slurm" : setup.host);
    job.verb = "record";
    job.arguments = std::move(call.shown);
    job.file = std::filesystem::absolute(settings.file).lexically_normal().string();
    job.createdUnixMs = millisecondsNow();
    job.slurm = queued;
    job.stepsAsked = (settings.warmup + settings.steps) * static_cast<int>(settings.schedules.size());
    job.stepsOrdered = job.stepsAsked;
    return order;
}

// The words of an event on the bar; warnings at once.
void showEvent(const std::string& line, Session& session)
{
    const auto value = readForeignJson(line);
    if (!value.is_object()) return;
    const std::string name =
        value.contains("event") && value["event"].is_string() ? value["event"].get<std::string>() : std::string();
    ProgressLine& progress = session.progress();
    if (name == "error" || name == "done" || name == "hello") return; // this end has its own
    if (progress.mode() == ProgressLine::Mode::JsonLines) return progress.eventLine(line);
    const auto number = [&](const char* key) {
        return value.contains(key) && value[key].is_number() ? value[key].get<double>() : 0.0;
    };
    const auto text = [&](const char* key) {
        return value.contains(key) && value[key].is_string() ? plainText(value[key].get<std::string>(), 300)
                                                             : std::string();
    };
    if (name == "warning") session.warn(text("message"));
    if (name != "progress") return;
    const auto whole = [&](const char* key) { return static_cast<std::int64_t>(std::clamp(number(key), 0.0, 1e15)); };
    if (text("what") == "step")
        progress.tell("steps", whole("done"), whole("total"),
                      fmt::format("{}  loss {:.3f}  {}", text("schedule"), number("loss"),
                                  formatDuration(whole("step_time_ns"))));
    else
        progress.tell(text("what"), whole("done"), whole("total"));
}

void showState(const HostJob& job, Session& session)
{
    ProgressLine& progress = session.progress();
    progress.event({{"event", "job"},
                    {"job", job.id},
                    {"host", textOrNull(job.host)},
                    {"state", toText(job.state)},
                    {"detail", job.detail},
                    {"file", job.file}});
    if (job.state == JobState::Queued || (job.state == JobState::Running && !job.detail.empty()))
        session.note(
            fmt::format("job {}: {}", job.id, job.detail.empty() ? std::string(toText(job.state)) : job.detail));
}

// Runs that have no measured step because their recorder was killed.
Result<void> dropUnmeasured(HostJob& job)
{
    const bool some = std::any_of(job.runs.begin(), job.runs.end(),
                                  [](const ReplayedRun& run) { return run.here != 0 && !run.ended; });
    if (!some || !job.over()) return {};
    STAGEWRIGHT_TRY(auto file, openRunFile(job.file, OpenMode::Write));
    STAGEWRIGHT_TRY(auto infos, file->runs());
    for (ReplayedRun& run : job.runs) {
        const auto info =
            std::find_if(infos.begin(), infos.end(), [&](const RunInfo& one) { return one.id == run.here; });
        if (run.here == 0 || run.ended || info == infos.end() || info->steps > info->warmupSteps) continue;
        if (auto removed = file->remove(run.here); !removed) return removed;
        run.here = 0;
        run.ended = true;
    }
    return keepJob(job);
}

Error endOf(const HostJob& job)
{
    const int code = job.exitCode.value_or(exitCodeOf(ErrorCode::Failed));
    const std::string where = job.host.empty() ? "job " + job.id : fmt::format("job {} on {}", job.id, job.host);
    if (code == ExitInterrupted)
        return {ErrorCode::Cancelled, fmt::format("{}: {}", where, job.detail.empty() ? "stopped" : job.detail), {}};
    return {job.state == JobState::Lost || code == 0 ? ErrorCode::Failed : errorCodeOf(code),
            fmt::format("{}: {}", where, job.detail),
            {}};
}

} // namespace

Result<Recording> followElsewhere(HostJob& job, const FollowOptions& options, Session& session)
{
    const std::stop_token stop = session.stop();
    bool lost = false;
    JobWatch watch;
    watch.event = [&](const std::string& line) { showEvent(line, session); };
    watch.changed = [&](const HostJob& now) { showState(now, session); };
    watch.connection = [&](const std::string& sentence) {
        if (sentence.empty() && lost) session.note("connected again");
        if (!sentence.empty() && !lost) session.warn(sentence + "; the job keeps running there; trying again");
        lost = !sentence.empty();
        session.progress().event({{"event", "connection"}, {"job", job.id}, {"lost", textOrNull(sentence)}});
    };
    const bool knownOver = job.over();
    auto followed = followJob(job, options, watch, stop);
    session.progress().clear();
    Recording recording;
    if (!job.host.empty() && job.over() && !knownOver) // once
        for (const ReplayedRun& run : job.runs)
            if (run.here != 0 && run.steps > 0)
                if (auto kept = addEnvironment(job.file, run.here, {{"host", job.host}}); !kept)
                    session.warn(kept.error().message);
    if (!followed) recording.stopped = std::move(followed.error());
    if (auto dropped = dropUnmeasured(job); !dropped && !recording.stopped)
        recording.stopped = std::move(dropped.error());
    for (const ReplayedRun& run : job.runs) {
        if (run.here == 0 || run.steps == 0) continue;
        recording.runs.push_back(run.here);
        recording.completeSteps.push_back(run.steps);
    }
    if (!recording.stopped && job.over() &&
        (job.state == JobState::Lost || job.exitCode.value_or(0) != 0 || recording.runs.empty()))
        recording.stopped = endOf(job);
    return recording;
}

Result<Recording> recordElsewhere(const RecordSettings& settings, const Setup& setup,
                                  const std::vector<TypedOption>& typed, Session& session)
{
    STAGEWRIGHT_CHECK(mayAddRuns(settings.file));
    STAGEWRIGHT_TRY(auto order, orderOf(settings, setup, typed));
    STAGEWRIGHT_TRY(auto job, startJob(order, session.stop()));
    session.note(fmt::format("job {}{}; if this ends, 'stagewright hosts attach {}' continues", job.id,
                             job.slurmJob.empty() ? "" : fmt::format(" is job {} in the queue", job.slurmJob), job.id));
    showState(job, session);
    const bool existed = std::filesystem::exists(settings.file);
    auto recording = followElsewhere(job, {}, session);
    // nothing is kept: the file is not left behind
    if (recording && recording->runs.empty() && !existed && job.over()) {
        std::error_code ignored;
        const auto file = openRunFile(settings.file);
        const auto runs = file ? (*file)->runs() : Result<std::vector<RunInfo>>(std::vector<RunInfo>());
        if (file && runs && runs->empty()) std::filesystem::remove(settings.file, ignored);
    }
    return recording;
}

Result<int> startElsewhere(const RecordSettings& settings, const Setup& setup, const std::vector<TypedOption>& typed,
                           Session& session)
{
    STAGEWRIGHT_TRY(auto order, orderOf(settings, setup, typed));
    if (setup.scriptOnly) {
        STAGEWRIGHT_TRY(auto script, batchScriptOf(order, session.stop()));
        if (session.json) session.answer({{"script", script}});
        session.out(script);
        return ExitDone;
    }
    STAGEWRIGHT_TRY(auto job, startJob(order, session.stop()));
    if (session.json)
        session.answer({{"job", job.id},
                        {"host", textOrNull(job.host)},
                        {"slurm_job", textOrNull(job.slurmJob)},
                        {"file", job.file}});
    session.out(fmt::format("{}\n", job.id));
    session.note(fmt::format("{}; 'stagewright hosts attach {}' fetches its steps",
                             setup.slurm.empty() ? "it runs there" : "it is in Slurm's queue", job.id));
    return ExitDone;
}

} // namespace stagewright
