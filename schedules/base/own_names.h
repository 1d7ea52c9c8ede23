// Names of temporary files and folders that nobody else's has: what is left of a killed program is known by its name
// alone.
#pragma once

#include <string>
#include <string_view>

namespace stagewright {

// `beginning` with eight digits and letters by chance and seven that follow from them and it.
std::string newOwnName(std::string_view beginning);
// Whether newOwnName made it from that beginning.
bool isOwnName(std::string_view name, std::string_view beginning);

} // namespace stagewright
