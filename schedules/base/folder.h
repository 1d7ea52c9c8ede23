// What a folder holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stagewright {

// Names in it, sorted, without "." and ".."; none where it can't be read. What another program removes meanwhile is
// listed or not. (The increment of std::filesystem's iterators throws where reading goes wrong.)
std::vector<std::string> namesIn(const std::string& folder);

// The bytes of all regular files in it and below, without following links; 0 where there is none.
std::int64_t folderBytes(const std::string& folder);

} // namespace stagewright
