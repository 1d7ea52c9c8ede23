#include "app/launch/hosts/link.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>

#include <poll.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/launch/child_process.h"
#include "app/launch/hosts/serve.h"
#include "app/launch/hosts/ssh.h"
#include "app/launch/shell_words.h"
#include "app/version/version.h"
#include "schedules/base/foreign_json.h"
#include "schedules/base/text.h"

namespace stagewright {

using Clock = std::chrono::steady_clock;

namespace {

constexpr double silence = 20;         // seconds; the other end gives a sign of life every few
constexpr double patience = 60;        // for its first words
constexpr std::size_t mostSaid = 4096; // of what ssh says

bool isOlder(const std::string& a, const std::string& b)
{
    const auto x = split(a, ".-+~");
    const auto y = split(b, ".-+~");
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
        const auto m = wholeOf<int>(x[i]);
        const auto n = wholeOf<int>(y[i]);
        if (m && n && *m != *n) return *m < *n;
        if ((!m || !n) && x[i] != y[i]) return x[i] < y[i];
    }
    return x.size() < y.size();
}

} // namespace

struct HostLink::State {
    std::optional<Host> host;
    std::optional<ChildProcess> child;
    FrameReader frames;
    std::string said; // on its standard error
    Clock::time_point heard = Clock::now();

    std::string name() const { return host ? "host " + host->name : std::string("this computer"); }
    tl::unexpected<Error> lost();
    Result<void> greet(const std::stop_token& stop);
};

tl::unexpected<Error> HostLink::State::lost()
{
    std::optional<ChildEnd> end;
    for (int i = 0; i < 50 && !(end = child->poll()); ++i) ::poll(nullptr, 0, 20);
    said += child->readErrors();
    if (said.find("stagewright-missing") != std::string::npos)
        return fail(ErrorCode::Unavailable, fmt::format("{}: stagewright is not there", name()),
                    host ? fmt::format("copy it there: stagewright hosts install {}", host->name) : std::string());
    if (host && end && end->code == 255) return tl::unexpected(sshError(*host, said));
    const std::string words = plainText(trimmed(said), 600);
    if (words.find("has no option") != std::string::npos || words.find("there is no verb") != std::string::npos)
        return fail(ErrorCode::Unavailable, fmt::format("{}: the stagewright there is older than this one", name()),
                    host ? fmt::format("replace it: stagewright hosts install {}", host->name) : std::string());
    return fail(ErrorCode::Unavailable,
                fmt::format("{}: the connection is lost{}{}", name(), words.empty() ? "" : ": ", words));
}

Result<void> HostLink::State::greet(const std::stop_token& stop)
{
    const auto begin = Clock::now();
    while (secondsSince(begin) < patience) {
        if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "interrupted");
        std::array<pollfd, 2> ready{{{child->output(), POLLIN, 0}, {child->errors(), POLLIN, 0}}};
        ::poll(ready.data(), ready.size(), 100);
        frames.add(child->read());
        if (said.size() < mostSaid) said += child->readErrors();
        auto frame = frames.next();
        if (!frame) return tl::unexpected(std::move(frame.error()).with(name()));
        if (*frame) {
            const auto hello = readForeignJson((*frame)->bytes);
            if (!hello.is_object() || !hello.contains("version") || !hello["version"].is_string() ||
                !hello.contains("protocol") || !hello["protocol"].is_number_integer())
                return fail(ErrorCode::Unreadable, fmt::format("{}: what answers there is not stagewright", name()));
            const std::string version = plainText(hello["version"].get<std::string>(), 60);
            const std::string here(programVersion());
            if (version == here && hello["protocol"].get<std::int64_t>() == linkProtocol) return {};
            const std::string install =
                host ? fmt::format("'stagewright hosts install {}' copies this version there", host->name)
                     : std::string();
            const auto commit = hello.find("commit");
            const std::string there =
                commit != hello.end() && commit->is_string() && !commit->get_ref<const std::string&>().empty()
                    ? fmt::format("{} ({})", version, plainText(commit->get<std::string>(), 60))
                    : version;
            if (version == here)
                return fail(ErrorCode::Unavailable,
                            fmt::format("{} has stagewright {}, another build than {} here, which speaks differently",
                                        name(), there, versionText()),
                            install);
            if (isOlder(version, here))
                return fail(
                    ErrorCode::Unavailable,
                    fmt::format("{} has stagewright {}, which is older than {} here", name(), there, versionText()),
                    install);
            return fail(ErrorCode::Unavailable,
                        fmt::format("this computer has stagewright {}, which is older than {} on {}", versionText(),
                                    there, name()),
                        "update it here; " + install);
        }
        if (child->atEnd()) return lost();
    }
    return fail(ErrorCode::Unavailable, fmt::format("{} does not answer within {:.0f} s", name(), patience),
                host ? fmt::format("'ssh {}' must work by hand, without a password", host->target) : std::string());
}

Result<std::unique_ptr<HostLink>> HostLink::open(const std::optional<Host>& host, const std::stop_token& stop,
                                                 const std::string& scratch)
{
    auto state = std::make_unique<State>();
    state->host = host;
    ChildStart start;
    start.ownErrors = true;
    start.folder = "/";
    const std::vector<std::string> serve = serveArguments(scratch.empty() && host ? host->scratch : scratch);
    if (host) {
        STAGEWRIGHT_TRY(start.arguments, sshCommand(*host, programScript(*host, serve)));
    } else {
        std::error_code error;
        start.arguments = {std::filesystem::read_symlink("/proc/self/exe", error).string()};
        start.arguments.insert(start.arguments.end(), serve.begin(), serve.end());
    }
    STAGEWRIGHT_TRY(auto child, ChildProcess::start(start));
    state->child.emplace(std::move(child));
    STAGEWRIGHT_CHECK(state->greet(stop));
    state->heard = Clock::now();
    return std::unique_ptr<HostLink>(new HostLink(std::move(state)));
}

HostLink::HostLink(std::unique_ptr<State> state) : m_state(std::move(state)) {}

HostLink::~HostLink() = default;

void HostLink::leave() { m_state->child->leave(); }

void HostLink::send(FrameKind kind, std::string_view bytes, std::uint64_t offset)
{
    for (std::size_t at = 0; at == 0 || at < bytes.size(); at += mostFrame)
        m_state->child->say(frameBytes(kind, bytes.substr(at, mostFrame), offset + at));
}

Result<std::optional<Frame>> HostLink::next(double seconds)
{
    State& state = *m_state;
    const auto begin = Clock::now();
    for (;;) {
        auto frame = state.frames.next();
        if (!frame) return tl::unexpected(std::move(frame.error()).with(state.name()));
        if (*frame) {
            state.heard = Clock::now();
            return frame;
        }
        if (state.child->atEnd()) return state.lost();
        if (secondsSince(state.heard) > silence)
            return fail(
                ErrorCode::Unavailable,
                fmt::format("{}: the connection is lost: nothing was heard for {:.0f} s", state.name(), silence));
        const double left = seconds - secondsSince(begin);
        if (left <= 0) return std::optional<Frame>();
        std::array<pollfd, 2> ready{{{state.child->output(), POLLIN, 0}, {state.child->errors(), POLLIN, 0}}};
        ::poll(ready.data(), ready.size(), static_cast<int>(std::min(left * 1000, 1000.0)) + 1);
        state.frames.add(state.child->read());
        const std::string errors = state.child->readErrors();
        if (state.said.size() < mostSaid) state.said += errors;
    }
}

} // namespace stagewright
