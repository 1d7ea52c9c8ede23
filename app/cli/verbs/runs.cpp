#include <algorithm>
#include <ctime>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/run_access.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/document_json.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/table.h"
#include "traces/report/run_document.h"
#include "traces/run/note_text.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

struct RunsChoice {
    std::string file;
    std::vector<std::string> rename;
    std::vector<std::string> note;
    std::vector<std::string> remove;
    std::vector<std::string> merge;
    bool compact = false;
    bool verify = false;

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

Result<void> change(const RunsChoice& options, RunFile& file, Session& session)
{
    if (!options.rename.empty()) {
        STAGEWRIGHT_TRY(auto id, file.find(options.rename[0]));
        if (auto done = file.rename(id, options.rename[1]); !done) return done;
        session.note(fmt::format("run {} is now '{}'", id, options.rename[1]));
    }
    if (!options.note.empty()) {
        STAGEWRIGHT_TRY(auto id, file.find(options.note[0]));
        if (auto done = file.annotate(id, options.note[1]); !done) return done;
        session.note(fmt::format("the note of run {} is saved", id));
    }
    for (const std::string& which : options.remove) {
        STAGEWRIGHT_TRY(auto id, file.find(which));
        if (auto done = file.remove(id, session.stop()); !done) return done;
        session.note(fmt::format("run {} is deleted", id));
    }
    for (const std::string& other : options.merge) {
        if (auto done = file.merge(other, session.reporter("runs")); !done) return done;
        session.note(fmt::format("the runs of {} are added", other));
    }
    if (options.compact)
        if (auto done = file.compact(session.stop()); !done) return done;
    return {};
}

// Reads every run completely and counts its damage.
struct Verified {
    std::vector<bool> read; // by place in the list; false: unreadable
    std::size_t damaged = 0;
    std::vector<std::optional<bool>> intact; // by place in the list; see RunFile::intact
    std::optional<Error> problem;            // the last one met
};

Run runOf(const RunInfo& info)
{
    Run run;
    run.info = info;
    return run;
}

// Everything of it is read, but never kept.
Result<RunDamage> checkedRun(const RunFile& file, const RunInfo& info, Session& session)
{
    STAGEWRIGHT_CHECK(file.readHeader(info.id));
    auto found = file.damage(info.id, session.reporter("verify"));
    if (found && found->blocks > 0 && found->spans == 0)
        return fail(ErrorCode::Unreadable,
                    fmt::format("{}#{} {}: damaged: none of its spans can be read", file.path(), info.id, info.name),
                    "restore the file from a copy, or record the run again");
    return found;
}

Verified verify(const RunFile& file, std::vector<RunInfo>& runs, Session& session)
{
    Verified result;
    for (RunInfo& info : runs) {
        const auto found = checkedRun(file, info, session);
        result.read.push_back(found.has_value());
        result.intact.emplace_back();
        if (!found) {
            session.warn(fmt::format("run {} {} can't be read: {}", info.id, info.name, found.error().message));
            result.problem = found.error();
            ++result.damaged;
            continue;
        }
        info.damagedBlocks = found->blocks;
        warnOfDamage(StoredRun{file.path(), runOf(info), {}}, session);
        const auto intact = file.intact(info.id);
        result.intact.back() = intact ? *intact : false;
        const bool altered = result.intact.back() == false;
        if (!result.intact.back())
            session.note(fmt::format("run {} {}: written by an earlier version, so its pyramids and the headers of its "
                                     "blocks could not be checked",
                                     info.id, info.name));
        if (altered)
            session.warn(fmt::format("run {} {}: the run's metadata or data (configuration, schedule, tracks, metrics, "
                                     "spans, memory, edges, pyramids) changed since it was "
                                     "written\n  restore the file from a copy",
                                     info.id, info.name));
        if (info.damagedBlocks > 0 || altered) ++result.damaged;
    }
    return result;
}

struct Made {
    std::string model;
    std::string microbatchSize;
    std::string linkLatency;
    std::string under; // where and by what it was trained, disturbance, emulated links, memory cap, contention
    Json json;         // the same
};

Made madeWith(const RunFile::ListedRun& listed)
{
    const Run& run = listed.run;
    Made out{configured(run, "model"), configured(run, "microbatch_size"), linkLatencyText(run), {}, Json::object()};
    const auto add = [&out](const std::string& words) { out.under += (out.under.empty() ? "" : "; ") + words; };
    if (const std::string place = trainedBy(run); !place.empty()) add(place);
    if (const std::string perturb = configured(run, "perturb"); !perturb.empty()) add(perturb);
    if (const std::string links = emulatedLinksText(run); !links.empty()) add("links " + links);
    const Units units{listed.timeUnit, listed.memoryUnit};
    document::Section conditions;
    addConditions(conditions, run);
    addJson(out.json, conditions, units);
    const auto cap = memoryCapOf(run);
    if (cap) add("at most " + units.memoryText(*cap));
    out.json["memory_cap"] = cap ? memoryJson(*cap, units) : Json(nullptr);
    if (const auto contention = contentionOf(run)) add("contention " + formatPercent(*contention));
    return out;
}

std::string stateText(const RunInfo& info, bool unreadable, bool altered)
{
    if (unreadable) return "unreadable";
    return fmt::format("{}{}", toText(info.state), info.damagedBlocks > 0 || altered ? ", damaged" : "");
}

// Lists what was verified and what was not. Read twice, so that a file may have more runs than memory could hold: for
// the widths of the columns, and to be written.
Result<void> list(const RunsChoice& options, const RunFile& file, const std::vector<RunInfo>& runs,
                  const Verified& verified, Session& session)
{
    using Align = Table::Align;
    Table table({{"run", Align::Right},
                 {"name"},
                 {"schedule"},
                 {"shape", Align::Right},
                 {"steps", Align::Right},
                 {"kind"},
                 {"clock"},
                 {"state"},
                 {"recorded"},
                 {"spans", Align::Right},
                 {"model"},
                 {"batch", Align::Right},
                 {"link latency"},
                 {"conditions"},
                 {"note"}});
    struct Listed {
        RunInfo info;
        bool read = false, intact = false, altered = false;
        std::string state;
        Made made;
    };
    const auto look = [&](const RunFile::ListedRun& listed, std::size_t place) {
        Listed one;
        one.info = listed.run.info;
        const bool checked = place < runs.size() && runs[place].id == one.info.id;
        if (checked) one.info.damagedBlocks = runs[place].damagedBlocks;
        one.read = checked && verified.read[place];
        one.intact = one.read && verified.intact[place] == true;
        one.altered = one.read && verified.intact[place] == false;
        one.state = stateText(one.info, checked && !one.read, one.altered);
        one.made = madeWith(listed);
        return one;
    };
    const auto cells = [](const Listed& one) -> std::vector<std::string> {
        const RunInfo& info = one.info;
        const std::string steps = info.warmupSteps > 0 ? fmt::format("{} + {}", std::min(info.warmupSteps, info.steps),
                                                                     std::max(info.steps - info.warmupSteps, 0))
                                                       : std::to_string(info.steps);
        return {std::to_string(info.id),
                info.name,
                info.scheduleName,
                fmt::format("{} × {}", info.ranks, info.microbatches > 0 ? std::to_string(info.microbatches) : "–"),
                steps,
                std::string(toText(info.provenance)),
                info.clock,
                one.state,
                localTime(info.createdUnixMs),
                std::to_string(info.spanCount),
                one.made.model,
                one.made.microbatchSize,
                one.made.linkLatency,
                one.made.under,
                info.note};
    };
    Progress progress = session.reporter("runs");
    const auto each = [&](const std::function<void(const RunFile::ListedRun&, std::size_t)>& act) {
        std::size_t place = 0;
        return file.list([&](const RunFile::ListedRun& listed) { act(listed, place++); }, progress);
    };
    bool noted = false, none = true;
    auto measured = each([&](const RunFile::ListedRun& listed, std::size_t place) {
        none = false;
        noted = noted || !listed.notes.empty();
        if (!session.json) table.measure(cells(look(listed, place)));
    });
    if (!measured) return measured;
    session.progress().clear();
    progress.report = nullptr; // its line would be among those of the list
    if (session.json)
        return session.answer({{"file", options.file}}, "runs", [&](const Session::ItemSink& item) {
            return each([&](const RunFile::ListedRun& listed, std::size_t place) {
                const Listed one = look(listed, place);
                Json object = Json::object();
                document::Section info;
                addInfo(info, one.info, one.read);
                addJson(object, info, {});
                object["intact"] = one.intact || one.altered ? Json(one.intact) : Json(nullptr);
                object["model"] = textOrNull(one.made.model);
                object["microbatch_size"] = textOrNull(one.made.microbatchSize);
                object["link_latency"] = textOrNull(one.made.linkLatency);
                object.update(one.made.json);
                addJson(object, notesSection(listed.notes, listed.timeUnit), {});
                item(object);
            });
        });
    if (none) {
        session.out(fmt::format("{} has no runs\n", options.file));
        return {};
    }
    session.out(table.titles(session.colourOut()));
    auto written = each([&](const RunFile::ListedRun& listed, std::size_t place) {
        const Listed one = look(listed, place);
        session.out(table.line(cells(one), one.state == toText(RunState::Complete) ? Tint::None : Tint::Warn,
                               session.colourOut()));
    });
    if (!written || !noted) return written;
    session.out("\nnotes\n");
    return each([&](const RunFile::ListedRun& listed, std::size_t) {
        for (const Note& note : listed.notes)
            session.out(
                fmt::format("run {}: {}: {}\n", listed.run.info.id, placeText(note, listed.timeUnit), note.text));
    });
}

Result<int> runRuns(const RunsChoice& options, Session& session)
{
    STAGEWRIGHT_TRY(auto file,
                    openRunFile(options.file, options.changes() ? OpenMode::Write : OpenMode::Read, session.stop()));
    if (options.verify) STAGEWRIGHT_CHECK(file->checkPages());
    STAGEWRIGHT_CHECK(change(options, *file, session));
    Verified verified;
    std::vector<RunInfo> runs; // that were verified
    if (options.verify) {
        STAGEWRIGHT_TRY(runs, file->runs());
        verified = verify(*file, runs, session);
        if (verified.problem && std::find(verified.read.begin(), verified.read.end(), true) == verified.read.end())
            return tl::unexpected(std::move(*verified.problem));
    }
    STAGEWRIGHT_CHECK(list(options, *file, runs, verified, session));
    if (options.verify && verified.damaged == 0) session.note("every run was read completely, nothing is damaged");
    return verified.damaged == 0 ? ExitDone : ExitDoesNotHold;
}

} // namespace

Command command_runs()
{
    return {
        "runs", "List the runs of a file; rename, note, delete, merge, compact", [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<RunsChoice>();
            verb.value("FILE", &options->file, "A run file").required();
            verb.value("--rename", &options->rename, "Give a run another name").form("RUN NAME").values(2, 2);
            verb.value("--note", &options->note, "Set the note of a run; an empty one removes it")
                .form("RUN TEXT")
                .values(2, 2);
            verb.value("--delete", &options->remove, "Delete a run").form("RUN").each();
            verb.value("--merge", &options->merge, "Append the runs of another file").form("OTHER").each();
            verb.flag("--verify", options->verify,
                      "Read every run completely and report damage (exit code 1 if there is any)");
            verb.flag("--compact", options->compact, "Give freed space back to the disk");
            verb.notes(
                "RUN is a number as listed, or a name (the newest of that name). Changed runs are listed afterwards.");
            return [options](Session& session) { return runRuns(*options, session); };
        }};
}

} // namespace stagewright
