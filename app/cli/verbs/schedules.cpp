#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/options/setup_sources.h"
#include "app/cli/session.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/json.h"
#include "app/cli/text/schedule_pages.h"
#include "app/cli/text/table.h"
#include "schedules/execute/buffering.h"
#include "schedules/heuristic/building_block.h"
#include "schedules/library/registry.h"
#include "schedules/text/csv.h"
#include "schedules/text/draw_text.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright {

namespace {

struct SchedulesChoice {
    std::string name;
    Setup setup;
    bool csv = false;
    bool block = false;
    bool markdown = false;
};

Json infoJson(const ScheduleInfo& info)
{
    Json parameters = Json::array();
    for (const ScheduleParameter& parameter : info.parameters)
        parameters.push_back({{"name", parameter.name},
                              {"default", parameter.fallback},
                              {"values", parameter.values},
                              {"meaning", parameter.meaning}});
    return {{"name", info.name},
            {"title", info.title},
            {"summary", info.summary},
            {"paper", info.paper},
            {"constraints", info.constraints},
            {"formulas", info.formulas},
            {"drawing", info.drawing},
            {"aliases", info.aliases},
            {"fixed_chunks", info.fixedChunks > 0 ? Json(info.fixedChunks) : Json(nullptr)},
            {"default_chunks", info.defaultChunks},
            {"parameters", std::move(parameters)}};
}

int list(Session& session)
{
    Table table({{"name"}, {"what it does"}, {"constraints"}});
    Json array = Json::array();
    for (const ScheduleInfo& info : allSchedules()) {
        table.add({std::string(info.name), std::string(info.summary), std::string(info.constraints)});
        array.push_back(infoJson(info));
    }
    if (session.json) session.answer({{"schedules", std::move(array)}});
    session.out(table.text(session.colourOut()));
    session.out("\n'stagewright schedules NAME' shows a schedule's page; a CSV file can replace a name everywhere.\n");
    return ExitDone;
}

std::string indented(std::string_view text)
{
    std::string result;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        result += line.empty() ? "\n" : "  " + std::string(line) + "\n";
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return result;
}

Result<int> printBlock(const std::string& name, const SchedulesChoice& options, Session& session)
{
    STAGEWRIGHT_TRY(auto block, blockOf(name, options.setup.ranks));
    const std::string text = toText(block);
    session.out(text);
    if (session.json) session.answer({{"name", name}, {"block", text}});
    return ExitDone;
}

// Under which lowering rules this shape completes without buffers.
void addBuffering(const Schedule& schedule, Json& object, Session& session)
{
    const auto outcomes = outcomesWithoutBuffers(schedule);
    if (!outcomes) return;
    Json rules = Json::object();
    session.out("\nwithout buffers (--sends rendezvous), by --lower RULE\n");
    for (const RuleOutcome& outcome : *outcomes) {
        const std::string rule = toText(outcome.lowering);
        session.out(fmt::format("  {:<14}{}\n", rule,
                                outcome.ends() ? std::string("ends")
                                               : fmt::format("hangs, needs buffers: ranks {} wait for each other",
                                                             fmt::join(outcome.cycle, ", "))));
        rules[rule] = {{"ends", outcome.ends()}, {"cycle", outcome.cycle}};
    }
    object["without_buffers"] = std::move(rules);
}

Result<int> printPages(Session& session)
{
    STAGEWRIGHT_TRY(auto pages, schedulePages());
    session.out(pages);
    if (session.json) session.answer({{"markdown", pages}});
    return ExitDone;
}

Result<int> page(const ScheduleInfo& info, const SchedulesChoice& options, Session& session)
{
    auto schedule = readSchedule(options.name, options.setup, sourcesOf(session));
    Json object = infoJson(info);
    if (!schedule) { // the page is useful even if the shape is impossible
        if (options.csv) return tl::unexpected(std::move(schedule.error()));
        session.note(fmt::format("no drawing for this shape: {}", schedule.error().message));
    }
    if (options.csv) {
        STAGEWRIGHT_TRY(auto csv, writeScheduleCsv(*schedule));
        session.out(csv);
        if (session.json) session.answer({{"name", info.name}, {"csv", csv}});
        return ExitDone;
    }
    const bool colour = session.colourOut();
    session.out(tinted(info.title, Tint::Bold, colour) + "\n" + fmt::format("{}\n{}\n", info.summary, info.paper));
    if (!info.aliases.empty()) session.out(fmt::format("also called {}\n", info.aliases));
    session.out(fmt::format("\nneeds {}\n", info.constraints));
    if (!info.parameters.empty()) {
        session.out("\n" + tinted("parameters", Tint::Bold, colour) + "\n");
        for (const ScheduleParameter& parameter : info.parameters)
            session.out(fmt::format("  {}={}  [{}] {}\n", parameter.name, parameter.values, parameter.fallback,
                                    parameter.meaning));
        session.out(fmt::format("  after the name: {}:{}=…\n", info.name, info.parameters.front().name));
    }
    session.out("\n" + tinted("formulas", Tint::Bold, colour) + "\n" + indented(info.formulas));
    session.out("\n" + tinted("drawing", Tint::Bold, colour) + "\n" + indented(info.drawing));
    object["ranks"] = options.setup.ranks;
    object["microbatches"] = options.setup.microbatches;
    object["stages"] = nullptr;
    object["makespan"] = nullptr;
    object["bubble_fraction"] = nullptr;
    object["peak_activation"] = nullptr;
    object["without_buffers"] = nullptr;
    if (schedule) {
        const CostModel costs = CostModel::uniform(*schedule);
        STAGEWRIGHT_TRY(auto result, simulate(*schedule, costs));
        STAGEWRIGHT_TRY(auto timeline, timelineOf(*schedule, result, costs));
        const SimFigures figures = figuresOf(*schedule, result);
        const Units units{costs.timeUnit, costs.memoryUnit};
        std::string peaks;
        Json peakArray = Json::array();
        for (const Bytes peak : result.peakActivation) {
            peaks += (peaks.empty() ? "" : " ") + units.memoryText(peak);
            peakArray.push_back(units.memoryValue(peak));
        }
        session.out(fmt::format(
            "\n{} × {} at unit costs: time {}, bubble {}, peak activation {}\n\n", plural(schedule->ranks, "rank"),
            schedule->microbatches == 1 ? "1 microbatch" : fmt::format("{} microbatches", schedule->microbatches),
            units.timeText(result.makespan), formatPercent(figures.bubbleFraction), peaks));
        session.out(drawTimeline(*timeline, 0, session.columns(), colour));
        object["stages"] = schedule->stages;
        object["makespan"] = units.timeValue(result.makespan);
        object["bubble_fraction"] = figures.bubbleFraction;
        object["peak_activation"] = std::move(peakArray);
        addBuffering(*schedule, object, session);
    }
    if (session.json) session.answer(object);
    return ExitDone;
}

} // namespace

Command command_schedules()
{
    return {"schedules", "List the schedules, or show the page of one", [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<SchedulesChoice>();
                verb.value("NAME", &options->name,
                           "A schedule, by name or alias, with or without parameters: chimera:f=2:join=doubling");
                addSetupOptions(verb, options->setup, SetupShape);
                verb.flag("--csv", options->csv, "Print the schedule as CSV (PyTorch's convention) and nothing else");
                verb.flag("--block", options->block,
                          "Print its building block; edited, it is a schedule too: -s mine.block");
                verb.flag("--markdown", options->markdown, "Print the pages of all schedules, as in docs/schedules.md");
                verb.notes("Example: stagewright schedules zb-h1 --ranks 4 --csv > mine.csv");
                return [options](Session& session) -> Result<int> {
                    if (options->markdown) {
                        if (!options->name.empty())
                            return fail(ErrorCode::Usage, "--markdown is for all schedules", "omit the name");
                        return printPages(session);
                    }
                    if (options->name.empty()) {
                        if (options->csv)
                            return fail(ErrorCode::Usage, "--csv needs a schedule",
                                        "name one: stagewright schedules 1f1b --csv");
                        return list(session);
                    }
                    if (options->block) return printBlock(options->name, *options, session);
                    STAGEWRIGHT_TRY(auto info, scheduleInfoOf(options->name));
                    return page(*info, *options, session);
                };
            }};
}

} // namespace stagewright
