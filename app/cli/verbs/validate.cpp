#include <algorithm>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/options/setup_sources.h"
#include "app/cli/session.h"
#include "app/cli/text/channel_json.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/run_json.h"
#include "schedules/check/validate.h"
#include "schedules/library/registry.h"
#include "schedules/text/csv.h"
#include "schedules/text/diff.h"

namespace stagewright {

namespace {

struct ValidateChoice {
    std::string file;
    std::string dialect = "auto";
    bool all = false;
    bool pytorch = false;
    Setup setup;
};

// "-" is stdin; a name without dot or slash, and no such file, is the library's.
Result<Schedule> given(const ValidateChoice& options, const SetupSources& sources)
{
    CsvOptions csv;
    csv.dialect = options.dialect == "new"   ? CsvDialect::New
                  : options.dialect == "old" ? CsvDialect::Old
                                             : CsvDialect::Auto;
    csv.pytorch = options.pytorch;
    if (options.file != "-" && !namesFile(options.file) && !fileExists(options.file)) {
        if (options.dialect != "auto")
            sources.tell(
                fmt::format("--dialect is not used: {} is a schedule of the library, not a file", options.file));
        auto made = readSchedule(options.file, options.setup, sources);
        if (!made || !options.pytorch) return made;
        auto text = writeScheduleCsv(*made, csv);
        if (!text) return tl::unexpected(std::move(text.error()).with(options.file));
        return readScheduleCsv(*text, csv, made->name);
    }
    noteOwnShape(options.file, options.setup, false, sources);
    auto read = readCsvFile(options.file, csv);
    return read ? overlapping(std::move(*read), options.setup, sources) : std::move(read);
}

// "the nearest library schedule is 1f1b, 2 of 16 ops differ; first difference: rank 1, op 3: 1F1 here, 1B0 there"
std::string nearestText(const NearestSchedule& nearest, const Schedule& schedule)
{
    std::string text =
        fmt::format("the nearest library schedule is {}, {} of {} ops differ", nearest.name, nearest.diff.distance(),
                    std::max(computeOrder(schedule).opCount(), nearest.diff.distance()));
    if (!nearest.diff.first.empty()) text += "; first difference: " + describeFirst(nearest.diff.first.front());
    return text;
}

Result<int> runValidate(const ValidateChoice& options, Session& session)
{
    const SetupSources sources = sourcesOf(session);
    STAGEWRIGHT_TRY(auto schedule, given(options, sources));

    STAGEWRIGHT_TRY(auto chosen, chooseLowering(schedule, options.setup, sources));
    const Validation validation = validate(chosen.schedule, chosen.channels);
    Deadlock deadlock;
    if (!validation.cycle.empty()) {
        STAGEWRIGHT_TRY(deadlock, explainDeadlock(chosen.schedule, chosen.channels));
    }
    constexpr std::size_t mostCompared = 4'000'000; // ops: comparing takes three times the memory
    const bool compared = schedule.opCount() <= mostCompared;
    const std::string known = compared ? recognise(schedule) : std::string();
    const auto nearest = compared && known.empty() ? nearestSchedule(schedule) : std::nullopt;
    if (!compared) session.note(fmt::format("not compared with the library: more than {} ops", mostCompared));
    if (session.json) {
        Json object = scheduleFaultsJson(schedule, validation);
        addDeadlockJson(object, deadlock);
        addChannelsJson(object, chosen);
        object["recognised_as"] = textOrNull(known);
        object["nearest"] =
            nearest
                ? Json{{"name", nearest->name},
                       {"distance", nearest->diff.distance()},
                       {"first_difference",
                        nearest->diff.first.empty() ? Json(nullptr) : Json(describeFirst(nearest->diff.first.front()))}}
                : Json(nullptr);
        session.answer(object);
    }
    const std::string shape =
        fmt::format("{}, {}, {}, {}", plural(schedule.ranks, "rank"), plural(schedule.stages, "stage"),
                    schedule.microbatches == 1 ? "1 microbatch" : fmt::format("{} microbatches", schedule.microbatches),
                    plural(static_cast<long long>(schedule.opCount()), "op"));
    if (validation.valid()) {
        session.out(fmt::format("{}: valid; {}{}\n", options.file, shape, known.empty() ? "" : "; this is " + known));
        if (nearest) session.out("  " + nearestText(*nearest, schedule) + "\n");
        return ExitDone;
    }
    session.out(fmt::format("{}: not valid; {}\n", options.file, shape));
    const std::size_t shown =
        options.all ? validation.faults.size() : std::min<std::size_t>(1, validation.faults.size());
    for (std::size_t i = 0; i < shown; ++i) {
        const Fault& fault = validation.faults[i];
        session.out(fmt::format("  {}\n", fault.message));
        // else it follows
        if (fault.kind != FaultKind::Deadlock || !deadlock.hung()) session.out(fmt::format("    {}\n", fault.remedy));
    }
    const std::size_t others = validation.faults.size() + validation.more - shown;
    if (shown < validation.faults.size())
        session.out(
            fmt::format("  {} more: --all shows {}\n", others,
                        validation.more > 0 ? fmt::format("{} of them", validation.faults.size() - shown) : "them"));
    else if (others > 0)
        session.out(fmt::format("  {} more\n", others));
    if (nearest) session.out("  " + nearestText(*nearest, schedule) + "\n");
    if (deadlock.hung())
        session.out("ranks that wait for each other:\n" + deadlockText(chosen.schedule, deadlock, session.columns()));
    return ExitDoesNotHold;
}

} // namespace

Command command_validate()
{
    return {"validate", "Check a schedule; explain the first fault, and how to resolve a deadlock",
            [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<ValidateChoice>();
                verb.value("FILE", &options->file, "A schedule CSV, - for stdin, or a library schedule").required();
                verb.flag("--all", options->all, "Show every fault, not only the first");
                verb.value("--dialect", &options->dialect, "new (F, I, W, B), old (F, B, W, BW) or auto [auto]")
                    .form("D")
                    .check(oneOf({"auto", "new", "old"}));
                verb.flag("--pytorch", options->pytorch, "Refuse what PyTorch's pipelining can't express");
                addSetupOptions(verb, options->setup, SetupUse(SetupShape | SetupChannels));
                verb.notes("With --sends rendezvous or --channels, a compute-only file is checked with the messages "
                           "that --lower inserts.\n"
                           "Exit code 0: valid; 1: not valid; 3: the file can't be read as a schedule.");
                return [options](Session& session) { return runValidate(*options, session); };
            }};
}

} // namespace stagewright
