#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "app/cli/text/table.h"
#include "schedules/planner/problem.h"
#include "traces/format/atomic_file.h"

namespace stagewright {

namespace {

struct SolveChoice {
    std::string file, output;
};

Result<int> runSolve(const SolveChoice& options, Session& session)
{
    if (options.file.empty()) {
        Json planners = Json::array();
        Table table({{"program"}, {"what it plans"}});
        for (const PlannerInfo& one : allPlanners()) {
            planners.push_back({{"program", std::string(one.program)}, {"title", std::string(one.title)}});
            table.add({std::string(one.program), std::string(one.title)});
        }
        if (session.json) session.answer({{"planners", std::move(planners)}});
        session.out(table.text(session.colourOut()));
        return ExitDone;
    }
    STAGEWRIGHT_TRY(const auto text, readFile(options.file));
    auto answer = solveProblem(text, session.reporter("plans"));
    session.progress().clear();
    if (!answer) return tl::unexpected(std::move(answer.error()).with(options.file));
    if (!options.output.empty()) STAGEWRIGHT_CHECK(writeFileAtomically(options.output, answer->json + "\n"));
    if (session.json)
        session.answer({{"program", answer->program}, {"fits", answer->fits}, {"answer", ownJson(answer->json)}});
    session.out(answer->json + "\n");
    if (answer->fits) return ExitDone;
    session.unmet(fmt::format("{}: no plan fits", options.file));
    return ExitDoesNotHold;
}

} // namespace

Command command_solve()
{
    return {
        "solve", "Solve a problem of another system's planner: Alpa, Merak, Cephalo, COMET, Jigsaw, resharding",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<SolveChoice>();
            verb.value("FILE", &options->file, "The problem, as JSON; without it the planners are listed")
                .form("FILE.json");
            verb.value("-o,--output", &options->output, "Write the answer to this file").form("FILE.json").replaces();
            verb.notes("docs/planners.md has the form of every problem and answer. Each answer is the optimum.\n"
                       "Example: stagewright solve alpa.json");
            return [options](Session& session) { return runSolve(*options, session); };
        },
        true, true};
}

} // namespace stagewright
