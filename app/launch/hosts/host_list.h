// The computers that a user can run on: kept in $XDG_CONFIG_HOME/stagewright/hosts.json (else ~/.config), readable by
// the user only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct Host {
    std::string name; // [A-Za-z0-9][A-Za-z0-9._-]*, at most 64
    // as `ssh` takes it: a host of ~/.ssh/config, user@host, ssh://user@host:port
    std::string target;
    std::string folder = "~/.local/lib/stagewright"; // where `install` puts the program
    // where jobs keep their files; "": ~/.local/state/stagewright/hosted
    std::string scratch;
    // lines for its shell before anything else: the user's own, such as "module load cuda"
    std::vector<std::string> setup;
    bool operator==(const Host&) const = default;
};

std::string hostsFile();
std::string stateFolder(); // $XDG_STATE_HOME/stagewright, else ~/.local/state/stagewright

// By name. No file: none. Unreadable where the file is damaged, or a host in it is not one that checkHost() accepts.
Result<std::vector<Host>> readHosts();
// Unavailable for an unknown name; the remedy lists those there are, or says how to add one.
Result<Host> findHost(std::string_view name);
// Usage for a name or target that can't be: a target that starts with "-" would be an option of ssh; no field may have
// control characters.
Result<void> checkHost(const Host& host);
// Replaces one of the same name. Written to a temporary file and renamed; mode 0600.
Result<void> keepHost(const Host& host);
Result<void> removeHost(std::string_view name);

} // namespace stagewright
