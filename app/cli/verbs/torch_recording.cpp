#include "app/cli/verbs/torch_recording.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "app/cli/options/place_options.h"
#include "app/cli/options/run_access.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "app/launch/launcher.h"
#include "app/launch/program_path.h"
#include "app/launch/pythons.h"
#include "app/launch/slurm/slurm_queue.h"
#include "app/launch/titan_run.h"
#include "app/launch/torch_import.h"
#include "app/launch/torch_run.h"
#include "engine/device/traits.h"
#include "engine/torch/torch_job.h"
#include "schedules/base/quantity.h"
#include "schedules/base/step_number.h"
#include "traces/compare/plan_of.h"
#include "traces/export/torchtitan.h"
#include "traces/store/add_runs.h"
#include "traces/store/run_file.h"
#include "traces/store/step_stream.h"

namespace stagewright {

namespace {

namespace fs = std::filesystem;

struct PreparedJob {
    TorchJob job;
    std::string folder;
};

// So many steps show how long one takes by itself, and don't make a long recording longer: of the measured ones that
// are not traced, else more of them.
constexpr int mostWithoutProfiler = 8;

int stepsAfter(const RecordSettings& settings)
{
    const int without = settings.steps - settings.tracedSteps;
    return std::max(0, std::min(settings.tracedSteps, mostWithoutProfiler) - without);
}

// A new folder: beside the run file and named after it, or the one that was asked for; of several schedules one each. A
// number distinguishes it from one that is there.
Result<std::string> jobFolder(const RecordSettings& settings, const Setup& setup, const Schedule& schedule)
{
    const bool several = settings.schedules.size() > 1;
    std::string leaf = schedule.name;
    for (char& c : leaf)
        if (c == '/' || c == ' ') c = '-';
    std::string base = settings.file;
    if (base.ends_with(".stagewright")) base.resize(base.size() - std::string_view(".stagewright").size());
    const std::string wanted =
        !setup.job.empty() ? setup.job + (several ? "/" + leaf : "") : base + (several ? "-" + leaf : "") + ".job";
    std::error_code error;
    fs::path folder = wanted;
    const bool given = !setup.job.empty() && !several; // an empty one will do
    for (int number = 2; !given && fs::exists(folder, error); ++number) folder = fmt::format("{}{}", wanted, number);
    fs::create_directories(folder, error);
    if (error)
        return fail(ErrorCode::Unreadable, fmt::format("folder {}: {}", folder.string(), error.message()),
                    "name a folder that can be written with --job");
    return fs::absolute(folder).lexically_normal().string();
}

Result<void> mayUseFolder(const std::string& folder)
{
    std::error_code error;
    if (folder.empty() || !fs::exists(folder, error) ||
        (fs::is_directory(folder, error) && fs::is_empty(folder, error)))
        return {};
    return fail(ErrorCode::Usage, fmt::format("--job {}: it is not an empty folder", folder),
                "name a new folder, or empty it");
}

void tellStep(const PreparedJob& one, const TorchEvent& event, std::int64_t done, std::int64_t total, Session& session)
{
    ProgressLine& line = session.progress();
    if (line.mode() == ProgressLine::Mode::JsonLines)
        line.event({{"event", "progress"},
                    {"what", "step"},
                    {"done", done},
                    {"total", total},
                    {"schedule", one.job.schedule.name},
                    {"engine", "torch"},
                    {"job", one.folder},
                    {"step", event.step},
                    {"step_number", stepNumber(event.step)},
                    {"loss", event.loss},
                    {"step_time_ns", event.stepTime}});
    else
        line.tell(
            "steps", done, total,
            fmt::format("{}  loss {:.3f}  {}", one.job.schedule.name, event.loss, formatDuration(event.stepTime)));
}

// For whoever started the job from elsewhere: a run of the file, whole.
Result<void> sendAlong(StepStreamWriter& stream, const std::string& path, const std::vector<std::int64_t>& ids)
{
    STAGEWRIGHT_TRY(auto file, openRunFile(path));
    for (const std::int64_t id : ids) {
        if (auto sent = stream.append(*file, id); !sent) return sent;
        if (auto sent = stream.end(*file, id); !sent) return sent;
    }
    return {};
}

// With its plan beside it, in the file, and in the stream where there is one.
Result<void> store(const TorchImport& imported, const RecordSettings& settings, StepStreamWriter* stream,
                   Session& session, Recording& recording)
{
    const std::string& name = imported.run.info.scheduleName;
    if (!imported.warning.empty()) session.warn(imported.warning);
    std::vector<const Run*> runs; // the run last: it is the one that every verb takes
    auto plan = planOf(imported.run);
    if (plan) {
        plan->info.createdUnixMs = imported.run.info.createdUnixMs;
        runs.push_back(&*plan);
    } else
        session.warn(fmt::format("{}: stored without its plan: {}", name, plan.error().message));
    runs.push_back(&imported.run);
    STAGEWRIGHT_TRY(auto ids, addRuns(settings.file, runs));
    if (stream)
        if (auto sent = sendAlong(*stream, settings.file, ids); !sent) return sent;
    recording.runs.push_back(ids.back());
    recording.completeSteps.push_back(imported.run.info.steps);
    if (plan)
        session.note(fmt::format("run {} is its plan; compare them: stagewright compare {} {} {}", ids.front(),
                                 settings.file, ids.front(), ids.back()));
    return {};
}

// Traces that can't be imported: of a job that was stopped its end is the first reason given.
Result<void> unreadable(Error error, const PreparedJob& one, Recording& recording)
{
    if (!recording.stopped) return tl::unexpected(std::move(error).with(one.job.schedule.name));
    recording.stopped->remedy += fmt::format("; its traces can't be imported: {}", error.message);
    return {};
}

// What starts a rank's interpreter: options of srun, words of a container. Neither: ranks are children of this program.
struct Place {
    std::vector<std::string> srun, container;

    // in front of an interpreter that is only asked
    std::vector<std::string> words() const
    {
        std::vector<std::string> words;
        if (!srun.empty()) {
            words = oneTaskWords(srun);
            words.front() = programOnPath(words.front());
        }
        words.insert(words.end(), container.begin(), container.end());
        return words;
    }
};

// `folders`: what a container is to see.
Result<Place> placeOf(const Setup& setup, const std::vector<std::string>& folders)
{
    Place place;
    STAGEWRIGHT_TRY(auto options, srunOptions(setup));
    for (SlurmOption& option : pyxisOptions(setup.container, folders, options)) options.push_back(std::move(option));
    for (const SlurmOption& option : options) place.srun.push_back(toWord(option));
    place.container = apptainerWords(setup.container, folders, traitsOf(setup.backend).hasDevices);
    if (!place.container.empty()) {
        const std::string program = programOnPath(place.container.front());
        if (program.empty())
            return fail(ErrorCode::Unavailable,
                        fmt::format("--container {}: apptainer is not on PATH", setup.container),
                        "install Apptainer, or load its module in a setup line");
        place.container.front() = program;
    }
    return place;
}

// Runs a job and stores what it traced. What stops it is in `recording`.
Result<void> runJob(const PreparedJob& one, const PythonFound& python, const Setup& setup, std::int64_t before,
                    std::int64_t total, const RecordSettings& settings, StepStreamWriter* stream, Session& session,
                    Recording& recording)
{
    TorchRun run;
    run.python = python.path;
    run.folder = one.folder;
    run.ranks = one.job.schedule.ranks;
    STAGEWRIGHT_TRY(run.nodes, nodesOfThisJob());
    if (!run.nodes.empty())
        session.note(fmt::format("{}: ranks on {} nodes of the Slurm job, from {}", one.job.schedule.name,
                                 std::min<std::size_t>(run.nodes.size(), static_cast<std::size_t>(run.ranks)),
                                 run.nodes.front()));
    STAGEWRIGHT_TRY(auto place, placeOf(setup, {one.folder}));
    run.srun = std::move(place.srun);
    run.container = std::move(place.container);
    run.untraced = one.job.warmup + one.job.steps - one.job.tracedSteps;
    run.timeoutSeconds = one.job.training.timeoutSeconds;
    run.onEvent = [&](const TorchEvent& event) {
        if (event.kind == TorchEvent::Kind::Step) tellStep(one, event, before + event.step + 1, total, session);
    };
    auto end = runTorchJob(run, session.stop());
    session.progress().clear();
    if (!end) return tl::unexpected(std::move(end.error()));
    if (end->stopped) {
        recording.stopped = std::move(*end->stopped);
        recording.stopped->message = one.job.schedule.name + ": " + recording.stopped->message;
        recording.stopped->remedy =
            fmt::format("the job is kept in {}{}{}", one.folder, recording.stopped->remedy.empty() ? "" : "; ",
                        recording.stopped->remedy);
    }
    if (end->tracedSteps == 0) {
        if (!recording.stopped)
            return fail(ErrorCode::Failed, fmt::format("{}: no traces were written", one.job.schedule.name),
                        fmt::format("the job is kept in {}", one.folder));
        return {};
    }
    end->stopped = recording.stopped;
    // After a stop request the steps that are complete are still brought in.
    auto imported =
        importTorchJob(one.job, *end, one.folder, recording.stopped ? Progress{} : session.reporter("bytes"));
    if (!imported) return unreadable(std::move(imported.error()), one, recording);
    session.note(fmt::format("{}: PyTorch {} with {}; the job is kept in {}", one.job.schedule.name, end->torch,
                             python.path, one.folder));
    return store(*imported, settings, stream, session, recording);
}

// As runJob(), of a TorchTitan job.
Result<void> runTitan(const Schedule& schedule, const TitanRun& run, std::int64_t before, std::int64_t total,
                      const RecordSettings& settings, StepStreamWriter* stream, Session& session, Recording& recording)
{
    auto files = torchTitanFolder(schedule, "stagewright record");
    if (!files) return tl::unexpected(std::move(files.error()).with(schedule.name));
    if (auto written = writeTorchTitanFolder(*files, run.folder); !written) return written;
    session.progress().event({{"event", "job"},
                              {"schedule", schedule.name},
                              {"engine", "torchtitan"},
                              {"folder", run.folder},
                              {"file", settings.file}});
    TitanRun watched = run;
    watched.onStep = [&](int step, double loss) {
        ProgressLine& line = session.progress();
        if (line.mode() == ProgressLine::Mode::JsonLines)
            line.event({{"event", "progress"},
                        {"what", "step"},
                        {"done", before + step + 1},
                        {"total", total},
                        {"schedule", schedule.name},
                        {"engine", "torchtitan"},
                        {"job", run.folder},
                        {"step", step},
                        {"step_number", stepNumber(step)},
                        {"loss", loss}});
        else
            line.tell("steps", before + step + 1, total, fmt::format("{}  loss {:.3f}", schedule.name, loss));
    };
    auto end = runTitanJob(watched, session.stop());
    session.progress().clear();
    if (!end) return tl::unexpected(std::move(end.error()));
    if (end->stopped) {
        recording.stopped = end->stopped;
        recording.stopped->message = schedule.name + ": " + recording.stopped->message;
        recording.stopped->remedy =
            fmt::format("the job is kept in {}{}{}", run.folder, recording.stopped->remedy.empty() ? "" : "; ",
                        recording.stopped->remedy);
    }
    if (end->traces.empty()) return {};
    auto imported = importTitanJob(schedule, watched, *end, recording.stopped ? Progress{} : session.reporter("bytes"));
    if (!imported) return tl::unexpected(std::move(imported.error()).with(schedule.name));
    session.note(fmt::format("{}: TorchTitan with {}; the job is kept in {}", schedule.name, run.python, run.folder));
    return store(*imported, settings, stream, session, recording);
}

} // namespace

Result<TorchJob> torchJobOf(const RecordSettings& settings, const Setup& setup, const Schedule& schedule)
{
    TorchJob job;
    job.schedule = schedule;
    job.training = settings.training;
    job.steps = settings.steps;
    job.warmup = settings.warmup;
    job.tracedSteps = settings.tracedSteps;
    job.stepsWithoutProfiler = stepsAfter(settings);
    if (!setup.lower.empty()) {
        STAGEWRIGHT_TRY(job.lowering, parseLowering(setup.lower));
    }
    if (!setup.modelFile.empty()) {
        STAGEWRIGHT_TRY(std::tie(job.modelFile, job.modelFunction), parseModelFile(setup.modelFile));
    }
    return job;
}

Result<Recording> recordWithTorch(const RecordSettings& settings, const Setup& setup, Session& session)
{
    std::error_code ignored;
    STAGEWRIGHT_TRY(const auto place, placeOf(setup, {fs::current_path(ignored).string()}));
    STAGEWRIGHT_TRY(auto python, choosePython(setup.python, traitsOf(settings.training.backend).hasDevices,
                                              session.stop(), place.words()));
    if (*python.version > newestTorch)
        session.warn(fmt::format("{}: PyTorch is {}; the driver was written for {} to {}", python.path, python.torch,
                                 toText(oldestTorch), toText(newestTorch)));
    STAGEWRIGHT_CHECK(mayUseFolder(setup.job));
    STAGEWRIGHT_CHECK(mayAddRuns(settings.file));
    std::vector<PreparedJob> jobs;
    for (const auto& checked : settings.schedules) { // before the first is run
        STAGEWRIGHT_TRY(const auto job, torchJobOf(settings, setup, checked->given()));
        STAGEWRIGHT_CHECK(torchSchedule(job.schedule, job.lowering, *python.version));
    }
    for (const auto& checked : settings.schedules) {
        const Schedule& schedule = checked->given();
        STAGEWRIGHT_TRY(auto job, torchJobOf(settings, setup, schedule));
        PreparedJob one{std::move(job), {}};
        STAGEWRIGHT_TRY(one.folder, jobFolder(settings, setup, schedule));
        STAGEWRIGHT_CHECK(writeTorchJob(one.job, *python.version, one.folder));
        session.progress().event({{"event", "job"},
                                  {"schedule", schedule.name},
                                  {"engine", "torch"},
                                  {"folder", one.folder},
                                  {"file", settings.file}});
        jobs.push_back(std::move(one));
    }
    STAGEWRIGHT_TRY(auto stream, streamOf(settings));
    Recording recording;
    const auto each = static_cast<std::int64_t>(settings.warmup + settings.steps + stepsAfter(settings));
    const auto total = each * static_cast<std::int64_t>(jobs.size());
    std::int64_t before = 0;
    for (const PreparedJob& one : jobs) {
        auto ran = runJob(one, python, setup, before, total, settings, stream.get(), session, recording);
        if (!ran) recording.stopped = std::move(ran.error());
        if (recording.stopped) break;
        before += each;
    }
    return recording;
}

Result<std::string> titanConfig(const std::string& named)
{
    std::error_code error;
    const fs::path file = fs::absolute(named, error);
    if (!error && named.ends_with(".toml") && fs::is_regular_file(file, error)) return file.lexically_normal().string();
    const std::size_t colon = named.find(':');
    const auto isName = [](std::string_view text) {
        return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
            return c == '.' || c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
        });
    };
    if (colon != std::string::npos && isName(named.substr(0, colon)) && isName(named.substr(colon + 1))) return named;
    return fail(ErrorCode::Usage,
                fmt::format("--config {}: there is no such TOML file, and it is not a MODULE:FUNCTION", named),
                "name the job's configuration as its TorchTitan takes it: llama3:llama3_debugmodel, or job.toml");
}

Result<void> takesConfig(const PythonFound& python, const std::string& config)
{
    if (!python.titan)
        return fail(ErrorCode::Unavailable, fmt::format("{}: TorchTitan is not installed", python.path),
                    "install torchtitan in it, or name another with --python FILE");
    const bool toml = config.ends_with(".toml");
    if (python.titan->contains(toml ? "toml" : "functions")) return {};
    if (python.titan->empty())
        return fail(ErrorCode::Unavailable,
                    fmt::format("{}: its TorchTitan takes neither TOML files nor configuration functions", python.path),
                    "export --format torchtitan writes what to set by hand");
    return fail(ErrorCode::Usage,
                fmt::format("--config {}: the TorchTitan of {} takes {}", config, python.path,
                            toml ? "configuration functions, not TOML files" : "TOML files, not functions"),
                toml ? "give MODULE:FUNCTION, for example llama3:llama3_debugmodel" : "give the job's TOML file");
}

Result<Recording> recordWithTitan(const RecordSettings& settings, const Setup& setup, Session& session)
{
    if (settings.steps < fewestTitanSteps)
        return fail(ErrorCode::Usage,
                    fmt::format("--steps {}: TorchTitan's profiler warms up for three steps and traces the next",
                                settings.steps),
                    fmt::format("give --steps {} or more", fewestTitanSteps));
    STAGEWRIGHT_TRY(const auto config, titanConfig(setup.config));
    for (const auto& checked : settings.schedules) // before the first is run
        if (auto can = torchTitanFolder(checked->given(), "stagewright record"); !can)
            return tl::unexpected(std::move(can.error()).with(checked->given().name));
    STAGEWRIGHT_TRY(auto python, choosePython(setup.python, false, session.stop()));
    STAGEWRIGHT_CHECK(takesConfig(python, config));
    STAGEWRIGHT_CHECK(mayUseFolder(setup.job));
    STAGEWRIGHT_CHECK(mayAddRuns(settings.file));
    STAGEWRIGHT_TRY(auto stream, streamOf(settings));
    Recording recording;
    const auto total = static_cast<std::int64_t>(settings.steps) * static_cast<std::int64_t>(settings.schedules.size());
    std::int64_t before = 0;
    for (const auto& checked : settings.schedules) {
        const Schedule& schedule = checked->given();
        STAGEWRIGHT_TRY(auto folder, jobFolder(settings, setup, schedule));
        const TitanRun run{python.path, python.torch, folder, config, settings.steps, settings.training.timeoutSeconds};
        auto ran = runTitan(schedule, run, before, total, settings, stream.get(), session, recording);
        if (!ran) recording.stopped = std::move(ran.error());
        if (recording.stopped) break;
        before += settings.steps;
    }
    return recording;
}

} // namespace stagewright
