#include "app/launch/torch_run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "app/launch/child_process.h"
#include "app/launch/launcher.h"
#include "app/launch/program_path.h"
#include "engine/torch/torch_job.h"

namespace stagewright {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds longestSilence{15}; // a rank says that it lives every second
constexpr Seconds looksAgain{1};      // after so long a silence, and as often, at the processor time of a rank
constexpr double computes = 0.1;      // of that time: a rank that only waits uses less
constexpr Seconds slowWork{120};      // at least this is granted for loading PyTorch and, elsewhere, writing traces
// how long after the first rank's end the others' ends are awaited, to tell cause from effect
constexpr Seconds endsTogether{0.4};
constexpr Seconds stopsWithin{10};
constexpr std::size_t lastLines = 5;
constexpr std::size_t longestLine = 1 << 16; // longer ones are cut

// A port of this computer that is free now, on all of its addresses; 0: none.
int freePort()
{
    const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0) return 0;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof(address);
    const bool bound = ::bind(probe, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    ::close(probe);
    return bound ? ntohs(address.sin_port) : 0;
}

// The network interface that gloo takes on its own: the one that this computer's name leads to. "": unknown.
std::string interfaceOfName()
{
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    addrinfo wanted{};
    wanted.ai_family = AF_INET;
    addrinfo* found = nullptr;
    ifaddrs* all = nullptr;
    std::string interface;
    if (::getaddrinfo(name.data(), nullptr, &wanted, &found) == 0 && ::getifaddrs(&all) == 0) {
        const auto address = [](const sockaddr* of) {
            return reinterpret_cast<const sockaddr_in*>(of)->sin_addr.s_addr;
        };
        for (const ifaddrs* one = all; one != nullptr && interface.empty(); one = one->ifa_next)
            if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET &&
                address(one->ifa_addr) == address(found->ai_addr))
                interface = one->ifa_name;
    }
    if (all != nullptr) ::freeifaddrs(all);
    if (found != nullptr) ::freeaddrinfo(found);
    return interface;
}

struct Rank {
    Rank(ChildProcess aChild, int aNumber, const std::string& logPath)
        : child(std::move(aChild)), number(aNumber), logName(logPath), log(logPath, std::ios::binary | std::ios::trunc)
    {
    }

    ChildProcess child;
    int number;
    std::string logName;
    std::ofstream log;
    std::string begun; // the line that is not complete yet
    std::deque<std::string> last;
    std::optional<ChildEnd> end;
    Clock::time_point heard = Clock::now(); // or seen to compute
    Clock::time_point looked = Clock::now();
    double computed = 0; // seconds of processor time
    bool ready = false;  // it has built its stages
    int step = 0;
    std::int64_t ops = 0;
    std::string where = "starting";
    std::optional<TorchEvent> error;
    bool done = false;
    int traced = 0; // steps
};

class Watch {
public:
    explicit Watch(const TorchRun& run) : m_run(run) {}

    Result<void> start()
    {
        std::error_code error;
        fs::create_directories(fs::path(m_run.folder) / "logs", error);
        if (error)
            return fail(ErrorCode::Failed, fmt::format("folder {}: {}", m_run.folder, error.message()),
                        "choose another folder with --job");
        const int port = freePort();
        if (port == 0) return fail(ErrorCode::Failed, fmt::format("no free port here: {}", std::strerror(errno)));
        if (m_run.nodes.size() > 1 && m_run.ranks > 1) {
            const char* chosen = std::getenv("GLOO_SOCKET_IFNAME");
            m_out.interface = chosen != nullptr ? chosen : interfaceOfName();
        }
        for (int rank = 0; rank < m_run.ranks; ++rank) {
            TorchRankCommand command = rankCommand(rank, port);
            auto child =
                ChildProcess::start({std::move(command.arguments), std::move(command.variables), m_run.folder});
            if (!child) return tl::unexpected(std::move(child.error()));
            m_ranks.push_back(
                std::make_unique<Rank>(std::move(*child), rank, fmt::format("{}/logs/rank{}.log", m_run.folder, rank)));
        }
        return {};
    }

    TorchRunEnd watch(const std::stop_token& stop)
    {
        while (!m_out.stopped && !allEnded()) {
            listen();
            if (stop.stop_requested()) askToStop();
            lookForEnd();
            if (!m_out.stopped) lookForHang();
            if (!m_out.stopped && m_asked && Clock::now() - m_lastProgress > stopsWithin) m_out.stopped = interrupted();
        }
        endAll();
        if (m_asked && !m_out.stopped) m_out.stopped = interrupted();
        const auto least = std::min_element(m_ranks.begin(), m_ranks.end(),
                                            [](const auto& a, const auto& b) { return a->traced < b->traced; });
        m_out.tracedSteps = least == m_ranks.end() ? 0 : (*least)->traced;
        return std::move(m_out);
    }

private:
    TorchRankCommand rankCommand(int rank, int port) const
    {
        const int nodes = std::min(m_run.ranks, std::max(1, static_cast<int>(m_run.nodes.size())));
        const auto firstOf = [&](int node) { return (node * m_run.ranks + nodes - 1) / nodes; };
        const int node = rank * nodes / m_run.ranks;
        TorchRankPlace place{rank, m_run.ranks, rank - firstOf(node), firstOf(node + 1) - firstOf(node), {}, port};
        if (nodes > 1) place.master = m_run.nodes.front();
        TorchRankCommand command = torchRankCommand(m_run.python, place);
        command.arguments.insert(command.arguments.begin(), m_run.container.begin(), m_run.container.end());
        if (nodes == 1 && m_run.srun.empty()) return command;
        std::vector<std::string> options{"--unbuffered", "--chdir=" + m_run.folder};
        if (nodes > 1) options.push_back("--nodelist=" + m_run.nodes[static_cast<std::size_t>(node)]);
        options.insert(options.end(), m_run.srun.begin(), m_run.srun.end());
        std::vector<std::string> srun = oneTaskWords(options);
        srun.front() = programOnPath(srun.front());
        srun.emplace_back("--");
        command.arguments.insert(command.arguments.begin(), srun.begin(), srun.end());
        return command;
    }

    static Error interrupted() { return {ErrorCode::Cancelled, "interrupted", {}}; }
    bool allEnded() const
    {
        return std::all_of(m_ranks.begin(), m_ranks.end(), [](const auto& rank) { return rank->end.has_value(); });
    }

    void listen()
    {
        std::vector<pollfd> waiting;
        for (const auto& rank : m_ranks)
            if (!rank->child.atEnd()) waiting.push_back({rank->child.output(), POLLIN, 0});
        if (waiting.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ::poll(waiting.data(), waiting.size(), 100);
        for (const auto& rank : m_ranks) {
            const std::string text = rank->child.read();
            if (!text.empty()) hear(*rank, text);
        }
    }

    void hear(Rank& rank, const std::string& text)
    {
        rank.heard = Clock::now();
        rank.begun += text;
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = rank.begun.find('\n', begin)) != std::string::npos; begin = end + 1)
            take(rank, rank.begun.substr(begin, end - begin));
        rank.begun.erase(0, begin);
        if (rank.begun.size() > longestLine) take(rank, std::exchange(rank.begun, {}));
        rank.log << std::flush;
    }

    void take(Rank& rank, const std::string& line)
    {
        const auto event = parseTorchEvent(line);
        if (!event || event->kind != TorchEvent::Kind::Beat) rank.log << line << '\n';
        if (!event) {
            if (line.find_first_not_of(" \t\r") == std::string::npos) return;
            rank.last.push_back(line.substr(0, 300));
            if (rank.last.size() > lastLines) rank.last.pop_front();
            return;
        }
        switch (event->kind) {
        case TorchEvent::Kind::Beat:
            if (event->step != rank.step || event->ops != rank.ops || event->where != rank.where)
                m_lastProgress = Clock::now();
            rank.step = event->step;
            rank.ops = event->ops;
            rank.where = event->where;
            return;
        case TorchEvent::Kind::Ready:
            rank.ready = true;
            if (rank.number == 0) {
                m_out.torch = event->torch;
                m_out.python = event->python;
                m_out.device = event->device;
            }
            break;
        case TorchEvent::Kind::Step: takeStep(*event); break;
        case TorchEvent::Kind::Check: break;
        case TorchEvent::Kind::Error: rank.error = event; return;
        case TorchEvent::Kind::Done:
            rank.done = true;
            if (event->profiling + event->writing > m_out.profiling + m_out.writing) {
                m_out.profiling = event->profiling;
                m_out.writing = event->writing;
            }
            break;
        case TorchEvent::Kind::Traced:
            ++rank.traced;
            rank.where = "between steps"; // its next sign of life may be a second away
            break;
        }
        m_lastProgress = Clock::now();
        if (m_run.onEvent) m_run.onEvent(*event);
    }

    void takeStep(const TorchEvent& event)
    {
        if (event.step < 0 || event.step > 100'000'000) return; // nothing that the driver says
        const auto count = static_cast<std::size_t>(event.step) + 1;
        if (m_out.losses.size() < count) {
            m_out.losses.resize(count, std::numeric_limits<double>::quiet_NaN());
            m_out.stepTimes.resize(count, 0);
        }
        m_out.losses[count - 1] = event.loss;
        m_out.stepTimes[count - 1] = event.stepTime;
        m_out.completeSteps = std::max(m_out.completeSteps, event.step + 1);
    }

    void askToStop()
    {
        if (m_asked) return;
        m_asked = true;
        m_lastProgress = Clock::now();
        if (m_out.completeSteps <= m_run.untraced) {
            m_out.stopped = interrupted(); // there is nothing to keep
            return;
        }
        for (const auto& rank : m_ranks) rank->child.say("stop\n");
    }

    void lookForEnd()
    {
        bool bad = false;
        for (const auto& rank : m_ranks) {
            rank->end = rank->child.poll();
            bad = bad || (rank->end && !rank->done); // once it has said so, its trace is there, however it ends
        }
        if (!bad) return;
        // The first to end pulls the others down: let them say what they saw.
        for (const auto until = Clock::now() + endsTogether; Clock::now() < until && !allEnded();) {
            listen();
            for (const auto& rank : m_ranks) rank->end = rank->child.poll();
        }
        for (const auto& rank : m_ranks)
            if (rank->end) flush(*rank);
        const Rank* worst = nullptr;
        for (const auto& rank : m_ranks)
            if (blame(*rank) > (worst ? blame(*worst) : 0)) worst = rank.get();
        if (worst)
            m_out.stopped =
                failure(*worst, worst->error ? fmt::format("failed {}: {}", worst->error->where, worst->error->message)
                                             : toText(*worst->end));
    }

    // How likely a rank is the cause: killed, an error of its own, gone without a word, an error that another's end
    // caused.
    static int blame(const Rank& rank)
    {
        if (!rank.end || rank.done) return 0;
        if (rank.end->signal > 0 && !rank.error) return 4;
        if (rank.error) return rank.error->peer ? 1 : 3;
        return 2;
    }

    void lookForHang()
    {
        const auto now = Clock::now();
        const Seconds timeout(m_run.timeoutSeconds);
        for (const auto& rank : m_ranks) {
            if (rank->end) continue;
            lookForWork(*rank, now);
            const Seconds limit = isUnseen(*rank) ? std::max(timeout, slowWork) : std::min(timeout, longestSilence);
            if (const Seconds silent = now - rank->heard; silent > limit) {
                m_out.stopped = failure(
                    *rank, fmt::format("gave no sign of life for {:.0f} s, {}", silent.count(), placeOf(*rank)));
                return;
            }
        }
        const bool slow = std::any_of(m_ranks.begin(), m_ranks.end(),
                                      [this](const auto& rank) { return !rank->end && isUnseen(*rank); });
        if (const Seconds still = now - m_lastProgress; still > (slow ? std::max(timeout, slowWork) : timeout)) {
            // Ranks between ops wait for messages; the one within an op is the one that they wait for.
            const auto inside = std::find_if(m_ranks.begin(), m_ranks.end(), [](const auto& rank) {
                return !rank->end && rank->where.starts_with("in ");
            });
            const Rank& stuck =
                inside != m_ranks.end()
                    ? **inside
                    : **std::min_element(m_ranks.begin(), m_ranks.end(), [](const auto& a, const auto& b) {
                          return std::pair(a->step, a->ops) < std::pair(b->step, b->ops);
                      });
            std::string others;
            for (const auto& rank : m_ranks)
                if (rank.get() != &stuck) others += fmt::format("; rank {} is {}", rank->number, placeOf(*rank));
            m_out.stopped = failure(
                stuck, fmt::format("made no progress for {:.0f} s, {}{}", still.count(), placeOf(stuck), others));
        }
    }

    // A call that keeps Python's lock, as the profiler's end does, also keeps a rank from saying that it lives.
    void lookForWork(Rank& rank, Clock::time_point now)
    {
        const bool quiet = now - rank.heard > looksAgain || (isSlow(rank) && now - m_lastProgress > looksAgain);
        if (!quiet || now - rank.looked < looksAgain) return;
        const double before = std::exchange(rank.computed, rank.child.processorSeconds().value_or(0));
        const Seconds since = now - std::exchange(rank.looked, now);
        if (since > 10 * looksAgain || rank.computed - before < computes * since.count()) return;
        rank.heard = now;
        if (isSlow(rank)) m_lastProgress = now;
    }

    // Slow, and not always seen to compute: it waits for a disk, or is on another node.
    bool isUnseen(const Rank& rank) const { return !rank.ready || (isSlow(rank) && m_run.nodes.size() > 1); }
    // Before its stages are there, and while it writes its trace, under Python's lock.
    static bool isSlow(const Rank& rank) { return !rank.ready || rank.where == "writing its trace"; }
    static std::string placeOf(const Rank& rank) { return fmt::format("{} of step {}", rank.where, rank.step + 1); }

    static Error failure(const Rank& rank, const std::string& what)
    {
        std::string lines;
        for (const std::string& line : rank.last) lines += "\n    " + line;
        return {ErrorCode::Failed, fmt::format("rank {} {}", rank.number, what),
                fmt::format("its log is {}{}{}", rank.logName, lines.empty() ? "" : ", which ends:", lines)};
    }

    // What a rank wrote without an end of line.
    void flush(Rank& rank)
    {
        if (const std::string rest = rank.child.read(); !rest.empty()) hear(rank, rest);
        if (!rank.begun.empty()) take(rank, std::exchange(rank.begun, {}));
        rank.log << std::flush;
    }

    void endAll()
    {
        for (const auto& rank : m_ranks) rank->child.signalGroup(SIGTERM);
        for (const auto until = Clock::now() + std::chrono::seconds(1); Clock::now() < until && !allEnded();) {
            listen();
            for (const auto& rank : m_ranks) rank->end = rank->child.poll();
        }
        for (const auto& rank : m_ranks) {
            rank->child.signalGroup(SIGKILL);
            flush(*rank);
        }
    }

    const TorchRun& m_run;
    std::vector<std::unique_ptr<Rank>> m_ranks;
    TorchRunEnd m_out;
    bool m_asked = false;
    Clock::time_point m_lastProgress = Clock::now();
};

} // namespace

Result<TorchRunEnd> runTorchJob(const TorchRun& run, const std::stop_token& stop)
{
    Watch watch(run);
    STAGEWRIGHT_CHECK(watch.start());
    return watch.watch(stop);
}

} // namespace stagewright
