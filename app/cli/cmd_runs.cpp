#include <CLI/CLI.hpp>
#include <ctime>
#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/figures.h"
#include "app/cli/run_access.h"
#include "app/cli/run_json.h"
#include "app/cli/session.h"
#include "app/cli/table.h"

namespace stagewright {

namespace {

struct Options {
    std::string file;
    std::vector<std::string> rename;
    std::vector<std::string> note;
    std::vector<std::string> remove;
    std::vector<std::string> merge;
    bool compact = false;

    bool changes() const { return !rename.empty() || !note.empty() || !remove.empty() || !merge.empty() || compact; }
};

std::string localTime(std::int64_t unixMs)
{
    const std::time_t seconds = static_cast<std::time_t>(unixMs / 1000);
    std::tm parts{};
    localtime_r(&seconds, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
    return text;
}

Result<void> change(const Options& options, RunFile& file, Session& session)
{
    if (!options.rename.empty()) {
        auto id = file.find(options.rename[0]);
        if (!id) return tl::unexpected(std::move(id.error()));
        if (auto done = file.rename(*id, options.rename[1]); !done) return done;
        session.note(fmt::format("run {} is now '{}'", *id, options.rename[1]));
    }
    if (!options.note.empty()) {
        auto id = file.find(options.note[0]);
        if (!id) return tl::unexpected(std::move(id.error()));
        if (auto done = file.annotate(*id, options.note[1]); !done) return done;
        session.note(fmt::format("run {} is noted", *id));
    }
    for (const std::string& which : options.remove) {
        auto id = file.find(which);
        if (!id) return tl::unexpected(std::move(id.error()));
        if (auto done = file.remove(*id); !done) return done;
        session.note(fmt::format("run {} is deleted", *id));
    }
    for (const std::string& other : options.merge) {
        if (auto done = file.merge(other); !done) return done;
        session.note(fmt::format("the runs of {} are added", other));
    }
    if (options.compact)
        if (auto done = file.compact(); !done) return done;
    return {};
}

Result<int> run(const Options& options, Session& session)
{
    auto file = openRunFile(options.file, options.changes() ? OpenMode::Write : OpenMode::Read);
    if (!file) return tl::unexpected(std::move(file.error()));
    if (auto done = change(options, **file, session); !done) return tl::unexpected(std::move(done.error()));
    auto runs = (*file)->runs();
    if (!runs) return tl::unexpected(std::move(runs.error()));
    using Align = Table::Align;
    Table table({{"run", Align::Right}, {"name"}, {"schedule"}, {"shape", Align::Right}, {"steps", Align::Right}, {"kind"},
                 {"clock"}, {"state"}, {"recorded"}, {"spans", Align::Right}, {"note"}});
    Json array = Json::array();
    for (const RunInfo& info : *runs) {
        array.push_back(runInfoJson(info));
        table.add({std::to_string(info.id), info.name, info.scheduleName, fmt::format("{} × {}", info.ranks, info.microbatches),
                   info.warmupSteps > 0 ? fmt::format("{} + {}", info.warmupSteps, info.steps - info.warmupSteps)
                                        : std::to_string(info.steps),
                   std::string(toText(info.provenance)), info.clock, std::string(toText(info.state)), localTime(info.createdUnixMs),
                   std::to_string(info.spanCount), info.note},
                  info.state == RunState::Complete ? Tint::None : Tint::Warn);
    }
    if (session.json) session.answer({{"file", options.file}, {"runs", std::move(array)}});
    session.out(runs->empty() ? fmt::format("{} holds no run\n", options.file) : table.text(session.colourOut()));
    return ExitDone;
}

} // namespace

Command command_runs()
{
    return {"runs", "List the runs of a file; rename, note, delete, merge, compact", [](CLI::App& app) -> Runner {
        auto options = std::make_shared<Options>();
        app.add_option("FILE", options->file, "A run file")->required();
        app.add_option("--rename", options->rename, "Give a run another name")->type_name("RUN NAME")->expected(2);
        app.add_option("--note", options->note, "Write a note to a run; an empty one removes it")->type_name("RUN TEXT")->expected(2);
        app.add_option("--delete", options->remove, "Delete a run")->type_name("RUN")->allow_extra_args(false);
        app.add_option("--merge", options->merge, "Append the runs of another file")->type_name("OTHER")->allow_extra_args(false);
        app.add_flag("--compact", options->compact, "Give freed space back to the disk");
        app.footer("RUN is a number as listed, or a name (the newest of that name). What was changed is listed afterwards.");
        return [options](Session& session) { return run(*options, session); };
    }};
}

} // namespace stagewright
