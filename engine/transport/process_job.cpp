#include "engine/transport/process_job.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fstream>
#include <thread>

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/transport/bytes.h"
#include "profiler/record/clock.h"

namespace stagewright {

namespace {

constexpr int placeTag = 0;
constexpr int pingTag = 1;
constexpr int pongTag = 2;
constexpr int firstTag = 3;
constexpr int bellTag = 5;
constexpr int gatherTag = 6;
constexpr int roundTrips = 64;
constexpr Nanos patience = 60'000'000'000;
constexpr Nanos longestSleep = 1'000'000;
constexpr int looksWhenRung = 7; // MPI may fetch a message at one look and find it at the next
constexpr Nanos lastWaitForOthers = 1'000'000'000;

std::string lineOf(const char* path)
{
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::string targetOf(const char* link)
{
    char target[256];
    const ssize_t length = ::readlink(link, target, sizeof target);
    return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
}

ProcessPlace thisPlace(const std::string& version)
{
    ProcessPlace place;
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) == 0) place.host = host;
    const std::string machine = lineOf("/proc/sys/kernel/random/boot_id"); // changes with every start of a machine
    place.clock = machine.empty() ? std::string() : machine + " " + targetOf("/proc/self/ns/time");
    place.pidSpace = machine.empty() ? std::string() : machine + " " + targetOf("/proc/self/ns/pid");
    place.pid = ::getpid();
    place.version = version;
    return place;
}

cpu_set_t ownCores()
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
    return set;
}

} // namespace

ProcessJob::Pause::Pause(const ProcessJob& job, Nanos atMost)
    : m_job(job), m_end(atMost < 0 ? -1 : monotonicNow() + atMost)
{
    thread_local const int slack = ::prctl(PR_SET_TIMERSLACK, 1); // sleeps of microseconds mean what they say
    static_cast<void>(slack);
}

void ProcessJob::Pause::listen()
{
    if (m_job.m_bells) m_heard = m_job.m_bells->count(m_job.index());
}

bool ProcessJob::Pause::again()
{
    ++m_turns;
    if (m_looks > 0) {
        --m_looks;
        return true;
    }
    if (!m_job.m_crowded && m_turns < 32) return true;
    if (m_end >= 0 && monotonicNow() >= m_end) return false;
    if (m_job.m_bells) {
        m_job.m_bells->await(m_job.index(), m_heard, longestSleep);
        if (m_job.m_bells->count(m_job.index()) != m_heard) m_looks = looksWhenRung;
        return true;
    }
    const timespec rest{0, m_turns < 256 ? 10'000 : m_turns < 1024 ? 50'000 : 100'000};
    ::nanosleep(&rest, nullptr);
    return true;
}

Processes::Request ProcessJob::send(int to, int tag, const void* data, std::size_t bytes, bool met)
{
    const Processes::Request request = m_processes->send(to, tag, data, bytes, met);
    if (m_bells) m_bells->ring(to);
    return request;
}

void ProcessJob::taken(int from)
{
    if (m_bells) m_bells->ring(from);
}

Result<std::shared_ptr<ProcessJob>> ProcessJob::meet(std::unique_ptr<Processes> processes, const std::string& version)
{
    try {
        std::shared_ptr<ProcessJob> job(new ProcessJob(std::move(processes)));
        STAGEWRIGHT_CHECK(job->exchangePlaces(version));
        STAGEWRIGHT_CHECK(job->setClocks());
        STAGEWRIGHT_CHECK(job->hangBells());
        return job;
    } catch (const std::exception& e) {
        return fail(ErrorCode::Failed, e.what());
    }
}

ProcessJob::~ProcessJob()
{
    try {
        awaitOutgoing();
    } catch (const std::exception&) { // the job has failed, and says so elsewhere
    }
}

void ProcessJob::awaitOutgoing()
{
    const auto out = [this] {
        tidy();
        return m_outgoing.empty();
    };
    await(
        out, [] { return false; }, lastWaitForOthers);
}

void ProcessJob::close()
{
    awaitOutgoing();
    m_outgoing.clear();
    m_processes->close();
}

Result<std::vector<std::byte>> ProcessJob::hearSoon(int from, int tag)
{
    std::optional<std::vector<std::byte>> heard;
    int turns = 0;
    bool ended = false;
    const auto came = [&] {
        if ((heard = hear(from, tag))) return true;
        ended = ++turns % 256 == 0 && hasEnded(from);
        return false;
    };
    await(
        came, [&] { return ended; }, patience);
    if (heard) return std::move(*heard);
    if (ended) return fail(ErrorCode::Failed, nameOf(from) + " has ended, killed or crashed");
    return fail(ErrorCode::Failed, fmt::format("process {} of {} does not answer", from, count()));
}

Result<void> ProcessJob::exchangePlaces(const std::string& version)
{
    const ProcessPlace own = thisPlace(version);
    cpu_set_t cores = ownCores(); // and those of the others here: launchers give each its own, or all the same
    m_places.assign(static_cast<std::size_t>(count()), {});
    m_clocks.assign(static_cast<std::size_t>(count()), {});
    for (int other = 0; other < count(); ++other) {
        if (other == index()) continue;
        ByteWriter bytes;
        for (const std::string* text : {&own.host, &own.clock, &own.pidSpace, &own.version}) bytes.text(*text);
        bytes.put(own.pid);
        bytes.put(ownCores());
        say(other, placeTag, bytes.take());
    }
    int here = 1;
    for (int other = 0; other < count(); ++other) {
        ProcessPlace& place = m_places[static_cast<std::size_t>(other)];
        if (other == index()) {
            place = own;
            continue;
        }
        STAGEWRIGHT_TRY(auto heard, hearSoon(other, placeTag));
        ByteReader bytes(heard);
        for (std::string* text : {&place.host, &place.clock, &place.pidSpace, &place.version}) *text = bytes.text();
        place.pid = bytes.get<std::int64_t>();
        const auto theirs = bytes.get<cpu_set_t>();
        if (place.host == own.host) {
            CPU_OR(&cores, &cores, &theirs);
            ++here;
        }
        if (!bytes.good() || place.version != own.version)
            return fail(ErrorCode::Unavailable,
                        fmt::format("{} is stagewright {}, {} is {}", nameOf(index()), own.version, nameOf(other),
                                    place.version.empty() ? "another one" : place.version),
                        "install the same version on all hosts");
    }
    m_cores = std::max(1, CPU_COUNT(&cores));
    m_crowded = here > m_cores;
    return {};
}

Result<void> ProcessJob::setClocks()
{
    if (index() != 0) {
        for (int i = 0; i < roundTrips; ++i) {
            STAGEWRIGHT_CHECK(hearSoon(0, pingTag));
            ByteWriter pong;
            pong.put(monotonicNow());
            say(0, pongTag, pong.take());
        }
        return {};
    }
    for (int other = 1; other < count(); ++other) {
        std::vector<PingPong> trips;
        for (int i = 0; i < roundTrips; ++i) {
            PingPong trip;
            trip.sent = monotonicNow();
            say(other, pingTag, {});
            STAGEWRIGHT_TRY(auto pong, hearSoon(other, pongTag));
            trip.received = monotonicNow();
            trip.there = ByteReader(pong).get<Nanos>();
            trips.push_back(trip);
        }
        m_clocks[static_cast<std::size_t>(other)] = clockOffsetOf(trips);
    }
    return {};
}

// The first process hangs them up, all others of its machine use them; the name goes as soon as they have.
Result<void> ProcessJob::hangBells()
{
    std::string name;
    std::unique_ptr<Bells> bells;
    if (index() == 0) {
        name = fmt::format("/stagewright-{}-{}", placeOf(0).pid, monotonicNow());
        bells = Bells::open(name, count(), true);
        if (!bells) name.clear();
    }
    ByteWriter bytes;
    bytes.text(name);
    STAGEWRIGHT_TRY(auto given, fromFirst(bytes.take()));
    name = ByteReader(given).text();
    if (index() != 0) {
        if (!name.empty() && placeOf(index()).pidSpace == placeOf(0).pidSpace)
            bells = Bells::open(name, count(), false);
        say(0, bellTag, {});
    }
    for (int other = 1; index() == 0 && other < count(); ++other) STAGEWRIGHT_CHECK(hearSoon(other, bellTag));
    if (index() == 0 && bells) bells->remove();
    m_bells = std::move(bells);
    return {};
}

std::string ProcessJob::nameOf(int process) const
{
    const ProcessPlace& place = placeOf(process);
    return fmt::format("process {} on {}", place.pid, place.host.empty() ? "an unnamed host" : place.host);
}

bool ProcessJob::oneHost() const
{
    return std::all_of(m_places.begin(), m_places.end(),
                       [&](const ProcessPlace& place) { return place.host == m_places.front().host; });
}

bool ProcessJob::sharesClock(int process) const
{
    const std::string& clock = placeOf(process).clock;
    return process == 0 || (!clock.empty() && clock == m_places.front().clock);
}

ClockOffset ProcessJob::clockOf(int process) const
{
    return sharesClock(process) ? ClockOffset() : measuredClock(process);
}

Result<std::vector<std::byte>> ProcessJob::fromFirst(std::vector<std::byte> own)
{
    try {
        if (index() != 0) return hearSoon(0, firstTag);
        for (int other = 1; other < count(); ++other) say(other, firstTag, own);
        return own;
    } catch (const std::exception& e) {
        return fail(ErrorCode::Failed, e.what());
    }
}

Result<std::vector<std::vector<std::byte>>> ProcessJob::toFirst(std::vector<std::byte> own)
{
    std::vector<std::vector<std::byte>> all;
    try {
        if (index() != 0) {
            say(0, gatherTag, std::move(own));
            return all;
        }
        all.push_back(std::move(own));
        for (int other = 1; other < count(); ++other) {
            STAGEWRIGHT_TRY(auto heard, hearSoon(other, gatherTag));
            all.push_back(std::move(heard));
        }
    } catch (const std::exception& e) {
        return fail(ErrorCode::Failed, e.what());
    }
    return all;
}

Result<int> ProcessJob::reserveTags(std::int64_t count)
{
    const std::lock_guard lock(m_mutex);
    if (m_nextTag + count > m_processes->tagLimit())
        return fail(ErrorCode::Usage,
                    fmt::format("{} message tags are needed, {} has {}", m_nextTag + count, m_processes->name(),
                                m_processes->tagLimit()),
                    "use fewer microbatches, stages or ranks");
    const auto first = static_cast<int>(m_nextTag);
    m_nextTag += count;
    return first;
}

void ProcessJob::say(int to, int tag, std::vector<std::byte> bytes)
{
    const Processes::Request request = send(to, tag, bytes.data(), bytes.size());
    const std::lock_guard lock(m_mutex);
    m_outgoing.push_back({request, std::move(bytes)}); // which keep their place
    std::erase_if(m_outgoing, [this](Outgoing& one) { return m_processes->done(one.request); });
}

std::optional<std::vector<std::byte>> ProcessJob::hear(int from, int tag)
{
    const std::optional<Processes::Arrived> arrived = m_processes->arrived(from, tag);
    if (!arrived) return std::nullopt;
    std::vector<std::byte> bytes(arrived->bytes);
    Processes::Request request = m_processes->receive(*arrived, bytes.data());
    await([&] { return m_processes->done(request); }, [] { return false; });
    return bytes;
}

void ProcessJob::tidy()
{
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_outgoing, [this](Outgoing& one) { return m_processes->done(one.request); });
}

void ProcessJob::giveUp(int process) { m_givenUp = process; }

bool ProcessJob::hasEnded(int process) const
{
    const ProcessPlace& place = placeOf(process);
    if (process == m_givenUp) return true;
    if (process == index() || place.pidSpace.empty() || place.pidSpace != placeOf(index()).pidSpace) return false;
    if (::kill(static_cast<pid_t>(place.pid), 0) != 0) return errno == ESRCH;
    // Ended, but not yet waited for by who started it.
    const std::string status = lineOf(fmt::format("/proc/{}/stat", place.pid).c_str());
    const std::size_t name = status.rfind(')');
    return name != std::string::npos && name + 2 < status.size() &&
           (status[name + 2] == 'Z' || status[name + 2] == 'X');
}

} // namespace stagewright
