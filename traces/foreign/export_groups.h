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
    Nanos begin = 0; // of its content, in wall-clock time; end < begin: unknown
    Nanos end = -1;
    std::map<std::string, std::set<int>> places; // used in communicators, which are identified by random numbers
};

// Groups files that used different places in one communicator, regardless of their names; else those whose paths differ
// only in numbers and whose times overlap by at least half of the shorter one. If times are unknown, only
// files that name different ranks ("rank0", "rank1"). Each group in the natural order of its paths, groups by their
// first file. Whether their times overlap by more than half of the shorter one; where times are unknown, whether their
// names hold different numbers.
bool ranTogether(const ExportFile& a, const ExportFile& b);
std::vector<std::vector<std::size_t>> groupsOfExports(const std::vector<ExportFile>& files);

// "node2" before "node10".
bool naturalLess(std::string_view a, std::string_view b);

} // namespace stagewright
