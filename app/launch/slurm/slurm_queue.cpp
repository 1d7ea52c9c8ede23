#include "app/launch/slurm/slurm_queue.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "app/launch/child_process.h"
#include "app/launch/program_path.h"
#include "app/launch/shell_words.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

constexpr double patience = 60; // seconds for one of Slurm's programs
// by one of them: the names of all nodes of a large cluster are far less
constexpr std::size_t mostSaid = std::size_t{16} << 20;

Result<ChildOutput> ask(const std::string& program, const std::vector<std::string>& arguments)
{
    const std::string path = programOnPath(program);
    if (path.empty())
        return fail(ErrorCode::Unavailable, fmt::format("Slurm's {} is not on PATH", program),
                    "use --slurm on a computer of the cluster, or add --host LOGIN");
    ChildStart start{{path}, {{"LC_ALL", "C"}}, "/", true};
    start.arguments.insert(start.arguments.end(), arguments.begin(), arguments.end());
    auto said = runToEnd(start, patience, mostSaid);
    if (!said && said.error().code == ErrorCode::Unavailable)
        said.error().remedy = "try again later: the job is not affected";
    if (!said && said.error().code == ErrorCode::Failed)
        said.error().remedy = "check which one is first on PATH, if it is Slurm's";
    return said;
}

bool isNumber(std::string_view text)
{
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Meaning {
    std::string_view name;
    SlurmState::Kind kind;
    std::string_view words;
};
constexpr auto meanings = std::to_array<Meaning>({
    {"PENDING", SlurmState::Kind::Queued, "queued"},
    {"CONFIGURING", SlurmState::Kind::Queued, "its nodes are being made ready"},
    {"REQUEUED", SlurmState::Kind::Queued, "queued again"},
    {"REQUEUE_HOLD", SlurmState::Kind::Queued, "queued again and held; release it with scontrol release"},
    {"SPECIAL_EXIT", SlurmState::Kind::Queued, "queued again and held; release it with scontrol release"},
    {"SUSPENDED", SlurmState::Kind::Queued, "suspended by Slurm"},
    {"RUNNING", SlurmState::Kind::Running, "running"},
    {"COMPLETING", SlurmState::Kind::Running, "ending"},
    {"STAGE_OUT", SlurmState::Kind::Running, "ending"},
    {"COMPLETED", SlurmState::Kind::Done, "ended"},
    {"FAILED", SlurmState::Kind::Failed, "failed"},
    {"BOOT_FAIL", SlurmState::Kind::Failed, "failed: a node did not start"},
    {"NODE_FAIL", SlurmState::Kind::Failed, "failed: a node went down"},
    {"OUT_OF_MEMORY", SlurmState::Kind::Failed, "failed: out of memory"},
    {"PREEMPTED", SlurmState::Kind::Failed, "preempted: ended by Slurm for another job"},
    {"DEADLINE", SlurmState::Kind::TimeLimit, "ended at its deadline"},
    {"TIMEOUT", SlurmState::Kind::TimeLimit, "ended at its time limit"},
    {"CANCELLED", SlurmState::Kind::Cancelled, "cancelled"},
});

// Slurm's reasons are words run together.
std::string reasonWords(std::string_view reason)
{
    constexpr auto known = std::to_array<std::pair<std::string_view, std::string_view>>({
        {"Resources", "waits for free nodes"},
        {"Priority", "jobs before it have a higher priority"},
        {"Dependency", "waits for another job"},
        {"DependencyNeverSatisfied",
         "the job that it waits for has failed, so it never starts; end it with hosts stop"},
        {"BeginTime", "waits for its start time"},
        {"PartitionTimeLimit", "asks for more time than its partition allows"},
        {"PartitionNodeLimit", "asks for more nodes than its partition has"},
        {"ReqNodeNotAvail", "a node that it asks for is not available"},
        {"QOSMaxJobsPerUserLimit", "as many of your jobs run as are allowed"},
        {"JobHeldUser", "held; release it with scontrol release"},
        {"JobHeldAdmin", "held by an administrator"},
    });
    for (const auto& [name, words] : known)
        if (reason == name || reason.starts_with(std::string(name) + ",")) return std::string(words);
    return plainText(reason, 100);
}

std::optional<SlurmState> stateOf(std::string_view name, std::string_view reason, std::string_view nodes,
                                  std::string_view limit, std::string_view code)
{
    name = name.substr(0, name.find_first_of(" +")); // "CANCELLED by 0"
    const auto found =
        std::find_if(meanings.begin(), meanings.end(), [&](const Meaning& one) { return one.name == name; });
    if (found == meanings.end())
        return name.empty() ? std::nullopt
                            : std::optional(SlurmState{SlurmState::Kind::Running, 0,
                                                       fmt::format("Slurm's state {}", plainText(name, 40))});
    SlurmState state{found->kind, 0, std::string(found->words)};
    if (state.kind == SlurmState::Kind::Queued && !reason.empty() && reason != "None")
        state.words += ": " + reasonWords(reason);
    if (state.kind == SlurmState::Kind::Running && !nodes.empty() && nodes != "(null)")
        state.words += " on " + plainText(nodes, 200);
    if (found->name == "TIMEOUT" && !limit.empty()) state.words += " of " + plainText(limit, 40);
    if (found->name == "FAILED" && !code.empty())
        state.words += " with code " + plainText(code.substr(0, code.find(':')), 20);
    return state;
}

std::string_view firstLine(std::string_view text)
{
    text = trimmed(text);
    return text.substr(0, text.find('\n'));
}

} // namespace

// STATE|REASON|NODES|LIMIT
std::optional<SlurmState> readSqueue(const std::string& text)
{
    const auto parts = split(firstLine(text), "|");
    if (parts.size() < 4) return std::nullopt;
    return stateOf(parts[0], parts[1], parts[2], parts[3], {});
}

// State|ExitCode|NodeList|Timelimit
std::optional<SlurmState> readSacct(const std::string& text)
{
    const auto parts = split(firstLine(text), "|");
    if (parts.size() < 4) return std::nullopt;
    return stateOf(parts[0], {}, parts[2], parts[3], parts[1]);
}

// KEY=VALUE between blanks
std::optional<SlurmState> readScontrol(const std::string& text)
{
    const auto valueOf = [&](std::string_view key) -> std::string_view {
        for (const std::string_view word : wordsOf(text))
            if (const KeyValue pair = keyValueOf(word); pair.key == key) return pair.value.value_or("");
        return {};
    };
    auto state =
        stateOf(valueOf("JobState"), valueOf("Reason"), valueOf("NodeList"), valueOf("TimeLimit"), valueOf("ExitCode"));
    if (state) state->restarts = wholeOf<int>(valueOf("Restarts")).value_or(0);
    return state;
}

std::string jobNamed(const std::string& name)
{
    const auto said = ask("squeue", {"--noheader", "--me", "--name=" + name, "--states=all", "--format=%A"});
    const std::string_view number = said && said->end.good() ? firstLine(said->out) : std::string_view();
    return isNumber(number) ? std::string(number) : std::string();
}

Result<std::string> submitBatch(const std::string& scriptFile, const std::string& name)
{
    auto said = ask("sbatch", {"--parsable", scriptFile});
    if (!said) { // the queue may have it all the same
        if (std::string number = jobNamed(name); !number.empty()) return number;
        return tl::unexpected(std::move(said.error()));
    }
    const std::string_view number = firstLine(said->out).substr(0, firstLine(said->out).find(';'));
    if (said->end.good() && isNumber(number)) return std::string(number);
    return fail(ErrorCode::Failed,
                fmt::format("sbatch refused the job: {}", plainText(trimmed(said->err + said->out), 600)),
                fmt::format("the script is {}", scriptFile));
}

Result<SlurmState> slurmState(const std::string& job)
{
    STAGEWRIGHT_TRY(auto queue, ask("squeue", {"--noheader", "--jobs=" + job, "--states=all", "--format=%T|%r|%N|%l"}));
    std::optional<SlurmState> state;
    if (queue.end.good()) state = readSqueue(queue.out);
    if (state && !state->over()) { // only scontrol counts how often it was queued again
        if (auto shown = ask("scontrol", {"show", "job", job}); shown && shown->end.good())
            if (const auto known = readScontrol(shown->out)) state->restarts = known->restarts;
        return *state;
    }
    // over: accounting has the code, scontrol has it for some minutes
    if (auto account = ask("sacct", {"--noheader", "--allocations", "--parsable2", "--jobs=" + job,
                                     "--format=State,ExitCode,NodeList,Timelimit"});
        account && account->end.good())
        if (auto known = readSacct(account->out)) return *known;
    if (auto shown = ask("scontrol", {"show", "job", job}); shown && shown->end.good())
        if (auto known = readScontrol(shown->out)) return *known;
    if (state) return *state;
    const bool unknown = queue.end.good() || queue.err.find("Invalid job id") != std::string::npos;
    if (unknown) return SlurmState{SlurmState::Kind::Unknown, 0, fmt::format("Slurm no longer knows job {}", job)};
    return fail(ErrorCode::Unavailable, fmt::format("squeue: {}", plainText(trimmed(queue.err), 300)),
                "Slurm's controller may be down; the job is not affected");
}

Result<void> cancelBatch(const std::string& job)
{
    STAGEWRIGHT_TRY(auto said, ask("scancel", {job}));
    if (said.end.good()) return {};
    return fail(ErrorCode::Failed, fmt::format("scancel: {}", plainText(trimmed(said.err), 300)));
}

int slurmRestarts()
{
    const char* count = std::getenv("SLURM_RESTART_COUNT");
    return count != nullptr ? wholeOf<int>(count).value_or(0) : 0;
}

bool inSlurmJob() { return std::getenv("SLURM_JOB_ID") != nullptr; }

Result<std::vector<std::string>> nodesOfThisJob()
{
    const char* list = std::getenv("SLURM_JOB_NODELIST");
    if (!inSlurmJob() || list == nullptr) return std::vector<std::string>{};
    STAGEWRIGHT_TRY(auto said, ask("scontrol", {"show", "hostnames", list}));
    if (!said.end.good())
        return fail(ErrorCode::Failed,
                    fmt::format("scontrol can't list the nodes of this job: {}", plainText(trimmed(said.err), 300)));
    std::vector<std::string> nodes;
    for (const std::string_view line : split(said.out, "\n"))
        if (!trimmed(line).empty()) nodes.emplace_back(trimmed(line));
    if (nodes.size() == 1) nodes.clear();
    return nodes;
}

} // namespace stagewright
