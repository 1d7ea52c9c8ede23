// Programs on PATH. Folders of it that are not absolute, the current one too, are skipped, so that nothing that lies
// about is started.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagewright {

std::vector<std::string> programFolders();           // of PATH, in its order; /usr/bin and /bin where it is not set
std::string programOnPath(std::string_view program); // its path; "": it is in none of them

} // namespace stagewright
