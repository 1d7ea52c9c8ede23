// What is printed of a recording once it has ended, wherever it ran.
#pragma once

#include <string>

#include "app/cli/verbs/recording.h"
#include "schedules/base/result.h"

namespace stagewright {

class Session;

// The figures of its runs as text or JSON, and the "done" event. What stopped it becomes the error, with what is kept
// as its remedy.
Result<int> endRecording(const std::string& path, Recording recording, Session& session);

} // namespace stagewright
