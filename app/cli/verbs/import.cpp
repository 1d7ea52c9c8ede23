#include <map>
#include <set>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/session.h"
#include "app/cli/text/run_json.h"
#include "app/cli/text/table.h"
#include "schedules/base/quantity.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"
#include "traces/import/import.h"
#include "traces/store/add_runs.h"

namespace stagewright {

namespace {

struct ImportChoice {
    std::vector<std::string> files;
    std::string rules;
    std::string suggested;
    std::string output;
    std::string name;
    bool hostOps = false;
    bool oldHostOps = false; // by its former name
    bool oneJob = false;
    int threads = 0;
};

Json jsonOf(const ImportedRun& imported, bool stored)
{
    const RunInfo& info = imported.run.info;
    Json left = Json::object();
    for (const auto& [what, count] : imported.leftOut) left[what] = count;
    return {{"run", stored ? Json(info.id) : Json(nullptr)},
            {"name", info.name},
            {"format", imported.format},
            {"files", imported.files},
            {"ranks", info.ranks},
            {"steps", info.steps},
            {"stages", countOrNull(info.stages)},
            {"microbatches", countOrNull(info.microbatches)},
            {"spans", info.spanCount},
            {"events", imported.events},
            {"ops", imported.ops},
            {"labels", textOrNull(imported.dialect)},
            {"recognised", textOrNull(imported.recognised)},
            {"not_rebuilt", textOrNull(imported.notRebuilt)},
            {"kernels", imported.kernels},
            {"kernels_under_ops", imported.kernelsUnderOps},
            {"kernels_under_ranges", imported.kernelsUnderRanges},
            {"messages", imported.messages},
            {"unpaired_messages", imported.unpaired},
            {"collectives", imported.collectives},
            {"collectives_of_one_rank", imported.collectivesAlone},
            {"collectives_lacking_ranks", imported.collectivesLacking},
            {"clocks", textOrNull(imported.clocks)},
            {"clock_error_ns", imported.clockError >= 0 ? Json(imported.clockError) : Json(nullptr)},
            {"damaged_events", imported.damaged},
            {"left_out", std::move(left)},
            {"notes", imported.notes}};
}

std::string scheduleText(const ImportedRun& imported)
{
    if (!imported.recognised.empty()) return imported.recognised;
    if (imported.run.schedule) return "of its own";
    return imported.ops > 0 ? "not rebuilt" : "no ops";
}

// Files that are not traces are listed in one line: folders hold other files, too.
void warnOfRefused(const std::vector<RefusedFile>& refused, Session& session)
{
    std::string others;
    std::size_t count = 0;
    for (const RefusedFile& file : refused) {
        if (!file.error.message.ends_with(": unknown trace format"))
            session.warn(file.error.message);
        else if (++count <= 5)
            others += (count > 1 ? ", " : "") + file.path;
    }
    if (count == 1)
        session.warn(fmt::format("file {}: unknown trace format", others));
    else if (count > 1)
        session.warn(fmt::format("{} files have an unknown trace format: {}{}", count, others, count > 5 ? " …" : ""));
}

void print(const ImportResult& result, Session& session)
{
    Table table({{"run", Table::Align::Right},
                 {"name"},
                 {"format"},
                 {"ranks", Table::Align::Right},
                 {"steps", Table::Align::Right},
                 {"ops", Table::Align::Right},
                 {"kernels", Table::Align::Right},
                 {"messages", Table::Align::Right},
                 {"collectives", Table::Align::Right},
                 {"schedule"},
                 {"clocks"}});
    for (const ImportedRun& imported : result.runs) {
        const RunInfo& info = imported.run.info;
        table.add({info.id > 0 ? fmt::format("#{}", info.id) : "", info.name, imported.format,
                   std::to_string(info.ranks), std::to_string(info.steps), std::to_string(imported.ops),
                   std::to_string(imported.kernels), std::to_string(imported.messages),
                   std::to_string(imported.collectives + imported.collectivesAlone), scheduleText(imported),
                   imported.clocks});
    }
    session.out(table.text(session.colourOut()));
    std::map<std::string, std::vector<const ImportedRun*>> byNote; // a note on many runs is printed once
    for (const ImportedRun& imported : result.runs)
        for (const std::string& note : imported.notes) byNote[note].push_back(&imported);
    std::set<std::string> said;
    for (const ImportedRun& imported : result.runs) {
        if (imported.kernels > 0)
            session.out(fmt::format("{}: {} of {} kernels and copies are under an op, {} under a named range\n",
                                    imported.run.info.name, imported.kernelsUnderOps, imported.kernels,
                                    imported.kernelsUnderRanges));
        for (const std::string& note : imported.notes) {
            const std::size_t times = byNote[note].size();
            if (times <= 3)
                session.out(fmt::format("{}: {}\n", imported.run.info.name, note));
            else if (said.insert(note).second)
                session.out(fmt::format("{} runs: {}\n", times, note));
        }
        if (imported.ops == 0 && imported.run.timeline) {
            const std::string names = imported.rangeNames ? namesText(imported.rangeNames->patterns) : std::string();
            if (names.empty())
                session.out(fmt::format("{}: no range is named but the steps: record with record_function or NVTX "
                                        "ranges around the passes\n",
                                        imported.run.info.name));
            else
                session.out(fmt::format("{}: no range is named like an op; the ranges are {}. --suggest-rules drafts a "
                                        "file that maps names to ops (docs/formats.md)\n",
                                        imported.run.info.name, names));
        }
    }
}

const RuleDraft* draftOf(const ImportedRun& imported)
{
    return imported.rangeNames && imported.rangeNames->draft ? &*imported.rangeNames->draft : nullptr;
}

Json jsonOf(const RuleDraft& draft)
{
    Json rules = Json::array();
    for (const RuleMatches& rule : draft.preview.rules)
        rules.push_back({{"kind", rule.kind},
                         {"pattern", rule.pattern},
                         {"ranges", rule.ranges},
                         {"ranks", rule.ranks},
                         {"example", rule.example}});
    return {{"rules", std::move(rules)},
            {"orphans", draft.preview.orphans},
            {"schedule", toText(draft.preview)},
            {"recognised", textOrNull(draft.preview.rebuilt.recognised)},
            {"remarks", draft.preview.remarks}};
}

void print(const RuleDraft& draft, Session& session)
{
    Table table(
        {{"kind"}, {"pattern"}, {"ranges", Table::Align::Right}, {"ranks", Table::Align::Right}, {"for example"}});
    for (const RuleMatches& rule : draft.preview.rules)
        table.add({rule.kind, rule.pattern, std::to_string(rule.ranges), std::to_string(rule.ranks), rule.example});
    session.out(table.text(session.colourOut()));
    session.out(fmt::format("It gives {}{}\n", toText(draft.preview),
                            draft.preview.orphans > 0
                                ? "; " + counted(draft.preview.orphans, "range") + " without a counterpart"
                            : draft.preview.whole() ? "; every range has its counterpart"
                                                    : ""));
    for (const std::string& remark : draft.preview.remarks) session.out(remark + '\n');
}

// The draft of the first job that has one, as a file.
Result<int> suggest(const ImportChoice& options, const ImportResult& result, Session& session)
{
    for (const ImportedRun& imported : result.runs) {
        const RuleDraft* draft = draftOf(imported);
        if (draft == nullptr) continue;
        STAGEWRIGHT_CHECK(writeFileAtomically(options.suggested, draft->text));
        if (session.json)
            session.answer({{"file", options.suggested}, {"name", imported.run.info.name}, {"draft", jsonOf(*draft)}});
        print(*draft, session);
        session.note(
            fmt::format("wrote {}; check it, then import with --rules {}", options.suggested, options.suggested));
        return ExitDone;
    }
    for (const ImportedRun& imported : result.runs)
        if (imported.ops > 0)
            return fail(ErrorCode::Usage,
                        fmt::format("{}: its ops are named by {} already", imported.run.info.name,
                                    imported.dialect.empty() ? "its format" : imported.dialect),
                        "import it without --suggest-rules");
    std::string names;
    for (const ImportedRun& imported : result.runs)
        if (names.empty() && imported.rangeNames) names = namesText(imported.rangeNames->patterns);
    return fail(ErrorCode::Unreadable,
                names.empty() ? "no range is named"
                              : fmt::format("no range looks like a forward pass; the ranges are {}", names),
                names.empty() ? "record with record_function or NVTX ranges around the passes"
                              : "write the rules yourself: docs/formats.md, Rules");
}

Result<int> runImport(const ImportChoice& options, Session& session)
{
    ImportOptions import;
    if (options.oldHostOps) session.warn("--host is now --host-ops, for --host names a computer");
    import.hostOps = options.hostOps || options.oldHostOps;
    import.oneJob = options.oneJob;
    import.threads = options.threads;
    import.suggestRules = !options.suggested.empty();
    if (!options.rules.empty()) {
        STAGEWRIGHT_TRY(auto text, readFile(options.rules));
        auto rules = LabelRules::parse(text);
        if (!rules) return tl::unexpected(std::move(rules.error()).with("file " + options.rules));
        import.rules = std::move(*rules);
    }
    if (!options.output.empty()) STAGEWRIGHT_CHECK(mayAddRuns(options.output));
    STAGEWRIGHT_TRY(auto result, importTraces(options.files, import, session.reporter("bytes")));
    warnOfRefused(result.refused, session);
    if (!options.suggested.empty()) return suggest(options, result, session);
    if (!options.name.empty()) {
        for (ImportedRun& imported : result.runs) imported.run.info.name = options.name;
        tellApart(result.runs);
    }
    if (!options.output.empty()) {
        std::vector<const Run*> runs;
        for (ImportedRun& imported : result.runs) {
            Run& one = imported.run;
            if (one.info.createdUnixMs == 0) one.info.createdUnixMs = unixMilliseconds();
            runs.push_back(&one);
        }
        STAGEWRIGHT_TRY(const auto ids, addRuns(options.output, runs, session.reporter("spans")));
        for (std::size_t i = 0; i < ids.size(); ++i) result.runs[i].run.info.id = ids[i];
    }
    if (session.json) {
        Json runs = Json::array();
        for (const ImportedRun& imported : result.runs) runs.push_back(jsonOf(imported, !options.output.empty()));
        Json refused = Json::array();
        for (const RefusedFile& file : result.refused)
            refused.push_back({{"file", file.path}, {"error", file.error.message}});
        session.answer(
            {{"file", textOrNull(options.output)}, {"runs", std::move(runs)}, {"refused", std::move(refused)}});
    }
    print(result, session);
    if (!options.output.empty())
        session.note(fmt::format("stored {} run{} in {}", result.runs.size(), result.runs.size() == 1 ? "" : "s",
                                 options.output));
    return ExitDone;
}

} // namespace

Command command_import()
{
    return {
        "import", "Import traces of other tools as runs",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<ImportChoice>();
            verb.value("FILES", &options->files,
                       "Traces: files, folders or globs in quotes; the ranks of a job become one run")
                .required();
            verb.value("-o,--output,--into", &options->output, "Run file to add them to [none: only describe them]")
                .form("FILE");
            verb.value("--rules", &options->rules,
                       "File that maps names of ranges to ops, ahead of the known names (docs/formats.md)")
                .form("FILE");
            verb.value("--suggest-rules", &options->suggested,
                       "Write a draft of such a file, with what its rules match and the schedule it would be; stores "
                       "no run")
                .form("FILE")
                .replaces();
            verb.value("--name", &options->name, "Name of the runs [the files' name without the rank]").form("NAME");
            verb.flag("--host-ops", options->hostOps,
                      "Keep the framework's operators on the host as lanes; otherwise they are only counted");
            verb.flag("--host", options->oldHostOps, "The former name of --host-ops");
            verb.flag("--one-job", options->oneJob, "Treat all files as ranks of one job, whatever their names");
            verb.value("--threads", &options->threads, "Files to read at once [one per core]")
                .form("N")
                .check(wholeNumber(1, 1024));
            verb.notes("Reads " + readableFormats() +
                       ".\n"
                       "Unreadable files are reported and skipped.\n"
                       "Examples: stagewright import traces/ -o job.stagewright\n"
                       "          stagewright import 'rank*.json.gz' --rules names.txt --json\n"
                       "          stagewright import traces/ --suggest-rules names.txt");
            return [options](Session& session) { return runImport(*options, session); };
        },
        true, true};
}

} // namespace stagewright
