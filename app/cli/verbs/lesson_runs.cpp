#include "app/cli/verbs/lesson_runs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/options/files.h"
#include "app/cli/options/run_access.h"
#include "app/cli/session.h"
#include "schedules/base/foreign_json.h"
#include "traces/format/atomic_file.h"
#include "traces/lessons/check_lesson.h"
#include "traces/lessons/record_plan.h"
#include "traces/store/run_file.h"

extern char** environ;

namespace stagewright {

namespace fs = std::filesystem;
using lessons::Learner;
using lessons::Lesson;
using lessons::RunBlock;
using lessons::RunFailure;

namespace {

// A folder that is removed with its content at the end.
class TemporaryFolder {
public:
    TemporaryFolder()
    {
        std::string name = (fs::temp_directory_path() / "stagewright-lesson-XXXXXX").string();
        if (mkdtemp(name.data())) m_path = name;
    }
    ~TemporaryFolder()
    {
        std::error_code ignored;
        if (!m_path.empty()) fs::remove_all(m_path, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::string& path() const { return m_path; }

private:
    std::string m_path;
};

// Runs this program with other arguments; its output goes to files. Returns the exit code, or an error if it could not
// be started.
Result<int> runSelf(std::vector<std::string> words, const std::string& out, const std::string& err)
{
    words.insert(words.begin(), "/proc/self/exe");
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    const int failed = posix_spawn(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0)
        return fail(ErrorCode::Unavailable, fmt::format("the recording can't be started: {}", std::strerror(failed)));
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return fail(ErrorCode::Unavailable, fmt::format("the recording was lost: {}", std::strerror(errno)));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

RunFailure failureOf(const std::string& answer, const std::string& complaints)
{
    RunFailure failure;
    const auto object = readForeignJson(answer);
    if (object.is_object() && object.contains("error")) {
        const auto& error = object["error"];
        failure.message = error.is_object()   ? error.value("message", std::string())
                          : error.is_string() ? error.get<std::string>()
                                              : std::string();
    }
    if (object.is_object() && object.contains("runs") && object["runs"].is_array())
        for (const auto& run : object["runs"]) {
            if (!run.is_object() || !run.value("hung", false)) continue;
            failure.hung = true;
            for (const auto& wait : run.value("cycle", nlohmann::json::array()))
                failure.cycle.push_back(wait.is_object() ? wait.value("rank", -1) : wait.get<int>());
            for (const auto& victim : run.value("victims", nlohmann::json::array()))
                failure.victims.push_back(victim.get<int>());
        }
    if (failure.message.empty()) failure.message = complaints.substr(0, complaints.find('\n'));
    if (failure.message.starts_with("stagewright: ")) failure.message.erase(0, 13);
    if (failure.message.empty()) failure.message = "the recording failed and gave no reason";
    return failure;
}

bool coresIdle()
{
    std::ifstream in("/proc/loadavg");
    double load = 0;
    in >> load;
    return in && static_cast<double>(std::thread::hardware_concurrency()) - load >= 2;
}

Result<void> recordBlock(const Lesson& lesson, const RunBlock& block, const std::map<std::string, Schedule>& answers,
                         bool brief, const std::string& folder, Learner& learner)
{
    STAGEWRIGHT_TRY(auto plan, lessons::recordPlan(lesson, block, folder, answers, brief));
    for (const auto& [path, text] : plan.files)
        if (auto written = writeFileAtomically(path, text); !written) return written;
    const std::string file = folder + "/" + block.id + ".stagewright";
    const std::string out = folder + "/" + block.id + ".out";
    const std::string err = folder + "/" + block.id + ".err";
    std::vector<std::string> words{"record"};
    for (std::string& word : optionsOf(plan.setup)) words.push_back(std::move(word));
    for (const char* word : {"-o", file.c_str(), "--json", "--progress", "none"}) words.emplace_back(word);
    STAGEWRIGHT_TRY(auto code, runSelf(words, out, err));
    if (code != 0) {
        learner.failures[block.id] = failureOf(readFile(out).value_or(""), readFile(err).value_or(""));
        return {};
    }
    STAGEWRIGHT_TRY(auto runs, openRunFile(file));
    STAGEWRIGHT_TRY(auto infos, runs->runs());
    for (std::size_t i = 0; i < std::min(infos.size(), plan.schedules.size()); ++i) {
        STAGEWRIGHT_TRY(auto run, runs->read(infos[i].id));
        learner.runs[block.id + "/" + plan.schedules[i]] = std::make_shared<const Run>(std::move(run));
    }
    return {};
}

} // namespace

Result<Learner> recordLesson(const Lesson& lesson, const std::map<std::string, Schedule>& answers, bool brief,
                             Session& session)
{
    Learner learner;
    const TemporaryFolder folder;
    if (folder.path().empty())
        return fail(ErrorCode::Unavailable, "can't create a temporary folder",
                    "set TMPDIR to a folder you may write to");
    for (const RunBlock* block : lesson.all<RunBlock>()) {
        if (!lessons::missingNeeds(block->needs).empty()) continue;
        if (session.stop().stop_requested()) return fail(ErrorCode::Cancelled, "interrupted");
        if (block->wallClock && !coresIdle()) {
            learner.failures[block->id] = {"wall clock: fewer than two cores are idle", false, true, {}, {}};
            continue;
        }
        session.note(fmt::format("{}: recording '{}'", lesson.id, block->id));
        if (auto recorded = recordBlock(lesson, *block, answers, brief, folder.path(), learner); !recorded)
            return tl::unexpected(std::move(recorded.error()).with(fmt::format("run '{}'", block->id)));
    }
    return learner;
}

Result<void> readLessonRuns(const Lesson& lesson, const std::string& file, Learner& learner)
{
    STAGEWRIGHT_TRY(auto runs, openRunFile(file));
    STAGEWRIGHT_TRY(auto infos, runs->runs());
    std::set<std::int64_t> taken;
    for (const RunBlock* block : lesson.all<RunBlock>()) {
        auto plan = lessons::recordPlan(lesson, *block, ".");
        if (!plan) continue;
        for (const std::string& name : plan->schedules)
            for (const RunInfo& info : infos) {
                const bool own = name == "mine" && info.scheduleName.ends_with(".csv");
                if (taken.count(info.id) > 0 ||
                    !(own || info.name == name || info.scheduleName.substr(0, info.scheduleName.find(' ')) == name))
                    continue;
                STAGEWRIGHT_TRY(auto run, runs->read(info.id));
                learner.runs[block->id + "/" + name] = std::make_shared<const Run>(std::move(run));
                taken.insert(info.id);
                break;
            }
    }
    return {};
}

} // namespace stagewright
