#include "app/launch/hosts/serve.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <zlib.h>

#include "app/launch/child_process.h"
#include "app/launch/hosts/frames.h"
#include "app/launch/hosts/host_list.h"
#include "app/launch/hosts/job_folder.h"
#include "app/launch/hosts/job_list.h"
#include "app/launch/hosts/messages.h"
#include "app/launch/hosts/private_file.h"
#include "app/launch/shell_words.h"
#include "app/version/version.h"
#include "schedules/base/folder.h"
#include "schedules/base/foreign_json.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int pollMs = 50;
constexpr double signOfLife = 3; // seconds
constexpr double statusEvery = 0.3;
constexpr double queueEvery = 3; // Slurm's programs are asked less often
constexpr std::size_t longestFileName = 200;
constexpr std::uint64_t mostTasks = 1'000'000;
constexpr std::size_t chunk = std::size_t{256} << 10;

const char* toText(JobStatus::Kind kind)
{
    switch (kind) {
    case JobStatus::Kind::Absent: return "absent";
    case JobStatus::Kind::Queued: return "queued";
    case JobStatus::Kind::Running: return "running";
    case JobStatus::Kind::Ended: return "ended";
    case JobStatus::Kind::Lost: return "lost";
    }
    return "lost";
}

// A file of a job that only grows.
struct Growing {
    std::string path;
    FrameKind kind = FrameKind::Steps;
    std::uint64_t sent = 0;

    std::uint64_t size() const
    {
        struct stat now {};
        return ::stat(path.c_str(), &now) == 0 ? static_cast<std::uint64_t>(now.st_size) : 0;
    }
    std::string read(std::uint64_t from, std::size_t most) const
    {
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor < 0) return {};
        std::string bytes(most, '\0');
        const ssize_t count = ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(from));
        ::close(descriptor);
        bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
        return bytes;
    }
};

// Says that this end lives, from a thread of its own: whatever is waited for, such as one of Slurm's programs, the link
// isn't taken for lost. All that is written goes through here.
class HostLine {
public:
    explicit HostLine(int out) : m_out(out), m_thread([this](const std::stop_token& stop) { keepAlive(stop); }) {}
    void send(FrameKind kind, std::string_view bytes, std::uint64_t offset = 0);
    bool gone() const { return m_gone; } // nobody listens any more

private:
    void keepAlive(const std::stop_token& stop);
    int m_out;
    std::atomic<bool> m_gone = false;
    std::mutex m_mutex;
    std::condition_variable_any m_wake;
    Clock::time_point m_said = Clock::now();
    std::jthread m_thread; // last: it uses the others
};

void HostLine::send(FrameKind kind, std::string_view bytes, std::uint64_t offset)
{
    const std::string frame = frameBytes(kind, bytes, offset);
    const std::lock_guard lock(m_mutex);
    for (std::size_t at = 0; at < frame.size() && !m_gone;) {
        const ssize_t count = ::write(m_out, frame.data() + at, frame.size() - at);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0)
            m_gone = true;
        else
            at += static_cast<std::size_t>(count);
    }
    m_said = Clock::now();
}

void HostLine::keepAlive(const std::stop_token& stop)
{
    std::unique_lock lock(m_mutex);
    while (!m_wake.wait_for(lock, stop, std::chrono::milliseconds(500), [&] { return stop.stop_requested(); })) {
        if (m_gone || secondsSince(m_said) < signOfLife) continue;
        lock.unlock();
        send(FrameKind::Message, dumped({{"alive", true}}));
        lock.lock();
    }
}

class HostServer {
public:
    HostServer(std::string scratch, int in, int out) : m_scratch(std::move(scratch)), m_in(in), m_line(out) {}
    Result<void> run();

private:
    void answer(const Message& value) { m_line.send(FrameKind::Message, dumped(value)); }
    void refuse(const Error& error)
    {
        answer({{"error",
                 {{"code", static_cast<int>(error.code)}, {"message", error.message}, {"remedy", error.remedy}}}});
    }
    void take(const Frame& frame);
    void request(const Message& value);
    Result<void> begin(const Message& value, bool call); // a job, or a call in the foreground: files come next
    Result<void> launch();
    void follow(const Message& value);
    void pump();
    void pumpCall();
    bool sendGrown(Growing& file, std::uint64_t upTo);
    std::string folderOf(const std::string& id) const { return m_scratch + "/" + id; }

    std::string m_scratch;
    int m_in;
    HostLine m_line;
    FrameReader m_frames;

    // What is being started.
    Message m_order;
    bool m_isCall = false;
    std::string m_folder;
    std::vector<std::pair<std::string, std::uint64_t>> m_files; // name, bytes
    std::size_t m_file = 0;
    std::uint64_t m_written = 0;

    // What is followed.
    std::string m_job;
    Growing m_steps, m_events;
    bool m_once = false;
    JobStatus m_status;
    std::optional<JobStatus> m_told;
    Clock::time_point m_asked{};

    std::optional<ChildProcess> m_call;
};

Result<void> HostServer::begin(const Message& value, bool call)
{
    const std::string id = textOf(value, "job");
    if (!isJobId(id)) return fail(ErrorCode::Usage, "the job has no usable name");
    m_order = value;
    m_isCall = call;
    m_folder = folderOf(id);
    m_files.clear();
    m_file = 0;
    m_written = 0;
    std::uint64_t number = 0;
    for (const Message& file : listOf(value, "files")) {
        const std::string name = textOf(file, "name");
        const bool good = !name.empty() && name.size() <= longestFileName && name != "." && name != ".." &&
                          name.find('/') == std::string::npos && whyNotSent(name).empty();
        if (!good || !file.contains("bytes") || !file["bytes"].is_number_unsigned())
            return fail(ErrorCode::Usage, fmt::format("file {} of the job has no usable name", number));
        m_files.emplace_back(fmt::format("files/{}/{}", number, name), file["bytes"].get<std::uint64_t>());
        ++number;
    }
    // its folder is made by writing to it
    if (fs::exists(m_folder)) return fail(ErrorCode::Usage, fmt::format("{} is there already", m_folder));
    if (auto made = writePrivateFile(m_folder + "/order.json", dumped(value) + "\n"); !made) return made;
    for (const auto& [name, bytes] : m_files)
        if (auto made = writePrivateFile(m_folder + "/" + name, {}); !made) return made;
    while (m_file < m_files.size() && m_files[m_file].second == 0) ++m_file;
    return m_file == m_files.size() ? launch() : Result<void>();
}

Result<void> HostServer::launch()
{
    std::error_code error;
    std::vector<std::string> command{fs::read_symlink("/proc/self/exe", error).string()};
    // it finds the libraries
    if (const char* wrapper = ::secure_getenv("STAGEWRIGHT_PROGRAM"); wrapper && *wrapper == '/')
        command.front() = wrapper;
    for (const Message& word : listOf(m_order, "arguments")) {
        if (!word.is_string()) return fail(ErrorCode::Usage, "an argument is not text");
        std::string text = word.get<std::string>();
        for (std::size_t i = 0; i < m_files.size(); ++i) {
            const std::string place = fmt::format("{{file:{}}}", i);
            if (const std::size_t at = text.find(place); at != std::string::npos)
                text.replace(at, place.size(), m_folder + "/" + m_files[i].first);
        }
        if (const std::size_t at = text.find("{job}"); at != std::string::npos) text.replace(at, 5, m_folder);
        command.push_back(std::move(text));
    }
    m_files.clear();
    if (m_isCall) {
        STAGEWRIGHT_TRY(auto child, ChildProcess::start({command, {}, m_folder, true}));
        m_call.emplace(std::move(child));
        return {};
    }
    JobSetUp job;
    job.folder = m_folder;
    job.name = textOf(m_order, "job");
    job.command = std::move(command);
    job.queued = flagOf(m_order, "queued");
    job.tasks = static_cast<int>(std::min<std::uint64_t>(countOf(m_order, "tasks"), mostTasks));
    job.launcher = textOf(m_order, "launcher");
    job.container = textOf(m_order, "container");
    job.gpus = flagOf(m_order, "gpus");
    if (const std::string why = whyNotSent(job.launcher + job.container); !why.empty())
        return fail(ErrorCode::Usage, fmt::format("the container or launcher can't be used: {}", why));
    for (const Message& line : listOf(m_order, "setup"))
        if (line.is_string()) job.setup.push_back(line.get<std::string>());
    for (const auto& [name, of, into] :
         {std::tuple("slurm", SlurmProgram::Sbatch, &job.slurm), std::tuple("srun", SlurmProgram::Srun, &job.srun)})
        for (const Message& option : listOf(m_order, name)) {
            STAGEWRIGHT_TRY(auto parsed,
                            parseSlurmOption(option.is_string() ? option.get<std::string>() : std::string(), of));
            into->push_back(std::move(parsed));
        }
    if (flagOf(m_order, "script_only")) {
        STAGEWRIGHT_TRY(const auto text, batchText(job));
        answer({{"script", text}});
        return {};
    }
    STAGEWRIGHT_TRY(auto number, startJobFolder(job));
    answer({{"started", m_folder}, {"slurm_job", number}});
    return {};
}

void HostServer::follow(const Message& value)
{
    const std::string id = textOf(value, "job");
    if (!isJobId(id)) return refuse({ErrorCode::Usage, "the job has no usable name", {}});
    const std::string folder = folderOf(id);
    m_steps = {folder + "/" + jobfile::steps, FrameKind::Steps, countOf(value, "steps")};
    m_events = {folder + "/" + jobfile::events, FrameKind::Events, countOf(value, "events")};
    if (m_steps.sent > 0) {
        const std::uint64_t from = m_steps.sent > checkedBytes ? m_steps.sent - checkedBytes : 0;
        const std::string bytes = m_steps.read(from, static_cast<std::size_t>(m_steps.sent - from));
        const auto sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
        if (bytes.size() != m_steps.sent - from || sum != countOf(value, "sum")) {
            m_job.clear();
            return refuse({ErrorCode::Unreadable,
                           fmt::format("the steps in {} are not those that were fetched so far", folder),
                           {}});
        }
    }
    m_once = flagOf(value, "once");
    m_job = id;
    m_told.reset();
    m_asked = {};
}

void HostServer::request(const Message& value)
{
    const std::string what = textOf(value, "do");
    Result<void> done;
    if (what == "start" || what == "call")
        done = begin(value, what == "call");
    else if (what == "follow")
        follow(value);
    else if (what == "stop" && isJobId(textOf(value, "job"))) {
        done = stopJobFolder(folderOf(textOf(value, "job")));
        if (done) answer({{"stopping", true}});
    } else if (what == "sizes") {
        Message sizes = Message::object();
        for (const Message& id : listOf(value, "jobs"))
            if (id.is_string() && isJobId(id.get<std::string>()))
                sizes[id.get<std::string>()] = static_cast<std::uint64_t>(folderBytes(folderOf(id.get<std::string>())));
        answer({{"sizes", std::move(sizes)}});
    } else if (what == "forget" && isJobId(textOf(value, "job"))) {
        std::error_code problem;
        fs::remove_all(folderOf(textOf(value, "job")), problem);
        answer({{"forgotten", true}});
    } else
        refuse({ErrorCode::Usage, fmt::format("the request '{}' is not known", what), {}});
    if (!done) refuse(done.error());
}

void HostServer::take(const Frame& frame)
{
    if (frame.kind == FrameKind::Message) {
        const Message value = readForeignJson<Message>(frame.bytes);
        return value.is_object() ? request(value) : refuse({ErrorCode::Usage, "a request is not JSON", {}});
    }
    if (frame.kind != FrameKind::File || m_file >= m_files.size()) return;
    const auto& [name, bytes] = m_files[m_file];
    const std::string path = m_folder + "/" + name;
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    const bool good =
        frame.offset == m_written && frame.bytes.size() <= bytes - m_written && descriptor >= 0 &&
        ::write(descriptor, frame.bytes.data(), frame.bytes.size()) == static_cast<ssize_t>(frame.bytes.size());
    const int why = errno;
    if (descriptor >= 0) ::close(descriptor);
    if (!good) {
        m_files.clear();
        return refuse({ErrorCode::Failed, fmt::format("file {} can't be written: {}", path, std::strerror(why)),
                       "free some space there"});
    }
    m_written += frame.bytes.size();
    if (m_written < bytes) return;
    m_written = 0;
    ++m_file;
    while (m_file < m_files.size() && m_files[m_file].second == 0) ++m_file;
    if (m_file < m_files.size()) return;
    if (auto launched = launch(); !launched) refuse(launched.error());
}

bool HostServer::sendGrown(Growing& file, std::uint64_t upTo)
{
    bool any = false;
    while (file.sent < upTo && !m_line.gone()) {
        const std::string bytes =
            file.read(file.sent, static_cast<std::size_t>(std::min<std::uint64_t>(chunk, upTo - file.sent)));
        if (bytes.empty()) break;
        m_line.send(file.kind, bytes, file.sent);
        file.sent += bytes.size();
        any = true;
    }
    return any;
}

void HostServer::pump()
{
    const bool queued = fs::exists(folderOf(m_job) + "/slurm");
    if (secondsSince(m_asked) > (queued ? queueEvery : statusEvery)) {
        m_status = jobStatus(folderOf(m_job));
        m_asked = Clock::now();
    }
    const JobStatus status = m_status;            // before the sizes: of a job that is over they are final
    const std::uint64_t events = m_events.size(); // an event comes after the step that it is about
    const std::uint64_t steps = m_steps.size();
    if (steps < m_steps.sent) { // its disk was full, and the recorder took back what was not whole
        answer({{"cut", steps}});
        return m_job.clear();
    }
    sendGrown(m_steps, steps);
    sendGrown(m_events, events);
    const bool over = status.kind != JobStatus::Kind::Running && status.kind != JobStatus::Kind::Queued;
    if (m_told == status && !over && !m_once) return;
    m_told = status;
    const bool all = over || m_once;
    answer({{"status", toText(status.kind)},
            {"words", status.words},
            {"exit_code", status.exitCode ? Message(*status.exitCode) : Message(nullptr)},
            {"last_lines", status.lastLines},
            {"slurm_job", queueNumberOf(folderOf(m_job))},
            {"bytes", folderBytes(folderOf(m_job))},
            {"all", all}});
    if (all) m_job.clear();
}

void HostServer::pumpCall()
{
    const std::string out = m_call->read();
    const std::string err = m_call->readErrors();
    for (std::size_t at = 0; at < out.size(); at += chunk)
        m_line.send(FrameKind::Out, std::string_view(out).substr(at, chunk));
    for (std::size_t at = 0; at < err.size(); at += chunk)
        m_line.send(FrameKind::Err, std::string_view(err).substr(at, chunk));
    if (!m_call->atEnd() || m_call->errors() >= 0) return;
    const auto end = m_call->poll();
    if (!end) return;
    answer({{"exit_code", end->signal > 0 ? 128 + end->signal : end->code}});
    m_call.reset();
    std::error_code problem;
    fs::remove_all(m_folder, problem);
}

Result<void> HostServer::run()
{
    ::signal(SIGPIPE, SIG_IGN);
    answer({{"hello", "stagewright"},
            {"protocol", linkProtocol},
            {"version", programVersion()},
            {"commit", programCommit()}});
    while (!m_line.gone()) {
        pollfd in{m_in, POLLIN, 0};
        const int ready = ::poll(&in, 1, m_job.empty() && !m_call ? 1000 : pollMs);
        if (ready < 0 && errno != EINTR) break;
        if (ready > 0) {
            std::array<char, 65536> bytes{};
            const ssize_t count = ::read(m_in, bytes.data(), bytes.size());
            if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) break;
            if (count > 0) m_frames.add({bytes.data(), static_cast<std::size_t>(count)});
        }
        for (;;) {
            STAGEWRIGHT_TRY(auto frame, m_frames.next());
            if (!frame) break;
            take(*frame);
        }
        if (!m_job.empty()) pump();
        if (m_call) pumpCall();
    }
    if (m_call) { // in the foreground: it ends with the connection
        m_call.reset();
        std::error_code problem;
        fs::remove_all(m_folder, problem);
    }
    return {};
}

} // namespace

std::vector<std::string> serveArguments(const std::string& scratch)
{
    std::vector<std::string> arguments{"hosts", "serve"};
    if (!scratch.empty()) arguments.push_back("--scratch=" + scratch);
    return arguments;
}

Result<void> serveHost(const std::string& scratch, int in, int out)
{
    std::string folder = scratch.empty() ? stateFolder() + "/hosted" : scratch;
    if (folder.starts_with("~/")) folder = userFolder("", folder.substr(2));
    if (!folder.starts_with('/'))
        return fail(ErrorCode::Usage, fmt::format("folder '{}' is relative", folder), "start it with / or ~/");
    return HostServer(folder, in, out).run();
}

} // namespace stagewright
