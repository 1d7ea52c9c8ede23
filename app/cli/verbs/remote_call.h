// A verb that is done on a host: this end passes its output on.
#pragma once

#include <string>

#include "app/cli/options/place_options.h"
#include "schedules/base/result.h"

namespace stagewright {

class Session;

// The call as it was given, on that host; its output and errors as they come. Returns its exit code.
Result<int> callOnHost(const std::string& verb, const std::string& host, const std::vector<TypedOption>& typed,
                       Session& session);

} // namespace stagewright
