#include "schedules/base/folder.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include <dirent.h>

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

} // namespace stagewright
