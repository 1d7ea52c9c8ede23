#include "app/launch/program_path.h"

#include <cstdlib>

#include <unistd.h>

#include "schedules/base/text.h"

namespace stagewright {

std::vector<std::string> programFolders()
{
    const char* path = std::getenv("PATH");
    std::vector<std::string> folders;
    for (const std::string_view folder : split(path != nullptr ? path : "/usr/bin:/bin", ":"))
        if (folder.starts_with('/')) folders.emplace_back(folder);
    return folders;
}

std::string programOnPath(std::string_view program)
{
    for (std::string file : programFolders()) {
        file.append("/").append(program);
        if (::access(file.c_str(), X_OK) == 0) return file;
    }
    return {};
}

} // namespace stagewright
