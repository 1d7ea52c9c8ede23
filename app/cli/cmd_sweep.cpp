#include <algorithm>
#include <atomic>
#include <charconv>
#include <mutex>
#include <new>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/csv_text.h"
#include "app/cli/options.h"
#include "app/cli/progress_line.h"
#include "app/cli/run_json.h"
#include "app/cli/session.h"
#include "schedules/recompute.h"
#include "schedules/registry.h"
#include "schedules/simulate.h"
#include "traces/formats/atomic_file.h"

namespace stagewright {

namespace {

constexpr std::size_t mostRows = 100'000;

struct Options {
    std::vector<std::string> schedules;
    std::string ranks = "4";
    std::string microbatches = "8";
    std::string chunks = "auto";
    std::vector<std::string> costs;
    std::string costsFrom;
    std::string comm = "0";
    std::string recompute = "none";
    std::string output;
};

// One point of the grid, and what became of it.
struct Row {
    std::string schedule;
    Shape shape;
    std::string costs;
    double comm = 0;

    int ranks = 0;
    int stages = 0;
    int microbatches = 0;
    Units units;
    SimResult result;
    SimFigures figures;
    std::string error; // why it could not be simulated
};

std::string_view takePart(std::string_view& text)
{
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    return part;
}

// "2,4,8", "2-6", "4-32/4" (in steps of 4); "auto" is 0 where allowed.
Result<std::vector<int>> wholeNumbers(const std::string& text, const char* option, int most, bool automatic)
{
    std::vector<int> out;
    const auto number = [](std::string_view part, int& value) {
        const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), value);
        return !part.empty() && code == std::errc() && end == part.data() + part.size();
    };
    std::string_view rest = text;
    do {
        const std::string_view part = takePart(rest);
        if (automatic && part == "auto") {
            out.push_back(0);
            continue;
        }
        const std::size_t dash = part.find('-');
        const std::size_t slash = part.find('/');
        int first = 0;
        int last = 0;
        int by = 1;
        bool good = number(part.substr(0, dash), first);
        last = first;
        if (good && dash != std::string_view::npos) {
            const std::size_t length = slash == std::string_view::npos ? std::string_view::npos : slash - dash - 1;
            good = number(part.substr(dash + 1, length), last) && (slash == std::string_view::npos || number(part.substr(slash + 1), by));
        }
        if (!good || first < 1 || last < first || last > most || by < 1)
            return fail(ErrorCode::Usage, fmt::format("{}: '{}' is no list of numbers from 1 to {}", option, part, most),
                        "write 2,4,8 or 2-8 or 4-32/4");
        for (int value = first; value <= last; value += by) out.push_back(value);
    } while (!rest.empty());
    return out;
}

Result<std::vector<double>> realNumbers(const std::string& text, const char* option)
{
    std::vector<double> out;
    std::string_view rest = text;
    do {
        const std::string_view part = takePart(rest);
        double value = 0;
        const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (part.empty() || code != std::errc() || end != part.data() + part.size() || !(value >= 0) || value > 1e6)
            return fail(ErrorCode::Usage, fmt::format("{}: '{}' is no list of numbers of at least 0", option, part), "write 0,0.1,0.5");
        out.push_back(value);
    } while (!rest.empty());
    return out;
}

Result<std::vector<Row>> gridOf(const Options& options)
{
    auto ranks = wholeNumbers(options.ranks, "--ranks", 4096, false);
    if (!ranks) return tl::unexpected(std::move(ranks.error()));
    auto microbatches = wholeNumbers(options.microbatches, "--microbatches", 1'000'000, false);
    if (!microbatches) return tl::unexpected(std::move(microbatches.error()));
    auto chunks = wholeNumbers(options.chunks, "--chunks", 64, true);
    if (!chunks) return tl::unexpected(std::move(chunks.error()));
    auto comm = realNumbers(options.comm, "--comm");
    if (!comm) return tl::unexpected(std::move(comm.error()));
    std::vector<std::string> names = options.schedules;
    if (names.empty())
        for (const ScheduleInfo& info : allSchedules()) names.emplace_back(info.name);
    for (const std::string& name : names)
        if (auto known = findSchedule(name.substr(0, name.find(':'))); !known)
            return tl::unexpected(std::move(known.error()).with("--schedule"));
    std::vector<std::string> costs = options.costs;
    if (costs.empty()) costs.push_back(options.costsFrom.empty() ? "F=1,I=1,W=1" : std::string());
    std::vector<Row> rows;
    const std::size_t count =
        names.size() * ranks->size() * microbatches->size() * chunks->size() * costs.size() * comm->size();
    if (count > mostRows)
        return fail(ErrorCode::Usage, fmt::format("the grid has {} points; at most {} are simulated", count, mostRows), "take fewer values");
    for (const std::string& name : names)
        for (const int p : *ranks)
            for (const int m : *microbatches)
                for (const int v : *chunks)
                    for (const std::string& cost : costs)
                        for (const double c : *comm) {
                            Row row;
                            row.schedule = name;
                            row.shape = Shape{p, m, v};
                            row.costs = cost;
                            row.comm = c;
                            rows.push_back(std::move(row));
                        }
    return rows;
}

void simulateRow(const Options& options, Row& row)
{
    const auto wrong = [&row](const Error& error) { row.error = error.message; };
    CostOptions given;
    given.costs = row.costs;
    given.costsFrom = options.costsFrom;
    given.comm = row.comm;
    row.shape.costs = generatorCosts(given);
    auto schedule = makeSchedule(row.schedule, row.shape);
    if (!schedule) return wrong(schedule.error());
    auto stages = parseRecompute(options.recompute, schedule->stages);
    if (!stages) return wrong(stages.error());
    *schedule = withRecompute(*schedule, *stages);
    if (row.costs.empty()) row.costs = options.costsFrom; // for the table
    auto costs = chooseCosts(*schedule, given);
    if (!costs) return wrong(costs.error());
    auto result = simulate(*schedule, *costs);
    if (!result) return wrong(result.error());
    row.ranks = schedule->ranks;
    row.stages = schedule->stages;
    row.microbatches = schedule->microbatches;
    row.units = {costs->timeUnit, costs->memoryUnit};
    row.figures = figuresOf(*schedule, *result);
    row.result.makespan = row.figures.makespan;
    row.result.span = result->span;
    row.result.peakActivation = std::move(result->peakActivation);
}

std::string csvOf(const std::vector<Row>& rows)
{
    std::string text = csvLine({"schedule", "ranks", "microbatches", "chunks", "stages", "costs", "comm", "time_unit", "makespan", "span",
                                "bubble_fraction", "bubble_rate_span", "peak_activation", "error"});
    for (const Row& row : rows) {
        std::vector<std::string> cells{row.schedule,
                                       std::to_string(row.shape.ranks),
                                       std::to_string(row.shape.microbatches),
                                       row.shape.chunks > 0 ? std::to_string(row.shape.chunks) : "auto",
                                       row.error.empty() ? std::to_string(row.stages) : "",
                                       row.costs,
                                       fmt::format("{}", row.comm)};
        if (row.error.empty()) {
            const auto& peaks = row.result.peakActivation;
            const Bytes peak = peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
            for (std::string cell : {row.units.timeName(), fmt::format("{}", row.units.timeValue(row.result.makespan)),
                                     fmt::format("{}", row.units.timeValue(row.result.span)), fmt::format("{:.6g}", row.figures.bubbleFraction),
                                     fmt::format("{:.6g}", row.figures.bubbleRateSpan), fmt::format("{}", row.units.memoryValue(peak))})
                cells.push_back(std::move(cell));
        } else {
            cells.resize(13);
        }
        cells.push_back(row.error);
        text += csvLine(cells);
    }
    return text;
}

Json jsonOf(const std::vector<Row>& rows)
{
    Json out = Json::array();
    for (const Row& row : rows) {
        const bool good = row.error.empty();
        const auto known = [good](Json value) { return good ? std::move(value) : Json(nullptr); };
        Json peaks = Json::array();
        for (const Bytes peak : row.result.peakActivation) peaks.push_back(row.units.memoryValue(peak));
        out.push_back({{"schedule", row.schedule},
                       {"ranks", row.shape.ranks},
                       {"microbatches", row.shape.microbatches},
                       {"chunks", row.shape.chunks > 0 ? Json(row.shape.chunks) : Json(nullptr)},
                       {"stages", known(row.stages)},
                       {"costs", row.costs.empty() ? Json(nullptr) : Json(row.costs)},
                       {"comm", row.comm},
                       {"time_unit", known(row.units.timeName())},
                       {"makespan", known(row.units.timeValue(row.result.makespan))},
                       {"span", known(row.units.timeValue(row.result.span))},
                       {"bubble_fraction", known(row.figures.bubbleFraction)},
                       {"bubble_rate_span", known(row.figures.bubbleRateSpan)},
                       {"peak_activation", known(std::move(peaks))},
                       {"error", good ? Json(nullptr) : Json(row.error)}});
    }
    return {{"rows", std::move(out)}};
}

Result<int> run(const Options& options, Session& session)
{
    auto rows = gridOf(options);
    if (!rows) return tl::unexpected(std::move(rows.error()));
    const std::stop_token stop = session.stop();
    const Progress progress = session.reporter("points");
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::size_t done = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < rows->size() && !stop.stop_requested(); i = next++) {
            try {
                simulateRow(options, (*rows)[i]);
            } catch (const std::bad_alloc&) {
                (*rows)[i].error = "out of memory";
            }
            const std::lock_guard lock(mutex);
            progress.tell("points", static_cast<std::int64_t>(++done), static_cast<std::int64_t>(rows->size()));
        }
    };
    {
        const std::jthread second(rows->size() > 1 ? std::jthread(work) : std::jthread());
        work();
    }
    session.progress().clear();
    if (stop.stop_requested()) return fail(ErrorCode::Cancelled, fmt::format("interrupted after {} of {} points", done, rows->size()));
    const auto failed = std::count_if(rows->begin(), rows->end(), [](const Row& row) { return !row.error.empty(); });
    if (failed == static_cast<std::ptrdiff_t>(rows->size()))
        return fail(ErrorCode::Usage, fmt::format("none of {} can be simulated; the first: {}", plural(static_cast<long long>(rows->size()), "point"),
                                                  rows->front().error));
    if (session.json) session.answer(jsonOf(*rows));
    const std::string csv = csvOf(*rows);
    if (options.output.empty()) {
        session.out(csv);
    } else {
        if (auto written = writeFileAtomically(options.output, csv); !written) return tl::unexpected(std::move(written.error()));
        session.note(fmt::format("{} written to {}", plural(static_cast<long long>(rows->size()), "row"), options.output));
    }
    if (failed > 0) session.note(fmt::format("{} could not be simulated; the column error says why", plural(failed, "point")));
    return ExitDone;
}

} // namespace

Command command_sweep()
{
    return {"sweep", "Simulate a grid of schedules, shapes, costs and latencies; write a table as CSV",
            [](CLI::App& app) -> Runner {
                auto options = std::make_shared<Options>();
                app.add_option("-s,--schedule", options->schedules, "Schedules, by name [all]")
                    ->type_name("NAME,NAME…")->delimiter(',')->allow_extra_args(false);
                app.add_option("-p,--ranks", options->ranks, "Ranks: 2,4,8 or 2-8 or 4-32/4 [4]")->type_name("LIST");
                app.add_option("-m,--microbatches", options->microbatches, "Microbatches, likewise [8]")->type_name("LIST");
                app.add_option("--chunks", options->chunks, "Stages per rank, likewise; auto: the schedule's own [auto]")->type_name("LIST");
                auto* costs = app.add_option("--costs", options->costs, "Costs as simulate takes them; several times for several [F=1,I=1,W=1]")
                                  ->type_name("F=1,I=1,W=1|FILE.json|analytic:MODEL@DEVICE")->allow_extra_args(false);
                app.add_option("--costs-from", options->costsFrom, "Costs fitted from a recorded run")->type_name("FILE#RUN")->excludes(costs);
                app.add_option("--comm", options->comm, "Latencies between ranks, in forward times [0]")->type_name("LIST");
                app.add_option("--recompute", options->recompute, "Stages that recompute before the backward [none]")->type_name("all|none|0-2");
                app.add_option("-o,--output", options->output, "Write the CSV to this file")->type_name("FILE");
                app.footer("Rows come in the order schedule, ranks, microbatches, chunks, costs, latency. A point that can't be simulated has\n"
                           "its reason in the column error.\n"
                           "Example: stagewright sweep -s 1f1b,zb-h1 -p 4,8 -m 8-64/8 --comm 0,0.1 -o grid.csv");
                return [options](Session& session) { return run(*options, session); };
            },
            true, true};
}

} // namespace stagewright
