// OpenSSH's own program as a child: its configuration, agent, jump hosts and host-key checks are the user's and stay as
// they are.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/launch/child_process.h"
#include "app/launch/hosts/host_list.h"
#include "schedules/base/result.h"

namespace stagewright {

// The command that runs the script in the host's shell, after its setup lines. It never asks for a password and finds
// out within 30 s that the other end is gone. $STAGEWRIGHT_SSH names another program than the ssh on PATH, for tests
// and wrappers. Unavailable where there is none.
Result<std::vector<std::string>> sshCommand(const Host& host, const std::string& script);

// What ssh wrote before it ended with 255, as an Error (Unavailable) with what to do about it.
Error sshError(const Host& host, const std::string& said);

// Runs the script there to its end. input: called until it returns "", what it returns is the script's standard input.
// Unavailable where the host is not reached, or gives no answer in so many seconds.
struct SshSaid {
    ChildEnd end;
    std::string out, err; // at most 1 MiB each
};
Result<SshSaid> runOverSsh(const Host& host, const std::string& script, double seconds, const std::stop_token& stop,
                           const std::function<std::string()>& input = {});

// The script that becomes the program there, with these arguments; "stagewright-missing" and exit code 127 where there
// is none.
std::string programScript(const Host& host, const std::vector<std::string>& arguments);
inline constexpr int programMissing = 127;

} // namespace stagewright
