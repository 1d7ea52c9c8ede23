// Which processes of a Kineto file are ranks, where several were merged into one file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/import/kineto/trace_threads.h"

namespace stagewright {

// What merging tools put before a process's number: "[TP00] " of "[TP00] 83", "rank1_" of "rank1_4000"; "" for "83" and
// for words without a number.
std::string_view processTag(std::string_view process);

// The groups that each tag's rank lists: group → ranks, group → purpose.
using GroupsOfTag =
    std::pair<std::map<std::string, std::vector<int>, std::less<>>, std::map<std::string, std::string, std::less<>>>;

// A Kineto file: one rank; several if processes have tags, or if several processes launched work. A device's process
// belongs to the one with its tag, else to the one that made the calls with its correlations: those are numbered by
// process. `groups`: by tag. ofDevices: ranks are processes named as devices, as XLA has them, whoever launched what.
std::vector<ForeignRank> ranksOfKineto(const TraceThreads& threads,
                                       std::map<std::string, GroupsOfTag, std::less<>> groups, ForeignRank whole,
                                       bool ofDevices = false);

} // namespace stagewright
