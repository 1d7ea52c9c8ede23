#include "schedules/base/folder.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <sys/stat.h>

namespace stagewright {

std::vector<std::string> namesIn(const std::string& folder)
{
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
    while (const dirent* entry = open ? ::readdir(open.get()) : nullptr)
        if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
    std::sort(names.begin(), names.end());
    return names;
}

std::int64_t folderBytes(const std::string& folder)
{
    std::int64_t bytes = 0;
    for (const std::string& name : namesIn(folder)) {
        const std::string path = folder + "/" + name;
        struct stat entry {};
        if (::lstat(path.c_str(), &entry) != 0) continue;
        if (S_ISDIR(entry.st_mode)) bytes += folderBytes(path);
        if (S_ISREG(entry.st_mode)) bytes += entry.st_size;
    }
    return bytes;
}

} // namespace stagewright
