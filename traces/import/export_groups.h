// Which exports of Nsight Systems are one job: nodes and processes export a file each.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/units.h"

namespace stagewright {

struct ExportFile {
    std::string path;
    Nanos begin = 0; // of what it holds, by the wall clock; end < begin: not known
    Nanos end = -1;
    std::map<std::string, std::set<int>> places; // taken in communicators, which are told apart by random numbers
};

// Files that took different places in one communicator, whatever they are called; else paths alike but for numbers, and held at the same time: over at least half of the shorter one. Where times are not known, only
// files that say different ranks ("rank0", "rank1"). Each group in the natural order of its paths, groups by their first file.
std::vector<std::vector<std::size_t>> groupsOfExports(const std::vector<ExportFile>& files);

// "node2" before "node10".
bool naturalLess(std::string_view a, std::string_view b);

} // namespace stagewright
