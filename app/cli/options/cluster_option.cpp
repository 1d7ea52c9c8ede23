#include "app/cli/options/cluster_option.h"

#include <string>

#include "app/cli/options/files.h"
#include "schedules/base/text.h"

namespace stagewright {

Result<Cluster> clusterOf(std::string_view text)
{
    const auto [file, given] = keyValueOf(text, ':');
    Result<Cluster> out = fail(ErrorCode::Usage, "");
    if (!file.ends_with(".json")) {
        out = parseCluster(text);
    } else {
        STAGEWRIGHT_TRY(const auto json, readFile(std::string(file)));
        out = readCluster(json, given.value_or(""));
        if (!out) return tl::unexpected(std::move(out.error()).with(std::string(file)).with("--cluster"));
    }
    if (!out) return tl::unexpected(std::move(out.error()).with("--cluster"));
    return out;
}

} // namespace stagewright
