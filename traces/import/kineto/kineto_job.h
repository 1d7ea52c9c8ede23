// The job's data in a JSON trace besides the events: the members of its object that Kineto writes.
#pragma once

#include <string_view>
#include <vector>

#include "traces/foreign/foreign_trace.h"

namespace stagewright {

// Reads the used parts of a member's JSON. True: only Kineto writes such a member. Damaged ones are skipped.
bool readTraceMember(std::string_view key, std::string_view text, ForeignRank& rank);

// "[0, 2, 4]", "0,2,4"; empty where shortened ("0, 1, ..., 7") or no list.
std::vector<int> ranksInText(std::string_view text);

} // namespace stagewright
