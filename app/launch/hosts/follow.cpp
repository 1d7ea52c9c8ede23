#include "app/launch/hosts/follow.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "app/launch/child_process.h"
#include "app/launch/hosts/job_copy.h"
#include "app/launch/hosts/link.h"
#include "app/launch/hosts/messages.h"
#include "app/launch/shell_words.h"
#include "schedules/base/foreign_json.h"
#include "schedules/base/text.h"
#include <fmt/format.h>

namespace stagewright {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double answerSeconds = 60;
constexpr double startSeconds = 150; // sbatch, and the queue where it gave no answer, may take 60 s each
constexpr double keepEvery = 1;      // seconds between writings of job.json
constexpr double firstSeconds = 20;  // tries where there was no connection yet
constexpr double longestPause = 10;  // between two tries to reconnect
constexpr std::uint64_t mostBytes = std::uint64_t{1} << 62; // that a host may say
constexpr double stopSeconds = 60;                          // for the job's last steps after a stop request

// As textOf(), for showing: it comes from elsewhere.
std::string shownOf(const Message& message, const char* key, std::size_t most = 4000)
{
    return plainText(textOf(message, key), most);
}

// What the other end refuses, as an error of ours.
Error errorOf(const Message& value)
{
    const Message& error = value["error"];
    Error out{ErrorCode::Failed, "the host refused without a reason", {}};
    if (!error.is_object()) return out;
    if (const std::string message = shownOf(error, "message"); !message.empty()) out.message = message;
    out.remedy = shownOf(error, "remedy");
    if (error.contains("code") && error["code"].is_number_integer()) {
        const auto code = error["code"].get<std::int64_t>();
        if (code >= 0 && code <= static_cast<int>(ErrorCode::Cancelled)) out.code = static_cast<ErrorCode>(code);
    }
    return out;
}

Result<std::optional<Host>> hostNamed(const std::string& name)
{
    if (name.empty()) return std::optional<Host>();
    STAGEWRIGHT_TRY(auto host, findHost(name));
    return std::optional<Host>(std::move(host));
}

// The files in the order of the request, whose sizes were given in it.
Result<Message> fileList(const std::vector<SentFile>& files)
{
    Message list = Message::array();
    for (const SentFile& file : files) {
        std::error_code problem;
        const auto size = fs::file_size(file.path, problem);
        if (problem)
            return fail(ErrorCode::Unreadable, fmt::format("{}: {}", file.path, problem.message()),
                        "check the name and the permission");
        list.push_back({{"name", file.name}, {"bytes", static_cast<std::uint64_t>(size)}});
    }
    return list;
}

Result<void> sendFiles(HostLink& link, const std::vector<SentFile>& files, const Message& list)
{
    std::string bytes(std::size_t{1} << 20, '\0');
    for (std::size_t i = 0; i < files.size(); ++i) {
        std::ifstream in(files[i].path, std::ios::binary);
        const auto size = list[i]["bytes"].get<std::uint64_t>();
        for (std::uint64_t at = 0; at < size;) {
            in.read(bytes.data(), static_cast<std::streamsize>(std::min<std::uint64_t>(bytes.size(), size - at)));
            const auto count = static_cast<std::size_t>(in.gcount());
            if (count == 0)
                return fail(ErrorCode::Unreadable, fmt::format("{}: it changed while it was sent", files[i].path),
                            "try again");
            link.send(FrameKind::File, std::string_view(bytes).substr(0, count), at);
            at += count;
        }
    }
    return {};
}

// The next answer; signs of life are not. refused: the other end says no, so nothing has begun there.
Result<Message> answerOf(HostLink& link, const std::stop_token& stop, bool* refused = nullptr,
                         double seconds = answerSeconds)
{
    const auto begin = Clock::now();
    while (secondsSince(begin) < seconds) {
        if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "interrupted");
        STAGEWRIGHT_TRY(auto frame, link.next(0.2));
        if (!frame || frame->kind != FrameKind::Message) continue;
        Message value = readForeignJson<Message>(frame->bytes);
        if (!value.is_object() || value.contains("alive")) continue;
        if (refused) *refused = value.contains("error");
        if (value.contains("error")) return tl::unexpected(errorOf(value));
        return value;
    }
    return fail(ErrorCode::Unavailable, fmt::format("the host gives no answer within {:.0f} s", seconds));
}

Result<Message> orderOf(const JobOrder& order, const std::optional<Host>& host)
{
    STAGEWRIGHT_TRY(auto files, fileList(order.files));
    Message slurm = Message::array(), srun = Message::array();
    for (const SlurmOption& option : order.slurm) slurm.push_back(toSetting(option));
    for (const SlurmOption& option : order.srun) srun.push_back(toSetting(option));
    return Message{{"do", "start"},
                   {"job", order.job.id},
                   {"arguments", order.arguments},
                   {"files", std::move(files)},
                   {"queued", order.job.slurm},
                   {"slurm", std::move(slurm)},
                   {"srun", std::move(srun)},
                   {"tasks", order.tasks},
                   {"launcher", order.launcher},
                   {"container", order.container},
                   {"gpus", order.gpus},
                   {"setup", host ? host->setup : std::vector<std::string>()}};
}

// A request about a job that is answered at once.
Result<void> askedThere(const HostJob& job, const char* what, const std::stop_token& stop)
{
    STAGEWRIGHT_TRY(auto host, hostNamed(job.host));
    STAGEWRIGHT_TRY(auto link, HostLink::open(host, stop, job.scratch));
    link->send(FrameKind::Message, dumped({{"do", what}, {"job", job.id}}));
    auto answer = answerOf(*link, stop);
    return answer ? Result<void>() : tl::unexpected(std::move(answer.error()));
}

// One connection to a job, and what it said.
class JobFollower {
public:
    JobFollower(HostJob& job, std::optional<Host> host, JobCopy& copy, const FollowOptions& options,
                const JobWatch& watch, const std::stop_token& stop)
        : m_job(job), m_host(std::move(host)), m_copy(copy), m_options(options), m_watch(watch), m_stop(stop),
          m_stopping(options.stop)
    {
    }
    Result<void> run();

private:
    Result<bool> connection(); // true: everything is here
    Result<bool> take(const Frame& frame);
    Result<bool> damaged(Error why);
    Result<void> status(const Message& value);
    void keep(bool now);
    bool stopDue(HostLink& link);
    tl::unexpected<Error> looksNoMore() const
    {
        return fail(ErrorCode::Cancelled, fmt::format("job {} is not followed any more, and goes on there", m_job.id),
                    fmt::format("'stagewright hosts attach {0}' follows it again, 'stagewright hosts stop {0}' ends it",
                                m_job.id));
    }

    HostJob& m_job;
    std::optional<Host> m_host;
    JobCopy& m_copy;
    const FollowOptions& m_options;
    const JobWatch& m_watch;
    const std::stop_token& m_stop;
    bool m_stopping; // the request is to be made
    bool m_asked = false;
    Clock::time_point m_askedAt{};
    Clock::time_point m_kept{};
    bool m_ever = false;
    bool m_heard = false; // since the last time it was lost
    std::optional<std::uint64_t> m_damagedAt;
    std::optional<Error> m_damage; // of the stream, for good: only how the job ends is still of interest
};

void JobFollower::keep(bool now)
{
    if (!now && secondsSince(m_kept) < keepEvery) return;
    m_kept = Clock::now();
    (void)keepJob(m_job); // it says how far it was; the steps are in their file
}

Result<void> JobFollower::status(const Message& value)
{
    const auto isOf = [&](const char* key, bool (Message::*type)() const noexcept) {
        return !value.contains(key) || value[key].is_null() || (value[key].*type)();
    };
    if (!isOf("status", &Message::is_string) || !isOf("all", &Message::is_boolean) ||
        !isOf("exit_code", &Message::is_number_integer))
        return fail(ErrorCode::Unreadable, "what the host sends is damaged: a status has values of a wrong type",
                    "check what answers there");
    const std::string kind = shownOf(value, "status", 20);
    JobState state = JobState::Running;
    std::string words = shownOf(value, "words", 500);
    if (m_job.slurmJob.empty()) m_job.slurmJob = shownOf(value, "slurm_job", 40);
    if (kind == "queued")
        state = JobState::Queued;
    else if (kind == "ended")
        state = JobState::Ended;
    else if (kind == "lost" || kind == "absent")
        state = JobState::Lost;
    if (kind == "absent") words = "its folder is not there: it never started, or was removed";
    if (value.contains("exit_code") && value["exit_code"].is_number_integer())
        m_job.exitCode = static_cast<int>(std::clamp<std::int64_t>(value["exit_code"].get<std::int64_t>(), 0, 255));
    if (value.contains("bytes"))
        m_job.bytesThere = static_cast<std::int64_t>(std::min(countOf(value, "bytes"), mostBytes));
    // Slurm's srun ends with code 0 where a task could not be launched.
    const bool empty = state == JobState::Ended && m_job.exitCode.value_or(0) == 0 && m_job.steps == 0 && !m_damage;
    const bool failed =
        empty || state == JobState::Lost || (state == JobState::Ended && m_job.exitCode.value_or(0) != 0);
    if (failed) {
        constexpr int signals = 128;
        const int code = m_job.exitCode.value_or(0);
        if (state == JobState::Ended && words.empty())
            words = empty                                   ? "ended without a step"
                    : code > signals && code != signals + 2 ? fmt::format("ended by signal {}", code - signals)
                    : code == signals + 2                   ? "stopped"
                                                            : fmt::format("failed with code {}", code);
        const std::string& said = m_copy.lastError();
        const std::string lines = shownOf(value, "last_lines");
        if (!said.empty())
            words += ": " + said;
        else if (!lines.empty())
            words += "; the last lines of its log:\n" + lines;
    }
    const bool changed = state != m_job.state || words != m_job.detail;
    m_job.state = state;
    m_job.detail = words;
    if (changed) {
        keep(true);
        if (m_watch.changed) m_watch.changed(m_job);
    }
    return {};
}

Result<bool> JobFollower::take(const Frame& frame)
{
    if (frame.kind == FrameKind::Steps) {
        if (m_damage) return false;
        if (auto taken = m_copy.takeSteps(frame.offset, frame.bytes); !taken)
            return taken.error().code == ErrorCode::Unreadable ? damaged(std::move(taken.error()))
                                                               : tl::unexpected(std::move(taken.error()));
        if (m_job.state == JobState::Starting || m_job.state == JobState::Queued) { // the queue is asked less often
            m_job.state = JobState::Running;
            m_job.detail.clear();
            keep(true);
            if (m_watch.changed) m_watch.changed(m_job);
        }
        keep(false);
        return false;
    }
    if (frame.kind == FrameKind::Events) {
        STAGEWRIGHT_CHECK(m_copy.takeEvents(frame.offset, frame.bytes));
        return false;
    }
    if (frame.kind != FrameKind::Message) return false;
    const Message value = readForeignJson<Message>(frame.bytes);
    if (!value.is_object()) return fail(ErrorCode::Unreadable, "what the host sends is damaged: a message is not JSON");
    if (value.contains("error")) return tl::unexpected(errorOf(value));
    if (value.contains("cut")) return damaged({ErrorCode::Unreadable, "the host cut its steps back", {}});
    if (!value.contains("status")) return false;
    STAGEWRIGHT_CHECK(status(value));
    return flagOf(value, "all");
}

// A recorder whose disk was full cuts its stream back to the last whole step, and may go on from there: it is asked once
// more for what follows that step. Then the steps before it stay, and the job is followed to its end, which has the
// reason.
Result<bool> JobFollower::damaged(Error why)
{
    if (m_damagedAt != m_copy.steps()) {
        m_damagedAt = m_copy.steps();
        return fail(ErrorCode::Unavailable, std::move(why.message), std::move(why.remedy));
    }
    m_damage = std::move(why);
    return false;
}

bool JobFollower::stopDue(HostLink& link)
{
    m_stopping = m_stopping || (m_stop.stop_requested() && !m_options.onlyLooks);
    if (m_stopping && !m_asked) {
        link.send(FrameKind::Message, dumped({{"do", "stop"}, {"job", m_job.id}}));
        m_asked = true;
        m_askedAt = Clock::now();
    }
    return m_asked && secondsSince(m_askedAt) > stopSeconds;
}

Result<bool> JobFollower::connection()
{
    STAGEWRIGHT_TRY(auto link, HostLink::open(m_host, m_stopping ? std::stop_token() : m_stop, m_job.scratch));
    STAGEWRIGHT_CHECK(m_copy.rewind());
    m_asked = false; // a request may have been lost with the last connection
    if (stopDue(*link)) return true;
    link->send(FrameKind::Message, dumped({{"do", "follow"},
                                           {"job", m_job.id},
                                           {"steps", m_copy.steps()},
                                           {"sum", m_copy.stepsSum()},
                                           {"events", m_copy.events()},
                                           {"once", m_options.onlyWhatIsThere}}));
    for (;;) {
        STAGEWRIGHT_TRY(auto frame, link->next(0.1));
        if (m_options.onlyLooks && m_stop.stop_requested()) return looksNoMore();
        if (stopDue(*link))
            return fail(
                ErrorCode::Cancelled,
                fmt::format("job {} was asked to stop and has not ended within {:.0f} s", m_job.id, stopSeconds),
                fmt::format("see 'stagewright hosts attach {}'", m_job.id));
        if (!frame) continue;
        if (!m_heard && m_watch.connection) m_watch.connection({});
        m_heard = m_ever = true;
        auto all = take(*frame);
        if (!all || *all) return all;
    }
}

Result<void> JobFollower::run()
{
    m_heard = true;
    std::optional<Clock::time_point> lost;
    double pause = 0.2;
    for (;;) {
        auto all = connection();
        keep(true);
        if (all && m_damage && m_job.exitCode.value_or(0) == 0) return tl::unexpected(std::move(*m_damage));
        if (all) return {};
        const Error& why = all.error();
        if (why.code != ErrorCode::Unavailable) return tl::unexpected(std::move(all.error()));
        if (m_heard) lost.reset(); // it worked meanwhile
        if (m_heard) pause = 0.2;
        if (!lost) lost = Clock::now();
        m_heard = false;
        const auto giveUp = [&](ErrorCode code) {
            return fail(code, why.message,
                        fmt::format("job {} goes on there: 'stagewright hosts attach {}' fetches it{}{}", m_job.id,
                                    m_job.id, why.remedy.empty() ? "" : "; ", why.remedy));
        };
        if (m_options.onlyLooks && m_stop.stop_requested()) return looksNoMore();
        if (m_stop.stop_requested() && !m_stopping) m_stopping = true;
        if (secondsSince(*lost) + pause >
            (m_ever ? m_options.reconnectSeconds : std::min(m_options.reconnectSeconds, firstSeconds)))
            return giveUp(ErrorCode::Unavailable);
        if (m_watch.connection) m_watch.connection(why.message);
        for (const auto begin = Clock::now(); secondsSince(begin) < pause;)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        pause = std::min(pause * 2, longestPause);
    }
}

} // namespace

Result<HostJob> startJob(const JobOrder& order, const std::stop_token& stop)
{
    HostJob job = order.job;
    STAGEWRIGHT_TRY(auto host, hostNamed(job.host));
    STAGEWRIGHT_TRY(auto value, orderOf(order, host));
    STAGEWRIGHT_TRY(auto link, HostLink::open(host, stop));
    job.state = JobState::Starting;
    STAGEWRIGHT_CHECK(keepJob(job));
    const auto refused = [&](Error error) -> Result<HostJob> {
        (void)forgetJob(job.id); // it was refused: there is no job
        return tl::unexpected(std::move(error));
    };
    link->send(FrameKind::Message, dumped(value));
    if (auto sent = sendFiles(*link, order.files, value["files"]); !sent) return refused(std::move(sent.error()));
    bool no = false;
    auto answer = answerOf(*link, stop, &no, startSeconds);
    if (!answer && !no) { // it may have started, and who starts it keeps its number
        link->leave();
        answer.error().remedy = fmt::format("it may have started: see 'stagewright hosts attach {}'", job.id);
        return tl::unexpected(std::move(answer.error()));
    }
    if (!answer) return refused(std::move(answer.error()));
    job.slurmJob = shownOf(*answer, "slurm_job", 40);
    job.state = job.slurm ? JobState::Queued : JobState::Running;
    if (job.slurm) job.detail = "queued";
    STAGEWRIGHT_CHECK(keepJob(job));
    return job;
}

Result<std::string> batchScriptOf(const JobOrder& order, const std::stop_token& stop)
{
    STAGEWRIGHT_TRY(auto host, hostNamed(order.job.host));
    STAGEWRIGHT_TRY(auto value, orderOf(order, host));
    value["script_only"] = true;
    STAGEWRIGHT_TRY(auto link, HostLink::open(host, stop));
    link->send(FrameKind::Message, dumped(value));
    STAGEWRIGHT_CHECK(sendFiles(*link, order.files, value["files"]));
    STAGEWRIGHT_TRY(auto answer, answerOf(*link, stop));
    return shownOf(answer, "script", std::size_t{1} << 20);
}

Result<void> followJob(HostJob& job, const FollowOptions& options, const JobWatch& watch, const std::stop_token& stop)
{
    if (job.over() && !options.stop) { // everything is here; the run file may have lost some of it
        STAGEWRIGHT_CHECK(JobCopy::open(job, watch.event));
        return {};
    }
    STAGEWRIGHT_TRY(auto host, hostNamed(job.host));
    auto copy = JobCopy::open(job, watch.event);
    if (!copy) {
        Error& error = copy.error();
        error.remedy += fmt::format("{}job {} is not affected: 'stagewright hosts attach {}' fetches its steps",
                                    error.remedy.empty() ? "" : "; ", job.id, job.id);
        return tl::unexpected(std::move(error));
    }
    return JobFollower(job, std::move(host), **copy, options, watch, stop).run();
}

Result<void> measureThere(std::vector<HostJob*> jobs, const std::stop_token& stop)
{
    if (jobs.empty()) return {};
    STAGEWRIGHT_TRY(auto host, hostNamed(jobs.front()->host));
    STAGEWRIGHT_TRY(auto link, HostLink::open(host, stop, jobs.front()->scratch));
    Message names = Message::array();
    for (const HostJob* job : jobs) names.push_back(job->id);
    link->send(FrameKind::Message, dumped({{"do", "sizes"}, {"jobs", std::move(names)}}));
    STAGEWRIGHT_TRY(const auto answer, answerOf(*link, stop));
    const Message sizes = answer.contains("sizes") && answer["sizes"].is_object() ? answer["sizes"] : Message::object();
    for (HostJob* job : jobs) {
        if (!sizes.contains(job->id)) continue;
        job->bytesThere = static_cast<std::int64_t>(std::min(countOf(sizes, job->id.c_str()), mostBytes));
        STAGEWRIGHT_CHECK(keepJob(*job));
    }
    return {};
}

Result<void> stopThere(const HostJob& job, const std::stop_token& stop) { return askedThere(job, "stop", stop); }

Result<void> forgetThere(const HostJob& job, const std::stop_token& stop) { return askedThere(job, "forget", stop); }

Result<int> callThere(const RemoteCall& call, const RemoteOutput& output, const std::stop_token& stop)
{
    STAGEWRIGHT_TRY(auto host, hostNamed(call.host));
    STAGEWRIGHT_TRY(auto files, fileList(call.files));
    STAGEWRIGHT_TRY(auto link, HostLink::open(host, stop));
    link->send(FrameKind::Message,
               dumped({{"do", "call"}, {"job", newJobId(call.host)}, {"arguments", call.arguments}, {"files", files}}));
    STAGEWRIGHT_CHECK(sendFiles(*link, call.files, files));
    for (;;) {
        if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "interrupted"); // it ends with the connection
        STAGEWRIGHT_TRY(auto frame, link->next(0.1));
        if (!frame) continue;
        if (frame->kind == FrameKind::Out && output.out) output.out(frame->bytes);
        if (frame->kind == FrameKind::Err && output.err) output.err(frame->bytes);
        if (frame->kind != FrameKind::Message) continue;
        const Message value = readForeignJson<Message>(frame->bytes);
        if (!value.is_object())
            return fail(ErrorCode::Unreadable, "what the host sends is damaged: a message is not JSON");
        if (value.contains("error")) return tl::unexpected(errorOf(value));
        if (value.contains("exit_code") && value["exit_code"].is_number_integer())
            return static_cast<int>(std::clamp<std::int64_t>(value["exit_code"].get<std::int64_t>(), 0, 255));
    }
}

} // namespace stagewright
