// The other end: what runs on a host while someone here is connected to it. Jobs that it starts don't depend on it.
#pragma once

#include <string>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

// The call of this program that serves; scratch "": ~/.local/state/stagewright/hosted.
std::vector<std::string> serveArguments(const std::string& scratch);

// Answers requests from one descriptor on the other until it ends or the other side is gone. What it runs is this
// program, never a shell's text from a request.
Result<void> serveHost(const std::string& scratch, int in, int out);

} // namespace stagewright
