#include "app/launch/hosts/ssh.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "app/launch/program_path.h"
#include "app/launch/shell_words.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

Result<std::string> sshProgram()
{
    if (const char* given = ::secure_getenv("STAGEWRIGHT_SSH"); given && *given == '/') return std::string(given);
    if (std::string file = programOnPath("ssh"); !file.empty()) return file;
    return fail(ErrorCode::Unavailable, "hosts are reached by OpenSSH's program ssh, which is not on PATH",
                "install it (Debian: apt install openssh-client)");
}

struct Cause {
    std::string_view said;
    const char* remedy;
};
constexpr auto causes = std::to_array<Cause>({
    {"Host key verification failed",
     "connect once by hand with 'ssh {}' and compare the host's key; keys are never accepted for you"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED",
     "the host's key is not the known one: ask its administrator before you change ~/.ssh/known_hosts"},
    {"Permission denied",
     "ssh can't log in without a password: add your key to an agent, or copy it there with 'ssh-copy-id {}'; where a "
     "login asks for a code, set ControlMaster and ControlPath for it in ~/.ssh/config and log in once by hand"},
    {"Could not resolve hostname", "check the target's name: 'ssh {}' must work by hand"},
    {"Connection refused", "check that sshd runs there, and the port: 'ssh {}' must work by hand"},
    {"Connection timed out", "check the network and the target: 'ssh {}' must work by hand"},
    {"No route to host", "check the network and the target: 'ssh {}' must work by hand"},
});

} // namespace

Result<std::vector<std::string>> sshCommand(const Host& host, const std::string& script)
{
    STAGEWRIGHT_CHECK(checkHost(host)); // whatever wrote it
    STAGEWRIGHT_TRY(auto program, sshProgram());
    std::string lines;
    for (const std::string& line : host.setup) lines += line + "\n";
    return std::vector<std::string>{program,
                                    "-T",
                                    "-x",
                                    "-a",
                                    "-o",
                                    "BatchMode=yes",
                                    "-o",
                                    "ClearAllForwardings=yes",
                                    "-o",
                                    "ServerAliveInterval=10",
                                    "-o",
                                    "ServerAliveCountMax=3",
                                    "-o",
                                    "ConnectTimeout=20",
                                    "--",
                                    host.target,
                                    "exec /bin/sh -c " + shellWord(lines + script)};
}

Error sshError(const Host& host, const std::string& said)
{
    const std::string text = plainText(trimmed(said), 600);
    std::string remedy = fmt::format("'ssh {}' must work by hand, without a password", host.target);
    for (const Cause& cause : causes)
        if (text.find(cause.said) != std::string::npos) {
            remedy = fmt::format(fmt::runtime(cause.remedy), host.target);
            break;
        }
    return {ErrorCode::Unavailable,
            fmt::format("host {} can't be reached{}{}", host.name, text.empty() ? "" : ": ", text), remedy};
}

Result<SshSaid> runOverSsh(const Host& host, const std::string& script, double seconds, const std::stop_token& stop,
                           const std::function<std::string()>& input)
{
    constexpr std::size_t most = std::size_t{1} << 20;
    constexpr int unreached = 255; // ssh's own
    STAGEWRIGHT_TRY(auto command, sshCommand(host, script));
    STAGEWRIGHT_TRY(auto child, ChildProcess::start({command, {}, "/", true}));
    SshSaid said;
    bool feeding = static_cast<bool>(input);
    if (!feeding) child.endInput();
    const auto begin = std::chrono::steady_clock::now();
    while (!child.atEnd() || child.errors() >= 0) {
        if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "interrupted");
        if (feeding) {
            const std::string bytes = input();
            feeding = !bytes.empty();
            feeding ? child.say(bytes) : child.endInput();
        }
        std::array<pollfd, 2> ready{{{child.output(), POLLIN, 0}, {child.errors(), POLLIN, 0}}};
        ::poll(ready.data(), ready.size(), feeding ? 0 : 100);
        for (auto& [text, more] :
             {std::pair<std::string&, std::string>(said.out, child.read()), {said.err, child.readErrors()}})
            if (text.size() < most) text += more;
        if (secondsSince(begin) > seconds)
            return fail(ErrorCode::Unavailable,
                        fmt::format("host {} gives no answer within {:.0f} s", host.name, seconds),
                        fmt::format("'ssh {}' must work by hand, without a password", host.target));
    }
    for (;;) {
        if (const auto end = child.poll()) {
            said.end = *end;
            break;
        }
        ::poll(nullptr, 0, 10);
    }
    if (said.end.code == unreached) return tl::unexpected(sshError(host, said.err));
    return said;
}

std::string programScript(const Host& host, const std::vector<std::string>& arguments)
{
    return fmt::format("p={}/bin/stagewright\n"
                       "[ -x \"$p\" ] || p=$(command -v stagewright) || {{ echo stagewright-missing >&2; exit {}; }}\n"
                       "exec \"$p\" {}",
                       shellPath(host.folder), programMissing, shellCommand(arguments));
}

} // namespace stagewright
