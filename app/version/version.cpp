#include "app/version/version.h"

namespace stagewright {

std::string_view programVersion() { return STAGEWRIGHT_VERSION; }

std::string versionText()
{
    const std::string version(programVersion());
    return programCommit().empty() ? version : version + " (" + std::string(programCommit()) + ")";
}

} // namespace stagewright
