#include "app/launch/hosts/job_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/launch/hosts/private_file.h"
#include "app/launch/shell_words.h"
#include "app/launch/slurm/slurm_queue.h"
#include "schedules/base/foreign_json.h"
#include "schedules/base/small_file.h"
#include "schedules/base/text.h"

extern char** environ;

namespace stagewright {

namespace {

namespace fs = std::filesystem;

constexpr const char* processFile = "process";
constexpr const char* slurmFile = "slurm";
constexpr const char* submittingFile = "submitting";
constexpr const char* orderFile = "order.json"; // of a job that this program starts
constexpr std::size_t tailBytes = 2000;

std::string nodeName()
{
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
}

std::string bootId()
{
    const auto text = readSmallFile("/proc/sys/kernel/random/boot_id");
    return text ? std::string(trimmed(*text)) : std::string();
}

// When the process began, in the kernel's ticks: distinguishes it from a later one of the same number.
std::string beginOf(pid_t process)
{
    const auto text = readSmallFile(fmt::format("/proc/{}/stat", process));
    if (!text || text->empty()) return {};
    const std::size_t name = text->rfind(')'); // it may hold blanks
    const auto words = wordsOf(std::string_view(*text).substr(name == std::string::npos ? 0 : name + 1));
    constexpr std::size_t state = 0;
    constexpr std::size_t begin = 19;
    return words.size() > begin && words[state] != "Z" ? std::string(words[begin]) : std::string();
}

std::string lastLines(const std::string& folder)
{
    std::string all;
    for (const char* name : {jobfile::log, "slurm.log"}) {
        std::FILE* file = std::fopen((folder + "/" + name).c_str(), "rb");
        if (!file) continue;
        std::fseek(file, 0, SEEK_END);
        const long size = std::ftell(file);
        std::fseek(file, std::max<long>(0, size - static_cast<long>(tailBytes)), SEEK_SET);
        std::string text(tailBytes, '\0');
        text.resize(std::fread(text.data(), 1, text.size(), file));
        std::fclose(file);
        all += text;
    }
    return plainText(trimmed(all), 2 * tailBytes);
}

Result<pid_t> startApart(const std::string& folder)
{
    const std::string script = folder + "/job.sh";
    std::array<std::string, 2> words{"/bin/sh", script};
    std::array<char*, 3> argv{words[0].data(), words[1].data(), nullptr};
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_init(&actions);
    const std::string log = folder + "/" + jobfile::log;
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    sigset_t none;
    sigset_t usual;
    ::sigemptyset(&none);
    ::sigemptyset(&usual);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGQUIT, SIGXFSZ, SIGCHLD}) ::sigaddset(&usual, signal);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &usual);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    pid_t process = -1;
    const int failed = ::posix_spawn(&process, argv[0], &actions, &attributes, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    if (failed != 0)
        return fail(ErrorCode::Unavailable, fmt::format("{} can't be started: {}", script, std::strerror(failed)));
    return process;
}

JobStatus endedStatus(const std::string& folder, const std::string& text)
{
    JobStatus status{JobStatus::Kind::Ended, {}, std::nullopt, lastLines(folder)};
    const auto value = readForeignJson(text);
    if (value.is_object() && value.contains("code") && value["code"].is_number_integer())
        status.exitCode = value["code"].get<int>();
    return status;
}

// Who does something for the job: a process, when it began, where, and since which start of that computer.
std::string whoText(pid_t process)
{
    return fmt::format("{} {} {} {}\n", process, beginOf(process), nodeName(), bootId());
}

struct Who {
    bool known = false;
    std::string node; // another computer's; else ""
    bool lives = false;
    bool restarted = false; // the computer, since
};

Who whoIn(const std::string& file)
{
    const auto text = readSmallFile(file);
    const auto words = text ? wordsOf(*text) : std::vector<std::string_view>();
    if (words.size() < 3) return {};
    Who who;
    who.known = true;
    if (words[2] != nodeName()) {
        who.node = words[2];
        return who;
    }
    const auto number = wholeOf<int>(words[0]);
    who.lives = number && words.size() > 3 && words[3] == bootId() && beginOf(*number) == words[1];
    who.restarted = words.size() > 3 && words[3] != bootId();
    return who;
}

JobStatus processStatus(const std::string& folder)
{
    const Who who = whoIn(folder + "/" + processFile);
    if (!who.known) return {JobStatus::Kind::Lost, "it never started", std::nullopt, lastLines(folder)};
    if (!who.node.empty())
        return {JobStatus::Kind::Running, fmt::format("on {}; ask there", plainText(who.node, 64)), std::nullopt, {}};
    if (who.lives) return {JobStatus::Kind::Running, {}, std::nullopt, {}};
    return {JobStatus::Kind::Lost, who.restarted ? "its computer was restarted" : "it was killed or crashed",
            std::nullopt, lastLines(folder)};
}

// Whether Slurm has the job still, or again, after its script has ended.
bool isQueuedAgain(const std::string& number)
{
    if (number.empty()) return false;
    const auto state = slurmState(number);
    return state && (state->kind == SlurmState::Kind::Queued || state->kind == SlurmState::Kind::Running);
}

// Why it was ended before, as Slurm's daemon wrote it into the log: "… CANCELLED AT … DUE TO PREEMPTION ***".
std::string againWords(const std::string& folder, int restarts)
{
    if (restarts == 0) return {};
    constexpr auto known = std::to_array<std::pair<std::string_view, std::string_view>>(
        {{"PREEMPTION", "it was preempted"}, {"NODE FAILURE", "a node went down"}, {"JOB REQUEUE", "it was requeued"}});
    std::string why = "it was requeued";
    const std::string log = lastLines(folder);
    if (const std::size_t at = log.rfind("DUE TO "); at != std::string::npos)
        for (const auto& [word, words] : known)
            if (std::string_view(log).substr(at + 7).starts_with(word)) why = words;
    return fmt::format("; start {}, since {}", restarts + 1, why);
}

// Whether sbatch has been called and has not answered yet. Where whoever called it is gone, the queue is asked for the
// job, and its number kept.
bool isSubmitting(const std::string& folder)
{
    const Who who = whoIn(folder + "/" + submittingFile);
    if (!who.known || !queueNumberOf(folder).empty()) return false;
    if (!who.node.empty() || who.lives) return true;
    if (const std::string number = jobNamed(fs::path(folder).filename().string()); !number.empty())
        (void)writePrivateFile(folder + "/" + slurmFile, number + "\n");
    return false;
}

} // namespace

Result<std::string> batchText(const JobSetUp& job)
{
    return toText(BatchScript{job.name, job.folder, job.slurm, job.srun, job.setup, job.command, job.tasks,
                              job.queued ? &slurmQueue() : nullptr, job.launcher, job.container, job.gpus});
}

Result<std::string> startJobFolder(const JobSetUp& job)
{
    const std::string script = job.folder + "/job.sh";
    STAGEWRIGHT_TRY(const auto text, batchText(job));
    STAGEWRIGHT_CHECK(writePrivateFile(script, text));
    std::error_code ignored;
    fs::permissions(script, fs::perms::owner_exec, fs::perm_options::add, ignored);
    if (job.queued) {
        const std::string submitting = job.folder + "/" + submittingFile;
        STAGEWRIGHT_CHECK(writePrivateFile(submitting, whoText(::getpid())));
        auto number = submitBatch(script, job.name);
        if (!number) {
            ::unlink(submitting.c_str());
            return number;
        }
        STAGEWRIGHT_CHECK(writePrivateFile(job.folder + "/" + slurmFile, *number + "\n"));
        return number;
    }
    STAGEWRIGHT_TRY(auto process, startApart(job.folder));
    STAGEWRIGHT_CHECK(writePrivateFile(job.folder + "/" + processFile, whoText(process)));
    return std::string();
}

std::string queueNumberOf(const std::string& folder)
{
    const auto text = readSmallFile(folder + "/" + slurmFile);
    return text ? std::string(trimmed(*text)) : std::string();
}

JobStatus jobStatus(const std::string& folder)
{
    std::error_code problem;
    if (!fs::is_directory(folder, problem)) return {};
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    } // those that this process started
    const auto ended = [&]() -> std::optional<JobStatus> {
        const auto text = readSmallFile(folder + "/" + jobfile::ended);
        if (!text || text->empty()) return std::nullopt;
        return endedStatus(folder, *text);
    };
    if (auto status = ended(); status && (status->exitCode == 0 || !isQueuedAgain(queueNumberOf(folder))))
        return *status;
    if (isSubmitting(folder)) return {JobStatus::Kind::Queued, "sbatch has not answered yet", std::nullopt, {}};
    const std::string number = queueNumberOf(folder);
    if (number.empty() && !fs::exists(folder + "/" + orderFile, problem)) { // its script is started by hand
        const bool begun = fs::exists(folder + "/" + jobfile::log, problem);
        return {begun ? JobStatus::Kind::Running : JobStatus::Kind::Queued,
                begun ? "" : fmt::format("nobody has started {}/job.sh yet", plainText(folder, 300)),
                std::nullopt,
                {}};
    }
    if (number.empty()) {
        JobStatus status = processStatus(folder);
        if (status.kind == JobStatus::Kind::Lost) // it may have ended meanwhile
            if (auto after = ended()) return *after;
        return status;
    }
    const auto state = slurmState(number);
    if (!state) return {JobStatus::Kind::Running, plainText(state.error().message), std::nullopt, {}};
    const std::string words = state->words + againWords(folder, state->restarts);
    if (state->kind == SlurmState::Kind::Queued) return {JobStatus::Kind::Queued, words, std::nullopt, {}};
    if (state->kind == SlurmState::Kind::Running) return {JobStatus::Kind::Running, words, std::nullopt, {}};
    if (auto after = ended()) return *after;
    constexpr int interrupted = 130;
    if (state->kind == SlurmState::Kind::Cancelled)
        return {JobStatus::Kind::Ended, state->words, interrupted, lastLines(folder)};
    return {JobStatus::Kind::Lost, state->words, std::nullopt, lastLines(folder)};
}

Result<void> stopJobFolder(const std::string& folder)
{
    if (auto asked = writePrivateFile(folder + "/" + jobfile::stop, "\n"); !asked) return asked;
    if (isSubmitting(folder)) return {}; // it ends by the file, once it runs
    const std::string number = queueNumberOf(folder);
    if (number.empty()) return {};
    const auto state = slurmState(number);
    if (state && state->kind != SlurmState::Kind::Queued) return {}; // it ends by itself, with its steps
    return cancelBatch(number);
}

} // namespace stagewright
