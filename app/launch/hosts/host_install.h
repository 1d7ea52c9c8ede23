// Copying this program to a host of the same kind, with the libraries it needs and the modules beside it.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/launch/hosts/host_list.h"
#include "schedules/base/result.h"

namespace stagewright {

struct InstallReport {
    std::string program; // where it is now, as the host knows it
    std::string version;
    std::vector<std::string> files; // names of what was copied
    std::int64_t bytes = 0;
};

// Unavailable where it would not run there (another processor, an older C library): the remedy says how to build it
// there.
Result<InstallReport> installOnHost(const Host& host, const std::function<void(const std::string& what)>& progress = {},
                                    const std::stop_token& stop = {});

} // namespace stagewright
