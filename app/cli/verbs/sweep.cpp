#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/options/setup_sources.h"
#include "app/cli/options/unused_costs.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/run_json.h"
#include "schedules/base/hashing.h"
#include "schedules/base/text.h"
#include "schedules/heuristic/building_block.h"
#include "schedules/library/registry.h"
#include "schedules/survey/sweep.h"
#include "schedules/text/csv.h"
#include "traces/format/atomic_file.h"

namespace stagewright {

namespace {

constexpr std::size_t mostRows = 100'000;
constexpr double ownLinks = -1; // of Setup::comm: as the costs have them

struct SweepChoice {
    std::vector<std::string> schedules;
    std::string ranks;        // empty: 4
    std::string microbatches; // empty: 8
    std::string chunks = "auto";
    std::vector<std::string> costs;
    std::string comm; // empty: 0 in units, else the costs' own links
    Setup setup;      // of every point, but for the axes
    std::string output;
};

// Items of an option that is given: there is one at least.
std::vector<std::string_view> listOf(std::string_view text) { return text.empty() ? std::vector{text} : itemsOf(text); }

// "2,4,8", "2-6", "4-32/4" (in steps of 4); "auto" is 0 where allowed.
Result<std::vector<int>> wholeNumbers(const std::string& text, const char* option, int most, bool automatic)
{
    std::vector<int> out;
    for (const std::string_view part : listOf(text)) {
        if (automatic && part == "auto") {
            out.push_back(0);
            continue;
        }
        const auto [ends, step] = keyValueOf(part, '/');
        const auto range = rangeOf(ends);
        int by = 1;
        if (!range || (step && (ends.find('-') == std::string_view::npos || !readNumber(*step, by))) ||
            range->first < 1 || range->last < range->first || range->last > most || by < 1)
            return fail(ErrorCode::Usage,
                        fmt::format("{}: '{}' is not a list of numbers from 1 to {}", option, part, most),
                        "write 2,4,8 or 2-8 or 4-32/4");
        for (int value = range->first; value <= range->last; value += by) out.push_back(value);
    }
    return out;
}

Result<std::vector<double>> realNumbers(const std::string& text, const char* option)
{
    std::vector<double> out;
    for (const std::string_view part : listOf(text)) {
        double value = 0;
        if (!readNumber(part, value) || value < 0 || value > 1e6)
            return fail(ErrorCode::Usage, fmt::format("{}: '{}' is not a list of numbers of at least 0", option, part),
                        "write 0,0.1,0.5");
        out.push_back(value);
    }
    return out;
}

// A schedule of the grid: from the library, or a file read once. A CSV has its own shape, a block its ranks and chunks.
struct Source {
    std::string name;
    std::optional<Schedule> schedule;
    std::string blockText;
    int fixedRanks = 0, fixedMicrobatches = 0, fixedChunks = 0;
};

Result<Source> sourceOf(const std::string& name)
{
    Source source;
    source.name = name;
    if (!namesFile(name)) {
        auto known = scheduleInfoOf(name);
        if (!known) return tl::unexpected(std::move(known.error()).with("--schedule"));
        source.fixedChunks = (*known)->fixedChunks;
    } else if (name.ends_with(".block")) {
        STAGEWRIGHT_TRY(source.blockText, readFile(name));
        auto block = parseBlock(source.blockText);
        if (!block) return tl::unexpected(std::move(block.error()).with(name));
        if (auto good = checkBlock(*block); !good) return tl::unexpected(std::move(good.error()).with(name));
        source.fixedRanks = static_cast<int>(block->devices.size());
        source.fixedChunks = block->chunks;
    } else {
        STAGEWRIGHT_TRY(source.schedule, readCsvFile(name));
        source.fixedRanks = source.schedule->ranks;
        source.fixedMicrobatches = source.schedule->microbatches;
        source.fixedChunks = std::max(1, source.schedule->stages / std::max(1, source.schedule->ranks));
    }
    return source;
}

struct Grid {
    std::vector<Source> sources;
    std::vector<Setup> points;
    std::vector<std::string> notes; // options that a schedule does not use
};

// The values of an option for a source: its fixed one if it has no choice, with a note if another was requested.
std::vector<int> valuesFor(const Source& source, const std::vector<int>& asked, int fixed, const char* option,
                           const char* what, Grid& grid)
{
    if (fixed == 0) return asked;
    if (std::any_of(asked.begin(), asked.end(), [fixed](int value) { return value != fixed && value != 0; })) {
        std::string list;
        for (const int value : asked)
            if (value != fixed && value != 0) list += (list.empty() ? "" : ",") + std::to_string(value);
        grid.notes.push_back(
            fmt::format("{} has its own number of {}, {}: {} {} is not used", source.name, what, fixed, option, list));
    }
    return {std::find(asked.begin(), asked.end(), 0) != asked.end() ? 0 : fixed};
}

Result<Grid> gridOf(const SweepChoice& options)
{
    STAGEWRIGHT_TRY(auto ranks, wholeNumbers(options.ranks.empty() ? "4" : options.ranks, "--ranks", 4096, false));
    STAGEWRIGHT_TRY(auto microbatches, wholeNumbers(options.microbatches.empty() ? "8" : options.microbatches,
                                                    "--microbatches", 1'000'000, false));
    STAGEWRIGHT_TRY(auto chunks, wholeNumbers(options.chunks, "--chunks", 64, true));
    STAGEWRIGHT_TRY(auto comm, options.comm.empty() ? Result<std::vector<double>>(std::vector<double>{ownLinks})
                                                    : realNumbers(options.comm, "--comm"));
    Grid grid;
    std::vector<std::string> names = options.schedules;
    if (names.empty())
        for (const ScheduleInfo& info : allSchedules()) names.emplace_back(info.name);
    for (const std::string& name : names) {
        STAGEWRIGHT_TRY(auto source, sourceOf(name));
        grid.sources.push_back(std::move(source));
    }
    std::vector<std::string> costs = options.costs;
    if (costs.empty()) costs.push_back(options.setup.costsFrom.empty() ? "F=1,I=1,W=1" : std::string());
    const std::size_t count =
        names.size() * ranks.size() * microbatches.size() * chunks.size() * costs.size() * comm.size();
    if (count > mostRows)
        return fail(ErrorCode::Usage, fmt::format("the grid has {} points; at most {} are simulated", count, mostRows),
                    "take fewer values");
    for (const Source& source : grid.sources) {
        // a file's shape is noted only if another one was requested
        const auto given = [&](const std::string& text, const std::vector<int>& values, int fixed, const char* option,
                               const char* what) {
            if (fixed > 0 && text.empty()) return std::vector<int>{fixed};
            return valuesFor(source, values, fixed, option, what, grid);
        };
        const std::vector<int> ofRanks = given(options.ranks, ranks, source.fixedRanks, "--ranks", "ranks");
        const std::vector<int> ofMicrobatches =
            given(options.microbatches, microbatches, source.fixedMicrobatches, "--microbatches", "microbatches");
        const std::vector<int> ofChunks =
            valuesFor(source, chunks, source.fixedChunks, "--chunks", "stages per rank", grid);
        for (const int p : ofRanks)
            for (const int m : ofMicrobatches)
                for (const int v : ofChunks)
                    for (const std::string& cost : costs)
                        for (const double c : comm) {
                            Setup& point = grid.points.emplace_back(options.setup);
                            point.schedules = {source.name};
                            point.ranks = p;
                            point.microbatches = m;
                            point.chunks = v;
                            point.costs = cost;
                            point.comm = c;
                        }
    }
    return grid;
}

// Files as they were read, and no notes.
SetupSources filesOf(const Grid& grid, Session& session)
{
    SetupSources files = sourcesOf(session);
    const auto source = [&grid](const std::string& path) -> const Source& {
        return *std::find_if(grid.sources.begin(), grid.sources.end(),
                             [&](const Source& one) { return one.name == path; });
    };
    files.csv = [source](const std::string& path) -> Result<Schedule> { return *source(path).schedule; };
    files.text = [source](const std::string& path) -> Result<std::string> { return source(path).blockText; };
    files.note = nullptr;
    files.cyclic = nullptr;
    return files;
}

// What of each costs changes no row, and replicas whose gathers and reductions are free in all.
void tellUnused(const SweepChoice& options, const SetupSources& files, const std::vector<SweepRow>& rows,
                Session& session)
{
    if (options.setup.sharesState()) {
        const bool free = std::all_of(rows.begin(), rows.end(), [&](const SweepRow& row) {
            if (!row.done || !row.good()) return true;
            const auto made = preparedCase(row.point, files);
            return made && collectivesAreFree(made->costs);
        });
        const Setup& given = options.setup;
        std::string names;
        for (const auto& [name, is] :
             {std::pair("--replicas", given.replicas > 1), std::pair("--shard", given.shard != "none"),
              std::pair("--gather", !given.gather.empty()), std::pair("--reduce", !given.reduce.empty()),
              std::pair("--collectives", !given.collectives.empty())})
            if (is) names += (names.empty() ? "" : ", ") + std::string(name);
        if (free && !names.empty()) session.warn(fmt::format("{}: {}", names, freeCollectives));
    }
    std::vector<std::string> costs = options.costs;
    if (costs.empty() && !rows.empty()) costs.push_back(rows.front().point.costs);
    for (const std::string& one : costs) {
        std::vector<std::pair<ReplicaLists, const Setup*>> points;
        std::size_t ops = 0;
        for (const SweepRow& row : rows) {
            if (!row.done || !row.good() || row.point.costs != one) continue;
            auto state = simulatedLists(row.schedule(), row.point, files);
            if (!state) continue;
            ops += state->schedule.opCount();
            if (ops > mostTriedOps) return;
            points.emplace_back(std::move(*state), &row.point);
        }
        if (points.empty()) continue;
        Setup given = *points.front().second;
        if (options.costs.empty()) given.costs.clear(); // nobody wrote them
        given.comm = -1;                                // of each point
        tellUnusedCosts(
            given,
            [&](Setup other) -> Result<std::uint64_t> {
                std::uint64_t all = 0;
                for (const auto& [state, point] : points) {
                    other.comm = point->comm;
                    STAGEWRIGHT_TRY(const auto tried, costsOf(state, state.schedule, other, files));
                    const auto outcome = simulatedOutcome(state.schedule, tried);
                    if (!outcome) return outcome;
                    all = mixBits(all + *outcome);
                }
                return all;
            },
            ops, options.costs.size() > 1 ? "what is swept with " + one : "what is swept", session);
    }
}

Json jsonOf(const std::vector<SweepRow>& rows, bool interrupted)
{
    Json out = Json::array();
    for (const SweepRow& row : rows) {
        if (!row.done) continue;
        const bool good = row.good();
        const auto known = [good](Json value) { return good ? std::move(value) : Json(nullptr); };
        Json peaks = Json::array();
        for (const Bytes peak : row.peaks) peaks.push_back(row.memoryValue(peak));
        const Setup& point = row.point;
        out.push_back(
            {{"schedule", row.schedule()},
             {"ranks", point.ranks},
             {"microbatches", point.microbatches},
             {"chunks", point.chunks > 0 ? Json(point.chunks) : Json(nullptr)},
             {"stages", known(row.stages)},
             {"costs", textOrNull(point.costs.empty() ? point.costsFrom : point.costs)},
             {"comm", point.comm < 0 && !(good && row.timeUnit != 1) ? Json(nullptr) : Json(std::max(0.0, point.comm))},
             {"time_unit", known(row.timeUnit != 1 ? "rank_share" : "ns")},
             {"makespan", known(row.timeValue(row.makespan))},
             {"span", known(row.timeValue(row.span))},
             {"whole_step", known(row.timeValue(row.step))},
             {"bubble_fraction", known(row.bubbleFraction)},
             {"bubble_rate_span", known(row.bubbleRateSpan)},
             {"peak_activation", known(row.peaks.empty() ? Json(nullptr) : std::move(peaks))},
             {"error", good ? Json(nullptr) : Json(row.error)}});
    }
    return {{"rows", std::move(out)}, {"interrupted", interrupted}};
}

Result<int> runSweep(const SweepChoice& options, Session& session)
{
    STAGEWRIGHT_TRY(auto grid, gridOf(options));
    for (const std::string& note : grid.notes) session.note(note);
    const SetupSources files = filesOf(grid, session);
    const std::vector<SweepRow> rows = sweep(
        grid.points, [&](const Setup& point) { return preparedCase(point, files); }, session.reporter("points"));
    session.progress().clear();
    const auto count = [&rows](auto wanted) { return std::count_if(rows.begin(), rows.end(), wanted); };
    const auto done = count([](const SweepRow& row) { return row.done; });
    const auto failed = count([](const SweepRow& row) { return row.done && !row.good(); });
    const bool interrupted = done < static_cast<std::ptrdiff_t>(rows.size());
    if (!interrupted && failed == done)
        return fail(ErrorCode::Usage,
                    fmt::format("none of {} can be simulated; the first: {}",
                                plural(static_cast<long long>(rows.size()), "point"), rows.front().error));
    if (!interrupted) tellUnused(options, files, rows, session);
    if (session.json) session.answer(jsonOf(rows, interrupted));
    const std::string csv = sweepCsv(rows);
    if (options.output.empty()) {
        session.out(csv);
    } else {
        STAGEWRIGHT_CHECK(writeFileAtomically(options.output, csv));
        session.note(fmt::format("{} written to {}", plural(done, "row"), options.output));
    }
    if (failed > 0)
        session.note(fmt::format("{} could not be simulated; the column error says why", plural(failed, "point")));
    if (!interrupted) return ExitDone;
    session.warn(fmt::format("interrupted after {} of {} points; finished rows are written", done, rows.size()));
    return ExitInterrupted;
}

} // namespace

Command command_sweep()
{
    return {
        "sweep", "Simulate a grid of schedules, shapes, costs and latencies; write a table as CSV",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<SweepChoice>();
            verb.value("-s,--schedule", &options->schedules, "Schedules, by name, or files [all]")
                .form("NAME|FILE.csv|FILE.block,…")
                .commas()
                .each();
            verb.value("-p,--ranks", &options->ranks, "Ranks: 2,4,8 or 2-8 or 4-32/4 [4]").form("LIST");
            verb.value("-m,--microbatches", &options->microbatches, "Microbatches, in the same form [8]").form("LIST");
            verb.value("--chunks", &options->chunks, "Stages per rank, in the same form; auto: schedule default [auto]")
                .form("LIST");
            verb.value("--costs", &options->costs,
                       "Costs, as for simulate; repeat the option for several [F=1,I=1,W=1]")
                .form("F=1,I=1,W=1|FILE.json|analytic:MODEL@DEVICE")
                .each();
            verb.value("--comm", &options->comm,
                       "Latencies between ranks, in forward times [units: 0; else the costs' own links]")
                .form("LIST");
            addSetupOptions(verb, options->setup, SetupSweep,
                            {{"--link", "Latency and bandwidth between ranks, with costs in time [the costs' own]"},
                             {"--recompute", "Stages that recompute before the backward [none]"}});
            verb.value("-o,--output", &options->output, "Write the CSV to this file").form("FILE").replaces();
            verb.notes("Rows come in the order schedule, ranks, microbatches, chunks, costs, latency. A point that "
                       "can't be simulated has\n"
                       "its reason in the column error. Ctrl+C keeps the rows that are done (exit code 130).\n"
                       "Example: stagewright sweep -s 1f1b,zb-h1 -p 4,8 -m 8-64/8 --comm 0,0.1 -o grid.csv");
            return [options](Session& session) { return runSweep(*options, session); };
        },
        true, true};
}

} // namespace stagewright
