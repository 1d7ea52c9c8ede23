#include "app/cli/options/cluster_option.h"

#include <string>

#include "app/cli/options/files.h"

namespace stagewright {

Result<Cluster> clusterOf(std::string_view text)
{
    auto out = namedCluster(text, [](const std::string& path) { return readFile(path); });
    if (!out) return tl::unexpected(std::move(out.error()).with("--cluster"));
    return out;
}

} // namespace stagewright
