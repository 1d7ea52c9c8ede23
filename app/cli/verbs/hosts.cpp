#include <algorithm>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/session.h"
#include "app/cli/verbs/host_actions.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

Result<int> runHosts(const HostOptions& options, Session& session)
{
    const auto actions = hostActions();
    const auto action =
        std::find_if(actions.begin(), actions.end(), [&](const HostAction& one) { return one.name == options.action; });
    if (action == actions.end()) {
        std::vector<std::string> names;
        for (const HostAction& one : actions)
            if (!one.hidden) names.emplace_back(one.name);
        const std::string near = nearestName(options.action, names);
        return fail(ErrorCode::Usage, fmt::format("'hosts' has no action '{}'", options.action),
                    near.empty() ? fmt::format("actions are {}", listed(names))
                                 : fmt::format("did you mean '{}'?", near));
    }
    const int count = static_cast<int>(options.words.size());
    if (count < action->least || count > action->most)
        return fail(
            ErrorCode::Usage,
            fmt::format("'hosts {}' takes {}", action->name, action->form.empty() ? "nothing more" : action->form),
            "see 'stagewright hosts --help'");
    const bool adds = action->name == "add";
    if (!adds && (!options.folder.empty() || !options.setup.empty()))
        return fail(ErrorCode::Usage, "--folder and --setup belong to 'hosts add'",
                    "add the host again with them: it is replaced");
    const bool prunes = !options.olderThan.empty() || !options.keepSize.empty();
    if (prunes && action->name != "forget")
        return fail(ErrorCode::Usage, "--older-than and --keep-size belong to 'hosts forget'", "leave them out");
    if (action->name == "forget" && prunes == (count > 0))
        return fail(ErrorCode::Usage,
                    prunes ? "'hosts forget' takes jobs or --older-than and --keep-size, not both"
                           : "'hosts forget' takes JOB…, --older-than AGE or --keep-size SIZE",
                    "'stagewright hosts jobs' lists the jobs with their sizes");
    return action->run(options, session);
}

std::string help()
{
    std::string text = "Actions:\n";
    for (const HostAction& action : hostActions())
        if (!action.hidden)
            text += fmt::format("  {:<24} {}\n", fmt::format("{} {}", action.name, action.form), action.about);
    return text + "Hosts are reached by OpenSSH with your own configuration, agent and known hosts. A job keeps "
                  "running when the connection\n"
                  "drops or this computer is off.\n"
                  "Examples: stagewright hosts add node1 user@node1.example --setup 'module load cuda'\n"
                  "          stagewright hosts install node1\n"
                  "          stagewright record -s 1f1b -p 4 --host node1\n"
                  "          stagewright hosts attach    (Ctrl+C ends following, not the job: that is 'hosts stop')";
}

} // namespace

Command command_hosts()
{
    return {"hosts", "Computers to run on over SSH, and the jobs that run there",
            [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<HostOptions>();
                verb.value("ACTION", &options->action, "What to do; below").required();
                verb.value("WORDS", &options->words, "The arguments of the action");
                verb.value("--folder", &options->folder,
                           "add: where 'install' puts the program there [~/.local/lib/stagewright]")
                    .form("FOLDER");
                verb.value("--scratch", &options->scratch,
                           "add: where jobs keep their files there, on a cluster a folder that its nodes share "
                           "[~/.local/state/stagewright/hosted]")
                    .form("FOLDER");
                verb.value("--setup", &options->setup,
                           "add: a line for its shell before anything else, such as 'module load cuda'; repeat it")
                    .form("LINE")
                    .each();
                verb.flag("--ask", options->ask, "jobs: connect to the hosts and fetch what is there");
                verb.flag("--here", options->here, "forget: only what is kept on this computer");
                verb.value("-o,--output", &options->file,
                           "attach, fetch: the run file of a job that is named by its folder [NAME.stagewright]")
                    .form("FILE");
                verb.value("--older-than", &options->olderThan,
                           "forget: jobs that are over and were begun before so long: 12h, 7d, 4w")
                    .form("AGE");
                verb.value("--keep-size", &options->keepSize,
                           "forget: the oldest jobs that are over, until all take no more than this: 2GB")
                    .form("SIZE");
                verb.notes(help());
                return [options](Session& session) { return runHosts(*options, session); };
            },
            true, true};
}

} // namespace stagewright
