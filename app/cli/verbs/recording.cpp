#include "app/cli/verbs/recording.h"

#include <algorithm>
#include <deque>
#include <filesystem>

#include <fmt/core.h>

#include "app/cli/options/files.h"
#include "app/cli/options/run_access.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/run_json.h"
#include "app/cli/verbs/checkpoints.h"
#include "app/cli/verbs/device_tracing.h"
#include "app/cli/verbs/filled_cycle.h"
#include "app/launch/slurm/slurm_queue.h"
#include "engine/check/partial_reference.h"
#include "engine/check/stale_model.h"
#include "engine/device/traits.h"
#include "engine/saved/saved_training.h"
#include "engine/training/forward_unit.h"
#include "engine/transport/bytes.h"
#include "engine/transport/process_job.h"
#include "schedules/base/step_number.h"
#include "schedules/base/text.h"
#include "schedules/messages/messages.h"
#include "schedules/model/layer_costs.h"
#include "schedules/model/shard_rules.h"
#include "traces/fit/fit_costs.h"
#include "traces/run/run_facts.h"
#include "traces/run/simulated_run.h"
#include "traces/store/run_environment.h"
#include "traces/store/step_stream.h"

namespace stagewright {

namespace {

constexpr std::size_t stepsForCosts = 64; // costs are fitted from at most so many of the last measured steps
constexpr int stepsForLayers = 4;         // the first measured ones, which time the model's layers

struct Ongoing {
    std::unique_ptr<Training> training;
    std::unique_ptr<RunWriter> writer;
    std::unique_ptr<StaleModel> synchronous; // the reference of an asynchronous training, stepped along with it
    std::unique_ptr<PartialReference> whole; // the same where replicas go back to different layers
    std::deque<std::shared_ptr<const Timeline>> measured;
    std::deque<Nanos> wallTimes; // of the last measured steps
    bool changes = false;        // steps run other lists: an order that ranks find, a cycle
    // Where they do: by measured step its time and what ran.
    std::vector<std::pair<Nanos, std::shared_ptr<const Schedule>>> ran;
    int complete = 0;
    bool shared = false;                // ranks share state
    bool stepsInLists = false;          // optimizer steps that may be rolled back
    StepStreamWriter* stream = nullptr; // every complete step goes there, too
};

Run headerOf(const Training& training, const RecordSettings& settings, std::size_t number,
             std::span<const Bytes> limits)
{
    const Schedule& schedule = training.schedule();
    Run run = runOfSchedule(schedule);
    run.info.createdUnixMs = unixMilliseconds();
    run.info.state = RunState::Recording;
    run.info.provenance = Provenance::Measured;
    run.info.clock = std::string(toText(training.clock()));
    run.info.warmupSteps = settings.warmup;
    run.configuration = training.configuration();
    // would give it away
    if (settings.perturbation.secret)
        std::erase_if(run.configuration, [](const auto& fact) { return fact.first.starts_with("link_"); });
    if (!settings.perturbation.empty()) run.configuration.emplace_back("perturb", toText(settings.perturbation));
    if (!settings.speeds.empty()) run.configuration.emplace_back("speed", settings.speeds + " (emulated)");
    if (!settings.cluster.empty()) run.configuration.emplace_back("cluster", settings.cluster);
    if (!settings.fillText.empty()) run.configuration.emplace_back("fill", settings.fillText);
    if (number < settings.cycles.size())
        run.configuration.emplace_back("cycle_steps", fmt::format("{}", settings.cycles[number].size()));
    if (!settings.memoryLimit.empty()) run.configuration.emplace_back("memory_limit", settings.memoryLimit);
    if (!settings.rankMemory.empty()) run.configuration.emplace_back("rank_memory", settings.rankMemory);
    if (!limits.empty()) run.configuration.emplace_back("memory_limit_bytes", memoryLimitText(limits));
    if (const auto& from = settings.training.resume) {
        run.configuration.emplace_back("resumed_from", from->path());
        run.configuration.emplace_back("steps_before", fmt::format("{}", from->step()));
    }
    run.configuration.insert(run.configuration.end(), settings.sharing.begin(), settings.sharing.end());
    run.environment = training.environment();
    return run;
}

std::vector<int> blocksByStage(const Training& training)
{
    for (const auto& [key, value] : training.configuration())
        if (key == "stage_layers") return wholesOf(value).value_or(std::vector<int>());
    return {};
}

std::optional<CostModel> costsOf(const Ongoing& one)
{
    if (one.measured.empty()) return std::nullopt;
    const Timeline& first = *one.measured.front();
    TimelineBuilder builder(first.provenance(), first.clock(), first.ranks());
    builder.setUnits(first.timeUnit(), first.memoryUnit());
    for (const auto& step : one.measured) builder.append(*step);
    auto timeline = builder.build();
    if (!timeline) return std::nullopt;
    auto costs = fitCosts(**timeline);
    if (!costs) return std::nullopt;
    costs->origin = fmt::format("fitted from {} of {}", plural(static_cast<long long>(one.measured.size()), "step"),
                                one.training->schedule().name);
    setLayers(*costs, one.training->layerCosts(), blocksByStage(*one.training));
    return *costs;
}

// Where ranks are processes the leader measures for all.
Result<Nanos> forwardUnitOfAll(const RecordSettings& settings)
{
    const auto& job = settings.training.job;
    TrainingOptions alone = settings.training;
    alone.job = nullptr;
    alone.resume = nullptr;
    if (!job) return measureForwardUnit(settings.schedules.front(), alone);
    ByteWriter measured;
    if (job->index() == 0) {
        auto unit = measureForwardUnit(settings.schedules.front(), alone);
        if (!unit) return unit;
        measured.put(*unit);
    }
    STAGEWRIGHT_TRY(auto all, job->fromFirst(measured.take()));
    return ByteReader(all).get<Nanos>();
}

Result<void> prepareLinks(RecordSettings& settings, Session& session)
{
    const int ranks = settings.schedules.front()->compute().ranks;
    const Perturbation perturbation = revealed(settings.perturbation, ranks);
    const bool needsUnit = settings.comm >= 0 || !perturbation.links.empty() || !perturbation.launches.empty();
    if (!needsUnit) {
        settings.training.perturbation = runPerturbation(perturbation, ranks, 0, settings.training.seed);
        return {};
    }
    STAGEWRIGHT_TRY(auto unit, forwardUnitOfAll(settings));
    settings.training.perturbation = runPerturbation(perturbation, ranks, unit, settings.training.seed);
    if (settings.comm >= 0)
        settings.training.links.all.latency = static_cast<Nanos>(settings.comm * static_cast<double>(unit));
    setLatency(perturbation, unit, settings.training.links);
    session.note(fmt::format("the forward time of a microbatch on a rank is {}; links take {}", formatDuration(unit),
                             formatDuration(settings.training.links.all.latency)));
    return {};
}

Result<void> prepareReference(Ongoing& one, const RecordSettings& settings)
{
    const Schedule& schedule = one.training->schedule();
    one.shared = sharesState(schedule);
    const bool referred = settings.training.resume == nullptr; // a reference would start from the first step
    if (!settings.training.cuts.empty() && referred) {
        auto whole = PartialReference::create(schedule, settings.training, [&] {
            return makeBackend(settings.training.backend, settings.training.device);
        });
        if (!whole) return tl::unexpected(std::move(whole.error()).with(schedule.name));
        one.whole = std::move(*whole);
        one.training->keepGradients(true);
    }
    one.stepsInLists = one.shared && stepsOnArrival(schedule);
    if (one.shared) return {};
    if (schedule.weights == WeightRule::Synchronous) {
        for (const auto& list : schedule.order)
            for (const Op& op : list) one.stepsInLists = one.stepsInLists || isOptimizer(op.kind);
        return {};
    }
    if (!referred) return {};
    STAGEWRIGHT_TRY(auto backend, makeBackend(settings.training.backend, settings.training.device));
    auto model = StaleModel::create(schedule, settings.training, std::move(backend), Staleness::None);
    if (!model) return tl::unexpected(std::move(model.error()).with(schedule.name));
    one.synchronous = std::move(*model);
    return {};
}

// How full and busy the devices are, for the display of progress.
Json loadJson(LoadGauge* gauge)
{
    Json devices = Json::array();
    if (gauge == nullptr) return devices;
    for (const DeviceLoad& load : gauge->read())
        devices.push_back({{"name", load.name},
                           {"used_bytes", load.usedBytes},
                           {"total_bytes", load.totalBytes},
                           {"busy", load.busy < 0 ? Json(nullptr) : Json(load.busy)}});
    return devices;
}

// How many ops are at another place than in the lists that were given.
double movedOps(const Schedule& given, const Schedule& ran)
{
    std::size_t moved = 0;
    for (std::size_t rank = 0; rank < ran.order.size(); ++rank)
        for (std::size_t i = 0; i < ran.order[rank].size(); ++i)
            moved += ran.order[rank][i] == given.order[rank][i] ? 0 : 1;
    return static_cast<double>(moved);
}

Result<void> takeStep(Ongoing& one, const RecordSettings& settings, std::int64_t done, std::int64_t total,
                      LoadGauge* gauge, const RunFile& file, Session& session)
{
    if (one.complete == settings.warmup) one.training->timeLayers(true);
    if (one.complete == settings.warmup + stepsForLayers) one.training->timeLayers(false);
    if (one.whole) one.whole->before(*one.training);
    STAGEWRIGHT_TRY(auto outcome, one.training->step(session.stop()));
    std::vector<std::pair<std::string, double>> metrics{{"loss", outcome.loss},
                                                        {"step_time_ns", static_cast<double>(outcome.stepTime)},
                                                        {"wall_time_ns", static_cast<double>(outcome.wallTime)},
                                                        {"contention", outcome.contention}};
    if (one.shared) {
        RankTraffic all;
        for (const RankTraffic& rank : outcome.traffic) {
            all.gathered += rank.gathered;
            all.reduced += rank.reduced;
            all.messages += rank.messages;
        }
        // over all ranks, as their transports count
        metrics.emplace_back("bytes_gathered", static_cast<double>(all.gathered));
        metrics.emplace_back("bytes_reduced", static_cast<double>(all.reduced));
        metrics.emplace_back("bytes_messages", static_cast<double>(all.messages));
    }
    const auto& ran = outcome.timeline->schedule();
    if (settings.training.order.by != ReadyOrder::By::List)
        metrics.emplace_back("moved_ops", movedOps(one.training->schedule(), *ran));
    if (outcome.clockBand > 0) metrics.emplace_back("clock_band_ns", static_cast<double>(outcome.clockBand));
    if (one.synchronous) {
        STAGEWRIGHT_TRY(auto loss, one.synchronous->step(session.stop()));
        metrics.emplace_back("synchronous_loss", loss);
        metrics.emplace_back("deviation", deviationOf(*one.training, *one.synchronous));
    }
    if (one.whole) {
        if (auto stepped = one.whole->after(*one.training, session.stop()); !stepped) return stepped;
        metrics.emplace_back("deviation", one.whole->deviation());
        metrics.emplace_back("synchronous_loss", one.whole->loss());
        for (const LayerDeviation& layer : one.whole->layers()) {
            metrics.emplace_back("gradient_cosine_" + layer.layer, layer.cosine);
            metrics.emplace_back("gradient_distance_" + layer.layer, layer.distance);
        }
    }
    if (one.stepsInLists) {
        metrics.emplace_back("rollbacks", outcome.rollbacks);
        metrics.emplace_back("skipped_steps", outcome.skipped ? 1.0 : 0.0);
    }
    auto kept = one.writer->append(*outcome.timeline, metrics);
    if (!kept) return kept;
    if (one.stream)
        if (auto sent = one.stream->append(file, one.writer->id()); !sent) return sent;
    if (++one.complete > settings.warmup) {
        if (one.changes) one.ran.emplace_back(outcome.stepTime, ran);
        one.measured.push_back(outcome.timeline);
        if (one.measured.size() > stepsForCosts) one.measured.pop_front();
        one.wallTimes.push_back(outcome.wallTime);
        if (one.wallTimes.size() > DeviceTracing::costSteps) one.wallTimes.pop_front();
    }
    ProgressLine& line = session.progress();
    const std::string& name = one.training->schedule().name;
    if (line.mode() == ProgressLine::Mode::JsonLines)
        line.event({{"event", "progress"},
                    {"what", "step"},
                    {"done", done},
                    {"total", total},
                    {"schedule", name},
                    {"run", one.writer->id()},
                    {"step", outcome.step},
                    {"step_number", stepNumber(outcome.step)},
                    {"loss", outcome.loss},
                    {"step_time_ns", outcome.stepTime},
                    {"wall_time_ns", outcome.wallTime},
                    {"devices", loadJson(gauge)}});
    else
        line.tell("steps", done, total,
                  fmt::format("{}  loss {:.3f}  {}", name, outcome.loss, formatDuration(outcome.stepTime)));
    return {};
}

// What was written of checkpoints since: said, and kept in the recording.
void tellCheckpoints(Checkpoints& checkpoints, Recording& recording, std::optional<Error>& failed, Session& session)
{
    for (Checkpoints::Ended& one : checkpoints.ended()) {
        failed = std::move(one.error);
        if (failed) {
            session.warn(fmt::format("the checkpoint after step {} is not there: {}", one.step, failed->message));
            continue;
        }
        session.progress().event({{"event", "checkpoint"},
                                  {"step", one.step},
                                  {"file", one.file},
                                  {"pause_ns", one.pause},
                                  {"write_time_ns", one.written}});
        recording.checkpoints.push_back(std::move(one.file));
    }
}

// How complete the GPU trace is and what it cost: for the user, and by run for its environment. The untraced steps end
// the training.
std::vector<std::pair<std::int64_t, TextPairs>> endTrace(std::vector<Ongoing>& ongoing, DeviceTracing& tracing,
                                                         bool early, Session& session)
{
    tracing.end();
    std::vector<std::pair<std::int64_t, TextPairs>> facts;
    if (!tracing.hasDevices()) return facts;
    std::vector<std::string> warned;
    for (Ongoing& one : ongoing) {
        if (!one.writer || one.complete == 0) continue;
        const std::vector<Nanos> traced(one.wallTimes.begin(), one.wallTimes.end());
        std::vector<Nanos> untraced;
        if (!early && one.training->traceFacts().steps > 0)
            untraced = DeviceTracing::untracedSteps(*one.training, traced.size(), session.stop());
        const TraceFacts trace = tracing.factsOf(*one.training, traced, untraced);
        facts.emplace_back(one.writer->id(), trace.environment());
        for (std::string line : trace.warnings()) {
            if (trace.state == TraceState::Attached) line.insert(0, one.training->schedule().name + ": ");
            if (std::find(warned.begin(), warned.end(), line) == warned.end()) session.warn(line);
            warned.push_back(std::move(line));
        }
    }
    return facts;
}

// What a run must hold to be kept: a measured step, or any complete one if warm-up is to be kept.
bool isKept(const Ongoing& one, const RecordSettings& settings)
{
    return one.complete > (settings.keepWarmup ? 0 : settings.warmup);
}

// Closes every run. What can't be closed is left to the file's own recovery: complete steps are in it.
void closeRuns(std::vector<Ongoing>& ongoing, RunFile& file, const RecordSettings& settings, Recording& recording,
               const Progress& progress)
{
    const bool early = recording.stopped.has_value();
    for (Ongoing& one : ongoing) {
        if (!one.writer) continue;
        const std::int64_t id = one.writer->id();
        if (!one.ran.empty()) { // what ran in the median step, which reports show
            const auto median = one.ran.begin() + static_cast<std::ptrdiff_t>((one.ran.size() - 1) / 2);
            std::nth_element(one.ran.begin(), median, one.ran.end(),
                             [](const auto& a, const auto& b) { return a.first < b.first; });
            if (auto kept = one.writer->setSchedule(*median->second); !kept && !recording.stopped)
                recording.stopped = std::move(kept.error());
        }
        auto finished = one.writer->finish(early ? RunState::Interrupted : RunState::Complete, costsOf(one), progress);
        one.writer.reset();
        if (!finished && !recording.stopped) recording.stopped = std::move(finished.error());
        if (file.keptIn() != file.path()) recording.savedIn = file.keptIn(); // without those that have no measured step
        if (!isKept(one, settings)) {
            if (recording.savedIn) continue;
            if (auto removed = file.remove(id); !removed && !recording.stopped)
                recording.stopped = std::move(removed.error());
            continue;
        }
        if (recording.savedIn == "") continue;
        recording.runs.push_back(id);
        recording.completeSteps.push_back(one.complete);
    }
}

// Runs that are kept get their last state, the others are taken back.
Result<void> endStream(StepStreamWriter& stream, const std::vector<std::int64_t>& begun, const std::string& path,
                       const Recording& recording)
{
    std::unique_ptr<RunFile> file;
    for (const std::int64_t run : begun) {
        const bool kept = std::find(recording.runs.begin(), recording.runs.end(), run) != recording.runs.end();
        if (kept && !file) {
            STAGEWRIGHT_TRY(file, openRunFile(path));
        }
        if (auto ended = kept ? stream.end(*file, run) : stream.remove(run); !ended) return ended;
    }
    return {};
}

void removeEmptyFile(const std::string& path)
{
    for (const char* suffix : {"", "-wal", "-shm"}) {
        std::error_code ignored;
        std::filesystem::remove(path + suffix, ignored);
    }
}

} // namespace

namespace {

Result<std::unique_ptr<Training>> trainingOf(const RecordSettings& settings, std::size_t number)
{
    TrainingOptions options = settings.training;
    auto schedule = settings.schedules[number];
    if (number < settings.cycles.size()) {
        options.cycle = settings.cycles[number];
        schedule = options.cycle.front();
    }
    auto training = Training::create(schedule, options);
    if (!training) return tl::unexpected(std::move(training.error()).with(schedule->compute().name));
    return training;
}

} // namespace

Result<std::unique_ptr<StepStreamWriter>> streamOf(const RecordSettings& settings)
{
    if (settings.stream.empty()) return nullptr;
    return slurmRestarts() > 0 ? StepStreamWriter::reopen(settings.stream) : StepStreamWriter::create(settings.stream);
}

Result<int> ranksOfEach(const RecordSettings& settings)
{
    const Schedule& first = settings.schedules.front()->compute();
    for (const auto& checked : settings.schedules)
        if (const Schedule& schedule = checked->compute(); schedule.ranks != first.ranks)
            return fail(ErrorCode::Usage,
                        fmt::format("{} has {} ranks, {} has {}: they can't share the same processes", first.name,
                                    first.ranks, schedule.name, schedule.ranks),
                        "record them one after the other");
    return first.ranks;
}

Result<void> serveRecording(const RecordSettings& given, Session& session)
{
    RecordSettings settings = given;
    if (auto prepared = prepareLinks(settings, session); !prepared) return prepared;
    if (auto agreed = agreeOnOptions(settings.training, settings.schedules.front()->compute().ranks); !agreed)
        return agreed;
    std::vector<std::unique_ptr<Training>> trainings;
    for (std::size_t i = 0; i < settings.schedules.size(); ++i) {
        STAGEWRIGHT_TRY(auto training, trainingOf(settings, i));
        trainings.push_back(std::move(training));
    }
    return serveTrainings(trainings, *settings.training.job);
}

Result<Recording> recordRuns(const RecordSettings& given, Session& session)
{
    RecordSettings settings = given;
    const std::stop_token stop = session.stop();
    ProgressLine& line = session.progress();
    STAGEWRIGHT_CHECK(prepareLinks(settings, session));
    STAGEWRIGHT_CHECK(agreeOnOptions(settings.training, settings.schedules.front()->compute().ranks));

    const bool traces = settings.traceDevices && !settings.training.job; // of one process CUPTI would show a part only
    DeviceTracing tracing(settings.training.backend, traces, !settings.deviceDump.empty());
    if (settings.traceDevices && !traces && tracing.hasDevices())
        session.note("GPU kernels are not traced where ranks are processes");
    settings.training.tracer = tracing.tracer();
    std::vector<Ongoing> ongoing;
    if (settings.fill.any)
        for (const auto& schedule : settings.schedules) {
            auto cycle = measuredCycle(schedule, settings.training, settings.fill, session);
            if (!cycle) return tl::unexpected(std::move(cycle.error()).with(schedule->compute().name));
            settings.cycles.push_back(std::move(*cycle));
        }
    for (std::size_t i = 0; i < settings.schedules.size(); ++i) {
        Ongoing one;
        STAGEWRIGHT_TRY(one.training, trainingOf(settings, i));
        one.changes = settings.training.order.by != ReadyOrder::By::List || !settings.cycles.empty();
        STAGEWRIGHT_CHECK(prepareReference(one, settings));
        ongoing.push_back(std::move(one));
    }
    Checkpoints checkpoints(settings.file, settings.keepCheckpoints);
    std::optional<Error> unsaved; // why the newest checkpoint is not there
    if (settings.checkpointEvery > 0) STAGEWRIGHT_CHECK(checkpoints.begin(settings.training.resume != nullptr));
    if (const auto& from = settings.training.resume) {
        Training& training = *ongoing.front().training;
        STAGEWRIGHT_TRY(const SavedTraining now, training.saved());
        session.note(resumeText(*from, training.schedule(), now.facts));
        const bool referred = training.schedule().weights == WeightRule::Synchronous && settings.training.cuts.empty();
        if (!referred) session.note("the synchronous training beside it is left out: a checkpoint does not hold it");
    }
    const bool existed = fileExists(settings.file);
    STAGEWRIGHT_TRY(auto file, openRunFile(settings.file, OpenMode::Create));

    STAGEWRIGHT_TRY(auto stream, streamOf(settings));
    Recording recording;
    // Runs that take turns share what the machine does meanwhile: compare --gate pairs their steps.
    const std::string turns =
        ongoing.size() > 1 ? fmt::format("{}.{}", unixMilliseconds(), monotonicNow() % 1'000'000) : std::string();
    for (Ongoing& one : ongoing) {
        const auto number = static_cast<std::size_t>(&one - ongoing.data());
        const bool limited = number < settings.memoryLimits.size();
        Run header =
            headerOf(*one.training, settings, number,
                     limited ? std::span<const Bytes>(settings.memoryLimits[number]) : std::span<const Bytes>());
        if (!turns.empty()) header.environment.emplace_back("in_turn", turns);
        auto writer = file->begin(header);
        if (!writer) {
            recording.stopped = std::move(writer.error());
            break;
        }
        one.writer = std::move(*writer);
        one.stream = stream.get();
        if (stream)
            if (auto begun = stream->append(*file, one.writer->id()); !begun) {
                recording.stopped = std::move(begun.error());
                break;
            }
        line.event({{"event", "run"},
                    {"run", one.writer->id()},
                    {"schedule", one.training->schedule().name},
                    {"file", settings.file},
                    {"clock", std::string(toText(one.training->clock()))}});
    }
    const auto gauge = traitsOf(settings.training.backend).openLoad(settings.training.device.devices);
    const int stepsEach = settings.warmup + settings.steps;
    const auto total = static_cast<std::int64_t>(stepsEach) * static_cast<std::int64_t>(ongoing.size());
    std::int64_t done = 0;
    tracing.begin();
    for (int step = 0; step < stepsEach && !recording.stopped; ++step) {
        for (Ongoing& one : ongoing) {
            if (stop.stop_requested()) {
                recording.stopped = one.training->lost().value_or(Error{ErrorCode::Cancelled, "interrupted", {}});
                break;
            }
            if (auto taken = takeStep(one, settings, ++done, total, gauge.get(), *file, session); !taken) {
                recording.stopped = std::move(taken.error()).with(one.training->schedule().name);
                recording.stall = one.training->stall();
                if (!recording.stall) break;
                recording.stalledRun = isKept(one, settings) ? one.writer->id() : 0;
                recording.stalledLists = one.training->lists();
                break;
            }
            const int trained = one.complete + (settings.training.resume ? settings.training.resume->step() : 0);
            if (settings.checkpointEvery == 0 || trained % settings.checkpointEvery != 0) continue;
            const auto take = [&]() -> Result<SavedTraining> {
                STAGEWRIGHT_TRY(SavedTraining saved, one.training->saved());
                return withLists(std::move(saved), one.training->schedule());
            };
            if (auto saved = checkpoints.save(take); !saved) recording.stopped = std::move(saved.error());
            tellCheckpoints(checkpoints, recording, unsaved, session);
        }
    }
    line.clear();
    checkpoints.wait();
    tellCheckpoints(checkpoints, recording, unsaved, session);
    std::erase_if(recording.checkpoints, [](const std::string& name) { return !fileExists(name); }); // older ones
    if (unsaved && !recording.stopped) recording.stopped = std::move(unsaved);
    const auto traceFacts = endTrace(ongoing, tracing, recording.stopped.has_value(), session);
    if (!settings.deviceDump.empty())
        if (auto kept = tracing.keep(settings.deviceDump); !kept) session.warn(kept.error().message);
    std::vector<std::int64_t> begun;
    for (const Ongoing& one : ongoing)
        if (one.writer) begun.push_back(one.writer->id());
    closeRuns(ongoing, *file, settings, recording, session.reporter("closing the run"));
    line.clear();
    if (recording.savedIn) settings.file = *recording.savedIn;
    if (recording.stalledRun > 0 && !recording.savedIn) // complete steps do not say why there are no more
        if (auto noted = file->annotate(recording.stalledRun, recording.stopped->message); !noted)
            session.warn(noted.error().message);
    file.reset();
    for (const auto& [id, facts] : traceFacts) {
        if (std::find(recording.runs.begin(), recording.runs.end(), id) == recording.runs.end()) continue;
        if (auto kept = addEnvironment(settings.file, id, facts); !kept) session.warn(kept.error().message);
    }
    if (stream)
        if (auto ended = endStream(*stream, begun, settings.file, recording); !ended && !recording.stopped)
            recording.stopped = std::move(ended.error());
    if (recording.runs.empty() && !existed && !recording.savedIn) removeEmptyFile(settings.file);
    return recording;
}

} // namespace stagewright
