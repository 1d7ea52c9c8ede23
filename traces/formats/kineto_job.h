// What a JSON trace says of its job besides the events: the members of its object that Kineto writes.
#pragma once

#include <string_view>
#include <vector>

#include "traces/import/foreign_trace.h"

namespace stagewright {

// Takes what the reader uses of a member's JSON. True: only Kineto writes such a member. Damaged ones are left.
bool readTraceMember(std::string_view key, std::string_view text, ForeignRank& rank);

// "[0, 2, 4]", "0,2,4"; empty where shortened ("0, 1, ..., 7") or no list.
std::vector<int> ranksInText(std::string_view text);

} // namespace stagewright
