#include "app/cli/verbs/host_actions.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>

#include <unistd.h>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/json.h"
#include "app/cli/text/table.h"
#include "app/cli/verbs/recorded.h"
#include "app/cli/verbs/recording_elsewhere.h"
#include "app/launch/hosts/host_install.h"
#include "app/launch/hosts/host_list.h"
#include "app/launch/hosts/host_test.h"
#include "app/launch/hosts/serve.h"
#include "app/launch/shell_words.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/text/link_text.h"

namespace stagewright {

namespace {

Json hostJson(const Host& host)
{
    return {{"name", host.name},
            {"target", host.target},
            {"folder", host.folder},
            {"scratch", textOrNull(host.scratch)},
            {"setup", host.setup}};
}

Result<int> add(const HostOptions& options, Session& session)
{
    Host host;
    host.name = options.words[0];
    host.target = options.words[1];
    if (!options.folder.empty()) host.folder = options.folder;
    host.scratch = options.scratch;
    host.setup = options.setup;
    STAGEWRIGHT_CHECK(keepHost(host));
    if (session.json) session.answer(hostJson(host));
    session.note(fmt::format("kept in {}; 'stagewright hosts test {}' shows what it has", hostsFile(), host.name));
    return ExitDone;
}

Result<int> list(const HostOptions&, Session& session)
{
    STAGEWRIGHT_TRY(auto hosts, readHosts());
    Table table({{"host"}, {"ssh target"}, {"program"}, {"jobs"}, {"setup"}});
    Json all = Json::array();
    for (const Host& host : hosts) {
        std::vector<std::string> setup = host.setup;
        if (setup.empty()) setup.emplace_back();
        table.add({host.name, host.target, host.folder,
                   host.scratch.empty() ? "~/.local/state/stagewright/hosted" : host.scratch, setup.front()});
        for (std::size_t i = 1; i < setup.size(); ++i) table.add({"", "", "", "", setup[i]});
        all.push_back(hostJson(host));
    }
    if (session.json) session.answer({{"file", hostsFile()}, {"hosts", std::move(all)}});
    session.out(hosts.empty() ? "no hosts; add one with: stagewright hosts add NAME SSH-TARGET\n"
                              : table.text(session.colourOut()));
    return ExitDone;
}

Result<int> drop(const HostOptions& options, Session& session)
{
    STAGEWRIGHT_CHECK(removeHost(options.words[0]));
    if (session.json) session.answer({{"removed", options.words[0]}});
    session.note("what was installed there stays there");
    return ExitDone;
}

Result<int> test(const HostOptions& options, Session& session)
{
    STAGEWRIGHT_TRY(auto host, findHost(options.words[0]));
    STAGEWRIGHT_TRY(auto report, testHost(host, session.stop()));
    Table table({{""}, {host.name}, {"remedy"}});
    Json facts = Json::array();
    for (const HostFact& fact : report.facts) {
        table.add({fact.label, fact.value.empty() ? "missing" : fact.value, fact.remedy},
                  !fact.remedy.empty() && fact.needed ? Tint::Bad
                  : fact.value.empty()                ? Tint::Dim
                                                      : Tint::None);
        facts.push_back({{"key", fact.key},
                         {"label", fact.label},
                         {"value", textOrNull(fact.value)},
                         {"remedy", textOrNull(fact.remedy)},
                         {"needed", fact.needed}});
    }
    if (session.json)
        session.answer({{"host", host.name},
                        {"usable", report.usable()},
                        {"version", textOrNull(report.version)},
                        {"clock_offset_s", report.clockOffsetSeconds},
                        {"facts", std::move(facts)}});
    session.out(table.text(session.colourOut()));
    return report.usable() ? ExitDone : ExitDoesNotHold;
}

Result<int> install(const HostOptions& options, Session& session)
{
    STAGEWRIGHT_TRY(auto host, findHost(options.words[0]));
    STAGEWRIGHT_TRY(auto report, installOnHost(
                                     host, [&](const std::string& what) { session.note(what); }, session.stop()));
    if (session.json)
        session.answer({{"host", host.name},
                        {"program", report.program},
                        {"version", report.version},
                        {"files", report.files},
                        {"bytes", report.bytes}});
    session.out(fmt::format("{}: stagewright {} in {} ({} files, {})\n", host.name, report.version, report.program,
                            report.files.size(), formatBytes(report.bytes)));
    return ExitDone;
}

std::string timeText(std::int64_t unixMs)
{
    const std::time_t seconds = unixMs / 1000;
    std::tm local{};
    ::localtime_r(&seconds, &local);
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                       local.tm_hour, local.tm_min);
}

Json jobJson(const HostJob& job)
{
    Json runs = Json::array();
    for (const ReplayedRun& run : job.runs)
        if (run.here != 0) runs.push_back(run.here);
    return {{"job", job.id},
            {"host", textOrNull(job.host)},
            {"verb", job.verb},
            {"arguments", job.arguments},
            {"file", job.file},
            {"runs", std::move(runs)},
            {"created_unix_ms", job.createdUnixMs},
            {"slurm_job", textOrNull(job.slurmJob)},
            {"state", std::string(toText(job.state))},
            {"detail", textOrNull(job.detail)},
            {"exit_code", job.exitCode ? Json(*job.exitCode) : Json(nullptr)},
            {"steps", job.steps},
            {"steps_asked", job.stepsAsked},
            {"bytes_there", job.bytesThere < 0 ? Json(nullptr) : Json(job.bytesThere)},
            {"bytes_here", bytesHere(job)}};
}

std::string firstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Sizes over there, by one connection to each place; one that can't be reached keeps what was known.
void measure(std::vector<HostJob>& all, Session& session)
{
    std::map<std::pair<std::string, std::string>, std::vector<HostJob*>> places;
    for (HostJob& job : all) places[{job.host, job.scratch}].push_back(&job);
    for (auto& [place, some] : places)
        if (auto measured = measureThere(some, session.stop()); !measured)
            session.warn(
                fmt::format("{}: {}", place.first.empty() ? "this computer" : place.first, measured.error().message));
}

Result<int> jobs(const HostOptions& options, Session& session)
{
    std::vector<std::string> damaged;
    std::vector<HostJob> all = readJobs(&damaged);
    for (const std::string& folder : damaged)
        session.warn(fmt::format("{}: its job.json is damaged; remove the folder, or restore it", folder));
    Table table({{"job"},
                 {"where"},
                 {"begun"},
                 {"state"},
                 {"steps", Table::Align::Right},
                 {"there", Table::Align::Right},
                 {"here", Table::Align::Right},
                 {"file"},
                 {""}});
    Json array = Json::array();
    if (options.ask) measure(all, session);
    for (HostJob& job : all) {
        if (options.ask && !job.over()) {
            FollowOptions fetch;
            fetch.onlyWhatIsThere = true;
            fetch.reconnectSeconds = 0;
            if (auto followed = followJob(job, fetch, {}, session.stop()); !followed)
                session.warn(fmt::format("job {}: {}", job.id, followed.error().message));
        }
        const std::string where = job.host.empty() ? "this computer" : job.host;
        table.add({job.id, job.slurm ? where + ", Slurm" : where, timeText(job.createdUnixMs),
                   std::string(toText(job.state)),
                   job.stepsAsked > 0 ? fmt::format("{}/{}", job.steps, job.stepsAsked) : std::to_string(job.steps),
                   job.bytesThere < 0 ? "–" : formatBytes(job.bytesThere), formatBytes(bytesHere(job)), job.file,
                   firstLine(job.detail)});
        array.push_back(jobJson(job));
    }
    if (session.json) session.answer({{"jobs", std::move(array)}, {"damaged", damaged}});
    session.out(all.empty() ? "no jobs; start one with: stagewright record --host NAME\n"
                            : table.text(session.colourOut()));
    return ExitDone;
}

Result<HostJob> jobNamedBy(const HostOptions& options)
{
    const std::string word = options.words.empty() ? std::string() : options.words[0];
    return namesFolder(word) ? jobOfFolder(word, options.file) : findJob(word);
}

Result<int> follow(const HostOptions& options, const FollowOptions& how, Session& session)
{
    STAGEWRIGHT_TRY(auto job, jobNamedBy(options));
    STAGEWRIGHT_TRY(auto recording, followElsewhere(job, how, session));
    if (!job.over() && !recording.stopped) {
        if (session.json) session.answer(jobJson(job));
        session.out(fmt::format("{}: {}, {} of {} steps are in {}\n", job.id, toText(job.state), job.steps,
                                job.stepsAsked, job.file));
        return ExitDone;
    }
    return endRecording(job.file, std::move(recording), session);
}

Result<int> attach(const HostOptions& options, Session& session)
{
    FollowOptions how;
    how.onlyLooks = !session.stdinControl; // the end of standard input is a request to stop it
    return follow(options, how, session);
}

Result<int> fetch(const HostOptions& options, Session& session)
{
    FollowOptions how;
    how.onlyWhatIsThere = true;
    return follow(options, how, session);
}

Result<int> stop(const HostOptions& options, Session& session)
{
    FollowOptions how;
    how.stop = true;
    STAGEWRIGHT_TRY(auto job, jobNamedBy(options));
    if (job.over())
        return fail(ErrorCode::Usage, fmt::format("job {} is over", job.id),
                    fmt::format("its runs are in {}", job.file));
    STAGEWRIGHT_CHECK(stopThere(job, session.stop()));
    session.note(fmt::format("job {} was asked to stop", job.id));
    auto ended = follow(options, how, session);
    const bool stopped = !ended && ended.error().code == ErrorCode::Cancelled; // as it was asked to
    if (!stopped) return ended;
    session.note(ended.error().message + "; " + ended.error().remedy);
    return ExitDone;
}

// "12h", "7d", "4w", in milliseconds.
Result<std::int64_t> readAge(const std::string& text)
{
    constexpr std::int64_t hour = 3'600'000;
    const auto age = quantityOf(text);
    for (const auto& [unit, size] : {std::pair("h", hour), {"d", 24 * hour}, {"w", 7 * 24 * hour}})
        if (age && age->value >= 0 && age->value < 1e5 && age->unit == unit)
            return static_cast<std::int64_t>(age->value * static_cast<double>(size));
    return fail(ErrorCode::Usage, fmt::format("--older-than takes hours, days or weeks, not '{}'", plainText(text, 40)),
                "write 12h, 7d or 4w");
}

// Jobs that are over and too old, or the oldest of them beyond the size that all jobs may have.
Result<int> prune(const HostOptions& options, Session& session)
{
    std::optional<std::int64_t> before;
    std::optional<Bytes> most;
    if (!options.olderThan.empty()) {
        STAGEWRIGHT_TRY(const auto age, readAge(options.olderThan));
        before =
            std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count() -
            age;
    }
    if (!options.keepSize.empty()) {
        auto size = parseBytes(options.keepSize);
        if (!size) return tl::unexpected(std::move(size.error()).with("--keep-size"));
        most = *size;
    }
    std::vector<HostJob> all = readJobs(); // the newest first
    if (!options.here) measure(all, session);
    const auto bytesOf = [&](const HostJob& job) {
        return bytesHere(job) + (options.here ? 0 : std::max<Bytes>(0, job.bytesThere));
    };
    Bytes total = 0, freed = 0;
    for (const HostJob& job : all) total += bytesOf(job);
    Json forgotten = Json::array();
    const auto drop = [&](const HostJob& job, Bytes bytes) {
        if (!options.here)
            if (auto gone = forgetThere(job, session.stop()); !gone)
                return session.warn(fmt::format("job {} is kept: {}", job.id, gone.error().message));
        if (auto gone = forgetJob(job.id); !gone)
            return session.warn(fmt::format("job {} is kept: {}", job.id, gone.error().message));
        freed += bytes;
        total -= bytes;
        forgotten.push_back(job.id);
        session.note(fmt::format("{} is forgotten ({}); its runs stay in {}", job.id, formatBytes(bytes), job.file));
    };
    for (auto job = all.rbegin(); job != all.rend(); ++job) { // the oldest first
        const bool old = before && job->createdUnixMs < *before;
        if (job->over() && (old || (most && total > *most))) drop(*job, bytesOf(*job));
    }
    session.out(fmt::format("{} forgotten, {} freed\n", counted(static_cast<long long>(forgotten.size()), "job"),
                            formatBytes(freed)));
    if (session.json) session.answer({{"forgotten", std::move(forgotten)}, {"bytes", freed}});
    return ExitDone;
}

Result<int> forget(const HostOptions& options, Session& session)
{
    if (options.words.empty()) return prune(options, session);
    for (const std::string& word : options.words) {
        STAGEWRIGHT_TRY(auto job, findJob(word));
        if (!job.over() && !options.here)
            return fail(
                ErrorCode::Usage, fmt::format("job {} is not known to be over", job.id),
                fmt::format("stop it first: stagewright hosts stop {}; or forget only what is here, with --here",
                            job.id));
        if (!options.here) STAGEWRIGHT_CHECK(forgetThere(job, session.stop()));
        STAGEWRIGHT_CHECK(forgetJob(job.id));
        session.note(fmt::format("{} is forgotten; its runs stay in {}", job.id, job.file));
    }
    if (session.json) session.answer({{"forgotten", options.words}});
    return ExitDone;
}

Result<int> serve(const HostOptions& options, Session&)
{
    STAGEWRIGHT_CHECK(serveHost(options.scratch, STDIN_FILENO, STDOUT_FILENO));
    return ExitDone;
}

constexpr auto actions = std::to_array<HostAction>({
    {"add", "NAME SSH-TARGET", "keep a host under a name; the target is what you type after ssh", 2, 2, add},
    {"test", "NAME", "what is installed there, and how to get what is missing", 1, 1, test},
    {"install", "NAME", "copy this program there, with the libraries it needs", 1, 1, install},
    {"list", "", "the hosts, and their setup lines", 0, 0, list},
    {"remove", "NAME", "forget a host", 1, 1, drop},
    {"jobs", "", "what runs or ran elsewhere; --ask connects to bring it up to date", 0, 0, jobs},
    {"attach", "[JOB]", "follow a job until it ends [the newest]", 0, 1, attach},
    {"fetch", "[JOB]", "bring what is there now [the newest]; also of a script's job, by its [HOST:]FOLDER", 0, 1,
     fetch},
    {"stop", "[JOB]", "stop a job and bring its complete steps [the newest]", 0, 1, stop},
    {"forget", "[JOB…]", "remove jobs' files there and here, by name, age or size; their runs stay", 0, 1000, forget},
    {"serve", "", "the other end of a connection", 0, 0, serve, true},
});

} // namespace

std::span<const HostAction> hostActions() { return actions; }

} // namespace stagewright
