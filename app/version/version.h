// The program's version, and the commit that it was built from.
#pragma once

#include <string>
#include <string_view>

namespace stagewright {

std::string_view programVersion(); // "0.1.0"
std::string_view programCommit();  // "e243aefb9", "e243aefb9-dirty" with changes; "": built without its repository
std::string versionText();         // "0.1.0 (e243aefb9)", or the version alone

} // namespace stagewright
