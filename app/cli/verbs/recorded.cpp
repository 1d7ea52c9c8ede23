#include "app/cli/verbs/recorded.h"

#include <algorithm>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/run_access.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/channel_json.h"
#include "app/cli/text/document_json.h"
#include "app/cli/text/document_text.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/run_json.h"
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

// The runs beside each other; JSON has it of two or more.
document::Document comparisonOf(const std::vector<Row>& rows)
{
    using namespace document;
    using enum ColumnKind;
    document::Table table{rows.size() < 2 ? "" : "comparison.entries.#",
                          {TableColumn{"run", "run", Whole}, unshown("schedule"), TableColumn{{}, "schedule"},
                           TableColumn{"step_time_ns", "step time", Time}, unshown("relative_step_time"),
                           Column({{}, {}, Share}, Sign::Relative), TableColumn{"bubble_fraction", "bubble", Share},
                           TableColumn{"peak_activation_bytes", "peak activation", Size}, unshown("loss_first"),
                           unshown("loss_last"), Column({{}, "loss", Whole}), unshown("deviation"),
                           unshown("contention")}};
    table.columns[5].sparse = true;
    const double base = rows.empty() ? 0 : rows.front().stepTime;
    for (const Row& row : rows) {
        const auto metric = [&row](const char* name, bool first) {
            const Metric* found = row.run.metric(name);
            const bool has = found && !found->values.empty();
            return has ? TableCell(first ? found->values.front() : found->values.back()) : TableCell();
        };
        const TableCell first = metric("loss", true), last = metric("loss", false);
        const auto* from = std::get_if<double>(&first);
        table.add({row.run.info.id, row.run.info.scheduleName, row.run.info.name, static_cast<Nanos>(row.stepTime),
                   base > 0 ? TableCell(row.stepTime / base) : TableCell(),
                   &row == &rows.front() || base <= 0 ? TableCell(std::string()) : TableCell(row.stepTime / base - 1),
                   row.figures.bubbles.bubbleFraction, row.figures.largestPeak(), first, last,
                   from ? fmt::format("{:.3f} → {:.3f}", *from, std::get<double>(last)) : std::string(),
                   metric("deviation", false), row.contention});
    }
    Document out;
    out.add().fact("comparison", std::string());
    if (rows.size() > 1)
        out.sections.back().fact("comparison.baseline", Count, static_cast<double>(rows.front().run.info.id));
    out.sections.back().add(std::move(table));
    return out;
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
    const document::Document comparison = comparisonOf(rows);
    if (session.json) {
        Json object{{"file", rows.empty() ? Json(nullptr) : Json(path)}, {"runs", std::move(runs)}};
        object.update(documentJson(comparison));
        if (!recording.checkpoints.empty()) object["checkpoints"] = recording.checkpoints;
        session.answer(object);
    }
    if (rows.empty()) return {};
    session.out(documentText(comparison, {session.colourOut()}));
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
    if (!recording.checkpoints.empty())
        session.note(fmt::format("\nthe newest checkpoint is {}; 'stagewright record --resume {}' goes on from it",
                                 recording.checkpoints.back(), recording.checkpoints.back()));
    session.note(fmt::format("\nrecorded in {}; see 'stagewright report {}' or 'stagewright ui {}'", path, path, path));
    return ExitDone;
}

} // namespace stagewright
