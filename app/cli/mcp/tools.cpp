#include "app/cli/mcp/tools.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

namespace stagewright {

namespace {

namespace fs = std::filesystem;
using MessageJson = nlohmann::ordered_json;
using Type = McpArgument::Type;
using Words = std::vector<std::string>;

std::string textOf(const MessageJson& arguments, const char* name)
{
    const auto found = arguments.find(name);
    if (found == arguments.end()) return {};
    return found->is_string() ? found->get<std::string>() : found->dump();
}

void addOption(Words& words, const MessageJson& arguments, const char* name, const std::string& option)
{
    const auto found = arguments.find(name);
    if (found == arguments.end()) return;
    if (found->is_array())
        for (const MessageJson& one : *found) words.push_back(fmt::format("{}={}", option, one.get<std::string>()));
    else
        words.push_back(fmt::format("{}={}", option, textOf(arguments, name)));
}

constexpr McpArgument aFile{"file", Type::File, true, "A run file (.stagewright)."};
constexpr McpArgument aRun{"run", Type::Text, false, "A run by its number or name; the newest if left out."};

// What says which schedule on which machine.
std::vector<McpArgument> setupArguments()
{
    return {{"schedule", Type::Text, false,
             "Name in the library, such as 1f1b, zb-h1, zbv (see schedules); 1f1b if left out."},
            {"ranks", Type::Whole, false, "Ranks of the pipeline; 4 if left out."},
            {"microbatches", Type::Whole, false, "Microbatches of a step; 8 if left out."},
            {"chunks", Type::Whole, false, "Stages of a rank; the schedule's own if left out."},
            {"costs", Type::Text, false, "F=1,I=1,W=1 in forwards of a rank, or analytic:gpt-6.2b@a100."},
            {"comm", Type::Number, false, "Latency between ranks, in forwards of a rank."},
            {"recompute", Type::Text, false, "Stages that recompute: all, none, 0-2."},
            {"perturb", Type::Text, false, "A disturbance: rank=2:1.25, link=1-2:1.0, jitter=0.05."},
            {"memory_limit", Type::Text, false, "Activations a rank may hold: 4 microbatches, or 26MiB."}};
}

void addSetup(Words& words, const MessageJson& arguments)
{
    for (const auto& [name, option] : {std::pair("schedule", "--schedule"),
                                       {"ranks", "--ranks"},
                                       {"microbatches", "--microbatches"},
                                       {"chunks", "--chunks"},
                                       {"costs", "--costs"},
                                       {"comm", "--comm"},
                                       {"recompute", "--recompute"},
                                       {"perturb", "--perturb"},
                                       {"memory_limit", "--memory-limit"}})
        addOption(words, arguments, name, option);
}

void addRun(Words& words, const MessageJson& arguments, const char* file = "file", const char* run = "run")
{
    words.push_back(textOf(arguments, file) + (arguments.contains(run) ? "#" + textOf(arguments, run) : std::string()));
}

std::vector<McpArgument> joined(std::vector<McpArgument> first, const std::vector<McpArgument>& second)
{
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

Result<void> sourced(MessageJson& answer, const MessageJson&, const AskRows& rows)
{
    addSources(answer, rows);
    return {};
}

std::vector<McpTool> makeTools()
{
    return {
        {"list_runs",
         "Runs of a file",
         "Which runs a file has: number, name, schedule, ranks, steps. Ask this first.",
         {aFile},
         false,
         [](const MessageJson& arguments, const McpFolders&) {
             return Words{"runs", textOf(arguments, "file")};
         },
         {}},
        {"report",
         "Explain a run",
         "Step time, bubbles by cause, memory by rank, communication and what would help most (levers, with their "
         "gain). "
         "Times are in ns unless time_unit says otherwise; null is unknown.",
         {aFile,
          aRun,
          {"step", Type::Whole, false, "A step, from 1; the median one if left out."},
          {"table", Type::Text, false, "A table of the report too, such as memory, ops, collectives, or all."},
          {"keys", Type::Texts, false,
           "Only these figures, each with unit, SQL or why it is unknown: bubble_fraction, by_rank[2].idle, "
           "over_steps.idle, levers[0], tables.ops.rows."}},
         false,
         [](const MessageJson& arguments, const McpFolders&) {
             Words words{"report", "--gaps=3"};
             addOption(words, arguments, "step", "--step");
             addOption(words, arguments, "table", "--table");
             addRun(words, arguments);
             return words;
         },
         {},
         false,
         [](MessageJson& answer, const MessageJson& arguments, const AskRows& rows) -> Result<void> {
             if (!arguments.contains("keys")) {
                 addSources(answer, rows);
                 return {};
             }
             STAGEWRIGHT_TRY(answer, askedFigures(answer, arguments["keys"], rows));
             return {};
         }},
        {"explain_gaps",
         "Why ranks are idle",
         "The largest idle gaps of a step, each with its cause and the chain of ops and messages behind it; idle time "
         "by cause.",
         {aFile,
          aRun,
          {"count", Type::Whole, false, "How many gaps; 5 if left out."},
          {"step", Type::Whole, false, "A step, from 1; the median one if left out."}},
         false,
         [](const MessageJson& arguments, const McpFolders&) {
             Words words{"report"};
             addOption(words, arguments, "count", "--gaps");
             addOption(words, arguments, "step", "--step");
             addRun(words, arguments);
             return words;
         },
         {"run", "step", "step_number", "time_unit", "whole_step", "bubble_fraction", "idle_by_cause", "gaps",
          "unknown", "sources"},
         false,
         sourced},
        {"what_if",
         "Simulate a run with a change",
         "What the step would take if something were different: F*0.5, B@stage2*0.8, rank1*1.25, link1-2*0, launch*0, "
         "jitter*0, m=16.",
         {aFile,
          aRun,
          {"changes", Type::Texts, true, "Changes; each is answered by itself, those with a comma together."}},
         false,
         [](const MessageJson& arguments, const McpFolders&) {
             Words words{"report", "--gaps=0"};
             addOption(words, arguments, "changes", "--what-if");
             addRun(words, arguments);
             return words;
         },
         {"run", "step", "step_number", "time_unit", "whole_step", "what_if"}},
        {"compare",
         "Compare two runs",
         "How much faster the second run is, where the difference comes from, and which ops moved.",
         {{"a", Type::File, true, "The file of the first run."},
          {"run_a", Type::Text, false, "Its number or name; the newest if left out."},
          {"b", Type::File, true, "The file of the second run; it may be the same."},
          {"run_b", Type::Text, false, "Its number or name; the newest if left out."}},
         false,
         [](const MessageJson& arguments, const McpFolders&) {
             Words words{"compare"};
             addRun(words, arguments, "a", "run_a");
             addRun(words, arguments, "b", "run_b");
             return words;
         },
         {}},
        {"sql",
         "Query a run file",
         "A SELECT over spans(run, step, rank, lane, stage, kind, microbatch, start_ns, end_ns, cpu_ns, name, "
         "duration_ns, span, "
         "step_number, graph, graph_node), runs, steps, memory, edges, metrics, notes. For any figure that report does "
         "not have.",
         {aFile,
          {"query", Type::Text, true, "The SELECT."},
          {"max_rows", Type::Whole, false, "At most so many rows; 100 if left out."}},
         false,
         [](const MessageJson& arguments, const McpFolders&) {
             Words words{"sql",
                         "--max-rows=" + (arguments.contains("max_rows") ? textOf(arguments, "max_rows") : "100"),
                         "--time-limit=20", "--"};
             words.push_back(textOf(arguments, "file"));
             words.push_back(textOf(arguments, "query"));
             return words;
         },
         {}},
        {"schedules",
         "Schedules of the library",
         "Their names, or the page of one: how it works, formulas, paper.",
         {{"name", Type::Text, false, "One of them."}},
         false,
         [](const MessageJson& arguments, const McpFolders&) {
             Words words{"schedules"};
             if (arguments.contains("name")) {
                 words.emplace_back("--");
                 words.push_back(textOf(arguments, "name"));
             }
             return words;
         },
         {}},
        {"simulate",
         "Time a schedule",
         "Step time, bubbles, memory and levers of a schedule that need not have been run.",
         joined(setupArguments(), {{"what_if", Type::Texts, false, "Changes, as in what_if."}}),
         false,
         [](const MessageJson& arguments, const McpFolders&) {
             Words words{"simulate"};
             addSetup(words, arguments);
             addOption(words, arguments, "what_if", "--what-if");
             return words;
         },
         {},
         false,
         [](MessageJson& answer, const MessageJson&, const AskRows&) -> Result<void> {
             groupUnknown(answer);
             return {};
         }},
        {"draw",
         "Draw a schedule",
         "A picture of a schedule in characters: a line for each rank.",
         setupArguments(),
         false,
         [](const MessageJson& arguments, const McpFolders&) {
             Words words{"simulate"};
             addSetup(words, arguments);
             return words;
         },
         {},
         true},
        {"plan",
         "Find a schedule",
         "The shortest order for these costs under a memory cap, with a bound that no order beats and whether it is "
         "proven.",
         {{"ranks", Type::Whole, false, "Ranks of the pipeline; 4 if left out."},
          {"microbatches", Type::Whole, false, "Microbatches of a step; 8 if left out."},
          {"chunks", Type::Whole, false, "Stages of a rank: 1 or 2."},
          {"costs", Type::Text, false, "F=1,I=1,W=1 in forwards of a rank, or analytic:gpt-6.2b@a100."},
          {"comm", Type::Number, false, "Latency between ranks, in forwards of a rank."},
          {"memory_limit", Type::Text, false, "Activations a rank may hold: 4 microbatches, or 26MiB."},
          {"seconds", Type::Number, false, "Longest search; 5 if left out."}},
         false,
         [](const MessageJson& arguments, const McpFolders&) {
             Words words{"plan"};
             for (const auto& [name, option] : {std::pair("ranks", "--ranks"),
                                                {"microbatches", "--microbatches"},
                                                {"chunks", "--chunks"},
                                                {"costs", "--costs"},
                                                {"comm", "--comm"},
                                                {"memory_limit", "--memory-limit"},
                                                {"seconds", "--budget"}})
                 addOption(words, arguments, name, option);
             return words;
         },
         {}},
        {"import",
         "Import a trace",
         "Reads a trace of another tool (Kineto, Chrome, Perfetto, Nsight) into a run file that the other tools take.",
         {{"file", Type::File, true, "The trace."},
          {"name", Type::Text, true, "Name of the run file to write, such as job.stagewright."}},
         true,
         [](const MessageJson& arguments, const McpFolders& folders) {
             return Words{"import", textOf(arguments, "file"),
                          "--output=" + (fs::path(folders.write) / textOf(arguments, "name")).string()};
         },
         {}},
        {"export",
         "Write a picture or a trace",
         "Writes a run as svg, perfetto, chrome, csv or html.",
         {aFile,
          aRun,
          {"format", Type::Text, true, "svg, perfetto, chrome, csv or html."},
          {"name", Type::Text, true, "Name of the file to write."}},
         true,
         [](const MessageJson& arguments, const McpFolders& folders) {
             Words words{"export"};
             addRun(words, arguments);
             addOption(words, arguments, "format", "--format");
             words.push_back("--output=" + (fs::path(folders.write) / textOf(arguments, "name")).string());
             return words;
         },
         {}},
    };
}

std::string_view nameOf(Type type)
{
    switch (type) {
    case Type::Whole: return "integer";
    case Type::Number: return "number";
    case Type::Texts: return "array";
    default: return "string";
    }
}

bool hasType(const MessageJson& value, Type type)
{
    switch (type) {
    case Type::Whole: return value.is_number_integer();
    case Type::Number: return value.is_number();
    case Type::Texts:
        return value.is_array() &&
               std::all_of(value.begin(), value.end(), [](const MessageJson& one) { return one.is_string(); });
    default: return value.is_string();
    }
}

// An existing file within one of the folders, links followed; "" if it is none.
std::string fileWithin(const std::string& name, const McpFolders& folders)
{
    for (const std::string& folder : folders.read) {
        std::error_code failed;
        const fs::path file = fs::canonical(fs::path(folder) / name, failed); // an absolute name stays as it is
        if (failed || !fs::is_regular_file(file, failed)) continue;
        for (const std::string& allowed : folders.read) {
            const fs::path inside(allowed);
            if (std::mismatch(inside.begin(), inside.end(), file.begin(), file.end()).first == inside.end())
                return file.string();
        }
    }
    return {};
}

} // namespace

std::span<const McpTool> mcpTools()
{
    static const std::vector<McpTool> tools = makeTools();
    return tools;
}

MessageJson schemaOf(const McpTool& tool)
{
    MessageJson properties = MessageJson::object(), required = MessageJson::array();
    for (const McpArgument& argument : tool.arguments) {
        MessageJson one = {{"type", std::string(nameOf(argument.type))}, {"description", std::string(argument.help)}};
        if (argument.type == Type::Texts) one["items"] = {{"type", "string"}};
        properties[std::string(argument.name)] = std::move(one);
        if (argument.required) required.push_back(std::string(argument.name));
    }
    MessageJson out = {{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) out["required"] = std::move(required);
    out["additionalProperties"] = false;
    return out;
}

Result<MessageJson> checkedArguments(const McpTool& tool, const MessageJson& given, const McpFolders& folders)
{
    MessageJson out = MessageJson::object();
    std::string names;
    for (const McpArgument& argument : tool.arguments) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", argument.name);
        const auto found = given.find(std::string(argument.name));
        if (found == given.end() || found->is_null()) {
            if (argument.required)
                return fail(ErrorCode::Usage, fmt::format("{} needs {}: {}", tool.name, argument.name, argument.help));
            continue;
        }
        if (!hasType(*found, argument.type))
            return fail(ErrorCode::Usage, fmt::format("{} of {} is {}, not {}", argument.name, tool.name,
                                                      nameOf(argument.type), found->type_name()));
        out[std::string(argument.name)] = *found;
        if (argument.type == Type::File) {
            const auto text = found->get<std::string>();
            const std::string file = fileWithin(text, folders);
            if (file.empty())
                return fail(ErrorCode::Usage,
                            fmt::format("there is no file '{}' in the folders that may be read", text),
                            "start 'stagewright mcp --folder DIR' with its folder");
            out[std::string(argument.name)] = file;
        }
        if (argument.name == "name" && tool.writes) {
            const auto text = found->get<std::string>();
            if (text.empty() || text.starts_with('.') || text.find('/') != std::string::npos)
                return fail(ErrorCode::Usage,
                            fmt::format("'{}' is not the name of a file in the folder to write to", text),
                            "give a name without folders");
        }
    }
    for (const auto& [key, value] : given.items())
        if (!out.contains(key) && !value.is_null())
            return fail(ErrorCode::Usage, fmt::format("{} takes no '{}'", tool.name, key.substr(0, 60)),
                        "it takes " + names);
    return out;
}

} // namespace stagewright
