#include "app/cli/verbs/recorded.h"

#include <algorithm>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/run_access.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/channel_json.h"
#include "app/cli/text/document_json.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/run_json.h"
#include "app/cli/text/table.h"
#include "schedules/base/median.h"
#include "traces/report/run_document.h"

namespace stagewright {

namespace {

struct Row {
    Run run;
    RunReport figures;
    double stepTime = 0; // median of the measured steps
    double contention = 0;
};

Json comparisonTableJson(const std::vector<Row>& rows)
{
    if (rows.size() < 2) return nullptr;
    Json entries = Json::array();
    for (const Row& row : rows) {
        const Metric* loss = row.run.metric("loss");
        const bool hasLoss = loss && !loss->values.empty();
        const Metric* deviation = row.run.metric("deviation");
        const bool hasDeviation = deviation && !deviation->values.empty();
        entries.push_back({{"run", row.run.info.id},
                           {"schedule", row.run.info.scheduleName},
                           {"step_time_ns", static_cast<Nanos>(row.stepTime)},
                           {"relative_step_time",
                            rows.front().stepTime > 0 ? Json(row.stepTime / rows.front().stepTime) : Json(nullptr)},
                           {"bubble_fraction", row.figures.bubbles.bubbleFraction},
                           {"peak_activation_bytes", row.figures.largestPeak()},
                           {"loss_first", hasLoss ? Json(loss->values.front()) : Json(nullptr)},
                           {"loss_last", hasLoss ? Json(loss->values.back()) : Json(nullptr)},
                           {"deviation", hasDeviation ? Json(deviation->values.back()) : Json(nullptr)},
                           {"contention", row.contention}});
    }
    return {{"baseline", rows.front().run.info.id}, {"entries", std::move(entries)}};
}

std::string comparisonTable(const std::vector<Row>& rows, bool colour)
{
    using Align = Table::Align;
    Table table({{"run", Align::Right},
                 {"schedule"},
                 {"step time", Align::Right},
                 {"", Align::Right},
                 {"bubble", Align::Right},
                 {"peak activation", Align::Right},
                 {"loss", Align::Right}});
    for (const Row& row : rows) {
        const Metric* loss = row.run.metric("loss");
        const double base = rows.front().stepTime;
        table.add({std::to_string(row.run.info.id), row.run.info.name, formatDuration(static_cast<Nanos>(row.stepTime)),
                   &row == &rows.front() || base <= 0 ? "" : formatChange(row.stepTime / base - 1),
                   formatPercent(row.figures.bubbles.bubbleFraction), formatBytes(row.figures.largestPeak()),
                   loss && !loss->values.empty()
                       ? fmt::format("{:.3f} → {:.3f}", loss->values.front(), loss->values.back())
                       : ""});
    }
    return table.text(colour);
}

// A run that the watchdog stopped before its first step was complete; no file holds it.
Json stalledRunJson(const Recording& recording)
{
    Json object = hungJson(recording.stalledLists, {});
    object["provenance"] = std::string(toText(Provenance::Measured));
    object["clock"] = nullptr;
    object["state"] = std::string(toText(RunState::Interrupted));
    addDeadlockJson(object, *recording.stall);
    object["file"] = nullptr;
    return object;
}

// Reads the recorded runs back, as every other verb will, and prints their figures.
Result<void> tell(const std::string& path, const Recording& recording, Session& session)
{
    std::unique_ptr<RunFile> file;
    if (!recording.runs.empty()) {
        STAGEWRIGHT_TRY(file, openRunFile(path));
    }
    std::vector<Row> rows;
    Json runs = Json::array();
    for (const std::int64_t id : recording.runs) {
        constexpr int many = 10'000; // steps: this takes a while
        if (std::any_of(recording.completeSteps.begin(), recording.completeSteps.end(),
                        [](int steps) { return steps > many; }))
            session.progress().tell("reading the run", static_cast<std::int64_t>(rows.size()),
                                    static_cast<std::int64_t>(recording.runs.size()));
        STAGEWRIGHT_TRY(auto stored, readRunForReport(*file, std::to_string(id), -1));
        auto figures = reportOf(stored.run);
        if (!figures) return tl::unexpected(std::move(figures.error()).with(describe(stored)));
        Json object = documentJson(runDocument(stored.run, *figures));
        object["file"] = path;
        if (recording.stall && recording.stalledRun == id) addDeadlockJson(object, *recording.stall);
        runs.push_back(std::move(object));
        Row row{std::move(stored.run), std::move(*figures), 0, 0};
        row.stepTime = lowerMedian(measuredValues(row.run, "step_time_ns"));
        if (row.stepTime <= 0) row.stepTime = static_cast<double>(row.figures.bubbles.stepTime());
        row.contention = lowerMedian(measuredValues(row.run, "contention"));
        rows.push_back(std::move(row));
    }
    session.progress().clear();
    if (recording.stall && recording.stalledRun == 0) runs.push_back(stalledRunJson(recording));
    if (session.json)
        session.answer({{"file", rows.empty() ? Json(nullptr) : Json(path)},
                        {"runs", std::move(runs)},
                        {"comparison", comparisonTableJson(rows)}});
    if (rows.empty()) return {};
    const bool colour = session.colourOut();
    session.out(comparisonTable(rows, colour));
    const Row& first = rows.front();
    const int measuredSteps = std::max(0, first.run.info.steps - first.run.info.warmupSteps);
    const std::string taken = measuredSteps == 0 ? std::string("of warm-up only: no measured step is complete")
                                                 : "medians of " + plural(measuredSteps, "step");
    const char* whole = measuredSteps > 0 ? "; step time includes the optimizer" : ""; // a report's time does not
    session.out(fmt::format("\n{}, {}; {} × {}; {}{}{}\n", toText(first.run.info.provenance), clockText(first.run),
                            plural(first.run.info.ranks, "rank"), plural(first.run.info.microbatches, "microbatch"),
                            taken,
                            measuredSteps > 0 && first.run.info.warmupSteps > 0
                                ? fmt::format(" after {} of warm-up", first.run.info.warmupSteps)
                                : "",
                            whole));
    for (const Row& row : rows)
        if (const std::string weights = weightsText(row.run); !weights.empty())
            session.out(fmt::format("{}: weights {}\n", row.run.info.name, weights));
    for (const Row& row : rows)
        if (row.run.info.clock == "wall" && row.contention > 0.05)
            session.warn(fmt::format(
                "{}: ops were off the processor {} of their time, so wall times are too long; use --clock virtual, or "
                "leave the machine idle",
                row.run.info.name, formatPercent(row.contention)));
    return {};
}

std::string keptText(const Recording& recording, const std::string& path)
{
    if (recording.savedIn == "") return "nothing is kept";
    if (recording.runs.empty()) return "no measured step was complete, nothing is kept";
    int steps = 0;
    for (const int complete : recording.completeSteps) steps += complete;
    return fmt::format("{} of {} {} kept in {}: see 'stagewright report {}'", plural(steps, "complete step"),
                       plural(static_cast<long long>(recording.runs.size()), "run"), steps == 1 ? "is" : "are", path,
                       path);
}

} // namespace

Result<int> endRecording(const std::string& given, Recording recording, Session& session)
{
    const std::string path = recording.savedIn.value_or(given);
    if (!recording.runs.empty() || recording.stall) {
        if (auto printed = tell(path, recording, session); !printed && !recording.stopped)
            return tl::unexpected(std::move(printed.error()));
    }
    if (recording.stall)
        session.out((recording.stall->cycle.empty() ? "where the ranks wait:\n" : "ranks that wait for each other:\n") +
                    deadlockText(recording.stalledLists, *recording.stall, session.columns()));
    if (recording.stopped) {
        Error error = std::move(*recording.stopped);
        const std::string kept = keptText(recording, path);
        error.remedy = error.remedy.empty() ? kept : kept + "; " + error.remedy;
        return tl::unexpected(std::move(error));
    }
    if (recording.runs.empty())
        return fail(ErrorCode::Failed,
                    fmt::format("no run was recorded in {}: the training ended without a step", path),
                    "read what was printed above, or the job's log where it ran");
    session.progress().event({{"event", "done"}, {"file", path}, {"runs", recording.runs}});
    session.note(fmt::format("\nrecorded in {}; see 'stagewright report {}' or 'stagewright ui {}'", path, path, path));
    return ExitDone;
}

} // namespace stagewright
