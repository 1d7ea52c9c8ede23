#include "app/launch/hosts/job_copy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "app/launch/hosts/frames.h"
#include "app/launch/hosts/job_folder.h"
#include "app/launch/shell_words.h"
#include "schedules/base/foreign_json.h"

namespace stagewright {

namespace {

using Value = nlohmann::ordered_json;

constexpr std::size_t longestLine = std::size_t{1} << 20;

// Events of a job that may be kept here: a step has a line of less than 16 KiB.
constexpr std::uint64_t eventsAtFirst = std::uint64_t{64} << 20, eventsOfStep = std::uint64_t{16} << 10;
constexpr int stepsUnasked = 1000; // beyond those that were asked for, as of runs that are made again

// A file that grows at its end and may be cut back.
class CopiedFile {
public:
    CopiedFile() = default;
    CopiedFile(const CopiedFile&) = delete;
    CopiedFile& operator=(const CopiedFile&) = delete;
    ~CopiedFile()
    {
        if (m_descriptor >= 0) ::close(m_descriptor);
    }
    Result<void> open(const std::string& path)
    {
        m_path = path;
        m_descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        const off_t end = m_descriptor < 0 ? -1 : ::lseek(m_descriptor, 0, SEEK_END);
        if (end < 0) return problem();
        m_size = static_cast<std::uint64_t>(end);
        return {};
    }
    std::uint64_t size() const { return m_size; }
    Result<void> append(std::string_view bytes)
    {
        while (!bytes.empty()) {
            const ssize_t count = ::pwrite(m_descriptor, bytes.data(), bytes.size(), static_cast<off_t>(m_size));
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return problem();
            m_size += static_cast<std::uint64_t>(count);
            bytes.remove_prefix(static_cast<std::size_t>(count));
        }
        return {};
    }
    std::string read(std::uint64_t from, std::size_t most) const
    {
        std::string bytes(most, '\0');
        const ssize_t count = ::pread(m_descriptor, bytes.data(), bytes.size(), static_cast<off_t>(from));
        bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
        return bytes;
    }
    Result<void> cut(std::uint64_t size)
    {
        if (::ftruncate(m_descriptor, static_cast<off_t>(size)) != 0) return problem();
        m_size = size;
        return {};
    }

private:
    tl::unexpected<Error> problem() const
    {
        return fail(ErrorCode::Failed, fmt::format("file {}: {}", m_path, std::strerror(errno)),
                    "free some space, or check the folder's permissions");
    }
    std::string m_path;
    int m_descriptor = -1;
    std::uint64_t m_size = 0;
};

std::span<const std::byte> bytesOf(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

} // namespace

struct JobCopy::State {
    HostJob* job = nullptr;
    std::function<void(const std::string&)> event;
    CopiedFile steps, events;
    std::unique_ptr<StreamReplay> replay;
    std::string line; // the part of the last one that is here
    std::string lastError;

    Result<void> replayFile();
    Result<void> bounded() const; // no more steps than were asked for
    Result<void> replayed(Result<void> done);
    void takeLine(const std::string& text);
};

Result<void> JobCopy::State::replayed(Result<void> done)
{
    job->runs = replay->runs();
    job->steps = 0;
    for (const ReplayedRun& run : job->runs) job->steps += run.here != 0 ? run.steps : 0;
    return done;
}

Result<void> JobCopy::State::replayFile()
{
    replay.reset();
    STAGEWRIGHT_TRY(replay, StreamReplay::open(job->file, job->runs, [this](const std::vector<ReplayedRun>& runs) {
                        job->runs = runs;
                        return keepJob(*job);
                    }));
    constexpr std::size_t chunk = std::size_t{1} << 20;
    for (std::uint64_t at = 0; at < steps.size();) {
        const std::string bytes = steps.read(at, chunk);
        if (bytes.empty()) break;
        if (auto done = replay->take(bytesOf(bytes)); !done) return done;
        at += bytes.size();
    }
    return replayed({});
}

Result<void> JobCopy::State::bounded() const
{
    std::int64_t steps = 0;
    for (const ReplayedRun& run : job->runs) steps += run.steps;
    if (job->stepsOrdered == 0 || steps <= std::int64_t{2} * job->stepsOrdered + stepsUnasked) return {};
    return fail(ErrorCode::Unreadable,
                fmt::format("the host sends {} steps where {} were asked for", steps, job->stepsOrdered),
                "check what answers there");
}

void JobCopy::State::takeLine(const std::string& text)
{
    Value value = readForeignJson<Value>(text);
    // of a library that prints
    if (!value.is_object() || !value.contains("event") || !value["event"].is_string()) return;
    const std::string name = value["event"].get<std::string>();
    if (name == "hello") return;
    const auto runHere = [&](const Value& there) -> std::int64_t {
        if (!there.is_number_integer()) return 0;
        const auto found = std::find_if(job->runs.begin(), job->runs.end(),
                                        [&](const ReplayedRun& run) { return run.there == there.get<std::int64_t>(); });
        return found == job->runs.end() ? 0 : found->here;
    };
    if (value.contains("run")) {
        const std::int64_t here = runHere(value["run"]);
        value["run"] = here == 0 ? Value(nullptr) : Value(here);
    }
    if (value.contains("runs") && value["runs"].is_array())
        for (Value& run : value["runs"]) run = runHere(run);
    if (value.contains("file")) value["file"] = job->file;
    if (name == "progress" && value.contains("total") && value["total"].is_number_integer() &&
        value.value("what", Value()) == Value("step"))
        job->stepsAsked = static_cast<int>(std::clamp<std::int64_t>(value["total"].get<std::int64_t>(), 0, 1 << 30));
    if (name == "error" && value.contains("message") && value["message"].is_string())
        lastError = plainText(value["message"].get<std::string>());
    if (event) event(value.dump(-1, ' ', true, Value::error_handler_t::replace));
}

Result<std::unique_ptr<JobCopy>> JobCopy::open(HostJob& job, std::function<void(const std::string&)> event)
{
    auto state = std::make_unique<State>();
    state->job = &job;
    state->event = std::move(event);
    STAGEWRIGHT_CHECK(keepJob(job));
    for (auto& [file, name] :
         {std::pair<CopiedFile&, const char*>(state->steps, jobfile::steps), {state->events, jobfile::events}})
        STAGEWRIGHT_CHECK(file.open(folderOfJob(job.id) + "/" + name));
    auto replayed = state->replayFile();
    // this computer went down while it wrote
    if (!replayed && replayed.error().code == ErrorCode::Unreadable && state->replay) {
        STAGEWRIGHT_CHECK(state->steps.cut(static_cast<std::uint64_t>(state->replay->taken())));
        replayed = state->replayFile();
    }
    if (!replayed) return tl::unexpected(std::move(replayed.error()));
    // a line that is not complete comes again
    const std::string tail =
        state->events.read(state->events.size() > longestLine ? state->events.size() - longestLine : 0, longestLine);
    const std::size_t whole = tail.rfind('\n');
    const std::size_t extra = whole == std::string::npos ? tail.size() : tail.size() - whole - 1;
    if (extra > 0) STAGEWRIGHT_CHECK(state->events.cut(state->events.size() - extra));
    return std::unique_ptr<JobCopy>(new JobCopy(std::move(state)));
}

JobCopy::JobCopy(std::unique_ptr<State> state) : m_state(std::move(state)) {}

JobCopy::~JobCopy() = default;

std::uint64_t JobCopy::steps() const { return m_state->steps.size(); }

std::uint64_t JobCopy::events() const { return m_state->events.size(); }

std::uint32_t JobCopy::stepsSum() const
{
    const std::uint64_t size = m_state->steps.size();
    const std::string bytes = m_state->steps.read(size > checkedBytes ? size - checkedBytes : 0, checkedBytes);
    return static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

Result<void> JobCopy::takeSteps(std::uint64_t offset, std::string_view bytes)
{
    State& state = *m_state;
    if (offset != state.steps.size())
        return fail(ErrorCode::Unreadable,
                    fmt::format("steps came from byte {} where {} was expected", offset, state.steps.size()));
    if (auto done = state.steps.append(bytes); !done) return done;
    auto done = state.replayed(state.replay->take(bytesOf(bytes)));
    if (!done && done.error().code == ErrorCode::Unreadable)
        (void)state.steps.cut(static_cast<std::uint64_t>(state.replay->taken()));
    return done ? state.bounded() : done;
}

Result<void> JobCopy::rewind()
{
    m_state->replay->rewind();
    return m_state->steps.cut(static_cast<std::uint64_t>(m_state->replay->taken()));
}

Result<void> JobCopy::takeEvents(std::uint64_t offset, std::string_view bytes)
{
    State& state = *m_state;
    if (offset != state.events.size())
        return fail(ErrorCode::Unreadable,
                    fmt::format("events came from byte {} where {} was expected", offset, state.events.size()));
    const std::uint64_t most =
        eventsAtFirst + eventsOfStep * static_cast<std::uint64_t>(std::max(0, state.job->stepsOrdered));
    if (bytes.size() > most || state.events.size() > most - bytes.size())
        return fail(ErrorCode::Unreadable, fmt::format("the host sends more than {} bytes of events", most),
                    "check what answers there");
    STAGEWRIGHT_CHECK(state.events.append(bytes));
    for (const char c : bytes) {
        if (c != '\n') {
            if (state.line.size() < longestLine) state.line += c;
            continue;
        }
        state.takeLine(state.line);
        state.line.clear();
    }
    return {};
}

const std::string& JobCopy::lastError() const { return m_state->lastError; }

} // namespace stagewright
