#include "app/launch/hosts/ssh.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "app/launch/hosts/shell_words.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

Result<std::string> sshProgram()
{
    if (const char* given = std::getenv("STAGEWRIGHT_SSH"); given && *given == '/') return std::string(given);
    const char* path = std::getenv("PATH");
    for (const std::string_view folder : split(path ? path : "/usr/bin:/bin", ":")) {
        if (folder.empty() || folder.front() != '/') continue; // never the current one
        std::string file = std::string(folder) + "/ssh";
        if (::access(file.c_str(), X_OK) == 0) return file;
    }
    return fail(ErrorCode::Unavailable, "hosts are reached by OpenSSH's program ssh, which is not on PATH", "install it (Debian: apt install openssh-client)");
}

struct Cause {
    std::string_view said;
    const char* remedy;
};
constexpr auto causes = std::to_array<Cause>({
    {"Host key verification failed", "connect once by hand with 'ssh {}' and compare the host's key; keys are never accepted for you"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", "the host's key is not the known one: ask its administrator before you change ~/.ssh/known_hosts"},
    {"Permission denied", "ssh can't log in without a password: add your key to an agent, or copy it there with 'ssh-copy-id {}'"},
    {"Could not resolve hostname", "check the target's name: 'ssh {}' must work by hand"},
    {"Connection refused", "check that sshd runs there, and the port: 'ssh {}' must work by hand"},
    {"Connection timed out", "check the network and the target: 'ssh {}' must work by hand"},
    {"No route to host", "check the network and the target: 'ssh {}' must work by hand"},
});

} // namespace

Result<std::vector<std::string>> sshCommand(const Host& host, const std::string& script)
{
    if (auto good = checkHost(host); !good) return tl::unexpected(std::move(good.error())); // whatever wrote it
    auto program = sshProgram();
    if (!program) return tl::unexpected(std::move(program.error()));
    std::string lines;
    for (const std::string& line : host.setup) lines += line + "\n";
    return std::vector<std::string>{*program, "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=20",
                                    "--", host.target, "exec /bin/sh -c " + shellWord(lines + script)};
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
    return {ErrorCode::Unavailable, fmt::format("host {} can't be reached{}{}", host.name, text.empty() ? "" : ": ", text), remedy};
}

std::string programScript(const Host& host, const std::vector<std::string>& arguments)
{
    return fmt::format("p={}/bin/stagewright\n"
                       "[ -x \"$p\" ] || p=$(command -v stagewright) || {{ echo stagewright-missing >&2; exit {}; }}\n"
                       "exec \"$p\" {}",
                       shellPath(host.folder), programMissing, shellCommand(arguments));
}

} // namespace stagewright
