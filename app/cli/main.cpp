// stagewright: the command line. One verb per call; see command.h.
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/help.h"
#include "app/cli/session.h"
#include "app/cli/usage.h"
#include "app/cli/version.h"

namespace stagewright {
namespace {

int finish(Session& session, int code)
{
    if (auto written = session.finish(); !written) {
        session.complain(written.error());
        return exitCodeOf(written.error().code);
    }
    return code;
}

// Whether the arguments contain --json, for errors before they are parsed.
bool asksFor(int count, char** words, std::string_view option)
{
    for (int i = 1; i < count; ++i)
        if (words[i] == option) return true;
    return false;
}

int runProgram(int count, char** words)
{
    Session session;
    CLI::App app("A workbench for pipeline-parallel training: make a schedule, train for real with it, see where time and\n"
                 "memory went, change it, compare.");
    app.name("stagewright");
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_version_flag("--version", fmt::format("stagewright {}", programVersion), "Print the version and exit");
    app.get_help_ptr()->description("Print this help and exit");
    app.require_subcommand(1);
    app.footer("'stagewright VERB --help' explains a verb. Exit codes: 0 done, 1 a check or requirement failed,\n"
               "2 wrong usage, 3 input unreadable, 4 device or program not available, 5 the run failed, 130 interrupted.");

    std::string level = "info";
    std::map<const CLI::App*, Runner> runners;
    for (const Command& command : allCommands()) {
        CLI::App* verb = app.add_subcommand(std::string(command.name), std::string(command.summary));
        verb->group("Verbs");
        runners[verb] = command.setUp(*verb);
        verb->get_help_ptr()->description("Print this help and exit");
        if (command.json) verb->add_flag("--json", session.json, "Print one JSON object instead of text");
        verb->add_option("--log-level", level, "error, warning, info or debug [info]")
            ->type_name("LEVEL")
            ->check(oneOf({"error", "warning", "info", "debug"}));
        if (command.longWork) {
            verb->add_option("--progress", session.progressMode, "auto (a bar on a terminal), jsonl or none [auto]")
                ->type_name("MODE")
                ->check(oneOf({"auto", "jsonl", "none"}));
            verb->add_flag("--stdin-control", session.stdinControl, "Cancel when standard input ends");
        }
    }
    try {
        app.parse(count, words);
    } catch (const CLI::Success& success) { // help or version
        app.exit(success);
        return finish(session, ExitDone);
    } catch (const CLI::ParseError& error) {
        session.json = asksFor(count, words, "--json");
        session.complain(usageError(app, error));
        return finish(session, ExitUsage);
    }
    const CLI::App* verb = app.get_subcommands().front();
    session.verb = verb->get_name();
    session.logLevel = level == "error"     ? LogLevel::Error
                       : level == "warning" ? LogLevel::Warning
                       : level == "debug"   ? LogLevel::Debug
                                            : LogLevel::Info;
    Result<int> result = runners.at(verb)(session);
    if (!result) {
        session.complain(result.error());
        return finish(session, exitCodeOf(result.error().code));
    }
    return finish(session, *result);
}

} // namespace
} // namespace stagewright

int main(int count, char** words)
{
    std::signal(SIGPIPE, SIG_IGN); // a reader that leaves must not end a recording
    std::signal(SIGXFSZ, SIG_IGN); // a file at its size limit is like a full disk: an error that can be reported
    try {
        return stagewright::runProgram(count, words);
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "stagewright: out of memory\n  take fewer ranks, microbatches or steps, or a smaller model\n");
    } catch (const std::exception& error) {
        fmt::print(stderr, "stagewright: {}\n", error.what());
    }
    return stagewright::ExitFailed;
}
