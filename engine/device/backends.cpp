#include "engine/device/backends.h"

namespace stagewright {

std::vector<std::string_view> backendNames()
{
    return {
#define STAGEWRIGHT_BACKEND(name) #name,
#include "engine/backends.def"
#undef STAGEWRIGHT_BACKEND
    };
}

Result<std::unique_ptr<Memory>> Backend::openMemory(int, int, int) { return std::unique_ptr<Memory>(); }

Result<std::unique_ptr<Backend>> makeBackend(std::string_view wanted, const DeviceOptions& options)
{
#define STAGEWRIGHT_BACKEND(name)                                                                                      \
    if (wanted == #name) return backends::name(options);
#include "engine/backends.def"
#undef STAGEWRIGHT_BACKEND
    std::string known;
    for (const std::string_view name : backendNames()) known.append(known.empty() ? "" : ", ").append(name);
    return fail(ErrorCode::Usage, "unknown backend '" + std::string(wanted) + "'", "use one of: " + known);
}

} // namespace stagewright
