#include "app/cli/process_runs.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "app/cli/command.h"
#include "app/cli/commands.h"
#include "app/cli/session.h"
#include "app/launch/mpi_start.h"
#include "app/version/version.h"
#include "engine/mpi/mpi_processes.h"
#include "engine/training/flight_page.h"
#include "engine/transport/bytes.h"
#include "engine/transport/process_job.h"

namespace stagewright {

namespace {

constexpr const char* startedMark = "started"; // in the folder of the flight records
constexpr const char* joinedMark = "joined";
constexpr double startSeconds = 20; // at least, for the processes to meet
constexpr int endTag = 4;           // of the job's own: the leader is done
constexpr Nanos leaderEnds = 10'000'000'000;
constexpr Nanos firstSpeaks = 3'000'000'000;

// The leader reports an error for all and ends the job; a process that knows better than it waits for that first.
int endFollower(ProcessJob& job, const Result<int>& result, Session& session)
{
    bool ended = false;
    std::optional<int> said;
    const auto heard = [&] {
        if (const auto bytes = job.hear(0, endTag)) said = ByteReader(*bytes).get<int>();
        return said || (ended = job.hasEnded(0));
    };
    job.await(
        heard, [] { return false; }, result ? -1 : leaderEnds);
    if (said && *said != ExitDone) std::_Exit(*said); // the leader has spoken and ends the job
    if (said) {
        job.close();
        return result ? *result : exitCodeOf(result.error().code);
    }
    const int code = result ? static_cast<int>(ExitFailed) : exitCodeOf(result.error().code);
    // One speaks where the leader can't any more; each where the leader lives and knows nothing of its fault.
    bool first = true;
    for (int other = 1; other < job.index(); ++other) first = first && job.hasEnded(other);
    // whoever is first speaks and ends the job, this process as well; ended by another it would stay silent
    if (ended && !first) job.await([] { return false; }, [] { return false; }, firstSpeaks);
    session.silent = false;
    session.complain(result ? Error{ErrorCode::Failed,
                                    fmt::format("rank 0: {} has ended, killed or crashed", job.nameOf(0)),
                                    "complete steps are in the run file"}
                            : Error(result.error()).with(job.nameOf(job.index())));
    job.processes().abort(code);
    return code;
}

void tellEnd(ProcessJob& job, int exitCode)
{
    for (int other = 1; other < job.count(); ++other) {
        ByteWriter code;
        code.put(exitCode);
        job.say(other, endTag, code.take());
    }
}

int endLeader(ProcessJob& job, const Result<int>& result, Session& session)
{
    if (result) {
        tellEnd(job, ExitDone);
        job.close();
        return *result;
    }
    session.complain(result.error());
    static_cast<void>(session.finish());
    const int code = exitCodeOf(result.error().code);
    tellEnd(job, code);
    job.processes().abort(code);
    return ExitFailed;
}

// A folder for the flight records of the processes, which inherit its name; gone with it.
class FlightFolder {
public:
    FlightFolder()
    {
        std::error_code error;
        std::string name = (std::filesystem::temp_directory_path(error) / "stagewright-flight-XXXXXX").string();
        if (error || ::mkdtemp(name.data()) == nullptr) return; // the records are then not kept
        m_name = name;
        ::setenv(flightFolderVariable, name.c_str(), 1);
    }
    ~FlightFolder()
    {
        ::unsetenv(flightFolderVariable);
        std::error_code ignored;
        if (!m_name.empty()) std::filesystem::remove_all(m_name, ignored);
    }
    FlightFolder(const FlightFolder&) = delete;
    FlightFolder& operator=(const FlightFolder&) = delete;

    // Marks of the processes: how far they came.
    static void mark(const char* name)
    {
        const char* folder = std::getenv(flightFolderVariable);
        if (folder == nullptr || !launchedProcesses()) return;
        for (const std::string& file : {std::string(name), fmt::format("{}-{}", name, mpi::launchedPlace())})
            std::ofstream(fmt::format("{}/{}", folder, file)) << ::getpid();
    }
    // Empty where there is no folder for them.
    std::function<bool()> marked(const char* name) const
    {
        if (m_name.empty()) return {};
        return [path = m_name + "/" + name] { return ::access(path.c_str(), F_OK) == 0; };
    }

    // Processes that are to be there and have not met: by number, what is known of the one that keeps the others
    // waiting. Empty: all have met.
    std::string notMet(int count) const
    {
        if (m_name.empty()) return {};
        std::string absent;
        std::string stopped;
        int met = 0;
        for (int process = 0; process < count; ++process) {
            met += ::access(fmt::format("{}/{}-{}", m_name, joinedMark, process).c_str(), F_OK) == 0 ? 1 : 0;
            pid_t pid = 0;
            std::ifstream(fmt::format("{}/{}-{}", m_name, startedMark, process)) >> pid;
            std::string words;
            std::ifstream state(fmt::format("/proc/{}/stat", pid));
            std::getline(state, words);
            const std::size_t name = words.rfind(')');
            const char letter = name == std::string::npos || name + 2 >= words.size() ? ' ' : words[name + 2];
            if (pid == 0)
                absent += fmt::format("{}process {} has not started", absent.empty() ? "" : ", ", process);
            else if (letter == ' ' || letter == 'Z')
                absent +=
                    fmt::format("{}process {} ({}) was killed or crashed", absent.empty() ? "" : ", ", process, pid);
            else if (letter == 'T')
                stopped += fmt::format("{}process {} ({}) is stopped", stopped.empty() ? "" : ", ", process, pid);
        }
        if (met == count) return {};
        if (!stopped.empty()) return stopped;
        return absent.empty() ? "nobody knows which of them hangs" : absent;
    }

    // What the ranks were doing, where the leader could not tell it itself.
    std::string standing() const
    {
        if (m_name.empty()) return {};
        const auto left = readFlights(m_name);
        if (!left || !left->leader) return {};
        const Deadlock found = explainStall(left->records, MessageMatching::ByOp);
        std::string text;
        for (const RankRecord& record : left->records) {
            const auto blocked = std::find_if(found.blocked.begin(), found.blocked.end(),
                                              [&](const BlockedRank& one) { return one.rank == record.rank; });
            if (blocked != found.blocked.end())
                text += fmt::format("  {}\n", blocked->sentence);
            else if (!record.present)
                text += fmt::format("  rank {} left no record\n", record.rank);
            else if (!record.entries.empty())
                text += fmt::format("  rank {} had ended {}\n", record.rank, toText(record.entries.back().op));
        }
        if (!found.cycle.empty()) text += fmt::format("  ranks {} wait for each other\n", fmt::join(found.cycle, ", "));
        return text.empty() ? text : fmt::format("{}: what its ranks were doing\n{}", left->schedule, text);
    }

private:
    std::string m_name;
};

} // namespace

std::optional<int> launchedProcesses() { return mpi::launchedProcesses(); }

Result<ProcessesEnd> startProcesses(int count, const std::vector<std::string>& launcher, double timeoutSeconds,
                                    Session& session)
{
    STAGEWRIGHT_CHECK(mpi::available());
    STAGEWRIGHT_TRY(auto own, ownArguments());
    if (!session.stdinControl) own.emplace_back("--stdin-control"); // how a stop request reaches them
    STAGEWRIGHT_TRY(auto words, launchedWords(asMpirunTakes(launcher, count), own));
    session.note(fmt::format("started as: {}", fmt::join(words, " ")));
    if (!session.colourOut()) ::setenv("NO_COLOR", "1", 0); // mpirun gives the processes a terminal of their own
    const FlightFolder flights;
    // Ranks watch each other from when they have met; until then, and where one is lost meanwhile, this process does.
    std::string lost;
    const auto stuck = [&, met = false, begin = std::chrono::steady_clock::now()]() mutable -> std::optional<Error> {
        if (met) return std::nullopt;
        const std::string why = flights.notMet(count);
        met = why.empty();
        if (lost.empty() && why.find("killed") != std::string::npos) lost = why;
        const double limit = std::max(timeoutSeconds, startSeconds);
        if (met || secondsSince(begin) < limit) return std::nullopt;
        return Error{ErrorCode::Failed,
                     fmt::format("the {} processes have not met within {:.0f} s: {}", count, limit, why),
                     "nothing was recorded; see what else runs on this machine"};
    };
    MpiRun run{std::move(words), count, {}, {}, {}};
    if (launcher.front() == "mpirun" ||
        launcher.front() == "mpiexec") { // those of others leave their marks where they run
        run.started = flights.marked(startedMark);
        run.joined = flights.marked(joinedMark);
        run.stuck = stuck;
    }
    STAGEWRIGHT_TRY(auto end, runUnderMpi(run, session.stop()));
    if (end.signal == 0 && end.code == ExitDone) return ProcessesEnd{};
    if (session.stop().stop_requested()) return ProcessesEnd{end.signal == 0 ? end.code : ExitInterrupted, {}};
    std::string standing = flights.standing();
    if (!standing.empty()) session.out(standing);
    if (end.signal == 0) return ProcessesEnd{end.code, std::move(standing)};
    // one of the others has said which
    session.warn(lost.empty() ? fmt::format("a process {}; complete steps are in the run file", toText(end))
                              : fmt::format("{} while the processes started; nothing was recorded", lost));
    return ProcessesEnd{ExitFailed, std::move(standing)};
}

Result<int> inProcesses(Session& session, const std::function<Result<int>(std::shared_ptr<ProcessJob> job)>& body)
{
    if (!launchedProcesses()) return body(nullptr);
    FlightFolder::mark(startedMark);
    STAGEWRIGHT_TRY(auto processes, mpi::joinProcesses());
    FlightFolder::mark(joinedMark);
    const bool leads = processes->index() == 0;
    if (!leads) {
        session.silent = true;
        session.stdinControl = false;
        session.jobFolder.clear();
        static_cast<void>(session.stop()); // the leader decides when to stop
    }
    auto job = ProcessJob::meet(std::move(processes), versionText());
    if (!job) {
        session.silent = false;
        return tl::unexpected(std::move(job.error()));
    }
    try {
        const Result<int> result = body(*job);
        return leads ? endLeader(**job, result, session) : endFollower(**job, result, session);
    } catch (const std::exception& e) {
        session.silent = false;
        session.complain({ErrorCode::Failed, fmt::format("{}: {}", (*job)->nameOf((*job)->index()), e.what()), {}});
        (*job)->processes().abort(ExitFailed);
        return ExitFailed;
    }
}

} // namespace stagewright
